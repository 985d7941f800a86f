"""Makes what the benchmarks of translation read: sentences of Multi30k, a SentencePiece tokenizer, lines of so many
tokens."""

import gzip
import json
import os
import pathlib
import random

import common

DATA = pathlib.Path(os.environ.get("HEADSHARE_DATA", common.ROOT.parent / "shared" / "data")).resolve() / "multi30k"


def sentences(name, count=None):
    """Returns the lines of a file of Multi30k, as "test_2016_flickr.de"."""
    return gzip.decompress((DATA / f"{name}.gz").read_bytes()).decode().splitlines()[:count]


def write_pieces(folder, vocabulary, lines):
    """Trains one SentencePiece model for both sides, as MarianMT's files have it: returns the size of vocab.json."""
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(folder / "pieces"), vocab_size=vocabulary, num_threads=1,
        minloglevel=2,
    )  # fmt: skip
    content = (folder / "pieces.model").read_bytes()
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(content)
    pieces = processor(folder)
    names = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    names = ["</s>", "<unk>", *(name for name in names if name not in ("<s>", "</s>", "<unk>")), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    marks = dict(source_lang="de", target_lang="en", tokenizer_class="MarianTokenizer")
    (folder / "tokenizer_config.json").write_text(json.dumps(marks))
    return len(names)


def processor(folder):
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "pieces.model"))


def write_lines(path, folder, texts, tokens, count):
    """Returns lines of exactly `tokens` pieces: words of the first texts, drawn at random, the last ones short enough
    to fit."""
    path.write_text("\n".join(lines_of(processor(folder), texts[:500], tokens, count)) + "\n")


def lines_of(pieces, texts, tokens, count):
    words = sorted({word for text in texts for word in text.split()})
    lengths = {word: len(pieces.encode(word)) for word in words}
    short = [word for word in words if lengths[word] == 1]
    draw, lines = random.Random(0), []
    while len(lines) < count:
        line, left = [], tokens
        while left > 0:
            word = draw.choice(words)
            word = word if lengths[word] <= left else draw.choice(short)
            line.append(word)
            left -= lengths[word]
        text = " ".join(line)
        if len(pieces.encode(text)) == tokens:
            lines.append(text)
    return lines

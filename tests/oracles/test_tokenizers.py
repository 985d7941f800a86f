"""Tests the tokenizers against Hugging Face tokenizers: the same ids and the same trained vocabularies.

Drives headshare/text/tokenize_tool of the build under test (tokenize_tool.py).
"""

import gzip
import json
import random

import pytest
from tokenize_tool import code_points, decode, encode, first_difference, random_texts, run_tool

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402


@pytest.fixture(scope="module")
def gpt2(data, tmp_path_factory):
    """Returns GPT-2's two files unpacked, and Hugging Face's tokenizer over them."""
    folder = tmp_path_factory.mktemp("gpt2")
    for name in ("encoder.json", "vocab.bpe"):
        (folder / name).write_bytes(gzip.decompress((data / "tokenizers" / "gpt2" / f"{name}.gz").read_bytes()))
    reference = Tokenizer(models.BPE.from_file(str(folder / "encoder.json"), str(folder / "vocab.bpe")))
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    reference.decoder = decoders.ByteLevel()
    return folder, reference


@pytest.fixture(scope="module")
def wikitext(data):
    """Returns a function from a split to its lines, with their ends."""
    folder = data / "wikitext-2"
    names = ("train", "valid", "test")
    return {n: gzip.decompress((folder / f"{n}.txt.gz").read_bytes()).decode().splitlines(keepends=True) for n in names}


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_all_of_wikitext2(tool, gpt2, wikitext, split):
    folder, reference = gpt2
    lines = wikitext[split]
    ids = encode(tool, folder, lines)
    assert first_difference(lines, ids, [item.ids for item in reference.encode_batch(lines)]) is None
    assert b"".join(decode(tool, folder, ids)) == "".join(lines).encode()


def test_a_whole_split_as_one_text(tool, gpt2, wikitext):
    folder, reference = gpt2
    text = "".join(wikitext["valid"])
    assert encode(tool, folder, [text]) == [reference.encode(text).ids]


def test_every_code_point_has_the_same_class(tool, gpt2):
    """Appends 'll, which is one token unless the code point is a sign, which takes the apostrophe."""
    folder, reference = gpt2
    lines = ["{0}'ll {0}1 a{0} {0} ".format(chr(point)) for point in code_points()]
    texts = ["\n".join(lines[at : at + 100]) for at in range(0, len(lines), 100)]
    expected = [item.ids for item in reference.encode_batch(texts)]
    assert first_difference(texts, encode(tool, folder, texts), expected) is None


def test_random_unicode(tool, gpt2):
    folder, reference = gpt2
    texts = random_texts(20000, seed=1)
    ids = encode(tool, folder, texts)
    assert first_difference(texts, ids, [item.ids for item in reference.encode_batch(texts)]) is None
    assert decode(tool, folder, ids) == [text.encode() for text in texts]


def test_random_bytes_survive(tool, gpt2):
    generator = random.Random(2)
    texts = [generator.randbytes(generator.randrange(200)) for _ in range(2000)]
    assert decode(tool, gpt2[0], encode(tool, gpt2[0], texts)) == texts


@pytest.mark.parametrize("prefix_space", [False, True])
@pytest.mark.parametrize("use_regex", [False, True])
def test_hugging_face_files(tool, gpt2, tmp_path, prefix_space, use_regex):
    reference = Tokenizer.from_str(gpt2[1].to_str())
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=use_regex)
    reference.add_special_tokens(["<|endoftext|>"])
    reference.save(str(tmp_path / "tokenizer.json"))
    texts = random_texts(2000, seed=3)
    expected = [item.ids for item in reference.encode_batch(texts)]
    assert first_difference(texts, encode(tool, tmp_path, texts), expected) is None


def hugging_face_trained(texts, vocabulary_size, min_frequency):
    reference = Tokenizer(models.BPE())
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    reference.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary_size,
            min_frequency=min_frequency,
            show_progress=False,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    return reference


def repetitive_texts():
    """Runs of few letters, where merges overlap and many counts tie."""
    generator = random.Random(4)
    return ["".join(generator.choice("ab- ") * generator.randrange(1, 9) for _ in range(40)) for _ in range(200)]


@pytest.mark.parametrize(
    "corpus, vocabulary_size, min_frequency",
    [("wikitext", 8192, 2), ("wikitext-valid", 20000, 1), ("random", 3000, 2), ("repetitive", 2000, 1)],
)
def test_training_gives_the_same_merges(tool, tmp_path, request, corpus, vocabulary_size, min_frequency):
    if corpus.startswith("wikitext"):
        texts = request.getfixturevalue("wikitext")["valid" if corpus.endswith("valid") else "train"]
    else:
        texts = random_texts(3000, seed=5) if corpus == "random" else repetitive_texts()
    theirs = json.loads(hugging_face_trained(texts, vocabulary_size, min_frequency).to_str())["model"]
    out = tmp_path / "trained"
    options = ["tokenizer=bpe", f"vocabulary-size={vocabulary_size}", f"min-count={min_frequency}"]
    run_tool(tool, "train", out, *options, frames=[text.encode() for text in texts])
    ours = json.loads((tmp_path / "trained.hf.json").read_text())["model"]
    assert first_difference(range(len(theirs["merges"])), ours["merges"], theirs["merges"]) is None
    assert ours["vocab"] == theirs["vocab"]

    # The exported tokenizer is the one that was trained.
    exported = Tokenizer.from_file(str(tmp_path / "trained.hf.json"))
    sample = texts[:500]
    expected = [item.ids for item in exported.encode_batch(sample)]
    assert first_difference(sample, encode(tool, tmp_path / "trained.json", sample), expected) is None

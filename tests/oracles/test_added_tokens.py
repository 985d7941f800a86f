"""Tests added tokens against Hugging Face tokenizers and transformers: random ones with all their options, in random
texts.

Drives headshare/text/tokenize_tool of the build under test (tokenize_tool.py). Special tokens that have a role ("[MASK]")
are found by its verb "special" alone (docs/design/016).
"""

import itertools
import json
import random
import re
import unicodedata

import pytest
from tokenize_tool import encode, encode_with_spans, first_difference

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers  # noqa: E402

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
LETTERS = sorted(set("abcdefghinotwxyzABENTW0123456789[]<>-_,.'\u00e9\u00f1\u65e5\u672c\u0301\u0308"))
CONTENTS = ["[E1]", "[e1]", "<e1>", "e1", "E1", "[", "new", "New", "new town", "the", "th", "he", "\u00e9", "\u00c9t\u00e9", "e\u0301",
            "\u65e5", "\u65e5\u672c", "-", "--", "_x", "a-b", "tail ", "\u0130", "\ufb01", "x\u200by", "\u212b", "x\ty", "[E1] ",
            "\u00bd", "\U0001d538", "Q\u0308", "a b"]  # fmt: skip
WHITE = [" ", "  ", "\t", "\n", "\r\n", "\v", "\f", "\x1c", "\x1f", "\x85", "\u00a0", "\u1680", "\u2003", "\u2028", "\u202f", "\u205f",
         "\u3000", "\u200b", "\ufeff", "\u180e"]  # fmt: skip


def wordpiece(generator):
    words = ["the", "new", "e1", "##e", "##town", "E1", *LETTERS]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(BERT + words + ["##" + one for one in LETTERS]))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    cased = generator.random() < 0.3
    made.normalizer = None if generator.random() < 0.1 else normalizers.BertNormalizer(
        clean_text=generator.random() < 0.8, handle_chinese_chars=generator.random() < 0.8, strip_accents=None, lowercase=not cased)  # fmt: skip
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    return made, BERT


def bpe(generator):
    vocabulary = {token: number for number, token in enumerate(ROBERTA + sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = [("t", "h"), ("th", "e"), ("n", "e"), ("ne", "w"), ("\u0120", "the"), ("e", "1")]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    made = Tokenizer(models.BPE(vocabulary, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=generator.random() < 0.4)
    made.decoder = decoders.ByteLevel()
    return made, ROBERTA


def unigram(generator):
    steps = [normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    pieces = [(token, 0.0) for token in ROBERTA] + [("\u2581", -2.0), ("\u2581the", -3.0), ("\u2581new", -3.5), ("e1", -2.5)]
    pieces += [(one, -4.0 - number / 64) for number, one in enumerate(LETTERS)]
    made = Tokenizer(models.Unigram(pieces, unk_id=3))
    kept = [step for step in steps if generator.random() < 0.7]
    if kept:
        made.normalizer = normalizers.Sequence(kept)
    metaspace = pre_tokenizers.Metaspace(prepend_scheme=generator.choice(["always", "never"]))
    by_white = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    made.pre_tokenizer = by_white if generator.random() < 0.6 else metaspace
    return made, ROBERTA


def random_tokens(generator, count):
    """Returns tokens that normalisation leaves something of, and none that begin with white space (refused beside
    rstrip)."""
    chosen = generator.sample(CONTENTS, count)
    flags = lambda: generator.random() < 0.4  # noqa: E731
    return [AddedToken(text, lstrip=flags(), rstrip=flags(), single_word=flags(), normalized=flags(), special=flags()) for text in chosen]


def random_texts(generator, tokens, more=()):
    parts = [token.content for token in tokens for _ in range(3)] + [change(token.content) for token in tokens for change in (str.lower, str.upper)]
    parts += [*WHITE, *LETTERS, "\u00c9", "\u00d1", "E\u0301", "\u0378"[:0] or "-", "the", "The new", *list(more) * 3]
    return ["".join(generator.choice(parts) for _ in range(generator.randrange(25))) for _ in range(150)]


def byte_spans(text, encoding):
    starts = list(itertools.accumulate((len(character.encode()) for character in text), initial=0))
    return [(number, starts[begin], starts[end]) for number, (begin, end) in zip(encoding.ids, encoding.offsets)]


def has_role(texts, roles):
    return [not any(role.lower() in text.lower() for role in roles) for text in texts]


@pytest.mark.parametrize("make", [wordpiece, bpe, unigram])
@pytest.mark.parametrize("seed", range(6))
def test_random_tokens_in_random_texts(tool, tmp_path, make, seed):
    generator = random.Random(f"{make.__name__} {seed}")
    for trial in range(6):
        theirs, roles = make(generator)
        theirs.add_special_tokens([AddedToken(role, special=True, lstrip=role.lower() in ("[mask]", "<mask>")) for role in roles])
        tokens = random_tokens(generator, generator.randrange(1, 9))
        theirs.add_tokens(tokens)
        path = tmp_path / f"{trial}.json"
        theirs.save(str(path))
        texts = random_texts(generator, tokens)
        texts = [text for text, free in zip(texts, has_role(texts, roles)) if free]
        expected = theirs.encode_batch(texts, add_special_tokens=False)
        assert first_difference(texts, encode(tool, path, texts), [one.ids for one in expected]) is None, tokens
        if make is not bpe:  # spans of byte-level tokens are of bytes
            spans = [byte_spans(text, one) for text, one in zip(texts, expected)]
            assert first_difference(texts, encode_with_spans(tool, path, texts), spans) is None, tokens
        texts = random_texts(generator, tokens, roles)
        expected = [one.ids for one in theirs.encode_batch(texts, add_special_tokens=False)]
        assert first_difference(texts, encode(tool, path, texts, verb="special"), expected) is None, tokens


def known_points():
    """Returns all characters but most ideographs, syllables and private ones, which come in long runs of one class."""
    runs = itertools.chain(range(0x3400, 0xA000), range(0xAC00, 0xD7A4), range(0xE000, 0xF900), range(0x20000, 0xE0000), range(0xF0000, 0x110000))
    left_out = {point for point in runs if point % 64}
    return [point for point in range(1, 0x110000) if point not in left_out and unicodedata.category(chr(point)) not in ("Cn", "Cs")]


def test_every_code_point_beside_a_token(tool, tmp_path):
    """Compares which characters are white space and which are parts of words."""
    theirs, _ = bpe(random.Random(0))
    theirs.add_tokens([AddedToken("[w]", single_word=True), AddedToken("[s]", lstrip=True, rstrip=True)])
    theirs.save(str(tmp_path / "tokenizer.json"))
    cases = ["[w]{0}[w] {0}[s]{0}".format(chr(point)) for point in known_points()]
    texts = [" a ".join(cases[at : at + 8]) for at in range(0, len(cases), 8)]
    expected = [one.ids for one in theirs.encode_batch(texts)]
    assert first_difference(texts, encode(tool, tmp_path, texts), expected) is None


# ---------------------------------------------------------------------------------------------------- folders


TEXTS = ["the [E1] new", "[e1]the <new> town", "The[E2]  NEW", "a new", "<new>the", "[E3] [E4] e1", "the_new the", "\u00a0[E1]\u3000[E2]"]
OLD = {"added_tokens.json": {"[E1]": 100, "[E2]": 101, "<new>": 102},
       "special_tokens_map.json": {"additional_special_tokens": ["[E1]"]}}  # fmt: skip
DECODER = {"tokenizer_config.json": {"added_tokens_decoder": {
    "100": {"content": "[E1]", "lstrip": True, "rstrip": True, "single_word": False, "normalized": False, "special": True},
    "101": {"content": "[E2]", "lstrip": False, "rstrip": False, "single_word": True, "normalized": True, "special": False}}}}  # fmt: skip
FOLDERS = {
    "old files": OLD,
    "a decoder": DECODER,
    "a decoder goes before old files": OLD | DECODER,
    "names in the configuration": {"tokenizer_config.json": {"additional_special_tokens": ["[E1]", "[E2]"]}},
    "options of extra tokens": {"special_tokens_map.json": {"extra_special_tokens": ["[E1]", {
        "content": "[E2]", "lstrip": True, "rstrip": True, "single_word": False, "normalized": False}]}},
    "extra tokens": {"tokenizer_config.json": {"extra_special_tokens": ["[E2]", "[E1]"]}},
    "names alone": {"special_tokens_map.json": {"additional_special_tokens": ["[E1]", "<new>"]}},
    "a name that the vocabulary lacks": {"tokenizer_config.json": {"additional_special_tokens": ["[E2]"], "pad_token": "[E1]"}},
    "names in another order": {"tokenizer_config.json": {"pad_token": "[E1]", "bos_token": "[E2]", "eos_token": "<new>"}},
    "other names": {"tokenizer_config.json": {"image_token": "[E2]", "extra_special_tokens": ["<new>"], "entity_token": "[E1]",
                                              "object_token": {"content": "a"}, "add_bos_token": False}},
    "other names with options": {"special_tokens_map.json": {"entity_token": {
        "content": "[E1]", "lstrip": True, "rstrip": True, "single_word": False, "normalized": False}, "x_token": "<new>"},
        "tokenizer_config.json": {"x_token": "[E2]"}},
    "a name in two files": {"special_tokens_map.json": {"pad_token": "[E1]"}, "tokenizer_config.json": {"pad_token": "[E2]", "x_token": "<new>"}},
    "two lists": {"special_tokens_map.json": {"extra_special_tokens": ["[E1]", "<new>"]}, "tokenizer_config.json": {"extra_special_tokens": ["[E2]"]}},
    "two lists of additional ones": {"special_tokens_map.json": {"additional_special_tokens": ["[E1]"]},
                                     "tokenizer_config.json": {"additional_special_tokens": ["[E2]"]}},
    "an additional and an empty list": {"special_tokens_map.json": {"additional_special_tokens": ["[E1]"]},
                                        "tokenizer_config.json": {"extra_special_tokens": []}},
    "an object of extra tokens": {"tokenizer_config.json": {"extra_special_tokens": {"b_token": "[E2]", "a": "[E1]"}}},
    "an added token with a name": {"added_tokens.json": {"[E2]": 100, "[E1]": 101}, "tokenizer_config.json": {"entity_token": "[E2]", "pad_token": "[E1]"}},
}


def write_folder(folder, files, kind, size):
    """Writes files whose ids, from 100 on, become those behind a vocabulary of `size` tokens."""
    folder.mkdir()
    text = re.sub(r"\b10[0-2]\b", lambda number: str(size + int(number[0]) - 100), json.dumps(files))
    for name, content in json.loads(text).items():
        (folder / name).write_text(json.dumps(content))
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))


@pytest.mark.parametrize("case", FOLDERS)
def test_files_beside_a_vocabulary(tool, tmp_path, case):
    transformers = pytest.importorskip("transformers")
    letters = [one for one in LETTERS if one.lower() == one]  # without capitals the vocabulary is taken for uncased
    vocabulary = list(dict.fromkeys(BERT + ["the", "new", "e1", *letters] + ["##" + one for one in letters]))
    write_folder(tmp_path / "bert", FOLDERS[case], "bert", len(vocabulary))
    (tmp_path / "bert" / "vocab.txt").write_text("".join(token + "\n" for token in vocabulary))
    pair = {token: number for number, token in enumerate(ROBERTA[:4] + sorted(pre_tokenizers.ByteLevel.alphabet()) + ["th", "the", "<mask>"])}
    for kind in ("roberta", "bart", "gpt2"):
        write_folder(tmp_path / kind, FOLDERS[case], kind, len(pair))
        (tmp_path / kind / "vocab.json").write_text(json.dumps(pair if kind != "gpt2" else pair | {"<|endoftext|>": pair["<mask>"]}))
        (tmp_path / kind / "merges.txt").write_text("#version: 0.2\nt h\nth e\n")
        if kind == "gpt2":
            changed = {token: number for token, number in pair.items() if token != "<mask>"} | {"<|endoftext|>": pair["<mask>"]}
            (tmp_path / kind / "vocab.json").write_text(json.dumps(changed))
    for kind in ("bert", "roberta", "bart", "gpt2"):
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / kind)
        expected = [theirs(text, add_special_tokens=False)["input_ids"] for text in TEXTS]
        verb = "special" if kind == "gpt2" else "encode"  # one case names its end of a text, which is no text for "encode"
        assert first_difference(TEXTS, encode(tool, tmp_path / kind, TEXTS, verb), expected) is None, kind


BESIDE = {  # 100 and 101 are [E1] and [E2] of tokenizer.json
    "other options": {"added_tokens_decoder": {"100": {"content": "[E1]", "lstrip": True, "rstrip": True, "normalized": False, "special": True},
                                               "101": {"content": "[E2]", "single_word": True, "normalized": False}}},
    "names": {"pad_token": "<new>", "entity_token": "[E3]", "additional_special_tokens": ["[E4]"]},
}  # fmt: skip


@pytest.mark.parametrize("case", BESIDE)
def test_files_beside_a_tokenizer_json(tool, tmp_path, case):
    transformers = pytest.importorskip("transformers")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = {"GPT2Tokenizer": [*alphabet, "th", "the", "<|endoftext|>"], "RobertaTokenizer": [*ROBERTA[:4], *alphabet, "th", "the", "<mask>"]}
    for name, tokens in names.items():
        made = getattr(transformers, name)(vocab={token: at for at, token in enumerate(tokens)}, merges=[("t", "h"), ("th", "e")])
        made.add_tokens([AddedToken("[E1]", special=True), AddedToken("[E2]", normalized=False)])
        for kind in (name, "PreTrainedTokenizerFast"):
            folder = tmp_path / (name + kind)
            write_folder(folder, {"tokenizer_config.json": BESIDE[case] | {"tokenizer_class": kind}}, "gpt2", len(tokens))
            made._tokenizer.save(str(folder / "tokenizer.json"))
            theirs = transformers.AutoTokenizer.from_pretrained(folder)
            expected = [theirs(text, add_special_tokens=False)["input_ids"] for text in TEXTS]
            assert first_difference(TEXTS, encode(tool, folder, TEXTS), expected) is None, (name, kind)


def test_what_transformers_saves_comes_in(tool, tmp_path):
    """Imports GPT-2's template that adds nothing, RoBERTa's and BART's form, and truncation with padding."""
    transformers = pytest.importorskip("transformers")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = {"GPT2Tokenizer": [*alphabet, "th", "the", "<|endoftext|>"], "RobertaTokenizer": [*ROBERTA[:4], *alphabet, "th", "the", "<mask>"]}
    for name, tokens in names.items():
        made = getattr(transformers, name)(vocab={token: at for at, token in enumerate(tokens)}, merges=[("t", "h"), ("th", "e")])
        made.add_special_tokens({"additional_special_tokens": ["[E1]"]})
        made.add_tokens(["new", AddedToken("[E2]", lstrip=True)])
        made._tokenizer.enable_truncation(8)
        made._tokenizer.enable_padding()
        made.save_pretrained(tmp_path / name)
        made._tokenizer.no_truncation()
        made._tokenizer.no_padding()
        expected = [made(text, add_special_tokens=False)["input_ids"] for text in TEXTS]
        assert first_difference(TEXTS, encode(tool, tmp_path / name, TEXTS), expected) is None, name

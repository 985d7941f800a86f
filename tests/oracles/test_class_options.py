"""Tests what a tokenizer_config.json changes of the tokenizer.json beside it, against transformers: some classes build case,
accents and the first space from it."""

import itertools
import json

import pytest
from tokenize_tool import encode, first_difference

pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers  # noqa: E402

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = ["Big café", "big cafe", "日本 Big", " big", "BIG  café\n"]


@pytest.fixture
def compare(tool, tmp_path):
    """Checks that both read the same ids from a folder with this tokenizer.json and this tokenizer_config.json."""

    def check(made, config, model_type):
        made.save(str(tmp_path / "tokenizer.json"))
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        expected = [theirs(text, add_special_tokens=False)["input_ids"] for text in TEXTS]
        assert first_difference(TEXTS, expected, encode(tool, tmp_path, TEXTS)) is None, config
        return expected

    return check


@pytest.mark.parametrize("name", ["BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "PreTrainedTokenizerFast"])
def test_case_and_accents(compare, name):
    words = ["Big", "big", "cafe", "café", "Café", "日", "本", "日本"]
    found = set()
    for lowercase, given in itertools.product((False, True), ({}, {"do_lower_case": False}, {"do_lower_case": True})):
        for more in ({}, {"strip_accents": False}, {"strip_accents": True}, {"tokenize_chinese_chars": False}):
            made = Tokenizer(models.WordPiece({word: i for i, word in enumerate(BERT + words)}, unk_token="[UNK]"))
            made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
            made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            made.decoder = decoders.WordPiece()
            made.add_special_tokens(BERT)
            found.add(str(compare(made, {"tokenizer_class": name, **given, **more}, "bert")))
    assert len(found) > 1  # the options did something


@pytest.mark.parametrize("name", ["GPT2Tokenizer", "RobertaTokenizer", "BartTokenizer", "PreTrainedTokenizerFast"])
def test_the_first_space(compare, name):
    found = set()
    for before, given in itertools.product((False, True), ({}, {"add_prefix_space": False}, {"add_prefix_space": True})):
        vocabulary = {token: i for i, token in enumerate(["<|endoftext|>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "Ġb"])}
        made = Tokenizer(models.BPE(vocabulary, [("Ġ", "b")]))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=before)
        made.decoder = decoders.ByteLevel()
        found.add(str(compare(made, {"tokenizer_class": name, **given}, "gpt2")))
    assert len(found) == 2

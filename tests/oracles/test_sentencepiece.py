"""Tests SentencePiece tokenizers against PyPI's sentencepiece: ids, spans and texts of models trained by either.

Drives headshare/text/tokenize_tool of the build under test (tokenize_tool.py). The packages are of other versions of the
library than Debian's, which headshare links.
"""

import base64
import gzip
import io
import json
import random

import pytest
from tokenize_tool import decode, encode, encode_with_spans, first_difference, run_tool

sentencepiece = pytest.importorskip("sentencepiece")



def lines_of(data, name):
    return gzip.decompress((data / "multi30k" / name).read_bytes()).decode().splitlines()


@pytest.fixture(scope="module")
def training(data):
    return lines_of(data, "train.de.gz")[:6000] + lines_of(data, "train.en.gz")[:6000]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def ours(request, tool, training, tmp_path_factory):
    """Returns (our tokenizer.json, the same model in Python, its type) of a model that headshare trained."""
    out = tmp_path_factory.mktemp("ours") / request.param
    settings = ("tokenizer=sentencepiece", f"sentencepiece-model={request.param}", "vocabulary-size=2000")
    run_tool(tool, "train", out, *settings, frames=["\n".join(training).encode()])
    path = out.with_suffix(".json")
    return path, python_model(base64.b64decode(json.loads(path.read_text())["model"])), request.param


def python_model(content):
    return sentencepiece.SentencePieceProcessor(model_proto=content)


def trained_by_python(training, **settings):
    model = io.BytesIO()
    settings = {"vocab_size": 1500, "minloglevel": 2, "num_threads": 1, **settings}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(training), model_writer=model, **settings)
    return model.getvalue()


# Each has one setting of the library: its defaults (unknown 0, begin 1, end 2, no padding), byte fallback, ...
THEIRS = {
    "defaults": {},
    "byte fallback": {"byte_fallback": True, "character_coverage": 0.98},
    "bpe with user-defined pieces": {"model_type": "bpe", "user_defined_symbols": ["<sep>", "Mann", "..", "."]},
    "identity": {"normalization_rule_name": "identity", "remove_extra_whitespaces": False},
    "lower case without a prefix": {"normalization_rule_name": "nmt_nfkc_cf", "add_dummy_prefix": False},
    "space behind words": {"treat_whitespace_as_suffix": True},
    "characters": {"model_type": "char", "vocab_size": 200},
    "words": {"model_type": "word"},
}


@pytest.fixture(scope="module", params=THEIRS)
def theirs(request, training, tmp_path_factory):
    """Returns (a .model file, the same model in Python) of a model that Python trained."""
    path = tmp_path_factory.mktemp("theirs") / "theirs.model"
    path.write_bytes(trained_by_python(training[:4000], **THEIRS[request.param]))
    return path, python_model(path.read_bytes())


def random_unicode(count, seed):
    """Returns texts of letters, spaces, composed and decomposed characters, full-width forms, controls and any code
    points."""
    numbers = random.Random(seed)
    parts = [*"abcdeABC .,!?'\"-", "  ", "\t", "Mann", "<s>", "</s>", "<unk>", "<sep>", "▁", "é", "e\u0301", "ﬁ", "Ａ", "\u00a0"]
    parts += ["\u200b", "\u3000", "日本", "😀", "\U0001f468\u200d\U0001f469", "ß", "İ", "½", "\x01", "\u2581", "\ufeff", "한글", "क़"]

    def one():
        if numbers.random() < 0.75:
            return numbers.choice(parts)
        point = numbers.randrange(1, 0x30000)
        return chr(point) if not 0xD800 <= point < 0xE000 else "x"

    return ["".join(one() for _ in range(numbers.randrange(40))) for _ in range(count)]


def texts_to_compare(data):
    return lines_of(data, "test_2016_flickr.de.gz") + lines_of(data, "val.en.gz")[:300] + random_unicode(1500, 5)


def check_equal(tool, path, model, texts):
    all_ids = [model.encode(text) for text in texts]
    assert first_difference(texts, encode(tool, path, texts), all_ids) is None
    with_spans = []
    for text in texts:
        pieces = model.encode(text, return_type="proto").pieces
        spans = [(piece.id, piece.begin, piece.end) for piece in pieces]
        # Bytes of a character share its span with us; the library gives it to the last one.
        for i in reversed(range(len(spans) - 1)):
            (id, begin, end), after = spans[i], spans[i + 1]
            if model.is_byte(id) and begin == end == after[1] and pieces[i].surface == "":
                spans[i] = (id, begin, after[2])
        with_spans.append(spans)
    assert first_difference(texts, encode_with_spans(tool, path, texts), with_spans) is None
    decoded = [text.decode() for text in decode(tool, path, all_ids)]
    assert first_difference(texts, decoded, [model.decode(ids) for ids in all_ids]) is None


def test_a_model_trained_here_is_the_same_in_python(tool, data, ours):
    path, model, _ = ours
    assert (model.pad_id(), model.unk_id(), model.bos_id(), model.eos_id()) == (0, 1, 2, 3)
    assert model.get_piece_size() == 2000
    check_equal(tool, path, model, texts_to_compare(data))


def test_training_has_the_pieces_of_python(training, ours):
    """Versions of the library differ in rare pieces (76 of 2000 in one case): nearly all are the same."""
    _, model, model_type = ours
    settings = {"model_type": model_type, "vocab_size": 2000, "pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
    theirs = python_model(trained_by_python(training, **settings))
    ours, theirs = ({one.id_to_piece(i) for i in range(2000)} for one in (model, theirs))
    assert len(ours & theirs) > 1900


def test_a_model_file_is_read(tool, data, theirs):
    path, model = theirs
    check_equal(tool, path, model, texts_to_compare(data))


def test_training_is_the_same_in_another_process(tool, training, tmp_path):
    settings = ("tokenizer=sentencepiece", "vocabulary-size=500")
    for name in ("a", "b"):
        run_tool(tool, "train", tmp_path / name, *settings, frames=["\n".join(training[:2000]).encode()])
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


# The program links libtorch, which has a copy of protocol buffers of its own: either may come first in the process.
PRELOADED = ["libtorch_cpu.so libsentencepiece.so.0", "libsentencepiece.so.0 libtorch_cpu.so"]


@pytest.mark.parametrize("libraries", PRELOADED)
def test_libtorch_and_sentencepiece_live_in_one_process(tool, training, tmp_path, monkeypatch, libraries):
    folder = f"{next(iter(pytest.importorskip('torch').__path__))}/lib/"
    monkeypatch.setenv("LD_PRELOAD", libraries.replace("libtorch", folder + "libtorch"))
    monkeypatch.setenv("LD_LIBRARY_PATH", folder)
    text = "\n".join(training[:500]).encode()
    run_tool(tool, "train", tmp_path / "a", "tokenizer=sentencepiece", "vocabulary-size=200", frames=[text])
    found = encode(tool, tmp_path / "a.json", training[:50])
    model = python_model(base64.b64decode(json.loads((tmp_path / "a.json").read_text())["model"]))
    assert found == [model.encode(line) for line in training[:50]]


def test_the_program_trains_and_writes_a_model(run, refused, training, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("\n".join(training[:500]))
    flags = ("--tokenizer", "sentencepiece", "--vocabulary-size", 200, "--layers", 1, "--heads", 2, "--width", 16)
    run("train", "--text", text, *flags, "--steps", 2, "--context", 16, "--batch-size", 2, "--out", tmp_path / "run")
    model = tmp_path / "pieces.model"
    run("tokenize", "--tokenizer", tmp_path / "run/checkpoints/best", "--write-model", model)
    line = "Ein Mann in einem blauen Hemd."
    [found] = run("tokenize", "--tokenizer", model, "--json", text_in=line).stdout.splitlines()
    assert json.loads(found)["ids"] == python_model(model.read_bytes()).encode(line)
    assert "no SentencePiece model" in refused(1, "tokenize", "--tokenizer", "bytes", "--write-model", tmp_path / "x.model")
    model.write_bytes(model.read_bytes()[:-100000])
    assert "pieces.model" in refused(1, "tokenize", "--tokenizer", model)

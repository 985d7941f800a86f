"""Tests SentencePiece's Unigram against Hugging Face tokenizers: ids, spans, decoded text, and what is refused.

Drives headshare/text/tokenize_tool of the build under test (tokenize_tool.py).
"""

import base64
import gzip
import itertools
import json
import random
import struct
import subprocess
import unicodedata

import pytest
from tokenize_tool import decode, encode, encode_with_spans, first_difference, run_tool

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

ALBERT_SPECIAL = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]


# ------------------------------------------------------------------------------------------- tokenizers to compare


def charsmap(changes):
    """Makes a precompiled map of SentencePiece: a double-array trie in Darts' layout, and the texts its values point
    to."""
    texts, values = b"", {}
    for key, text in sorted(changes.items()):
        values[key.encode()] = len(texts)
        texts += text.encode() + b"\0"
    units, taken = [0], {0}

    def place(at, keys, depth):
        byte_of = sorted({0 if len(key) == depth else key[depth] for key in keys})
        offset = next(o for o in itertools.count(1) if all(at ^ o ^ byte not in taken for byte in byte_of))
        units.extend([0] * (max(at ^ offset ^ byte for byte in byte_of) + 1 - len(units)))
        taken.update(at ^ offset ^ byte for byte in byte_of)
        units[at] |= offset << 10
        for byte in byte_of:
            child = at ^ offset ^ byte
            if byte == 0:
                units[at] |= 1 << 8
                units[child] = values[next(key for key in keys if len(key) == depth)] | 1 << 31
            else:
                units[child] = byte
                place(child, [key for key in keys if len(key) > depth and key[depth] == byte], depth + 1)

    place(0, list(values), 0)
    units.extend([0] * 256)  # every step of a search stays inside
    trie = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(trie)) + trie + texts


MAP = {"\n": " ", "\r": "", "\t": " ", "\uff21": "A", "\u2460": "1", "\ufb03": "ffi", "e\u0301": "\u00e9", "q\u0301": "Q", "x": "yz", "\u3000": " "}
MAP |= {"\u00a0": " ", "\u200b": "", "\U0001f600": ":)", "\u0915\u093c": "\u0958", "ab": "never: the key a\u0301 is no prefix"}


def albert_normalizer(*more):
    steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents()]
    return normalizers.Sequence([*steps, normalizers.Lowercase(), *more])


def white_and_metaspace(scheme="always"):
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme=scheme)])


CASES = {
    # Each case has a normalizer, a pre-tokenizer, and whether bytes are the fallback.
    "albert": (albert_normalizer(), white_and_metaspace(), False),
    "albert of an older program": (
        albert_normalizer(normalizers.Precompiled(charsmap(MAP)), normalizers.Replace(Regex(" {2,}"), " ")),
        white_and_metaspace(),
        False,
    ),
    "cased": (normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]), white_and_metaspace(), False),
    "xlm-roberta": (normalizers.Precompiled(charsmap(MAP)), white_and_metaspace(), False),
    "spaces alone": (
        normalizers.Sequence([normalizers.Precompiled(charsmap(MAP)), normalizers.Replace(Regex(" {2,}"), "\u2581")]),
        pre_tokenizers.Metaspace(),
        False,
    ),
    "no prefix": (normalizers.NFKD(), pre_tokenizers.Metaspace(prepend_scheme="never"), False),
    "replaced spaces": (normalizers.Replace("a b", "b\u0301 a"), pre_tokenizers.Metaspace(), False),
    "bytes": (albert_normalizer(), white_and_metaspace(), True),
    "nothing": (None, white_and_metaspace("never"), True),
}


def tokenizer_of(vocabulary, case, special=ALBERT_SPECIAL):
    normalizer, pre_tokenizer, byte_fallback = CASES[case]
    pieces = [(token, 0.0) for token in special] + vocabulary
    if byte_fallback:
        pieces += [(f"<0x{byte:02X}>", -9.0) for byte in range(256)]
    made = Tokenizer(models.Unigram(pieces, unk_id=special.index("<unk>"), byte_fallback=byte_fallback))
    if normalizer is not None:
        made.normalizer = normalizer
    made.pre_tokenizer = pre_tokenizer
    made.decoder = decoders.Metaspace(prepend_scheme="never" if case in ("no prefix", "nothing") else "always")
    return made


@pytest.fixture(scope="module")
def shakespeare(data):
    return gzip.decompress((data / "tinyshakespeare" / "input.txt.gz").read_bytes()).decode()


@pytest.fixture(scope="module")
def texts(data, shakespeare):
    """Returns texts in English and in many languages."""
    many = json.loads(gzip.decompress((data / "tokenizers" / "multilingual_inputs.json.gz").read_bytes()))
    return [entry["text"] for entry in many] + shakespeare[:60000].split("\n\n") + ["", " ", "\u2581", "a\u2581\u2581b \u2581"]


@pytest.fixture(scope="module")
def vocabulary(texts):
    """Returns pieces with their scores, as training finds them in these texts."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = white_and_metaspace()
    made.train_from_iterator(texts, trainers.UnigramTrainer(vocab_size=1500, show_progress=False, unk_token="<unk>"))
    pieces = [(piece, score) for piece, score in json.loads(made.to_str())["model"]["vocab"] if piece != "<unk>"]
    return pieces + [(piece, -8.5) for piece in ("\u2581", "e\u0301", "\u00e9", "ffi", ":)") if piece not in dict(pieces)]


def byte_spans(text, encoding):
    """Returns (id, begin, end) with Hugging Face's character offsets as offsets into the UTF-8."""
    starts = list(itertools.accumulate((len(character.encode()) for character in text), initial=0))
    return [(number, starts[begin], starts[end]) for number, (begin, end) in zip(encoding.ids, encoding.offsets)]


def assert_same(tool, path, texts, theirs, spans=True):
    encodings = theirs.encode_batch(texts, add_special_tokens=False)
    ids = [encoding.ids for encoding in encodings]
    assert first_difference(texts, encode(tool, path, texts), ids) is None
    ours = encode_with_spans(tool, path, texts)
    assert first_difference(texts, [[number for number, _, _ in text] for text in ours], ids) is None
    if spans:
        assert first_difference(texts, ours, [byte_spans(text, one) for text, one in zip(texts, encodings)]) is None
    for text, tokens in zip(texts, ours):
        raw = text.encode()
        for _, begin, end in tokens:
            assert 0 <= begin <= end <= len(raw)
            raw[begin:end].decode()  # whole characters


def save(tokenizer, path):
    tokenizer.save(str(path))
    return path


# ------------------------------------------------------------------------------------------------------- the tests


@pytest.mark.parametrize("case", CASES)
def test_text(tool, tmp_path, vocabulary, texts, case):
    theirs = tokenizer_of(vocabulary, case)
    path = save(theirs, tmp_path / "tokenizer.json")
    assert_same(tool, path, texts, theirs, spans=False)
    ids = encode(tool, path, texts)
    if not CASES[case][2]:
        decoded = [text.decode() for text in decode(tool, path, ids)]
        assert first_difference(texts, decoded, [theirs.decode(one, skip_special_tokens=False) for one in ids]) is None


@pytest.mark.parametrize("case", ["albert", "cased", "xlm-roberta", "spaces alone"])
def test_spans(tool, tmp_path, vocabulary, texts, case):
    theirs = tokenizer_of(vocabulary, case)
    assert_same(tool, save(theirs, tmp_path / "tokenizer.json"), texts, theirs)


def random_text(numbers, characters):
    return "".join(numbers.choice(characters) for _ in range(numbers.randrange(40)))


@pytest.mark.parametrize("case", CASES)
def test_random_unicode(tool, tmp_path, vocabulary, case):
    """Encodes any code points, and ones chosen to meet: marks, spaces, what the map knows, pieces of the vocabulary."""
    numbers = random.Random(7)
    anything = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    chosen = list("abeqx  \n\t\r`'\"\u2581\u0301\u0323\u0345\u00e9\u1e69\u0130\u0131\ufb03\uff21\u2460\u3000\u00a0\u200b\u200d\U0001f600")
    chosen += ["\u1100", "\u1161", "\u11a8", "\uac01", "\u0915", "\u093c", "\u094d", "\u0e33", "\ufdfa", "\u2011", "e\u0301", "``", "ab", "  "]
    # Letters that have got a lower case since the version of utf8proc here.
    young = {c for c in anything if unicodedata.category(c) == "Cn" and normalizers.Lowercase().normalize_str(c) != c}
    anything = [c for c in anything if c not in young]
    pieces = [piece for piece, _ in vocabulary]
    texts = [random_text(numbers, anything) for _ in range(1500)] + [random_text(numbers, chosen) for _ in range(4000)]
    texts += [random_text(numbers, chosen + pieces[:200]) for _ in range(1500)]
    theirs = tokenizer_of(vocabulary, case)
    assert_same(tool, save(theirs, tmp_path / "tokenizer.json"), texts, theirs, spans=False)


def test_every_code_point(tool, tmp_path):
    """Encodes decompositions, marks, lower case and white space of all of Unicode: a token for each character that
    comes out of a normalisation which changed something."""
    normalizer = albert_normalizer()
    lower = normalizers.Lowercase()
    points = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    points = [c for c in points if unicodedata.category(c) != "Cn" or lower.normalize_str(c) == c]
    found = {letter for c in points for letter in normalizer.normalize_str(c) if normalizer.normalize_str(c) != c}
    vocabulary = [(letter, -5.0 - 0.001 * i) for i, letter in enumerate(sorted(found | set("ab\u2581")))]
    theirs = tokenizer_of(vocabulary, "albert")
    lines = [" ".join(f"a{c}b" for c in points[i : i + 100]) for i in range(0, len(points), 100)]
    assert_same(tool, save(theirs, tmp_path / "tokenizer.json"), lines, theirs, spans=False)


def test_equal_sums_and_unknown_pieces(tool, tmp_path):
    """Encodes ties, scores above 0, overlapping pieces, runs of unknown characters: random vocabularies over few
    letters."""
    numbers = random.Random(3)
    for trial in range(60):
        letters = "ab\u00e4"
        pieces = {"".join(numbers.choice(letters) for _ in range(numbers.randint(1, 5))) for _ in range(12)}
        pieces |= {"\u2581" + piece for piece in pieces if numbers.random() < 0.4}
        scores = [-1.0, -2.0, -3.5, numbers.uniform(-9, 2)]
        vocabulary = [(piece, numbers.choice(scores)) for piece in sorted(pieces)]
        theirs = tokenizer_of(vocabulary, numbers.choice(["cased", "nothing", "spaces alone"]))
        texts = ["".join(numbers.choice(letters + " c") for _ in range(numbers.randrange(30))) for _ in range(60)]
        assert_same(tool, save(theirs, tmp_path / f"{trial}.json"), texts, theirs, spans=False)


def with_added_tokens(theirs):
    """Adds tokens as transformers saves ALBERT's: special tokens, and pieces that its users had defined."""
    theirs.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in ALBERT_SPECIAL[:-1]])
    theirs.add_special_tokens([AddedToken("[MASK]", special=True, lstrip=True, normalized=False)])
    theirs.add_tokens([AddedToken(token, special=False, normalized=False) for token in ("-", "\u20ac", "--", "new")])
    ids = [(token, theirs.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    theirs.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=ids
    )
    return theirs


def test_added_tokens(tool, tmp_path, vocabulary):
    theirs = with_added_tokens(tokenizer_of(vocabulary, "albert"))
    path = save(theirs, tmp_path / "tokenizer.json")
    texts = ["a-b", "the--king---", "-", "renewed news", "5\u20ac\u20ac", " - a", "\u00e4-\u00e4 new"]
    assert_same(tool, path, texts, theirs)
    masked = ["the [MASK] king", "[MASK][MASK]", "a  [MASK]-[SEP]b"]
    ids = [one.ids for one in theirs.encode_batch(masked, add_special_tokens=False)]
    assert first_difference(masked, encode(tool, path, masked, verb="special"), ids) is None


@pytest.mark.parametrize("case", ["albert", "cased", "xlm-roberta"])
def test_what_we_export_is_the_same_tokenizer(tool, tmp_path, vocabulary, texts, case):
    theirs = with_added_tokens(tokenizer_of(vocabulary, case))
    path = save(theirs, tmp_path / "tokenizer.json")
    again = Tokenizer.from_str(run_tool(tool, "export", path).decode())
    for text, one, other in zip(texts, theirs.encode_batch(texts), again.encode_batch(texts)):
        assert one.ids == other.ids and one.offsets == other.offsets, text
        assert theirs.decode(one.ids) == again.decode(other.ids)


def test_bytes_come_back(tool, tmp_path, vocabulary):
    path = save(tokenizer_of(vocabulary, "nothing"), tmp_path / "tokenizer.json")
    texts = ["\u4e2d\u6587\U0001f600", "x\u0001y"]
    assert [text.decode() for text in decode(tool, path, encode(tool, path, texts))] == texts
    [ids] = encode(tool, path, ["\u2603"])
    first = len(ALBERT_SPECIAL) + len(vocabulary)
    assert ids[-3:] == [first + byte for byte in "\u2603".encode()]
    assert decode(tool, path, [ids[-3:-1]]) == ["\ufffd\ufffd".encode()]


def test_a_word_of_ten_megabytes(tool, tmp_path, vocabulary):
    """Encodes a word of ten megabytes, and nearly such words, so that time shows if it grows with more than the
    length."""
    path = save(tokenizer_of(vocabulary, "albert"), tmp_path / "tokenizer.json")
    word = "the\u00e9" * 2_000_000
    seconds = {}
    for part in (word[: len(word) // 8], word):
        done = json.loads(run_tool(tool, "time", path, 1, frames=[part.encode()]))
        seconds[len(part)] = done["seconds"][0]
        assert done["tokens"] > len(part) // 8
    short, whole = seconds.values()
    assert whole < 16 * short + 1


def changed(tokenizer, change):
    object = json.loads(tokenizer.to_str())
    change(object)
    return object


def refusal(tool, path):
    done = subprocess.run([tool, "encode", str(path)], input=b"", capture_output=True, timeout=60)
    assert done.returncode == 1
    return done.stderr.decode()


def nest(object):
    object["normalizer"] = {"type": "Sequence", "normalizers": [object["normalizer"]]}


REFUSED = {
    "NFC": lambda o: o.update(normalizer={"type": "NFC"}),
    "a sequence within one": nest,
    "the pattern": lambda o: o.update(normalizer={"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""}),
    "replaces an empty text": lambda o: o.update(normalizer={"type": "Replace", "pattern": {"String": ""}, "content": "a"}),
    "17 steps": lambda o: o.update(normalizer={"type": "Sequence", "normalizers": [{"type": "NFKD"}] * 17}),
    "no Base64": lambda o: o.update(normalizer={"type": "Precompiled", "precompiled_charsmap": "a?=="}),
    "does not fit": lambda o: o.update(normalizer={"type": "Precompiled", "precompiled_charsmap": base64.b64encode(b"\xff\0\0\0").decode()}),
    "a sequence other than": lambda o: o["pre_tokenizer"]["pretokenizers"].pop(),
    "prepend_scheme": lambda o: o["pre_tokenizer"]["pretokenizers"][1].update(prepend_scheme="first"),
    "split": lambda o: o["pre_tokenizer"]["pretokenizers"][1].update(split=False),
    "replacement": lambda o: o["pre_tokenizer"]["pretokenizers"][1].update(replacement="_"),
    "decoder": lambda o: o.update(decoder={"type": "ByteFallback"}),
    "unk_id": lambda o: o["model"].update(unk_id=None),
    "has two ids": lambda o: o["model"]["vocab"].__setitem__(22, o["model"]["vocab"][21]),
    "and its score": lambda o: o["model"]["vocab"].append(["x"]),
    "a template other than": lambda o: o["post_processor"]["single"].pop(),
    "have no tokens": lambda o: o["added_tokens"][-1].update(id=99999),
    "among the added tokens": lambda o: o["added_tokens"][0].update(content="<pad2>"),
}


@pytest.mark.parametrize("says", REFUSED)
def test_what_cannot_be_reproduced_is_refused_by_name(tool, tmp_path, vocabulary, says):
    theirs = with_added_tokens(tokenizer_of(vocabulary, "albert"))
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(changed(theirs, REFUSED[says])))
    message = refusal(tool, path)
    assert says in message and str(path) in message


def test_a_sentencepiece_model_alone_is_answered_with_the_way_out(tool, tmp_path):
    (tmp_path / "spiece.model").write_bytes(b"\n\x0e")
    message = refusal(tool, tmp_path)
    assert "spiece.model, which alone does not say how its model numbers tokens" in message and "save_pretrained" in message

"""Tests WordPiece against Hugging Face tokenizers: ids, spans, decoded text, trained vocabularies.

Drives headshare/text/tokenize_tool of the build under test (tokenize_tool.py). Equal spans make these
tests strict where words are unknown: every word's first and last character is compared.
"""

import csv
import gzip
import itertools
import json
import random
import unicodedata

import pytest
from tokenize_tool import as_bytes, decode, encode, encode_with_spans, first_difference, run_tool

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CASES = {
    "uncased": dict(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True),
    "cased": dict(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=False),
    "lower case with accents": dict(clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=True),
    "nothing": dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False),
    "accents only": dict(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False),
}


def reference(vocabulary, normalization):
    """Returns Hugging Face's tokenizer over a list of tokens; it finds no special tokens in text."""
    ids = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(**normalization)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def with_special_tokens(tokenizer):
    """Returns a copy with what a published tokenizer.json has besides."""
    tokenizer = Tokenizer.from_str(tokenizer.to_str())
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, special=True) for token in SPECIAL])
    ids = [(token, tokenizer.token_to_id(token)) for token in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
    )
    return tokenizer


@pytest.fixture(scope="module")
def bert_vocabulary(data):
    packed = (data / "tokenizers" / "bert-base-uncased" / "vocab.txt.gz").read_bytes()
    return gzip.decompress(packed).decode().splitlines()


def byte_spans(text, encoding):
    """Returns (id, begin, end) with Hugging Face's character offsets as offsets into the UTF-8."""
    if text.isascii():
        return [(number, *offsets) for number, offsets in zip(encoding.ids, encoding.offsets)]
    starts = list(itertools.accumulate((len(character.encode()) for character in text), initial=0))
    return [(number, starts[begin], starts[end]) for number, (begin, end) in zip(encoding.ids, encoding.offsets)]


def assert_same(tool, path, texts, theirs):
    """Expects our ids and spans, and the ids of encode, which remembers words, to equal those of Hugging Face."""
    expected = [byte_spans(text, encoding) for text, encoding in zip(texts, theirs.encode_batch(texts))]
    assert first_difference(texts, encode_with_spans(tool, path, texts), expected) is None
    ids = [[number for number, _, _ in text] for text in expected]
    assert first_difference(texts, encode(tool, path, texts), ids) is None


def save(tokenizer, path):
    tokenizer.save(str(path))
    return path


# ------------------------------------------------------------------------------------- published expectations


def packed_json(path):
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.fixture(scope="module")
def vocabulary_file(bert_vocabulary, tmp_path_factory):
    path = tmp_path_factory.mktemp("bert") / "vocab.txt"
    path.write_text("".join(token + "\n" for token in bert_vocabulary))
    return path


def test_expected_tokens_of_squad_questions(tool, data, bert_vocabulary, vocabulary_file):
    folder = data / "tokenizers" / "bert-base-uncased"
    entries = packed_json(folder / "question_tokens.json.gz")
    expected = packed_json(folder / "tokenized_questions.json.gz")
    texts = [entry["original"] for entry in entries]
    ours = encode(tool, vocabulary_file, texts)
    assert first_difference(texts, ours, expected) is None
    names = [[bert_vocabulary[number] for number in ids] for ids in ours]
    assert first_difference(texts, names, [entry["wordpiece"] for entry in entries]) is None


def test_expected_ids_and_text_of_many_languages(tool, data, vocabulary_file):
    folder = data / "tokenizers"
    texts = [entry["text"] for entry in packed_json(folder / "multilingual_inputs.json.gz")]
    entries = packed_json(folder / "bert-base-uncased" / "bge_small_multilingual.json.gz")["entries"]
    ours = encode(tool, vocabulary_file, texts)
    assert first_difference(texts, ours, [entry["input_ids"][1:-1] for entry in entries]) is None
    whole = [entry["input_ids"] for entry in entries]
    decoded = [text.decode() for text in decode(tool, vocabulary_file, whole)]
    assert first_difference(texts, decoded, [entry["decoded_with_special"] for entry in entries]) is None


# ----------------------------------------------------------------------------- vocab.txt with a tokenizer_config


def config_cases():
    """Yields every combination of the keys that transformers reads, absent or with each of its values; every class of
    BERT's."""
    choices = {
        "do_lower_case": ("absent", True, False),
        "strip_accents": ("absent", None, True, False),
        "tokenize_chinese_chars": ("absent", True, False),
    }
    for values in itertools.product(*choices.values()):
        yield {key: value for key, value in zip(choices, values) if value != "absent"}
    for name in ("Bert", "DistilBert", "Electra", "MobileBert"):
        yield {"tokenizer_class": f"{name}Tokenizer", "do_lower_case": False, "strip_accents": True}
        yield {"tokenizer_class": f"{name}TokenizerFast", "do_lower_case": False, "strip_accents": True}


@pytest.mark.parametrize("cased", [False, True])
def test_a_config_beside_a_vocabulary_means_what_transformers_makes_of_it(tool, tmp_path, cased):
    transformers = pytest.importorskip("transformers")
    words = "the cafe caf\u00e9 cafe\u0301 \u65e5 \u672c \u65e5\u672c ##\u65e5 ##\u672c x ##x".split()
    words += [word.title() for word in words if cased and word.title() not in words]
    texts = ["The Caf\u00e9 cafe Cafe\u0301", "THE caf\u00e9", "\u65e5\u672cx \u672c\u65e5", "x\u65e5 X"]
    (tmp_path / "vocab.txt").write_text("".join(word + "\n" for word in SPECIAL + words))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    seen = set()
    for config in config_cases():
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        expected = [theirs(text, add_special_tokens=False)["input_ids"] for text in texts]
        assert encode(tool, tmp_path, texts) == expected, config
        seen.add(str(expected))
    assert len(seen) >= 8, "the texts do not tell the configurations apart"


# ------------------------------------------------------------------------------------------------- real text


def glue_texts(data):
    """Returns every cell that is not a number, of every table."""
    for path in sorted((data / "glue").glob("*/*.tsv.gz")):
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield from (cell for cell in row if not cell.isdigit())


def squad_texts(data):
    for path in sorted((data / "squad").glob("*.json.gz")):
        for article in packed_json(path)["data"]:
            yield article.get("title", "")
            for paragraph in article["paragraphs"]:
                yield paragraph["context"]
                for question in paragraph["qas"]:
                    yield question["question"]
                    yield from (answer["text"] for answer in question.get("answers", []))


@pytest.mark.parametrize("case", ["uncased", "cased"])
@pytest.mark.parametrize("source", [glue_texts, squad_texts])
def test_all_of_glue_and_squad(tool, data, bert_vocabulary, tmp_path, source, case):
    texts = list(dict.fromkeys(source(data)))
    assert len(texts) > 100_000
    vocabulary = bert_vocabulary
    if case == "cased":  # the published vocabulary has no capitals: words in other cases, so that they are spelt
        vocabulary = list(dict.fromkeys(bert_vocabulary + [token.title() for token in bert_vocabulary[1000:]]))
    theirs = reference(vocabulary, CASES[case])
    path = save(theirs, tmp_path / "tokenizer.json")
    for at in range(0, len(texts), 50_000):
        assert_same(tool, path, texts[at : at + 50_000], theirs)


# -------------------------------------------------------------------------------------------- random Unicode


def code_points():
    """Returns all characters that Python's Unicode version (14 in CPython 3.11) knows: letters that came later have a
    lower case in Hugging Face's tables and none in an utf8proc that does not know them."""
    return [point for point in range(1, 0x110000) if unicodedata.category(chr(point)) not in ("Cn", "Cs")]


def spelling_vocabulary():
    """Returns most letters, marks and signs as tokens, so that what normalization gives is seen in the ids."""
    kept = [chr(point) for point in code_points() if point < 0x3000 or 0xA640 <= point < 0xAC00]
    kept = [one for one in kept if unicodedata.category(one)[0] not in "CZ"]
    return SPECIAL + kept + ["##" + one for one in kept]


@pytest.mark.parametrize("case", CASES)
def test_every_code_point(tool, tmp_path, case):
    theirs = reference(spelling_vocabulary(), CASES[case])
    path = save(theirs, tmp_path / "tokenizer.json")
    words = ["a{0}b {0} {0}c d{0}".format(chr(point)) for point in code_points()]
    assert_same(tool, path, ["\n".join(words[at : at + 100]) for at in range(0, len(words), 100)], theirs)


def random_texts(count, seed):
    """Returns white space, signs, contractions, texts that normalization changes, code points of every plane, and
    combining marks in any order."""
    generator = random.Random(seed)
    points = code_points()
    marks = [point for point in points if unicodedata.combining(chr(point))]
    parts = [" ", "\t", "\r\n", "\u00a0", "\u2028", "\u0085", "\0", "\ufffd", "\u200b", "\u00ad", "'s", "don't", "..."]
    parts += ["The", "playing", "Éé", "İ", "ǅ", "ß", "日本", "한", "ﬁ", "à\u0301", "x" * 101, "##ing", "[MASK]", "[", "]"]
    draws = (
        lambda: generator.choice(parts),
        lambda: chr(generator.randrange(0x20, 0x7F)),
        lambda: chr(generator.choice(points[:0x3000])),
        lambda: chr(generator.choice(points)),
        lambda: chr(generator.choice(marks)),
    )
    return ["".join(generator.choice(draws)() for _ in range(generator.randrange(60))) for _ in range(count)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_random_unicode(tool, tmp_path, bert_vocabulary, case, seed):
    vocabulary = spelling_vocabulary() if seed % 2 else bert_vocabulary
    theirs = reference(vocabulary, CASES[case])
    path = save(theirs, tmp_path / "tokenizer.json")
    texts = random_texts(5000, seed)
    assert_same(tool, path, texts, theirs)
    ids = [encoding.ids for encoding in theirs.encode_batch(texts)]
    decoded = [text.encode() for text in theirs.decode_batch(ids, skip_special_tokens=False)]
    assert first_difference(texts, decode(tool, path, ids), decoded) is None


def test_special_tokens_in_text_on_request(tool, tmp_path, bert_vocabulary):
    theirs = with_special_tokens(reference(bert_vocabulary, CASES["uncased"]))
    path = save(theirs, tmp_path / "tokenizer.json")
    generator = random.Random(7)
    draw = SPECIAL + ["[mask]", "[", "]", " ", "The", "cat", ",", "##s", "[MAS", "É"]
    texts = ["".join(generator.choice(draw) for _ in range(generator.randrange(20))) for _ in range(5000)]
    expected = [encoding.ids for encoding in theirs.encode_batch(texts, add_special_tokens=False)]
    assert first_difference(texts, encode(tool, path, texts, verb="special"), expected) is None
    plain = reference(bert_vocabulary, CASES["uncased"])
    assert first_difference(texts, encode(tool, path, texts), [one.ids for one in plain.encode_batch(texts)]) is None


# --------------------------------------------------------------------------------------------------- training


def train_tool(tool, out, texts, **options):
    settings = [f"{name.replace('_', '-')}={value}" for name, value in dict(tokenizer="wordpiece", **options).items()]
    run_tool(tool, "train", out, *settings, frames=as_bytes(texts))
    return json.loads(out.with_suffix(".hf.json").read_text())


def training_texts(request, corpus):
    if corpus == "wikitext":
        packed = request.getfixturevalue("data") / "wikitext-2" / "valid.txt.gz"
        return gzip.decompress(packed.read_bytes()).decode().splitlines()
    generator = random.Random(4)
    if corpus == "random":  # of so few characters that all are kept
        points = code_points()[:700]
        return ["".join(chr(generator.choice(points)) for _ in range(60)) for _ in range(3000)]
    return [" ".join(generator.choice("abc") * generator.randrange(1, 9) for _ in range(40)) for _ in range(200)]


@pytest.mark.parametrize(
    "corpus, vocabulary_size, min_count, cased",
    [
        ("wikitext", 8192, 2, False),
        ("wikitext", 20000, 1, True),
        ("random", 4000, 2, False),
        ("repetitive", 300, 1, False),
    ],
)
def test_training_gives_the_same_vocabulary(tool, tmp_path, request, corpus, vocabulary_size, min_count, cased):
    """Hugging Face numbers the ## characters as its hash table has them. Given our characters and ##
    characters as special tokens, which come first, it has our ids, and its merges must be ours."""
    texts = training_texts(request, corpus)
    options = dict(vocabulary_size=vocabulary_size, min_count=min_count, cased=str(cased).lower())
    ours = train_tool(tool, tmp_path / "trained", texts, **options)
    tokens = sorted(ours["model"]["vocab"], key=ours["model"]["vocab"].get)
    assert tokens[:5] == SPECIAL
    alphabet = list(itertools.takewhile(lambda token: len(token.removeprefix("##")) == 1, tokens[5:]))

    theirs = reference([], CASES["cased" if cased else "uncased"])
    theirs.model = models.WordPiece(unk_token="[UNK]")
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size, min_frequency=min_count, show_progress=False, special_tokens=SPECIAL + alphabet
    )
    theirs.train_from_iterator(texts, trainer)
    expected = theirs.get_vocab()
    assert tokens == sorted(expected, key=expected.get)

    # The exported tokenizer is the one that was trained.
    exported = Tokenizer.from_file(str(tmp_path / "trained.hf.json"))
    sample = texts[:500]
    ids = [encoding.ids for encoding in exported.encode_batch(sample, add_special_tokens=False)]
    assert first_difference(sample, encode(tool, tmp_path / "trained.json", sample, verb="special"), ids) is None


def test_training_keeps_the_thousand_most_frequent_characters(tool, tmp_path):
    """Compares where no tie decides: the characters that Hugging Face keeps with limit_alphabet=1000."""
    points = [point for point in code_points() if 0x3400 <= point < 0x9FFF][:1100]
    texts = [chr(point) for number, point in enumerate(points) for _ in range(number + 1)]
    ours = train_tool(tool, tmp_path / "trained", texts, vocabulary_size=2000)
    theirs = reference([], CASES["uncased"])
    theirs.model = models.WordPiece(unk_token="[UNK]")
    trainer = trainers.WordPieceTrainer(
        vocab_size=2000, limit_alphabet=1000, show_progress=False, special_tokens=SPECIAL
    )
    theirs.train_from_iterator(texts, trainer)
    assert ours["model"]["vocab"] == theirs.get_vocab()

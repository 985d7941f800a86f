"""Tests hashed words against Python: re and str.lower, hmac, numpy's RandomState, and LSH written anew with numpy."""

import collections
import gzip
import hmac
import itertools
import json
import random
import re

import pytest

numpy = pytest.importorskip("numpy")

BUCKETS = 50260


def cut(text):
    return re.findall(r"\w+|[^\w\s]+", text.lower())


def digest(text):
    return hmac.new(b"en", text.encode(), "md5").digest()


def random_texts(count, seed):
    """Returns single lines of words, signs and any characters that Unicode 14 has (utf8proc's tables may end there)."""
    rng = random.Random(seed)
    pieces = ["the", "Dogs", " ", "\t", "İstanbul", "ΟΔΟΣ", "ΑΣ'Α", "ß", "ẞ", "Ǆ", "naïve", "--", "_x", "١٢", "日本", "'s", "²", "😀"]
    ranges = [(0x20, 0x7F), (0xA0, 0x250), (0x370, 0x530), (0x5D0, 0x5EB), (0x1E00, 0x2000), (0x2010, 0x2070), (0x4E00, 0x4F00)]
    for _ in range(count):
        text = ""
        for _ in range(rng.randrange(40)):
            text += rng.choice(pieces) if rng.random() < 0.6 else chr(rng.randrange(*rng.choice(ranges)))
        yield re.sub(r"[\n\r\u2028\u2029\x85]", " ", text)


@pytest.fixture
def tokenize(run, tmp_path):
    def call(texts, *arguments):
        path = tmp_path / "lines.txt"
        path.write_bytes("".join(text + "\n" for text in texts).encode())
        return [json.loads(line) for line in run("tokenize", *arguments, "--json", path).stdout.splitlines()]

    return call


def test_words_and_digests(tokenize):
    texts = ["It's 3.5% -- Café_x!?", "", *random_texts(1500, 1)]
    answers = tokenize(texts, "--tokenizer", "hash-md")
    assert len(answers) == len(texts)
    for text, answer in zip(texts, answers):
        assert answer["tokens"] == cut(text), text
        hashes = [digest(word) for word in answer["tokens"]]
        assert answer["signatures"] == [one.hex() for one in hashes]
        assert answer["ids"] == [int.from_bytes(one, "big") % BUCKETS + 5 for one in hashes]
        for one, chunks in zip(hashes, answer["chunks"]):
            bits = "".join(f"{byte:08b}" for byte in one)
            assert chunks == [int(bits[at : at + 10], 2) + 1 for at in range(0, 128, 10)]


def test_spans_are_where_the_words_come_from(tokenize):
    texts = list(random_texts(800, 2))
    for text, answer in zip(texts, tokenize(texts, "--tokenizer", "hash-md")):
        starts = list(itertools.accumulate((len(character.encode()) for character in text), initial=0))
        # Each character of text.lower() comes from this character of `text`.
        origin = [at for at, character in enumerate(text) for _ in character.lower()]
        expected = [
            [starts[origin[match.start()]], starts[origin[match.end() - 1] + 1]]
            for match in re.finditer(r"\w+|[^\w\s]+", text.lower())
        ]
        assert answer["spans"] == expected, text


def affix_features(word):
    parts = collections.Counter([word])
    for at in range(1, len(word)):
        parts.update([word[:at], word[at:]])
    for part, count in parts.items():
        value = digest(part)
        yield int.from_bytes(value[:4], "big"), int.from_bytes(value, "big") % BUCKETS, count / max(
            len(word) + 1 - len(part), 1
        )


def bpe_features(word, bpe):
    text = "-".join([word, *(f"{word[:at]}-{word[at:]}" for at in range(1, len(word)))])
    pieces = collections.Counter(bpe.encode(text).tokens)
    if len(pieces) > 1:
        pieces.pop("-", None)
    for piece, count in pieces.items():
        number = bpe.token_to_id(piece)
        yield number, number % BUCKETS, count / max(len(word) + 1 - len(piece), 1)


def signature(features):
    total = numpy.zeros(128)
    for seed, _, weight in features:
        total += weight * numpy.random.RandomState(seed).standard_normal(128)
    return f"{int(''.join('1' if value > 0 else '0' for value in total), 2):032x}"


def bucket(features, rotation):
    """Computes the bucket through numpy's Fourier transform, where the program adds directly."""
    weights = numpy.zeros(BUCKETS)
    for _, place, weight in features:
        weights[place] += weight
    scores = numpy.fft.irfft(numpy.fft.rfft(rotation) * numpy.conj(numpy.fft.rfft(weights)), BUCKETS)
    scores[BUCKETS // 2 :] *= -1
    return int(scores.argmax())


def check_lsh(answers, features_of):
    rotation = numpy.random.RandomState(42).standard_normal(BUCKETS)
    seen = set()
    for answer in answers:
        for word, number, hexadecimal in zip(answer["tokens"], answer["ids"], answer["signatures"]):
            if word in seen:
                continue
            seen.add(word)
            features = list(features_of(word))
            assert hexadecimal == signature(features), word
            assert number == bucket(features, rotation) + 5, word
    assert len(seen) > 100


WORDS = ["the dogs were running, a runner ran -- - !?", *random_texts(40, 3)]


def test_lsh_with_affixes(tokenize):
    check_lsh(tokenize(WORDS, "--tokenizer", "hash-lsh"), affix_features)


def test_lsh_with_bpe(tokenize, data, tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    for kept, name in (("encoder.json.gz", "vocab.json"), ("vocab.bpe.gz", "merges.txt")):
        (tmp_path / name).write_bytes(gzip.decompress((data / "tokenizers" / "gpt2" / kept).read_bytes()))
    bpe = tokenizers.ByteLevelBPETokenizer.from_file(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    answers = tokenize(WORDS, "--tokenizer", "hash-lsh", "--hash-merges", tmp_path)
    check_lsh(answers, lambda word: bpe_features(word, bpe))

"""Tests headshare tokenize: the tokens of each line, for hashes with bits and buckets; bad input."""

import gzip
import json

import pytest


def objects(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_hashes_of_words(run):
    done = run("tokenize", "--tokenizer", "hash-md", "--json", text_in="Hello the!\n\nHELLO\r\n")
    first, empty, last = objects(done)
    assert first["tokens"] == ["hello", "the", "!"]
    assert first["ids"] == [46797, 20664, 41048]
    assert first["spans"] == [[0, 5], [6, 9], [9, 10]]
    assert first["signatures"][0] == "1dec56025892c637efb2601c8e1a3ab4"
    assert first["chunks"][0] == [120, 710, 385, 601, 588, 100, 508, 947, 385, 457, 903, 571, 181]
    assert empty == {"tokens": [], "ids": [], "spans": [], "signatures": [], "chunks": []}
    assert last["ids"] == [46797]


def test_text_has_a_line_for_each_token(run, tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"Hello the"))
    lines = run("tokenize", path, "--tokenizer", "hash-md").stdout.splitlines()
    assert lines == ["46797\t0\t5\thello", "20664\t6\t9\tthe", ""]


def test_other_tokenizers(run, tmp_path):
    done = run("tokenize", "--tokenizer", "bytes", "--json", text_in="hé\n")
    assert objects(done)[0]["ids"] == [104, 0xC3, 0xA9]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"format": "headshare-tokenizer", "version": 1, "kind": "hash-lsh", "features": "affix"}))
    done = run("tokenize", "--tokenizer", path, "--json", text_in="dog\n")
    assert objects(done)[0]["signatures"] == ["4a82c651b5814156a6168ca2d2960cd9"]


def test_tokenizers_that_are_trained_here(run, refused, tmp_path):
    text, pieces = tmp_path / "corpus.txt", tmp_path / "pieces.json"
    text.write_text("the fox and the dog\n" * 20)
    train = ("--text", text, "--vocabulary-size", 40)
    once = objects(run("tokenize", "--tokenizer", "wordpiece", *train, "--json", text_in="The fox\n"))
    assert once[0]["tokens"] == ["the", "fox"]
    run("tokenize", "--tokenizer", "wordpiece", *train, "--write-model", pieces)
    assert objects(run("tokenize", "--tokenizer", pieces, "--json", text_in="The fox\n")) == once
    assert objects(run("tokenize", "--tokenizer", "words", "--text", text, "--json", text_in="fox\n"))[0]["tokens"] == ["fox"]
    words = run("tokenize", "--tokenizer", "sentencepiece", "--text", text, "--vocabulary-size", 20, "--json", text_in="dog\n")
    assert "".join(objects(words)[0]["tokens"]) == "▁dog"
    assert "learns its tokens from text" in refused(2, "tokenize", "--tokenizer", "bpe", text)
    assert "has nothing to learn" in refused(2, "tokenize", "--tokenizer", "hash-md", "--text", text)
    assert "is trained already" in refused(2, "tokenize", "--tokenizer", pieces, "--text", text)
    assert "vocabulary-size is for" in refused(2, "tokenize", "--tokenizer", pieces, "--vocabulary-size", 40)
    for more in ([], ["--text", "x"]):
        message = refused(2, "tokenize", "--tokenizer", "wordpeice", *more)
        assert "neither a file nor a kind of tokenizer (did you mean 'wordpiece'?); the kinds are bytes, " in message
    assert "missing.txt" in refused(1, "tokenize", "--tokenizer", "words", "--text", tmp_path / "missing.txt")
    (tmp_path / "bad.txt").write_bytes(b"a\xff\n")
    assert "bad.txt" in refused(1, "tokenize", "--tokenizer", "words", "--text", tmp_path / "bad.txt")


def test_hard_lines(run):
    long = "x" * (10 << 20)
    control = "a\x1b[31m b\x00c"
    first, second, third = objects(
        run("tokenize", "--tokenizer", "hash-lsh", "--json", text_in=f"{long}\n{control}\n日本語\n")
    )
    assert first["spans"] == [[0, 10 << 20]]
    assert second["tokens"] == ["a", "\x1b[", "31m", "b", "\x00", "c"]
    assert third["tokens"] == ["日本語"]
    assert "\x1b" not in run("tokenize", "--tokenizer", "hash-md", text_in=control + "\n").stdout


def test_the_table_of_words_starts_anew(run):
    """Starts a new table when it holds 2^18 words: their hashes, and those of the words behind them, stay what they
    are."""
    many = " ".join(f"w{i}" for i in range((1 << 18) + 1))
    first, *others = objects(run("tokenize", "--tokenizer", "hash-md", "--json", text_in=f"the {many}\nhello the\nthe w7\n"))
    assert first["ids"][0] == 20664 and len(first["ids"]) == (1 << 18) + 2
    assert [line["tokens"] for line in others] == [["hello", "the"], ["the", "w7"]]
    assert others[0]["ids"] == [46797, 20664]
    assert others[1]["ids"] == [20664, first["ids"][1 + 7]]
    assert others[1]["signatures"][1] == first["signatures"][1 + 7]


@pytest.mark.parametrize("tokenizer", ["hash-md", "hash-lsh"])
def test_lone_surrogates_are_refused(refused, tmp_path, tokenizer):
    text = tmp_path / "surrogate.txt"
    text.write_bytes(b"lone \xed\xa0\x80\n")
    message = refused(1, "tokenize", "--tokenizer", tokenizer, text)
    assert "surrogate.txt:1" in message and "not valid UTF-8 at byte 5 of 8" in message
    settings = tmp_path / "tokenizer.json"
    settings.write_text('{"format": "headshare-tokenizer", "version": 1, "kind": "hash-lsh", "features": "\\ud800"}')
    message = refused(1, "tokenize", "--tokenizer", settings, text)
    assert "tokenizer.json" in message and "surrogate" in message


def test_mistakes_are_explained(refused, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"\xff\n")
    message = refused(1, "tokenize", "--tokenizer", "hash-md", bad)
    assert "bad.txt:1" in message and "not valid UTF-8 at byte 0" in message
    assert "--tokenizer is missing" in refused(2, "tokenize", bad)
    assert "hash-merges is for" in refused(2, "tokenize", bad, "--tokenizer", "hash-md", "--hash-merges", tmp_path)
    assert "is about --text" in refused(2, "tokenize", bad, "--tokenizer", "hash-md", "--invalid-utf8", "replace")
    merges = ("--tokenizer", "hash-lsh", "--hash-merges", bad)
    assert "bad.txt is neither a tokenizer.json nor a folder" in refused(2, "tokenize", bad, *merges)
    assert "missing.txt" in refused(1, "tokenize", "--tokenizer", "hash-md", tmp_path / "missing.txt")


def test_a_damaged_tokenizer_is_no_wrong_usage(refused, tmp_path):
    """Refuses it in every verb that is given one, whatever kind of file it is."""
    text, corpus = tmp_path / "text.txt", ("--out", tmp_path / "out", "--steps", 1)
    text.write_text("the fox\n")
    files = {"cut.json": '{"format": "headshare-tok', "odd.json": '{"model": {"type": "BPE"}}', "vocab.txt": "the\nthe\n", "odd.model": "x"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
        assert name in refused(1, "tokenize", "--tokenizer", tmp_path / name, text)
        assert name in refused(1, "train", "--text", text, "--tokenizer-path", tmp_path / name, *corpus)
    assert "cut.json" in refused(1, "tokenize", "--tokenizer", "hash-lsh", "--hash-merges", tmp_path / "cut.json", text)


def test_a_tokenizer_learns_from_standard_input(run, refused, tmp_path):
    text, words = "the fox and the dog\n" * 20, ("--tokenizer", "words", "--text", "-")
    (tmp_path / "lines.txt").write_text("dog\n")
    found = objects(run("tokenize", *words, "--json", tmp_path / "lines.txt", text_in=text))
    assert found[0]["tokens"] == ["dog"]
    run("tokenize", *words, "--write-model", tmp_path / "words.json", text_in=text)
    assert objects(run("tokenize", "--tokenizer", tmp_path / "words.json", "--json", tmp_path / "lines.txt")) == found
    for files in ([], ["-"], [tmp_path / "lines.txt", "-"]):
        assert "nothing left of it to cut" in refused(2, "tokenize", *words, *files, text_in=text)

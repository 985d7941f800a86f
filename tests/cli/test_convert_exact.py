"""Tests `convert MODEL OUT --to SCHEME --exact`: heads are rewritten, and the model computes what it did."""

import json

import pytest
from tiny_model import BPE, write_model


@pytest.fixture
def model(tmp_path):
    return write_model(tmp_path / "model", tokenizer=BPE, vocabulary=257)


def test_a_rewritten_model_goes_on_with_text_as_before(run, model, tmp_path):
    printed = json.loads(run("convert", model, tmp_path / "out", "--to", "el-lossless", "--exact", "--json").stdout)
    assert printed["change_in_double"] <= 1e-12 and printed["change_as_stored"] < 1e-5
    assert printed["after"]["cache_bytes_per_token"] * 2 == printed["before"]["cache_bytes_per_token"]
    (tmp_path / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 5)
    before, after = (
        json.loads(run("evaluate", one, "--text", tmp_path / "text.txt", "--json").stdout)["loss"]
        for one in (model, tmp_path / "out")
    )
    assert after == pytest.approx(before, rel=1e-5)
    shown = run("convert", tmp_path / "out", tmp_path / "back", "--to", "mha", "--exact").stdout
    assert "el_lossless as mha: the same outputs" in shown and "cache bytes per token" in shown


def test_what_makes_no_sense_is_refused_and_nothing_is_written(refused, model, tmp_path):
    def says(*flags, code=2):
        return refused(code, "convert", model, tmp_path / "out", "--exact", *flags)

    assert "layer 1: heads 1 and 2 differ in their keys" in says("--to", "mqa", code=1)
    assert "not as 'skv'" in says("--to", "skv")
    assert "only gqa takes a number" in says("--to", "mqa:2")
    assert "--sample-text is about approximations" in says("--to", "mha", "--sample-text", "x.txt")
    assert "--exact belongs to --to" in refused(2, "convert", model, tmp_path / "out", "--exact", "--from", "hf")
    assert not (tmp_path / "out").exists()

"""Tests layers that share keys and values (--share-kv-layers) in every verb."""

import json

import pytest
from training import TINY, own_cache, text, weights  # noqa: F401 (fixtures)

FOUR = [*TINY, "--layers", 4, "--share-kv-layers", 2]
GROUPS = ["characters" if one == "bytes" else one for one in FOUR] + ["--scheme", "gqa", "--heads", 4]


@pytest.fixture
def trained(run, text, tmp_path):
    run("train", "--text", text, "--out", tmp_path / "run", *GROUPS, "--steps", 20)
    return tmp_path / "run"


def test_a_trained_model(run, trained, text):
    report = json.loads(run("info", trained, "--json").stdout)
    assert report["options"]["share-kv-layers"] == 2 and report["attention_parameters"] == 4 * 2 * 16 * 16 + 2 * 16 * 16
    assert report["kv_cache_elements_per_token"] == 16 and report["kv_cache_bytes_per_token"] == 2 * 16 * 4
    assert "128 B per token, 16 elements for every 2 layers" in run("info", trained).stdout
    config = json.loads((trained / "checkpoints" / "last" / "config.json").read_text())
    assert config["format_version"] == 16 and config["model"]["share-kv-layers"] == 2
    [own, mha] = json.loads(run("cost", trained, "--json", "--schemes", "gqa,mha").stdout)
    assert own["own"] and own["share_kv_layers"] == 2 and own["kv_cache_bytes_per_token"] == 2 * 16 * 4
    assert mha["attention_parameters"] == 4 * 2 * 16 * 16 + 2 * 2 * 16 * 16
    loss = json.loads(run("evaluate", trained, "--text", text, "--json").stdout)["loss"]
    assert 0 < loss < 6
    written = [run("generate", trained, "--prompt", "The ", "--max-tokens", 12, "--seed", 1).stdout for _ in range(2)]
    assert written[0] == written[1] and written[0].startswith("The ")


def test_recomputing_gives_the_same_weights(run, text, tmp_path):
    for name, more in (("kept", []), ("again", ["--activation-checkpointing"])):
        run("train", "--text", text, "--out", tmp_path / name, *FOUR, "--dropout", 0.1, "--steps", 12, *more)
    assert weights(tmp_path / "kept") == weights(tmp_path / "again")


def test_a_start_keeps_what_it_shares(run, refused, trained, text, tmp_path):
    out = tmp_path / "next"
    run("train", "--start-from", trained, "--text", text, "--out", out, "--steps", 2)
    assert json.loads(run("info", out, "--json").stdout)["options"]["share-kv-layers"] == 2
    flags = ("--start-from", trained, "--text", text, "--out", tmp_path / "no")
    assert "leave --share-kv-layers out" in refused(2, "train", *flags, "--share-kv-layers", 1)


def test_a_comparison_halves_the_cache(run, text, tmp_path):
    plan = run("compare", "--text", text, "--out", tmp_path / "c", *TINY, "--layers", 4, "--steps", 2, "--dry-run",
               "--schemes", "mha", "--variants", "cla:scheme=mha,share-kv-layers=2").stdout  # fmt: skip
    rows = {line.split()[0]: line.split() for line in plan.splitlines() if line.startswith(("mha ", "cla "))}
    assert (rows["mha"][1], rows["cla"][1]) == ("4,096", "3,072") and (rows["mha"][3], rows["cla"][3]) == ("512", "256")


def test_costs_of_layers_that_share(run):
    flags = ("--layers", 12, "--d-model", 768, "--heads", 12, "--schemes", "mla", "--sweep", "share-kv-layers=1,2,3,12")
    swept = json.loads(run("cost", *flags, "--json").stdout)
    own = swept[0]["attention_parameters"]
    assert [one["kv_cache_bytes_per_token"] for one in swept] == [12 * 1024 // n for n in (1, 2, 3, 12)]
    assert [own - one["attention_parameters"] for one in swept] == [n * (768 * 256 + 256) for n in (0, 6, 8, 11)]
    table = " ".join(run("cost", *flags).stdout.split())
    assert "share-kv-layers varying" in table and "layers that share keys and values have one cache" in table


def test_what_cannot_be(refused, trained, text, tmp_path):
    flags = ("train", "--text", text, "--out", tmp_path / "no", *TINY, "--layers", 4)
    assert "4 layers, 3 that share; set --share-kv-layers to a divisor of 4" in refused(2, *flags, "--share-kv-layers", 3)
    assert "leave one of the two out" in refused(2, *flags, "--share-kv-layers", 2, "--layer-groups", 2)
    assert "choose --scheme mha" in refused(2, *flags, "--share-kv-layers", 2, "--scheme", "el_lossless")
    none = "keys and values that 2 layers share; train a model without --share-kv-layers for that"
    for form in ("hf", "gguf", "ctranslate2"):
        said = refused(1, "convert", trained, tmp_path / "no", "--to", form)
        assert f"the format {form} has no place for {none}" in said
    assert f"`convert` does not rewrite {none}" in refused(1, "convert", trained, tmp_path / "no", "--to", "mqa")
    exact = ("convert", trained, tmp_path / "no", "--to", "mha", "--exact")
    assert f"`convert` does not rewrite {none}" in refused(1, *exact)
    assert f"`analyze` does not compare heads that read {none}" in refused(1, "analyze", trained)
    assert not (tmp_path / "no").exists()

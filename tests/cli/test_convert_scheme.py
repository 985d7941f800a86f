"""Tests `convert MODEL OUT --to collaborative`: trained heads are made to share queries and keys."""

import json
import math
import os
import signal
import struct
import threading

import pytest
from tiny_model import BPE, write_model
from training import stop_when

TEXT = "the quick brown fox jumps over the lazy dog. " * 60


@pytest.fixture
def model(tmp_path):
    write_model(tmp_path / "model", tokenizer=BPE, vocabulary=257)
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "model"


def convert(run, model, *more, out=None, check=True):
    return run("convert", model, out or model.parent / "out", "--to", "collaborative", *more, check=check)


def perplexity(run, model, text):
    return json.loads(run("evaluate", model, "--text", text, "--json").stdout)["perplexity"]


def test_at_full_width_the_model_stays_what_it_was(run, model):
    before = (model / "model.safetensors").read_bytes()
    text = model.parent / "text.txt"
    printed = convert(run, model, "--key-width", 16, "--sample-text", text).stdout
    assert "layer 2" in printed and "written to" in printed
    assert perplexity(run, model.parent / "out", text) == pytest.approx(perplexity(run, model, text), rel=1e-4)
    assert (model / "model.safetensors").read_bytes() == before


def test_narrower_layers_say_what_they_cost(run, model):
    report = json.loads(
        convert(run, model, "--key-width", 6, "--sample-text", model.parent / "text.txt", "--sample-tokens", 600, "--json").stdout
    )
    for layer in report["layers"]:
        assert layer["key_width"] == 6 and layer["full_width"] == 16
        assert 0 < layer["error"] <= layer["errors"][0] and layer["output_change"] > 0
        assert layer["errors"] == sorted(layer["errors"], reverse=True)
    assert report["after"]["parameters"] < report["before"]["parameters"]
    assert report["after"]["cache_bytes_per_token"] < report["before"]["cache_bytes_per_token"]
    assert report["divergence"] > 0 and report["loss_after"] > 0 and report["hidden_change"] > 0
    info = json.loads(run("info", model.parent / "out", "--json").stdout)
    assert "collaborative" in json.dumps(info)
    assert perplexity(run, model.parent / "out", model.parent / "text.txt") > 1


def test_a_sample_makes_layers_better_where_the_text_is(run, model):
    text = ["--sample-text", model.parent / "text.txt", "--json", "--overwrite"]
    with_sample = json.loads(convert(run, model, "--key-width", 6, *text).stdout)
    convert(run, model, "--key-width", 6, out=model.parent / "blind")
    # Its change on the text is what a conversion of the blind one to itself shows, so perplexities are compared
    # instead.
    fitted = perplexity(run, model.parent / "out", model.parent / "text.txt")
    blind = perplexity(run, model.parent / "blind", model.parent / "text.txt")
    source = perplexity(run, model, model.parent / "text.txt")
    assert abs(fitted - source) < abs(blind - source)
    assert with_sample["stopped"] is False


def test_widths_may_follow_from_an_error_or_a_number_of_parameters(run, model):
    by_error = json.loads(convert(run, model, "--max-error", 0.4, "--json").stdout)
    assert all(layer["error"] <= 0.4 and layer["key_width"] < 16 for layer in by_error["layers"])
    before = by_error["before"]["parameters"]
    by_size = json.loads(convert(run, model, "--max-parameters", before - 300, "--json", "--overwrite").stdout)
    assert by_size["after"]["parameters"] <= before - 300
    # Layers that differ are counted, and the other schemes beside them.
    costs = {row["scheme"]: row for row in json.loads(run("cost", model.parent / "out", "--json").stdout)}
    assert costs["collaborative"]["total_parameters"] == by_size["after"]["parameters"]
    assert costs["mqa"]["total_parameters"] > 0


@pytest.mark.parametrize(
    "more, says",
    [
        ([], "needs a width"),
        (["--key-width", 0], "key-width"),
        (["--key-width", 17], "17 is not within 1..16"),
        (["--key-width", 8, "--max-error", 0.1], "exclude each other"),
        (["--max-parameters", 100], "too low"),
        (["--key-width", 8, "--tokenizer", "x"], "--tokenizer belongs to --from"),
        (["--key-width", 8, "--dry-run"], "--dry-run is not for"),
        (["--key-width", 8, "--sample-text", "short.txt"], "fewer than the 32 of the model's windows"),
        (["--key-width", 8, "--sample-text", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_what_cannot_be_is_refused_and_writes_nothing(run, model, more, says):
    (model.parent / "short.txt").write_text("too short")
    done = run("convert", model, model.parent / "out", "--to", "collaborative", *more, check=False, cwd=model.parent)
    assert done.returncode in (1, 2) and says in done.stderr, done.stderr
    assert not (model.parent / "out").exists()


def set_weight(model, name, value):
    """Sets the first value of a tensor."""
    raw = bytearray((model / "model.safetensors").read_bytes())
    size = struct.unpack("<Q", raw[:8])[0]
    at = 8 + size + json.loads(raw[8 : 8 + size])[name]["data_offsets"][0]
    raw[at : at + 4] = struct.pack("<f", value)
    (model / "model.safetensors").write_bytes(raw)


@pytest.mark.parametrize("to", [["--to", "mqa"], ["--to", "collaborative", "--key-width", "8"]])
@pytest.mark.parametrize("sampled", [True, False])
def test_damage_outside_attention_is_named(run, model, to, sampled):
    set_weight(model, "blocks.1.feed_forward.contract.weight", math.nan)
    sample = ["--sample-text", model.parent / "text.txt"] if sampled else []
    done = run("convert", model, model.parent / "out", *to, *sample, check=False)
    assert done.returncode == 1 and "blocks.1.feed_forward.contract.weight' has 1 values of 1024" in done.stderr
    assert not (model.parent / "out").exists()


@pytest.mark.parametrize("to", [["--to", "mqa"], ["--to", "collaborative", "--key-width", "8"]])
def test_answers_that_are_no_numbers_are_an_error(run, model, to):
    set_weight(model, "blocks.1.attention.scheme.query.weight", 3e38)
    done = run("convert", model, model.parent / "out", *to, "--sample-text", model.parent / "text.txt", check=False)
    assert done.returncode == 1 and "nan" not in done.stdout.lower() and "too large for float32" in done.stderr
    assert not (model.parent / "out").exists()


def test_the_only_width_must_be_within_the_parameters(run, model):
    """Converts one head whose frequencies all turn differently: there is one width to share."""
    config = json.loads((model / "config.json").read_text())
    config["model"] |= {"heads": 1, "positions": "rotary"}
    (model / "config.json").write_text(json.dumps(config))
    write_model(model, tokenizer=BPE, vocabulary=257, positions="rotary")
    (model / "config.json").write_text(json.dumps(config))
    done = convert(run, model, "--max-parameters", 100, check=False)
    assert done.returncode == 1 and "a limit of 100 parameters is too low" in done.stderr


def test_the_model_itself_is_never_overwritten(run, model):
    done = convert(run, model, "--key-width", 8, "--overwrite", out=model, check=False)
    assert done.returncode == 1 and "is read by this call" in done.stderr


def test_options_of_sharing_belong_to_it(run, model):
    done = run("convert", model, model.parent / "out", "--to", "hf", "--key-width", 8, check=False)
    assert done.returncode == 2 and "--key-width is about --to collaborative" in done.stderr


def test_a_converted_model_trains_on(run, model):
    convert(run, model, "--max-error", 0.4)
    text = model.parent / "text.txt"
    done = run("train", "--start-from", model.parent / "out", "--text", text, "--steps", 3, "--batch-size", 2,
               "--out", model.parent / "run")  # fmt: skip
    assert done.returncode == 0


SHARED = ["gqa:2", "mqa", "mhe-mul", "mhe_add", "skv", "lrkv:1", "shared-query:complex", "shared_query:low-rank:2", "mla:6"]


@pytest.fixture
def four_heads(model):
    config = json.loads((model / "config.json").read_text())
    config["model"]["heads"] = 4  # of half the width
    (model / "config.json").write_text(json.dumps(config))
    return model


@pytest.mark.parametrize("scheme", SHARED)
def test_heads_share_in_every_way(run, four_heads, scheme):
    model = four_heads
    text = model.parent / "text.txt"
    before = (model / "model.safetensors").read_bytes()
    words = ["convert", model, model.parent / "out", "--to", scheme, "--sample-text", text]
    report = json.loads(run(*words, "--json").stdout)
    for layer in report["layers"]:
        assert 0 < layer["error"]["scores"] < 1 and 0 < layer["error"]["values"] < 1 and layer["output_change"] > 0
    assert report["after"]["cache_bytes_per_token"] < report["before"]["cache_bytes_per_token"]
    assert report["divergence"] > 0 and report["loss_after"] > 0
    assert (model / "model.safetensors").read_bytes() == before
    options = json.loads((model.parent / "out" / "config.json").read_text())
    assert scheme.split(":")[0].replace("-", "_") in json.dumps(options)
    assert perplexity(run, model.parent / "out", text) > 1
    printed = run(*words, "--overwrite").stdout
    assert "layer 2" in printed and "written to" in printed


def test_pooling_says_what_alignment_gains(run, four_heads):
    model = four_heads
    report = json.loads(run("convert", model, model.parent / "out", "--to", "gqa:2", "--json").stdout)
    layer = report["layers"][0]
    assert sorted(head for group in layer["groups"] for head in group) == [0, 1, 2, 3]
    assert layer["error"]["scores"] + layer["error"]["values"] < sum(layer["aligned_mean"].values())
    assert sum(layer["aligned_mean"].values()) < sum(layer["plain_mean"].values())
    mean = run("convert", model, model.parent / "mean", "--to", "gqa:2", "--pooling", "mean", "--json").stdout
    pooled = json.loads(mean)["layers"][0]
    assert pooled["error"]["scores"] == pytest.approx(layer["plain_mean"]["scores"], rel=1e-4)
    assert pooled["groups"] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "words, says",
    [
        (["--to", "gqa:3"], "3 groups do not divide the layer's 4 heads"),
        (["--to", "mqa", "--iterations", 3], "mqa is computed at once"),
        (["--to", "mqa", "--sample-tokens", 64], "--sample-tokens needs --sample-text or --sample-images"),
        (["--to", "gqa:x"], "'x' is not a number of groups"),
        (["--to", "mqa:2"], "a number behind a name is for gqa, lrkv, shared_query and mla; write --to mqa"),
        (["--to", "lrkv:0"], "'0' is not a rank; write --to lrkv:4"),
        (["--to", "lrkv:5"], "rank 5 of lrkv is not within 1..4"),
        (["--to", "shared_query:round"], "'round' is no map of shared_query; choose identity,"),
        (["--to", "shared_query:complex:2"], "maps of form complex have no size; leave 2 out"),
        (["--to", "shared_query:low_rank:5"], "shared_query:low_rank:5 is not within 1..4"),
        (["--to", "shared_query:full:4:4"], "'4' is not a rank or width"),
        (["--to", "mla:17"], "latent width 17 of mla is not within 1..16"),
        (["--to", "mla:4", "--mean-latent-width", 4], "exclude each other"),
        (["--to", "mla", "--mean-latent-width", 17], "a mean of 17 is above 16"),
        (["--to", "lrkv", "--mean-latent-width", 4], "--mean-latent-width is about --to mla, not lrkv"),
        (["--to", "mqa", "--max-error", 0.1], "--max-error is about --to collaborative and --to mla, not mqa"),
        (["--to", "gqb"], "gqa:GROUPS"),
        (["--to", "skv", "--pooling", "mean"], "--pooling is about"),
        (["--to", "mqa", "--key-width", 4], "are about --to collaborative"),
        (["--to", "mqa", "--tokenizer", "x"], "--tokenizer belongs to --from"),
        (["--to", "mqa", "--pooling", "median"], "median"),
    ],
)
def test_impossible_shared_heads_write_nothing(run, four_heads, words, says):
    model = four_heads
    result = run("convert", model, model.parent / "out", *words, check=False)
    assert result.returncode != 0 and says in result.stderr
    assert not (model.parent / "out").exists()


def test_layers_get_the_latent_width_that_they_need(run, four_heads):
    text = four_heads.parent / "text.txt"
    words = ["convert", four_heads, four_heads.parent / "out", "--to", "mla", "--sample-text", text]
    report = json.loads(run(*words, "--max-error", 0.3, "--json").stdout)
    widths = [layer["size"] for layer in report["layers"]]
    assert all(1 <= width < 16 for width in widths)
    options = json.loads((four_heads.parent / "out" / "config.json").read_text())
    assert options["format_version"] == 15
    assert options["model"]["kv-latent-norm"] is False and options["model"]["layer-kv-latent-widths"] == widths
    costs = {row["scheme"]: row for row in json.loads(run("cost", four_heads.parent / "out", "--json").stdout)}
    assert costs["mla"]["total_parameters"] == report["after"]["parameters"]
    assert report["after"]["cache_bytes_per_token"] == 4 * sum(widths)
    assert perplexity(run, four_heads.parent / "out", text) > 1
    mean = json.loads(run(*words, "--mean-latent-width", 6, "--json", "--overwrite").stdout)
    assert sum(layer["size"] for layer in mean["layers"]) <= 12


def test_both_models_are_scored_as_evaluate_does(run, refused, model):
    text = model.parent / "text.txt"
    report = json.loads(convert(run, model, "--key-width", 6, "--score-text", text, "--json").stdout)
    for name, directory in (("scores_before", model), ("scores_after", model.parent / "out")):
        scored = json.loads(run("evaluate", directory, "--text", text, "--json").stdout)
        assert report[name] == scored
    assert report["scores_before"]["loss"] != report["scores_after"]["loss"]
    printed = convert(run, model, "--key-width", 6, "--score-text", text, "--overwrite").stdout
    assert f"loss on the scored text: {report['scores_before']['loss']:.4f} before, " in printed
    assert f"{report['scores_after']['perplexity']:.4f} after" in printed
    plain = json.loads(convert(run, model, "--key-width", 6, "--overwrite", "--json").stdout)
    assert plain["scores_before"] is None and plain["scores_after"] is None


def test_a_score_text_that_can_be_read_once(run, model):
    text = model.parent / "text.txt"
    report = json.loads(convert(run, model, "--key-width", 6, "--score-text", text, "--json").stdout)
    pipe = model.parent / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(text.read_text()), daemon=True)
    writer.start()
    flags = ("--key-width", 6, "--overwrite", "--json")
    piped = json.loads(convert(run, model, *flags, "--score-text", pipe).stdout)
    stdin = ("convert", model, model.parent / "out", "--to", "collaborative", *flags, "--score-text", "-")
    for again in (piped, json.loads(run(*stdin, text_in=text.read_text()).stdout)):
        assert (again["scores_before"], again["scores_after"]) == (report["scores_before"], report["scores_after"])


def test_a_stop_while_the_result_is_scored_keeps_the_report(program, model):
    long = model.parent / "long.txt"
    long.write_text(TEXT * 300)
    out = model.parent / "out"
    command = (program, "convert", model, out, "--to", "mqa", "--score-text", long)
    process = stop_when(command, (out / "config.json").exists, signal.SIGINT)
    assert "is written, and not scored" in process.said
    assert "before, not scored after" in process.printed and "written to" in process.printed


def test_a_score_text_that_cannot_be_read_stops_before_the_conversion(run, refused, model):
    message = refused(1, "convert", model, model.parent / "out", "--to", "mqa", "--score-text", model.parent / "nowhere.txt")
    assert "nowhere.txt" in message and not (model.parent / "out").exists()

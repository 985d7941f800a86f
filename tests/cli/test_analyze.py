"""Tests `analyze MODEL`: how alike a trained model's heads are, and what making them share would cost and save."""

import json
import math
import os
import re
import resource
import signal
import struct
import subprocess

import pytest
from browser import page  # noqa: F401 (a fixture)
from tiny_model import BPE, write_model

TEXT = "the quick brown fox jumps over the lazy dog. " * 60
MAPS = ["identity", "bias", "diagonal", "complex", "blocks", "low_rank", "full"]
CONVERSIONS = ["collaborative 12", "collaborative 8", "collaborative 4", "gqa:2", "mqa", "mhe_mul", "mhe_add", "skv", "lrkv:2",
               "lrkv:1", *(f"shared_query:{name}" for name in MAPS), "mla:8", "mla:4", "mla:2"]  # fmt: skip


def set_options(model, **options):
    config = json.loads((model / "config.json").read_text())
    config["model"].update({name.replace("_", "-"): value for name, value in options.items()})
    (model / "config.json").write_text(json.dumps(config))


@pytest.fixture
def model(tmp_path):
    """Writes a model like a small GPT-2, with four heads and random weights."""
    write_model(tmp_path / "model", tokenizer=BPE, vocabulary=257)
    set_options(tmp_path / "model", heads=4)
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "model"


def analysis(run, model, *more):
    return json.loads(run("analyze", model, "--json", *more).stdout)


def test_prints_layers_and_conversions(run, model):
    printed = run("analyze", model, "--text", model.parent / "text.txt").stdout
    assert "decoder of scheme mha, 2 layers; 4 heads of width 4" in printed
    for part in ["layer 1", "layer 2", "mha, as it is", *CONVERSIONS, "Jensen-Shannon"]:
        assert part in printed, part
    blind = run("analyze", model).stdout
    assert "Jensen-Shannon" not in blind and "Without --text" in blind


def test_a_models_name_need_not_be_utf8(program, model):
    name = os.fsencode(model.parent) + b"/caf\xe9"
    os.rename(model, name)
    done = subprocess.run([program, b"analyze", name, b"--json"], capture_output=True, check=True)
    assert json.loads(done.stdout)["model"].endswith("caf\ufffd")


def check_spectrum(spectrum):
    assert sum(spectrum["energy_shares"]) == pytest.approx(1)
    values = spectrum["singular_values"]
    assert values == sorted(values, reverse=True) and all(value >= 0 for value in values)
    assert 0 < spectrum["dimensions_for_90_percent"] <= spectrum["dimensions"]


def check_similarity(heads, least):
    assert len(heads) == 4
    for i, row in enumerate(heads):
        assert row[i] == 1 and all(least <= value <= 1 for value in row)
        assert row == [other[i] for other in heads]


def test_json_has_everything(run, model):
    found = analysis(run, model, "--text", model.parent / "text.txt")
    assert (found["format"], found["version"]) == ("headshare-analysis", 1)
    assert (found["kind"], found["depth"], found["heads"], found["full_key_width"]) == ("decoder", 2, 4, 16)
    assert (found["text_tokens"], found["map_tokens"]) == (2688, 2048)  # whole windows of 32 tokens
    assert [layer["layer"] for layer in found["layers"]] == ["layer 1", "layer 2"]
    for layer in found["layers"]:
        for spectrum in [layer["joint"], layer["stacked"], *layer["heads"]]:
            check_spectrum(spectrum)
        assert len(layer["heads"]) == 4
        check_similarity(layer["score_map_cosine"], -1)
        check_similarity(layer["attention_similarity"], 0)
    assert [row["name"] for row in found["conversions"]] == CONVERSIONS
    for row in found["conversions"]:
        assert 0 < row["error"]["scores"] < 1 and row["output_change"] > 0 and row["milliseconds"] > 0
        assert (row["error"]["values"] == 0) == (row["scheme"] == "collaborative")
        assert row["error"]["scores"] == pytest.approx(sum(one["error"]["scores"] for one in row["layers"]) / 2)
        assert row["cache_bytes_per_token"] < found["before"]["cache_bytes_per_token"]


def test_says_what_convert_says(run, model):
    text = model.parent / "text.txt"
    found = analysis(run, model, "--text", text, "--text-tokens", 640, "--iterations", 5)
    for row in found["conversions"]:
        iterated = row["scheme"] in ("collaborative", "mhe_mul", "shared_query")
        steps = ("--iterations", 5) if iterated else ()
        converted = json.loads(
            run("convert", model, model.parent / "out", *row["convert"].split(), "--sample-text", text,
                "--sample-tokens", 640, *steps, "--overwrite", "--json").stdout
        )  # fmt: skip
        for mine, theirs in zip(row["layers"], converted["layers"], strict=True):
            error = theirs["error"]
            assert mine["error"]["scores"] == pytest.approx(error["scores"] if isinstance(error, dict) else error)
            assert mine["output_change"] == pytest.approx(theirs["output_change"], rel=1e-3)
        for name, size in converted["after"].items():
            assert row[name] == size


def test_without_a_text_only_weights_count(run, model):
    found = analysis(run, model, "--key-widths", "6,10")
    assert found["text"] == [] and found["text_tokens"] == 0
    assert all(layer["attention_similarity"] is None for layer in found["layers"])
    assert [row["name"] for row in found["conversions"]][:2] == ["collaborative 10", "collaborative 6"]
    assert all(row["output_change"] is None for row in found["conversions"])


def test_the_page_holds_everything_and_loads_nothing(run, model):
    page = model.parent / "heads.html"
    run("analyze", model, "--text", model.parent / "text.txt", "--html", page)
    html = page.read_text()
    for part in ["What conversions cost and save", "How alike heads are", "How many dimensions heads use",
                 "saving-cache", "saving-parameters", "saving-time", "similarity-2", "energy-2", *CONVERSIONS]:  # fmt: skip
        assert part in html, part
    assert html.count('class="heat') > 2 * 2 * 16 and "default-src 'none'" in html
    assert not re.search(r"(src|href)=|url\(|@import|https?://", html)
    assert sorted(path.name for path in model.parent.iterdir()) == ["heads.html", "model", "text.txt"]


def files_of_4_kib():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_a_page_that_cannot_be_written_loses_nothing(program, model):
    words = [program, "analyze", model, "--html", model.parent / "heads.html"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, preexec_fn=files_of_4_kib)
    assert done.returncode == 1 and "heads.html: File too large" in done.stderr
    assert "mha, as it is" in done.stdout
    assert sorted(path.name for path in model.parent.iterdir()) == ["model", "text.txt"]


def test_a_model_whose_heads_share_already(run, model):
    run("convert", model, model.parent / "gqa", "--to", "gqa:2")
    found = analysis(run, model.parent / "gqa", "--text", model.parent / "text.txt")
    assert found["scheme"] == "gqa" and "gqa:2" not in [row["name"] for row in found["conversions"]]
    for layer in found["layers"]:
        check_similarity(layer["score_map_cosine"], -1)
        assert layer["stacked"]["dimensions"] == 16
        assert sum(value > 1e-6 for value in layer["stacked"]["singular_values"]) <= 16
    for row in found["conversions"]:
        assert math.isfinite(row["error"]["scores"]) and row["output_change"] >= 0


def test_an_encoder_with_rotary_positions(run, model, monkeypatch):
    monkeypatch.setenv("HEADSHARE_CACHE", str(model.parent / "cache"))
    text = model.parent / "text.txt"
    run("train", "--task", "mlm", "--text", text, "--out", model.parent / "encoder", "--vocabulary-size", 60,
        "--positions", "rotary", "--layers", 2, "--d-model", 16, "--heads", 2, "--context", 32, "--batch-size", 4,
        "--steps", 1)  # fmt: skip
    found = analysis(run, model.parent / "encoder", "--text", text)
    assert (found["kind"], found["rotary"]) == ("encoder", True)
    assert found["before"]["cache_bytes_per_token"] == 0 and found["timed_tokens"] == 32
    for layer in found["layers"]:
        assert layer["joint"]["dimensions_per_value"] == 2 and layer["joint"]["dimensions"] == 16
        assert layer["stacked"]["dimensions_for_90_percent"] % 2 == 0
    for row in found["conversions"]:
        assert "impossible" in row or math.isfinite(row["output_change"])
    printed = run("analyze", model.parent / "encoder").stdout
    assert "cache" not in printed and "encoder of scheme mha, 2 layers; 2 heads of width 8" in printed


def damage(model, value):
    """Sets the first weight of layer 2's queries to `value`."""
    raw = bytearray((model / "model.safetensors").read_bytes())
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + size])
    at = 8 + size + header["blocks.1.attention.scheme.query.weight"]["data_offsets"][0]
    raw[at : at + 4] = struct.pack("<f", value)
    (model / "model.safetensors").write_bytes(raw)


@pytest.mark.parametrize(
    "more, says",
    [
        (["--text", "short.txt"], "fewer than the 32 of the model's windows"),
        (["--text", "nowhere.txt"], "nowhere.txt"),
        (["--html", "."], "is a directory; name a file in it"),
        (["--html", "model/config.json"], "is read by this call"),
        (["--html", "a" * 300], "too long"),
        (["--html", "nowhere/heads.html"], "there is no directory nowhere"),
        (["--key-widths", "17"], "key width 17 is above 16"),
        (["--key-widths", "0"], "key-widths"),
        (["--iterations", "-1"], "iterations"),
        (["--text-tokens", "0"], "text-tokens"),
        (["--text-tokens", "64"], "--text-tokens needs --text"),
        (["--map-tokens", "64"], "--map-tokens needs --text"),
    ],
)
def test_what_cannot_be_is_refused_and_writes_nothing(run, model, more, says):
    (model.parent / "short.txt").write_text("too short")
    before = sorted(model.parent.rglob("*"))
    done = run("analyze", model, *more, check=False, cwd=model.parent)
    assert done.returncode in (1, 2) and says in done.stderr, done.stderr
    assert done.stdout == "" and sorted(model.parent.rglob("*")) == before


def test_damaged_weights_are_named(run, model):
    damage(model, math.nan)
    done = run("analyze", model, "--html", model.parent / "heads.html", check=False)
    assert done.returncode == 1 and "query.weight' has 1 values of" in done.stderr and "not finite" in done.stderr
    assert not (model.parent / "heads.html").exists()


def test_models_without_heads_to_compare_are_refused(run, model):
    set_options(model, heads=1)
    done = run("analyze", model, check=False)
    assert done.returncode == 1 and "this model has only one" in done.stderr
    done = run("analyze", model.parent, check=False)
    assert done.returncode == 1 and str(model.parent) in done.stderr


def test_a_text_needs_a_tokenizer(run, model):
    (model / "tokenizer.json").unlink()
    assert analysis(run, model)["text"] == []
    done = run("analyze", model, "--text", model.parent / "text.txt", check=False)
    assert done.returncode == 1 and "no tokenizer.json, so --text cannot be read" in done.stderr


def test_ctrl_c_ends_it_without_a_page(program, model):
    write_model(model, tokenizer=BPE, vocabulary=257, layers=400)  # takes a while
    words = [program, "analyze", model, "--html", model.parent / "heads.html"]
    running = subprocess.Popen([str(word) for word in words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        running.communicate(timeout=3)
        pytest.fail("it was over before it could be stopped")
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGINT)
    printed, said = running.communicate(timeout=60)
    assert running.returncode == 130 and "nothing was written" in said and printed == ""
    assert sorted(path.name for path in model.parent.iterdir()) == ["model", "text.txt"]


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_opens_offline_in_a_browser(page, run, model, width):  # noqa: F811
    path = model.parent / "heads.html"
    run("analyze", model, "--text", model.parent / "text.txt", "--html", path)
    page.open(path, width=width)
    assert page.logs("browser") == [] and page.requests() == [path.resolve().as_uri()]
    assert page.run("return document.documentElement.scrollWidth") <= width
    cells = page.run("return [...document.querySelectorAll('.mark > .heat')].map(e => e.getBoundingClientRect().width)")
    assert len(cells) == 2 * 2 * 16 and min(cells) > 10
    assert "heads 1 and 2" in page.run("return document.querySelectorAll('.mark .mark')[1].getAttribute('aria-label')")

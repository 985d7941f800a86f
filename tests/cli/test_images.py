"""Tests --task image: a vision transformer learns small images, is scored, compared, and refuses files that are damaged."""

import json
import random
import struct

import pytest

TINY = ("--layers", 1, "--d-model", 16, "--heads", 2, "--threads", 1, "--batch-size", 16, "--patch-size", 4, "--crop-padding", 0)
SIDE = 8


def idx(kind, sizes, numbers):
    return struct.pack(f">HBB{len(sizes)}I", 0, kind, len(sizes), *sizes) + bytes(numbers)


def image(label, draw):
    """One of three halves of the image is bright: the left, the right or none."""
    bright = {0: range(SIDE // 2), 1: range(SIDE // 2, SIDE), 2: ()}[label]
    return [draw.randrange(180, 256) if column in bright else draw.randrange(60) for _ in range(SIDE) for column in range(SIDE)]


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    folder, draw = tmp_path_factory.mktemp("halves"), random.Random(1)
    for name, count in (("train", 240), ("t10k", 60)):
        labels = [i % 3 for i in range(count)]
        pixels = [number for label in labels for number in image(label, draw)]
        (folder / f"{name}-images-idx3-ubyte").write_bytes(idx(8, (count, SIDE, SIDE), pixels))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx(8, (count,), labels))
    return folder


def test_a_model_learns_halves_and_is_scored(run, halves, tmp_path):
    out = tmp_path / "run"
    steps = ("--steps", 60, "--learning-rate", 0.01)
    trained = json.loads(run("train", "--json", "--task", "image", "--images", halves, "--out", out, *TINY, *steps).stdout)
    assert trained["steps"] == 60
    scored = json.loads(run("evaluate", out, "--images", halves, "--json", "--threads", 1).stdout)
    assert scored["accuracy"] > 0.9, "guessing gives a third"
    assert scored["loss"] == pytest.approx(trained["test_loss"], rel=1e-5)


def test_schemes_are_compared_by_accuracy(run, halves, tmp_path):
    out = tmp_path / "comparison"
    schemes = ("--schemes", "mha,sha", "--seeds", 1, "--steps", 20, "--learning-rate", 0.01)
    run("compare", "--task", "image", "--images", halves, "--out", out, *TINY, *schemes)
    results = json.loads((out / "results.json").read_text())
    assert results["subject"]["measure"] == "accuracy"
    assert {row["scheme"] for row in results["rows"]} == {"mha", "sha"}
    page = (out / "report.html").read_text()
    assert "Tell the classes of images" in page and "accuracy" in page


def test_a_converted_model_is_sampled_scored_and_healed(run, refused, halves, tmp_path):
    steps = ("--steps", 60, "--learning-rate", 0.01)
    run("train", "--task", "image", "--images", halves, "--out", tmp_path / "run", *TINY, *steps)
    sizes = ("--to", "collaborative", "--key-width", 2)
    sample = ("--sample-images", halves, "--sample-tokens", 250)
    text = run("convert", tmp_path / "run", tmp_path / "narrow", *sizes, *sample, "--score-images", halves).stdout
    assert "accuracy on the scored images: " in text and "last hidden states on the sample: changed by" in text
    report = json.loads(run("convert", tmp_path / "run", tmp_path / "again", *sizes, *sample, "--score-images", halves, "--json").stdout)
    assert report["layers"][0]["output_change"] > 0 and report["divergence"] >= 0 and report["loss_before"] is None
    scored = json.loads(run("evaluate", tmp_path / "narrow", "--images", halves, "--json", "--threads", 1).stdout)
    assert report["scores_after"]["accuracy"] == scored["accuracy"] > 0.3
    heal = ("--task", "image", "--images", halves, "--start-from", tmp_path / "narrow", "--threads", 1, "--batch-size", 16)
    healed = json.loads(run("train", *heal, "--steps", 20, "--out", tmp_path / "healed", "--json").stdout)
    assert healed["test_loss"] <= scored["loss"] + 0.05 and healed["steps"] == 20
    assert json.loads(run("info", tmp_path / "healed", "--json").stdout)["options"]["scheme"] == "collaborative"
    convert = ("convert", tmp_path / "run", tmp_path / "no", *sizes)
    assert "raise --sample-tokens" in refused(1, *convert, "--sample-images", halves, "--sample-tokens", 4)
    assert f"--score-images {halves / 'x'} is no directory" in refused(1, *convert, "--score-images", halves / "x")
    assert "give --sample-images and --score-images" in refused(1, *convert, "--sample-text", halves / "x.txt")


def test_damaged_files_and_wrong_options_are_named(refused, halves, tmp_path):
    def train(code, folder, *flags):
        return refused(code, "train", "--task", "image", "--images", folder, "--out", tmp_path / "no", *TINY, "--steps", 1, *flags)

    cut = tmp_path / "cut"
    cut.mkdir()
    for one in halves.iterdir():
        (cut / one.name).write_bytes(one.read_bytes())
    (cut / "train-images-idx3-ubyte").write_bytes((halves / "train-images-idx3-ubyte").read_bytes()[:-10])
    assert "train-images-idx3-ubyte" in train(1, cut)
    assert "nowhere" in train(1, tmp_path / "nowhere")
    assert "--images" in refused(1, "train", "--task", "image", "--out", tmp_path / "no")
    assert "patch" in train(2, halves, "--patch-size", 3)
    assert not (tmp_path / "no").exists()

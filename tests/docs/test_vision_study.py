"""Tests studies/vision and its tables: every unit of the work on tiny images, and tables of what is finished so far."""

import importlib.machinery
import importlib.util
import json
import random
import struct
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "studies"))
import measuring  # noqa: E402
import vision_tables  # noqa: E402


@pytest.fixture
def study(root, program, tmp_path, monkeypatch):
    """Returns the study, with tiny images in the place of MNIST, one seed and few steps, and its files in a folder of the test."""
    monkeypatch.setattr(measuring, "PROGRAM", str(program))
    loader = importlib.machinery.SourceFileLoader("vision", str(root / "studies/vision"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("vision", loader))
    monkeypatch.setitem(sys.modules, "vision", module)  # dataclasses look their module up
    loader.exec_module(module)
    few = module.Data(("--patch-size", 4, "--crop-padding", 0), source_steps=4, healing_steps=2, scratch_steps=2)
    changes = dict(SHARED=tmp_path, HOME=tmp_path / "state", OUT=tmp_path / "vision.json", DATA={"mnist": few}, SEEDS=range(1))
    changes |= dict(CONVERTED_WIDTHS=(4,), SCRATCH_WIDTHS=(4,), environment=lambda: {"processor": "P", "commit": "c"})
    for name, value in changes.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module.os, "nice", lambda _: 0)
    monkeypatch.setattr(sys, "argv", ["vision"])
    return module


def write_images(folder):
    draw = random.Random(1)
    folder.mkdir()
    for name, count in (("train", 40), ("t10k", 10)):
        pixels, labels = bytes(draw.randrange(256) for _ in range(64 * count)), bytes(i % 2 for i in range(count))
        (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">HBB3I", 0, 8, 3, count, 8, 8) + pixels)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, count) + labels)


def test_the_study_runs_and_goes_on(study, tmp_path):
    write_images(tmp_path / "mnist")
    study.main()
    results = json.loads(study.OUT.read_text())
    assert {kind: len(results[kind]) for kind in ("sources", "converted", "healed", "scratch")} == dict(
        sources=1, converted=2, healed=2, scratch=3
    )  # fmt: skip
    weights, sample = results["converted"]
    assert (weights["way"], sample["way"]) == ("weights", "sample") and weights["share"] == sample["share"] < 1
    assert weights["layers"][0]["output_change"] is None and sample["layers"][0]["output_change"] > 0
    narrow, shared = results["scratch"][1:]
    assert narrow["scheme"] == "mha" and narrow["attention_parameters"] < shared["attention_parameters"]
    assert all(0 <= cell["accuracy"] <= 1 and cell["commit"] == "c" for cell in results["converted"] + results["healed"])
    before = study.file_of("mnist-seed0-sources").stat().st_mtime_ns
    study.file_of("mnist-seed0-scratch-mha-4").unlink()
    study.main()
    assert json.loads(study.OUT.read_text()) == results, "a unit that is measured again gives the same"
    assert study.file_of("mnist-seed0-sources").stat().st_mtime_ns == before


def cell(seed, accuracy, **more):
    return dict(data="mnist", seed=seed, accuracy=accuracy, loss=1.0, commit="c", **more)


def results_of(seeds):
    layers = [dict(error=0.1, output_change=0.25)]
    widths = {(32, "sample"): 0.0, (4, "sample"): -0.3}
    found = dict(full_width=64, environment=dict(processor="P"), data=dict(mnist=dict(scratch_steps=5)))
    found["sources"] = [cell(seed, 0.98 + seed / 1000) for seed in seeds]
    found["converted"] = [
        cell(seed, 0.98 + seed / 1000 + change, width=width, way=way, share=0.5, layers=layers) for seed in seeds for (width, way), change in widths.items()
    ]
    found["healed"] = [cell(seed, 0.97, width=width) for seed in seeds for width in (32, 4, "trained-on")]
    found["scratch"] = [
        cell(seed, 0.9 + 0.05 * (scheme == "collaborative"), scheme=scheme, width=4, attention_parameters=10) for seed in seeds for scheme in ("mha", "collaborative")
    ]
    return found


def test_tables_show_what_has_three_seeds(monkeypatch):
    monkeypatch.setattr(vision_tables, "load", lambda: results_of(range(2)))
    assert vision_tables.vision_converted() == vision_tables.vision_scratch() == vision_tables.NOTHING
    monkeypatch.setattr(vision_tables, "load", lambda: results_of(range(3)))
    wide, narrow = vision_tables.vision_converted().splitlines()[2:4]
    assert "| 32 of 64 | training images | 50 % | 25 % | 98.1 ± 0.1 | +0.0" in wide and "↓" not in wide
    assert "| -30.0 [" in narrow and "] ↓ | 97.0 ± 0.0 | +0.0" in narrow
    [row] = vision_tables.vision_scratch().splitlines()[2:3]
    assert "| 4 | 90.0 ± 0.0 | 10 | 95.0 ± 0.0 | 10 | +5.0" in row and "↑" in row

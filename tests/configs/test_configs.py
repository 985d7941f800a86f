"""Tests that every YAML file of configs/ is read by the verb it is for, and planned without training."""

import json
import re

import pytest
from conftest import ROOT

CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))


def verb_of(path):
    """A config says what it is for in a comment: `# headshare train --config configs/NAME.yaml`."""
    found = re.search(r"^#.*\bheadshare (\w+) .*--config", path.read_text(), re.MULTILINE)
    return found[1] if found else "train"


def test_there_are_configs():
    assert CONFIGS, "configs/ has no .yaml file"


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_dry_run(path, run):
    done = run(verb_of(path), "--config", path, "--dry-run", cwd=ROOT)
    assert done.stdout.strip(), "a dry run says what would be done"


def test_unknown_key_is_refused(run, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("d-modell: 64\n")
    done = run("train", "--config", path, "--dry-run", check=False)
    assert done.returncode == 2
    assert "d-modell" in done.stderr and "d-model" in done.stderr.replace("d-modell", "")


@pytest.mark.parametrize("path", [path for path in CONFIGS if path.stem.startswith("translation_")], ids=lambda path: path.stem)
def test_counts_of_the_papers_table(path, run):
    """`cost FILE` counts what the comment says: millions of attention parameters, of the paper's table."""
    said = re.search(r"MHA ([\d.]+) million, MHE ([\d.]+)\s*(?:#\s*)?million", path.read_text())
    costs = json.loads(run("cost", path, "--schemes", "mha,mhe_mul", "--json").stdout)
    counts = {one["scheme"]: one["attention_parameters"] / 1e6 for one in costs}
    assert counts == pytest.approx(dict(mha=float(said[1]), mhe_mul=float(said[2])), abs=0.006)


@pytest.mark.parametrize("path", [path for path in CONFIGS if path.stem.startswith(("vit_", "deit_"))], ids=lambda path: path.stem)
def test_counts_of_vision_transformers(path, run):
    """`cost FILE` counts what the comment says; with 1,000 classes these are timm's counts (models/cost_test.cc)."""
    said = [int(count.replace(",", "")) for count in re.search(r"has ([\d,]+) parameters.* ([\d,]+) with 1,000", path.read_text()).groups()]
    [cost] = json.loads(run("cost", path, "--schemes", "mha", "--json").stdout)
    assert cost["total_parameters"] == said[0]
    heads = 2 if path.stem.startswith("deit_") else 1
    assert said[1] - said[0] == 990 * heads * (cost["d_model"] + 1)


def test_cost_of_what_train_does_not_know(run, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("layers: 3\nd-modell: 64\n")
    done = run("cost", path, check=False)
    assert done.returncode == 2 and f"{path}:2: unknown option 'd-modell' (did you mean 'd-model'?)" in done.stderr

"""Tests studies/minilm and its tables: parts, scores, the order of work, and tables of what is finished so far."""

import gzip
import importlib.machinery
import importlib.util
import json
import math
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "studies"))
import measuring  # noqa: E402
import minilm_tables  # noqa: E402


@pytest.fixture
def study(root, program, tmp_path, monkeypatch):
    """Returns the study, with its data and its state in folders of the test."""
    monkeypatch.setattr(measuring, "PROGRAM", str(program))
    loader = importlib.machinery.SourceFileLoader("minilm", str(root / "studies/minilm"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("minilm", loader))
    monkeypatch.setitem(sys.modules, "minilm", module)  # dataclasses look their module up
    loader.exec_module(module)
    monkeypatch.setattr(module, "DATA", tmp_path / "data")
    monkeypatch.setattr(module, "HOME", tmp_path / "state")
    return module


def write_qnli(path, numbers):
    """Writes rows whose indices are `numbers`; two rows share each question, and every third answer is no entailment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    labels = ["not_entailment" if number % 3 == 0 else "entailment" for number in numbers]
    rows = [f"{number}\tquestion {number // 2}?\tsentence {number}.\t{label}\n" for number, label in zip(numbers, labels, strict=True)]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(["index\tquestion\tsentence\tlabel\n", *rows])
    return labels


def test_answers_are_scored_whatever_numbers_gold_gives_its_rows(study, tmp_path):
    labels = write_qnli(tmp_path / "dev.tsv.gz", [26, 34, 7, 1000, 3])
    answers = [{"prediction": label} for label in labels]
    assert measuring.metrics_of(answers, "qnli", tmp_path / "dev.tsv.gz")["accuracy"] == 1
    answers[0] = {"prediction": "not_entailment" if labels[0] == "entailment" else "entailment"}
    assert measuring.metrics_of(answers, "qnli", tmp_path / "dev.tsv.gz")["accuracy"] == 0.8


def test_the_validation_part_shares_no_text_with_training(study):
    write_qnli(study.DATA / "QNLI/train.tsv.gz", range(400))
    labels = write_qnli(study.DATA / "QNLI/dev.tsv.gz", range(1000, 1090))
    found = study.write_parts("qnli")
    parts = {name: gzip.open(study.part("qnli", name), "rt").readlines()[1:] for name in ("train", "validation", "scored")}
    assert found["training"] == len(parts["train"]) and found["scored"] == len(parts["scored"]) == len(labels)
    assert found["training"] + found["validation"] == 400 and 36 <= found["validation"] <= 40
    questions = [{line.split("\t")[1] for line in parts[name]} for name in ("train", "validation")]
    assert not questions[0] & questions[1]
    assert found["floor"] == pytest.approx(100 * labels.count("entailment") / len(labels))
    sample = study.sample_text("qnli").read_text().splitlines()
    assert len(sample) == found["training"] and "entailment" not in " ".join(sample)


def test_divergence_is_from_the_unconverted_model(study):
    def answer(label, share):
        return {"prediction": label, "probabilities": {"yes": share, "no": 1 - share}}

    original = [answer("yes", 0.75), answer("no", 0.25)]
    assert study.answers_kept(original, original) == {"same": 100, "divergence": 0}
    found = study.answers_kept([answer("yes", 0.75), answer("yes", 0.5)], original)
    assert found["same"] == 50
    assert found["divergence"] == pytest.approx((0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.5)) / 2)


def test_the_rate_is_that_of_the_best_mean(study):
    trials = [{"scores": {"5e-05": 80, "0.00015": 82}}, {"scores": {"5e-05": 70, "0.00015": 67}}]
    assert study.best_rate(trials) == 5e-5


def test_a_unit_comes_after_what_it_needs(study):
    order = list(study.units())
    place = {name: number for number, name in enumerate(order)}
    assert len(place) == len(order)
    for task in study.TASKS:
        for seed in study.SEEDS:
            begun = f"{task}-seed{seed}"
            for width in (192, 96):  # a budget is that of the same width in each layer
                assert place[f"{begun}-{width}-sample"] < place[f"{begun}-{width}-budget"]
            assert place[f"{task}-parts"] < place[f"{begun}-source"] < min(place[name] for name in order if name.startswith(f"{begun}-") and "source" not in name)
            assert max(place["mrpc-healing-rates"], place["sst-2-healing-rates"]) < place[f"{begun}-trained-on-source-healed"]


def cell(task, seed, target, score, way="sample"):
    layers = [{"key_width": 192, "error": 0.1, "output_change": 0.1}]
    kept = {"same": 99.0, "divergence": 0.01 if way == "sample" else 0.005, "commit": "c0ffee", "share": 0.76, "parameters": 1, "layers": layers}
    return {"task": task, "seed": seed, "target": target, "way": way, "score": score} | kept


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Returns results that stopped early: MRPC is finished, RTE has one target, CoLA one seed."""
    places = [("mrpc", seed) for seed in range(3)] + [("rte", seed) for seed in range(3)] + [("cola", 0)]
    results = {
        "full_width": 384,
        "environment": {"processor": "One"},
        "parts": [{"task": task, "training": 90, "validation": 10, "scored": 20, "floor": 50.0} for task in ("mrpc", "rte", "cola")],
        "sources": [{"task": task, "seed": seed, "score": 80.0 + seed, "commit": "c0ffee"} for task, seed in places],
        "converted": [cell(*place, 192, 79.9 + place[1] + 0.01 * place[1]) for place in places],
        "rates": [{"task": "mrpc", "scores": {"5e-05": 81.04, "0.00015": 82}}],
        "healing_rates": [],
        "healed": [],
    }
    results["converted"] += [cell("mrpc", seed, 192, 80 + seed, "budget") for seed in range(3)]
    results["converted"] += [cell("mrpc", seed, "mhe_add", 60 + seed) for seed in range(3)]
    monkeypatch.setattr(minilm_tables, "RESULTS", tmp_path)

    def write():
        (tmp_path / "minilm.json").write_text(json.dumps(results))
        return results

    write()
    return results, write


def test_figures_of_another_machine_are_taken_up(study, measured, tmp_path, monkeypatch):
    results, _ = measured
    monkeypatch.setattr(study, "OUT", tmp_path / "minilm.json")
    study.HOME.mkdir()
    (study.HOME / "mrpc-seed1-source.json").write_text('{"score": 1}')  # measured here: stays
    study.take_up()
    names = {path.stem for path in study.HOME.glob("*.json")} - {"environment"}
    assert {"mrpc-rates", "rte-seed2-192-sample", "mrpc-seed0-192-budget", "mrpc-seed0-mhe_add-sample"} < names <= study.units().keys()
    assert len(names) == 1 + 7 + len(results["converted"])  # the sources are seven
    assert study.kept("mrpc-seed1-source") == {"score": 1}
    assert study.kept("cola-seed0-source") == {**results["sources"][-1], "processor": "One"}


def rows_of(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    names, *rows = [[field.strip() for field in line.strip("|").split("|")] for line in lines if "---" not in line]
    return [dict(zip(names, row, strict=True)) for row in rows]


def test_tables_have_what_is_finished(measured):
    assert [row["fine-tuned"] for row in rows_of(minilm_tables.minilm_sources())] == ["81.0 ± 1.0", "81.0 ± 1.0", "80.0"]
    assert "Fine-tuning by rate, on validation: MRPC 81.0 at 5e-05, 82.0 at 0.00015. One, commit c0ffee." in minilm_tables.minilm_sources()
    rows = rows_of(minilm_tables.minilm_converted())
    assert "CoLA" not in rows[0]  # one seed judges nothing
    half, budget, worse = rows
    assert half["converted to"] == "collaborative, width 192 (1/2)" and half["MRPC"].startswith("-0.1 [") and half["RTE"].startswith("-0.1 [")
    assert budget["converted by"] == "sample text, one budget" and budget["RTE"] == "-"
    assert worse["MRPC"].startswith("-20.0 [") and worse["MRPC"].endswith("↓")
    assert minilm_tables.minilm_healed().startswith("Nothing here has three seeds yet.")
    (row,) = rows_of(minilm_tables.minilm_budget())
    assert (row["divergence, one width"], row["divergence, one budget"]) == ("0.0100", "0.0050")
    assert row["score, one budget minus one width"].startswith("+0.1 [")


def test_healed_models_stand_beside_sources_trained_on(measured):
    results, write = measured
    for seed in range(3):
        results["healed"] += [cell("mrpc", seed, "trained-on", 85 + seed, "source"), cell("mrpc", seed, 192, 82 + seed)]
    write()
    (row,) = rows_of(minilm_tables.minilm_healed())
    assert row["MRPC"].startswith("-3.0 [") and row["converted to"] == "collaborative, width 192 (1/2)"
    assert rows_of(minilm_tables.minilm_sources())[0]["trained on as long as healed models"] == "86.0 ± 1.0"


def test_the_mean_is_of_tasks_with_every_target(measured):
    results, write = measured
    assert not any(name.startswith("mean") for name in rows_of(minilm_tables.minilm_converted())[0])
    answers = rows_of(minilm_tables.minilm_converted())[0]["same answers"]
    results["converted"].append(cell("cola", 1, 192, 70) | {"same": 1.0})  # of a task without three seeds
    write()
    assert rows_of(minilm_tables.minilm_converted())[0]["same answers"] == answers
    results["converted"] += [cell("rte", seed, 192, 79 + seed, "budget") for seed in range(3)]
    results["converted"] += [cell("rte", seed, "mhe_add", 40 + seed) for seed in range(3)]
    write()
    assert rows_of(minilm_tables.minilm_converted())[2]["mean of 2"].startswith("-30.0 [")


def test_tables_of_a_study_that_has_just_begun(measured):
    results, write = measured
    for kind in ("rates", "sources", "converted", "healed"):
        results[kind] = []
    write()
    assert all(table().startswith("Nothing here has three seeds yet.") for table in minilm_tables.TABLES.values())

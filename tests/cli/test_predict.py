"""Tests predict: a fine-tuned model labels new rows just as finetune did."""

import json
import os
import shutil

import pytest
from test_finetune import QUICK, encoder, glue, pretrain, squad_file, table, texts  # noqa: F401 (fixtures)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tuned(run, encoder, tmp_path_factory):
    """Returns a classifier, its tables, and what finetune answered."""
    folder = tmp_path_factory.mktemp("tuned")
    parts = []
    for name, count, start in (("train", 40, 0), ("validation", 20, 100), ("test", 30, 200)):
        parts += [f"--{name}", table(folder / f"{name}.tsv", count, start)]
    flags = (*QUICK, "--epochs", 4, "--seeds", 1)
    run("finetune", encoder, "--task", "classify", *parts, *flags, "--out", folder / "out")
    [model] = (folder / "out" / "classify").glob("lr-*-seed-0")
    return folder, model


def rows(text):
    lines = text.splitlines()
    return lines[0].split("\t"), [line.split("\t") for line in lines[1:]]


def test_answers_are_those_of_finetune(run, tuned):
    folder, model = tuned
    for part in ("validation", "test"):
        done = run("predict", model, folder / f"{part}.tsv", "--threads", 1)
        heading, given = rows(done.stdout)
        assert heading == ["index", "prediction", "probability"]
        _, wanted = rows((model / f"{part}.tsv").read_text())
        assert [row[:2] for row in given] == wanted
        assert all(0.5 <= float(row[2]) <= 1 for row in given)
        scores = {one["name"]: one["value"] for one in part_of(model, part)["scores"]}
        assert f"accuracy {scores['accuracy']:.4f}" in done.stderr and f"{scores['macro_f1']:.4f}" in done.stderr


def part_of(model, name):
    return next(one for one in json.loads((model / "result.json").read_text())["parts"] if one["part"] == name)


def test_a_table_without_labels(run, tuned, tmp_path):
    folder, model = tuned
    (tmp_path / "new.csv").write_text("id,review\n" + "".join(f'{i},"{text}"\n' for i, (text, _) in enumerate(texts(9))))
    done = run("predict", folder / "out", tmp_path / "new.csv", "--text-column", "review", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["index"] for one in lines] == list(range(9))
    for one in lines:
        assert set(one["probabilities"]) == {"0", "1"} and sum(one["probabilities"].values()) == pytest.approx(1)
        assert one["probability"] == max(one["probabilities"].values()) == one["probabilities"][one["prediction"]]
    assert "not scored" in done.stderr and "accuracy" not in done.stderr
    piped = run("predict", model, "-", "--table-format", "tsv", text_in="text\nThe 3 foxes jump.\n")
    assert len(piped.stdout.splitlines()) == 2


def test_a_file_of_answers(run, refused, tuned, tmp_path):
    folder, model = tuned
    out = tmp_path / "answers.tsv"
    done = run("predict", model, folder / "test.tsv", "--out", out)
    assert "rows    30" in done.stdout and "accuracy" in done.stdout and str(out) in done.stdout
    assert out.read_text() == run("predict", model, folder / "test.tsv").stdout
    assert "--overwrite" in refused(1, "predict", model, folder / "test.tsv", "--out", out)
    done = run("predict", model, folder / "test.tsv", "--out", out, "--overwrite", "--json")
    summary = json.loads(done.stdout)
    assert summary["rows"] == 30 and 0 <= summary["scores"]["accuracy"] <= 1
    assert len([json.loads(line) for line in out.read_text().splitlines()]) == 30
    rows_before = (folder / "test.tsv").read_bytes()
    weights = next(path for path in model.rglob("model.safetensors") if "best" in str(path)).resolve()
    weights_before = weights.read_bytes()
    for read in (folder / "test.tsv", weights):
        assert "is read by" in refused(1, "predict", model, folder / "test.tsv", "--out", read, "--overwrite")
    assert weights.read_bytes() == weights_before
    os.mkfifo(tmp_path / "pipe")
    assert "named pipe" in refused(1, "predict", model, folder / "test.tsv", "--out", tmp_path / "pipe", "--overwrite")
    assert (tmp_path / "pipe").is_fifo() and (folder / "test.tsv").read_bytes() == rows_before
    (tmp_path / "pipe").unlink()
    missing = tmp_path / "none" / "answers.tsv"
    assert "no directory" in refused(1, "predict", model, folder / "test.tsv", "--out", missing)
    assert [path.name for path in tmp_path.iterdir()] == ["answers.tsv"]


def test_pairs_and_numbers(run, encoder, tmp_path):
    lines = "".join(json.dumps({"a": text, "b": "A fox.", "score": 2.0 * c + 1}) + "\n" for text, c in texts(40))
    (tmp_path / "numbers.jsonl").write_text(lines)
    columns = ("--text-column", "a", "--pair-column", "b", "--label-column", "score")
    parts = ("--train", tmp_path / "numbers.jsonl", "--validation-fraction", 0.25, "--test", tmp_path / "new.jsonl")
    (tmp_path / "new.jsonl").write_text(lines[: lines.index("\n", 2000) + 1])
    run("finetune", encoder, "--task", "regress", *columns, *parts, *QUICK, "--seeds", 1, "--out", tmp_path / "out")
    done = run("predict", tmp_path / "out", tmp_path / "new.jsonl", "--threads", 1)
    [model] = (tmp_path / "out" / "regress").glob("lr-*")
    assert done.stdout == (model / "test.tsv").read_text()
    assert "pearson" in done.stderr


def test_tasks_of_glue(run, encoder, glue, tmp_path):
    run("finetune", encoder, "--task", "cola,mnli", "--data", glue.parent, *QUICK, "--seeds", 1, "--out", tmp_path / "out")
    for task, file, answers in (
        ("glue-cola", "CoLA/dev.tsv", "validation"),
        ("glue-cola", "CoLA/test.tsv", "test"),
        ("glue-mnli", "MNLI/dev_matched.tsv", "validation"),
    ):
        [model] = (tmp_path / "out" / task).glob("lr-*")
        _, given = rows(run("predict", model, glue / file, "--threads", 1).stdout)
        _, wanted = rows((model / f"{answers}.tsv").read_text())
        assert [row[:2] for row in given] == wanted


def test_what_is_refused(run, refused, encoder, tuned, tmp_path):
    folder, model = tuned
    test = folder / "test.tsv"
    assert "MODEL is missing" in refused(2, "predict")
    assert "it is no fine-tuned model" in refused(1, "predict", encoder, test)
    old = shutil.copytree(model / "checkpoints" / "best", tmp_path / "old")
    (old / "task.json").unlink()
    message = refused(1, "predict", old, test)
    assert "has no task.json" in message and "fine-tune it again" in message
    other = table(tmp_path / "other.tsv", 4, columns=("words", "label"))
    assert "no column 'text'" in refused(1, "predict", model, other)
    (tmp_path / "labels.tsv").write_text("text\tlabel\nA fox.\tgood\n")
    assert "unknown label 'good'" in refused(1, "predict", model, tmp_path / "labels.tsv")
    assert run("predict", model, tmp_path / "labels.tsv", "--no-score").stdout.startswith("index")


@pytest.mark.parametrize("version", ["1.1", "v2.0"])
def test_questions_about_texts(run, refused, encoder, tmp_path, version):
    found = [version == "1.1" or i % 3 > 0 for i in range(24)]
    train = squad_file(tmp_path / "train.json", found, version)
    dev = squad_file(tmp_path / "dev.json", found[:9], version)
    parts = ("--task", "squad", "--train", train, "--validation", dev, "--max-length", 14, "--doc-stride", 2)
    run("finetune", encoder, *parts, *QUICK, "--seeds", 1, "--epochs", 4, "--out", tmp_path / "out")
    [model] = (tmp_path / "out" / "squad").glob("lr-*")
    done = run("predict", model, dev, "--json", "--threads", 1)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    best = json.loads((model / "validation.json").read_text())
    assert {one["id"]: one["candidates"][0]["text"] for one in lines} == best
    assert [one["candidates"] for one in lines] == list(json.loads((model / "validation-n-best.json").read_text()).values())
    scores = {one["name"]: one["value"] for one in part_of(model, "validation")["scores"]}
    assert f"f1 {scores['f1']:.4f}" in done.stderr
    heading, given = rows(run("predict", model, dev, "--threads", 1).stdout)
    assert [row[:2] for row in given] == [[one["id"], one["prediction"]] for one in lines]
    if version == "v2.0":
        assert {one["id"]: one["null_odds"] for one in lines} == json.loads((model / "validation-null-odds.json").read_text())
        assert all((one["prediction"] == "") == (one["null_odds"] > 0) for one in lines)
        assert heading == ["id", "prediction", "null_odds"]
    else:
        bare = squad_file(tmp_path / "bare.json", [False] * 3)
        done = run("predict", model, bare)
        assert "not scored" in done.stderr and len(done.stdout.splitlines()) == 4
    assert "--text-column is about tables" in refused(2, "predict", model, dev, "--text-column", "x")

"""Tests train --teacher: a converted model learns from the one it was made of, and says how much it won back."""

import json
import signal

import pytest
import yaml
from training import TINY, losses, metrics, own_cache, sentences, stop_when, text, weights  # noqa: F401 (fixtures)

HEAL = ("--steps", 40, "--learning-rate", 3e-3, "--evaluate-every", 10, "--batch-size", 4, "--threads", 1, "--log-every", 1)
MASKED = ("--task", "mlm", "--layers", 1, "--d-model", 16, "--heads", 2, "--context", 16, "--batch-size", 8)


@pytest.fixture
def teacher(run, text, tmp_path):
    """Trains a decoder with two heads."""
    run("train", "--text", text, "--out", tmp_path / "teacher", *TINY, "--steps", 200, "--learning-rate", 1e-2)
    return tmp_path / "teacher"


@pytest.fixture
def converted(run, teacher, tmp_path):
    """Converts the teacher to one key and value head."""
    run("convert", teacher, tmp_path / "converted", "--to", "mqa")
    return tmp_path / "converted"


def heal(run, start, teacher, text, out, *flags):
    done = run(
        "train", "--start-from", start, "--teacher", teacher, "--text", text, "--out", out, "--json", *HEAL, *flags
    )
    return json.loads(done.stdout), done.stderr


def evaluations(directory):
    return [line for line in metrics(directory) if line["event"] == "evaluation"]


def test_a_converted_model_recovers(run, teacher, converted, text, tmp_path):
    result, said = heal(run, converted, teacher, text, tmp_path / "healed")

    def scored(model):
        part = ("--text", text, "--part", "validation", "--json", "--threads", 1)
        return json.loads(run("evaluate", model, *part).stdout)["loss"]

    assert result["start_loss"] == pytest.approx(scored(converted), rel=1e-6)
    assert result["teacher_loss"] == pytest.approx(scored(teacher), rel=1e-6)
    assert result["best_loss"] == pytest.approx(scored(tmp_path / "healed"), rel=1e-6)
    assert 0.3 < result["recovered"]
    gap = result["start_loss"] - result["teacher_loss"]
    assert gap > 0 and result["recovered"] == pytest.approx((result["start_loss"] - result["best_loss"]) / gap)
    curve = evaluations(tmp_path / "healed")
    assert [line["step"] for line in curve] == [0, 10, 20, 30, 40]
    assert curve[0]["loss"] == result["start_loss"] and "recovered" not in curve[0]
    assert curve[-1]["recovered"] == pytest.approx((result["start_loss"] - curve[-1]["loss"]) / gap)
    assert [line["loss"] for line in metrics(tmp_path / "healed") if line["event"] == "teacher"] == [result["teacher_loss"]]
    assert json.loads((tmp_path / "healed" / "result.json").read_text()) == result
    # Before the first step the losses of both are said, then how much is recovered.
    lines = said.splitlines()
    first = next(i for i, line in enumerate(lines) if "step 0: validation loss" in line)
    assert any("teacher: validation loss" in line for line in lines[:first])
    assert any("step 40: validation loss" in line and "recovered" in line for line in lines[first:])


def test_the_summary_says_what_was_recovered(run, teacher, converted, text, tmp_path):
    flags = ("--text", text, "--out", tmp_path / "healed", *HEAL)
    printed = run("train", "--start-from", converted, "--teacher", teacher, *flags).stdout
    assert "recovered    " in printed and "of the gap between the start (loss " in printed
    alone = run("train", "--start-from", converted, *flags, "--overwrite").stdout
    assert "recovered" not in alone
    assert evaluations(tmp_path / "healed")[0]["step"] == 0


def test_the_loss_is_shared(run, teacher, converted, text, tmp_path):
    heal(run, converted, teacher, text, tmp_path / "none", "--teacher-share", 0)
    heal(run, converted, teacher, text, tmp_path / "half", "--teacher-share", 0.5)
    run("train", "--start-from", converted, "--text", text, "--out", tmp_path / "alone", *HEAL)
    # A teacher without a share is only compared with: the run is the one without it.
    assert [x for x in losses(tmp_path / "none") if x[0] != "teacher"] == losses(tmp_path / "alone")
    assert losses(tmp_path / "half")[-1] != losses(tmp_path / "none")[-1]
    first = {name: next(line for line in metrics(tmp_path / name) if line["event"] == "step") for name in ("none", "half")}
    assert "plain_loss" not in first["none"]
    assert first["half"]["plain_loss"] == pytest.approx(first["none"]["loss"], rel=1e-4)
    assert first["half"]["loss"] < first["half"]["plain_loss"]


def test_of_itself_there_is_nothing_to_learn(run, teacher, text, tmp_path):
    flags = ("--teacher-share", 1, "--teacher-temperature", 2, "--teacher-hidden", 1, "--weight-decay", 0)
    result, said = heal(run, teacher, teacher, text, tmp_path / "same", *flags)
    steps = [line for line in metrics(tmp_path / "same") if line["event"] == "step"]
    # float32 keeps no more of two losses that cancel.
    assert all(abs(line["loss"]) < 1e-6 and line["plain_loss"] > 0 for line in steps[:1])
    assert "there is no gap to recover" in said and "recovered" not in result


def test_hidden_states_teach_too(run, teacher, converted, text, tmp_path):
    plain, _ = heal(run, converted, teacher, text, tmp_path / "plain")
    hidden, _ = heal(run, converted, teacher, text, tmp_path / "hidden", "--teacher-hidden", 1)
    first = {name: next(line for line in metrics(tmp_path / name) if line["event"] == "step") for name in ("plain", "hidden")}
    assert first["hidden"]["loss"] > first["plain"]["loss"]
    assert first["hidden"]["plain_loss"] == pytest.approx(first["plain"]["plain_loss"], rel=1e-5)


@pytest.mark.parametrize("dropout", [0, 0.1])
def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(run, program, teacher, converted, text, tmp_path, dropout):
    flags = ("--dropout", dropout, "--steps", 400, "--evaluate-every", 100, "--save-every", 5, "--average-last", 2)
    whole, _ = heal(run, converted, teacher, text, tmp_path / "whole", *flags)
    out = tmp_path / "parts"
    command = ("train", "--start-from", converted, "--teacher", teacher, "--text", text, "--out", out, *HEAL, *flags)
    stop_when([program, *command], lambda: len(list(out.glob("checkpoints/step-*"))) > 0, signal.SIGINT)
    resolved = yaml.safe_load((out / "resolved.yaml").read_text())
    assert resolved["distillation"]["teacher"] == str(teacher)
    (converted / "model.safetensors").unlink()  # is not needed any more; the teacher is
    result = json.loads(run("train", "--resume", "--out", out, "--json").stdout)
    assert losses(out) == losses(tmp_path / "whole") and weights(out) == weights(tmp_path / "whole")
    for name in ("start_loss", "teacher_loss", "recovered", "best_loss"):
        assert result[name] == whole[name]


def test_a_run_stopped_before_its_first_checkpoint_begins_its_curve_again(run, program, teacher, converted, text, tmp_path):
    out = tmp_path / "run"
    command = ("train", "--start-from", converted, "--teacher", teacher, "--text", text, "--out", out, *HEAL)
    flags = ("--steps", 1000, "--evaluate-every", 500, "--save-every", 1000)
    def evaluated():
        return any('"evaluation"' in path.read_text() for path in out.glob("metrics.jsonl"))

    stop_when([program, *command, *flags], evaluated, signal.SIGKILL)
    run("train", "--resume", "--out", out)
    assert [line["step"] for line in evaluations(out)] == [0, 500, 1000]
    assert sum(line["event"] == "teacher" for line in metrics(out)) == 1


def test_resuming_keeps_the_teacher(run, refused, teacher, converted, text, tmp_path):
    heal(run, converted, teacher, text, tmp_path / "run")
    message = refused(2, "train", "--resume", "--out", tmp_path / "run", "--teacher-share", 1, "--steps", 50)
    assert "--teacher-share" in message
    message = refused(2, "train", "--resume", "--out", tmp_path / "run", "--teacher", converted, "--steps", 50)
    assert "--teacher" in message


def test_from_scratch_with_the_shape_of_a_model(run, refused, teacher, converted, text, tmp_path):
    out = tmp_path / "scratch"
    flags = ("--text", text, "--out", out, "--json", *HEAL)
    result = json.loads(run("train", "--like", converted, *flags).stdout)
    assert "start_loss" not in result and [line["step"] for line in evaluations(out)][0] == 10
    values = json.loads(run("info", out, "--json").stdout)
    expected = json.loads(run("info", converted, "--json").stdout)
    assert values["options"] == expected["options"]
    assert (out / "checkpoints" / "best" / "tokenizer.json").read_bytes() == (converted / "tokenizer.json").read_bytes()
    healed, _ = heal(run, converted, teacher, text, tmp_path / "healed")
    assert healed["best_loss"] < result["best_loss"]
    taught = json.loads(run("train", "--like", converted, "--teacher", teacher, *flags, "--overwrite").stdout)
    assert taught["teacher_loss"] == healed["teacher_loss"] and "recovered" not in taught
    run("train", "--like", converted, "--tokenizer", "characters", *flags, "--overwrite")
    assert json.loads(run("info", out, "--json").stdout)["tokenizer"]["kind"] == "characters"
    message = refused(2, "train", "--like", converted, "--start-from", converted, *flags)
    assert "--start-from" in message and "--like" in message


def test_a_new_model_takes_the_teachers_tokenizer(run, teacher, text, tmp_path):
    small = ("--layers", 1, "--d-model", 8, "--heads", 1, "--context", 16)
    flags = ("--text", text, "--out", tmp_path / "small", *small, *HEAL, "--json")
    result = json.loads(run("train", "--teacher", teacher, *flags).stdout)
    assert result["teacher_loss"] > 0
    assert json.loads(run("info", tmp_path / "small", "--json").stdout)["tokenizer"]["kind"] == "bytes"


def test_masked_language_models(run, text, tmp_path):
    mlm = tmp_path / "mlm"
    run("train", "--text", text, "--out", mlm, *MASKED, "--steps", 150, "--learning-rate", 1e-2, "--vocabulary-size", 200)
    run("convert", mlm, tmp_path / "mqa", "--to", "mqa")
    result, said = heal(run, tmp_path / "mqa", mlm, text, tmp_path / "healed")
    assert result["teacher_loss"] < result["start_loss"]
    assert result["best_loss"] <= result["start_loss"] and "recovered" in result
    assert all("plain_loss" in line for line in metrics(tmp_path / "healed") if line["event"] == "step")


def test_what_cannot_teach_is_refused_before_anything_is_written(run, refused, teacher, converted, text, tmp_path):
    def refusal(*flags, code=2):
        out = tmp_path / "no"
        message = refused(code, "train", "--start-from", converted, "--text", text, "--out", out, *HEAL, *flags)
        assert not out.exists()
        return message

    assert "--teacher-share needs --teacher MODEL" in refusal("--teacher-share", 0.2)
    assert "--teacher-share" in refusal("--teacher", teacher, "--teacher-share", 1.5)
    assert "--teacher-temperature" in refusal("--teacher", teacher, "--teacher-temperature", 0)
    assert "nowhere" in refusal("--teacher", tmp_path / "nowhere")
    wide = tmp_path / "wide"
    run("train", "--text", text, "--out", wide, *TINY, "--d-model", 32, "--steps", 2)
    message = refusal("--teacher", wide, "--teacher-hidden", 1)
    assert "width 32" in message and "16" in message
    short = tmp_path / "short"
    run("train", "--text", text, "--out", short, *TINY, "--context", 8, "--steps", 2)
    message = refusal("--teacher", short)
    assert "positions for 8 tokens" in message and "context is 16" in message
    characters = tmp_path / "characters"
    run("train", "--text", text, "--out", characters, *TINY, "--tokenizer", "characters", "--steps", 2)
    message = refusal("--teacher", characters)
    assert "vocabulary" in message and "256" in message
    mlm = tmp_path / "mlm"
    run("train", "--text", text, "--out", mlm, *MASKED, "--steps", 2, "--vocabulary-size", 200)
    message = refusal("--teacher", mlm)
    assert "is an encoder" in message and "a decoder" in message


def test_a_replaced_teacher_is_noticed(run, refused, program, teacher, converted, text, tmp_path):
    out = tmp_path / "run"
    heal(run, converted, teacher, text, out, "--save-every", 10)
    noted = json.loads((out / "teacher.json").read_text())
    weights_file = teacher / "checkpoints" / "best" / "model.safetensors"
    kept = weights_file.read_bytes()
    weights_file.write_bytes(kept[:-4] + bytes(4))
    before = metrics(out)
    message = refused(1, "train", "--resume", "--out", out, "--steps", 50)
    assert "was begun with" in message and str(teacher) in message and metrics(out) == before
    weights_file.write_bytes(kept)
    run("train", "--resume", "--out", out, "--steps", 50)
    assert json.loads((out / "teacher.json").read_text()) == noted
    # A run that replaces this one has no such note of it.
    run("train", "--text", text, "--out", out, *TINY, "--steps", 2, "--overwrite")
    assert not (out / "teacher.json").exists()


def test_options_that_a_teacher_decides_are_not_ignored(run, refused, teacher, converted, text, tmp_path):
    small = ("--layers", 1, "--d-model", 8, "--heads", 1, "--context", 16)
    new = ("train", "--teacher", teacher, "--text", text, "--out", tmp_path / "no", *small, *HEAL)
    like = ("train", "--like", converted, "--teacher", teacher, "--text", text, "--out", tmp_path / "no", *HEAL)
    compared = ("compare", "--teacher", teacher, "--text", text, "--schemes", "mha,mqa", "--out", tmp_path / "no")
    for command in (new, like, compared):
        message = refused(2, *command, "--tokenizer", "words")
        assert "--tokenizer is words and the teacher's is bytes; leave --tokenizer out" in message
    assert not (tmp_path / "no").exists()
    said = run(*new, "--tokenizer", "bytes", "--vocabulary-size", 300, "--dry-run").stderr
    assert "--vocabulary-size 300 is about new tokenizers and does nothing here" in said


def test_like_must_be_a_model_of_the_task(refused, teacher, converted, text, tmp_path):
    message = refused(2, "train", "--like", converted, "--task", "mlm", "--text", text, "--out", tmp_path / "no", *HEAL)
    assert "--task is mlm" in message and "is a model of --task language-model; leave --task out" in message


def test_a_teacher_that_is_nowhere_is_a_mistake_of_the_call(refused, text, tmp_path):
    flags = ("--teacher", tmp_path / "nowhere", "--text", text, "--out", tmp_path / "no", *HEAL)
    assert "nowhere" in refused(2, "train", *flags)


def test_a_run_is_stopped_while_its_teacher_is_evaluated(run, program, teacher, converted, tmp_path):
    long = tmp_path / "long.txt"
    long.write_bytes(sentences(3_000_000))
    out = tmp_path / "run"
    command = ("train", "--start-from", converted, "--teacher", teacher, "--text", long, "--out", out, *HEAL)
    process = stop_when([program, *command, "--validation-fraction", 0.9], (out / "resolved.yaml").exists, signal.SIGINT)
    assert "stopped before the first step" in process.said and "--resume" in process.said
    assert not (out / "checkpoints").exists()


def test_a_new_run_must_not_replace_the_model_it_is_like(refused, teacher, converted, text):
    message = refused(2, "train", "--like", teacher, "--text", text, "--out", teacher, "--overwrite", *HEAL)
    assert "--like" in message and "lies in --out" in message
    assert (teacher / "checkpoints" / "best" / "model.safetensors").exists()


def test_the_run_must_not_replace_its_teacher(run, refused, teacher, converted, text):
    message = refused(
        2, "train", "--start-from", converted, "--teacher", teacher, "--text", text, "--out", teacher, "--overwrite", *HEAL
    )
    assert "--teacher" in message and "lies in --out" in message
    assert (teacher / "checkpoints" / "best" / "model.safetensors").exists()


def test_a_dry_run_names_the_teacher(run, teacher, converted, text, tmp_path):
    printed = run("train", "--start-from", converted, "--teacher", teacher, "--text", text, "--dry-run").stdout
    assert "teacher     " in printed and str(teacher) in printed and "parameters" in printed


def test_a_comparison_is_distilled(run, refused, teacher, text, tmp_path):
    out = tmp_path / "comparison"
    small = ("--layers", 1, "--d-model", 16, "--heads", 2, "--context", 16, "--batch-size", 4, "--positions", "learned")
    flags = ("--text", text, "--schemes", "mha,sha", *small, "--steps", 8, "--seeds", 1, "--threads", 1)
    results = json.loads(run("compare", *flags, "--teacher", teacher, "--out", out, "--json").stdout)
    alone = tmp_path / "alone"
    plain = json.loads(run("compare", *flags, "--tokenizer", "bytes", "--out", alone, "--json").stdout)
    assert results["options"]["teacher"] == str(teacher)
    assert [cell["validation_loss"] for cell in results["cells"]] != [cell["validation_loss"] for cell in plain["cells"]]
    taught = f"Every model also learns from {teacher} (share 0.5, T 1); training speed and peak memory include it."
    assert taught in results["subject"]["sentence"] and taught in (out / "report.html").read_text()
    assert "learns from" not in plain["subject"]["sentence"]
    # A comparison must not replace the teacher, nor go on with another one.
    cell = out / "cells" / "mha-seed0"
    message = refused(2, "compare", *flags, "--teacher", cell, "--out", out, "--overwrite")
    assert "--teacher" in message and "lies in --out" in message and (cell / "cell.json").exists()
    weights_file = teacher / "checkpoints" / "best" / "model.safetensors"
    weights_file.write_bytes(weights_file.read_bytes()[:-4] + bytes(4))
    message = refused(1, "compare", "--resume", "--out", out, "--seeds", 2)
    assert "was begun with" in message and not (out / "cells" / "mha-seed1").exists()
    message = refused(2, "compare", "--task", "dyck", "--teacher", teacher, "--out", tmp_path / "no")
    assert "--teacher is about text" in message

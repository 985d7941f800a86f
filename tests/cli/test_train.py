"""Tests train: a model from text, stopped in every way and gone on with, and what it refuses."""

import fcntl
import gzip
import json
import math
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys

import pytest
from conftest import run_command
from training import (  # noqa: F401 (two fixtures)
    TINY,
    bad_options,
    bad_texts,
    lines_in,
    losses,
    metrics,
    one_line_error,
    own_cache,
    sentences,
    stop_when,
    text,
    weights,
    words,
)


def result(run, *arguments, **options):
    return json.loads(run("train", "--json", *arguments, **options).stdout)


def test_train_evaluate_generate_info(run, text, tmp_path):
    out = tmp_path / "run"
    trained = result(run, *TINY, "--text", text, "--out", out, "--steps", 150, "--learning-rate", 0.01, "--test-fraction", 0.1)
    assert trained["steps"] == 150 and trained["tokens"] == 150 * 4 * 16
    first, *_ = losses(out)
    assert first[2] == pytest.approx(math.log(256), abs=0.3)
    assert trained["best_loss"] < 4
    assert json.loads((out / "result.json").read_text()) == trained

    scored = json.loads(
        run("evaluate", out, "--json", "--threads", 1, "--text", text, "--part", "test", "--test-fraction", 0.1).stdout
    )
    assert scored["loss"] == pytest.approx(trained["test_loss"], rel=1e-5)
    assert trained["test_perplexity"] == pytest.approx(math.exp(trained["test_loss"]))
    [sample] = [json.loads(line) for line in run("generate", out, "--prompt", "The ", "--max-new-tokens", 5, "--json").stdout.splitlines()]
    assert len(sample["tokens"]) == 5
    about = json.loads(run("info", out, "--json").stdout)
    assert about["options"]["d-model"] == 16 and about["tokenizer"]["kind"] == "bytes"

    # A run from the configuration it wrote gives the same again.
    again = tmp_path / "again"
    run("train", "--config", out / "resolved.yaml", "--out", again)
    assert weights(again) == weights(out) and losses(again) == losses(out)


@pytest.mark.slow
def test_bf16_follows_the_loss_curve_of_fp32(run, text, tmp_path):
    """Trains 150 steps at a high rate: both losses fall by a third and, never more than 3 % apart (1.8 % when written),
    tell one story."""
    curves = {}
    for precision in ("fp32", "bf16"):
        out = tmp_path / precision
        trained = result(
            run, *TINY, "--text", text, "--out", out, "--steps", 150, "--learning-rate", 0.01, "--precision", precision
        )
        assert trained["precision"] == precision
        assert f"precision: {precision}" in (out / "resolved.yaml").read_text()
        curves[precision] = [line["loss"] for line in metrics(out) if line["event"] == "step"]
    fp32, bf16 = curves["fp32"], curves["bf16"]
    assert fp32 != bf16 and fp32[-1] < 0.67 * fp32[0]
    assert bf16 == pytest.approx(fp32, rel=0.03)


def test_precision_auto_is_what_the_processor_is_good_at(run, text, tmp_path):
    out = tmp_path / "auto"
    chosen = result(run, *TINY, "--text", text, "--out", out, "--steps", 1, "--precision", "auto")["precision"]
    cpu = set(open("/proc/cpuinfo").read().split())
    pays = {"amx_bf16", "bf16"} | (set() if "GenuineIntel" in cpu else {"avx512_bf16"})
    assert chosen == ("bf16" if cpu & pays else "fp32")
    assert f"precision: {chosen}" in (out / "resolved.yaml").read_text()


def test_products_of_three(run, text, tmp_path):
    """Losses are nearly those of fp32; where the processor has no AMX they are those."""
    amx = "amx_bf16" in open("/proc/cpuinfo").read().split()
    curves = {}
    for precision in ("fp32", "bf16x3"):
        out = tmp_path / precision
        words = ["train", *TINY, "--d-model", 128, "--heads", 4, "--context", 64, "--batch-size", 8, "--text", text, "--out", out]
        done = run(*words, "--steps", 12, "--precision", precision)
        computed = precision if amx else "fp32"
        assert f"precision: {computed}" in (out / "resolved.yaml").read_text()
        assert ("this computes in fp32" in done.stderr) == (computed != precision)
        curves[precision] = [line["loss"] for line in metrics(out) if line["event"] == "step"]
    assert (curves["bf16x3"] != curves["fp32"]) == amx
    assert curves["bf16x3"] == pytest.approx(curves["fp32"], rel=1e-3)


PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_bytes(program, *arguments):
    """Returns the most memory that the program held at once; a small process asks for it, because a child begins with
    its parent's."""
    done = run_command([sys.executable, "-c", PEAK, program, *arguments])
    return int(done.stdout) * 1024


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--precision", "bf16"], ["--precision", "bf16x3"], ["--activation-checkpointing"]],
                         ids=["fp32", "bf16", "bf16x3", "recomputed"])  # fmt: skip
def test_memory_is_what_a_dry_run_says(program, run, text, tmp_path, flags):
    """Expects the estimate to be right within a third; where blocks are recomputed freed memory is used again, so that
    a third of it is enough."""
    model = ["--layers", 8, "--d-model", 256, "--heads", 4, "--context", 128, "--batch-size", 16, "--tokenizer", "bytes"]
    command = ["train", "--text", text, "--steps", 2, "--evaluate-every", 2, "--evaluation-tokens", 300, "--overwrite"]
    small = peak_bytes(program, *command, *TINY, "--out", tmp_path / "tiny")
    said = run(*command, *model, *flags, "--out", tmp_path / "run", "--dry-run").stdout
    estimate = float(re.search(r"steps, about ([\d.]+) MiB", said).group(1)) * 2**20
    measured = peak_bytes(program, *command, *model, *flags, "--out", tmp_path / "run") - small
    assert measured == pytest.approx(estimate, rel=0.33)
    if "--activation-checkpointing" in flags:
        assert measured < 180 * 2**20


def test_what_is_printed_and_written(run, text, tmp_path):
    out = tmp_path / "run"
    done = run("train", *TINY, "--text", text, "--out", out, "--steps", 6, "--evaluate-every", 3)
    assert "trained      6 steps, " in done.stdout and "validation   loss" in done.stdout and "test " not in done.stdout
    assert str(out) in done.stdout and "\r" not in done.stderr
    lines = metrics(out)
    steps = [line for line in lines if line["event"] == "step"]
    assert [line["step"] for line in steps] == [1, 2, 3, 4, 5, 6]
    assert all(
        line.keys() >= {"loss", "learning_rate", "gradient_norm", "tokens", "tokens_per_second", "epochs", "seconds"}
        for line in steps
    )
    evaluations = [line for line in lines if line["event"] == "evaluation"]
    assert [line["step"] for line in evaluations] == [3, 6]
    assert evaluations[0]["perplexity"] == pytest.approx(math.exp(evaluations[0]["loss"]))
    assert evaluations[0]["best"] is True

    [events] = out.glob("events.out.tfevents.*")
    content, records = events.read_bytes(), 0
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        content = content[8 + 4 + length + 4 :]
        records += 1
    assert records == 1 + 6 + 2  # the version, steps, evaluations
    bare = tmp_path / "bare"
    run("train", *TINY, "--text", text, "--out", bare, "--steps", 1, "--no-tensorboard")
    assert not list(bare.glob("events*"))


def test_dry_run(run, refused, tmp_path):
    printed = run("train", *TINY, "--text", tmp_path / "unread", "--out", tmp_path / "out", "--dry-run").stdout
    assert "parameters" in printed and "vocabulary  256" in printed
    assert not (tmp_path / "out").exists()
    assert "7" in refused(2, "train", "--heads", 7, "--d-model", 64, "--dry-run")


# These options have dropout, windows in a new order each epoch (42 steps), averages, and checkpoints that are not where
# the evaluations are.
LONG = [*TINY, "--steps", 400, "--dropout", 0.1, "--attention-dropout", 0.1, "--batch-order", "shuffled"]
LONG += ["--accumulation", 2, "--ema-decay", 0.9, "--evaluate-every", 90, "--save-every", 70, "--average-last", 2]


# A batch that is large enough is shared between 2 threads.
SHARED = ["--threads", 2, "--batch-size", 16, "--steps", 150, "--evaluate-every", 31, "--save-every", 35]
# Layers that share their parameters, each with dropout masks of its own.
ALBERT = ["--layers", 4, "--layer-groups", 2, "--embedding-width", 6, "--steps", 150]


@pytest.mark.slow
@pytest.mark.parametrize("more, steps", [([], 400), (SHARED, 150), (ALBERT, 150)], ids=["1 thread", "2 threads", "shared layers"])
def test_killed_runs_go_on_to_the_same_last_bit(run, program, text, tmp_path, more, steps):
    arguments = [*LONG, *more, "--text", text]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run("train", *arguments, "--out", whole)
    # The first moment is before any checkpoint; the moments differ from run to run, so they are printed. They are so
    # far from the end that the run is still there when a busy machine delivers the signal.
    moments = [5, *sorted(random.randrange(steps // 4, steps * 2 // 3) for _ in range(2))]
    command = [program, "train", *arguments, "--out", killed]
    for moment in moments:
        stop_when(command, lambda: lines_in(killed / "metrics.jsonl") >= moment, signal.SIGKILL)
        command = [program, "train", "--resume", "--out", killed]
    done = run("train", "--resume", "--out", killed)
    assert "going on after step " in done.stderr
    assert weights(killed) == weights(whole), moments
    assert losses(killed) == losses(whole), moments
    assert not list(killed.rglob("*.partial*"))


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(run, program, text, tmp_path):
    arguments = [*LONG, "--text", text]
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    run("train", *arguments, "--out", whole)
    for number, moment in ((signal.SIGINT, 30), (signal.SIGTERM, 150)):
        command = [program, "train", *(["--resume"] if stopped.exists() else arguments), "--out", stopped]
        process = stop_when(command, lambda: lines_in(stopped / "metrics.jsonl") >= moment, number)
        assert process.printed == ""
        assert f"; continue with: headshare train --resume --out {stopped}" in process.said
        step = int(process.said.split("stopped after step ")[1].split()[0])
        state = json.loads((stopped / "checkpoints/last/training.json").read_text())
        assert state["step"] == step >= moment - 10
    run("train", "--resume", "--out", stopped)
    assert weights(stopped) == weights(whole)
    assert losses(stopped) == losses(whole)


def test_resuming_a_finished_run_changes_nothing(run, text, tmp_path):
    out = tmp_path / "run"
    first = result(run, *TINY, "--text", text, "--out", out, "--steps", 10)
    before = weights(out), losses(out)
    assert result(run, "--resume", "--out", out)["best_loss"] == first["best_loss"]
    assert (weights(out), losses(out)) == before
    # A run may get more steps than it was begun with.
    assert result(run, "--resume", "--out", out, "--steps", 14)["steps"] == 14
    assert [step for event, step, _ in losses(out) if event == "step"] == [*range(1, 15)]


def test_other_steps_than_a_run_began_with_are_another_schedule(run, text, tmp_path):
    def resumed(name, steps, *schedule):
        run("train", *TINY, "--text", text, "--out", tmp_path / name, "--steps", 10, *schedule)
        return run("train", "--resume", "--out", tmp_path / name, "--steps", steps).stderr

    said = " ".join(resumed("cosine", 14).split())
    assert "note: the run was begun with --steps 10 and goes on with 14: its 10 steps so far had other learning rates" in said
    assert "begun with" not in run("train", "--resume", "--out", tmp_path / "cosine").stderr, "14 are its own by now"
    flat = ("--schedule", "constant", "--warmup-steps", 2)
    assert "begun with" not in resumed("constant", 14, *flat)
    assert "begun with" not in resumed("the same", 10)


def test_a_directory_in_use(run, refused, text, tmp_path):
    out = tmp_path / "run"
    arguments = [*TINY, "--text", text, "--out", out, "--steps", 2]
    one_line_error(refused(2, "train", "--resume", "--out", out), out, "nothing to resume")
    assert not out.exists()
    run("train", *arguments)
    before = weights(out)
    one_line_error(refused(1, "train", *arguments), out, "--resume", "--overwrite")
    one_line_error(refused(2, "train", *arguments, "--resume", "--overwrite"), "exclude each other")
    one_line_error(refused(2, "train", "--resume", "--out", out, "--config", out / "resolved.yaml"), "--config")
    # Files that --overwrite would delete stay when the call fails.
    refused(1, "train", *arguments, "--overwrite", "--text", tmp_path / "typo")
    refused(1, "train", *arguments, "--overwrite", "--stride", 17)
    assert weights(out) == before
    run("train", *arguments, "--overwrite", "--steps", 3)
    assert [step for event, step, _ in losses(out) if event == "step"] == [1, 2, 3]
    assert result(run, "--resume", "--out", out)["steps"] == 3  # --overwrite is not remembered
    with open(out / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        one_line_error(refused(1, "train", "--resume", "--out", out), out, "in use")
    file = tmp_path / "file"
    file.touch()
    one_line_error(refused(1, "train", *TINY, "--text", text, "--out", file), file)
    one_line_error(refused(2, "train", *TINY, "--text", text), "--out")


def test_resuming_on_other_text_is_refused(run, refused, text, tmp_path):
    out = tmp_path / "run"
    run("train", *TINY, "--text", text, "--out", out, "--steps", 2)
    text.write_bytes(sentences(5000))
    one_line_error(refused(1, "train", "--resume", "--out", out), "other text")


def test_resuming_asks_for_all_that_the_run_began_with(run, refused, text, tmp_path):
    """Asks for every option of resolved.yaml, every part of the data, the verb; and the run keeps its number of
    threads."""
    out, judged = tmp_path / "run", [tmp_path / "validation.txt", tmp_path / "test.txt"]
    for seed, path in enumerate(judged):
        path.write_bytes(sentences(3000)[seed * 1000 :])
    parts = ("--validation-text", judged[0], "--test-text", judged[1])
    bare = [word for word in TINY if word != "--threads"][:-3] + TINY[-2:]  # without --threads 1
    run("train", *bare, "--text", text, *parts, "--out", out, "--steps", 2, "--learning-rate", 0.01, env={"OMP_NUM_THREADS": "1"})
    resolved = out / "resolved.yaml"
    whole = resolved.read_text()
    assert "threads: 1\n" in whole
    for path in judged:
        before = path.read_bytes()
        path.write_bytes(before[:-40])
        one_line_error(refused(1, "train", "--resume", "--out", out), f"another {path.stem} part", "start a new run")
        path.write_bytes(before)
    resolved.write_text(whole[: whole.index("  learning-rate:")])
    one_line_error(refused(2, "train", "--resume", "--out", out), "cut short", "lacks learning-rate, ", "and shard-optimizer")
    assert "learning-rate" not in resolved.read_text(), "nothing is written back"
    resolved.write_text(whole)
    for verb in ("finetune", "compare"):
        one_line_error(refused(2, verb, "--resume", "--out", out), "holds what `headshare train` wrote", "train --resume")
    done = run("train", "--resume", "--out", out, "--steps", 3, "--threads", 2)
    assert "begun with --threads 1 and goes on with 2" in done.stderr and "threads: 2\n" in resolved.read_text()


@pytest.mark.parametrize("what", sorted({*bad_options(""), "empty", "binary", "invalid UTF-8", "directory without text"}))
def test_bad_input(refused, text, tmp_path, what):
    arguments, code, expected = {**bad_texts(tmp_path), **bad_options(text)}[what]
    out = tmp_path / "out"
    one_line_error(refused(code, "train", *TINY, *arguments, "--out", out), *expected)
    assert not out.exists()
    assert not list(tmp_path.rglob("*.partial*"))


@pytest.mark.parametrize("what", ["missing", "shorter than a context", "not gzip", "another field", "no text"])
def test_more_bad_input(refused, tmp_path, what):
    arguments, code, expected = bad_texts(tmp_path)[what]
    one_line_error(refused(code, "train", *TINY, *arguments, "--out", tmp_path / "out"), *expected)
    assert not (tmp_path / "out").exists()


def test_a_typing_mistake_in_a_configuration(refused, text, tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(f"text: [{text}]\nmodel:\n  laeyrs: 3\n")
    one_line_error(refused(2, "train", "--config", path, "--out", tmp_path / "out"), f"{path}:3", "did you mean 'layers'?")


def test_invalid_utf8_is_bytes_for_the_byte_tokenizer(run, tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes(bytes(byte for byte in range(1, 256)) * 8)
    out = tmp_path / "run"
    assert result(run, *TINY, "--text", path, "--out", out, "--steps", 2)["steps"] == 2
    replaced = tmp_path / "replaced"
    run("train", *TINY, "--tokenizer", "characters", "--invalid-utf8", "replace", "--text", path, "--out", replaced, "--steps", 1)
    assert "\ufffd" in json.dumps(json.loads((replaced / "checkpoints/best/tokenizer.json").read_text()), ensure_ascii=False) or (
        65533 in json.loads((replaced / "checkpoints/best/tokenizer.json").read_text()).get("code-points", [65533])
    )


def limited(program, limit, *arguments):
    """Runs the program with files of at most `limit` bytes: a full disk, for root too."""

    def no_space():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    return subprocess.run(words(program, *arguments), capture_output=True, text=True, timeout=120, preexec_fn=no_space)


# The settings take about 24,000 bytes, a model 31,888, the optimizer's state 65,704.
@pytest.mark.parametrize("limit", [10, 28000, 40000])
def test_a_full_disk(run, program, text, tmp_path, limit):
    """Fills the disk at the token cache, the best model, the optimizer's state: whatever does not fit, nothing
    half-written is left."""
    arguments = [*TINY, "--text", text, "--steps", 20, "--evaluate-every", 5]
    whole, full = tmp_path / "whole", tmp_path / "full"
    if limit > 10:
        run("train", *arguments, "--out", whole)
    done = limited(program, limit, "train", *arguments, "--out", full)
    assert done.returncode == 1 and done.stdout == ""
    error = done.stderr.splitlines()[-1]
    assert error.startswith("error: cannot write") and "File too large" in error and str(tmp_path) in error
    assert not list(tmp_path.rglob("*.partial*"))
    if limit == 10:
        assert not full.exists()
    else:
        run("train", "--resume", "--out", full)
        assert weights(full) == weights(whole) and losses(full) == losses(whole)


def test_truncated_checkpoints(run, refused, text, tmp_path):
    out = tmp_path / "run"
    run("train", *TINY, "--text", text, "--out", out, "--steps", 2)
    path = (out / "checkpoints/best").resolve() / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "model.safetensors" in refused(1, "evaluate", out, "--text", text)
    path.write_bytes(whole)
    state = (out / "checkpoints/last").resolve() / "training.json"
    state.write_text(state.read_text()[:50])
    done = run("train", "--resume", "--out", out)
    assert "going on from" in done.stderr and "training.json" in done.stderr and "after step 1 of 2" in done.stderr
    # The model itself is whole, and so is the checkpoint before.
    assert run("evaluate", out, "--text", text).stdout


@pytest.mark.slow
def test_the_same_text_in_every_form(run, refused, text, tmp_path):
    arguments = [*TINY, "--steps", 3]
    plain = tmp_path / "plain"
    run("train", *arguments, "--text", text, "--out", plain)
    packed = tmp_path / "text.txt.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    records = tmp_path / "text.jsonl"
    records.write_text(json.dumps({"body": text.read_text()}) + "\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(text, folder)
    forms = {
        "gz": (["--text", packed], {}),
        "jsonl": (["--text", records, "--jsonl-field", "body"], {}),
        "folder": (["--text", folder], {}),
        "stdin": (["--text", "-"], {"text_in": text.read_text()}),
    }
    for name, (source, options) in forms.items():
        run("train", *arguments, *source, "--out", tmp_path / name, **options)
        assert weights(tmp_path / name) == weights(plain), name
    done = run("train", "--resume", "--out", tmp_path / "stdin", "--steps", 4)
    assert "going on after step 3 of 4" in done.stderr
    for kind in ("bytes", "characters"):
        one_line_error(
            refused(1, "train", *arguments, "--tokenizer", kind, "--text", "-", "--out", tmp_path / "none"),
            "standard input is empty",
        )


def test_text_of_its_own_for_each_part(run, refused, text, tmp_path):
    held_out = tmp_path / "held_out.txt"
    held_out.write_bytes(sentences(500))
    trained = result(
        run, *TINY, "--text", text, "--validation-text", held_out, "--out", tmp_path / "run", "--steps", 2
    )
    assert metrics(tmp_path / "run")[-1]["targets"] == 499 and "test_loss" not in trained
    message = refused(1, "train", *TINY, "--text", text, "--validation-text", text, "--out", tmp_path / "no", "--steps", 2)
    one_line_error(message, text, "both")
    none = result(run, *TINY, "--text", text, "--validation-fraction", 0, "--out", tmp_path / "none", "--steps", 2)
    assert none["best_model"] == "" and run("info", tmp_path / "none").stdout


def test_a_loss_that_is_not_finite(run, text, tmp_path):
    out = tmp_path / "run"
    done = run(
        *["train", *TINY, "--text", text, "--out", out, "--steps", 50, "--schedule", "constant", "--warmup-steps", 0],
        *["--learning-rate", 1e20, "--save-every", 1, "--validation-fraction", 0],
        check=False,
    )
    assert done.returncode == 1
    error = done.stderr.splitlines()[-1]
    assert error.startswith("error: the ") and "became" in error and "--learning-rate" in error
    assert str(out / "checkpoints" / "step-0000000") in error


def test_early_stopping(run, text, tmp_path):
    out = tmp_path / "run"
    arguments = ["--steps", 50, "--evaluate-every", 2, "--patience", 3, "--learning-rate", 1e-30]
    trained = result(run, *TINY, "--text", text, "--out", out, *arguments)
    assert trained["stopped_early"] and trained["steps"] == 8 and trained["best_step"] == 2
    assert result(run, "--resume", "--out", out)["steps"] == 8


def test_activation_checkpointing_changes_nothing(run, text, tmp_path):
    arguments = [*TINY, "--text", text, "--steps", 5, "--dropout", 0.2]
    run("train", *arguments, "--out", tmp_path / "kept")
    run("train", *arguments, "--out", tmp_path / "recomputed", "--activation-checkpointing")
    assert losses(tmp_path / "recomputed") == losses(tmp_path / "kept")


def test_el_refuses_rotary_positions(refused, text, tmp_path):
    message = refused(2, "train", *TINY, "--scheme", "el_shared", "--positions", "rotary", "--text", text, "--out", tmp_path / "o")
    one_line_error(message, "el_shared", "rotary")


def test_a_moving_average_without_validation_text_is_kept_as_a_model(run, text, tmp_path):
    out = tmp_path / "out"
    run("train", *TINY, "--steps", 5, "--validation-fraction", 0, "--ema-decay", 0.5, "--text", text, "--out", out)
    average, last = (out / "checkpoints" / name / "model.safetensors" for name in ("average", "last"))
    assert average.read_bytes() != last.read_bytes()
    assert "average" in run("info", out).stdout.splitlines()[0]

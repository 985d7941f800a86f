"""Tests compare: the table, results.json, comparisons that are killed, and what is left out or refused."""

import json
import math
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
from training import (  # noqa: F401 (two fixtures)
    TINY,
    at_work,
    bad_options,
    bad_texts,
    lines_in,
    one_line_error,
    own_cache,
    stop_when,
    text,
    without_times,
    words,
)

pytestmark = pytest.mark.slow


def compare(run, *arguments, **options):
    return json.loads(run("compare", "--json", *TINY, *arguments, **options).stdout)


def rows_of(results):
    return {row["scheme"]: row for row in results["rows"]}


def cells_of(results):
    return [(cell["variant"], cell["seed"]) for cell in results["cells"]]


def test_results(run, text, tmp_path):
    out = tmp_path / "out"
    arguments = ["--schemes", "sha,mha,el_lossless", "--seeds", 2, "--seed", 5, "--steps", 20, "--text", text, "--out", out]
    results = compare(run, *arguments)
    assert json.loads((out / "results.json").read_text()) == results
    assert results["format"] == "headshare comparison" and results["format_version"] == 3 and results["complete"]
    assert results["environment"]["torch"] and results["options"]["steps"] == 20
    assert results["command"].startswith("headshare compare --json") and str(out) in results["command"]
    assert cells_of(results) == [(scheme, seed) for seed in (5, 6) for scheme in ("mha", "sha", "el_lossless")]
    rows = rows_of(results)
    assert list(rows) == ["mha", "sha", "el_lossless"]
    mha, sha, el = rows.values()
    cells = [cell["quality"] for cell in results["cells"] if cell["variant"] == "sha"]
    assert sha["quality"]["mean"] == pytest.approx(sum(cells) / 2)
    assert sha["prr"]["value"] == pytest.approx(100 * (2 - sha["quality"]["mean"] / mha["quality"]["mean"]))
    growth = mha["attention_parameters"] / sha["attention_parameters"] - 1
    assert mha["peop"]["value"] == pytest.approx((1 - mha["quality"]["mean"] / sha["quality"]["mean"]) / growth)
    assert sha["peop"]["value"] is None and sha["peop"]["reason_undefined"]
    assert mha["prr"]["value"] == 100 and mha["prr"]["interval"] is None  # two seeds may agree by luck
    assert sha["minus_reference"]["mean"] == pytest.approx(sha["test_loss"]["mean"] - mha["test_loss"]["mean"])
    # el_lossless is mha with another cache.
    assert el["quality"]["mean"] == pytest.approx(mha["quality"]["mean"], rel=1e-6) and el["trained"] is False
    assert el["prr"]["value"] == pytest.approx(100, abs=1e-4)
    assert 2 * el["cache_elements_per_token"] == mha["cache_elements_per_token"] == 32

    # The figures are those of the best checkpoint on the test part.
    cell = results["cells"][0]
    scored = run(
        *["evaluate", out / cell["model"], "--json", "--threads", 1, "--text", text],
        *["--part", "test", "--test-fraction", 0.1],
    )
    assert json.loads(scored.stdout)["loss"] == pytest.approx(cell["test_loss"], rel=1e-5)
    assert cell["quality"] == pytest.approx(math.exp(cell["test_loss"]))
    assert cell["peak_memory_bytes"] > 50e6 and cell["attention_memory_bytes"] > 0 and cell["decoding_context"] == 16
    assert {path.name for path in out.iterdir()} > {"results.json", "results.csv", "cells.csv", "report.html", "resolved.yaml"}

    # --json is not remembered.
    table = run("compare", "--resume", "--out", out).stdout
    assert "PEoP" in table and "over" in table
    for row in ("mha", "sha", "el_lossless"):
        assert any(line.startswith(row) for line in table.splitlines())
    assert "as mha" in table and all(len(line) <= 80 for line in table.splitlines())
    assert el["peak_memory_bytes"] is None and el["training_tokens_per_second"] is None
    cost = " ".join(line for line in table[table.index("Cost") :].splitlines() if line.startswith("el_lossless"))
    assert cost.count("as mha") == 3 and el["decoding_tokens_per_second"] > 0
    # The command is the one that made the models.
    assert json.loads((out / "results.json").read_text())["command"] == results["command"]


def test_a_killed_comparison_goes_on_to_the_same_results(run, program, text, tmp_path):
    arguments = [*TINY, "--schemes", "mha,mhe_mul", "--seeds", 2, "--steps", 150, "--save-every", 40, "--dropout", 0.1]
    arguments += ["--text", text, "--out", "out"]  # relative: the results name the models
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    run("compare", *arguments, cwd=whole)
    cells = killed / "out" / "cells"
    # The comparison is killed in the first model before its first checkpoint, in the second after one, and at the start
    # of the last.
    moments = [("mha-seed0", 5), ("mhe_mul-seed0", 90), ("mhe_mul-seed1", 1)]
    command = [program, "compare", *arguments, "--overwrite"]
    for cell, lines in moments:
        stop_when(command, lambda: lines_in(at_work(killed / "out", cell) / "metrics.jsonl") >= lines, signal.SIGKILL, cwd=killed)
        command = [program, "compare", "--resume", "--out", "out"]
    finished = {path: path.stat().st_mtime_ns for path in cells.glob("*/cell.json")}
    assert len(finished) == 3
    # Results found so far can be looked at.
    partial = json.loads((killed / "out" / "results.json").read_text())
    assert not partial["complete"] and len(partial["cells"]) == 3 and len(partial["planned"]) == 4
    done = run("compare", "--resume", "--out", "out", cwd=killed)
    assert "3 of 4 models were finished before" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    results = [json.loads((folder / "out" / "results.json").read_text()) for folder in (whole, killed)]
    assert without_times(results[0]) == without_times(results[1])
    # Another call trains nothing.
    again = run("compare", "--resume", "--out", "out", cwd=killed)
    assert "4 of 4 models were finished before" in again.stderr


def test_ctrl_c(run, program, text, tmp_path):
    out = tmp_path / "out"
    arguments = [*TINY, "--schemes", "mha,mqa", "--steps", 150, "--text", text, "--out", out]
    ready = lambda: lines_in(at_work(out, "mqa-seed0") / "metrics.jsonl") >= 10  # noqa: E731
    process = stop_when([program, "compare", *arguments], ready, signal.SIGINT)
    assert f"; continue with: headshare compare --resume --out {out}" in process.said
    assert (at_work(out, "mqa-seed0") / "checkpoints/last").exists()
    assert not json.loads((out / "results.json").read_text())["complete"]
    assert "1 of 2 models were finished before" in run("compare", "--resume", "--out", out).stderr


def test_models_of_a_plan_are_trained_one_by_one_and_gathered(run, refused, tmp_path):
    flags = [*TINY[:6], "--batch-size", 4, "--threads", 1, "--task", "offsets", "--schemes", "mha,el_lossless", "--steps", 20]
    whole = json.loads(run("compare", *flags, "--out", tmp_path / "whole", "--json").stdout)
    plan = tmp_path / "a plan"
    planned = json.loads(run("compare", *flags, "--plan", plan, "--json").stdout)
    assert (planned["directory"], planned["cells"], planned["unfinished"]) == (str(plan), 2, [0, 1])
    assert not (plan / "cells").exists()
    early = run("cell", plan, 1, check=False, cwd=tmp_path)
    assert early.returncode == 75 and "needs the weights of mha-seed0, which is not finished" in early.stderr
    run("cell", "a plan", 0, "--plan-id", planned["plan_id"], "--quiet", cwd=tmp_path)
    left = run("compare", "--resume", "--plan", plan).stdout
    assert "2 models planned, 1 to be trained" in left and "INDEX is 1:" in " ".join(left.split())
    assert f"headshare cell '{plan}' INDEX" in left
    for _ in range(2):
        run("cell", plan, 1)
    one_line_error(refused(1, "cell", plan, 2), "there is no cell 2", "has the cells 0 to 1")
    one_line_error(refused(2, "cell", plan, "two"), "INDEX", "two")
    one_line_error(refused(2, "compare", *flags, "--plan", plan, "--out", plan), "leave --out out")
    one_line_error(refused(2, "compare", *flags, "--workers", "locl:2", "--out", plan), "did you mean 'local'?")
    results = json.loads(run("compare", "--resume", "--out", plan, "--workers", "local:2", "--json").stdout)
    assert without_times(results) == without_times(whole)
    assert results["cells"][0]["machine"]["threads"] == 1


def children(process):
    return [int(child) for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def test_a_crash_costs_one_cell(run, program, text, tmp_path):
    out = tmp_path / "out"
    arguments = [*TINY, "--schemes", "mha,mqa,sha", "--steps", 400, "--text", text, "--out", out]
    process = subprocess.Popen(
        words(program, "compare", *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and lines_in(at_work(out, "mqa-seed0") / "metrics.jsonl") < 5:
        time.sleep(0.002)
    (child,) = children(process)
    os.kill(child, signal.SIGKILL)
    printed, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "2/3 mqa seed 0 failed: its process was ended by signal 9" in said
    results = json.loads((out / "results.json").read_text())
    assert cells_of(results) == [("mha", 0), ("sha", 0)] and results["complete"]
    assert [failed["variant"] for failed in results["failed"]] == ["mqa"]
    assert "signal 9" in printed and "signal 9" in (out / "report.html").read_text()
    # The next call tries it again.
    again = run("compare", "--resume", "--out", out, "--json")
    assert cells_of(json.loads(again.stdout)) == [("mha", 0), ("mqa", 0), ("sha", 0)]


def test_the_processes_of_a_killed_comparison_end_too(program, text, tmp_path):
    out = tmp_path / "out"
    arguments = [*TINY, "--schemes", "mha", "--steps", 100000, "--text", text, "--out", out]
    process = subprocess.Popen(words(program, "compare", *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and lines_in(at_work(out, "mha-seed0") / "metrics.jsonl") < 5:
        time.sleep(0.002)
    (child,) = children(process)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while pathlib.Path(f"/proc/{child}/cmdline").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not pathlib.Path(f"/proc/{child}/cmdline").exists()


def test_schemes_that_the_positions_rule_out_are_left_out(run, text, tmp_path):
    schemes = ["mha", "el_shared", "mhe_mul", "el_lossless"]
    arguments = ["--schemes", ",".join(schemes), "--steps", 1, "--positions", "rotary", "--text", text]
    done = run("compare", "--json", *TINY, *arguments, "--out", tmp_path / "out")
    assert list(rows_of(json.loads(done.stdout))) == ["mha", "mhe_mul"]
    for scheme in ("el_shared", "el_lossless"):
        assert f"note: {scheme} is left out: " in done.stderr
    assert done.stderr.count("left out") == 2


@pytest.mark.parametrize("task", ["offsets", "recall", "induction", "dyck"])
def test_diagnostic_tasks_need_no_data(run, tmp_path, task):
    out = tmp_path / "out"
    done = run("compare", "--task", task, "--schemes", "mha,sha", "--steps", 3, "--threads", 1, "--out", out, "--json")
    results = json.loads(done.stdout)
    assert results["subject"]["name"] == task and results["subject"]["measure"] == "accuracy"
    assert re.search(r"; (sequence-length|pairs) \d+", results["subject"]["data"]) and "auto" not in results["subject"]["data"]
    assert results["subject"]["sentence"] in (out / "report.html").read_text()
    for row in results["rows"]:
        assert 0 < row["quality"]["mean"] < 1 and row["scores"] == {}
    mha, sha = (row["quality"]["mean"] for row in results["rows"])
    assert results["rows"][1]["prr"]["value"] == pytest.approx(100 * sha / mha)
    # Its checkpoints are no language models.
    for verb in (["evaluate", "--text", "x"], ["generate", "--prompt", "x"]):
        refusal = run(verb[0], out / results["cells"][0]["model"], *verb[1:], check=False)
        assert refusal.returncode == 1 and task in refusal.stderr and "defect" not in refusal.stderr


def test_options_of_another_task_are_refused(run, refused, tmp_path):
    one_line_error(refused(2, "compare", "--task", "offsets", "--pairs", 3, "--dry-run"), "--pairs", "recall", "offsets")
    one_line_error(refused(2, "compare", "--task", "ofsets", "--dry-run"), "ofsets", "offsets")
    # A file of settings asks for what it has.
    config = tmp_path / "config.yaml"
    config.write_text("norms: pre\n")
    for given in (["--norms", "pre"], ["--config", config]):
        one_line_error(refused(2, "compare", *given, "--dry-run"), "--norms belongs to --task mlm")
        assert "steps each" in run("compare", "--task", "mlm", *given, "--dry-run").stdout


def test_words_are_all_kept_unless_a_number_is_given(run):
    def planned(*given):
        return run("compare", "--tokenizer", "words", "--schemes", "mha", *given, "--dry-run").stdout

    # Before the text is read 8192 stands for what only the text can tell; the preset's vocabulary has 1024.
    assert planned() == planned("--vocabulary-size", 8192) != planned("--vocabulary-size", 1024)


def test_a_resolved_configuration_has_options_of_every_task(run, refused, text, tmp_path):
    out = tmp_path / "out"
    compare(run, "--schemes", "mha", "--steps", 2, "--text", text, "--out", out)
    assert "mask-rate: 0.15" in (out / "resolved.yaml").read_text()
    run("compare", "--resume", "--out", out)
    run("compare", "--config", out / "resolved.yaml", "--dry-run")
    message = refused(2, "compare", "--config", out / "resolved.yaml", "--mask-rate", 0.3, "--dry-run")
    one_line_error(message, "--mask-rate belongs to --task mlm")


def losses_of(results):
    return [(cell["variant"], cell["setting"], cell["seed"], cell["steps"], cell["test_loss"]) for cell in results["cells"]]


@pytest.mark.parametrize("match", ["steps", "time", "parameters"])
def test_the_resolved_configuration_repeats_the_comparison(run, text, tmp_path, match):
    out = tmp_path / "out"
    arguments = ["--schemes", "mha,sha", "--steps", 60, "--match", match, "--dropout", 0.1, "--text", text, "--out", out]
    first = compare(run, *arguments)
    second = json.loads(
        run("compare", "--config", out / "resolved.yaml", "--out", tmp_path / "again", "--json").stdout
    )
    assert losses_of(first) == losses_of(second)
    mha, sha = first["cells"]
    assert first["match"] == match and mha["steps"] == 60
    if match == "time":
        assert first["options"]["scheme-steps"] == ["mha=60", f"sha={sha['steps']}"]
        table = " ".join(run("report", out).stdout.split())
        assert re.search(rf"same training time, not the same steps: mha 60 steps in [\d.]+ m?s, sha {sha['steps']} steps in", table)
    else:
        assert sha["steps"] == 60
    if match == "parameters":
        unit = 2 * 16 + 1  # a column, a row and a bias
        assert abs(mha["total_parameters"] - sha["total_parameters"]) <= unit / 2
        assert sha["feed_forward_width"] > mha["feed_forward_width"] == 64
    else:
        assert sha["feed_forward_width"] == 64


def test_a_sweep_reports_the_best_setting_and_keeps_the_rest(run, text, tmp_path):
    out = tmp_path / "out"
    results = compare(
        run, *["--schemes", "mha,sha", "--seeds", 2, "--sweep", "learning_rate=1e-5,1e-2", "--steps", 40],
        *["--text", text, "--out", out],
    )
    assert len(results["cells"]) == 8
    for row in results["rows"]:
        assert row["setting"] == "learning-rate=0.01"
        assert [one["setting"] for one in row["settings"]] == ["learning-rate=1e-05", "learning-rate=0.01"]
        means = [one["validation_loss"]["mean"] for one in row["settings"]]
        assert means[1] < means[0] and row["validation_loss"]["mean"] == means[1]
    # Every setting is a model of its own.
    assert (out / "cells/sha-learning-rate=0.01-seed1/cell.json").exists()


def test_a_setting_that_diverges_fails_alone(run, text, tmp_path):
    arguments = ["--schemes", "mha", "--sweep", "learning-rate=1e-3,1e30", "--max-gradient-norm", 0, "--steps", 30]
    done = run("compare", *TINY, *arguments, "--text", text, "--out", tmp_path / "out", check=False)
    assert done.returncode == 1
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert [cell["setting"] for cell in results["cells"]] == ["learning-rate=0.001"]
    assert "learning-rate" in results["failed"][0]["reason"]


def test_standard_input_is_kept_with_the_run(run, text, tmp_path):
    out = tmp_path / "out"
    arguments = ["--schemes", "mha", "--steps", 5, "--text", "-", "--out", out]
    first = compare(run, *arguments, text_in=text.read_text())
    [kept] = out.glob("kept-input-*.txt")
    assert kept.read_text() == text.read_text()
    second = json.loads(run("compare", "--config", out / "resolved.yaml", "--out", tmp_path / "b", "--json").stdout)
    assert losses_of(first) == losses_of(second)


def test_dry_run(run, refused, tmp_path):
    printed = run("compare", "--dry-run", "--positions", "rotary", "--seeds", 3, "--steps", 7, cwd=tmp_path).stdout
    assert "left out:" in printed and "collaborative" in printed and "7 steps each, 3 seeds" in printed
    assert not list(tmp_path.iterdir())
    plan = json.loads(run("compare", "--dry-run", "--json", "--task", "dyck", "--threads", 1, "--seeds", 4, "--schemes", "mha,sha", cwd=tmp_path).stdout)
    assert plan["models"] == 8 and plan["seconds"] > 0 and plan["threads"] == 1 and plan["data"].startswith("sequences")
    assert "needs its --text" in refused(2, "compare", "--dry-run", "--json")
    assert "2 settings" in run("compare", "--dry-run", "--task", "dyck", "--sweep", "lr=1e-3,1e-2", cwd=tmp_path).stdout
    assert "7" in refused(2, "compare", "--dry-run", "--heads", 7, "--d-model", 64)
    assert "did you mean 'mhe_add'?" in refused(2, "compare", "--dry-run", "--schemes", "mha,mhe_ad")


def test_a_dry_run_with_data_says_how_long_it_takes(run, text, tmp_path):
    flags = ("compare", "--dry-run", *TINY, "--schemes", "mha,sha", "--steps", 20, "--seeds", 3)
    printed = run(*flags, "--text", text, "--out", tmp_path / "out").stdout
    assert f"Data: {text.name}: " in printed and "tokens to train, validate and test on" in " ".join(printed.split())
    assert re.search(r"^Time: about .* on \d threads? for 6 models$", printed, re.MULTILINE)
    printed = run(*flags, "--text", text, "--until-decided", 0.02, "--max-seeds", 5).stdout
    assert "for up to 10 models" in printed
    assert "With --text FILE" in run(*flags).stdout
    assert "about" in run("compare", "--dry-run", "--task", "dyck", "--schemes", "mha", "--steps", 5).stdout
    assert not (tmp_path / "out").exists()


def test_where_the_report_is(run, text, tmp_path):
    printed = run("compare", *TINY, "--schemes", "mha", "--steps", 4, "--text", text, "--out", tmp_path / "out").stdout
    assert printed.splitlines()[-1] == f"Report: {tmp_path / 'out' / 'report.html'}"


def test_seeds_are_added_until_it_is_decided(run, refused, text, tmp_path):
    out = tmp_path / "out"
    flags = ("--schemes", "mha,sha", "--steps", 12, "--text", text, "--out", out)
    # A margin of 1e-6 is never decided: it goes as far as it may.
    done = run("compare", "--json", *TINY, *flags, "--until-decided", 1e-6, "--max-seeds", 4)
    results = json.loads(done.stdout)
    assert results["looks"] == [3, 4] and len(results["cells"]) == 8 and results["complete"]
    assert "not decided with 3 seeds: sha; continuing to 4 seeds" in done.stderr
    assert "not decided with 4 seeds, as many as --max-seeds allows: sha" in done.stderr
    assert "at this look and the 1 before it" in rows_of(results)["sha"]["minus_reference"]["test"]
    assert json.loads((out / "results.json").read_text())["looks"] == [3, 4]
    # Everything is there: nothing is trained again, and the same comes out.
    again = run("compare", "--resume", "--out", out)
    assert "8 of 8 models were finished before" in again.stderr
    assert without_times(json.loads((out / "results.json").read_text())) == without_times(results)
    # A margin of 100 % is decided at the first look.
    wide = compare(run, *flags, "--until-decided", 1, "--max-seeds", 4, "--overwrite")
    assert wide["looks"] == [3] and len(wide["cells"]) == 6
    one_line_error(refused(2, "compare", *TINY, *flags, "--until-decided", 0.02, "--seeds", 2), "--seeds 2", "takes 3 seeds")
    one_line_error(refused(2, "compare", *TINY, *flags, "--until-decided", 0.02, "--max-seeds", 2), "--max-seeds 2")


def test_unknown_words_are_said_wherever_a_perplexity_stands(run, text, tmp_path):
    out = tmp_path / "out"
    flags = ("--tokenizer", "words", "--vocabulary-size", 20, "--schemes", "mha", "--steps", 4, "--text", text)
    sizes = [flag for flag in TINY if flag not in ("--tokenizer", "bytes", "characters")]
    printed = run("compare", *sizes, *flags, "--out", out).stdout
    assert "of the test tokens are unknown to the tokenizer" in " ".join(printed.split())
    results = json.loads((out / "results.json").read_text())
    share = results["subject"]["unknown_share"]
    assert 0.05 < share < 1
    assert "unknown to the tokenizer" in (out / "report.html").read_text()
    scored = ("evaluate", out / results["cells"][0]["model"], "--text", text, "--part", "test", "--test-fraction", 0.1)
    assert json.loads(run(*scored, "--json").stdout)["unknown_share"] == pytest.approx(share)
    assert "of the tokens are unknown to the tokenizer" in run(*scored).stdout


def test_what_takes_too_long_is_said_before_it_starts(run, refused, text, tmp_path):
    out = tmp_path / "out"
    arguments = [*TINY, "--schemes", "mha", "--text", text, "--out", out]
    one_line_error(refused(1, "compare", *arguments, "--steps", 10**12), "training 1 model would take about", "--beyond-a-day")
    assert not (out / "cells").exists()


@pytest.mark.parametrize("what", ["empty", "binary", "missing", "shorter than a context", *bad_options("")])
def test_bad_input(refused, text, tmp_path, what):
    arguments, code, expected = {**bad_texts(tmp_path), **bad_options(text)}[what]
    out = tmp_path / "out"
    message = refused(code, "compare", "--schemes", "mha", *TINY, *arguments, "--out", out)
    one_line_error(message, *expected)
    assert not (out / "cells").exists() or not list((out / "cells").rglob("*.safetensors"))
    assert not (out / "results.json").exists()


def test_without_a_test_part_the_figures_are_marked(run, refused, text, tmp_path):
    message = refused(1, "compare", *TINY, "--text", text, "--validation-fraction", 0, "--out", tmp_path / "out")
    one_line_error(message, "--validation-fraction")
    message = refused(1, "compare", *TINY, "--text", text, "--schemes", "el_lossless", "--out", tmp_path / "out")
    one_line_error(message, "add mha")
    arguments = [*TINY, "--schemes", "mha", "--steps", 5, "--text", text, "--out", tmp_path / "out"]
    table = run("compare", *arguments, "--test-fraction", 0).stdout
    assert "biased" in table
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert results["subject"]["has_test_part"] is False
    assert results["cells"][0]["test_loss"] == pytest.approx(results["cells"][0]["validation_loss"])


def test_variants(run, refused, text, tmp_path):
    """Sets of options under names stand beside schemes, and any of them can be the reference."""
    out = tmp_path / "out"
    flags = ["--schemes", "mha", "--variants", "wide:scheme=mqa,heads=4,rms:norm=rms,qk-norm=true", "--steps", 3]
    results = compare(run, *flags, "--text", text, "--reference", "rms", "--peop-reference", "wide", "--out", out)
    assert [(one["name"], one["scheme"], one["options"]) for one in results["variants"]] == [
        ("mha", "mha", {"scheme": "mha"}),
        ("wide", "mqa", {"scheme": "mqa", "heads": 4}),
        ("rms", "mha", {"norm": "rms", "qk-norm": True}),
    ]
    assert (results["reference"], results["peop_reference"]) == ("rms", "wide")
    rows = {row["variant"]: row for row in results["rows"]}
    losses = {name: row["test_loss"]["mean"] for name, row in rows.items()}
    assert rows["mha"]["minus_reference"]["mean"] == pytest.approx(losses["mha"] - losses["rms"])
    assert rows["rms"]["minus_reference"] is None and rows["rms"]["prr"]["value"] == 100
    assert rows["mha"]["peop"]["value"] is not None and rows["wide"]["peop"]["value"] is None
    # A cell says what its model was made with, defaults included; the checkpoint agrees.
    for cell in results["cells"]:
        of_cell = {**results["options"], **cell["options"]}
        stored = json.loads((out / cell["model"] / "config.json").read_text())["model"]
        shared = set(stored) & set(of_cell)
        assert {"scheme", "heads", "head-width", "feed-forward-width", "mhe-deviation"} <= shared
        assert [(name, of_cell[name]) for name in shared] == [(name, stored[name]) for name in shared]
    page = (out / "report.html").read_text()
    assert "wide: heads 4, scheme mqa. rms: norm rms, QK norm yes." in page and "ifference in test loss to rms" in page
    assert "Variant" in page and "Variants compared" in page
    # More of them may come; none may change.
    added = flags[3] + ",late:norm=rms"
    more = json.loads(run("compare", "--resume", "--out", out, "--variants", added, "--json").stdout)
    assert [row["variant"] for row in more["rows"]] == ["mha", "wide", "rms", "late"]
    before = (out / "results.json").read_bytes()
    changed = flags[3].replace("heads=4", "heads=2")
    one_line_error(refused(1, "compare", "--resume", "--out", out, "--variants", changed), "wide", "cannot become")
    assert (out / "results.json").read_bytes() == before
    # Variants are compared alone, without a scheme; then come mistakes.
    alone = run("compare", *TINY, "--variants", "a:norm=rms,b:norm=layer", "--text", text, "--dry-run").stdout
    assert "mqa" not in alone and "variant" in alone
    for wrong, *expected in [
        (["--variants", "norm=rms"], "a name, an option and its value"),
        (["--variants", "a:norn=rms"], "norn", "norm"),
        (["--variants", "mqa:norm=rms"], "the name of a scheme"),
        (["--variants", "a:norm=rms", "--reference", "b"], "--reference b", "a"),
        (["--variants", "a:norm=rms", "--sweep", "norm=rms,layer"], "--sweep"),
    ]:
        one_line_error(refused(2, "compare", *wrong, "--text", text, "--out", tmp_path / "none"), *expected)
    assert not (tmp_path / "none").exists()


def test_a_default_that_changed_is_found(run, refused, text, tmp_path):
    """Finished models were made with what their cell.json says."""
    out = tmp_path / "out"
    run("compare", *TINY, "--schemes", "mhe_mul", "--steps", 3, "--text", text, "--out", out)
    path = out / "cells/mhe_mul-seed0/cell.json"
    cell = json.loads(path.read_text())
    assert cell["options"]["mhe-deviation"] == 0.5  # "auto" in resolved.yaml
    cell["options"]["mhe-deviation"] = 0.1
    path.write_text(json.dumps(cell))
    one_line_error(refused(1, "compare", "--resume", "--out", out, "--seeds", 2), "mhe-deviation", "0.1", "0.5", "--out")


def test_peop_brings_sha_along(run, text, tmp_path):
    results = compare(run, "--schemes", "mha,mqa", "--peop", "--steps", 3, "--text", text, "--out", tmp_path / "out")
    assert [row["scheme"] for row in results["rows"]] == ["mha", "mqa", "sha"]
    assert results["rows"][1]["peop"]["value"] is not None


def test_a_directory_in_use(run, refused, program, text, tmp_path):
    out = tmp_path / "out"
    arguments = [*TINY, "--schemes", "mha", "--steps", 2, "--text", text, "--out", out]
    one_line_error(refused(2, "compare", "--resume", "--out", out), "nothing to resume")
    run("compare", *arguments)
    one_line_error(refused(1, "compare", *arguments), out, "--resume", "--overwrite")
    one_line_error(refused(2, "compare", *arguments, "--resume", "--overwrite"), "exclude each other")
    before = (out / "results.json").read_bytes()
    refused(1, "compare", *arguments, "--overwrite", "--text", tmp_path / "typo")
    assert (out / "results.json").read_bytes() == before
    run("compare", *arguments, "--overwrite", "--steps", 3)
    assert json.loads((out / "results.json").read_text())["cells"][0]["steps"] == 3
    cell = out / "cells/mha-seed0/cell.json"
    cell.write_text("{")
    *_, error = refused(1, "compare", "--resume", "--out", out).splitlines(keepends=True)
    one_line_error(error, cell, "delete it")

    # The second of two calls at once is refused.
    busy = tmp_path / "busy"
    long = [*TINY, "--schemes", "mha", "--steps", 100000, "--text", text, "--out", busy]
    process = subprocess.Popen(words(program, "compare", *long), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (busy / "cells").exists():
        time.sleep(0.01)
    try:
        one_line_error(refused(1, "compare", *long, "--overwrite"), busy, "in use")
    finally:
        process.kill()
        process.wait()


def test_damaged_results_are_written_again(run, refused, text, tmp_path):
    """The results of finished models stand in files of their own, so that results.json can be made from them."""
    out = tmp_path / "out"
    before = compare(run, "--schemes", "mha,sha", "--steps", 3, "--text", text, "--out", out)
    results = out / "results.json"
    whole = results.read_text()
    for left in ("", whole[: len(whole) // 2]):
        results.write_text(left)
        *_, error = refused(1, "compare", "--resume", "--out", out).splitlines(keepends=True)
        one_line_error(error, f"{results} is not JSON", f"move it away, and --resume writes it again from {out}/cells")
        assert results.read_text() == left
    results.rename(tmp_path / "away.json")
    done = run("compare", "--resume", "--out", out, "--json")
    assert json.loads(done.stdout)["cells"] == before["cells"] and "2 of 2 models were finished before" in done.stderr


def test_steps_of_what_is_not_compared_are_refused(run, refused, text, tmp_path):
    flags = [*TINY, "--schemes", "mha,sha", "--match", "time", "--text", text, "--out", tmp_path / "out"]
    error = refused(2, "compare", *flags, "--scheme-steps", "mha=3,sha=4,mqa=5")
    one_line_error(error, "--scheme-steps mqa=5: mqa", "is not among what is compared: mha and sha")
    error = refused(2, "compare", *flags, "--scheme-steps", "mha=3,sha=4,mha=5")
    one_line_error(error, "--scheme-steps names mha twice")
    assert not (tmp_path / "out").exists()
    # A configuration that a comparison wrote has the steps of all its schemes; fewer of them may be compared.
    run("compare", *flags, "--scheme-steps", "mha=3,sha=4")
    fewer = ("--config", tmp_path / "out/resolved.yaml", "--schemes", "mha", "--out", tmp_path / "fewer")
    assert cells_of(json.loads(run("compare", *fewer, "--json").stdout)) == [("mha", 0)]


def test_a_larger_scheme_cannot_join_what_was_widened(run, refused, text, tmp_path):
    out = tmp_path / "out"
    flags = ("--match", "parameters", "--steps", 3, "--text", text, "--out", out)
    run("compare", *TINY, "--schemes", "sha,mqa", *flags)
    before = (out / "results.json").read_bytes()
    error = refused(1, "compare", "--resume", "--out", out, "--schemes", "sha,mqa,mha")
    one_line_error(error, "--match parameters", "it was trained with", "--out")
    assert (out / "results.json").read_bytes() == before


def test_resuming_adds_schemes_but_changes_nothing_else(run, refused, text, tmp_path):
    out = tmp_path / "out"
    run("compare", *TINY, "--schemes", "mha", "--steps", 5, "--text", text, "--out", out)
    error = refused(2, "compare", "--resume", "--out", out, "--steps", 9)
    assert "begun with --steps 5 and cannot go on with 9" in error
    error = refused(2, "compare", "--resume", "--out", out, "--threads", 7)
    assert "and cannot go on with 7; leave --threads out" in error
    assert "and cannot go on with auto" in refused(2, "compare", "--resume", "--out", out, "--threads", "auto")
    assert not (out / "cells/sha-seed0").exists()
    more = run("compare", "--resume", "--out", out, "--schemes", "mha,sha", "--json")
    assert [row["scheme"] for row in json.loads(more.stdout)["rows"]] == ["mha", "sha"]
    assert "1 of 2 models were finished before" in more.stderr
    first, second = json.loads(more.stdout)["command"].splitlines()
    assert "--steps 5" in first and "--resume" in second
    # The directory's configuration is that of all it holds.
    again = json.loads(run("compare", "--resume", "--out", out, "--json").stdout)
    assert [row["scheme"] for row in again["rows"]] == ["mha", "sha"] and again["command"] == f"{first}\n{second}"
    repeated = run("compare", "--config", out / "resolved.yaml", "--json", cwd=tmp_path)
    assert losses_of(json.loads(repeated.stdout)) == losses_of(again) and (tmp_path / "comparison/results.json").exists()
    # Nor may the text become another one, even of the same length.
    before = text.read_bytes()
    text.write_bytes(before.replace(b"fox", b"cat"))
    one_line_error(refused(1, "compare", "--resume", "--out", out), out, "though not in size", "--overwrite")
    text.write_bytes(before)
    text.write_bytes(text.read_bytes() * 2)
    one_line_error(refused(1, "compare", "--resume", "--out", out), out, "changed since", "--overwrite")

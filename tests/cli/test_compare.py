"""compare: the table, results.json, comparisons that are killed, and what is left out or refused."""

import json
import math
import signal

import pytest
from training import (  # noqa: F401 (two fixtures)
    TINY,
    bad_options,
    bad_texts,
    lines_in,
    one_line_error,
    own_cache,
    stop_when,
    text,
)

POSITIONS = ["learned", "sinusoidal", "rotary", "alibi", "none"]
SCHEMES = "mha gqa mqa sha skv el_shared el_lossless mhe_add mhe_mul collaborative".split()


def compare(run, *arguments, **options):
    return json.loads(run("compare", "--json", *TINY, *arguments, **options).stdout)


def rows_of(results):
    return {row["scheme"]: row for row in results["rows"]}


def without_times(value):
    """Results less what depends on the clock and the machine."""
    times = {"seconds", "tokens_per_second", "training_tokens_per_second", "environment"}
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items() if key not in times}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def test_results(run, text, tmp_path):
    out = tmp_path / "out"
    arguments = ["--schemes", "sha,mha,el_lossless", "--seeds", 2, "--seed", 5, "--steps", 20, "--text", text, "--out", out]
    results = compare(run, *arguments)
    assert json.loads((out / "results.json").read_text()) == results
    assert results["format"] == "headshare comparison" and results["format_version"] == 1
    assert results["environment"]["torch"] and results["options"]["steps"] == 20
    assert [(cell["scheme"], cell["seed"]) for cell in results["cells"]] == [
        *[("mha", 5), ("sha", 5), ("mha", 6), ("sha", 6)],
        *[("el_lossless", 5), ("el_lossless", 6)],
    ]
    rows = rows_of(results)
    assert list(rows) == ["mha", "sha", "el_lossless"]
    mha, sha, el = rows.values()
    cells = [cell["perplexity"] for cell in results["cells"] if cell["scheme"] == "sha"]
    assert sha["perplexity"]["mean"] == pytest.approx(sum(cells) / 2)
    assert sha["prr"]["value"] == pytest.approx(100 * (2 - sha["perplexity"]["mean"] / mha["perplexity"]["mean"]))
    growth = mha["attention_parameters"] / sha["attention_parameters"] - 1
    assert mha["peop"]["value"] == pytest.approx((1 - mha["perplexity"]["mean"] / sha["perplexity"]["mean"]) / growth)
    assert sha["peop"]["value"] is None and sha["peop"]["reason_undefined"]
    assert mha["prr"]["value"] == 100 and len(mha["prr"]["interval"]) == 2
    assert sha["test_loss_minus_mha"]["mean"] == pytest.approx(sha["test_loss"]["mean"] - mha["test_loss"]["mean"])
    # el_lossless is mha with another cache.
    assert el["perplexity"] == mha["perplexity"] and el["prr"]["value"] == 100 and el["trained"] is False
    assert 2 * el["kv_cache_elements_per_token"] == mha["kv_cache_elements_per_token"] == 32

    # The figures are those of the best checkpoint on the test part.
    cell = results["cells"][0]
    scored = run(
        *["evaluate", out / "cells/mha-seed5", "--json", "--threads", 1, "--text", text],
        *["--part", "test", "--test-fraction", 0.1],
    )
    assert json.loads(scored.stdout)["loss"] == pytest.approx(cell["test_loss"], rel=1e-5)
    assert cell["perplexity"] == pytest.approx(math.exp(cell["test_loss"]))

    # --json is not remembered.
    table = run("compare", "--resume", "--out", out).stdout
    assert "PEoP" in table and "2 seeds (mean" in table
    for row in ("mha", "sha", "el_lossless"):
        assert any(line.startswith(row) for line in table.splitlines())
    assert "as mha" in table


def test_a_killed_comparison_goes_on_to_the_same_results(run, program, text, tmp_path):
    arguments = [*TINY, "--schemes", "mha,mhe_mul", "--seeds", 2, "--steps", 150, "--save-every", 40, "--dropout", 0.1]
    arguments += ["--text", text, "--out", "out"]  # relative: the results name the models
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    run("compare", *arguments, cwd=whole)
    cells = killed / "out" / "cells"
    # In the first model before its first checkpoint; in the second after one; at the start of the last.
    moments = [("mha-seed0", 5), ("mhe_mul-seed0", 90), ("mhe_mul-seed1", 1)]
    command = [program, "compare", *arguments, "--overwrite"]
    for cell, lines in moments:
        stop_when(command, lambda: lines_in(cells / cell / "metrics.jsonl") >= lines, signal.SIGKILL, cwd=killed)
        command = [program, "compare", "--resume", "--out", "out"]
    finished = {path: path.stat().st_mtime_ns for path in cells.glob("*/cell.json")}
    assert len(finished) == 3
    done = run("compare", "--resume", "--out", "out", cwd=killed)
    assert done.stderr.count("finished before, taken over") == 3
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    results = [json.loads((folder / "out" / "results.json").read_text()) for folder in (whole, killed)]
    assert without_times(results[0]) == without_times(results[1])
    # Once more: nothing is trained.
    again = run("compare", "--resume", "--out", "out", cwd=killed)
    assert again.stderr.count("finished before, taken over") == 4


def test_ctrl_c(run, program, text, tmp_path):
    out = tmp_path / "out"
    arguments = [*TINY, "--schemes", "mha,mqa", "--steps", 150, "--text", text, "--out", out]
    metrics = out / "cells" / "mqa-seed0" / "metrics.jsonl"
    process = stop_when([program, "compare", *arguments], lambda: lines_in(metrics) >= 10, signal.SIGINT)
    assert f"; go on with: headshare compare --resume --out {out}" in process.said
    assert (out / "cells/mqa-seed0/checkpoints/last").exists() and not (out / "results.json").exists()
    assert "1/2 mha seed 0: finished before" in run("compare", "--resume", "--out", out).stderr


@pytest.mark.parametrize("positions", POSITIONS)
def test_every_scheme_trains_with_every_position_kind(run, text, tmp_path, positions):
    arguments = ["--steps", 1, "--positions", positions, "--text", text, "--out", tmp_path / "out"]
    done = run("compare", "--json", *TINY, *arguments)
    trained = list(rows_of(json.loads(done.stdout)))
    left_out = ["el_shared", "el_lossless"] if positions == "rotary" else []
    assert sorted(trained) == sorted(set(SCHEMES) - set(left_out))
    for scheme in left_out:
        assert f"note: {scheme} is left out: " in done.stderr
    assert done.stderr.count("left out") == len(left_out)


def test_dry_run(run, refused, tmp_path):
    printed = run("compare", "--dry-run", "--positions", "rotary", "--seeds", 3, "--steps", 7, cwd=tmp_path).stdout
    assert "left out:" in printed and "collaborative" in printed and "7 steps each, 3 seeds" in printed
    assert not list(tmp_path.iterdir())
    assert "7" in refused(2, "compare", "--dry-run", "--heads", 7, "--d-model", 64)
    assert "did you mean 'mhe_add'?" in refused(2, "compare", "--dry-run", "--schemes", "mha,mhe_ad")


@pytest.mark.parametrize("what", ["empty", "binary", "missing", "shorter than a context", *bad_options("")])
def test_bad_input(refused, text, tmp_path, what):
    arguments, code, expected = {**bad_texts(tmp_path), **bad_options(text)}[what]
    out = tmp_path / "out"
    message = refused(code, "compare", "--schemes", "mha", *TINY, *arguments, "--out", out)
    one_line_error(message, *expected)
    assert not (out / "cells").exists() or not list((out / "cells").rglob("*.safetensors"))
    assert not (out / "results.json").exists()


def test_a_comparison_needs_all_three_parts(refused, text, tmp_path):
    for fraction in ("--test-fraction", "--validation-fraction"):
        message = refused(1, "compare", *TINY, "--text", text, fraction, 0, "--out", tmp_path / "out")
        one_line_error(message, fraction)
    message = refused(1, "compare", *TINY, "--text", text, "--schemes", "el_lossless", "--out", tmp_path / "out")
    one_line_error(message, "add mha")


def test_a_directory_in_use(run, refused, text, tmp_path):
    out = tmp_path / "out"
    arguments = [*TINY, "--schemes", "mha", "--steps", 2, "--text", text, "--out", out]
    one_line_error(refused(2, "compare", "--resume", "--out", out), "nothing to resume")
    one_line_error(refused(2, "compare", *arguments[:-2]), "--out")
    run("compare", *arguments)
    one_line_error(refused(1, "compare", *arguments), out, "--resume", "--overwrite")
    one_line_error(refused(2, "compare", *arguments, "--resume", "--overwrite"), "exclude each other")
    before = (out / "results.json").read_bytes()
    refused(1, "compare", *arguments, "--overwrite", "--text", tmp_path / "typo")
    assert (out / "results.json").read_bytes() == before
    run("compare", *arguments, "--overwrite", "--steps", 3)
    assert json.loads((out / "results.json").read_text())["cells"][0]["training"]["steps"] == 3
    cell = out / "cells/mha-seed0/cell.json"
    cell.write_text("{")
    *_, error = refused(1, "compare", "--resume", "--out", out).splitlines(keepends=True)
    one_line_error(error, cell, "delete it")


def test_resuming_adds_schemes_but_changes_nothing_else(run, refused, text, tmp_path):
    out = tmp_path / "out"
    run("compare", *TINY, "--schemes", "mha", "--steps", 5, "--text", text, "--out", out)
    error = refused(2, "compare", "--resume", "--out", out, "--steps", 9)
    assert "begun with steps 5 and cannot go on with 9" in error
    assert not (out / "cells/sha-seed0").exists()
    more = run("compare", "--resume", "--out", out, "--schemes", "mha,sha", "--json")
    assert [row["scheme"] for row in json.loads(more.stdout)["rows"]] == ["mha", "sha"]
    assert "mha seed 0: finished before" in more.stderr

"""Tests gpu-check: its judgements on made-up runs, and the whole of it on the CPU with tiny cases."""

import json
import sys
import types

import pytest
from conftest import ROOT, SCHEMES, run_command

FOLDER = ROOT / "bench/gpu_check"
sys.path.insert(0, str(FOLDER))
import correctness  # noqa: E402
import place  # noqa: E402
import run as gpu_check  # noqa: E402
import speed  # noqa: E402


def test_losses_must_be_near():
    near = correctness.judged("mha", ([5.0, 2.0], [3.0]), ([5.0, 2.00001], [3.0]), near=1e-4)
    assert near.passed and "2.00000 against 2.00001" in near.found
    assert not correctness.judged("mha", ([5.0, 2.1], [3.0]), ([5.0, 2.0], [3.0]), near=1e-4).passed
    assert not correctness.judged("mha", ([2.0], [3.1]), ([2.0], [3.0]), near=1e-4).passed, "validation counts, too"
    assert correctness.judged("mha", ([], []), ([2.0], [3.0]), near=1).passed is False


def test_losses_that_are_no_numbers_are_wrong():
    assert not correctness.judged("mha", ([float("nan")], []), ([2.0], []), near=1).passed


def test_the_table_says_what_is_wrong():
    rows = [place.Row("losses", "mha", True, "equal"), place.Row("repeat", "mha, equal runs", False, "a and b")]
    ok, wrong = gpu_check.table([*rows, place.Row("step", "mha", None, "5 tokens/s")]).splitlines()[:2]
    assert "ok" in ok and "WRONG" in wrong and "a and b" in wrong


def test_the_cost_of_deterministic_stands_in_its_row():
    rows = [
        place.Row("step", "mha", None, "", dict(tokens_per_second=110.0)),
        place.Row("step", "mha --deterministic", None, "", dict(tokens_per_second=100.0)),
    ]
    speed.cost(rows)
    assert rows[1].figures["cost"] == pytest.approx(0.1) and "+10.0% time" in rows[1].found


def test_a_part_that_the_time_is_too_short_for_is_named():
    [row] = gpu_check.run_part("losses", types.SimpleNamespace(left=lambda: 1.0))
    assert row.passed is None and "the time was up" in row.found


def test_a_part_that_fails_is_wrong_and_the_others_run(monkeypatch):
    def fail(here):
        raise OSError("no disk")

    monkeypatch.setitem(gpu_check.PARTS, "decode", fail)
    [row] = gpu_check.run_part("decode", types.SimpleNamespace(left=lambda: 60.0))
    assert row.passed is False and row.found == "OSError: no disk"


def test_unknown_parts_are_refused():
    with pytest.raises(SystemExit, match="there is no part tets; parts are tests, losses"):
        gpu_check.choose_parts("tets,losses")


def test_every_scheme_is_looked_at():
    assert set(SCHEMES) == set(correctness.SCHEMES)


@pytest.mark.slow
def test_it_runs_to_the_end_on_the_cpu(program, tmp_path):
    out = tmp_path / "check.json"
    command = [sys.executable, FOLDER / "run.py", "--device", "cpu", "--tiny", "--out", out]
    done = run_command(command, env={"HEADSHARE_BUILD": str(program.parent)}, timeout=600)
    written = json.loads(out.read_text())
    parts = {row["part"] for row in written["rows"]}
    assert parts == {"machine", *gpu_check.PARTS} and written["wrong"] == 0, done.stdout
    measured = {row["name"]: row["figures"] for row in written["rows"] if row["part"] in ("step", "attention", "decode")}
    assert measured["mha"]["tokens_per_second"] > 0 and measured["plain torch"]["tokens_per_second"] > 0
    assert measured["headshare mha, 64"]["forward_ms"] > 0 and 0 < measured["one shared head, 256"]["share"]


@pytest.mark.slow
def test_a_run_that_ends_otherwise_is_found(program, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSHARE_BUILD", str(program.parent))
    here = place.Place("cpu", tmp_path, seconds=120, tiny=True)
    here.text = gpu_check.write_text(tmp_path / "text.txt")
    words = correctness.repeat_words(here, "mha")
    killed, failed = correctness.killed_and_resumed(here, words, tmp_path / "one")
    assert not failed
    assert here.run(*words, "--seed", 2, "--out", tmp_path / "other")[0] == 0
    assert correctness.digest(tmp_path / "one") != correctness.digest(tmp_path / "other") != ""

"""Tests that TensorBoard itself reads the event files."""

import math

import pytest
from conftest import run_command

event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def test_tensorboard_reads_a_resumed_run(build_dir, tmp_path):
    run_command([build_dir / "obj" / "train" / "tensorboard_tool", tmp_path / "run"])
    assert len(list((tmp_path / "run").iterdir())) == 2

    run = event_accumulator.EventAccumulator(str(tmp_path / "run"))
    run.Reload()
    assert set(run.Tags()["scalars"]) == {"train/loss", "größe", "late"}

    # The resumed run replaces what the first one wrote after step 5; steps 8 and 9 are gone.
    loss = [(event.step, event.value) for event in run.Scalars("train/loss")]
    assert loss == [(step, step + 0.5) for step in range(6)] + [(6, -6.0), (7, -7.0)]
    size = [(event.step, event.value) for event in run.Scalars("größe")]
    assert size == [(step, 2.0**step) for step in range(6)]
    (late,) = run.Scalars("late")
    assert late.step == 2**40 and math.isnan(late.value)
    assert abs(late.wall_time - (tmp_path / "run").stat().st_mtime) < 60

"""Tests the tables of bench/vision: every part that was measured, and none that was not."""

import sys

from conftest import ROOT

sys.path[:0] = [str(ROOT / "studies"), str(ROOT / "bench")]
import results  # noqa: E402
import vision_speed_tables as tables  # noqa: E402

ENVIRONMENT = dict(processor="P", instructions="AVX512", torch="2", commit="c", transformers="5")
SHAPE = dict(model="vit", layers=12, heads=3, width=192, context=197, vocabulary=10, threads=1, precision="fp32", batch=32)


def rows_of_steps():
    ratios = {f"{kind}ratio_to_transformers_{name}": value for kind, value in (("", 2.0), ("memory_", 0.5)) for name in ("eager", "sdpa", "compiled")}
    figures = dict(median_ms=500.0, repetitions=4, images_per_second=64.0, step_bytes=2**29)
    ours = dict(name="training step", contender="headshare", scheme="mha", **SHAPE, **figures, **ratios)
    return [ours, dict(name="training step", contender="transformers_compiled", scheme="transformers", **SHAPE, **figures)]


def rows_of_attention():
    sizes = dict(scheme="mha", head_width=64, queries=197, keys=197, dropout=0.0, precision="fp32")
    return [
        dict(name=f"mha {passed}", contender="headshare", heads=3, threads=threads, **{"pass": passed}, ratio_to_torch_sdpa=ratio, **sizes)
        for passed, threads, ratio in (("forward", 1, 2.5), ("forward", 2, 1.5), ("training", 1, 1.25))
    ]


def test_parts_that_were_measured_are_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    assert tables.vision_step() == tables.vision_attention() == tables.NOTHING
    results.write(tmp_path / "bench_vision.json", ENVIRONMENT, rows_of_steps() + rows_of_attention())
    ours, theirs = tables.vision_step().splitlines()[2:4]
    assert ours == "| 1 | headshare, `mha` | 500 | 64.0 | 2.00 | 2.00 | 2.00 | 512 | 0.50 | 0.50 | 0.50 |"
    assert theirs == "| 1 | transformers, torch.compile | 500 | 64.0 | - | - | - | 512 | - | - | - |"
    assert "ViT-tiny: 12 layers of 192, 3 heads, 197 tokens, 32 images" in tables.vision_step()
    assert tables.vision_classifying() == tables.NOTHING
    lines = tables.vision_attention().splitlines()
    assert lines[0] == "| scheme | 3 heads, forward | 3 heads, training |" and lines[2] == "| `mha` | 1.50 | 1.25 |"

"""Tests the tables of attention's speed with rows of contenders in Python, and without."""

import sys

import pytest
from conftest import ROOT

sys.path[:0] = [str(ROOT / "studies"), str(ROOT / "bench")]
import attention_speed_tables as tables  # noqa: E402
import results  # noqa: E402
import table_parts  # noqa: E402

ENVIRONMENT = dict(commit="c", processor="P", instructions="I", torch="2", transformers="5")
SIZES = dict(heads=12, head_width=64, precision="fp32", dropout=0.0, threads=2, batch_size=8)


def written(path, rows):
    results.write(path, ENVIRONMENT, rows)
    return table_parts.comparison_results.read(path)


def decoding(**more):
    row = dict(SIZES, name="d", scheme="mqa", keys=8192, queries=1, contender="headshare", median_ms=2.0, ratio_to_mha=7.0,
               cache_bytes=2**25, ratio_to_torch_sdpa=3.0)  # fmt: skip
    return dict(row, **more)


def test_decoding_without_roofs_and_contenders_is_the_table_of_before(tmp_path):
    table = tables.bench_decode(written(tmp_path / "a.json", [decoding()]))
    assert table.splitlines()[0].count("|") == 7 and "STREAM" not in table
    assert table.splitlines()[2] == "| `mqa` | 32 | 2.0 | 17 | 7.0 | 3.00 |"


def test_decoding_stands_beside_stream_and_the_contenders_that_were_measured(tmp_path):
    flex = decoding(contender="python_torch_flex", ratio_to_torch_sdpa=1.5)
    rows = [decoding(percent_of_stream=81.4, byte_ratio_to_mqa=1.0), decoding(name="e", scheme="mla", percent_of_stream=70.0), flex]
    lines = tables.bench_decode(written(tmp_path / "a.json", rows)).splitlines()
    assert lines[0].endswith("| of STREAM | bytes/s relative to `mqa` | to compiled flex_attention |")
    assert lines[2].endswith("| 81 % | 1.00 | 2.00 |") and lines[3].endswith("| 70 % | - | - |")
    assert "copy and triad" in lines[-1]


@pytest.fixture
def anchors(tmp_path, monkeypatch):
    monkeypatch.setattr(table_parts, "RESULTS", tmp_path)
    return tmp_path / "bench_attention_anchors.json"


def test_anchors_that_were_not_measured_have_a_command(anchors):
    assert "bench/attention_forward/run.py --anchors" in tables.bench_attention_anchors()


def test_anchors_stand_beside_our_ratio(anchors):
    row = dict(SIZES, name="f", scheme="mha", queries=512, causal=True, contender="headshare", ratio_to_torch_sdpa=1.8,
               percent_of_product=66.0)  # fmt: skip
    written(anchors, [row, dict(row, contender="python_torch_flex", ratio_to_torch_sdpa=0.9)])
    lines = tables.bench_attention_anchors().splitlines()
    assert lines[2] == "| `mha` | causal | fp32 | 512 | 1.80 (66 %) | 2.00 | - | - |"
    assert "per cent of a square matrix product" in lines[-1]

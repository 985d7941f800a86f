"""Tests headshare bench: every contender is right, every row says what was measured with what, beside its roof."""

import json

import pytest
from conftest import SCHEMES

TINY = ["bench", "attention", "--quick", "--lengths", 70, "--threads", 1, "--json"]


@pytest.fixture
def bench(run):
    return lambda *arguments: json.loads(run(*TINY, *arguments).stdout)


def test_every_case_and_contender(bench):
    rows = bench()
    assert {row["scheme"] for row in rows} == {"mha", "mqa", "mhe_add", "mhe_mul", "collaborative"}
    assert {(row["pass"], row["dropout"]) for row in rows} == {("forward", 0), ("training", 0), ("training", 0.1)}
    assert {row["causal"] for row in rows} == {False, True}
    for row in rows:
        assert 0 < row["minimum_ms"] <= row["median_ms"] and row["repetitions"] == 3
        assert row["backend"] and row["instructions"] and row["commit"] and row["torch"] and row["threads"] == 1
        assert "refused" not in row and row["device"] == "cpu"
        pairs = row["queries"] * (row["queries"] + 1) / 2 if row["causal"] else row["queries"] ** 2
        wide = row.get("key_width", row["head_width"])
        widths = wide + row["head_width"] if row["pass"] == "forward" else 4 * wide + 3 * row["head_width"]
        operations = 2 * row["batch_size"] * row["heads"] * pairs * widths
        assert row["gflops"] == pytest.approx(operations / row["median_ms"] / 1e6)
        assert row["percent_of_product"] == pytest.approx(100 * row["gflops"] / row["product_gflops"])
    for name in {row["name"] for row in rows}:
        case = {row["contender"]: row for row in rows if row["name"] == name}
        fastest = min(row["median_ms"] for row in case.values() if row["is_baseline"])
        assert "torch_sdpa" in case and not case["headshare"]["is_baseline"]
        for row in case.values():
            assert row["ratio_to_torch_sdpa"] == pytest.approx(fastest / row["median_ms"])
        shares = case["headshare"]["scheme"] in ("mqa", "mhe_add", "mhe_mul")
        assert ("torch_sdpa_gqa" in case) == shares


def test_a_forced_backend_is_the_one_that_runs(run):
    arguments = [*TINY, "--schemes", "mha", "--passes", "forward"]
    rows = json.loads(run(*arguments, env={"HEADSHARE_BACKEND": "reference"}).stdout)
    assert {row["backend"] for row in rows if row["contender"] == "headshare"} == {"reference"}


def test_decoding_together(bench):
    rows = bench("--queries", 1, "--lengths", 300, "--masks", "causal", "--passes", "forward", "--together",
                 "--schemes", "mha,mqa,skv", "--batch-size", 2)  # fmt: skip
    cache = {row["scheme"]: row["cache_bytes"] for row in rows}
    assert cache["mha"] == 4 * cache["mqa"] == 2 * cache["skv"] == 2 * 2 * 4 * 300 * 16 * 4
    assert {row["queries"] for row in rows} == {1}


def test_decode_is_attention_with_one_query(run):
    rows = json.loads(run("bench", "decode", "--quick", "--threads", 1, "--json").stdout)
    assert {row["scheme"] for row in rows} == {"mha", "gqa", "mqa", "mhe_add", "mhe_mul", "mla"}
    for row in rows:
        assert (row["queries"], row["keys"], row["batch_size"], row["pass"]) == (1, 256, 2, "forward")
        assert row["gb_per_s"] == pytest.approx(row["cache_bytes"] / row["median_ms"] / 1e6)
        assert row["percent_of_stream"] == pytest.approx(100 * row["gb_per_s"] / row["stream_gb_per_s"])
        assert row["percent_of_product"] == pytest.approx(100 * row["gflops"] / row["product_gflops"])
    table = " ".join(run("bench", "decode", "--quick", "--threads", 1, "--schemes", "mqa").stdout.split())
    assert "GB/s" in table and "STREAM's" in table and "products may bound them" in table


def test_all_schemes(run):
    quick = ("--quick", "--threads", 1, "--lengths", 16, "--json")
    rows = json.loads(run("bench", "attention", *quick, "--schemes", "all", "--passes", "forward", "--masks", "causal").stdout)
    assert list(dict.fromkeys(row["scheme"] for row in rows)) == SCHEMES
    rows = json.loads(run("bench", "step", *quick, "--schemes", "all").stdout)
    assert [row["scheme"] for row in rows] == SCHEMES


def test_steps(run):
    rows = json.loads(run("bench", "step", "--quick", "--threads", 1, "--json").stdout)
    assert [row["scheme"] for row in rows] == ["mha", "mqa", "mhe_add", "mhe_mul"]
    for row in rows:
        assert row["tokens_per_second"] == pytest.approx(row["batch_size"] * row["queries"] / row["median_ms"] * 1000)
        assert row["percent_of_product"] == pytest.approx(100 * row["gflops"] / row["product_gflops"])
        assert row["layers"] == 1 and row["vocabulary"] == 300 and row["device"] == "cpu" and row["parameters"] > 0
    table = run("bench", "step", "--quick", "--threads", 1, "--schemes", "mha", "--layers", 2, env={"COLUMNS": "80"}).stdout
    assert "mha step L2 H4" in table and "tokens/s" in table and "GFLOP/s" in table
    assert all(len(line) <= 80 for line in table.splitlines())


def test_table(run):
    done = run(*[word for word in TINY if word != "--json"], "--schemes", "mha", "--passes", "forward", env={"COLUMNS": "100"})
    assert "mha forward causal B7 H4" in done.stdout and "T70 D16" in done.stdout
    assert "torch_sdpa" in done.stdout and "1 thread, libtorch" in done.stdout
    assert "GFLOP/s" in done.stdout and "square matrix product" in done.stdout
    assert all(len(line) <= 100 for line in done.stdout.splitlines())


def test_products(run):
    rows = json.loads(run("bench", "products", "--quick", "--threads", 1, "--precisions", "fp32,bf16,bf16x3", "--json").stdout)
    assert {row["contender"] for row in rows} == {"headshare", "torch"}
    assert {row["precision"] for row in rows} == {"fp32", "bf16", "bf16x3"}
    for row in rows:
        if not row["name"].startswith("tile"):
            work = 2 * row["rows"] * row["depth"] * row["columns"]
            assert row["gflops"] == pytest.approx(work / row["median_ms"] / 1e6)
    table = run("bench", "products", "--quick", "--threads", 1).stdout
    assert "scores of a chunk" in table and "GFLOP/s" in table and "1 thread, libtorch" in table
    assert all(len(line) <= 80 for line in table.splitlines())


def test_what_cannot_be_measured_is_refused(refused):
    assert "did you mean 'attention'?" in refused(2, "bench", "atention")
    assert "QUESTION" in refused(2, "bench")
    assert "--heads is for headshare bench attention" in refused(2, "bench", "products", "--heads", 3)
    assert "--layers is for headshare bench step" in refused(2, *TINY, "--layers", 3)
    assert "--queries is for headshare bench attention, not for decode" in refused(2, "bench", "decode", "--queries", 3)
    assert "leave --device out" in refused(2, "bench", "products", "--device", "cuda")
    assert "--device cuda: " in refused(1, *TINY, "--device", "cuda")
    both = ("bench", "step", "--quick", "--together", "--precisions", "fp32,bf16")
    assert "one precision" in refused(1, *both)
    assert "did you mean 'bf16'?" in refused(2, "bench", "products", "--precisions", "bf1")
    assert "bf16x3" in refused(2, "bench", "attention", "--precisions", "bf16x3")
    assert "did you mean 'mqa'?" in refused(2, *TINY, "--schemes", "mqaa")
    assert "training only" in refused(2, *TINY, "--passes", "forward", "--dropout", 0.1)
    assert "as many keys as queries" in refused(1, *TINY, "--queries", 3)

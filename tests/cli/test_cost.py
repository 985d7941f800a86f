"""headshare cost against the numbers of docs/mathematics.md and of the MHE paper."""

import json

import pytest
from conftest import SCHEMES

# Encoder table: 12 layers, width 768, 12 heads; attention parameters without biases.
ENCODER = {
    "mha": 28_311_552,
    "sha": 8_847_360,
    "el_shared": 14_155_776,
    "el_lossless": 28_311_552,
    "mqa": 15_335_424,
    "skv": 21_233_664,
    "mhe_add": 8_875_008,
    "mhe_mul": 8_875_008,
}
CACHE = {"mha": 1536, "skv": 768, "el_shared": 768, "sha": 128, "mqa": 128, "mhe_add": 128, "collaborative": 1152}


@pytest.fixture
def cost(run):
    def call(*arguments):
        return json.loads(run("cost", "--json", *arguments).stdout)

    return call


def by_scheme(objects):
    return {one["scheme"]: one for one in objects}


def test_encoder_table(cost):
    costs = by_scheme(cost("--layers", 12, "--d-model", 768, "--heads", 12))
    assert list(costs) == SCHEMES
    assert all(one["shares"] and one["paper"] for one in costs.values())
    assert {name: one["weights_of"] for name, one in costs.items() if "weights_of" in one} == {"el_lossless": "mha"}
    assert {name: costs[name]["attention_parameters"] for name in ENCODER} == ENCODER
    assert {name: costs[name]["kv_cache_elements_per_token"] for name in CACHE} == CACHE
    for one in costs.values():
        assert one["kv_cache_bytes_per_token"] == 12 * 4 * one["kv_cache_elements_per_token"]
        assert one["attention_parameters_effective"] <= one["attention_parameters"] < one["total_parameters"]
        assert {"vocabulary", "kind", "groups", "key_width", "context"} <= one.keys()


def test_chosen_schemes(cost, refused):
    assert [one["scheme"] for one in cost("--schemes", "mhe-mul,gqa")] == ["gqa", "mhe_mul"]
    assert [one["scheme"] for one in cost("--schemes", "sha", "--schemes", "mha")] == ["mha", "sha"]
    assert "did you mean 'mha'?" in refused(2, "cost", "--schemes", "mhaa")


def test_sizes_that_do_not_fit_name_both_numbers(refused):
    message = refused(2, "cost", "--heads", 7, "--d-model", 64)
    assert "7" in message and "64" in message and "--head" in message


def test_an_impossible_scheme_does_not_hide_the_others(cost, run):
    arguments = ("--positions", "rotary", "--d-model", 64, "--heads", 4)
    costs = by_scheme(cost(*arguments))
    assert "rotary" in costs["el_shared"]["impossible"]
    assert costs["mha"]["attention_parameters"] == 4 * 4 * 64 * 64
    text = run("cost", *arguments).stdout
    assert "impossible" in text and "collaborative" in text


def test_sweeps(cost, run, refused):
    costs = cost("--sweep", "heads=4,8,16", "--d-model", 64, "--schemes", "mha,mhe_mul")
    assert [(one["scheme"], one["heads"]) for one in costs] == [(s, h) for s in ("mha", "mhe_mul") for h in (4, 8, 16)]
    for one in costs:
        d = 64 // one["heads"]
        mhe = 4 * (3 * 64 * d + 64 * 64 + 3 * 64)
        assert one["attention_parameters"] == (mhe if one["scheme"] == "mhe_mul" else 4 * 4 * 64 * 64)
    layers = cost("--sweep", "n_layer=1,2", "--schemes", "sha")
    assert layers[1]["attention_parameters"] == 2 * layers[0]["attention_parameters"]
    assert "heads=7" in run("cost", "--sweep", "heads=4,7", "--d-model", 64).stdout
    assert "did you mean 'heads'?" in refused(2, "cost", "--sweep", "haeds=1,2")
    assert "NAME=VALUE" in refused(2, "cost", "--sweep", "heads")
    assert "whole number" in refused(2, "cost", "--sweep", "heads=four")


def test_memory_budget(cost, run, refused):
    budget = 64 << 20
    sizes = ("--layers", 2, "--d-model", 64, "--heads", 4, "--vocabulary", 1000, "--context", 128)
    for one in cost(*sizes, "--memory-budget", "64MiB", "--positions", "rotary"):
        if "impossible" in one:
            continue
        cache = one["kv_cache_bytes_per_token"]
        room = budget - 4 * one["total_parameters"]
        assert one["largest_batch"] == room // (128 * cache)
        assert one["longest_context"] == room // cache
    # A learned position embedding grows with the context.
    [mha] = cost(*sizes, "--memory-budget", "64MiB", "--schemes", "mha", "--batch-size", 3)
    [longest] = cost(*sizes, "--schemes", "mha", "--context", mha["longest_context"])
    needed = 4 * longest["total_parameters"] + 3 * mha["longest_context"] * mha["kv_cache_bytes_per_token"]
    assert budget - needed < 4 * 64 + 3 * mha["kv_cache_bytes_per_token"]
    assert needed <= budget
    [small] = cost("--memory-budget", "1KiB", "--schemes", "mha")
    assert small["largest_batch"] == small["longest_context"] == 0
    assert "longest" in run("cost", "--memory-budget", "8 GiB").stdout
    assert "8GiB" in refused(2, "cost", "--memory-budget", "much")


def test_table_states_its_defaults_and_fits(run):
    text = run("cost", "--layers", 12, "--d-model", 768, "--heads", 12, "--memory-budget", "8GiB").stdout
    assert "8,875,008" in text
    stated_text = " ".join(text.split())
    for stated in ("decoder", "vocabulary 50257", "gqa: 3 groups", "collaborative: key width 384", "float32"):
        assert stated in stated_text
    assert all(len(line) <= 100 for line in text.splitlines())

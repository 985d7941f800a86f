"""Tests headshare cost: what it prints and refuses. headshare/models/cost_test.cc has the numbers of the MHE paper."""

import json

import pytest
from conftest import SCHEMES
from tiny_model import model  # noqa: F401 (a fixture)

@pytest.fixture
def cost(run):
    def call(*arguments):
        return json.loads(run("cost", "--json", *arguments).stdout)

    return call


def by_scheme(objects):
    return {one["scheme"]: one for one in objects}


def test_what_an_object_says(cost):
    costs = by_scheme(cost("--layers", 12, "--d-model", 768, "--heads", 12))
    assert list(costs) == SCHEMES
    assert all(one["shares"] and one["paper"] for one in costs.values())
    assert {name: one["weights_of"] for name, one in costs.items() if "weights_of" in one} == {"el_lossless": "mha"}
    assert costs["mhe_mul"]["attention_parameters"] == 8_875_008
    for one in costs.values():
        assert one["kv_cache_bytes_per_token"] == 12 * 4 * one["kv_cache_elements_per_token"]
        assert one["attention_parameters_effective"] <= one["attention_parameters"] < one["total_parameters"]
        assert {"vocabulary", "kind", "groups", "key_width", "context"} <= one.keys()


def test_encoder_decoders(cost, run, refused):
    sizes = ("--kind", "encoder-decoder", "--layers", 6, "--d-model", 512, "--heads", 8, "--schemes", "mhe_mul")
    [one] = cost(*sizes, "--cross-scheme", "mha", "--decoder-layers", 2)
    assert one["kind"] == "encoder-decoder" and one["layers"] == 6 and one["decoder_layers"] == 2
    assert (one["encoder_scheme"], one["cross_scheme"]) == ("mhe_mul", "mha")
    assert one["source_cache_bytes_per_token"] == 8 * one["kv_cache_bytes_per_token"]
    text = run("cost", *sizes, "--cross-scheme", "mha").stdout
    flat = " ".join(text.split())
    assert "encoder-decoder: layers 6, decoder-layers 6, cross-scheme mha, d-model 512" in flat
    assert "the source's cache is filled once" in flat and all(len(line) <= 80 for line in text.splitlines())
    assert "100.0" in run("cost", *sizes[:-1], "mha").stdout
    cost(*sizes, "--cross-scheme", "gqa", "--groups", 4)  # one site reads it
    assert "belongs to --kind encoder-decoder" in refused(2, "cost", "--decoder-layers", 2)
    assert "belongs to --kind encoder" in refused(2, "cost", *sizes, "--segments", 2)


def test_chosen_schemes(cost, refused):
    assert [one["scheme"] for one in cost("--schemes", "sha", "--schemes", "mha")] == ["mha", "sha"]
    assert "did you mean 'mha'?" in refused(2, "cost", "--schemes", "mhaa")


def test_sizes_that_do_not_fit_name_both_numbers(refused):
    message = refused(2, "cost", "--heads", 7, "--d-model", 64)
    assert "7" in message and "64" in message and "--head" in message


def test_an_impossible_scheme_does_not_hide_the_others(cost, run):
    arguments = ("--positions", "rotary", "--d-model", 64, "--heads", 4)
    costs = by_scheme(cost(*arguments))
    assert "rotary" in costs["el_shared"]["impossible"]
    text = run("cost", *arguments).stdout
    assert "impossible" in text and "collaborative" in text


def test_sweeps(cost, run, refused):
    costs = cost("--sweep", "heads=4,8,16", "--d-model", 64, "--schemes", "mha,mhe_mul")
    assert [(one["scheme"], one["heads"]) for one in costs] == [(s, h) for s in ("mha", "mhe_mul") for h in (4, 8, 16)]
    assert "heads=7" in run("cost", "--sweep", "heads=4,7", "--d-model", 64).stdout
    assert "did you mean 'heads'?" in refused(2, "cost", "--sweep", "haeds=1,2")


def test_memory_budget(cost, run, refused):
    [small] = cost("--memory-budget", "1KiB", "--schemes", "mha", "--batch-size", 3)
    assert small["largest_batch"] == small["longest_context"] == 0
    assert small["memory_budget_bytes"] == 1024 and small["longest_context_batch"] == 3
    said = " ".join(run("cost", "--memory-budget", "1KiB", "--schemes", "mha").stdout.split())
    assert "No scheme's weights fit into the budget; they are counted as fp32, --weight-type bf16 halves them." in said
    fits = run("cost", "--memory-budget", "8 GiB").stdout
    assert "weights fit" not in fits and "longest" in fits
    assert "8GiB" in refused(2, "cost", "--memory-budget", "much")


def test_table_states_its_defaults_and_fits(run):
    text = run("cost", "--layers", 12, "--d-model", 768, "--heads", 12, "--memory-budget", "8GiB").stdout
    assert "8,875,008" in text
    stated_text = " ".join(text.split())
    for stated in ("decoder", "vocabulary 50257", "gqa: 3 groups", "collaborative: key width 384", "float32"):
        assert stated in stated_text
    assert all(len(line) <= 80 for line in text.splitlines())


# These are config.json of published models; their totals are the publishers'.
LLAMA3 = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}


@pytest.fixture
def config(tmp_path):
    def write(values):
        (tmp_path / "config.json").write_text(json.dumps(values))
        return tmp_path / "config.json"

    return write


def test_the_shape_of_a_published_model(cost, run, config):
    path = config(LLAMA3)
    costs = cost(path)
    assert costs[0]["scheme"] == "gqa" and [one["own"] for one in costs] == [True] + [False] * (len(SCHEMES) - 1)
    assert costs[0]["total_parameters"] == 8_030_261_248 and costs[0]["groups"] == 8
    text = " ".join(run("cost", path, "--cache-type", "int8").stdout.split())
    assert "(llama), decoder language model: layers 32" in text and "The model's own scheme is gqa" in text
    assert "weights fp32, cache int8 (int8 without its scales)" in text
    # Options come on top of the model's.
    [half] = cost(path.parent, "--layers", 16, "--schemes", "gqa", "--weight-type", "bf16", "--cache-type", "bf16")
    assert half["attention_parameters"] * 2 == costs[0]["attention_parameters"]
    assert half["kv_cache_bytes_per_token"] == 16 * 2048 * 2 and half["cache_type"] == half["weight_type"] == "bf16"
    assert half["weight_bytes"] == 2 * half["total_parameters"]
    swept = cost(path, "--sweep", "heads=32,64", "--schemes", "mha,mqa")
    assert [one["head_width"] for one in swept] == [128, 64] * 2


def test_other_model_types(run, refused, config):
    done = run("cost", config({"model_type": "bert"}), "--json", "--schemes", "mha")
    [bert] = json.loads(done.stdout)
    assert bert["total_parameters"] == 109_482_240 and bert["kind"] == "encoder" and bert["own"]
    assert "the encoder and its pooler (BertModel)" in done.stderr
    base = {"model_type": "albert", "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
    assert "layers 12, layer-groups 1, embedding-width 128," in " ".join(run("cost", config(base)).stdout.split())
    assert "--memory-budget" in refused(2, "cost", config({"model_type": "bert"}), "--memory-budget", "1GiB")
    assert "leave it out" in refused(2, "cost", config({"model_type": "bert"}), "--kind", "decoder")


def test_a_headshare_model(cost, model):
    [own, *others] = cost(model)
    assert own["scheme"] == "mha" and own["own"] and own["attention_parameters"] == 2 * 4 * 16 * 16
    assert own["vocabulary"] == 256 and own["context"] == 32
    assert {one["scheme"] for one in others} == set(SCHEMES) - {"mha"}


def test_what_is_no_configuration(refused, config, tmp_path):
    assert "headshare knows albert, bart, bert, deit, distilbert, gemma, gpt2" in refused(1, "cost", config({"model_type": "mamba"}))
    assert "does not exist" in refused(1, "cost", tmp_path / "none")

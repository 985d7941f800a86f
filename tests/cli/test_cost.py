"""headshare cost against the numbers of docs/mathematics.md and of the MHE paper."""

import json

import pytest
from conftest import SCHEMES
from tiny_model import model  # noqa: F401 (a fixture)

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


# Translation table: layers of either side, width, heads; the millions that the paper prints for mha and mhe.
TRANSLATION = [
    (6, 512, 8, 18.87, 6.52),
    (6, 512, 16, 18.87, 5.63),
    (6, 512, 4, 18.87, 8.29),
    (4, 512, 8, 12.58, 4.34),
    (8, 512, 8, 25.17, 8.69),
    (6, 768, 12, 42.47, 13.31),
    (6, 1024, 16, 75.50, 22.47),
]


@pytest.mark.parametrize("layers, width, heads, mha, mhe", TRANSLATION)
def test_translation_table(cost, layers, width, heads, mha, mhe):
    sizes = ("--layers", layers, "--d-model", width, "--heads", heads)
    costs = by_scheme(cost("--kind", "encoder-decoder", *sizes))
    assert list(costs) == SCHEMES
    sites, narrow = 3 * layers, width // heads  # encoder, decoder and cross-attention
    counts = {"mha": 4 * width**2, **dict.fromkeys(("mhe_add", "mhe_mul"), 3 * width * narrow + width**2 + 3 * width)}
    for scheme, count in counts.items():
        assert costs[scheme]["attention_parameters"] == sites * count
        assert round(sites * count / 1e6, 2) == (mha if scheme == "mha" else mhe)
    for one in costs.values():
        assert one["kind"] == "encoder-decoder" and one["layers"] == one["decoder_layers"] == layers
        assert one["kv_cache_bytes_per_token"] == layers * 4 * one["kv_cache_elements_per_token"]
        assert one["source_cache_bytes_per_token"] == one["kv_cache_bytes_per_token"]
    assert costs["mhe_mul"]["source_cache_bytes_per_token"] == layers * 4 * 2 * narrow
    # Norms, feed-forward parts with biases and one embedding; sinusoids are no parameters.
    blocks = 2 * layers * (8 * width**2 + 5 * width) + layers * (2 + 3) * 2 * width
    assert costs["mha"]["total_parameters"] == sites * 4 * width**2 + blocks + 50257 * width


def test_parts_of_an_encoder_decoder(cost, run, refused):
    sizes = ("--kind", "encoder-decoder", "--layers", 6, "--d-model", 512, "--heads", 8, "--schemes", "mhe_mul")
    [all_sites] = cost(*sizes)
    [cross] = cost(*sizes, "--cross-scheme", "mha")
    mhe = 3 * 512 * 64 + 512**2 + 3 * 512
    assert cross["attention_parameters"] - all_sites["attention_parameters"] == 6 * (4 * 512**2 - mhe)
    assert cross["kv_cache_bytes_per_token"] == all_sites["kv_cache_bytes_per_token"]
    assert cross["source_cache_bytes_per_token"] == 8 * all_sites["source_cache_bytes_per_token"]
    assert (cross["encoder_scheme"], cross["cross_scheme"]) == ("mhe_mul", "mha")
    [shallow] = cost(*sizes, "--decoder-layers", 2)
    assert shallow["attention_parameters"] == (6 + 2 * 2) * mhe and shallow["decoder_layers"] == 2
    [two] = cost(*sizes, "--share-embeddings=false", "--source-vocabulary", 1000)
    assert two["total_parameters"] - all_sites["total_parameters"] == 1000 * 512
    [before] = cost(*sizes, "--norms", "pre")
    assert before["total_parameters"] - all_sites["total_parameters"] == 2 * 2 * 512
    # Source and target are equally long.
    [fits] = cost(*sizes, "--memory-budget", "1GiB", "--positions", "none", "--cache-type", "bf16")
    room = (1 << 30) - 4 * fits["total_parameters"]
    cache = fits["kv_cache_bytes_per_token"] + fits["source_cache_bytes_per_token"]
    assert cache == all_sites["kv_cache_bytes_per_token"]
    assert fits["longest_context"] == room // cache and fits["largest_batch"] == room // (cache * fits["context"])
    text = run("cost", *sizes, "--cross-scheme", "mha").stdout
    flat = " ".join(text.split())
    assert "encoder-decoder: layers 6, decoder-layers 6, cross-scheme mha, d-model 512" in flat
    assert "the source's cache is filled once" in flat and all(len(line) <= 80 for line in text.splitlines())
    assert "100.0" in run("cost", *sizes[:-1], "mha").stdout
    assert "belongs to --kind encoder-decoder" in refused(2, "cost", "--decoder-layers", 2)
    assert "belongs to --kind encoder" in refused(2, "cost", *sizes, "--segments", 2)


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


def test_shared_layers_and_factorised_embeddings(cost):
    sizes = ("--schemes", "mha", "--layers", 12, "--d-model", 768, "--heads", 12, "--vocabulary", 1000, "--context", 512)
    [own] = cost(*sizes)
    [shared] = cost(*sizes, "--layer-groups", 3)
    assert shared["attention_parameters"] * 4 == own["attention_parameters"]
    assert shared["kv_cache_bytes_per_token"] == own["kv_cache_bytes_per_token"]
    [narrow] = cost(*sizes, "--embedding-width", 100)
    tables, projections = (1000 + 512) * (768 - 100), 768 + 2 * 100 * 768
    assert own["total_parameters"] - narrow["total_parameters"] == tables - projections
    [twelve, five] = cost(*sizes, "--layer-groups", 4, "--sweep", "layers=12,5")
    assert "impossible" not in twelve and "5 / 4" in five["impossible"]


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
    said = " ".join(run("cost", "--memory-budget", "1KiB", "--schemes", "mha").stdout.split())
    assert "No scheme's weights fit into the budget; they are counted as fp32, --weight-type bf16 halves them." in said
    assert "weights fit" not in run("cost", "--memory-budget", "8GiB").stdout
    assert "longest" in run("cost", "--memory-budget", "8 GiB").stdout
    assert "8GiB" in refused(2, "cost", "--memory-budget", "much")


def test_table_states_its_defaults_and_fits(run):
    text = run("cost", "--layers", 12, "--d-model", 768, "--heads", 12, "--memory-budget", "8GiB").stdout
    assert "8,875,008" in text
    stated_text = " ".join(text.split())
    for stated in ("decoder", "vocabulary 50257", "gqa: 3 groups", "collaborative: key width 384", "float32"):
        assert stated in stated_text
    assert all(len(line) <= 80 for line in text.splitlines())


# config.json of published models; their totals are the publishers'.
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
    assert costs[0]["total_parameters"] == 8_030_261_248
    assert costs[0]["groups"] == 8 and costs[0]["kv_cache_elements_per_token"] == 2048
    assert cost(path.parent) == costs
    mha = by_scheme(costs)["mha"]
    assert mha["kv_cache_elements_per_token"] == 8192 and mha["attention_parameters"] == 32 * 4 * 4096**2
    text = " ".join(run("cost", path).stdout.split())
    assert "(llama), decoder language model: layers 32" in text and "The model's own scheme is gqa" in text
    # Options come on top of the model's.
    [half] = cost(path, "--layers", 16, "--schemes", "gqa")
    assert half["attention_parameters"] * 2 == costs[0]["attention_parameters"]
    assert cost(path, "--heads", 64, "--head-width", 64, "--schemes", "gqa")[0]["groups"] == 8
    swept = cost(path, "--sweep", "heads=32,64", "--schemes", "mha,mqa")
    assert [one["head_width"] for one in swept] == [128, 64] * 2


def test_types_of_elements_within_a_budget(cost, run, config):
    path = config(LLAMA3)
    budget = ("--memory-budget", "24GiB", "--schemes", "gqa")
    [whole] = cost(path, *budget)
    assert whole["largest_batch"] == 0 and whole["weight_type"] == "fp32"
    [half] = cost(path, *budget, "--weight-type", "bf16", "--cache-type", "bf16")
    assert half["kv_cache_bytes_per_token"] == 32 * 2048 * 2 == whole["kv_cache_bytes_per_token"] // 2
    room = (24 << 30) - 2 * 8_030_261_248
    assert half["longest_context"] == room // (32 * 2048 * 2)
    assert half["largest_batch"] == room // (32 * 2048 * 2 * 8192)
    [small] = cost(path, *budget, "--weight-type", "int8", "--cache-type", "int8")
    assert small["longest_context"] == ((24 << 30) - 8_030_261_248) // (32 * 2048)
    text = " ".join(run("cost", path, "--cache-type", "int8").stdout.split())
    assert "weights fp32, cache int8 (int8 without its scales)" in text


def test_other_model_types(cost, run, refused, config):
    [gpt2] = cost(config({"model_type": "gpt2"}), "--schemes", "mha")
    assert gpt2["total_parameters"] == 124_439_808 and gpt2["own"]
    # It has learned 1,024 positions, whatever memory there is; a model that is not trained yet may have more.
    roomy = ("--schemes", "mha", "--memory-budget", "1GiB")
    assert cost(config({"model_type": "gpt2"}), *roomy)[0]["longest_context"] == 1024 < cost(*roomy)[0]["longest_context"]
    done = run("cost", config({"model_type": "bert"}), "--json", "--schemes", "mha")
    [bert] = json.loads(done.stdout)
    assert bert["total_parameters"] == 109_482_240 and bert["kind"] == "encoder"
    assert "the encoder and its pooler (BertModel)" in done.stderr
    base = {"model_type": "albert", "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
    [albert] = cost(config(base), "--schemes", "mha")
    assert albert["total_parameters"] == 11_683_584 and albert["attention_parameters"] == 4 * 768 * 768
    assert (albert["layers"], albert["layer_groups"], albert["embedding_width"]) == (12, 1, 128)
    assert "layers 12, layer-groups 1, embedding-width 128," in " ".join(run("cost", config(base)).stdout.split())
    mistral = {**LLAMA3, "model_type": "mistral", "architectures": ["MistralForCausalLM"], "vocab_size": 32000}
    done = run("cost", config({**mistral, "sliding_window": 4096}), "--json", "--schemes", "gqa")
    assert json.loads(done.stdout)[0]["total_parameters"] == 7_241_732_096
    assert "sliding_window is 4096" in done.stderr
    sizes = {"vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28}
    heads = {"num_attention_heads": 28, "num_key_value_heads": 4, "max_position_embeddings": 32768}
    qwen = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], **sizes, **heads}
    assert cost(config(qwen), "--schemes", "gqa")[0]["total_parameters"] == 7_615_616_512
    assert "--memory-budget" in refused(2, "cost", config({"model_type": "bert"}), "--memory-budget", "1GiB")
    assert "leave it out" in refused(2, "cost", config({"model_type": "bert"}), "--kind", "decoder")


def test_a_headshare_model(cost, model):
    [own, *others] = cost(model)
    assert own["scheme"] == "mha" and own["own"] and own["attention_parameters"] == 2 * 4 * 16 * 16
    assert own["vocabulary"] == 256 and own["context"] == 32
    assert {one["scheme"] for one in others} == set(SCHEMES) - {"mha"}
    # Other schemes have their own defaults, as without a model.
    sizes = ("--layers", 2, "--d-model", 16, "--heads", 2, "--vocabulary", 256, "--context", 32)
    plain = by_scheme(cost(*sizes))
    for one in (own, *others):
        assert one["total_parameters"] == plain[one["scheme"]]["total_parameters"]


def test_what_is_no_configuration(refused, config, tmp_path):
    assert "headshare knows albert, bart, bert, distilbert, gpt2" in refused(1, "cost", config({"model_type": "mamba"}))
    assert "model_type is missing" in refused(1, "cost", config({}))
    assert "hidden_size" in refused(1, "cost", config({**LLAMA3, "hidden_size": -4}))
    config({}).write_text("{")
    assert "config.json" in refused(1, "cost", tmp_path)
    (tmp_path / "empty").mkdir()
    assert "has no config.json" in refused(1, "cost", tmp_path / "empty")
    assert "does not exist" in refused(1, "cost", tmp_path / "none")

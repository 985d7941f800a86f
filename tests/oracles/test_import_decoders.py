"""Tests `headshare convert --from hf` for decoders of today's families: random models keep the logits that transformers
computes, with the options that change what a model computes. What is refused stands in hf/families/llama_form_test.cc."""

import json
import subprocess

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file, save_file  # noqa: E402

CONTEXT = 24
SIZES = {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 6,
         "num_key_value_heads": 2, "max_position_embeddings": CONTEXT}  # fmt: skip
BIGCODE = {"vocab_size": 97, "n_positions": CONTEXT, "n_embd": 48, "n_layer": 3, "n_head": 4}
WINDOWED = {"use_sliding_window": True, "sliding_window": 7}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_theta": 30.0}
YARN = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 12, "rope_theta": 40.0}
# A case has a class, what its configuration changes, and what is edited in config.json before transformers and headshare
# read it (None: the key is removed).
CASES = {
    "Llama": ("Llama", {}, {}),
    "Llama, one key head, tied": ("Llama", {"num_key_value_heads": 1, "tie_word_embeddings": True}, {}),
    "Llama, all key heads": ("Llama", {"num_key_value_heads": None}, {"num_key_value_heads": None}),
    "Llama, biases": ("Llama", {"attention_bias": True, "mlp_bias": True}, {}),
    "Llama, wide heads": ("Llama", {"head_dim": 14, "num_attention_heads": 4}, {}),
    "Llama, gelu, epsilon": ("Llama", {"hidden_act": "gelu_pytorch_tanh", "rms_norm_eps": 0.05}, {}),
    "Llama, exact gelu": ("Llama", {"hidden_act": "gelu"}, {}),
    "Llama, gelu_new, other base": ("Llama", {"hidden_act": "gelu_new"}, {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}),
    "Llama, rope_theta of old": ("Llama", {"pretraining_tp": 2}, {"rope_parameters": None, "rope_theta": 300.0}),
    "Llama, linear": ("Llama", {}, {"rope_scaling": {"type": "linear", "factor": 3.0}, "rope_theta": 100.0, "rope_parameters": None}),
    "Llama, llama3": ("Llama", {"head_dim": 16}, {"rope_parameters": {**LLAMA3, "original_max_position_embeddings": 12}}),
    "Llama, llama3 of its context": ("Llama", {"head_dim": 16}, {"rope_parameters": LLAMA3}),
    "Qwen2, yarn": ("Qwen2", {"max_position_embeddings": 24}, {"rope_scaling": {**YARN, "rope_type": "yarn"}}),
    "Qwen3, yarn": ("Qwen3", {"head_dim": 16}, {"rope_parameters": {**YARN, "beta_fast": 3, "beta_slow": 0.2, "truncate": False}}),
    "Mistral, yarn": ("Mistral", {"head_dim": 16}, {"rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.3}}),
    "Gemma, yarn": ("Gemma", {"head_dim": 16}, {"rope_parameters": {**YARN, "attention_factor": 0.8, "factor": 5.0}}),
    "Llama, yarn, its own key": ("Llama", {"head_dim": 16}, {"rope_parameters": YARN, "original_max_position_embeddings": 5}),
    "Mistral, no window": ("Mistral", {"sliding_window": None}, {}),
    "Mistral, its window": ("Mistral", {"head_dim": 10}, {"sliding_window": None}),
    "Mistral, a window": ("Mistral", {"sliding_window": 9}, {}),
    "Qwen2": ("Qwen2", {}, {}),
    "Qwen2, tied, one key head": ("Qwen2", {"tie_word_embeddings": True, "num_key_value_heads": 1}, {}),
    "Qwen2, windows above": ("Qwen2", {**WINDOWED, "max_window_layers": 1}, {"layer_types": None}),
    "Qwen2, a window in the last layer": ("Qwen2", {**WINDOWED, "max_window_layers": 2}, {}),
    "Qwen3, a window in the first layer": ("Qwen3", {**WINDOWED, "layer_types": ["sliding_attention", "full_attention", "full_attention"]}, {}),
    "Qwen2, windows nowhere": ("Qwen2", {**WINDOWED, "max_window_layers": 3}, {}),
    "Qwen2, a listed window": ("Qwen2", {**WINDOWED, "layer_types": ["full_attention", "sliding_attention", "full_attention"]}, {}),
    "Qwen3": ("Qwen3", {"head_dim": 10}, {}),
    "Qwen3, epsilon": ("Qwen3", {"head_dim": 8, "rms_norm_eps": 0.3, "num_key_value_heads": 1}, {}),
    "Qwen3, biases, tied": ("Qwen3", {"head_dim": 8, "attention_bias": True, "tie_word_embeddings": True, "rms_norm_eps": 1e-3}, {}),
    "Gemma": ("Gemma", {"head_dim": 10}, {}),
    "Gemma, untied, biases": ("Gemma", {"head_dim": 8, "tie_word_embeddings": False, "attention_bias": True}, {}),
    "Gemma, gelu means tanh": ("Gemma", {"head_dim": 8, "num_key_value_heads": 1}, {"hidden_act": "gelu"}),
    "Gemma, silu": ("Gemma", {"head_dim": 8, "num_key_value_heads": 6}, {"hidden_act": "silu"}),
    "GPTBigCode": ("GPTBigCode", {"n_inner": 50, "layer_norm_epsilon": 0.02, "attention_softmax_in_fp32": False}, {}),
    "GPTBigCode, many heads": ("GPTBigCode", {"multi_query": False, "activation_function": "gelu"}, {}),
    "GPTBigCode, unscaled": ("GPTBigCode", {"multi_query": False, "scale_attn_weights": False, "tie_word_embeddings": False}, {}),
}  # fmt: skip


def random_model(family, changes):
    """Makes every parameter random: weights of norms around the number that keeps what they norm, biases around 0."""
    config = getattr(transformers, f"{family}Config")(
        **{**(BIGCODE if family == "GPTBigCode" else SIZES), **changes}, bos_token_id=0, eos_token_id=0, pad_token_id=None
    )
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    numbers = torch.Generator().manual_seed(3)
    for name, parameter in model.named_parameters():
        is_norm = ("norm" in name or ".ln_" in name) and name.endswith("weight")
        parameter.data.normal_(1.0 if is_norm and family != "Gemma" else 0.0, 0.2, generator=numbers)
    return model


def edit_config(folder, changes):
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    removed = {key for key, value in changes.items() if value is None and key != "num_key_value_heads"}
    path.write_text(json.dumps({key: value for key, value in config.items() if key not in removed}))


def saved(folder, name):
    family, changes, edits = CASES[name]
    random_model(family, changes).save_pretrained(folder)
    edit_config(folder, edits)


def in_half_precision(dtype):
    def write(folder):
        random_model("Qwen3", {"head_dim": 8}).to(dtype).save_pretrained(folder)

    return write


def in_shards(folder):
    random_model("Gemma", {"head_dim": 8}).save_pretrained(folder, max_shard_size="30KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 3


def with_frequencies(folder):
    """Writes what the first Llama had: the frequencies of the rotation in each layer, and no prefix-less names."""
    random_model("Llama", {}).save_pretrained(folder)
    path = folder / "model.safetensors"
    frequencies = {f"model.layers.{i}.self_attn.rotary_emb.inv_freq": torch.ones(4) for i in range(3)}
    save_file({**load_file(path), **frequencies}, path, {"format": "pt"})


WRITERS = {
    **{name: lambda folder, name=name: saved(folder, name) for name in CASES},
    "float16": in_half_precision(torch.float16),
    "bfloat16": in_half_precision(torch.bfloat16),
    "shards": in_shards,
    "frequencies": with_frequencies,
}


def context_of(config):
    """Returns the longest text that ours reads: full layers one after the other are no regular order beside windows."""
    types = getattr(config, "layer_types", None) or []
    is_regular = "sliding_attention" not in types or "full_attention full_attention" not in " ".join(types)
    return CONTEXT if is_regular else config.sliding_window


@pytest.fixture(scope="module")
def imported(build_dir, tmp_path_factory):
    """Returns what headshare and transformers make of all the models, with one start of a program."""
    tool = build_dir / "obj" / "convert" / "import_tool"
    if not tool.is_file():
        pytest.skip(f"{tool} is not built: configure with HEADSHARE_TESTS")
    folder, lines, expected = tmp_path_factory.mktemp("imports"), [], {}
    for number, (name, write) in enumerate(WRITERS.items()):
        directory, out = folder / f"{number}", folder / f"{number}.safetensors"
        write(directory)
        model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
        shape = (2, context_of(model.config))
        ids = torch.randint(97, shape, generator=torch.Generator().manual_seed(number))
        with torch.no_grad():
            expected[name] = model(ids, use_cache=False).logits, model.config
        lines.append(json.dumps({"directory": str(directory), "ids": ids.tolist(), "out": str(out)}))
    done = subprocess.run([tool], input="\n".join(lines), capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        name: (reading, folder / f"{number}.safetensors", *expected[name])
        for number, (name, reading) in enumerate(zip(WRITERS, found, strict=True))
    }


@pytest.mark.parametrize("name", WRITERS)
def test_logits(imported, name):
    reading, path, expected, config = imported[name]
    assert "error" not in reading, reading
    found = load_file(path)["logits"]
    assert found.shape == expected.shape
    assert expected.std() > 0.3, "too flat to show anything"
    assert (found - expected).abs().max() < 1e-4
    assert reading["options"]["context"] == context_of(config)
    assert any("sliding_window" in note for note in reading["notes"]) == (context_of(config) < CONTEXT)


def test_what_is_not_theirs_is_said(imported):
    notes = {name: " ".join(reading["notes"]) for name, (reading, *_) in imported.items()}
    assert "output projections have no biases: ours are zeros" in notes["Qwen2"]
    assert "sqrt(hidden_size)" in notes["Gemma"]
    assert "query and key projections are" in notes["Qwen3, epsilon"] and notes["Qwen3"] == notes["Llama"] == ""
    mapping = imported["Qwen2"][0]["mapping"]
    assert mapping["blocks.1.attention.scheme.output.bias"] == "zeros"


def test_a_dry_run_and_the_program(run, tmp_path):
    """Prints what becomes of tensors, and reads the model that was written."""
    saved(tmp_path / "hf", "Gemma")
    lines = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours", "--dry-run").stdout.splitlines()
    assert "model.norm.weight (plus 1, times 0.144338) -> norm.weight" in lines
    assert "model.embed_tokens.weight (times 6.9282) -> token_embedding" in lines
    assert "model.layers.2.mlp.up_proj.weight -> blocks.2.feed_forward.expand.weight" in lines
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hf"]

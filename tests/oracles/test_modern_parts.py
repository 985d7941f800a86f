"""Tests RMS norms, gated feed-forward parts and normed queries and keys, against transformers' Llama and Qwen3."""

import json

import pytest
import torch
import transformers
from conftest import run_command
from llama_names import ours
from safetensors.torch import load_file, save_file

HEADS, GROUPS, WIDTH, LAYERS, INNER, VOCABULARY, CONTEXT = 6, 3, 24, 2, 40, 31, 11

SIZES = dict(
    hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
    num_key_value_heads=GROUPS, head_dim=WIDTH // HEADS, vocab_size=VOCABULARY, max_position_embeddings=CONTEXT,
    rms_norm_eps=1e-6, tie_word_embeddings=False, attention_bias=False,
)  # fmt: skip


@pytest.mark.parametrize("kind", ["Llama", "Qwen3", "Llama, geglu"])
def test_logits(build_dir, tmp_path, kind):
    torch.manual_seed(5)
    name, *gate = kind.split(", ")
    config = getattr(transformers, f"{name}Config")(**SIZES, hidden_act="gelu_pytorch_tanh" if gate else "silu")
    model = getattr(transformers, f"{name}ForCausalLM")(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.4 * torch.randn_like(parameter) + (parameter.dim() == 1))
    weights = {ours(key): value.float().contiguous() for key, value in model.state_dict().items()}
    save_file(weights, tmp_path / "model.safetensors")
    options = {
        "vocabulary": VOCABULARY, "scheme": "gqa", "groups": GROUPS, "layers": LAYERS, "d-model": WIDTH, "heads": HEADS,
        "context": CONTEXT, "positions": "rotary", "norm": "rms", "norm-epsilon": 1e-6, "feed-forward": gate[0] if gate else "swiglu",
        "feed-forward-width": INNER, "feed-forward-bias": False, "tie-embeddings": False, "qk-norm": name == "Qwen3",
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps({"format": "headshare", "format_version": 1, "model": options}))
    ids = torch.randint(VOCABULARY, (2, CONTEXT))
    (tmp_path / "ids.json").write_text(json.dumps(dict(ids=ids.tolist())))
    run_command([build_dir / "obj" / "models" / "model_tool", tmp_path, tmp_path / "ids.json", tmp_path / "out"])
    with torch.no_grad():
        expected = model(ids).logits
    found = load_file(tmp_path / "out")["logits"]
    assert expected.std() > 0.5
    assert (found - expected).abs().max() < 2e-4

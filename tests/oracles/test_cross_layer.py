"""Tests layers that share keys and values (--share-kv-layers) against transformers' Llama, Qwen3 and DeepSeek-V3, whose upper
layers are made to read what the lowest of them projected: outputs, and gradients, which add up over layers."""

import json

import llama_names
import pytest
import torch
import transformers
from conftest import run_command
from safetensors.torch import load_file, save_file

HEADS, GROUPS, WIDTH, LAYERS, SHARE, INNER, VOCABULARY, CONTEXT = 6, 3, 24, 6, 3, 40, 31, 11
LATENT, CONTENT, TURNED = 10, 5, 4  # of DeepSeek-V3

SIZES = dict(
    hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS, vocab_size=VOCABULARY,
    max_position_embeddings=CONTEXT, rms_norm_eps=1e-6, tie_word_embeddings=False, attention_bias=False, hidden_act="silu",
)  # fmt: skip

# These parts make what an upper layer reads from the lowest one of its group.
SHARED = {
    "Llama": ["k_proj", "v_proj"], "Qwen3": ["k_proj", "v_proj", "k_norm"],
    "DeepseekV3": ["kv_a_proj_with_mqa", "kv_a_layernorm"],
}  # fmt: skip


def ours(name, value):
    """Yields our tensors of one of theirs, with their names."""
    if not name.endswith("self_attn.kv_b_proj.weight"):
        yield llama_names.ours(name), value
        return
    layer = name.split(".")[2]
    of_heads = value.view(HEADS, CONTENT + WIDTH // HEADS, LATENT)
    yield f"blocks.{layer}.attention.scheme.key.weight", of_heads[:, :CONTENT].flatten(0, 1)
    yield f"blocks.{layer}.attention.scheme.value.weight", of_heads[:, CONTENT:].flatten(0, 1)


def config_of(kind):
    if kind != "DeepseekV3":
        return getattr(transformers, f"{kind}Config")(**SIZES, num_key_value_heads=GROUPS, head_dim=WIDTH // HEADS)
    return transformers.DeepseekV3Config(
        **SIZES, first_k_dense_replace=LAYERS, num_key_value_heads=HEADS, kv_lora_rank=LATENT, q_lora_rank=None,
        qk_nope_head_dim=CONTENT, qk_rope_head_dim=TURNED, v_head_dim=WIDTH // HEADS, rope_interleave=False,
    )  # fmt: skip


class Lent(torch.nn.Module):
    """Gives what the same part of the lowest layer gave, whatever it is asked."""

    def __init__(self, lowest):
        super().__init__()
        self.given = []
        lowest.register_forward_hook(lambda part, read, gave: self.given.append(gave))

    def forward(self, _):
        return self.given.pop()


def share_memory(model, parts):
    """Makes upper layers read what the lowest of their group made; returns the names of the parameters that they lose."""
    lost = []
    for i, layer in enumerate(model.model.layers):
        lowest = model.model.layers[i - i % SHARE]
        if layer is lowest:
            continue
        for part in parts:
            lost += [f"model.layers.{i}.self_attn.{part}.{name}" for name, _ in getattr(layer.self_attn, part).named_parameters()]
            setattr(layer.self_attn, part, Lent(getattr(lowest.self_attn, part)))
    return lost


@pytest.mark.parametrize("kind", list(SHARED))
def test_logits_and_gradients(build_dir, tmp_path, kind):
    torch.manual_seed(5)
    model = getattr(transformers, f"{kind}ForCausalLM")(config_of(kind)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_((0.4 * torch.randn_like(parameter) + (parameter.dim() == 1)).float())
    lost = share_memory(model, SHARED[kind])
    assert len(lost) == (LAYERS - LAYERS // SHARE) * len(SHARED[kind])
    named = dict(model.named_parameters())
    assert not set(lost) & set(named)
    weights = {new: part.float().contiguous() for name, value in named.items() for new, part in ours(name, value.detach())}
    save_file(weights, tmp_path / "model.safetensors")
    own = {"scheme": "gqa", "groups": GROUPS, "qk-norm": kind == "Qwen3"}
    if kind == "DeepseekV3":
        own = {"scheme": "mla", "kv-latent-width": LATENT, "content-head-width": CONTENT, "rotary-head-width": TURNED}
    options = {
        **own, "vocabulary": VOCABULARY, "layers": LAYERS, "share-kv-layers": SHARE, "d-model": WIDTH, "heads": HEADS,
        "context": CONTEXT, "positions": "rotary", "norm": "rms", "norm-epsilon": 1e-6, "feed-forward": "swiglu",
        "feed-forward-width": INNER, "feed-forward-bias": False, "tie-embeddings": False,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps({"format": "headshare", "format_version": 16, "model": options}))
    ids = torch.randint(VOCABULARY, (2, CONTEXT))
    (tmp_path / "ids.json").write_text(json.dumps(dict(ids=ids.tolist())))
    tool = build_dir / "obj" / "models" / "model_tool"
    run_command([tool, tmp_path, tmp_path / "ids.json", tmp_path / "out", "gradients"])
    found = load_file(tmp_path / "out")
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits
    assert logits.std() > 0.5
    assert (found["logits"] - logits).abs().max() < 2e-4
    model(ids, labels=ids, use_cache=False).loss.backward()
    for name, value in named.items():
        for new, gradient in ours(name, value.grad):
            error = (found[f"gradient.{new}"] - gradient).abs().max()
            assert error < 1e-4 * max(gradient.abs().max(), 1e-2), new

"""Tests multi-head latent attention (mla) against transformers' DeepSeek-V3, in whole decoders."""

import json

import pytest
import torch
import transformers
from conftest import run_command
from safetensors.torch import load_file, save_file

HEADS, WIDTH, LAYERS, INNER, VOCABULARY, CONTEXT = 4, 24, 2, 40, 31, 11
LATENT, CONTENT, TURNED, VALUE = 10, 5, 4, 3  # four different widths

# This maps theirs -> ours, within a block.
NAMES = {
    "self_attn.q_proj": "attention.scheme.query", "self_attn.q_a_proj": "attention.scheme.query_latent",
    "self_attn.q_a_layernorm": "attention.scheme.query_latent_norm", "self_attn.q_b_proj": "attention.scheme.query",
    "self_attn.kv_a_proj_with_mqa": "attention.scheme.latent", "self_attn.kv_a_layernorm": "attention.scheme.latent_norm",
    "self_attn.o_proj": "attention.scheme.output",
    "input_layernorm": "attention_norm", "post_attention_layernorm": "feed_forward_norm",
    "mlp.gate_proj": "feed_forward.gate", "mlp.up_proj": "feed_forward.expand", "mlp.down_proj": "feed_forward.contract",
}  # fmt: skip
FIXED = {"model.embed_tokens.weight": "token_embedding", "lm_head.weight": "output_embedding", "model.norm.weight": "norm.weight"}


def apart(rows, interleaved):
    """Moves pairs of rows that lie side by side, (2 i, 2 i + 1), half the width apart."""
    return torch.cat([rows[..., ::2, :], rows[..., 1::2, :]], -2) if interleaved else rows


def ours(name, value, interleaved):
    """Yields our tensors of one of theirs, with their names."""
    if name in FIXED:
        yield FIXED[name], value
        return
    _, _, layer, rest = name.split(".", 3)
    part, end = rest.rsplit(".", 1)
    block = f"blocks.{layer}"
    if part == "self_attn.kv_b_proj":
        of_heads = value.view(HEADS, CONTENT + VALUE, LATENT)
        yield f"{block}.attention.scheme.key.weight", of_heads[:, :CONTENT].flatten(0, 1)
        yield f"{block}.attention.scheme.value.weight", of_heads[:, CONTENT:].flatten(0, 1)
        return
    if part in ("self_attn.q_proj", "self_attn.q_b_proj"):
        of_heads = value.view(HEADS, CONTENT + TURNED, -1)
        value = torch.cat([of_heads[:, :CONTENT], apart(of_heads[:, CONTENT:], interleaved)], 1).flatten(0, 1)
    if part == "self_attn.kv_a_proj_with_mqa":
        rows = value if value.dim() == 2 else value[:, None]
        value = torch.cat([rows[:LATENT], apart(rows[LATENT:], interleaved)]).view(value.shape)
    yield f"{block}.{NAMES[part]}.{end}", value


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("interleaved", [False, True])
def test_logits(build_dir, tmp_path, compressed, interleaved):
    torch.manual_seed(5)
    config = transformers.DeepseekV3Config(
        hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS, first_k_dense_replace=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=HEADS, vocab_size=VOCABULARY, max_position_embeddings=CONTEXT,
        kv_lora_rank=LATENT, q_lora_rank=9 if compressed else None, qk_nope_head_dim=CONTENT, qk_rope_head_dim=TURNED,
        v_head_dim=VALUE, rope_interleave=interleaved, rms_norm_eps=1e-6, tie_word_embeddings=False, attention_bias=False,
    )  # fmt: skip
    model = transformers.DeepseekV3ForCausalLM(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.4 * torch.randn_like(parameter) + (parameter.dim() == 1))
    weights = {}
    for name, value in model.state_dict().items():
        weights.update({key: one.float().contiguous() for key, one in ours(name, value, interleaved)})
    save_file(weights, tmp_path / "model.safetensors")
    options = {
        "vocabulary": VOCABULARY, "scheme": "mla", "layers": LAYERS, "d-model": WIDTH, "heads": HEADS, "context": CONTEXT,
        "head-width": VALUE, "kv-latent-width": LATENT, "content-head-width": CONTENT, "rotary-head-width": TURNED,
        "positions": "rotary", "norm": "rms", "norm-epsilon": 1e-6, "feed-forward": "swiglu", "feed-forward-width": INNER,
        "feed-forward-bias": False, "tie-embeddings": False, **({"query-latent-width": 9} if compressed else {}),
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps({"format": "headshare", "format_version": 14, "model": options}))
    ids = torch.randint(VOCABULARY, (2, CONTEXT))
    (tmp_path / "ids.json").write_text(json.dumps(dict(ids=ids.tolist())))
    run_command([build_dir / "obj" / "models" / "model_tool", tmp_path, tmp_path / "ids.json", tmp_path / "out"])
    with torch.no_grad():
        expected = model(ids).logits
    found = load_file(tmp_path / "out")["logits"]
    assert expected.std() > 0.5
    assert (found - expected).abs().max() < 2e-4

"""Tests scaled and partial rotary positions: layers against attention whose angles transformers computes."""

import pytest
import torch

pytest.importorskip("transformers")

E, H, D, T = 24, 2, 12, 40

SCALINGS = {
    "linear": {"rope_type": "linear", "factor": 2.5},
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64},
    "llama3, odd": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 0.25, "high_freq_factor": 5.5,
                    "original_max_position_embeddings": 300},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    "yarn, betas": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 2, "beta_slow": 0.25},
    "yarn, no truncation": {"rope_type": "yarn", "factor": 3.0, "original_max_position_embeddings": 90, "beta_fast": 7,
                            "truncate": False},
    "yarn, attention factor": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "attention_factor": 0.8},
    "yarn, mscales": {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 64, "mscale": 0.707,
                      "mscale_all_dim": 1.5},
    "yarn, one mscale": {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 64, "mscale": 0.707},
    "yarn, short": {"rope_type": "yarn", "factor": 0.5, "original_max_position_embeddings": 3},
}  # fmt: skip
# This maps their key to our option.
NAMES = {
    "rope_type": "rotary_scaling", "rope_theta": "rotary_base", "factor": "rotary_factor",
    "original_max_position_embeddings": "rotary_original_context", "low_freq_factor": "rotary_low_frequency_factor",
    "high_freq_factor": "rotary_high_frequency_factor", "beta_fast": "rotary_beta_fast", "beta_slow": "rotary_beta_slow",
    "attention_factor": "rotary_attention_factor", "truncate": "rotary_truncate",
}  # fmt: skip


def turned(x, frequencies, factor):
    """Returns x [B, H, T, D], of which the last dimensions turn: pairs of them, half of these apart."""
    width = 2 * len(frequencies)
    angles = torch.arange(T).unsqueeze(1).double() * frequencies.double()
    cosine, sine = factor * angles.cos(), factor * angles.sin()
    a, b = x[..., D - width :].chunk(2, -1)
    return torch.cat([x[..., : D - width], a * cosine - b * sine, b * cosine + a * sine], -1)


def attention(layer, x, frequencies, factor):
    """Returns what the layer gives, with heads that turn by these frequencies."""
    q, k, v = ((x @ getattr(layer, name).weight.T).unflatten(2, (H, D)).transpose(1, 2) for name in ("query", "key", "value"))
    q, k = (turned(one, frequencies, factor) for one in (q, k))
    heads = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return heads.transpose(1, 2).flatten(2) @ layer.output.weight.T


@pytest.mark.parametrize("part", [1.0, 0.5])
@pytest.mark.parametrize("name", SCALINGS)
def test_angles_are_those_of_transformers(name, part):
    from headshare.nn import SharedHeadAttention
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    rope = {"rope_theta": 500.0, **SCALINGS[name]}
    config = LlamaConfig(hidden_size=E, num_attention_heads=H, head_dim=D, max_position_embeddings=256,
                         rope_parameters={**rope, "partial_rotary_factor": part})  # fmt: skip
    frequencies, factor = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, "cpu")
    options = {NAMES[key]: value for key, value in rope.items() if "mscale" not in key}
    if "mscale" in rope:
        options["rotary_attention_factor"] = factor
    torch.manual_seed(3)
    layer = SharedHeadAttention(E, H, bias=False, batch_first=True, dtype=torch.float64, rotary=True, head_width=D,
                                rotary_dimensions=int(D * part), **options)  # fmt: skip
    for one in layer.parameters():
        torch.nn.init.normal_(one, std=0.2)
    x = torch.randn(2, T, E, dtype=torch.float64)
    expected = attention(layer, x, frequencies, factor)
    found, _ = layer(x, is_causal=True)
    # Their frequencies err by some 1e-6: exponents are rounded to float32 before they are multiplied by ln 500.
    tolerance = (attention(layer, x, frequencies.double() * (1 + 1e-6), factor) - expected).abs().max().item()
    assert tolerance < 1e-4
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)

"""Tests keys that are values (skv) under rotary positions against the attention of models that have such keys.

Outputs, gradients of all weights and decoding in pieces are compared. All numbers are double; norms, rotations and the
softmax of transformers compute in float32.
"""

import pytest
import torch

pytest.importorskip("transformers")
from headshare.nn import SharedHeadAttention  # noqa: E402

E, H, D, T = 24, 6, 8, 11
TURNED = 4  # of a head's dimensions


def filled(module):
    """Returns a module of double numbers without special ones: norms weigh, biases and sinks are not zero."""
    torch.manual_seed(5)
    for name, parameter in module.double().eval().named_parameters():
        torch.nn.init.normal_(parameter, mean=float("norm" in name), std=0.4)
    return module


def moved(tensor, order, dim=0):
    """Puts the dimensions of each head, `heads x D` along `dim`, in another order."""
    return tensor.unflatten(dim, (-1, D)).index_select(dim + 1, torch.tensor(order)).flatten(dim, dim + 1)


def causal():
    return torch.full((T, T), float("-inf"), dtype=torch.float64).triu(1)


def assert_alike(theirs, run, state, **options):
    """Compares a layer with these options and the weights `state`, made of those of `theirs`, with run(x)."""
    layer = SharedHeadAttention(E, H, batch_first=True, dtype=torch.float64, scheme="skv", head_width=D, rotary=True, **options)
    layer.load_state_dict({name: one.detach() for name, one in state.items()})
    x, direction = torch.randn(2, T, E, dtype=torch.float64, requires_grad=True), torch.randn(2, T, E, dtype=torch.float64)

    expected, (found, _) = run(x), layer(x, is_causal=True)
    assert expected.std() > 0.3
    torch.testing.assert_close(found, expected, rtol=5e-6, atol=5e-6)

    parameters = [one for one in theirs.parameters() if one.requires_grad]
    theirs_by = torch.autograd.grad(expected, [x, *parameters], direction, retain_graph=True)
    own = dict(layer.named_parameters())
    ours_by = torch.autograd.grad(found, [x, *(own[name] for name in state)], direction)
    through_state = torch.autograd.grad(list(state.values()), parameters, ours_by[1:])  # the chain rule leads to theirs
    for ours, other in zip([ours_by[0], *through_state], theirs_by, strict=True):
        torch.testing.assert_close(ours, other, rtol=2e-5, atol=2e-5 * other.abs().max().item())

    cache, pieces = None, []
    for piece in x.detach().split([4, 1, 1, T - 6], 1):
        output, cache = layer.decode(piece, cache)
        pieces.append(output)
    torch.testing.assert_close(torch.cat(pieces, 1), found.detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("part", [1.0, TURNED / D])
@pytest.mark.parametrize("bias", [False, True])
def test_key_is_gemma_4(part, bias):
    """Gemma 4 norms values as well, without weights; no scheme here has such a norm, so theirs is left out."""
    from transformers import Gemma4TextConfig
    from transformers.models.gemma4.modeling_gemma4 import Gemma4TextAttention, Gemma4TextRotaryEmbedding

    base, turned = 1000.0, int(D * part)
    rope = {"rope_type": "proportional", "partial_rotary_factor": part, "rope_theta": base}
    config = Gemma4TextConfig(
        hidden_size=E, num_attention_heads=H, num_key_value_heads=H, num_global_key_value_heads=2, head_dim=D, global_head_dim=D,
        num_hidden_layers=1, layer_types=["full_attention"], attention_k_eq_v=True, attention_bias=bias,
        rope_parameters={"full_attention": rope}, attn_implementation="eager",
    )  # fmt: skip
    theirs = Gemma4TextAttention(config, layer_idx=0)
    theirs.v_norm = torch.nn.Identity()
    theirs = filled(theirs)
    angles = Gemma4TextRotaryEmbedding(config)(torch.zeros(1, dtype=torch.float64), torch.arange(T)[None], "full_attention")
    # Their pairs are D / 2 apart and the first of them turn; ours are half of what turns apart, at the end of a head.
    pairs = range(turned // 2)
    order = [i for i in range(D) if i % (D // 2) >= turned // 2] + [*pairs, *(i + D // 2 for i in pairs)]
    state = {
        "query_norm.weight": moved(theirs.q_norm.weight, order), "key_norm.weight": moved(theirs.k_norm.weight, order),
        "output.weight": moved(theirs.o_proj.weight, order, dim=1),
    }  # fmt: skip
    for kind in ("weight", "bias") if bias else ("weight",):
        state[f"query.{kind}"] = moved(getattr(theirs.q_proj, kind), order)
        state[f"key_value.{kind}"] = moved(getattr(theirs.k_proj, kind), order)
    if bias:
        state["output.bias"] = theirs.o_proj.bias
    # Their frequencies are base^(-2 i / D), ours base^(-2 i / turned).
    assert_alike(theirs, lambda x: theirs(x, angles, causal(), {})[0], state, bias=bias, kv_heads=2, qk_norm=True,
                 attention_scale=1.0, rotary_dimensions=turned, rotary_base=base**part)  # fmt: skip


@pytest.mark.parametrize("part", [1.0, TURNED / D])
def test_counter_is_deepseek_v4(part):
    """The layer is one without compressed keys and shorter than its window; --qk-norm and --attention-sinks are its own.

    Its queries and outputs come from products of two maps, which are one map each without the norm between those of queries.
    """
    from transformers import DeepseekV4Config
    from transformers.models.deepseek_v4.modeling_deepseek_v4 import DeepseekV4Attention, DeepseekV4RotaryEmbedding

    groups = 2
    config = DeepseekV4Config(
        hidden_size=E, num_attention_heads=H, head_dim=D, num_hidden_layers=1, layer_types=["sliding_attention"],
        partial_rotary_factor=part, q_lora_rank=10, o_groups=groups, o_lora_rank=7, sliding_window=T, attn_implementation="eager",
    )  # fmt: skip
    theirs = DeepseekV4Attention(config, layer_idx=0)
    theirs.q_a_norm = torch.nn.Identity()
    theirs = filled(theirs)
    positions = torch.arange(T)[None]
    angles = {"main": DeepseekV4RotaryEmbedding(config)(torch.zeros(1, dtype=torch.float64), positions, "main")}
    # Both turn the end of a head; their pairs stand side by side.
    still = D - int(D * part)
    order = [*range(still), *range(still, D, 2), *range(still + 1, D, 2)]
    inner = torch.block_diag(*theirs.o_a_proj.weight.chunk(groups))
    state = {
        "query.weight": moved(theirs.q_b_proj.weight @ theirs.q_a_proj.weight, order),
        "query_norm.weight": torch.ones(D, dtype=torch.float64, requires_grad=True),  # theirs has no weights
        "key_value.weight": moved(theirs.kv_proj.weight, order), "key_norm.weight": moved(theirs.kv_norm.weight, order),
        "sinks": theirs.sinks * 1, "output.weight": moved(theirs.o_b_proj.weight @ inner, order, dim=1),
    }  # fmt: skip
    assert_alike(theirs, lambda x: theirs(x, angles, positions, causal())[0], state, bias=False, kv_heads=1,
                 skv_rotary="counter", qk_norm=True, attention_sinks=True, rotary_dimensions=int(D * part))  # fmt: skip


@pytest.mark.parametrize("maps", [1, 2, H])
def test_split_is_latent_attention_whose_maps_select(maps):
    """No package here has grouped-tied attention. Its keys and values are those of DeepSeek-V3's attention from a latent
    vector, all groups' u side by side and not normed, when the maps of keys and values select: the start of the group's u
    as a key, all of it as a value."""
    from transformers import DeepseekV3Config
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention, DeepseekV3RotaryEmbedding

    content = D - TURNED
    config = DeepseekV3Config(
        hidden_size=E, num_attention_heads=H, num_key_value_heads=H, num_hidden_layers=1, kv_lora_rank=maps * D, q_lora_rank=None,
        qk_nope_head_dim=content, qk_rope_head_dim=TURNED, v_head_dim=D, rope_interleave=False, attn_implementation="eager",
    )  # fmt: skip
    theirs = DeepseekV3Attention(config, layer_idx=0)
    theirs.kv_a_layernorm = torch.nn.Identity()
    theirs = filled(theirs)
    of_group = torch.eye(maps * D, dtype=torch.float64).view(maps, D, maps * D).repeat_interleave(H // maps, 0)
    theirs.kv_b_proj.weight = torch.nn.Parameter(torch.cat([of_group[:, :content], of_group], 1).flatten(0, 1), requires_grad=False)
    angles = DeepseekV3RotaryEmbedding(config)(torch.zeros(1, dtype=torch.float64), torch.arange(T)[None])
    latent = theirs.kv_a_proj_with_mqa.weight
    state = {
        "query.weight": theirs.q_proj.weight * 1, "key_value.weight": latent[: maps * D], "turned_key.weight": latent[maps * D :],
        "output.weight": theirs.o_proj.weight * 1,
    }  # fmt: skip
    assert_alike(theirs, lambda x: theirs(x, angles, causal())[0], state, bias=False, kv_heads=maps, skv_rotary="split",
                 rotary_dimensions=TURNED)  # fmt: skip

"""Compares layers with an output gate or with sinks to the layers of transformers that have them, with all gradients."""

import pytest
import torch
from headshare.nn import SharedHeadAttention

E, H, G, D, T = 24, 4, 2, 6, 7


@pytest.fixture
def hidden():
    torch.manual_seed(1)
    return torch.randn(2, T, E, dtype=torch.float64, requires_grad=True)


def causal():
    return torch.full((T, T), float("-inf"), dtype=torch.float64).triu(1)


def layer_like(**options):
    return SharedHeadAttention(E, H, batch_first=True, dtype=torch.float64, scheme="gqa", groups=G, **options)


def fill(source, layer, names):
    """Gives the layer the weights of `source`: {our name: its tensor}."""
    for one in source.parameters():
        torch.nn.init.normal_(one, std=0.5)
    layer.load_state_dict({name: tensor() for name, tensor in names.items()})


def assert_alike(ours, theirs, layer, hidden, gradients, tolerance=1e-12):
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    weights = torch.randn_like(theirs)
    (theirs * weights).sum().backward()
    expected = {name: tensor() for name, tensor in gradients.items()} | {"x": hidden.grad.clone()}
    hidden.grad = None
    (ours * weights).sum().backward()
    found = {name: one.grad for name, one in layer.named_parameters()} | {"x": hidden.grad}
    assert set(found) == set(expected)
    for name, gradient in found.items():
        if gradient is None:  # it cannot matter, and theirs rounds to almost 0
            gradient = torch.zeros_like(expected[name])
        close = 100 * tolerance
        torch.testing.assert_close(gradient, expected[name], rtol=close, atol=close, msg=lambda text: f"{name}: {text}")


def test_sinks_are_those_of_gpt_oss(hidden):
    from transformers import GptOssConfig
    from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention

    config = GptOssConfig(hidden_size=E, num_attention_heads=H, num_key_value_heads=G, head_dim=D, num_hidden_layers=1,
                          attention_bias=True, layer_types=["full_attention"])  # fmt: skip
    config._attn_implementation = "eager"
    theirs = GptOssAttention(config, layer_idx=0).double()
    layer = layer_like(attention_sinks=True)
    names = {"sinks": "sinks"}
    for ours, other in (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj"), ("output", "o_proj")):
        names |= {f"{ours}.{kind}": f"{other}.{kind}" for kind in ("weight", "bias")}
    fill(theirs, layer, {ours: (lambda n=name: theirs.get_parameter(n).detach()) for ours, name in names.items()})
    unturned = (torch.ones(1, T, D // 2).double(), torch.zeros(1, T, D // 2).double())
    assert_alike(layer(hidden, is_causal=True)[0], theirs(hidden, unturned, causal())[0], layer, hidden,
                 {ours: (lambda n=name: theirs.get_parameter(n).grad) for ours, name in names.items()})  # fmt: skip


def test_the_gate_is_that_of_qwen3_next(hidden):
    from transformers import Qwen3NextConfig
    from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextAttention

    config = Qwen3NextConfig(hidden_size=E, num_attention_heads=H, num_key_value_heads=G, head_dim=D, num_hidden_layers=1,
                             attention_bias=True)  # fmt: skip
    config._attn_implementation = "eager"
    theirs = Qwen3NextAttention(config, layer_idx=0).double()
    theirs.q_norm = theirs.k_norm = torch.nn.Identity()  # they compute in float32, and have tests of their own
    layer = layer_like(output_gate="element")

    def tensors(of):
        """Returns their parameters, or the gradients of them, by our names: a head's queries and gate lie side by side."""
        made = {}
        for kind in ("weight", "bias"):
            both = of(getattr(theirs.q_proj, kind)).unflatten(0, (H, 2, D))
            made |= {f"query.{kind}": both[:, 0].flatten(0, 1), f"gate.{kind}": both[:, 1].flatten(0, 1)}
            for ours, other in (("key", theirs.k_proj), ("value", theirs.v_proj), ("output", theirs.o_proj)):
                made[f"{ours}.{kind}"] = of(getattr(other, kind))
        return made

    for one in theirs.parameters():
        torch.nn.init.normal_(one, std=0.5)
    state = tensors(lambda one: one.detach())
    layer.load_state_dict(state)
    unturned = (torch.ones(1, T, D).double(), torch.zeros(1, T, D).double())
    theirs_found = theirs(hidden, unturned, causal())[0]
    gradients = {name: (lambda n=name: tensors(lambda one: one.grad)[n]) for name in state}
    # Their softmax is in float32.
    assert_alike(layer(hidden, is_causal=True)[0], theirs_found, layer, hidden, gradients, tolerance=5e-6)

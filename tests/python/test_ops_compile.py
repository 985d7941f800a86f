"""Tests that torch.compile(fullgraph=True) and torch.export take a model that uses the operations."""

import headshare
import pytest
import torch
import torch.compiler.config
from torch import nn

ops = headshare.ops


class Block(nn.Module):
    """Is a block of a transformer with one head of keys and values, and its loss."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.p = dropout
        self.register_buffer("step", torch.tensor([7, 0]), persistent=False)
        shapes = {"norm": (32,), "query": (32, 32), "key": (8, 32), "value": (8, 32), "up": (64, 32), "down": (32, 64), "words": (50, 32)}
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.randn(shape) * 0.2))

    def forward(self, x, targets):
        self.step += torch.tensor([0, 1])
        y = ops.rms_norm(x, self.norm)
        q, k, v = (ops.linear(y, w).unflatten(-1, (-1, 8)).transpose(1, 2) for w in (self.query, self.key, self.value))
        keys = {"dropout": self.p, "dropout_key": self.step} if self.p else {}
        heads = ops.attention(ops.rotate(q), ops.rotate(k), v, causal=True, **keys)
        x = x + heads.transpose(1, 2).flatten(2)
        x = x + ops.linear_of_gelu(ops.linear(ops.rms_norm(x, self.norm), self.up), self.down)
        if self.p:
            x = ops.dropout(x, self.p, self.step)
        return ops.cross_entropy(x, self.words, targets)


@pytest.fixture(autouse=True)
def _fresh_compiler():
    # The cache of compiled graphs does not know that shapes in python/headshare/_fake.py changed.
    with torch.compiler.config.patch(force_disable_caches=True):
        torch._dynamo.reset()
        torch.manual_seed(3)
        yield


def batch(tokens=6):
    return torch.randn(2, tokens, 32), torch.randint(0, 50, (2, tokens))


def loss_and_gradients(model, forward, inputs):
    model.zero_grad()
    loss = forward(*inputs)
    loss.backward()
    return [loss.detach(), *(p.grad.clone() for p in model.parameters())]


def assert_close(actual, expected):
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_compiled_model_trains_as_an_eager_one():
    model = Block(dropout=0.2)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    graphs = torch._dynamo.utils.counters["stats"]
    before = graphs["unique_graphs"]  # other files' tests have made some
    for tokens in (6, 9, 11):  # the third length needs no third compilation
        inputs = batch(tokens)
        step = model.step.clone()
        actual = loss_and_gradients(model, compiled, inputs)
        assert torch.equal(model.step, step + torch.tensor([0, 1]))
        model.step.copy_(step)
        assert_close(actual, loss_and_gradients(model, model, inputs))
    assert graphs["unique_graphs"] - before == 2


@pytest.mark.slow
def test_inductors_code_takes_the_layouts_of_the_operations():
    def attend(x):
        return ops.attention(ops.rotate(x), x, x, causal=True).sum()

    x = torch.randn(2, 3, 70, 8, requires_grad=True)
    found = torch.autograd.grad(torch.compile(attend, fullgraph=True)(x), x)
    assert_close(found, torch.autograd.grad(attend(x), x))


def test_steps_of_a_compiled_model_drop_other_weights():
    compiled = torch.compile(Block(dropout=0.5), fullgraph=True, backend="aot_eager")
    inputs = batch()
    assert compiled(*inputs).item() != compiled(*inputs).item()


def test_an_exported_model_computes_the_same(tmp_path):
    model = Block()
    inputs = batch()
    tokens = torch.export.Dim("tokens", min=2, max=512)
    exported = torch.export.export(model, inputs, dynamic_shapes=({1: tokens}, {1: tokens}))
    assert "headshare.attention_forward" in str(exported.graph)
    torch.export.save(exported, tmp_path / "model.pt2")
    again = torch.export.load(tmp_path / "model.pt2").module()
    for length in (6, 70):
        inputs = batch(length)
        assert_close([again(*inputs)], [model(*inputs)])


def test_autocast_is_compiled_with_the_model():
    def scores(x, w):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return ops.linear(x, w)

    x, w = torch.randn(5, 8), torch.randn(7, 8)
    compiled = torch.compile(scores, fullgraph=True, backend="aot_eager")
    assert compiled(x, w).dtype == torch.bfloat16
    torch.testing.assert_close(compiled(x, w), scores(x, w))

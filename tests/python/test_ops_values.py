"""Tests what the operations of headshare.ops compute, against torch's own operations."""

import attention_cases
import headshare
import numpy
import pytest
import torch
from torch.nn import functional

ops = headshare.ops


def close(actual, expected, scale=1.0):
    """Checks against float64: 2^-20 of the largest value is some eight roundings of float32."""
    bound = scale * 2.0**-20 * max(expected.abs().max().item(), 1.0)
    assert (actual.double() - expected.double()).abs().max().item() <= bound


# --- attention ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", attention_cases.NAMES)
def test_attention_and_its_gradients_are_the_formula(name):
    exact, exact_options = attention_cases.problem(name, torch.float64, learns=True)
    expected = attention_cases.formula(*exact, **exact_options)
    slopes = torch.linspace(-1, 1, expected.numel(), dtype=torch.float64).view(expected.shape)
    exact_inputs = attention_cases.tensors_of(exact, exact_options)
    expected_gradients = torch.autograd.grad(expected, exact_inputs, slopes)
    for dtype in (torch.float32, torch.float64):
        given, options = attention_cases.problem(name, dtype, learns=True)
        out = ops.attention(*given, **options)
        close(out, expected)
        found = torch.autograd.grad(out, attention_cases.tensors_of(given, options), slopes.to(dtype))
        for actual, wanted in zip(found, expected_gradients, strict=True):
            close(actual, wanted, scale=4)


def test_attention_equals_torchs_fused_attention():
    query, key, value = (torch.randn(2, 4, 33, 16) for _ in range(3))
    expected = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    close(ops.attention(query, key, value, causal=True), expected)


def test_attention_in_bfloat16_is_near_the_formula():
    exact, options = attention_cases.problem("groups", torch.float64)
    expected = attention_cases.formula(*exact, **options)
    given, options = attention_cases.problem("groups", torch.bfloat16, learns=True)
    out = ops.attention(*given, **options)
    assert out.dtype == torch.bfloat16
    assert (out.double() - expected).abs().max() < 2.0**-5
    out.sum().backward()
    assert given[0].grad.dtype == torch.bfloat16


def test_a_backend_is_chosen_as_the_program_does():
    given, options = attention_cases.problem("shift", learns=True)
    assert ops.attention_backend(*given, **options).backend == "factorised"
    given, options = attention_cases.problem("causal", learns=True)
    choice = ops.attention_backend(*given, **options)
    assert choice.backend == "fused"
    assert "decode: it has no gradients" in choice.refused
    given, options = attention_cases.problem("step")
    assert ops.attention_backend(*given, **options).backend == "decode"
    given, options = attention_cases.problem("step", torch.float64)
    assert ops.attention_backend(*given, **options).backend == "sdpa"


@pytest.mark.parametrize("backend", ["fused", "factorised", "sdpa", "reference"])
def test_every_backend_has_gradients(backend, monkeypatch):
    monkeypatch.setenv("HEADSHARE_BACKEND", backend)
    name = "causal" if backend == "sdpa" else "shift"
    exact, options = attention_cases.problem(name, torch.float64, learns=True)
    expected = torch.autograd.grad(
        attention_cases.formula(*exact, **options).sum(), attention_cases.tensors_of(exact, options)
    )
    given, options = attention_cases.problem(name, learns=True)
    found = torch.autograd.grad(ops.attention(*given, **options).sum(), attention_cases.tensors_of(given, options))
    for actual, wanted in zip(found, expected, strict=True):
        close(actual, wanted, scale=16)


def test_the_backward_pass_uses_the_backend_of_the_forward_pass(monkeypatch):
    given, options = attention_cases.problem("shift", learns=True)
    expected = torch.autograd.grad(ops.attention(*given, **options).sum(), given)
    out = ops.attention(*given, **options)
    monkeypatch.setenv("HEADSHARE_BACKEND", "reference")
    for actual, wanted in zip(torch.autograd.grad(out.sum(), given), expected, strict=True):
        assert torch.equal(actual, wanted)


# --- dropout -----------------------------------------------------------------------------------


def test_attention_drops_by_its_key_alone():
    given, options = attention_cases.problem("causal", learns=True)

    def dropped(key, threads=2):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        out = ops.attention(*given, **options, dropout=0.5, dropout_key=key)
        gradient = torch.autograd.grad(out.sum(), given[2])[0]
        torch.set_num_threads(before)
        return out, gradient

    out, gradient = dropped([7, 1])
    again, gradient_again = dropped(torch.tensor([7, 1]), threads=1)
    assert torch.equal(out, again) and torch.equal(gradient, gradient_again)
    assert not torch.equal(out, dropped([7, 2])[0])
    # Without dropout the gradients of a row's values sum to one for each query.
    assert abs(gradient.sum().item() / out.numel() - 1) < 0.05


def test_backends_drop_the_same_weights(monkeypatch):
    given, options = attention_cases.problem("causal")
    expected = ops.attention(*given, **options, dropout=0.3, dropout_key=5)
    monkeypatch.setenv("HEADSHARE_BACKEND", "reference")
    close(ops.attention(*given, **options, dropout=0.3, dropout_key=5), expected)


def test_a_number_is_the_same_key_wherever_it_comes_from():
    x = torch.ones(64)
    expected = ops.dropout(x, 0.5, 7)
    assert torch.equal(ops.dropout(x, 0.5, numpy.int64(7)), expected)
    assert torch.equal(ops.dropout(x, 0.5, numpy.array([7])), expected)
    with torch.device("meta"):
        assert torch.equal(ops.dropout(x, 0.5, 7), expected)


def test_a_key_may_move_on_before_the_backward_pass():
    step = torch.tensor([3, 0])
    x = torch.randn(64, 64, requires_grad=True)
    out = ops.dropout(x, 0.5, step)
    step += 1
    assert torch.equal(torch.autograd.grad(out.sum(), x)[0] * x, out)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_dropout_keeps_the_mean(dtype):
    x = torch.ones(100, 400, dtype=dtype)
    out = ops.dropout(x, 0.25, 9)
    assert set(out.unique().tolist()) == {0.0, out.max().item()}
    assert abs(out.double().mean().item() - 1) < 0.02
    assert torch.equal(ops.dropout(x, 0.0, 9), x)


def test_keys_of_streams_are_the_programs():
    # rng_test.cc of headshare/base has the numbers of Philox; here the two levels differ and repeat.
    key = ops.stream_key(1, "blocks.0.attention")
    assert key == ops.stream_key(1, "blocks.0.attention") != ops.stream_key(2, "blocks.0.attention")
    assert -(2**63) <= key < 2**63


# --- the loss ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("ignored", [0, 3])
def test_cross_entropy_is_torchs(dtype, reduction, ignored):
    inputs = [torch.randn(s, dtype=dtype, requires_grad=True) for s in ((2, 5, 6), (40, 6), (40,))]
    targets = torch.arange(10).view(2, 5)
    targets.view(-1)[:ignored] = -100
    hidden, weight, bias = inputs
    loss = ops.cross_entropy(hidden, weight, targets, bias, reduction=reduction)
    scores = hidden @ weight.t() + bias
    expected = functional.cross_entropy(scores.view(10, 40), targets.view(10), reduction=reduction)
    assert loss.shape == () and loss.dtype == dtype
    close(loss, expected, scale=16)
    for actual, wanted in zip(torch.autograd.grad(loss * 3, inputs), torch.autograd.grad(expected * 3, inputs), strict=True):
        close(actual, wanted, scale=16)


def test_a_loss_without_targets_has_a_gradient_of_0():
    hidden, weight = torch.randn(6, 8, requires_grad=True), torch.randn(11, 8, requires_grad=True)
    loss = ops.cross_entropy(hidden, weight, torch.full((6,), -100))
    loss.backward()
    assert loss.isnan()
    assert torch.equal(hidden.grad, torch.zeros(6, 8)) and torch.equal(weight.grad, torch.zeros(11, 8))


def test_only_wanted_gradients_of_the_loss_are_computed():
    hidden, weight = torch.randn(5, 6), torch.randn(40, 6, requires_grad=True)
    ops.cross_entropy(hidden, weight, torch.arange(5)).backward()
    assert weight.grad is not None and hidden.grad is None
    with torch.no_grad():
        assert not ops.cross_entropy(hidden, weight, torch.arange(5)).requires_grad


# --- parts of a block --------------------------------------------------------------------------

_PARTS = {
    "gelu": (lambda x: ops.gelu(x, "tanh"), lambda x: functional.gelu(x, approximate="tanh"), [(6, 48)]),
    "rms_norm": (
        lambda x, w: ops.rms_norm(x, w, 1e-5),
        lambda x, w: functional.rms_norm(x, (48,), w, 1e-5),
        [(2, 40, 48), (48,)],
    ),
    "linear": (ops.linear, functional.linear, [(3, 60, 48), (96, 48), (96,)]),
    "linear_of_gelu": (
        lambda x, w, b: ops.linear_of_gelu(x, w, b),
        lambda x, w, b: functional.linear(functional.gelu(x), w, b),
        [(180, 48), (96, 48), (96,)],
    ),
}


@pytest.mark.parametrize("part", _PARTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_parts_of_a_block_are_torchs(part, dtype):
    ours, torchs, shapes = _PARTS[part]
    inputs = [torch.randn(s, dtype=dtype, requires_grad=True) for s in shapes]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    out, expected = ours(*inputs), torchs(*exact)
    assert out.dtype == dtype
    close(out, expected, scale=16)
    slopes = torch.linspace(-1, 1, out.numel()).view(out.shape)
    found = torch.autograd.grad(out, inputs, slopes.to(dtype))
    for actual, wanted in zip(found, torch.autograd.grad(expected, exact, slopes.double()), strict=True):
        close(actual, wanted, scale=64)


def test_rotation_turns_pairs_and_its_gradient_turns_back():
    x = torch.randn(2, 3, 5, 8, requires_grad=True)
    out = ops.rotate(x, first=4)
    angle = torch.arange(4, 9).unsqueeze(1) * 10000.0 ** (-2 * torch.arange(4) / 8)
    a, b = x.chunk(2, dim=3)
    expected = torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], dim=3)
    close(out, expected)
    slopes = torch.randn_like(out)
    close(torch.autograd.grad(out, x, slopes)[0], torch.autograd.grad(expected, x, slopes)[0])
    still = ops.rotate(x, first=4, width=4)
    assert torch.equal(still[..., :4], x[..., :4]) and not torch.equal(still[..., 4:], x[..., 4:])


# --- gradients of float64, where libtorch computes ---------------------------------------------


def test_gradients_of_float64_equal_finite_differences():
    given, options = attention_cases.problem("biases", torch.float64, learns=True)
    slopes = options.pop("alibi_slopes")
    shift, bias = options.pop("query_shift"), options.pop("key_bias")

    def attend(query, key, value, shift, bias):
        return ops.attention(query, key, value, query_shift=shift, key_bias=bias, alibi_slopes=slopes, **options)

    assert torch.autograd.gradcheck(attend, (*given, shift, bias), fast_mode=True)
    x, weight = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((4, 6), (6,)))
    assert torch.autograd.gradcheck(ops.rms_norm, (x, weight))
    assert torch.autograd.gradcheck(ops.gelu, (x,))
    assert torch.autograd.gradcheck(lambda x: ops.dropout(x, 0.5, 3), (x,))
    assert torch.autograd.gradgradcheck(lambda x: ops.rotate(x.view(1, 1, 4, 6)), (x,))
    hidden = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    output = torch.randn(9, 6, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([1, -100, 8, 0])
    assert torch.autograd.gradcheck(lambda h, w: ops.cross_entropy(h, w, targets), (hidden, output))


# --- autocast ----------------------------------------------------------------------------------


def test_autocast_casts_what_is_multiplied():
    given, options = attention_cases.problem("shift", learns=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = ops.attention(*given, **options)
        loss = ops.cross_entropy(torch.randn(5, 6), torch.randn(40, 6), torch.arange(5))
        y = ops.linear(torch.randn(5, 6), torch.randn(40, 6))
        normed = ops.rms_norm(torch.randn(5, 6), torch.ones(6))
    assert out.dtype == torch.bfloat16 and y.dtype == torch.bfloat16
    assert loss.dtype == torch.float32 and normed.dtype == torch.float32
    out.sum().backward()
    assert given[0].grad.dtype == torch.float32

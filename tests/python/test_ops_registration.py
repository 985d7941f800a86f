"""Tests by torch's own opcheck that every operation keeps what it tells torch: schema, autograd, shapes, tracing."""

import attention_cases
import headshare
import pytest
import torch

raw = torch.ops.headshare


def problem(name, dtype=torch.float32, *, learns=True, dropout=0.0):
    tensors, options = attention_cases.problem(name, dtype, learns=learns)
    keys = {"dropout": dropout, "dropout_key": [3, 4]} if dropout else {}
    return headshare.ops._problem(*tensors, **options, **keys)


@pytest.mark.parametrize(
    ("name", "dtype", "learns", "dropout"),
    [
        ("causal", torch.float32, True, 0.5),
        ("groups", torch.bfloat16, True, 0.0),
        ("shift", torch.float32, True, 0.0),
        ("shift", torch.float64, True, 0.5),
        ("biases", torch.float32, True, 0.0),
        ("step", torch.float32, False, 0.0),
    ],
)
def test_attention(name, dtype, learns, dropout):
    args = problem(name, dtype, learns=learns, dropout=dropout)
    tolerance = {"atol": 1e-2, "rtol": 1e-2} if dtype == torch.bfloat16 else {}
    torch.library.opcheck(raw.attention_forward, args, **tolerance)


@pytest.mark.parametrize(("name", "dtype"), [("shift", torch.float32), ("biases", torch.float64)])
def test_attention_backward(name, dtype):
    args = problem(name, dtype, learns=False)[:-1]
    made = raw.attention_forward(*args, True)
    torch.library.opcheck(raw.attention_backward, (*args, *made, torch.randn_like(made[0])))


def test_empty_batch():
    query = torch.randn(0, 2, 5, 8, requires_grad=True)
    torch.library.opcheck(raw.attention_forward, headshare.ops._problem(query, query, query))


LEARNED = {"requires_grad": True}


def drawn(*sizes, **options):
    return torch.randn(*sizes, **options)


def loss_arguments(products=None):
    targets = torch.tensor([1, -100, 8, 0])
    return drawn(4, 6, **LEARNED), drawn(9, 6, **LEARNED), targets, drawn(9, **LEARNED), -100, products, True, True, True


CASES = {
    "gelu": lambda: (drawn(4, 6, **LEARNED), "tanh"),
    "gelu_backward": lambda: (drawn(4, 6), drawn(4, 6), "none"),
    "dropout": lambda: (drawn(4, 6, **LEARNED), 0.5, torch.tensor([3])),
    "linear": lambda: (drawn(70, 48, **LEARNED), drawn(96, 48, **LEARNED), drawn(96, **LEARNED), "none"),
    "linear_backward": lambda: (drawn(70, 96), drawn(70, 48), drawn(96, 48), None, True, True, False),
    "rms_norm_forward": lambda: (drawn(4, 5, 6, **LEARNED), drawn(6, **LEARNED), 1e-5),
    "rms_norm_backward": lambda: (drawn(4, 6), drawn(4, 6), drawn(6), torch.ones(4), 1e-5),
    "rotate": lambda: (drawn(2, 3, 5, 8, **LEARNED), 4, 1e4, 8, 4, False),
    "cross_entropy_forward": loss_arguments,
    "cross_entropy_backward": lambda: (torch.tensor(2.0), drawn(4, 6), drawn(9, 6), None, drawn(4, 6), drawn(9, 6), drawn(0)),
}


@pytest.mark.parametrize("name", CASES)
def test_other_operations(name):
    torch.library.opcheck(getattr(raw, name), CASES[name]())


@pytest.mark.parametrize("name", ["gelu", "rms_norm_forward", "linear"])
def test_float64_and_strange_layouts(name):
    args = [x.detach().double() if isinstance(x, torch.Tensor) else x for x in CASES[name]()]
    wide = torch.randn(*reversed(args[0].shape), dtype=torch.float64)
    args[0] = wide.permute(*reversed(range(wide.dim()))).requires_grad_()
    torch.library.opcheck(getattr(raw, name), tuple(args))


def test_rotation_of_heads_beside_each_other():
    x = torch.randn(2, 5, 3, 8).transpose(1, 2)
    for dtype in (torch.float32, torch.float64):
        torch.library.opcheck(raw.rotate, (x.to(dtype).detach().requires_grad_(), 0, 1e4, 4, 4, True))


def test_loss_in_bfloat16_products():
    utils = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(raw.cross_entropy_forward, loss_arguments(torch.bfloat16), test_utils=utils)


def test_every_operation_is_here():
    names = {name.removeprefix("headshare::") for name in torch._C._dispatch_get_all_op_names() if name.startswith("headshare::")}
    without_tensors_out = {"attention_backend", "stream_key"}
    assert names == {"attention_forward", "attention_backward", *CASES} | without_tensors_out

"""Shapes, types and layouts of what the operations return, for torch.compile and torch.export.

Each function has the arguments of its operation. It checks that tensors are on one device, as those of other devices
than the meta device never come here alone; all else the C++ kernels check when they run.
"""

import torch

# An operation that has nothing to return in some place returns a tensor without numbers there.
_NOTHING = 0


def _check_devices(x, *others):
    for other in others:
        if other is not None and other.device != x.device:
            raise RuntimeError(f"headshare's operations take tensors on one device, not on {x.device} and {other.device}")


def _heads(like, batch, heads, rows, width):
    """Returns [batch, heads, rows, width] that lies as [batch, rows, heads, width]."""
    return like.new_empty((batch, rows, heads, width)).transpose(1, 2)


def _heads_like(x):
    return _heads(x, *x.shape)


@torch.library.register_fake("headshare::attention_forward")
def _(query, key, value, heads, query_shift, key_bias, scale, causal, visible_keys, alibi_slopes, dropout, dropout_key,
      shared_dropout, gradients):  # fmt: skip
    _check_devices(query, key, value, query_shift, key_bias, visible_keys, alibi_slopes)
    batch, _, rows, _ = query.shape
    floats = torch.float32
    state = [(batch, heads, rows), (batch, rows), (batch, heads, rows)] if gradients else [_NOTHING] * 3
    return (
        _heads(query, batch, heads, rows, value.shape[3]),
        query.new_empty(state[0], dtype=floats),
        query.new_empty(state[1], dtype=floats),
        query.new_empty(state[2], dtype=torch.bool),
        torch.empty(1, dtype=torch.uint8, device="cpu"),
    )


@torch.library.register_fake("headshare::attention_backward")
def _(query, key, value, heads, query_shift, key_bias, scale, causal, visible_keys, alibi_slopes, dropout, dropout_key,
      shared_dropout, out, lse, m, by_head, backend, gradient):  # fmt: skip
    def beside(x):
        return query.new_empty(_NOTHING) if x is None else x.new_empty(x.shape)

    return _heads_like(query), _heads_like(key), _heads_like(value), beside(query_shift), beside(key_bias)


@torch.library.register_fake("headshare::cross_entropy_forward")
def _(hidden, embedding, targets, bias, ignored, products, hidden_wanted, embedding_wanted, bias_wanted):
    _check_devices(hidden, embedding, targets, bias)
    products = hidden.dtype if products is None else products
    loss = torch.float32 if products in (torch.bfloat16, torch.float16) else products

    def gradient(x, wanted):
        return x.new_empty(x.shape) if wanted and x is not None else hidden.new_empty(_NOTHING)

    return (
        hidden.new_empty((), dtype=loss),
        gradient(hidden, hidden_wanted),
        gradient(embedding, embedding_wanted),
        gradient(bias, bias_wanted),
    )


@torch.library.register_fake("headshare::cross_entropy_backward")
def _(gradient, hidden, embedding, bias, *found):
    return tuple(x.new_empty(x.shape) for x in found)


@torch.library.register_fake("headshare::dropout")
def _(x, p, key):
    return x.new_empty(x.shape)


@torch.library.register_fake("headshare::gelu")
def _(x, approximate):
    return x.new_empty(x.shape)


@torch.library.register_fake("headshare::gelu_backward")
def _(gradient, x, approximate):
    return x.new_empty(x.shape)


@torch.library.register_fake("headshare::linear")
def _(x, weight, bias, gelu):
    _check_devices(x, weight, bias)
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


@torch.library.register_fake("headshare::linear_backward")
def _(gradient, x, weight, gelu, x_wanted, weight_wanted, bias_wanted):
    return (
        x.new_empty(x.shape if x_wanted else _NOTHING),
        x.new_empty(weight.shape if weight_wanted else _NOTHING),
        x.new_empty(weight.shape[:1] if bias_wanted else _NOTHING),
    )


@torch.library.register_fake("headshare::rms_norm_forward")
def _(x, weight, eps):
    _check_devices(x, weight)
    inverse = torch.float64 if x.dtype == torch.float64 else torch.float32
    return x.new_empty(x.shape), x.new_empty(x.shape[:-1], dtype=inverse).reshape(-1)


@torch.library.register_fake("headshare::rms_norm_backward")
def _(gradient, x, weight, inverse, eps):
    return x.new_empty(x.shape), weight.new_empty(weight.shape)


@torch.library.register_fake("headshare::rotate")
def _(x, first, base, width, period, back):
    return torch.empty_like(x if x.stride(3) == 1 else x.contiguous())

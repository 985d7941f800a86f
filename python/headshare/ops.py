"""headshare's operations on tensors, as C++ computes them.

On the CPU, float32 and bfloat16 run on headshare's own kernels. Other types and devices run on libtorch's operations,
with the same results up to rounding. All operations take tensors of any layout and empty batches, run under autograd
(once: there is no second derivative, but for `dropout` and `rotate`), torch.autocast, torch.compile and torch.export.
What they cannot take is a RuntimeError with the numbers. docs/python-ops.md has examples.

Letters: B batch, T queries, S keys, E model width, H heads, V vocabulary; Hq, Hk, Hv heads of queries, keys and values;
Dk, Dv widths of a head of queries and keys, and of values.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, SupportsIndex, TypedDict, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad

from headshare import _load

_load.load()  # the operations exist from here on

from headshare import _autocast, _autograd, _fake  # noqa: E402, F401  (they register themselves)

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "AttentionOptions",
    "BackendChoice",
    "attention",
    "attention_backend",
    "cross_entropy",
    "dropout",
    "gelu",
    "linear",
    "linear_of_gelu",
    "rms_norm",
    "rotate",
    "stream_key",
]

_ops = torch.ops.headshare
_P = ParamSpec("_P")
_R = TypeVar("_R")

Key = SupportsIndex | Sequence[SupportsIndex] | Tensor


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _key_numbers(key: Key, x: Tensor) -> Tensor:
    """Returns int64 [n]. A tensor is copied, so that its owner may count on before the backward pass.

    Numbers come to the CPU, where masks are named, whatever torch's default device is.
    """
    if isinstance(key, Tensor):
        if key.device.type != "cpu" and key.device != x.device:
            raise RuntimeError(f"a dropout's key is on the CPU or on its tensor's device {x.device}, not on {key.device}")
        return key.reshape(-1).clone()
    numbers = list(key) if hasattr(key, "__iter__") else [key]
    return torch.tensor([_signed(_number(one)) for one in numbers], dtype=torch.int64, device="cpu")


def _number(one: SupportsIndex) -> int:
    """Returns numpy's integers as Python's; refuses what is no integer."""
    return one if isinstance(one, int | torch.SymInt) else operator.index(one)


def _learns(*tensors: Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def _reverse_mode_alone(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuses forward-mode differentiation, in which the operations' tangents would silently be 0."""

    @functools.wraps(function)
    def checked(*arguments: _P.args, **named: _P.kwargs) -> _R:
        if forward_ad._current_level >= 0:
            raise RuntimeError(
                f"headshare.ops.{function.__name__} has no forward-mode derivative (torch.func.jvp, dual numbers): use "
                "torch.autograd.grad"
            )
        return function(*arguments, **named)

    return checked


def stream_key(seed: int, name: str) -> int:
    """Returns the key of the stream `name` below the key `seed`: how headshare names the random numbers of a site.

    A layer of the C++ program at the path `name` with this seed draws its masks from [stream_key(seed, name), step].
    """
    return int(_ops.stream_key(_signed(seed), name))


# --- attention ---------------------------------------------------------------------------------


class AttentionOptions(TypedDict, total=False):
    """Holds what `attention` takes besides queries, keys and values, and explains there."""

    heads: int | None
    scale: float | None
    causal: bool
    visible_keys: Tensor | None
    query_shift: Tensor | None
    key_bias: Tensor | None
    alibi_slopes: Tensor | None
    dropout: float
    dropout_key: Key | None
    shared_dropout: bool


class BackendChoice(NamedTuple):
    """Says which backend computes an attention, and why those before it in the order of preference do not."""

    backend: str  #: decode, factorised, fused (headshare's kernels), sdpa (libtorch's), blocked or reference (formula)
    refused: tuple[str, ...]  #: "backend: reason", a line for each reason


def _problem(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    heads: int | None = None,
    scale: float | None = None,
    causal: bool = False,
    visible_keys: Tensor | None = None,
    query_shift: Tensor | None = None,
    key_bias: Tensor | None = None,
    alibi_slopes: Tensor | None = None,
    dropout: float = 0.0,
    dropout_key: Key | None = None,
    shared_dropout: bool = False,
) -> tuple:
    """Returns the arguments of headshare::attention_forward."""
    for name, x in (("queries", query), ("keys", key), ("values", value)):
        if x.dim() != 4:
            raise RuntimeError(f"attention {name} must be [batch, heads, length, width], not {list(x.shape)}")
    if heads is None:
        heads = max(query.shape[1], key.shape[1], value.shape[1])
        if query_shift is not None and query_shift.dim() == 2:
            heads = max(heads, query_shift.shape[0])
        if key_bias is not None and key_bias.dim() == 3:
            heads = max(heads, key_bias.shape[1])
    if dropout > 0 and dropout_key is None:
        raise RuntimeError(f"dropout of {dropout} needs a dropout_key, such as [site, step], that names its mask")
    if scale is None:
        scale = 1 / math.sqrt(max(query.shape[3], 1))
    numbers = _key_numbers(dropout_key, query) if dropout > 0 else None
    gradients = _learns(query, key, value, query_shift, key_bias, alibi_slopes)
    return (query, key, value, heads, query_shift, key_bias, scale, causal, visible_keys, alibi_slopes, dropout, numbers,
            shared_dropout, gradients)  # fmt: skip


@_reverse_mode_alone
def attention(query: Tensor, key: Tensor, value: Tensor, **options: Unpack[AttentionOptions]) -> Tensor:
    """Returns softmax(score + mask) V, head by head: [B, H, T, Dv].

    score_h[i, j] = scale * (q_{h,i} . k_j + query_shift_h . k_j + key_bias_h[j]) - alibi_slopes_h * |i + S - T - j|

    The number of heads of query, key and value is each 1, a divisor of H, or H; head h reads head h / (H / number). A
    query that sees no key gets zeros and gives no gradient. headshare chooses among its kernels and libtorch's as the C++
    program does (`attention_backend` says which, the environment's HEADSHARE_BACKEND forces one).

    Args:
        query: [B, Hq, T, Dk]
        key: [B, Hk, S, Dk], of the query's type
        value: [B, Hv, S, Dv], of the query's type

    Keyword Args:
        heads (int): H; by default the largest number of heads of any argument
        scale (float): by default 1 / sqrt(Dk)
        causal (bool): query i sees the keys j <= i + S - T: the last query sees all keys
        visible_keys (Tensor): bool [B, S]; False hides a key from every query
        query_shift (Tensor): [H, Dk], a content bias for each head; needs Hq = Hk = 1
        key_bias (Tensor): [B, H, S], a bias for each head and key
        alibi_slopes (Tensor): [H]; has no gradient
        dropout (float): probability, in [0, 1), that a weight is dropped; the rest is scaled by 1 / (1 - dropout)
        dropout_key (int, a sequence of ints, or an int64 Tensor): names the mask, which follows from it alone: equal
            keys drop equal weights, on every number of threads. Give [site, step], with another site for each layer. A
            tensor lets a compiled model count its steps without being compiled again
        shared_dropout (bool): one mask for all heads

    Raises:
        RuntimeError: shapes, types or devices do not fit; the message has the numbers.

    Source: docs/mathematics.md (the canonical form); headshare/ops/head_attention/head_attention.h.
    """
    return _ops.attention_forward(*_problem(query, key, value, **options))[0]


def attention_backend(
    query: Tensor, key: Tensor, value: Tensor, **options: Unpack[AttentionOptions]
) -> BackendChoice:
    """Returns which backend `attention` runs with these arguments, and why the faster ones do not."""
    chosen, *refused = _ops.attention_backend(*_problem(query, key, value, **options))
    return BackendChoice(chosen, tuple(refused))


# --- the output layer's loss -------------------------------------------------------------------


@_reverse_mode_alone
def cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    bias: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Returns torch.nn.functional.cross_entropy(hidden @ weight.T + bias, targets) without holding the scores.

    Scores exist a chunk of rows at a time, and the gradients are computed with them: a vocabulary of 50,000 costs no
    [N, V] tensor. They wait for the backward pass.

    Args:
        hidden: [..., E]
        weight: [V, E], the output layer or the tied embedding
        targets: int64 [...], each ignore_index or in 0 .. V - 1
        bias: [V]
        ignore_index: rows with this target count nothing
        reduction: "mean" over the rows with a target (NaN, with a gradient of 0, when there are none), or "sum"

    Returns:
        a scalar in nats: float32, or float64 for such inputs

    Raises:
        RuntimeError: shapes do not fit, or a target is no token.

    Source: headshare/ops/cross_entropy.h.
    """
    if reduction not in ("mean", "sum"):
        raise RuntimeError(f"a cross-entropy is reduced by mean or sum, not by {reduction!r}")
    if targets.shape != hidden.shape[:-1]:
        raise RuntimeError(
            f"a cross-entropy needs a target for each of {hidden.shape[:-1].numel()} rows: hidden states "
            f"{list(hidden.shape)} have targets {list(hidden.shape[:-1])}, not {list(targets.shape)}"
        )
    rows, flat = hidden.reshape(-1, hidden.shape[-1]), targets.reshape(-1)
    wanted = [_learns(x) for x in (hidden, weight, bias)]
    total = _ops.cross_entropy_forward(rows, weight, flat, bias, ignore_index, None, *wanted)[0]
    if reduction == "sum":
        return total
    count = (flat != ignore_index).sum()
    return (total / count.clamp(min=1)).masked_fill(count == 0, math.nan)  # as torch's: a gradient of 0 even then


# --- parts of a block --------------------------------------------------------------------------


@_reverse_mode_alone
def dropout(x: Tensor, p: float, key: Key) -> Tensor:
    """Returns x with elements dropped with probability p and the rest scaled by 1 / (1 - p).

    The mask follows from p, the key and the number of values; nothing is kept for the backward pass. See `attention` for
    keys. Where a site draws several masks in a step, a third number tells them apart: [site, step, part].
    """
    return _ops.dropout(x, p, _key_numbers(key, x))


@_reverse_mode_alone
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """Returns torch.nn.functional.gelu(x, approximate)."""
    return _ops.gelu(x, approximate)


@_reverse_mode_alone
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Returns torch.nn.functional.linear(x, weight, bias): x [..., in], weight [out, in], bias [out]."""
    return _ops.linear(x, weight, bias, None)


@_reverse_mode_alone
def linear_of_gelu(x: Tensor, weight: Tensor, bias: Tensor | None = None, approximate: str = "none") -> Tensor:
    """Returns linear(gelu(x, approximate), weight, bias), and keeps x alone for the backward pass."""
    return _ops.linear(x, weight, bias, approximate)


@_reverse_mode_alone
def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-5) -> Tensor:
    """Returns x / sqrt(mean(x^2) + eps) * weight over the last axis, in float32 or wider (Zhang and Sennrich, 2019).

    x is [..., E] and weight [E]. The weight of float32 rows is float32.
    """
    return _ops.rms_norm_forward(x, weight, eps)[0]


@_reverse_mode_alone
def rotate(x: Tensor, first: int = 0, base: float = 10000.0, *, width: int | None = None, period: int | None = None) -> Tensor:
    """Returns x [B, heads, T, D] with rotary positions (Su et al., RoFormer): token t stands at position first + t.

    Pairs (x_i, x_{i + width/2}) of the last `width` dimensions turn by position * base^(-2i/width). With a `period` the
    angles come again after so many dimensions. Both are even; by default they are D.
    """
    width = x.shape[-1] if width is None else width
    return _ops.rotate(x, first, base, width, width if period is None else period, False)

"""Attention layers whose heads share projections, as `torch.nn` modules. The arithmetic is headshare's C++."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from headshare import _load
from headshare._borrowed import BorrowedModule, CppObject, Description, check_finite, drawn_seed
from headshare._error import in_python

_load.load()  # the classes of torch exist from here on

__all__ = ["SharedHeadAttention"]

# Options of the program that arguments say under torch's names.
_ARGUMENTS = {"d-model": "embed_dim", "heads": "num_heads", "projection-bias": "bias", "attention-dropout": "dropout"}
_PREFIX = "scheme."  # C++ puts a layer's parameters below it; names here begin behind it


class _Elsewhere:
    """Stands where torch looks for a weight, and says with its method that torch's own kernels cannot read it."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return NotImplemented


class SharedHeadAttention(BorrowedModule):
    """Multi-head attention with any of headshare's schemes, in the place of `torch.nn.MultiheadAttention`.

    The arguments up to `dtype` are those of `torch.nn.MultiheadAttention`, with the same meaning. Keys and values come
    from one memory, so `kdim` and `vdim` must be `embed_dim`, and `add_bias_kv` and `add_zero_attn` are refused.

    Args:
        embed_dim: E, the width of inputs and outputs.
        num_heads: H.
        dropout: the probability with which attention weights are dropped in training.
        bias: whether the projections have biases.
        batch_first: whether tensors are [B, T, E] instead of [T, B, E].
        scheme: how heads share: "mha", "gqa", "mqa", "sha", "skv", "el_shared", "el_lossless", "mhe_add", "mhe_mul",
            "collaborative", "lrkv", "shared_query" or "mla" (docs/mathematics.md has the formulas and the papers).
        **options: the options of `headshare train` for attention, with underscores: `groups`, `head_width`,
            `key_width`, `content_bias`, `qk_norm`, `output_gate`, `attention_sinks`, ...; and `rotary`, `rotary_base`,
            `rotary_scaling`, `rotary_dimensions`, ..., `alibi`, `init_deviation` (of the projections, 0.02),
            `output_deviation` (of the output projection, 0.02).

    The names in `state_dict` are stable: `query.weight`, `key.weight`, `value.weight`, `output.weight`, their `.bias`,
    and what a scheme adds (`query_embedding`, `mixing`, ...), as in docs/python-training.md.

    Raises:
        ValueError: for options that are impossible, or that this scheme does not read.

    >>> layer = SharedHeadAttention(64, 4, scheme="mhe_mul", batch_first=True)
    >>> output, _ = layer(torch.randn(2, 10, 64), is_causal=True)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device=None,
        dtype=None,
        *,
        scheme: str = "mha",
        **options: Any,
    ) -> None:
        super().__init__()
        if add_bias_kv or add_zero_attn:
            raise ValueError("add_bias_kv and add_zero_attn add tokens to the memory, which no scheme of headshare does")
        if any(width not in (None, embed_dim) for width in (kdim, vdim)):
            raise ValueError(f"keys and values come from one memory as wide as the input: kdim {kdim} and vdim {vdim} "
                             f"must be embed_dim {embed_dim}")
        self.embed_dim, self.num_heads, self.scheme, self.batch_first = embed_dim, num_heads, scheme, batch_first
        self._dropout = dropout
        check_finite({"dropout": dropout, **options})
        given = {name.replace("_", "-"): value for name, value in options.items() if value is not None}
        for name, argument in _ARGUMENTS.items():
            if name in given:
                raise ValueError(f"{name.replace('-', '_')} is the argument {argument} of this layer")
        given |= {"d-model": embed_dim, "heads": num_heads, "scheme": scheme, "projection-bias": bias,
                  "attention-dropout": dropout}
        self._make(json.dumps(given))
        described = [Description(*one) for one in self._layer.held.parameters()]
        self._declare([one._replace(name=one.name.removeprefix(_PREFIX)) for one in described], device, dtype)
        self.reset_parameters()

    def _make(self, options: str) -> None:
        self._options = options
        try:
            self._layer = CppObject(torch.classes.headshare.AttentionLayer(options))
        except RuntimeError as error:
            raise ValueError(in_python(str(error))) from None

    # torch.nn.TransformerEncoderLayer and TransformerEncoder ask for these before they compute attention by themselves,
    # in evaluation. The first two keep a layer and a stack from it; a stack that was made of torch's layers, which were
    # replaced afterwards, reads the weights too, and gives up where one has a __torch_function__.
    in_proj_bias = None
    _qkv_same_embed_dim = False
    in_proj_weight = _Elsewhere()
    out_proj = SimpleNamespace(weight=None, bias=None)

    @property
    def dropout(self) -> float:
        """The probability with which attention weights are dropped in training; it is chosen when the layer is made."""
        return self._dropout

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_layer"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._make(self._options)

    @classmethod
    def from_torch(cls, source: nn.MultiheadAttention) -> SharedHeadAttention:
        """Returns a layer of scheme "mha" with the weights of `source`, in the same mode and place.

        What `source` does not learn (requires_grad), the layer does not learn.
        """
        if source.bias_k is not None or source.add_zero_attn or not source._qkv_same_embed_dim:
            raise ValueError("the source adds tokens to its memory or has keys of another width; no scheme does that")
        layer = cls(source.embed_dim, source.num_heads, source.dropout, bias=source.in_proj_bias is not None,
                    batch_first=source.batch_first, device=source.in_proj_weight.device,
                    dtype=source.in_proj_weight.dtype)
        names = ("query", "key", "value")
        state = {f"{name}.weight": one for name, one in zip(names, source.in_proj_weight.chunk(3))}
        state["output.weight"] = source.out_proj.weight
        if source.in_proj_bias is not None:
            state |= {f"{name}.bias": one for name, one in zip(names, source.in_proj_bias.chunk(3))}
            state["output.bias"] = source.out_proj.bias
        layer.load_state_dict(state)
        for name, one in layer.named_parameters():
            part, leaf = name.split(".")
            origin = getattr(source.out_proj, leaf) if part == "output" else getattr(source, f"in_proj_{leaf}")
            one.requires_grad_(one.requires_grad and origin.requires_grad)
        return layer.train(source.training)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = False,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attends from `query` to itself, or to `key`, and returns (output, weights or None).

        Args:
            query: [T, B, E], [B, T, E] with batch_first, or [T, E].
            key, value: the memory [S, B, E]; the same tensor twice, or left out for self-attention.
            key_padding_mask: bool [B, S] (or [S]), True for padding; or float, 0 and -inf.
            need_weights: also return where the heads look, without dropout. Unlike torch's, off by default: no
                kernel holds the weights.
            attn_mask: None, or the causal mask, which `is_causal` says shorter.
            average_attn_weights: whether weights are [B, T, S], averaged over heads, or [B, H, T, S].
            is_causal: whether a query sees no later key; for self-attention alone.

        A query that sees no key gives the output bias, as in torch without weights (with them torch gives NaN), and
        weights of 0.

        Raises:
            ValueError: for keys that are not the values, and for other masks.
            RuntimeError: for inputs of another shape, type or device, with both numbers.
        """
        if (key is None) != (value is None) or (key is not None and not _same(key, value)):
            raise ValueError("keys and values come from one memory: give the same tensor as key and value, or neither")
        batched = query.dim() == 3
        x = self._as_batch(query, batched)
        memory = None if key is None or _same(key, query) else self._as_batch(key, batched)
        length = (x if memory is None else memory).shape[1]
        causal = _is_causal(attn_mask, is_causal, x.shape[1], length)
        visible = _visible(key_padding_mask, batched)
        seed = drawn_seed() if self.training and self.dropout > 0 else 0 if self.training else None
        parameters = self._borrowed()
        output = self._layer.call("forward", x, memory, parameters, causal, visible, seed)
        weights = None
        if need_weights:
            weights = self._layer.call("weights", x, memory, parameters, causal, visible)
            weights = weights.mean(1) if average_attn_weights else weights
            weights = weights if batched else weights.squeeze(0)
        if not batched:
            return output.squeeze(0), weights
        return output if self.batch_first else output.transpose(0, 1), weights

    def decode(self, x: Tensor, cache: list[Tensor] | None = None,
               key_padding_mask: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
        """Goes on behind the tokens that `cache` holds (None: none yet), causally and without gradients.

        Args:
            x: the new tokens, [B, T, E], whatever batch_first is.
            cache: what the call before returned: exactly the tensors [B, heads, tokens, width] that the scheme keeps.
            key_padding_mask: bool [B, tokens], True for padding, over the cached tokens and the new ones.

        Returns the output [B, T, E] and the grown cache.

        Raises:
            RuntimeError: for a cache of another form or type than this layer's.
        """
        visible = _visible(key_padding_mask, batched=True)
        parameters = self._borrowed()
        _check_cache_type(cache or [], parameters[0])
        return self._layer.call("step", x, parameters, cache or [], visible)

    @property
    def cost(self) -> dict[str, int]:
        """Counts parameters (without biases), those that others cannot absorb, biases, and cached elements per token."""
        return dict(zip(("parameters", "effective", "biases", "cache_elements"), self._layer.held.cost()))

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}, scheme={self.scheme!r}, dropout={self.dropout}"

    def _as_batch(self, x: Tensor, batched: bool) -> Tensor:
        if not batched:
            return x.unsqueeze(0)
        return x if self.batch_first else x.transpose(0, 1)


def _same(a: Tensor, b: Tensor | None) -> bool:
    """Tells whether two tensors are one, or views of the same elements whose gradients go to the same place."""
    if b is None or a is b:
        return a is b
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad) and _root(a) is not _root(b):
        return False  # one of them was detached
    return (a.shape, a.stride(), a.data_ptr(), a.dtype) == (b.shape, b.stride(), b.data_ptr(), b.dtype)


def _root(x: Tensor) -> Tensor:
    # A view that is a leaf was made without gradients, or of plain data: its gradient goes no further.
    return x if x._base is None or x.is_leaf else x._base


def _is_causal(mask: Tensor | None, is_causal: bool, queries: int, keys: int) -> bool:
    if mask is None:
        return is_causal
    hidden = mask if mask.dtype == torch.bool else mask == float("-inf")
    wanted = torch.ones(queries, keys, dtype=torch.bool, device=mask.device).triu(1)
    only_hides = mask.dtype == torch.bool or bool((mask.masked_fill(hidden, 0) == 0).all())
    if hidden.shape != wanted.shape or not only_hides or not torch.equal(hidden, wanted):
        raise ValueError(f"attn_mask {list(mask.shape)} is not the causal mask of {queries} queries and {keys} keys, "
                         "the only one that the kernels take; padding goes into key_padding_mask")
    return True


def _check_cache_type(cache: list[Tensor], parameter: Tensor) -> None:
    kind = parameter.device.type
    if torch.is_autocast_enabled(kind):  # then a cache may have autocast's type, or what was computed before it began
        return
    for one in cache:
        if one.is_floating_point() and one.dtype != parameter.dtype:
            raise RuntimeError(f"the cache is {one.dtype}, the layer {parameter.dtype}: decode with one type")


def _visible(mask: Tensor | None, batched: bool) -> Tensor | None:
    if mask is None:
        return None
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise ValueError(f"key_padding_mask is bool or floating-point, as torch's, not {mask.dtype}")
    if mask.dtype != torch.bool:
        hidden = mask == float("-inf")
        if not bool((mask.masked_fill(hidden, 0) == 0).all()):
            raise ValueError("a floating-point key_padding_mask may hold 0 and -inf alone")
        mask = hidden
    visible = mask.logical_not()
    return visible if batched else visible.unsqueeze(0)

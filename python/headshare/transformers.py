"""headshare's attention kernels below models of Hugging Face's transformers.

    import headshare.transformers
    model = AutoModelForCausalLM.from_pretrained("gpt2", attn_implementation="headshare")

Importing this module registers the attention *and* its mask: with the attention alone, transformers would pass no mask, and
padding would be read without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.masking_utils import (
    ALL_MASK_ATTENTION_FUNCTIONS,
    AttentionMaskInterface,
    bidirectional_mask_function,
    causal_mask_function,
)
from transformers.utils.output_capturing import _active_collector

from headshare import ops

__all__ = ["NAME", "attention", "mask"]

NAME = "headshare"

# The functions of transformers' windows: what they hide follows from the `local_size` that comes with them.
_WINDOWS = ("sliding_window_overlay.", "sliding_window_bidirectional_overlay.")

# transformers may ask an attention for these, which no kernel here does: the argument, and what it is for people.
_REFUSED = {
    "position_bias": "biases of pairs of positions (T5)",
    "s_aux": "attention sinks (GPT-OSS)",
    "sinks": "attention sinks",
    "block_indices": "sparse attention by blocks (MiniMax-M3)",
    "indices": "sparse attention by positions (DeepSeek-V3.2)",
    "softcap": "capped scores (Gemma 2)",
    "output_attentions": "weights of attention, which no kernel holds",
    "cache": "continuous batching",
}


def mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable = causal_mask_function,
    attention_mask: Tensor | None = None,
    local_size: int | None = None,
    device: torch.device | str = "cpu",
    allow_is_causal_skip: bool = True,
    allow_is_bidirectional_skip: bool = True,
    **_,
) -> Tensor:
    """Returns the keys that are no padding, bool: [B, 1, S] of a causal mask, [B, S] of an open one, with 0 for S where there
    is no padding. Never None: then `attention` knows that nobody asked.

    Raises:
        ValueError: for masks that are neither causal nor open, or that the model reads itself, by name.
    """
    causal = _causality(mask_function, windowed=local_size is not None)
    compiling = torch.compiler.is_compiling()  # then no branch may depend on what a mask holds
    if causal is None:
        untold = " (a compiled model without attention_mask cannot tell that nothing is packed: give one)"
        _refuse(f"packed or custom masks{untold if compiling and attention_mask is None else ''}")
    is_read_itself = not allow_is_causal_skip and q_length > 1 if causal else not allow_is_bidirectional_skip
    if is_read_itself:
        _refuse("masks that the model reads itself, as to join two of them")
    if local_size is not None and kv_length > local_size:
        _refuse(f"sliding windows: this one has {local_size} of {kv_length} keys")
    ends = q_offset + q_length  # a static cache has room behind the last query, which may not be seen
    if isinstance(q_offset, Tensor) or (causal and ends != kv_offset + kv_length):
        _refuse("static caches: leave cache_implementation out")
    if attention_mask is not None and attention_mask.dim() == 3:
        if attention_mask.shape[1] != 1:
            _refuse("masks of one's own")
        attention_mask = attention_mask[:, 0]  # this function made it: generate asks for a static cache, and then the model again
    if attention_mask is not None and attention_mask.shape[1] == 0:
        attention_mask = None
    if attention_mask is not None:
        missing = kv_offset + kv_length - attention_mask.shape[1]
        if kv_offset > 0 and missing > 0:  # it may be cut already, and would be cut twice
            _refuse("static caches of a full sliding window with padding")
        padded = torch.nn.functional.pad(attention_mask, (0, max(missing, 0)))  # as sdpa: what is not said is hidden
        attention_mask = padded[:, kv_offset : kv_offset + kv_length].to(device=device, dtype=torch.bool)
    if attention_mask is None or (not compiling and attention_mask.all()):
        attention_mask = torch.zeros(batch_size, 0, dtype=torch.bool, device=device)
    return attention_mask.unsqueeze(1) if causal else attention_mask


def _causality(function: Callable, windowed: bool) -> bool | None:
    """Tells whether a mask function of transformers is causal (True) or open (False), apart from the window that the mask is
    asked for; None for any other."""
    if function is causal_mask_function:
        return True
    if function is bidirectional_mask_function:
        return False
    name = getattr(function, "__qualname__", "")
    if name.startswith("and_masks.<locals>"):
        parts = [part for cell in function.__closure__ or () for part in cell.cell_contents]
        windows = [part for part in parts if getattr(part, "__qualname__", "").startswith(_WINDOWS)]
        rest = [_causality(part, windowed) for part in parts if part not in windows]
        return rest[0] if windowed and windows and len(rest) == 1 else None
    return None


def _refuse(what: str) -> NoReturn:
    raise ValueError(f'attn_implementation="{NAME}" has no {what}; attn_implementation="sdpa" may have')


def attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    **kwargs,
) -> tuple[Tensor, None]:
    """Attends as transformers asks: query [B, H, T, D], key and value [B, Hk, S, D] -> ([B, T, H, D], no weights). A mask
    says whether it is causal; without one the module does, or `is_causal`, as with sdpa.

    Raises:
        ValueError: for what this function does not do (sinks, soft caps, sliding windows, position biases), and where no mask was
            made.
    """
    for name, what in _REFUSED.items():
        if kwargs.get(name) is not None and kwargs[name] is not False:
            _refuse(f"{what} ({name})")
    if _weights_are_wanted(module):
        _refuse(f"{_REFUSED['output_attentions']} (output_attentions)")
    length = key.shape[2]
    if sliding_window is not None and length > sliding_window:
        _refuse(f"sliding windows: this one has {sliding_window} of {length} keys")
    if attention_mask is not None:
        is_causal = attention_mask.dim() == 3
    elif is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    causal = is_causal and query.shape[2] > 1
    return (
        ops.attention(
            query,
            key,
            value,
            heads=query.shape[1],
            scale=scaling,
            causal=causal,
            visible_keys=_visible(module, attention_mask, causal, length),
            dropout=dropout,
            dropout_key=torch.randint(2**63 - 1, (1,), dtype=torch.int64) if dropout > 0 else None,
        )
        .transpose(1, 2)
        .contiguous(),
        None,
    )


def _weights_are_wanted(module: torch.nn.Module) -> bool:
    """Tells whether the model's caller asks for weights, which transformers collects around the attention."""
    if getattr(getattr(module, "config", None), "output_attentions", False):
        return True
    if torch.compiler.is_compiling():  # a ContextVar cannot be traced
        return False
    return any(name.endswith("attentions") for name in _active_collector.get() or ())


def _visible(module: torch.nn.Module, mask_made: Tensor | None, causal: bool, length: int) -> Tensor | None:
    if mask_made is None:
        name = getattr(getattr(module, "config", None), "_attn_implementation", NAME)
        if causal or ALL_MASK_ATTENTION_FUNCTIONS._global_mapping.get(name) is not mask:
            raise ValueError(
                f'no mask was made for attn_implementation="{name}": registered without headshare.transformers.mask, it '
                "would read padding without a word. Import headshare.transformers, which registers both"
            )
        return None  # a model without masks: ViT
    keys = mask_made[:, 0] if mask_made.dim() == 3 and mask_made.shape[1] == 1 else mask_made
    if keys.dim() != 2 or keys.dtype != torch.bool or keys.shape[1] not in (0, length):
        raise ValueError(
            f"attention_mask {list(mask_made.shape)} is a mask of one's own, which only \"sdpa\" and \"eager\" take; padding "
            f"of {length} keys is bool [B, {length}]"
        )
    return keys if keys.shape[1] else None


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, mask)

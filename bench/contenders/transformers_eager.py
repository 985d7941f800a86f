"""Runs transformers' eager attention, as its Llama calls it, which runs when nobody asks for SDPA."""

import types

import torch
from transformers.models.llama.modeling_llama import eager_attention_forward

NAME = "transformers_eager"


def applies(case):
    return case["scheme"] in ("mha", "mqa") and case["queries"] == case["keys"]


def causal_mask(case, like):
    """Returns the mask that transformers makes: [1, 1, T, S], 0 where a query sees a key, the lowest number
    elsewhere."""
    shape = (case["queries"], case["keys"])
    return torch.full(shape, torch.finfo(like.dtype).min, dtype=like.dtype).triu(1)[None, None]


def heads(case, query, key, value):
    module = types.SimpleNamespace(num_key_value_groups=query.shape[1] // key.shape[1], training=case["dropout"] > 0)
    mask = causal_mask(case, query) if case["causal"] else None
    scale = case["head_width"] ** -0.5
    joined, _ = eager_attention_forward(module, query, key, value, mask, scale, dropout=case["dropout"])
    return joined.transpose(1, 2)

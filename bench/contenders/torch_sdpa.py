"""Runs torch's scaled_dot_product_attention; shared keys and values are seen as H heads without copying."""

import torch

NAME = "torch_sdpa"


def applies(case):
    return case["scheme"] != "gqa" and case["queries"] in (1, case["keys"])


def heads(case, query, key, value):
    own = query.shape[1]
    key, value = (x.expand(-1, own, -1, -1) if x.shape[1] == 1 else x for x in (key, value))
    causal = case["causal"] and case["queries"] > 1
    scale = case["head_width"] ** -0.5
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, dropout_p=case["dropout"], is_causal=causal, scale=scale
    )

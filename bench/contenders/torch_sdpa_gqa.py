"""Runs torch's scaled_dot_product_attention with enable_gqa, where keys and values are shared."""

import torch

NAME = "torch_sdpa_gqa"


def applies(case):
    return case["scheme"] in ("gqa", "mqa", "mhe_add", "mhe_mul") and case["queries"] in (1, case["keys"])


def heads(case, query, key, value):
    scale = case["head_width"] ** -0.5
    causal = case["causal"] and case["queries"] > 1
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, dropout_p=case["dropout"], is_causal=causal, scale=scale, enable_gqa=True
    )

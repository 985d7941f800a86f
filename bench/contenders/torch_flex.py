"""Runs torch's flex_attention, compiled, with a mask of blocks where attention is causal. It has neither dropout nor, on a
CPU, gradients."""

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

NAME = "torch_flex"

compiled = {}


def applies(case):
    return case["pass"] == "forward" and case["dropout"] == 0


def causal(first):
    """Returns the mask of queries whose first one stands at this place among the keys: 0 but for the new token of a
    cache."""

    def sees(batch, head, query, key):
        return query + first >= key

    return sees


def made(case):
    """Returns the function of a case, whose mask is made once, as a model makes it."""
    mask = None
    if case["causal"]:
        sees = causal(case["keys"] - case["queries"])
        mask = create_block_mask(sees, None, None, case["queries"], case["keys"], device="cpu")
    scale = case["head_width"] ** -0.5

    def run(query, key, value):
        shared = key.shape[1] != query.shape[1]
        return flex_attention(query, key, value, block_mask=mask, scale=scale, enable_gqa=shared)

    return torch.compile(run, dynamic=False)


def heads(case, query, key, value):
    if case["name"] not in compiled:
        compiled[case["name"]] = made(case)
    return compiled[case["name"]](*(one.detach() for one in (query, key, value)))

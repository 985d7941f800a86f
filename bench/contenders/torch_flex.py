"""Runs torch's flex_attention, compiled, with a mask of blocks where attention is causal. It has neither dropout nor, on a
CPU, gradients."""

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

NAME = "torch_flex"

compiled = {}


def applies(case):
    return case["pass"] == "forward" and case["dropout"] == 0


def causal(batch, head, query, key):
    return query >= key


def made(case):
    """Returns the function of a case, whose mask is made once, as a model makes it."""
    mask = None
    if case["causal"] and case["queries"] > 1:
        mask = create_block_mask(causal, None, None, case["queries"], case["keys"], device="cpu")
    scale = case["head_width"] ** -0.5

    def run(query, key, value):
        shared = key.shape[1] != query.shape[1]
        return flex_attention(query, key, value, block_mask=mask, scale=scale, enable_gqa=shared)

    return torch.compile(run, dynamic=False)


def heads(case, query, key, value):
    if case["name"] not in compiled:
        compiled[case["name"]] = made(case)
    return compiled[case["name"]](*(one.detach() for one in (query, key, value)))

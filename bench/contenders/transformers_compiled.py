"""Runs transformers' eager attention under torch.compile. Compiling takes half a minute a case, so it runs only where
asked."""

import torch

from bench.contenders import transformers_eager

NAME = "transformers_compiled"

compiled = {}


def applies(case):
    few = case["scheme"] == "mha" and case["heads"] == 12 and case["queries"] == 512 and not case["causal"]
    return few and transformers_eager.applies(case)


def heads(case, query, key, value):
    # Each case has a function of its own: otherwise torch would try to make one for all shapes.
    key_of = (case["name"], case["dropout"], torch.is_grad_enabled())
    if key_of not in compiled:
        compiled[key_of] = torch.compile(lambda q, k, v: transformers_eager.heads(case, q, k, v), dynamic=False)
    return compiled[key_of](query, key, value)

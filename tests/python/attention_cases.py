"""Holds problems for tests of headshare.ops.attention, and the formula that they are compared with."""

import math

import torch


def formula(query, key, value, *, heads, scale=None, causal=False, visible_keys=None, query_shift=None, key_bias=None,
            alibi_slopes=None):  # fmt: skip
    """Returns what the docstring of attention promises, from whole matrices of scores."""
    rows, columns, width = query.shape[2], key.shape[2], query.shape[3]
    scale = 1 / math.sqrt(width) if scale is None else scale
    query, key, value = (x.repeat_interleave(heads // x.shape[1], 1) for x in (query, key, value))
    scores = query @ key.transpose(2, 3)
    if query_shift is not None:
        scores = scores + torch.einsum("hd,bhsd->bhs", query_shift, key).unsqueeze(2)
    if key_bias is not None:
        scores = scores + key_bias.unsqueeze(2)
    scores = scores * scale
    at = torch.arange(columns - rows, columns).unsqueeze(1)
    distance = (at - torch.arange(columns)).abs()
    if alibi_slopes is not None:
        scores = scores - alibi_slopes.view(1, -1, 1, 1) * distance
    visible = torch.ones(query.shape[0], 1, rows, columns, dtype=torch.bool)
    if causal:
        visible = visible & (torch.arange(columns) <= at)
    if visible_keys is not None:
        visible = visible & visible_keys[:, None, None, :]
    live = visible.any(-1, keepdim=True)
    weights = scores.masked_fill(~visible & live, -math.inf).softmax(-1)
    return (weights @ value).masked_fill(~live, 0.0)


def problem(name, dtype=torch.float32, learns=False):
    """Returns (query, key, value) and options: a problem by its name in NAMES."""
    generator = torch.Generator().manual_seed(5)

    def draw(*sizes):
        drawn = torch.randn(sizes, generator=generator, dtype=torch.float64).to(dtype)
        return drawn.requires_grad_(learns)

    counts, sizes, options = _CASES[name]
    batch, heads, rows, columns, width, value_width = sizes
    queries, keys, values = counts
    tensors = (
        draw(batch, queries, rows, width),
        draw(batch, keys, columns, width),
        draw(batch, values, columns, value_width),
    )
    options = dict(options, heads=heads)
    if options.pop("padded", False):
        options["visible_keys"] = torch.rand(batch, columns, generator=generator) > 0.3
    if options.pop("shift", False):
        options["query_shift"] = draw(heads, width)
    if options.pop("bias", False):
        options["key_bias"] = draw(batch, heads, columns)
    if options.pop("alibi", False):
        options["alibi_slopes"] = torch.tensor([2.0**-h for h in range(1, heads + 1)], dtype=dtype)
    return tensors, options


# heads of queries, keys, values; B, H, T, S, Dk, Dv; options
_CASES = {
    "plain": ((4, 4, 4), (2, 4, 7, 7, 8, 8), {}),
    "causal": ((4, 4, 4), (2, 4, 70, 70, 8, 8), {"causal": True}),
    "groups": ((4, 2, 2), (2, 4, 5, 9, 8, 8), {"causal": True, "padded": True}),
    "widths": ((4, 4, 1), (2, 4, 5, 9, 6, 10), {"scale": 0.3}),
    "shift": ((1, 1, 1), (2, 4, 70, 70, 8, 8), {"causal": True, "shift": True}),
    "biases": ((1, 1, 4), (2, 4, 6, 9, 8, 8), {"causal": True, "shift": True, "bias": True, "alibi": True, "padded": True}),
    "step": ((4, 1, 1), (2, 4, 1, 30, 8, 8), {"padded": True}),
}
NAMES = list(_CASES)


def tensors_of(tensors, options):
    """Returns all tensors of a problem that can have gradients."""
    return [*tensors, *(options[name] for name in ("query_shift", "key_bias") if name in options)]

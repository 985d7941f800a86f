"""Writes small random decoders of schemes that share, without the program: config.json, model.safetensors, tokenizer.json."""

import json

import torch
from cli.tiny_model import BPE as TOKENIZER
from safetensors.torch import save_file

SIZES = {"vocabulary": 257, "context": 64, "layers": 2, "d-model": 32, "heads": 4, "feed-forward-width": 80}
HEAD = 8


def attention_shapes(scheme, width, heads, groups, biased):
    """The number of heads of queries, and of keys and values, and what a scheme has besides."""
    queries = 1 if scheme in ("sha", "mhe_add", "mhe_mul") else heads
    memory = {"mha": heads, "gqa": groups, "skv": heads}.get(scheme, 1)
    maps = {"query": queries, "key_value": memory} if scheme == "skv" else {"query": queries, "key": memory, "value": memory}
    for name, count in maps.items():
        yield f"{name}.weight", [count * HEAD, width]
        if biased:
            yield f"{name}.bias", [count * HEAD]
    yield "output.weight", [width, heads * HEAD]
    if biased:
        yield "output.bias", [width]
    if scheme.startswith("mhe"):
        for part in ("query", "key", "value"):
            yield f"{part}_embedding", [heads, HEAD]


def shapes(options):
    width, inner, gated = options["d-model"], options["feed-forward-width"], options.get("feed-forward") == "swiglu"
    norm_parts = ["weight"] if options.get("norm") == "rms" else ["weight", "bias"]
    yield "token_embedding", [options["vocabulary"], width]
    if options.get("positions", "learned") == "learned":
        yield "position_embedding", [options["context"], width]
    for block in range(options["layers"]):
        for name, shape in attention_shapes(options["scheme"], width, options["heads"], options.get("groups", 2), options["projection-bias"]):
            yield f"blocks.{block}.attention.scheme.{name}", shape
        for norm in ("query_norm", "key_norm") if options.get("qk-norm") else ():
            yield f"blocks.{block}.attention.scheme.{norm}.weight", [HEAD]
        for part in ("gate", "expand", "contract") if gated else ("expand", "contract"):
            rows, columns = (width, inner) if part == "contract" else (inner, width)
            yield f"blocks.{block}.feed_forward.{part}.weight", [rows, columns]
            if options.get("feed-forward-bias", True):
                yield f"blocks.{block}.feed_forward.{part}.bias", [rows]
        for norm in ("attention_norm", "feed_forward_norm"):
            yield from ((f"blocks.{block}.{norm}.{part}", [width]) for part in norm_parts)
    yield from ((f"norm.{part}", [width]) for part in norm_parts)


def write_decoder(folder, scheme, **changes):
    options = {**SIZES, "scheme": scheme, "projection-bias": True, **changes}
    folder.mkdir(parents=True)
    numbers = torch.Generator().manual_seed(3)
    tensors = {}
    for name, shape in shapes(options):
        offset = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        tensors[name] = torch.empty(shape).normal_(offset, 0.2, generator=numbers)
    save_file(tensors, folder / "model.safetensors")
    config = {"format": "headshare", "format_version": 12, "model": options}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    return folder

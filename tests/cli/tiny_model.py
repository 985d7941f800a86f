"""Writes a decoder with random weights without the program: config.json, model.safetensors, tokenizer.json."""

import json
import random
import struct

import pytest

WIDTH = 16
HEADS = 2


def byte_alphabet():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


BYTES = {"format": "headshare-tokenizer", "version": 1, "kind": "bytes"}
# Every byte is a token, and there is an end-of-text token.
BPE = {
    **BYTES,
    "kind": "bpe",
    "tokens": [*byte_alphabet(), "<|endoftext|>"],
    "merges": [],
    "special": [256],
    "split": "gpt2",
    "add-prefix-space": False,
}


def shapes(vocabulary, context, positions, layers):
    yield "token_embedding", [vocabulary, WIDTH]
    if positions == "learned":
        yield "position_embedding", [context, WIDTH]
    for block in range(layers):
        for part in ("query", "key", "value", "output"):
            yield f"blocks.{block}.attention.scheme.{part}.weight", [WIDTH, WIDTH]
        for norm in ("attention_norm", "feed_forward_norm"):
            yield f"blocks.{block}.{norm}.weight", [WIDTH]
            yield f"blocks.{block}.{norm}.bias", [WIDTH]
        yield f"blocks.{block}.feed_forward.expand.weight", [4 * WIDTH, WIDTH]
        yield f"blocks.{block}.feed_forward.expand.bias", [4 * WIDTH]
        yield f"blocks.{block}.feed_forward.contract.weight", [WIDTH, 4 * WIDTH]
        yield f"blocks.{block}.feed_forward.contract.bias", [WIDTH]
    yield "norm.weight", [WIDTH]
    yield "norm.bias", [WIDTH]


def write_model(folder, *, tokenizer=BYTES, vocabulary=256, context=32, positions="learned", layers=2, seed=0):
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)
    header, data = {}, b""
    for name, shape in shapes(vocabulary, context, positions, layers):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        offset = 1 if "norm" in name and name.endswith("weight") else 0
        values = struct.pack(f"<{count}f", *(offset + draw.gauss(0, 0.3) for _ in range(count)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    options = {
        "vocabulary": vocabulary,
        "scheme": "mha",
        "layers": layers,
        "d-model": WIDTH,
        "heads": HEADS,
        "context": context,
        "positions": positions,
    }
    config = {"format": "headshare", "format_version": 1, "model": options}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Writes a byte model with two layers, width 16 and a context of 32."""
    return write_model(tmp_path_factory.mktemp("model") / "tiny")

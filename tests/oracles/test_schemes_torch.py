"""Tests whole decoders of every scheme against plain PyTorch, written from the formulas head by head.

Nothing is folded, dropped or shared here; all numbers are double. The weights are drawn in Python and
written in headshare's checkpoint layout, so this also pins that layout down.
"""

import json
import math

import pytest
from conftest import run_command

torch = pytest.importorskip("torch")
from safetensors.torch import load_file, save_file  # noqa: E402
from torch.nn import functional as F  # noqa: E402

WIDTH, HEADS, HEAD, LAYERS, VOCABULARY, CONTEXT = 24, 6, 4, 2, 29, 15

ONE_MEMORY = {"key": (4, 24), "value": (4, 24)}  # which all heads share

# These are options of a scheme and the shapes of its parameters [out, in]; a projection has a bias when asked.
SCHEMES = {
    "mha": ({}, {"query": (24, 24), "key": (24, 24), "value": (24, 24)}, {}),
    "mha narrowed": ({"key-width": 12}, {"query": (12, 24), "key": (12, 24), "value": (24, 24)}, {}),
    "gqa": ({"groups": 3}, {"query": (24, 24), "key": (12, 24), "value": (12, 24)}, {}),
    "gqa default groups": ({}, {"query": (24, 24), "key": (8, 24), "value": (8, 24)}, {}),
    "mqa": ({}, {"query": (24, 24), "key": (4, 24), "value": (4, 24)}, {}),
    "sha": ({}, {"query": (4, 24), "key": (4, 24), "value": (4, 24)}, {}),
    "skv": ({}, {"query": (24, 24), "key_value": (24, 24)}, {}),
    "skv shared_qk": ({"shared-qk": True}, {"query_key": (24, 24), "value": (24, 24)}, {}),
    "skv of groups": ({"kv-heads": 2}, {"query": (24, 24), "key_value": (8, 24)}, {}),
    "skv counter": ({"kv-heads": 3, "skv-rotary": "counter"}, {"query": (24, 24), "key_value": (12, 24)}, {}),
    "skv split": ({"kv-heads": 2, "skv-rotary": "split", "rotary-dimensions": 2},
                  {"query": (24, 24), "key_value": (8, 24), "turned_key": (2, 24)}, {}),
    "gqa shift": ({"groups": 2, "kv-shift": True}, {"query": (24, 24), "key": (8, 24), "value": (8, 24)},
                  {f"shift.{what}_{number}": (2,) for what in ("key", "value") for number in ("share", "sum")}),
    "mqa offset": ({"key-offset": True, "rotary-dimensions": 2}, {"query": (24, 24), **ONE_MEMORY}, {}),
    "el_shared": ({}, {"query": (24, 24)}, {}),
    "el_shared averaged": ({"averaged-values": True}, {"query": (24, 24), "key": (24, 24)}, {}),
    "el_lossless": ({}, {"query": (24, 24), "key": (24, 24), "value": (24, 24)}, {}),
    "mhe_add": ({}, {"query": (4, 24), "key": (4, 24), "value": (4, 24)},
                {"query_embedding": (6, 4), "key_embedding": (6, 4), "value_embedding": (6, 4)}),
    "mhe_mul": ({}, {"query": (4, 24), "key": (4, 24), "value": (4, 24)},
                {"query_embedding": (6, 4), "key_embedding": (6, 4), "value_embedding": (6, 4)}),
    "mhe_mul offset 0": ({"mhe-mul-offset": 0}, {"query": (4, 24), "key": (4, 24), "value": (4, 24)},
                         {"query_embedding": (6, 4), "key_embedding": (6, 4), "value_embedding": (6, 4)}),
    "collaborative": ({"key-width": 10}, {"query": (10, 24), "key": (10, 24), "value": (24, 24)}, {"mixing": (6, 10)}),
    "collaborative default width": ({}, {"query": (12, 24), "key": (12, 24), "value": (24, 24)}, {"mixing": (6, 12)}),
    "lrkv": ({"kv-rank": 2}, {"query": (24, 24), "key": (16, 24), "value": (16, 24)},
             {"key_residual": (6, 2, 4), "value_residual": (6, 2, 4)}),
    "shared_query": ({"query-width": 5}, {"query": (5, 24), **ONE_MEMORY}, {"query_map": (24, 5)}),
    "shared_query identity": ({"query-map": "identity"}, {"query": (4, 24), **ONE_MEMORY}, {}),
    "shared_query bias": ({"query-map": "bias"}, {"query": (4, 24), **ONE_MEMORY}, {"query_map": (6, 4)}),
    "shared_query diagonal": ({"query-map": "diagonal"}, {"query": (4, 24), **ONE_MEMORY}, {"query_map": (6, 4)}),
    "shared_query complex": ({"query-map": "complex"}, {"query": (4, 24), **ONE_MEMORY}, {"query_map": (6, 4)}),
    "shared_query blocks": ({"query-map": "blocks"}, {"query": (4, 24), **ONE_MEMORY}, {"query_map": (6, 2, 4)}),
    "shared_query low_rank": ({"query-map": "low_rank", "query-rank": 2}, {"query": (4, 24), **ONE_MEMORY},
                              {"query_inner.weight": (12, 4), "query_map": (6, 2, 4)}),
}  # fmt: skip
POSITIONS = ["learned", "sinusoidal", "rotary", "alibi", "none"]


def random_weights(options, projections, vectors):
    numbers = torch.Generator().manual_seed(7)
    weights = {}

    def draw(name, shape, mean=0.0):
        weights[name] = (mean + 0.3 * torch.randn(shape, generator=numbers)).float()

    def draw_linear(name, shape, bias):
        draw(f"{name}.weight", shape)
        if bias:
            draw(f"{name}.bias", shape[:1])

    draw("token_embedding", (VOCABULARY, WIDTH))
    if options["positions"] == "learned":
        draw("position_embedding", (CONTEXT, WIDTH))
    for i in range(LAYERS):
        scheme = f"blocks.{i}.attention.scheme"
        output = {} if options.get("averaged-values") else {"output": (WIDTH, HEADS * HEAD)}
        for name, shape in {**projections, **output}.items():
            draw_linear(f"{scheme}.{name}", shape, options["projection-bias"])
        for name, shape in vectors.items():
            draw(f"{scheme}.{name}", shape)
        if options["content-bias"]:
            draw(f"{scheme}.content_bias", (HEADS, WIDTH))
        draw_linear(f"blocks.{i}.feed_forward.expand", (4 * WIDTH, WIDTH), options["feed-forward-bias"])
        draw_linear(f"blocks.{i}.feed_forward.contract", (WIDTH, 4 * WIDTH), options["feed-forward-bias"])
    norms = ["norm", *(f"blocks.{i}.{part}_norm" for i in range(LAYERS) for part in ("attention", "feed_forward"))]
    for name in norms:
        draw(f"{name}.weight", (WIDTH,), mean=1.0)
        draw(f"{name}.bias", (WIDTH,))
    if not options["tie-embeddings"]:
        draw("output_embedding", (VOCABULARY, WIDTH))
    return weights


class Reference:
    """This decoder computes one sentence at a time, one head at a time."""

    def __init__(self, scheme, options, weights):
        self.scheme, self.options = scheme, options
        self.weights = {name: tensor.double() for name, tensor in weights.items()}

    def linear(self, name, x):
        y = x @ self.weights[f"{name}.weight"].T
        bias = self.weights.get(f"{name}.bias")
        return y if bias is None else y + bias

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.square().mean(-1, keepdim=True) + self.options["norm-epsilon"]).sqrt()
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def head(self, at, h, x):
        """Returns q, k, v of head h: docs/mathematics.md#the-schemes."""

        def project(name, piece=None, pieces=HEADS):
            y = self.linear(f"{at}.{name}", x)
            return y if piece is None else y.chunk(pieces, -1)[piece]

        def vector(name):
            return self.weights[f"{at}.{name}"][h]

        match self.scheme:
            case "mha" | "el_lossless":
                return project("query", h), project("key", h), project("value", h)
            case "gqa":
                groups = self.options.get("groups", 2)
                group = h * groups // HEADS
                return project("query", h), project("key", group, groups), project("value", group, groups)
            case "mqa":
                return project("query", h), project("key"), project("value")
            case "sha":
                return project("query"), project("key"), project("value")
            case "skv" if self.options.get("shared-qk"):
                return project("query_key", h), project("query_key", h), project("value", h)
            case "skv":
                groups = self.options.get("kv-heads", HEADS)
                shared = project("key_value", h * groups // HEADS, groups)
                if self.options.get("skv-rotary") == "split":
                    return project("query", h), torch.cat([shared[:, :2], project("turned_key")], -1), shared
                return project("query", h), shared, shared
            case "el_shared" if self.options.get("averaged-values"):
                return project("query", h), project("key", h), x
            case "el_shared":
                return project("query", h), x.chunk(HEADS, -1)[h], x.chunk(HEADS, -1)[h]
            case "mhe_add":
                return (
                    project("query") + vector("query_embedding"),
                    project("key") + vector("key_embedding"),
                    project("value") + vector("value_embedding"),
                )
            case "mhe_mul":
                offset = self.options.get("mhe-mul-offset", 1)
                return (
                    project("query") * (offset + vector("query_embedding")),
                    project("key") * (offset + vector("key_embedding")),
                    project("value") * (offset + vector("value_embedding")),
                )
            case "collaborative":
                return project("query") * vector("mixing"), project("key"), project("value", h)
            case "lrkv":
                memory = [self.linear(f"{at}.{name}", x).split([HEAD, *[2] * HEADS], -1) for name in ("key", "value")]
                k, v = (parts[0] + parts[1 + h] @ vector(f"{name}_residual")
                        for name, parts in zip(("key", "value"), memory))  # fmt: skip
                return project("query", h), k, v
            case "shared_query":
                return self.mapped_query(at, h, project("query")), project("key"), project("value")

    def mapped_query(self, at, h, q):
        """Applies the map of head h of shared_query to the query that heads share."""
        name = self.options.get("query-map", "full")
        if name == "identity":
            return q
        maps = self.weights[f"{at}.query_map"]
        match name:
            case "bias":
                return q + maps[h]
            case "diagonal":
                return q * (1 + maps[h])
            case "complex":
                product = torch.complex(*q.chunk(2, -1)) * torch.complex(*maps[h].chunk(2))
                return torch.cat([product.real, product.imag], -1)
            case "blocks":
                blocks = maps[h].view(2, 2, HEAD // 2)  # rows and columns of a pair's matrix
                return torch.einsum("rci,tci->tri", blocks, q.view(-1, 2, HEAD // 2)).flatten(1)
            case "low_rank":
                return q + q @ self.weights[f"{at}.query_inner.weight"].chunk(HEADS)[h].T @ maps[h]
            case "full":
                return q @ maps.chunk(HEADS)[h].T

    def shifted(self, name, h, x):
        """Mixes each token with the one before by the two numbers of the group of head h."""
        share, total = (self.weights[f"{name}_{number}"][h // 3] for number in ("share", "sum"))
        return share * x + (total - share) * F.pad(x, (0, 0, 1, 0))[:-1]

    def scale(self):
        if self.scheme == "mha" and "key-width" in self.options:
            return 1 / math.sqrt(self.options["key-width"] / HEADS)
        return 1 / math.sqrt(HEAD)

    def attention(self, at, x):
        length = len(x)
        rows, columns = torch.arange(length)[:, None], torch.arange(length)[None, :]
        heads = []
        for h in range(HEADS):
            q, k, v = self.head(at, h, x)
            if self.options.get("kv-shift"):
                k, v = self.shifted(f"{at}.shift.key", h, k), self.shifted(f"{at}.shift.value", h, v)
            if self.options["positions"] == "rotary":
                turned = self.options.get("rotary-dimensions")
                q, k = rotate(q, turned), rotate(k, turned)
            if self.options.get("key-offset"):
                k = torch.cat([torch.cat([k[:1, :2], k[:-1, :2]]), k[:, 2:]], -1)
            counter = self.options.get("skv-rotary") == "counter"
            v = rotate(v) if counter else v
            scores = q @ k.T
            if self.options["content-bias"]:
                scores = scores + x @ self.weights[f"{at}.content_bias"][h]
            scores = scores * self.scale()
            if self.options["positions"] == "alibi":
                scores = scores - SLOPES[h] * (rows - columns)
            found = scores.masked_fill(columns > rows, -math.inf).softmax(-1) @ v
            heads.append(rotate(found, sign=-1) if counter else found)
        if self.options.get("averaged-values"):
            return torch.stack(heads).mean(0)
        return self.linear(f"{at}.output", torch.cat(heads, -1))

    def logits(self, ids):
        x = self.weights["token_embedding"][ids]
        if self.options["positions"] == "learned":
            x = x + self.weights["position_embedding"][: len(ids)]
        if self.options["positions"] == "sinusoidal":
            x = x + sinusoids(len(ids))
        for i in range(LAYERS):
            block = f"blocks.{i}"
            x = x + self.attention(f"{block}.attention.scheme", self.norm(f"{block}.attention_norm", x))
            hidden = self.linear(f"{block}.feed_forward.expand", self.norm(f"{block}.feed_forward_norm", x))
            x = x + self.linear(f"{block}.feed_forward.contract", self.activate(hidden))
        output = self.weights.get("output_embedding", self.weights["token_embedding"])
        return self.norm("norm", x) @ output.T

    def activate(self, x):
        match self.options["activation"]:
            case "gelu_tanh":
                return F.gelu(x, approximate="tanh")
            case "gelu_erf":
                return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))
            case "relu":
                return x.clamp(min=0)


# Press et al.: four heads have 2^-2 .. 2^-8; two more come from the sequence for eight heads.
SLOPES = [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]


def rotate(x, turned=None, sign=1):
    """Turns the last dimensions, or all: i and i + turned/2 are one complex number, by position * 10000^(-2i/turned)."""
    turned = turned or x.shape[1]
    still, x = x[:, : x.shape[1] - turned], x[:, x.shape[1] - turned :]
    half = turned // 2
    angle = torch.arange(len(x), dtype=torch.double)[:, None] * 10000 ** (-torch.arange(half).double() / half)
    pairs = torch.complex(x[:, :half], x[:, half:]) * torch.polar(torch.ones_like(angle), sign * angle)
    return torch.cat([still, pairs.real, pairs.imag], -1)


def sinusoids(length):
    table = torch.zeros(length, WIDTH, dtype=torch.double)
    for t in range(length):
        for i in range(0, WIDTH, 2):
            table[t, i] = math.sin(t / 10000 ** (i / WIDTH))
            table[t, i + 1] = math.cos(t / 10000 ** (i / WIDTH))
    return table


def plans():
    """Yields every scheme with every way of positions it supports; the other options take turns."""
    for index, (label, (own, projections, vectors)) in enumerate(SCHEMES.items()):
        for turn, positions in enumerate(POSITIONS):
            if positions == "rotary" and label in ("el_shared", "el_lossless"):
                continue
            if positions != "rotary" and label in ("skv counter", "skv split", "mqa offset"):
                continue
            flags = index + turn
            options = {
                "layers": LAYERS, "d-model": WIDTH, "heads": HEADS, "context": CONTEXT, "vocabulary": VOCABULARY,
                "positions": positions, **own,
                "projection-bias": flags % 2 == 0, "content-bias": flags % 3 == 0,
                "feed-forward-bias": flags % 4 != 0, "tie-embeddings": flags % 5 != 0,
                "activation": ["gelu_tanh", "gelu_erf", "relu"][flags % 3], "norm-epsilon": [1e-5, 0.1][flags % 2],
            }  # fmt: skip
            yield pytest.param(label.split()[0], options, projections, vectors, id=f"{label}, {positions}")


@pytest.mark.parametrize("scheme, options, projections, vectors", list(plans()))
def test_logits_and_loss(build_dir, tmp_path, scheme, options, projections, vectors):
    weights = random_weights(options, projections, vectors)
    save_file(weights, tmp_path / "model.safetensors")
    config = {"format": "headshare", "format_version": 1, "model": {"scheme": scheme, **options}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    ids = torch.randint(VOCABULARY, (2, CONTEXT), generator=torch.Generator().manual_seed(3))
    (tmp_path / "ids.json").write_text(json.dumps(dict(ids=ids.tolist())))
    tool = build_dir / "obj" / "models" / "model_tool"
    run_command([tool, tmp_path, tmp_path / "ids.json", tmp_path / "out"])
    found = load_file(tmp_path / "out")

    reference = Reference(scheme, options, weights)
    expected = torch.stack([reference.logits(row) for row in ids])
    assert (found["logits"] - expected).abs().max() < 1e-4
    loss = F.cross_entropy(expected[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    assert abs(found["loss"] - loss) < 1e-5
    assert expected.std() > 0.1

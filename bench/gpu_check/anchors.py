"""Measures what gpu-check compares with: plain torch, and headshare's operations in the same process.

    python3 anchors.py step --device cuda --layers=12 ... [--compiled]
    python3 anchors.py attention|decode --device cuda [--small]

The last line that it prints is a JSON list of rows {"name", "found", "figures"}.
"""

import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel


class Block(nn.Module):
    """Is a block of GPT-2 in plain torch."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(heads.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class Decoder(nn.Module):
    """Is GPT-2, which ties the embedding to the output."""

    def __init__(self, shape):
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.places = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.ModuleList([Block(shape.width, shape.heads) for _ in range(shape.layers)])
        self.norm = nn.LayerNorm(shape.width)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(F.linear(self.norm(x), self.tokens.weight).flatten(0, 1).float(), targets.flatten())


def synchronise(device):
    if device != "cpu":
        torch.cuda.synchronize()


def milliseconds(action, device, rounds):
    """Returns the median time of an action, after two that are not counted."""
    times = []
    for _ in range(rounds + 2):
        synchronise(device)
        began = time.perf_counter()
        action()
        synchronise(device)
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times[2:])


def step(shape):
    device = shape.device
    torch.manual_seed(1)
    model = Decoder(shape).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    loss_of = torch.compile(model) if shape.compiled else model
    ids = torch.randint(shape.vocabulary, (shape.batch, shape.context), device=device)

    def action():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=shape.precision == "bf16"):
            loss = loss_of(ids, ids)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    ms = milliseconds(action, device, shape.steps)
    rate = 1000 * shape.batch * shape.context / ms
    figures = dict(tokens_per_second=rate)
    if device != "cpu":
        figures["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
    name = "plain torch" + (", compiled" if shape.compiled else "")
    return [dict(name=name, found=f"{rate:,.0f} tokens/s", figures=figures)]


BACKENDS = dict(cudnn=SDPBackend.CUDNN_ATTENTION, flash=SDPBackend.FLASH_ATTENTION,
                efficient=SDPBackend.EFFICIENT_ATTENTION, math=SDPBackend.MATH)  # fmt: skip


def contenders(q, k, v, causal, compiles):
    """Returns what computes the attention of these heads: libtorch's backends, compiled flex_attention where a compiler may
    run, and headshare's operation."""
    from headshare import ops

    made = {f"sdpa {name}": (lambda one=one: forced(one, q, k, v, causal)) for name, one in BACKENDS.items()}
    made["sdpa"] = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    if compiles:
        made["flex_attention compiled"] = flex(q, k, v, causal)
    shift = torch.zeros(q.shape[1], q.shape[3], device=q.device, dtype=q.dtype)
    made["headshare mha"] = lambda: ops.attention(q, k, v, causal=causal)
    made["headshare mqa"] = lambda: ops.attention(q, k[:, :1], v[:, :1], causal=causal)
    made["headshare mhe_add"] = lambda: ops.attention(q[:, :1], k[:, :1], v[:, :1], query_shift=shift, causal=causal)
    return made


def flex(q, k, v, causal):
    """Returns compiled flex_attention, whose mask of blocks is made once."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    length, mask = q.shape[2], None
    if causal:
        mask = create_block_mask(lambda b, h, query, key: query >= key, None, None, length, length, device=q.device)
    run = torch.compile(flex_attention, dynamic=False)
    return lambda: run(q, k, v, block_mask=mask)


def forced(backend, q, k, v, causal):
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def product_rate(device, type, size):
    """Returns the TFLOP/s of a square matrix product, which a share is a share of."""
    x = torch.randn(size, size, device=device, dtype=type)
    return 2 * size**3 / milliseconds(lambda: x @ x, device, 10) / 1e9


def attention(options):
    device, lengths = options.device, (64,) if options.small else (2048, 8192)
    type = torch.float32 if device == "cpu" else torch.bfloat16
    peak = product_rate(device, type, 512 if options.small else 8192)
    rows = [dict(name="matrix product", found=f"{peak:.3g} TFLOP/s", figures=dict(tflops=peak))]
    for length in lengths:
        for causal in (False, True):
            batch = max(1, (128 if options.small else 16384) // length)
            q, k, v = (torch.randn(batch, 12, length, 64, device=device, dtype=type, requires_grad=True) for _ in range(3))
            for name, action in contenders(q, k, v, causal, compiles=not options.small).items():
                rows.append(attention_row(f"{name}, {length}{', causal' if causal else ''}", action, q, causal, peak, options))
    return rows


def attention_row(name, action, q, causal, peak, options):
    """Counts the products of heads that share nothing, whatever a contender computes."""
    batch, heads, length, width = q.shape
    flops = 4 * batch * heads * length**2 * width * (0.5 if causal else 1)
    rounds = 3 if options.small else 10
    try:
        with torch.no_grad():
            forward = milliseconds(action, options.device, rounds)
        both = milliseconds(lambda: action().sum().backward(), options.device, rounds)
    except Exception as error:  # a backend does not take the problem, or nothing compiles here
        return dict(name=name, found="not measured: " + str(error).splitlines()[0][:100], figures={})
    rate = flops / forward / 1e9
    found = f"forward {forward:.3f} ms ({rate:.3g} TFLOP/s, {100 * rate / peak:.0f}% of a product), with backward {both:.3f} ms"
    return dict(name=name, found=found, figures=dict(forward_ms=forward, training_ms=both, tflops=rate, share=rate / peak))


def copy_rate(device, count):
    """Returns the bytes a second of a copy, read and written."""
    x = torch.empty(count, device=device)
    y = torch.empty_like(x)
    return 8 * count / milliseconds(lambda: y.copy_(x), device, 10) * 1000


def decode(options):
    """One new query of each sentence against a long cache: how much of the copy bandwidth reads the cache."""
    from headshare import ops

    device, length, batch = options.device, 256 if options.small else 32768, 2 if options.small else 8
    type = torch.float32 if device == "cpu" else torch.bfloat16
    copy = copy_rate(device, 1 << (16 if options.small else 28))
    rows = [dict(name="copy", found=f"{copy / 1e9:,.0f} GB/s", figures=dict(bytes_per_second=copy))]
    for name, keys in (("12 heads of keys", 12), ("one shared head", 1)):
        q = torch.randn(batch, 12, 1, 64, device=device, dtype=type)
        k, v = (torch.randn(batch, keys, length, 64, device=device, dtype=type) for _ in range(2))
        with torch.no_grad():
            ms = milliseconds(lambda: ops.attention(q, k, v, causal=True), device, 10)
        rate = (k.numel() + v.numel()) * k.element_size() / ms * 1000
        found = f"{ms:.3f} ms, {rate / 1e9:,.0f} GB/s ({100 * rate / copy:.0f}% of a copy)"
        rows.append(dict(name=f"{name}, {length}", found=found, figures=dict(ms=ms, bytes_per_second=rate, share=rate / copy)))
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("step", "attention", "decode"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--compiled", action="store_true")
    for name in ("layers", "width", "heads", "context", "batch", "vocabulary", "steps"):
        parser.add_argument(f"--{name}", type=int)
    options = parser.parse_args()
    rows = dict(step=step, attention=attention, decode=decode)[options.what](options)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()

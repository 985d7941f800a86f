"""The parts of gpu-check that measure: training steps, attention, decoding, and what --deterministic costs."""

import json
import statistics
import sys

import place
from place import Row

SCHEMES = ("mha", "mqa", "mhe_add", "mhe_mul")


def step_shape(here):
    """GPT-2 small in bf16 on a card; a shape that ends at once on a CPU."""
    if here.device == "cpu" or here.tiny:
        return dict(layers=1, width=64, heads=4, context=64, batch=2, vocabulary=512, precision="fp32", steps=6)
    return dict(layers=12, width=768, heads=12, context=1024, batch=16, vocabulary=50304, precision="bf16", steps=30)


def step_words(here, scheme, shape):
    return [
        "train", "--text", here.text, "--tokenizer", "bytes", "--scheme", scheme, "--layers", shape["layers"],
        "--d-model", shape["width"], "--heads", shape["heads"], "--context", shape["context"],
        "--batch-size", shape["batch"], "--model-vocabulary", shape["vocabulary"], "--precision", shape["precision"],
        "--steps", shape["steps"], "--log-every", max(1, shape["steps"] // 6), "--evaluate-every", 1000,
        "--evaluation-tokens", 4096, "--warmup-steps", 2, "--device", here.device,
    ]  # fmt: skip


def one_step_row(here, scheme, shape, *more):
    name = " ".join([scheme, *more])
    out = here.work / f"speed-{scheme}{'-'.join(more)}"
    code, _, errors = here.run(*step_words(here, scheme, shape), *more, "--out", out)
    if code != 0:
        return Row("step", name, False, place.last_line(errors))
    rate = statistics.median(place.speeds(out)[-4:])
    figures = dict(tokens_per_second=rate)
    peak = json.loads((out / "result.json").read_text()).get("peak_device_bytes")
    if peak:
        figures["peak_memory_bytes"] = peak
    return Row("step", name, None, rate_text(figures), figures)


def rate_text(figures):
    peak = figures.get("peak_memory_bytes")
    return f"{figures['tokens_per_second']:,.0f} tokens/s" + (f", peak {peak / 2**30:.2f} GiB" if peak else "")


def anchor(here, what, *more):
    """Runs anchors.py in a process of its own, whose memory is its own as well; returns rows."""
    code, out, errors = here.call([sys.executable, place.HERE / "anchors.py", what, "--device", here.device, *more])
    if code != 0:
        return [Row(what, " ".join(map(str, more)) or "torch", None, "not measured: " + place.last_line(errors))]
    rows = [Row(what, one["name"], None, one["found"], one["figures"]) for one in json.loads(out.splitlines()[-1])]
    for row in rows:
        if "tokens_per_second" in row.figures:
            row.found = rate_text(row.figures)
    return rows


def step(here):
    shape = step_shape(here)
    rows = [one_step_row(here, scheme, shape) for scheme in SCHEMES]
    rows.append(one_step_row(here, "mha", shape, "--deterministic"))
    numbers = [f"--{key}={value}" for key, value in shape.items()]
    rows += anchor(here, "step", *numbers)
    if not here.tiny:
        rows += anchor(here, "step", *numbers, "--compiled")
    cost(rows)
    return rows


def cost(rows):
    """Says beside the deterministic row how much slower it is."""
    rates = {row.name: row.figures.get("tokens_per_second") for row in rows}
    plain, repeatable = rates.get("mha"), rates.get("mha --deterministic")
    for row in rows:
        if row.name == "mha --deterministic" and plain and repeatable:
            row.figures["cost"] = plain / repeatable - 1
            row.found += f", {100 * row.figures['cost']:+.1f}% time"


def attention(here):
    small = ["--small"] if here.device == "cpu" or here.tiny else []
    return anchor(here, "attention", *small)


def decode(here):
    small = ["--small"] if here.device == "cpu" or here.tiny else []
    return anchor(here, "decode", *small)

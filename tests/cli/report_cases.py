"""Makes results of comparisons that nobody trained: results.json as `headshare compare` writes it."""

import json
import math
import random

WIDTH, HEADS, LAYERS, STEPS = 192, 6, 4, 1000
HEAD = WIDTH // HEADS

# A scheme has (effect on the loss, attention parameters of a layer, cached numbers of a layer and token).
FACTS = {
    "mha": (0.000, 4 * WIDTH * WIDTH, 2 * WIDTH),
    "gqa": (0.004, 2 * WIDTH * WIDTH + 4 * WIDTH * HEAD, 4 * HEAD),
    "mqa": (0.015, 2 * WIDTH * WIDTH + 2 * WIDTH * HEAD, 2 * HEAD),
    "sha": (0.095, 4 * WIDTH * HEAD + WIDTH * WIDTH - WIDTH * HEAD, 2 * HEAD),
    "skv": (0.011, 3 * WIDTH * WIDTH, WIDTH),
    "el_shared": (0.034, 2 * WIDTH * WIDTH + WIDTH, WIDTH),
    "el_lossless": (0.000, 4 * WIDTH * WIDTH, WIDTH),
    "mhe_add": (0.072, 4 * WIDTH * HEAD + WIDTH * WIDTH - WIDTH * HEAD + 3 * HEADS * HEAD, 2 * HEAD),
    "mhe_mul": (0.041, 4 * WIDTH * HEAD + WIDTH * WIDTH - WIDTH * HEAD + 3 * HEADS * HEAD, 2 * HEAD),
    "collaborative": (0.008, 3 * WIDTH * WIDTH + 7 * WIDTH, 2 * WIDTH),
}

SCHEMES = list(FACTS)

HOSTILE = "<script>alert(1)</script>&\"'><img src=http://127.0.0.1:9/x onerror=alert(2)> \x1b[2J %$_{}\\^~# ü"


def cell(scheme, seed, *, setting="", accuracy=False, blocks=40, penalty=0.0):
    """Makes a model whose figures follow from the scheme and the seed alone."""
    effect, parameters, cached = FACTS.get(scheme, FACTS["mqa"])
    noise = random.Random(f"{'mha' if scheme == 'el_lossless' else scheme} {setting} {seed}")
    text = random.Random("text")  # the same blocks for every model
    loss = 4.6 + effect + penalty + 0.02 * (seed % 3 - 1) + noise.gauss(0, 0.006)
    losses = [loss + 0.3 * text.gauss(0, 1) + noise.gauss(0, 0.02) for _ in range(blocks)]
    mean = sum(losses) / len(losses)
    losses = [one + loss - mean for one in losses]
    share = max(0.0, min(1.0, 1 - (loss - 4.5)))
    trained = scheme != "el_lossless"
    steps = [0, *range(50, STEPS + 1, 50)]
    return {
        "variant": scheme,
        "setting": setting,
        "seed": seed,
        "weights_of": None if trained else "mha",
        "options": {},
        "attention_parameters": LAYERS * parameters,
        "attention_parameters_effective": LAYERS * parameters + (LAYERS * 30720 if scheme.startswith("mhe") else 0),
        "total_parameters": 1_900_000 + LAYERS * parameters,
        "feed_forward_width": 768,
        "cache_elements_per_token": cached,
        "cache_bytes_per_token": 4 * LAYERS * cached,
        "validation_loss": loss - 0.03,
        "test_loss": loss,
        "quality": share if accuracy else math.exp(loss),
        "signature": "accuracy|offsets" if accuracy else "perplexity|context:128",
        "scores": [] if accuracy else [{"name": "bits-per-byte", "value": loss / 2.7, "signature": "bits-per-byte"}],
        "steps": STEPS,
        "best_step": STEPS,
        "tokens": STEPS * 2048,
        "stopped_early": False,
        "training_seconds": 100.0 + seed,
        "training_tokens_per_second": (20480.0 - 90 * seed - 40_000 * effect) if trained else 0.0,
        "decoding_tokens_per_second": 410.0 - cached / 2,
        "decoding_context": 128,
        "attention_memory_bytes": 3_145_728 + 1024 * cached + parameters,
        "peak_memory_bytes": 420_000_000 + 40 * parameters if trained else 0,
        "model": f"cells/{scheme}-seed{seed}/checkpoints/best",
        "curve": [
            {"step": step, "seconds": step / 10, "validation_loss": loss - 0.03 + 3.2 * math.exp(-step / 130)}
            for step in steps
        ],
        "blocks": [1 - (one - 4.5) for one in losses] if accuracy else losses,
    }


def key(one):
    return {name: one[name] for name in ("variant", "setting", "seed")}


def results(cells, *, failed=(), missing=(), accuracy=False, **more):
    """Makes a results.json of these cells; `failed` are (variant, setting, seed, reason), `missing` the first three."""
    names = ("variant", "setting", "seed", "reason")
    failed = [dict(zip(names, one)) for one in failed]
    missing = [dict(zip(names, one)) for one in missing]
    subject = {
        "name": "offsets" if accuracy else "language-model",
        "sentence": "At every position, name the tokens that stood at several distances before it."
        if accuracy
        else "Predict the next token of the text from those before it.",
        "data": "sequences of 64 from 16 tokens" if accuracy else "book.txt: 1,115,394 bytes, 412,332 tokens of bpe",
        "measure": "accuracy" if accuracy else "perplexity",
        "direction": "higher is better" if accuracy else "lower is better",
        "block": "sequences" if accuracy else "text windows",
        "has_test_part": True,
        "chance": 1 / 16 if accuracy else None,
        **more.pop("subject", {}),
    }
    names = dict.fromkeys(one["variant"] for one in [*cells, *failed, *missing])
    return {
        "format": "headshare comparison",
        "format_version": 3,
        "subject": subject,
        "match": "steps",
        "command": "headshare compare --text book.txt --schemes all --seeds 3 --out run",
        "environment": {
            "headshare": "0.1.0",
            "torch": "2.13.0+cpu",
            "processor": "Example 9000 at 2.10GHz",
            "cores": 2,
            "threads": 2,
            "instructions": "AVX512",
            "attention_backends": [{"name": "blocked", "summary": "blocks of queries"}],
        },
        "options": {"steps": STEPS, "d-model": WIDTH, "heads": HEADS, "layers": LAYERS, "learning-rate": 0.001},
        "variants": [{"name": name, "scheme": name, "options": {"scheme": name}} for name in names],
        "reference": "mha",
        "peop_reference": "sha",
        "planned": [*map(key, cells), *map(key, failed), *missing],
        "failed": failed,
        "cells": cells,
        **more,
    }


def grid(schemes=SCHEMES, seeds=(0, 1, 2), **options):
    return [cell(scheme, seed, **options) for scheme in schemes for seed in seeds]


def sweep():
    """Makes ten schemes, three seeds, two settings; one cell failed; strings want to be markup."""
    rates = {"learning-rate=0.0003": 0.05, "learning-rate=0.001": 0.0, "learning-rate=0.003": 0.02}
    cells = [one for setting, penalty in rates.items() for one in grid(setting=setting, penalty=penalty)]
    cells.sort(key=lambda one: SCHEMES.index(one["variant"]))
    lost = next(one for one in cells if one["variant"] == "mqa" and one["seed"] == 2)
    cells.remove(lost)
    return results(cells, failed=[(lost["variant"], lost["setting"], 2, f"out of memory {HOSTILE}")])


def grey():
    """Makes figures that are not to be relied on: mqa lost a seed, and the machine was busy while decoding was
    timed."""
    cells = grid(["mha", "mqa", "sha", "mhe_mul"])
    lost = next(one for one in cells if one["variant"] == "mqa" and one["seed"] == 1)
    cells.remove(lost)
    cells[0]["waited"] = {"training": 0.01, "decoding": 0.6}
    return results(cells, failed=[("mqa", "", 1, "killed")])


GLUE = [f"glue/{name}" for name in "cola sst-2 mrpc sts-b qqp mnli qnli rte wnli".split()]


def benchmark(tasks=GLUE, schemes=SCHEMES, name="glue"):
    """Makes encoders fine-tuned on tasks, three seeds; el_lossless, which is mha, is none of them."""
    cells = grid([scheme for scheme in schemes if scheme != "el_lossless"], accuracy=True)
    for one in cells:
        noise = random.Random(f"{one['variant']} {one['seed']} tasks")
        scores = {task: 100 * one["quality"] - 4 * i + noise.gauss(0, 1) for i, task in enumerate(tasks)}
        one["tasks"] = [
            {
                "task": task,
                "score": score,
                "metrics": [{"name": "accuracy", "value": score / 100, "signature": "accuracy|version:1"},
                            {"name": "f1", "value": None, "signature": "f1|version:1"}],
                "examples": 1000,
                "learning_rate": 3e-5,
                "best_epoch": 2.0,
                "validation_loss": 0.5,
            }
            for task, score in scores.items()
        ]
        one["quality"] = sum(scores.values()) / len(scores)
        one["blocks"] = list(scores.values()) if len(scores) >= 5 else []
        one.update(curve=[], cache_elements_per_token=0, cache_bytes_per_token=0, decoding_tokens_per_second=0.0)
    subject = {
        "name": name,
        "sentence": "Judge sentences, pairs of sentences and passages: each task has a model of its own.",
        "data": "glue/cola 8,551 + 1,043 examples to train and validate on; encoders that learned from book.txt",
        "measure": "score",
        "block": "tasks",
        "has_test_part": False,
        "chance": None,
        "full_scale": 100,
        "tasks": tasks,
    }
    return results(cells, accuracy=True, subject=subject)


def hostile():
    """Makes a scheme, a setting and every text that is markup."""
    cells = grid(["mha", "sha"]) + [cell(HOSTILE, seed, setting=HOSTILE) for seed in range(3)]
    return results(
        cells,
        failed=[(HOSTILE, "", 9, HOSTILE)],
        subject={"name": HOSTILE, "sentence": HOSTILE, "data": HOSTILE, "block": HOSTILE},
        command=HOSTILE,
        environment={HOSTILE: HOSTILE},
        options={HOSTILE: [HOSTILE]},
    )


def save(directory, what):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "results.json").write_text(json.dumps(what))
    return directory

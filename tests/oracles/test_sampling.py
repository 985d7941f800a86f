"""Tests the sampling filters against transformers' logits processors, in the order generate() applies them."""

import json
import random

import pytest
from conftest import run_command

torch = pytest.importorskip("torch")
processors = pytest.importorskip("transformers.generation.logits_process")


def reference(case):
    options = case["options"]
    scores = torch.tensor([[float("-inf") if x is None else x for x in case["logits"]]], dtype=torch.float64)
    history = torch.tensor([case["history"]], dtype=torch.int64)
    chain = []
    if options.get("repetition-penalty", 1.0) != 1.0:
        chain.append(processors.RepetitionPenaltyLogitsProcessor(options["repetition-penalty"]))
    if options.get("temperature", 1.0) != 1.0:
        chain.append(processors.TemperatureLogitsWarper(options["temperature"]))
    if options.get("top-k", 0) != 0:
        chain.append(processors.TopKLogitsWarper(options["top-k"]))
    if options.get("top-p", 1.0) < 1.0:
        chain.append(processors.TopPLogitsWarper(options["top-p"]))
    if options.get("min-p", 0.0) > 0.0:
        chain.append(processors.MinPLogitsWarper(options["min-p"]))
    for processor in chain:
        scores = processor(history, scores)
    return scores.softmax(-1)[0].tolist()


def random_cases(count):
    """Yields sizes 1 to 300, spiky and flat logits, forbidden tokens, every combination of filters."""
    random.seed(0)
    cases = []
    for _ in range(count):
        size = random.choice([1, 2, 7, 50, 300])
        spread = random.choice([0.01, 1.0, 10.0])
        # The logits are whole multiples of 2^-20: float32 and float64 hold the same numbers.
        logits = [round(random.gauss(0, spread) * 2**20) / 2**20 for _ in range(size)]
        logits = [torch.tensor(x, dtype=torch.float32).item() for x in logits]
        for i in range(1, size):
            if random.random() < 0.1:
                logits[i] = None
        options = {}
        if random.random() < 0.5:
            options["temperature"] = random.choice([0.3, 0.7, 1.5])
        if random.random() < 0.5:
            options["top-k"] = random.choice([1, 3, 20, 1000])
        if random.random() < 0.5:
            options["top-p"] = random.choice([0.0, 0.1, 0.5, 0.9, 0.999])
        if random.random() < 0.5:
            options["min-p"] = random.choice([0.02, 0.3, 1.0])
        if random.random() < 0.5:
            options["repetition-penalty"] = random.choice([0.8, 1.3, 2.0])
        history = [random.randrange(size) for _ in range(random.choice([1, 5, 40]))]
        cases.append({"options": options, "logits": logits, "history": history})
    return cases


def test_filters_agree_with_transformers(build_dir):
    cases = random_cases(2000)
    done = run_command([build_dir / "obj" / "decode" / "sampling_tool"], text_in=json.dumps(cases))
    for case, ours in zip(cases, json.loads(done.stdout), strict=True):
        assert ours == pytest.approx(reference(case), rel=1e-9, abs=1e-12), case

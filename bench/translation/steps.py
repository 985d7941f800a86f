"""A training step of an encoder-decoder, against transformers' MarianMTModel and torch.nn.Transformer.

Every pair has as many tokens on both sides, so that all make the same step: post-norms, sinusoidal positions, one
embedding for source, target and output, biases everywhere, dropout on embeddings and branches, label smoothing, AdamW,
clipped gradients. Numbers of parameters must be equal.
"""

import math
import pathlib
import statistics
import sys
import tempfile

import common
import inputs
import step_process
import trainers

SHAPE = dict(layers=6, heads=8, width=512, feed_forward=2048, vocabulary=8000, context=32, batch=64, steps=2)
QUICK = dict(layers=1, heads=4, width=64, feed_forward=128, vocabulary=500, context=16, batch=8, steps=2)
SETTINGS = dict(dropout=0.1, smoothing=0.1, precision="fp32")


class Headshare(trainers.HeadshareCpu):
    def command(self, steps):
        case, pairs = self.case, self.folder / "pairs.txt"
        flags = {
            "task": "translation", "source": pairs, "target": pairs, "validation-source": self.folder / "few.txt",
            "validation-target": self.folder / "few.txt", "tokenizer-path": self.folder / "pieces.model",
            "scheme": self.scheme, "layers": case["layers"], "heads": case["heads"], "d-model": case["width"],
            "feed-forward-width": case["feed_forward"], "activation": "relu", "norms": "post",
            "positions": "sinusoidal", "context": 2 * case["context"], "max-pair-length": case["context"], "model-vocabulary": case["vocabulary"],
            "batch-tokens": case["batch"] * case["context"], "dropout": case["dropout"],
            "label-smoothing": case["smoothing"], "beta2": 0.98, "steps": steps, "log-every": 1,
            "evaluate-every": steps, "beam": 1, "threads": case["threads"], "device": "cpu", "out": self.folder / "run",
        }  # fmt: skip
        words = [str(word) for flag, value in flags.items() for word in (f"--{flag}", value)]
        return [self.program, "train", "--projection-bias", "--overwrite", *words]

    def lines(self, steps, backend=None):
        lines = super().lines(steps, backend)
        tokens = [b["tokens"] - a["tokens"] for a, b in zip(lines, lines[1:])]
        if set(tokens) != {self.case["batch"] * self.case["context"]}:
            sys.exit(f"headshare's steps have {tokens} tokens, not {self.case['batch'] * self.case['context']}")
        return lines

    def parameters(self):
        return common.program_info(self.program, self.folder / "run")["total_parameters"]

    def seconds(self, steps):
        """By the clock, where several threads wait for each other."""
        return super().seconds(steps) if self.case["threads"] == 1 else trainers.Headshare.seconds(self, steps)


class Python(trainers.Transformers):
    SCRIPT = step_process.__file__

    def __init__(self, case, model):
        super().__init__(case, model)
        self.name, self.scheme = {"marian": "transformers", "torch": "torch_transformer"}[model], "mha"

    def parameters(self):
        return step_process.parameters(self.case)


def check(contenders, losses, case):
    """Ends the benchmark unless all have as many parameters, and first losses of models that know nothing."""
    counts = {one.name: one.parameters() for one in contenders}
    if len(set(counts.values())) > 1:
        sys.exit(f"numbers of parameters differ: {counts}: not measured")
    for name, loss in losses.items():
        if abs(loss - math.log(case["vocabulary"])) > 2:
            sys.exit(f"{name}: first loss {loss}, expected about {math.log(case['vocabulary']):.2f}: not measured")
    return next(iter(counts.values()))


def measure(program, quick, turns, threads):
    """A row for each contender."""
    case = dict(QUICK if quick else SHAPE, threads=threads, **SETTINGS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        texts = inputs.sentences("train.de", 2000 if quick else None)
        inputs.write_pieces(folder, case["vocabulary"], texts)
        lines = inputs.lines_of(inputs.processor(folder), texts[:500], case["context"] - 1, 4 * case["batch"])
        (folder / "pairs.txt").write_text("\n".join(lines) + "\n")
        (folder / "few.txt").write_text("\n".join(lines[:2]) + "\n")
        contenders = [Headshare(program, folder, case, scheme) for scheme in ("mha", "mhe_mul")]
        contenders += [Python(case, model) for model in ("marian", "torch")]
        losses = {f"{one.name} {one.scheme}": one.start() for one in contenders}
        contenders[0].lines(2)  # the run whose parameters are counted
        parameters = check([contenders[0], *contenders[2:]], losses, case)
        found = common.in_turns({one: lambda one=one: one.seconds(case["steps"]) for one in contenders}, turns)
        for one in contenders:
            one.stop()
    return rows_of(case, found, parameters)


def rows_of(case, found, parameters):
    seconds = {one: [second for turn in turns for second in turn] for one, turns in found.items()}
    medians = {one.name: 1000 * statistics.median(seconds[one]) for one in seconds if one.name != "headshare"}
    rows = []
    for one, times in seconds.items():
        row = dict(name="training step", scheme=one.scheme, **case, contender=one.name, **common.summary(times))
        row["tokens_per_second"] = case["batch"] * case["context"] * 1000 / row["median_ms"]
        row["peak_bytes"] = one.peak_bytes
        if one.scheme != "mhe_mul":
            row["parameters"] = parameters
        if one.name == "headshare":
            row |= {f"ratio_to_{name}": theirs / row["median_ms"] for name, theirs in medians.items()}
        ratios = "  ".join(f"{key[9:]} {value:.2f}" for key, value in row.items() if key.startswith("ratio_to_"))
        print(f"  {one.name:18}{one.scheme:13}{row['tokens_per_second']:8.0f} tokens/s  {ratios}".rstrip(), flush=True)
        rows.append(row)
    return rows

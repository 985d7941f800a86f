"""Times a training step of an encoder-decoder, against transformers' MarianMTModel and torch.nn.Transformer.

Every pair has as many tokens on both sides, so that all make the same step: post-norms, sinusoidal positions, one
embedding for source, target and output, biases everywhere, dropout on embeddings and branches, label smoothing, AdamW,
clipped gradients. Numbers of parameters must be equal. In bf16 the others run under autocast; bf16x3, where there is AMX,
is compared with their fp32.
"""

import json
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
SETTINGS = dict(dropout=0.1, smoothing=0.1)


class Headshare(trainers.HeadshareCpu):
    def command(self, steps):
        case, pairs = self.case, self.folder / "pairs.txt"
        flags = {
            "task": "translation", "source": pairs, "target": pairs, "validation-source": self.folder / "few.txt",
            "validation-target": self.folder / "few.txt", "tokenizer-path": self.folder / "pieces.model",
            "scheme": self.scheme, "layers": case["layers"], "heads": case["heads"], "d-model": case["width"],
            "feed-forward-width": case["feed_forward"], "activation": "relu", "norms": "post",
            "positions": "sinusoidal", "context": 2 * case["context"], "max-pair-length": case["context"],
            "model-vocabulary": case["vocabulary"], "batch-tokens": case["batch"] * case["context"],
            "dropout": case["dropout"], "label-smoothing": case["smoothing"], "beta2": 0.98, "steps": steps, "log-every": 1,
            "evaluate-every": steps, "beam": 1, "threads": case["threads"], "device": "cpu", "out": self.folder / "run",
            "precision": case["precision"],
        }  # fmt: skip
        words = [str(word) for flag, value in flags.items() for word in (f"--{flag}", value)]
        return [self.program, "train", "--projection-bias", "--overwrite", *words]

    def seconds(self, steps):
        """Times steps, by the clock where several threads wait for each other."""
        clock = trainers.HeadshareCpu if self.case["threads"] == 1 else trainers.Headshare
        seconds = clock.seconds(self, steps)
        self.check_tokens()
        self.parameters = common.program_info(self.program, self.folder / "run")["total_parameters"]
        return seconds

    def check_tokens(self):
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        lines = [line for line in lines if line["event"] == "step"]
        tokens = [b["tokens"] - a["tokens"] for a, b in zip(lines, lines[1:])]
        if set(tokens) != {self.case["batch"] * self.case["context"]}:
            sys.exit(f"headshare's steps have {tokens} tokens, not {self.case['batch'] * self.case['context']}")


class Python(trainers.Transformers):
    SCRIPT = step_process.__file__

    def __init__(self, case, model):
        super().__init__(case, model)
        self.name, self.scheme = {"marian": "transformers", "torch": "torch_transformer"}[model], "mha"
        self.parameters = common.apart(step_process.parameters, self.case)


def check_losses(losses, case):
    """Ends the benchmark unless the first losses {name: loss} are those of models that know nothing."""
    for name, loss in losses.items():
        if abs(loss - math.log(case["vocabulary"])) > 2:
            sys.exit(f"{name}: first loss {loss}, expected about {math.log(case['vocabulary']):.2f}: not measured")


def check_parameters(counts):
    """Returns the number of parameters that all have; ends the benchmark where they differ."""
    if len(set(counts.values())) > 1:
        sys.exit(f"numbers of parameters differ: {counts}: not measured")
    return next(iter(counts.values()))


def write_inputs(folder, case, texts):
    folder.mkdir()
    inputs.write_pieces(folder, case["vocabulary"], texts)
    inputs.write_lines(folder / "pairs.txt", folder, texts, case["context"] - 1, 4 * case["batch"])
    inputs.write_lines(folder / "few.txt", folder, texts, case["context"] - 1, 2)


def contenders_of(program, folder, case, texts, precisions):
    """Returns our contenders, one for each precision; bf16x3 is ours alone."""
    common.apart(write_inputs, folder, case, texts)
    cases = {precision: dict(case, precision=precision) for precision in precisions}
    ours = [Headshare(program, folder, one, scheme) for one in cases.values() for scheme in ("mha", "mhe_mul")]
    return ours + [Python(one, model) for precision, one in cases.items() if precision != "bf16x3" for model in ("marian", "torch")]


def check(program, folder, texts, settings):
    """Checks small models: the first steps of ours are those of the plain formula of attention, losses those of no
    knowledge."""
    case = dict(QUICK, **settings)
    chosen = contenders_of(program, folder, case, texts, ["fp32"])
    check_losses({f"{one.name} {one.scheme}": one.start() for one in chosen}, case)
    for one in chosen:
        one.stop()


def measure(program, quick, turns, threads):
    """Returns a row for each contender."""
    settings = dict(threads=threads, **SETTINGS)
    case = dict(QUICK if quick else SHAPE, **settings)
    texts = inputs.sentences("train.de", 2000 if quick else None)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        check(program, folder / "small", texts[:2000], settings)
        further = ["bf16x3"] if quick else ["bf16x3", "bf16"]
        precisions = ["fp32", *(further if common.has_amx() else [])]
        chosen = contenders_of(program, folder / "full", case, texts, precisions)
        for one in chosen:
            if isinstance(one, Python):
                one.start()
        found = common.in_turns({one: lambda one=one: one.seconds(case["steps"]) for one in chosen}, turns)
        for one in chosen:
            one.stop()
    parameters = check_parameters({one.name: one.parameters for one in chosen if one.scheme == "mha"})
    return rows_of(found, parameters)


def rows_of(found, parameters):
    seconds = {one: [second for turn in turns for second in turn] for one, turns in found.items()}
    medians = {(one.case["precision"], one.name): 1000 * statistics.median(seconds[one]) for one in seconds if isinstance(one, Python)}
    rows = []
    for one, times in seconds.items():
        case, precision = one.case, one.case["precision"]
        row = dict(name="training step", scheme=one.scheme, **case, contender=one.name, **common.summary(times))
        row["tokens_per_second"] = case["batch"] * case["context"] * 1000 / row["median_ms"]
        row["peak_bytes"] = one.peak_bytes
        if one.scheme != "mhe_mul":
            row["parameters"] = parameters
        if one.name == "headshare":
            against = "bf16" if precision == "bf16" else "fp32"
            row |= {f"ratio_to_{name}": theirs / row["median_ms"] for (one_precision, name), theirs in medians.items()
                    if one_precision == against}  # fmt: skip
        ratios = "  ".join(f"{key[9:]} {value:.2f}" for key, value in row.items() if key.startswith("ratio_to_"))
        print(f"  {one.name:18}{one.scheme:13}{precision:8}{row['tokens_per_second']:8.0f} tokens/s  {ratios}".rstrip(), flush=True)
        rows.append(row)
    return rows

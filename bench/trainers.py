"""Runs programs that train the same model step by step: `headshare train`, and a loop over transformers' model.

A contender has a name and a scheme; start() checks what it can, makes its first step and returns that step's loss,
seconds(n) are those of n more, and once stop() has been called peak_bytes is the highest resident memory that its
process had. A case says layers, heads, width, context, batch, vocabulary, dropout, precision and threads, and its
model: "gpt2", which predicts the next token, "bert", which predicts masked ones, or "vit", which tells `vocabulary`
classes of colour images apart that are `context` tokens each.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import transformers_process


def write_idx(folder, name, count, side, classes):
    """Writes a pair of IDX files of random colour images, which cost nothing to decode."""
    import numpy

    def write(what, sizes, values):
        header = bytes([0, 0, 8, len(sizes)]) + b"".join(size.to_bytes(4, "big") for size in sizes)
        (folder / f"{name}-{what}").write_bytes(header + values.astype(numpy.uint8).tobytes())

    folder.mkdir(exist_ok=True)
    sizes = (count, side, side, 3)
    write("images-idx3-ubyte", sizes, numpy.random.default_rng(0).integers(0, 256, sizes))
    write("labels-idx1-ubyte", (count,), numpy.arange(count) % classes)


def write_inputs(folder, case):
    """Writes text longer than a batch, and a vocabulary of exactly the case's size; or two batches of images."""
    if case["model"] == "vit":
        for name, count in (("train", max(2 * case["batch"], case["vocabulary"])), ("validation", case["vocabulary"])):
            write_idx(folder / "images", name, count, transformers_process.image_side(case), case["vocabulary"])
        return
    (folder / "text.txt").write_text("".join(f"w{i % 997} " + ("\n" if i % 20 == 19 else "") for i in range(60000)))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] if case["model"] == "bert" else ["<unk>", "<eos>"]
    words = special + [f"w{i}" for i in range(case["vocabulary"] - len(special))]
    if case["model"] == "bert":
        (folder / "vocab.txt").write_text("\n".join(words) + "\n")
        return
    form = dict(format="headshare-tokenizer", kind="words", version=1, words=words)
    (folder / "tokenizer.json").write_text(json.dumps(form))


def tokenizer_of(folder, case):
    return folder / ("vocab.txt" if case["model"] == "bert" else "tokenizer.json")


def words_of(flags):
    """Turns {"layers": 6} into ["--layers", 6]."""
    return [word for flag, value in flags.items() for word in (f"--{flag}", value)]


class Headshare:
    """This contender is `headshare train`, started anew each turn, on the files of write_inputs()."""

    # A decoder needs a flag where an encoder is BERT by itself. Images are read as they are, and weights of a ViT start as
    # those of transformers.
    TASKS = {
        "gpt2": ["--projection-bias"],
        "bert": ["--task", "mlm", "--pseudo-tokens", "0"],
        "vit": ["--task", "image", "--patch-size", transformers_process.PATCH, "--crop-padding", "0", "--no-flip",
                "--init-deviation", "0.02"],
    }  # fmt: skip

    def __init__(self, program, folder, case, scheme):
        self.program, self.folder, self.case, self.scheme = program, folder, case, scheme
        self.name, self.peak_bytes = "headshare", 0

    def start(self):
        """Returns the first loss. Three steps must be those of the same program with the plain formula of attention."""
        losses, plain = ([line["loss"] for line in self.lines(3, backend)] for backend in (None, "reference"))
        check_same_steps(f"{self.name} {self.scheme}", losses, plain, self.case)
        return losses[0]

    def task(self):
        """Returns the flags that say what is learned, and from which tokens."""
        model = self.case["model"]
        if model == "vit":
            return self.TASKS[model]
        return [*self.TASKS[model], "--tokenizer-path", tokenizer_of(self.folder, self.case)]

    def data(self):
        """Returns the flags that name what is read, and say how much of it an example is."""
        if self.case["model"] == "vit":
            return {"images": self.folder / "images", "image-size": transformers_process.image_side(self.case)}
        return {"text": self.folder / "text.txt", "context": self.case["context"], "validation-fraction": 0}

    def command(self, steps):
        case = self.case
        flags = self.data() | {
            "scheme": self.scheme, "layers": case["layers"], "heads": case["heads"], "d-model": case["width"],
            "batch-size": case["batch"], "dropout": case["dropout"],
            "attention-dropout": case["dropout"], "precision": case["precision"], "steps": steps, "log-every": 1,
            "evaluate-every": steps, "threads": case["threads"], "device": "cpu",
            "out": self.folder / "run",
        }  # fmt: skip
        return [str(word) for word in (self.program, "train", *self.task(), "--overwrite", *words_of(flags))]

    def lines(self, steps, backend=None):
        environment = os.environ | ({"HEADSHARE_BACKEND": backend} if backend else {})
        process = subprocess.Popen(
            self.command(steps), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
        )
        errors = process.stderr.read().decode()
        peak = peak_of_ended(process, errors)
        if backend is None:
            self.peak_bytes = max(self.peak_bytes, peak)
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        return [line for line in lines if line["event"] == "step"]

    def seconds(self, steps):
        ends = [line["seconds"] for line in self.lines(steps + transformers_process.WARM_UP)]
        ends = ends[transformers_process.WARM_UP - 1 :]
        return [end - begin for begin, end in zip(ends, ends[1:])]

    def stop(self):
        pass


class HeadshareCpu(Headshare):
    """This is the same contender, timed in CPU seconds, so that other work on the machine counts little."""

    def seconds(self, steps):
        """Returns CPU seconds of each step, from those of the process whenever lines of further steps have come."""
        metrics = self.folder / "run/metrics.jsonl"
        metrics.unlink(missing_ok=True)
        seen, ended = [(0, 0.0)], None
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                self.command(steps + transformers_process.WARM_UP), stdout=subprocess.DEVNULL, stderr=said
            )
            # The last look comes after the process has ended: a tiny run may make all its steps between two looks.
            while ended is None:
                time.sleep(0.001)
                ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if (count := steps_in(metrics)) > seen[-1][0]:
                    seen.append((count, cpu_seconds(process.pid)))
            said.seek(0)
            self.peak_bytes = max(self.peak_bytes, peak_of_ended(process, said.read().decode()))
        return seconds_of_steps(seen)[transformers_process.WARM_UP :]


def steps_in(metrics):
    return metrics.read_text().count('"event":"step"') if metrics.is_file() else 0


def cpu_seconds(pid):
    """Returns the CPU seconds of a process that may have ended but was not waited for, by its own clock.

    The files under /proc are as old as the kernel's last tick, in which a tiny model makes several steps.
    """
    return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3), which Python lacks for processes


def seconds_of_steps(seen):
    """Returns seconds of each step from [(number of steps, seconds so far)]; steps seen at once share theirs equally."""
    return [
        (end - begin) / (steps - before)
        for (before, begin), (steps, end) in zip(seen, seen[1:])
        for _ in range(steps - before)
    ]


class Transformers:
    """This contender is a process that lives through all turns and waits while others have theirs."""

    SCRIPT = transformers_process.__file__

    def __init__(self, case, model):
        self.case, self.scheme = dict(case, attention=model), "transformers"  # its attention is MHA
        self.name, self.peak_bytes = f"transformers_{model}", 0

    def start(self):
        environment = dict(os.environ, OMP_NUM_THREADS=str(self.case["threads"]))
        self.process = subprocess.Popen(
            [sys.executable, self.SCRIPT, json.dumps(self.case)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True,
        )  # fmt: skip
        return json.loads(self.answer())

    def answer(self):
        line = self.process.stdout.readline()
        return line or sys.exit(f"{self.name} ended: {self.process.wait()}")

    def seconds(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return json.loads(self.answer())

    def stop(self):
        self.process.stdin.close()
        self.peak_bytes = peak_of_ended(self.process, self.name)


def peak_of_ended(process, errors):
    """Waits for the process; the highest resident memory it had."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    return usage.ru_maxrss * 1024 if status == 0 else sys.exit(f"exit {status}: {errors}")


def check_same_steps(name, losses, plain, case):
    """Ends the benchmark unless the losses of its first steps are those of the plain formula, up to rounding."""
    allowed = 0.02 if case["precision"] == "bf16" else 1e-3
    if max(abs(a - b) for a, b in zip(losses, plain, strict=True)) > allowed:
        sys.exit(f"{name}: losses {losses}, with the plain formula {plain}: not measured")


def check_losses(losses, case):
    """Ends the benchmark unless the first losses {name: loss} are those of models that know nothing."""
    for name, loss in losses.items():
        if abs(loss - math.log(case["vocabulary"])) > 0.5:
            sys.exit(f"{name}: first loss {loss}, expected about {math.log(case['vocabulary']):.2f}: not measured")
    theirs = [loss for name, loss in losses.items() if name.startswith("transformers")]
    allowed = 0.02 if case["precision"] == "bf16" else 1e-3
    if case["dropout"] == 0 and max(theirs) - min(theirs) > allowed:
        sys.exit(f"transformers' first losses differ: {losses}: not measured")

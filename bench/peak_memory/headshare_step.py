"""`headshare train` with a GPT-2 shape and one scheme."""

import json
import pathlib


def names():
    return ["headshare_mha", "headshare_mhe_add"]


def write_inputs(folder, case):
    """Text, and a word list of exactly the case's size."""
    words = [f"w{i}" for i in range(case["vocabulary"] - 2)]
    (folder / "text.txt").write_text("".join(f"w{i % 997} " + ("\n" if i % 20 == 19 else "") for i in range(30000)))
    form = dict(format="headshare-tokenizer", kind="words", version=1, words=["<unk>", "<eos>", *words])
    (folder / "tokenizer.json").write_text(json.dumps(form))


def command(name, program, folder, case):
    write_inputs(folder, case)
    flags = {
        "text": folder / "text.txt", "tokenizer-path": folder / "tokenizer.json", "out": folder / "run",
        "scheme": name.removeprefix("headshare_"), "layers": case["layers"], "heads": case["heads"],
        "d-model": case["width"], "context": case["context"], "batch-size": case["batch"], "steps": case["steps"],
        "dropout": case["dropout"], "attention-dropout": case["dropout"], "threads": case["threads"],
        "log-every": 1, "evaluate-every": case["steps"], "validation-fraction": 0, "device": "cpu",
    }  # fmt: skip
    if case["precision"] != "fp32":
        flags["precision"] = case["precision"]
    words = [str(word) for flag, value in flags.items() for word in (f"--{flag}", value)]
    return [str(program), "train", *words, "--projection-bias", "--overwrite"]


def first_loss(folder, printed):
    lines = (pathlib.Path(folder) / "run/metrics.jsonl").read_text().splitlines()
    return next(line["loss"] for line in map(json.loads, lines) if line["event"] == "step")

"""How fast does headshare train a GPT-2 and a BERT, against transformers, and in how much memory?

The same shape, batch, threads and optimizer in all: `headshare train` with the schemes mha and mhe_add against
transformers' GPT2LMHeadModel, or BertForMaskedLM for masked tokens, with eager attention, with
`scaled_dot_product_attention` and under torch.compile, torch's fused AdamW, gradients clipped; in float32 and in bf16
(autocast), with and without dropout, in one process each, taking turns. Before anything is timed, a random model of
that shape goes through `headshare convert` and must give transformers' logits, three steps of headshare must have the
losses of the plain formula of attention (the same dropout), every first loss must be that of a model that knows
nothing, and transformers' must agree without dropout. A row per contender: median and least seconds of a step (the
first two steps of a process left out), its peak memory, and for headshare `ratio_to_NAME`: NAME's median over its own.

    .venv/bin/python bench/training_step/run.py --out build/bench/training_step.json [--case gpt2] [--quick]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402
import results  # noqa: E402
import trainers  # noqa: E402
import transformers_process  # noqa: E402

CASES = {
    # This is nanoGPT's recipe for a CPU: dominated by the cost of starting each operation.
    "recipe": dict(layers=4, heads=4, width=128, context=64, batch=12, vocabulary=256, steps=40),
    "small": dict(layers=4, heads=6, width=192, context=128, batch=16, vocabulary=8192, steps=12),
    "medium": dict(layers=6, heads=6, width=384, context=256, batch=8, vocabulary=8192, steps=6),
    # This has GPT-2's width and vocabulary.
    "gpt2": dict(layers=6, heads=12, width=768, context=512, batch=4, vocabulary=50257, steps=2),
    # This has BERT's, and its objective: 15 in 100 tokens are asked for.
    "bert": dict(model="bert", layers=6, heads=12, width=768, context=512, batch=4, vocabulary=30522, steps=2),
}
FULL = ("gpt2", "bert")  # in every form
QUICK = dict(layers=1, heads=2, width=32, context=32, batch=2, vocabulary=300, steps=2)
SCHEMES = ("mha", "mhe_add")
MODELS = ("eager", "sdpa", "compiled")


def logit_difference(program, case, folder):
    """Returns the largest difference of logits between the two, on the same weights."""
    import torch
    from safetensors.torch import load_file

    torch.manual_seed(0)
    model = transformers_process.make_model(dict(case, attention="eager")).eval()
    model.save_pretrained(folder / "hf")
    converted = folder / "converted"
    subprocess.run(
        [program, "convert", "--from", "hf", folder / "hf", converted, "--overwrite", "--tokenizer",
         trainers.tokenizer_of(folder, case)], check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    ids = torch.randint(case["vocabulary"], (1, case["context"]))
    (folder / "ids.json").write_text(json.dumps(dict(ids=ids.tolist())))
    tool = program.parent / "obj/models/model_tool"
    subprocess.run([tool, converted, folder / "ids.json", folder / "out.safetensors"], check=True)
    with torch.no_grad():
        expected = model(input_ids=ids).logits
    return (load_file(folder / "out.safetensors")["logits"] - expected).abs().max().item()


def checked_logits(*arguments):
    difference = common.apart(logit_difference, *arguments)
    if difference > 1e-3:
        sys.exit(f"logits differ by {difference}: not timing a wrong result")
    return difference


def measure(program, case, turns):
    """Returns one row a contender."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        trainers.write_inputs(folder, case)
        difference = checked_logits(program, case, folder)
        contenders = [trainers.Headshare(program, folder, case, scheme) for scheme in SCHEMES]
        contenders += [trainers.Transformers(case, model) for model in MODELS]
        trainers.check_losses({f"{one.name} {one.scheme}": one.start() for one in contenders}, case)
        seconds = {one: [] for one in contenders}
        for turn in range(turns):
            at = turn % len(contenders)
            for one in contenders[at:] + contenders[:at]:
                seconds[one] += one.seconds(case["steps"])
        for one in contenders:
            one.stop()
    medians = {one.name: statistics.median(seconds[one]) for one in contenders if one.scheme == "transformers"}
    rows = []
    for one in contenders:
        timing = common.summary(seconds[one])
        row = dict(contender=one.name, scheme=one.scheme, **case, **timing)
        row["tokens_per_second"] = case["batch"] * case["context"] * 1000 / timing["median_ms"]
        row["peak_bytes"] = one.peak_bytes
        if one.name == "headshare":
            row.update({f"ratio_to_{name}": 1000 * theirs / timing["median_ms"] for name, theirs in medians.items()})
            row["largest_logit_difference"] = difference if one.scheme == "mha" else None
        rows.append(row)
        ratios = "  ".join(f"{key[9:]} {value:.2f}" for key, value in row.items() if key.startswith("ratio_to_"))
        print(
            f"  {one.name:22}{one.scheme:13}{row['tokens_per_second']:9.0f} tokens/s"
            f"{one.peak_bytes / 2**20:8.0f} MiB  {ratios}".rstrip(),
            flush=True,
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the JSON file to write")
    parser.add_argument("--program", type=pathlib.Path, default=common.ROOT / "build/headshare")
    parser.add_argument("--case", action="append", choices=CASES, help="default: all; gpt2 and bert in every form, others fp32")
    parser.add_argument("--threads", type=int, action="append", help="default: 1 and 2; small cases all cores")
    parser.add_argument("--precision", action="append", choices=("fp32", "bf16"))
    parser.add_argument("--dropout", action="append", type=float)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="two tiny cases: shows that it works")
    parser.add_argument("--add", action="store_true", help="keep the rows of --out that are not measured now")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    if arguments.quick:
        cases = {name: dict(QUICK, model=name, vocabulary=1100) for name in FULL if name in (arguments.case or FULL)}
    else:
        cases = {name: CASES[name] for name in arguments.case or CASES}
    kept = common.Kept(arguments.out, program, adding=arguments.add)
    turns = 1 if arguments.quick else arguments.turns
    rows = []
    for name, sizes in cases.items():
        full = name in FULL and not arguments.quick
        for threads in arguments.threads or ((1, 2) if full else (os.cpu_count(),)):
            for precision in arguments.precision or (("fp32", "bf16") if full else ("fp32",)):
                for dropout in arguments.dropout or ((0.0, 0.1) if full else (0.0,)):
                    case = dict(dict(case=name, model="gpt2"), threads=threads, precision=precision, dropout=dropout)
                    case.update(sizes)
                    print(f"{name}, {threads} threads, {precision}, dropout {dropout}", flush=True)
                    rows += kept.get([case, turns], lambda: measure(program, case, turns))
    if arguments.add and arguments.out.is_file():
        rows += results.rows_left(arguments.out, rows, kept.commit)
    common.write_results(arguments.out, program, rows)
    kept.forget()


if __name__ == "__main__":
    main()

"""How fast does headshare train a GPT-2, against transformers?

The same shape, batch, threads and optimizer in both: `headshare train --scheme mha` against
transformers' GPT2LMHeadModel (attn_implementation="sdpa", not compiled, dropout 0, torch's fused AdamW,
gradients clipped) in one process each, taking turns. Before anything is timed, a random GPT-2 of that
shape goes through `headshare convert` and must give transformers' logits. Per contender the median
and the least seconds of a step, the first two steps of each turn left out; the ratio is of medians.

    .venv/bin/python bench/training_step/run.py --out build/bench/training_step.json [--case small]
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TURNS = 3
SKIPPED = 2  # steps of a turn that warm up

CASES = {
    # nanoGPT's recipe for a CPU: dominated by the cost of starting each operation
    "recipe": dict(layers=4, heads=4, width=128, context=64, batch=12, vocabulary=256, steps=40),
    "small": dict(layers=4, heads=6, width=192, context=128, batch=16, vocabulary=8192, steps=12),
    "medium": dict(layers=6, heads=6, width=384, context=256, batch=8, vocabulary=8192, steps=6),
    # GPT-2's width and vocabulary
    "gpt2": dict(layers=6, heads=12, width=768, context=512, batch=4, vocabulary=50257, steps=2),
}


def hf_model(case):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=case["vocabulary"],
        n_positions=case["context"],
        n_embd=case["width"],
        n_layer=case["layers"],
        n_head=case["heads"],
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        attn_implementation="sdpa",
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config)


def time_transformers(case, threads):
    """Seconds of each step, in a process of its own."""
    code = f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r}); import run; run.hf_steps({case!r})"
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, env=environment, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def hf_steps(case):
    import torch

    torch.manual_seed(0)
    model = hf_model(case).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    seconds = []
    for _ in range(case["steps"] + SKIPPED):
        ids = torch.randint(case["vocabulary"], (case["batch"], case["context"] + 1))
        began = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        logits = model(input_ids=ids[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - began)
    print(json.dumps(seconds[SKIPPED:]))


def bytes_tokenizer(case, folder):
    """A tokenizer with the case's vocabulary: bytes, else GPT-2's files or a trained one."""
    if case["vocabulary"] == 256:
        return ["--tokenizer", "bytes"]
    return ["--tokenizer-path", str(folder / "tokenizer.json")]


def write_tokenizer(case, folder):
    """A word list of exactly the case's size, so that any text fits it."""
    if case["vocabulary"] == 256:
        return
    words = ["<unk>", "<eos>"] + [f"w{i}" for i in range(case["vocabulary"] - 2)]
    form = json.loads((folder / "words.json").read_text())
    form["words"] = words
    (folder / "tokenizer.json").write_text(json.dumps(form))


def train_command(program, case, folder, threads):
    steps = case["steps"] + SKIPPED
    return [
        program, "train", "--text", folder / "text.txt", *bytes_tokenizer(case, folder),
        "--scheme", "mha", "--projection-bias", "--layers", case["layers"], "--heads", case["heads"],
        "--d-model", case["width"], "--context", case["context"], "--batch-size", case["batch"],
        "--steps", steps, "--log-every", 1, "--evaluate-every", steps, "--validation-fraction", 0,
        "--threads", threads, "--device", "cpu", "--out", folder / "run", "--overwrite",
    ]  # fmt: skip


def time_headshare(program, case, folder, threads):
    command = [str(word) for word in train_command(program, case, folder, threads)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    lines = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["event"] == "step"]
    targets = case["batch"] * case["context"]
    return [targets / line["tokens_per_second"] for line in steps][SKIPPED:]


def check_equal(program, case, folder):
    """The largest difference of logits between the two, on the same weights."""
    import torch
    from safetensors.torch import load_file

    torch.manual_seed(0)
    model = hf_model(case).eval()
    model.save_pretrained(folder / "hf")
    converted = folder / "converted"
    tokenizer = folder / "tokenizer.json"
    subprocess.run(
        [program, "convert", "--from", "hf", folder / "hf", converted, "--overwrite", "--tokenizer", tokenizer],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    ids = torch.randint(case["vocabulary"], (1, case["context"]))
    (folder / "ids.json").write_text(json.dumps(ids.tolist()))
    tool = program.parent / "obj/models/decoder_tool"
    subprocess.run([tool, converted, folder / "ids.json", folder / "out.safetensors"], check=True)
    with torch.no_grad():
        expected = model(input_ids=ids).logits
    difference = (load_file(folder / "out.safetensors")["logits"] - expected).abs().max().item()
    if difference > 1e-3:
        sys.exit(f"logits differ by {difference}: not timing a wrong result")
    return difference


def prepare(program, case, folder):
    """Text longer than a batch, and a tokenizer file of the case's vocabulary."""
    (folder / "text.txt").write_text("".join(f"w{i % 997} " + ("\n" if i % 20 == 19 else "") for i in range(60000)))
    kind = "bytes" if case["vocabulary"] == 256 else "words"
    command = [
        program, "train", "--text", folder / "text.txt", "--tokenizer", kind, "--layers", 1, "--d-model", 8,
        "--heads", 1, "--context", 8, "--steps", 1, "--out", folder / "tiny", "--overwrite",
    ]  # fmt: skip
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    written = (folder / "tiny/checkpoints/best/tokenizer.json").read_text()
    (folder / f"{kind}.json").write_text(written)
    (folder / "tokenizer.json").write_text(written)
    write_tokenizer(case, folder)


def measure(program, name, case, threads):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        prepare(program, case, folder)
        difference = check_equal(program, case, folder)
        ours, theirs = [], []
        for _ in range(TURNS):
            ours += time_headshare(program, case, folder, threads)
            theirs += time_transformers(case, threads)
    targets = case["batch"] * case["context"]
    result = dict(case=name, threads=threads, **case, largest_logit_difference=difference)
    for contender, seconds in (("headshare", ours), ("transformers", theirs)):
        result[contender] = dict(
            median_seconds=statistics.median(seconds),
            least_seconds=min(seconds),
            tokens_per_second=targets / statistics.median(seconds),
            steps=len(seconds),
        )
    result["ratio"] = statistics.median(theirs) / statistics.median(ours)
    return result


def environment():
    import torch
    import transformers

    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    model = [line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return dict(
        commit=commit.stdout.strip(),
        torch=torch.__version__,
        transformers=transformers.__version__,
        python=platform.python_version(),
        processor=model[0].split(":")[1].strip() if model else "",
        cores=os.cpu_count(),
        instructions=torch.backends.cpu.get_cpu_capability(),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/headshare")
    arguments = parser.parse_args()
    results = []
    for name in arguments.case or CASES:
        for threads in arguments.threads or [os.cpu_count()]:
            result = measure(arguments.program.resolve(), name, CASES[name], threads)
            results.append(result)
            print(
                f"{name:8} {threads} threads: headshare {result['headshare']['tokens_per_second']:9.0f} tokens/s, "
                f"transformers {result['transformers']['tokens_per_second']:9.0f}, ratio {result['ratio']:.2f}",
                flush=True,
            )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(dict(environment=environment(), results=results), indent=2) + "\n")


if __name__ == "__main__":
    main()

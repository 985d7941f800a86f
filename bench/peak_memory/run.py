"""How much memory does a training step take at its peak?

A GPT-2 (vocabulary 50257) and a BERT (30522) of 6 layers of 768, batch 4 x 512, trained for three steps in a process of
its own by each contender. `step_bytes` is the process's highest resident memory minus that of the same program training
a model of almost no size: weights, gradients, optimizer and activations, without interpreters and libraries;
`process_bytes` is all of it. Before a number counts, headshare's losses must be those of the plain formula of attention
and every first loss that of a model that knows nothing, ln(vocabulary).

    .venv/bin/python bench/peak_memory/run.py --out build/bench/peak_memory.json [--quick]
"""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402
import trainers  # noqa: E402

GPT2 = dict(model="gpt2", layers=6, heads=12, width=768, context=512, batch=4, vocabulary=50257)
BERT = dict(GPT2, model="bert", vocabulary=30522)
TINY = dict(layers=1, heads=1, width=8, context=32, batch=4, vocabulary=1000)
QUICK = dict(model="gpt2", layers=2, heads=4, width=128, context=128, batch=4, vocabulary=4096)


def contenders(program, folder, case):
    """Returns the contenders by the names of the results."""
    ours = {f"headshare_{s}": trainers.Headshare(program, folder, case, s) for s in ("mha", "mhe_add")}
    return ours | {one.name: one for one in (trainers.Transformers(case, kind) for kind in ("eager", "sdpa"))}


def peaks(program, case):
    """Returns the highest resident memory of each contender's process, as the system reports it at its end, in
    bytes."""
    with tempfile.TemporaryDirectory() as temporary:
        trainers.write_inputs(pathlib.Path(temporary), case)
        chosen = contenders(program, pathlib.Path(temporary), case)
        losses = {}
        for name, one in chosen.items():
            losses[name] = one.start()
            one.seconds(1)
            one.stop()
        trainers.check_losses(losses, case)
        return {name: one.peak_bytes for name, one in chosen.items()}


def measure(program, case):
    full, empty = peaks(program, case), peaks(program, dict(case, **TINY))
    rows = [dict(contender=name, **case, step_bytes=full[name] - empty[name], process_bytes=full[name]) for name in full]
    theirs = {row["contender"]: dict(row) for row in rows if row["contender"].startswith("transformers")}
    for row in rows:
        for name, one in theirs.items():
            for what in ("step", "process"):
                row[f"{what}_ratio_to_{name}"] = row[f"{what}_bytes"] / one[f"{what}_bytes"]
        print(
            f"{row['model']} {row['contender']:20} dropout {row['dropout']}: step {row['step_bytes'] / 2**20:7.0f} MiB, "
            f"of eager {row['step_ratio_to_transformers_eager']:.2f}, of sdpa {row['step_ratio_to_transformers_sdpa']:.2f}",
            flush=True,
        )
    return rows


def main():
    arguments = common.arguments_of(__doc__, threads=(2,))
    rows = []
    for threads in arguments.threads:
        for sizes in [QUICK] if arguments.quick else [GPT2, BERT]:
            for dropout in (0.0, 0.1):
                case = dict(sizes, dropout=dropout, precision="fp32", threads=threads)
                rows += measure(arguments.program.resolve(), case)
    common.write_results(arguments.out, arguments.program, rows)


if __name__ == "__main__":
    main()

"""How much memory does a training step take at its peak?

A GPT-2 of 6 layers of 768, batch 4 x 512, vocabulary 50257, trained for three steps in a process of its own
by each contender. `step_bytes` is the process's highest resident memory less that of the same program training
a model of almost no size: weights, gradients, optimizer and activations, without interpreters and libraries;
`process_bytes` is all of it. Before a number counts, the first loss must be that of a model that knows
nothing, ln(vocabulary).

    .venv/bin/python bench/peak_memory/run.py --out build/bench/peak_memory.json [--quick]
"""

import math
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402
import headshare_step  # noqa: E402
import transformers_step  # noqa: E402

GPT2 = dict(layers=6, heads=12, width=768, context=512, batch=4, vocabulary=50257, steps=3)
TINY = dict(layers=1, heads=1, width=8, context=8, batch=1, vocabulary=16, steps=3)
QUICK = dict(layers=2, heads=4, width=128, context=128, batch=4, vocabulary=4096, steps=3)


def peak_of(contender, name, program, case):
    """The highest resident memory of a process, as the system reports it at its end, in bytes."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        command = contender.command(name, program, folder, case)
        with open(folder / "printed", "w+") as printed:
            process = subprocess.Popen(command, stdout=printed, stderr=subprocess.PIPE)
            errors = process.stderr.read().decode()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status  # it has been waited for
            if status != 0:
                sys.exit(f"{' '.join(map(str, command))}: failed\n{errors}")
            printed.seek(0)
            loss = contender.first_loss(folder, printed.read())
    if abs(loss - math.log(case["vocabulary"])) > 0.5:
        sys.exit(f"{name}: first loss {loss}, expected about {math.log(case['vocabulary']):.2f}: not measured")
    return usage.ru_maxrss * 1024


def measure(arguments, case):
    rows = []
    for contender in (headshare_step, transformers_step):
        for name in contender.names():
            peak = peak_of(contender, name, arguments.program.resolve(), case)
            empty = peak_of(contender, name, arguments.program.resolve(), dict(case, **TINY))
            rows.append(dict(contender=name, **case, step_bytes=peak - empty, process_bytes=peak))
    eager = next(row for row in rows if row["contender"] == "transformers_eager")
    for row in rows:
        for what in ("step", "process"):
            row[f"{what}_ratio_to_transformers_eager"] = row[f"{what}_bytes"] / eager[f"{what}_bytes"]
        print(
            f"{row['contender']:20} dropout {row['dropout']}: step {row['step_bytes'] / 2**20:7.0f} MiB, "
            f"ratio {row['step_ratio_to_transformers_eager']:.2f}",
            flush=True,
        )
    return rows


def main():
    arguments = common.arguments_of(__doc__, threads=(2,))
    rows = []
    for threads in arguments.threads:
        for dropout in (0.0, 0.1):
            sizes = QUICK if arguments.quick else GPT2
            rows += measure(arguments, dict(sizes, dropout=dropout, precision="fp32", threads=threads))
    common.write_results(arguments.out, arguments.program, rows)


if __name__ == "__main__":
    main()

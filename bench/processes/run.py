"""How much faster do two processes train than one, and in how much memory?

`headshare train` in one process of one thread, and the same steps in two processes of one thread each, which torchrun's
variables start: each computes one of a step's two micro-batches. Then the same with the optimizer's moments in shards.
`apart` are two processes that know nothing of each other and compute one micro-batch each: what the machine would give
if sums cost nothing. They take turns. A row per case and form: median and least seconds of a step (the first two of a
run left out), the peak memory of a process, `ratio_to_one` (one's median over its own) and `ratio_of_least` (the same with
least seconds). A last row per size of message says how long Gloo takes to sum it over two processes.

    .venv/bin/python bench/processes/run.py --out build/bench/processes.json [--quick]
"""

import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402
import trainers  # noqa: E402

CASES = {
    "small": dict(layers=4, heads=6, width=192, context=128, batch=8, vocabulary=8192, steps=14),
    "medium": dict(layers=6, heads=6, width=384, context=256, batch=4, vocabulary=8192, steps=7),
    # This has GPT-2's width and vocabulary.
    "gpt2": dict(layers=6, heads=12, width=768, context=512, batch=1, vocabulary=50257, steps=4),
}
QUICK = {"tiny": dict(layers=1, heads=2, width=32, context=32, batch=2, vocabulary=1100, steps=4)}
FORMS = ("one", "two", "two, shards", "apart")
MESSAGES = (8, 1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 25 << 20, 100 << 20)
GLOO = """
import statistics, sys, time, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
for size in map(int, sys.argv[1:]):
    numbers, seconds = torch.ones(max(1, size // 4)), []
    for _ in range(max(12, min(400, 400_000_000 // max(size, 1_000_000)))):
        numbers.fill_(1)
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(numbers)
        seconds.append(time.perf_counter() - began)
    if dist.get_rank() == 0:
        print(size, statistics.median(seconds[2:]), min(seconds[2:]), len(seconds) - 2)
"""


def start_together(command, processes):
    """Starts the command in so many processes, with what torchrun tells them."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    given = dict(WORLD_SIZE=processes, LOCAL_WORLD_SIZE=processes, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    given.update(PYTHONPATH=common.ROOT / "python", OMP_NUM_THREADS=1, GOMP_SPINCOUNT=3000)
    return [
        subprocess.Popen(
            [str(word) for word in command],
            env=os.environ | {key: str(value) for key, value in dict(given, RANK=rank, LOCAL_RANK=rank).items()},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for rank in range(processes)
    ]


def train(program, folder, case, form):
    """Returns the seconds of each step but the first two, and the peak bytes of the process that took most."""
    command = trainers.Headshare(program, folder, case, "mha").command(case["steps"])
    command += ["--no-tensorboard", "--accumulation", 1 if form == "apart" else 2]
    if form in ("one", "apart"):
        started = start_together(command, 1)
        if form == "apart":
            command[command.index("--out") + 1] = folder / "other"
            started += start_together(command, 1)
    else:
        shards = ["--shard-optimizer"] if form == "two, shards" else []
        started = start_together([sys.executable, "-m", "headshare", *command[1:], *shards], 2)
    peaks = []
    for process in started:
        process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"{form}: a process ended with status {status}")
        peaks.append(usage.ru_maxrss * 1024)
    lines = map(json.loads, (folder / "run/metrics.jsonl").read_text().splitlines())
    ends = [line["seconds"] for line in lines if line["event"] == "step"]
    return [later - earlier for earlier, later in zip(ends[1:], ends[2:])], max(peaks)


def measure(program, name, sizes, turns):
    case = dict(sizes, case=name, model="gpt2", threads=1, precision="fp32", dropout=0.0)
    seconds, peaks = {form: [] for form in FORMS}, {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        trainers.write_inputs(folder, case)
        for turn in range(turns):
            at = turn % len(FORMS)
            for form in FORMS[at:] + FORMS[:at]:
                taken, peaks[form] = train(program, folder, case, form)
                seconds[form] += taken
    alone = statistics.median(seconds["one"])
    rows = []
    for form in FORMS:
        row = dict(case, form=form, micro_batches=2, peak_bytes=peaks[form], **common.summary(seconds[form]))
        row["ratio_to_one"] = alone / statistics.median(seconds[form])
        row["ratio_of_least"] = min(seconds["one"]) / min(seconds[form])
        rows.append(row)
        print(
            f"  {name:8}{form:14}{row['median_ms']:9.1f} ms  {row['ratio_to_one']:.2f}  (least {row['ratio_of_least']:.2f})"
            f"  {peaks[form] / 2**20:.0f} MiB",
            flush=True,
        )
    return rows


def measure_gloo():
    first, second = start_together([sys.executable, "-c", GLOO, *MESSAGES], 2)
    lines = first.communicate()[0].splitlines()
    second.communicate()
    rows = []
    for line in lines:
        size, median, least, count = map(float, line.split())
        rows.append(
            dict(case="gloo", form="two", message_bytes=int(size), median_ms=1000 * median, minimum_ms=1000 * least,
                 repetitions=int(count), bytes_per_second=size / median)
        )  # fmt: skip
        print(f"  gloo {int(size):10} bytes {1000 * median:10.3f} ms  least {1000 * least:.3f} ms")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the JSON file to write")
    parser.add_argument("--program", type=pathlib.Path, default=common.ROOT / "build/headshare")
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one tiny case: shows that it works")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    cases = QUICK if arguments.quick else {name: CASES[name] for name in arguments.case or CASES}
    rows = []
    for name, sizes in cases.items():
        rows += measure(program, name, sizes, 1 if arguments.quick else arguments.turns)
    common.write_results(arguments.out, program, rows + measure_gloo())


if __name__ == "__main__":
    main()

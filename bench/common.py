"""Holds what the attention benchmarks share: the program's own rows, contenders that take turns, checks, statistics.

A contender is a module of bench/contenders with NAME, applies(case) and heads(case, query, key, value); a
case is a row of `headshare bench attention --json` (its sizes, mask, dropout, precision).
"""

import argparse
import concurrent.futures
import dataclasses
import gc
import importlib
import json
import multiprocessing
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import results

ROOT = pathlib.Path(__file__).resolve().parents[1]

# design/design/012): waiting threads give up their core soon. libgomp reads it when torch is loaded, so this module
# comes first.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")


def arguments_of(description, threads=(1, 2), grids=0, anchors=False):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the JSON file to write")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/headshare")
    parser.add_argument("--threads", type=int, action="append", help=f"default: {' and '.join(map(str, threads))}")
    parser.add_argument("--quick", action="store_true", help="few small cases: shows that it works")
    if grids:
        parser.add_argument(
            "--part", type=int, action="append", choices=range(1, grids + 1), help="measure this grid alone; other rows stay"
        )
    if anchors:
        parser.add_argument(
            "--anchors", action="store_true", help="the cases that Python's contenders are timed on, for a file of their own"
        )
    arguments = parser.parse_args()
    arguments.threads = arguments.threads or list(threads)
    return arguments


def program_info(program, *model):
    return json.loads(subprocess.run([program, "info", *model, "--json"], check=True, capture_output=True).stdout)


def has_amx():
    """Tells whether --precision bf16x3 is more than fp32 here."""
    return "amx_bf16" in pathlib.Path("/proc/cpuinfo").read_text().split()


def environment(program):
    """Returns the machine and the versions; the commit and the instruction set are the program's own."""
    import torch
    import transformers

    machine = program_info(program)
    keys = ("commit", "headshare", "processor", "cores", "instructions", "memory_bytes")
    versions = dict(torch=torch.__version__, transformers=transformers.__version__, python=platform.python_version())
    return {**{key: machine[key] for key in keys}, **versions}


def program_rows(program, question, threads, *flags):
    """Runs `headshare bench QUESTION` with these flags; what it refuses to time ends the benchmark."""
    command = [program, "bench", question, "--json", "--threads", threads, *flags]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}")
    # The environment says this once; benchmarks compute on the CPU.
    machine = ("instructions", "processor", "torch", "headshare", "commit", "device")
    return [{key: value for key, value in row.items() if key not in machine} for row in json.loads(done.stdout)]


def flags_of(options):
    """Turns {"heads": [12, 16]} into ["--heads", "12,16"]."""
    flags = []
    for name, value in options.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        flags += ["--" + name.replace("_", "-"), ",".join(map(str, values))]
    return flags


# ----------------------------------------------------------------------------------------------- statistics


def summary(seconds):
    return dict(
        median_ms=1000 * statistics.median(seconds), minimum_ms=1000 * min(seconds), repetitions=len(seconds)
    )


def take_turns(actions, least=3, most=15, limit=1.5):
    """Returns the seconds of each action of {name: action}, round by round in changing order, after one untimed run."""
    names = list(actions)
    for name in names:
        actions[name]()
    seconds = {name: [] for name in names}
    for turn in range(most):
        if turn >= least and sum(map(sum, seconds.values())) > limit:
            break
        at = turn % len(names)
        for name in names[at:] + names[:at]:
            began = time.perf_counter()
            actions[name]()
            seconds[name].append(time.perf_counter() - began)
    return seconds


@dataclasses.dataclass
class Ended:
    seconds: float  # of CPU time with one thread, else by the clock: threads that wait use their core
    peak_bytes: int  # the highest resident memory
    output: bytes


def timed_program(command, threads=1, given=None):
    """Runs a whole program with these threads, which reads the file `given`; what it does not end well ends the
    benchmark."""
    command = [str(word) for word in command]
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open(given or os.devnull, "rb") as stdin:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=stdin, stdout=out, stderr=err, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        elapsed, process.returncode = time.perf_counter() - began, status
        out.seek(0)
        err.seek(0)
        if status != 0:
            sys.exit(f"{' '.join(command)}: exit {status}: {err.read().decode(errors='replace')}")
        seconds = usage.ru_utime + usage.ru_stime if threads == 1 else elapsed
        return Ended(seconds, usage.ru_maxrss * 1024, out.read())


def apart(function, *arguments):
    """Returns the function's result, from a process of its own: what this one held would count as its children's peak
    memory."""
    fresh = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=fresh) as pool:
        return pool.submit(function, *arguments).result()


def in_turns(actions, turns):
    """Returns what each action of {name: action} returned, turn by turn in changing order."""
    names, found = list(actions), {name: [] for name in actions}
    for turn in range(turns):
        at = turn % len(names)
        for name in names[at:] + names[:at]:
            found[name].append(actions[name]())
    return found


def peak_bytes_of(action):
    """Returns the highest resident memory of this process while `action` runs, less that before."""
    import ctypes

    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = status_bytes("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    action()
    return max(0, status_bytes("VmHWM") - before)


def status_bytes(key):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(key)


# ------------------------------------------------------------------------------------------- Python's contenders


def contenders():
    here = ROOT / "bench/contenders"
    sys.path.insert(0, str(ROOT))
    return [importlib.import_module(f"bench.contenders.{path.stem}") for path in sorted(here.glob("[a-z]*.py"))]


def python_rows(cases, threads):
    """Returns rows of the contenders that need Python, from a process of its own: threads are set before torch
    starts."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'bench')!r}); import common, json;"
        f"print(json.dumps(common.python_rows_here(json.load(sys.stdin), {threads})))"
    )
    child = dict(os.environ, OMP_NUM_THREADS=str(threads))
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(cases), stdout=subprocess.PIPE, check=True, env=child, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def python_rows_here(cases, threads):
    import torch

    torch.set_num_threads(threads)
    rows = []
    for case in cases:
        chosen = [one for one in contenders() if one.applies(case)]
        # Ratios refer to torch's own attention in this very process.
        if {one.NAME for one in chosen} - {"torch_sdpa", "torch_sdpa_gqa"}:
            rows += measure(case, chosen)
    return rows


def memory_heads(case):
    """Returns how many heads of keys a case has; gqa's bench/decode tells, which knows the cache."""
    return case.get("memory_heads") or (1 if case["scheme"] in ("mqa", "mhe_add", "mhe_mul") else case["heads"])


def case_tensors(case, uniform=False):
    """Returns leaves [B, H, length, width], heads side by side as projections leave them, or one after the other where
    one query reads them from a cache; and heads' gradients."""
    import torch

    torch.manual_seed(0)
    dtype = dict(fp32=torch.float32, bf16=torch.bfloat16)[case["precision"]]
    batch, heads, width = case["batch_size"], case["heads"], case["head_width"]
    key_width = case.get("key_width", width)
    shared = memory_heads(case)

    def leaf(length, own, wide, value):
        shape = (batch, length, own, wide)
        flat = torch.full(shape, float(value)) if uniform else torch.randn(shape)
        heads = flat.to(dtype).transpose(1, 2)
        return (heads.contiguous() if case["queries"] == 1 else heads).requires_grad_()

    query, key = leaf(case["queries"], heads, key_width, 0), leaf(case["keys"], shared, key_width, 0)
    value, gradient = leaf(case["keys"], shared, width, 1), leaf(case["queries"], heads, width, 1)
    return (query, key, value), gradient.detach()


def run_once(contender, case, leaves, gradient):
    import torch

    if case["pass"] == "forward":
        with torch.no_grad():
            return contender.heads(case, *leaves), ()
    heads = contender.heads(case, *leaves)
    return heads, torch.autograd.grad(heads, leaves, gradient)


# A row repeats these fields of its case.
DESCRIBED = ("name", "scheme", "pass", "causal", "dropout", "dropout_masks", "precision", "batch_size")
DESCRIBED += ("heads", "queries", "keys", "head_width", "threads")


def measure(case, chosen):
    """Returns one row a contender, in the form of the program's rows."""
    leaves, gradient = case_tensors(case)
    for contender in chosen:
        check(contender, case)
    actions = {one.NAME: lambda one=one: run_once(one, case, leaves, gradient) for one in chosen}
    peaks = {name: peak_bytes_of(action) for name, action in actions.items()}
    seconds = take_turns(actions)
    times = {name: summary(seconds[name]) for name in actions}
    baseline = min(times[one.NAME]["median_ms"] for one in chosen if one.NAME.startswith("torch_sdpa"))
    rows = []
    for name, timing in times.items():
        row = {key: case[key] for key in DESCRIBED}
        row.update(contender="python_" + name, backend="torch in Python", **timing, is_baseline=False)
        row.update(ratio_to_torch_sdpa=baseline / timing["median_ms"], peak_bytes=peaks[name], cache_bytes=0)
        rows.append(row)
    return rows


# ------------------------------------------------------------------------------------------------------- checks


def expected(case, leaves, gradient, rows, dtype):
    """Returns the formula over some queries of the last sentence, and the gradients these alone give."""
    import torch

    query, key, value = (x.detach()[-1:].to(dtype).requires_grad_() for x in leaves)
    own_key, own_value = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
    scores = query[:, :, rows] @ own_key.transpose(2, 3) * case["head_width"] ** -0.5
    if case["causal"]:
        last = rows[:, None] + case["keys"] - case["queries"]  # that a query sees
        scores = scores.masked_fill(torch.arange(case["keys"]) > last, -torch.inf)
    heads = scores.softmax(-1) @ own_value
    return heads, torch.autograd.grad(heads, (query, key, value), gradient[-1:, :, rows].to(dtype))


def check(contender, case):
    """Ends the benchmark unless heads and gradients are the formula's (at dropout 0; with dropout, on average)."""
    import torch

    plain = dict(case, dropout=0.0)
    leaves, gradient = case_tensors(plain)
    rows = torch.linspace(0, case["queries"] - 1, min(case["queries"], 48)).long().unique()
    sparse = torch.zeros_like(gradient)
    sparse[-1, :, rows] = gradient[-1, :, rows]
    exact, rounded = (expected(plain, leaves, gradient, rows, kind) for kind in (torch.float64, gradient.dtype))
    heads, gradients = run_once(contender, plain, leaves, sparse)
    found = [heads[-1:, :, rows], *(one[-1:] for one in gradients)]
    epsilon, roundings = torch.finfo(gradient.dtype).eps, 4 if gradient.dtype == torch.bfloat16 else 64
    names = ("heads", "queries' gradient", "keys' gradient", "values' gradient")
    for what, one, true, near in zip(names, found, (exact[0], *exact[1]), (rounded[0], *rounded[1])):
        allowed = 2 * (near - true).abs().max() + roundings * epsilon * max(1, true.abs().max())
        if not (error := (one - true).abs().max()) <= allowed:
            where = f"{contender.NAME}, {case['name']}"
            raise AssertionError(f"{where}: {what} off by {error}, allowed {allowed}: not timed")
    if case["dropout"] > 0:
        check_dropout(contender, case)


def check_dropout(contender, case):
    """Checks dropout with all scores equal and all values 1: a row of weights sums to 1 on average, with binomial
    spread."""
    import torch

    leaves, _ = case_tensors(case, uniform=True)
    with torch.no_grad():
        sums = contender.heads(case, *leaves)[..., 32 * case["causal"] :, 0].double()
    seen = torch.full((case["queries"],), float(case["keys"]), dtype=torch.float64)
    if case["causal"]:
        seen = torch.arange(1, case["keys"] + 1, dtype=torch.float64)
    p = case["dropout"]
    z = (sums - 1) * (seen[-sums.shape[-1] :] * (1 - p) / p).sqrt()
    draws = z.shape[0] * z.shape[2]
    if abs(z.mean()) > 6 * draws**-0.5 + 0.2 or abs(z.square().mean() - 1) > 6 * (3 / draws) ** 0.5 + 0.2:
        raise AssertionError(f"{contender.NAME}, {case['name']}: dropout {p} has the wrong statistics: not timed")


# ------------------------------------------------------------------------------------------------------- results


def write_results(path, program, rows):
    results.write(path, environment(program), rows)


class Kept:
    """This keeps parts of a long benchmark by key, beside its result until that is written: an interruption costs one
    part."""

    def __init__(self, path, program, adding=False):
        self.path = path.with_suffix(".partial.json")
        self.parts = json.loads(self.path.read_text()) if self.path.is_file() else {}
        program = program_info(program)
        self.commit = program["commit"]
        if adding and path.is_file():
            results.require_processor(path, program["processor"])

    def get(self, key, measure):
        key = f"{self.commit} {key}"
        if key not in self.parts:
            self.parts[key] = measure()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.parts))
        return self.parts[key]

    def forget(self):
        self.path.unlink(missing_ok=True)


def in_python(row, quick):
    """Tells which cases Python's contenders are timed on as well: each takes a compilation."""
    if row["contender"] != "headshare":
        return False
    return quick or (row["heads"] == 12 and row["queries"] >= 512 and row["scheme"] in ("mha", "mqa"))


def kept_python_rows(kept, cases, threads):
    """Times Python's contenders on the cases of each scheme and precision in a process of its own: an interruption costs
    one of them."""
    groups = {}
    for case in cases:
        groups.setdefault((case["scheme"], case["precision"]), []).append(case)
    rows = []
    for group in groups.values():
        names = [case["name"] for case in group]
        rows += kept.get([threads, "python", *names], lambda: python_rows(group, threads))
    return rows


def measure_attention(description, grids, quick, anchors=None):
    """Does a benchmark's whole work: the program's rows over its grids, and Python's contenders on the common
    shapes; with --anchors the grids `anchors` in their place."""
    arguments = arguments_of(description, grids=len(grids), anchors=anchors is not None)
    kept = Kept(arguments.out, arguments.program, adding=bool(arguments.part))
    if arguments.quick:
        grids = quick
    elif anchors is not None and arguments.anchors:
        grids = anchors
    rows = []
    for threads in arguments.threads:
        mine = []
        for number, grid in enumerate(grids, 1):
            if arguments.part and number not in arguments.part:
                continue
            flags = flags_of(grid)
            mine += kept.get(
                [threads, *flags], lambda: program_rows(arguments.program, "attention", threads, *flags)
            )
        cases = [row for row in mine if in_python(row, arguments.quick)]
        rows += mine + kept_python_rows(kept, cases, threads)
    if arguments.part and arguments.out.is_file():
        rows += results.rows_left(arguments.out, rows, kept.commit)
    # Rows of a case stand together.
    rows.sort(key=lambda row: [str(row.get(key)) for key in results.CASE])
    write_results(arguments.out, arguments.program, rows)
    kept.forget()

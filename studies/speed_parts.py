"""Holds what the tables of speed are made of: rows of the benchmarks' results, and what they were measured on."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import targets  # noqa: E402, F401 (bench_tables.py takes it from here)
from results import rows_of  # noqa: E402

MODELS = {"gpt2": "GPT-2", "bert": "BERT"}


def machine(environment):
    return f"{environment['processor']}, {environment['instructions']}"


def versions(results):
    """Names machine, torch and commits; rows that stayed when others were measured again carry their own commit."""
    environment = results["environment"]
    commits = dict.fromkeys([environment["commit"], *(row["commit"] for row in rows_of(results) if "commit" in row)])
    plural = "s" * (len(commits) > 1)
    return f"{machine(environment)}; torch {environment['torch']}, commit{plural} {', '.join(commits)}"


def measured_on(forward, training):
    """Names both programs unless one measured everything; the ratios may then come from two machines."""
    one, other = versions(forward), versions(training)
    return f"{one}." if one == other else f"Forward: {one}; training: {other}."


def ours(results, **where):
    """Returns headshare's rows of a benchmark in which every field has this value."""
    rows = [row for row in rows_of(results) if row["contender"] == "headshare"]
    return [row for row in rows if all(row.get(key) == value for key, value in where.items())]


def ratio_to_fastest(row):
    """Returns how many times as fast a training step is as that of the fastest form of transformers that was measured."""
    return min(value for name, value in row.items() if name.startswith("ratio_to_transformers"))

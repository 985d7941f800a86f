"""Kills and disk errors at changes of the disk in train and finetune: nothing is lost and nothing is told wrong.

A tenth of all operations by default; HEADSHARE_EVERY_OPERATION=1 attacks each (minutes).
"""

import pytest
from faults import Faults, for_each, spread
from training import TINY, losses, sentences

STEPS = [*TINY, "--steps", 6, "--evaluate-every", 2, "--save-every", 3, "--keep-last", 1]


@pytest.fixture(scope="module")
def library(build_dir):
    path = build_dir / "tests" / "faults.so"
    if not path.is_file():
        pytest.skip(f"{path} is not built")
    return path


def model_files(run_directory):
    """What is left of a run and must not depend on what happened to it: the best model and the last checkpoint."""
    names = ["best/model.safetensors", "best/config.json", "last/model.safetensors", "last/optimizer.safetensors"]
    return {name: (run_directory / "checkpoints" / name).read_bytes() for name in names}


class Training:
    """A short training in a folder of its own, and what comes out when nothing happens."""

    def __init__(self, program, library, home):
        self.program, self.library, self.home = program, library, home
        self.text = home / "text.txt"
        self.text.write_bytes(sentences(3000))
        whole, faults = self.begin("whole")
        done = faults.run(program, *self.command(whole))
        assert done.returncode == 0, done.stderr
        self.operations = faults.operations()
        self.below = whole
        self.files, self.losses = model_files(whole / "run"), losses(whole / "run")

    def begin(self, name):
        below = self.home / name
        below.mkdir()
        return below, Faults(self.library, below, self.home / f"{name}.log")

    def command(self, below):
        return ["train", *STEPS, "--text", self.text, "--out", below / "run"]

    def finish(self, below):
        """Goes on with a run, or begins it again where nothing was begun, and compares the end."""
        faults = Faults(self.library, below / "nothing", self.home / "unused.log")
        done = faults.run(self.program, "train", "--resume", "--out", below / "run")
        if done.returncode == 2:
            done = faults.run(self.program, *self.command(below))
        assert done.returncode == 0, f"going on: {done.stderr}"
        self.compare(below)

    def compare(self, below):
        run = below / "run"
        assert losses(run) == self.losses, "other lines in metrics.jsonl"
        for name, content in model_files(run).items():
            assert content == self.files[name], f"another {name}"
        left = [str(path) for path in run.rglob("*.partial*")]
        assert not left, f"left behind: {left}"

    def numbers(self, most):
        return spread(self.operations, self.below, most)

    def attack(self, kind, number):
        below, faults = self.begin(f"{kind}-{number}")
        done = faults.run(self.program, *self.command(below), kind=kind, at=number)
        return below, done, self.operations[number - 1].replace(str(self.below), "")


@pytest.fixture(scope="module")
def training(program, library, tmp_path_factory):
    return Training(program, library, tmp_path_factory.mktemp("faults"))


def test_every_kind_of_operation_is_counted(training):
    counted = {operation.split()[0] for operation in training.operations}
    for needed in ({"open", "open64"}, {"write"}, {"fsync"}, {"rename"}, {"mkdir"}, {"symlink"}, {"unlink", "unlinkat"}):
        assert counted & needed, counted


@pytest.mark.parametrize("kind", ["kill", "torn"])
def test_a_killed_run_goes_on_to_the_same_bytes(training, kind):
    def attack(number):
        below, done, operation = training.attack(kind, number)
        assert done.returncode == -9, f"{operation}: exit {done.returncode}: {done.stderr}"
        try:
            training.finish(below)
        except AssertionError as failure:
            raise AssertionError(f"{operation}: {failure}") from None

    writes = [n for n in training.numbers(30) if training.operations[n - 1].startswith("write")]
    for_each(training.numbers(30) if kind == "kill" else writes, attack)


def one_clear_error(stderr):
    lines = stderr.splitlines()
    errors = [line for line in lines if "error" in line]
    assert len(errors) == 1 and lines[-1].startswith("error: "), stderr
    assert "a defect in headshare" not in stderr and "terminate called" not in stderr, stderr


@pytest.mark.parametrize("kind", ["eio", "full", "short"])
def test_a_disk_error_is_an_error_and_no_more(training, kind):
    """Or it does no harm: then the run ends as if nothing had happened."""

    def attack(number):
        below, done, operation = training.attack(kind, number)
        try:
            assert done.returncode in ((0,) if kind == "short" else (0, 1)), f"exit {done.returncode}: {done.stderr}"
            if done.returncode == 0:
                training.compare(below)
            else:
                one_clear_error(done.stderr)
                training.finish(below)
        except AssertionError as failure:
            raise AssertionError(f"{operation}: {failure}") from None

    writes = [n for n in training.numbers(20) if training.operations[n - 1].startswith("write")]
    for_each(writes if kind == "short" else training.numbers(20), attack)

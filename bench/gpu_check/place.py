"""Knows where the program and its tests are, in a bundle or in a source tree, and runs them."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BUNDLE = HERE.parent  # in a bundle; in a source tree it is bench/
IN_BUNDLE = (BUNDLE / "python/headshare/lib/headshare").is_file()
ROOT = BUNDLE if IN_BUNDLE else BUNDLE.parent
PACKAGE = ROOT / "python"
TESTS = ("ops_test", "attention_test")


@dataclasses.dataclass
class Row:
    """Is a line of the table: what was looked at, whether it is as it should be (None: a figure alone, or not run)."""

    part: str
    name: str
    passed: bool | None
    found: str
    figures: dict = dataclasses.field(default_factory=dict)


class Place:
    """Holds the device, the folder to work in and the time that is left; starts the program."""

    def __init__(self, device, work, seconds, tiny):
        sys.path.insert(0, str(PACKAGE))
        from headshare._program import ready_program

        self.device, self.work, self.tiny = device, work, tiny
        self.deadline = time.monotonic() + seconds
        self.program, environment = ready_program()
        paths = [str(PACKAGE), environment.get("PYTHONPATH", "")]
        self.environment = {**environment, "PYTHONPATH": ":".join(path for path in paths if path)}
        self.workers = max(1, min(8, len(os.sched_getaffinity(0)) - 1))

    def left(self):
        return self.deadline - time.monotonic()

    def run(self, *words, text=None, most=240):
        """Runs the program; returns its exit code and what it printed. It ends when the time is up."""
        return self.call([self.program, *words], text, most)

    def call(self, command, text=None, most=240):
        most = max(1.0, min(most, self.left()))
        command = [str(word) for word in command]
        try:
            done = subprocess.run(
                command, input=text or "", capture_output=True, text=True, env=self.environment, timeout=most, cwd=self.work
            )
        except subprocess.TimeoutExpired:
            return 124, "", f"no answer within {most:.0f} s"
        return done.returncode, done.stdout, done.stderr

    def start(self, *words):
        """Starts the program itself, not a shell around it, so that killing the process kills the program."""
        return subprocess.Popen(
            [str(self.program), *map(str, words)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment, cwd=self.work,
        )  # fmt: skip

    def test_program(self, name):
        return ROOT / "tests" / name if IN_BUNDLE else program_folder(self.program) / "obj" / name.removesuffix("_test") / name

    def info(self):
        code, out, errors = self.run("info", "--json")
        if code != 0:
            raise SystemExit(f"error: the program does not run here: {last_line(errors)}")
        return json.loads(out)


def program_folder(program):
    return pathlib.Path(program).resolve().parent


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else ""


def metrics(folder):
    """Returns the losses of steps and of evaluations in a run's directory."""
    events = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    steps = [event["loss"] for event in events if event.get("event") == "step"]
    scores = [event["loss"] for event in events if event.get("event") == "evaluation"]
    return steps, scores


def speeds(folder):
    events = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [event["tokens_per_second"] for event in events if event.get("tokens_per_second")]

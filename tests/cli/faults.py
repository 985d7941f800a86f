"""Runs of the program that are killed, or meet a disk error, at a given change of the disk: tests/faults/faults.cc."""

import concurrent.futures
import os
import re
import subprocess

from training import words

# All of them take minutes; without this, tests use a spread that meets every kind of operation.
EVERY = os.environ.get("HEADSHARE_EVERY_OPERATION") == "1"


class Faults:
    """Makes changes of the disk below a folder fail; `log` lies outside of it."""

    def __init__(self, library, below, log):
        self.library, self.below, self.log = library, below, log

    def run(self, program, *arguments, kind="", at=0):
        """Returns the ended process: `kind` strikes at operation `at`; 0 only counts."""
        self.log.unlink(missing_ok=True)
        environment = {
            **os.environ,
            "LD_PRELOAD": str(self.library),
            "HEADSHARE_FAULT_BELOW": str(self.below),
            "HEADSHARE_FAULT_LOG": str(self.log),
            "HEADSHARE_FAULT_KIND": kind,
            "HEADSHARE_FAULT_AT": str(at),
            "HEADSHARE_CACHE": str(self.below / "cache"),
            "HEADSHARE_BEAT": "1000",  # beats change the disk, too, whenever they come
        }
        return subprocess.run(words(program, *arguments), env=environment, capture_output=True, text=True, timeout=120)

    def operations(self):
        """Lists what the last run did, as "rename .../checkpoints/best"."""
        return [line.rstrip() for line in self.log.read_text().splitlines()] if self.log.exists() else []


def spread(operations, most):
    """Returns numbers (from 1) of operations: the first and the last of each kind, then others, evenly, up to
    `most`."""
    if EVERY:
        return list(range(1, len(operations) + 1))
    kinds = {}
    for number, operation in enumerate(operations, 1):
        kinds.setdefault(re.sub(r"\d+", "0", operation), []).append(number)
    ends = [numbers[0] for numbers in kinds.values()] + [numbers[-1] for numbers in kinds.values()]
    chosen = list(dict.fromkeys(ends))
    if len(chosen) > most:
        chosen = chosen[:: -(-len(chosen) // most)]
    rest = [number for number in range(1, len(operations) + 1) if number not in chosen]
    missing = max(0, most - len(chosen))
    return sorted({*chosen, *(rest[:: max(1, len(rest) // missing)][:missing] if missing and rest else [])})


def for_each(numbers, attack):
    """Calls attack(number) for all, two at a time; reports the failures together, so that one run shows them all."""

    def outcome(number):
        try:
            attack(number)
        except AssertionError as failure:
            return f"operation {number}: {failure}"
        return None

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failures = [text for text in pool.map(outcome, numbers) if text]
    assert not failures, f"{len(failures)} of {len(numbers)}:\n" + "\n\n".join(failures)

"""gpu-check: does headshare compute on this card what it computes on the CPU, the same each time, and how fast?

    python3 gpu_check/run.py [--device cuda] [--out gpu-check.json] [--parts tests,losses,...] [--minutes 8]

Parts: tests (the unit tests that need a card), losses (every scheme trained here and on the CPU), repeat (equal runs, and
one that is killed and resumed, end with equal bits under --deterministic), step (training speed against plain torch,
eager and compiled), attention (against libtorch's backends), decode (against a copy). It prints a table, writes the same
as JSON, and returns 1 where something is wrong. A part that the time is too short for is named.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
import tempfile
import time

import correctness
import speed
from place import Place, Row

PARTS = {
    "tests": correctness.tests,
    "losses": correctness.losses,
    "repeat": correctness.repeat,
    "step": speed.step,
    "attention": speed.attention,
    "decode": speed.decode,
}


def write_text(path):
    """Writes English text that every Python carries: its own manual."""
    from pydoc_data import topics

    path.write_text("\n".join(topics.topics[name] for name in sorted(topics.topics)), encoding="utf-8")
    return path


def run_part(name, here):
    if here.left() < 5:
        return [Row(name, "", None, "not run: the time was up")]
    began = time.monotonic()
    try:
        rows = PARTS[name](here)
    except Exception as error:  # the other parts still run
        rows = [Row(name, "", False, f"{type(error).__name__}: {error}")]
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return rows


def table(rows):
    """Returns a line for each row: part, name, ok or WRONG, what was found."""
    words = {True: "ok", False: "WRONG", None: ""}
    wide = max([len(row.name) for row in rows] + [1])
    return "\n".join(f"{row.part:<10} {row.name:<{wide}}  {words[row.passed]:<6} {row.found}" for row in rows)


def machine_row(info, device):
    cuda = info["cuda"]
    cards = ", ".join(card["name"] for card in cuda["cards"]) or "no card"
    found = f"{cards}; driver {cuda['driver'] or 'none'}, CUDA {cuda['built_for'] or 'none'}, cuDNN {cuda['cudnn'] or 'none'}"
    return Row("machine", device, None, f"{found}; libtorch {info['torch']}, {info['cores']} cores", dict(info))


def choose_parts(text):
    names = text.split(",")
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise SystemExit(f"error: there is no part {', '.join(unknown)}; parts are {', '.join(PARTS)}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, or cpu to see that it runs")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("gpu-check.json"))
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--tiny", action="store_true", help="few and short cases: for the test of this script")
    options = parser.parse_args()
    names, began = choose_parts(options.parts), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        here = Place(options.device, pathlib.Path(folder), 60 * options.minutes, options.tiny)
        here.text = write_text(here.work / "text.txt")
        rows = [machine_row(here.info(), options.device)]
        for name in names:
            rows += run_part(name, here)
    print(table(rows))
    seconds, wrong = time.monotonic() - began, sum(row.passed is False for row in rows)
    written = dict(device=options.device, seconds=round(seconds), wrong=wrong, rows=[dataclasses.asdict(row) for row in rows])
    options.out.write_text(json.dumps(written, indent=1) + "\n")
    print(f"{wrong} wrong, {sum(row.passed is True for row in rows)} ok, in {seconds:.0f} s; all figures: {options.out}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

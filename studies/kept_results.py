#!/usr/bin/env python3
"""Writes a comparison's results.json as the repository keeps it: no white space, blocks and curves to six digits, paths
from here.

Blocks and learning curves are most of a file: blocks serve bootstrap intervals alone, which are of the third digit, and
curves are drawn. No other number is rounded. In a sweep only the chosen settings keep their blocks and learning curves:
no page draws the others.

    studies/kept_results.py <build/experiments/NAME/results.json >docs/results/compare/NAME.json
"""

import json
import os
import pathlib
import sys

DIGITS = 6
ROOT = pathlib.Path(__file__).resolve().parents[1]


def rounded(value):
    """Rounds a number; whole numbers stay what they are."""
    return value if isinstance(value, int) else float(f"{value:.{DIGITS}g}")


def from_here(value):
    """Returns a path as seen from here: a resumed run names its files by absolute paths."""
    if isinstance(value, list):
        return [from_here(one) for one in value]
    inside = isinstance(value, str) and value.startswith(f"{ROOT.parent}/")
    return os.path.relpath(value, ROOT) if inside else value


# The folder in which studies/experiments kept the models is this machine's own affair.
text = sys.stdin.read()
if kept := os.environ.get("HEADSHARE_EXPERIMENTS"):
    text = text.replace(kept, "build/experiments")
results = json.loads(text)
if isinstance(results, list):
    first = results[0]["options"]
    differing = {name for one in results for name, value in one["options"].items() if value != first.get(name)} - {"seed"}
    sys.exit(f"these are {len(results)} comparisons and not parts of one: they differ in {', '.join(sorted(differing))}")
# Parts that differ in a path, one of them resumed, keep it with their cells.
for owner in [results, *results["cells"]]:
    owner["options"] = {name: from_here(value) for name, value in owner.get("options", {}).items()}
chosen = {(row["variant"], row["setting"]) for row in results["rows"]}
for cell in results["cells"]:
    # Gathering prefixes each part's folder, once more with each part; models of a file that is kept are not kept.
    if "model" in cell:
        cell["model"] = cell["model"].replace("docs/results/compare/", "")
    if (cell["variant"], cell["setting"]) not in chosen:
        cell["blocks"] = cell["curve"] = []
    cell["blocks"] = [rounded(block) for block in cell["blocks"]]
    cell["curve"] = [{name: rounded(value) for name, value in point.items()} for point in cell["curve"]]
    if not cell["blocks"] or len(set(cell.get("block_targets", []))) <= 1:
        cell.pop("block_targets", None)
print(json.dumps(results, ensure_ascii=False, separators=(",", ":")))

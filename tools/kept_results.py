#!/usr/bin/env python3
"""A comparison's results.json as the repository keeps it: no white space, evaluation blocks to six digits.

Blocks are most of a file and serve bootstrap intervals alone, which are of the third digit; nothing else is rounded.

    tools/kept_results.py <build/experiments/NAME/results.json >docs/results/compare/NAME.json
"""

import json
import sys

DIGITS = 6

results = json.load(sys.stdin)
for cell in results["cells"]:
    cell["blocks"] = [float(f"{block:.{DIGITS}g}") for block in cell["blocks"]]
print(json.dumps(results, ensure_ascii=False, separators=(",", ":")))

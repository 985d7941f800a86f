"""Runs the Python blocks of docs/python.md, one after the other."""

import re

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_page_runs(root):
    text = (root / "docs/python.md").read_text()
    names = {}
    for block in BLOCK.finditer(text):
        lines = "\n" * text[: block.start(1)].count("\n")  # a failure names the line of the page
        exec(compile(lines + block[1], "docs/python.md", "exec"), names)
    assert names["choice"].backend == "fused"

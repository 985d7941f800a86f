"""Runs the ```python blocks of the pages about Python, each page in one process; a ```text block after one is what it
prints (tests/printed_output.py)."""

import sys

import pytest
from conftest import ROOT, run_command
from printed_output import BLOCK, assert_prints

pytestmark = pytest.mark.slow

PAGES = ["docs/python-training.md"]
MARK = "--- end of block ---"


def blocks(text):
    """Lists [code, expected output or None]."""
    found = []
    for match in BLOCK.finditer(text):
        language, body = match.groups()
        if language == "python":
            found.append([body, None])
        elif language == "text" and found:
            found[-1][1] = body
    return found


@pytest.mark.parametrize("page", PAGES)
def test_page(page, tmp_path):
    run_command([sys.executable, ROOT / "tools/python_manual.py", tmp_path / "text.txt"])
    listed = blocks((ROOT / page).read_text())
    assert listed, f"{page} has no ```python block"
    code = f"\nprint({MARK!r})\n".join(one for one, _ in listed)
    environment = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}
    done = run_command([sys.executable, "-c", code], cwd=tmp_path, env=environment)
    printed = done.stdout.split(MARK + "\n")
    assert len(printed) == len(listed)
    for (_, expected), actual in zip(listed, printed):
        if expected is not None:
            assert_prints(expected, actual)

"""Runs the README and docs/mathematics.md: every ```sh block but the set-up ones (make, git clone) is
executed, in order, in one folder that holds nothing but `text.txt` (CPython's manual: the user's own
text), with build/ on the PATH; a ```text block right after it must be what it prints.

tests/printed_output.py says how output is compared. Only standard output counts: progress goes to standard error.
"""

import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT, run_command
from printed_output import BLOCK, assert_prints

pytestmark = pytest.mark.slow

SETUP = re.compile(r"\s*(make|git clone|cd|sudo)\b|\s*(#.*)?$")
def blocks(text):
    """Yields (line, commands, expected output or None) of each block to run."""
    found = [(match, *match.groups()) for match in BLOCK.finditer(text)]
    for index, (match, language, body) in enumerate(found):
        if language != "sh" or all(SETUP.match(line) for line in body.splitlines()):
            continue
        expected = None
        if index + 1 < len(found) and found[index + 1][1] == "text":
            between = text[match.end() : found[index + 1][0].start()]
            if len(between.strip().splitlines()) <= 1:  # at most a line of words
                expected = found[index + 1][2]
        yield text[: match.start()].count("\n") + 1, body, expected


PAGES = ["README.md", "docs/mathematics.md"]
BLOCKS = [
    (f"{page}:{line}", commands, expected)
    for page in PAGES
    for line, commands, expected in blocks((ROOT / page).read_text())
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("readme")
    run_command([sys.executable, ROOT / "tools/python_manual.py", path / "text.txt"])
    return path


@pytest.mark.parametrize("page", PAGES)
def test_page_has_blocks_to_run(page):
    assert any(name.startswith(page) for name, _, _ in BLOCKS), f"{page} has no ```sh block beside the set-up ones"


@pytest.mark.parametrize(("commands", "expected"), [block[1:] for block in BLOCKS], ids=[block[0] for block in BLOCKS])
def test_block(commands, expected, folder, program):
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
    if expected is not None:
        assert_prints(expected, done.stdout)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("a  1\n", "a 1  \n"),
        ("first\n...\nlast 3\n", "first\nx\n\ny\nlast 3\n"),
        ("took 3.2 s, 12 MiB, 88 tokens/s\n", "took 14 s, 9.5 MiB, 1,204 tokens/s\n"),
        ("loss 4.18 ... after 3 steps\n", "loss 3.97 anything after 3 steps\n"),
        ("--------  ---\n", "-----  -----\n"),
    ],
)
def test_outputs_that_agree(expected, actual):
    assert_prints(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("heads 8\n", "heads 12\n"),
        ("a\nb\n", "a\n"),
        ("a\n", "a\nb\n"),
        ("loss 4.18\n", "loss nan\n"),
        ("a\n...\nz\n", "a\nb\n"),
    ],
)
def test_outputs_that_differ(expected, actual):
    with pytest.raises(pytest.fail.Exception):
        assert_prints(expected, actual)

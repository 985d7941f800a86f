"""Runs the README, docs/mathematics.md and the pages about Python: every ```sh and ```python block but the set-up ones (make, git
clone, pip) is executed, in order, in one folder that holds nothing but `text.txt` (CPython's manual: the user's own
text), with build/ on the PATH; a ```text block right after it must be what it prints.

How output is compared, line by line, with runs of blanks counting as one:
- a line of `...` stands for any number of lines, `...` within a line for any text;
- numbers that vary match any number: those with a decimal point, and those before a unit of time,
  speed or memory (12 s, 3400 tokens/s, 512 MiB); bars and dashes of tables match any length;
- everything else, whole numbers too, must be equal.
Only standard output counts: progress goes to standard error. The Python blocks of a page share their names.
"""

import contextlib
import io
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT, run_command

pytestmark = pytest.mark.slow

SETUP = re.compile(r"\s*(make|git clone|cd|sudo|pip)\b|\s*(#.*)?$")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
UNIT = r"(?:ms|s|min|h|[KMGT]i?B|B|tok(?:ens)?/s|steps/s|MB/s|GB/s|x)\b|%"
VARYING = re.compile(rf"{NUMBER}(?=\s?(?:{UNIT}))|[-+]?\d[\d,]*\.\d+(?:e[-+]?\d+)?")


def blocks(text):
    """Yields (line, language, commands, expected output or None) of each block to run."""
    found = [(match, *match.groups()) for match in BLOCK.finditer(text)]
    for index, (match, language, body) in enumerate(found):
        if language not in ("sh", "python") or all(SETUP.match(line) for line in body.splitlines()):
            continue
        expected = None
        if index + 1 < len(found) and found[index + 1][1] == "text":
            between = text[match.end() : found[index + 1][0].start()]
            if len(between.strip().splitlines()) <= 1:  # at most a line of words
                expected = found[index + 1][2]
        yield text[: match.start()].count("\n") + 1, language, body, expected


def line_pattern(line):
    pattern = ""
    for part in re.split(r"(\.\.\.)", " ".join(line.split())):
        if part == "...":
            pattern += ".*"
            continue
        position = 0
        for number in VARYING.finditer(part):
            pattern += re.escape(part[position : number.start()]) + NUMBER
            position = number.end()
        pattern += re.escape(part[position:])
    pattern = re.sub(r"(?:\\-|─|━|=){3,}", r"[-─━=]+", pattern)
    return pattern


def output_pattern(expected):
    pattern = ""
    for line in expected.rstrip().splitlines():
        pattern += r"(?:.*\n)*?" if line.strip() == "..." else line_pattern(line) + r"\n"
    return re.compile(pattern)


def assert_prints(expected, actual):
    plain = "".join(" ".join(line.split()) + "\n" for line in actual.rstrip().splitlines())
    if not output_pattern(expected).fullmatch(plain):
        pytest.fail(f"The page promises\n\n{expected}\nbut the output is\n\n{actual}", pytrace=False)


PAGES = ["README.md", "docs/mathematics.md", "docs/scaling.md", "docs/python.md", "docs/python-modules.md", "docs/python-ops.md", "docs/python-training.md"]
BLOCKS = [
    (f"{page}:{line}", language, commands, expected)
    for page in PAGES
    for line, language, commands, expected in blocks((ROOT / page).read_text())
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("readme")
    run_command([sys.executable, ROOT / "tools/python_manual.py", path / "text.txt"])
    return path


@pytest.fixture(scope="module")
def names():
    """Returns the names that the Python blocks of each page have defined so far."""
    return {page: {} for page in PAGES}


@pytest.mark.parametrize("page", PAGES)
def test_page_has_blocks_to_run(page):
    assert any(name.startswith(page) for name, *_ in BLOCKS), f"{page} has no block to run beside the set-up ones"


def shell_output(commands, folder, program):
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
    return done.stdout


def python_output(commands, names):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(commands, names)
    return printed.getvalue()


@pytest.mark.parametrize(("name", "language", "commands", "expected"), BLOCKS, ids=[block[0] for block in BLOCKS])
def test_block(name, language, commands, expected, folder, names, program, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HEADSHARE_BUILD", str(program.parent))
    if language == "python":
        printed = python_output(commands, names[name.split(":")[0]])
    else:
        printed = shell_output(commands, folder, program)
    if expected is not None:
        assert_prints(expected, printed)


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

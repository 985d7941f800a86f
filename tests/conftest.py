"""Holds what the Python tests share: where things are, and how to run the program.

HEADSHARE_BUILD  the build to test (default: build)
HEADSHARE_DATA   the folder of real data sets (default: ../shared/data); tests that need it are
                 skipped, by name, where it is missing
HEADSHARE_SLOW_TESTS_UNTIL  the time, in seconds since 1970, after which no slow test begins (default: never); the
                 files of those that are then skipped are named
"""

import os
import pathlib
import re
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# These are all schemes, in the program's order (tests/cli/test_cost.py asks it).
SCHEMES = re.findall(r"^HS_SCHEME\((\w+)\)", (ROOT / "headshare/attention/schemes.inc").read_text(), re.MULTILINE)


# CI ends at a fixed time (.ci/run), and some machines take five times as long as others for the same tests.
SLOW_TESTS_UNTIL = float(os.environ.get("HEADSHARE_SLOW_TESTS_UNTIL", "inf"))


@pytest.hookimpl(tryfirst=True)  # before fixtures are made
def pytest_runtest_setup(item):
    if item.get_closest_marker("slow") and time.time() > SLOW_TESTS_UNTIL:
        pytest.skip(f"no time is left for slow tests of {item.path.relative_to(ROOT)} (HEADSHARE_SLOW_TESTS_UNTIL)")


def run_command(command, *, check=True, cwd=None, text_in=None, env=None, timeout=300):
    """Runs a command; unless check=False, a failure fails the test and shows what was printed."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        input=text_in if text_in is not None else "",
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if check and done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}", pytrace=False)
    return done


@pytest.fixture(scope="session")
def root():
    """Returns the repository."""
    return ROOT


@pytest.fixture(scope="session")
def build_dir():
    return pathlib.Path(os.environ.get("HEADSHARE_BUILD", ROOT / "build")).resolve()


@pytest.fixture(scope="session")
def tool(build_dir):
    """Returns the tool that encodes and decodes for tests of tokenizers (tests/oracles/tokenize_tool.py)."""
    path = build_dir / "obj" / "text" / "tokenize_tool"
    if not path.is_file():
        pytest.skip(f"{path} is not built: configure with HEADSHARE_TESTS")
    return path


@pytest.fixture(scope="session")
def program(build_dir):
    """Returns the built program."""
    path = build_dir / "headshare"
    assert path.is_file(), f"{path} is not built: run make build"
    return path


@pytest.fixture(scope="session")
def run(program):
    """run("train", "--steps", 3) runs the program with these arguments; see run_command."""
    return lambda *arguments, **options: run_command([program, *arguments], **options)


@pytest.fixture
def refused(run):
    """refused(2, "train", "--x") returns the error message of a call that ends with this exit code and prints no
    result."""

    def call(code, *arguments, **options):
        done = run(*arguments, check=False, **options)
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
        assert done.stdout == ""
        assert "error: " in done.stderr and "terminate called" not in done.stderr, done.stderr
        return done.stderr

    return call


@pytest.fixture(scope="session")
def data():
    """Returns the folder of real data sets."""
    path = pathlib.Path(os.environ.get("HEADSHARE_DATA", ROOT.parent / "shared" / "data")).resolve()
    if not path.is_dir():
        pytest.skip(f"no data sets in {path}: set HEADSHARE_DATA")
    return path


def pytest_collection_modifyitems(items):
    """Marks comparisons with other implementations as slow: the other one is loaded first."""
    for item in items:
        if ROOT / "tests/oracles" in item.path.parents:
            item.add_marker(pytest.mark.slow)

"""Tests that an installation is usable: its program runs, and examples/consumer builds against it."""

import re
import sys

import pytest
from conftest import run_command

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def prefix(build_dir, tmp_path_factory):
    path = tmp_path_factory.mktemp("install")
    run_command(["cmake", "--install", build_dir, "--prefix", path])
    return path


def configure(root, prefix, build, *options, **keywords):
    command = ["cmake", "-G", "Ninja", "-S", root / "examples/consumer", "-B", build]
    return run_command([*command, f"-DCMAKE_PREFIX_PATH={prefix}", *options], **keywords)


def test_installed_program_runs(prefix, root):
    version = (root / "version.txt").read_text().strip()
    assert version in run_command([prefix / "bin/headshare", "--version"]).stdout


def test_installed_headers_are_those_of_users(prefix):
    names = {path.name for path in (prefix / "include/headshare").rglob("*.h")}
    assert "rng.h" in names
    assert not [name for name in names if "_test" in name or name.startswith("test")]


def test_every_installed_header_finds_what_it_includes(prefix):
    include = prefix / "include"
    for header in include.rglob("*.h"):
        for name in re.findall(r'#include "(headshare/[^"]+)"', header.read_text()):
            assert (include / name).is_file(), f"{header.relative_to(include)} includes {name}, which is not installed"


def test_consumer_builds_and_runs(prefix, root, tmp_path):
    configure(root, prefix, tmp_path)
    run_command(["cmake", "--build", tmp_path])
    out = tmp_path / "comparison"
    *lines, mha, sha = run_command([tmp_path / "consumer", out]).stdout.splitlines()
    assert lines == [
        "mha: 16384 parameters, 128 cached elements per token, output [1, 3, 64]",
        "mhe_mul: 7360 parameters, 32 cached elements per token, output [1, 3, 64]",
        "mha: 123813120 parameters, room for a context of 7542 tokens",
        "mhe_mul: 104376576 parameters, room for a context of 71291 tokens",
    ]
    # The installed program trained its models.
    for line, scheme in ((mha, "mha"), (sha, "sha")):
        assert re.fullmatch(scheme + r": 10 steps, accuracy 0\.\d+", line)
    assert (out / "report.html").is_file()
    resumed = run_command([prefix / "bin/headshare", "compare", "--resume", "--out", out])
    assert "2 of 2 models were finished before" in resumed.stderr


def test_a_python_without_torch_is_refused_with_the_way_out(prefix, root, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')  # -S: no site-packages
    bare.chmod(0o755)
    done = configure(root, prefix, tmp_path / "build", f"-DHEADSHARE_PYTHON={bare}", check=False)
    assert done.returncode != 0
    assert "HEADSHARE_PYTHON" in done.stderr

"""Runs the line of docs/machines.md that starts cells with GNU parallel on machines that ssh reaches. Here ssh is a
script that runs the command on this machine; one of the machines does not answer. The others wait until it was asked:
GNU parallel asks them in any order, and they might be done before."""

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import ROOT
from training import TINY, own_cache, text, without_times  # noqa: F401 (two fixtures)

pytestmark = pytest.mark.slow
SSH = """#!/bin/sh
host=$1
shift 2
echo "$host" >>"$SSH_LOG"
test "$host" != dead || exit 255
until grep -q dead "$SSH_LOG"; do sleep 0.05; done
exec sh -c "$*"
"""


def test_the_documented_line_runs_a_plan(run, program, text, tmp_path, monkeypatch):  # noqa: F811
    if shutil.which("parallel") is None:
        pytest.skip("no GNU parallel: tools/setup tests installs it")
    [line] = re.findall(r"^seq 0 41 \| parallel .*$", (ROOT / "docs/machines.md").read_text(), re.MULTILINE)
    arguments = [*TINY, "--schemes", "mha,mqa,sha", "--steps", 20, "--text", text]
    alone, together, tools = (tmp_path / name for name in ("alone", "together", "tools"))
    for folder in (alone, together, tools):
        folder.mkdir()
    (tools / "headshare").symlink_to(program)
    (tools / "ssh").write_text(SSH)
    (tools / "ssh").chmod(0o755)
    (together / "hosts").write_text("h1\ndead\nh2\n")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("SSH_LOG", str(tmp_path / "ssh.log"))
    monkeypatch.setenv("PARALLEL", "--will-cite")
    # GNU parallel guesses a missing $SHELL from the processes above it, takes one that is no shell, and runs nothing.
    monkeypatch.setenv("SHELL", "/bin/sh")

    run("compare", *arguments, "--out", "out", cwd=alone)
    assert len(json.loads(run("compare", *arguments, "--plan", "out", "--json", cwd=together).stdout)["unfinished"]) == 3
    line = line.replace("seq 0 41", "seq 0 2").replace("/shared/comparison", str(together / "out"))
    done = subprocess.run(line, shell=True, cwd=together, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("is finished") == 3, done.stderr
    assert set((tmp_path / "ssh.log").read_text().split()) == {"h1", "h2", "dead"}
    gathered = run("compare", "--resume", "--out", "out", cwd=together)
    assert "3 of 3 models were finished before" in gathered.stderr
    results = [json.loads((folder / "out" / "results.json").read_text()) for folder in (alone, together)]
    assert without_times(results[0]) == without_times(results[1])

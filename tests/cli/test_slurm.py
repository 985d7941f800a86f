"""Runs comparisons on a real Slurm of two nodes: one is lost, jobs are cancelled, a folder is not shared."""

import json
import os
import signal
import subprocess
import time

import pytest
from slurm_cluster import cluster  # noqa: F401 (a fixture)
from training import TINY, own_cache, text, without_times, words  # noqa: F401 (two fixtures)

pytestmark = pytest.mark.slow
SCHEMES = ["mha", "mqa", "sha", "mhe_mul"]


@pytest.fixture(autouse=True)
def in_cluster(cluster, monkeypatch):  # noqa: F811
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HEADSHARE_BEAT", "0.1")


def wait_for(condition, what, running=None):
    """Waits until a condition holds, while a process is running."""
    deadline = time.monotonic() + 120
    while not condition():
        assert running is None or running.poll() is None, f"it ended before {what}: {running.stderr.read()}"
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.05)


def progress(out, cell):
    """Returns the step that a cell is at, from its lease."""
    steps = [0]
    for path in out.glob(f"plan/{cell}.lease-*"):
        try:
            steps.append(json.loads(path.read_text())["progress"]["step"])
        except (OSError, ValueError, KeyError):
            pass
    return max(steps)


def results_of(out):
    return without_times(json.loads((out / "results.json").read_text()))


def start(program, *arguments, cwd):
    command = words(program, "compare", *arguments)
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=cwd
    )


def test_what_a_lost_node_did_is_done_again(run, program, cluster, text, tmp_path):  # noqa: F811
    """The comparison is stopped with Ctrl-C and goes on. Then a node is lost while its process is stopped; it is
    continued when another process has finished its cell."""
    arguments = [*TINY, "--schemes", ",".join(SCHEMES), "--steps", 600, "--save-every", 50, "--text", text, "--out", "out"]
    alone, together = tmp_path / "alone", tmp_path / "it's a \"shared\" folder"
    alone.mkdir()
    together.mkdir()
    out = together / "out"
    running = start(program, *arguments, "--workers", "slurm:throttle=2", cwd=together)
    wait_for(lambda: progress(out, "mha-seed0") > 60 and progress(out, "mqa-seed0") > 0, "the first two cells", running)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=120)[1]
    assert running.returncode == 130 and "--resume" in said, said
    assert cluster.jobs() == []

    running = start(program, "--resume", "--out", "out", "--workers", "slurm", cwd=together)
    wait_for(lambda: cluster.processes("s1") and progress(out, "mha-seed0") > 150, "a cell on s1", running)
    [orphan] = cluster.processes("s1")
    os.kill(orphan, signal.SIGSTOP)
    cluster.lose("s1")
    said = running.communicate(timeout=280)[1]
    assert running.returncode == 0, said
    assert "from its node and queued it again" in said
    results = results_of(out)
    found = {path: path.stat().st_mtime_ns for path in out.glob("cells/*/cell.json")}
    os.kill(orphan, signal.SIGCONT)
    wait_for(lambda: not cluster.processes("s1"), "the end of the orphan")
    assert {path: path.stat().st_mtime_ns for path in out.glob("cells/*/cell.json")} == found
    assert len(found) == len(SCHEMES) and not list(out.glob("cells/.*"))

    run("compare", *arguments, cwd=alone)
    assert results == results_of(alone / "out")
    cluster.restore("s1")


def test_a_job_that_needs_more_memory_is_told_apart(run, text, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("HEADSHARE_BEAT", "0.02")  # what the files may show late is waited for that much shorter
    done = run(
        *["compare", *TINY, "--schemes", "mha", "--steps", 1_000_000, "--text", text, "--out", tmp_path / "out"],
        *["--workers", "slurm:mem=50", "--beyond-a-day"],
        check=False,
    )
    assert done.returncode == 1
    assert "job " in done.stderr and "more memory" in done.stderr and "slurm:mem=" in done.stderr, done.stderr


def test_a_folder_that_is_not_shared_is_named(run, cluster, text, monkeypatch):  # noqa: F811
    shared = cluster.folder / "shared"
    shared.mkdir()
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        pytest.skip("no unshare --mount, which hides a folder from a node: it needs CAP_SYS_ADMIN")
    cluster.restore("s2", hide=shared)
    done = run(
        *["compare", *TINY, "--schemes", "mha,mqa", "--steps", 5, "--text", text, "--out", shared / "out"],
        *["--workers", "slurm:nodelist=s2"],
        check=False,
    )
    assert done.returncode == 1
    assert "s2" in done.stderr and f"left nothing in {shared / 'out'}" in done.stderr, done.stderr
    assert cluster.jobs() == []
    cluster.restore("s2")


def test_what_slurm_refuses_is_shown(refused, text, tmp_path, monkeypatch):  # noqa: F811
    call = ["compare", *TINY, "--schemes", "mha", "--steps", 5, "--text", text, "--overwrite", "--out", tmp_path / "out"]
    said = refused(1, *call, "--workers", "slurm:partition=nope")
    assert "invalid partition specified: nope" in said and "--partition=nope" in said
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "calls sbatch, which is not installed here" in refused(2, *call, "--workers", "slurm")

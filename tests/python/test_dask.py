"""Tests comparisons whose cells run on the workers of a Dask client."""

import json
import os
import pathlib
import signal
import threading
import time

import headshare
import pytest
from headshare import _dask
from cli.training import own_cache, text, without_times  # noqa: F401  (two fixtures)

distributed = pytest.importorskip("distributed", reason="no distributed: tools/setup tests installs it")
pytestmark = pytest.mark.slow
SIZES = {"layers": 1, "d_model": 16, "heads": 2, "context": 16, "batch_size": 4, "tokenizer": "bytes", "threads": 1}


@pytest.fixture(scope="module", autouse=True)
def tested_build(build_dir):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADSHARE_BUILD", str(build_dir))
        patch.setenv("HEADSHARE_BEAT", "0.1")
        yield


@pytest.fixture(scope="module")
def client(tested_build, tmp_path_factory):
    """Returns a client with two workers, each a process with one thread."""
    folder = tmp_path_factory.mktemp("dask")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(folder)
    ) as cluster, distributed.Client(cluster, set_as_default=False) as made:
        yield made


def training(out):
    """Returns the leases of cells that are training, by name."""
    found = {}
    for path in out.glob("plan/*.lease-*"):
        try:
            lease = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        if lease["state"] == "running" and lease["progress"]["step"] > 0:
            found[path.name] = lease
    return found


def when_training(out, act):
    """Calls act(training(out)) in a thread once a cell is training."""

    def watch():
        for _ in range(6000):
            if found := training(out):
                return act(found)
            time.sleep(0.05)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def results_of(out):
    return without_times(json.loads((out / "results.json").read_text()))


def test_a_killed_worker_changes_nothing(client, text, tmp_path, monkeypatch, capsys):  # noqa: F811
    options = {**SIZES, "text": text, "schemes": ["mha", "mqa", "el_lossless"], "steps": 300, "out": "out"}
    alone, together = tmp_path / "alone", tmp_path / "together"
    for folder in (alone, together):
        folder.mkdir()
    monkeypatch.chdir(alone)
    headshare.compare(**options)
    monkeypatch.chdir(together)
    workers = client.run(lambda dask_worker: (f"dask {dask_worker.name}", os.getpid()))
    processes = dict(workers.values())
    killed = []

    def kill(found):
        name, lease = next(iter(found.items()))
        os.kill(processes[lease["owner"]["job"]], signal.SIGKILL)
        killed.append(name.partition(".lease-")[0])

    thread = when_training(together / "out", kill)
    result = headshare.compare(**options, client=client)
    thread.join()
    said = capsys.readouterr().err
    assert (result.path, result.page is None) == (pathlib.Path("out"), False)
    assert len(result["cells"]) == 3 and all(f"cell {i} of 3 has finished" in said for i in range(3)), said
    # A cell is claimed to train and once more to be published; a third claim took it over.
    [lease] = (together / "out" / "plan").glob(f"{killed[0]}.lease-*")
    assert int(lease.name.rpartition("-")[2]) >= 3
    assert results_of(together / "out") == results_of(alone / "out")


def test_a_worker_that_does_not_share_the_folder_is_named(client, text, tmp_path):  # noqa: F811
    options = {**SIZES, "text": text, "schemes": ["mha", "mqa"], "steps": 5}
    plan = headshare.run("compare", **options, plan=tmp_path / "planned").json
    elsewhere = {**plan, "directory": str(tmp_path / "empty")}  # as a worker sees it
    with pytest.raises(headshare.Error, match=r"worker [01] \(tcp://.*\) cannot train cell \d of .*empty.*no plan"):
        _dask.run_cells(client, elsewhere, plan["unfinished"])
    with pytest.raises(headshare.Error, match="another folder of that name"):
        _dask.run_cells(client, {**plan, "plan_id": "another"}, plan["unfinished"])
    assert not list(tmp_path.glob("planned/cells/*"))


def test_what_fails_on_a_worker_is_told_from_what_it_refuses(tmp_path):
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / "plan.json").write_text('{"cells": ["mha-seed0"]}')
    assert not _dask.failure_is_noted(tmp_path, 0, "id")
    (tmp_path / "plan" / "mha-seed0.lease-9").write_text('{"state": "stopped", "comparison": "id"}')
    assert not _dask.failure_is_noted(tmp_path, 0, "id")
    (tmp_path / "plan" / "mha-seed0.lease-10").write_text('{"state": "failed", "comparison": "id"}')
    assert _dask.failure_is_noted(tmp_path, 0, "id")
    assert not _dask.failure_is_noted(tmp_path, 0, "another")


@pytest.fixture
def interruptible():
    """Takes interrupts as Python does: a program that a shell starts in the background ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_stops_the_cells_of_all_workers(client, text, tmp_path, interruptible):  # noqa: F811
    out = tmp_path / "out"

    raised = threading.Event()

    # Python drops an interrupt that comes while a finalizer runs: another is sent, as people do.
    def interrupt(_):
        os.kill(os.getpid(), signal.SIGINT)
        while not raised.wait(30):
            os.kill(os.getpid(), signal.SIGINT)

    thread = when_training(out, interrupt)
    with pytest.raises(KeyboardInterrupt, match="resume=True"):
        headshare.compare(
            **SIZES, text=text, schemes=["mha", "mqa"], steps=1_000_000, beyond_a_day=True, out=out, client=client
        )
    raised.set()
    thread.join()
    assert training(out) == {}

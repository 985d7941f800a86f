"""Trains with several processes, which sum gradients through Gloo. Most tests start two with the variables that torchrun
sets, which spares torchrun's own start; one runs torchrun."""

import concurrent.futures
import datetime
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest
import torch.distributed

from cli.training import TINY as SMALLEST
from cli.training import own_cache  # noqa: F401
from headshare import _group

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
TINY = [*SMALLEST, "--schedule", "constant", "--warmup-steps", 5, "--no-tensorboard"]
TEXT = "".join(f"The {i * i % 97}th fox jumps over {i % 7} lazy dogs.\n" for i in range(200))


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def environment(build_dir):
    return {**os.environ, "PYTHONPATH": str(PYTHON), "HEADSHARE_BUILD": str(build_dir)}


@pytest.fixture
def together(environment):
    """together(words, words) runs a process for each list of words; returns the ended ones. `folders` are where."""

    def call(*words, folders=None):
        shared = {"WORLD_SIZE": len(words), "LOCAL_WORLD_SIZE": len(words), "MASTER_ADDR": "127.0.0.1"}
        shared["MASTER_PORT"] = free_port()
        processes = []
        for rank, own in enumerate(words):
            variables = {**shared, "RANK": rank, "LOCAL_RANK": rank}
            process = subprocess.Popen(
                [sys.executable, "-m", "headshare", *map(str, own)],
                env={**environment, **{name: str(value) for name, value in variables.items()}},
                cwd=folders[rank] if folders else None,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            processes.append(process)
        for process in processes:
            process.printed, process.said = process.communicate(timeout=120)
        return processes

    return call


def losses(run_directory):
    lines = [json.loads(line) for line in (run_directory / "metrics.jsonl").read_text().splitlines()]
    return {(line["event"], line["step"]): line["loss"] for line in lines}


def test_two_processes_give_the_losses_of_one(run, together, text, tmp_path):
    options = ["--text", text, *TINY, "--accumulation", 4, "--dropout", 0.1, "--evaluate-every", 50]
    run("train", *options, "--steps", 110, "--out", tmp_path / "one")
    away = tmp_path / "of another machine"
    away.mkdir()
    words = ["train", *options, "--steps", 100, "--out", "two", "--shard-optimizer", "--json"]
    first, second = together(words, words, folders=(tmp_path, away))
    assert first.returncode == 0 and second.returncode == 0, first.said + second.said
    assert json.loads(first.printed)["steps"] == 100
    assert second.printed == "" and "step 100" not in second.said  # process 0 alone reports
    whole = ["train", *options, "--out", "whole", "--steps", 90]  # without shards, and the disk is not shared
    for own in (whole, ["train", "--resume", "--steps", 100, "--out", "whole"]):
        first, second = together(own, [*own, "--threads", 1], folders=(tmp_path, away))
        assert first.returncode == 0 and second.returncode == 0, first.said + second.said
    sharded, unsharded = losses(tmp_path / "two"), losses(tmp_path / "whole")
    steps = sharded.keys() & unsharded.keys()
    assert len(steps) > 100
    assert {key: sharded[key] for key in steps} == {key: unsharded[key] for key in steps}  # to the last bit
    assert not list(away.glob("*/*"))
    run("train", "--resume", "--out", tmp_path / "two", "--steps", 110)  # one process goes on
    alone, jointly = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert alone.keys() >= jointly.keys()
    assert jointly == pytest.approx({key: alone[key] for key in jointly}, rel=1e-6)


def quality(results):
    [model] = results["tasks"][0]["models"]
    return [model["best_epoch"], *(score["value"] for score in model["parts"][0]["scores"])]


def test_two_processes_fine_tune_as_one_does(run, together, text, tmp_path):
    small = ["--layers", 1, "--d-model", 16, "--heads", 2, "--context", 32, "--vocabulary-size", 60]
    run("train", "--task", "mlm", "--text", text, *small, "--steps", 3, "--out", tmp_path / "encoder")
    rows = [f"the {word} number {i}\t{word}" for i in range(24) for word in ("fox", "dog")]
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    options = ["--task", "classify", "--train", tmp_path / "rows.tsv", "--validation-fraction", 0.25, "--seeds", 1]
    options += ["--epochs", 2, "--batch-size", 4, "--accumulation", 2, "--threads", 1, "--json"]
    alone = json.loads(run("finetune", tmp_path / "encoder", *options, "--out", tmp_path / "one").stdout)
    words = ["finetune", tmp_path / "encoder", *options, "--out", tmp_path / "two"]
    first, second = together(words, words)
    assert first.returncode == 0 and second.returncode == 0, first.said + second.said
    assert second.printed == ""
    assert quality(json.loads(first.printed)) == pytest.approx(quality(alone), rel=1e-6)


def test_two_processes_train_a_cell(run, together, tmp_path):
    plan = tmp_path / "plan"
    flags = ["--layers", 1, "--d-model", 16, "--heads", 2, "--batch-size", 4, "--threads", 1, "--task", "offsets"]
    run("compare", *flags, "--schemes", "mha", "--accumulation", 2, "--steps", 20, "--seeds", 1, "--plan", plan)
    first, second = together(["cell", plan, 0], ["cell", plan, 1])
    assert first.returncode == 1 and "has INDEX 1 and process 0 0" in first.said, first.said + second.said
    first, second, third = together(*[["cell", plan, 0]] * 3)
    assert first.returncode == 1, first.said
    assert "--accumulation 2 is less than the number of processes, 3" in first.said
    first, second = together(*[["cell", plan, 0]] * 2)
    assert first.returncode == 0 and second.returncode == 0, first.said + second.said
    assert (plan / "cells/mha-seed0/cell.json").exists()


def test_processes_that_differ_are_refused(together, text, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    out = tmp_path / "run"
    words = ["train", "--text", "text.txt", *TINY, "--accumulation", 2, "--steps", 6, "--out", out]

    def refused(*own, sentence, folders=(tmp_path, tmp_path)):
        first, second = together(words, [*words, *own], folders=folders)
        assert first.returncode == 1 and second.returncode == 1, first.said + second.said
        assert sentence in first.said, first.said
        assert not (out / "checkpoints").exists()
        return first.said, second.said

    said = refused("--learning-rate", 0.5, sentence="has --learning-rate 0.5 and process 0")
    refused("--resume", sentence="has --resume true and process 0 false")
    assert "error: process 1 (host " in said[0]
    assert "error" not in said[1]  # process 0 speaks for all
    away = (tmp_path, other)
    said = refused(sentence="error: process 1 ended: cannot open text.txt", folders=away)
    assert "error: process 1: cannot open text.txt" in said[1]
    (other / "text.txt").write_text(TEXT.replace("fox", "cat"))
    refused(sentence="has data with the fingerprints", folders=away)


def test_other_verbs_are_refused(together, tmp_path):
    first, second = together(["train", "--out", tmp_path], ["finetune", "--out", tmp_path])
    assert first.returncode == 1 and second.returncode == 1
    assert "has the verb finetune and process 0 train; all processes of a run need the same" in first.said
    first, second = together(["cost"], ["cost"])
    assert first.returncode == 2 and second.returncode == 2
    assert "`headshare cost` does not share its work among processes, and torchrun started 2" in first.said
    assert second.said == ""


def test_calls_of_torchrun_with_one_id_have_other_names(monkeypatch):
    def name_under(torchrun, run_id):
        monkeypatch.setattr(os, "getppid", lambda: torchrun)
        return _group.launch_name({"TORCHELASTIC_RUN_ID": run_id})

    names = {name_under(torchrun, run_id) for torchrun in (os.getpid(), 1) for run_id in ("none", "book")}
    assert len(names) == 4
    assert name_under(1, "book") in names  # the same after a restart


def test_each_process_needs_a_gpu_of_its_own():
    assert [_group.own_gpu(2, rank) for rank in range(4)] == [0, 1, None, None]
    assert _group.own_gpu(1, 3) == 0  # its launcher shows it a single one
    assert _group.own_gpu(0, 0) is None
    assert _group.shared_gpu([("a", None), ("a", None)]) == ""
    assert _group.shared_gpu([("a", "x"), ("a", "y"), ("b", None)]) == ""
    for places in ([("b", None), ("a", "x"), ("a", "y"), ("a", None)], [("a", "x"), ("a", "y"), ("a", "x")]):
        reason = _group.shared_gpu(places)
        assert reason.startswith("3 processes on host a find 2 of its GPUs") and "--nproc-per-node=2" in reason


def test_processes_that_start_again_do_not_take_the_name_of_the_ended_ones():
    """torchrun keeps its store, and a process may read it before the new process 0 does."""
    store = torch.distributed.HashStore()
    store.set_timeout(datetime.timedelta(seconds=20))

    def start(first):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            names = {rank: pool.submit(_group.agreed_name, store, rank, 3) for rank in first[:2]}
            time.sleep(0.1)
            names[first[2]] = pool.submit(_group.agreed_name, store, first[2], 3)
            return {name.result(timeout=20) for name in names.values()}

    starts = [start([0, 1, 2]), start([1, 2, 0]), start([2, 0, 1])]
    assert [len(names) for names in starts] == [1, 1, 1]
    assert len(set.union(*starts)) == 3


def worker_of(torchrun, rank):
    """Returns the id of the process of that rank that torchrun started."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = folder.joinpath("stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == torchrun and f"RANK={rank}".encode() in folder.joinpath("environ").read_bytes().split(b"\0"):
                return int(folder.name)
        except OSError:  # it has ended meanwhile
            continue
    return None


def test_torchrun_goes_on_after_a_worker_was_killed(environment, text, tmp_path):
    out = tmp_path / "run"
    options = ["--text", text, *TINY, "--accumulation", 2, "--steps", 600, "--save-every", 50, "--out", out]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--max-restarts=1", "-m", "headshare"]
    # torchrun looks at its workers this often.
    process = subprocess.Popen(
        [*launcher[:3], "--monitor-interval=0.1", *launcher[3:], "train", *map(str, options)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (out / "checkpoints/last").exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    assert not (out / "result.json").exists()
    os.kill(worker_of(process.pid, 1), signal.SIGKILL)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, printed
    assert f"torchrun started the processes again: going on in {out}" in printed
    assert [step for event, step in losses(out) if event == "step"] == list(range(1, 601))

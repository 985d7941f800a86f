"""Runs a verb in one of the processes that torchrun started: `torchrun --nproc-per-node=2 -m headshare train ...`.

The processes form a group of torch.distributed, and the program runs inside of each, from libheadshare_ops.so: its
gradients are summed by torch's own Gloo and NCCL. docs/design/054 says why.
"""

from __future__ import annotations

import ctypes
import datetime
import os
import pathlib
import socket
import sys
import time
import uuid
from typing import TYPE_CHECKING, Any, Mapping, Optional

from ._error import Error

if TYPE_CHECKING:
    from torch.distributed import Store

VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# A process waits so long for another one. Process 0 tells the others every 30 s that it is still working.
PATIENCE = datetime.timedelta(minutes=30)
MOMENT = 5.0  # seconds that a process waits for another one's reason
LOST = "lost"


class Conclusion(ctypes.Structure):
    """Says how a verb ended, as headshare_run() of run_verb.cc returns it."""

    _fields_ = [
        ("code", ctypes.c_int),
        ("error", ctypes.c_char_p),
        ("note", ctypes.c_char_p),
        ("lost", ctypes.c_int),
    ]


def is_launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Tells whether torchrun, or another launcher with its variables, started this process."""
    return all(name in environment for name in VARIABLES)


def prepare_environment(environment: Any) -> None:
    """Sets what libgomp reads when torch loads it, and the name of this launch."""
    environment.setdefault("GOMP_SPINCOUNT", "3000")  # docs/design/012-waiting-threads.md
    if environment.get("OMP_NUM_THREADS") == "1" and not parent_has("OMP_NUM_THREADS"):
        # torchrun sets 1 where nobody chose. The processes of a host share its cores.
        cores = len(os.sched_getaffinity(0))
        environment["OMP_NUM_THREADS"] = str(max(1, cores // int(environment["LOCAL_WORLD_SIZE"])))
    environment["HEADSHARE_LAUNCH"] = launch_name(environment)


def parent_has(variable: str) -> bool:
    """Tells whether the process that started this one was itself started with the variable."""
    try:
        environment = pathlib.Path(f"/proc/{os.getppid()}/environ").read_bytes()
    except OSError:
        return True
    return any(entry.startswith(variable.encode() + b"=") for entry in environment.split(b"\0"))


def launch_name(environment: Mapping[str, str]) -> str:
    """Names the call of torchrun: the same after it started the processes again, another for the next call, which may
    have the same --rdzv-id. Process 0 alone notes and compares the name, so it is that of its own torchrun."""
    parent = os.getppid()
    started = pathlib.Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{environment.get('TORCHELASTIC_RUN_ID', 'none')} {socket.gethostname()} {parent} {started}"


def own_gpu(visible: int, local_rank: int) -> Optional[int]:
    """Returns which of the GPUs that a process sees it uses; None where it has none. A launcher may show each process a
    single one, else they are dealt by number."""
    if visible == 1:
        return 0
    return local_rank if local_rank < visible else None


def gpu_identity(device: Optional[int]) -> Optional[str]:
    """Names a GPU by what no other GPU, or part of one, has."""
    import torch

    if device is None:
        return None
    shown = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return shown if shown.startswith("MIG-") else str(torch.cuda.get_device_properties(device).uuid)


def shared_gpu(places: list[tuple[str, Optional[str]]]) -> str:
    """Returns why the processes cannot compute on GPUs: a host has some, and fewer than processes. "" where all can.
    `places` has the host and the GPU of each process."""
    for host in sorted({host for host, _ in places}):
        here = [gpu for name, gpu in places if name == host]
        count = len(set(here) - {None})
        if 0 < count < len(here):
            return (
                f"{len(here)} processes on host {host} find {count} of its GPUs, and each needs one of its own; start {count}"
                f" processes there (--nproc-per-node={count}), or compute with --device cpu"
            )
    return ""


def agreed_name(store: Store, rank: int, size: int) -> str:
    """Returns a name that only the processes of this start have. torchrun without --rdzv-backend keeps its store where it
    starts the processes again, and the addresses of the ended processes are still in it: each start needs keys of its own.
    Process 0 makes up the name and answers each other process. The others wait for this answer, because a process 0 that
    has ended gives none."""
    own = uuid.uuid4().hex
    if rank == 0:
        store.set("headshare/leader", own)
        for other in range(1, size):
            store.set(f"headshare/{own}/welcome/{store.get(f'headshare/{own}/here/{other}').decode()}", "")
        return own
    end, told, pause = time.monotonic() + PATIENCE.total_seconds(), "", 0.02
    while time.monotonic() < end:
        leader = store.get("headshare/leader").decode()
        if leader != told:
            store.set(f"headshare/{leader}/here/{rank}", own)
            told, pause = leader, 0.02
        if store.check([f"headshare/{leader}/welcome/{own}"]):
            return leader
        time.sleep(pause)
        pause = min(2 * pause, 0.5)
    raise Error("process 0 does not answer; see what it printed")


def join() -> str:
    """Makes the group of all processes and returns its name. NCCL sums on GPUs where each process has one."""
    import torch
    import torch.distributed as dist

    device = own_gpu(torch.cuda.device_count(), int(os.environ["LOCAL_RANK"]))
    if device is not None:
        torch.cuda.set_device(device)
    store, rank, size = next(dist.rendezvous("env://", timeout=PATIENCE))
    store = dist.PrefixStore(agreed_name(store, rank, size), store)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=PATIENCE)
    places: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(places, (socket.gethostname(), gpu_identity(device)))
    # The program refuses GPUs with this reason where it would use one: --device may say otherwise.
    os.environ["HEADSHARE_SHARED_GPU"] = shared_gpu(places)
    group = dist.group.WORLD
    if not os.environ["HEADSHARE_SHARED_GPU"] and all(gpu for _, gpu in places) and dist.is_nccl_available():
        group = dist.new_group(backend="cpu:gloo,cuda:nccl", timeout=PATIENCE)
    return str(group.group_name)


class Reasons:
    """Holds why each process ended, told to the others through the store of the group, so that each reason is printed once:
    one that all processes have by process 0, one of a single process by that process, and by process 0 as well."""

    def __init__(self, store: Store, rank: int, size: int) -> None:
        self.store = store
        self.rank = rank
        self.size = size

    def tell(self, reason: str) -> None:
        self.store.set(f"headshare/ended/{self.rank}", reason)

    def of(self, rank: int) -> Optional[str]:
        """Returns what a process told; None where it told nothing."""
        key = f"headshare/ended/{rank}"
        return self.store.get(key).decode() if self.store.check([key]) else None

    def await_first(self, ranks: range) -> Optional[tuple[int, str]]:
        """Returns the first reason of these processes that is more than the loss of another process."""
        end = time.monotonic() + MOMENT
        while True:
            told = {rank: self.of(rank) for rank in ranks}
            for rank, reason in told.items():
                if reason is not None and reason != LOST:
                    return rank, reason
            if time.monotonic() > end or None not in told.values():
                return None
            time.sleep(0.05)

    def leave(self) -> None:
        """Keeps the store until all have read it, where process 0 has it and not torchrun."""
        self.store.set(f"headshare/left/{self.rank}", "")
        if self.rank != 0 or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            return
        end = time.monotonic() + MOMENT
        while time.monotonic() < end and not self.store.check([f"headshare/left/{rank}" for rank in range(self.size)]):
            time.sleep(0.05)

    def sentence(self, error: str, lost: bool) -> Optional[str]:
        """Returns what this process should print; None where process 0 prints it."""
        self.tell(LOST if lost else error)
        if self.rank == 0:
            known = self.await_first(range(1, self.size)) if lost else None
            return f"process {known[0]} ended: {known[1]}" if known else error
        leader = self.await_first(range(1))
        if leader is not None and (lost or leader[1] == error):
            return None
        if lost and self.of(0) is not None:
            return None
        return f"process {self.rank}: {error}"


def run_together(words: list[str]) -> int:
    """Runs the verb in this process and returns its exit status."""
    import torch.distributed as dist

    from ._load import library_path, load

    load()
    library = ctypes.CDLL(str(library_path()))
    library.headshare_run.restype = Conclusion
    name = join()
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        silence_standard_output()
    spelled = (ctypes.c_char_p * len(words))(*[os.fsencode(word) for word in words])
    conclusion = library.headshare_run(spelled, len(words), name.encode())
    reasons = Reasons(dist.distributed_c10d._get_default_store(), rank, size)
    try:
        if conclusion.error:
            sentence = reasons.sentence(conclusion.error.decode(errors="replace"), bool(conclusion.lost))
            if sentence is not None:
                library.headshare_say(b"error", sentence.encode())
        elif conclusion.note and rank == 0:
            library.headshare_say(b"note", conclusion.note)
        if conclusion.code != 0:
            reasons.leave()
    except dist.DistError:  # the store is gone, and so is torchrun
        if conclusion.error:
            library.headshare_say(b"error", conclusion.error)
    return int(conclusion.code)


def silence_standard_output() -> None:
    """Process 0 prints the results."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def main(words: list[str]) -> int:
    """Runs the verb, and ends the process without waiting for what the others still do."""
    prepare_environment(os.environ)
    try:
        code = run_together(words)
    except (Error, ImportError, OSError, RuntimeError) as error:
        print(f"error: process {os.environ['RANK']}: {error}", file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

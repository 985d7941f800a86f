"""Runs the cells of a planned comparison on the workers of a Dask client. A cell is a process of the program, which
finds the plan and leaves its result in the comparison's directory: nothing large passes through Dask."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

from ._call import INTERRUPTED, MESSAGE
from ._error import Error, in_python
from ._program import ready_program

LATER = 75  # the program's exit status where another process works on the cell, or its weights are not there yet
LOOKS = 0.5  # seconds between two looks at whether the user asked to stop
PAUSE = 1.0  # seconds until a cell is tried again that could not be worked on


class CellEnd(NamedTuple):
    """Says how a cell's process ended on a worker."""

    status: int  # as subprocess gives it
    sentence: str  # its last error
    noted: bool  # the comparison's directory, as the worker sees it, says that this cell failed
    worker: str


def run_cell(home: str, index: int, plan_id: str, stop_name: str) -> CellEnd:
    """Runs one cell on this worker. When the event is set, the cell is asked to stop, and keeps its work."""
    from distributed import Event, get_worker

    program, environment = ready_program()
    stop = Event(stop_name)
    worker = get_worker()
    words = ["cell", home, str(index), "--plan-id", plan_id, "--quiet", "--job", f"dask {worker.name}"]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([program, *words], stdin=subprocess.DEVNULL, stderr=said, env=environment)
        try:
            while process.poll() is None and not stop.wait(timeout=LOOKS):
                pass
        finally:
            process.terminate()  # nothing where it has ended
            status = process.wait()
        said.seek(0)
        text = said.read().decode(errors="replace")
    if sys.stderr is not None:
        sys.stderr.write(text)  # to the worker's log
    errors = [sentence for kind, sentence in MESSAGE.findall(text) if kind == "error"]
    noted = status > 0 and failure_is_noted(pathlib.Path(home), index, plan_id)
    return CellEnd(status, errors[-1] if errors else "", noted, f"{worker.name} ({worker.address})")


def failure_is_noted(home: pathlib.Path, index: int, plan_id: str) -> bool:
    """Tells whether the last lease of a cell says that it failed in this comparison. A cell that was refused, as where
    the folder is not shared or the program has another version, leaves no such lease."""
    try:
        name = json.loads((home / "plan" / "plan.json").read_text(encoding="utf-8"))["cells"][index]
        leases = [path for path in (home / "plan").iterdir() if path.name.startswith(f"{name}.lease-")]
        numbers = {int(suffix): path for path in leases if (suffix := path.name.rpartition("-")[2]).isdecimal()}
        last = json.loads(numbers[max(numbers)].read_text(encoding="utf-8"))
        return bool(last["state"] == "failed" and last["comparison"] == plan_id)
    except (OSError, ValueError, LookupError, TypeError):
        return False


def run_cells(client: Any, plan: dict[str, Any], indices: list[int]) -> None:
    """Runs these cells of the plan and returns when each has finished or failed: its files say which. Raises Error with
    the worker's name where a worker refuses a cell, and KeyboardInterrupt after Ctrl-C. Then all cells have kept their
    work."""
    from distributed import Event, as_completed, wait

    home = os.path.abspath(plan["directory"])
    stop = Event(f"stop headshare {plan['plan_id']}", client=client)
    stop.clear()
    cells: dict[Any, int] = {}
    running = as_completed(loop=client.loop)

    def submit(index: int) -> None:
        # Dask itself gives a cell whose worker is lost to another one (distributed.scheduler.allowed-failures).
        future = client.submit(run_cell, home, index, plan["plan_id"], stop.name, pure=False)
        cells[future] = index
        running.add(future)

    try:
        for index in indices:
            submit(index)
        for future in running:
            index = cells.pop(future)
            end = future.result()
            status = end.status
            if status == INTERRUPTED:
                raise Error(f"cell {index} was stopped from outside; go on with resume=True")
            if status == LATER:
                time.sleep(PAUSE)
                submit(index)
            elif status > 0 and not end.noted:
                raise Error(
                    f"worker {end.worker} cannot train cell {index} of {home}: "
                    f"{in_python(end.sentence) or f'the program ended with status {status}'}"
                )
            elif sys.stderr is not None:
                print(f"cell {index} of {plan['cells']} has {'finished' if status == 0 else 'failed'}", file=sys.stderr)
    except BaseException as reason:
        stop.set()
        with client.as_current():
            wait(list(cells))
        if isinstance(reason, KeyboardInterrupt):
            raise KeyboardInterrupt("stopped; the cells have kept their work: the same `out` and resume=True go on") from None
        raise

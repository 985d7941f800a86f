"""Makes tables of docs/results/files.md: how long the queue took, and on which machine each file was measured."""

import re

import comparison_results
from table_parts import HOME, RESULTS, table

QUEUE_GROUPS = {"embeddings": "token embeddings", "multi30k": "translation", "widths": "key widths"}  # of lines that begin so


def queue_time():
    """Tabulates the forecasts of `studies/experiments --time`, by what lines are about, and how long their models
    trained, one core each, as the machines of that time were busy."""
    forecast = dict.fromkeys(["attention schemes", *QUEUE_GROUPS.values()], 0.0)
    for name, hours in re.findall(r"^(\S+) +([\d.]+) core-hours$", (RESULTS / "queue-time.txt").read_text(), re.MULTILINE):
        group = next((what for begin, what in QUEUE_GROUPS.items() if name.startswith(begin)), "attention schemes")
        forecast[group] += float(hours)
    ran = {}
    for path in sorted(HOME.glob("*.json")):
        cells = comparison_results.read(path)["cells"]
        ran[path.stem] = sum(cell["training_seconds"] for cell in cells if cell["weights_of"] is None) / 3600
    longest = sorted(ran, key=ran.get, reverse=True)[:3]
    named = ", ".join(f"`{name}` {ran[name]:.1f}" for name in longest)
    told = ", ".join(f"{hours:.1f} for {what}" for what, hours in forecast.items())
    return (f"Forecast of core-hours on one machine: {told}. The models trained for {sum(ran.values()):.0f} core-hours in all, on machines "
            f"that were often busy ({named}).")  # fmt: skip


# The machines of one processor differ in their memory, and AMX is not among the recorded instructions. Three AMD machines
# were alike but for some kilobytes.
MACHINES = {("Intel(R) Xeon(R) Processor", 25276510208): "Intel Xeon without AMX", ("Intel(R) Xeon(R) Processor", 25276502016): "Intel Xeon with AMX"}


def environments(found):
    """Yields the environments of a file; one that was gathered from parts has an environment for each."""
    if "processor" in found:
        yield found
        return
    for part in found.values():
        yield from environments(part)


def machine_of(environment):
    return MACHINES.get((environment["processor"], int(environment["memory_bytes"])), environment["processor"])


def machines():
    """Tabulates which files and lines of the queue ran on which machine; one that ran on two stands at both."""
    found = {}
    for folder in (RESULTS, HOME):
        for path in sorted(folder.glob("*.json")):
            told = comparison_results.read(path).get("environment") or {}
            for machine in sorted({machine_of(one) for one in environments(told)}):
                found.setdefault(machine, {RESULTS: [], HOME: []})[folder].append(f"`{path.stem}`")
    body = [[machine, ", ".join(names[RESULTS]), ", ".join(names[HOME])] for machine, names in sorted(found.items())]
    return table(["machine", "files", "lines of the queue"], body)


TABLES = {table.__name__: table for table in (queue_time, machines)}

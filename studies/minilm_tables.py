"""Makes tables of docs/results/: what MiniLM, a real trained encoder, loses when its heads share. Each table takes what
studies/minilm has finished: a task with the three seeds of some target is there."""

import json
import statistics

import judging
from table_parts import ARROWS, RESULTS, SMALLEST_SCORE, measured_by, table, title_of, with_deviation, with_interval

WAYS = {"weights": "weights alone", "sample": "sample text", "budget": "sample text, one budget", "source": "-"}
MEAN = "mean"  # of the tasks that have all targets
NOTHING = "Nothing here has three seeds yet."


def load():
    return json.loads((RESULTS / "minilm.json").read_text())


def named(target, full):
    """Names a key width of collaborative attention by its share of the full one, or a scheme."""
    if isinstance(target, str):
        return f"`{target}`"
    part = {3 / 4: "3/4", 1 / 2: "1/2", 1 / 3: "1/3", 1 / 4: "1/4", 1 / 12: "1/12"}[target / full]
    return f"collaborative, width {target} ({part})"


def by_target(cells, figure="score"):
    """Returns {(target, way): {task: {seed: figure}}}."""
    found = {}
    for cell in cells:
        found.setdefault((cell["target"], cell["way"]), {}).setdefault(cell["task"], {})[cell["seed"]] = cell[figure]
    return found


def references(results, stage):
    """Returns {task: {seed: score}} of what a stage is compared with: sources, or sources trained on for as long."""
    cells = results["sources"] if stage == "converted" else [one for one in results["healed"] if one["target"] == "trained-on"]
    found = {}
    for cell in cells:
        found.setdefault(cell["task"], {})[cell["seed"]] = cell["score"]
    return found


def whole_tasks(found):
    """Returns the tasks of {task: {target: ..}} that have as many targets as any: what is a mean over tasks is of these."""
    most = max(map(len, found.values()), default=0)
    return [task for task, targets in found.items() if len(targets) == most and task != MEAN]


def losses(results, stage):
    """Returns {task: {(target, way): differences by seed}} of the targets that have all seeds, and under MEAN those of
    the mean over the tasks that have all targets."""
    theirs = references(results, stage)
    found = {}
    for target, tasks in by_target(results[stage]).items():
        for task, ours in tasks.items():
            both = sorted(ours.keys() & theirs.get(task, {}).keys())
            if target[0] != "trained-on" and len(both) >= judging.FEWEST_SEEDS:
                found.setdefault(task, {})[target] = [ours[seed] - theirs[task][seed] for seed in both]
    whole = [found[task] for task in whole_tasks(found)]
    if len(whole) > 1:
        found[MEAN] = {target: list(map(statistics.fmean, zip(*(one[target] for one in whole), strict=True))) for target in whole[0]}
    return found


def judged_losses(results, stage):
    """Returns ({task: {target: Difference}}, arrows): intervals hold for all targets of a column, arrows by Holm's
    correction over the table. The mean repeats its tasks and has a family of its own."""
    judged = {task: judging.judge(targets) for task, targets in losses(results, stage).items()}
    arrows = judging.arrows({task: found for task, found in judged.items() if task != MEAN}, SMALLEST_SCORE)
    if MEAN in judged:
        arrows |= judging.arrows({MEAN: judged[MEAN]}, 0.0)
    return judged, arrows


def mean_over(cells, figure, target):
    """Returns the mean of a figure over the cells of a target; None where there are none."""
    values = [one[figure] for one in cells if (one["target"], one["way"]) == target]
    return statistics.fmean(values) if values else None


def difference_table(results, stage, note, more):
    """Tabulates the losses of a stage: a row for each target, a column for each task. `more` are further columns
    {heading: what writes a target's cell}, which stand before the tasks'."""
    judged, arrows = judged_losses(results, stage)
    if not judged:
        return NOTHING
    targets = dict.fromkeys(target for found in judged.values() for target in found)
    body = []
    for target in targets:
        written = [with_interval(found.get(target), 1, ARROWS[arrows.get((task, target), 0)]) for task, found in judged.items()]
        body.append([named(target[0], results["full_width"]), *(cell(target) for cell in more.values()), *written])
    titles = [f"mean of {sum(len(found) == len(judged[MEAN]) for found in judged.values()) - 1}" if task == MEAN else title_of(task) for task in judged]
    return table(["converted to", *more, *titles], body) + f"\n\nPoints of 100, {note} {measured_by(results, results[stage])}"


def floors(results):
    return {one["task"]: one["floor"] for one in results["parts"]}


def rates(results, name, what):
    """Says what the rates that were tried score on the validation parts."""
    tried = [f"{title_of(one['task'])} " + ", ".join(f"{score:.1f} at {float(rate):g}" for rate, score in one["scores"].items()) for one in results[name]]
    return f"{what} by rate, on validation: {'; '.join(tried)}. " if tried else ""


def minilm_sources():
    """Tabulates what the fine-tuned models score before they are converted, and after one pass more."""
    results = load()
    sources, trained_on = references(results, "converted"), references(results, "healed")

    def scores(of):
        if not of:
            return "-"
        deviation = statistics.stdev(of.values()) if len(of) > 1 else None
        return with_deviation({"mean": statistics.fmean(of.values()), "deviation": deviation}, 1)

    body = []
    for task, of in sources.items():
        (part,) = (one for one in results["parts"] if one["task"] == task)
        sizes = [f"{part[name]:,}" for name in ("training", "validation", "scored")]
        body.append([title_of(task), *sizes, f"{part['floor']:.1f}", scores(of), str(len(of)), scores(trained_on.get(task))])
    headings = ["task", "training rows", "validation rows", "scored rows", "best constant answer", "fine-tuned", "seeds"]
    if not body:
        return NOTHING
    note = "Points of 100 (CoLA: Matthews correlation, MRPC and QQP: mean of F1 and accuracy). "
    note += f"{rates(results, 'rates', 'Fine-tuning')}{rates(results, 'healing_rates', 'Healing')}{measured_by(results, results['sources'])}"
    return table([*headings, "trained on as long as healed models"], body) + f"\n\n{note}"


def minilm_converted():
    """Tabulates what converted models score, minus the same models before."""
    results = load()
    tasks = whole_tasks(losses(results, "converted"))
    cells = [one for one in results["converted"] if one["task"] in tasks]

    def same(target):
        mean = mean_over(cells, "same", target)
        return "-" if mean is None else f"{mean:.1f} %"

    more = {
        "converted by": lambda target: WAYS[target[1]],
        "attention parameters": lambda target: f"{100 * mean_over(results['converted'], 'share', target):.0f} %",
        "same answers": same,
    }
    over = title_of(tasks[0]) if len(tasks) == 1 else "the mean over " + ", ".join(map(title_of, tasks))
    note = f"converted minus source. Same answers: the share of scored rows that the converted model answers as its source does; {over}."
    return difference_table(results, "converted", note, more)


def minilm_healed():
    """Tabulates what healed models score, minus sources that were trained on for as long."""
    return difference_table(load(), "healed", "healed minus source trained on as long.", {})


def minilm_budget():
    """Tabulates one budget of parameters over all layers beside the same key width in each layer."""
    results = load()
    found = {}
    for cell in results["converted"]:
        found.setdefault((cell["target"], cell["task"]), {}).setdefault(cell["way"], {})[cell["seed"]] = cell
    body = []
    for (width, task), ways in found.items():
        same, budget = ways.get("sample", {}), ways.get("budget", {})
        seeds = sorted(same.keys() & budget.keys())
        if len(seeds) < judging.FEWEST_SEEDS:
            continue
        cells = [[of[seed] for seed in seeds] for of in (same, budget)]
        gained = judging.judge({"budget": [ours["score"] - theirs["score"] for theirs, ours in zip(*cells, strict=True)]})["budget"]
        widths = [[layer["key_width"] for layer in one["layers"]] for one in cells[1]]
        figures = [f"{statistics.fmean(one['same'] for one in of):.1f} %" for of in cells]
        figures += [f"{statistics.fmean(one['divergence'] for one in of):.4f}" for of in cells]
        chosen = ", ".join(f"{statistics.fmean(layer):.0f}" for layer in zip(*widths, strict=True))
        body.append([title_of(task), str(width), chosen, *figures, with_interval(gained, 1, ARROWS[gained.direction])])
    if not body:
        return NOTHING
    headings = ["task", "key width", "mean widths of layers 1 to 6 with one budget"]
    headings += [f"{figure}, {way}" for figure in ("same answers", "divergence") for way in ("one width", "one budget")]
    headings += ["score, one budget minus one width"]
    note = "Means over three seeds. Divergence: of the answers' probabilities from the source's, in nats. Each interval stands alone. "
    note += measured_by(results, results["converted"])
    return table(headings, body) + f"\n\n{note}"


TABLES = {table.__name__: table for table in (minilm_sources, minilm_converted, minilm_healed, minilm_budget)}

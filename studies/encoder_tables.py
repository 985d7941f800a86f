"""Makes tables of docs/results/: encoders that learned masked tokens, fine-tuned, and what tasks they hardly learn."""

import json
import math
import statistics

import judging
from table_parts import (
    ARROWS,
    RESULTS,
    SMALLEST_LOSS,
    SMALLEST_SCORE,
    load,
    mark_of_loss,
    retention,
    rows_by_scheme,
    share_of_mha,
    table,
    title_of,
    with_deviation,
    with_interval,
    written_ratio,
)


def encoders_that_learn():
    """Tabulates results of masked-LM pre-training with the recipe of `--task mlm`, by variant. PRR and PEoP are of the
    masked perplexity; the pseudo-perplexity is a second view of the same models and carries no arrows."""
    results = load("mlm")
    rows = {row["variant"]: row for row in results["rows"]}
    found = {"loss": judging.differences(results)}
    arrows = judging.arrows(found, SMALLEST_LOSS)
    pseudo = judging.against(logarithms(results, "pseudo-perplexity"), "mha")
    body = []
    for name, row in rows.items():
        over = found["loss"].get(name)
        mark = mark_of_loss(over, arrows.get(("loss", name), 0))
        figures = [with_deviation(row["test_loss"], 3), with_interval(over, 3, mark), with_deviation(row["quality"], 1)]
        kept = [retention(row["prr"], 1), retention(row["peop"], 2)]
        second = [with_deviation(row["scores"]["pseudo-perplexity"], 1), with_interval(pseudo.get(name), 3)]
        body.append([f"`{name}`", share_of_mha(rows, name), *figures, *kept, *second])
    headings = ["variant", "attention parameters", "masked-LM loss", "difference to mha", "masked perplexity", "PRR", "PEoP"]
    note = f"From {judging.smallest_visible(found['loss']):.3f} nats on a difference of losses can be significant by its interval, of pseudo-perplexities from"
    note += f" {judging.smallest_visible(pseudo):.3f} on."
    return table([*headings, "pseudo-perplexity", "its logarithm minus mha's"], body) + f"\n\n{note}"


def logarithms(results, score):
    """Returns {variant: {seed: logarithm of the score}} of the trained models."""
    found = {}
    for cell in results["cells"]:
        if cell["weights_of"] is None:
            (value,) = (one["value"] for one in cell["scores"] if one["name"] == score)
            found.setdefault(cell["variant"], {})[cell["seed"]] = math.log(value)
    return found


# These are the examples of class 1 and all examples of the parts on which the encoders were scored, and whether F1 of
# class 1 is half of the score.
LABELS = {"glue/sst-2": (444, 872, False), "glue/mrpc": (279, 408, True), "glue/qnli": (526, 1093, False),
          "glue/qqp": (1740, 4700, True), "superglue/wic": (319, 638, False)}  # fmt: skip


def floor_of(task, examples):
    """Returns what the best constant answer scores, of 100. Another part than that of LABELS is refused."""
    positive, of, with_f1 = LABELS[task]
    if examples != of:
        raise SystemExit(f"studies/encoder_tables.py: {task} has {examples} examples, LABELS knows those of {of}: count its labels")
    accuracies = (positive / of, 1 - positive / of)
    if not with_f1:
        return 100 * max(accuracies)
    f1 = (2 * positive / (positive + of), 0.0)
    return 100 * max(statistics.fmean(pair) for pair in zip(accuracies, f1, strict=True))


def floors_of(results):
    return {task["task"]: floor_of(task["task"], task["examples"]) for task in results["cells"][0]["tasks"]}


def qualities(results, floor=0.0):
    """Returns {variant: {seed: mean score above the floor}}."""
    found = {}
    for cell in results["cells"]:
        found.setdefault(cell["variant"], {})[cell["seed"]] = cell["quality"] - floor
    return found


def finetuned_that_learn():
    """Tabulates those encoders fine-tuned: seed i of fine-tuning starts from seed i of pre-training. Arrows stand at
    averages; retention is of what lies above the best constant answer."""
    found = {"GLUE": load("finetune-glue"), "WiC": load("finetune-wic")}
    differences = {name: judging.differences(results) for name, results in found.items()}
    arrows = judging.arrows(differences, SMALLEST_SCORE)
    rows = {name: {row["variant"]: row for row in results["rows"]} for name, results in found.items()}
    floors = {name: floors_of(results) for name, results in found.items()}
    mean_floor = statistics.fmean(floors["GLUE"].values())
    above = qualities(found["GLUE"], mean_floor)
    body = []
    for variant, row in rows["GLUE"].items():
        means = [with_deviation(rows[name][variant]["quality"], 1) + ARROWS[arrows.get((name, variant), 0)] for name in rows]
        over = with_interval(differences["GLUE"].get(variant), 1)
        kept = [retention(row["prr"], 1), written_ratio(above[variant], above["mha"])]
        scores = [with_deviation(task["score"], 1) for task in row["tasks"]]
        body.append([f"`{variant}`", share_of_mha(rows["GLUE"], variant), means[0], over, *kept, *scores, means[1]])
    body.append(["best constant answer", "-", f"{mean_floor:.1f}", "-", "-", "-", *(f"{floor:.1f}" for of in floors.values() for floor in of.values())])
    tasks = [title_of(task) for task in floors["GLUE"]]
    headings = ["variant", "attention parameters", f"mean of {len(tasks)} tasks of GLUE", "minus mha's", "PRR", "PRR above the floor", *tasks, "WiC"]
    seeds = ", ".join(f"{name}: {of['mha']['quality']['count']} seeds" for name, of in rows.items())
    visible = judging.smallest_visible(differences["GLUE"])
    share = 100 * visible / statistics.fmean(above["mha"].values())
    note = f"Per cent, ± the deviation over seeds ({seeds}). A variant has to lose {visible:.1f} points of the mean, {share:.0f} % of what mha has above"
    note += f" the floor, before its difference can be significant by its interval; on WiC {judging.smallest_visible(differences['WiC']):.1f} points."
    return table(headings, body) + f"\n\n{note}"


def finetuned_retention(variant):
    """Returns a variant's PRR on the mean of the GLUE tasks, and its PRR above the floor."""
    results = load("finetune-glue")
    above = qualities(results, statistics.fmean(floors_of(results).values()))
    row = next(row for row in results["rows"] if row["variant"] == variant)
    return f"{retention(row['prr'], 1)} and {written_ratio(above[variant], above['mha'])}"


def at_chance():
    """Tabulates tasks that mha does not learn, beside what the most frequent answer scores. The interval is of one task
    each."""
    body = []
    for name in ("chance-glue", "chance-superglue"):
        results = load(name)
        row = rows_by_scheme(results)["mha"]
        for task, chance in zip(row["tasks"], results["subject"]["task_chances"], strict=True):
            score = task["score"]
            half = judging.half_width_factor(score["count"], 1) * score["deviation"]
            interval = f"[{score['mean'] - half:.1f}, {score['mean'] + half:.1f}]"
            body.append([title_of(task["task"]), f"{chance:.1f}", with_deviation(score, 1), interval])
    seeds = rows_by_scheme(results)["mha"]["quality"]["count"]
    return table(["task", "most frequent answer", "`mha`", "95 %"], body) + f"\n\nPer cent; {seeds} seeds."


def squad():
    """Tabulates how many answers mha's encoder finds in paragraphs, by passes over the questions."""
    results = json.loads((RESULTS / "squad.json").read_text())
    model = results["tasks"][0]["models"][0]
    each = model["steps"] / results["options"]["epochs"]
    body = [[f"{one['step'] / each:.0f}", f"{one['exact_match']:.1f}", f"{one['f1']:.1f}"] for one in results["evaluations"]]
    note = f"Per cent of {results['evaluations'][0]['targets']:,} questions, one seed; {results['environment']['processor']}, "
    return table(["passes", "exact match", "F1"], body) + f"\n\n{note}commit {results['environment']['commit']}."


TABLES = {table.__name__: table for table in (encoders_that_learn, finetuned_that_learn, at_chance, squad)}

"""Makes tables of docs/results/: what trained models lose when their heads share."""

import json
import statistics

import judging
from encoder_tables import floors_of
from table_parts import ARROWS, RESULTS, SMALLEST_LOSS, load, mark_of_loss, spread, table, title_of, with_deviation, with_interval


def named(target):
    """Names a key width of collaborative attention, or a scheme."""
    return f"collaborative, width {target}" if isinstance(target, int) else f"`{target}`"


def compressed(name="encoders"):
    """Tabulates the losses of a study of studies/compression: converted, healed and freshly trained models by target.
    The intervals of a column of differences hold for all targets at once."""
    results = json.loads((RESULTS / f"compression-{name}.json").read_text())
    targets = {}
    for cell in results["cells"]:
        source = results["source_losses"][cell["seed"]]
        losses = {"converted": cell["converted_loss"], "healed": cell["healed"]["test_loss"], "scratch": cell["scratch"]["test_loss"]}
        losses |= {"full": cell["full_loss"], "source": source, "share": cell["after"]["attention_parameters"] / cell["before"]["attention_parameters"]}
        if "source_trained_on_losses" in results:
            losses["trained on"] = results["source_trained_on_losses"][cell["seed"]]
        targets.setdefault(cell["target"], []).append(losses)

    def compared(other):
        pairs = {target: [(one["healed"], one[other]) for one in cells] for target, cells in targets.items()}
        whole = {target: [ours - theirs for ours, theirs in values] for target, values in pairs.items() if None not in dict(values).values()}
        return judging.judge(whole)

    def difference(judged):
        return with_interval(judged, 3, mark_of_loss(judged, judged.direction if judged else 0))

    control = "trained on" if "source_trained_on_losses" in results else "source"
    to_control, to_full = compared(control), compared("full")
    body = []
    for target, cells in sorted(targets.items(), key=lambda item: -item[1][0]["share"]):
        lost = statistics.fmean(one["converted"] - one["source"] for one in cells)
        regained = statistics.fmean(one["converted"] - one["healed"] for one in cells) / lost
        body.append([
            named(target),
            f"{100 * cells[0]['share']:.0f} %",
            *(spread([one[figure] for one in cells]) for figure in ("converted", "healed")),
            f"{100 * regained:.0f} %" if lost >= SMALLEST_LOSS else "-",
            difference(to_control[target]),
            spread([one["full"] for one in cells]) if target in to_full else "-",
            difference(to_full.get(target)),
            spread([one["scratch"] for one in cells]),
        ])
    headings = ["converted to", "attention parameters", "converted", "healed", "recovered"]
    headings += ["healed minus source" + (" trained on as long" if control == "trained on" else "")]
    headings += ["from scratch, as long as the source", "healed minus that", f"from scratch, {results['options']['steps']} steps"]
    note = f"The sources have {spread(results['source_losses'])}; {len(results['source_losses'])} seeds. "
    if "source_trained_on_losses" in results:
        note += f"Trained on for as long as healed models, without a teacher, they have {spread(results['source_trained_on_losses'])}. "
    commits = sorted({cell["commit"] for cell in results["cells"]})
    note += f"{results['environment']['processor']}, commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}."
    return table(headings, body) + f"\n\n{note}"


def compressed_language_models():
    """Tabulates the losses of language models."""
    return compressed("language-models")


def converted_translators():
    """Tabulates what trained translators lose when their heads share, and what a short second training gives back."""
    results = json.loads((RESULTS / "converted-translators.json").read_text())
    targets = {}
    for cell in results["cells"]:
        targets.setdefault(cell["target"], []).append(cell)
    scratch = {row["variant"]: row for row in load("multi30k")["rows"]}

    def minus(cells, stage, other):
        return ", ".join(f"{cell[stage]['bleu'] - cell[other]['bleu']:+.1f}" for cell in cells) if stage in cells[0] else "-"

    body = []
    for target, cells in targets.items():
        fresh = scratch.get(f"c{target}" if isinstance(target, int) else target)
        body.append([
            named(target),
            f"{100 * cells[0]['after'] / cells[0]['before']:.0f} %",
            *(", ".join(f"{cell[stage]['bleu']:.1f}" for cell in cells) if stage in cells[0] else "-" for stage in ("converted", "healed")),
            minus(cells, "converted", "source"),
            minus(cells, "healed", "source_trained_on"),
            with_deviation(fresh["quality"], 1) if fresh else "-",
        ])
    headings = ["converted to", "attention parameters", "BLEU of seeds 0, 1", "healed", "converted minus source"]
    headings += ["healed minus source trained on as long", "BLEU, trained from scratch"]
    before, after = (
        ", ".join(f"{cell[source]['bleu']:.1f}" for cell in next(iter(targets.values()))) for source in ("source", "source_trained_on")
    )
    commit = results["environment"]["commit"]
    note = f"The sources have BLEU {before}; trained on for as long as healed models, {after}."
    return table(headings, body) + f"\n\n{note} {results['environment']['processor']}, commit {commit}."


CONTROLS = {"converted": "source", "healed": "trained_on"}  # what a converted model is compared with, trained as long


def converted_tasks():
    """Tabulates scores of fine-tuned encoders whose heads were made to share, mean over seeds. The intervals of each
    column of differences hold for all targets of a task at once."""
    results = json.loads((RESULTS / "converted-tasks.json").read_text())
    sources = {(one["task"], one["seed"]): one for one in results["sources"]}
    body = []
    for task in dict.fromkeys(one["task"] for one in results["sources"]):
        targets = {}
        for cell in results["cells"]:
            if cell["task"] == task:
                targets.setdefault(cell["target"], []).append(cell)
        differences = {
            stage: judging.judge({
                target: [cell[stage] - sources[task, cell["seed"]][control] for cell in cells] for target, cells in targets.items()
            })
            for stage, control in CONTROLS.items()
        }
        for target, cells in targets.items():
            judged = [differences[stage][target] for stage in CONTROLS]
            body.append([
                title_of(task),
                named(target),
                f"{100 * cells[0]['after'] / cells[0]['before']:.0f} %",
                *(with_interval(one, 1, ARROWS[one.direction]) for one in judged),
            ])
    headings = ["task", "converted to", "attention parameters", "converted minus source", "healed minus source trained on as long"]
    machine = results["environment"]
    return table(headings, body) + f"\n\nPoints of 100; {source_scores(results)}. {machine['processor']}, commit {machine['commit']}."


def source_scores(results):
    """Returns what the sources score, as they are and trained on for as long as healed models."""
    scores = {}
    for one in results["sources"]:
        for stage in ("source", "trained_on"):
            scores.setdefault((one["task"], stage), []).append(one[stage])
    means = {key: f"{statistics.fmean(values):.1f} ± {statistics.stdev(values):.1f}" for key, values in scores.items()}
    tasks = dict.fromkeys(one["task"] for one in results["sources"])
    floors = floors_of(load("finetune-glue"))
    return "; ".join(
        f"{title_of(task)}: sources {means[task, 'source']}, trained on {means[task, 'trained_on']}, best constant answer "
        f"{next(floor for of, floor in floors.items() if of.endswith(task)):.1f}"
        for task in tasks
    )


TABLES = {table.__name__: table for table in (compressed, compressed_language_models, converted_translators, converted_tasks)}

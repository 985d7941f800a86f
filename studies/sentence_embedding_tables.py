"""Makes tables of docs/results/: what MiniLM's embeddings of sentences lose when its heads share. Each table takes what
studies/sentence_embeddings has finished."""

import json
import statistics

import judging
from table_parts import ARROWS, RESULTS, SMALLEST_SCORE, measured_by, table, title_of, with_interval

WAYS = {"weights": "weights alone", "sample": "sample text"}
RANDOM = "random-keys"


def load():
    return json.loads((RESULTS / "sentence-embeddings.json").read_text())


def named(target):
    """Names a target of `convert --to`, or the keys drawn at random."""
    if target == RANDOM:
        return "keys drawn at random"
    if target.startswith("collaborative "):
        return target.replace(" --key-width", ", width").replace(" --mean-key-width", ", mean width")
    to, *options = target.split(" --", 1)
    if to == "mla":
        return "`mla`, " + options[0].replace("mean-latent-width", "mean width")
    return f"`{to}`" + "".join(f", `--{one}`" for one in options)


def judged(measured):
    """Judges {set: {name: (difference, deviation)}}: intervals hold for all names of a set, arrows by Holm's correction over
    the table. Returns {name: {set: text}}."""
    found = {name: judging.judge_redrawn(values) for name, values in measured.items()}
    arrows = judging.arrows(found, SMALLEST_SCORE)
    written = {}
    for name, values in found.items():
        for one, difference in values.items():
            written.setdefault(one, {})[name] = with_interval(difference, 1, ARROWS[arrows.get((name, one), 0)])
    return written


def by_set(results, cells, key, figure):
    """Returns {set: {what a cell is called: its figure}} of the scored sets."""
    return {name: {key(cell): cell[figure][name] for cell in cells} for name in results["scored"]}


def unscored(results):
    """Says what the control loses on the sets that were left out because of it."""
    control = next(cell for cell in results["converted"] if cell["target"] == RANDOM)
    texts = []
    for name in sorted(set(results["scores"]) - set(results["scored"])):
        (found,) = judging.judge_redrawn({RANDOM: control["lost"][name]}).values()
        texts.append(f"{pairs_of(results, name)}, keys drawn at random {with_interval(found, 1)}, which stands alone. ")
    return "".join(texts)


def pairs_of(results, name):
    part = results["parts"][name]
    return f"{title_of(name)}: {results['scores'][name]:.1f} before, {part['pairs']:,} pairs in {part['groups']:,} groups"


def cell_key(cell):
    return cell["target"], cell["way"]


def change_of(cell):
    """Writes the mean over layers of how much their outputs change on the sample."""
    changes = [layer.get("output_change") for layer in cell["layers"]]
    return "-" if None in changes else f"{100 * statistics.fmean(changes):.0f} %"


def converted_embeddings():
    """Tabulates what the rankings of converted models lose, from the largest cache to the smallest."""
    results = load()
    cells = sorted(results["converted"], key=lambda cell: -cell["cache"])
    written = judged(by_set(results, cells, cell_key, "lost"))
    body = []
    for cell in cells:
        sizes = [f"{cell['cache']:.0f}", f"{100 * cell['share']:.0f} %", change_of(cell), f"{cell['cosine']:.3f}"]
        way = "-" if cell["target"] == RANDOM else WAYS[cell["way"]]
        body.append([named(cell["target"]), way, *sizes, *(written[cell_key(cell)][name] for name in results["scored"])])
    headings = ["converted to", "converted by", "cache", "attention parameters", "change of layers' outputs", "cosine"]
    note = f"Area under the ROC curve in points of 100, converted minus source. {'; '.join(pairs_of(results, name) for name in results['scored'])}. "
    note += unscored(results)
    note += "Cache: numbers that a layer of a decoder would keep of a token. Cosine: mean of an embedding with the one before. "
    return table([*headings, *map(title_of, results["scored"])], body) + f"\n\n{note}{measured_by(results, results['converted'])}"


def compared_embeddings():
    """Tabulates differences between two conversions."""
    results = load()
    cells = {cell_key(cell): cell for cell in results["converted"]}

    def key(one):
        return tuple(one["ours"]), tuple(one["theirs"])

    def written_side(side, other):
        return named(side[0]) + (f", {WAYS[side[1]]}" if side[1] != other[1] else "")

    written = judged(by_set(results, results["comparisons"], key, "difference"))
    body = []
    for one in results["comparisons"]:
        ours, theirs = key(one)
        sides = [written_side(ours, theirs) + (" †" if one["added_later"] else ""), written_side(theirs, ours)]
        sides += [f"{cells[ours]['cache']:.0f}, {cells[theirs]['cache']:.0f}", f"{100 * cells[ours]['share']:.0f} %, {100 * cells[theirs]['share']:.0f} %"]
        body.append([*sides, *(written[ours, theirs][name] for name in results["scored"])])
    headings = ["conversion", "minus", "cache", "attention parameters"]
    return table([*headings, *map(title_of, results["scored"])], body) + f"\n\nPoints of 100. † Added after looks at the losses. {measured_by(results, results['converted'])}"


TABLES = {table.__name__: table for table in (converted_embeddings, compared_embeddings)}

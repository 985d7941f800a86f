"""Makes tables of docs/results/: what vision transformers lose when their heads share queries and keys, and what narrow keys
cost from scratch. Each table takes what studies/vision has finished: the three seeds of some width are there."""

import json
import statistics

import judging
from table_parts import ARROWS, RESULTS, SMALLEST_SCORE, measured_by, table, with_interval

TITLES = {"mnist": "MNIST", "cifar10-subset": "CIFAR-10, 4,000 images"}
WAYS = {"weights": "weights alone", "sample": "training images"}
NOTHING = "Nothing here has three seeds yet."


def load():
    path = RESULTS / "vision-widths.json"
    return json.loads(path.read_text()) if path.exists() else None


def by_seed(cells, key):
    """Returns {(data, key of a cell): {seed: accuracy in points of 100}} of what has all seeds."""
    found = {}
    for cell in cells:
        found.setdefault((cell["data"], key(cell)), {})[cell["seed"]] = 100 * cell["accuracy"]
    return {name: seeds for name, seeds in found.items() if len(seeds) >= judging.FEWEST_SEEDS}


def minus(ours, theirs):
    return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]


def judged(pairs):
    """Judges {(data, name): paired differences}, each data set by itself; the arrows are corrected over both."""
    found = {data: judging.judge({name: values for (of, name), values in pairs.items() if of == data}) for data in dict.fromkeys(of for of, _ in pairs)}
    arrows = judging.arrows(found, SMALLEST_SCORE)
    return {(data, name): with_interval(one, 1, ARROWS[arrows.get((data, name), 0)]) for data, of in found.items() for name, one in of.items()}


def spread(seeds):
    return f"{statistics.fmean(seeds.values()):.1f} ± {statistics.stdev(seeds.values()):.1f}"


def vision_converted():
    """Tabulates the accuracy of converted models, before and after healing."""
    results = load()
    if results is None:
        return NOTHING
    sources = {data: seeds for (data, _), seeds in by_seed(results["sources"], lambda _: None).items()}
    converted = by_seed(results["converted"], lambda cell: (cell["width"], cell["way"]))
    healed = by_seed(results["healed"], lambda cell: cell["width"])
    trained_on = {data: seeds for (data, width), seeds in healed.items() if width == "trained-on"}
    converted = {key: seeds for key, seeds in converted.items() if key[0] in sources}
    if not converted:
        return NOTHING
    losses = judged({key: minus(seeds, sources[key[0]]) for key, seeds in converted.items()})
    left = judged({
        (data, width): minus(seeds, trained_on[data]) for (data, width), seeds in healed.items() if width != "trained-on" and data in trained_on
    })
    body = []
    for (data, (width, way)), seeds in converted.items():
        cells = [cell for cell in results["converted"] if (cell["data"], cell["width"], cell["way"]) == (data, width, way)]
        after = [spread(healed[data, width]), left.get((data, width), "-")] if way == "sample" and (data, width) in healed else ["-", "-"]
        change = [layer["output_change"] for cell in cells for layer in cell["layers"]]
        body.append([
            TITLES[data], f"{width} of {results['full_width']}", WAYS[way], f"{100 * cells[0]['share']:.0f} %",
            "-" if None in change else f"{100 * statistics.fmean(change):.0f} %", spread(seeds), losses[data, (width, way)], *after,
        ])  # fmt: skip
    headings = ["data", "key width", "fitted to", "attention parameters", "change of layers' outputs", "converted", "converted minus source",
                "healed", "healed minus source trained on as long"]  # fmt: skip
    note = "Accuracy on the test images in points of 100. " + " ".join(
        f"{TITLES[data]}: sources {spread(seeds)}" + (f", trained on {spread(trained_on[data])}." if data in trained_on else ".")
        for data, seeds in sources.items()
    )
    return f"{table(headings, body)}\n\n{note} {measured_by(results, results['converted'] + results['healed'])}"


def vision_scratch():
    """Tabulates the accuracy of models trained from scratch with narrow keys, of both forms."""
    results = load()
    if results is None:
        return NOTHING
    found = by_seed(results["scratch"], lambda cell: (cell["scheme"], cell["width"]))
    pairs = {
        (data, width): minus(seeds, found[data, ("mha", width)])
        for (data, (scheme, width)), seeds in found.items()
        if scheme == "collaborative" and (data, ("mha", width)) in found
    }
    if not pairs:
        return NOTHING
    differences = judged(pairs)
    parameters = {(cell["scheme"], cell["width"]): cell["attention_parameters"] for cell in results["scratch"]}

    def cells(data, scheme, width):
        return [spread(found[data, (scheme, width)]), f"{parameters[scheme, width]:,}"]

    body = []
    for data in dict.fromkeys(data for data, _ in pairs):
        if (data, ("mha", results["full_width"])) in found:
            body.append([TITLES[data], str(results["full_width"]), *cells(data, "mha", results["full_width"]), "-", "-", "-"])
        body += [
            [TITLES[data], str(width), *cells(data, "mha", width), *cells(data, "collaborative", width), differences[data, width]]
            for of, width in pairs
            if of == data
        ]
    headings = ["data", "key width", "concatenated heads", "attention parameters", "collaborative heads", "attention parameters", "difference"]
    steps = ", ".join(f"{TITLES[data]} {one['scratch_steps']:,} steps" for data, one in results["data"].items())
    return f"{table(headings, body)}\n\nAccuracy on the test images in points of 100; {steps}. {measured_by(results, results['scratch'])}"


TABLES = {table.__name__: table for table in (vision_converted, vision_scratch)}

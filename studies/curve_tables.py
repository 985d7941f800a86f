"""Makes the tables of docs/results/heads.md: what heads make of one query, and add to one key (docs/design/074)."""

import statistics

import judging
from table_parts import (
    ARROWS,
    CEILING,
    SMALLEST_ACCURACY,
    SMALLEST_LOSS,
    load,
    mark_of_loss,
    table,
    with_deviation,
    with_interval,
)

# The comparisons of the curve, by what a column calls them.
LINES = {
    "curve-joint-rotary": "joint-recall, rotary",
    "curve-offsets-rotary": "offsets, rotary",
    "curve-k-gram-rotary": "k-gram, rotary",
    "curve-joint": "joint-recall, learned",
    "curve-offsets": "offsets, learned",
}
EXPECTED_OF_ENCODERS = (
    ("sq_bias", "sha"),
    ("sq_diagonal", "sha"),
    ("sq_complex", "sq_diagonal"),
    ("sq_diagonal", "mqa"),
    ("sq_complex", "mqa"),
    ("sq_full", "mqa"),
    ("lrkv_1", "mqa"),
)
# The comparisons of one recipe at several sizes, the smallest first.
SIZES = ("curve-mlm", "sizes-3m")
TOO_FEW = "Three seeds are not there yet."
GATED = {"curve-joint-rotary": "curve-joint-gate", "curve-offsets-rotary": "curve-offsets-gate"}
QUERY_SIDE = ("sq_bias", "sq_diagonal", "sq_complex", "sq_blocks", "sq_rank_1", "sq_rank_4", "sq_full")
KEY_SIDE = ("lrkv_1", "lrkv_4", "lrkv_8")
ORDER = ("sha", *QUERY_SIDE, "mqa", "mhe_add", "mhe_mul", *KEY_SIDE, "gqa", "mha", "no_positions")
# These differences were expected to say something: the first variant minus the second.
EXPECTED = (
    ("curve-offsets-rotary", "sq_complex", "sq_diagonal"),
    ("curve-joint-rotary", "mha", "gqa"),
    ("curve-joint-rotary", "mha", "mqa"),
    ("curve-joint-rotary", "mqa", "mhe_mul"),
    ("curve-joint-rotary", "mhe_mul", "mhe_add"),
    ("curve-joint-rotary", "mhe_add", "sha"),
    ("curve-joint-rotary", "lrkv_1", "mha"),
    ("curve-offsets-rotary", "lrkv_1", "mha"),
    ("curve-k-gram-rotary", "lrkv_1", "mha"),
    ("curve-joint-rotary", "sq_bias", "sha"),
    ("curve-offsets-rotary", "sq_bias", "sha"),
    ("curve-offsets", "sq_bias", "sha"),
    ("curve-offsets-rotary", "sq_full", "sq_complex"),
    ("curve-offsets-rotary", "sq_blocks", "sq_complex"),
    ("curve-offsets-rotary", "sq_full", "sq_rank_4"),
    ("curve-joint-rotary", "sq_full", "mqa"),
    ("curve-offsets-rotary", "sq_full", "mqa"),
)


def finished(names):
    return {name: results for name in names if (results := load(name))}


def by_seed(results, figure="quality"):
    """Returns {variant: {seed: accuracy, or another figure}}, each at the rate that validation chose."""
    chosen = {row["variant"]: row["setting"] for row in results["rows"]}
    found = {}
    for cell in results["cells"]:
        if cell["weights_of"] is None and cell["setting"] == chosen[cell["variant"]]:
            found.setdefault(cell["variant"], {})[cell["seed"]] = cell[figure]
    return found


def own_parameters(results):
    """Returns {variant: attention parameters beyond those of one head for all}."""
    rows = {row["variant"]: row for row in results["rows"]}
    return {name: row["attention_parameters"] - rows["sha"]["attention_parameters"] for name, row in rows.items()}


def heads_curve():
    """Tabulates accuracy by point and task. Holm's correction is over the whole table."""
    found = finished(LINES)
    if not found:
        return "Not measured yet."
    arrows = judging.arrows({name: judging.differences(results) for name, results in found.items()}, SMALLEST_ACCURACY)
    first = next(iter(found.values()))
    rows, own = {name: {row["variant"]: row for row in results["rows"]} for name, results in found.items()}, own_parameters(first)
    body = []
    for variant in ORDER:
        if variant not in own:
            continue
        cells = [
            with_deviation(rows[name][variant]["quality"], 3) + ARROWS[arrows.get((name, variant), 0)] if variant in rows[name] else "-"
            for name in found
        ]
        cache = next(iter(rows.values()))[variant]["cache_elements_per_token"]
        body.append([f"`{variant}`", f"{own[variant]:,}", f"{cache:,}", *cells])
    seeds = next(iter(rows.values()))["mha"]["quality"]["count"]
    width = first["options"]["d-model"]
    heads = first["options"]["heads"]
    note = (
        f"Mean accuracy ± deviation over {seeds} seeds, at the best of three rates by validation, chosen with the same seeds; ↓ is significantly "
        f"worse than mha, ↑ better. Parameters are those of attention beyond sha's, and caches elements a token, both of joint-recall and "
        f"offsets: {heads} heads of {width // heads} in {first['options']['layers']} layer of {width}."
    )
    return table(["point", "parameters", "cache", *(LINES[name] for name in found)], body) + "\n\n" + note


def pair_differences(found, pairs):
    """Judges {(ours, theirs): ours minus theirs} of one comparison {variant: {seed: accuracy}}."""
    return judging.judge({
        (ours, theirs): [value - found[theirs][seed] for seed, value in found[ours].items() if seed in found[theirs]] for ours, theirs in pairs
    })


def difference_rows(judged):
    return [[f"`{ours}` - `{theirs}`", with_interval(one, 3)] for (ours, theirs), one in judged.items()]


def heads_expected():
    """Tabulates the differences that were predicted, judged within each comparison by the rule of docs/design/025."""
    body = []
    for name, results in finished(LINES).items():
        pairs = [(ours, theirs) for line, ours, theirs in EXPECTED if line == name]
        body += [[LINES[name], *row] for row in difference_rows(pair_differences(by_seed(results), pairs))] if pairs else []
    if not body:
        return "Not measured yet."
    note = "Accuracy, paired by seed; intervals hold for all differences of one task and positions together."
    return table(["task, positions", "difference", "accuracy"], body) + "\n\n" + note


def heads_more():
    """Tabulates the first prediction on other seeds: two maps of as many numbers, and the ends."""
    results = load("curve-offsets-more")
    if not results:
        return "Not measured yet."
    found, rows = by_seed(results), {row["variant"]: row for row in results["rows"]}
    body = [
        [f"`{one}`", with_deviation(rows[one]["quality"], 3), f"{sum(value >= CEILING for value in values.values())} of {len(values)}"]
        for one, values in found.items()
    ]
    judged = pair_differences(found, [("sq_complex", "sq_diagonal"), *((one, "mha") for one in found if one != "mha")])
    points = table(["point", "accuracy", f"seeds at {CEILING:g}"], body)
    return points + "\n\n" + table(["difference", "accuracy"], difference_rows(judged)) + "\n\nPaired by seed; intervals hold for all of these differences together."


def heads_gate():
    """Tabulates what a gate for each element changes, and how far points lie apart with it and without."""
    pairs = {name: gate for name, gate in GATED.items() if load(name) and load(gate)}
    if not pairs:
        return "Not measured yet."
    judged, means = {}, {}
    for name, gate in pairs.items():
        plain, gated = by_seed(load(name)), by_seed(load(gate))
        judged[name] = judging.judge({one: [gated[one][seed] - value for seed, value in plain[one].items()] for one in ORDER if one in plain})
        means[name] = {one: (statistics.fmean(plain[one].values()), statistics.fmean(gated[one].values())) for one in plain}
    arrows = judging.arrows(judged, SMALLEST_ACCURACY)
    body = []
    for one in [one for one in ORDER if all(one in means[name] for name in pairs)]:
        cells = []
        for name in pairs:
            plain, gated = means[name][one]
            cells += [f"{plain:.3f}", f"{gated:.3f}", with_interval(judged[name][one], 3, ARROWS[arrows.get((name, one), 0)])]
        body.append([f"`{one}`", *cells])
    headings = [words for name in pairs for words in (LINES[name], "with a gate", "difference")]
    note = "Differences are paired by seed; ↓ and ↑ after Holm's correction over the table. Each side chose its own rate, with five seeds. "
    note += "Between points that all have a gate, `sha` - `mha` is " + " and ".join(
        f"{with_interval(judging.differences(load(gate))['sha'], 3)} on {LINES[name]}" for name, gate in pairs.items()
    )
    note += ", where intervals hold for all differences to mha of a task."
    return table(["point", *headings], body) + "\n\n" + note


def with_three_seeds(name):
    """Returns a comparison whose parts are all there, or None."""
    results = load(name)
    return results if results and results["rows"][0]["quality"]["count"] >= judging.FEWEST_SEEDS else None


def heads_encoders():
    """Tabulates the losses of encoders on masked tokens by point of the curve."""
    results = with_three_seeds("curve-mlm")
    if not results:
        return TOO_FEW
    rows, own = {row["variant"]: row for row in results["rows"]}, own_parameters(results)
    judged = judging.differences(results)
    arrows = judging.arrows({"loss": judged}, SMALLEST_LOSS)
    body = []
    for variant in (one for one in ORDER if one in rows):
        over = judged.get(variant)
        mark = mark_of_loss(over, arrows.get(("loss", variant), 0))
        body.append([f"`{variant}`", f"{own[variant]:,}", with_deviation(rows[variant]["test_loss"], 3), with_interval(over, 3, mark)])
    between = pair_differences(by_seed(results, "test_loss"), EXPECTED_OF_ENCODERS)
    shape = results["options"]
    note = f"Test loss in nats; {rows['mha']['quality']['count']} seeds, {shape['layers']} layers of {shape['d-model']}, {shape['heads']} heads; parameters are those of attention "
    note += "beyond sha's. Intervals hold for all differences of a table together; ↓ takes Holm's correction over the first table."
    return (
        table(["point", "parameters", "masked-LM loss", "difference to mha"], body) + "\n\n"
        + table(["difference", "loss"], difference_rows(between)) + "\n\n" + note
    )  # fmt: skip


def heads_sizes():
    """Tabulates how far schemes lie behind mha at several sizes, and how much that grows with the size."""
    found = {name: results for name in SIZES if (results := with_three_seeds(name))}
    if len(found) < len(SIZES):
        return TOO_FEW
    losses = {name: by_seed(results, "test_loss") for name, results in found.items()}
    schemes = [one for one in ORDER if one != "mha" and all(one in losses[name] for name in found)]
    gaps = {name: {one: {seed: value - of["mha"][seed] for seed, value in of[one].items()} for one in schemes} for name, of in losses.items()}
    judged = {name: judging.judge({one: list(values.values()) for one, values in of.items()}) for name, of in gaps.items()}
    first, last = gaps[SIZES[0]], gaps[SIZES[-1]]
    growth = judging.judge({one: [last[one][seed] - value for seed, value in first[one].items() if seed in last[one]] for one in schemes})
    sizes = {name: next(row for row in results["rows"] if row["variant"] == "mha") for name, results in found.items()}
    headings = [f"{sizes[name]['total_parameters'] / 1e6:.2g} million: {with_deviation(sizes[name]['test_loss'], 3)}" for name in found]
    body = [[f"`{one}`", *(with_interval(judged[name][one], 3) for name in found), with_interval(growth[one], 3)] for one in schemes]
    note = "Loss minus mha's, whose loss heads each column; intervals hold for the differences of a column together."
    return table(["scheme", *headings, "the last minus the first"], body) + "\n\n" + note


TABLES = {table.__name__: table for table in (heads_curve, heads_expected, heads_more, heads_gate, heads_encoders, heads_sizes)}

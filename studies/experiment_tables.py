"""Makes tables of docs/results/: what the queue's comparisons (docs/results/compare/NAME.json) found.

Each function returns Markdown. An unfinished comparison has no row, column or figure.
"""

import math
import re
import statistics

import comparison_results
import judging
from table_parts import (
    ARROWS,
    CEILING,
    HOME,
    RESULTS,
    SMALLEST_ACCURACY,
    SMALLEST_LOSS,
    arrows_of,
    load,
    mark_of_loss,
    retention,
    rows_by_scheme,
    settings_of,
    share_of_mha,
    table,
    with_deviation,
    with_interval,
)

ATTENTION = RESULTS.parents[1] / "headshare/attention"
LIST = re.findall(r"^HS_SCHEME\((\w+)\)", (ATTENTION / "schemes.inc").read_text(), re.MULTILINE)
# These schemes are trained. The records of the others name the scheme whose weights they compute with.
SCHEMES = tuple(name for name in LIST if ".weights_of = " not in (ATTENTION / f"schemes/{name}.cc").read_text())
TASKS = ("offsets", "recall", "induction", "dyck")


def table_by_scheme(headings, rows):
    """Returns a table with a column for each scheme that has a figure; rows: [(first cells, {scheme: cell})]."""
    shown = [scheme for scheme in SCHEMES if any(cells[scheme] != "-" for _, cells in rows)]
    body = [[*first, *(cells[scheme] for scheme in shown)] for first, cells in rows]
    return table([*headings, *(f"`{scheme}`" for scheme in shown)], body)


def is_told(results):
    """Tells whether an accuracy says something of the schemes: some learned half of what chance leaves, and not all are
    perfect."""
    means = [row["quality"]["mean"] for row in results["rows"] if row["quality"]]
    chance = results["subject"]["chance"]
    return max(means) - chance >= (1 - chance) / 2 and min(means) < CEILING


def start_of(results):
    """Returns where head embeddings start: one number, or that of MHE-ADD and of MHE-MUL."""
    told = results["options"]["mhe-deviation"]
    if told != "auto":
        return f"{told:g}"
    # Older programs did not record the start of a model.
    starts = {cell["variant"]: cell.get("options", {}).get("mhe-deviation") for cell in results["cells"]}
    return f"{starts.get('mhe_add') or 0.1:g}, {starts.get('mhe_mul') or 0.5:g}"


def task_runs():
    """Tabulates every finished comparison of schemes on a diagnostic task, by task, positions and depth; sweeps and variants
    of one scheme are in other tables."""
    runs = []
    for path in sorted(HOME.glob("*.json")):
        results = comparison_results.read(path)
        options = results["options"]
        schemes = [row["scheme"] for row in results["rows"]]
        if results["subject"]["name"] in TASKS and not options["sweep"] and len(set(schemes)) == len(schemes):
            key = (TASKS.index(options["task"]), options["positions"] != "learned", options["positions"], options["layers"])
            runs.append((key, start_of(results), options["task"], results))
    return sorted(runs, key=lambda run: run[:2])


def diagnostics():
    runs = task_runs()
    arrows = arrows_of({index: run[-1] for index, run in enumerate(runs) if is_told(run[-1])}, SMALLEST_ACCURACY)

    def cell(index, rows, scheme):
        row = rows.get(scheme)
        if row is None or row["quality"] is None:
            return "-"
        return f"{row['quality']['mean']:.3f}{arrows.get((index, scheme), '')}"

    table_rows = []
    for index, (_, start, name, results) in enumerate(runs):
        options, rows = results["options"], rows_by_scheme(results)
        what = [name, options["positions"], str(options["layers"]), str(options["seeds"]), start, f"{results['subject']['chance']:.3f}"]
        table_rows.append((what, {scheme: cell(index, rows, scheme) for scheme in SCHEMES}))
    return table_by_scheme(["task", "positions", "layers", "seeds", "MHE from", "chance"], table_rows)


def steps_to_solve():
    """Tabulates how soon models solve a task: the median over the seeds, and how many of them get there. Never is later
    than all."""
    reached = {}
    for task in TASKS:
        results = load(f"steps-{task}")
        for cell in results["cells"] if results else []:
            first = [point["step"] for point in cell["curve"] if point["validation_score"] >= CEILING]
            reached.setdefault(task, {}).setdefault(cell["variant"], []).append(min(first, default=math.inf))
    p_values = {
        (task, scheme): judging.rank_sum_p(steps, found["mha"])
        for task, found in reached.items()
        for scheme, steps in found.items()
        if scheme != "mha"
    }
    significant = judging.holm(p_values)

    def cell(task, scheme):
        steps = reached[task].get(scheme)
        if steps is None:
            return "-"
        middle, solved = statistics.median_low(steps), sum(step < math.inf for step in steps)
        text = "never" if middle == math.inf else f"{middle:.0f}"
        share = "" if solved == len(steps) else f" ({solved} of {len(steps)})"
        sooner = sum((step < other) - (step > other) for step in steps for other in reached[task]["mha"])
        return text + share + (ARROWS[1 if sooner > 0 else -1] if (task, scheme) in significant else "")

    return table_by_scheme(["task"], [([task], {scheme: cell(task, scheme) for scheme in SCHEMES}) for task in reached])


SEPARATING = ("joint-recall", "k-gram")


def separating():
    """Tabulates tasks that ask for several contents at once: accuracy beside what each scheme costs, at the rate it
    chose."""
    found = {name: load(name) for name in SEPARATING if load(name)}
    arrows = arrows_of({name: results for name, results in found.items() if is_told(results)}, SMALLEST_ACCURACY)
    rows = {name: rows_by_scheme(results) for name, results in found.items()}
    first = next(iter(rows.values()))
    body = [
        [
            f"`{scheme}`",
            f"{row['attention_parameters']:,}",
            f"{row['cache_bytes_per_token']:,}",
            *(with_deviation(rows[name][scheme]["quality"], 3) + arrows.get((name, scheme), "") for name in found),
        ]
        for scheme, row in first.items()
    ]
    body.append(["chance", "-", "-", *(f"{results['subject']['chance']:.3f}" for results in found.values())])
    return table(["scheme", "attention parameters", "cache bytes/token", *found], body)


TEXTS = {"texts-shakespeare": "tiny shakespeare", "texts-wikitext": "WikiText-2"}


def texts():
    """Tabulates language models by scheme. Arrows point up where the loss is lower; "kept" is by the margin."""
    found = {name: load(name) for name in TEXTS if load(name)}
    differences = {name: judging.differences(results) for name, results in found.items()}
    arrows = judging.arrows(differences, SMALLEST_LOSS)
    rows = {name: rows_by_scheme(results) for name, results in found.items()}

    def cell(name, scheme):
        row, difference = rows[name][scheme], differences[name].get(scheme)
        over = with_interval(difference, 3, mark_of_loss(difference, arrows.get((name, scheme), 0)))
        return [with_deviation(row["quality"], 2), over, retention(row["prr"], 1)]

    headings = ["scheme", "attention parameters"]
    headings += [heading for name in found for heading in (f"{TEXTS[name]}: perplexity", "loss minus mha's", "PRR")]
    first = next(iter(rows.values()))
    body = [[f"`{scheme}`", share_of_mha(first, scheme), *(text for name in found for text in cell(name, scheme))] for scheme in first]
    seeds = {row["quality"]["count"] for of in rows.values() for row in of.values()}
    assert len(seeds) == 1, "the line under the table names one number of seeds"
    visible = " and ".join(f"{judging.smallest_visible(of):.3f}" for of in differences.values())
    return table(headings, body) + f"\n\n{seeds.pop()} seeds. From {visible} nats on a difference can be significant by its interval."


def by_setting(name, figure, digits, **fixed):
    """Returns {(scheme, setting): "mean ± deviation"}; the setting is a frozenset of the swept options that are not
    fixed."""
    found = {}
    results = load(name)
    for row in results["rows"] if results else []:
        for one in row["settings"]:
            swept = dict(part.split("=") for part in one["setting"].split())
            if all(float(swept.pop(key)) == value for key, value in fixed.items()):
                found[row["scheme"], frozenset(swept.items())] = with_deviation(one[figure], digits)
    return found


def setting_table(name, figure, digits, columns):
    """Returns a table with a row for each scheme and a column for each setting; columns: heading -> {option: value}."""
    found = by_setting(name, figure, digits)
    rows = [
        [f"`{scheme}`", *(found.get((scheme, frozenset(setting.items())), "-") for setting in columns.values())]
        for scheme in SCHEMES
        if any(one == scheme for one, _ in found)
    ]
    return table(["scheme", *columns], rows)


def biases():
    columns = {
        f"{first}, {second}": {"projection-bias": projection, "content-bias": content}
        for first, projection in (("no biases", "false"), ("projection biases", "true"))
        for second, content in (("no content bias", "false"), ("content bias", "true"))
    }
    return setting_table("ablation-biases", "test_loss", 3, columns) + "\n\n" + content_bias_pairs("ablation-biases")


def content_bias_pairs(name):
    """Returns a sentence on the models that differ in nothing but their content bias."""
    losses = {}
    for cell in load(name)["cells"]:
        swept = dict(part.split("=") for part in cell["setting"].split())
        if cell["weights_of"] is None:
            pair = losses.setdefault((cell["variant"], cell["seed"], swept["projection-bias"]), {})
            pair[swept["content-bias"]] = cell["test_loss"]
    differences = [pair["true"] - pair["false"] for pair in losses.values() if len(pair) == 2]
    lower = sum(difference < 0 for difference in differences)
    return (
        f"The content bias changes the loss by {min(differences):+.3f} to {max(differences):+.3f}, and lowers it in {lower} of "
        f"the {len(differences)} pairs (scheme, seed, projection biases) that differ in nothing else."
    )


def heads():
    return setting_table("ablation-heads", "test_loss", 3, {f"{n} heads of {128 // n}": {"heads": str(n)} for n in (2, 4, 8)})


def found_by_start(scheme, name, figure, digits):
    """Returns {deviation: "mean ± deviation"} of a comparison that sweeps it or names it; mhe_mul with its offset of
    1."""
    results = load(name)
    if not results["options"]["sweep"]:
        return {results["options"]["mhe-deviation"]: with_deviation(rows_by_scheme(results)[scheme][figure], digits)}
    fixed = {"mhe-mul-offset": 1.0} if "mhe-mul-offset" in results["rows"][0]["settings"][0]["setting"] else {}
    found = by_setting(name, figure, digits, **fixed)
    return {float(dict(setting)["mhe-deviation"]): text for (one, setting), text in found.items() if one == scheme}


def starts():
    """Tabulates where head embeddings start: a row for each deviation."""
    sources = {
        "offsets": ("quality", 3, ["ablation-mhe-offsets", "ablation-mhe-add-offsets"]),
        "induction": ("quality", 3, ["induction", "ablation-mhe-add-induction", "induction-mhe"]),
        "text": ("test_loss", 3, ["ablation-mhe", "ablation-mhe-add-text"]),
        "demo's text": ("test_loss", 2, ["ablation-mhe-start"]),
    }
    columns = {}
    for what, (figure, digits, names) in sources.items():
        for scheme in ("mhe_add", "mhe_mul"):
            column = columns[f"{what}: `{scheme}`"] = {}
            for name in names:
                results = load(name)
                if results and scheme in rows_by_scheme(results):
                    column |= found_by_start(scheme, name, figure, digits)
    deviations = sorted(set().union(*columns.values()))
    rows = [[f"{start:g}", *(column.get(start, "-") for column in columns.values())] for start in deviations]
    return table(["start", *columns], rows)


def mean_loss(rows):
    return f"{sum(row['validation_loss']['mean'] for row in rows) / len(rows):.3f}"


def preset_positions():
    """Tabulates which positions leave the plateau within the steps of the quick preset."""
    results = load("preset-positions")
    schemes = [row["scheme"] for row in results["rows"]]
    body = []
    for setting, rows in settings_of(results).items():
        values = dict(setting)
        losses = [with_deviation(rows[scheme]["validation_loss"], 2) for scheme in schemes]
        body.append([values["positions"], values["learning-rate"], *losses])
    return table(["positions", "learning rate", *(f"`{scheme}`" for scheme in schemes)], body)


def encoder_rates():
    """Tabulates the validation loss of longer-trained encoders after their first 400 steps, by rate; one seed."""
    results = load("long-mlm-rates")
    schemes = [row["scheme"] for row in results["rows"]]
    body = [
        [dict(setting)["learning-rate"], *(f"{rows[scheme]['validation_loss']['mean']:.2f}" for scheme in schemes)]
        for setting, rows in settings_of(results).items()
    ]
    return table(["learning rate", *(f"`{scheme}`" for scheme in schemes)], body)


PRESETS = {"preset-quick": "demo's text", **{f"preset-{task}": task for task in TASKS},
           "joint-recall": "joint-recall", "k-gram": "k-gram", "preset-small": "WikiText-2 (`small`, 500 steps)"}  # fmt: skip


def preset_rates():
    """Tabulates the validation loss of every scheme at the rates that were tried for a preset, and the mean over the
    schemes."""
    body = []
    for name, what in PRESETS.items():
        results = load(name)
        for setting, rows in settings_of(results).items() if results else ():
            losses = {scheme: "-" for scheme in SCHEMES}
            losses |= {scheme: with_deviation(row["validation_loss"], 2) for scheme, row in rows.items()}
            body.append(([what, dict(setting)["learning-rate"], mean_loss(rows.values())], losses))
    return table_by_scheme(["preset on", "learning rate", "mean"], body)


STARTED_ON = {"text": "demo's text", "shakespeare": "tiny shakespeare", "offsets": "offsets", "induction": "induction", "dyck": "dyck"}


def own_starts(prefix, scheme, option):
    """Tabulates a scheme's validation loss by where its own weights start, a column for each of STARTED_ON."""
    found = {what: by_setting(f"{prefix}-{name}", "validation_loss", 3) for name, what in STARTED_ON.items() if load(f"{prefix}-{name}")}
    starts = sorted({dict(setting)[option] for settings in found.values() for _, setting in settings}, key=float)
    body = [[start, *(settings[scheme, frozenset({(option, start)})] for settings in found.values())] for start in starts]
    return table(["start", *found], body)


def mixing_starts():
    return own_starts("start-mixing", "collaborative", "mixing-deviation")


def residual_starts():
    return own_starts("start-residual", "lrkv", "kv-residual-start")


def weight_starts():
    """Tabulates the validation loss of every scheme by the deviation from which all weights but the schemes' own
    start."""
    columns = {f"{deviation:g}": {"init-deviation": f"{deviation:g}"} for deviation in (0.01, 0.02, 0.05)}
    return setting_table("start-weights", "validation_loss", 3, columns)


TABLES = {table.__name__: table for table in (diagnostics, steps_to_solve, separating, texts, preset_positions, preset_rates, encoder_rates, starts, mixing_starts, residual_starts, weight_starts, biases, heads)}

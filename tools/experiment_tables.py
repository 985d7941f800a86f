"""Tables of docs/results/README.md: what the queue's comparisons (docs/results/compare/NAME.json) found.

A function returns Markdown; what is not finished yet has no row, column or figure.
"""

import pathlib
import re

import comparison_results

HOME = pathlib.Path(__file__).resolve().parents[1] / "docs/results/compare"
LIST = HOME.parents[2] / "headshare/attention/schemes.inc"
# Those that are trained: el_lossless computes with mha's weights.
SCHEMES = tuple(name for name in re.findall(r"^HS_SCHEME\((\w+)\)", LIST.read_text(), re.MULTILINE) if name != "el_lossless")
TASKS = ("offsets", "recall", "induction", "dyck")


def table(headings, rows):
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def load(name):
    path = HOME / f"{name}.json"
    return comparison_results.read(path) if path.exists() else None


def rows_by_scheme(results):
    return {row["scheme"]: row for row in results["rows"]}


def with_deviation(summary, digits):
    if summary is None:  # every model failed
        return "-"
    text = f"{summary['mean']:.{digits}f}"
    return text if summary["deviation"] is None else f"{text} ± {summary['deviation']:.{digits}f}"


def retention(value, digits):
    if value["value"] is None:
        return "-"
    text = f"{value['value']:.{digits}f}"
    interval = value["interval"]
    return text if interval is None else f"{text} [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"


def mark(row):
    """An arrow where the interval of the difference to mha, over seeds, is without 0."""
    minus = row["minus_reference"]
    if minus is None:
        return ""
    low, high = minus["interval_over_seeds"]
    return " ↓" if high < 0 else " ↑" if low > 0 else ""


def start_of(options):
    start = options["mhe-deviation"]
    return "default" if start == "auto" else f"{start:g}"


def task_runs():
    """Every finished comparison on a diagnostic task, by task, positions and depth; sweeps are in other tables."""
    runs = []
    for path in sorted(HOME.glob("*.json")):
        results = comparison_results.read(path)
        options = results["options"]
        if results["subject"]["name"] in TASKS and not options["sweep"]:
            harder = f", {options['pairs']} pairs" if options["task"] == "recall" and options["pairs"] != 4 else ""
            name = f"{options['task']}{harder}"
            key = (TASKS.index(options["task"]), harder, options["positions"] != "learned", options["positions"], options["layers"])
            runs.append((key, start_of(options), name, results))
    return sorted(runs, key=lambda run: run[:2])


def diagnostics():
    def cell(rows, scheme):
        row = rows.get(scheme)
        if row is None or row["quality"] is None:
            return "-"
        return f"{row['quality']['mean']:.3f}{mark(row)}"

    table_rows = []
    for _, start, name, results in task_runs():
        options, rows = results["options"], rows_by_scheme(results)
        what = [name, options["positions"], str(options["layers"]), str(options["seeds"]), start]
        table_rows.append([*what, *(cell(rows, scheme) for scheme in SCHEMES)])
    headings = ["task", "positions", "layers", "seeds", "MHE from", *(f"`{scheme}`" for scheme in SCHEMES)]
    return table(headings, table_rows)


def texts():
    names = [name for name in ("shakespeare", "shakespeare-mhe", "wikitext") if load(name)]
    rows = {name: rows_by_scheme(load(name)) for name in names}

    def cell(name, scheme):
        row = rows[name].get(scheme)
        if row is None:
            return ["-", "-"]
        return [with_deviation(row["quality"], 2), retention(row["prr"], 1)]

    headings = ["scheme", "attention parameters"]
    for name in names:
        headings += [f"{name}: perplexity", "PRR"]
    share = {s: rows["shakespeare"][s]["attention_parameters"] / rows["shakespeare"]["mha"]["attention_parameters"] for s in SCHEMES}
    body = [
        [f"`{scheme}`", f"{100 * share[scheme]:.0f} %", *(text for name in names for text in cell(name, scheme))]
        for scheme in SCHEMES
    ]
    return table(headings, body)


def by_setting(name, figure, digits, **fixed):
    """{(scheme, setting): "mean ± deviation"}; the setting is a frozenset of the swept options that are not fixed."""
    found = {}
    results = load(name)
    for row in results["rows"] if results else []:
        for one in row["settings"]:
            swept = dict(part.split("=") for part in one["setting"].split())
            if all(float(swept.pop(key)) == value for key, value in fixed.items()):
                found[row["scheme"], frozenset(swept.items())] = with_deviation(one[figure], digits)
    return found


def setting_table(name, figure, digits, columns):
    """A row for each scheme, a column for each setting; columns: heading -> {option: value}."""
    found = by_setting(name, figure, digits)
    rows = [
        [f"`{scheme}`", *(found.get((scheme, frozenset(setting.items())), "-") for setting in columns.values())]
        for scheme in SCHEMES
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
    """A sentence on the models that differ in nothing but their content bias."""
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
    """{deviation: "mean ± deviation"} of a comparison that sweeps it or names it; mhe_mul with its offset of 1."""
    results = load(name)
    if not results["options"]["sweep"]:
        return {results["options"]["mhe-deviation"]: with_deviation(rows_by_scheme(results)[scheme][figure], digits)}
    fixed = {"mhe-mul-offset": 1.0} if "mhe-mul-offset" in results["rows"][0]["settings"][0]["setting"] else {}
    found = by_setting(name, figure, digits, **fixed)
    return {float(dict(setting)["mhe-deviation"]): text for (one, setting), text in found.items() if one == scheme}


def starts():
    """Where head embeddings start: a row for each deviation."""
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


def share_of_mha(rows, scheme):
    return f"{100 * rows[scheme]['attention_parameters'] / rows['mha']['attention_parameters']:.0f} %"


def encoders():
    """What masked-LM pre-training came to. One seed: the interval is over blocks of text."""
    results = load("encoders")
    rows = rows_by_scheme(results)
    body = []
    for scheme, row in rows.items():
        minus = row["minus_reference"]
        over = "-" if minus is None else "{:+.3f} [{:+.3f}, {:+.3f}]".format(minus["mean"], *minus["interval_over_blocks"])
        figures = [f"{row['test_loss']['mean']:.3f}", over, f"{row['scores']['pseudo-perplexity']['mean']:.1f}"]
        body.append([f"`{scheme}`", share_of_mha(rows, scheme), *figures, retention(row["prr"], 1), retention(row["peop"], 2)])
    headings = ["scheme", "attention parameters", "masked-LM loss", "difference to mha", "pseudo-perplexity", "PRR", "PEoP"]
    entropy = re.search(r"unigram entropy [\d.]+ nats", results["subject"]["data"])[0]
    return table(headings, body) + f"\n\nTest part; {entropy}."


BENCHMARKS = {"glue": "GLUE", "superglue": "SuperGLUE", "squad-v1": "SQuAD v1.1", "squad-v2": "SQuAD v2.0"}


def finished_benchmarks():
    """{name: rows by scheme} of the benchmarks that encoders were fine-tuned on, or of the half that has mha."""
    found = {name: load(name) or load(f"{name}-1") for name in BENCHMARKS}
    return {name: rows_by_scheme(results) for name, results in found.items() if results}


def for_each_benchmark(headings, cells):
    """A line for each scheme: its attention parameters, then of each benchmark's row what `cells` makes of it."""
    found = finished_benchmarks()
    first = next(iter(found.values()))  # begun first, so that it has every scheme
    body = []
    for scheme in first:
        line = [f"`{scheme}`", share_of_mha(first, scheme)]
        for rows in found.values():
            line += cells(rows[scheme]) if scheme in rows else ["-"] * len(headings(""))
        body.append(line)
    return table(["scheme", "attention parameters", *(one for name in found for one in headings(BENCHMARKS[name]))], body)


def finetuned():
    """The MHE paper's first table: the average score of each scheme on each benchmark."""
    return for_each_benchmark(lambda name: [name], lambda row: [with_deviation(row["quality"], 1) + mark(row)])


def finetuned_retention():
    """Its other half: PRR and PEoP."""
    return for_each_benchmark(
        lambda name: [f"{name}: PRR", f"{name}: PEoP"], lambda row: [retention(row["prr"], 1), retention(row["peop"], 2)]
    )


def finetuned_tasks():
    """Each task's score by scheme, of benchmarks that have several."""
    body = []
    found = list(finished_benchmarks().values())
    schemes = list(found[0])
    for rows in found:
        tasks = rows["mha"]["tasks"]
        for index, task in enumerate(tasks if len(tasks) > 1 else []):
            scores = [with_deviation(rows[scheme]["tasks"][index]["score"], 1) if scheme in rows else "-" for scheme in schemes]
            body.append([task["task"], *scores])
    return table(["task", *(f"`{scheme}`" for scheme in schemes)], body)


TABLES = {table.__name__: table for table in (diagnostics, texts, starts, biases, heads, encoders, finetuned, finetuned_retention, finetuned_tasks)}

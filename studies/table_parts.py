"""Holds what the tables of docs/results/ are made of: results as they are kept, and figures as text."""

import math
import pathlib
import statistics

import comparison_results
import judging

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "docs/results"
HOME = RESULTS / "compare"


def tables_of_files(functions):
    """Returns {name: a table without arguments} of {function: the files NAME of docs/results/NAME.json that it
    takes}."""

    def from_files(function, names):
        return lambda: function(*(comparison_results.read(RESULTS / f"{name}.json") for name in names))

    return {function.__name__: from_files(function, names) for function, names in functions.items()}


def table(headings, rows):
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def load(name, home=HOME):
    path = home / f"{name}.json"
    return comparison_results.read(path) if path.exists() else None


def load_result(name):
    """Returns docs/results/NAME.json, or None before it is measured."""
    return load(name, RESULTS)


ARROWS = {-1: " ↓", 0: "", 1: " ↑"}
# Differences to mha below these carry no arrow.
SMALLEST_ACCURACY = 0.01
SMALLEST_SCORE = 1.0  # of 100
SMALLEST_LOSS = 0.01  # nats; a conversion that costs less has no share of them that says anything
MARGIN = 0.02  # of a perplexity: a scheme is kept where its whole interval loses less (docs/design/025)
CEILING = 0.99  # accuracy that nothing can be said above


def rows_by_scheme(results):
    return {row["scheme"]: row for row in results["rows"]}


def arrows_of(comparisons, smallest):
    """Returns the arrows of a table of several comparisons {name: results}: {(name, scheme): " ↓" or " ↑"}
    (judging.arrows)."""
    found = judging.arrows({name: judging.differences(results) for name, results in comparisons.items()}, smallest)
    schemes = {name: {row["variant"]: row["scheme"] for row in results["rows"]} for name, results in comparisons.items()}
    return {(name, schemes[name][variant]): ARROWS[direction] for (name, variant), direction in found.items()}


def with_deviation(summary, digits):
    if summary is None:  # every model failed
        return "-"
    text = f"{summary['mean']:.{digits}f}"
    return text if summary["deviation"] is None else f"{text} ± {summary['deviation']:.{digits}f}"


def with_interval(difference, digits, arrow=""):
    """Writes a judging.Difference, None of the reference itself; two seeds have no interval."""
    if difference is None:
        return "-"
    low_high = f" [{difference.interval[0]:+.{digits}f}, {difference.interval[1]:+.{digits}f}]" if difference.interval else ""
    return f"{difference.mean:+.{digits}f}{low_high}{arrow}"


def mark_of_loss(difference, direction):
    """Returns the mark at a difference of losses: an arrow where it is significant (up: the loss is lower), else "kept"
    where the whole interval loses less than MARGIN of the perplexity."""
    if difference is None or direction:
        return ARROWS[-direction]
    return " kept" if difference.interval and difference.interval[1] < math.log1p(MARGIN) else ""


def written_ratio(ours, theirs):
    """Writes the per cent that the mean of {seed: value} is of another's, with Fieller's interval over paired seeds."""
    seeds = sorted(ours.keys() & theirs.keys())
    pairs = [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]
    text = f"{100 * statistics.fmean(pairs[0]) / statistics.fmean(pairs[1]):.1f}"
    interval = judging.ratio_interval(*pairs)
    return text + (f" [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]" if interval else "")


def spread(values):
    return f"{statistics.fmean(values):.3f} ± {statistics.stdev(values):.3f}"


def student_interval(values, digits):
    """Writes the mean of a few independent values with its 95 % interval."""
    half = judging.half_width_factor(len(values), 1) * statistics.stdev(values)
    center = statistics.fmean(values)
    return f"{center:.{digits}f} [{center - half:.{digits}f}, {center + half:.{digits}f}]"


def difference_of_means(ours, theirs, digits):
    """Writes the difference of two means of independent values with Student's 95 % interval."""
    freedom = len(ours) + len(theirs) - 2
    squares = sum(statistics.variance(values) * (len(values) - 1) for values in (ours, theirs))
    half = judging.student_t(freedom, 1 - (1 - judging.CONFIDENCE) / 2)
    half *= math.sqrt(squares / freedom * (1 / len(ours) + 1 / len(theirs)))
    center = statistics.fmean(ours) - statistics.fmean(theirs)
    return f"{center:+.{digits}f} [{center - half:+.{digits}f}, {center + half:+.{digits}f}]"


def retention(value, digits, seeds=judging.FEWEST_SEEDS):
    """Writes a retention with its interval, unless it rests on so few seeds that these may agree by luck."""
    if value["value"] is None:
        return "-"
    text = f"{value['value']:.{digits}f}"
    interval = value["interval"] if seeds >= judging.FEWEST_SEEDS else None
    return text if interval is None else f"{text} [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"


def settings_of(results):
    """Returns {setting as a dictionary's items: {variant: its row for that setting}}, in the order of the sweep."""
    found = {}
    for row in results["rows"]:
        for setting in row.get("settings", [row]):  # a sweep of one setting has no list
            values = tuple(item.split("=") for item in setting["setting"].split())
            found.setdefault(tuple(map(tuple, values)), {})[row["variant"]] = setting
    return found


def share_of_mha(rows, scheme):
    return f"{100 * rows[scheme]['attention_parameters'] / rows['mha']['attention_parameters']:.0f} %"


# These are the titles of a task, "glue/sst-2" or "sst-2".
TASK_TITLES = {"sst-2": "SST-2", "mrpc": "MRPC", "qnli": "QNLI", "qqp": "QQP", "wic": "WiC", "cola": "CoLA", "rte": "RTE", "mnli": "MNLI",
               "wnli": "WNLI", "boolq": "BoolQ", "cb": "CB", "copa": "COPA", "wsc": "WSC", "multirc": "MultiRC"}  # fmt: skip


def measured_by(results, cells):
    """Names the machines and the programs that measured some cells of a study."""
    commits = sorted({cell["commit"] for cell in cells})
    processors = sorted({cell.get("processor", results["environment"]["processor"]) for cell in cells})
    return f"{' and '.join(processors)}, commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}."


def title_of(task):
    return TASK_TITLES[task.rpartition("/")[2]]

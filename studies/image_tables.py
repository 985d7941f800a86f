"""Makes tables of docs/results/images.md: vision transformers by scheme on MNIST and on CIFAR-10's subset."""

import json

import judging
from table_parts import (
    ARROWS,
    RESULTS,
    SMALLEST_ACCURACY,
    SMALLEST_LOSS,
    difference_of_means,
    load,
    settings_of,
    share_of_mha,
    student_interval,
    table,
    with_deviation,
    with_interval,
)

assert SMALLEST_ACCURACY == SMALLEST_LOSS  # one bound serves both columns
SMALLEST_DIFFERENCE = SMALLEST_LOSS

DATA = {"images-mnist": "MNIST", "images-cifar": "CIFAR-10's subset"}
RATES = {"MNIST": ("images-rates", "images-rates-high"), "CIFAR-10's subset": ("images-cifar-rates-low", "images-cifar-rates")}


def losses(results):
    """Returns {variant: {seed: test loss}}."""
    found = {}
    for cell in results["cells"]:
        found.setdefault(cell["variant"], {})[cell["seed"]] = cell["test_loss"]
    return found


def images():
    """Tabulates accuracy and loss on test images. Holm's correction is over all differences of both tables."""
    found = {name: load(name) for name in DATA if load(name)}
    over_accuracy = {name: judging.differences(results) for name, results in found.items()}
    over_loss = {name: judging.against(losses(results), "mha") for name, results in found.items()}
    all_differences = {(name, "accuracy"): of for name, of in over_accuracy.items()} | {(name, "loss"): of for name, of in over_loss.items()}
    arrows = judging.arrows(all_differences, SMALLEST_DIFFERENCE)
    parts = []
    for name, results in found.items():
        rows, over = {row["variant"]: row for row in results["rows"]}, over_accuracy[name]
        body = []
        for variant, row in rows.items():
            loss = over_loss[name].get(variant)
            hundred = {key: 100 * row["quality"][key] for key in ("mean", "deviation")}
            better, lower = (arrows.get(((name, figure), variant), 0) for figure in ("accuracy", "loss"))
            accuracy = [with_deviation(hundred, 2), with_interval(of_hundred(over.get(variant)), 2, ARROWS[better])]
            mark = ARROWS[-lower]
            body.append([f"`{variant}`", share_of_mha(rows, variant), *accuracy, with_deviation(row["test_loss"], 3), with_interval(loss, 3, mark)])
        headings = ["variant", "attention parameters", "accuracy", "minus mha's", "test loss", "minus mha's"]
        images_scored, seeds = results["cells"][0]["signature"].rpartition(":")[2], row["quality"]["count"]
        note = f"{DATA[name]}: {seeds} seeds, {int(images_scored):,} test images. From {100 * judging.smallest_visible(over):.2f} points and"
        note += f" {judging.smallest_visible(over_loss[name]):.3f} nats on a difference can be significant by its interval."
        parts.append(table(headings, body) + "\n\n" + note)
    return "\n\n".join(parts)


def of_hundred(difference):
    if difference is None:
        return None
    interval = difference.interval and tuple(100 * end for end in difference.interval)
    return judging.Difference(100 * difference.mean, interval, difference.p)


def images_rates():
    """Tabulates the loss on validation images by learning rate, one seed each: it chose the rates."""
    rates, found = {}, {}
    for data, names in RATES.items():
        for results in map(load, names):
            for setting, rows in settings_of(results).items():
                rate = float(dict(setting)["learning-rate"])
                rates.setdefault(data, set()).add(rate)
                for variant, row in rows.items():
                    found.setdefault(variant, {})[data, rate] = f"{row['validation_loss']['mean']:.3f}"
    columns = [(data, rate) for data in rates for rate in sorted(rates[data])]
    headings = ["scheme", *(f"{data}, {rate:g}" for data, rate in columns)]
    return table(headings, [[f"`{variant}`", *(cells.get(column, "-") for column in columns)] for variant, cells in found.items()])


def timm_twin():
    """Tabulates our trainer beside timm's model under the same recipe."""
    path = RESULTS / "timm-twin.json"
    if not path.exists():
        return "Not measured yet."
    twin = json.loads(path.read_text())["models"]
    ours = [cell for cell in load("images-cifar")["cells"] if cell["variant"] == "mha"]
    body = []
    for who, models, accuracy in (("headshare", ours, "quality"), ("timm", twin, "test_accuracy")):
        scores, losses_ = [100 * model[accuracy] for model in models], [model["test_loss"] for model in models]
        body.append([who, student_interval(scores, 1), student_interval(losses_, 3), " / ".join(f"{score:.1f}" for score in scores)])
    found = [100 * cell["quality"] for cell in ours], [100 * model["test_accuracy"] for model in twin]
    note = "Mean and 95 % interval; the last column has each seed's accuracy. headshare minus timm: "
    return table(["trainer", "accuracy", "test loss", "seeds"], body) + f"\n\n{note}{difference_of_means(*found, 1)} points."


TABLES = {table.__name__: table for table in (images, images_rates, timm_twin)}

"""Makes tables of docs/results/: token embeddings."""

import json
import statistics

import judging
from table_parts import (
    ARROWS,
    RESULTS,
    SMALLEST_SCORE,
    load,
    settings_of,
    table,
    title_of,
    with_deviation,
    with_interval,
    written_ratio,
)


def embedding_rates():
    """Tabulates the validation loss of every kind of token embedding at the rates that were tried."""
    rows = {}
    for name in ("embeddings-mlm-rates", "embeddings-rates", "embeddings-rates-lsh", "embeddings-rates-low"):
        for setting, found in settings_of(load(name)).items():
            for variant, row in found.items():
                rows.setdefault(named(variant), {})[float(dict(setting)["learning-rate"])] = with_deviation(row["validation_loss"], 3)
    rates = sorted({rate for losses in rows.values() for rate in losses})
    body = [[name, *(losses.get(rate, "-") for rate in rates)] for name, losses in rows.items()]
    return table(["token embedding", *(f"{rate:g}" for rate in rates)], body)


def named(variant):
    """Names a variant: mha+hash-md-proj is hash-md-proj; masked-LM needs a vocabulary, so that its comparisons have mha alone."""
    return "wordpiece, masked-LM" if variant == "mha" else f"`{variant.removeprefix('mha+')}`"


EMBEDDING_REFERENCE = "mha+wordpiece"


def embeddings_compared():
    """Tabulates encoders by token embedding, pre-trained and fine-tuned; seed i of fine-tuning starts from seed i of
    pre-training."""
    trained = {row["variant"]: row for row in load("embeddings")["rows"]}
    found = {name: load(name) for name in ("embeddings-glue-mlm", "embeddings-glue")}
    results = found["embeddings-glue"]
    qualities = {variant: by_seed for results in found.values() for variant, by_seed in quality_by_seed(results).items()}
    over = judging.against(qualities, EMBEDDING_REFERENCE)
    arrows = judging.arrows({"": over}, SMALLEST_SCORE)
    floor = statistics.fmean(results["subject"]["task_chances"])
    above = {variant: {seed: value - floor for seed, value in by_seed.items()} for variant, by_seed in qualities.items()}
    body = []
    for name, results in found.items():
        for row in results["rows"]:
            variant, judged = row["variant"], over.get(row["variant"])
            loss = with_deviation(trained[variant]["test_loss"], 3) if variant in trained else "-"
            counts = [f"{row[count]:,}" for count in ("embedding_parameters", "total_parameters")]
            minus = with_interval(judged, 1, ARROWS[arrows.get(("", variant), 0)])
            kept = written_ratio(above[variant], above[EMBEDDING_REFERENCE])
            scores = [with_deviation(task["score"], 1) for task in row["tasks"]]
            body.append([named(variant), *counts, loss, with_deviation(row["quality"], 1), minus, kept, *scores])
    body.append(["most frequent answer", "-", "-", "-", f"{floor:.1f}", "-", "-", *(f"{one:.1f}" for one in results["subject"]["task_chances"])])
    tasks = [title_of(task["task"]) for task in results["rows"][0]["tasks"]]
    headings = ["token embedding", "its parameters", "all", "three-way loss", f"mean of {len(tasks)} tasks", "minus wordpiece's", "of wordpiece's above the floor", *tasks]
    visible = judging.smallest_visible(over)
    share = 100 * visible / statistics.fmean(above[EMBEDDING_REFERENCE].values())
    note = f"Per cent, ± the deviation over {len(above[EMBEDDING_REFERENCE])} seeds. From {visible:.1f} points on, {share:.0f} % of what `wordpiece` has above the floor,"
    return table(headings, body) + f"\n\n{note} a difference can be significant by its interval."


def quality_by_seed(results):
    found = {}
    for cell in results["cells"]:
        found.setdefault(cell["variant"], {})[cell["seed"]] = cell["quality"]
    return found


def hash_claims():
    """Tabulates what each step of the paper costs in mean score: fewer parameters than a row for each bucket, hashes of
    pieces."""
    qualities = quality_by_seed(load("embeddings-glue"))
    kinds = ("pool", "add", "proj")
    pairs = [(f"mha+hash-{hashing}-{kind}", f"mha+hash-{hashing}-emb") for hashing in ("md", "lsh") for kind in kinds]
    pairs += [(f"mha+hash-lsh-{kind}", f"mha+hash-md-{kind}") for kind in ("emb", *kinds)]
    pairs = [pair for pair in pairs if set(pair) <= set(qualities)]
    judged = judging.judge({
        (ours, theirs): [value - qualities[theirs][seed] for seed, value in qualities[ours].items() if seed in qualities[theirs]]
        for ours, theirs in pairs
    })
    arrows = judging.arrows({"": judged}, SMALLEST_SCORE)
    body = [
        [f"{named(ours)} minus {named(theirs)}", with_interval(one, 1, ARROWS[arrows.get(("", (ours, theirs)), 0)])]
        for (ours, theirs), one in judged.items()
    ]
    return table(["token embeddings", "mean score"], body)


ROBUST_TASK = "sst-2"  # the one task that every kind learns: a model at chance has nothing to lose


def robustness():
    """Tabulates accuracy on SST-2 where one word in ten has a typing error, or is one that no training text has."""
    results = json.loads((RESULTS / "robustness.json").read_text())
    scores, means = {}, {}  # of (variant, change) by seed: on that task, and over all
    for one in results["scores"]:
        key, value = (one["variant"], one["change"]), 100 * one["metrics"]["score"]
        if one["task"] == ROBUST_TASK:
            scores.setdefault(key, {})[one["seed"]] = value
        means.setdefault(key, []).append(value)
    variants = list(dict.fromkeys(variant for variant, _ in scores))
    titles = {"typos": "typing errors", "unseen": "unseen words"}

    columns = {
        change: judging.against({variant: scores[variant, change] for variant in variants}, EMBEDDING_REFERENCE) for change in titles
    }
    arrows = judging.arrows(columns, SMALLEST_SCORE)
    body = []
    for variant in sorted(variants, key=lambda variant: (variant != "mha", variants.index(variant))):
        row = [named(variant), spread_of(scores[variant, "none"])]
        for change, judged in columns.items():
            over = judged.get(variant)
            lost = statistics.fmean(scores[variant, "none"].values()) - statistics.fmean(scores[variant, change].values())
            row += [spread_of(scores[variant, change]), f"{lost:.1f}", with_interval(over, 1, ARROWS[arrows.get((change, variant), 0)])]
        row += [" / ".join(f"{statistics.fmean(means[variant, change]):.1f}" for change in ("none", *titles))]
        body.append(row)
    headings = ["token embedding", "SST-2"]
    for title in titles.values():
        headings += [title, "lost", "minus wordpiece's"]
    headings += ["four tasks: unchanged / " + " / ".join(titles.values())]
    machine = results["environment"]
    subject = load("embeddings-glue")["subject"]
    floor = dict(zip(subject["tasks"], subject["task_chances"], strict=True))[f"glue/{ROBUST_TASK}"]
    return table(headings, body) + f"\n\nPer cent, ± the deviation over seeds; the most frequent answer of SST-2 scores {floor:.1f}; {machine['processor']}, commit {machine['commit']}."


def spread_of(by_seed):
    values = list(by_seed.values())
    return f"{statistics.fmean(values):.1f}" + (f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else "")


TABLES = {table.__name__: table for table in (embedding_rates, embeddings_compared, hash_claims, robustness)}

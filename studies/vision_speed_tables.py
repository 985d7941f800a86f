"""Makes tables of docs/results/: how fast vision transformers are trained and tell classes, in how much memory. Each table
takes the part of bench/vision that was measured."""

import comparison_results
from speed_parts import rows_of, versions
from table_parts import RESULTS, table

OTHERS = {"transformers_eager": "eager", "transformers_sdpa": "sdpa", "transformers_compiled": "torch.compile"}


NOTHING = "Not measured yet."
STEP, CLASSIFYING = "training step", "classifying"


def part(name):
    """Returns the results and their rows of a part of bench/vision, those of attention for None; no rows where it was not
    measured."""
    path = RESULTS / "bench_vision.json"
    if not path.exists():
        return None, []
    results = comparison_results.read(path)
    named = {STEP: [], CLASSIFYING: [], None: []}
    for row in rows_of(results):
        named[row["name"] if row["name"] in named else None].append(row)
    return results, sorted(named[name], key=lambda row: row["threads"])


def contender_name(row):
    other = OTHERS.get(row["contender"])
    return f"transformers, {other}" if other else f"headshare, `{row['scheme']}`"


def ratios_of(row, kind=""):
    """Writes what the figure is relative to each other contender's; "-" in the rows of these."""
    found = [row.get(f"{kind}ratio_to_{name}") for name in OTHERS]
    return ["-" if ratio is None else f"{ratio:.2f}" for ratio in found]


def timed(rows):
    """Says how times were taken, by the numbers of threads that there are."""
    kinds = {1: "one thread in CPU seconds", 2: "two threads by the clock"}
    return ", ".join(kinds[threads] for threads in sorted({row["threads"] for row in rows}))


def vision_step():
    results, found = part(STEP)
    if not found:
        return NOTHING
    rows = [
        [str(row["threads"]), contender_name(row), f"{row['median_ms']:,.0f}", f"{row['images_per_second']:.1f}", *ratios_of(row),
         f"{row['step_bytes'] / 2**20:,.0f}", *ratios_of(row, "memory_")]
        for row in found
    ]  # fmt: skip
    first = found[0]
    note = (
        f"ViT-tiny: {first['layers']} layers of {first['width']}, {first['heads']} heads, {first['context']} tokens, {first['batch']} images, "
        f"{first['vocabulary']} classes, float32, dropout 0; {timed(found)}, medians of {min(row['repetitions'] for row in found)} steps or "
        "more. Memory is the peak of the process minus the peak of the same program with a tiny model. transformers "
        f"{results['environment']['transformers']}; {versions(results)}."
    )
    against = [f"x {name}" for name in OTHERS.values()]
    headings = ["threads", "step of", "ms", "images/s", *against, "MiB", *(f"of {name}" for name in OTHERS.values())]
    return f"{table(headings, rows)}\n\n{note}"


def vision_classifying():
    results, found = part(CLASSIFYING)
    if not found:
        return NOTHING
    rows = [
        [str(row["threads"]), str(row["batch"]), contender_name(row), f"{row['images_per_second']:.1f}", *ratios_of(row)]
        for row in found
    ]
    note = (
        f"ViT-tiny with random weights, float32; all have the same loss. {timed(found)[0].upper()}{timed(found)[1:]}, medians of {found[0]['repetitions']} "
        f"turns. transformers {results['environment']['transformers']}; {versions(results)}."
    )
    headings = ["threads", "images at once", "program", "images/s", *(f"x {name}" for name in OTHERS.values())]
    return f"{table(headings, rows)}\n\n{note}"


def vision_attention():
    results, found = part(None)
    found = [row for row in found if row["contender"] == "headshare"]
    if not found:
        return NOTHING
    worst = {}
    for row in found:
        worst.setdefault(row["scheme"], {}).setdefault((row["heads"], row["pass"]), []).append(row["ratio_to_torch_sdpa"])
    shapes = sorted({key for cells in worst.values() for key in cells})
    rows = [[f"`{scheme}`", *(f"{min(cells[shape]):.2f}" if shape in cells else "-" for shape in shapes)] for scheme, cells in worst.items()]
    note = f"Heads of {found[0]['head_width']}, {found[0]['queries']} tokens, float32; the worst of the thread counts. {versions(results)}."
    return f"{table(['scheme', *(f'{heads} heads, {passed}' for heads, passed in shapes)], rows)}\n\n{note}"


TABLES = {table.__name__: table for table in (vision_step, vision_classifying, vision_attention)}

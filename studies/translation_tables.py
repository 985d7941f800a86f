"""Makes the table of docs/results/translation.md: encoder-decoders whose rate ends at 0 (docs/design/078)."""

import judging
from curve_tables import by_seed, pair_differences
from table_parts import ARROWS, SMALLEST_LOSS, SMALLEST_SCORE, load, mark_of_loss, share_of_mha, table, with_deviation, with_interval, written_ratio

BLEU, LOSS = "quality", "test_loss"
# The first variant minus the second.
COMPARED = (("c32", "mha32"), ("c64", "mha64"), ("c32", "c8"), ("mhe_mul", "sha"), ("mhe_mul", "mhe_add"), ("mhe_mul", "mqa"), ("cross_mul", "encoder_mul"),
            ("cross_mul", "decoder_mul"))  # fmt: skip


def translation_figures(figure):
    """Returns {variant: {seed: BLEU or test loss}}, each at the rate that validation chose."""
    return by_seed(load("annealed"), figure)


def minus_mha(figure):
    return judging.against(translation_figures(figure), "mha")


def marks(bleu, losses):
    """Returns the directions of significant differences, with Holm's correction over both columns together."""
    found = judging.arrows({BLEU: bleu, LOSS: losses}, 0)
    smallest = {BLEU: (bleu, SMALLEST_SCORE), LOSS: (losses, SMALLEST_LOSS)}
    return {(figure, name): way for (figure, name), way in found.items() if abs(smallest[figure][0][name].mean) >= smallest[figure][1]}


def translation():
    """Tabulates encoder-decoders by variant: schemes in all three places, narrow keys, and MHE-MUL in one place."""
    results = load("annealed")
    rows = {row["variant"]: row for row in results["rows"]}
    scores, losses = translation_figures(BLEU), minus_mha(LOSS)
    differences = minus_mha(BLEU)
    directions = marks(differences, losses)
    body = []
    for name, row in rows.items():
        bleu, loss = differences.get(name), losses.get(name)
        body.append([
            f"`{name}`", share_of_mha(rows, name), f"{row['cache_bytes_per_token']:,}", f"{row['source_cache_bytes_per_token']:,}",
            row["setting"].rpartition("=")[2], with_deviation(row["quality"], 1), with_interval(bleu, 1, ARROWS[directions.get((BLEU, name), 0)]),
            "-" if bleu is None else written_ratio(scores[name], scores["mha"]),
            with_interval(loss, 3, mark_of_loss(loss, directions.get((LOSS, name), 0))),
        ])  # fmt: skip
    headings = ["variant", "attention parameters", "cache bytes/token", "of the source", "rate", "BLEU", "BLEU minus mha's", "PRR", "test loss minus mha's"]
    return table(headings, body) + f"\n\n{between()}\n\n{note(results, rows)}"


def between():
    """Tabulates differences between two variants, neither of which is mha."""
    scores, losses = translation_figures(BLEU), translation_figures(LOSS)
    pairs = [pair for pair in COMPARED if set(pair) <= scores.keys()]
    bleu, loss = pair_differences(scores, pairs), pair_differences(losses, pairs)
    body = [[f"`{pair[0]}` - `{pair[1]}`", with_interval(bleu[pair], 1), with_interval(loss[pair], 3)] for pair in pairs]
    return table(["difference", "BLEU", "test loss"], body)


def note(results, rows):
    seeds = sorted({row["quality"]["count"] for row in rows.values()})
    counts = f"{seeds[0]} seeds" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds, intervals from three on"
    return (
        f"{counts[0].upper()}{counts[1:]}, paired with mha's; intervals of a column hold together. Arrows take Holm's correction over both columns of the "
        f"first table. PRR has Fieller's interval. `{results['cells'][0]['signature']}`."
    )


TABLES = {"translation": translation}

"""Makes the table of docs/results/heads.md of which part heads need for themselves: query, key or value (docs/design/074)."""

import judging
from curve_tables import TOO_FEW, by_seed, difference_rows, pair_differences, with_three_seeds
from table_parts import SMALLEST_LOSS, mark_of_loss, table, with_deviation, with_interval

# What one vector for all heads replaces, by variant; the curve's comparison has those that are schemes of their own.
SHARED = {
    "mha": "nothing",
    "q": "query",
    "k": "key",
    "v": "value",
    "qk": "query, key",
    "qv": "query, value",
    "mqa": "key, value",
    "sha": "query, key, value",
}
WIDE = {"q_wide": "q", "k_wide": "k", "v_wide": "v", "qk_wide": "qk", "qv_wide": "qv", "kv_wide": "mqa", "sha_wide": "sha"}
# The first variant minus the second: four that were expected to say something, and two of as many parameters each.
COMPARED = (("qk", "sha"), ("qk", "mqa"), ("qv", "mqa"), ("q", "k"), ("v", "q"), ("v", "k"))
CURVE, PARTS, PARTS_WIDE = "curve-mlm", "parts-mlm", "parts-mlm-wide"


def losses_by_seed(found):
    """Returns {variant: {seed: test loss}} of several comparisons of one recipe."""
    return {variant: values for results in found for variant, values in by_seed(results, "test_loss").items()}


def heads_parts():
    """Tabulates the losses of encoders on masked tokens by what their heads share, with mha's parameters too."""
    found = [results for name in (CURVE, PARTS, PARTS_WIDE) if (results := with_three_seeds(name))]
    if len(found) < 2:
        return TOO_FEW
    losses = losses_by_seed(found)
    rows = {row["variant"]: row for results in found for row in results["rows"]}
    plain = judging.against({one: losses[one] for one in SHARED}, "mha")
    columns = {"difference to mha": plain}
    if all(one in losses for one in WIDE):
        wide = {of: losses[one] for one, of in WIDE.items()}
        columns["with mha's number of parameters"] = judging.against({"mha": losses["mha"], **wide}, "mha")
    arrows = judging.arrows(columns, SMALLEST_LOSS)

    def difference(column, variant):
        one = columns[column].get(variant)
        return with_interval(one, 3, mark_of_loss(one, arrows.get((column, variant), 0)))

    body = [
        [
            shared,
            f"{rows[one]['attention_parameters']:,}",
            with_deviation(rows[one]["test_loss"], 3),
            *(difference(column, one) for column in columns),
        ]
        for one, shared in SHARED.items()
    ]
    between = pair_differences({SHARED[one]: values for one, values in losses.items() if one in SHARED},
                               [tuple(SHARED[one] for one in pair) for pair in COMPARED])  # fmt: skip
    seeds = min(rows[one]["quality"]["count"] for one in SHARED)
    note = f"Test loss in nats; {seeds} seeds; one vector for all heads replaces what the first column names. "
    if len(columns) > 1:
        seeds = min(rows[one]["quality"]["count"] for one in WIDE)
        note += f"With mha's number of parameters the feed-forward is as much wider as attention has fewer ({seeds} seeds). "
    note += "Intervals hold for the differences of a column together; ↓ takes Holm's correction over all columns."
    headings = ["one for all heads", "attention parameters", "masked-LM loss", *columns]
    return table(headings, body) + "\n\n" + table(["difference", "loss"], difference_rows(between)) + "\n\n" + note


TABLES = {"heads_parts": heads_parts}

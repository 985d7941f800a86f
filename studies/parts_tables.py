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
# These differences were expected to say something: the first variant minus the second.
EXPECTED = (("qk", "sha"), ("qk", "mqa"), ("qv", "mqa"), ("q", "k"))
CURVE, PARTS, PARTS_WIDE = "curve-mlm", "parts-mlm", "parts-mlm-wide"


def heads_parts():
    """Tabulates the losses of encoders on masked tokens by what their heads share, with mha's parameters too."""
    found = [with_three_seeds(name) for name in (CURVE, PARTS, PARTS_WIDE)]
    if not all(found):
        return TOO_FEW
    losses = {variant: by_variant for results in found for variant, by_variant in by_seed(results, "test_loss").items()}
    rows = {row["variant"]: row for results in found for row in results["rows"]}
    plain = judging.against({one: losses[one] for one in SHARED}, "mha")
    wide = judging.against({"mha": losses["mha"], **{of: losses[one] for one, of in WIDE.items()}}, "mha")
    arrows = judging.arrows({"plain": plain, "wide": wide}, SMALLEST_LOSS)

    def difference(kind, judged, variant):
        return with_interval(judged.get(variant), 3, mark_of_loss(judged.get(variant), arrows.get((kind, variant), 0)))

    body = [
        [
            shared,
            f"{rows[one]['attention_parameters']:,}",
            with_deviation(rows[one]["test_loss"], 3),
            difference("plain", plain, one),
            difference("wide", wide, one),
        ]
        for one, shared in SHARED.items()
    ]
    between = pair_differences({SHARED[one]: values for one, values in losses.items() if one in SHARED},
                               [tuple(SHARED[one] for one in pair) for pair in EXPECTED])  # fmt: skip
    note = f"Test loss in nats; {rows['mha']['quality']['count']} seeds; one vector for all heads replaces what the first column names. The "
    note += "last column has a feed-forward as much wider as attention has fewer parameters. Intervals hold for the differences of a "
    note += "column together; ↓ takes Holm's correction over both columns."
    headings = ["one for all heads", "attention parameters", "masked-LM loss", "difference to mha", "with mha's number of parameters"]
    return table(headings, body) + "\n\n" + table(["difference", "loss"], difference_rows(between)) + "\n\n" + note


TABLES = {"heads_parts": heads_parts}

"""How fast are heads and their gradients computed, as training needs them?

As bench/attention_forward, with the gradients of all inputs, and with dropout on the attention weights.

    .venv/bin/python bench/attention_training/run.py --out build/bench/attention_training.json [--quick]
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402

PLAIN = dict(passes="training", dropout="0")
DROPOUT = dict(passes="training", dropout="0.1")
GRIDS = [
    dict(PLAIN, heads=[12, 16], lengths=512, key_widths=128),
    dict(PLAIN, heads=[12, 16], lengths=1024, key_widths=128),
    dict(PLAIN, heads=[12, 16], lengths=2048, key_widths=128),
    dict(PLAIN, heads=[12, 16], lengths=[512, 1024, 2048], schemes="gqa"),
    # Wide keys take a minute a case.
    dict(PLAIN, heads=[12, 16], lengths=[512, 1024, 2048], schemes="collaborative", key_widths=384, masks="full"),
    dict(PLAIN, heads=[12, 16], lengths=[512, 1024, 2048], precisions="bf16", schemes=["mha", "mhe_add"]),
    dict(DROPOUT, heads=[12, 16], lengths=[512, 2048], masks="full"),
    dict(DROPOUT, heads=[12, 16], lengths=[512, 2048], masks="full", dropout_masks="shared", schemes="mhe_add"),
    dict(DROPOUT, heads=[12, 16], lengths=1024, masks="full", schemes="collaborative"),
    dict(DROPOUT, heads=12, lengths=512, masks="causal"),
    # These have no bound: wide heads, few heads, short and odd sizes.
    dict(PLAIN, heads=32, head_width=128, lengths=512),
    dict(PLAIN, heads=8, lengths=512),
    dict(PLAIN, heads=12, lengths=128),
    dict(PLAIN, heads=7, head_width=59, lengths=257, tokens=771),
    dict(PLAIN, heads=[12, 16], lengths=[512, 1024, 2048], schemes=["sha", "skv", "el_shared"]),
    # These heads are as wide as the model: twelve times the products.
    dict(PLAIN, heads=12, lengths=512, schemes="el_lossless"),
]
QUICK = [dict(passes="training", schemes=["mha", "mqa"], heads=2, head_width=16, lengths=65, tokens=650, repetitions=3)]

if __name__ == "__main__":
    common.measure_attention(__doc__, GRIDS, QUICK)

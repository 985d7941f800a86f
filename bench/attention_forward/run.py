"""How fast are heads computed, without gradients?

`headshare bench attention` times headshare and torch's forms of scaled_dot_product_attention in one process;
transformers' eager attention, the same under torch.compile, torch's flex_attention under torch.compile and ONNX Runtime
are timed in turns with torch in Python.

    .venv/bin/python bench/attention_forward/run.py --out build/bench/attention_forward.json [--quick]
    .venv/bin/python bench/attention_forward/run.py --anchors --out build/bench/attention_anchors.json

The second measures mha and mqa alone, beside Python's contenders.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402

FORWARD = dict(passes="forward")
GRIDS = [
    dict(FORWARD, heads=[12, 16], lengths=[512, 1024, 2048], key_widths=[128, 384]),
    dict(FORWARD, heads=[12, 16], lengths=[512, 1024, 2048], schemes="gqa"),
    dict(FORWARD, heads=12, lengths=[512, 2048], precisions="bf16", schemes=["mha", "mhe_add"]),
    # These have no bound: wide heads, few heads, short and odd sizes.
    dict(FORWARD, heads=32, head_width=128, lengths=512),
    dict(FORWARD, heads=8, lengths=512),
    dict(FORWARD, heads=12, lengths=128),
    dict(FORWARD, heads=7, head_width=59, lengths=257, tokens=771),
    dict(FORWARD, heads=[12, 16], lengths=[512, 1024, 2048], schemes=["sha", "skv", "el_shared"]),
    # These heads are as wide as the model: twelve times the products.
    dict(FORWARD, heads=12, lengths=[512, 1024], schemes="el_lossless"),
]
ANCHORS = [
    dict(FORWARD, heads=12, lengths=[512, 1024, 2048], schemes=["mha", "mqa"]),
    dict(FORWARD, heads=12, lengths=[512, 2048], precisions="bf16", schemes="mha"),
]
QUICK = [dict(FORWARD, schemes=["mha", "mqa"], heads=2, head_width=16, lengths=65, tokens=65, repetitions=3)]

if __name__ == "__main__":
    common.measure_attention(__doc__, GRIDS, QUICK, ANCHORS)

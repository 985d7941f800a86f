"""How fast is the next token, and how large the cache it reads?

One query of each of 8 sentences against a cache of 8192 tokens, one layer, 12 heads. All schemes and all
contenders take turns, so their times compare; `ratio_to_mha` is headshare's mha over the row, and cache bytes
are those that KvCache took from the allocator.

    .venv/bin/python bench/decode/run.py --out build/bench/decode.json [--quick]
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402

SCHEMES = ["mha", "gqa", "mqa", "mhe_add", "mhe_mul", "collaborative"]
FLAGS = dict(schemes=SCHEMES, passes="forward", masks="causal", queries=1, key_widths=384, seconds=6)


def add_ratios_to_mha(rows):
    (mha,) = [row for row in rows if row["scheme"] == "mha" and row["contender"] == "headshare"]
    for row in rows:
        row["ratio_to_mha"] = mha["median_ms"] / row["median_ms"]
        row["cache_ratio_to_mha"] = mha["cache_bytes"] / row["cache_bytes"]


def main():
    arguments = common.arguments_of(__doc__)
    lengths, batch = (256, 2) if arguments.quick else (8192, 8)
    rows = []
    for threads in arguments.threads:
        flags = common.flags_of(dict(FLAGS, heads=12, lengths=lengths, batch_size=batch))
        mine = common.program_rows(arguments.program, "attention", threads, "--together", *flags)
        add_ratios_to_mha(mine)
        rows += mine
    common.write_results(arguments.out, arguments.program, rows)


if __name__ == "__main__":
    main()

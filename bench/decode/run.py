"""How fast is the next token, and how large the cache it reads?

One query of each of 8 sentences against a cache of 8192 tokens, one layer, 12 heads. All schemes and all contenders of
`headshare bench decode` take turns, so their times compare, and STREAM's copy and triad with them: `percent_of_stream`.
`ratio_to_mha` is headshare's mha over the row, cache bytes are those that KvCache took from the allocator, and
`byte_ratio_to_mqa` is how much of its cache a row reads in a second over mqa. torch's flex_attention under torch.compile
and ONNX Runtime are timed in turns with torch in Python, on the caches of mha, gqa and mqa.

    .venv/bin/python bench/decode/run.py --out build/bench/decode.json [--quick]
    .venv/bin/python bench/decode/run.py --out docs/results/bench_decode.json --part 2

Part 1 is the program's rows, part 2 Python's contenders on those rows; each leaves the other's rows as they are.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402
import results  # noqa: E402

SCHEMES = ["mha", "gqa", "mqa", "mhe_add", "mhe_mul", "collaborative", "mla"]
IN_PYTHON = ("mha", "gqa", "mqa")
FLAGS = dict(schemes=SCHEMES, key_widths=384, seconds=6)


def headshares(rows, scheme):
    (row,) = [row for row in rows if row["scheme"] == scheme and row["contender"] == "headshare"]
    return row


def add_ratios(rows):
    """Adds the ratios to headshare's mha, and of bytes a second to its mqa."""
    mha, mqa = headshares(rows, "mha"), headshares(rows, "mqa")
    for row in rows:
        row["ratio_to_mha"] = mha["median_ms"] / row["median_ms"]
        row["cache_ratio_to_mha"] = mha["cache_bytes"] / row["cache_bytes"]
        row["byte_ratio_to_mqa"] = (row["cache_bytes"] / row["median_ms"]) / (mqa["cache_bytes"] / mqa["median_ms"])


def measured_rows(program, threads, quick):
    lengths, batch = (256, 2) if quick else (8192, 8)
    rows = common.program_rows(program, "decode", threads, *common.flags_of(dict(FLAGS, heads=12, lengths=lengths, batch_size=batch)))
    add_ratios(rows)
    return rows


def python_cases(rows):
    """Returns the cases of Python's contenders, with the heads that the cache keeps of keys and of values."""
    cases = []
    for row in rows:
        if row["contender"] == "headshare" and row["scheme"] in IN_PYTHON:
            head_bytes = 2 * 4 * row["batch_size"] * row["keys"] * row["head_width"]
            cases.append(dict(row, memory_heads=row["cache_bytes"] // head_bytes))
    return cases


def is_python(row):
    return row["contender"].startswith("python_")


def main():
    arguments = common.arguments_of(__doc__, grids=2)
    parts = arguments.part or [1, 2]
    there = arguments.out.is_file()
    if 1 not in parts and not there:
        sys.exit(f"{arguments.out} does not exist, and part 2 goes on from its rows; run part 1 first")
    kept = common.Kept(arguments.out, arguments.program, adding=bool(arguments.part))
    earlier = results.rows_left(arguments.out, [], kept.commit) if arguments.part and there else []
    rows = []
    for threads in arguments.threads:
        if 1 in parts:
            mine = kept.get([threads, "program"], lambda: measured_rows(arguments.program, threads, arguments.quick))
        else:
            mine = [row for row in earlier if row["threads"] == threads and not is_python(row)]
        rows += mine
        rows += common.kept_python_rows(kept, python_cases(mine), threads) if 2 in parts else []
    left = [row for row in earlier if is_python(row) and 2 not in parts or row["threads"] not in arguments.threads]
    common.write_results(arguments.out, arguments.program, rows + left)
    kept.forget()


if __name__ == "__main__":
    main()

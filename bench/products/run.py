"""How fast are the matrix products of a training step? What they take bounds what anything else can gain.

`headshare bench products`: a feed-forward layer of GPT-2 and its output layer on 2,048 tokens, forward and both
gradients, and the products of attention tiles, by headshare and by the libtorch in the same process.

    .venv/bin/python bench/products/run.py --out build/bench/products.json [--quick]
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402


def main():
    arguments = common.arguments_of(__doc__)
    quick = ["--quick"] if arguments.quick else []
    rows = [
        row
        for threads in arguments.threads
        for row in common.program_rows(arguments.program, "products", threads, "--precisions", "fp32,bf16,bf16x3", *quick)
    ]
    common.write_results(arguments.out, arguments.program, rows)


if __name__ == "__main__":
    main()

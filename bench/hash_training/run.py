"""How long is a training step of an encoder without a vocabulary, against masked-LM?

`headshare train` alone, in the shapes 6 x 768 and 4 x 512 with 8 windows of 128 tokens each: masked-LM with WordPiece
vocabularies of 30,522 (BERT's) and 8,192, which has a softmax over the vocabulary for 15 in 100 tokens; the three-way
task of the same WordPiece encoders, which asks for every token but has three classes; and the three-way task with each
hashed embedding of `hash-md`. A contender's first three steps must be those of the plain formula of attention. Then
contenders take turns, each turn a new process whose first two steps are left out. Times are CPU seconds of one thread,
so that other work on the machine counts little. A row per contender: median and least time of a step, and
`ratio_to_masked_lm`: the median of masked-LM with 30,522 over its own.

    .venv/bin/python bench/hash_training/run.py --out build/bench/hash_training.json [--turns 3] [--quick]
"""

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402
import trainers  # noqa: E402

SHAPES = {
    "6 x 768": dict(layers=6, heads=12, width=768, context=128, batch=8, steps=2),
    "4 x 512": dict(layers=4, heads=8, width=512, context=128, batch=8, steps=4),
}
QUICK = {"quick": dict(layers=1, heads=2, width=128, context=64, batch=8, steps=2)}
CHECKED = dict(layers=1, heads=2, width=32, context=32, batch=2)
VOCABULARIES = (30522, 8192)
KINDS = ("hash-proj", "hash-add", "hash-pool", "hash-emb")


class Encoder(trainers.HeadshareCpu):
    """This contender is an encoder that learns `task` with these flags beside it."""

    def __init__(self, program, folder, case, name, flags):
        super().__init__(program, folder, case, "mha")
        self.name, self.flags = name, flags

    def task(self):
        return self.flags


def contenders(program, folder, case, vocabularies):
    found = []
    for vocabulary in vocabularies:
        own = folder / str(vocabulary)
        own.mkdir(exist_ok=True)
        sized = dict(case, vocabulary=vocabulary)
        trainers.write_inputs(own, sized)
        words = ["--tokenizer-path", trainers.tokenizer_of(own, sized)]
        masked = ["--task", "mlm", "--pseudo-tokens", "0", *words]
        found.append(Encoder(program, own, sized, f"masked-LM, {vocabulary}", masked))
        found.append(Encoder(program, own, sized, f"three-way, {vocabulary}", ["--task", "three-way", *words]))
    for kind in KINDS:
        flags = ["--task", "three-way", "--tokenizer", "hash-md", "--token-embedding", kind]
        found.append(Encoder(program, found[0].folder, case, f"three-way, {kind}", flags))
    return found


def measure(program, name, case, vocabularies, turns):
    with tempfile.TemporaryDirectory() as folder:
        chosen = contenders(program, pathlib.Path(folder), case, vocabularies)
        seconds = {one: [] for one in chosen}
        for turn in range(turns):
            at = turn % len(chosen)
            for one in chosen[at:] + chosen[:at]:
                seconds[one] += one.seconds(case["steps"])
    rows = []
    for one, times in seconds.items():
        row = dict(name=name, contender=one.name, scheme=one.scheme, **case, **common.summary(times))
        row.update(peak_bytes=one.peak_bytes)
        rows.append(row)
    baseline = next(row for row in rows if row["contender"] == f"masked-LM, {vocabularies[0]}")
    for row in rows:
        row["ratio_to_masked_lm"] = baseline["median_ms"] / row["median_ms"]
        figures = f"{row['median_ms']:9.1f} ms a step, ratio {row['ratio_to_masked_lm']:.2f}"
        print(f"  {row['contender']:22}{figures}, {row['peak_bytes'] / 2**20:6.0f} MiB", flush=True)
    return rows


def check(program, settings, vocabularies):
    """Checks every contender's first steps, in a small shape."""
    with tempfile.TemporaryDirectory() as folder:
        for one in contenders(program, pathlib.Path(folder), dict(CHECKED, **settings), vocabularies):
            one.start()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the JSON file to write")
    parser.add_argument("--program", type=pathlib.Path, default=common.ROOT / "build/headshare")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a tiny shape: shows that it works")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    settings = dict(model="bert", threads=arguments.threads, precision="fp32", dropout=0.1)
    vocabularies = (1100, 1050) if arguments.quick else VOCABULARIES
    check(program, settings, vocabularies)
    rows = []
    for name, shape in (QUICK if arguments.quick else SHAPES).items():
        print(f"{name}, {arguments.threads} threads", flush=True)
        rows += measure(program, name, dict(settings, **shape), vocabularies, 1 if arguments.quick else arguments.turns)
    common.write_results(arguments.out, program, rows)


if __name__ == "__main__":
    main()

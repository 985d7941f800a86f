"""How fast does headshare train ViT-tiny and tell classes of images, against transformers, and in how much memory?

Three parts, whose contenders take turns on the same threads. With one thread, times are CPU seconds, so that other work
on the machine favours neither; with more, seconds of the clock.

step: a training step of ViT-tiny (12 layers of 192, 3 heads, patches of 16 x 16, colour images of 224 x 224: 197 tokens)
  on 32 images, `headshare train` with the schemes mha and mhe_add against transformers' ViTForImageClassification with eager
  attention, with sdpa and under torch.compile. `step_bytes` is the process's highest resident memory minus that of the same
  program training a model of almost no size. Every first loss must be that of a model that knows nothing, and headshare's
  first steps must be those of the plain formula of attention.
classifying: images a second of one random ViT-tiny, read by `headshare convert`, one image and 32 at once. Both programs
  must have the same loss.
attention: `headshare bench attention` with 197 tokens, of ViT-tiny's 3 heads and ViT-base's 12.

    .venv/bin/python bench/vision/run.py --out build/bench/vision.json [--part step] [--threads 1] [--quick]
"""

import argparse
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import common  # noqa: E402
import classifying  # noqa: E402
import results  # noqa: E402
import step  # noqa: E402

GRIDS = [dict(heads=[3, 12], lengths=197, tokens=32 * 197, masks="full", passes=["forward", "training"], dropout="0")]
QUICK_GRIDS = [dict(heads=2, head_width=16, lengths=5, tokens=20, masks="full", passes="forward", repetitions=3)]


def measure_attention(program, quick, turns, threads):
    """Returns the program's rows; it takes turns by itself."""
    grids = QUICK_GRIDS if quick else GRIDS
    return [row for grid in grids for row in common.program_rows(program, "attention", threads, *common.flags_of(grid))]


PARTS = dict(step=step.measure, classifying=classifying.measure, attention=measure_attention)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the JSON file to write")
    parser.add_argument("--program", type=pathlib.Path, default=common.ROOT / "build/headshare")
    parser.add_argument("--part", action="append", choices=PARTS, help="measure this part alone; other rows stay")
    parser.add_argument("--threads", type=int, action="append", help="default: 1 and 2")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="tiny models: shows that it works")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    adding = bool(arguments.part or arguments.threads) and arguments.out.is_file()
    kept = common.Kept(arguments.out, program, adding=adding)
    turns = 1 if arguments.quick else arguments.turns
    rows = []
    for threads in arguments.threads or (1, 2):
        for part in arguments.part or PARTS:
            print(f"{part}, {threads} thread{'s' * (threads > 1)}", flush=True)
            measure = PARTS[part]
            rows += kept.get([part, threads, turns], lambda: measure(program, arguments.quick, turns, threads))
    if adding:
        rows += results.rows_left(arguments.out, rows, kept.commit)
    common.write_results(arguments.out, program, rows)
    kept.forget()


if __name__ == "__main__":
    main()

"""How fast does headshare translate and learn to translate, and what do shared heads bring with long sources?

Three parts, whose contenders take turns on the same threads. With one thread, times are CPU seconds, so that other work
on the machine favours neither; with more, seconds of the clock.

translating: the 1,000 test sentences of Multi30k with beam 4 and translations of fixed length, on the same random
  MarianMT model (3 + 3 layers of 256): `headshare translate` of the imported model, transformers' `generate` in batches
  of like length, and CTranslate2 in float32, converted by its own converter, in a virtual environment that the script
  makes in build/bench-venv (left out, by name, where it does not install). Translations are compared first.
step: a training step at 6 + 6 layers of 512, against transformers' MarianMTModel and torch.nn.Transformer. Numbers of
  parameters and tokens must be equal, and the first losses of headshare those of the plain formula of attention.
sources: sources of 16, 64, 256 and 512 tokens with beam 8, untrained models of five schemes.

    .venv/bin/python bench/translation/run.py --out build/bench/translation.json [--part step] [--sentences 100] [--quick]
"""

import argparse
import importlib.metadata
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import common  # noqa: E402
import inputs  # noqa: E402
import marian  # noqa: E402
import sources  # noqa: E402
import steps  # noqa: E402
import translating  # noqa: E402

PARTS = dict(translating=translating, step=steps, sources=sources)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the JSON file to write")
    parser.add_argument("--program", type=pathlib.Path, default=common.ROOT / "build/headshare")
    parser.add_argument("--part", action="append", choices=PARTS, help="default: all")
    parser.add_argument("--sentences", type=int, help="translate so many of the test sentences")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="tiny models: shows that it works")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    if not inputs.DATA.exists():
        sys.exit(f"no {inputs.DATA}: set HEADSHARE_DATA to the folder that has multi30k")
    turns = 1 if arguments.quick else arguments.turns
    kept = common.Kept(arguments.out, program)
    rows = []
    for name in arguments.part or PARTS:
        more = dict(count=arguments.sentences) if name == "translating" else {}
        settings = dict(quick=arguments.quick, turns=turns, threads=arguments.threads, **more)
        print(f"{name}, {arguments.threads} thread{'s' * (arguments.threads > 1)}", flush=True)
        rows += kept.get([name, settings], lambda: PARTS[name].measure(program, **settings))
    environment = common.environment(program)
    environment |= dict(ctranslate2=marian.CTRANSLATE2, sentencepiece=importlib.metadata.version("sentencepiece"))
    common.results.write(arguments.out, environment, rows)
    kept.forget()


if __name__ == "__main__":
    main()

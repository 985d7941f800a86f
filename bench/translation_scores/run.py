"""How fast are BLEU, chrF, TER and the paired bootstrap on one thread? headshare against sacreBLEU.

Scores a system of WMT17 English-German (3,004 lines, one reference); the paired bootstrap compares two systems with
1,000 resamples. Scores and p-values are compared before anything is timed. Seconds are CPU seconds and the contenders
take turns, so that other work on the machine favours neither. `headshare` and `sacrebleu` are the work alone: lines in
memory, a fresh metric each time, so that no cache of lines helps. `headshare_program` and `sacrebleu_program` are the
whole programs, from their start to their exit: loading libtorch or Python counts. Needs the tests' build
(obj/metrics/translation_tool) and the data sets ($HEADSHARE_DATA, default ../shared/data).

    .venv/bin/python bench/translation_scores/run.py --out build/bench/translation_scores.json [--quick]
"""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402
import results  # noqa: E402
import sacrebleu  # noqa: E402
from sacrebleu import significance  # noqa: E402
from sacrebleu.metrics import BLEU, CHRF, TER  # noqa: E402

DATA = pathlib.Path(os.environ.get("HEADSHARE_DATA", common.ROOT.parent / "shared" / "data")).resolve()
FOLDER = DATA / "wmt17-en-de-metrics"
SYSTEMS = ("newstest2017.LMU-nmt-reranked.4934.en-de", "newstest2017.KIT.4950.en-de")
METRICS = {"bleu": BLEU, "chrf": CHRF, "ter": TER}
SAMPLES = 1000


def lines_of(name, count):
    text = gzip.decompress((FOLDER / f"{name}.gz").read_bytes()).decode()
    return [line.rstrip() for line in text.split("\n")[:-1]][:count]


class Case:
    """A case is a metric on one system, or the paired bootstrap on two."""

    def __init__(self, metric, paired, reference, systems, folder, program):
        self.name = f"{metric}, paired bootstrap" if paired else metric
        self.metric, self.paired, self.reference = metric, paired, reference
        self.systems = systems[: 2 if paired else 1]
        files = [folder / f"{i}.txt" for i in range(len(self.systems))]
        known = folder / "reference.txt"
        for path, lines in zip([known, *files], [reference, *self.systems]):
            path.write_text("\n".join(lines) + "\n")
        test = ["--paired-bootstrap", SAMPLES] if paired else []
        self.ours = [program, "score", metric, *files, "--reference", known, *test]
        # sacreBLEU's JSON cannot hold chrF's numbers of single precision.
        test = ["--paired-bs", "--paired-bs-n", SAMPLES, "-f", "text"] if paired else []
        self.theirs = [sys.executable, "-m", "sacrebleu", known, "-i", *files, "-m", metric, *test]

    def request(self, passes=1):
        test = dict(test="bootstrap", samples=SAMPLES) if self.paired else {}
        call = dict(do="score", metric=self.metric, references=[self.reference], systems=self.systems, passes=passes)
        return json.dumps({**call, **test}) + "\n"

    def score_by_sacrebleu(self):
        metric = METRICS[self.metric](references=[self.reference])
        if not self.paired:
            return [(metric.corpus_score(self.systems[0], None).score, None)]
        named = [(str(i), lines) for i, lines in enumerate(self.systems)]
        _, scores = significance.PairedTest(named, {"x": metric}, None, test_type="bs", n_samples=SAMPLES)()
        (column,) = [value for name, value in scores.items() if name != "System"]
        return [(one.score, one.p_value) for one in column]


def ask(tool, request):
    done = subprocess.run([tool], input=request, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def process_seconds(action):
    began = time.process_time()
    action()
    return time.process_time() - began


def measure(case, tool, passes):
    ours = [(one["score"], one.get("p_value")) for one in ask(tool, case.request())["systems"]]
    theirs = case.score_by_sacrebleu()
    if ours != theirs:
        sys.exit(f"{case.name}: {ours}, but sacreBLEU has {theirs}: nothing was timed")
    contenders = {
        "headshare": lambda: ask(tool, case.request())["seconds"][0],
        "sacrebleu": lambda: process_seconds(case.score_by_sacrebleu),
        "headshare_program": lambda: common.timed_program(case.ours).seconds,
        "sacrebleu_program": lambda: common.timed_program(case.theirs).seconds,
    }
    seconds = common.in_turns(contenders, passes)
    rows = []
    for name, times in seconds.items():
        row = dict(name=case.name, threads=1, contender=name, **common.summary(times), lines=len(case.reference))
        baseline = common.summary(seconds["sacrebleu_program" if name.endswith("program") else "sacrebleu"])
        row["ratio_to_sacrebleu"] = baseline["median_ms"] / row["median_ms"]
        print(f"{case.name:24} {name:18} {row['median_ms']:9.1f} ms, ratio {row['ratio_to_sacrebleu']:.1f}", flush=True)
        rows.append(row)
    return rows


def main():
    arguments = common.arguments_of(__doc__, threads=(1,))
    program = arguments.program.resolve()
    tool = program.parent / "obj" / "metrics" / "translation_tool"
    for needed in (tool, FOLDER):
        if not needed.exists():
            sys.exit(f"no {needed}: build the tests, set HEADSHARE_DATA")
    count, passes = (100, 2) if arguments.quick else (None, 3)
    reference = lines_of("reference.de", count)
    systems = [lines_of(name, count) for name in SYSTEMS]
    rows = []
    for metric, paired in (("bleu", False), ("chrf", False), ("ter", False), ("bleu", True), ("chrf", True)):
        with tempfile.TemporaryDirectory() as folder:
            case = Case(metric, paired, reference, systems, pathlib.Path(folder), program)
            rows += measure(case, tool, passes)
    results.write(arguments.out, dict(common.environment(program), sacrebleu=sacrebleu.__version__), rows)


if __name__ == "__main__":
    main()

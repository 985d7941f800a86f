"""Translates the test sentences of Multi30k, beam 4, on the same random weights: headshare, transformers' generate,
CTranslate2.

Every translation has the same number of tokens. A whole program loads its model and translates all; `seconds` of
translating alone are those within Python's programs, and for headshare those of the whole program less those of the
same program with the first sentence alone. Translations must agree: rounding may decide between two hypotheses.
"""

import json
import pathlib
import sys
import tempfile

import common
import inputs
import marian
import translate_program

SENTENCES, TOKENS, BEAM, BATCH = 1000, 16, 4, 64
AGREEING = 0.95  # share of the translations


class Program:
    """This is a contender: translating() runs it once more; texts are its translations."""

    def __init__(self, name, command, threads, given, seconds_file=None, first=None, precision="fp32"):
        self.name, self.precision, self.command, self.threads, self.given = name, precision, command, threads, given
        self.seconds_file, self.first, self.texts, self.peak_bytes = seconds_file, first, [], 0

    def translating(self):
        """Returns the seconds of translating alone, and of the whole program."""
        ended = common.timed_program(self.command, self.threads, self.given)
        self.texts = ended.output.decode().splitlines()
        self.peak_bytes = max(self.peak_bytes, ended.peak_bytes)
        if self.seconds_file:
            return float(self.seconds_file.read_text()), ended.seconds
        start = common.timed_program(self.command, self.threads, self.first).seconds
        count = len(self.texts)
        return (ended.seconds - start) * count / (count - 1), ended.seconds


def contenders(program, folder, shape, settings, texts):
    """Returns headshare in fp32 first, then with AMX in bf16x3. CTranslate2 is missing where it does not install."""
    model = common.apart(marian.write_model, folder, shape, texts)
    given, first, threads = folder / "lines.txt", folder / "line.txt", settings["threads"]
    ours = marian.convert_to_headshare(program, model, folder / "headshare")
    command = [program, "translate", ours, "--beam", settings["beam"], "--min-length", settings["tokens"],
               "--max-length", settings["tokens"], "--batch-size", settings["batch"], "--threads", threads]  # fmt: skip
    precisions = ["fp32", *(["bf16x3"] if common.has_amx() else [])]
    found = [Program("headshare", [*command, "--precision", one], threads, given, first=first, precision=one) for one in precisions]
    pythons = dict(transformers=sys.executable, ctranslate2=marian.ctranslate2_python())
    for name, python in pythons.items():
        if python is None:
            continue
        if name == "ctranslate2":
            marian.convert_to_ctranslate2(python, model, folder / "ctranslate2")
        seconds = folder / f"{name}-seconds.txt"
        command = [python, translate_program.__file__, name, model, json.dumps(settings), seconds]
        found.append(Program(name, command, threads, given, seconds_file=seconds))
    return found


def check(chosen):
    """Ends the benchmark unless all translate the sentences alike; returns the smallest share that agree with ours."""
    ours, *others = chosen
    least = 1.0
    for other in others:
        if len(other.texts) != len(ours.texts):
            sys.exit(f"{other.name} in {other.precision} has {len(other.texts)} translations, headshare {len(ours.texts)}: not measured")
        same = sum(a.strip() == b.strip() for a, b in zip(ours.texts, other.texts)) / len(ours.texts)
        if same < AGREEING:
            sys.exit(f"only {same:.1%} of the translations of {other.name} in {other.precision} are headshare's: not measured")
        least = min(least, same)
    return least


def measure(program, quick, turns, threads, count=None):
    """Returns a row for each contender."""
    count = count or (400 if quick else SENTENCES)
    shape = marian.QUICK if quick else marian.SHAPE
    settings = dict(beam=BEAM, tokens=TOKENS, batch=BATCH, threads=threads)
    texts = [line for side in ("de", "en") for line in inputs.sentences(f"train.{side}", 1000 if quick else None)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        lines = inputs.sentences("test_2016_flickr.de", count)
        (folder / "lines.txt").write_text("\n".join(lines) + "\n")
        (folder / "line.txt").write_text(lines[0] + "\n")
        chosen = contenders(program, folder, shape, settings, texts)
        found = common.in_turns({one: one.translating for one in chosen}, turns)
        agreeing = check(chosen)
    return rows_of(shape, settings, found, len(lines), agreeing)


def rows_of(shape, settings, found, count, agreeing):
    alone, whole = ({one: common.summary([turn[i] for turn in turns]) for one, turns in found.items()} for i in (0, 1))
    rows = []
    for one in found:
        sizes = {key: shape[key] for key in ("layers", "heads", "width", "feed_forward", "vocabulary")}
        row = dict(name="translating", precision=one.precision, **sizes, **settings, sentences=count, contender=one.name)
        row |= alone[one]
        row["sentences_per_second"] = 1000 * count / row["median_ms"]
        row |= dict(program_ms=whole[one]["median_ms"], peak_bytes=one.peak_bytes, agreeing=agreeing)
        for other in alone:
            if one.name == "headshare" and other.name != "headshare":
                row[f"ratio_to_{other.name}"] = alone[other]["median_ms"] / row["median_ms"]
                row[f"program_ratio_to_{other.name}"] = whole[other]["median_ms"] / row["program_ms"]
        ratios = "  ".join(f"{key.replace('ratio_to_', '')} {value:.2f}" for key, value in row.items() if "ratio" in key)
        print(f"  {one.name:14}{one.precision:8}{row['sentences_per_second']:8.1f} sentences/s  {ratios}".rstrip(), flush=True)
        rows.append(row)
    return rows

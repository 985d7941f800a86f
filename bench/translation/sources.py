"""How large are the caches of each scheme with sources of several lengths, and how fast does it translate?

Untrained models that differ in --scheme alone, for all three places with attention. Translations have a fixed length.
The time is that of the program with all sentences less that with the first one alone, its start and loading.
"""

import pathlib
import statistics
import sys
import tempfile

import common
import inputs

SCHEMES = ("mha", "mhe_mul", "mhe_add", "mqa", "sha")
SHAPE = dict(layers=6, width=512, heads=8, vocabulary=8000, beam=8, tokens=32)
FULL = {16: 49, 64: 33, 256: 17, 512: 9}  # tokens of a source: sentences
QUICK_SHAPE = dict(layers=1, width=64, heads=4, vocabulary=500, beam=8, tokens=8)
QUICK = {16: 401, 64: 201}


def write_inputs(folder, shape, lengths, texts):
    inputs.write_pieces(folder, shape["vocabulary"], texts)
    inputs.write_lines(folder / "short.txt", folder, texts, 7, 4)
    for length, count in lengths.items():
        for number in (1, count):
            inputs.write_lines(folder / f"{length}-{number}.txt", folder, texts, length - 1, number)  # and its end


def make_model(program, folder, scheme, shape, threads):
    """Trains a model of this scheme for one step: its weights do not matter, its sizes do."""
    out = folder / scheme
    data = [word for part in ("", "validation-") for side in ("source", "target")
            for word in (f"--{part}{side}", folder / "short.txt")]  # fmt: skip
    sizes = dict(layers=shape["layers"], heads=shape["heads"], scheme=scheme, steps=1, threads=threads)
    sizes |= {"d-model": shape["width"], "context": 1024, "positions": "sinusoidal", "batch-tokens": 32, "beam": 1}
    common.timed_program(
        [program, "train", "--task", "translation", *data, "--tokenizer-path", folder / "pieces.model", "--out", out,
         *common.flags_of(sizes)], threads)  # fmt: skip
    return out


def translator(program, model, shape, threads, lines):
    command = [program, "translate", model, "--beam", shape["beam"], "--min-length", shape["tokens"], "--max-length",
               shape["tokens"], "--threads", threads]  # fmt: skip

    def translate():
        ended = common.timed_program(command, threads, lines)
        if (got := len(ended.output.splitlines())) != (count := len(lines.read_bytes().splitlines())):
            sys.exit(f"{model.name}: {got} translations of {count} sentences: not measured")
        return ended

    return translate


def measure(program, quick, turns, threads):
    """Returns a row for each length and scheme."""
    shape, lengths = (QUICK_SHAPE, QUICK) if quick else (SHAPE, FULL)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        common.apart(write_inputs, folder, shape, lengths, inputs.sentences("train.de", 2000 if quick else None))
        models = {scheme: make_model(program, folder, scheme, shape, threads) for scheme in SCHEMES}
        rows = []
        for length, count in lengths.items():
            files = {number: folder / f"{length}-{number}.txt" for number in (1, count)}
            actions = {
                (scheme, number): translator(program, models[scheme], shape, threads, files[number])
                for number in files for scheme in SCHEMES
            }  # fmt: skip
            rows += rows_of(program, models, shape, length, common.in_turns(actions, turns), threads)
    return rows


def rows_of(program, models, shape, length, found, threads):
    count = max(number for _, number in found)
    rows = []
    for scheme, model in models.items():
        info = common.program_info(program, model)
        start = statistics.median(ended.seconds for ended in found[scheme, 1])
        seconds = [ended.seconds - start for ended in found[scheme, count]]
        row = dict(name="sources", scheme=scheme, layers=shape["layers"], width=shape["width"], heads=shape["heads"],
                   vocabulary=shape["vocabulary"], keys=length, threads=threads, contender="headshare",
                   beam=shape["beam"], tokens=shape["tokens"], sentences=count - 1, **common.summary(seconds))  # fmt: skip
        row["sentences_per_second"] = 1000 * (count - 1) / row["median_ms"]
        row["cross_cache_bytes"] = info["source_cache_bytes_per_token"] * length
        row["own_cache_bytes"] = info["kv_cache_bytes_per_token"] * shape["beam"] * shape["tokens"]
        row["peak_bytes"] = max(ended.peak_bytes for ended in found[scheme, count])
        first = rows[0] if rows else row
        row["ratio_to_mha"] = first["median_ms"] / row["median_ms"]
        row["cache_ratio_to_mha"] = first["cross_cache_bytes"] / row["cross_cache_bytes"]
        print(f"  {length:4} tokens, {scheme:8}{row['sentences_per_second']:8.1f} sentences/s, ratio "
              f"{row['ratio_to_mha']:.2f}, cross-attention's cache {row['cross_cache_bytes'] / 1024:,.0f} KiB", flush=True)  # fmt: skip
        rows.append(row)
    return rows

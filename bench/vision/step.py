"""Times training steps of ViT-tiny, against transformers, and measures their peak memory."""

import pathlib
import statistics
import tempfile

import common
import trainers

VIT_TINY = dict(model="vit", layers=12, heads=3, width=192, context=197, batch=32, vocabulary=10, steps=4)
TINY = dict(layers=1, heads=1, width=8, context=5, batch=4)  # hardly more than the program itself
QUICK = dict(VIT_TINY, layers=2, heads=2, width=32, context=5, batch=12, steps=2)
SCHEMES = ("mha", "mhe_add")
MODELS = ("eager", "sdpa", "compiled")


def contenders_of(program, folder, case):
    """Returns the contenders, with inputs of their case; one thread is timed in CPU seconds."""
    folder.mkdir()
    common.apart(trainers.write_inputs, folder, case)
    case = dict(case, cpu_seconds=case["threads"] == 1)
    kind = trainers.HeadshareCpu if case["cpu_seconds"] else trainers.Headshare
    return [kind(program, folder, case, scheme) for scheme in SCHEMES] + [trainers.Transformers(case, model) for model in MODELS]


def key_of(one):
    return f"{one.name}_{one.scheme}" if one.name == "headshare" else one.name


def started(program, folder, case):
    """Returns the contenders {name: contender} after their first steps, which are checked."""
    chosen = contenders_of(program, folder, case)
    trainers.check_losses({key_of(one): one.start() for one in chosen}, case)
    return {key_of(one): one for one in chosen}


def peaks_of(program, folder, case):
    """Returns the highest resident memory of each contender's process, {name: bytes}, after few steps."""
    chosen = started(program, folder, case)
    for one in chosen.values():
        one.stop()
    return {name: one.peak_bytes for name, one in chosen.items()}


def measure(program, quick, turns, threads):
    """Returns a row for each contender."""
    case = dict(QUICK if quick else VIT_TINY, threads=threads, precision="fp32", dropout=0.0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        empty = peaks_of(program, folder / "empty", dict(case, **TINY))
        chosen = started(program, folder / "full", case)
        found = common.in_turns({name: lambda one=one: one.seconds(case["steps"]) for name, one in chosen.items()}, turns)
        for one in chosen.values():
            one.stop()
    seconds = {name: [second for turn in of_turns for second in turn] for name, of_turns in found.items()}
    bytes_of = {name: one.peak_bytes - empty[name] for name, one in chosen.items()}
    theirs = [name for name in chosen if name.startswith("transformers")]
    rows = []
    for name, one in chosen.items():
        timing = common.summary(seconds[name])
        row = dict(name="training step", contender=one.name, scheme=one.scheme, **case, **timing)
        row["images_per_second"] = case["batch"] * 1000 / timing["median_ms"]
        row |= dict(process_bytes=one.peak_bytes, step_bytes=bytes_of[name])
        if name not in theirs:
            row |= {f"ratio_to_{other}": 1000 * statistics.median(seconds[other]) / timing["median_ms"] for other in theirs}
            row |= {f"memory_ratio_to_{other}": bytes_of[name] / bytes_of[other] for other in theirs}
            row |= {f"process_ratio_to_{other}": one.peak_bytes / chosen[other].peak_bytes for other in theirs}
        rows.append(row)
        shown = "  ".join(f"{key} {value:.2f}" for key, value in row.items() if "ratio_to_" in key)
        print(f"  {name:22}{row['images_per_second']:7.1f} images/s{row['step_bytes'] / 2**20:7.0f} MiB  {shown}".rstrip(), flush=True)
    return rows

"""Makes tables of docs/results/: what the benchmarks must reach, and the speed of single pieces of work."""

from speed_parts import ours, rows_of, targets, versions
from table_parts import RESULTS, table, tables_of_files


def bench_targets():
    """Tabulates each target against the worst case measured."""
    rows, met = [], 0
    for target in targets.TARGETS:
        found = targets.load(RESULTS, target.question)
        value, name, _, reached = targets.judge(target, found)
        verdict = targets.word(reached, targets.missing(target.where, found))
        met += verdict == "reached"
        sign = "at most " if target.at_most else ""
        measured = {"reached": f"{value:.2f}", "NOT REACHED": f"**{value:.2f}**", "incomplete": f"{value:.2f}, incomplete"}[verdict] if found and value is not None else verdict
        rows.append([target.what, f"{sign}{target.bound:g}", measured, name])
    lead = (
        f"{met} of {len(rows)} targets are met. **Bold** marks a missed one. Figures are ratios of time, torch's, transformers' "
        "or TensorLy's\nover headshare's, unless a unit is named, for the worst case that each target covers "
        "(`tools/bench --targets`).\nRows against flex_attention and ONNX Runtime divide headshare's ratio to torch by theirs. Benchmarks ran on "
        "different\nmachines ([files](files.md#machines)):"
    )
    return f"{lead}\n\n" + table(["benchmark", "target", "measured", "worst case"], rows)


def bench_decompose(results):
    measured = rows_of(results)
    names = {"headshare_few": "headshare, 20 iterations", "headshare": "headshare", "tensorly": "TensorLy, 100 iterations"}
    rows = [
        [
            row["name"] + (f", {row['layers']} layers" if row["layers"] > 1 else ""),
            f"{row['key_width']} of {row['width']}",
            names[row["contender"]],
            f"{row['seconds']:.{1 if row['seconds'] >= 1 else 2}f}",
            f"{row['error']:.3f}",
            f"{row['peak_bytes'] / 2**20:,.0f}",
            f"{row['ratio_to_tensorly']:.1f}" if "ratio_to_tensorly" in row else "-",
        ]
        for row in measured
    ]
    first = measured[0]
    note = (
        f"Random layers have {first['heads']} heads of {first['width'] // first['heads']}; {first['threads']} threads, float64. "
        f"{versions(results)}."
    )
    headings = ["heads", "key width", "decomposed by", "seconds", "relative error", "peak MiB of the process", "times as fast as TensorLy"]
    return table(headings, rows) + "\n\n" + note


def bench_hash(results):
    asked = {"md, text": "MD, a text whose words repeat", "md": "MD signatures", "lsh": "LSH signatures", "lsh bucket": "LSH buckets"}
    ways = {"headshare": "headshare", "python_hmac": "hmac.digest", "python_numpy": "numpy's RandomState",
            "python_numpy_fft": "numpy.fft", "python_numpy_sums": "numpy, sums of rotations"}  # fmt: skip
    rows = [
        [asked[row["name"]], f"{row['words']:,}", ways[row["contender"]], f"{row['words_per_s']:,.0f}", f"{row['ratio_to_python']:.2f}"]
        for row in rows_of(results)
    ]
    ratios = [row["ratio_to_python"] for row in ours(results)]
    lead = (
        f"headshare hashes words {min(ratios):.1f} to {max(ratios):.0f} times as fast as the fastest plain Python. Encoders without "
        "a vocabulary read such\nwords. The plain Python keeps what headshare keeps (the hash of a word, the projection of a "
        "feature), and all hashes\nare compared before anything is timed:"
    )
    note = f"WikiText-2's training text; one thread, CPU seconds, medians. {versions(results)}."
    headings = ["hashes", "words", "by", "words/s", "relative to the fastest Python"]
    return f"{lead}\n\n{table(headings, rows)}\n\n{note}"


TABLES = tables_of_files({
    bench_targets: [],
    bench_decompose: ["bench_decompose"],
    bench_hash: ["bench_hash"],
})

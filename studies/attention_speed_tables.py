"""Makes tables of docs/results/: how fast attention is, with many queries and with one, and what limits it."""

from speed_parts import measured_on, ours, rows_of, targets, versions
from table_parts import load_result, table, tables_of_files

SCHEMES = ("mha", "gqa", "mqa", "mhe_add", "mhe_mul", "collaborative")
# These are number of heads, head width and length of shapes without a target: wide heads, few heads, short texts, odd
# sizes.
OTHER_SHAPES = ((32, 128, 512), (8, 64, 512), (12, 64, 128), (7, 59, 257))


def slower_cases(*files):
    """Returns a sentence on the cases in which torch is faster."""
    rows = [row for results in files for row in ours(results)]
    lost = sorted((row["ratio_to_torch_sdpa"], row["name"], row["threads"]) for row in rows)
    lost = [one for one in lost if one[0] < 0.95]
    if not lost:
        return f"None of the {len(rows)} measured cases is below 0.95."
    ratio, name, threads = lost[0]
    plural = "s" if threads > 1 else ""
    return f"{len(lost)} of the {len(rows)} measured cases are below 0.95; the worst is {ratio:.2f}: {name}, {threads} thread{plural}."


def with_share(row, field="percent_of_product"):
    """Writes the ratio to torch and, where it was measured, the share of the roof of the same run."""
    share = f" ({row[field]:.0f} %)" if field in row else ""
    return f"{row['ratio_to_torch_sdpa']:.2f}{share}"


def about_shares(*files):
    """Says what stands in brackets, where any row has a share."""
    measured = any("percent_of_product" in row for results in files for row in ours(results))
    return "In brackets: per cent of a square matrix product of the same run. " if measured else ""


def bench_attention(forward, training):
    threads = max(row["threads"] for row in rows_of(forward))

    def cell(scheme, results, length, dropout=0.0, precision="fp32", **where):
        width = dict(key_width=128) if scheme == "collaborative" else {}
        sizes = dict(heads=12, head_width=64, queries=length, threads=threads, precision=precision)
        rows = ours(results, scheme=scheme, dropout=dropout, **sizes, **width, **where)
        return with_share(rows[0]) if rows else "-"

    columns = {
        "forward, T 512": lambda s: cell(s, forward, 512, causal=False),
        "forward, causal, T 512": lambda s: cell(s, forward, 512, causal=True),
        "training, T 512": lambda s: cell(s, training, 512, causal=False),
        "training, T 2048": lambda s: cell(s, training, 2048, causal=False),
        "dropout 0.1, T 512": lambda s: cell(s, training, 512, 0.1, causal=False, dropout_masks="per_head"),
        "dropout 0.1, T 2048": lambda s: cell(s, training, 2048, 0.1, causal=False, dropout_masks="per_head"),
        "training in bf16, T 512": lambda s: cell(s, training, 512, precision="bf16", causal=False),
    }
    rows = [[f"`{scheme}`", *(column(scheme) for column in columns.values())] for scheme in SCHEMES]
    note = (
        "Speed relative to the fastest form of torch's `scaled_dot_product_attention` with the same heads, in one process. "
        f"12 heads of 64, 2,048 tokens, {threads} threads, float32 unless noted; training is forward and backward. {about_shares(forward, training)}{slower_cases(forward, training)} {measured_on(forward, training)}"
    )
    return table(["scheme", *columns], rows) + "\n\n" + note


def bench_attention_shapes(forward, training):
    found = {scheme: [] for scheme in SCHEMES}

    def least(results, scheme, heads, width, length):
        rows = ours(results, scheme=scheme, heads=heads, head_width=width, queries=length, dropout=0.0, precision="fp32")
        if not rows:
            return "-"
        found[scheme].append(min(row["ratio_to_torch_sdpa"] for row in rows))
        return f"{found[scheme][-1]:.2f}"

    rows = [
        [f"{heads} heads of {width}, T {length}", name, *(least(results, scheme, heads, width, length) for scheme in SCHEMES)]
        for heads, width, length in OTHER_SHAPES
        for name, results in (("forward", forward), ("training", training))
    ]
    worst = min(ratio for ratios in found.values() for ratio in ratios)
    added = found["mhe_add"]
    lead = f"No shape is below {worst:.2f} of torch's speed; MHE-ADD reaches {min(added):.1f} to {max(added):.1f}."
    note = f"Worst case over both masks and thread counts. {measured_on(forward, training)}"
    return f"{lead}\n\n" + table(["shape", "pass", *(f"`{scheme}`" for scheme in SCHEMES)], rows) + "\n\n" + note


# Counts the products of [T, T] by D that heads and their gradients take: two forward and five backward for each head;
# where P0 is shared, one and then three as well as one and two for each head (docs/kernels.md#products-saved).
def products_of(scheme, heads):
    return 3 * heads + 4 if scheme == "mhe_add" else 7 * heads


def attention_roofline(attention, products):
    """Tabulates how close attention and its gradients come to the rate of small products whose operands lie in a
    cache."""
    rate = max(row["gflops"] for row in rows_of(products) if row["precision"] == "fp32" and row["threads"] == 1)
    rows = []
    for scheme in ("mha", "mhe_add"):
        for length in (512, 1024, 2048):
            (row,) = ours(attention, scheme=scheme, causal=False, queries=length, heads=12, head_width=64, threads=1,
                          dropout=0, precision="fp32")  # fmt: skip
            gflop = 2 * row["batch_size"] * length**2 * row["head_width"] * products_of(scheme, row["heads"]) / 1e9
            reached = gflop / row["median_ms"] * 1e3
            ratio = row["ratio_to_torch_sdpa"]
            rows.append([f"`{scheme}`", str(length), f"{gflop:.1f}", f"{reached:.0f}", f"{reached / rate:.0%}", f"{ratio:.2f}", f"{ratio * rate / reached:.2f}"])
    headings = ["scheme", "T", "GFLOP", "GFLOP/s", "share of peak", "measured ratio", "ratio if the rest took no time"]
    note = f"12 heads of 64, 2,048 tokens, one thread, float32. Peak is the rate of tile products alone: {rate:.0f} GFLOP/s. {versions(attention)}."
    return table(headings, rows) + "\n\n" + note


ANCHORS = {"flex": "python_torch_flex", "onnxruntime": "python_onnxruntime", "compiled": "python_transformers_compiled"}


def bench_attention_anchors():
    """Tabulates attention without gradients beside programs that compile it, as far as they were measured."""
    results = load_result("bench_attention_anchors")
    if results is None:
        return "Not measured yet: `bench/attention_forward/run.py --anchors` measures it."
    measured = rows_of(results)
    rows = []
    for row in ours(results, threads=max(row["threads"] for row in measured)):
        against = [targets.ratio_to(name, row, measured) for name in ANCHORS.values()]
        ratios = [f"{ratio:.2f}" if ratio else "-" for ratio in against]
        mask = "causal" if row["causal"] else "none"
        rows.append([f"`{row['scheme']}`", mask, row["precision"], str(row["queries"]), with_share(row), *ratios])
    rows.sort(key=lambda row: (row[2], row[0], row[1] == "causal", int(row[3])))
    note = (
        f"12 heads of 64, 2,048 tokens, {max(row['threads'] for row in measured)} threads. {about_shares(results)}{IN_PYTHON} {versions(results)}."
    )
    headings = ["scheme", "mask", "precision", "T", "relative to torch", "to compiled flex_attention", "to ONNX Runtime", "to compiled transformers"]
    return table(headings, rows) + "\n\n" + note


IN_PYTHON = (
    "Other programs run in Python, beside torch's own attention there: ratios are headshare's to torch over theirs to torch."
)
# These are columns of decoding that older results do not have: heading, field, how it is written.
DECODE_COLUMNS = (
    ("of STREAM", "percent_of_stream", "{:.0f} %"),
    ("of a product", "percent_of_product", "{:.0f} %"),
    ("bytes/s relative to `mqa`", "byte_ratio_to_mqa", "{:.2f}"),
)


def bench_decode(results):
    threads, measured = max(row["threads"] for row in rows_of(results)), rows_of(results)
    chosen = ours(results, threads=threads)
    columns = [column for column in DECODE_COLUMNS if any(column[1] in row for row in chosen)]
    anchors = [name for name in ("flex", "onnxruntime") if any(row["contender"] == ANCHORS[name] for row in measured)]

    def cells(row):
        found = [written.format(row[field]) if field in row else "-" for _, field, written in columns]
        ratios = [targets.ratio_to(ANCHORS[name], row, measured) for name in anchors]
        return [*found, *(f"{ratio:.2f}" if ratio else "-" for ratio in ratios)]

    rows = [
        [
            f"`{row['scheme']}`",
            f"{row['cache_bytes'] / 2**20:,.0f}",
            f"{row['median_ms']:.1f}",
            f"{row['cache_bytes'] / row['median_ms'] / 1e6:.0f}",
            f"{row['ratio_to_mha']:.1f}",
            f"{row['ratio_to_torch_sdpa']:.2f}",
            *cells(row),
        ]
        for row in chosen
    ]
    first = chosen[0]
    stream = " STREAM is the faster of its copy and triad, in turns with the rows, as a square matrix product is." if columns else ""
    in_python = f" {IN_PYTHON}" if anchors else ""
    note = (
        f"One token for each of {first['batch_size']} sentences of {first['keys']:,}, one layer of {first['heads']} heads, "
        f"{threads} threads.{stream}{in_python} {versions(results)}."
    )
    headings = ["scheme", "cache MiB", "ms per token", "GB/s of cache read", "speed relative to `mha`", "relative to torch"]
    headings += [heading for heading, _, _ in columns]
    headings += [dict(flex="to compiled flex_attention", onnxruntime="to ONNX Runtime")[name] for name in anchors]
    return table(headings, rows) + "\n\n" + note


def bench_generate(results):
    names = {"headshare": "headshare", "sdpa": "transformers, sdpa", "eager": "transformers, eager"}
    rows = [
        [
            str(r["threads"]),
            names[r["contender"]],
            f"{r['median_ms']:.1f}",
            f"{r['minimum_ms']:.1f}",
            f"{r['ratio_to_sdpa']:.2f}",
            f"{r['ratio_of_least_to_sdpa']:.2f}",
        ]
        for r in rows_of(results)
    ]
    note = f"transformers {results['environment']['transformers']}; {versions(results)}."
    return table(["threads", "program", "ms per token", "least", "speed relative to sdpa", "of the least times"], rows) + "\n\n" + note


ATTENTION = ["bench_attention_forward", "bench_attention_training"]
TABLES = {"bench_attention_anchors": bench_attention_anchors} | tables_of_files({
    bench_attention: ATTENTION,
    bench_attention_shapes: ATTENTION,
    attention_roofline: ["bench_attention_training", "bench_products"],
    bench_decode: ["bench_decode"],
    bench_generate: ["bench_generate"],
})

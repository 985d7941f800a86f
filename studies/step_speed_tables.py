"""Makes tables of docs/results/: how fast training steps are, how much memory they take, and what limits them."""

from speed_parts import MODELS, ours, ratio_to_fastest, rows_of, versions
from table_parts import table, tables_of_files


def training_steps(results, **where):
    mine = ours(results, **where)
    names = {"transformers_eager": "eager", "transformers_sdpa": "sdpa", "transformers_compiled": "torch.compile"}
    others = [name for name in names if any(f"ratio_to_{name}" in r for r in mine)]
    rows = [
        [
            f"{MODELS[r.get('model', 'gpt2')]}, {r['layers']} x {r['width']}, {r['heads']} heads, {r['batch']} x {r['context']} "
            f"tokens, vocabulary {r['vocabulary']:,}",
            f"`{r['scheme']}`",
            r["precision"],
            f"{r['dropout']:g}",
            str(r["threads"]),
            f"{r['tokens_per_second']:,.0f}",
            *(f"{r[f'ratio_to_{other}']:.2f}" if f"ratio_to_{other}" in r else "-" for other in others),
        ]
        for r in mine
    ]
    note = (
        f"Ratios of tokens/s to transformers' MHA (version {results['environment']['transformers']}); {versions(results)}."
    )
    ratios = [ratio_to_fastest(r) for r in mine]
    lead = f"Every step is {min(ratios):.2f} to {max(ratios):.2f} times as fast as the fastest form of transformers."
    headings = ["model", "scheme", "precision", "dropout", "threads", "tokens/s", *(names[other] for other in others)]
    return f"{lead}\n\n{table(headings, rows)}\n\n{note}"


def training_steps_avx2(results):
    """The same steps where a processor has, or is limited to, AVX2."""
    return training_steps(results)


def transformers_backend(results):
    """Tabulates steps of a transformers model by its attention, against those with sdpa."""
    names = {"headshare": "headshare", "sdpa": "sdpa", "eager": "eager"}
    rows = [
        [
            f"{r['batch']} x {r['context']:,}",
            names[r["contender"]],
            f"{r['median_ms']:,.0f}",
            f"{r['share_ms']:,.0f}",
            f"{r['ratio_to_sdpa']:.2f}",
            f"{r['share_ratio_to_sdpa']:.1f}",
        ]
        for r in rows_of(results)
        if r["contender"] in names
    ]
    note = f"transformers {results['environment']['transformers']}; {versions(results)}."
    headings = ["tokens", "attention", "step, ms", "of it attention, ms", "step, x sdpa", "attention, x sdpa"]
    return f"{table(headings, rows)}\n\n{note}"


# The products of a training step as multiples of the three of GPT-2's feed-forward layer (bench/products): queries, keys,
# values and output are 12 x 64 wide, with one shared head the first three 64.
PROJECTIONS = {"mha": 4 / 4, "mhe_add": 3 / 48 + 1 / 4}
MASKED = 0.15  # share of tokens that BERT predicts; the last layer's feed-forward part is computed for these alone


def attention_seconds(attention, scheme, causal):
    """Returns the seconds of heads and their gradients in one layer of the training steps."""
    where = dict(scheme=scheme, causal=causal, queries=512, heads=12, head_width=64, batch_size=4, threads=2, dropout=0,
                 precision="fp32")  # fmt: skip
    (row,) = ours(attention, **where)
    return row["median_ms"] / 1e3


def step_roofline(steps, products, attention):
    """Tabulates how long a step's matrix products and attention alone take, and the ratio that these would allow."""
    times = {}
    for row in rows_of(products):
        if row["precision"] == "fp32" and row["threads"] == 2:
            times[row["name"]] = min(row["median_ms"], times.get(row["name"], float("inf")))
    layer = sum(times[f"feed-forward{of}"] for of in ("", ", gradient of its input", ", gradient of its weight"))
    chunk = sum(times[name] for name in ("scores of a chunk", "scores, gradient of their input", "scores, gradient of their weight"))
    rows = []
    for row in ours(steps, precision="fp32", dropout=0.0, threads=2):
        if row["width"] != 768:
            continue
        bert = row["model"] == "bert"
        feed_forward = 2 * (row["layers"] - (1 - MASKED) * bert)
        scores = chunk * row["batch"] * row["context"] / 512 * row["vocabulary"] / 50257 * (MASKED if bert else 1)
        linear = (layer * (PROJECTIONS[row["scheme"]] * row["layers"] + feed_forward) + scores) / 1e3
        heads = row["layers"] * attention_seconds(attention, row["scheme"], causal=not bert)
        alone = linear + heads
        step = row["batch"] * row["context"] / row["tokens_per_second"]
        ratio = ratio_to_fastest(row)
        rows.append([MODELS[row["model"]], f"`{row['scheme']}`", f"{step:.2f}", f"{linear:.2f}", f"{heads:.2f}", f"{ratio:.2f}", f"{ratio * step / alone:.2f}"])
    headings = ["model", "scheme", "step, s", "products, s", "attention, s", "measured ratio", "ratio if the rest took no time"]
    return table(headings, rows) + "\n\n" + f"Dropout 0, float32, 2 threads; {versions(steps)}."


def bench_peak_memory(results):
    measured = rows_of(results)
    rows = [
        [
            MODELS[row["model"]],
            row["contender"].replace("_", " ", 1),
            f"{row['dropout']:g}",
            f"{row['step_bytes'] / 2**20:,.0f}",
            f"{row['step_ratio_to_transformers_eager']:.2f}",
            f"{row['step_ratio_to_transformers_sdpa']:.2f}",
        ]
        for row in measured
    ]
    first = measured[0]
    note = (
        f"{first['layers']} layers of {first['width']}, {first['heads']} heads, {first['batch']} x {first['context']} tokens, float32; "
        f"the peak of the process minus the peak of the same program with a tiny model. {versions(results)}."
    )
    return table(["model", "training step of", "dropout", "MiB", "relative to transformers eager", "relative to sdpa"], rows) + "\n\n" + note


def bench_hash_training(results):
    measured = rows_of(results)
    rows = [
        [row["name"], row["contender"].replace(", ", ", WordPiece ") if row["contender"][-1].isdigit() else row["contender"],
         f"{row['median_ms']:,.0f}", f"{row['ratio_to_masked_lm']:.2f}", f"{row['peak_bytes'] / 2**20:,.0f}"]
        for row in measured
    ]  # fmt: skip
    first = measured[0]
    note = (
        f"{first['batch']} x {first['context']} tokens, float32, dropout {first['dropout']:g}; {first['threads']} thread, CPU "
        f"milliseconds, medians of {min(row['repetitions'] for row in measured)} steps or more. {versions(results)}."
    )
    headings = ["model", "step of", "ms", "times as fast as masked-LM with 30,522", "peak MiB of the process"]
    return table(headings, rows) + "\n\n" + note


TABLES = tables_of_files({
    training_steps: ["training_step"],
    training_steps_avx2: ["training_step_avx2"],
    transformers_backend: ["transformers_backend"],
    step_roofline: ["training_step", "bench_products", "bench_attention_training"],
    bench_peak_memory: ["bench_peak_memory"],
    bench_hash_training: ["bench_hash_training"],
})

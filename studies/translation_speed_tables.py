"""Makes tables of docs/results/: how fast translations are made, learned and scored."""

from speed_parts import rows_of, versions
from table_parts import table, tables_of_files


def rows_named(results, name):
    return [row for row in rows_of(results) if row["name"] == name]


CONTENDERS = {"transformers": "transformers", "ctranslate2": "CTranslate2", "torch_transformer": "`torch.nn.Transformer`"}


def contender_name(row):
    name = CONTENDERS.get(row["contender"]) or f"headshare, `{row.get('scheme', 'mha')}`"
    return name if row["precision"] == "fp32" else f"{name}, {row['precision']}"


def ratio_of(row, kind, name):
    """Tells how many times as fast as that contender; "-" for the contenders themselves."""
    ratio = row.get(f"{kind}ratio_to_{name}")
    return f"{ratio:.2f}" if ratio else "-"


def bench_translation(results):
    found = rows_named(results, "translating")
    first = found[0]
    others = [name for name in ("transformers", "ctranslate2") if first.get(f"ratio_to_{name}")]
    rows = [
        [contender_name(row), f"{row['sentences_per_second']:.1f}", *(ratio_of(row, "", name) for name in others),
         f"{row['program_ms'] / 1000:.1f}", *(ratio_of(row, "program_", name) for name in others),
         f"{row['peak_bytes'] / 2**20:,.0f}"]
        for row in found
    ]  # fmt: skip
    environment = results["environment"]
    note = (
        f"{first['sentences']:,} sentences, beam {first['beam']}, {first['tokens']} tokens each, batches of {first['batch']}; MarianMT, "
        f"{first['layers']} + {first['layers']} layers of {first['width']}, random weights; at least {first['agreeing']:.1%} of the "
        f"translations are the same. {first['threads']} thread, CPU seconds, medians of {first['repetitions']}; transformers "
        f"{environment['transformers']}, CTranslate2 {environment['ctranslate2']}; {versions(results)}."
    )
    against = [f"relative to {CONTENDERS[name]}" for name in others]
    headings = ["translated by", "sentences/s", *against, "whole program, s", *against, "peak MiB"]
    return table(headings, rows) + "\n\n" + note


def bench_translation_step(results):
    found = rows_named(results, "training step")
    first, others = found[0], ("transformers", "torch_transformer")
    rows = [
        [contender_name(row), f"{row['tokens_per_second']:,.0f}", *(ratio_of(row, "", name) for name in others),
         f"{row['peak_bytes'] / 2**20:,.0f}"]
        for row in found
    ]  # fmt: skip
    note = (
        f"{first['layers']} + {first['layers']} layers of {first['width']}, {first['heads']} heads, vocabulary {first['vocabulary']:,}, "
        f"{first['batch']} pairs of {first['context']} + {first['context']} tokens, dropout {first['dropout']:g}, label smoothing "
        f"{first['smoothing']:g}, AdamW; bf16 of the others is autocast, and bf16x3 is compared with their float32; {first['parameters']:,} parameters in all with `mha`. {first['threads']} thread, CPU "
        f"seconds; transformers {results['environment']['transformers']}; {versions(results)}."
    )
    headings = ["step of", "target tokens/s", *(f"relative to {CONTENDERS[name]}" for name in others), "peak MiB"]
    return table(headings, rows) + "\n\n" + note


def bench_translation_sources(results):
    by_length = {}
    for row in rows_named(results, "sources"):
        by_length.setdefault(row["keys"], {})[row["scheme"]] = row
    first = next(iter(by_length.values()))
    rows = []
    for scheme in first:
        cells = [f"{found[scheme]['sentences_per_second']:.2f} ({found[scheme]['ratio_to_mha']:.2f})" for found in by_length.values()]
        cache = by_length[max(by_length)][scheme]
        rows.append([f"`{scheme}`", *cells, f"{cache['cross_cache_bytes'] / 2**20:.2f}", f"{cache['cache_ratio_to_mha']:.0f}"])
    one = first["mha"]
    note = (
        f"Sentences a second, in brackets relative to `mha`. Beam {one['beam']}, {one['tokens']} tokens each, {one['layers']} + "
        f"{one['layers']} layers of {one['width']}, {one['heads']} heads, untrained; {one['threads']} thread, CPU seconds, medians of "
        f"{one['repetitions']}; {versions(results)}."
    )
    lengths = [f"{length} tokens" for length in by_length]
    headings = ["scheme", *lengths, f"cross-attention's cache at {max(by_length)}, MiB", "times smaller"]
    return table(headings, rows) + "\n\n" + note


def bench_translation_scores(results):
    by_name = {}
    for row in rows_of(results):
        by_name.setdefault(row["name"], {})[row["contender"]] = row
    rows = []
    for name, found in by_name.items():
        cells = [f"{found[one]['median_ms']:,.0f}" for one in ("headshare", "sacrebleu")]
        ratio, program = (found[one]["ratio_to_sacrebleu"] for one in ("headshare", "headshare_program"))
        rows.append([name, *cells, f"{ratio:.0f}", f"{program:.1f}"])
    lines = rows_of(results)[0]["lines"]
    version = results["environment"]["sacrebleu"]
    note = f"CPU time for {lines:,} lines, 1 thread; sacreBLEU {version}; {versions(results)}."
    headings = ["score", "headshare, ms", "sacreBLEU, ms", "times as fast", "the same, whole programs"]
    return table(headings, rows) + "\n\n" + note


TABLES = tables_of_files({
    bench_translation: ["bench_translation"],
    bench_translation_step: ["bench_translation"],
    bench_translation_sources: ["bench_translation"],
    bench_translation_scores: ["bench_translation_scores"],
})

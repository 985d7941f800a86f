"""Makes tables of the README and of docs/results/: what `make demo` shows, and what sharing heads pays."""

import judging
from speed_parts import machine, ours, ratio_to_fastest
from table_parts import ARROWS, retention, table, tables_of_files, with_deviation, with_interval


def size_of(results):
    options = results["options"]
    plural = "s" if options["layers"] > 1 else ""
    return (
        f"{options['layers']} layer{plural} of {options['d-model']}, {options['heads']} heads, {options['steps']} steps, "
        f"{options['seeds']} seeds; {machine(results['environment'])}, {results['environment']['threads']} threads, "
        f"commit {results['environment']['commit']}."
    )


def demo_text(results):
    found = judging.differences(results)

    def arrow(row):  # the differences are of losses: more is worse
        return ARROWS[-found[row["variant"]].direction] if row["variant"] in found else ""

    rows = [
        [
            f"`{row['scheme']}`",
            f"{row['attention_parameters']:,}",
            with_deviation(row["quality"], 1) + arrow(row),
            retention(row["prr"], 1),
            retention(row["peop"], 2),
            f"{row['cache_bytes_per_token']:,}",
            f"{row['training_tokens_per_second']:,.0f}" if row["trained"] else "as mha",
        ]
        for row in results["rows"]
    ]
    busy = " (busy machine)" if "training" in results.get("busy_speeds", []) else ""
    headings = ["scheme", "attention parameters", "test perplexity", "PRR", "PEoP", "cache bytes/token", f"training tokens/s{busy}"]
    return table(headings, rows) + "\n\n" + size_of(results)


def demo_offsets(results):
    found = judging.differences(results)
    rows = [
        [
            f"`{row['scheme']}`",
            f"{row['attention_parameters']:,}",
            with_deviation(row["quality"], 3),
            with_interval(found.get(row["variant"]), 3),
            f"{row['attention_memory_saved_percent']:.0f} %",
        ]
        for row in results["rows"]
        if row["trained"]
    ]
    headings = ["scheme", "attention parameters", "accuracy", "difference to mha", "attention memory saved"]
    note = f"All {len(found)} intervals hold together with {judging.CONFIDENCE:.0%} confidence ([rule](../design/025-judging-differences.md))."
    return table(headings, rows) + f"\n\n{note} {size_of(results)}"


def demo_decides(results):
    """Tabulates demo_offsets for the README: what is significant, and what a decoder keeps."""
    found = judging.differences(results)

    def difference(row):
        one = found.get(row["variant"])
        return with_interval(one, 3, ARROWS[one.direction] if one else "")

    rows = [
        [
            f"`{row['scheme']}`",
            f"{row['attention_parameters']:,}",
            with_deviation(row["quality"], 3),
            difference(row),
            f"{row['cache_bytes_per_token']:,}",
        ]
        for row in results["rows"]
        if row["trained"]
    ]
    headings = ["scheme", "attention parameters", "accuracy", "difference to mha", "cache bytes/token"]
    return table(headings, rows) + f"\n\n{size_of(results)}"


def steps_of(results):
    return results["options"]["steps"]


def step_ratios(steps):
    """Returns by scheme how many times as fast a training step of GPT-2's shape is as that of the fastest form of
    transformers."""
    gpt2 = [row for row in ours(steps, width=768, precision="fp32", dropout=0.0, threads=2) if row.get("model", "gpt2") == "gpt2"]
    return {row["scheme"]: ratio_to_fastest(row) for row in gpt2}


def payoff(text, offsets, decode, steps, steps_avx2):
    """The first screen of the README: what sharing heads saves and what it costs."""
    quality = {row["scheme"]: row for row in text["rows"]}
    accuracy = {row["scheme"]: with_deviation(row["quality"], 2) for row in offsets["rows"] if row["quality"]}
    cached = {row["scheme"]: row for row in ours(decode, threads=2)}
    faster = cached["mhe_mul"]["ratio_to_mha"]
    smaller = cached["mha"]["cache_bytes"] / cached["mhe_mul"]["cache_bytes"]
    step, avx2 = step_ratios(steps), step_ratios(steps_avx2)
    share = quality["mhe_mul"]["attention_parameters"] / quality["mha"]["attention_parameters"]

    def kept(scheme):
        return retention(quality[scheme]["prr"], 1) + " %"

    return "\n".join(
        (
            f"- **Cache.** With 12 heads MHE-MUL caches 1/{smaller:.0f} of mha's bytes, and the attention of a layer reads a cache of "
            f"{cached['mhe_mul']['keys']:,} tokens {faster:.1f} times as fast.",
            f"- **Quality.** On the demo's text MHE-MUL keeps {kept('mhe_mul')} of mha's quality with {100 * share:.0f} % of its "
            f"attention parameters, mqa {kept('mqa')}, gqa {kept('gqa')}, MHE-ADD {kept('mhe_add')}, one shared head {kept('sha')} "
            f"(PRR, 95 % interval over three seeds). Three seeds do not order these schemes among themselves.",
            f"- **One shared head is not always enough.** The task `offsets` asks for four places at once. After {steps_of(offsets)} "
            f"steps mha reaches an accuracy of {accuracy['mha']}, MHE-MUL {accuracy['mhe_mul']}, sha {accuracy['sha']} (± the deviation over three seeds).",
            f"- **Speed.** A training step of half of GPT-2 (6 layers of 768) is {step['mha']:.1f} times as fast as the fastest form of "
            f"transformers (eager, sdpa or torch.compile) on the same two cores ({machine(steps['environment'])}); with MHE-ADD it is "
            f"{step['mhe_add']:.1f} times as fast as the same mha step of transformers. Limited to AVX2, on an "
            f"{machine(steps_avx2['environment']).split(',')[0]}, the ratios are {avx2['mha']:.1f} and {avx2['mhe_add']:.1f}.",
        )
    )


TABLES = tables_of_files({
    demo_text: ["demo_text"],
    demo_offsets: ["demo_offsets"],
    demo_decides: ["demo_offsets"],
    payoff: ["demo_text", "demo_offsets", "bench_decode", "training_step", "training_step_avx2"],
})

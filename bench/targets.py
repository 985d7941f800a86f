"""What the benchmarks must reach, against what they measured: `tools/bench --targets`.

Each target is read from the rows of docs/results/ (or another folder: `--from build/bench`); what counts is the
worst row it covers, and every combination of the values that a target names must be there. Ratios are times, torch's
fastest form over headshare, unless said. Training-step rows carry case, scheme, dropout, precision and, for each contender, `ratio_to_NAME` (bench/training_step).
"""

import argparse
import dataclasses
import itertools
import pathlib
import sys
from collections.abc import Callable

import results

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHARING = ("mqa", "mhe_add", "mhe_mul")


@dataclasses.dataclass
class Target:
    what: str
    bound: float
    question: str  # whose results
    where: dict  # field: value, or a tuple of them
    ratio: str = "ratio_to_torch_sdpa"
    at_most: bool = False
    of: Callable = None  # rows -> [(value, name)], where the figure is not a field


def attention(what, bound, length, training=False, causal=False, dropout=0, precision="fp32", **where):
    sizes = {"contender": "headshare", "threads": (1, 2), "heads": (12, 16), "head_width": 64, "queries": length,
             "dropout": dropout}  # fmt: skip
    pass_ = "training" if training else "forward"
    where = {"dropout_masks": "per_head", **where} if dropout else where
    settings = {**sizes, "pass": pass_, "causal": causal, "precision": precision, **where}
    return Target(what, bound, f"attention_{pass_}", settings)


def ratio_to(contender, row, rows):
    """Returns how many times as fast as a contender that runs in Python a row of ours is: both stand beside torch's own
    attention in their process. None where the contender was not measured on the case."""
    for other in rows:
        if other["contender"] == contender and results.case_of(other) == results.case_of(row):
            return row["ratio_to_torch_sdpa"] / other["ratio_to_torch_sdpa"]
    return None


def versus(contender):
    """Returns a function that judges headshare's rows against those of a contender among them."""

    def found(rows):
        return [(ratio_to(contender, row, rows), describe(row)) for row in rows if row["contender"] == "headshare"]

    return found


def anchored(what, contender, question, precision="fp32", **where):
    settings = dict(contender=("headshare", contender), threads=(1, 2), heads=12, head_width=64, precision=precision, **where)
    return Target(what, 1, question, settings, of=versus(contender))


def growth_of_memory(rows):
    """Returns peak bytes at T 2048 over T 512, with as many tokens: 1 when memory is O(T), 4 when a matrix is kept."""
    by_length = {}
    for row in rows:
        key = tuple(row.get(name) for name in ("scheme", "threads", "heads", "key_width", "causal", "dropout"))
        by_length.setdefault(key, {})[row["queries"]] = row
    pairs = [pair for pair in by_length.values() if {512, 2048} <= pair.keys()]
    return [(pair[2048]["peak_bytes"] / pair[512]["peak_bytes"], describe(pair[2048])) for pair in pairs]


def step(what, bound, scheme, baseline, dropout=0, precision="fp32", case="gpt2"):
    where = dict(case=case, scheme=scheme, dropout=dropout, precision=precision, threads=(1, 2))
    return Target(what, bound, "training_step", where, ratio=f"ratio_to_{baseline}")


def peak(what, model, baseline):
    where = dict(contender=("headshare_mha", "headshare_mhe_add"), width=768, model=model)
    return Target(what, 0.6, "peak_memory", where, f"step_ratio_to_{baseline}", at_most=True)


def tokenising(what, kind):
    where = dict(name=(f"{kind}, lines", f"{kind}, one text"), contender=("headshare", "headshare_spans"))
    return Target(what, 2, "tokenizers", where, "ratio_to_tokenizers")


def hashing(what, bound, name):
    where = dict(name=name, contender="headshare")
    return Target(f"{what}, thousand words/s", bound, "hash", where, of=thousand_words)


def without_vocabulary(what, bound):
    kinds = tuple(f"three-way, hash-{kind}" for kind in ("emb", "pool", "add", "proj"))
    return Target(what, bound, "hash_training", dict(contender=kinds, name=("6 x 768", "4 x 512")), "ratio_to_masked_lm")


def thousand_words(rows):
    return [(row["words_per_s"] / 1000, describe(row)) for row in rows]


def translation_scores(what, *names):
    where = dict(name=names, contender="headshare", threads=1, lines=3004)
    return Target(what, 10, "translation_scores", where, "ratio_to_sacrebleu")


def translating(what, bound, ratio, precision="fp32"):
    where = dict(name="translating", contender="headshare", precision=precision, sentences=1000, beam=4, threads=1)
    return Target(what, bound, "translation", where, ratio)


def translation_step(what, bound, ratio, precision="fp32"):
    where = dict(name="training step", contender="headshare", precision=precision, scheme="mha", width=512, threads=1)
    return Target(what, bound, "translation", where, ratio)


def long_sources(what, bound, ratio):
    where = dict(name="sources", scheme=("mhe_mul", "mhe_add"), keys=512, beam=8, threads=1)
    return Target(what, bound, "translation", where, ratio)


def vision_step(what, bound, ratio, at_most=False):
    where = dict(name="training step", contender="headshare", scheme="mha", width=192, threads=(1, 2))
    return Target(what, bound, "vision", where, ratio, at_most=at_most)


def classifying(what, bound, ratio):
    where = dict(name="classifying", contender="headshare", width=192, batch=(1, 32), threads=(1, 2))
    return Target(what, bound, "vision", where, ratio)


def nearer_roof(rows):
    """Returns the per cent that rows of decoding reach of memory's roof or of arithmetic's, whichever is nearer."""
    measured = [row for row in rows if row.get("percent_of_product") and row.get("percent_of_stream")]
    return [(max(row["percent_of_stream"], row["percent_of_product"]), describe(row)) for row in measured]


def peak_mebibytes(rows):
    return [(row["peak_bytes"] / 2**20, describe(row)) for row in rows]


def decomposing(what, bound, contender, field, at_most=False, layers=1):
    names = ("independent", "shared") if layers == 1 else ("shared",)
    where = dict(name=names, contender=contender, layers=layers, width=768, key_width=384, threads=2)
    return Target(what, bound, "decompose", where, field, at_most=at_most)


def decomposing_trained(what, bound, contender, field):
    names = tuple(f"trained, layer {layer}" for layer in (1, 2, 3))
    return Target(what, bound, "decompose", dict(name=names, contender=contender, threads=2), field, at_most=True)


COLLABORATIVE = dict(scheme="collaborative", training=True)
DECODE = dict(contender="headshare", threads=(1, 2), scheme=SHARING, heads=12, keys=8192, batch_size=8)
ANY = (512, 1024, 2048)
CACHES = dict(scheme=("mha", "gqa", "mqa"), keys=8192, batch_size=8)
ANCHORED = dict(scheme=("mha", "mqa"), queries=ANY, causal=(False, True), dropout=0)
PLAIN_SCHEMES = ("mha", "mqa", "mhe_add", "mhe_mul")
SCHEMES = (*PLAIN_SCHEMES, "gqa", "collaborative", "sha", "skv", "el_shared")
# Its heads are as wide as the model, so that a case takes as long as twelve: it has fewer.
LOSSLESS = dict(scheme="el_lossless", heads=12)

TARGETS = [
    attention("MHE-ADD forward", 1.8, ANY, scheme="mhe_add"),
    attention("MHE-ADD forward + backward, T 512 and 1024", 2.3, (512, 1024), training=True, scheme="mhe_add"),
    attention("MHE-ADD forward + backward, T 2048", 2.1, 2048, training=True, scheme="mhe_add"),
    attention("MHE-ADD forward, causal, T 512", 2.8, 512, causal=True, scheme="mhe_add"),
    attention("MHE-ADD forward, causal, T 2048", 2.0, 2048, causal=True, scheme="mhe_add"),
    attention("any scheme, causal, T 512, forward", 1.5, 512, causal=True, scheme=SCHEMES),
    attention("el_lossless, causal, T 512, forward", 1.5, 512, causal=True, **LOSSLESS),
    attention("any scheme, any shape, forward", 0.95, ANY, causal=(False, True), scheme=SCHEMES),
    attention("any scheme, any shape, forward + backward", 0.95, ANY, training=True, causal=(False, True), scheme=SCHEMES),
    attention("el_lossless, forward", 0.95, (512, 1024), causal=(False, True), **LOSSLESS),
    attention("el_lossless, forward + backward", 0.95, 512, training=True, causal=(False, True), **LOSSLESS),
    attention("forward + backward, dropout 0.1, T 512", 2.2, 512, True, dropout=0.1, scheme=PLAIN_SCHEMES),
    attention("forward + backward, dropout 0.1, T 2048", 3.2, 2048, True, dropout=0.1, scheme=PLAIN_SCHEMES),
    attention("the same, MHE-ADD with a shared mask, T 512", 4.5, 512, True, dropout=0.1, scheme="mhe_add",
              dropout_masks="shared"),
    attention("the same, MHE-ADD with a shared mask, T 2048", 6, 2048, True, dropout=0.1, scheme="mhe_add",
              dropout_masks="shared"),
    attention("collaborative forward + backward, key width 2 D, T 512", 1.1, 512, key_width=128, **COLLABORATIVE),
    attention("collaborative forward + backward, key width 2 D, T 2048", 1.4, 2048, key_width=128, **COLLABORATIVE),
    attention("collaborative forward + backward, key width 6 D", 0.95, ANY, key_width=384, **COLLABORATIVE),
    attention("collaborative forward + backward, dropout 0.1", 1.8, ANY, dropout=0.1, **COLLABORATIVE),
    dataclasses.replace(
        attention("collaborative, memory at T 2048 over T 512", 1.5, (512, 2048), **COLLABORATIVE, dropout=(0, 0.1)),
        at_most=True, of=growth_of_memory),
    dataclasses.replace(
        attention("any scheme, memory at T 2048 over T 512", 2, (512, 2048), training=True,
                  scheme=(*PLAIN_SCHEMES, "collaborative"), dropout=(0, 0.1)), at_most=True, of=growth_of_memory),
    attention("bf16 forward + backward, MHA", 1.5, ANY, training=True, precision="bf16", scheme="mha"),
    attention("bf16 forward + backward, MHE-ADD", 2.5, ANY, training=True, precision="bf16", scheme="mhe_add"),
    Target("decode against MHA", 6, "decode", DECODE, "ratio_to_mha"),
    Target("decode, cache smaller than MHA's", 12, "decode", DECODE, "cache_ratio_to_mha"),
    Target("decode, shared keys, per cent of STREAM", 80, "decode", DECODE, "percent_of_stream"),
    Target("decode, any scheme, per cent of the nearer roof", 80, "decode", dict(DECODE, scheme=(*SHARING, "mha", "gqa", "collaborative", "mla")), of=nearer_roof),
    Target("decode, MLA's bytes of cache a second over mqa's", 1, "decode", dict(DECODE, scheme="mla"), "byte_ratio_to_mqa"),
    anchored("decode against compiled flex_attention", "python_torch_flex", "decode", **CACHES),
    anchored("decode against ONNX Runtime", "python_onnxruntime", "decode", **CACHES),
    anchored("forward against compiled flex_attention", "python_torch_flex", "attention_anchors", **ANCHORED),
    anchored("forward against ONNX Runtime", "python_onnxruntime", "attention_anchors", **ANCHORED),
    step("training step, MHA against transformers eager", 1.35, "mha", "transformers_eager"),
    step("the same, dropout 0.1", 1.5, "mha", "transformers_eager", dropout=0.1),
    step("training step, MHE-ADD against transformers eager", 1.6, "mhe_add", "transformers_eager"),
    step("the same, dropout 0.1", 1.75, "mhe_add", "transformers_eager", dropout=0.1),
    step("training step, MHA against torch.compile", 1.1, "mha", "transformers_compiled"),
    step("training step, MHE-ADD against torch.compile", 1.3, "mhe_add", "transformers_compiled"),
    step("training step in bf16, MHA against autocast", 1.4, "mha", "transformers_eager", precision="bf16"),
    step("training step in bf16, MHE-ADD against autocast", 1.6, "mhe_add", "transformers_eager", precision="bf16"),
    peak("peak memory of the step over transformers'", "gpt2", "transformers_eager"),
    step("masked-LM step, MHA against transformers", 1.8, "mha", "transformers_sdpa", case="bert"),
    step("the same, dropout 0.1", 2.0, "mha", "transformers_sdpa", dropout=0.1, case="bert"),
    step("masked-LM step, MHE-ADD against transformers", 2.3, "mhe_add", "transformers_sdpa", case="bert"),
    step("the same, dropout 0.1", 2.6, "mhe_add", "transformers_sdpa", dropout=0.1, case="bert"),
    step("masked-LM step, MHA against torch.compile", 1.3, "mha", "transformers_compiled", case="bert"),
    step("masked-LM step, MHE-ADD against torch.compile", 1.7, "mhe_add", "transformers_compiled", case="bert"),
    peak("peak memory of the masked-LM step over transformers'", "bert", "transformers_sdpa"),
    decomposing("decomposing a layer, 20 iterations, against TensorLy's 100", 10, "headshare_few", "ratio_to_tensorly"),
    decomposing("the same, relative error over TensorLy's", 1, "headshare_few", "error_ratio_to_tensorly", at_most=True),
    decomposing_trained("layers of a trained model, relative error over TensorLy's", 1, "headshare_few", "error_ratio_to_tensorly"),
    decomposing("decomposing 12 layers of 768, seconds", 60, "headshare", "seconds", at_most=True, layers=12),
    dataclasses.replace(
        decomposing("the same, peak MiB of the process", 953, "headshare", "peak_bytes", at_most=True, layers=12),
        of=peak_mebibytes),
    tokenising("tokenising, WordPiece", "wordpiece"),
    tokenising("tokenising, GPT-2's BPE", "gpt2"),
    without_vocabulary("three-way step with hashed words, against masked-LM of 30,522", 1.1),
    hashing("hashing a text, MD", 1000, "md, text"),
    hashing("MD signatures of different words", 300, "md"),
    hashing("LSH signatures of different words", 20, "lsh"),
    translation_scores("BLEU, chrF and TER against sacreBLEU", "bleu", "chrf", "ter"),
    translation_scores("the paired bootstrap, 1,000 resamples", "bleu, paired bootstrap", "chrf, paired bootstrap"),
    translating("translating, beam 4, against transformers", 4, "ratio_to_transformers"),
    translating("the same, against CTranslate2 in float32", 1, "ratio_to_ctranslate2"),
    translating("translating in bf16x3, against transformers in float32", 4, "ratio_to_transformers", "bf16x3"),
    translating("the same, against CTranslate2 in float32", 1, "ratio_to_ctranslate2", "bf16x3"),
    translation_step("training step of 6 + 6 layers of 512 against MarianMT", 1.5, "ratio_to_transformers"),
    translation_step("the same, against torch.nn.Transformer", 1.5, "ratio_to_torch_transformer"),
    translation_step("the same in bf16x3, against MarianMT in float32", 1.5, "ratio_to_transformers", "bf16x3"),
    translation_step("the same in bf16, against MarianMT under autocast", 1.5, "ratio_to_transformers", "bf16"),
    long_sources("sources of 512 tokens, beam 8, MHE against MHA", 1, "ratio_to_mha"),
    long_sources("the same, cross-attention's cache smaller than MHA's", 8, "cache_ratio_to_mha"),
    vision_step("training step of ViT-tiny, MHA against transformers eager", 1.3, "ratio_to_transformers_eager"),
    vision_step("the same, against sdpa", 1.3, "ratio_to_transformers_sdpa"),
    vision_step("the same, against torch.compile", 1, "ratio_to_transformers_compiled"),
    vision_step("peak memory of that step over transformers eager", 0.7, "memory_ratio_to_transformers_eager", at_most=True),
    vision_step("the same, over torch.compile", 0.7, "memory_ratio_to_transformers_compiled", at_most=True),
    classifying("images a second of ViT-tiny against transformers eager", 1.3, "ratio_to_transformers_eager"),
    classifying("the same, against torch.compile", 1, "ratio_to_transformers_compiled"),
]  # fmt: skip


def describe(row):
    name = row.get("name") or " ".join(str(row[key]) for key in ("contender", "scheme", "dropout") if key in row)
    return f"{name}, {row['threads']} thread{'s' * (row['threads'] != 1)}"


def load(folder, question):
    """Returns the rows of a question; none when it has not been measured."""
    for name in (f"bench_{question}.json", f"{question}.json"):
        if (folder / name).is_file():
            return results.read(folder / name)
    return []


def covers(where, row):
    def fits(field, wanted):
        return row.get(field) in wanted if isinstance(wanted, tuple) else row.get(field) == wanted

    return all(fits(field, wanted) for field, wanted in where.items())


def missing(where, rows):
    """Lists the combinations of the values in `where` that no row it covers has: "heads 16, threads 2"."""
    several = {field: wanted for field, wanted in where.items() if isinstance(wanted, tuple)}
    there = {tuple(row[field] for field in several) for row in rows if covers(where, row)}
    absent = [values for values in itertools.product(*several.values()) if values not in there]
    return [", ".join(f"{field} {value}" for field, value in zip(several, values, strict=True)) for values in absent]


def judge(target, rows):
    """Returns (worst value, name of its row, how many rows, reached?); None, "", 0, None where nothing was measured."""
    chosen = [row for row in rows if covers(target.where, row)]
    found = target.of(chosen) if target.of else [(row.get(target.ratio), describe(row)) for row in chosen]
    found = [one for one in found if one[0] is not None]
    if not found:
        return None, "", 0, None
    value, name = (max if target.at_most else min)(found)
    return value, name, len(found), value <= target.bound if target.at_most else value >= target.bound


def word(reached, absent):
    """Says in a word how a target fares; what is missing hides no miss."""
    if reached is None:
        return "not measured"
    return "NOT REACHED" if not reached else "incomplete" if absent else "reached"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="folder", type=pathlib.Path, default=ROOT / "docs/results")
    folder = parser.parse_args().folder
    missed = 0
    for target in TARGETS:
        rows = load(folder, target.question)
        value, name, count, reached = judge(target, rows)
        bound = f"{'<=' if target.at_most else '>='} {target.bound:g}"
        measured = "-" if value is None else f"{value:.2f}"
        absent = missing(target.where, rows)
        verdict = word(reached, absent)
        worst = f"worst of {count}: {name}" if count else ""
        if count and absent:
            worst += f"; not measured: {'; '.join(absent[:3])}{' ...' if absent[3:] else ''}"
        missed += verdict != "reached"
        print(f"{target.what:58} {bound:>8} {measured:>7}  {verdict:12} {worst}".rstrip())
    print(f"{len(TARGETS) - missed} of {len(TARGETS)} targets reached")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()

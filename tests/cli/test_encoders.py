"""Tests train --task mlm, evaluate, info, cost, fill and convert on a tiny encoder."""

import json
import math
import shutil

import pytest
from training import TINY, losses, one_line_error, own_cache, weights, words  # noqa: F401 (a fixture)

pytestmark = pytest.mark.slow

MLM = [*TINY[: TINY.index("--tokenizer")], *TINY[TINY.index("--tokenizer") + 2 :], "--task", "mlm", "--vocabulary-size", 60]
# With these options a run leaves the plateau of the unigram entropy within 300 steps, seconds.
LEARNS = ["--layers", 2, "--d-model", 64, "--heads", 4, "--batch-size", 16, "--context", 24, "--init-deviation", 0.1]
LEARNS += ["--steps", 300, "--learning-rate", 0.003]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"The {i % 7} foxes jump over {i % 3} lazy dogs.\n" for i in range(300)))
    return path


@pytest.fixture(scope="module")
def encoder(run, corpus, tmp_path_factory):
    """Returns a run with its printed result and what was said on the way."""
    out = tmp_path_factory.mktemp("mlm") / "run"
    options = (*LEARNS, "--test-fraction", 0.1, "--pseudo-tokens", 50)
    cache = {"HEADSHARE_CACHE": str(out.parent / "cache")}
    done = run("train", *MLM, "--json", "--text", corpus, "--out", out, *options, env=cache)
    return out, json.loads(done.stdout), done.stderr


def test_train(encoder):
    out, trained, said = encoder
    assert trained["steps"] == 300
    assert trained["tokens"] == 300 * 16 * round(0.15 * 22)
    first, *_ = losses(out)
    assert first[2] == pytest.approx(math.log(60), abs=1)
    assert trained["best_loss"] < 1.5 < trained["unigram_entropy"] < math.log(60)
    assert "unigram entropy of the training text" in said and "is not below" not in said
    assert trained["test_masked-perplexity"] == pytest.approx(math.exp(trained["test_loss"]))
    assert 1 < trained["test_pseudo-perplexity"] < 4
    resolved = (out / "resolved.yaml").read_text()
    assert "task: mlm" in resolved and "schedule: linear" in resolved and "activation: gelu_erf" in resolved


def test_a_model_that_learns_frequencies_alone_is_noticed(run, corpus, tmp_path):
    flags = ("--text", corpus, "--out", tmp_path / "run", "--steps", 20, "--learning-rate", 1e-9)
    said = run("train", *MLM, *flags).stderr
    assert "is not below" in said and "unigram entropy" in said


def test_a_comparison_notices_it_too(run, corpus, tmp_path):
    flags = ("--text", corpus, "--out", tmp_path / "out", "--steps", 20, "--learning-rate", 1e-9, "--schemes", "mha,sha")
    flags = (*flags, "--init-deviation", 0.3)  # so that the losses differ: what is the same of all is said once
    said = " ".join(run("compare", *MLM, *flags).stderr.split())
    assert "mha seed 0: the training loss" in said and "sha seed 0: the training loss" in said and "is not below" in said


def test_help_shows_what_masked_language_models_begin_with(run):
    for verb in ("train", "compare"):
        masked = " ".join(run(verb, "--help-all", "--task", "mlm").stdout.split())
        causal = " ".join(run(verb, "--help-all").stdout.split())
        assert "default gelu_erf" in masked and "default 1e-12" in masked and "default wordpiece" in masked
        assert "default gelu_tanh" in causal and "default wordpiece" not in causal


def test_a_stopped_run_goes_on_to_the_same_bits(run, corpus, tmp_path):
    flags = ("--text", corpus, "--whole-words", "--mask-rate", 0.2, "--dropout", 0.1, "--optimizer", "lamb")
    flags = (*flags, "--norms", "pre")
    run("train", *MLM, *flags, "--out", tmp_path / "whole", "--steps", 8, "--save-every", 4)
    run("train", *MLM, *flags, "--out", tmp_path / "parts", "--steps", 8, "--save-every", 4)
    last = sorted((tmp_path / "parts" / "checkpoints").glob("step-*"))
    assert len(last) == 2
    before = weights(tmp_path / "parts")
    # The run goes back to the first of the two checkpoints.
    shutil.rmtree(last[-1])
    (tmp_path / "parts" / "checkpoints" / "last").unlink()
    (tmp_path / "parts" / "checkpoints" / "last").symlink_to(last[0].name)
    run("train", "--resume", "--out", tmp_path / "parts")
    assert weights(tmp_path / "parts") == before == weights(tmp_path / "whole")


def test_evaluate(run, corpus, encoder):
    out, trained, _ = encoder
    flags = ("--threads", 1, "--text", corpus, "--part", "test", "--test-fraction", 0.1, "--pseudo-tokens", 50)
    scored = json.loads(run("evaluate", out, "--json", *flags).stdout)
    assert scored["masked_lm_loss"] == pytest.approx(trained["test_loss"], rel=1e-5)
    assert scored["pseudo_perplexity"] == pytest.approx(trained["test_pseudo-perplexity"], rel=1e-5)
    assert scored["pseudo_tokens"] <= 50 and "objective:pseudo" in scored["signature"]
    more = json.loads(run("evaluate", out, "--json", *flags[:-2], "--pseudo-tokens", 0, "--mask-rate", 0.5).stdout)
    assert more["masked_tokens"] > 2 * scored["masked_tokens"] and "pseudo_perplexity" not in more
    assert "pseudo-perplexity" in run("evaluate", out, *flags).stdout


def test_info_and_fill(run, encoder):
    out, *_ = encoder
    about = json.loads(run("info", out, "--json").stdout)
    assert about["kind"] == "encoder" and about["tokenizer"]["kind"] == "wordpiece"
    text = "The 5 [MASK] jump over [MASK] lazy dogs."
    done = json.loads(run("fill", out, text, "--json", "--top-k", 3).stdout)
    assert done["text"] == text and [len(one) for one in done["masks"]] == [3, 3]
    assert done["masks"][0][0]["text"] == "foxes" and done["masks"][1][0]["text"] in "012"
    for fillings in done["masks"]:
        shares = [one["probability"] for one in fillings]
        assert shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 1
    everything = json.loads(run("fill", out, "[MASK]", "--json", "--top-k", 1000).stdout)["masks"][0]
    assert len(everything) == about["tokenizer"]["vocabulary_size"]
    assert sum(one["probability"] for one in everything) == pytest.approx(1)
    shown = run("fill", out, text).stdout.splitlines()
    assert shown[0] == text and shown[1] == "mask 1" and shown[2].split()[1] == done["masks"][0][0]["text"]
    lines = run("fill", out, "--json", text_in="one [MASK]\n\n[MASK] two\n").stdout.splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["one [MASK]", "[MASK] two"]


def test_what_fill_and_evaluate_refuse(run, refused, corpus, encoder, tmp_path):
    out, *_ = encoder
    one_line_error(refused(1, "fill", out, "no mask"), "[MASK]")
    one_line_error(refused(1, "fill", out, "[MASK] " + "fox " * 30), "the model's context of 24")
    one_line_error(refused(1, "fill", out), "no text")
    one_line_error(refused(1, "generate", out, "--prompt", "The"), "is an encoder")
    one_line_error(refused(2, "evaluate", out, "--text", corpus, "--stride", 3), "--stride")
    run("train", *TINY, "--text", corpus, "--out", tmp_path / "decoder", "--steps", 1)
    one_line_error(refused(1, "fill", tmp_path / "decoder", "[MASK]"), "is a decoder language model")
    one_line_error(refused(2, "evaluate", tmp_path / "decoder", "--text", corpus, "--mask-rate", 0.2), "--mask-rate")
    (tmp_path / "unmasked.txt").write_text("\u4e2d\u6587 " * 100)
    one_line_error(refused(1, "evaluate", out, "--text", tmp_path / "unmasked.txt"), "unknown to the tokenizer")
    # The tokenizer of another model is refused.
    decoder_tokenizer = (tmp_path / "decoder" / "checkpoints" / "best" / "tokenizer.json").read_text()
    copy = shutil.copytree(out / "checkpoints" / "best", tmp_path / "copy", symlinks=False)
    (copy / "tokenizer.json").write_text(decoder_tokenizer)
    done = refused(1, "fill", copy, "[MASK]")
    assert "tokenizer" in done and ("model only" in done or "'mask'" in done), done
    # A tokenizer of the same size is refused, too: two tokens have changed places.
    tokenizer = (out / "checkpoints" / "best" / "tokenizer.json").read_text()
    swapped = json.loads(tokenizer)
    swapped["tokens"][-2:] = swapped["tokens"][:-3:-1]
    (copy / "tokenizer.json").write_text(json.dumps(swapped))
    one_line_error(refused(1, "fill", copy, "[MASK]"), "tokenizer.json is not the tokenizer", "config.json")
    # The same tokenizer, laid out in another way, is taken.
    (copy / "tokenizer.json").write_text(json.dumps(json.loads(tokenizer), indent=1))
    run("fill", copy, "[MASK]")


@pytest.mark.parametrize(
    "flags, code, expected",
    [
        (["--tokenizer", "bytes"], 2, ["wordpiece alone has them"]),
        (["--context", 5000], 1, ["--context 5000", "4998"]),
        (["--context", 2], 2, ["no room for text"]),
        (["--stride", 3], 2, ["--stride"]),
        (["--mask-rate", 0], 2, ["--mask-rate"]),
        (["--task", "mml"], 2, ["did you mean 'mlm'?"]),
        (["--task", "language-model", "--whole-words"], 2, ["--whole-words belongs to --task mlm"]),
        (["--scheme", "el_shared", "--positions", "rotary"], 2, ["rotary"]),
    ],
)
def test_what_train_refuses(refused, corpus, tmp_path, flags, code, expected):
    base = MLM[:-2] if "bytes" in flags else MLM  # bytes have the vocabulary they have
    flags = base + flags
    one_line_error(refused(code, "train", *words(*flags), "--text", corpus, "--out", tmp_path / "run"), *expected)
    assert not (tmp_path / "run").exists()


def test_a_vocabulary_without_mask_is_named(refused, corpus, tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\nfox\n")
    flags = (*MLM[:-2], "--text", corpus, "--tokenizer-path", vocabulary, "--out", tmp_path / "run")
    one_line_error(refused(1, "train", *words(*flags)), str(vocabulary), "no token for 'mask'")


def test_text_of_one_endless_word(run, tmp_path):
    """Writes words longer than the 100 characters that a word may have: nothing but [UNK], which is never masked."""
    (tmp_path / "word.txt").write_text("x" * 30000)
    flags = ("--text", tmp_path / "word.txt", "--out", tmp_path / "run", "--steps", 2)
    done = run("train", *MLM[:-2], *flags, check=False)
    assert done.returncode == 1
    one_line_error(done.stderr.splitlines(keepends=True)[-1], "more than 100 characters", "blanks between words")


def test_compare(run, refused, corpus, tmp_path):
    out = tmp_path / "out"
    flags = [*MLM, "--positions", "alibi", "--schemes", "mha,mhe_mul,el_lossless", "--steps", 10, "--pseudo-tokens", 30, "--text", corpus]
    found = json.loads(run("compare", "--json", *flags, "--out", out).stdout)
    assert found["subject"]["measure"] == "masked-perplexity" and "unigram entropy" in found["subject"]["data"]
    cells = {one["variant"]: one for one in found["cells"]}
    for cell in cells.values():
        assert cell["quality"] == pytest.approx(math.exp(cell["test_loss"]))
        scores = {score["name"]: score["value"] for score in cell["scores"]}
        assert list(scores) == ["pseudo-perplexity"] and scores["pseudo-perplexity"] > 1 and "rate:0.15" in cell["signature"]
        assert cell["cache_bytes_per_token"] == cell["decoding_tokens_per_second"] == 0
        assert len(cell["blocks"]) == len(cells["mha"]["blocks"])
    assert cells["el_lossless"]["test_loss"] == pytest.approx(cells["mha"]["test_loss"], rel=1e-5)
    scored = json.loads(
        run("evaluate", out / cells["mha"]["model"], "--json", "--text", corpus, "--part", "test", "--test-fraction", 0.1).stdout
    )
    assert scored["masked_lm_loss"] == pytest.approx(cells["mha"]["test_loss"], rel=1e-5)
    page = (out / "report.html").read_text()
    assert "Pseudo-perplexity" in page and "Decoding" not in page and 'id="c1-cache"' not in page
    shown = run("report", out).stdout
    assert "pseudo-perplexity" in shown and "cache" not in shown.lower()
    header, first, *_ = (out / "cells.csv").read_text().splitlines()
    assert "pseudo_perplexity" in header.split(",")
    one_line_error(refused(2, "compare", "--whole-words", "--text", corpus, "--out", out), "belongs to --task mlm")
    assert "mhe_mul" in run("compare", *flags, "--dry-run").stdout


def test_dry_run_and_cost(run, refused):
    shown = run("train", "--task", "mlm", "--dry-run", "--layers", 4, "--d-model", 192, "--heads", 6).stdout
    assert shown.startswith("model       encoder, mha") and "cache" not in shown
    costs = json.loads(run("cost", "--kind", "encoder", "--json", "--layers", 12, "--d-model", 768, "--heads", 12).stdout)
    found = {one["scheme"]: one for one in costs}
    assert found["mhe_add"]["attention_parameters"] == 8_875_008
    assert found["mha"]["kind"] == "encoder" and "kv_cache_bytes_per_token" not in found["mha"]
    assert "keeps no cache" in run("cost", "--kind", "encoder").stdout
    one_line_error(refused(2, "cost", "--norms", "pre"), "--norms belongs to --kind encoder")
    one_line_error(refused(2, "cost", "--kind", "encoder", "--memory-budget", "1GiB"), "--memory-budget")

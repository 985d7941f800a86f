"""Tests encoders without a vocabulary: train --task three-way, evaluate, info, cost, finetune, fill, compare."""

import json
import math
import shutil
import struct

import pytest
from training import TINY, metrics, own_cache, weights  # noqa: F401 (a fixture)

pytestmark = pytest.mark.slow

LETTERS = ["hash-trigram", "hash-characters"]
KINDS = ["hash-emb", "hash-pool", "hash-add", "hash-proj", *LETTERS]
THREE_WAY = [*TINY[: TINY.index("--tokenizer")], *TINY[TINY.index("--tokenizer") + 2 :], "--task", "three-way"]
SMALL = ["--layers", 1, "--d-model", 32, "--heads", 2, "--batch-size", 16, "--context", 24]
SIZES = {"hash-emb": ["--hash-buckets", 100], "hash-trigram": ["--trigram-rows", 200], "hash-characters": ["--character-buckets", 60]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"The {i % 7} foxes jump over {i % 3} lazy dogs.\n" for i in range(300)))
    return path


def hashed(kind, tokenizer="hash-md"):
    return ["--tokenizer", tokenizer, "--token-embedding", kind, *SIZES.get(kind, [])]


@pytest.fixture(scope="module")
def encoder(run, corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("three-way") / "run"
    flags = (*SMALL, *hashed("hash-proj"), "--steps", 300, "--learning-rate", 0.005, "--test-fraction", 0.1)
    cache = {"HEADSHARE_CACHE": str(out.parent / "cache")}
    done = run("train", *THREE_WAY, "--json", "--text", corpus, "--out", out, *flags, env=cache)
    return out, json.loads(done.stdout)


def test_train_and_evaluate(run, encoder, corpus):
    out, trained = encoder
    # A model that knows the shares alone (81, 10 and 9 in 100) has a loss of 0.62 nats.
    assert trained["best_loss"] < 0.4
    assert trained["test_random-recall"] > 0.8
    scored = json.loads(run("evaluate", out, "--text", corpus, "--json").stdout)
    assert scored["three_way_loss"] < 0.4 and 0.8 < scored["three_way_accuracy"] <= 1
    assert scored["signature"].startswith("three-way-loss|") and "words-of" not in scored["signature"]
    assert run("tokenize", "--tokenizer", out, text_in="the\n").stdout == "20664\t0\t3\tthe\n\n"
    words = json.loads(run("evaluate", out, "--text", corpus, "--random-tokens", "words", "--json").stdout)
    assert words["signature"].endswith("|random:words|words-of:scored-text")
    shown = run("evaluate", out, "--text", corpus).stdout
    assert "shuffled-recall" in shown and f"signature           {scored['signature']}" in shown
    assert f"tokens              {scored['tokens']}\n" in shown


def test_a_score_that_is_no_number_is_refused(refused, encoder, corpus, tmp_path):
    """Weights may be finite and what follows from them not: those of norms are set to nearly the largest number."""
    model = shutil.copytree(encoder[0] / "checkpoints" / "best", tmp_path / "model")
    content = bytearray((model / "model.safetensors").read_bytes())
    data = 8 + int.from_bytes(content[:8], "little")
    for name, tensor in json.loads(content[8:data]).items():
        if name.endswith("norm.weight"):
            begin, end = tensor["data_offsets"]
            content[data + begin : data + end] = struct.pack("<f", 3e38) * ((end - begin) // 4)
    (model / "model.safetensors").write_bytes(content)
    message = refused(1, "evaluate", model, "--text", corpus)
    assert "its weights are finite, and what it computes from them is not" in message


def test_what_evaluate_refuses(refused, encoder, corpus, tmp_path):
    """Refuses options of other encoders, and of parts that are not scored."""
    text = ("--text", corpus)
    assert "--mask-rate is about models of --task mlm" in refused(2, "evaluate", encoder[0], *text, "--mask-rate", 0.2)
    assert "all of --text is scored" in refused(2, "evaluate", encoder[0], *text, "--test-fraction", 0.2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_run_goes_on_to_the_same_bits(run, corpus, tmp_path, kind):
    flags = (*THREE_WAY, *SMALL, *hashed(kind), "--text", corpus, "--steps", 8, "--save-every", 4, "--dropout", 0.1)
    run("train", *flags, "--out", tmp_path / "whole")
    run("train", *flags, "--out", tmp_path / "parts")
    before = weights(tmp_path / "parts")
    # The run goes back to the first of the two checkpoints.
    first, last = sorted((tmp_path / "parts" / "checkpoints").glob("step-*"))
    shutil.rmtree(last)
    (tmp_path / "parts" / "checkpoints" / "last").unlink()
    (tmp_path / "parts" / "checkpoints" / "last").symlink_to(first.name)
    run("train", "--resume", "--out", tmp_path / "parts")
    assert weights(tmp_path / "parts") == before == weights(tmp_path / "whole")


def test_lsh_and_the_other_corruptions(run, corpus, tmp_path):
    flags = (*THREE_WAY, *SMALL, *hashed("hash-pool", "hash-lsh"), "--text", corpus, "--steps", 3)
    run("train", *flags, "--shuffle", "row", "--random-tokens", "words", "--out", tmp_path / "run")


HARD = {
    "words of 10 MB": ("x" * (10 << 20) + " the " + "y" * (10 << 20) + "\n") + "a few words more\n" * 100,
    "control characters": "a\x1b[31m b\x07c \x7f \x85 d\r\n" * 100,
    "empty lines": "\n\n \n\t\n" * 50 + "a fox\n\n" * 100,
    "a script without spaces": "日本語の文章には、空白がない。\n" * 100,
}


@pytest.mark.parametrize("tokenizer", ["hash-md", "hash-lsh"])
@pytest.mark.parametrize("what", HARD)
def test_hard_texts_are_learned(run, tmp_path, what, tokenizer):
    path = tmp_path / "text.txt"
    path.write_text(HARD[what], newline="")
    flags = (*THREE_WAY, *SMALL, *hashed("hash-proj", tokenizer), "--text", path, "--steps", 2)
    run("train", *flags, "--out", tmp_path / "run")
    assert all(math.isfinite(line["loss"]) for line in metrics(tmp_path / "run"))


@pytest.mark.parametrize("tokenizer", ["hash-md", "hash-lsh"])
def test_texts_without_words_are_refused(refused, tmp_path, tokenizer):
    def message(name, content):
        (tmp_path / name).write_bytes(content)
        flags = (*THREE_WAY, *SMALL, *hashed("hash-proj", tokenizer), "--text", tmp_path / name, "--steps", 1)
        return refused(1, "train", *flags, "--out", tmp_path / "run")

    lines = b'{"text": "fine words"}\n{"text": "lone \\ud800 one"}\n'
    assert "lines.jsonl:2" in (said := message("lines.jsonl", lines)) and "surrogate" in said
    assert "surrogate.txt is not UTF-8: byte 5" in message("surrogate.txt", b"lone \xed\xa0\x80 one\n")
    assert "empty.txt: the text has no tokens" in message("empty.txt", b"\n" * 1000)
    assert "nul.txt is not text: a NUL byte" in message("nul.txt", b"a b\0c\n" * 100)
    one_word = message("run.txt", "日本語".encode() * 5000)
    assert "blanks between words" in one_word and "a single word" in one_word
    assert not (tmp_path / "run").exists()


def test_wordpiece_learns_the_same_task(run, corpus, tmp_path):
    flags = (*THREE_WAY, *SMALL, "--vocabulary-size", 60, "--text", corpus, "--steps", 3, "--out", tmp_path / "run")
    assert "three-way-accuracy" in json.loads(run("train", *flags, "--json", "--test-fraction", 0.1).stdout).__str__()


def test_info_and_cost(run, encoder):
    shown = json.loads(run("info", encoder[0], "--json").stdout)
    assert "hash-proj" in json.dumps(shown) and not {"vocabulary", "tie-embeddings"} & shown["options"].keys()
    flags = ("--kind", "encoder", "--layers", 12, "--d-model", 768, "--heads", 12)
    flags = (*flags, "--context", 514, "--segments", 1, "--schemes", "mha,mhe_mul", "--json")
    mha, mhe_mul = json.loads(run("cost", *flags, "--token-embedding", "hash-proj").stdout)
    assert mha["total_parameters"] == 85_554_432 + 2_307  # with the three-way head
    assert mhe_mul["total_parameters"] < mha["total_parameters"]
    assert mha["embedding_parameters"] == 99_072 + 5 * 768 and mha["token_embedding"] == "hash-proj"  # S[0..4] too
    assert "vocabulary" not in mha and "hash-proj (102,912)" in run("cost", *flags[:-1], "--token-embedding", "hash-proj").stdout
    assert shown["embedding_parameters"] == 134 * 32


def test_costs_of_several_embeddings(run, refused):
    flags = ("cost", "--kind", "encoder", "--layers", 1, "--d-model", 64, "--heads", 2, "--schemes", "mha")
    kinds = "table,hash-emb,hash-proj"
    swept = json.loads(run(*flags, "--json", "--sweep", f"token-embedding={kinds}").stdout)
    assert [one["embedding_parameters"] for one in swept] == [50_257 * 64, 50_265 * 64, 134 * 64]
    printed = " ".join(run(*flags, "--sweep", f"token-embedding={kinds}").stdout.split())
    assert "token-embedding varying" in printed and "8,576" in printed
    bits = json.loads(run(*flags, "--json", "--token-embedding", "hash-proj", "--sweep", "hash-bits=32,64").stdout)
    assert [one["embedding_parameters"] for one in bits] == [38 * 64, 70 * 64]
    for odd in (("--trigram-rows", 9), ("--vocabulary", 100), ("--sweep", "vocabulary=1,2")):
        assert odd[-1] if odd[0] == "--sweep" else odd[0] in refused(2, *flags, "--token-embedding", "hash-proj", *odd)
    assert "--hash-bits is for" in refused(2, *flags, "--hash-bits", 64)


def options_of(run, model):
    return json.loads(run("info", model, "--json").stdout)["options"]


def test_info_shows_the_options_of_its_kind(run, encoder, corpus, tmp_path):
    shown = options_of(run, encoder[0])
    assert shown["hash-bits"] == 128 and not {"hash-buckets", "hash-chunk-bits", "trigram-rows"} & set(shown)
    flags = (*THREE_WAY, *SMALL, "--vocabulary-size", 60, "--text", corpus, "--steps", 1, "--out", tmp_path / "table")
    run("train", *flags)
    assert not [name for name in options_of(run, tmp_path / "table") if "hash" in name or "trigram" in name]


@pytest.mark.parametrize(
    "kind, parameters", [("hash-trigram", (8000 + 5) * 768), ("hash-characters", (16384 + 64 + 5) * 768)]
)
def test_costs_of_letters(run, kind, parameters):
    flags = ("--kind", "encoder", "--layers", 1, "--d-model", 768, "--heads", 12, "--context", 514, "--schemes", "mha")
    [letters] = json.loads(run("cost", *flags, "--json", "--token-embedding", kind).stdout)
    [proj] = json.loads(run("cost", *flags, "--json", "--token-embedding", "hash-proj").stdout)
    assert letters["total_parameters"] - proj["total_parameters"] == parameters - (128 + 6) * 768


def tables_of_animals(folder):
    """Writes rows to train on, and the same to validate on."""
    rows = [("the foxes jump", "up"), ("the dogs sleep", "down"), ("foxes jump over", "up"), ("lazy dogs", "down")] * 10
    paths = folder / "table.tsv", folder / "validation.tsv"
    for path in paths:
        path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    return paths


@pytest.mark.parametrize("kind", LETTERS)
def test_letters_from_training_to_answers(run, corpus, tmp_path, kind):
    flags = (*THREE_WAY, *SMALL, *hashed(kind), "--text", corpus, "--steps", 300, "--learning-rate", 0.005)
    cache = {"HEADSHARE_CACHE": str(tmp_path / "cache")}
    trained = json.loads(run("train", *flags, "--json", "--out", tmp_path / "run", env=cache).stdout)
    assert trained["best_loss"] < 0.6  # knowing the shares alone costs 0.62 nats
    # Words come from the cache in another order than from the text, and give the same bits.
    run("train", *flags, "--out", tmp_path / "again", env=cache)
    assert weights(tmp_path / "again") == weights(tmp_path / "run")
    scored = json.loads(run("evaluate", tmp_path / "run", "--text", corpus, "--json").stdout)
    assert scored["three_way_loss"] < 0.6
    table, validation = tables_of_animals(tmp_path)
    tuning = ("--task", "classify", "--train", table, "--validation", validation, "--epochs", 15, "--seeds", 1)
    run("finetune", tmp_path / "run", *tuning, "--learning-rate", 0.005, "--out", tmp_path / "tuned")
    asked = tmp_path / "asked.tsv"
    asked.write_text("text\nfoxes jump over\nlazy dogs\nthe unseen dgos sleep\n" + "x" * 10_000_000 + "\n")
    answers = run("predict", tmp_path / "tuned", asked).stdout.splitlines()
    assert len(answers) == 5 and "up" in answers[1] and "down" in answers[2]
    words = run("tokenize", "--tokenizer", tmp_path / "tuned", table).stdout
    assert words == run("tokenize", "--tokenizer", tmp_path / "run", table).stdout and "hash-md" not in words
    (tuned,) = (tmp_path / "tuned").glob("*/lr-*")
    assert "three-way" not in run("cost", tuned).stdout
    assert "three-way encoder" in run("cost", tmp_path / "run").stdout


def test_finetune_and_predict(run, refused, encoder, tmp_path):
    table, validation = tables_of_animals(tmp_path)
    flags = ("--task", "classify", "--train", table, "--validation", validation, "--epochs", 12, "--seeds", 1)
    run("finetune", encoder[0], *flags, "--learning-rate", 0.005, "--out", tmp_path / "tuned")
    asked = tmp_path / "asked.tsv"
    asked.write_text("text\nfoxes jump over\nthe unseen dogs sleep\n")
    answers = run("predict", tmp_path / "tuned", asked).stdout
    assert "up" in answers and "down" in answers
    # Verbs of other models name the one that it has.
    (tuned,) = (tmp_path / "tuned").glob("*/lr-*")
    assert "`headshare predict`" in refused(1, "evaluate", tuned, "--text", table)
    assert "`headshare predict`" in refused(1, "fill", tuned, text_in="a\n")
    assert "tells replaced words (`headshare evaluate`)" in refused(1, "generate", encoder[0])


def test_what_has_no_vocabulary_says_so(run, refused, encoder, corpus, tmp_path):
    for line in ("a <mask>\n", "no gap\n"):
        said = refused(1, "fill", encoder[0], text_in=line)
        assert "has no vocabulary" in said and "`headshare evaluate`" in said
    out = ("--text", corpus, "--out", tmp_path / "x", "--steps", 1)
    for odd in (("--vocabulary-size", 100), ("--cased",), ("--hash-merges", "x"), ("--min-count", 3)):
        for dry in ((), ("--dry-run",)):
            said = refused(2, "train", "--task", "three-way", *hashed("hash-proj"), *odd, *out, *dry)
            assert odd[0].removeprefix("--") in said
    for odd in (("--hash-buckets", 99), ("--trigram-rows", 99)):
        said = refused(2, "train", "--task", "three-way", *hashed("hash-proj"), *odd, *out, "--dry-run")
        assert f"{odd[0]} is for hash-" in said and "no token embedding here is one" in said
    assert "--task three-way" in refused(2, "train", "--task", "mlm", *hashed("hash-proj"), *out)
    assert "vocabulary" in refused(2, "train", "--task", "three-way", "--token-embedding", "hash-add", *out)
    assert "vocabulary" in refused(2, "train", "--task", "three-way", "--tokenizer", "hash-md", *out)
    assert "--task three-way" in refused(2, "train", "--tokenizer", "hash-md", *out)
    for kind in LETTERS:
        assert "--task three-way" in refused(2, "train", "--task", "mlm", *hashed(kind), *out)
        assert "vocabulary" in refused(2, "train", *THREE_WAY, "--token-embedding", kind, "--tokenizer", "bpe", *out)
    for task in ("mlm", "three-way"):
        said = refused(2, "train", "--task", task, "--tokenizer", "bpe", *out)
        assert "wordpiece alone has them" in said
    for kind in LETTERS:
        bits = ("--random-tokens", "bits")
        assert "--random-tokens words" in refused(2, "train", *THREE_WAY, *hashed(kind), *bits, *out)
    assert "a table has rows of tokens" in refused(2, "train", *THREE_WAY, "--random-tokens", "bits", *out)
    words = tmp_path / "words.txt"
    words.write_text("the\nfox\n")
    said = refused(1, "convert", encoder[0], tmp_path / "hf", "--to", "hf", "--words", words)
    assert "`train --task three-way --bert`" in said
    few = ("--tokenizer", "hash-md", "--token-embedding", "hash-trigram", "--trigram-rows", 5)
    assert "--trigram-hashes 10" in refused(2, "train", *THREE_WAY, *few, *out)
    odd = ("--d-model", 36, "--heads", 2)
    assert "multiple of 8" in refused(2, "train", *THREE_WAY, *hashed("hash-characters"), *odd, *out)
    assert "belongs to --task three-way" in refused(2, "train", "--task", "mlm", "--shuffle", "row", *out)
    assert "belongs to --task mlm" in refused(2, "train", "--task", "three-way", "--mask-rate", 0.3, *out)
    assert not (tmp_path / "x").exists()


def test_compare_letters_as_variants(run, corpus, tmp_path):
    flags = (*THREE_WAY, *SMALL, *hashed("hash-proj"), "--text", corpus, "--random-tokens", "words", "--schemes", "mha")
    variants = "trigram:scheme=mha,token-embedding=hash-trigram,characters:scheme=mha,token-embedding=hash-characters"
    shown = run("compare", *flags, "--variants", variants, "--steps", 3, "--out", tmp_path / "out").stdout
    assert "trigram" in shown and "characters" in shown


def test_compare_embeddings_as_variants(run, corpus, tmp_path):
    flags = (*THREE_WAY, *SMALL, "--tokenizer", "hash-md", "--token-embedding", "hash-proj", "--text", corpus)
    flags = (*flags, "--schemes", "mha,mhe_mul", "--variants", "add:scheme=mha,token-embedding=hash-add", "--steps", 3)
    shown = run("compare", *flags, "--test-fraction", 0.1, "--out", tmp_path / "out").stdout
    assert "mhe_mul" in shown and "add" in shown

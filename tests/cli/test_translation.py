"""Tests translation as users do it: train, translate, compare; and what goes wrong."""

import gzip
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest
from training import own_cache  # noqa: F401 (a fixture)

pytestmark = pytest.mark.slow

WORDS = ["eins", "zwei", "drei", "vier", "fünf", "sechs"]
TRANSLATED = ["one", "two", "three", "four", "five", "six"]


def pair(line):
    chosen = [(line * 5 + i * i * 3 + line // 6) % 6 for i in range(2 + line % 3)]
    return " ".join(WORDS[c] for c in chosen), " ".join(TRANSLATED[c] for c in chosen)


def write_pairs(folder, name, first, count):
    pairs = [pair(line) for line in range(first, first + count)]
    for side, text in (("de", [p[0] for p in pairs]), ("en", [p[1] for p in pairs])):
        (folder / f"{name}.{side}").write_text("\n".join(text) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    write_pairs(folder, "train", 0, 120)
    write_pairs(folder, "valid", 120, 20)
    write_pairs(folder, "test", 140, 20)
    return folder


def files(folder):
    words = []
    for option, name in (("", "train"), ("validation-", "valid"), ("test-", "test")):
        words += [f"--{option}source", folder / f"{name}.de", f"--{option}target", folder / f"{name}.en"]
    return words


SMALL = ["--tokenizer", "bpe", "--vocabulary-size", "300", "--layers", "1", "--d-model", "32", "--heads", "2",
         "--context", "64", "--max-pair-length", "64", "--batch-tokens", "256", "--dropout", "0", "--threads", "1"]


@pytest.fixture(scope="module")
def model(pairs, run, tmp_path_factory):
    out = tmp_path_factory.mktemp("translation") / "run"
    run("train", "--task", "translation", *files(pairs), *SMALL, "--steps", "200", "--learning-rate", "1e-2",
        "--warmup-steps", "20", "--out", out)
    return out


@pytest.fixture(scope="module")
def translate(program, model):
    """translate(lines, "--beam", 3) takes bytes and returns the finished process."""

    def call(lines, *words, check=True, path=model):
        words = [program, "translate", path, "--threads", 1, *words]
        done = subprocess.run([str(word) for word in words], input=lines, capture_output=True, timeout=300)
        assert done.returncode == 0 or not check, done.stderr.decode()
        return done

    return call


def test_tokenizers_without_an_end_do_not_go_to_transformers(run, pairs, tmp_path):
    """transformers would translate otherwise: it ends a source only where tokenizer.json says so."""
    marian = ["--norms", "post", "--no-scale-embeddings", "--steps", 1, "--out", tmp_path / "run"]
    run("train", "--task", "translation", *files(pairs), *SMALL, *marian)
    done = run("convert", tmp_path / "run", tmp_path / "hf", "--to", "hf", check=False)
    assert done.returncode == 1 and "train with --tokenizer wordpiece" in done.stderr and not (tmp_path / "hf").exists()


def test_trained_model_translates(run, translate, model, pairs):
    result = json.loads((model / "result.json").read_text())
    assert result["test_bleu"] > 80 and "tok:13a" in result["test_bleu_signature"]
    outputs = (model / "outputs.txt").read_text().splitlines()
    assert len(outputs) == 20
    answer = translate((pairs / "test.de").read_bytes(), "--beam", "5")
    assert answer.stdout.decode().splitlines() == outputs
    scored = run("score", "bleu", "--gold", pairs / "test.en", "--json", model / "outputs.txt")
    assert json.loads(scored.stdout)["systems"][0]["score"] == pytest.approx(result["test_bleu"])


def test_heads_of_a_trained_model_share(run, translate, model, pairs, tmp_path):
    def convert(name, *words):
        return json.loads(run("convert", model, tmp_path / name, *words, "--json").stdout)

    source = (pairs / "test.de").read_bytes()
    convert("whole", "--to", "collaborative", "--key-width", "32")
    assert translate(source, path=tmp_path / "whole").stdout == translate(source).stdout
    for name, words in (("narrow", ["--to", "collaborative", "--key-width", "8"]), ("mqa", ["--to", "mqa"])):
        report = convert(name, *words)
        assert [layer["layer"] for layer in report["layers"]] == ["encoder layer 1", "decoder layer 1", "cross-attention layer 1"]
        assert report["after"]["attention_parameters"] < report["before"]["attention_parameters"]
        assert len(translate(source, path=tmp_path / name).stdout.splitlines()) == 20


def test_a_converted_translator_heals(run, model, pairs, tmp_path):
    run("convert", model, tmp_path / "narrow", "--to", "collaborative", "--key-width", "4")
    healed = tmp_path / "healed"
    run("train", "--start-from", tmp_path / "narrow", *files(pairs), "--steps", "40", "--learning-rate", "1e-3", "--batch-tokens", "256",
        "--max-pair-length", "64", "--evaluate-every", "20", "--threads", "1", "--out", healed)  # fmt: skip
    events = [json.loads(line) for line in (healed / "metrics.jsonl").read_text().splitlines()]
    losses = [event["loss"] for event in events if event["event"] == "evaluation"]
    assert len(losses) == 3 and losses[2] < 0.8 * losses[0]
    options = json.loads(run("info", healed, "--json").stdout)["options"]
    assert options["cross-scheme"] == "collaborative" and options["cross-key-width"] == 4


def test_a_training_that_goes_on_begins_where_the_model_ended(run, pairs, tmp_path):
    words = ["--separate-tokenizers", "--share-embeddings=false", "--positions", "learned", "--steps", "20", "--learning-rate", "1e-2"]
    run("train", "--task", "translation", *files(pairs), *SMALL, *words, "--out", tmp_path / "run")
    run("train", "--start-from", tmp_path / "run", *files(pairs), "--batch-tokens", "256", "--steps", "1", "--evaluate-every", "1",
        "--max-pair-length", "64", "--threads", "1", "--out", tmp_path / "more")  # fmt: skip
    before = json.loads((tmp_path / "run/result.json").read_text())["best_loss"]
    first = next(event for event in map(json.loads, (tmp_path / "more/metrics.jsonl").read_text().splitlines()) if event["event"] == "evaluation")
    assert first["step"] == 0 and first["loss"] == pytest.approx(before, abs=1e-6)
    mixed = tmp_path / "mixed"
    run("train", "--task", "translation", *files(pairs), *SMALL, "--cross-scheme", "mqa", "--steps", "1", "--out", mixed)
    answer = run("train", "--start-from", mixed, *files(pairs), "--steps", "1", "--out", tmp_path / "no", check=False)
    assert answer.returncode == 1 and "has mha, mha and mqa in its three places" in answer.stderr


@pytest.mark.parametrize("words, message", [
    (["--to", "collaborative", "--max-error", "0.1"], "one key width for all layers: give --key-width"),
    (["--to", "mqa", "--sample-text", "test.de"], "leave --sample-text out"),
    (["--to", "mqa", "--score-text", "test.de"], "leave --score-text out"),
])  # fmt: skip
def test_what_a_conversion_of_a_translator_has_not(run, model, tmp_path, words, message):
    answer = run("convert", model, tmp_path / "out", *words, check=False)
    assert answer.returncode == 1 and message in answer.stderr and not (tmp_path / "out").exists()


def test_every_line_gives_one_line(translate):
    lines = b"eins zwei\n\n" + b"drei " * 500 + b"\nf\xffnf\nvier\n"
    answer = translate(lines)
    out = answer.stdout.decode().split("\n")
    assert len(out) == 6 and out[5] == "" and out[1] == ""
    warnings = answer.stderr.decode()
    assert "line 2: empty" in warnings and "line 3" in warnings and "line 4" in warnings and "line 1:" not in warnings


def test_a_byte_order_mark_is_no_text(translate):
    marked, plain = translate(b"\xef\xbb\xbfeins zwei\n", "--json"), translate(b"eins zwei\n", "--json")
    assert marked.stdout == plain.stdout
    assert b"standard input begins with a byte order mark, which is no text: it is left out" in marked.stderr


def test_lines_without_a_translation_keep_their_columns(translate):
    lines = translate(b"eins\n\ndrei\n", "--json").stdout.decode().splitlines()
    assert [json.loads(line)["line"] for line in lines] == [1, 2, 3] and json.loads(lines[1])["translations"] == []
    assert translate(b"\n", "--scores", "--n-best", "2", "--beam", "2").stdout == b"\t\n\t\n"


def test_a_line_of_many_megabytes_is_cut(translate):
    answer = translate(b"eins\n" + b"x" * 70_000_000 + b"\nzwei\n")
    assert len(answer.stdout.splitlines()) == 3
    assert "line 2: 70000000 bytes long" in answer.stderr.decode()


def test_ctrl_c_ends_a_long_translation(program, model):
    words = [program, "translate", model, "--threads", 1, "--min-length", 60, "--max-length", 60, "--beam", 64, "--batch-size", 4096,
             "--batch-tokens", 1000000]  # fmt: skip
    with subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"eins zwei drei\n" * 1000)
        process.stdin.close()
        time.sleep(2)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert time.monotonic() - began < 30 and process.stdout.read() == b""


def test_n_best_scores_and_json(translate):
    answer = translate(b"eins zwei\ndrei vier\n", "--n-best", "3", "--beam", "4", "--scores")
    lines = answer.stdout.decode().splitlines()
    assert len(lines) == 6
    scores = [float(line.split("\t")[0]) for line in lines]
    assert scores[:3] == sorted(scores[:3], reverse=True)
    objects = [json.loads(line) for line in
               translate(b"eins zwei\ndrei vier\n", "--n-best", "3", "--beam", "4", "--json").stdout.splitlines()]
    assert [one["line"] for one in objects] == [1, 2]
    assert [t["text"] for one in objects for t in one["translations"]] == [line.split("\t")[1] for line in lines]


@pytest.mark.parametrize("precision", ["bf16x3", "bf16"])
def test_precision(translate, pairs, precision):
    lines = (pairs / "test.de").read_bytes()
    wanted = translate(lines, "--scores").stdout.decode().splitlines()
    answer = translate(lines, "--scores", "--precision", precision)
    found = answer.stdout.decode().splitlines()
    assert answer.returncode == 0 and len(found) == len(wanted)
    scores = [[float(line.split("\t")[0]) for line in lines] for lines in (found, wanted)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-3 if precision == "bf16x3" else 0.05)
    texts = [[line.split("\t")[1] for line in lines] for lines in (found, wanted)]
    assert sum(a == b for a, b in zip(*texts)) >= 0.8 * len(wanted)


def test_a_line_that_comes_alone_is_translated_at_once(program, model):
    with subprocess.Popen([str(program), "translate", str(model), "--threads", "1"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        for word in ("eins zwei", "drei vier"):
            process.stdin.write(word + "\n")
            process.stdin.flush()
            assert process.stdout.readline().strip()  # would wait for ever
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_translations_begin_with_a_prefix(translate, tmp_path):
    source, target = pair(8)
    line = source.encode() + b"\n"
    whole = translate(line).stdout.decode().strip()
    assert whole == target
    rest = translate(line, "--prefix", target.split()[0]).stdout.decode().strip()
    assert rest == whole
    wrong = translate(line, "--prefix", "two").stdout.decode().strip()
    assert wrong.startswith("two")
    (tmp_path / "prefixes").write_text("two\n\n")
    lines = translate(line * 2, "--prefixes", tmp_path / "prefixes").stdout.decode().splitlines()
    (tmp_path / "prefixes.gz").write_bytes(gzip.compress((tmp_path / "prefixes").read_bytes()))
    assert translate(line * 2, "--prefixes", tmp_path / "prefixes.gz").stdout.decode().splitlines() == lines
    assert "is a directory" in translate(line, "--prefixes", tmp_path, check=False).stderr.decode()
    assert lines == [wrong, whole]
    # A long prefix leaves its line little room, or none; others keep theirs.
    (tmp_path / "long").write_text("two " * 15 + "\n\n" + "two " * 100 + "\n")
    answer = translate(line * 3, "--prefixes", tmp_path / "long")
    lines = answer.stdout.decode().splitlines()
    assert lines[1:] == [whole, ""] and lines[0].startswith("two two")
    assert "line 3: its prefix of" in answer.stderr.decode()
    assert "has 2 lines, and the input 1: the last prefixes were not used" in translate(
        line, "--prefixes", tmp_path / "prefixes").stderr.decode()  # fmt: skip
    answer = translate(b"eins\n" * 3, "--prefixes", tmp_path / "prefixes", check=False)
    assert answer.returncode == 1 and "line 3 of the input has no prefix" in answer.stderr.decode()


def test_evaluate(run, pairs, model, tmp_path):
    """Compares with the loss that training reported, and the scores of what `translate` writes."""
    given = ["--source", pairs / "valid.de", "--target", pairs / "valid.en"]
    found = json.loads(run("evaluate", model, *given, "--json").stdout)
    assert found["loss"] == pytest.approx(json.loads((model / "result.json").read_text())["best_loss"], abs=1e-6)
    assert found["pairs"] == 20 and found["beam"] == 5
    text = run("evaluate", model, "--source", pairs / "test.de", "--target", pairs / "test.en", "--beam", "2").stdout
    translated = run("translate", model, "--beam", "2", text_in=(pairs / "test.de").read_text(encoding="utf-8")).stdout
    (tmp_path / "out").write_text(translated, encoding="utf-8")
    for metric in ("bleu", "chrf"):
        scored = json.loads(run("score", metric, tmp_path / "out", "--reference", pairs / "test.en", "--confidence", "1000", "--json").stdout)
        (system,) = scored["systems"]
        low, high = system["mean"] - system["half_width"], system["mean"] + system["half_width"]
        assert f"{scored['name'].rstrip('2')}  {system['score']:.2f} [{low:.2f}, {high:.2f}]" in text


@pytest.mark.parametrize("words, message", [
    (["--text", "test.de"], "this one learns to translate pairs of sentences"),
    ([], "Give --source FILE and --target FILE"),
    (["--source", "test.de"], "test.de"),
    (["--source", "test.de", "--target", "test.en", "--context", "8"], "--context and --batch-size are about windows"),
    (["--source", "test.de", "--target", "test.en", "--beam", "0"], "beam"),
    (["--source", "test.de", "--target", "test.en", "--test-fraction", "0.2"], "--test-fraction is about texts"),
])  # fmt: skip
def test_what_evaluate_refuses(run, pairs, model, words, message):
    answer = run("evaluate", model, *(pairs / word if word.startswith("test.") else word for word in words), check=False)
    assert answer.returncode in (1, 2) and message in answer.stderr


def test_kernels_of_the_three_places(run, model):
    found = json.loads(run("info", model, "--kernels", "--json").stdout)["kernels"]
    causal = {one["situation"]: one["causal"] for one in found}
    assert causal == {
        "encoder: training": False, "encoder: scoring": False,
        "decoder: training": True, "decoder: scoring": True, "decoder: decoding": True,
        "cross-attention: training": False, "cross-attention: scoring": False, "cross-attention: decoding": False}  # fmt: skip


def test_alignment_follows_the_order(translate):
    """A word-for-word translation looks at the words in their order."""
    right = total = 0
    for number in range(10):
        source, target = pair(number)
        one = json.loads(translate(source.encode() + b"\n", "--json", "--alignment").stdout)["translations"][0]
        places = one["alignment"]
        assert len(places) == len(one["tokens"]) - one["ended"]
        right += sum(a <= b for a, b in zip(places, places[1:]))
        total += len(places) - 1
        line = translate(source.encode() + b"\n", "--alignment").stdout.decode().rstrip("\n").split("\t")
        assert line == [one["text"], " ".join(f"{place}-{i}" for i, place in enumerate(places))]
    assert right > 0.6 * total
    begun = json.loads(translate(b"eins zwei\n", "--json", "--alignment", "--prefix", "one").stdout)
    one = begun["translations"][0]
    assert begun["prefix_tokens"] and begun["source_tokens"]
    assert len(one["alignment"]) == len(begun["prefix_tokens"]) + len(one["tokens"]) - one["ended"]
    assert all(0 <= place <= len(begun["source_tokens"]) for place in one["alignment"])


def test_sampling_repeats_by_its_seed(translate):
    answers = [translate(b"eins zwei drei\n", "--beam", "1", "--sample", "--temperature", "3", "--seed", seed).stdout
               for seed in ("1", "1", "2", "3", "4")]
    assert answers[0] == answers[1] and len(set(answers)) > 1


@pytest.mark.parametrize(("words", "message"), [
    (["--beam", "0"], "beam"),
    (["--length-penalty", "nan"], "length-penalty"),
    (["--sample", "--beam", "2"], "set --beam 1"),
    (["--temperature", "0.5"], "--temperature is about --sample"),
    (["--greedy"], "greedy"),
    (["--n-best", "9", "--beam", "2"], "n-best"),
    (["--sample", "--n-best", "3"], "leave --n-best 3 out"),
    (["--prefix", "one", "--prefixes", "file"], "exclude each other"),
    (["--length-norm", "none", "--length-penalty", "2"], "--length-penalty does nothing with --length-norm none"),
])
def test_wrong_options(translate, words, message):
    answer = translate(b"eins\n", *words, check=False)
    assert answer.returncode == 2 and message in answer.stderr.decode()
    assert answer.stdout == b""


def test_wrong_models(run, translate, model, tmp_path):
    answer = translate(b"eins\n", check=False, path=tmp_path)
    assert answer.returncode == 1 and "no model in" in answer.stderr.decode()
    answer = run("generate", model, "--prompt", "a", check=False)
    assert answer.returncode == 1 and "is an encoder-decoder, which translates" in answer.stderr


def test_a_source_tokenizer_that_is_missing(run, translate, pairs, tmp_path):
    run("train", "--task", "translation", *files(pairs), *SMALL, "--separate-tokenizers", "--share-embeddings=false",
        "--steps", "2", "--out", tmp_path / "run")
    for path in (tmp_path / "run").rglob("source_tokenizer.json"):
        path.unlink()
    answer = translate(b"eins\n", check=False, path=tmp_path / "run")
    assert answer.returncode == 1 and "has no source_tokenizer.json" in answer.stderr.decode()


@pytest.mark.parametrize("words, message", [
    (["--beam", "2000"], "beam"),
    (["--length-penalty", "50"], "length-penalty"),
    (["--source", "-"], "pairs are read several times"),
])  # fmt: skip
def test_what_training_refuses_at_once(run, pairs, tmp_path, words, message):
    options = ["--task", "translation", *files(pairs), *SMALL, "--steps", "1", "--out", tmp_path / "run"]
    answer = run("train", *options, *words, check=False)
    assert answer.returncode != 0 and message in answer.stderr and "step" not in answer.stdout


def test_judged_pairs_that_are_too_long_are_counted(run, pairs, tmp_path):
    words = [str(word) for word in files(pairs)]
    for side in ("de", "en"):
        long = tmp_path / f"valid.{side}"
        long.write_text((pairs / f"valid.{side}").read_text() + "eins " * 200 + "\n")
        words = [str(long) if word == str(pairs / f"valid.{side}") else word for word in words]
    answer = run("train", "--task", "translation", *words, *SMALL, "--steps", "1", "--out", tmp_path / "run")
    assert "to validate: 20 pairs; left out: 1 longer than 64 tokens" in answer.stderr


def test_unequal_files(run, pairs, tmp_path):
    short = tmp_path / "short.en"
    short.write_text("one\ntwo\n")
    words = files(pairs)
    words[words.index("--target") + 1] = short
    answer = run("train", "--task", "translation", *words, *SMALL, "--steps", "1", "--out", tmp_path / "run", check=False)
    assert answer.returncode == 1
    assert "120" in answer.stderr and "2" in answer.stderr and "short.en" in answer.stderr
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_resumes_bit_for_bit(run, pairs, tmp_path):
    words = ["train", "--task", "translation", *files(pairs), *SMALL, "--dropout", "0.1", "--save-every", "5"]
    run(*words, "--steps", "10", "--out", tmp_path / "whole")
    run(*words, "--steps", "5", "--schedule", "constant", "--out", tmp_path / "half")
    run(*words, "--steps", "10", "--schedule", "constant", "--out", tmp_path / "constant")
    run("train", "--resume", "--steps", "10", "--out", tmp_path / "half")
    name = pathlib.Path("checkpoints") / "last" / "model.safetensors"
    assert (tmp_path / "half" / name).read_bytes() == (tmp_path / "constant" / name).read_bytes()
    assert (tmp_path / "whole" / name).read_bytes() != (tmp_path / "constant" / name).read_bytes()


def test_a_run_goes_on_from_any_directory(run, pairs, tmp_path):
    words = [one.name if isinstance(one, pathlib.Path) else one for one in files(pairs)]
    out = tmp_path / "run"
    run("train", "--task", "translation", *words, *SMALL, "--steps", "2", "--schedule", "constant", "--out", out, cwd=pairs)
    run("train", "--resume", "--steps", "3", "--out", out, cwd=tmp_path)
    assert json.loads((out / "result.json").read_text())["steps"] == 3


def test_a_dry_run_knows_the_vocabulary_of_a_tokenizer(run, model, tmp_path):
    words = ["train", "--task", "translation", "--dry-run", "--tokenizer-path"]
    tokenizer = model / "checkpoints/best/tokenizer.json"
    size = json.loads(run("info", model, "--json").stdout)["tokenizer"]["vocabulary_size"]
    assert f"vocabulary  {size}\n" in run(*words, tokenizer).stdout
    assert "nowhere.json" in run(*words, tmp_path / "nowhere.json", check=False).stderr


def test_schemes_that_no_site_is_left_to_are_not_compared(run, pairs, tmp_path):
    sites = ["--encoder-scheme", "mqa", "--decoder-scheme", "sha"]
    words = ["compare", "--task", "translation", *files(pairs), *SMALL, "--dry-run", *sites, "--schemes", "mha,mqa"]
    answer = run(*words, "--cross-scheme", "mhe_mul", check=False)
    assert answer.returncode == 2 and "mha and mqa would be the same model" in answer.stderr
    swept = run(*words, "--sweep", "cross-scheme=auto,sha", check=False)
    assert swept.returncode == 2 and "would be the same model" in swept.stderr
    run(*words)


def test_comparison_of_sites(run, pairs, tmp_path):
    sacrebleu = pytest.importorskip("sacrebleu")
    out = tmp_path / "comparison"
    answer = run("compare", "--task", "translation", *files(pairs), *SMALL, "--schemes", "mha,mhe_mul", "--steps", "30",
                 "--seeds", "1", "--learning-rate", "1e-2", "--sweep", "cross-scheme=auto,sha", "--out", out)
    results = json.loads((out / "results.json").read_text())
    assert results["subject"]["measure"] == "bleu" and len(results["cells"]) == 4
    examples = results["subject"]["examples"]
    assert len(examples) == 8
    by_key = {(cell["variant"], cell["setting"]): cell for cell in results["cells"]}
    references = [(pairs / "test.en").read_text(encoding="utf-8").splitlines()]
    whole, shared = by_key["mha", "cross-scheme=auto"], by_key["mha", "cross-scheme=sha"]
    assert shared["attention_parameters"] < whole["attention_parameters"]
    assert shared["source_cache_bytes_per_token"] * 2 == whole["source_cache_bytes_per_token"]
    for cell in results["cells"]:
        outputs = (out / pathlib.Path(cell["model"]).parents[1] / "outputs.txt").read_text().splitlines()
        assert [outputs[example["item"]] for example in examples] == cell["examples"]
        (chrf,) = cell["scores"]
        expected = sacrebleu.CHRF().corpus_score(outputs, references, n_bootstrap=1000)
        assert (chrf["name"], chrf["value"]) == ("chrf", pytest.approx(expected.score))
        assert sum(chrf["interval"]) / 2 == pytest.approx(expected._mean)  # seed 12345, sacreBLEU's default
        assert chrf["interval"][1] - chrf["interval"][0] == pytest.approx(2 * expected._ci)
        assert cell["outputs_per_second"] > 0
    assert "est BLEU" in answer.stdout
    assert "translating" in answer.stdout and "sentences/s" in answer.stdout
    assert "Translating" in (out / "report.html").read_text() and "outputs_per_second" in (out / "results.csv").read_text()
    assert os.path.exists(out / "report.html")

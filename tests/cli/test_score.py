"""Tests headshare score: published predictions, made ones, and bad input."""

import csv
import gzip
import json

import pytest


@pytest.fixture
def score(run):
    def call(*arguments, **options):
        return json.loads(run("score", *arguments, "--json", **options).stdout)

    return call


def published():
    return [("dev-v1.1", "v1.1-match-lstm.json.gz"), ("dev-v2.0-reconstructed", "v2.0-bidaf-elmo.json.gz")]


@pytest.mark.parametrize("gold, predictions", published())
def test_published_squad_scores_to_every_digit(score, data, gold, predictions):
    folder = data / "squad"
    ours = score("squad", folder / "predictions" / predictions, "--gold", folder / f"{gold}.json.gz")
    rows = csv.DictReader((folder / "predictions" / "expected.tsv").open(), delimiter="\t")
    expected = next(row for row in rows if row["predictions"] == predictions)
    names = [name for name in expected if name not in ("predictions", "dataset") and expected[name]]
    assert len(names) >= 2
    assert {name: repr(ours[name]) for name in names} == {name: expected[name] for name in names}
    assert ours["missing"] == 0


SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "T",
            "paragraphs": [
                {
                    "context": "Zoë won.",
                    "qas": [
                        {"id": "q1", "question": "Who?", "answers": [{"text": "Zoë", "answer_start": 0}]},
                        {"id": "q2", "question": "Why?", "is_impossible": True, "answers": []},
                    ],
                }
            ],
        }
    ],
}


@pytest.fixture
def squad(tmp_path):
    """Holds a data set of two questions; squad("p.json", object) writes a file beside it."""

    def write(name, content):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    write("gold.json", SQUAD)
    return write


def test_null_odds_and_missing_predictions(run, squad, tmp_path):
    predictions = squad("p.json", {"q1": "Zoë!", "q7": "x"})
    odds = squad("odds.json", {"q1": 0.3, "q2": 0.9})
    done = run("score", "squad", predictions, "--gold", tmp_path / "gold.json", "--null-odds", odds, "--json")
    ours = json.loads(done.stdout)
    assert (ours["exact_match"], ours["has_ans_exact"], ours["no_ans_exact"]) == (50, 100, 0)
    assert (ours["best_exact"], ours["best_exact_thresh"]) == (50, 0.3)
    assert ours["missing"] == 1 and ours["total"] == 2
    assert "1 of 2 questions have no prediction and count as wrong; the first is q2" in done.stderr
    assert "1 predictions are for questions" in done.stderr
    table = run("score", "squad", predictions, "--gold", tmp_path / "gold.json").stdout
    assert "exact_match" in table and "50.0000" in table and "rules:squad-v2.0" in table


def test_bad_squad_input(refused, squad, tmp_path):
    gold = tmp_path / "gold.json"
    predictions = squad("p.json", {"q1": "x"})
    assert "--gold is missing" in refused(2, "score", "squad", predictions)
    assert "did you mean 'squad'?" in refused(2, "score", "sqad", predictions, "--gold", gold)
    assert "--task is for glue" in refused(2, "score", "squad", predictions, "--gold", gold, "--task", "cola")
    assert "needs --null-odds" in refused(2, "score", "squad", predictions, "--gold", gold, "--null-threshold", 0.5)
    cut = squad("cut.json", json.dumps(SQUAD)[:100])
    assert "cut.json: not a JSON document of 100 bytes" in refused(1, "score", "squad", predictions, "--gold", cut)
    listed = squad("list.json", [{"id": "q1"}])
    assert "list.json: is a list" in refused(1, "score", "squad", listed, "--gold", gold)
    assert "q2" in refused(1, "score", "squad", predictions, "--gold", gold, "--rules", "v1.1")


GLUE = [("cola", "CoLA/dev"), ("mrpc", "MRPC/dev"), ("sst-2", "SST-2/dev"), ("mnli", "MNLI/dev_matched")]


@pytest.mark.parametrize("task, path", GLUE)
def test_glue_against_scikit_learn(score, data, tmp_path, task, path):
    metrics = pytest.importorskip("sklearn.metrics")
    text = gzip.decompress((data / "glue" / f"{path}.tsv.gz").read_bytes()).decode("utf-8-sig")
    rows = [line.split("\t") for line in text.splitlines()]
    column = {"cola": 1, "mrpc": 0, "sst-2": 1, "mnli": 3}[task]
    gold = [row[column] for row in (rows if task == "cola" else rows[1:])]
    # Every third example is wrong: it has the class of the example before.
    predicted = [gold[i - 1] if i % 3 == 0 else one for i, one in enumerate(gold)]
    (tmp_path / "p").write_text("\n".join(predicted) + "\n")
    lines = sorted(f"{i}\t{one}\n" for i, one in enumerate(predicted))
    (tmp_path / "p.tsv").write_text("index\tprediction\n" + "".join(lines))
    file = data / "glue" / f"{path}.tsv.gz"
    ours = score("glue", tmp_path / "p", "--task", task, "--gold", file)
    assert ours == score("glue", tmp_path / "p.tsv", "--task", task, "--gold", file)
    if task == "cola":
        expected = {"matthews": metrics.matthews_corrcoef(gold, predicted)}
    else:
        expected = {"accuracy": metrics.accuracy_score(gold, predicted)}
    if task == "mrpc":
        expected["f1"] = metrics.f1_score(gold, predicted, pos_label="1")
    assert {name: ours[name] for name in expected} == pytest.approx(expected, rel=1e-13)
    assert ours["score"] == pytest.approx(sum(expected.values()) / len(expected), rel=1e-13)
    assert ours["examples"] == len(gold)


def test_multirc_against_the_definition(score, data, tmp_path):
    metrics = pytest.importorskip("sklearn.metrics")
    path = data / "superglue" / "MultiRC" / "val.jsonl.gz"
    records = [json.loads(line) for line in gzip.open(path, "rt", encoding="utf-8")]
    gold, predicted, whole = [], [], []
    for record in records:
        for question in record["passage"]["questions"]:
            before = len(gold)
            for answer in question["answers"]:
                gold.append(answer["label"])
                answer["label"] = answer["label"] if answer["idx"] % 5 else 1
                predicted.append(answer["label"])
            whole.append(gold[before:] == predicted[before:])
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    ours = score("superglue", tmp_path / "p.jsonl", "--task", "multirc", "--gold", path)
    assert ours["f1"] == pytest.approx(metrics.f1_score(gold, predicted), rel=1e-13)
    assert ours["exact_match"] == pytest.approx(sum(whole) / len(whole), rel=1e-13)


def test_cb_and_record(score, data, tmp_path):
    path = data / "superglue" / "CB" / "val.jsonl.gz"
    records = [json.loads(line) for line in gzip.open(path, "rt", encoding="utf-8")]
    gold = tmp_path / "p.jsonl"
    gold.write_text("".join(json.dumps({"idx": one["idx"], "label": "neutral"}) + "\n" for one in records))
    ours = score("superglue", gold, "--task", "cb", "--gold", path)
    neutral = sum(one["label"] == "neutral" for one in records) / len(records)
    assert ours["accuracy"] == pytest.approx(neutral, rel=1e-13)
    assert ours["macro_f1"] == pytest.approx(2 * neutral / (1 + neutral) / 3, rel=1e-13)

    entity = {"start": 0, "end": 2}
    queries = [{"query": "@placeholder", "idx": i, "answers": [{**entity, "text": "Bob"}]} for i in (4, 5)]
    record = {"idx": 0, "passage": {"text": "Bob", "entities": [entity]}, "qas": queries}
    (tmp_path / "record.jsonl").write_text(json.dumps(record))
    (tmp_path / "r.jsonl").write_text(json.dumps({"idx": 5, "label": "the bob Smith"}))
    ours = score("superglue", tmp_path / "r.jsonl", "--task", "record", "--gold", tmp_path / "record.jsonl")
    assert (ours["exact_match"], ours["f1"], ours["missing"]) == (0, pytest.approx(1 / 3), 1)


def test_undefined_scores_are_null_and_said(run, tmp_path):
    (tmp_path / "gold.tsv").write_text("index\tsentence1\tsentence2\tscore\n0\ta\tb\t1\n1\tc\td\t2\n")
    (tmp_path / "p").write_text("3\n3\n")
    done = run("score", "glue", tmp_path / "p", "--task", "stsb", "--gold", tmp_path / "gold.tsv", "--json")
    ours = json.loads(done.stdout)
    assert ours["pearson"] is None and ours["score"] is None
    assert "all predicted numbers are the same" in done.stderr


def test_bad_glue_input(refused, tmp_path):
    gold = tmp_path / "dev.tsv"
    gold.write_text("index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n1\ta\tb\n")
    (tmp_path / "p").write_text("entailment\n")
    call = ("score", "glue", tmp_path / "p", "--gold", gold)
    assert "did you mean 'rte'?" in refused(2, *call, "--task", "rtee")
    assert "--task is missing: which task of glue?" in refused(2, *call)
    assert "--null-odds is for squad" in refused(2, *call, "--task", "rte", "--null-odds", "x")
    counts = "dev.tsv:3: 3 columns, not 4 ('index', 'sentence1', 'sentence2', 'label')"
    assert counts in refused(1, *call, "--task", "rte")
    gold.write_text("index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n1\ta\tb\tentail\n")
    assert "dev.tsv:3: unknown label 'entail'" in refused(1, *call, "--task", "rte")
    gold.write_text("index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n1\ta\tb\tentailment\n")
    assert "1 predictions, one a line, for the 2 examples" in refused(1, *call, "--task", "rte")


@pytest.fixture
def wmt(data):
    folder = data / "wmt17-en-de-metrics"
    rows = list(csv.DictReader((folder / "expected.tsv").open(), delimiter="\t"))
    return folder, rows


def system_score(score, *arguments):
    (system,) = score(*arguments)["systems"]
    return system["score"]


def test_published_bleu_of_wmt17(score, wmt):
    folder, rows = wmt
    assert len(rows) == 8
    files = [folder / f"{row['system']}.gz" for row in rows]
    ours = score("bleu", *files, "--reference", folder / "reference.de.gz")
    assert ours["segments"] == 3004 and ours["name"] == "BLEU"
    for row, system in zip(rows, ours["systems"]):
        assert round(system["score"], 2) == float(row["bleu_13a"]), row["system"]
        if row["bleu_intl"]:
            file = folder / f"{row['system']}.gz"
            one = score("bleu", file, "--reference", folder / "reference.de.gz", "--tokenize", "intl")
            assert round(one["systems"][0]["score"], 2) == float(row["bleu_intl"])


def test_published_chrf_and_ter_of_wmt17(score, wmt):
    folder, rows = wmt
    reference = ("--reference", folder / "reference.de.gz")
    row = next(row for row in rows if row["chrf2"])
    file = folder / f"{row['system']}.gz"
    assert round(system_score(score, "chrf", file, *reference), 4) == float(row["chrf2"])
    plus = system_score(score, "chrf", file, *reference, "--word-order", 2, "--eps-smoothing")
    assert round(plus, 4) == float(row["chrf2++"])
    ours = score("ter", *(folder / f"{row['system']}.gz" for row in rows), *reference)
    assert [f"{one['score'] / 100:.3f}" for one in ours["systems"]] == [row["ter"] for row in rows]


@pytest.fixture
def lines(tmp_path):
    """lines("a.txt", "one", "two") writes a file of these lines."""

    def write(name, *content):
        path = tmp_path / name
        path.write_bytes("".join(line + "\n" for line in content).encode())
        return path

    return write


def test_one_system_has_sacrebleus_line(run, score, lines):
    system = lines("s.txt", "the cat sat on the mat", "hello there world")
    one, two = lines("r.txt", "the cat is on the mat\r", "hello there world"), lines("q.txt", "a cat sat there", "hello")
    line = run("score", "bleu", system, "--reference", one, "--reference", two, "--width", 2).stdout
    parts = "|nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:headshare-"
    assert line.startswith("BLEU" + parts) and line.count("\n") == 1
    # "cat sat" stands in one reference, "sat on" in none. No run of four words matches, which counts as half a match of
    # three.
    assert line.endswith(" 100.0/85.7/40.0/16.7 (BP = 1.000 ratio = 1.000 hyp_len = 9 ref_len = 9)\n")
    ours = score("bleu", system, "--gold", f"{one},{two}")
    assert f" = {ours['systems'][0]['score']:.2f} " in line
    assert ours["systems"][0]["precisions"] == pytest.approx([100, 600 / 7, 40, 100 / 6])
    sentences = run("score", "chrf", system, "--reference", one, "--word-order", 2, "--sentence-level").stdout
    assert [text.split(" = ")[0].split("|")[0] for text in sentences.splitlines()] == ["chrF2++"] * 2
    assert sentences.endswith(" = 100.0\n")
    assert score("ter", system, "--gold", one, "--sentence-level")["systems"][0]["sentences"] == pytest.approx([100 / 6, 0])
    eff = run("score", "bleu", system, "--reference", one, "--sentence-level").stdout
    assert "|eff:yes|" in eff and " = 100.0 100.0/100.0/100.0/0.0 " in eff


def test_intervals_and_tests_between_systems(run, score, wmt):
    folder, rows = wmt
    reference = ("--reference", folder / "reference.de.gz")
    files = [folder / f"{row['system']}.gz" for row in rows[:3]]
    line = run("score", "bleu", files[0], *reference, "--confidence", 1000).stdout
    assert "|bs:1000|seed:12345|" in line and "= 26.6 (μ = 26.6 ± 0.6) " in line
    table = run("score", "bleu", *files, *reference, "--paired-bootstrap", 200, "--seed", 3).stdout
    assert "|bs:200|seed:3|" in table and "0.0050 *" in table and "± 0.6" in table and "p: how likely" in table
    ours = score("bleu", *files, *reference, "--paired-randomisation", 200)
    first, second, third = ours["systems"]
    assert "p_value" not in first and "mean" not in first
    assert second["p_value"] == 1 / 201 and 0 < third["p_value"] < 1
    assert "|ar:200|seed:12345|" in ours["signature"]
    plain = run("score", "bleu", *files, *reference).stdout
    assert "p: how likely" not in plain and plain.splitlines()[-1].startswith("BLEU|nrefs:1|case:mixed|")


def test_tokenized_text_is_said(run, lines):
    system = lines("s.txt", *["a point ."] * 100)
    done = run("score", "bleu", system, "--reference", system)
    assert "100 lines end in a blank and a point" in done.stderr
    assert run("score", "bleu", system, "--reference", system, "--force").stderr == ""


def test_bad_translations(refused, lines, tmp_path):
    two, three = lines("two.txt", "a", "b"), lines("three.txt", "a", "b", "c")
    unequal = refused(1, "score", "bleu", three, "--reference", two)
    assert "two.txt has 2 lines and" in unequal and "three.txt has 3;" in unequal
    assert "has no lines" in refused(1, "score", "ter", lines("none.txt"), "--reference", two)
    assert "directory" in refused(1, "score", "chrf", tmp_path, "--reference", two)
    (tmp_path / "latin.txt").write_bytes(b"a\nb\xe9\n")
    assert "latin.txt:2: not UTF-8 from byte 1" in refused(1, "score", "bleu", tmp_path / "latin.txt", "--reference", two)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a\nb\n" * 1000)[:20])
    assert "cut.gz" in refused(1, "score", "bleu", tmp_path / "cut.gz", "--reference", two)
    assert "one of the files only" in refused(1, "score", "bleu", "-", "--reference", "-")


def test_options_that_do_not_fit_translations(refused, lines):
    two = lines("two.txt", "a", "b")

    def message(question, *options, systems=(two,)):
        return refused(2, "score", question, *systems, "--reference", two, *options)

    assert "--reference is missing" in refused(2, "score", "bleu", two)
    assert "did you mean 'chrf'?" in refused(2, "score", "chr", two, "--reference", two)
    assert "--tokenize is for bleu, not for ter" in message("ter", "--tokenize", "zh")
    assert "--word-order is for chrf, not for bleu" in message("bleu", "--word-order", 2)
    assert "--normalized is for ter, not for chrf" in message("chrf", "--normalized")
    assert "unless --case-sensitive is given" in message("ter", "--lowercase")
    assert "--task is not for bleu" in message("bleu", "--task", "cola")
    assert "exp has none" in message("bleu", "--smooth-value", 1)
    assert "0..64" in message("chrf", "--word-order", 65)
    assert "both 0" in message("chrf", "--char-order", 0)
    assert "two or more, not 1" in message("bleu", "--paired-bootstrap", 100)
    assert "one of them" in message("bleu", "--paired-bootstrap", 9, "--paired-randomisation", 9, systems=(two, two))
    assert "one sample says nothing" in message("bleu", "--confidence", 1)
    assert "for one system, not 2" in message("bleu", "--sentence-level", systems=(two, two))
    assert "goes with no test" in message("bleu", "--sentence-level", "--confidence", 10)
    assert "--seed is for" in message("bleu", "--seed", 1)
    assert "--confidence is for bleu, chrf and ter" in message("squad", "--confidence", 10)
    assert "one file of predictions, not 2" in message("squad", systems=(two, two))
    assert "has one --gold, not 2" in message("squad", "--gold", two)

"""Tests finetune on a tiny encoder: own tables, GLUE and SuperGLUE layouts, SQuAD, resuming, and bad input."""

import json
import re
import shutil
import signal
import subprocess
import time

import pytest

pytestmark = pytest.mark.slow

SMALL = ["--layers", 2, "--d-model", 32, "--heads", 4, "--context", 32, "--batch-size", 8, "--threads", 1]
QUICK = ["--epochs", 2, "--seeds", 2, "--batch-size", 8, "--learning-rate", 3e-3, "--threads", 1]


def texts(count, start=0):
    """Yields sentences and whether they tell of a fox."""
    for i in range(start, start + count):
        fox = i % 2 == 0
        yield f"The {i % 7} {'foxes' if fox else 'hens'} jump over {i % 3} lazy dogs.", int(fox)


@pytest.fixture(scope="module")
def pretrain(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    (folder / "text.txt").write_text("".join(f"{text}\n" for text, _ in texts(300)))

    def train(name, *options, task=("mlm", "--vocabulary-size", 60)):
        flags = ["--task", *task, "--learning-rate", 3e-3, "--init-deviation", 0.1, *options]
        cache = {"HEADSHARE_CACHE": str(folder / "cache")}
        run("train", "--text", folder / "text.txt", "--out", folder / name, *flags, *SMALL, env=cache)
        return folder / name

    return train


@pytest.fixture(scope="module")
def encoder(pretrain):
    return pretrain("run", "--steps", 60)


@pytest.fixture(scope="module", params=["wordpiece", "hash-md", "hash-lsh"])
def any_encoder(request, pretrain):
    """Trains encoders with a table and without a vocabulary: rows, words and offsets of all tasks must fit either."""
    if request.param == "wordpiece":
        return request.getfixturevalue("encoder")
    task = ("three-way", "--tokenizer", request.param, "--token-embedding", "hash-proj", "--random-tokens", "words")
    return pretrain(request.param, "--steps", 60, task=task)


def table(path, count, start=0, columns=("text", "label"), comma="\t"):
    path.write_text(comma.join(columns) + "\n" + "".join(f"{text}{comma}{label}\n" for text, label in texts(count, start)))
    return path


@pytest.fixture
def tables(tmp_path):
    return table(tmp_path / "train.tsv", 40), table(tmp_path / "dev.tsv", 20, start=100)


@pytest.fixture
def glue(tmp_path):
    """Writes CoLA and SST-2 in the official layout, with a test part, and MNLI with its mismatched part and the
    diagnostics."""
    for name in ("CoLA", "SST-2", "MNLI"):
        (tmp_path / "glue" / name).mkdir(parents=True)
    cola, sst, mnli = (tmp_path / "glue" / name for name in ("CoLA", "SST-2", "MNLI"))
    for part, count in (("train", 32), ("dev", 16)):
        (cola / f"{part}.tsv").write_text("".join(f"gj04\t{label}\t\t{text}\n" for text, label in texts(count)))
        table(sst / f"{part}.tsv", count, columns=("sentence", "label"))
    (cola / "test.tsv").write_text("index\tsentence\n" + "".join(f"{i}\t{text}\n" for i, (text, _) in enumerate(texts(9))))
    names = ("contradiction", "entailment")
    for part in ("train", "dev_matched", "dev_mismatched"):
        kept = 0 if part == "dev_mismatched" else 1  # of the labels: one of them there, so that the scores differ
        rows = "".join(f"{i}\t{text}\tA fox.\t{names[kept * label]}\n" for i, (text, label) in enumerate(texts(24)))
        (mnli / f"{part}.tsv").write_text("index\tsentence1\tsentence2\tgold_label\n" + rows)
    asked = "".join(f"{i}\t{text}\tA fox.\n" for i, (text, _) in enumerate(texts(7)))
    (mnli / "test_mismatched.tsv").write_text("index\tsentence1\tsentence2\n" + asked)
    (tmp_path / "glue" / "diagnostic").mkdir()
    (tmp_path / "glue" / "diagnostic" / "diagnostic.tsv").write_text("index\tsentence1\tsentence2\n" + asked)
    labelled = "".join(f"{text}\tA fox.\t{names[label]}\n" for text, label in texts(12))
    (tmp_path / "glue" / "diagnostic" / "diagnostic-full.tsv").write_text("Premise\tHypothesis\tLabel\n" + labelled)
    return tmp_path / "glue"


def test_an_own_table(run, encoder, tables, tmp_path):
    train, dev = tables
    test = table(tmp_path / "test.tsv", 12, start=200)
    parts = ("--train", train, "--validation", dev, "--test", test)
    flags = (*QUICK, "--epochs", 6, "--learning-rate", 1e-3, "--json", "--out", tmp_path / "out")  # beside 3e-3
    done = run("finetune", encoder, "--task", "classify", *parts, *flags)
    report = json.loads(done.stdout)
    assert report == json.loads((tmp_path / "out" / "results.json").read_text())
    (task,) = report["tasks"]
    assert task["task"] == "classify" and task["train_examples"] == 40
    assert task["classes"] == [{"label": "0", "examples": 20}, {"label": "1", "examples": 20}]
    assert "0 50.0%, 1 50.0%" in done.stderr
    assert [part["part"] for part in task["parts"]] == ["validation", "test"]
    accuracy = task["parts"][1]["scores"][0]
    assert accuracy["name"] == "accuracy" and len(accuracy["values"]) == 2 and accuracy["best"] > 0.9
    assert accuracy["mean"] == pytest.approx(sum(accuracy["values"]) / 2)
    assert {one["learning_rate"] for one in task["learning_rates"]} == {1e-3, 3e-3}
    best = max(task["learning_rates"], key=lambda one: one["validation_goal"])
    assert task["learning_rate"] == best["learning_rate"]
    # The answers, line by line, give the accuracy that was reported.
    answers = (tmp_path / "out" / "classify" / f"lr-{best['learning_rate']:g}-seed-1" / "test.tsv").read_text().split("\n")
    right = [label for _, label in texts(12, 200)]
    given = [int(line.split("\t")[1]) for line in answers[1:-1]]
    assert sum(a == b for a, b in zip(given, right, strict=True)) / 12 == pytest.approx(accuracy["values"][1])


def test_a_model_with_one_answer_is_called_that(run, encoder, tables, tmp_path):
    train, dev = tables
    flags = ["--task", "classify", "--train", train, "--validation", dev, "--seeds", 1, "--batch-size", 8]
    word = "answers every one of 20 examples"
    still = ("--epochs", 1, "--learning-rate", 1e-9, "--out", tmp_path / "still")
    moved = ("--epochs", 6, "--learning-rate", 3e-3, "--out", tmp_path / "moved")
    one = {"OMP_NUM_THREADS": "1"}
    assert word in run("finetune", encoder, *flags, *still, env=one).stderr
    assert word not in run("finetune", encoder, *flags, *moved, env=one).stderr
    # Weights repeat for a number of threads, so the settings that repeat the call say how many there were.
    assert "\n  threads: 1\n" in (tmp_path / "still" / "resolved.yaml").read_text()


def test_pairs_and_numbers(run, encoder, tmp_path):
    rows = [(text, "A fox.", label) for text, label in texts(40)]
    (tmp_path / "pairs.csv").write_text("a,b,c\n" + "".join(f'"{a}",{b},{"yes" if c else "no"}\n' for a, b, c in rows))
    lines = "".join(json.dumps({"text": a, "label": 2.0 * c + 1}) + "\n" for a, _, c in rows)
    (tmp_path / "numbers.jsonl").write_text(lines)
    held = ("--validation-fraction", 0.25, "--json", *QUICK)
    columns = ("--text-column", "a", "--pair-column", "b", "--label-column", "c")
    pair = ("--task", "pair", "--train", tmp_path / "pairs.csv", *columns)
    report = json.loads(run("finetune", encoder, *pair, *held, "--out", tmp_path / "pair").stdout)
    assert report["tasks"][0]["parts"][0]["examples"] == 10 and report["tasks"][0]["train_examples"] == 30
    assert [one["label"] for one in report["tasks"][0]["classes"]] == ["no", "yes"]
    number = ("--task", "regress", "--train", tmp_path / "numbers.jsonl")
    done = run("finetune", encoder, *number, *held, "--epochs", 6, "--out", tmp_path / "number")
    scores = {one["name"]: one for one in json.loads(done.stdout)["tasks"][0]["parts"][0]["scores"]}
    assert scores["pearson"]["best"] > 0.5 and "spearman" in scores
    both = ("--text-column", "text", "--pair-column", "text", *number, *held)  # a number for two texts
    done = run("finetune", encoder, *both, "--epochs", 1, "--out", tmp_path / "both")
    assert json.loads(done.stdout)["tasks"][0]["parts"][0]["examples"] == 10


def test_a_score_that_is_undefined_ends_nothing(run, encoder, tmp_path):
    """Gives all of the validation part one gold number: its correlation is 0/0."""
    rows = "".join(f"{text}\t{2.0 * label}\n" for text, label in texts(20))
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + rows)
    (tmp_path / "dev.tsv").write_text("text\tlabel\n" + "".join(f"{text}\t1.0\n" for text, _ in texts(8)))
    parts = ("--train", tmp_path / "train.tsv", "--validation", tmp_path / "dev.tsv")
    done = run("finetune", encoder, "--task", "regress", *parts, *QUICK, "--epochs", 1, "--out", tmp_path / "out")
    assert "pearson" in done.stdout and "none" in done.stdout
    assert "pearson none" in done.stderr and "nan" not in done.stdout + done.stderr
    done = run("predict", tmp_path / "out/regress/lr-0.003-seed-0", tmp_path / "dev.tsv", "--out", tmp_path / "answers.tsv")
    assert "pearson none" in done.stdout and "nan" not in done.stdout + done.stderr


def test_glue_layout_and_its_submission(run, encoder, glue, tmp_path):
    out = tmp_path / "out"
    done = run("finetune", encoder, "--task", "cola,sst2,mnli", "--data", glue.parent, *QUICK, "--out", out)
    for word in ("glue/cola", "matthews", "glue/sst-2", "mnli-mm", "median", "±"):
        assert word in done.stdout, word
    report = json.loads((out / "results.json").read_text())
    (average,) = report["averages"]
    assert average["suite"] == "glue" and len(average["tasks"]) == 3
    goals = [[part["goal"]["values"] for part in task["parts"]] for task in report["tasks"]]
    cola, sst, (matched, mismatched, _) = goals[0][0], goals[1][0], goals[2]
    for seed in range(2):  # MNLI counts with both of its halves
        whole = (cola[seed] + sst[seed] + (matched[seed] + mismatched[seed]) / 2) / 3
        assert average["values"][seed] == pytest.approx(whole)
    cola = out / "glue-cola" / "lr-0.003-seed-0"
    assert len((cola / "test.tsv").read_text().splitlines()) == 1 + 9
    # The model answers all of MNLI's relatives, and is scored where there are labels.
    mnli = out / "glue-mnli" / "lr-0.003-seed-0"
    for name, count in (("mnli-mm", 24), ("mnli-mm-test", 7), ("ax", 12), ("ax-test", 7)):
        assert len((mnli / f"{name}.tsv").read_text().splitlines()) == 1 + count, name
    parts = {part["part"]: part["scores"] for part in report["tasks"][2]["parts"]}
    assert list(parts) == ["validation", "mnli-mm", "ax"] and parts["ax"][0]["name"] == "matthews"
    # The scorer of files agrees with what was reported.
    reported = report["tasks"][0]["parts"][0]["scores"][0]["values"][0]
    gold = ("--gold", glue / "CoLA" / "dev.tsv")
    scored = json.loads(run("score", "glue", cola / "validation.tsv", "--task", "cola", *gold, "--json").stdout)
    assert scored["matthews"] == pytest.approx(reported)
    # A fine-tuned model is a checkpoint like any other, and no beginning for another task.
    info = json.loads(run("info", cola, "--json").stdout)
    assert info["kind"] == "encoder" and info["task_head"] == {"reads": "text", "outputs": 2, "labels": ["0", "1"]}
    again = run("finetune", cola, "--task", "mnli", "--data", glue, "--out", tmp_path / "x", check=False)
    assert again.returncode == 1 and "fine-tuned on another task already" in again.stderr


def test_what_is_trained_on_does_not_validate(run, refused, encoder, glue, tmp_path):
    """Trains a task without a training part on its development part: found there again, that would judge itself."""
    own = ("--task", "sst2", "--data", glue.parent, "--train", glue / "SST-2" / "dev.tsv", "--out", tmp_path / "out")
    assert "hold a part of the training examples back" in refused(1, "finetune", encoder, *own)
    done = run("finetune", encoder, *own, *QUICK, "--epochs", 1, "--seeds", 1, "--validation-fraction", 0.25, "--json")
    assert json.loads(done.stdout)["tasks"][0]["parts"][0]["examples"] == 4
    both = ("--task", "sst2", "--data", glue.parent, "--validation-fraction", 0.25, "--out", tmp_path / "both")
    done = run("finetune", encoder, *both, *QUICK, "--epochs", 1, "--seeds", 1)
    for part in "dev", "train":  # found in --data as another part
        again = ("--task", "sst2", "--data", glue.parent, "--test", glue / "SST-2" / f"{part}.tsv", "--out", tmp_path / "again")
        assert "and --test are one file" in refused(1, "finetune", encoder, *again)
    assert "dev.tsv validates; --validation-fraction holds nothing back" in done.stderr


def squad_file(path, answers, version="1.1"):
    """Writes one question a paragraph; `answers` gives for each where the fox is, or None."""
    articles = []
    for i, has in enumerate(answers):
        context = f"There are {i % 5} dogs. " + ("The foxes jump." if has else "The hens jump.")
        found = [{"text": "foxes", "answer_start": context.index("foxes")}] if has else []
        qa = {"id": f"q{i}", "question": "Who jumps?", "answers": found}
        if version != "1.1":
            qa["is_impossible"] = not has
        articles.append({"title": f"t{i // 2}", "paragraphs": [{"context": context, "qas": [qa]}]})
    path.write_text(json.dumps({"version": version, "data": articles}))
    return path


def test_squad(run, any_encoder, tmp_path):
    train = squad_file(tmp_path / "train.json", [True] * 20)
    dev = squad_file(tmp_path / "dev.json", [True] * 6)
    flags = (*QUICK, "--seeds", 1, "--epochs", 8, "--json")
    done = run("finetune", any_encoder, "--task", "squad", "--train", train, "--validation", dev, *flags, "--out", tmp_path / "v1")
    report = json.loads(done.stdout)["tasks"][0]["parts"][0]
    scores = {one["name"]: one["mean"] for one in report["scores"]}
    assert report["examples"] == 6 and scores["f1"] > 50
    folder = tmp_path / "v1" / "squad" / "lr-0.003-seed-0"
    scored = json.loads(run("score", "squad", folder / "validation.json", "--gold", dev, "--json").stdout)
    assert scored["f1"] == pytest.approx(scores["f1"]) and scored["exact_match"] == pytest.approx(scores["exact_match"])
    assert not (folder / "validation-gold.json").exists(), "the whole of dev.json was judged"
    best = json.loads((folder / "validation-n-best.json").read_text())["q0"]
    assert len(best) > 1 and best[0]["score"] >= best[1]["score"]


def test_squad_without_answers_and_with_articles_held_back(run, encoder, tmp_path):
    train = squad_file(tmp_path / "train.json", [i % 3 > 0 for i in range(24)], version="v2.0")
    flags = (*QUICK, "--seeds", 1, "--epochs", 6, "--validation-fraction", 0.25, "--json")
    done = run("finetune", encoder, "--task", "squad", "--train", train, *flags, "--out", tmp_path / "v2")
    (part,) = json.loads(done.stdout)["tasks"][0]["parts"]
    assert part["examples"] == 6, "three articles of two questions"
    scores = {one["name"]: one["mean"] for one in part["scores"]}
    assert {"best_f1", "best_f1_thresh", "has_ans_f1", "no_ans_f1"} <= scores.keys()
    assert part["goal"]["mean"] == pytest.approx(scores["best_f1"])
    folder = tmp_path / "v2" / "squad" / "lr-0.003-seed-0"
    out = json.loads((folder / "validation.json").read_text())
    assert len(out) == 6
    held_back = json.loads(train.read_text())
    held_back["data"] = [one for one in held_back["data"] if one["paragraphs"][0]["qas"][0]["id"] in out]
    (tmp_path / "gold.json").write_text(json.dumps(held_back))
    written = json.loads((folder / "validation-gold.json").read_text())
    paragraphs = lambda file: [one for article in file["data"] for one in article["paragraphs"]]  # noqa: E731
    assert written["version"] == "v2.0" and paragraphs(written) == paragraphs(held_back), "what was judged"
    odds = ("--null-odds", folder / "validation-null-odds.json", "--null-threshold", 0)
    again = run("score", "squad", folder / "validation.json", "--gold", tmp_path / "gold.json", *odds, "--json")
    assert {name: pytest.approx(value) for name, value in scores.items()}.items() <= json.loads(again.stdout).items()


def test_answers_that_do_not_stand_where_they_say_are_counted(run, encoder, tmp_path):
    train = squad_file(tmp_path / "train.json", [True] * 12)
    train.write_text(train.read_text().replace('"answer_start": 22', '"answer_start": 3', 2))
    flags = (*QUICK, "--seeds", 1, "--epochs", 1, "--validation-fraction", 0.25)
    said = run("finetune", encoder, "--task", "squad", "--train", train, *flags, "--out", tmp_path / "out").stderr
    assert "2 of 12 answers do not stand at their answer_start" in " ".join(said.split())
    (tmp_path / "answers.json").write_text("{}")
    said = run("score", "squad", tmp_path / "answers.json", "--gold", train).stderr
    assert "2 of 12 answers do not stand at their answer_start" in " ".join(said.split())


FEW = ("--train-examples", 12, "--validation-examples", 8, "--epochs", 1, "--seeds", 1, "--json", "--threads", 1)


def first_part(done):
    (task,) = json.loads(done.stdout)["tasks"]
    return task["parts"][0]["examples"], {score["name"] for score in task["parts"][0]["scores"]}


def test_layouts_at_hand(run, any_encoder, data, tmp_path):
    done = run("finetune", any_encoder, "--task", "mrpc,glue/rte,wnli", "--data", data, *FEW, "--out", tmp_path / "out")
    tasks = json.loads(done.stdout)["tasks"]
    assert [task["task"] for task in tasks] == ["glue/mrpc", "glue/rte", "glue/wnli"]
    assert all(task["parts"][0]["examples"] == 8 for task in tasks)
    # The data has one part of these tasks.
    for name, file in (("qnli", "glue/QNLI/dev.tsv.gz"), ("qqp", "glue/QQP/subset.tsv.gz"), ("boolq", "superglue/BoolQ/val.jsonl.gz")):
        part = ("--train", data / file, "--validation-fraction", 0.1)
        done = run("finetune", any_encoder, "--task", name, *part, *FEW, "--out", tmp_path / name)
        assert first_part(done) == (8, {"accuracy", "f1"} if name == "qqp" else {"accuracy"})


def test_sts_b(run, any_encoder, tmp_path):
    folder = tmp_path / "glue" / "STS-B"
    folder.mkdir(parents=True)
    columns = "index genre filename year old_index source1 source2 sentence1 sentence2 score".split()
    for part, count in (("train", 12), ("dev", 8)):
        rows = [f"{i}\tg\tf\t2012\t{i}\ts\ts\t{text}\tA fox.\t{5.0 * fox}" for i, (text, fox) in enumerate(texts(count))]
        (folder / f"{part}.tsv").write_text("\n".join(["\t".join(columns), *rows]) + "\n")
    done = run("finetune", any_encoder, "--task", "stsb", "--data", tmp_path, *FEW, "--out", tmp_path / "out")
    assert first_part(done) == (8, {"pearson", "spearman"})
    # Answers are written with every digit: scored again, they give the same scores.
    reported = {one["name"]: one["values"][0] for one in json.loads(done.stdout)["tasks"][0]["parts"][0]["scores"]}
    (answers,) = (tmp_path / "out" / "glue-sts-b").rglob("validation.tsv")
    scored = json.loads(run("score", "glue", answers, "--task", "stsb", "--gold", folder / "dev.tsv", "--json").stdout)
    assert {name: scored[name] for name in reported} == reported


def test_superglue_layouts(run, any_encoder, data, tmp_path):
    """Fine-tunes on a few examples of each task with data at hand."""
    names = ("cb", "copa", "multirc", "superglue/rte", "wic", "wsc")
    done = run("finetune", any_encoder, "--task", ",".join(names), "--data", data, *FEW, "--out", tmp_path / "out")
    report = json.loads(done.stdout)
    assert [task["task"] for task in report["tasks"]] == [f"superglue/{name.split('/')[-1]}" for name in names]
    for task in report["tasks"]:
        few = 5 if task["task"] == "superglue/multirc" else 8  # whole questions
        assert few <= task["parts"][0]["examples"] <= 8, task["task"]
    assert "8 of 56 examples are used" in done.stderr
    (pronouns,) = (tmp_path / "out" / "superglue-wsc").rglob("validation.jsonl")
    assert {json.loads(line)["label"] for line in pronouns.read_text().splitlines()} <= {"True", "False"}
    assert re.search(r"[5-8] of 4848 examples are used, questions whole", done.stderr)


def test_the_diagnostics_of_superglue(run, encoder, tmp_path):
    """Scores AX-b and AX-g with what RTE taught."""
    label = ("entailment", "not_entailment")

    def write(name, file, first, second, count):
        rows = [{first: text, second: "A fox.", "label": label[c], "idx": i} for i, (text, c) in enumerate(texts(count))]
        (tmp_path / "superglue" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "superglue" / name / file).write_text("".join(json.dumps(row) + "\n" for row in rows))

    write("RTE", "train.jsonl", "premise", "hypothesis", 32)
    write("RTE", "val.jsonl", "premise", "hypothesis", 8)
    write("AX-b", "AX-b.jsonl", "sentence1", "sentence2", 12)
    write("AX-g", "AX-g.jsonl", "premise", "hypothesis", 6)
    flags = ("--task", "superglue/rte", "--data", tmp_path, *QUICK, "--json", "--out", tmp_path / "out")
    (task,) = json.loads(run("finetune", encoder, *flags).stdout)["tasks"]
    parts = {part["part"]: (part["examples"], [one["name"] for one in part["scores"]]) for part in task["parts"]}
    assert parts == {"validation": (8, ["accuracy"]), "ax-b": (12, ["matthews"]), "ax-g": (6, ["accuracy"])}
    answers = (tmp_path / "out" / "superglue-rte").rglob("ax-b.jsonl")
    assert len(next(answers).read_text().splitlines()) == 12


def record_passage(number):
    """Writes two animals, of which the query asks for the one that jumps."""
    text, fox = next(texts(1, number))
    animal = "foxes" if fox else "hens"
    begins = [(text.index(word), word) for word in (animal, "dogs")]
    entities = [{"start": at, "end": at + len(word) - 1} for at, word in begins]
    answer = {**entities[0], "text": animal}
    query = {"query": "The @placeholder jump.", "idx": 10 * number, "answers": [answer]}
    return {"idx": number, "passage": {"text": text, "entities": entities}, "qas": [query]}


def test_record(run, any_encoder, tmp_path):
    folder = tmp_path / "superglue" / "ReCoRD"
    folder.mkdir(parents=True)
    for part, numbers in (("train", range(64)), ("val", range(200, 224))):
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(record_passage(i)) + "\n" for i in numbers))
    flags = (*QUICK, "--epochs", 6, "--seeds", 1, "--json", "--out", tmp_path / "out")
    report = json.loads(run("finetune", any_encoder, "--task", "record", "--data", tmp_path, *flags).stdout)
    (part,) = report["tasks"][0]["parts"]
    scores = {score["name"]: score["best"] for score in part["scores"]}
    assert part["examples"] == 24 and scores["f1"] > 0.9
    (answers,) = (tmp_path / "out").glob("**/validation.jsonl")
    again = run("score", "superglue", answers, "--task", "record", "--gold", folder / "val.jsonl", "--json")
    assert json.loads(again.stdout)["f1"] == pytest.approx(scores["f1"])


def test_texts_without_labels_are_answered(run, refused, encoder, tables, tmp_path):
    train, dev = tables
    new = table(tmp_path / "new.tsv", 9, columns=("text", "number"))
    call = ("--task", "classify", "--train", train, "--validation", dev, *QUICK, "--seeds", 1, "--out", tmp_path / "out")
    done = run("finetune", encoder, *call, "--test", new, "--json")
    assert "new.tsv has no column 'label': its texts are answered, and not scored" in " ".join(done.stderr.split())
    assert [part["part"] for part in json.loads(done.stdout)["tasks"][0]["parts"]] == ["validation"]
    (answers,) = (tmp_path / "out").rglob("test.tsv")
    assert len(answers.read_text().splitlines()) == 1 + 9
    assert "the table has no column 'label'" in refused(1, "finetune", encoder, *call, "--validation", new, "--overwrite")


def test_a_rate_that_diverges_costs_only_itself(run, encoder, glue, tmp_path):
    call = ("--task", "cola,sst2", "--data", glue, "--batch-size", 8, "--seeds", 1, "--epochs", 1, "--threads", 1)
    done = run("finetune", encoder, *call, "--learning-rate", "1e30,3e-3", "--out", tmp_path / "one")
    assert "glue/cola with learning rate 1e+30: the " in done.stderr and "a longer warm-up" in done.stderr
    report = json.loads((tmp_path / "one" / "results.json").read_text())
    assert [task["learning_rate"] for task in report["tasks"]] == [3e-3, 3e-3]
    assert all(len(task["failures"]) == 1 for task in report["tasks"])
    done = run("finetune", encoder, *call, "--learning-rate", "1e30", "--out", tmp_path / "none", check=False)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("error: glue/cola with learning rate 1e+30")
    report = json.loads((tmp_path / "none" / "results.json").read_text())
    assert [list(task) for task in report["tasks"]] == [["task", "failures"]] * 2


def test_what_cannot_be_judged_is_refused_before_training(refused, run, encoder, glue, tables, tmp_path):
    """The last task's mistake leaves nothing behind, and costs no training of the first one."""
    out = ("--out", tmp_path / "out")
    (glue / "SST-2" / "dev.tsv").write_text("sentence\nA fox.\n")
    said = refused(1, "finetune", encoder, "--task", "cola,sst2", "--data", glue, *QUICK, *out)
    assert "dev.tsv has no labels" in said
    numbers = tmp_path / "numbers.tsv"
    numbers.write_text("text\tlabel\n" + "".join(f"{text}\t{label}.5\n" for text, label in texts(9)))
    held = ("--task", "regress", "--train", numbers, "--validation-fraction", 0.1)
    assert "a correlation needs 2 or more" in refused(1, "finetune", encoder, *held, *QUICK, *out)
    dev = squad_file(tmp_path / "dev.json", [True, False])
    squad = ("--task", "squad", "--train", squad_file(tmp_path / "train.json", [True] * 4))
    said = refused(1, "finetune", encoder, *squad, "--validation", dev, *QUICK, *out)
    assert "question q1 has no gold answer" in said and "v2.0" in said
    asked = ("--task", "squad", "--train", squad_file(tmp_path / "asked.json", [False] * 4))
    said = refused(1, "finetune", encoder, *asked, "--validation", tmp_path / "train.json", *QUICK, *out)
    assert "asked.json: none of the 4 questions has a gold answer" in said
    assert not (tmp_path / "out").exists()
    # An encoder that cannot be begun with leaves what is there.
    train, valid = tables
    call = ("--task", "classify", "--train", train, "--validation", valid, *QUICK, "--seeds", 1, "--epochs", 1)
    run("finetune", encoder, *call, *out)
    tuned = tmp_path / "out" / "classify" / "lr-0.003-seed-0"
    other = ("--task", "mnli", "--data", glue, *QUICK)
    assert "fine-tuned on another task already" in refused(1, "finetune", tuned, *other, *out, "--overwrite")
    assert (tuned / "result.json").is_file()


def test_resuming_keeps_what_was_added_and_refuses_other_data(run, refused, encoder, tables, tmp_path):
    (tmp_path / "train.tsv").rename(tmp_path / "t.tsv")
    call = ("--task", "classify", "--train", "t.tsv", "--validation", tables[1], *QUICK, "--seeds", 1, "--epochs", 1)
    run("finetune", encoder, *call, "--out", tmp_path / "out", cwd=tmp_path)
    values = lambda done: json.loads(done.stdout)["tasks"][0]["parts"][0]["goal"]["values"]  # noqa: E731
    again = ("--resume", "--out", tmp_path / "out", "--json")  # from another directory, too
    assert len(values(run("finetune", *again, "--seeds", 2))) == 2
    assert len(values(run("finetune", *again))) == 2
    rows = (tmp_path / "t.tsv").read_text()
    (tmp_path / "t.tsv").write_text(rows.replace("\t1\n", "\t0\n", 1))
    assert "the data of classify changed" in refused(1, "finetune", *again)
    (tmp_path / "t.tsv").write_text(rows)
    run("finetune", *again)


def test_a_stopped_fine_tuning_goes_on(program, run, encoder, tables, tmp_path):
    train, dev = tables
    flags = ("--task", "classify", "--train", train, "--validation", dev, *QUICK, "--epochs", 30)
    run("finetune", encoder, *flags, "--out", tmp_path / "whole")
    words = [program, "finetune", encoder, *flags, "--out", tmp_path / "parts"]
    child = subprocess.Popen([str(word) for word in words], stderr=subprocess.PIPE, text=True)
    progress = tmp_path / "parts" / "classify" / "lr-0.003-seed-0" / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while not (progress.is_file() and progress.stat().st_size > 500) and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode != 0 and "--resume --out" in said
    done = run("finetune", "--resume", "--out", tmp_path / "parts", "--json")
    whole = json.loads((tmp_path / "whole" / "results.json").read_text())
    pick = lambda report: [model["parts"] for model in report["tasks"][0]["models"]]  # noqa: E731
    assert pick(json.loads(done.stdout)) == pick(whole)
    # Finished models are not trained again, and not under other options.
    again = run("finetune", "--resume", "--out", tmp_path / "parts", "--json")
    assert json.loads(again.stdout) == json.loads(done.stdout)
    other = run("finetune", "--resume", "--out", tmp_path / "parts", "--epochs", 2, check=False)
    assert other.returncode == 2 and "begun with --epochs 30 and cannot go on with 2" in other.stderr


def test_rotary_encoders_take_rows_longer_than_their_context(run, refused, pretrain, encoder, tmp_path):
    def late(path, count, start):  # what decides comes after the 32 tokens of pre-training
        rows = ((f"{'the ' * 30}and {text}", label) for text, label in texts(count, start))
        path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
        return path

    own = ("--task", "classify", "--train", late(tmp_path / "train.tsv", 60, 0))
    own += ("--validation", late(tmp_path / "dev.tsv", 20, 100), "--seeds", 1, "--batch-size", 8, "--threads", 1)
    learn = ("--epochs", 10, "--learning-rate", 3e-3, "--json")
    cut = json.loads(run("finetune", encoder, *own, *learn, "--out", tmp_path / "cut").stdout)
    assert cut["tasks"][0]["parts"][0]["scores"][0]["best"] == 0.5
    whole = run("finetune", encoder, *own, *learn, "--max-length", 120, "--out", tmp_path / "whole")
    assert json.loads(whole.stdout)["tasks"][0]["parts"][0]["scores"][0]["best"] > 0.9
    tuned = tmp_path / "whole" / "classify" / "lr-0.003-seed-0"
    answered, said = (tuned / "validation.tsv").read_text(), run("predict", tuned, tmp_path / "dev.tsv").stdout
    wanted, given = ([line.split("\t")[1] for line in one.splitlines()[1:]] for one in (answered, said))
    assert given == wanted and len(given) == 20
    learned = pretrain("learned", "--positions", "learned", "--steps", 2)
    error = refused(1, "finetune", learned, *own, "--max-length", 120, "--out", tmp_path / "not")
    assert "--max-length 120 is more than the encoder's context of 32" in error and "rotary" in error


def test_what_is_refused(refused, run, encoder, tables, glue, tmp_path):
    train, dev = tables
    out = ("--out", tmp_path / "out")
    own = ("--task", "classify", "--train", train)
    bad = tmp_path / "bad.tsv"
    bad.write_text("text\tlabel\nA fox.\t1\nNo tab here\n")
    odd = tmp_path / "odd.tsv"
    odd.write_text("text\tlabel\nA fox.\tmaybe\n")
    one = tmp_path / "one.tsv"
    one.write_text("text\tlabel\nA fox.\t1\nA hen.\t1\n")
    same = "one.tsv: all 2 examples have the number 1; there is nothing to learn from them"
    cases = [
        (2, ("--task", "classify"), "--out is missing"),
        (2, out, "--task is missing"),
        (2, ("--task", "colla", *out), "did you mean"),
        (2, ("--task", "rte", *out), "write glue/rte or superglue/rte"),
        (1, ("--task", "cola", *out), "--data DIR"),
        (1, ("--task", "cola", "--data", tmp_path / "nowhere", *out), "none of these exists"),
        (1, ("--task", "classify", *out), "--train FILE.tsv"),
        (1, (*own, *out), "--validation-fraction"),
        (1, ("--task", "pair", "--train", train, *out), "--pair-column"),
        (1, ("--task", "classify", "--train", bad, "--validation", dev, *out), "bad.tsv:3"),
        (1, (*own, "--validation", odd, *out), "unknown label 'maybe'"),
        (1, (*own, "--validation", train, *out), "--train and --validation are one file"),
        (1, (*own, "--validation", dev, "--test", dev, *out), "--validation and --test are one file"),
        (1, (*own, "--validation", dev, "--validation-fraction", 0.1, *out), "leave one out"),
        (1, ("--task", "classify", "--train", one, "--validation", dev, *out), "nothing to tell apart"),
        (1, ("--task", "regress", "--train", one, "--validation", dev, *out), same),
        (2, (*own, "--validation", dev, "--learning-rate", "fast", *out), "--learning-rate must be a number, not 'fast'"),
        (1, (*own, "--validation", dev, "--label-column=", *out), "label-column is empty: which column of"),
        (1, ("--task", "squad", *out), "--train train-v1.1.json"),
        (1, ("--task", "squad", "--train", train, *out), "train.tsv"),
        (2, ("--resume", *out), "nothing to resume"),
    ]
    for code, words, message in cases:
        said = refused(code, "finetune", encoder, *words)
        assert message in said, (words, said)
        assert not (tmp_path / "out").exists(), "a mistake in the call leaves nothing"
    quick = (*own, "--validation", dev, *QUICK, "--epochs", 1, "--seeds", 1, *out)
    run("finetune", encoder, *quick)
    assert "--resume continues it" in refused(1, "finetune", encoder, *quick)
    run("finetune", encoder, *quick, "--overwrite", "--no-keep-models")
    home = tmp_path / "out" / "classify" / "lr-0.003-seed-0"
    assert not list((home / "checkpoints").glob("*/model.safetensors")) and (home / "result.json").is_file()
    result = home / "result.json"
    result.write_text(result.read_text()[:40])
    assert "delete it to train this model again" in refused(1, "finetune", "--resume", *out)
    shutil.rmtree(encoder.parent / "none", ignore_errors=True)
    assert "no model at" in refused(1, "finetune", encoder.parent / "none", *quick)


def test_a_fine_tuned_model_shares_heads_and_learns_on(run, encoder, tables, tmp_path):
    """Fine-tunes, converts, and fine-tunes again with the original for a teacher: the recipe of collaborative
    attention's paper."""
    train, dev = tables
    parts = ("--task", "classify", "--train", train, "--validation", dev, *QUICK, "--seeds", 1)
    run("finetune", encoder, *parts, "--out", tmp_path / "tuned")
    tuned = tmp_path / "tuned" / "classify" / "lr-0.003-seed-0"
    run("convert", tuned, tmp_path / "shared", "--to", "skv")
    run("convert", tuned, tmp_path / "shared", "--to", "mqa", "--overwrite")
    answers = run("predict", tmp_path / "shared", dev).stdout.splitlines()
    assert len(answers) == 21
    none = ("--epochs", 1, "--learning-rate", 1e-9)
    found = json.loads(run("finetune", tmp_path / "shared", *parts, *none, "--teacher", tuned, "--out", tmp_path / "healed", "--json").stdout)
    # It begins with the head that it has: hardly trained, it answers as the converted model does.
    right = [line.split("\t")[1] == str(label) for line, (_, label) in zip(answers[1:], texts(20, start=100), strict=True)]
    scores = {score["name"]: score for score in found["tasks"][0]["parts"][0]["scores"]}
    assert scores["accuracy"]["values"] == [pytest.approx(sum(right) / 20)]


def test_a_teacher_of_the_same_task(run, refused, encoder, tables, glue, tmp_path):
    train, dev = tables
    parts = ("--task", "classify", "--train", train, "--validation", dev, *QUICK, "--seeds", 1)
    run("finetune", encoder, *parts, "--out", tmp_path / "tuned")
    teacher = tmp_path / "tuned" / "classify" / "lr-0.003-seed-0"
    done = run("finetune", encoder, *parts, "--teacher", teacher, "--seed", 5, "--out", tmp_path / "taught", "--json")
    assert json.loads(done.stdout)["tasks"][0]["parts"][0]["part"] == "validation"
    assert "teacher: loss " in done.stderr

    def events(out):
        return [json.loads(line) for line in (out / "classify/lr-0.003-seed-5/metrics.jsonl").read_text().splitlines()]

    lines = events(tmp_path / "taught")
    steps = [line for line in lines if line["event"] == "step"]
    assert all(line["plain_loss"] > 0 and line["plain_loss"] != line["loss"] for line in steps)
    run("finetune", encoder, *parts, "--teacher", teacher, "--teacher-hidden", 1, "--seed", 5, "--out", tmp_path / "states")
    first = next(line for line in events(tmp_path / "states") if line["event"] == "step")
    assert first["plain_loss"] == pytest.approx(steps[0]["plain_loss"], rel=1e-5) and first["loss"] > steps[0]["loss"] + 1e-3
    said = json.loads((teacher / "result.json").read_text())["parts"][0]["scores"]
    taught = next(line for line in lines if line["event"] == "teacher")
    assert taught["accuracy"] == next(score["value"] for score in said if score["name"] == "accuracy")
    # Without a share nothing changes. A fine-tuning that kept one model stands for that model.
    same = tmp_path / "same"
    run("finetune", encoder, *parts, "--teacher", tmp_path / "tuned", "--teacher-share", 0, "--out", same)
    # A fine-tuning that was begun with one teacher does not go on with another.
    weights = teacher / "checkpoints" / "best" / "model.safetensors"
    kept = weights.read_bytes()
    weights.write_bytes(kept[:-4] + bytes(4))
    assert "was begun with" in refused(1, "finetune", "--resume", "--out", same, "--seeds", 2)
    weights.write_bytes(kept)
    name = "classify/lr-0.003-seed-0/validation.tsv"
    assert (tmp_path / "same" / name).read_bytes() == (tmp_path / "tuned" / name).read_bytes()

    def refusal(code, *flags, out=tmp_path / "no"):
        return refused(code, "finetune", encoder, "--out", out, "--threads", 1, *flags)

    message = refusal(2, "--task", "cola,sst-2", "--data", glue, "--teacher", teacher)
    assert "fine-tuned on one task" in message and "glue/cola and glue/sst-2" in message
    message = refusal(1, "--task", "cola", "--data", glue, "--teacher", teacher)
    assert "was fine-tuned on classify" in message and "glue/cola" in message
    assert "--teacher-share needs --teacher MODEL" in refusal(2, "--task", "cola", "--data", glue, "--teacher-share", 0.2)
    message = refusal(2, *parts, "--teacher", teacher, "--overwrite", out=tmp_path / "tuned")
    assert "lies in --out" in message and (teacher / "result.json").exists()
    assert "--teacher-hidden needs --teacher MODEL" in refusal(2, *parts, "--teacher-hidden", 1)
    assert not (tmp_path / "no").exists()

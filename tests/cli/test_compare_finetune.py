"""Tests compare --task glue, classify, ...: encoders of several schemes fine-tuned, from a text or from encoders that
are there."""

import json
import shutil
import signal

import pytest
from test_finetune import glue, squad_file, table, texts  # noqa: F401 (a fixture)
from training import at_work, lines_in, one_line_error, own_cache, stop_when  # noqa: F401 (a fixture)

pytestmark = pytest.mark.slow

SMALL = ["--layers", 2, "--d-model", 32, "--heads", 4, "--context", 32, "--batch-size", 8, "--threads", 1]
SMALL += ["--vocabulary-size", 60, "--steps", 40, "--learning-rate", 3e-3, "--init-deviation", 0.1]
TWO_EPOCHS = ["--seeds", 2, "--threads", 1, "--finetune-epochs", 2, "--finetune-batch-size", 8]
QUICK = [*TWO_EPOCHS, "--finetune-learning-rate", 3e-3]
SCHEMES = ("mha", "sha")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"{one}\n" for one, _ in texts(300)))
    return path


@pytest.fixture(scope="module")
def encoders(run, text):
    """Runs compare --task mlm of two schemes."""
    out = text.parent / "encoders"
    flags = ("--task", "mlm", "--schemes", ",".join(SCHEMES), "--seeds", 1, "--seed", 3)
    run("compare", "--text", text, "--out", out, *flags, *SMALL, env={"HEADSHARE_CACHE": str(text.parent / "cache")})
    return out


@pytest.fixture
def suite(tmp_path):
    """Writes CoLA, SST-2 and, without a development part, QNLI, in the official layout."""
    for name, columns in (("CoLA", None), ("SST-2", ("sentence", "label"))):
        folder = tmp_path / "glue" / name
        folder.mkdir(parents=True)
        for part, count in (("train", 32), ("dev", 16)):
            if columns:
                table(folder / f"{part}.tsv", count, columns=columns)
            else:
                (folder / f"{part}.tsv").write_text("".join(f"gj04\t{label}\t\t{one}\n" for one, label in texts(count)))
    return tmp_path / "glue"


def test_relatives_of_a_task_are_beside_it(run, encoders, glue, tmp_path):  # noqa: F811
    flags = ("--task", "glue", "--tasks", "mnli", "--finetune-data", glue, "--encoders", encoders, "--schemes", "mha")
    done = run("compare", "--json", *QUICK, "--seeds", 1, "--out", tmp_path / "out", *flags)
    assert "glue/mnli: 24 training examples; entailment 50.0%" in done.stderr
    task = json.loads(done.stdout)["cells"][0]["tasks"][0]
    assert [one["name"] for one in task["metrics"]] == ["accuracy", "mnli-mm accuracy", "ax matthews"]
    matched, mismatched, _ = (one["value"] for one in task["metrics"])
    assert task["score"] == pytest.approx(100 * (matched + mismatched) / 2)


def tuned(run, out, *arguments, **options):
    return json.loads(run("compare", "--json", *QUICK, "--out", out, *arguments, **options).stdout)


def test_the_papers_table(run, encoders, suite, tmp_path):
    out = tmp_path / "out"
    flags = ("--task", "glue", "--tasks", "cola,sst2", "--finetune-data", suite, "--encoders", encoders)
    results = tuned(run, out, *flags, "--latex")
    assert json.loads((out / "results.json").read_text()) == results
    assert results["complete"] and results["format_version"] == 3
    subject = results["subject"]
    assert subject["name"] == "glue" and subject["direction"] == "higher is better" and subject["full_scale"] == 100
    assert subject["tasks"] == ["glue/cola", "glue/sst-2"] and subject["has_test_part"] is False
    # CoLA's correlation of one answer is 0 by convention; of SST-2's rows half are right.
    assert subject["task_chances"] == [0, 50] and subject["chance"] == 25
    assert "glue/cola 32 + 16" in subject["data"] and "text.txt" in subject["data"]
    assert [(cell["variant"], cell["seed"]) for cell in results["cells"]] == [(s, i) for i in (0, 1) for s in SCHEMES]
    for cell in results["cells"]:
        scores = [task["score"] for task in cell["tasks"]]
        assert cell["quality"] == pytest.approx(sum(scores) / 2)
        assert cell["validation_loss"] == pytest.approx(sum(task["validation_loss"] for task in cell["tasks"]) / 2)
        cola, sst = cell["tasks"]
        assert cola["metrics"][0]["name"] == "matthews" and cola["score"] == pytest.approx(100 * cola["metrics"][0]["value"])
        assert sst["metrics"][0]["signature"] and sst["examples"] == 16 and sst["learning_rate"] == 3e-3
        assert cell["peak_memory_bytes"] > 50e6 and cell["attention_memory_bytes"] > 0
        assert cell["cache_bytes_per_token"] == 0 and cell["decoding_tokens_per_second"] == 0
        # The answers of the model are there, and score as was reported.
        folder = out / cell["model"] / "glue-sst-2" / "lr-0.003"
        gold = ("--gold", suite / "SST-2" / "dev.tsv")
        scored = json.loads(run("score", "glue", folder / "validation.tsv", "--task", "sst-2", *gold, "--json").stdout)
        assert 100 * scored["accuracy"] == pytest.approx(sst["score"])
        assert not list((folder / "checkpoints").glob("*/model.safetensors"))
    mha, sha = results["rows"]
    assert mha["prr"]["value"] == 100 and sha["peop"]["reason_undefined"]
    assert sha["prr"]["value"] == pytest.approx(100 * sha["quality"]["mean"] / mha["quality"]["mean"])
    growth = mha["attention_parameters"] / sha["attention_parameters"] - 1
    assert mha["peop"]["value"] == pytest.approx((mha["quality"]["mean"] / sha["quality"]["mean"] - 1) / growth)
    assert [task["task"] for task in mha["tasks"]] == subject["tasks"]
    assert mha["tasks"][1]["score"]["count"] == 2 and "accuracy" in mha["tasks"][1]["metrics"]
    # Both seeds begin with the first seed's encoder.
    assert mha["attention_parameters"] == 2 * 4 * 32 * 32
    # The files hold each task.
    lines = (out / "tasks.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 2 and lines[0].startswith("subject,data,match,measure,part,variant,scheme,task,seeds,score,")
    assert (out / "table.tex").read_text().count(r"\begin{tabular}") == 2
    page = (out / "report.html").read_text()
    assert "<h1 id=\"c1-h\">GLUE: " in page and "Tasks; the best in bold" in page and "one pre-trained encoder" in page
    # The table in a terminal is made again from the file.
    printed = run("report", out).stdout
    assert "scores glue/cola 0.00, glue/sst-2 50.00." in " ".join(printed.split())
    assert all(len(line) <= 80 for line in printed.splitlines())
    for word in ("attention parameters", "validation score", "PRR", "PEoP", "Tasks", "cola", "sst-2", "examples/s", "biased"):
        assert " ".join(word.split()) in " ".join(printed.split()), word


def test_encoders_come_first_where_there_are_none(run, program, text, suite, tmp_path):
    out = tmp_path / "out"
    flags = ("--task", "glue", "--tasks", "cola", "--finetune-data", suite, "--schemes", "mha,sha,el_lossless", "--text", text)
    long = (*SMALL, "--steps", 300)
    command = [program, "compare", *QUICK, *flags, *long, "--out", out]
    # The comparison was stopped in the pre-training of the second encoder, and twice in the fine-tuning of the first
    # cell.
    encoder = lambda: at_work(out / "encoders", "sha-seed0") / "metrics.jsonl"  # noqa: E731
    process = stop_when(command, lambda: lines_in(encoder()) >= 2, signal.SIGINT)
    assert f"continue with: headshare compare --resume --out {out}" in process.said and not (out / "cells").exists()
    resume = [program, "compare", "--resume", "--out", out]
    first = lambda: at_work(out, "mha-seed0") / "glue-cola" / "lr-0.003"  # noqa: E731
    process = stop_when(resume, lambda: lines_in(first() / "metrics.jsonl") >= 1, signal.SIGKILL)  # no checkpoint yet
    process = stop_when(resume, lambda: (first() / "checkpoints" / "last").exists(), signal.SIGKILL)
    done = run("compare", "--resume", "--out", out, "--json")
    results = json.loads(done.stdout)
    assert results["complete"] and not results["failed"] and len(results["cells"]) == 4
    assert "el_lossless is left out: its weights are mha's" in done.stderr
    before = json.loads((out / "encoders" / "results.json").read_text())
    assert before["subject"]["name"] == "masked-language-model" and before["complete"]
    # Seed i is fine-tuned from encoder i.
    assert {cell["seed"] for cell in before["cells"]} == {0, 1} and (out / "encoders" / "report.html").is_file()
    assert all(cell["encoder_seed"] == cell["seed"] for cell in results["cells"])
    assert "one pre-trained encoder" not in " ".join((out / "report.html").read_text().split())
    # A comparison in one go gives the same.
    whole = tuned(run, tmp_path / "whole", *flags, *long)
    scores = lambda found: [(cell["variant"], cell["seed"], cell["tasks"]) for cell in found["cells"]]  # noqa: E731
    assert scores(whole) == scores(results)
    again = run("compare", "--resume", "--out", out)
    assert again.stderr.count("4 of 4 models were finished before") == 2


def test_variants_are_pre_trained_and_fine_tuned(run, refused, text, tmp_path):
    """Encoders of other widths are what is compared here; --encoders finds them by name."""
    out, again = tmp_path / "out", tmp_path / "again"
    parts = [f"--finetune-{part}={table(tmp_path / f'{part}.tsv', 24)}" for part in ("train", "validation")]
    flags = ("--task", "classify", *parts)
    variants = ("--schemes", "mha", "--variants", "rms:norm=rms,wide:heads=2,feed-forward-width=48,output-gate=head")
    results = tuned(run, out, *flags, *variants, "--text", text, *SMALL, "--reference", "rms")
    assert [row["variant"] for row in results["rows"]] == ["mha", "rms", "wide"] and results["reference"] == "rms"
    rms, wide = ({**results["options"], **cell["options"]} for cell in results["cells"][1:3])
    assert (rms["norm"], rms["heads"], wide["norm"], wide["heads"], wide["feed-forward-width"]) == ("rms", 4, "layer", 2, 48)
    assert len({cell["total_parameters"] for cell in results["cells"]}) == 3
    assert results["variants"] == json.loads((out / "encoders/results.json").read_text())["variants"]
    more = tuned(run, again, *flags, "--encoders", out / "encoders")
    assert "Output gates differ" in more["subject"]["sentence"] and "head in wide; none in mha and rms" in more["subject"]["sentence"]
    assert more["variants"] == results["variants"] and not more["failed"] and more["reference"] == "mha"
    assert [cell["quality"] for cell in more["cells"]] == [cell["quality"] for cell in results["cells"]]
    error = refused(2, "compare", *QUICK, *flags, "--encoders", out / "encoders", "--variants", "x:norm=rms", "--out", tmp_path / "no")
    one_line_error(error, "--variants is of pre-training")
    before = (again / "results.json").read_bytes()
    error = refused(1, "compare", *QUICK, *flags, "--encoders", out / "encoders", "--reference", "x", "--out", again, "--overwrite")
    one_line_error(error, "--reference x is not among what is compared: mha, rms and wide")
    assert (again / "results.json").read_bytes() == before


def test_a_cell_that_fails_and_learning_rates(run, encoders, suite, tmp_path):
    copy = tmp_path / "encoders"
    shutil.copytree(encoders, copy, symlinks=True)
    out = tmp_path / "out"
    flags = ("--task", "glue", "--tasks", "sst2", "--finetune-data", suite, "--encoders", copy)
    weights = copy / "cells/sha-seed3/checkpoints/best/model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:100])
    rates = ("--finetune-learning-rate", "1e-6,3e-3")
    done = run("compare", *TWO_EPOCHS, *flags, *rates, "--out", out, check=False)
    assert done.returncode == 1 and "sha seed 0 failed" in done.stderr
    results = json.loads((out / "results.json").read_text())
    assert [cell["variant"] for cell in results["failed"]] == ["sha", "sha"] and "model.safetensors" in results["failed"][0]["reason"]
    for cell in results["cells"]:
        (task,) = cell["tasks"]
        losses = {}
        for rate in ("1e-06", "0.003"):
            (part,) = json.loads((out / cell["model"] / "glue-sst-2" / f"lr-{rate}" / "result.json").read_text())["parts"]
            losses[float(rate)] = part["goal"]
        assert 100 * max(losses.values()) == pytest.approx(task["score"])
        assert losses[task["learning_rate"]] == max(losses.values())
    # The metrics of one task stand in a table, its learning curve in the report.
    assert "Metrics of glue/sst-2" in done.stdout and 'id="c1-curves"' in (out / "report.html").read_text()
    weights.write_bytes(whole)
    repaired = json.loads(run("compare", "--resume", "--out", out, "--json").stdout)
    assert not repaired["failed"] and len(repaired["cells"]) == 4


def test_own_tables_with_a_test_part(run, encoders, tmp_path):
    parts = {"train": 40, "validation": 20, "test": 12}
    files = [(f"--finetune-{name}", table(tmp_path / f"{name}.tsv", count, start=100 * count)) for name, count in parts.items()]
    results = tuned(run, tmp_path / "out", "--task", "classify", "--encoders", encoders, *sum(files, ()))
    assert results["subject"]["has_test_part"] is True and results["subject"]["tasks"] == ["classify"]
    assert all(cell["tasks"][0]["examples"] == 12 for cell in results["cells"])
    assert "train.tsv, validation.tsv, test.tsv" in results["subject"]["data"]


def test_pairs_and_numbers(run, encoders, tmp_path):
    """The validation part of numbers has one of them only: its correlations are 0/0 and the score is 0."""
    rows = [(one, "A fox.", label) for one, label in texts(24)]
    for part, same in (("train", False), ("dev", True)):
        body = "".join(f"{a}\t{b}\t{1.0 if same else label}\n" for a, b, label in rows)
        (tmp_path / f"{part}.tsv").write_text("text\tsecond\tlabel\n" + body)
    files = ("--finetune-train", tmp_path / "train.tsv", "--finetune-validation", tmp_path / "dev.tsv")
    few = ("--encoders", encoders, "--schemes", "mha", "--seeds", 1, "--finetune-pair-column", "second")
    (cell,) = tuned(run, tmp_path / "number", "--task", "regress", *files, *few)["cells"]
    assert cell["quality"] == 0 and {one["value"] for one in cell["tasks"][0]["metrics"]} == {None}
    held = ("--finetune-train", tmp_path / "train.tsv", "--finetune-validation-fraction", 0.25)
    (cell,) = tuned(run, tmp_path / "pair", "--task", "pair", *held, *few)["cells"]
    assert cell["tasks"][0]["examples"] == 6 and 0 <= cell["quality"] <= 100


def test_superglue(run, encoders, data, tmp_path):
    few = ("--finetune-train-examples", 12, "--finetune-validation-examples", 8, "--seeds", 1, "--schemes", "mha,sha")
    flags = ("--task", "superglue", "--tasks", "cb,copa,multirc", "--finetune-data", data, "--encoders", encoders, *few)
    results = tuned(run, tmp_path / "out", *flags)
    assert results["subject"]["tasks"] == ["superglue/cb", "superglue/copa", "superglue/multirc"]
    for cell in results["cells"]:
        assert cell["quality"] == pytest.approx(sum(task["score"] for task in cell["tasks"]) / 3)
        assert {one["name"] for one in cell["tasks"][2]["metrics"]} == {"f1", "exact_match"}


def test_squad_names_its_edition_and_is_in_per_cent_already(run, encoders, tmp_path):
    for version, name in (("1.1", "squad-v1.1"), ("v2.0", "squad-v2.0")):
        has = [i % 3 > 0 or version == "1.1" for i in range(24)]
        train, dev = (squad_file(tmp_path / f"{part}-{name}.json", has, version=version) for part in ("train", "dev"))
        flags = ("--finetune-train", train, "--finetune-validation", dev, "--schemes", "mha", "--seeds", 1)
        results = tuned(run, tmp_path / name, "--task", "squad", "--encoders", encoders, *flags)
        assert results["subject"]["name"] == name and results["subject"]["full_scale"] == 100
        (cell,) = results["cells"]
        assert 1 < cell["quality"] <= 100
        f1 = {one["name"]: one["value"] for one in cell["tasks"][0]["metrics"]}
        assert cell["quality"] == pytest.approx(f1["f1" if version == "1.1" else "best_f1"])


def test_an_unfinished_comparison_of_encoders(run, refused, encoders, suite, tmp_path):
    copy = tmp_path / "encoders"
    shutil.copytree(encoders, copy, symlinks=True)
    results = json.loads((copy / "results.json").read_text())
    results["cells"] = [cell for cell in results["cells"] if cell["variant"] == "mha"]
    results["complete"] = False
    (copy / "results.json").write_text(json.dumps(results))
    flags = ("--task", "glue", "--tasks", "sst2", "--finetune-data", suite, "--encoders", copy)
    error = refused(1, "compare", *flags, "--schemes", "mha,sha", "--out", tmp_path / "out")
    one_line_error(error, "there is no encoder of sha in", copy, "seed 3 is not finished")
    done = run("compare", *QUICK, *flags, "--seeds", 1, "--out", tmp_path / "out", "--json")
    assert "sha is left out: there is no encoder of it in" in done.stderr
    assert [row["scheme"] for row in json.loads(done.stdout)["rows"]] == ["mha"]


def test_encoders_trained_again_are_refused(run, refused, encoders, suite, tmp_path):
    copy = shutil.copytree(encoders, tmp_path / "encoders", symlinks=True)
    out, alone = tmp_path / "out", tmp_path / "alone"
    data = ("--task", "glue", "--tasks", "sst2", "--finetune-data", suite)
    tuned(run, out, *data, "--encoders", copy)
    one = copy / "cells/sha-seed3/checkpoints/best"
    run("finetune", one, "--task", "sst2", "--data", suite, "--epochs", 1, "--out", alone)
    weights = bytearray((one / "model.safetensors").read_bytes())
    weights[-4:] = b"\0\0\0\0"
    (one / "model.safetensors").write_bytes(weights)
    *_, error = refused(1, "compare", "--resume", "--out", out).splitlines(keepends=True)
    one_line_error(error, "the weights in", one, "sha-seed0", "--overwrite")
    run("compare", "--resume", "--out", out, "--schemes", "mha")
    one_line_error(refused(1, "finetune", "--resume", "--out", alone), "the weights in", one, alone, "--overwrite")
    run("finetune", one, "--task", "sst2", "--data", suite, "--epochs", 1, "--out", alone, "--overwrite")


def test_encoders_that_differ_are_refused(run, refused, encoders, text, suite, tmp_path):
    copy = tmp_path / "encoders"
    shutil.copytree(encoders, copy, symlinks=True)
    flags = ("--task", "mlm", "--schemes", "sha", "--seeds", 1, "--seed", 3, *SMALL)
    for change, said in (("--context", 24), "context 24 and 32"), (("--d-model", 64), "d-model 64 and 32"):
        other = tmp_path / f"other{change[1]}"
        run("compare", "--text", text, "--out", other, *flags, *change)
        shutil.rmtree(copy / "cells/sha-seed3")
        shutil.copytree(other / "cells/sha-seed3", copy / "cells/sha-seed3", symlinks=True)
        call = ("--task", "glue", "--tasks", "cola", "--finetune-data", suite, "--encoders", copy, "--out", tmp_path / "x")
        one_line_error(refused(1, "compare", *call), "cannot be compared", said, "of sha and of mha differ")


def test_what_is_refused(refused, run, encoders, text, suite, tmp_path):
    out = ("--out", tmp_path / "out")
    glue = ("--task", "glue", "--finetune-data", suite)
    given = ("--encoders", encoders)
    cases = [
        (1, (*glue, *out), ["--encoders DIR", "--text"]),
        (1, (*glue, *given, *out), ["glue/mrpc", "none of these exists", "--tasks"]),
        (2, (*glue, *given, *out, "--tasks", "colla"), ["did you mean"]),
        (2, ("--task", "squad", *given, *out, "--tasks", "cola"), ["--tasks", "squad"]),
        (1, ("--task", "squad", *given, *out), ["--finetune-train train-v1.1.json"]),
        (1, (*glue, "--encoders", tmp_path / "none", *out), ["none", "results.json"]),
        (1, (*glue, *given, "--schemes", "mha,gqa", *out), ["no encoder of gqa", "not among the --schemes"]),
        (2, (*glue, *given, "--layers", 3, *out), ["--layers is of pre-training"]),
        (2, (*glue, *given, "--text", text, *out), ["--text is of pre-training"]),
        (2, (*glue, *given, "--finetune-n-best", 3, *out), ["--finetune-n-best", "answers in texts", "glue"]),
        (2, (*glue, *given, "--finetune-label-column", "x", *out), ["--finetune-label-column", "table of your own"]),
        (2, (*glue, *given, "--finetune-learning-rate", "fast", *out), ["--finetune-learning-rate must be a number, not 'fast'"]),
        (2, (*glue, *given, "--finetune-epochs", 0, *out), ["--finetune-epochs must be"]),
        (2, ("--text", text, "--finetune-epochs", 5, *out), ["--finetune-epochs", "belongs to --task glue", "language-model"]),
        (2, ("--text", text, "--encoders", encoders, *out), ["--encoders", "belongs to --task glue"]),
        (2, (*glue, *given, "--pairs", 5, *out), ["--pairs", "recall", "glue"]),
    ]
    for code, arguments, expected in cases:
        one_line_error(refused(code, "compare", *arguments), *expected)
        assert not (tmp_path / "out").exists(), arguments
    # A mistake in a task's data is found before a text is read to pre-train on.
    error = refused(1, "compare", *glue, "--tasks", "cola,mrpc", "--text", text, *SMALL, *out)
    one_line_error(error, "glue/mrpc", "none of these exists")
    assert not (tmp_path / "out").exists()
    learned = tmp_path / "learned"
    few = ("--task", "mlm", "--positions", "learned", "--schemes", "mha", *SMALL, "--steps", 2)
    run("compare", "--text", text, *few, "--out", learned)
    longer = ("--encoders", learned, "--tasks", "cola", "--finetune-max-length", 500)
    one_line_error(refused(1, "compare", *glue, *longer, *out),
                   "--finetune-max-length 500 is more than the encoder's context of 32")
    # The directory holds another kind of comparison.
    offsets = tmp_path / "offsets"
    run("compare", "--task", "offsets", "--schemes", "mha", "--steps", 2, "--threads", 1, "--out", offsets)
    one_line_error(refused(1, "compare", *glue, "--encoders", offsets, *out), "another kind (offsets)", "--task mlm")


def test_a_mistake_beside_overwrite_costs_nothing(run, refused, text, suite, tmp_path):
    """Expects neither the fine-tuned models nor the encoders below them to be touched before the text, too, was looked
    at."""
    out = tmp_path / "out"
    flags = ("--task", "glue", "--tasks", "cola", "--finetune-data", suite, "--schemes", "mha", *QUICK, *SMALL, "--seeds", 1)
    wrong = ("compare", "--text", tmp_path / "none.txt", *flags, "--out", out)
    one_line_error(refused(1, *wrong).splitlines(True)[-1], "none.txt")
    run("compare", "--text", text, *flags, "--out", out)
    before = {path: path.read_bytes() for path in out.rglob("*.json")}
    one_line_error(refused(1, *wrong, "--overwrite").splitlines(True)[-1], "none.txt")
    assert {path: path.read_bytes() for path in out.rglob("*.json")} == before and len(before) > 5
    again = run("compare", "--text", text, *flags, "--out", out, "--overwrite", "--finetune-epochs", 1)
    assert "taken over" not in again.stderr


def test_data_that_changed_and_another_directory(run, refused, encoders, suite, tmp_path):
    flags = ("--task", "glue", "--tasks", "cola", "--finetune-data", "glue", "--encoders", encoders, "--schemes", "mha")
    own = tmp_path / "out" / "encoders" / "mine.txt"
    own.parent.mkdir(parents=True)
    own.write_text("a folder of this name that is no comparison's")
    run("compare", *flags, *QUICK, "--seeds", 1, "--out", tmp_path / "out", cwd=tmp_path)
    assert own.is_file()
    again = ("--resume", "--out", tmp_path / "out")
    command = lambda: json.loads((tmp_path / "out" / "results.json").read_text())["command"].splitlines()  # noqa: E731
    run("compare", *again)
    assert len(command()) == 1, "nothing was added"
    run("compare", *again, "--seeds", 2)
    assert len(command()) == 2
    dev = suite / "CoLA" / "dev.tsv"
    dev.write_text(dev.read_text().replace("\t1\t", "\t0\t", 1))
    *_, error = refused(1, "compare", *again).splitlines(True)
    one_line_error(error, "changed since it was begun, though not in size", "--overwrite")


def test_dry_run(run, encoders, suite, tmp_path):
    flags = ("--task", "glue", "--finetune-data", suite, "--seeds", 3, "--dry-run")
    printed = run("compare", *flags, "--encoders", encoders, "--tasks", "cola,sst2", cwd=tmp_path).stdout
    assert "mha" in printed and "gqa" not in printed and all(len(line) <= 80 for line in printed.splitlines())
    assert "fine-tuned on glue/cola and glue/sst-2; 3 epochs, 3 seeds, 1 learning rate" in " ".join(printed.split())
    printed = run("compare", *flags, "--schemes", "mha,gqa", "--steps", 70, cwd=tmp_path).stdout
    assert "gqa" in printed and "70 steps each, 3 seeds" in printed and "glue/wnli" in printed
    printed = run("compare", *flags, "--schemes", "mha,gqa", "--encoder-seeds", 1, cwd=tmp_path).stdout
    assert "steps each, 1 seed\n" in printed
    beside = run("compare", *flags, "--encoders", encoders, "--encoder-seeds", 2, cwd=tmp_path, check=False)
    assert beside.returncode == 2
    one_line_error(beside.stderr, "--encoder-seeds", "are trained already")

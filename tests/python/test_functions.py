"""Tests the functions of the Python package on tiny data: they give the program's table, its numbers and its report."""

import html
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import time

import headshare
import pytest
from cli.browser import page  # noqa: F401  (a fixture)
from conftest import ROOT, run_command
from headshare import _call, _error

SIZES = {"layers": 1, "d_model": 32, "heads": 2, "context": 32, "tokenizer": "bytes", "steps": 5, "threads": 1}


@pytest.fixture(autouse=True)
def tested_build(build_dir, monkeypatch, tmp_path_factory):
    monkeypatch.setenv("HEADSHARE_BUILD", str(build_dir))
    monkeypatch.setenv("HEADSHARE_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "book.txt"
    path.write_text("".join(f"The {i}th sentence has {i * 7 % 11} of {i * i % 97}.\n" for i in range(600)))
    return path


@pytest.fixture(scope="module")
def trained(book, build_dir, tmp_path_factory):
    """Returns (a run's directory, the result of training it)."""
    out = tmp_path_factory.mktemp("trained") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADSHARE_BUILD", str(build_dir))
        return out, headshare.train(text=book, out=out, no_tensorboard=True, **SIZES)


# --- flags -------------------------------------------------------------------------------------


def test_keywords_become_flags():
    options = {
        "learning_rate": 1e-3,
        "schemes": ["mha", "sha"],
        "resume": True,
        "tie": False,
        "steps": None,
        "from_": "hf",
        "text": [pathlib.Path("a.txt"), "b,c.txt"],
        "sample_text": pathlib.Path("d\\,e.txt"),
        "score_text": "f.txt,g.txt",
        "gold": pathlib.Path("j,k.txt"),
        "out": pathlib.Path("h,i"),
        "sweep": {"learning-rate": [1e-3, 3e-3]},
        "variants": {"rms": {"norm": "rms"}, "wide": {"scheme": "mqa", "heads": 8}},
        "negative": -1,
    }
    words = _call.words_of("train", (pathlib.Path("model"), "-odd"), options)
    assert words == ["train", "model", "./-odd", "--learning-rate=0.001", "--schemes=mha,sha", "--resume", "--no-tie",
                     "--from=hf", "--text=a.txt,b\\,c.txt", "--sample-text=d\\\\\\,e.txt", "--score-text=f.txt,g.txt", "--gold=j\\,k.txt",
                     "--out=h,i", "--sweep=learning-rate=0.001,0.003",
                     "--variants=rms:norm=rms,wide:scheme=mqa,heads=8", "--negative=-1"]  # fmt: skip


def test_lists_of_settings_are_joined_as_they_are():
    words = _call.words_of("compare", (), {"variants": ["wide:scheme=mqa,heads=8", {"rms": {"norm": "rms"}}], "sweep": ["heads=4,8"]})
    assert words == ["compare", "--variants=wide:scheme=mqa,heads=8,rms:norm=rms", "--sweep=heads=4,8"]
    assert _call.words_of("finetune", (), {"train_file": pathlib.Path("a,b")}) == ["finetune", "--train-file=a,b"]
    assert _call.words_of("analyze", (), {"images": pathlib.Path("a,b")}) == ["analyze", "--images=a\\,b"]
    assert _call.words_of("train", (), {"images": pathlib.Path("a,b")}) == ["train", "--images=a,b"]


def test_a_path_is_one_of_several_files_where_the_program_reads_a_list(run):
    """The package's list of such options and the program's help agree, option by option."""
    verbs = re.findall(r"^  (\w+) ", run("--help").stdout, re.MULTILINE)
    found = {True: set(), False: set()}
    for verb in verbs:
        options = run(verb, "--help-all").stdout
        for name, placeholder in re.findall(r"^  --([\w-]+) ((?:PATH|FILE|DIR)\S*)", options, re.MULTILINE):
            is_list = placeholder.endswith(",...")
            found[is_list].add((verb, name))
            comma = "\\," if is_list else ","
            assert _call.words_of(verb, (), {name: pathlib.Path("a,b")}) == [verb, f"--{name}=a{comma}b"]
    assert {("train", "text"), ("score", "gold"), ("analyze", "images")} <= found[True]
    assert {("train", "images"), ("finetune", "train"), ("compare", "out")} <= found[False]


def test_flags_in_messages_become_keywords():
    assert _error.in_python("leave --key-width out") == "leave key_width out"
    assert _error.in_python("--no-punctuation is for ter") == "no_punctuation is for ter"
    assert _error.in_python("fine-tune again without --no-keep-models") == "fine-tune again without keep_models=False"
    assert _error.in_python("/data/my--run-2 exists; see `headshare cost --help`") == "/data/my--run-2 exists; see `headshare cost --help`"


def test_a_program_that_cannot_start_leaves_nothing_open(tmp_path, monkeypatch):
    monkeypatch.setattr(_call, "ready_program", lambda: (str(tmp_path), {}))
    before = os.listdir("/proc/self/fd")
    with pytest.raises(headshare.Error, match=f"{tmp_path} cannot be started: Permission denied"):
        headshare.cost()
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_comparison_has_one_place_for_its_models(book, tmp_path):
    options = {**SIZES, "text": book, "schemes": ["mha"], "out": tmp_path / "out", "client": object()}
    assert headshare.compare(**options, dry_run=True).json
    with pytest.raises(headshare.Error, match="workers says where models are trained, and so does client"):
        headshare.compare(**options, workers="local:2")


# --- data in memory ----------------------------------------------------------------------------


FORKED = """
import os, sys, headshare
made = headshare.lines(["a"])
if os.fork() == 0:
    sys.exit(0)
os.wait()
print(made.path.read_text(), made.path)
"""


def test_a_forked_process_leaves_the_file_to_its_owner():
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", FORKED], env=environment, capture_output=True, text=True, check=True)
    text, _, path = done.stdout.partition("\n")
    assert text == "a" and not os.path.exists(path.strip())


def test_text_that_is_not_written_leaves_no_file(tmp_path):
    with pytest.raises(headshare.Error, match="text 1 has half a surrogate pair at its character 1"):
        headshare.lines(["a", "b\ud800"], tmp_path / "t.txt")
    with pytest.raises(headshare.Error, match="text 0 has half a surrogate pair at its character 1"):
        headshare.documents(["b\ud800"], tmp_path / "t.jsonl")
    assert not list(tmp_path.iterdir())


# --- what the functions return -----------------------------------------------------------------


def test_cost_prints_the_programs_table_and_is_a_frame(run, monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setenv("COLUMNS", "100")
    arguments = ("--schemes", "mha,mhe_mul", "--layers", 12, "--d-model", 768, "--heads", 12)
    costs = headshare.cost(schemes=["mha", "mhe_mul"], layers=12, d_model=768, heads=12)
    assert f"{costs}\n" == f"{costs!r}\n" == run("cost", *arguments).stdout
    assert costs.json == json.loads(run("cost", *arguments, "--json").stdout)
    frame = costs.frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["scheme"]) == ["mha", "mhe_mul"] and frame["kv_cache_bytes_per_token"].tolist() == [73728, 6144]
    assert costs[1]["scheme"] == "mhe_mul" and len(costs) == 2
    assert costs._repr_html_() == f"<pre>{html.escape(costs.text)}</pre>"


def test_compare_has_table_numbers_and_report(book, tmp_path):
    pytest.importorskip("pandas")
    out = tmp_path / "comparison"
    result = headshare.compare(text=book, schemes=["mha", "sha"], out=out, **SIZES)
    assert "Quality" in str(result) and "Cost" in str(result)
    assert result.path == out and result.json == json.loads((out / "results.json").read_text())
    assert [row["variant"] for row in result["rows"]] == ["mha", "sha"]
    frame = result.frame()
    assert list(frame["variant"]) == ["mha", "sha"] and (frame["test_loss.mean"] > 0).all()
    assert len(result.frame("cells")) == 2
    with pytest.raises(headshare.Error, match="no table 'cell'; its tables are .*cells"):
        result.frame("cell")
    assert result.page == (out / "report.html").read_text()
    with pytest.raises(headshare.Error, match="resume continues it"):
        headshare.compare(text=book, schemes=["mha", "sha"], out=out, **SIZES)
    assert headshare.compare(out=out, resume=True)["complete"]


def test_a_failed_model_leaves_the_results_of_the_others(tmp_path):
    # With such a learning rate the loss is no number.
    sizes = {name: SIZES[name] for name in ("layers", "d_model", "heads", "steps", "threads")}
    variants = {"wild": {"learning-rate": 1e30}}
    result = headshare.compare(task="offsets", schemes="mha", variants=variants, out=tmp_path / "out", **sizes)
    assert [cell["variant"] for cell in result["failed"]] == ["wild"]
    assert [cell["variant"] for cell in result["cells"]] == ["mha"]


def test_a_plan_is_a_result(book):
    plan = headshare.compare(text=book, schemes=["mha", "sha"], dry_run=True, **SIZES)
    assert plan["models"] == 2 and plan["seconds"] > 0 and "2 models" in str(plan)


def test_train_and_evaluate(trained, book):
    out, result = trained
    assert result["best_loss"] > 0 and result.path == out and "model" in str(result)
    scores = headshare.evaluate(out, text=book, part="validation")
    assert scores["loss"] == pytest.approx(result["best_loss"], rel=1e-5)
    assert "perplexity" in str(scores)


def test_analyze_and_convert(trained, book, tmp_path, capsys):
    pytest.importorskip("pandas")
    out, _ = trained
    analysis = headshare.analyze(out, text=book, iterations=1)
    assert "mqa" in str(analysis) and "<html" in analysis.page and analysis.path is None
    assert "heads.html" not in capsys.readouterr().err  # which was a temporary file
    assert "mqa" in analysis.frame()["name"].tolist()
    kept = headshare.analyze(out, html=tmp_path / "heads.html", iterations=1)
    assert kept.path.read_text() == kept.page
    conversion = headshare.convert(out, tmp_path / "small", to="mqa", score_text=book)
    assert conversion.frame()["error.scores"].between(0, 1).all() and conversion.path == tmp_path / "small"
    assert conversion["after"]["parameters"] < conversion["before"]["parameters"]
    assert "written to" in str(conversion)


def test_score_takes_what_is_in_memory(tmp_path):
    pandas = pytest.importorskip("pandas")
    texts = pandas.DataFrame({"ours": ["the cat sat on the mat", "a dog"], "target": ["the cat sat on a mat", "a dog"]})
    result = headshare.score("bleu", headshare.lines(texts["ours"]), reference=headshare.lines(texts["target"]))
    assert 0 < result["systems"][0]["score"] < 100
    assert result.frame()["score"].tolist() == [result["systems"][0]["score"]]
    (tmp_path / "gold.tsv").write_text("sentence\tlabel\n" + "x\t1\n" * 4)
    (tmp_path / "labels.txt").write_text("1\n1\n0\n1\n")
    glue = headshare.score("glue", tmp_path / "labels.txt", gold=tmp_path / "gold.tsv", task="sst-2")
    assert glue["accuracy"] == 0.75 and glue.frame()["accuracy"].tolist() == [0.75]


def test_verbs_without_numbers_have_their_text(trained):
    out, _ = trained
    generated = headshare.run("generate", out, prompt="The ", max_new_tokens=3, temperature=0)
    assert str(generated).startswith("The ") and generated.json is None and not generated.keys()
    with pytest.raises(headshare.Error, match="generate gives no numbers"):
        generated.frame()
    assert headshare.run("info", out)["options"]


# --- data in memory ----------------------------------------------------------------------------


def test_texts_in_memory_become_files(tmp_path):
    file = headshare.lines(["one", "zwölf"])
    path = file.path
    assert path.read_text(encoding="utf-8") == "one\nzwölf\n" and repr(file) == f"<2 texts in {path}>"
    del file
    assert not path.exists()
    kept = headshare.documents(["a\nb", "c"], tmp_path / "kept.jsonl")
    assert [json.loads(line)["text"] for line in kept.path.read_text().splitlines()] == ["a\nb", "c"]
    for call, message in [
        (lambda: headshare.lines(["a", "b\nc"]), "text 1 has a line feed, 'b.nc'"),
        (lambda: headshare.lines(["a", 3]), "text 1 is 3 of type int"),
        (lambda: headshare.lines("text"), "letter by letter"),
        (lambda: headshare.documents(["a"], tmp_path / "kept.jsonl"), "kept.jsonl exists"),
        (lambda: headshare.documents(["a"], tmp_path / "kept.txt"), "does not end in .jsonl"),
    ]:
        with pytest.raises(headshare.Error, match=message):
            call()


def test_documents_are_training_text(tmp_path):
    texts = headshare.documents(f"document {i}\nof two lines" for i in range(300))
    assert headshare.train(text=texts, out=tmp_path / "run", no_tensorboard=True, **SIZES)["steps"] == 5


# --- errors and messages -----------------------------------------------------------------------


def test_errors_are_the_programs_sentences(capsys, tmp_path):
    with pytest.raises(headshare.Error, match=r"^unknown option layerz \(did you mean layers\?\)"):
        headshare.cost(layerz=3)
    with pytest.raises(headshare.Error, match="none.txt"):
        headshare.train(text=tmp_path / "none.txt", out=tmp_path / "run")
    assert "error:" not in capsys.readouterr().err  # the exception says it


def test_messages_appear_where_python_writes_its_own(capsys, book, tmp_path):
    headshare.train(text=book, out=tmp_path / "run", no_tensorboard=True, **SIZES)
    assert "step 5: validation loss" in capsys.readouterr().err


def test_on_a_terminal_the_program_sees_one():
    """There progress is written over one line, and messages are coloured, which the exception is not."""
    terminal, inside = pty.openpty()
    script = """
import headshare
try: headshare.cost(layerz=3)
except headshare.Error as error: print(error)
tokenized = headshare.lines(["A dog ."] * 100)
headshare.score("bleu", tokenized, reference=tokenized)
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TERM": "xterm", "NO_COLOR": ""}
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=inside, env=env, text=True)
    os.close(inside)
    said = os.read(terminal, 100_000).decode()
    os.close(terminal)
    assert done.stdout.startswith("unknown option layerz")
    assert "\x1b[33mnote:" in said and "error" not in said


def test_without_pandas_the_rest_works(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    costs = headshare.cost(schemes="mha")
    with pytest.raises(ImportError, match="pip install pandas"):
        costs.frame()


def test_names_are_found_without_torch():
    script = "import headshare, sys; print(headshare.compare.__name__, dir(headshare)[-1], 'torch' in sys.modules)"
    env = {"PYTHONPATH": str(ROOT / "python")}
    assert run_command([sys.executable, "-c", script], env=env).stdout == "compare train False\n"
    with pytest.raises(AttributeError, match="no attribute 'comparee'"):
        headshare.comparee  # noqa: B018


def last_step(run):
    return max(json.loads(line).get("step", 0) for line in (run / "metrics.jsonl").read_text().splitlines())


def test_ctrl_c_keeps_the_work_and_says_how_to_go_on(book, build_dir, tmp_path):
    """A terminal sends Ctrl-C to Python and to the program."""
    options = {**SIZES, "steps": 1_000_000, "save_every": 10, "no_tensorboard": True}
    script = f"import headshare; headshare.train(text={str(book)!r}, out={str(tmp_path / 'run')!r}, **{options})"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    running = subprocess.Popen(
        [sys.executable, "-c", script], stderr=subprocess.PIPE, env=env, text=True, start_new_session=True
    )
    checkpoints = tmp_path / "run/checkpoints"
    for _ in range(600):
        if checkpoints.is_dir() and any(checkpoints.iterdir()):
            break
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert "KeyboardInterrupt: stopped" in said and "--resume" in said and "resume=True" in said
    done = headshare.train(out=tmp_path / "run", resume=True, steps=last_step(tmp_path / "run") + 100)
    assert done["steps"] > 10


# --- notebooks ---------------------------------------------------------------------------------


def cells_of(notebook):
    cells = json.loads(notebook.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def shown(source, names):
    """Runs a cell as Jupyter does, and returns the HTML or text of its last expression."""
    import ast

    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    if last is None:
        return ""
    value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    return value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch, page):  # noqa: F811
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names = {}
    outputs = [shown(source, names) for source in cells_of(ROOT / "examples/compare.ipynb")]
    reports = [shown for shown in outputs if shown.startswith("<iframe")]
    assert len(reports) == 2  # of the comparison and of the analysis
    for number, report in enumerate(reports):
        path = tmp_path / f"cell-{number}.html"
        path.write_text(f"<!doctype html><title>a cell</title><body>{report}")
        page.open(path)
        assert [entry["message"] for entry in page.logs("browser")] == []
        assert page.run("return document.querySelector('iframe').clientHeight") >= 600

"""Tests what a verb may replace (docs/design/041): no file of others, no pipe, nothing that appears while it
computes."""

import contextlib
import json
import os
import shlex
import shutil
import stat
import subprocess

import pytest
import report_cases as cases
from tiny_model import BPE, write_model
from training import one_line_error, words

MINE = "the user's own\n"


@pytest.fixture
def home(tmp_path):
    """Makes a folder with a text, a model and a comparison."""
    (tmp_path / "text.txt").write_text("The quick fox jumps over the lazy dog.\n" * 200)
    write_model(tmp_path / "model", tokenizer=BPE, vocabulary=257)
    cases.save(tmp_path / "comparison", cases.results(cases.grid(["mha", "sha"], seeds=[0, 1])))
    return tmp_path


def call(verb, home, path):
    """Returns the call that writes `path`."""
    return {
        "tokenize": ["tokenize", "--tokenizer", "words", "--text", home / "text.txt", "--write-model", path],
        "analyze": ["analyze", home / "model", "--html", path, "--iterations", 0],
        "report": ["report", home / "comparison", "--out", path],
    }[verb]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("verb", ["tokenize", "analyze", "report"])
def test_what_exists_is_replaced_when_asked_and_only_regular_files(run, refused, home, verb):
    out = home / "out"
    out.mkdir()
    path = out / "page.html"
    path.write_text(MINE)
    one_line_error(refused(1, *call(verb, home, path)), path, "exists already", "--overwrite")
    assert path.read_text() == MINE
    run(*call(verb, home, path), "--overwrite")
    written = path.read_bytes()
    assert written != MINE.encode()
    (out / "target").write_text(MINE)
    (out / "link.html").symlink_to("target")
    one_line_error(refused(1, *call(verb, home, out / "link.html")), "exists already")
    run(*call(verb, home, out / "link.html"), "--overwrite")
    assert (out / "link.html").is_symlink() and (out / "target").read_bytes()[:40] == written[:40]
    os.mkfifo(out / "pipe.html")
    (out / "null.html").symlink_to("/dev/null")
    (out / "nothing.html").symlink_to("nowhere")
    for name, kind in (("pipe", "is a named pipe"), ("null", "is a device"), ("nothing", "is a symbolic link")):
        for more in ([], ["--overwrite"]):
            one_line_error(refused(1, *call(verb, home, out / f"{name}.html"), *more), out / f"{name}.html", kind)
    assert stat.S_ISFIFO((out / "pipe.html").stat().st_mode)
    kept = ["link.html", "nothing.html", "null.html", "page.html", "pipe.html", "target"]
    assert names(out) == kept and (out / "null.html").is_symlink() and (out / "nothing.html").is_symlink()


def test_what_is_read_is_not_replaced(refused, home):
    text, deep, model = home / "text.txt", home / "texts" / "deep" / "a.txt", home / "model"
    deep.parent.mkdir(parents=True)
    shutil.copy(text, deep)
    weights, tokenizer = model / "model.safetensors", model / "tokenizer.json"
    shutil.copytree(home / "comparison", home / "other")
    page = (home / "other" / "results.json").rename(home / "other" / "results.html")
    words = ["tokenize", "--tokenizer", "words", "--text"]
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    for path, command in (
        (text, call("tokenize", home, text)),
        (text, [*call("analyze", home, text), "--text", text]),
        (deep, [*words, home / "texts", "--write-model", deep]),
        (deep, [*call("analyze", home, deep), "--text", home / "texts"]),
        (weights, call("analyze", home, weights)),
        (tokenizer, ["tokenize", "--tokenizer", model, "--write-model", tokenizer]),
        (tokenizer, ["tokenize", "--tokenizer", "hash-lsh", "--hash-merges", model, "--write-model", tokenizer]),
        (page, ["report", page, "--out", page]),
        (model, ["convert", model, model, "--to", "mqa"]),
        (model, ["convert", model, model, "--to", "gguf"]),
        (model, ["convert", model, model, "--to", "mha", "--exact"]),
    ):
        for more in ([], ["--overwrite"]):
            one_line_error(refused(1, *command, *more), path, "is read by this call")
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_what_stands_beside_what_is_read_is_replaced(run, home):
    for path in (home / "words.json", home / "heads.html"):
        path.write_text(MINE)
    run("tokenize", "--tokenizer", "words", "--text", home, "--write-model", home / "words.json", "--overwrite")
    run(*call("analyze", home, home / "heads.html"), "--text", home, "--overwrite")
    assert MINE not in (home / "words.json").read_text() + (home / "heads.html").read_text()


def test_a_text_on_standard_input_is_not_replaced(program, home):
    command = ["tokenize", "--tokenizer", "words", "--text", "-", "--write-model", "text.txt", "--overwrite"]
    before = (home / "text.txt").read_bytes()
    with open(home / "text.txt") as text:
        done = subprocess.run(words(program, *command), cwd=home, stdin=text, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "is read by this call" in done.stderr
    assert (home / "text.txt").read_bytes() == before


@pytest.mark.parametrize("marked", [False, True])
def test_a_report_makes_only_the_files_of_the_comparison_again(run, refused, home, marked):
    directory = home / "comparison"
    notes = directory / "notes.html"
    report = ["report", directory, "--out", notes]
    (directory / "resolved.yaml").write_text("# headshare compare --config resolved.yaml\n")
    if marked:
        (directory / ".headshare").write_text(json.dumps({"verb": "compare", "names": ["report.html", "results.csv"]}))
    notes.write_text(MINE)
    one_line_error(refused(1, *report), notes, "exists already", "--overwrite")
    assert notes.read_text() == MINE
    run(*report, "--overwrite")
    assert "exists already" in refused(1, *report)
    (directory / "report.html").write_text("of an earlier headshare")
    run("report", directory)
    # A program that gave fewer names did not write this file.
    (directory / "table.tex").write_text(MINE)
    if marked:
        assert "would be lost" in refused(1, "report", directory, "--latex")
        assert (directory / "table.tex").read_text() == MINE


@pytest.mark.parametrize("name", ["report.html", "results.csv", "cells.csv", "table.tex"])
@pytest.mark.parametrize("where", ["comparison", "elsewhere"])
def test_a_report_replaces_only_reports(run, refused, home, where, name):
    directory = home / where
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(MINE)
    before = names(directory)
    report = ["report", home / "comparison", "--csv", "--latex", "--out", directory]
    for more in ([], ["--overwrite"]):
        message = refused(1, *report, *more)
        assert str(directory / name) in message and ("would be lost" in message or not more), message
    assert (directory / name).read_text() == MINE and names(directory) == before
    (directory / name).unlink()
    run(*report)
    if where == "elsewhere":
        assert "exists already" in refused(1, *report)
    run(*report, *(["--overwrite"] if where == "elsewhere" else []))
    # A directory that `compare` wrote is its own, whatever it holds.
    (home / "comparison/resolved.yaml").write_text("# headshare compare --config resolved.yaml\n")
    for path in (home / "comparison/report.html", home / "comparison/results.csv"):
        path.write_text("of an earlier headshare")
    run("report", home / "comparison", "--csv")


def test_a_report_that_is_refused_leaves_no_directory(refused, home):
    pipe = home / "pipe"
    os.mkfifo(pipe)
    refused(1, "report", home / "comparison", "--out", pipe)
    refused(1, "report", home / "model", "--out", home / "new/deep")
    assert stat.S_ISFIFO(pipe.stat().st_mode) and not (home / "new").exists()


@contextlib.contextmanager
def reading(program, home, *command):
    """Runs a call that waits for the text of --text or --sample-text: everything was checked, nothing is written."""
    pipe = home / "wait.txt"
    os.mkfifo(pipe)
    running = subprocess.Popen(words(program, *command, pipe), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        with open(pipe, "w") as writer:
            yield running
            if running.poll() is None:
                writer.write((home / "text.txt").read_text())
        running.said = running.communicate(timeout=60)[1]
    finally:
        running.kill()
        pipe.unlink()


CONVERT = ["convert", "model", "out", "--to", "mqa"]


def test_one_conversion_at_a_time(program, run, refused, home, monkeypatch):
    monkeypatch.chdir(home)
    with reading(program, home, *CONVERT, "--sample-text") as running:
        for more in ([], ["--overwrite"]):
            one_line_error(refused(1, *CONVERT, *more), "out is being written by another headshare process")
    assert running.returncode == 0, running.said
    with reading(program, home, *CONVERT, "--overwrite", "--sample-text") as killed:
        killed.kill()
        killed.wait()
    left = [name for name in names(home) if "partial" in name]
    assert left == [f"out.partial-{killed.pid}"]
    run(*CONVERT, "--overwrite")
    assert (home / left[0]).is_dir(), "another machine may still write there"
    os.utime(home / left[0], (0, 0))
    run(*CONVERT, "--overwrite")
    assert names(home) == ["comparison", "model", "out", "text.txt"]


def test_what_only_looks_unfinished_stays(run, home, monkeypatch):
    """Leaves a directory whose name is anything.partial-NUMBER, where no process has the number."""
    monkeypatch.chdir(home)
    (home / "out.partial-4194303").mkdir()
    theirs = [home / "out.partial-4194303" / "thesis.tex", home / "words.json.partial-4194303"]
    for path in theirs:
        path.write_text(MINE)
    os.utime(home / "out.partial-4194303", (0, 0))
    run(*CONVERT)
    run(*call("tokenize", home, home / "words.json"))
    assert [path.read_text() for path in theirs] == [MINE, MINE]


def test_a_page_that_appears_meanwhile_stays(program, home, monkeypatch):
    monkeypatch.chdir(home)
    with reading(program, home, "analyze", "model", "--html", "heads.html", "--text") as running:
        (home / "heads.html").write_text(MINE)
    assert running.returncode == 1 and "appeared during this call" in running.said
    assert (home / "heads.html").read_text() == MINE and names(home) == ["comparison", "heads.html", "model", "text.txt"]


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["--version"],
        ["cost", "--layers", 1],
        ["info", "model", "--json"],
        ["tokenize", "--tokenizer", "bytes", "text.txt"],
        ["generate", "model", "--prompt", "The", "--max-new-tokens", 2],
        ["report", "comparison"],
    ],
    ids=lambda command: command[0],
)
def test_a_closed_standard_output_is_an_error(program, home, command):
    line = shlex.join(words(program, *command)) + " >&-"
    done = subprocess.run(["bash", "-c", line], cwd=home, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "error: cannot write to standard output" in done.stderr, done.stderr


def test_a_closed_standard_input_is_an_error(program, home):
    line = shlex.join(words(program, "tokenize", "--tokenizer", "bytes")) + " <&-"
    done = subprocess.run(["bash", "-c", line], cwd=home, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "error: " in done.stderr


def test_empty_names_are_refused(refused, home, monkeypatch):
    monkeypatch.chdir(home)
    for command, option in (
        (["tokenize", "--tokenizer", "bytes", "--write-model", ""], "--write-model is empty"),
        (["analyze", "model", "--html="], "--html is empty"),
        (["report", "comparison", "--out", ""], "--out is empty"),
        (["predict", "model", "text.txt", "--out", ""], "--out is empty"),
        (["train", "--text", "text.txt", "--out", "new", "--start-from", ""], "--start-from is empty"),
        (["convert", "model", "new", "--to", "mqa", "--sample-text="], "--sample-text is empty"),
        (["compare", "--text", "", "--out", "new"], "--text is empty"),
        (["convert", "model", "", "--to", "mqa"], "OUT is empty"),
        (["convert", "", "out", "--to", "mqa"], "SOURCE is empty"),
        (["report", ""], "DIR is empty"),
        (["tokenize", "--tokenizer", "bytes", "--overwrite"], "--overwrite needs --write-model"),
        (["analyze", "model", "--overwrite"], "--overwrite needs --html"),
    ):
        one_line_error(refused(2, *command), option)
    assert names(home) == ["comparison", "model", "text.txt"]
    assert json.loads((home / "model/config.json").read_text())["format"] == "headshare"

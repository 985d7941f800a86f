"""What a verb may replace (docs/design/041): no file of others, no pipe, nothing that appears while it computes."""

import contextlib
import json
import os
import shlex
import stat
import subprocess

import pytest
import report_cases as cases
from tiny_model import BPE, write_model
from training import one_line_error, words

MINE = "the user's own\n"


@pytest.fixture
def home(tmp_path):
    """A folder with a text, a model and a comparison."""
    (tmp_path / "text.txt").write_text("The quick fox jumps over the lazy dog.\n" * 200)
    write_model(tmp_path / "model", tokenizer=BPE, vocabulary=257)
    cases.save(tmp_path / "comparison", cases.results(cases.grid(["mha", "sha"], seeds=[0, 1])))
    return tmp_path


def call(verb, home, path):
    """What writes `path`."""
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
    text = home / "text.txt"
    before = text.read_bytes()
    for verb, more in (("tokenize", []), ("analyze", ["--text", text])):
        assert "exists already" in refused(1, *call(verb, home, text), *more)
        one_line_error(refused(1, *call(verb, home, text), *more, "--overwrite"), text, "is read")
    assert text.read_bytes() == before


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
    # What `compare` wrote is its own, whatever it holds.
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
    """A call that waits for the text of --text or --sample-text: everything was checked, nothing is written."""
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
    assert [name for name in names(home) if "partial" in name] == [f"out.partial-{killed.pid}"]
    run(*CONVERT, "--overwrite")
    assert names(home) == ["comparison", "model", "out", "text.txt"]


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
        (["convert", "model", "", "--to", "mqa"], "OUT is empty"),
        (["convert", "", "out", "--to", "mqa"], "SOURCE is empty"),
        (["report", ""], "DIR is empty"),
        (["tokenize", "--tokenizer", "bytes", "--overwrite"], "--overwrite needs --write-model"),
        (["analyze", "model", "--overwrite"], "--overwrite needs --html"),
    ):
        one_line_error(refused(2, *command), option)
    assert names(home) == ["comparison", "model", "text.txt"]
    assert json.loads((home / "model/config.json").read_text())["format"] == "headshare"

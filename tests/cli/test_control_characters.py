"""Tests ESC and its like in files and arguments: they are shown as \\x1b and never reach the terminal."""

import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess

import pytest
import report_cases as cases
from tiny_model import BYTES, write_model

ESC, DEL, CSI = "\x1b", "\x7f", "\x9b"  # the last is ESC [ in the C1 set
HOSTILE = f"a{ESC}[2Jb{DEL}{CSI}31m"
SHOWN = "a\\x1b[2Jb\\x7f\\x9b31m"
COLOURS = re.compile(r"\x1b\[(?:0|1|33|1;31)m")  # our own


def controls(text):
    return {character for character in text if (ord(character) < 0x20 and character not in "\n\t") or 0x7F <= ord(character) < 0xA0}


def on_a_terminal(program, *arguments, text_in="", **environment):
    """Returns what the program writes to a terminal of 100 columns, results and messages."""
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [str(word) for word in (program, *arguments)],
        stdin=subprocess.PIPE,
        stdout=inside,
        stderr=inside,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment},
    )
    process.stdin.write(text_in.encode())
    process.stdin.close()
    os.close(inside)
    said = b""
    try:
        while part := os.read(terminal, 65536):
            said += part
    except OSError:
        pass  # the other end was closed
    os.close(terminal)
    process.wait(timeout=60)
    return said.decode(errors="surrogateescape").replace("\r\n", "\n")


@pytest.fixture
def shown(program, run):
    """shown("cost", ...) returns what a call says, in a pipe; it is the same on a terminal, our colours aside."""

    def call(*arguments, expect=SHOWN):
        done = run(*arguments, check=False)
        said = (done.stdout + done.stderr).replace("\\u001b", "\\x1b")  # some stand as in JSON, which leaves the others
        assert controls(said) == set(), said
        assert expect in said
        seen = COLOURS.sub("", on_a_terminal(program, *arguments))
        seen = seen.replace("\r\x1b[K", "").replace("\\u001b", "\\x1b")  # the first takes a progress line away
        assert controls(seen) == set(), seen
        assert expect in seen
        return done

    return call


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write_file


def test_arguments(shown, tmp_path):
    shown(HOSTILE)
    shown("cost", f"--layres{HOSTILE}", "1", expect="\\x1b[2jb")
    shown("cost", "--layers", HOSTILE)
    shown("cost", "--schemes", f"mhe_ad{ESC}", expect="mhe_ad\\x1b")
    shown("cost", HOSTILE)
    shown("info", tmp_path / HOSTILE)
    assert shown("info", "line\nfeed", expect="line\\nfeed").stderr.count("\n") == 1


def test_bytes_that_are_no_utf8(program):
    done = subprocess.run([program, b"cost", b"\x9b31m\xff"], capture_output=True)
    assert b"\\x9b31m\\xff: " in done.stderr


def test_a_configuration(shown, write):
    quoted = json.dumps(HOSTILE)
    shown("cost", "--config", write("value.yaml", f"layers: {quoted}\n"))
    shown("cost", "--config", write("key.yaml", f"{quoted}: 1\n"))
    shown("cost", "--config", write("group.yaml", f"{quoted}:\n  layers: 1\n"))
    shown("cost", "--config", write(f"{HOSTILE}.yaml", "layers: [\n"))


def test_tables(shown, write, tmp_path):
    gold = write("gold.tsv", "sentence\tlabel\ngood\t1\n")
    predictions = write("predictions.tsv", f"{HOSTILE}\n")
    shown("score", "glue", predictions, "--task", "sst-2", "--gold", gold)
    shown("score", "glue", predictions, "--task", "sst-2", "--gold", write("label.tsv", f"sentence\tlabel\ngood\t{HOSTILE}\n"))
    heading = write("heading.tsv", f"sentence\t{HOSTILE}\t{HOSTILE}\ngood\t1\t1\n")
    shown("score", "glue", predictions, "--task", "sst-2", "--gold", heading)
    near = write("near.jsonl", {f"text{ESC}": "a name of the file is the nearest"})
    shown("train", "--text", near, "--out", tmp_path / "out", expect="did you mean 'text\\x1b'")
    record = write("record.jsonl", {"question": "q", "passage": "p", "idx": 0, "label": HOSTILE})
    shown("score", "superglue", record, "--task", "boolq", "--gold", record, expect="a\\")


def test_squad_ids(shown, write):
    def question(name, answers):
        return {"id": name, "question": "Who?", "answers": answers}

    def data(*questions):
        return {"version": "1.1", "data": [{"title": "T", "paragraphs": [{"context": "Zoe won.", "qas": questions}]}]}

    answer = [{"text": "Zoe", "answer_start": 0}]
    twice = write("twice.json", data(question(HOSTILE, answer), question(HOSTILE, answer)))
    answers = write("answers.json", {HOSTILE: 1})
    shown("score", "squad", answers, "--gold", twice)
    shown("score", "squad", answers, "--gold", write("gold.json", data(question(HOSTILE, answer))))
    misplaced = write("misplaced.json", data(question(HOSTILE, [{"text": HOSTILE, "answer_start": 1}])))
    shown("score", "squad", write("none.json", {}), "--gold", misplaced)


def hostile_results(tmp_path):
    results = cases.hostile()
    text = json.dumps(results).replace("<script>", json.dumps(HOSTILE)[1:-1])
    return cases.save(tmp_path / "run", json.loads(text))


def test_results(shown, tmp_path):
    shown("report", hostile_results(tmp_path))


def test_json_stays_json(run, program, tmp_path):
    directory = hostile_results(tmp_path)
    text = run("report", directory, "--json").stdout
    assert controls(text) == set()
    assert HOSTILE in json.dumps(json.loads(text), ensure_ascii=False).replace("\\u001b", ESC)
    seen = on_a_terminal(program, "report", directory, "--json")
    assert json.loads(seen[seen.index("\n{") :]) == json.loads(text)


@pytest.mark.parametrize("name", ["=1+1", "+1-1x", "-cmd", "@SUM(A1)", "\tx", "\rx", "=1,2"])
def test_cells_are_no_formulas(run, tmp_path, name):
    results = cases.results(cases.grid(seeds=[0]))
    results["subject"]["data"] = name
    run("report", cases.save(tmp_path / "run", results), "--csv")
    with open(tmp_path / "run/results.csv", newline="") as file:
        rows = list(csv.DictReader(io.StringIO(file.read(), newline="")))
    assert rows[0]["data"] == "'" + name
    # Numbers stay numbers.
    assert any(row["minus_reference"].startswith("-") for row in rows) or all(float(row["loss"]) > 0 for row in rows)


@pytest.fixture
def talking_model(tmp_path):
    """Writes a model whose only tokens are ESC, DEL and the like."""
    tokenizer = {**BYTES, "kind": "characters", "characters": [ESC, "[", "a", DEL, CSI], "unknown-token": False}
    return write_model(tmp_path / "model", tokenizer=tokenizer, vocabulary=5)


def test_generated_text_is_as_it_is_in_a_pipe_only(run, program, talking_model):
    flags = ("--prompt", "a", "--max-new-tokens", 20, "--temperature", 5, "--seed", 1)
    raw = run("generate", talking_model, *flags).stdout
    assert controls(raw) & {ESC, DEL, CSI}
    seen = on_a_terminal(program, "generate", talking_model, *flags)
    assert controls(seen) == set()
    assert "\\x" in seen
    assert seen.replace("\\x1b", ESC).replace("\\x7f", DEL).replace("\\x9b", CSI).endswith(raw)


def test_names_in_a_model(shown, talking_model, tmp_path):
    copy = shutil.copytree(talking_model, tmp_path / "copy")
    config = json.loads((copy / "config.json").read_text())
    config["model"]["scheme"] = HOSTILE
    (copy / "config.json").write_text(json.dumps(config))
    shown("info", copy)
    config["model"] = {HOSTILE: 1}
    (copy / "config.json").write_text(json.dumps(config))
    shown("info", copy)

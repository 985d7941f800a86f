"""Holds what the tests of train and compare share: a small text, a tiny model, runs that are stopped, what is left of
them."""

import json
import signal
import subprocess
import time

import pytest

# A step takes about a millisecond.
TINY = ["--layers", 1, "--d-model", 16, "--heads", 2, "--context", 16, "--batch-size", 4, "--tokenizer", "bytes"]
TINY += ["--threads", 1, "--log-every", 1]


def sentences(size):
    """Returns text of so many bytes, with words that come again."""
    text = "".join(f"The {i * i % 97}th fox jumps over {i % 7} lazy dogs \u00e4nd sleeps.\n" for i in range(size // 30))
    return text.encode()[:size]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(sentences(6000))
    return path


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSHARE_CACHE", str(tmp_path / "cache"))


def words(*arguments):
    return [str(argument) for argument in arguments]


def metrics(run_directory):
    """Returns the lines of metrics.jsonl."""
    return [json.loads(line) for line in (run_directory / "metrics.jsonl").read_text().splitlines()]


def losses(run_directory):
    return [(line["event"], line["step"], line["loss"]) for line in metrics(run_directory)]


def weights(run_directory):
    """Returns the bytes of every tensor file: the checkpoints that were kept and the best model."""
    files = sorted((run_directory / "checkpoints").rglob("*.safetensors"))
    assert any(file.name == "optimizer.safetensors" for file in files)
    return {str(file.relative_to(run_directory)): file.read_bytes() for file in files}


def lines_in(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def at_work(comparison, cell):
    """Returns the folder in which a cell of a comparison is worked on: its newest attempt, or its own once finished."""
    attempts = [path for path in (comparison / "cells").glob(f".{cell}.attempt-*") if path.suffix[1:].startswith("attempt-")]
    return max(attempts, key=lambda path: int(path.name.rsplit("-", 1)[1]), default=comparison / "cells" / cell)


def stop_when(command, ready, signal_number, cwd=None):
    """Starts a run, sends the signal as soon as ready() and returns the ended process; it must not have ended by itself."""
    process = subprocess.Popen(
        words(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, cwd=cwd
    )
    deadline = time.monotonic() + 120
    while not ready() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal_number)
    process.printed, process.said = process.communicate(timeout=120)
    assert process.returncode == (-9 if signal_number == signal.SIGKILL else 130), process.said
    return process


def without_times(value):
    """Returns results without what depends on the clock and the machine."""
    times = {"seconds", "training_seconds", "training_tokens_per_second", "decoding_tokens_per_second", "environment"}
    times |= {"outputs_per_second", "busy_speeds", "waited", "peak_memory_bytes", "command", "machine"}
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items() if key not in times}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def one_line_error(message, *expected):
    """Expects a message of one line that contains these."""
    assert message.startswith("error: ") and message.count("\n") == 1, message
    for part in expected:
        assert str(part) in message, message


def bad_texts(folder):
    """Lists (arguments, exit code, what the message says), one for each way in which text can be wrong."""
    empty, binary, latin, short = (folder / f"{name}.txt" for name in ("empty", "binary", "latin", "short"))
    empty.touch()
    binary.write_bytes(b"abc\0def" * 100)
    latin.write_bytes("Caf\u00e9 au lait. ".encode("latin1") * 100)
    short.write_bytes(b"too short")
    no_text = folder / "no_text"
    no_text.mkdir()
    (no_text / "picture.png").write_bytes(b"png")
    broken = folder / "broken.txt.gz"
    broken.write_bytes(b"not gzip at all")
    jsonl = folder / "records.jsonl"
    jsonl.write_text('{"text": "one"}\n{"txet": "two"}\n')
    return {
        "empty": (["--text", empty], 1, [empty, "is empty"]),
        "binary": (["--text", binary, "--tokenizer", "characters"], 1, [binary, "NUL byte at byte 3", "--allow-binary"]),
        "invalid UTF-8": (
            ["--text", latin, "--tokenizer", "characters"],
            1,
            [latin, "not UTF-8: byte 3", "--invalid-utf8 replace"],
        ),
        "directory without text": (["--text", no_text], 1, [no_text, ".txt"]),
        "missing": (["--text", folder / "nowhere.txt"], 1, [folder / "nowhere.txt", "No such file"]),
        "shorter than a context": (["--text", short], 1, ["text has", "--context 16", "17"]),
        "not gzip": (["--text", broken], 1, [broken, "not a gzip file"]),
        "another field": (["--text", jsonl], 1, [f"{jsonl}:2", "did you mean 'txet'?", "--jsonl-field"]),
        "no text": ([], 1, ["--text"]),
    }


def bad_options(text):
    """Lists the same for options, with a text that is in order."""
    return {
        "unknown flag": (["--text", text, "--layesr", 2], 2, ["--layesr", "did you mean --layers?"]),
        "heads": (["--text", text, "--heads", 7, "--d-model", 64], 2, ["7", "64", "--head"]),
        "memory": (["--text", text, "--d-model", 65536, "--layers", 1000], 1, ["needs about", "are available", "smaller"]),
        "warm-up": (["--text", text, "--steps", 5, "--warmup-steps", 6], 2, ["5", "6", "warm"]),
        "stride": (["--text", text, "--stride", 17], 1, ["stride", "16", "17"]),
        "a number": (["--text", text, "--steps", "many"], 2, ["--steps", "many"]),
    }

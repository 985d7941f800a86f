"""Calls the program: options become flags, its progress appears on standard error, its errors become exceptions."""

from __future__ import annotations

import codecs
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ._error import Error, in_python
from ._program import ready_program

INTERRUPTED = 130  # the program's exit status after Ctrl-C
MESSAGE = re.compile(r"^(?:\x1b\[[0-9;]*[mK]|\r)*(error|note):(?:\x1b\[[0-9;]*m)* (.*?)\r?$", re.MULTILINE)
ERROR = r"^(?:\x1b\[[0-9;]*[mK]|\r)*error:.*\n"
# These options, under all their names, take several files, so that the program splits their text at commas. A string is the
# program's own spelling of such a list; a pathlib.Path is one file.
LISTS_OF_FILES = frozenset(
    "text train-text train-file validation-text validation-file valid-text dev-text eval-file test-text test-file sample-text "
    "score-text gold reference".split()
)
# With some verbs these mean another thing: one file of `finetune`, several images of `analyze`.
ONE_FILE = {"finetune": {"train-file", "validation-file", "test-file"}}
MORE_LISTS = {"analyze": {"images"}}
LISTS_OF_SETTINGS = ("variants", "sweep")  # a comma in one of these items begins the next setting
WIDTH = 100  # of tables where there is no terminal, as in a notebook: the program's widest


class Finished(NamedTuple):
    """What a call of the program left."""

    code: int
    text: str  # standard output
    json: Any  # None where the verb has none
    messages: list[tuple[str, str]]  # ("error" or "note", the sentence)


def words_of(verb: str, positionals: tuple[Any, ...], options: Mapping[str, Any]) -> list[str]:
    """Returns the command line: ["cost", "--heads=8"]."""
    words = [verb]
    for value in positionals:
        word = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
        words.append("./" + word if word.startswith("-") else word)
    for name, value in options.items():
        words += flag(verb, name, value)
    return words


def flag(verb: str, name: str, value: Any) -> list[str]:
    """Returns the words for an option: none for None, --[no-]name for a switch, else --name=value."""
    spelled = name.rstrip("_").replace("_", "-")  # from_ stands for from, a word of Python's own
    if value is None:
        return []
    if isinstance(value, bool):
        return [f"--{spelled}" if value else f"--no-{spelled}"]
    if spelled in LISTS_OF_SETTINGS and not isinstance(value, (str, Mapping)):
        value = ",".join(map(text_of, value))
    lists = (LISTS_OF_FILES | MORE_LISTS.get(verb, set())) - ONE_FILE.get(verb, set())
    if spelled in lists and isinstance(value, os.PathLike):
        value = [value]
    return [f"--{spelled}={text_of(value)}"]


def text_of(value: Any) -> str:
    """Spells a value as the program reads it: lists with commas, `{"learning-rate": [1e-3, 3e-3]}` as
    learning-rate=0.001,0.003 and `{"wide": {"scheme": "mqa", "heads": 8}}` as wide:scheme=mqa,heads=8. A comma within an
    item of a list stands behind a backslash."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, Mapping):
        return ",".join(
            f"{key}:{text_of(one)}" if isinstance(one, Mapping) else f"{key}={text_of(one)}"
            for key, one in value.items()
        )
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    return ",".join(re.sub(r"[\\,]", r"\\\g<0>", text_of(one)) for one in value)


def call(words: list[str], unsaid: str = "") -> Finished:
    """Runs the program to its end. Raises Error with its sentence, and KeyboardInterrupt after Ctrl-C. A message that
    contains `unsaid` is not shown."""
    program, environment = ready_program()
    environment.setdefault("COLUMNS", str(shutil.get_terminal_size((WIDTH, 24)).columns))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as found:
        environment["HEADSHARE_JSON_FD"] = str(found.fileno())
        stream = MessageStream(unsaid)
        try:
            process = subprocess.Popen(
                [program, *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=stream.writing_end,
                env=environment,
                pass_fds=[found.fileno()],
            )
        except BaseException as error:
            stream.close()
            if isinstance(error, OSError):
                raise Error(f"{program} cannot be started: {error.strerror}") from None
            raise
        messages = finish(process, stream)
        out.seek(0)
        found.seek(0)
        written = found.read()
        return checked(
            Finished(
                process.returncode,
                out.read().decode(errors="replace"),
                json.loads(written) if written else None,
                messages,
            )
        )


def finish(process: subprocess.Popen[bytes], stream: MessageStream) -> list[tuple[str, str]]:
    """Shows the messages until the process has ended, and returns them. Ctrl-C asks it to stop and waits until it has
    kept its work."""
    while True:
        try:
            stream.close_writing_end()
            stream.show()
            process.wait()
            return [(kind, sentence) for kind, sentence in MESSAGE.findall(stream.text)]
        except KeyboardInterrupt:
            # A terminal sends Ctrl-C to the program as well, which takes the two for one.
            process.send_signal(signal.SIGINT)
        except BaseException:
            process.kill()
            process.wait()
            raise


def checked(finished: Finished) -> Finished:
    """Raises what the exit status says. A comparison whose models failed in part has results, and no error."""
    sentences = {kind: sentence for kind, sentence in finished.messages}
    if finished.code == INTERRUPTED:
        note = sentences.get("note", "stopped")
        raise KeyboardInterrupt(note + ("; from Python: the same `out` and resume=True" if "--resume" in note else ""))
    if finished.code != 0 and ("error" in sentences or finished.json is None):
        raise Error(in_python(sentences.get("error", f"the program ended with status {finished.code}")))
    return finished


class MessageStream:
    """The program's standard error. What it writes appears on sys.stderr at once, which in a notebook is not the
    process's own. Where that is a terminal, the program gets one, too: it writes its progress over one line there."""

    def __init__(self, unsaid: str) -> None:
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self.reading_end, self.writing_end = pty.openpty() if terminal else os.pipe()
        self.text = ""
        # The exception says what the error is.
        self._hidden = re.compile(rf"{ERROR}|^.*{re.escape(unsaid)}.*\n" if unsaid else ERROR, re.MULTILINE)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def close_writing_end(self) -> None:
        end, self.writing_end = self.writing_end, -1  # first: an interrupt must not have it closed twice
        if end >= 0:
            os.close(end)

    def close(self) -> None:
        self.close_writing_end()
        os.close(self.reading_end)

    def show(self) -> None:
        """Passes on what comes until the last writer has gone."""
        while self.reading_end >= 0:
            try:
                piece = os.read(self.reading_end, io.DEFAULT_BUFFER_SIZE)
            except OSError:  # how a terminal says that it was left
                piece = b""
            if not piece:
                os.close(self.reading_end)
                self.reading_end = -1
            text = self._decoder.decode(piece, final=not piece)
            self.text += text
            if sys.stderr is not None:
                sys.stderr.write(self._hidden.sub("", text))
                sys.stderr.flush()

"""Puts data that is in memory into files, which is what the program reads."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
import weakref
from typing import Callable, Iterable, Optional, Union

from ._error import Error

Path = Union[str, "os.PathLike[str]"]


class DataFile:
    """A file with data that was in memory; pass it where a path is asked for. Without a path of its own it is temporary
    and goes with this object."""

    def __init__(self, path: pathlib.Path, count: int) -> None:
        self.path = path
        self.count = count

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"<{self.count} texts in {self.path}>"


def lines(values: Iterable[str], path: Optional[Path] = None) -> DataFile:
    """Writes texts to a file, one a line: sentences, or the translations of a system.

    >>> headshare.score("bleu", headshare.lines(frame["ours"]), reference=headshare.lines(frame["target"]))

    Args:
        values: strings without line feeds; a list, a column of a pandas frame, ...
        path: where to keep them, which `resume=True` needs; default: a temporary file.

    Raises:
        Error: for a value that is no string or has a line feed, or a path that exists.
    """

    def line(index: int, value: str) -> str:
        if "\n" in value or "\r" in value:
            raise Error(
                f"text {index} has a line feed, {value[:40]!r}, and would become two lines; replace it by a "
                "blank, or use headshare.documents for texts of several lines"
            )
        return value

    return _write(values, path, ".txt", line)


def documents(values: Iterable[str], path: Optional[Path] = None) -> DataFile:
    """Writes texts of any length to a file, from which a tokenizer reads one after the other: training text.

    >>> headshare.compare(text=headshare.documents(frame["body"]), schemes=["mha", "mhe_mul"])

    Args:
        values: strings; a list, a column of a pandas frame, ...
        path: where to keep them, named *.jsonl; `resume=True` needs it. Default: a temporary file.

    Raises:
        Error: for a value that is no string, or a path that exists or has another ending.
    """
    if path is not None and pathlib.Path(path).suffix != ".jsonl":
        raise Error(f"{os.fspath(path)} does not end in .jsonl, by which the program knows documents; rename it")
    return _write(values, path, ".jsonl", lambda _, value: json.dumps({"text": value}, ensure_ascii=False))


def _write(values: Iterable[str], path: Optional[Path], suffix: str, line_of: Callable[[int, str], str]) -> DataFile:
    if isinstance(values, (str, bytes)):
        raise Error("give several texts, such as a list; one string would be taken letter by letter")
    text = []
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise Error(f"text {index} is {value!r} of type {type(value).__name__}; only strings can be written")
        try:
            text.append((line_of(index, value) + "\n").encode("utf-8"))
        except UnicodeEncodeError:
            place = next(at for at, character in enumerate(value) if "\ud800" <= character <= "\udfff")
            raise Error(f"text {index} has half a surrogate pair at its character {place}, which UTF-8 cannot hold") from None
    if path is None:
        handle, name = tempfile.mkstemp(prefix="headshare-", suffix=suffix)
        os.close(handle)
        made = DataFile(pathlib.Path(name), len(text))
        weakref.finalize(made, _remove, made.path, os.getpid())
        mode = "wb"
    else:
        made = DataFile(pathlib.Path(path), len(text))
        mode = "xb"
    try:
        file = open(made.path, mode)
    except FileExistsError:
        raise Error(f"{made.path} exists; remove it or choose another name") from None
    try:
        with file:
            file.writelines(text)
    except BaseException:
        made.path.unlink(missing_ok=True)
        raise
    return made


def _remove(path: pathlib.Path, owner: int) -> None:
    """Removes a temporary file, unless this is a process that its owner has forked."""
    if os.getpid() == owner:
        path.unlink(missing_ok=True)

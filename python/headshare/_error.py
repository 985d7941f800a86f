"""What the package raises, and messages of C++ and of the program in words of Python."""

from __future__ import annotations

import re


class Error(RuntimeError):
    """What headshare refuses or cannot do, in one sentence that names the numbers and the way out."""


# Two names begin with no- themselves.
FLAG = re.compile(r"(?<![\w/.-])--((?!no-punctuation|no-repeat-ngram)no-)?([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")


def in_python(message: str) -> str:
    """Spells the flags in a message as Python's keywords: "--head-width" becomes head_width, "--no-tie" tie=False. Commands in
    backticks stay, and names of files."""

    def keyword(found: re.Match[str]) -> str:
        return found[2].replace("-", "_") + ("=False" if found[1] else "")

    pieces = message.split("`")
    pieces[::2] = [FLAG.sub(keyword, piece) for piece in pieces[::2]]
    return "`".join(pieces)

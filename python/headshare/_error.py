"""What the package raises, and messages of C++ and of the program in words of Python."""

from __future__ import annotations

import re


class Error(RuntimeError):
    """What headshare refuses or cannot do, in one sentence that names the numbers and the way out."""


FLAG = re.compile(r"--(?:no-)?([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")


def in_python(message: str) -> str:
    """Spells the flags in a message as Python's keywords: "--head-width" becomes head_width. Commands in backticks stay."""
    pieces = message.split("`")
    pieces[::2] = [FLAG.sub(lambda found: found[1].replace("-", "_"), piece) for piece in pieces[::2]]
    return "`".join(pieces)

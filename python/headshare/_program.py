"""Finds the program `headshare` and runs it: the console script, and what the functions of the package call."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import Optional

from ._error import Error
from ._torch import Torch, check_torch, installed_torch

PACKAGE = pathlib.Path(__file__).resolve().parent


def find_program() -> pathlib.Path:
    """Returns the program of the build folder that HEADSHARE_BUILD names, of this package, or of a source tree."""
    named = os.environ.get("HEADSHARE_BUILD")
    shipped = PACKAGE / "lib" / "headshare"
    built = pathlib.Path(named or PACKAGE.parent.parent / "build") / "headshare"
    for program in (built, shipped) if named else (shipped, built):
        if program.is_file():
            return program
    raise Error(
        f"there is no program in {shipped}, and none in {built}; install the package with `pip install .`, or "
        "run `make build`"
    )


def built_with() -> tuple[Optional[str], bool]:
    """Returns the version of the torch that the package was built with, and whether that has CUDA; (None, False) in a
    source tree."""
    try:
        from . import _built_with
    except ImportError:
        return None, False
    return _built_with.TORCH, _built_with.CUDA


def ready_program() -> tuple[pathlib.Path, dict[str, str]]:
    """Returns the program, and the environment that it starts in. Raises Error where its torch is another one."""
    program = find_program()
    environment = dict(os.environ)
    if program.parent == PACKAGE / "lib":
        torch = installed_torch()
        check_torch(*built_with(), torch)
        assert torch is not None
        environment = with_torch(environment, torch)
    return program, environment


def with_torch(environment: dict[str, str], torch: Torch) -> dict[str, str]:
    """Adds the folder of libtorch to the environment where the program would not find it: it looks beside this package,
    and torch may be installed elsewhere, say for all users."""
    if torch.folder.resolve() == PACKAGE.parent / "torch":
        return environment
    paths = [str(torch.folder / "lib"), environment.get("LD_LIBRARY_PATH", "")]
    return {**environment, "LD_LIBRARY_PATH": ":".join(path for path in paths if path)}


def main() -> int:
    """Becomes the program: Ctrl-C, the exit status and the terminal are its own."""
    try:
        program, environment = ready_program()
        sys.stdout.flush()
        os.execve(program, ["headshare", *sys.argv[1:]], environment)
    except (Error, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1

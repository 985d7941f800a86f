"""Finds libheadshare_ops.so and loads it into torch, unless it was built with another torch."""

from __future__ import annotations

import mmap
import os
import pathlib
import re

import torch

from ._error import Error
from ._torch import check_torch, installed_torch

LIBRARY = "libheadshare_ops.so"
_MARK = re.compile(rb"HEADSHARE_BUILT_WITH_TORCH=([0-9.]+)")


def library_path() -> pathlib.Path:
    """Returns the library of an installed package, or that of the build of a source tree.

    HEADSHARE_BUILD names another build folder, as for the tests. Raises ImportError where there is no library.
    """
    package = pathlib.Path(__file__).resolve().parent
    build = os.environ.get("HEADSHARE_BUILD") or package.parent.parent / "build"
    candidates = [package / "lib" / LIBRARY, pathlib.Path(build) / LIBRARY]
    if os.environ.get("HEADSHARE_BUILD"):
        candidates.reverse()
    for path in candidates:
        if path.is_file():
            return path
    looked = " or ".join(str(path) for path in candidates)
    raise ImportError(f"there is no {LIBRARY} at {looked}: build it with\n  tools/build headshare_torch_library")


def built_with(path: pathlib.Path) -> str:
    """Returns the version of the torch that a library was built with, without loading it."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = _MARK.search(content)
        if found is None:
            raise ImportError(f"{path} does not say which torch it was built with: it is no library of headshare")
        return found[1].decode()


def load() -> None:
    """Loads the library, after a look at its version. Raises ImportError where it does not fit the installed torch."""
    path = library_path()
    try:
        check_torch(built_with(path), built_with_cuda=False, found=installed_torch())
        torch.ops.load_library(path)
    except Error as error:
        raise ImportError(str(error)) from None
    except OSError as error:
        raise ImportError(f"{path} does not load into torch {torch.__version__}: {error}") from error

"""Looks at the installed torch without importing it, which takes seconds."""

from __future__ import annotations

import importlib.util
import pathlib
import re
from typing import NamedTuple, Optional

from ._error import Error

SOURCES = "in headshare's sources: pip install --force-reinstall --no-deps ."


class Torch(NamedTuple):
    """Where a torch is, and which."""

    folder: pathlib.Path
    version: str

    @property
    def minor(self) -> str:
        """Returns "2.13" of "2.13.0+cpu": what libtorch's binary interface depends on."""
        return ".".join(self.version.split(".")[:2])


def installed_torch() -> Optional[Torch]:
    """Returns the torch that `import torch` would find; None where there is none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    folder = pathlib.Path(spec.origin).parent
    found = re.search(r"^__version__ *(?::.*)?= *['\"]([^'\"]+)", (folder / "version.py").read_text(), re.MULTILINE)
    return Torch(folder, found[1]) if found else None


def check_torch(built: Optional[str], built_with_cuda: bool, found: Optional[Torch]) -> None:
    """Raises Error, which says what to do, unless binaries built with torch `built` can be loaded with `found`.

    `built` is None in a source tree, where the build's own torch is used.
    """
    if built is None:
        return
    needed = Torch(pathlib.Path(), built).minor
    line = f"pip install 'torch=={needed}.*'"
    if found is None:
        raise Error(f"headshare was built with torch {built}, and no torch is installed; install it: {line}")
    if found.minor != needed:
        raise Error(
            f"headshare was built with torch {built}, and torch {found.version} is installed; each minor version of "
            f"torch needs a headshare of its own. Install the torch it was built with: {line}; or build headshare for "
            f"the installed one, {SOURCES}"
        )
    if built_with_cuda and not (found.folder / "lib" / "libtorch_cuda.so").exists():
        raise Error(
            f"headshare was built with a torch {built} that has CUDA, and the installed torch {found.version} has none."
            f" Install one with CUDA: {line}; or build headshare for the installed one, {SOURCES}"
        )

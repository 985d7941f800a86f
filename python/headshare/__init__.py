"""headshare: transformers whose attention heads share projections.

The functions run the program `headshare`: `compare`, `cost`, `score`, `convert`, `analyze`, `train`, `evaluate`, and
`run` for every other verb. `lines` and `documents` pass texts that are in memory. docs/python.md describes them.

`nn` has attention layers, `load` reads a checkpoint as a module, `ops` has the operations below, and importing
`headshare.transformers` gives models of transformers headshare's attention. docs/python-modules.md and docs/python-ops.md
describe those.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import models, nn, ops
    from ._data import DataFile, documents, lines
    from ._error import Error
    from ._result import Result
    from ._verbs import analyze, compare, convert, cost, evaluate, run, score, train
    from .models import Model, Tokenizer, load

# The module of each name; they are imported when they are first used, so that none waits for what it does not need.
_MODULES = {
    "_data": ("DataFile", "documents", "lines"),
    "_error": ("Error",),
    "_result": ("Result",),
    "models": ("Model", "Tokenizer", "load"),
    "_verbs": ("analyze", "compare", "convert", "cost", "evaluate", "run", "score", "train"),
}

# These import torch and load the library of operations.
_SUBMODULES = ("models", "nn", "ops")

__all__ = [
    "DataFile",
    "Error",
    "Model",
    "Result",
    "Tokenizer",
    "analyze",
    "compare",
    "convert",
    "cost",
    "documents",
    "evaluate",
    "lines",
    "load",
    "models",
    "nn",
    "ops",
    "run",
    "score",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f".{name}", __name__)
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> "list[str]":
    return sorted([*globals(), *__all__])

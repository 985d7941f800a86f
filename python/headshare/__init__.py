"""headshare: transformers whose attention heads share projections.

The functions run the program `headshare`: `compare`, `cost`, `score`, `convert`, `analyze`, `train`, `evaluate`, and
`run` for every other verb. `lines` and `documents` pass texts that are in memory. docs/python.md describes them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._data import DataFile, documents, lines
    from ._error import Error
    from ._result import Result
    from ._verbs import analyze, compare, convert, cost, evaluate, run, score, train

# The module of each name; they are imported when they are first used, so that none waits for what it does not need.
_MODULES = {
    "_data": ("DataFile", "documents", "lines"),
    "_error": ("Error",),
    "_result": ("Result",),
    "_verbs": ("analyze", "compare", "convert", "cost", "evaluate", "run", "score", "train"),
}

__all__ = [
    "DataFile",
    "Error",
    "Result",
    "analyze",
    "compare",
    "convert",
    "cost",
    "documents",
    "evaluate",
    "lines",
    "run",
    "score",
    "train",
]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> "list[str]":
    return sorted([*globals(), *__all__])

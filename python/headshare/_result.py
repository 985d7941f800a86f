"""What the functions return: the program's table, its numbers, and its report."""

from __future__ import annotations

import html
import pathlib
from typing import TYPE_CHECKING, Any, Iterator, Optional

from ._error import Error

if TYPE_CHECKING:
    import pandas

# The list in each verb's JSON that a frame shows unless another is asked for.
TABLES = {"analyze": "conversions", "compare": "rows", "convert": "layers", "finetune": "tasks", "score": "systems"}
HEIGHT = 640  # of a report in a notebook, in CSS pixels


class Result:
    """The result of a verb.

    `print(result)` shows the program's own table and a notebook its report. `result["rows"]` reads the numbers, and
    `result.frame()` gives them as a pandas frame.

    Attributes:
        verb: which verb made it, "compare".
        text: what the program printed.
        json: what the program prints with --json: lists, dicts and numbers as docs/results-format.md describes them;
            None for verbs without.
        path: the directory that was written; None for verbs that write none.
        page: the report as one HTML page; None for verbs without.
    """

    def __init__(self, verb: str, text: str, json: Any, path: Optional[pathlib.Path], page: Optional[str]) -> None:
        self.verb = verb
        self.text = text
        self.json = json
        self.path = path
        self.page = page

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    __repr__ = __str__  # an interactive Python shows the table, too

    def __getitem__(self, key: Any) -> Any:
        return self.json[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.json or ())

    def __len__(self) -> int:
        return len(self.json or ())

    def __bool__(self) -> bool:
        return True

    def keys(self) -> list[str]:
        """Returns the names that `result[name]` takes; none where the numbers are a list."""
        return list(self.json) if isinstance(self.json, dict) else []

    def frame(self, table: Optional[str] = None) -> pandas.DataFrame:
        """Returns a pandas frame, a row for each scheme, model, layer or system.

        Nested numbers become columns with dotted names, `quality.mean`.

        Args:
            table: which list of the numbers: "rows", "cells", ...; default: the one that the printed table shows.

        Raises:
            ImportError: without pandas.
            Error: for a name that is no list of this result.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("frame() needs pandas: pip install pandas; result.json has the same numbers") from None
        return pandas.json_normalize(self._records(table))

    def _records(self, table: Optional[str]) -> list[dict[str, Any]]:
        if isinstance(self.json, list) and table is None:
            return self.json
        name = table if table is not None else TABLES.get(self.verb, "")
        found = self.json.get(name) if isinstance(self.json, dict) else None
        if isinstance(found, list):
            return found
        if table is None and self.json is not None:
            return [self.json]
        lists = [key for key in self.keys() if isinstance(self.json[key], list)]
        what = f"; its tables are {', '.join(lists)}" if lists else ""
        raise Error(
            f"the result of {self.verb} has no table {table!r}{what}"
            if table
            else f"{self.verb} gives no numbers; print the result"
        )

    def _repr_html_(self) -> str:
        if self.page is None:
            return f"<pre>{html.escape(self.text)}</pre>"
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
        )

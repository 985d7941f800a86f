"""Writes CPython's own manual, English prose that every Python carries, as a text file.

Usage: python tools/python_manual.py FILE
"""

import pathlib
import sys

from pydoc_data import topics

target = pathlib.Path(sys.argv[1])
target.parent.mkdir(parents=True, exist_ok=True)
target.write_text("\n".join(topics.topics[name] for name in sorted(topics.topics)), encoding="utf-8")
print(
    f"The text: CPython {sys.version.split()[0]}'s own manual, {len(topics.topics)} topics of English prose\n"
    f"  from {topics.__file__}\n"
    f"  (Python Software Foundation License), written to {target} ({target.stat().st_size:,} bytes)."
)

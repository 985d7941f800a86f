"""Checks the project's rules that a compiler does not know; prints `file:line: what` for each breach.

Run by tools/check, from the root of the repository, over the files that git tracks.
"""

import os
import pathlib
import re
import subprocess
import sys

import lint_documents

HARD_LIMIT = 600  # lines
CODE = (".h", ".cc", ".cu", ".py")
CXX = (".h", ".cc", ".cu")
# Tests of a folder, and the headers and programs that only tests use.
FOR_TESTS = ("_test.cc", "_tool.cc", "_cases.h", "testing.h", "test_support.h")

INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
LINKED = re.compile(r"\bheadshare::(\w+)")
PRINTING = re.compile(
    r"std::(?:cout|cerr|clog)\b"
    r"|(?<![\w.>:])(?:std::|fmt::)?(?:printf|fprintf|vprintf|puts|putchar|print|println)\s*\("
    r"|(?<![\w.>:])(?:std::)?_?(?:exit|_Exit|quick_exit|abort|terminate)\s*\("
    r"|\bargv\b"
)
NOTE = re.compile(r"\b(TO[D]O|FIX[M]E|XX[X]|HAC[K])\b(?!\(#\d+\))")
MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:hom[e]|roo[t]|tm[p]|wor[k]|User[s])/")
# Rules about code do not look into comments, character and string literals (raw ones too).
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|\bR"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.DOTALL
)

breaches = 0


def breach(path, line, what):
    global breaches
    breaches += 1
    print(f"{path}:{line}: {what}")


def tracked_files():
    names = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    return [name for name in names.split("\0") if name and os.path.isfile(name)]


class Layers:
    """Holds what tools/layers.txt says: ranks of folders, and of the folders inside some of them."""

    def __init__(self, text):
        self.ranks, self.with_torch, self.inner = {}, set(), {}
        for line in text.splitlines():
            words = line.split()
            if not words or line.startswith("#"):
                continue
            if "/" in words[1]:
                folder, inner = words[1].split("/")
                self.inner.setdefault(folder, {})[inner] = int(words[0])
            else:
                self.ranks[words[1]] = int(words[0])
                if words[2] == "yes":
                    self.with_torch.add(words[1])


def inner_folder(path):
    """Returns where a path below headshare/ stands inside its folder; "." for the folder itself."""
    parts = path.split("/")
    return parts[2] if len(parts) > 3 else "."


def without_comments_and_strings(text):
    """Returns the same lines, with nothing but code on them."""
    return NOT_CODE.sub(lambda match: " " + "\n" * match[0].count("\n"), text)


def may_print(path):
    """Tells whether a file may print: programs print, parse arguments and end the process; libraries never do."""
    return (
        not path.startswith("headshare/")
        or path.startswith("headshare/cli/")
        or path.endswith(("_test.cc", "_tool.cc"))
    )


def check_inner(path, number, name, ranks):
    """Checks one file of a folder, or one include of a file of the same folder, against the ranks inside that
    folder."""
    folder, ours = path.split("/")[1], inner_folder(path)
    theirs = inner_folder(name)
    for one in (ours, theirs):
        if one not in ranks:
            breach(path, number, f"{folder}/{one} has no rank, and folders of {folder} have: give it one in tools/layers.txt")
            return
    if path.endswith(FOR_TESTS):
        return
    if theirs != ours and ranks[theirs] >= ranks[ours]:
        breach(
            path,
            number,
            f"{folder}/{ours} (rank {ranks[ours]}) may not use {folder}/{theirs} (rank {ranks[theirs]}): "
            f"inside {folder} only its own folder and lower ranks",
        )


def check_layers(path, text, layers):
    """Checks what a file of headshare/ includes (or, a CMakeLists.txt, links) against tools/layers.txt."""
    ranks, with_torch = layers.ranks, layers.with_torch
    folder = path.split("/")[1]
    if folder not in ranks:
        breach(path, 1, f"folder headshare/{folder} has no rank: give it one in tools/layers.txt")
        return
    links = path.endswith("CMakeLists.txt")
    pattern = LINKED if links else INCLUDE
    if folder in layers.inner and not links:
        check_inner(path, 1, path, layers.inner[folder])
    for number, line in enumerate(text.splitlines(), 1):
        for name in pattern.findall(line):
            other = name.split("/")[1] if name.startswith("headshare/") else name
            if other in ranks and other != folder and ranks[other] >= ranks[folder]:
                breach(
                    path,
                    number,
                    f"{folder} (rank {ranks[folder]}) may not use {other} (rank {ranks[other]}): "
                    "only its own folder and lower ranks",
                )
            if other == folder and folder in layers.inner and not links:
                check_inner(path, number, name, layers.inner[folder])
            if folder not in with_torch and re.match(r"(torch|ATen|c10)/", name):
                breach(path, number, f"{folder} must build without libtorch, but includes <{name}>")


def check_code(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if INCLUDE.match(line) and "torch/torch.h" in line:
            breach(path, number, "include the pieces you need: <torch/torch.h> costs 20 s a file")
    if may_print(path):
        return
    for number, line in enumerate(without_comments_and_strings(text).splitlines(), 1):
        if found := PRINTING.search(line):
            breach(path, number, f"'{found[0]}': only headshare/cli prints, reads argv or ends the process")


def check_text(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if found := NOTE.search(line):
            breach(path, number, f"'{found[0]}' without the issue it belongs to: {found[0]}(#12)")
        if found := MACHINE_PATH.search(line):
            breach(path, number, f"'{found[0]}...' is a path of one machine")


def main():
    layers = Layers(pathlib.Path("tools/layers.txt").read_text())
    for path in tracked_files():
        try:
            text = pathlib.Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # binary
        check_text(path, text)
        if path.endswith(CODE) and (lines := text.count("\n")) > HARD_LIMIT:
            breach(path, HARD_LIMIT, f"{lines} lines: no file has more than {HARD_LIMIT}; split it")
        if path.endswith(CXX):
            check_code(path, text)
        if path.startswith("headshare/") and path.count("/") >= 2 and path.endswith(CXX + ("CMakeLists.txt",)):
            check_layers(path, text, layers)
        for line, what in lint_documents.check(path, text):
            breach(path, line, what)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())

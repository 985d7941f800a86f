"""Checks rules about documents: links, headings and paths that they name exist. tools/lint.py calls check() for every
text file.

A document names a path from the root of the repository, from headshare/ or from its own folder. Words in capitals, as in
bench/QUESTION/run.py, stand for any name, and so does `*`.
"""

import functools
import pathlib
import re

FENCE = re.compile(r"\s*(```|~~~)")
HEADING = re.compile(r"#{1,6} +(.*)")
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
LINE = re.compile(r"L(\d+)")
# A document names `a/b`, in backticks; any text names a path below docs/, tools/ and so on, with the ending of a file.
NAMED_PATH = re.compile(r"`([\w.*-]+(?:/[\w.*-]+)+)/?[`\s]")
PLAIN_PATH = re.compile(r"(?<!\]\()(?<![\w./<{}$-])((?:docs|tools|studies|configs)/[\w./*-]*\.(?:md|json|txt|py|yaml)(?:#[\w-]+)?)\b")
DECISION = re.compile(r"\bdocs/design/(\d{3})\b")
OURS = (".h", ".cc", ".cu", ".inc", ".py", ".md", ".cmake")
OTHERS = ("ATen/", "torch/", "c10/", "nlohmann/", "build/", ".venv/")
PLACEHOLDER = re.compile(r"(?<![A-Za-z])[A-Z]{3,}(?![A-Za-z])")
MADE_UP = "tests/docs/test_lint_documents.py"  # names files of a repository of its own
LONGEST_RESULT = 300  # lines of a page of docs/results/
CHECKED = (".h", ".cc", ".cu", ".py", ".md", ".txt", ".yaml", ".cmake")


def slug(heading):
    """Returns the anchor that GitHub gives a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def lines_outside_fences(text):
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


@functools.cache
def anchors(path):
    """Returns the anchors of the headings of a document; repeated headings are numbered, as on GitHub."""
    found, seen = set(), {}
    for _, line in lines_outside_fences(path.read_text(encoding="utf-8")):
        if match := HEADING.match(line):
            name = slug(match[1])
            count = seen[name] = seen.get(name, -1) + 1
            found.add(f"{name}-{count}" if count else name)
    return found


@functools.cache
def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def exists(name, here):
    """Tells whether a named path, a pattern for paths or a pair of header and source is in the repository."""
    pattern = PLACEHOLDER.sub("*", name)
    for base in (pathlib.Path(), pathlib.Path("headshare"), here):
        if (base / name).exists() or (base / f"{name}.h").exists():
            return True
        if "*" in pattern and any(base.glob(pattern)):
            return True
    return False


@functools.cache
def first_parts():
    """Returns the folders that a path in a document may begin with: those of the repository and those of headshare/."""
    folders = [*pathlib.Path().iterdir(), *pathlib.Path("headshare").iterdir()]
    return {folder.name for folder in folders if folder.is_dir()}


def is_ours(name):
    """Tells whether a name in backticks is a path of the repository, rather than a file of others or a pair of
    words."""
    return not name.startswith(OTHERS) and (name.split("/")[0] in first_parts() or name.endswith(OURS))


def wrong_fragment(shown, file, fragment):
    """Returns what is wrong with `file#fragment` behind a link with this text, else None."""
    if file.suffix == ".md":
        return None if fragment in anchors(file) else f"{file} has no heading #{fragment}"
    match = LINE.fullmatch(fragment)
    lines = lines_of(file)
    if not match or not 0 < int(match[1]) <= len(lines):
        return f"{file} has no line #{fragment}; it has {len(lines)}"
    name = re.split(r"::|\.", shown.strip("`"))[-1]
    if shown.startswith("`") and not re.search(rf"\b{re.escape(name)}\b", lines[int(match[1]) - 1]):
        return f"line {match[1]} of {file} does not have {name}: run tools/pages"
    return None


def wrong_link(path, shown, target):
    """Returns what is wrong with a link of the document `path`, else None."""
    if re.match(r"\w+:", target):
        return None
    name, _, fragment = target.partition("#")
    file = pathlib.Path(path).parent / name if name else pathlib.Path(path)
    if not file.exists():
        return f"the link to {target} leads nowhere"
    return wrong_fragment(shown, file, fragment) if fragment else None


def check_links(path, text):
    # A link may run over the end of a line.
    whole = "\n".join(line for _, line in lines_outside_fences(text))
    numbers = [number for number, _ in lines_outside_fences(text)]
    for match in LINK.finditer(whole):
        if wrong := wrong_link(path, match[1], match[2]):
            yield numbers[whole[: match.start()].count("\n")], wrong


def check_named_paths(path, text):
    here = pathlib.Path(path).parent
    for number, line in lines_outside_fences(text):
        for name in NAMED_PATH.findall(line):
            if is_ours(name) and not exists(name, here):
                yield number, f"names {name}, which does not exist"


def check_plain_paths(path, text):
    """Checks plain paths: comments of code and scripts, too, name documents, scripts and results."""
    here = pathlib.Path(path).parent
    for number, line in enumerate(text.splitlines(), 1):
        for name, _, fragment in (found.partition("#") for found in PLAIN_PATH.findall(line)):
            if not exists(name, here):
                yield number, f"names {name}, which does not exist"
            elif fragment and name.endswith(".md") and (wrong := wrong_fragment("", pathlib.Path(name), fragment)):
                yield number, wrong
        for decision in DECISION.findall(line):
            if not any(pathlib.Path("docs/design").glob(f"{decision}-*.md")):
                yield number, f"there is no decision docs/design/{decision}"


def check_decisions(text):
    for note in sorted(pathlib.Path("docs/design").glob("[0-9]*.md")):
        if f"]({note.name})" not in text:
            yield 1, f"does not list {note.name}"


def check(path, text):
    """Yields (line, what) for each breach in a file that git tracks."""
    if path == "docs/design/README.md":
        yield from check_decisions(text)
    if path.startswith("docs/results/") and path.endswith(".md") and (lines := text.count("\n")) > LONGEST_RESULT:
        yield LONGEST_RESULT, f"{lines} lines: a page of results has at most {LONGEST_RESULT}; one question, one page"
    if path.endswith(".md"):
        yield from check_links(path, text)
        yield from check_named_paths(path, text)
    if path != MADE_UP and (path.endswith(CHECKED) or text.startswith("#!")):
        yield from check_plain_paths(path, text)

"""Tests tools/lint_documents.py: what documents and comments name exists."""

import pathlib
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import lint_documents  # noqa: E402

FILES = {
    "docs/page.md": "# A page\n\n## One thing: `code`, and [a link](other.md)\n\n## Twice\n\n## Twice\n\n```\n# no heading\n```\n",
    "docs/design/001-first.md": "# First\n",
    "docs/results/a.json": "{}\n",
    "headshare/train/trainer.cc": "// Trains.\nvoid Trainer::step() {\n}\n",
    "headshare/train/trainer.h": "// Trains.\n",
    "tools/check": "#!/bin/sh\n",
}


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Returns what is wrong with a text under a name, in a small repository."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    for cached in (lint_documents.anchors, lint_documents.lines_of, lint_documents.first_parts):
        cached.cache_clear()

    def check(path, text):
        # Links to a heading of the same document read the file.
        pathlib.Path(path).write_text(text)
        return list(lint_documents.check(path, text))

    return check


@pytest.mark.parametrize(
    "text",
    [
        "[a](docs/page.md) [b](docs/page.md#one-thing-code-and-a-link) [c](docs/page.md#twice-1) [d](https://x.org/none)",
        "# Here\n[a](#here)",
        "[over two\nlines](docs/page.md)",
        "[`Trainer::step`](headshare/train/trainer.cc#L2) [the first line](headshare/train/trainer.cc#L1)",
        "`headshare/train/trainer.cc`, `train/trainer.cc`, `train/trainer`, `docs/results/*.json`, `docs/results/NAME.json`",
        "`tools/check --all`, docs/page.md, docs/design/001",
        "`and/or`, `torch/nn.h`, `build/headshare`, `mqa/gqa`",
        "```\n[no link](none.md) and `headshare/none.cc`\n```",
    ],
)
def test_what_exists_is_fine(found, text):
    assert found("README.md", text) == []


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("one\n[a](docs/none.txt)", 2, "leads nowhere"),
        ("[a](docs/page.md#none)", 1, "no heading #none"),
        ("[a](docs/page.md#no-heading)", 1, "no heading #no-heading"),
        ("[a](#none)", 1, "no heading #none"),
        ("one\n[over\ntwo lines](none.md)", 2, "leads nowhere"),
        ("[a](headshare/train/trainer.cc#L4)", 1, "no line #L4; it has 3"),
        ("[`Trainer::step`](headshare/train/trainer.cc#L1)", 1, "does not have step"),
        ("one\n`headshare/train/none.cc`", 2, "names headshare/train/none.cc"),
        ("`train/none`", 1, "names train/none"),
        ("`elsewhere/none.h`", 1, "names elsewhere/none.h"),
        ("`docs/results/*.csv`", 1, "names docs/results/*.csv"),
        ("see docs/design/007", 1, "no decision docs/design/007"),
    ],
)
def test_what_does_not_exist_is_named(found, text, line, what):
    (breach,) = found("README.md", text)
    assert breach[0] == line and what in breach[1]


@pytest.mark.parametrize("path", ["headshare/train/trainer.h", "tools/check.py", "docs/results/list.txt"])
def test_comments_name_documents_that_exist(found, path):
    assert found(path, "// See docs/page.md#twice and docs/results/a.json.\n") == []
    assert [what for _, what in found(path, "// See docs/none.md.\n")] == ["names docs/none.md, which does not exist"]
    assert "no heading #none" in found(path, "// See docs/page.md#none.\n")[0][1]


def test_every_decision_is_listed(found):
    assert found("docs/design/README.md", "[001](001-first.md)") == []
    assert found("docs/design/README.md", "") == [(1, "does not list 001-first.md")]


def test_a_page_of_results_is_short(found):
    assert found("docs/results/long.md", "line\n" * 300) == []
    ((line, what),) = found("docs/results/long.md", "line\n" * 301)
    assert line == 300 and "301 lines" in what
    assert found("docs/long.md", "line\n" * 301) == []

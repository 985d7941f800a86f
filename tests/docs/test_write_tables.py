"""Tests studies/write_tables: every table stands on a page, and pages with other figures are noticed."""

import importlib.machinery
import importlib.util
import sys

import pytest


@pytest.fixture(scope="module")
def writer(root):
    sys.path.insert(0, str(root / "studies"))
    loader = importlib.machinery.SourceFileLoader("write_tables", str(root / "studies/write_tables"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("write_tables", loader))
    loader.exec_module(module)
    return module


def test_a_changed_figure_is_written_anew(writer):
    right = writer.with_tables("page.md", "<!-- squad -->\n<!-- end squad -->\n")
    assert "| 1 |" in right
    assert writer.with_tables("page.md", right) == right
    assert writer.with_tables("page.md", right.replace("| 1 |", "| 7 |")) == right


@pytest.mark.parametrize("text", ["<!-- no_such_table -->\n", "<!-- squad -->\n"])
def test_a_block_that_cannot_be_written_is_refused(writer, text):
    with pytest.raises(SystemExit, match="page.md"):
        writer.with_tables("page.md", text)


def test_a_table_on_no_page_is_named(writer):
    everything = "".join(f"<!-- {name} -->" for name in writer.TABLES)
    assert writer.unplaced([everything]) == []
    assert writer.unplaced([everything.replace("<!-- squad -->", "")]) == ["squad"]

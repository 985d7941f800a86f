"""Tests tools/pages: the lines that docs/reading.md links, and the reference of docs/api.md."""

import importlib.machinery
import importlib.util

import pytest

CODE = """// Trains. See step().
class Trainer;
class Trainer {
  double step();
};
double Trainer::step() {
  return other_step();
}
"""


@pytest.fixture
def pages(root, tmp_path, monkeypatch):
    loader = importlib.machinery.SourceFileLoader("pages", str(root / "tools/pages"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("pages", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


@pytest.mark.parametrize(
    ("name", "before", "line"), [("Trainer::step", 1, 6), ("step", 1, 4), ("Trainer", 1, 3), ("Trainer", 99, 3)]
)
def test_a_link_leads_to_the_definition(pages, tmp_path, name, before, line):
    (tmp_path / "docs").mkdir()
    (tmp_path / "trainer.cc").write_text(CODE)
    assert pages.with_lines(f"[`{name}`](../trainer.cc#L{before})") == f"[`{name}`](../trainer.cc#L{line})"
    with pytest.raises(SystemExit, match="does not have Trainer::gone"):
        pages.with_lines("[`Trainer::gone`](../trainer.cc#L1)")


@pytest.mark.parametrize(
    ("comment", "sentence"),
    [
        ("// One thing: and another.\n// More.\n", "One thing: and another."),
        ("// Over two\n// lines (Su et al. 2021). More.\n", "Over two lines (Su et al. 2021)."),
        ("// A formula follows:\n//   y = x\n", "A formula follows."),
        ("// A | or <b> is text.\n", "A \\| or &lt;b> is text."),
    ],
)
def test_the_first_sentence_of_a_header(pages, tmp_path, comment, sentence):
    (tmp_path / "a.h").write_text(comment + "#pragma once\n")
    assert pages.first_sentence(tmp_path / "a.h") == sentence


def test_a_header_without_a_sentence_is_refused(pages, tmp_path):
    (tmp_path / "a.h").write_text("#pragma once\n")
    with pytest.raises(SystemExit, match="a.h:1"):
        pages.first_sentence(tmp_path / "a.h")


def test_helpers_of_tests_are_not_listed(pages, tmp_path):
    folder = tmp_path / "headshare/base/part"
    folder.mkdir(parents=True)
    for name in ("base/a.h", "base/part/b.h", "base/testing.h", "base/a_cases.h", "base/a-inl.h"):
        (tmp_path / "headshare" / name).write_text("// A thing.\n")
    (folder / "fakes.h").write_text("// For tests only: fakes.\n")
    assert pages.header_rows("base") == [f"| [{name}](../headshare/{name}) | A thing. |" for name in ("base/a.h", "base/part/b.h")]

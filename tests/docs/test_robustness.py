"""Tests studies/robustness: the typing errors that fine-tuned encoders are scored on."""

import importlib.machinery
import importlib.util
import random
import sys

import pytest


@pytest.fixture(scope="module")
def tool(root):
    sys.path.insert(0, str(root / "studies"))
    loader = importlib.machinery.SourceFileLoader("robustness", str(root / "studies/robustness"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("robustness", loader))
    loader.exec_module(module)
    return module


def distance(a, b):
    """Counts the edits between two words, a swap of neighbours counting one (optimal string alignment)."""
    rows = [list(range(len(b) + 1))]
    for i, left in enumerate(a, 1):
        rows.append([i])
        for j, right in enumerate(b, 1):
            best = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (left != right))
            if i > 1 and j > 1 and left == b[j - 2] and a[i - 2] == right:
                best = min(best, rows[i - 2][j - 2] + 1)
            rows[i].append(best)
    return rows[-1][-1]


def test_an_edit_is_one_edit(tool):
    draw = random.Random(1)
    for word in ("a", "aa", "dog", "naïve", "Running", "zzz", "Oo") * 50:
        assert distance(word.lower(), tool.edited(word, draw).lower()) == 1, word


def test_one_in_ten_words_and_nothing_else(tool):
    text = "It's 3.5% -- " + " ".join(["word"] * 5000) + "\tend !?"
    changed = tool.changed(text, 0.1, random.Random("0 cola 7"), tool.edited)
    assert changed == tool.changed(text, 0.1, random.Random("0 cola 7"), tool.edited)
    assert tool.changed(text, 0, random.Random(0), tool.edited) == text
    before, after = text.split(" "), changed.split(" ")
    assert len(before) == len(after) and after[1:3] == ["3.5%", "--"] and changed.endswith(" !?")
    share = sum(a != b for a, b in zip(before, after)) / 5000
    assert 0.08 < share < 0.12


def test_words_never_seen(tool):
    draw = random.Random(3)
    seen = {"quick", "quickish", "child", "childlike", "childhood", "paris"}
    for word in ("quick", "Quick", "child", "PARIS") * 20:
        made = tool.derived(word, draw, seen)
        assert made.startswith(word) and made.lower() not in seen
    assert tool.derived("zebra", draw, seen) == "zebra"


def test_development_sets_change_alike_for_every_model(tool, data, tmp_path):  # noqa: ARG001 (skips without the data)
    changes = tool.changes_of("rte")
    tables = {name: tmp_path / f"{name}.tsv" for name in changes}
    for name, path in tables.items():
        assert tool.write_table(path, "rte", changes[name])[1] == ("text", "pair")
    texts = {name: tool.WORD.findall(path.read_text(encoding="utf-8")) for name, path in tables.items()}
    plain, other = texts["none"], texts["unseen"]
    share = sum(a != b for a, b in zip(plain, other, strict=True)) / len(plain)
    assert 0.07 < share < 0.11  # words that training has not seen stay as they are
    tool.write_table(tmp_path / "again.tsv", "rte", changes["unseen"])
    assert (tmp_path / "again.tsv").read_bytes() == tables["unseen"].read_bytes()

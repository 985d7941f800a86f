"""Tests studies/finetune_data and studies/connected_rows.py: no text stands in both the training and the development part."""

import collections
import gzip
import importlib.machinery
import importlib.util
import json
import random
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "studies"))
import connected_rows  # noqa: E402

QUESTIONS = ("question1", "question2")


@pytest.fixture(scope="module")
def study(root):
    loader = importlib.machinery.SourceFileLoader("finetune_data", str(root / "studies/finetune_data"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("finetune_data", loader))
    sys.modules["finetune_data"] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


def pairs(*texts):
    return [dict(zip((*QUESTIONS, "label"), (*one, str(number % 2)), strict=True)) for number, one in enumerate(texts)]


def by_place(rows):
    """Cuts as studies/finetune_data once did."""
    cut = len(rows) * 4 // 5
    return rows[:cut], rows[cut:]


def split_rows(rows, kinds, label="label", seed=0):
    parts = connected_rows.split(rows, kinds, label, 1 / 5, seed)
    return [[rows[number] for number in numbers] for numbers in parts]


def drawn_table(seed, rows=1000, texts=900):
    draw = random.Random(seed)
    return pairs(*((f"text {draw.randrange(texts)}", f"text {rows + number}") for number in range(rows)))


def test_rows_are_connected_by_way_of_others():
    rows = pairs(("a", "b"), ("x", "y"), ("c", "d"), ("d", "B?"), ("e", "f"), (" Y", "z"))
    assert connected_rows.connected(rows, [QUESTIONS]) == [[0, 2, 3], [1, 5], [4]]
    # Columns that are kinds of their own do not meet: b and B? do, both d do not.
    assert connected_rows.connected(rows, [("question1",), ("question2",)]) == [[0, 3], [1], [2], [4], [5]]


def test_texts_without_words_are_not_all_the_same():
    assert connected_rows.connected(pairs(("?", "a"), ("!", "b"), ("?", "c")), [QUESTIONS]) == [[0, 2], [1]]


def test_a_cut_by_place_is_refused_with_its_counts():
    rows = pairs(("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"), ("i", "j"), ("k", "l"), ("m", "n"), ("o", "p"), ("A", "h?"), ("q", "r"))
    with pytest.raises(connected_rows.Leak, match=r"made-up: 1 of 2 development rows have a question1 or question2 .*\(2 texts\)"):
        connected_rows.refuse_leak("made-up", *by_place(rows), [QUESTIONS])
    connected_rows.refuse_leak("made-up", *split_rows(rows, [QUESTIONS]), [QUESTIONS])


@pytest.mark.parametrize("seed", range(5))
def test_connected_rows_stay_together_and_labels_keep_their_shares(seed):
    rows = drawn_table(seed)
    with pytest.raises(connected_rows.Leak):
        connected_rows.refuse_leak("drawn", *by_place(rows), [QUESTIONS])
    training, development = split_rows(rows, [QUESTIONS], seed=seed)
    connected_rows.refuse_leak("drawn", training, development, [QUESTIONS])
    assert len(training) + len(development) == len(rows)
    assert [row for row in rows if row in training] == training  # in their order
    counts = collections.Counter(row["label"] for row in development)
    assert all(98 <= count <= 100 for count in counts.values()), counts  # a fifth of 500


def test_a_split_follows_from_its_seed():
    rows = drawn_table(7)
    assert split_rows(rows, [QUESTIONS]) == split_rows(rows, [QUESTIONS])
    assert split_rows(rows, [QUESTIONS]) != split_rows(rows, [QUESTIONS], seed=1)


def test_training_loses_rows_whose_text_is_scored():
    training, development = pairs(("a", "b"), ("c", "d"), ("b", "e"), ("f", "g")), pairs(("E", "x"), ("y", "c."))
    kept = connected_rows.without_texts_of(development, training, [QUESTIONS])
    assert kept == [0, 3]  # the row of a and b shares no text itself
    connected_rows.refuse_leak("official", [training[number] for number in kept], development, [QUESTIONS])


def packed(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(lines).encode()))


def unpacked(path):
    return gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)


def test_lines_are_written_as_they_stand(study, tmp_path):
    pool = [f'{n}\tq1\tq2\tsame "{n // 2 % 50}\tonly {n}\t{n % 3 % 2}\r\n' for n in range(200)]
    packed(tmp_path / "in/glue/QQP/subset.tsv.gz", ["id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\r\n", *pool])
    official = ["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n", "1\t1\t2\tOne .\tTwo .\n", "0\t3\t4\tThree .\tFour .\n"]
    packed(tmp_path / "in/glue/MRPC/train.tsv.gz", official)
    packed(tmp_path / "in/glue/MRPC/dev.tsv.gz", [official[0], "1\t5\t6\tfive\ttwo\n"])
    packed(tmp_path / "in/superglue/CB/train.jsonl.gz", ['{"premise": "a", "hypothesis": "b"}\n'])
    packed(tmp_path / "in/superglue/CB/val.jsonl.gz", ['{"premise": "b", "hypothesis": "a"}\n'])
    found = study.prepare(tmp_path / "in", tmp_path / "out")
    parts = [unpacked(tmp_path / f"out/glue/QQP/{part}.tsv.gz") for part in ("train", "dev")]
    assert parts[0][0] == parts[1][0] and sorted(parts[0][1:] + parts[1][1:]) == sorted(pool)
    assert unpacked(tmp_path / "out/glue/MRPC/train.tsv.gz") == [official[0], official[2]]
    assert unpacked(tmp_path / "out/glue/MRPC/dev.tsv.gz")[1] == "1\t5\t6\tfive\ttwo\n"
    assert (tmp_path / "out/superglue/CB").is_symlink()  # a premise and a hypothesis are two kinds
    assert [task["task"] for task in found] == ["glue/MRPC", "glue/QQP", "superglue/CB"]
    assert found[0]["rows_before"] == [2, 1] and found[0]["rows"] == [1, 1]
    assert found[1]["shared_before"] == [{"columns": QUESTIONS, "texts": 20, "rows": 40}]


def test_a_task_that_nothing_is_known_of_is_refused(study, tmp_path):
    packed(tmp_path / "in/glue/New/train.tsv.gz", ["text\tlabel\n"])
    (tmp_path / "in/superglue").mkdir()
    with pytest.raises(SystemExit, match="glue/New: .*TASKS"):
        study.prepare(tmp_path / "in", tmp_path / "out")


def test_the_real_parts_share_no_text(study, data, tmp_path):
    study.prepare(data, tmp_path)
    for name, task in study.TASKS.items():
        if (data / name).is_dir():
            parts = [study.read(name, tmp_path / name / part, data)[2] for part in (task.training, task.development)]
            connected_rows.refuse_leak(name, *parts, task.kinds)
    assert json.loads((tmp_path / "splits.json").read_text()) == json.loads((ROOT / "docs/results/finetune-splits.json").read_text())


@pytest.mark.parametrize(
    "name, column, rows, development",
    [
        ("glue/QNLI", "question", 419, 1093),
        ("glue/QQP", "question1 or question2", 772, 4700),
        ("glue/MNLI", "sentence1", 1893, 1963),
        ("superglue/BoolQ", "passage", 97, 654),
    ],
)
def test_the_real_parts_cut_by_place_are_refused(study, data, name, column, rows, development):
    whole = study.read(name, data / name / study.TASKS[name].pool, data)[2]
    with pytest.raises(connected_rows.Leak, match=rf"{name}:.* {rows} of {development} development rows have a {column} of"):
        connected_rows.refuse_leak(name, *by_place(whole), study.TASKS[name].kinds)

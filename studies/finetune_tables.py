"""Knows the files of GLUE and SuperGLUE: their parts, their columns, and which texts two parts must not share."""

import collections
import dataclasses
import gzip
import json
import sys

from connected_rows import same_text


@dataclasses.dataclass(frozen=True)
class Task:
    training: str  # file
    development: str  # file
    kinds: tuple  # of text that the parts must not share: see connected_rows
    pool: str = ""  # file: the one labelled part, which is split
    label: str = ""  # of a pool: the column whose values both parts hold alike
    names: tuple = ()  # of the columns of a table without a heading


def tsv(*kinds, development="dev.tsv.gz", **others):
    return Task("train.tsv.gz", development, kinds, **others)


def jsonl(*kinds, **others):
    return Task("train.jsonl.gz", "val.jsonl.gz", kinds, **others)


# WiC's parts may share target words, which say nothing about their sense, but no sentence.
TASKS = {
    "glue/CoLA": tsv(("sentence",), names=("source", "label", "mark", "sentence")),
    "glue/MNLI": tsv(("sentence1",), ("sentence2",), development="dev_matched.tsv.gz", pool="dev_matched.tsv.gz", label="gold_label"),
    "glue/MRPC": tsv(("#1 String", "#2 String")),
    "glue/QNLI": tsv(("question",), ("sentence",), ("paragraph",), pool="dev.tsv.gz", label="label"),
    "glue/QQP": tsv(("question1", "question2"), pool="subset.tsv.gz", label="is_duplicate"),
    "glue/RTE": tsv(("sentence1",), ("sentence2",)),
    "glue/SST-2": tsv(("sentence",)),
    "glue/STS-B": tsv(("sentence1", "sentence2")),
    "glue/WNLI": tsv(("sentence1",), ("sentence2",)),
    "superglue/BoolQ": jsonl(("question",), ("passage",), ("title",), pool="val.jsonl.gz", label="label"),
    "superglue/CB": jsonl(("premise",), ("hypothesis",)),
    "superglue/COPA": jsonl(("premise",), ("choice1", "choice2")),
    "superglue/MultiRC": jsonl(("text",)),
    "superglue/RTE": jsonl(("premise",), ("hypothesis",)),
    "superglue/WSC": jsonl(("text",)),
    "superglue/WiC": jsonl(("sentence1", "sentence2")),
}


def add_paragraphs(rows, data):
    """Gives each row of QNLI the paragraph of SQuAD that its question and its sentence come from."""
    with gzip.open(data / "squad/dev-v1.1.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    known = collections.defaultdict(list)
    for paragraph in (one for article in articles for one in article["paragraphs"]):
        for asked in paragraph["qas"]:
            known[same_text(asked["question"])].append(same_text(paragraph["context"]))
    for row in rows:
        sentence = same_text(row["sentence"])
        row["paragraph"] = next((one for one in known[same_text(row["question"])] if sentence in one), None)
        if row["paragraph"] is None:
            sys.exit(f"no paragraph of squad/dev-v1.1.json.gz has QNLI's question \"{row['question']}\" and its sentence")


def add_titles(rows, _):
    """Gives each row of BoolQ the title of the article that its passage comes from."""
    for row in rows:
        row["title"] = row["passage"].partition(" -- ")[0]


def add_texts(rows, _):
    """Gives each row of MultiRC, a passage with its questions, the text of the passage."""
    for row in rows:
        row["text"] = row["passage"]["text"]


ADDED = {"glue/QNLI": add_paragraphs, "superglue/BoolQ": add_titles, "superglue/MultiRC": add_texts}


def read_table(name, path):
    """Returns (heading, lines, rows): the lines as they stand in the file, and a dictionary of each."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        lines = file.readlines()
    heading = []
    if path.name.endswith(".jsonl.gz"):
        rows = [json.loads(line) for line in lines]
    else:
        heading = [] if TASKS[name].names else [lines.pop(0)]
        names = TASKS[name].names or heading[0].lstrip("\ufeff").rstrip("\r\n").split("\t")
        rows = [dict(zip(names, line.rstrip("\r\n").split("\t"), strict=True)) for line in lines]
    return heading, lines, rows


def read(name, path, data):
    """Returns the same with every text that parts must not share, also those that stand elsewhere in `data`."""
    heading, lines, rows = read_table(name, path)
    if name in ADDED:
        ADDED[name](rows, data)
    return heading, lines, rows


def write_lines(path, lines):
    """Writes the same bytes whenever the lines are the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.write("".join(lines).encode())

"""Splits the rows of a table so that no text stands in two parts, and refuses parts that share one.

A *kind of text* is a tuple of columns whose texts are compared with each other: ("question1", "question2") are one kind, a
premise and a hypothesis are two. Two texts are the same if their words are, in small letters. Rows that share a text of
some kind, directly or by way of other rows, are connected; connected rows stay together.
"""

import collections
import functools
import random
import re

WORD = re.compile(r"[^\W_]+")  # letters and digits


class Leak(ValueError):
    """Says how many texts two parts share."""


@functools.cache  # a text is compared several times
def same_text(text):
    """Returns what two texts have in common if they are the same: their words, else the text itself."""
    return " ".join(WORD.findall(text.lower())) or text


def texts_of(row, kind):
    return {same_text(row[column]) for column in kind}


def connected(rows, kinds):
    """Returns the connected rows as lists of their numbers, in the order of their first rows."""
    parent = list(range(len(rows)))

    def first_of(number):
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    met = {}
    for number, row in enumerate(rows):
        for kind in kinds:
            for text in texts_of(row, kind):
                one, other = sorted((first_of(number), first_of(met.setdefault((kind, text), number))))
                parent[other] = one
    together = collections.defaultdict(list)
    for number in range(len(rows)):
        together[first_of(number)].append(number)
    return list(together.values())


def split(rows, kinds, label, share, seed):
    """Returns (training, development): the numbers of the rows, in their order. Development holds `share` of the rows of
    each label, or as much less as connected rows, which are drawn together, leave open."""
    room = {name: round(count * share) for name, count in collections.Counter(row[label] for row in rows).items()}
    draw = random.Random(seed)
    development = []
    for numbers in sorted(connected(rows, kinds), key=lambda _: draw.random()):
        taken = collections.Counter(rows[number][label] for number in numbers)
        if all(count <= room[name] for name, count in taken.items()):
            development += numbers
            for name, count in taken.items():
                room[name] -= count
    chosen = set(development)
    return [number for number in range(len(rows)) if number not in chosen], sorted(chosen)


def without_texts_of(development, training, kinds):
    """Returns the numbers of the training rows that share no text with a row of development."""
    scored = {kind: {text for row in development for text in texts_of(row, kind)} for kind in kinds}
    return [
        number for number, row in enumerate(training) if not any(scored[kind] & texts_of(row, kind) for kind in kinds)
    ]


def shared(training, development, kinds):
    """Returns {kind: (texts that both parts have, rows of development that have one)}."""
    found = {}
    for kind in kinds:
        known = {text for row in training for text in texts_of(row, kind)}
        both = [texts_of(row, kind) & known for row in development]
        found[kind] = (len(set().union(*both)), sum(map(bool, both)))
    return found


def refuse_leak(name, training, development, kinds):
    """Raises Leak unless the two parts share no text."""
    counts = [
        f"{rows} of {len(development)} development rows have a {' or '.join(kind)} of the training part ({texts} texts)"
        for kind, (texts, rows) in shared(training, development, kinds).items()
        if texts
    ]
    if counts:
        raise Leak(f"{name}: {'; '.join(counts)}; split connected rows together (studies/connected_rows.py)")

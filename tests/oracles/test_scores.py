"""Tests scores against scikit-learn and SciPy, and the texts of SQuAD answers against Python itself.

Drives headshare/metrics/score_tool of the build under test.
"""

import math
import random
import re
import string
import unicodedata
import warnings

import pytest
from json_lines import asker

metrics = pytest.importorskip("sklearn.metrics")
stats = pytest.importorskip("scipy.stats")


@pytest.fixture(scope="module")
def ask(build_dir):
    return asker(build_dir / "obj" / "metrics" / "score_tool", timeout=600)


CLASSIFICATION = {
    "accuracy": metrics.accuracy_score,
    "f1": lambda gold, predicted: metrics.f1_score(
        [one == 1 for one in gold], [one == 1 for one in predicted], zero_division=0
    ),
    "macro_f1": lambda gold, predicted: metrics.f1_score(gold, predicted, average="macro"),
    "matthews": metrics.matthews_corrcoef,
}


def class_cases():
    """Yields 1 to 6 classes, 1 to 200 examples; a third has one class on a side, or agrees, or is swapped."""
    generator = random.Random(1)
    for _ in range(600):
        classes, size = generator.randrange(1, 7), generator.randrange(1, 201)
        gold = [generator.randrange(classes) for _ in range(size)]
        predicted = [generator.randrange(classes) for _ in range(size)]
        kind = generator.randrange(12)
        if kind == 0:
            gold = [generator.randrange(classes)] * size
        elif kind == 1:
            predicted = [generator.randrange(classes)] * size
        elif kind == 2:
            predicted = gold
        elif kind == 3:
            predicted = [classes - 1 - one for one in gold]
        yield gold, predicted


@pytest.mark.parametrize("name", sorted(CLASSIFICATION))
def test_classification(ask, name):
    cases = list(class_cases())
    ours = ask({"do": "measure", "metric": name, "gold": gold, "predicted": predicted} for gold, predicted in cases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of undefined scores, which are 0
        for (gold, predicted), one in zip(cases, ours):
            expected = CLASSIFICATION[name](gold, predicted)
            assert one["value"] == pytest.approx(expected, rel=1e-14, abs=1e-15), (gold, predicted)


def number_cases():
    """Yields random numbers; many with ties, some constant on a side, some on a line, some far from 0."""
    generator = random.Random(2)
    for case in range(600):
        size = generator.randrange(2, 150)
        draw = generator.random if case % 2 else lambda: generator.randrange(6) / 2
        gold, predicted = [draw() for _ in range(size)], [draw() for _ in range(size)]
        kind = generator.randrange(12)
        if kind == 0:
            gold = [gold[0]] * size
        elif kind == 1:
            predicted = [predicted[0]] * size
        elif kind == 2:
            predicted = [-2 * one for one in gold]
        elif kind == 3:
            predicted = [one + 1e6 for one in predicted]
        yield gold, predicted


@pytest.mark.parametrize("name, oracle", [("pearson", stats.pearsonr), ("spearman", stats.spearmanr)])
def test_correlation(ask, name, oracle):
    cases = list(number_cases())
    ours = ask({"do": "measure", "metric": name, "gold": gold, "predicted": predicted} for gold, predicted in cases)
    undefined = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of constant input, which gives nan
        for (gold, predicted), one in zip(cases, ours):
            expected = float(oracle(gold, predicted).statistic)
            if math.isnan(expected):
                undefined += 1
                assert one["value"] is None, (gold, predicted)
            else:
                # Around 1e6 the inputs themselves keep ten digits.
                assert one["value"] == pytest.approx(expected, abs=1e-9 if predicted[0] > 1e5 else 1e-13)
    assert undefined > 50


def code_points():
    """Returns all characters that Python's Unicode version knows."""
    return [chr(point) for point in range(0x110000) if unicodedata.category(chr(point)) not in ("Cn", "Cs")]


def test_lower_case_of_every_code_point(ask):
    texts = code_points()
    ours = ask([{"do": "lower", "texts": texts}])[0]["texts"]
    assert [pair for pair in zip(texts, ours) if pair[0].lower() != pair[1]] == []


def test_a_sigma_beside_every_code_point(ask):
    texts = [text for one in code_points() for text in (f"{one}Σ", f"αΣ{one}", f"α{one}Σ", f"αΣ{one}α")]
    ours = ask([{"do": "lower", "texts": texts}])[0]["texts"]
    assert [pair for pair in zip(texts, ours) if pair[0].lower() != pair[1]] == []


def words_of(answer):
    """Returns what the SQuAD and ReCoRD papers' scorers compare."""
    kept = "".join(one for one in answer.lower() if one not in string.punctuation)
    return re.sub(r"\b(?:an?|the)\b", " ", kept).split()


def test_normalised_answers(ask):
    generator = random.Random(3)
    points = code_points()
    parts = ["a", "an", "the", "The", "A", "theme", "x", "Σ", "İ", " ", "  ", "\t", "\u00a0", "\u0301", *"-.'_–"]
    texts = [f"a{one}the" for one in points]
    for _ in range(20000):
        count = generator.randrange(12)
        texts.append("".join(generator.choice(parts if generator.random() < 0.8 else points) for _ in range(count)))
    ours = ask([{"do": "normalize", "texts": texts}])[0]["texts"]
    assert [pair for pair in zip(texts, ours) if " ".join(words_of(pair[0])) != pair[1]] == []


def word_f1(gold, predicted):
    if not gold or not predicted:
        return float(gold == predicted)
    rest = list(gold)
    same = sum(word in rest and rest.remove(word) is None for word in predicted)
    return 2 * same / (len(gold) + len(predicted))


def question_scores(gold, predicted):
    """Returns (exact, f1) of SQuAD v2.0 by the definition."""
    answers = [words_of(answer) for answer in gold if words_of(answer)] or [[]]
    words = words_of(predicted)
    return max(float(one == words) for one in answers), max(word_f1(one, words) for one in answers)


def squad_case(generator):
    vocabulary = ["the", "red", "fox", "a", "dog", "ran", "!"]

    def answer():
        return " ".join(generator.choice(vocabulary) for _ in range(generator.randrange(1, 4)))

    def prediction():
        # One of articles alone is right for a question without an answer, but the official search takes it as wrong.
        text = answer() if generator.random() < 0.7 else ""
        return text if words_of(text) else ""

    ids = [f"q{i:03}" for i in range(generator.randrange(1, 40))]
    odds = generator.sample(range(1, 1000), len(ids))  # no ties: these go by the order of the file
    return {
        "do": "squad",
        "rules": "v2.0",
        "gold": {one: [answer() for _ in range(max(0, generator.randrange(-3, 4)))] for one in ids},
        "predictions": {one: prediction() for one in ids},
        "odds": {one: value / 1000 for one, value in zip(ids, odds)},
        "threshold": generator.choice([1, 0.5, generator.random()]),
    }


def test_squad_scores_and_thresholds_by_brute_force(ask):
    generator = random.Random(4)
    cases = [squad_case(generator) for _ in range(300)]
    for case, ours in zip(cases, ask(cases)):
        gold, predicted, odds = case["gold"], case["predictions"], case["odds"]

        def mean(which, threshold, ids):
            scores = (
                float(not gold[one]) if odds[one] > threshold else question_scores(gold[one], predicted[one])[which]
                for one in ids
            )
            return 100 * sum(scores) / len(ids)

        parts = {"": list(gold), "has_ans_": [i for i in gold if gold[i]], "no_ans_": [i for i in gold if not gold[i]]}
        for prefix, ids in parts.items():
            assert (prefix + "total" in ours) == bool(ids)
            for which, name in enumerate(("exact" if prefix else "exact_match", "f1")):
                if ids:
                    assert ours[prefix + name] == pytest.approx(mean(which, case["threshold"], ids), abs=1e-9)
        for which, name in enumerate(("best_exact", "best_f1")):
            tried = [mean(which, threshold, list(gold)) for threshold in [0, *odds.values()]]
            assert ours[name] == pytest.approx(max(tried), abs=1e-9)
            assert mean(which, ours[name + "_thresh"], list(gold)) == pytest.approx(ours[name], abs=1e-9)

"""Tests BLEU, chrF and TER against sacreBLEU: tokens, scores, signatures, intervals and p-values.

Drives headshare/metrics/translation/translation_tool of the build under test.
"""

import functools
import gzip
import random
import unicodedata

import pytest
from json_lines import asker

sacrebleu = pytest.importorskip("sacrebleu")
numpy = pytest.importorskip("numpy")

from sacrebleu import significance  # noqa: E402
from sacrebleu.metrics import BLEU, CHRF, TER  # noqa: E402
from sacrebleu.metrics.bleu import _get_tokenizer  # noqa: E402
from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer  # noqa: E402

METRICS = {"bleu": BLEU, "chrf": CHRF, "ter": TER}
# Our options that sacreBLEU calls otherwise have these names there.
THEIRS = {"tokenizer": "tokenize", "smoothing": "smooth_method", "no_punctuation": "no_punct"}
TOKENIZERS = ["13a", "intl", "char", "none", "zh"]


@pytest.fixture(scope="module")
def ask(build_dir):
    return asker(build_dir / "obj" / "metrics" / "translation_tool", timeout=900)


@functools.cache
def code_points():
    """Returns all characters that Python's Unicode version knows: utf8proc and the module regex know later ones
    besides, not the same."""
    return [chr(point) for point in range(0x110000) if unicodedata.category(chr(point)) not in ("Cn", "Cs")]


ALPHABETS = [
    list("ab \t.,-'0%"),
    list("aA bB.,:;!?-'\"()[]&/ 0123"),
    ["&quot;", "&amp;", "&lt;", "&gt;", "<skipped>", "&", "lt;", "'s", "'s ", " ", "a", "5", "-", ".", ",", "\u2019"],
    list("aé ñÑßẞİıΣςσ ¿¡«»“”…–—·%‰€£½²①Ⅷ٣৪ 3.,"),
    list("\u3000你好，。！世界、「」・カタカナひらがなㇰ㐀㊀㌀豈︰･ｱ０１１A a1.,\u2e80\u2fd5\u3300\u3f22\u3f23𠀀\U0002f800"),
    list("\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u0085\x1c\x1f\u200b\ufeff\x0b x.1"),
]


def random_text(generator, points, longest=30):
    kind = generator.randrange(len(ALPHABETS) + 1)
    alphabet = points if kind == len(ALPHABETS) else ALPHABETS[kind]
    return "".join(generator.choice(alphabet) for _ in range(generator.randrange(longest)))


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers(ask, name):
    generator = random.Random(1)
    points = code_points()
    # Characters of private use and the many ideographs are all alike.
    known = [one for one in points if unicodedata.category(one) not in ("Co", "Lo")] + generator.sample(points, 3000)
    texts = [f"{one} a{one}b 1{one}2 a.{one} {one},1" for one in known]
    texts += [random_text(generator, points) for _ in range(5000)]
    texts = [text.rstrip() for text in texts]
    tokenizer = _get_tokenizer(name)()
    ours = ask([{"do": "tokenize", "tokenizer": name, "texts": texts}])[0]["words"]
    assert [(text, words) for text, words in zip(texts, ours) if words != tokenizer(text).split()] == []


@pytest.mark.parametrize("options", range(16))
def test_words_of_ter(ask, options):
    names = ("case_sensitive", "normalized", "no_punctuation", "asian_support")
    chosen = {name: bool(options >> bit & 1) for bit, name in enumerate(names)}
    generator = random.Random(2)
    points = code_points()
    texts = [f"{one} x{one}y" for one in generator.sample(points, 2000)]
    texts += [random_text(generator, points) for _ in range(2000)]
    tokenizer = TercomTokenizer(**{THEIRS.get(name, name): value for name, value in chosen.items()})
    ours = ask([{"do": "tokenize", "tokenizer": "tercom", **chosen, "texts": texts}])[0]["words"]
    assert [(text, words) for text, words in zip(texts, ours) if words != tokenizer(text).split()] == []


def test_random_numbers_of_numpy(ask):
    seeds = [0, 1, 12345, 2**32 - 1, 2**32, 2**40 + 3, 2**63 - 1]
    bounds = [1, 3, 10, 3004, 2**16, 2**31 + 1, 3 * 2**30, 2**32 - 1]
    cases = [dict(do="draw", seed=seed, bound=bound, count=1001) for seed in seeds for bound in [*bounds, 2]]
    for case, ours in zip(cases, ask(cases)):
        generator = numpy.random.default_rng(case["seed"])
        if case["bound"] == 2:
            assert ours["bits"] == generator.integers(2, size=1001, dtype=bool).astype(int).tolist()
        else:
            assert ours["numbers"] == generator.choice(case["bound"], size=1001).tolist(), case


def changed(generator, text, vocabulary):
    """Returns the words of a text with some replaced, left out, doubled or moved."""
    words = text.split(" ")
    for _ in range(generator.randrange(6)):
        kind, at = generator.randrange(4), generator.randrange(len(words) + 1)
        if kind == 0:
            words.insert(at, generator.choice(vocabulary))
        elif kind == 1 and words:
            del words[at : at + generator.randrange(3)]
        elif words:
            length = generator.randrange(1, 5)
            run = words[at : at + length]
            if kind == 2:
                del words[at : at + length]
            to = generator.randrange(len(words) + 1)
            words[to:to] = run
    return " ".join(words)


def corpus(generator, points, size, references, systems, longest=40):
    """Returns sentences of a small vocabulary with signs, some of any text, some empty."""
    vocabulary = ["the", "The", "fox", "5.5", "U.S.", "(hi)", "don't", "'s", "Straße", "İX", "ΟΔΟΣ", "你好，", "-", "a", "b,", "."]
    vocabulary += [random_text(generator, points, 6).replace("\n", "") or "x" for _ in range(20)]
    lines = [[] for _ in range(references + systems)]
    for _ in range(size):
        source = " ".join(generator.choice(vocabulary) for _ in range(generator.randrange(1, longest)))
        for side in lines:
            kind = generator.randrange(40)
            text = "" if kind == 0 else random_text(generator, points) if kind == 1 else changed(generator, source, vocabulary)
            side.append(text.replace("\n", " ").rstrip())
    return lines[:references], lines[references:]


def theirs_of(request):
    options = {THEIRS.get(name, name): value for name, value in request.items()
               if name not in ("do", "metric", "systems", "references", "test", "samples", "seed")}  # fmt: skip
    if request["metric"] == "bleu":
        options["force"] = True
    return METRICS[request["metric"]](**options)


def bleu_cases():
    for tokenizer in TOKENIZERS:
        yield {"tokenizer": tokenizer}
        yield {"tokenizer": tokenizer, "lowercase": True, "effective_order": True}
    for smoothing in ("exp", "floor", "add-k", "none"):
        for effective in (False, True):
            yield {"smoothing": smoothing, "effective_order": effective}
    yield {"smoothing": "floor", "smooth_value": 0.01}
    yield {"smoothing": "floor", "smooth_value": 0.0}
    yield {"smoothing": "add-k", "smooth_value": 0.3, "effective_order": True}


def chrf_cases():
    for word_order in (0, 1, 2, 4):
        for whitespace in (False, True):
            for eps_smoothing in (False, True):
                yield dict(word_order=word_order, whitespace=whitespace, eps_smoothing=eps_smoothing)
    yield dict(lowercase=True, word_order=2)
    yield dict(char_order=0, word_order=3)
    yield dict(char_order=1, beta=1)
    yield dict(char_order=9, beta=3, word_order=1)


def ter_cases():
    names = ("case_sensitive", "normalized", "no_punctuation", "asian_support")
    for options in range(16):
        yield {name: bool(options >> bit & 1) for bit, name in enumerate(names)}


CASES = {"bleu": bleu_cases, "chrf": chrf_cases, "ter": ter_cases}


def same_signature(ours, theirs):
    return ours == theirs.get_signature().format().replace(f"version:{sacrebleu.__version__}", "version:test")


@pytest.mark.parametrize("metric", CASES)
def test_scores_of_corpora_and_sentences(ask, metric):
    generator = random.Random(3)
    points = code_points()
    cases = []
    for options in CASES[metric]():
        for references, size in ((1, 12), (2, 12), (4, 8), (1, 1)):
            known, systems = corpus(generator, points, size, references, 1)
            cases.append(dict(do="score", metric=metric, references=known, systems=systems, **options))
    for case, ours in zip(cases, ask(cases)):
        theirs, system = theirs_of(case), case["systems"][0]
        score = theirs.corpus_score(system, case["references"])
        found = ours["systems"][0]
        assert (ours["name"], found["score"]) == (score.name, score.score), case
        assert found["detail"] == score._verbose
        assert same_signature(ours["signature"], theirs)
        for sentence, value, *known in zip(system, found["sentences"], *case["references"]):
            expected = theirs.sentence_score(sentence, known).score
            assert value == expected, (case, sentence, known)


def test_ter_of_sentences_far_apart(ask):
    """Goes beyond the beam, the longest shift and the most shifts tried."""
    generator = random.Random(4)
    systems, references = [], []
    for case in range(25):
        vocabulary = [f"w{i}" for i in range(generator.choice([3, 10, 40, 100]))]
        words = [generator.choice(vocabulary) for _ in range(generator.randrange(1, 90))]
        kind = case % 5
        other = list(words)
        if kind == 0:
            other = other[: generator.randrange(3) + 1]
        elif kind == 1:
            at = generator.randrange(len(other))
            other = other[at:] + other[:at]
        elif kind == 2:
            generator.shuffle(other)
        elif kind == 3:
            other = [generator.choice(vocabulary) for _ in range(generator.randrange(1, 90))]
        else:
            other = other * 2
        pair = [" ".join(words), " ".join(other)]
        if generator.randrange(2):
            pair.reverse()
        systems.append(pair[0])
        references.append(pair[1])
    ours = ask([dict(do="score", metric="ter", references=[references], systems=[systems])])[0]
    for sentence, reference, value in zip(systems, references, ours["systems"][0]["sentences"]):
        assert value == TER().sentence_score(sentence, [reference]).score, (sentence, reference)


TESTED = [
    ("bleu", {}), ("bleu", dict(tokenizer="char", smoothing="floor")), ("bleu", dict(smoothing="add-k")),
    ("bleu", dict(smoothing="none", effective_order=True)), ("chrf", {}), ("chrf", dict(word_order=2, eps_smoothing=True)),
    ("chrf", dict(word_order=2)), ("ter", {}), ("ter", dict(normalized=True)),
]  # fmt: skip


@pytest.mark.parametrize("metric, options", TESTED)
@pytest.mark.parametrize("references, size, samples", [(1, 60, 200), (2, 37, 333), (1, 2, 50), (1, 1, 50)])
def test_intervals_and_p_values(ask, monkeypatch, metric, options, references, size, samples):
    generator = random.Random(5)
    known, systems = corpus(generator, code_points(), size, references, 4, longest=15)
    systems.append(list(systems[0]))  # no difference at all
    systems.append([""] * size)
    call = dict(do="score", metric=metric, references=known, systems=systems, samples=samples, **options)
    kinds = ("interval", "bootstrap", "randomisation")
    requests = [dict(call, test=kind, seed=seed) for kind in kinds for seed in (12345, 7)]
    for request, ours in zip(requests, ask(requests)):
        theirs = theirs_of({name: value for name, value in call.items()})
        monkeypatch.setenv("SACREBLEU_SEED", str(request["seed"]))
        if request["test"] == "interval":
            for system, found in zip(systems[:5], ours["systems"]):
                score = theirs.corpus_score(system, known, n_bootstrap=samples)
                assert found["score"] == score.score
                assert found["mean"] == pytest.approx(float(score._mean), rel=1e-7)
                assert found["half_width"] == float(score._ci)
            continue
        kind = {"bootstrap": "bs", "randomisation": "ar"}[request["test"]]
        named = [(str(i), system) for i, system in enumerate(systems)]
        _, scores = significance.PairedTest(named, {"x": theirs}, known, test_type=kind, n_samples=samples)()
        (column,) = [value for name, value in scores.items() if name != "System"]
        for result, found in zip(column, ours["systems"]):
            assert found["score"] == result.score
            assert found.get("p_value") == result.p_value, request["test"]
            assert found.get("mean") == (None if result.mean is None else float(result.mean))
            assert found.get("half_width") == (None if result.ci is None else float(result.ci))


@pytest.fixture(scope="module")
def wmt(data):
    folder = data / "wmt17-en-de-metrics"

    def lines(path):
        text = gzip.decompress(path.read_bytes()).decode()
        return [line.rstrip() for line in text.split("\n")[:-1]]

    return lines(folder / "reference.de.gz"), {path.stem: lines(path) for path in sorted(folder.glob("newstest*.gz"))}


WMT = [("bleu", dict(tokenizer=one)) for one in TOKENIZERS]
WMT += [("bleu", dict(lowercase=True)), ("chrf", {}), ("chrf", dict(word_order=2)), ("ter", {}), ("ter", dict(normalized=True))]


@pytest.mark.parametrize("metric, options", WMT)
def test_systems_of_wmt17(ask, wmt, metric, options):
    reference, systems = wmt
    few = dict(list(systems.items())[: 1 if metric == "ter" else 3])
    call = dict(do="score", metric=metric, references=[reference], systems=list(few.values()), **options)
    (ours,) = ask([call])
    theirs = theirs_of(call)
    for found, system in zip(ours["systems"], few.values()):
        score = theirs.corpus_score(system, [reference])
        assert (found["score"], found["detail"]) == (score.score, score._verbose)


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_p_values_of_wmt17(ask, wmt, monkeypatch, metric, test):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    reference, systems = wmt
    chosen = list(systems.items())[:2]
    samples = 300
    call = dict(do="score", metric=metric, references=[reference], systems=[lines for _, lines in chosen])
    (ours,) = ask([dict(call, test=test, samples=samples)])
    kind = {"bootstrap": "bs", "randomisation": "ar"}[test]
    _, scores = significance.PairedTest(chosen, {"x": theirs_of(call)}, [reference], test_type=kind, n_samples=samples)()
    (column,) = [value for name, value in scores.items() if name != "System"]
    for result, found in zip(column, ours["systems"]):
        assert (found["score"], found.get("p_value")) == (result.score, result.p_value)
        if test == "bootstrap":
            assert (found["mean"], found["half_width"]) == (float(result.mean), float(result.ci))

"""Tests `convert --to hf --words FILE`: an encoder that hashes words becomes one with a table, which transformers loads
and which answers as headshare does; its tokenizer cuts text as headshare does. Lists that are none are refused by
line."""

import gzip
import itertools
import json
import random
import unicodedata

import pytest
from conftest import run_command
from test_exports import TUNED, pairs, table
from test_hashing import cut, random_texts

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file  # noqa: E402

TEXT = "The number one rises, then it falls. Ο ΔΟΣ - İs <s> naïve!? {} foxes jump over the 3.5% dogs; it's a 日本 <unk>.\n"
TEXTS = [TEXT.format(i).strip() for i in range(3)] + ["one two three four five six seven eight nine"] + ["the number falls"]
WORDS = sorted({word for text in TEXTS for word in cut(text)})
SMALL = ["--layers", 2, "--d-model", 32, "--heads", 4, "--context", 48, "--batch-size", 8, "--threads", 1]
KINDS = ["hash-emb", "hash-pool", "hash-add", "hash-proj"]


@pytest.fixture(scope="module")
def encoders(run, tmp_path_factory):
    """Trains one encoder of each kind, of three classes."""
    folder = tmp_path_factory.mktemp("encoders")
    (folder / "text.txt").write_text("".join(TEXT.format(i % 9) for i in range(300)))
    cache = {"HEADSHARE_CACHE": str(folder / "cache")}

    def train(kind, *flags, tokenizer="hash-md"):
        out = folder / "-".join(map(str, [kind, tokenizer, *flags]))
        if not out.exists():
            model = ("--task", "three-way", "--bert", "--scheme", "mha", "--token-embedding", kind, "--tokenizer", tokenizer)
            start = ("--init-deviation", 0.15, "--steps", 2)
            run("train", *model, *SMALL, *start, "--text", folder / "text.txt", "--out", out, *flags, env=cache)
        return out

    return train


@pytest.fixture
def words(tmp_path):
    def write(lines=WORDS):
        (tmp_path / "words.txt").write_text("".join(word + "\n" for word in lines))
        return tmp_path / "words.txt"

    return write


@pytest.fixture
def answers(build_dir, tmp_path):
    """Returns what headshare makes of texts, one at a time."""

    def compute(model, texts):
        for text in texts:
            tokens = ["<s>", *cut(text), "</s>"]
            (tmp_path / "input.json").write_text(json.dumps({"tokens": [tokens]}))
            tool = build_dir / "obj" / "models" / "model_tool"
            run_command([tool, model, tmp_path / "input.json", tmp_path / "out.safetensors"])
            yield load_file(tmp_path / "out.safetensors")

    return compute


@pytest.mark.parametrize("kind, tokenizer", [*((kind, "hash-md") for kind in KINDS), ("hash-emb", "hash-lsh"), ("hash-add", "hash-lsh")])
def test_transformers_computes_the_same(run, tmp_path, encoders, words, answers, kind, tokenizer):
    ours = encoders(kind, tokenizer=tokenizer)
    said = run("convert", "--to", "hf", ours, tmp_path / "hf", "--words", words()).stdout
    assert f"vocabulary {5 + len(WORDS)}" in said
    read = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    model = transformers.AutoModelForTokenClassification.from_pretrained(tmp_path / "hf").eval()
    assert model.config.id2label == {0: "original", 1: "shuffled", 2: "random"}
    for text, found in zip(TEXTS, answers(ours, TEXTS), strict=True):
        encoded = read(text, return_tensors="pt")
        assert read.unk_token_id not in encoded["input_ids"][0]
        with torch.no_grad():
            expected = model(**encoded, output_hidden_states=True)
        assert found["hidden"].shape == expected.hidden_states[-1].shape
        assert (found["hidden"] - expected.hidden_states[-1]).abs().max() < 1e-5
        assert (found["three_way"] - expected.logits).abs().max() < 1e-5
        assert expected.hidden_states[-1].std() > 0.3 and expected.logits.std() > 0.05, "too flat to tell anything"
    batch = read(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        last = model(**batch).logits[-1]
    assert (last[: len(expected.logits[0])] - expected.logits[0]).abs().max() < 1e-5, "padding is not seen"


def test_fine_tuned_on_pairs(run, tmp_path, encoders, words):
    """Compares the scores of pairs, laid out as headshare does."""
    encoder = encoders("hash-proj")
    train, dev = list(pairs(200, 1)), list(pairs(60, 2))
    files = ("--train", table(tmp_path / "train.tsv", train), "--validation", table(tmp_path / "dev.tsv", dev))
    columns = ("--text-column", "first", "--pair-column", "second")
    run("finetune", encoder, "--task", "pair", *TUNED, *files, *columns, "--epochs", 2, "--out", tmp_path / "tuned")
    (ours,) = (tmp_path / "tuned" / "pair").glob("lr-*-seed-0")
    answered = run("predict", ours, tmp_path / "dev.tsv", *columns, "--json", "--no-score").stdout.splitlines()
    run("convert", "--to", "hf", ours, tmp_path / "hf", "--words", words())
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "hf").eval()
    encoded = tokenizer([a for a, _, _ in dev], [b for _, b, _ in dev], padding=True, return_tensors="pt")
    first = tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
    assert first == ["<s>", *cut(dev[0][0]), "</s>", "</s>", *cut(dev[0][1]), "</s>"]
    with torch.no_grad():
        shares = model(**encoded).logits.softmax(1)
    assert shares[:, 0].std() > 1e-3, "too flat to tell anything"
    for line, share in zip(answered, shares, strict=True):
        theirs = {model.config.id2label[i]: float(share[i]) for i in range(len(share))}
        assert json.loads(line)["probabilities"] == pytest.approx(theirs, abs=1e-5)


@pytest.fixture(scope="module")
def exported(run, encoders, tmp_path_factory):
    """Exports the tokenizer with every word of the text in TEXTS and of random texts."""
    folder = tmp_path_factory.mktemp("exported")
    list_of_words = sorted({word for text in [*TEXTS, *random_texts(1500, 1)] for word in cut(text)})
    (folder / "words.txt").write_bytes("".join(word + "\n" for word in list_of_words).encode())
    run("convert", "--to", "hf", encoders("hash-proj"), folder / "hf", "--words", folder / "words.txt")
    return transformers.AutoTokenizer.from_pretrained(folder / "hf")


def pieces(tokenizer, text):
    """Returns the tokens of a text, "<unk>" for words without a row."""
    encoded = tokenizer(text, add_special_tokens=False)
    return tokenizer.convert_ids_to_tokens(encoded["input_ids"])


def test_text_is_cut_as_headshare_does(exported):
    for text in [*TEXTS, "ΟΔΟΣ ΑΣ'Α ΑΣ' Σ ΣΣ", "a\x1cb\x85c", "<s> <mask>", *random_texts(1500, 1)]:
        known = exported.get_vocab()
        assert pieces(exported, text) == [word if word in known else "<unk>" for word in cut(text)], text


def test_real_text_is_cut_as_headshare_does(exported, data):
    """Cuts WikiText-2's test part: what is between the words does not depend on the list."""
    path = data / "wikitext-2" / "test.txt.gz"
    if not path.is_file():
        pytest.skip(f"{path} is missing")
    with gzip.open(path, "rt") as lines:
        texts = [line for line in itertools.islice(lines, 4000) if line.strip()]
    assert len(texts) > 2000
    known = exported.get_vocab()
    for text in texts:
        assert pieces(exported, text) == [word if word in known else "<unk>" for word in cut(text)], text


def test_every_character_is_of_the_class_it_has_in_python(exported):
    """Checks every character of Unicode 14, which every program here knows."""
    draw = random.Random(0)
    characters = [chr(point) for point in range(0x20, 0x110000) if not 0xD800 <= point < 0xE000]
    split = exported.backend_tokenizer
    known = [one for one in characters if unicodedata.category(one) not in ("Cn", "Co")]
    for one in draw.sample(known, 20000):
        text = f"a{one}b {one}"
        found = [word for word, _ in split.pre_tokenizer.pre_tokenize_str(split.normalizer.normalize_str(text))]
        assert found == cut(text), hex(ord(one))


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "holds no word"),
        (b"\n  \n\t\n", "holds no word"),
        (b"good\ndon't\n", ":2: 'don't' is not one word: it is cut into 'don', ''', 't'; give each"),
        (b"two words\n", ":1: 'two words' is not one word: it is cut into 'two', 'words'; give each"),
        (b"a b c d e f g\n", "'d', 'e', ...; give each"),
        (b"good\n" + b"x" * 10_000_000 + b"\n", ":2: the line has 10000000 bytes"),
        (b"good\nb\xe9d\n", ":2"),
        (None, "is a directory"),
    ],
)
def test_lists_that_are_none(run, tmp_path, encoders, content, says):
    path = tmp_path / "words.txt"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    done = run("convert", "--to", "hf", encoders("hash-proj"), tmp_path / "hf", "--words", path, check=False)
    assert done.returncode == 1 and says in done.stderr and "words.txt" in done.stderr, done.stderr
    assert len(done.stderr) < 1000
    assert [one.name for one in tmp_path.iterdir()] == ["words.txt"]


def test_words_that_repeat_get_one_row(run, tmp_path, encoders, words):
    done = run("convert", "--to", "hf", encoders("hash-proj"), tmp_path / "hf", "--words", words(["The", "the", "", "THE", "fox\r"]))
    assert "repeats words in 2 lines" in done.stderr and "vocabulary 7" in done.stdout
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert tokenizer.get_vocab() == {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4, "the": 5, "fox": 6}
    assert tokenizer("The FOX jumps")["input_ids"] == [0, 5, 6, 3, 2]
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "hf").model_max_length == 48


def test_a_list_is_wanted_and_wanted_only_there(run, tmp_path, encoders, words):
    done = run("convert", "--to", "hf", encoders("hash-proj"), tmp_path / "hf", check=False)
    assert done.returncode == 1 and "hashes words" in done.stderr and "--words FILE" in done.stderr
    wordpiece = encoders("table", "--vocabulary-size", 120, tokenizer="wordpiece")
    done = run("convert", "--to", "hf", wordpiece, tmp_path / "hf", "--words", words(), check=False)
    assert done.returncode == 1 and "has a vocabulary" in done.stderr
    rotary = encoders("hash-proj", "--positions", "rotary")
    done = run("convert", "--to", "hf", rotary, tmp_path / "hf", "--words", words(), check=False)
    assert done.returncode == 1 and "positions are not learned" in done.stderr
    assert not (tmp_path / "hf").exists()
    printed = run("convert", "--to", "hf", encoders("hash-proj"), tmp_path / "hf", "--words", words(), "--dry-run").stdout
    assert "nothing was written" in printed and not (tmp_path / "hf").exists()


def test_wordpiece_encoders_of_three_classes(run, tmp_path, encoders, build_dir):
    """Exports encoders with WordPiece; they have a class of transformers too."""
    ours = encoders("table", "--vocabulary-size", 120, tokenizer="wordpiece")
    run("convert", "--to", "hf", ours, tmp_path / "hf")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    model = transformers.AutoModelForTokenClassification.from_pretrained(tmp_path / "hf").eval()
    encoded = tokenizer("the number one rises", return_tensors="pt")
    (tmp_path / "input.json").write_text(json.dumps({"ids": encoded["input_ids"].tolist()}))
    tool = build_dir / "obj" / "models" / "model_tool"
    run_command([tool, ours, tmp_path / "input.json", tmp_path / "out.safetensors"])
    with torch.no_grad():
        difference = model(**encoded).logits - load_file(tmp_path / "out.safetensors")["three_way"]
    assert difference.abs().max() < 1e-5

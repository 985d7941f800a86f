"""Tests what `convert --to hf` writes, loaded as users load it: Auto classes and pipelines answer as headshare does."""

import json
import random

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

NUMBERS = "one two three four five six seven eight nine".split()
SMALL = ["--layers", 2, "--d-model", 32, "--heads", 4, "--context", 32, "--batch-size", 16, "--threads", 1]
TUNED = ["--seeds", 1, "--batch-size", 16, "--learning-rate", 3e-3, "--threads", 1]


def pairs(count, seed):
    """Returns two numbers in words and whether they rise: which is first decides."""
    draw = random.Random(seed)
    for _ in range(count):
        a, b = draw.sample(range(len(NUMBERS)), 2)
        yield f"the number {NUMBERS[a]}", NUMBERS[b], "rises" if a < b else "falls"


def table(path, rows):
    path.write_text("first\tsecond\tlabel\n" + "".join("\t".join(map(str, row)) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def encoder(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    texts = "".join(f"{a} then {b}, it {label}. Who jumps? The foxes jump.\n" for a, b, label in pairs(600, 0))
    (folder / "text.txt").write_text(texts)
    flags = ["--task", "mlm", "--bert", "--scheme", "mha", "--vocabulary-size", 120, "--steps", 60, "--learning-rate", 3e-3]
    cache = {"HEADSHARE_CACHE": str(folder / "cache")}
    text = ("--text", folder / "text.txt", "--init-deviation", 0.1)
    run("train", *text, "--out", folder / "run", *flags, *SMALL, env=cache)
    return folder / "run"


@pytest.fixture
def tuned(run, encoder, tmp_path):
    """Fine-tunes, and returns our answers' folder and the export of that model."""

    def tune(task, *flags):
        run("finetune", encoder, "--task", task, *TUNED, *flags, "--out", tmp_path / task)
        (ours,) = (tmp_path / task / task).glob("lr-*-seed-0")
        run("convert", "--to", "hf", ours, tmp_path / "hf")
        return ours, tmp_path / "hf"

    return tune


def tune_on_pairs(tuned, tmp_path, task, rows):
    """Returns our predictions of the held-out pairs in the order of the table, the pairs, and the export."""
    train, dev = list(rows(600, 1)), list(rows(200, 2))
    files = ("--train", table(tmp_path / "train.tsv", train), "--validation", table(tmp_path / "dev.tsv", dev))
    columns = ("--text-column", "first", "--pair-column", "second")
    ours, exported = tuned(task, *files, *columns, "--epochs", 6)
    lines = (ours / "validation.tsv").read_text().splitlines()[1:]
    return [line.split("\t")[1] for line in lines], dev, exported


@pytest.fixture
def classified(tuned, tmp_path):
    found = tune_on_pairs(tuned, tmp_path, "pair", pairs)
    assert min(map(found[0].count, ("rises", "falls"))) > 20, "nearly one answer to everything shows nothing"
    return found


def test_pairs_have_their_segments(classified):
    """Compares each of ours with one of theirs: the auto classes, and the pipeline for pairs."""
    ours, dev, exported = classified
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(exported).eval()
    encoded = tokenizer([a for a, _, _ in dev], [b for _, b, _ in dev], padding=True, return_tensors="pt")
    assert encoded["token_type_ids"].sum(1).min() > 0, "the second text of every pair is segment 1"
    with torch.no_grad():
        scores = model(**encoded).logits
    labels = [model.config.id2label[place] for place in scores.argmax(1).tolist()]
    assert [a == b for a, b in zip(labels, ours, strict=True)].count(False) == 0

    classify = transformers.pipeline("text-classification", model=str(exported), device="cpu")
    answers = classify([{"text": a, "text_pair": b} for a, b, _ in dev])
    assert [answer["label"] for answer in answers] == ours
    shares = scores.softmax(1).max(1).values.tolist()
    assert [answer["score"] for answer in answers] == pytest.approx(shares, abs=1e-5)


def test_the_export_still_answers_after_a_way_back(run, classified, tmp_path):
    """Converts into headshare and out again; transformers gives the same scores."""
    _, dev, exported = classified
    run("convert", "--from", "hf", exported, tmp_path / "again")
    run("convert", "--to", "hf", tmp_path / "again", tmp_path / "back")
    given = [{"text": a, "text_pair": b} for a, b, _ in dev[:20]]
    answers = [transformers.pipeline("text-classification", model=str(one))(given) for one in (exported, tmp_path / "back")]
    assert answers[0] == answers[1]


def test_numbers_for_pairs(tuned, tmp_path):
    def differences(count, seed):
        return ((a, b, float(NUMBERS.index(a.split()[-1]) < NUMBERS.index(b))) for a, b, _ in pairs(count, seed))

    ours, dev, exported = tune_on_pairs(tuned, tmp_path, "regress", differences)
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(exported).eval()
    encoded = tokenizer([a for a, _, _ in dev], [b for _, b, _ in dev], padding=True, return_tensors="pt")
    with torch.no_grad():
        numbers = model(**encoded).logits[:, 0]
    assert numbers.std() > 0.05, "too flat to show anything"
    assert numbers.tolist() == pytest.approx([float(one) for one in ours], abs=1e-4)


def squad_file(path, count, start=0):
    articles = []
    for i in range(start, start + count):
        context = f"the number {NUMBERS[i % 9]} rises then {NUMBERS[i // 9 % 9]} falls. The foxes jump."
        answer = {"text": NUMBERS[i % 9], "answer_start": 11}
        qa = {"id": f"q{i}", "question": "Who rises?", "answers": [answer]}
        articles.append({"title": f"t{i}", "paragraphs": [{"context": context, "qas": [qa]}]})
    path.write_text(json.dumps({"version": "1.1", "data": articles}))
    return path


def best_answer(tokenizer, model, question, context, longest=30):
    """Returns the text between the best start and end, as every reader of SQuAD finds it."""
    encoded = tokenizer(question, context, return_offsets_mapping=True, return_tensors="pt")
    offsets = encoded.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        out = model(**encoded)
    places = [i for i, text in enumerate(encoded.sequence_ids(0)) if text == 1]
    spans = [(i, j) for i in places for j in places if i <= j < i + longest]
    start, end = max(spans, key=lambda span: float(out.start_logits[0, span[0]] + out.end_logits[0, span[1]]))
    return context[offsets[start][0] : offsets[end][1]]


def test_answers_in_texts(tuned, tmp_path):
    dev = squad_file(tmp_path / "dev.json", 30, start=40)
    ours, exported = tuned("squad", "--train", squad_file(tmp_path / "train.json", 40), "--validation", dev, "--epochs", 3)
    expected = json.loads((ours / "validation.json").read_text())
    assert len(set(expected.values())) > 2, "one answer to everything shows nothing"
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(exported).eval()
    for article in json.loads(dev.read_text())["data"]:
        (paragraph,) = article["paragraphs"]
        (question,) = paragraph["qas"]
        found = best_answer(tokenizer, model, question["question"], paragraph["context"])
        assert found == expected[question["id"]], question["id"]


def test_the_pipeline_fills_masks_as_headshare_does(run, encoder, tmp_path):
    run("convert", "--to", "hf", encoder, tmp_path / "hf")
    fill = transformers.pipeline("fill-mask", model=str(tmp_path / "hf"), device="cpu")
    for text in ("The [MASK] jump.", "the number [MASK] then two, it [MASK]."):
        ours = json.loads(run("fill", encoder, text, "--json", "--top-k", 5).stdout)["masks"]
        theirs = fill(text, top_k=5)
        theirs = theirs if isinstance(theirs[0], list) else [theirs]  # a list for each mask, where there are several
        assert len(ours) == len(theirs) == text.count("[MASK]")
        for mine, their in zip(ours, theirs, strict=True):
            assert [one["token"] for one in mine] == [one["token"] for one in their]
            assert [one["probability"] for one in mine] == pytest.approx([one["score"] for one in their], abs=1e-5)


def test_an_encoder_of_one_segment(run, encoder, tmp_path):
    """Exports an encoder that has no row for a second segment; transformers is not told to ask for one."""
    flags = ["--task", "mlm", "--bert", "--scheme", "mha", "--vocabulary-size", 120, "--steps", 1, "--segments", 1]
    text = encoder.parent / "text.txt"
    run("train", "--text", text, "--out", tmp_path / "run", *flags, *SMALL, env={"HEADSHARE_CACHE": str(tmp_path / "cache")})
    run("convert", "--to", "hf", tmp_path / "run", tmp_path / "hf")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    encoded = tokenizer("the number one", "two", return_tensors="pt")
    assert set(encoded) == {"input_ids", "attention_mask"}
    transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "hf")(**encoded)


def test_a_trained_decoder_goes_on_with_text_as_transformers_does(run, encoder, tmp_path):
    flags = ["--scheme", "mha", "--projection-bias", "--vocabulary-size", 300, "--steps", 60, "--learning-rate", 3e-3]
    text = ("--text", encoder.parent / "text.txt", "--init-deviation", 0.1)
    run("train", *text, "--out", tmp_path / "run", *flags, *SMALL, env={"HEADSHARE_CACHE": str(tmp_path / "cache")})
    run("convert", "--to", "hf", tmp_path / "run", tmp_path / "hf")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf").eval()
    assert model.config.eos_token_id == tokenizer.eos_token_id == 0
    prompt = "one then"
    ours = run("generate", tmp_path / "run", "--prompt", prompt, "--max-new-tokens", 12, "--greedy", "--echo").stdout
    given = tokenizer(prompt, return_tensors="pt")
    theirs = tokenizer.decode(model.generate(**given, max_new_tokens=12, do_sample=False)[0])
    assert ours.strip() == theirs.strip() and len(theirs) > len(prompt)

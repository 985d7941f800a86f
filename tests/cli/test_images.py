"""Tests models of images: a vision transformer learns small images, is scored, compared, fine-tuned, labels files, shows
where its heads look, and refuses files that are damaged."""

import base64
import io
import json
import random
import struct

import pytest
from PIL import Image

TINY = ("--layers", 1, "--d-model", 16, "--heads", 2, "--threads", 1, "--batch-size", 16, "--patch-size", 4, "--crop-padding", 0)
SIDE = 8


def idx(kind, sizes, numbers):
    return struct.pack(f">HBB{len(sizes)}I", 0, kind, len(sizes), *sizes) + bytes(numbers)


def image(label, draw):
    """One of three halves of the image is bright: the left, the right or none."""
    bright = {0: range(SIDE // 2), 1: range(SIDE // 2, SIDE), 2: ()}[label]
    return [draw.randrange(180, 256) if column in bright else draw.randrange(60) for _ in range(SIDE) for column in range(SIDE)]


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    folder, draw = tmp_path_factory.mktemp("halves"), random.Random(1)
    for name, count in (("train", 240), ("t10k", 60)):
        labels = [i % 3 for i in range(count)]
        pixels = [number for label in labels for number in image(label, draw)]
        (folder / f"{name}-images-idx3-ubyte").write_bytes(idx(8, (count, SIDE, SIDE), pixels))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx(8, (count,), labels))
    return folder


@pytest.fixture(scope="module")
def trained(run, halves, tmp_path_factory):
    """Returns a run, and what `train` printed."""
    out = tmp_path_factory.mktemp("trained") / "run"
    steps = ("--steps", 60, "--learning-rate", 0.01)
    return out, run("train", "--task", "image", "--images", halves, "--out", out, *TINY, *steps)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Returns a folder for each of two classes with images of 12 x 10 pixels: PNG files in colour and a grey JPEG file."""
    folder, draw = tmp_path_factory.mktemp("pictures"), random.Random(2)
    for label, name in ((0, "left"), (1, "right")):
        (folder / name).mkdir()
        for number in range(24):
            picture = Image.new("L", (SIDE, SIDE))
            picture.putdata(image(label, draw))
            picture = picture.resize((12, 10))
            kind = "jpg" if number == 0 else "png"
            picture.convert("L" if number < 2 else "RGB").save(folder / name / f"{number:02}.{kind}")
    return folder


def lines_of(text):
    return [line.split("\t") for line in text.splitlines()]


def test_a_model_learns_halves_and_is_scored(run, halves, trained):
    out, done = trained
    assert "960 images in" in done.stdout and "images/s" in done.stdout and "tokens" not in done.stdout
    trained = json.loads((out / "result.json").read_text())
    assert trained["steps"] == 60
    assert len((out / "outputs.txt").read_text().splitlines()) == 60, "a class for each test image"
    scored = json.loads(run("evaluate", out, "--images", halves, "--json", "--threads", 1).stdout)
    assert scored["accuracy"] > 0.9, "guessing gives a third"
    assert scored["loss"] == pytest.approx(trained["test_loss"], rel=1e-5)


def test_schemes_are_compared_by_accuracy(run, halves, tmp_path):
    out = tmp_path / "comparison"
    schemes = ("--schemes", "mha,sha", "--seeds", 1, "--steps", 20, "--learning-rate", 0.01)
    run("compare", "--task", "image", "--images", halves, "--out", out, *TINY, *schemes)
    results = json.loads((out / "results.json").read_text())
    assert results["subject"]["measure"] == "accuracy"
    assert {row["scheme"] for row in results["rows"]} == {"mha", "sha"}
    page = (out / "report.html").read_text()
    assert "Tell the classes of images" in page and "accuracy" in page
    assert "images/s" in page and "tokens/s" not in page
    examples = results["subject"]["examples"]
    assert [one["item"] for one in examples] == [5 * i for i in range(12)]
    assert page.count('<img class="picture" src="data:image/png;base64,') == 12
    pixels = (halves / "t10k-images-idx3-ubyte").read_bytes()[16:]
    for one in examples:
        picture = Image.open(io.BytesIO(base64.b64decode(one["image"])))
        assert picture.mode == "L" and picture.tobytes() == pixels[one["item"] * SIDE * SIDE :][: SIDE * SIDE]
        assert one["reference"] == str(one["item"] % 3)
    for cell in results["cells"]:
        told = (out / cell["model"]).parents[1].joinpath("outputs.txt").read_text().splitlines()
        assert cell["examples"] == [told[one["item"]] for one in examples]


def test_a_converted_model_is_sampled_scored_and_healed(run, refused, halves, tmp_path):
    steps = ("--steps", 60, "--learning-rate", 0.01)
    run("train", "--task", "image", "--images", halves, "--out", tmp_path / "run", *TINY, *steps)
    sizes = ("--to", "collaborative", "--key-width", 2)
    sample = ("--sample-images", halves, "--sample-tokens", 250)
    text = run("convert", tmp_path / "run", tmp_path / "narrow", *sizes, *sample, "--score-images", halves).stdout
    assert "accuracy on the scored images: " in text and "last hidden states on the sample: changed by" in text
    report = json.loads(run("convert", tmp_path / "run", tmp_path / "again", *sizes, *sample, "--score-images", halves, "--json").stdout)
    assert report["layers"][0]["output_change"] > 0 and report["divergence"] >= 0 and report["loss_before"] is None
    scored = json.loads(run("evaluate", tmp_path / "narrow", "--images", halves, "--json", "--threads", 1).stdout)
    assert report["scores_after"]["accuracy"] == scored["accuracy"] > 0.3
    heal = ("--task", "image", "--images", halves, "--start-from", tmp_path / "narrow", "--threads", 1, "--batch-size", 16)
    healed = json.loads(run("train", *heal, "--steps", 20, "--out", tmp_path / "healed", "--json").stdout)
    assert healed["test_loss"] <= scored["loss"] + 0.05 and healed["steps"] == 20
    assert json.loads(run("info", tmp_path / "healed", "--json").stdout)["options"]["scheme"] == "collaborative"
    convert = ("convert", tmp_path / "run", tmp_path / "no", *sizes)
    assert "raise --sample-tokens" in refused(1, *convert, "--sample-images", halves, "--sample-tokens", 4)
    assert f"--score-images {halves / 'x'} is no directory" in refused(1, *convert, "--score-images", halves / "x")
    assert "give --sample-images and --score-images" in refused(1, *convert, "--sample-text", halves / "x.txt")


def test_damaged_files_and_wrong_options_are_named(refused, halves, tmp_path):
    def train(code, folder, *flags):
        return refused(code, "train", "--task", "image", "--images", folder, "--out", tmp_path / "no", *TINY, "--steps", 1, *flags)

    cut = tmp_path / "cut"
    cut.mkdir()
    for one in halves.iterdir():
        (cut / one.name).write_bytes(one.read_bytes())
    (cut / "train-images-idx3-ubyte").write_bytes((halves / "train-images-idx3-ubyte").read_bytes()[:-10])
    assert "train-images-idx3-ubyte" in train(1, cut)
    assert "nowhere" in train(1, tmp_path / "nowhere")
    assert "--images" in refused(1, "train", "--task", "image", "--out", tmp_path / "no")
    assert "patch" in train(2, halves, "--patch-size", 3)
    assert not (tmp_path / "no").exists()


def test_predict_labels_files_as_evaluate_scores_them(run, halves, trained, tmp_path):
    out, _ = trained
    accuracy = json.loads((out / "result.json").read_text())["test_accuracy"]
    heading, *rows = lines_of(run("predict", out, halves / "t10k-images-idx3-ubyte", "--threads", 1).stdout)
    assert heading == ["image", "prediction", "probability"]
    assert [row[0] for row in rows] == [f"{halves}/t10k-images-idx3-ubyte[{i}]" for i in range(60)]
    assert sum(row[1] == str(i % 3) for i, row in enumerate(rows)) / 60 == pytest.approx(accuracy)
    pixels = (halves / "t10k-images-idx3-ubyte").read_bytes()[16:]
    for number in range(3):
        picture = Image.frombytes("L", (SIDE, SIDE), pixels[number * SIDE * SIDE :][: SIDE * SIDE])
        picture.save(tmp_path / f"{number}.png")
    as_files = run("predict", out, tmp_path, "--json", "--threads", 1).stdout.splitlines()
    for number, line in enumerate(as_files):
        one = json.loads(line)
        assert one["image"] == str(tmp_path / f"{number}.png") and one["prediction"] == rows[number][1]
        assert one["probability"] == pytest.approx(float(rows[number][2]), abs=2e-6)
        chances = [each["probability"] for each in one["classes"]]
        assert len(chances) == 3 and chances == sorted(chances, reverse=True) and sum(chances) == pytest.approx(1)
    assert len(as_files) == 3
    two = lines_of(run("predict", out, tmp_path / "0.png", tmp_path / "1.png", "--top", 2).stdout)
    assert [row[0] for row in two[1:]] == [str(tmp_path / f"{i}.png") for i in (0, 0, 1, 1)]
    answers = tmp_path / "answers.tsv"
    assert "rows    3" in run("predict", out, *sorted(tmp_path.glob("*.png")), "--out", answers).stdout
    assert len(lines_of(answers.read_text())) == 4


def test_predict_names_what_it_cannot_read(run, refused, trained, tmp_path):
    out, _ = trained
    grey = Image.new("L", (9, 9), 200)
    grey.save(tmp_path / "good.png")
    grey.convert("RGB").save(tmp_path / "colour.png")
    grey.convert("CMYK").save(tmp_path / "print.jpg")
    (tmp_path / "cut.png").write_bytes((tmp_path / "good.png").read_bytes()[:50])
    (tmp_path / "text.png").write_text("no image")
    done = run("predict", out, tmp_path, check=False)
    assert done.returncode == 1 and "4 of 5 images cannot be read" in done.stderr
    assert [row[0] for row in lines_of(done.stdout)[1:]] == [str(tmp_path / "good.png")]
    for name, reason in (("colour", "3 channels"), ("print", "CMYK"), ("cut", "cut short"), ("text", "no PNG or JPEG")):
        [line] = [line for line in done.stderr.splitlines() if f"/{name}." in line]
        assert reason in line
    assert "none.png does not exist" in refused(1, "predict", out, tmp_path / "none.png")
    assert "--text-column" in refused(2, "predict", out, tmp_path / "good.png", "--text-column", "x")
    weights = next(out.rglob("model.safetensors"))
    assert "is read by" in refused(1, "predict", out, tmp_path / "good.png", "--out", tmp_path / "good.png", "--overwrite")
    assert weights.is_file()


def test_info_names_the_verbs_of_images(run, trained):
    told = run("info", trained[0]).stdout
    for verb in ("predict MODEL IMAGES", "evaluate MODEL --images DIR", "finetune MODEL --images DIR", "analyze MODEL"):
        assert verb in " ".join(told.split())
    assert '["0","1","2"]' in told and "tokenizer" not in told
    assert json.loads(run("info", trained[0], "--json").stdout)["task_head"]["labels"] == ["0", "1", "2"]


def test_finetune_makes_a_head_and_positions_for_other_images(run, refused, trained, halves, pictures, tmp_path):
    out, runs = tmp_path / "tuned", ("--seeds", 2, "--epochs", 6, "--batch-size", 8, "--learning-rate", "0.01,1e-9")
    grey = tmp_path / "grey"
    for picture in pictures.glob("*/*"):
        (grey / picture.parent.name).mkdir(parents=True, exist_ok=True)
        Image.open(picture).convert("L").save(grey / picture.parent.name / f"{picture.stem}.png")
    flags = ("finetune", trained[0], "--images", grey, "--image-size", 12, "--image-validation-fraction", 0.25, *runs)
    done = run(*flags, "--out", out, "--threads", 1)
    assert "the head is new: the model told 3 classes apart, and these are 2" in done.stderr
    assert "positions of 2 x 2 patches are interpolated to 3 x 3" in done.stderr
    assert "image" in done.stdout and "accuracy" in done.stdout
    [task] = json.loads((out / "results.json").read_text())["tasks"]
    assert task["task"] == "image" and task["learning_rate"] == 0.01 and task["train_examples"] == 36
    assert task["parts"][0]["goal"]["mean"] > 0.9
    model = out / "image" / "lr-0.01-seed-0"
    assert run("predict", model, grey / "left" / "03.png").stdout.splitlines()[1].split("\t")[1] == "left"
    told = [row[1] for row in lines_of((model / "validation.tsv").read_text())[1:]]
    assert len(told) == 12 and set(told) <= {"left", "right"}
    before = (out / "results.json").read_text()
    run("finetune", "--resume", "--out", out)
    assert (out / "results.json").read_text() == before
    assert "3 channels" in refused(1, "finetune", trained[0], "--images", pictures, "--out", tmp_path / "no")
    assert "--max-length" in refused(2, *flags, "--max-length", 64, "--out", tmp_path / "no")
    assert "--images DIR" in refused(2, "finetune", trained[0], "--task", "classify", "--out", tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_analyze_shows_where_heads_look(run, refused, trained, halves, tmp_path):
    picture = tmp_path / "one.png"
    Image.new("L", (SIDE, SIDE), 90).save(picture)
    page = tmp_path / "heads.html"
    run("analyze", trained[0], "--images", picture, "--html", page)
    html = page.read_text()
    assert "Where heads look in images" in html and html.count("layer 1, head") == 2
    found = json.loads(run("analyze", trained[0], "--images", picture, "--json").stdout)["images"]
    assert [one["image"] for one in found] == [str(picture)]
    for head in found[0]["layers"][0]:
        assert len(head["patches"]) == 4 and head["tokens"] + sum(head["patches"]) == pytest.approx(1, abs=1e-5)
    assert "--html" in refused(2, "analyze", trained[0], "--images", picture)
    assert "gone.png" in refused(1, "analyze", trained[0], "--images", tmp_path / "gone.png", "--json")

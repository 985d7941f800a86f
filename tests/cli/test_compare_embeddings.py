"""Tests compare --embeddings: token embeddings as a second axis, pre-trained and fine-tuned."""

import json

import pytest
from test_finetune import table, texts
from training import one_line_error, own_cache  # noqa: F401 (a fixture)

pytestmark = pytest.mark.slow

SMALL = ["--layers", 1, "--d-model", 32, "--heads", 2, "--context", 32, "--batch-size", 8, "--threads", 1]
SMALL += ["--vocabulary-size", 60, "--steps", 20, "--learning-rate", 3e-3]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{one}\n" for one, _ in texts(300)))
    return path


def compared(run, *arguments):
    return json.loads(run("compare", "--json", *arguments).stdout)


def test_pre_training(run, text, tmp_path):
    out = tmp_path / "out"
    flags = ("--task", "three-way", "--text", text, "--schemes", "mha,mhe_mul", "--test-fraction", 0.2)
    results = compared(run, *flags, "--embeddings", "wordpiece,hash-md-proj,hash-lsh-emb", *SMALL, "--out", out)
    assert results["complete"] and results["subject"]["name"] == "three-way"
    names = [one["variant"] for one in results["rows"]]
    assert names == [f"{s}+{e}" for s in ("mha", "mhe_mul") for e in ("wordpiece", "hash-md-proj", "hash-lsh-emb")]
    rows = dict(zip(names, results["rows"]))
    assert rows["mha+hash-md-proj"]["embedding_parameters"] == 128 * 32 + 6 * 32
    assert rows["mha+hash-lsh-emb"]["embedding_parameters"] == 50_265 * 32
    # WordPieces are compared with WordPieces: losses of words are of other tokens.
    quality = {name: row["quality"]["mean"] for name, row in rows.items()}
    for name, row in rows.items():
        if not name.endswith("wordpiece"):
            assert row["prr"]["value"] is None and row["table_prr"]["value"] is None and row["minus_reference"] is None
            assert row["why_no_difference"] == "losses of other tokens than those of mha+wordpiece"
            continue
        assert row["table_prr"]["value"] == pytest.approx(100)
        assert row["prr"]["value"] == pytest.approx(100 * (2 - quality[name] / quality["mha+wordpiece"]))
    assert rows["mhe_mul+wordpiece"]["minus_reference"]["interval_over_blocks"] is not None
    assert results["headline"].startswith("No embedding is best by these losses")
    # Only hashed words have a share of words that training does not have; it is the same for both families.
    shares = [rows[f"mha+{e}"]["scores"]["unseen-types"]["mean"] for e in ("hash-md-proj", "hash-lsh-emb")]
    assert shares[0] == shares[1] and 0 <= shares[0] < 1
    assert "unseen-types" not in rows["mha+wordpiece"]["scores"]
    printed = " ".join(run("report", out).stdout.split())
    for word in ("Token embeddings", "mhe_mul+hash-lsh-emb", "against the table"):
        assert word in printed, word
    assert "* best" not in printed
    assert "Token embeddings" in (out / "report.html").read_text()
    again = compared(run, "--resume", "--out", out)
    assert again["rows"] == results["rows"]


def test_fine_tuned(run, text, tmp_path):
    table(tmp_path / "train.tsv", 32)
    table(tmp_path / "dev.tsv", 16)
    with (tmp_path / "dev.tsv").open("a") as dev:
        dev.writelines(f"zebra{i} {one}\t{label}\n" for i, (one, label) in enumerate(texts(4)))
    out = tmp_path / "out"
    data = ("--finetune-train", tmp_path / "train.tsv", "--finetune-validation", tmp_path / "dev.tsv")
    flags = ("--task", "classify", "--text", text, *data, "--finetune-epochs", 2, "--finetune-learning-rate", 3e-3)
    embeddings = ("--schemes", "mha", "--embeddings", "wordpiece,hash-md-add")
    results = compared(run, *flags, *embeddings, *SMALL, "--out", out)
    assert [row["variant"] for row in results["rows"]] == ["mha+wordpiece", "mha+hash-md-add"]
    assert json.loads((out / "encoders" / "results.json").read_text())["subject"]["name"] == "three-way"
    coverages = [cell["tasks"][0]["coverage"] for cell in results["cells"]]
    for one in coverages:
        assert one["rows"] == 20 and one["unseen_rows"] == 4 and one["unseen_types"] == 4 and one["unseen_words"] == 4
        assert 0 <= one["unseen_score"] <= 100 and one["cut_rows"] == 0
    assert results["rows"][1]["tasks"][0]["coverage"]["unseen_score"]["count"] == 1
    printed = " ".join(run("report", out).stdout.split())
    assert "occur in no training example" in printed
    assert "Classify, rows with unseen words" in (out / "report.html").read_text()
    # The encoders serve another comparison.
    again = tmp_path / "again"
    short = ("--task", "classify", *data, "--finetune-epochs", 2, "--finetune-learning-rate", 3e-3, "--threads", 1)
    other = compared(run, *short, "--encoders", out / "encoders", *embeddings, "--out", again)
    assert [row["quality"] for row in other["rows"]] == [row["quality"] for row in results["rows"]]
    # Pieces of words need longer rows than words.
    cut = ("--finetune-max-length", 12, "--encoders", out / "encoders", *embeddings, "--out", tmp_path / "cut")
    pieces, words = [cell["tasks"][0]["coverage"]["cut_rows"] for cell in compared(run, *short, *cut)["cells"]]
    assert pieces > words == 0
    printed = " ".join(run("report", tmp_path / "cut").stdout.split())
    assert "longer than --finetune-max-length and were cut" in printed


def test_refusals(run, refused, text, tmp_path):
    flags = ("--text", text, "--out", tmp_path / "out")
    error = refused(2, "compare", "--task", "mlm", "--embeddings", "all", *flags)
    one_line_error(error, "--task is mlm; use --task three-way")
    error = refused(2, "compare", "--task", "three-way", "--embeddings", "hash-md-prj", *flags)
    one_line_error(error, "there is no 'hash-md-prj' (did you mean 'hash-md-proj'?); there are all, wordpiece, hash-md-emb")
    hashed = ("--task", "three-way", "--embeddings", "hash-md-proj,trigram")
    error = refused(2, "compare", *hashed, "--vocabulary-size", 99, *flags)
    one_line_error(error, "--vocabulary-size, --min-count and --cased are for the embedding wordpiece")
    error = refused(2, "compare", *hashed, "--character-buckets", 99, *flags)
    one_line_error(error, "--character-buckets is for hash-characters, and no token embedding here is one")
    # Sizes of the preset that only a table reads are no mistake of the user.
    run("compare", *hashed, "--trigram-rows", 4000, *flags, "--schemes", "mha", "--dry-run")
    assert not (tmp_path / "out").exists()

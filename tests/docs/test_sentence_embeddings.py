"""Tests studies/sentence_embeddings and its tables: the measure against scikit-learn's, every unit of the work on a tiny encoder
of transformers, and tables of what is finished so far."""

import gzip
import importlib.machinery
import importlib.util
import json
import random
import statistics
import sys

import numpy
import pytest
import torch
import transformers
from conftest import ROOT
from sklearn.metrics import roc_auc_score

sys.path.insert(0, str(ROOT / "studies"))
import judging  # noqa: E402
import measuring  # noqa: E402
import paired_ranking  # noqa: E402
import sentence_embedding_tables  # noqa: E402

WORDS = [f"word{number}" for number in range(30)]


@pytest.fixture
def study(root, program, tmp_path, monkeypatch):
    """Returns the study of a tiny encoder, with few targets, and its files in a folder of the test."""
    monkeypatch.setattr(measuring, "PROGRAM", str(program))
    loader = importlib.machinery.SourceFileLoader("sentence_embeddings", str(root / "studies/sentence_embeddings"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("sentence_embeddings", loader))
    monkeypatch.setitem(sys.modules, "sentence_embeddings", module)  # dataclasses look their module up
    loader.exec_module(module)
    targets = [module.Target("random-keys"), module.Target("mla:16"), module.Target("gqa:2", ways=module.BOTH)]
    changes = dict(DATA=tmp_path / "glue", HOME=tmp_path / "state", OUT=tmp_path / "results.json", TARGETS=targets, REDRAWN=50)
    changes |= dict(COMPARISONS=[("mla:16", "gqa:2")], SIZES=("--layers", 1, "--d-model", 16, "--heads", 4, "--context", 32))
    changes |= dict(take_minilm=tiny_encoder, environment=lambda: {"processor": "P", "commit": "c"})
    for name, value in changes.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module.os, "nice", lambda _: 0)
    monkeypatch.setattr(sys, "argv", ["sentence_embeddings"])
    return module


def tiny_encoder(home):
    """Takes the place of take_minilm: writes a random encoder where MiniLM's would be."""
    folder = home / "package" / measuring.MINILM
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *WORDS]) + "\n")
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(1)
    sizes = dict(vocab_size=6 + len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32)
    config = transformers.BertConfig(**sizes, max_position_embeddings=32, initializer_range=0.3)
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    measuring.headshare("convert", folder, home / "imported", "--from", "hf")
    return {"package": "tiny"}


def write_pairs(data):
    """Writes both sets; every third pair shares its first text with the pair before."""
    draw = random.Random(1)
    headings = {"MRPC": "Quality\t#1 String\t#2 String\n", "QQP": "question1\tquestion2\tis_duplicate\n"}
    for folder, files in (("MRPC", ("train", "dev")), ("QQP", ("subset",))):
        (data / folder).mkdir(parents=True)
        for file in files:
            lines, one = [], ""
            for number in range(60):
                one = one if number % 3 == 2 else " ".join(draw.choices(WORDS, k=draw.randint(3, 9))) + "."
                other, label = " ".join(draw.choices(WORDS, k=5)), str(number % 2)
                lines.append("\t".join((label, one, other) if folder == "MRPC" else (one, other, label)) + "\n")
            with gzip.open(data / folder / f"{file}.tsv.gz", "wt", encoding="utf-8") as packed:
                packed.writelines([headings[folder], *lines])


def test_the_study_runs_and_goes_on(study):
    write_pairs(study.DATA)
    study.main()
    results = json.loads(study.OUT.read_text())
    assert results["agreement"]["largest_difference"] < 1e-5
    control, exact, *pooled = results["converted"]
    assert [cell["way"] for cell in pooled] == ["sample", "weights"] and len(results["comparisons"]) == 2
    assert control["lost"].keys() == {"qqp", "mrpc"} and control["cosine"] < 0.999
    assert exact["cosine"] == pytest.approx(1, abs=1e-9) and exact["lost"]["qqp"] == pytest.approx([0, 0], abs=0.2)
    assert (control["cache"], exact["cache"], pooled[0]["cache"]) == (32, 16, 16) and pooled[0]["share"] == 0.75
    assert pooled[0]["cosine"] < 0.9999 and pooled[0]["lost"]["qqp"][1] > 0
    one, other = (cell["lost"]["qqp"][0] for cell in pooled)
    assert results["comparisons"][0]["difference"]["qqp"][0] == pytest.approx(one - other)
    study.file_of("gqa-2-weights").unlink()
    before = study.file_of("gqa-2-sample").stat().st_mtime_ns
    study.main()
    assert json.loads(study.OUT.read_text()) == results, "a unit that is measured again gives the same"
    assert study.file_of("gqa-2-sample").stat().st_mtime_ns == before


def test_sample_and_scored_pairs_share_no_text(study):
    write_pairs(study.DATA)
    study.HOME.mkdir()
    found = study.write_parts()
    sample = set(study.sample_text().read_text().splitlines())
    pairs = json.loads((study.HOME / "pairs.json").read_text())
    assert len(sample) > 10 and found["qqp"]["pairs"] == len(pairs["qqp"]) > 45
    assert not sample & {pair[column] for some in pairs.values() for pair in some for column in study.TEXTS}
    groups = {}
    for pair in pairs["qqp"]:
        groups.setdefault(pair["one"], set()).add(pair["group"])
    assert all(len(of) == 1 for of in groups.values()) and found["qqp"]["groups"] < found["qqp"]["pairs"]


def test_embeddings_are_means_in_the_order_of_texts(study, monkeypatch):
    monkeypatch.setattr(study, "BATCH", 2)
    ids = [[1, 2, 3], [4, 5], [6, 7, 7], [9], [3, 4, 5]]
    found = study.mean_states(lambda batch: torch.nn.functional.one_hot(batch, 10).float(), ids)
    expected = numpy.array([numpy.bincount(one, minlength=10) / len(one) for one in ids])
    assert found == pytest.approx(expected / numpy.linalg.norm(expected, axis=1, keepdims=True))


def test_embeddings_that_differ_from_transformers_are_an_error(study, monkeypatch):
    write_pairs(study.DATA)
    study.HOME.mkdir()
    tiny_encoder(study.HOME)
    study.write_parts()
    monkeypatch.setattr(study, "CLOSE", 1e-12)
    with pytest.raises(SystemExit, match="differ by"):
        study.compare_with_transformers()


def test_areas_are_those_of_scikit_learn():
    draw = numpy.random.default_rng(1)
    scores, labels = draw.integers(0, 8, 40) / 8, draw.random(40) < 0.4  # with ties
    weights = draw.integers(0, 4, (5, 40))
    expected = [roc_auc_score(labels, scores, sample_weight=row) for row in weights]
    assert paired_ranking.areas(scores, labels, weights) == pytest.approx(expected, abs=1e-12)
    assert paired_ranking.area(scores, labels) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)


def test_groups_are_drawn_whole():
    groups = [3, 3, 5, 9, 9, 9]
    drawn = paired_ranking.redrawn(groups, 2000, seed=1)
    assert (drawn[:, 0] == drawn[:, 1]).all() and (drawn[:, 3] == drawn[:, 4]).all() and (drawn[:, 4] == drawn[:, 5]).all()
    assert (drawn[:, [0, 2, 3]].sum(1) == 3).all() and abs(drawn.mean() - 1) < 0.05


def test_more_comparisons_have_wider_intervals():
    alone = judging.judge_redrawn({"a": (1.0, 0.5)})["a"]
    assert alone.interval == pytest.approx((1 - 1.96 * 0.5, 1 + 1.96 * 0.5), abs=1e-3)
    assert alone.p == pytest.approx(2 * (1 - statistics.NormalDist().cdf(2)), rel=1e-6) and alone.direction == 1
    several = judging.judge_redrawn({name: (1.0, 0.5) for name in "abcd"})["a"]
    assert several.p == alone.p and several.direction == 0
    assert several.interval[1] - 1 == pytest.approx(statistics.NormalDist().inv_cdf(1 - 0.05 / 8) * 0.5)
    assert judging.judge_redrawn({"a": (0.0, 0.0)})["a"].p == 1


def cell(target, way, lost, cache, **more):
    layers = [{"output_change": 0.1 if way == "sample" and target != "random-keys" else None}] * 2
    return {"target": target, "way": way, "lost": {"qqp": lost} | more, "cache": cache, "share": 0.5, "cosine": 0.9, "layers": layers, "commit": "c0ffee"}


def test_tables_are_sorted_by_cache(tmp_path, monkeypatch):
    cells = [
        cell("mla --mean-latent-width 64", "sample", [-3.0, 0.2], 63.67),
        cell("collaborative --key-width 96", "weights", [-0.5, 0.01], 480),
        cell("lrkv:8", "sample", [-1.2, 0.9], 256),
        cell("lrkv:8", "weights", [-9.0, 0.5], 256),
        cell("random-keys", "sample", [-14.0, 1.0], 768, mrpc=[-0.8, 1.2]),
    ]
    comparison = {"ours": ["lrkv:8", "sample"], "theirs": ["lrkv:8", "weights"], "added_later": True, "difference": {"qqp": [7.8, 0.5]}}
    results = {"scored": ["qqp"], "scores": {"qqp": 86.0, "mrpc": 72.0}, "converted": cells, "comparisons": [comparison]}
    results |= {"environment": {"processor": "One"}, "parts": {name: {"pairs": 3001, "groups": 2698} for name in ("qqp", "mrpc")}}
    (tmp_path / "sentence-embeddings.json").write_text(json.dumps(results))
    monkeypatch.setattr(sentence_embedding_tables, "RESULTS", tmp_path)
    text = sentence_embedding_tables.converted_embeddings()
    control, collaborative, lrkv, blind, latent = text.splitlines()[2:7]
    assert control.startswith("| keys drawn at random | - | 768 | 50 % | - | 0.900 | -14.0 [") and control.endswith("↓ |")
    assert collaborative.startswith("| collaborative, width 96 | weights alone | 480 |") and collaborative.endswith("] |")  # too small
    assert lrkv.startswith("| `lrkv:8` | sample text | 256 | 50 % | 10 % |") and lrkv.endswith("] |") and blind.endswith("↓ |")
    assert latent.startswith("| `mla`, mean width 64 | sample text | 64 |") and latent.endswith("↓ |")
    assert "QQP: 86.0 before, 3,001 pairs in 2,698 groups. MRPC: 72.0 before" in text and "keys drawn at random -0.8 [-3.2, +1.6]" in text
    row = sentence_embedding_tables.compared_embeddings().splitlines()[2]
    assert row.startswith("| `lrkv:8`, sample text † | `lrkv:8`, weights alone | 256, 256 | 50 %, 50 % | +7.8 [") and row.endswith("↑ |")

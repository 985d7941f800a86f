"""Embeddings that read letters: hash-trigram against hashlib, hash-characters against transformers' CANINE."""

import hashlib
import json
import re

import pytest
from conftest import run_command

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

TEXT = "Hello, the naïve Straße! 日本語のテキスト 😀 -- x_1 ΟΔΟΣ anananan the listen silent " + "internationalisation" * 8


def words(text):
    return re.findall(r"\w+|[^\w\s]+", text.lower())


@pytest.fixture
def embedded(build_dir, run, tmp_path):
    """A model's tensors, and the vectors that its token embedding gives for the words of TEXT."""

    def compute(kind, *flags):
        (tmp_path / "text.txt").write_text(f"The foxes jump over lazy dogs. {TEXT}\n" * 40)
        out = tmp_path / "run"
        size = ("--layers", 1, "--d-model", 32, "--heads", 2, "--context", 16, "--init-deviation", 0.5)
        text = ("--tokenizer", "hash-md", "--token-embedding", kind, "--text", tmp_path / "text.txt", "--steps", 2)
        cache = {"HEADSHARE_CACHE": str(tmp_path / "cache")}
        run("train", "--task", "three-way", *size, *text, *flags, "--threads", 1, "--out", out, env=cache)
        (tmp_path / "input.json").write_text(json.dumps({"text": TEXT}))
        tool = build_dir / "obj" / "models" / "model_tool"
        checkpoint = next(path.parent for path in sorted(out.rglob("model.safetensors")))
        run_command([tool, checkpoint, tmp_path / "input.json", tmp_path / "out.safetensors"])
        tensors = safetensors.load_file(checkpoint / "model.safetensors")
        return tensors, safetensors.load_file(tmp_path / "out.safetensors")["embedded"][0]

    return compute


def assert_same(found, wanted):
    assert found.shape == wanted.shape and wanted.std() > 0.3, "too flat to tell anything"
    assert (found - wanted).abs().max() < 1e-5


def trigram_rows(trigram, hashes, rows):
    number = sum(byte * 256**place for place, byte in enumerate(trigram))
    picked = set()
    for k in range(hashes):
        attempts = (f"{number}_{k}_{j}".encode() for j in range(10_000))
        values = (int(hashlib.md5(attempt).hexdigest(), 16) % rows for attempt in attempts)
        picked.add(next(value for value in values if value not in picked))
    return picked


@pytest.mark.parametrize("hashes, rows", [(10, 8000), (10, 13), (3, 500)])
def test_trigrams(embedded, hashes, rows):
    tensors, found = embedded("hash-trigram", "--trigram-hashes", hashes, "--trigram-rows", rows)
    table = tensors["trigram_embedding"]
    assert table.shape == (rows, 32)
    wanted = []
    for word in words(TEXT):
        text = f" {word} ".encode()
        trigrams = {text[at : at + 3] for at in range(len(text) - 2)}
        picked = [row for trigram in trigrams for row in trigram_rows(trigram, hashes, rows)]
        wanted.append(table[picked].double().sum(0))
    assert_same(found.double(), torch.stack(wanted))


@pytest.mark.parametrize("buckets, longest", [(16384, 64), (77, 5)])
def test_characters(embedded, buckets, longest):
    transformers = pytest.importorskip("transformers")
    canine = pytest.importorskip("transformers.models.canine.modeling_canine")
    tensors, found = embedded("hash-characters", "--character-buckets", buckets, "--word-characters", longest)
    config = transformers.CanineConfig(hidden_size=32, num_hash_buckets=buckets)
    theirs = canine.CanineEmbeddings(config)
    assert config.num_hash_functions == 8 and transformers.CanineConfig().num_hash_buckets == 16384
    for k, slices in enumerate(tensors["character_embedding"].split(buckets)):
        getattr(theirs, f"HashBucketCodepointEmbedder_{k}").weight.data.copy_(slices)
    places = tensors["character_positions"].double()
    wanted = []
    for word in words(TEXT):
        codes = torch.tensor([ord(character) for character in word[:longest]])
        with torch.no_grad():
            vectors = theirs._embed_hash_buckets(codes, 32, 8, buckets).double()
        wanted.append((vectors * (1 + places[: len(codes)])).sum(0) / len(codes) ** 0.5)
    assert_same(found.double(), torch.stack(wanted))

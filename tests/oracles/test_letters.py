"""Tests embeddings that read letters: hash-trigram against hashlib, hash-characters against transformers' CANINE."""

import hashlib
import json
import re

import pytest
from conftest import run_command

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

TEXT = "Hello, the naïve Straße! 日本語のテキスト 😀 -- x_1 ΟΔΟΣ anananan the listen silent " + "internationalisation" * 8

WIDTH = 32


def words(text):
    return re.findall(r"\w+|[^\w\s]+", text.lower())


@pytest.fixture
def embedded(build_dir, tmp_path):
    """embedded("hash-trigram", {tensor: shape}, option=1) returns random tensors, and the vectors that a token
    embedding of them has for the words of TEXT."""

    def compute(kind, shapes, **options):
        numbers = torch.Generator().manual_seed(1)
        tensors = {name: torch.randn(shape, generator=numbers) for name, shape in shapes.items()}
        model = {"token-embedding": kind, "layers": 1, "d-model": WIDTH, "heads": 2, "vocabulary": 5}
        model |= {name.replace("_", "-"): value for name, value in options.items()}
        config = {"format": "headshare", "format_version": 8, "kind": "encoder", "model": model}
        tokenizer = {"format": "headshare-tokenizer", "version": 1, "kind": "hash-md"}
        for name, content in (("config", config), ("tokenizer", tokenizer), ("input", {"text": TEXT})):
            (tmp_path / f"{name}.json").write_text(json.dumps(content))
        safetensors.save_file(tensors, tmp_path / "model.safetensors")
        tool = build_dir / "obj" / "models" / "model_tool"
        run_command([tool, tmp_path, tmp_path / "input.json", tmp_path / "out.safetensors"])
        return tensors, safetensors.load_file(tmp_path / "out.safetensors")["embedded"][0]

    return compute


def assert_same(found, wanted):
    assert found.shape == wanted.shape and wanted.std() > 0.3, "too flat to tell anything"
    assert (found - wanted).abs().max() < 1e-4


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
    shapes = {"trigram_embedding": (rows, WIDTH), "special_embedding": (5, WIDTH)}
    tensors, found = embedded("hash-trigram", shapes, trigram_rows=rows, trigram_hashes=hashes)
    table = tensors["trigram_embedding"]
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
    shapes = {"character_embedding": (8 * buckets, WIDTH // 8), "character_positions": (longest, WIDTH)}
    shapes["special_embedding"] = (5, WIDTH)
    tensors, found = embedded("hash-characters", shapes, character_buckets=buckets, word_characters=longest)
    config = transformers.CanineConfig(hidden_size=WIDTH, num_hash_buckets=buckets)
    theirs = canine.CanineEmbeddings(config)
    assert config.num_hash_functions == 8 and transformers.CanineConfig().num_hash_buckets == 16384
    for k, slices in enumerate(tensors["character_embedding"].split(buckets)):
        getattr(theirs, f"HashBucketCodepointEmbedder_{k}").weight.data.copy_(slices)
    places = tensors["character_positions"].double()
    wanted = []
    for word in words(TEXT):
        codes = torch.tensor([ord(character) for character in word[:longest]])
        with torch.no_grad():
            vectors = theirs._embed_hash_buckets(codes, WIDTH, 8, buckets).double()
        wanted.append((vectors * (1 + places[: len(codes)])).sum(0) / len(codes) ** 0.5)
    assert_same(found.double(), torch.stack(wanted))

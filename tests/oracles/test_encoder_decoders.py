"""Tests that MarianMT, BART and mBART of transformers are our encoder-decoders: `convert --from hf` of random models,
encoder and decoder states and logits with padding, greedy targets with caches, counts; what cannot be reproduced is
refused by name."""

import json

import pytest
from conftest import run_command

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file, save_file  # noqa: E402

SIZES = {"vocab_size": 97, "max_position_embeddings": 24, "d_model": 48, "encoder_layers": 2, "decoder_layers": 3,
         "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 100,
         "decoder_ffn_dim": 100}  # fmt: skip
MARKS = {
    "marian": {"pad_token_id": 96, "decoder_start_token_id": 96, "eos_token_id": 0, "forced_eos_token_id": None},
    "bart": {"forced_eos_token_id": None},
    "mbart": {"forced_eos_token_id": None, "decoder_start_token_id": 5},
}
CLASSES = {"marian": ("Marian", "MTModel"), "bart": ("Bart", "ForConditionalGeneration"), "mbart": ("MBart", "ForConditionalGeneration")}
FAMILIES = list(CLASSES)
LENGTH, TARGETS = 9, 7


def random_model(family, kind=None, seed=0, **changes):
    """Makes every parameter random, biases, norms and the output's bias too; sinusoids are what they are."""
    name, with_head = CLASSES[family]
    config = getattr(transformers, name + "Config")(**{**SIZES, **MARKS[family], **changes})
    model = getattr(transformers, name + (kind or with_head))(config).eval()
    numbers = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_norm = "norm" in name and name.endswith("weight")
            parameter.data.normal_(1.0 if is_norm else 0.0, 0.2, generator=numbers)
    if kind is None:
        model.final_logits_bias.normal_(0.0, 0.5, generator=numbers)
    return model


def random_input(source_vocabulary=97, target_vocabulary=97):
    """Makes three rows, of which two are padded on both sides."""
    numbers = torch.Generator().manual_seed(1)
    visible = torch.arange(LENGTH) < torch.tensor([[LENGTH], [LENGTH // 2], [2]])
    kept = torch.arange(TARGETS) < torch.tensor([[TARGETS], [3], [5]])
    source = torch.randint(3, source_vocabulary - 1, (3, LENGTH), generator=numbers)
    ids = torch.randint(3, target_vocabulary - 1, (3, TARGETS), generator=numbers)
    return {"source": source, "visible": visible.long(), "ids": ids, "kept": kept}


def theirs(model, given):
    padding = model.config.pad_token_id
    source = torch.where(given["visible"].bool(), given["source"], padding)
    with torch.no_grad():
        return model(source, attention_mask=given["visible"], decoder_input_ids=given["ids"],
                     decoder_attention_mask=given["kept"].long(), output_hidden_states=True)  # fmt: skip


@pytest.fixture
def ours(build_dir, run, tmp_path):
    """Returns what the program makes of a transformers model and an input."""

    def compute(model, given, **more):
        model.save_pretrained(tmp_path / "hf")
        run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
        asked = {key: rows.tolist() for key, rows in given.items() if key != "kept"} | more
        (tmp_path / "input.json").write_text(json.dumps(asked))
        tool = build_dir / "obj" / "models" / "model_tool"
        run_command([tool, tmp_path / "ours", tmp_path / "input.json", tmp_path / "out.safetensors"])
        return load_file(tmp_path / "out.safetensors")

    return compute


def assert_same(found, expected, visible, tolerance=1e-4):
    assert found.shape == expected.shape
    assert (found - expected)[visible.bool()].abs().max() < tolerance
    assert expected.std() > 0.1, "too flat to tell anything"


CONFIGURATIONS = [
    ("marian", {}),
    ("marian", {"activation_function": "swish", "scale_embedding": True}),  # as opus-mt
    ("marian", {"activation_function": "relu", "encoder_attention_heads": 1, "decoder_attention_heads": 1}),
    ("marian", {"share_encoder_decoder_embeddings": False, "vocab_size": 61, "decoder_vocab_size": 97, "pad_token_id": 60}),
    ("marian", {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 97, "tie_word_embeddings": False}),
    ("marian", {"tie_word_embeddings": False}),
    ("bart", {}),
    ("bart", {"activation_function": "gelu_new", "scale_embedding": True, "decoder_layers": 1}),
    ("bart", {"tie_word_embeddings": False}),
    ("mbart", {}),
    ("mbart", {"scale_embedding": True, "activation_function": "relu"}),
]


@pytest.mark.parametrize("family, changes", CONFIGURATIONS)
def test_states_and_logits(ours, family, changes):
    model = random_model(family, **changes)
    given = random_input(source_vocabulary=model.config.vocab_size)
    expected, found = theirs(model, given), ours(model, given)
    assert_same(found["memory"], expected.encoder_last_hidden_state, given["visible"])
    assert_same(found["logits"], expected.logits, given["kept"])


@pytest.mark.parametrize("family, changes", [("marian", {}), ("marian", {"share_encoder_decoder_embeddings": False}), ("bart", {})])
def test_a_bare_model(ours, family, changes):
    model = random_model(family, "Model", **changes)
    given = random_input()
    expected, found = theirs(model, given), ours(model, given)
    assert_same(found["memory"], expected.encoder_last_hidden_state, given["visible"])
    assert_same(found["hidden"], expected.last_hidden_state, given["kept"])


@pytest.mark.parametrize("type", ["float16", "bfloat16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_half_precision_and_shards(ours, family, type):
    model = random_model(family).to(getattr(torch, type))
    given = random_input()
    save = model.save_pretrained
    model.save_pretrained = lambda path: save(path, max_shard_size="40KB")
    found = ours(model, given)
    model = model.float()
    if family == "marian":  # sinusoids are no weights: loaded, they are not rounded
        for side in (model.model.encoder, model.model.decoder):
            side.embed_positions.weight.data.copy_(side.embed_positions.create_weight())
    assert_same(found["logits"], theirs(model, given).logits, given["kept"])


def test_sinusoids_in_old_files(ours, tmp_path):
    """Reads files of older programs, which saved the tables, and a copy of the embedding for each side."""
    model = random_model("marian")
    given = random_input()
    save = model.save_pretrained

    def save_all(folder):
        save(folder)
        state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        assert "model.encoder.embed_positions.weight" in state and "lm_head.weight" in state
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})

    model.save_pretrained = save_all
    assert_same(ours(model, given)["logits"], theirs(model, given).logits, given["kept"])


def lively_model(family):
    """Makes a model whose targets differ from source to source; some end."""
    model = random_model(family, tie_word_embeddings=False)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.dim() > 1:
            parameter.data *= 3
    model.final_logits_bias[0, [model.config.eos_token_id, 96]] += 8
    return model


@pytest.mark.parametrize(
    "family, marks",
    [
        ("marian", {}),
        ("marian", {"bad_words_ids": [[32]]}),  # which the second row has
        ("bart", {"forced_bos_token_id": 0}),
        ("bart", {"decoder_start_token_id": 7}),
        ("mbart", {"forced_bos_token_id": 11}),
    ],
)
def test_greedy_targets(ours, family, marks):
    """Generates with caches, as `generate` has them; a row may end before the others."""
    model = lively_model(family)
    end = model.config.eos_token_id
    given = random_input()
    source = torch.where(given["visible"].bool(), given["source"], model.config.pad_token_id)

    def generate():
        return model.generate(source, attention_mask=given["visible"], do_sample=False, num_beams=1, max_new_tokens=12)

    plain = generate()
    for key, value in marks.items():
        setattr(model.generation_config, key, value)
    expected = generate()
    assert not marks or expected.tolist() != plain.tolist()
    found = ours(model, {key: given[key] for key in ("source", "visible")}, generate=12)["generated"]
    for mine, other in zip(found.tolist(), expected.tolist(), strict=True):
        stop = other.index(end, 1) + 1 if end in other[1:] else len(other)
        assert mine[:stop] == other[:stop]
        assert set(mine[stop:]) <= {end}
    assert len({tuple(row) for row in found.tolist()}) > 1


PUBLISHED = {
    "opus-mt": ("marian", {"vocab_size": 58101, "max_position_embeddings": 512, "d_model": 512, "encoder_layers": 6,
                           "decoder_layers": 6, "encoder_attention_heads": 8, "decoder_attention_heads": 8,
                           "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048}),
    "two vocabularies": ("marian", {"vocab_size": 32001, "decoder_vocab_size": 60001, "pad_token_id": 32000,
                                    "share_encoder_decoder_embeddings": False}),
    "bart-base": ("bart", {"d_model": 768, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 12,
                           "decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072}),
    "bart-large": ("bart", {}),
    "mbart-large": ("mbart", {"vocab_size": 250027}),
}  # fmt: skip


@pytest.mark.parametrize("family, sizes", PUBLISHED.values(), ids=PUBLISHED)
def test_the_counts_of_published_shapes(run, tmp_path, family, sizes):
    name, with_head = CLASSES[family]
    config = getattr(transformers, name + "Config")(**sizes)
    with torch.device("meta"):
        expected = getattr(transformers, name + with_head)(config).num_parameters()
    config.save_pretrained(tmp_path)
    costs = json.loads(run("cost", "--json", "--schemes", "mha,mhe_mul", tmp_path / "config.json").stdout)
    assert costs[0]["total_parameters"] == expected and costs[0]["own"] and costs[0]["kind"] == "encoder-decoder"
    layers = config.encoder_layers + 2 * config.decoder_layers
    assert costs[0]["attention_parameters"] == layers * 4 * config.d_model**2
    assert costs[1]["total_parameters"] < expected


def test_what_a_converted_model_says_of_itself(run, tmp_path):
    model = random_model("marian")
    model.save_pretrained(tmp_path / "hf")
    done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    assert "encoder-decoder, 2 + 3 layers, d-model 48" in done.stdout
    assert "source.spm, target.spm and vocab.json" in done.stderr
    info = json.loads(run("info", tmp_path / "ours", "--json").stdout)
    tables, bias = 2 * 24 * 48, 97  # parameters there, and a buffer
    assert info["kind"] == "encoder-decoder"
    assert info["total_parameters"] == model.num_parameters() - tables + bias
    assert info["kv_cache_bytes_per_token"] == info["source_cache_bytes_per_token"] == 3 * 2 * 48 * 4
    assert info["options"]["start-id"] == 96 and info["options"]["end-id"] == 0
    assert "per token of the source" in run("info", tmp_path / "ours").stdout
    [cost, *others] = json.loads(run("cost", tmp_path / "ours", "--json").stdout)
    assert cost["own"] and cost["total_parameters"] == info["total_parameters"]
    assert all("impossible" not in one or one["scheme"] != "mha" for one in others)
    printed = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "no", "--dry-run").stdout
    assert "decoder.layers.2.encoder_attn.q_proj.weight -> decoder.2.cross_attention.scheme.query.weight" in printed
    assert not (tmp_path / "no").exists()


def test_barts_tokenizer_comes_along(run, tmp_path):
    """Converts a tokenizer of RoBERTa's kind, for both sides."""
    from tokenizers import pre_tokenizers

    random_model("bart", vocab_size=300).save_pretrained(tmp_path / "hf")
    words = ["<s>", "<pad>", "</s>", "<unk>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    (tmp_path / "hf" / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (tmp_path / "hf" / "merges.txt").write_text("#version: 0.2\n")
    assert not run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours").stderr.count("tokenizer")
    assert json.loads(run("info", tmp_path / "ours", "--json").stdout)["tokenizer"]["vocabulary_size"] == len(words)
    # It does not serve a model with two vocabularies.
    sizes = {"share_encoder_decoder_embeddings": False, "vocab_size": 290, "decoder_vocab_size": 300}
    random_model("marian", **sizes, pad_token_id=289, decoder_start_token_id=289).save_pretrained(tmp_path / "two")
    done = run("convert", "--from", "hf", tmp_path / "two", tmp_path / "no", "--tokenizer", tmp_path / "hf", check=False)
    assert done.returncode == 1 and "290 tokens in its source and 300 in its target" in done.stderr


@pytest.mark.parametrize(
    "family, changes, says",
    [
        ("marian", {"activation_function": "selu"}, "activation_function"),
        ("marian", {"decoder_attention_heads": 2}, "decoder_attention_heads is 2 and encoder_attention_heads 4"),
        ("marian", {"decoder_ffn_dim": 50}, "decoder_ffn_dim is 50 and encoder_ffn_dim 100"),
        ("marian", {"normalize_before": True}, "normalize_before"),
        ("marian", {"decoder_start_token_id": 97}, "start-id 97"),
        ("marian", {"d_model": 47, "encoder_attention_heads": 1, "decoder_attention_heads": 1}, "even"),
        ("bart", {"architectures": ["BartForSequenceClassification"]}, "BartForSequenceClassification"),
        ("bart", {"is_decoder": True}, "is_decoder"),
        ("bart", {"normalize_embedding": False}, "normalize_embedding"),
        ("bart", {"max_position_embeddings": 30}, "embed_positions.weight"),
        ("bart", {"model_type": "pegasus"}, "headshare converts models of type"),
        ("mbart", {"add_final_layer_norm": False}, "add_final_layer_norm"),
    ],
)
def test_what_cannot_be_reproduced_is_refused_by_name(run, tmp_path, family, changes, says):
    random_model(family).save_pretrained(tmp_path / "hf")
    (tmp_path / "hf" / "generation_config.json").unlink()
    path = tmp_path / "hf" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours", check=False)
    assert done.returncode == 1 and says in done.stderr
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("family", FAMILIES)
def test_damaged_weights(run, tmp_path, family):
    random_model(family).save_pretrained(tmp_path / "hf")
    path = tmp_path / "hf" / "model.safetensors"
    whole = path.read_bytes()
    tensors = load_file(path)

    def refusal():
        done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours", check=False)
        assert done.returncode == 1 and not (tmp_path / "ours").exists()
        return done.stderr

    gone = "model.decoder.layers.1.encoder_attn.out_proj.bias"
    save_file({name: t for name, t in tensors.items() if name != gone}, path)
    assert gone.removeprefix("model.") in refusal()
    save_file(tensors | {gone: torch.zeros(47)}, path)
    assert "has shape [47], the configuration asks for [48]" in refusal()
    save_file(tensors | {gone: torch.full((48,), float("nan"))}, path)
    assert "48 values of 48 that are not finite" in refusal()
    path.write_bytes(whole[:-100])
    assert "model.safetensors" in refusal()

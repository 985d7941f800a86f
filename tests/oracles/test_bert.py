"""Tests that encoders of scheme `mha` are transformers' BERT: `convert --from hf`, `convert --to hf`, hidden states,
pooler, logits, loss and gradients of random models, with padding and segments."""

import json

import pytest
from conftest import run_command

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file, save_file  # noqa: E402

SIZES = {
    "vocab_size": 97,
    "max_position_embeddings": 24,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 100,
}
CONFIGURATIONS = {
    "erf": {},
    "tanh, one segment": {"hidden_act": "gelu_new", "type_vocab_size": 1},
    "relu, one head, other epsilon": {"hidden_act": "relu", "num_attention_heads": 1, "layer_norm_eps": 0.01},
    "untied": {"tie_word_embeddings": False},
}


def random_bert(kind=transformers.BertForMaskedLM, seed=0, **changes):
    """Makes every parameter random, biases and norms too."""
    model = kind(transformers.BertConfig(**{**SIZES, **changes})).eval()
    numbers = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        offset = 1.0 if "LayerNorm" in name and name.endswith("weight") else 0.0
        parameter.data.normal_(offset, 0.15, generator=numbers)
    return model


def random_input(config):
    """Makes three rows of which two are padded; a second segment in the middle; a few targets, none of them on
    padding."""
    numbers = torch.Generator().manual_seed(1)
    length = config.max_position_embeddings
    ids = torch.randint(config.vocab_size, (3, length), generator=numbers)
    visible = torch.arange(length) < torch.tensor([[length], [length // 2], [5]])
    segments = ((torch.arange(length) > 3) & (torch.arange(length) < 9)).long().expand(3, -1) * (config.type_vocab_size > 1)
    targets = torch.where(visible & (torch.rand(ids.shape, generator=numbers) < 0.3), ids.flip(1), -100)
    return {"ids": ids, "visible": visible.long(), "segments": segments, "targets": targets}


def theirs(model, given):
    targets = {"labels": given["targets"]} if hasattr(model, "cls") else {}
    return model(
        given["ids"],
        attention_mask=given["visible"],
        token_type_ids=given["segments"],
        output_hidden_states=True,
        **targets,
    )


@pytest.fixture
def ours(build_dir, tmp_path):
    """Returns what the model in a directory makes of an input."""

    def compute(directory, given, *more):
        (tmp_path / "input.json").write_text(json.dumps({key: rows.tolist() for key, rows in given.items()}))
        tool = build_dir / "obj" / "models" / "model_tool"
        run_command([tool, directory, tmp_path / "input.json", tmp_path / "out.safetensors", *more])
        return load_file(tmp_path / "out.safetensors")

    return compute


@pytest.fixture
def converted(run, tmp_path):
    """Returns the directory of a transformers model as ours."""

    def convert(model):
        model.save_pretrained(tmp_path / "hf")
        run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
        return tmp_path / "ours"

    return convert


def assert_same(found, expected, visible, tolerance=1e-4):
    """Compares at visible tokens; what stands at padding means nothing."""
    assert found.shape == expected.shape
    assert (found - expected)[visible.bool()].abs().max() < tolerance
    assert expected.std() > 0.1, "too flat to tell anything"


@pytest.mark.parametrize("changes", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_hidden_states_logits_and_loss(ours, converted, changes):
    model = random_bert(**changes)
    given = random_input(model.config)
    with torch.no_grad():
        expected = theirs(model, given)
    found = ours(converted(model), given)
    assert_same(found["hidden"], expected.hidden_states[-1], given["visible"])
    assert_same(found["logits"], expected.logits, given["visible"])
    assert abs(found["loss"] - expected.loss) < 1e-5


def test_the_pooler_of_a_bare_model(ours, converted):
    model = random_bert(transformers.BertModel)
    given = random_input(model.config)
    with torch.no_grad():
        expected = theirs(model, given)
    found = ours(converted(model), {key: given[key] for key in ("ids", "visible", "segments")})
    assert "logits" not in found
    assert_same(found["hidden"], expected.last_hidden_state, given["visible"])
    assert_same(found["pooled"], expected.pooler_output, torch.ones(3))


def test_pretraining_models_keep_pooler_and_head(ours, converted):
    model = random_bert(transformers.BertForPreTraining)
    given = random_input(model.config)
    with torch.no_grad():
        expected = model(given["ids"], attention_mask=given["visible"], token_type_ids=given["segments"])
    found = ours(converted(model), given)
    assert "pooled" in found
    assert_same(found["logits"], expected.prediction_logits, given["visible"])


def scores_of(model, given):
    """Returns scores of the classes [B, C], or of every token as start and end of an answer [B, T, 2]."""
    with torch.no_grad():
        out = model(given["ids"], attention_mask=given["visible"], token_type_ids=given["segments"])
    return out.logits if "logits" in out else torch.stack([out.start_logits, out.end_logits], -1)


@pytest.mark.parametrize(
    "kind, changes",
    [
        (transformers.BertForSequenceClassification, {"id2label": {0: "no", 1: "yes, but", 2: "yes"}}),
        (transformers.BertForSequenceClassification, {"num_labels": 1}),
        (transformers.BertForQuestionAnswering, {}),
    ],
    ids=["three classes", "a number", "answers"],
)
def test_fine_tuned_models_there_and_back(ours, run, converted, tmp_path, kind, changes):
    model = random_bert(kind, **changes)
    given = random_input(model.config)
    del given["targets"]
    directory = converted(model)
    expected = scores_of(model, given)
    visible = given["visible"] if expected.dim() == 3 else torch.ones(3)
    assert_same(ours(directory, given)["scores"], expected, visible)
    run("convert", "--to", "hf", directory, tmp_path / "back")
    back, notes = kind.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not any(notes[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), notes
    assert torch.allclose(scores_of(back.eval(), given), expected, atol=1e-6)
    assert back.config.id2label == model.config.id2label


def test_multiple_choice_gives_every_choice_a_number(ours, converted):
    model = random_bert(transformers.BertForMultipleChoice)
    given = random_input(model.config)
    del given["targets"]
    with torch.no_grad():  # [1, 3, T]: three choices of one question
        inputs = {name: given[key].unsqueeze(0) for name, key in (("input_ids", "ids"), ("attention_mask", "visible"))}
        expected = model(**inputs, token_type_ids=given["segments"].unsqueeze(0)).logits
    assert_same(ours(converted(model), given)["scores"], expected.T, torch.ones(3))


@pytest.mark.parametrize(
    "kind, changes, message",
    [
        (transformers.BertForTokenClassification, {}, "names 'BertForTokenClassification'"),
        (transformers.BertForSequenceClassification, {"problem_type": "multi_label_classification"}, "multi_label"),
        (transformers.BertForSequenceClassification, {"problem_type": "regression", "num_labels": 3}, "with 3 outputs"),
    ],
    ids=["tokens", "multi-label", "numbers"],
)
def test_heads_of_another_problem_are_refused(run, tmp_path, kind, changes, message):
    random_bert(kind, **changes).save_pretrained(tmp_path / "hf")
    done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours", check=False)
    assert done.returncode == 1 and message in done.stderr, done.stderr


def test_the_next_sentence_head_is_left_out_aloud(run, tmp_path):
    random_bert(transformers.BertForPreTraining).save_pretrained(tmp_path / "hf")
    assert "next-sentence head" in run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours").stderr


def our_name(name):
    """Returns transformers' parameter name as ours."""
    name = name.removeprefix("bert.")
    for theirs_, ours_ in (
        ("embeddings.word_embeddings.weight", "token_embedding"),
        ("embeddings.position_embeddings.weight", "position_embedding"),
        ("embeddings.token_type_embeddings.weight", "segment_embedding"),
        ("embeddings.LayerNorm", "embedding_norm"),
        ("encoder.layer.", "blocks."),
        ("attention.self.", "attention.scheme."),
        ("attention.output.dense", "attention.scheme.output"),
        ("attention.output.LayerNorm", "attention_norm"),
        ("intermediate.dense", "feed_forward.expand"),
        ("output.dense", "feed_forward.contract"),
        ("output.LayerNorm", "feed_forward_norm"),
        ("cls.predictions.transform.dense", "masked_head.dense"),
        ("cls.predictions.transform.LayerNorm", "masked_head.norm"),
        ("cls.predictions.decoder.weight", "masked_head.output_embedding"),
        ("cls.predictions.decoder.bias", "masked_head.output_bias"),
        ("cls.predictions.bias", "masked_head.output_bias"),
    ):
        if theirs_ in name:
            name = name.replace(theirs_, ours_)
            if not theirs_.endswith("."):
                return name
    return name


@pytest.mark.parametrize("tied", [True, False])
def test_gradients(ours, converted, tied):
    model = random_bert(tie_word_embeddings=tied)
    given = random_input(model.config)
    theirs(model, given).loss.backward()
    found = ours(converted(model), given, "gradients")
    found = {name.removeprefix("gradient."): grad for name, grad in found.items() if name.startswith("gradient.")}
    expected = {our_name(name): p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        # The key bias cannot matter: transformers has rounding noise there, we have exactly nothing.
        assert (found[name] - gradient).abs().max() < 1e-5, name
        assert name.endswith("key.bias") == (found[name].abs().max() == 0), name


@pytest.mark.parametrize("changes", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_there_and_back(run, converted, tmp_path, changes):
    """Converts transformers -> headshare -> transformers: the same model, loaded without a word of complaint."""
    model = random_bert(**changes)
    run("convert", "--to", "hf", converted(model), tmp_path / "back")
    back, notes = transformers.BertForMaskedLM.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not any(notes[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), notes
    given = random_input(model.config)
    with torch.no_grad():
        # The name that is written for tanh stands for another implementation of it.
        assert (theirs(back.eval(), given).logits - theirs(model, given).logits).abs().max() < 1e-5
    for key in (*SIZES, "hidden_dropout_prob", "attention_probs_dropout_prob", "layer_norm_eps", "type_vocab_size"):
        assert getattr(back.config, key) == getattr(model.config, key), key


def test_a_bare_model_there_and_back(run, converted, tmp_path):
    model = random_bert(transformers.BertModel)
    run("convert", "--to", "hf", converted(model), tmp_path / "back")
    back = transformers.AutoModel.from_pretrained(tmp_path / "back").eval()
    given = random_input(model.config)
    with torch.no_grad():
        assert torch.equal(theirs(back, given).pooler_output, theirs(model, given).pooler_output)


def test_half_precision_and_the_old_names_of_norms(ours, run, tmp_path):
    """Converts norms stored as bert-base-uncased's: gamma and beta."""
    model = random_bert().half()
    model.save_pretrained(tmp_path / "hf")
    path = tmp_path / "hf" / "model.safetensors"
    tensors = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in load_file(path).items()
    }
    assert any(name.endswith("gamma") for name in tensors)
    save_file(tensors, path, {"format": "pt"})
    run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    given = random_input(model.config)
    with torch.no_grad():
        expected = theirs(model.float(), given)
    assert_same(ours(tmp_path / "ours", given)["logits"], expected.logits, given["visible"])


def test_what_cannot_be_written(run, converted, tmp_path):
    converted(random_bert())
    done = run("convert", "--to", "hf", tmp_path / "ours", tmp_path / "ours", check=False)
    assert done.returncode == 1 and "is read by this call" in done.stderr
    done = run("convert", "--to", "hf", tmp_path / "ours", tmp_path / "hf", "--overwrite", check=False)
    assert done.returncode == 1 and "not written by headshare" in done.stderr
    run("convert", "--to", "hf", tmp_path / "ours", tmp_path / "back")
    run("convert", "--to", "hf", tmp_path / "ours", tmp_path / "back", "--overwrite")
    for words, code, message in (
        (["--to", "gqaa:4", tmp_path / "ours", tmp_path / "x"], 2, "not 'gqaa:4' (did you mean 'gqa'?)"),
        (["--to", "ggml", tmp_path / "ours", tmp_path / "x"], 2, "--to takes hf, gguf, ctranslate2, collaborative, gqa:GROUPS, mqa, mhe_mul, "),
        (["--to", "hf:gpt3", tmp_path / "ours", tmp_path / "x"], 2, "did you mean 'gpt2'?"),
        (["--to", "gguf", tmp_path / "ours", tmp_path / "x"], 1, "only decoders are written as GGUF"),
        (["--to", "hf", "--exact", tmp_path / "ours", tmp_path / "x"], 2, "--exact rewrites heads as"),
        (["--to", "hf", "--from", "hf", tmp_path / "ours", tmp_path / "x"], 2, "exclude each other"),
        (["--to", "hf", tmp_path / "hf", tmp_path / "x"], 1, "is not a headshare model"),
    ):
        done = run("convert", *words, check=False)
        assert done.returncode == code and message in done.stderr, done.stderr


def test_info_knows_encoders(run, converted):
    directory = converted(random_bert())
    report = json.loads(run("info", directory, "--json").stdout)
    assert report["kind"] == "encoder" and "kv_cache_bytes_per_token" not in report
    assert report["total_parameters"] == sum(p.numel() for p in random_bert().parameters())
    assert report["options"]["norms"] == "post" and report["options"]["masked-head"] is True
    assert "encoder" in run("info", directory).stdout
    kernels = json.loads(run("info", directory, "--kernels", "--json").stdout)["kernels"]
    assert [one["situation"] for one in kernels] == ["training", "scoring"]
    assert not any(one["causal"] for one in kernels)


def test_a_trained_encoder_fills_masks_as_transformers_does(run, tmp_path, monkeypatch):
    """Goes from text through train to fill, and the same through convert --to hf and transformers' tokenizer and
    model."""
    monkeypatch.setenv("HEADSHARE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "text.txt").write_text("".join(f"The {i % 7} foxes jump over {i % 3} lazy dogs.\n" for i in range(400)))
    sizes = ("--layers", 2, "--d-model", 32, "--heads", 4, "--context", 24, "--vocabulary-size", 60)
    flags = ("--steps", 100, "--learning-rate", 0.01, "--init-deviation", 0.1, "--scheme", "mha", "--threads", 1)
    run("train", "--task", "mlm", "--bert", "--text", tmp_path / "text.txt", "--out", tmp_path / "run", *sizes, *flags)
    run("convert", "--to", "hf", tmp_path / "run", tmp_path / "hf")
    text = "The 5 [MASK] jump over [MASK] Lazy dogs."
    ours = json.loads(run("fill", tmp_path / "run", text, "--json", "--top-k", 4).stdout)["masks"]

    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "hf").eval()
    encoded = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        shares = model(**encoded).logits[0].softmax(-1)
    places = (encoded["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:, 0]
    assert len(places) == len(ours) == 2
    for place, fillings in zip(places, ours, strict=True):
        values, tokens = shares[place].topk(4)
        assert [one["token"] for one in fillings] == tokens.tolist()
        assert [one["probability"] for one in fillings] == pytest.approx(values.tolist(), abs=1e-5)
        assert [one["text"] for one in fillings] == [tokenizer.decode([token]) for token in tokens]

    # The tokenizer comes along on the way back.
    run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "again")
    assert json.loads(run("fill", tmp_path / "again", text, "--json", "--top-k", 4).stdout)["masks"] == ours

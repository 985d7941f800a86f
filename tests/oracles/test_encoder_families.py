"""Tests that RoBERTa, DistilBERT and ALBERT of transformers are our encoders: `convert --from hf` of random models,
hidden states, poolers, logits and scores, with padding, and `convert --to collaborative` at full width; what cannot
be reproduced is refused by name."""

import json

import pytest
from conftest import run_command

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file, save_file  # noqa: E402

ROBERTA = {"vocab_size": 97, "max_position_embeddings": 26, "hidden_size": 48, "num_hidden_layers": 3,
           "num_attention_heads": 4, "intermediate_size": 100, "type_vocab_size": 1}  # fmt: skip
DISTILBERT = {"vocab_size": 97, "max_position_embeddings": 24, "dim": 48, "n_layers": 3, "n_heads": 4, "hidden_dim": 100}
ALBERT = {"vocab_size": 97, "max_position_embeddings": 24, "embedding_size": 20, "hidden_size": 48, "num_hidden_layers": 3,
          "num_attention_heads": 4, "intermediate_size": 100}  # fmt: skip
CONFIGURATIONS = {
    "roberta": (transformers.RobertaConfig, ROBERTA),
    "distilbert": (transformers.DistilBertConfig, DISTILBERT),
    "albert": (transformers.AlbertConfig, ALBERT),
}
CLASSES = {"roberta": "Roberta", "distilbert": "DistilBert", "albert": "Albert"}
FAMILIES = ["roberta", "distilbert", "albert"]
LENGTH = 24  # RoBERTa's first two positions are not used


def random_model(family, kind, seed=0, **changes):
    """Makes every parameter random, biases and norms too."""
    config, sizes = CONFIGURATIONS[family]
    model = getattr(transformers, CLASSES[family] + kind)(config(**{**sizes, **changes})).eval()
    numbers = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        is_norm = "norm" in name.lower() and name.endswith("weight")
        parameter.data.normal_(1.0 if is_norm else 0.0, 0.15, generator=numbers)
    return model


def random_input():
    """Makes three rows of which two are padded. No id is a padding token: RoBERTa counts positions by those."""
    numbers = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 97, (3, LENGTH), generator=numbers)
    visible = torch.arange(LENGTH) < torch.tensor([[LENGTH], [LENGTH // 2], [5]])
    return {"ids": ids, "visible": visible.long()}


def theirs(model, given):
    padding = model.config.pad_token_id
    ids = torch.where(given["visible"].bool(), given["ids"], padding)
    with torch.no_grad():
        return model(ids, attention_mask=given["visible"], output_hidden_states=True)


@pytest.fixture
def ours(build_dir, run, tmp_path):
    """Returns what the program makes of a transformers model and an input; with `shared`, after its heads were made to
    share queries and keys of their full width."""

    def compute(model, given, shared=False):
        model.save_pretrained(tmp_path / "hf")
        run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
        if shared:
            run("convert", tmp_path / "ours", tmp_path / "shared", "--to", "collaborative", "--key-width", 48)
        (tmp_path / "input.json").write_text(json.dumps({key: rows.tolist() for key, rows in given.items()}))
        tool = build_dir / "obj" / "models" / "model_tool"
        model_path = tmp_path / ("shared" if shared else "ours")
        run_command([tool, model_path, tmp_path / "input.json", tmp_path / "out.safetensors"])
        return load_file(tmp_path / "out.safetensors")

    return compute


def assert_same(found, expected, visible, tolerance=1e-4):
    assert found.shape == expected.shape
    assert (found - expected)[visible.bool()].abs().max() < tolerance
    assert expected.std() > 0.1, "too flat to tell anything"


@pytest.mark.parametrize(
    "family, changes",
    [
        ("roberta", {}),
        ("roberta", {"type_vocab_size": 2, "num_attention_heads": 1, "layer_norm_eps": 0.01}),
        ("roberta", {"tie_word_embeddings": False, "pad_token_id": 3, "max_position_embeddings": 28}),
        ("distilbert", {}),
        ("distilbert", {"activation": "relu", "n_heads": 1, "sinusoidal_pos_embds": True}),
        ("distilbert", {"tie_word_embeddings": False, "activation": "silu"}),
        ("albert", {}),
        ("albert", {"num_hidden_layers": 6, "num_hidden_groups": 3, "type_vocab_size": 1, "layer_norm_eps": 0.01}),
        ("albert", {"hidden_act": "gelu", "embedding_size": 48, "num_attention_heads": 1}),
        ("albert", {"tie_word_embeddings": False, "hidden_act": "relu"}),
    ],
)
def test_hidden_states_and_logits(ours, family, changes):
    model = random_model(family, "ForMaskedLM", **changes)
    given = random_input()
    expected, found = theirs(model, given), ours(model, given)
    assert_same(found["hidden"], expected.hidden_states[-1], given["visible"])
    assert_same(found["logits"], expected.logits, given["visible"])


@pytest.mark.parametrize("family", FAMILIES)
def test_shared_heads_of_full_width_compute_the_same(ours, family):
    model = random_model(family, "ForMaskedLM")
    given = random_input()
    assert_same(ours(model, given, shared=True)["logits"], theirs(model, given).logits, given["visible"])


@pytest.mark.parametrize("family", ["roberta", "albert"])
def test_the_pooler_of_a_bare_model(ours, family):
    model = random_model(family, "Model")
    given = random_input()
    expected, found = theirs(model, given), ours(model, given)
    assert_same(found["hidden"], expected.last_hidden_state, given["visible"])
    assert_same(found["pooled"], expected.pooler_output, torch.ones(3))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", ["ForSequenceClassification", "ForQuestionAnswering"])
def test_heads_of_tasks(ours, family, kind):
    model = random_model(family, kind, **({"num_labels": 3} if kind == "ForSequenceClassification" else {}))
    given = random_input()
    expected, found = theirs(model, given), ours(model, given)
    if kind == "ForSequenceClassification":
        assert_same(found["scores"], expected.logits, torch.ones(3))
    else:
        assert_same(found["scores"], torch.stack([expected.start_logits, expected.end_logits], -1), given["visible"])


@pytest.mark.parametrize("family", ["roberta", "albert"])
def test_multiple_choice(ours, family):
    """Each row is a choice of one question."""
    model = random_model(family, "ForMultipleChoice")
    given = random_input()
    ids = torch.where(given["visible"].bool(), given["ids"], model.config.pad_token_id)
    with torch.no_grad():
        expected = model(ids.unsqueeze(0), attention_mask=given["visible"].unsqueeze(0)).logits
    assert_same(ours(model, given)["scores"], expected.T, torch.ones(3))


def test_segments_and_the_sentence_order_head(ours, run, tmp_path):
    model = random_model("albert", "ForPreTraining")
    given = random_input()
    given["segments"] = (torch.arange(LENGTH) > 3).long().expand(3, LENGTH)
    with torch.no_grad():
        expected = model(given["ids"], attention_mask=given["visible"], token_type_ids=given["segments"])
    found = ours(model, given)
    assert_same(found["logits"], expected.prediction_logits, given["visible"])
    said = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "again").stderr
    assert "sop_classifier" in said


def test_a_classifier_that_still_has_a_pooler(ours, tmp_path):
    """Reads a model as older programs made and published it: transformers leaves the pooler unread, and so do we."""
    model = random_model("roberta", "ForSequenceClassification")
    given = random_input()
    save = model.save_pretrained

    def save_with_pooler(folder):
        save(folder)
        tensors = load_file(folder / "model.safetensors")
        pooler = {f"roberta.pooler.dense.{part}": torch.randn(*shape) for part, shape in (("weight", (48, 48)), ("bias", (48,)))}
        save_file(tensors | pooler, folder / "model.safetensors", metadata={"format": "pt"})

    model.save_pretrained = save_with_pooler
    assert_same(ours(model, given)["scores"], theirs(model, given).logits, torch.ones(3))


@pytest.mark.parametrize("family", ["roberta", "albert"])
@pytest.mark.parametrize("type", ["float16", "bfloat16"])
def test_half_precision_and_shards(ours, family, type):
    model = random_model(family, "ForMaskedLM")
    given = random_input()
    model = model.to(getattr(torch, type))
    save = model.save_pretrained
    model.save_pretrained = lambda path: save(path, max_shard_size="40KB")
    expected = model.float()
    found = ours(model.to(getattr(torch, type)), given)
    assert_same(found["logits"], theirs(expected.float(), given).logits, given["visible"], tolerance=1e-4)


@pytest.mark.parametrize(
    "family, changes, says",
    [
        ("roberta", {"hidden_act": "relu"}, "hidden_act"),
        ("roberta", {"is_decoder": True}, "is_decoder"),
        ("roberta", {"architectures": ["RobertaForTokenClassification"]}, "RobertaForTokenClassification"),
        ("roberta", {"pad_token_id": 25}, "max_position_embeddings"),
        ("distilbert", {"activation": "selu"}, "activation"),
        ("distilbert", {"is_causal": True}, "is_causal"),
        ("distilbert", {"architectures": ["DistilBertForTokenClassification"]}, "DistilBertForTokenClassification"),
        ("albert", {"architectures": ["AlbertForTokenClassification"]}, "AlbertForTokenClassification"),
        ("albert", {"num_hidden_groups": 2}, "num_hidden_groups"),
        ("albert", {"inner_group_num": 2}, "inner_group_num"),
        ("albert", {"hidden_act": "selu"}, "hidden_act"),
        ("albert", {"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ("albert", {"is_decoder": True}, "is_decoder"),
        ("albert", {"type_vocab_size": 0}, "type_vocab_size"),
        ("albert", {"embedding_size": 0}, "embedding_size"),
        ("albert", {"embedding_size": 21}, "embeddings.word_embeddings.weight"),
    ],
)
def test_what_cannot_be_reproduced_is_refused_by_name(run, tmp_path, family, changes, says):
    random_model(family, "ForMaskedLM").save_pretrained(tmp_path / "hf")
    path = tmp_path / "hf" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours", check=False)
    assert done.returncode == 1 and says in done.stderr
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_missing_tensor_is_named(run, tmp_path, family):
    random_model(family, "ForMaskedLM").save_pretrained(tmp_path / "hf")
    tensors = load_file(tmp_path / "hf" / "model.safetensors")
    gone = next(name for name in tensors if "layer.1" in name or "albert_layers.0.ffn." in name)
    del tensors[gone]
    save_file(tensors, tmp_path / "hf" / "model.safetensors", metadata={"format": "pt"})
    done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours", check=False)
    assert done.returncode == 1 and gone.split(".", 1)[1] in done.stderr


@pytest.mark.parametrize("family", FAMILIES)
def test_a_dry_run_prints_the_mapping_and_cost_reads_the_configuration(run, tmp_path, family):
    random_model(family, "ForMaskedLM").save_pretrained(tmp_path / "hf")
    printed = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours", "--dry-run").stdout
    last = 0 if family == "albert" else 2
    assert f"-> blocks.{last}.attention.scheme.query.weight" in printed and "nothing was written" in printed
    assert not (tmp_path / "ours").exists()
    assert "masked-LM head" in run("cost", tmp_path / "hf").stderr


def roberta_tokenizer(folder):
    """Writes a tokenizer like RoBERTa's: a byte-level BPE whose <mask> takes the space before it."""
    tokenizers = pytest.importorskip("tokenizers")
    trained = tokenizers.ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained.train_from_iterator(["the quick brown fox jumps over the lazy dog"] * 9, vocab_size=290, special_tokens=special)
    folder.mkdir(exist_ok=True)
    trained.save_model(str(folder))
    mask = transformers.AddedToken("<mask>", lstrip=True)
    return transformers.RobertaTokenizerFast.from_pretrained(folder, mask_token=mask)


def albert_tokenizer():
    """Makes a tokenizer like ALBERT's: a Unigram that lower-cases, and whose borders of texts are [CLS] and [SEP]."""
    tokenizers = pytest.importorskip("tokenizers")
    trained = tokenizers.SentencePieceUnigramTokenizer()
    trained.train_from_iterator(["the quick brown fox jumps over the lazy dog"] * 9, vocab_size=80, show_progress=False)
    pieces = [(piece, score) for piece, score in json.loads(trained.to_str())["model"]["vocab"] if not piece.startswith("<")]
    special = [(token, 0.0) for token in ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")]
    return transformers.AlbertTokenizer(vocab=special + pieces)


def distilbert_tokenizer(folder):
    """Writes a tokenizer like DistilBERT's: BERT's WordPiece, in small letters."""
    tokenizers = pytest.importorskip("tokenizers")
    trained = tokenizers.BertWordPieceTokenizer()
    trained.train_from_iterator(["the quick brown fox jumps over the lazy dog"] * 9, vocab_size=80, show_progress=False)
    folder.mkdir(exist_ok=True)
    trained.save_model(str(folder))
    return transformers.AutoTokenizer.from_pretrained(folder, config=transformers.DistilBertConfig())


@pytest.mark.parametrize(
    "family, make, text",
    [
        ("roberta", roberta_tokenizer, "the quick <mask> jumps over a <mask>"),
        ("albert", lambda _: albert_tokenizer(), "The  D\u00d6G [MASK] z [MASK]"),
        ("distilbert", distilbert_tokenizer, "The quick [MASK] jumps over a [MASK]"),
    ],
)
def test_the_tokenizer_comes_with_it(run, tmp_path, family, make, text):
    tokenizer = make(tmp_path / "tokenizer")
    model = random_model(family, "ForMaskedLM", vocab_size=len(tokenizer))
    for one in (model, tokenizer):
        one.save_pretrained(tmp_path / "hf")
    run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    given = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        scores = model(**given).logits[0].softmax(-1)
    places = (given["input_ids"][0] == tokenizer.mask_token_id).nonzero().flatten()
    expected = [scores[place].topk(3) for place in places]
    found = json.loads(run("fill", tmp_path / "ours", text, "--top-k", 3, "--json").stdout)
    masks = found["masks"] if isinstance(found, dict) else found
    assert len(masks) == 2
    for mask, wanted in zip(masks, expected, strict=True):
        fillings = mask["fillings"] if isinstance(mask, dict) else mask
        assert [one["token"] for one in fillings] == wanted.indices.tolist()
        assert [one["probability"] for one in fillings] == pytest.approx(wanted.values.tolist(), abs=1e-4)
    # Other verbs take it like a model of headshare's own.
    lines = [f"the {'quick' if i % 2 else 'lazy'} fox jumps over the dog" for i in range(24)]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    scored = json.loads(run("evaluate", tmp_path / "ours", "--text", tmp_path / "text.txt", "--pseudo-tokens", 20, "--json").stdout)
    assert 0 < scored["masked_lm_loss"] < 20 and scored["pseudo_perplexity"] > 1
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + "".join(f"{line}\t{i % 2}\n" for i, line in enumerate(lines)))
    tuning = ("--task", "classify", "--train", tmp_path / "rows.tsv", "--validation-fraction", 0.25, "--epochs", 1, "--threads", 1)
    found = json.loads(run("finetune", tmp_path / "ours", *tuning, "--out", tmp_path / "tuned", "--json").stdout)
    assert found["tasks"][0]["parts"][0]["part"] == "validation"


def test_a_sentencepiece_model_alone_is_answered_with_the_way_out(run, tmp_path):
    random_model("albert", "Model").save_pretrained(tmp_path / "hf")
    (tmp_path / "hf" / "spiece.model").write_bytes(b"\n\x0e")
    said = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours").stderr
    assert "spiece.model, which alone does not say how its model numbers tokens; make a tokenizer.json" in said


def test_a_shared_layer_is_decomposed_once(run, tmp_path):
    random_model("albert", "ForMaskedLM", num_hidden_layers=4).save_pretrained(tmp_path / "hf")
    run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    narrow = ("--to", "collaborative", "--key-width", 24, "--json")
    report = json.loads(run("convert", tmp_path / "ours", tmp_path / "narrow", *narrow).stdout)
    assert [layer["key_width"] for layer in report["layers"]] == [24]
    info = json.loads(run("info", tmp_path / "narrow", "--json").stdout)
    assert info["options"]["layers"] == 4 and info["options"]["layer-groups"] == 1
    done = run("convert", tmp_path / "narrow", tmp_path / "back", "--to", "hf", check=False)
    assert done.returncode == 1 and "heads of collaborative compare 24 dimensions, and a head is 12 wide" in done.stderr


@pytest.mark.parametrize(
    "family, kind, comes_back_as",
    [
        ("roberta", "ForMaskedLM", "bert"),
        ("distilbert", "ForMaskedLM", "distilbert"),
        ("distilbert", "ForSequenceClassification", "distilbert"),
        ("albert", "ForMaskedLM", "albert"),
        ("albert", "ForQuestionAnswering", "albert"),
    ],
)
def test_there_and_back(run, tmp_path, family, kind, comes_back_as):
    """Converts transformers -> headshare -> transformers: the same outputs, loaded without a word of complaint."""
    model = random_model(family, kind)
    model.save_pretrained(tmp_path / "hf")
    run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    run("convert", "--to", "hf", tmp_path / "ours", tmp_path / "back")
    auto = getattr(transformers, "AutoModel" + kind)
    back, notes = auto.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert back.config.model_type == comes_back_as
    assert not any(notes[one] for one in ("missing_keys", "unexpected_keys", "mismatched_keys")), notes
    given = random_input()
    found, expected = theirs(back.eval(), given), theirs(model, given)
    name = "start_logits" if kind == "ForQuestionAnswering" else "logits"
    seen = given["visible"].bool() if getattr(expected, name).shape[:2] == given["visible"].shape else ...
    # The name that is written for tanh stands for another implementation of it.
    assert (getattr(found, name) - getattr(expected, name))[seen].abs().max() < 1e-5


@pytest.mark.parametrize("kind, key", [("ForSequenceClassification", "seq_classif_dropout"), ("ForQuestionAnswering", "qa_dropout")])
def test_a_heads_own_dropout_is_mentioned(run, tmp_path, kind, key):
    random_model("distilbert", kind, **{key: 0.35}).save_pretrained(tmp_path / "hf")
    said = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours").stderr
    assert f"{key} 0.35 is not" in said

"""Tests that the authors' checkpoints of HashFormers are our encoders: `convert --from hf` of random models in their
layout, against the embeddings written anew in PyTorch under transformers' RoBERTa; what cannot be reproduced is
refused by name."""

import hmac
import json
import sys

import pytest
from conftest import run_command

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file, save_file  # noqa: E402

E = 48
SIZES = {"max_position_embeddings": 26, "hidden_size": E, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 100, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1}  # fmt: skip
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
VOCABULARY_SIZES = {"hash-emb": 50265, "hash-pool": 0, "hash-add": 1, "hash-proj": 2}
KINDS = list(VOCABULARY_SIZES)
THREE_WAY = "RobertaForShuffleRandomThreeWayClassification"
TOKENS = [
    ["<s>", "it", "'", "s", "3", "</s>", "</s>", "café_x", "!?", "the", "the", "</s>"],
    ["<s>", "hello", "naïve", "</s>", *["<pad>"] * 8],
    ["<s>", "日本", "<unk>", "<mask>", "--", "x" * 300, "</s>", *["<pad>"] * 5],
]
VISIBLE = torch.tensor([[token != "<pad>" for token in row] for row in TOKENS])


def md(word):
    """Returns the signature as a whole number."""
    return int.from_bytes(hmac.new(b"en", word.encode(), "md5").digest(), "big")


def own_tensors(kind, numbers):
    """Returns the token embedding's tensors by their names in the authors' code."""
    shapes = {
        "hash-emb": {"word_embeddings.weight": (50265, E)},
        "hash-pool": {"component_embeddings.weight": (1025, E), "adaptive_weights": (13, E)},
        "hash-add": {"proj_mat_1.weight": (E, 128), "proj_mat_2.weight": (E, 128)},
        "hash-proj": {"proj_mat.weight": (E, 128)},
    }[kind]
    if kind != "hash-emb":
        shapes = {**shapes, "special_token_embeddings.weight": (6, E)}
    return {"embeddings." + name: torch.randn(*shape, generator=numbers) for name, shape in shapes.items()}


class HashFormer:
    """This is a random model: what its files hold, and what it computes."""

    def __init__(self, kind, signature=md, head="dense", seed=0):
        numbers = torch.Generator().manual_seed(seed)
        self.kind, self.signature = kind, signature
        # Its token embeddings are given to RoBERTa's own, which add positions and the segment's row, and norm.
        self.backbone = transformers.RobertaModel(transformers.RobertaConfig(**SIZES, vocab_size=5)).eval()
        for name, parameter in self.backbone.named_parameters():
            is_norm = "norm" in name.lower() and name.endswith("weight")
            parameter.data.normal_(1.0 if is_norm else 0.0, 0.15, generator=numbers)
        self.own = own_tensors(kind, numbers)
        self.head = {}
        if head == "dense":
            shapes = {"dense": (3, E)}
        else:
            shapes = {"classifier.dense": (E, E), "classifier.out_proj": (3, E)}
        for name, shape in shapes.items():
            self.head[name + ".weight"] = torch.randn(*shape, generator=numbers)
            self.head[name + ".bias"] = torch.randn(shape[0], generator=numbers)

    def save(self, folder, **changes):
        architecture = THREE_WAY if "dense.weight" in self.head else "RobertaForSequenceClassification"
        config = {"model_type": "roberta", "architectures": [architecture], "vocab_size": VOCABULARY_SIZES[self.kind]}
        config |= {**SIZES, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
        if "dense.weight" not in self.head:
            config["id2label"] = {"0": "yes", "1": "no", "2": "maybe"}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps({**config, **changes}))
        tensors = {"roberta." + name: value for name, value in {**self.backbone.state_dict(), **self.own}.items()}
        if self.kind != "hash-emb":
            del tensors["roberta.embeddings.word_embeddings.weight"]
        tensors["roberta.embeddings.position_ids"] = torch.arange(26).unsqueeze(0)
        save_file({**tensors, **self.head}, folder / "model.safetensors", metadata={"format": "pt"})

    def row(self, token):
        """Follows section 3 of the paper's code, for one token."""
        own = {name.removeprefix("embeddings."): value for name, value in self.own.items()}
        special = SPECIALS.index(token) if token in SPECIALS else None
        number = 0 if special is not None else self.signature(token)
        if self.kind == "hash-emb":
            return own["word_embeddings.weight"][number % 50260 + 5 if special is None else special]
        bits = torch.tensor([float(bit) for bit in f"{number:0128b}"])
        type_row = own["special_token_embeddings.weight"][5 if special is None else special]
        if self.kind == "hash-add":
            one, zero = own["proj_mat_1.weight"], own["proj_mat_2.weight"]
            return type_row + (one @ bits + zero @ (1 - bits)) / 128**0.5
        if self.kind == "hash-proj":
            if special is not None:
                return type_row
            pairs = (torch.stack([bits, row]) for row in own["proj_mat.weight"])
            return type_row + torch.stack([torch.corrcoef(pair)[0, 1] for pair in pairs])
        digits = f"{number:0128b}"
        chunks = [int(digits[at : at + 10], 2) + 1 if special is None else 0 for at in range(0, 128, 10)]
        return type_row + (own["component_embeddings.weight"][chunks] * own["adaptive_weights"].softmax(0)).sum(0)

    def __call__(self, tokens, visible):
        with torch.no_grad():
            rows = torch.stack([torch.stack([self.row(token) for token in row]) for row in tokens])
            return self.backbone(inputs_embeds=rows, attention_mask=visible.long())

    def scores(self, hidden):
        h = self.head
        if "dense.weight" in h:
            return hidden @ h["dense.weight"].T + h["dense.bias"]
        x = torch.tanh(hidden[:, 0] @ h["classifier.dense.weight"].T + h["classifier.dense.bias"])
        return x @ h["classifier.out_proj.weight"].T + h["classifier.out_proj.bias"]


@pytest.fixture
def answers(build_dir, tmp_path):
    """Returns what the program's model in a folder makes of tokens."""

    def compute(folder, tokens, visible):
        (tmp_path / "input.json").write_text(json.dumps({"tokens": tokens, "visible": visible.long().tolist()}))
        tool = build_dir / "obj" / "models" / "model_tool"
        run_command([tool, folder, tmp_path / "input.json", tmp_path / "out.safetensors"])
        return load_file(tmp_path / "out.safetensors")

    return compute


def assert_same(found, expected, visible=None):
    assert found.shape == expected.shape
    difference = (found - expected).abs()
    assert (difference if visible is None else difference[visible]).max() < 1e-4
    assert expected.std() > 0.1, "too flat to tell anything"


def convert(run, tmp_path, *arguments, **options):
    return run("convert", "--from", "hf", tmp_path / "theirs", tmp_path / "ours", *arguments, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_states_and_three_way_scores(run, tmp_path, answers, kind):
    model = HashFormer(kind)
    model.save(tmp_path / "theirs")
    convert(run, tmp_path, "--tokenizer", "hash-md")
    expected, found = model(TOKENS, VISIBLE), answers(tmp_path / "ours", TOKENS, VISIBLE)
    assert_same(found["hidden"], expected.last_hidden_state, VISIBLE)
    assert_same(found["pooled"], expected.pooler_output)
    assert_same(found["three_way"], model.scores(expected.last_hidden_state), VISIBLE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_classifier(run, tmp_path, answers, kind):
    model = HashFormer(kind, head="classifier")
    model.save(tmp_path / "theirs")
    convert(run, tmp_path, "--tokenizer", "hash-md")
    assert_same(answers(tmp_path / "ours", TOKENS, VISIBLE)["scores"], model.scores(model(TOKENS, VISIBLE).last_hidden_state))


def roberta_merges(folder):
    tokenizers = pytest.importorskip("tokenizers")
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(["the quick brown fox jumps over the lazy dog"] * 9, vocab_size=290, special_tokens=SPECIALS)
    folder.mkdir()
    trained.save_model(str(folder))
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_lsh_has_the_features_of_the_merges(run, tmp_path, answers, kind):
    merges = roberta_merges(tmp_path / "merges")
    words = sorted({token for row in TOKENS for token in row if token not in SPECIALS})
    (tmp_path / "words.txt").write_text("".join(word + "\n" for word in words))
    flags = ("--tokenizer", "hash-lsh", "--hash-merges", merges)
    hashed = [json.loads(line) for line in run("tokenize", *flags, "--json", tmp_path / "words.txt").stdout.splitlines()]
    if kind == "hash-emb":
        hashes = {one["tokens"][0]: one["ids"][0] - 5 for one in hashed}
    else:
        hashes = {one["tokens"][0]: int(one["signatures"][0], 16) for one in hashed}
    assert hashes.keys() == set(words)
    model = HashFormer(kind, signature=hashes.get)
    model.save(tmp_path / "theirs")
    said = convert(run, tmp_path, *flags).stderr
    assert "290" in said and "50265" in said, "the merges are not RoBERTa's, which is said"
    found = answers(tmp_path / "ours", TOKENS, VISIBLE)
    assert_same(found["hidden"], model(TOKENS, VISIBLE).last_hidden_state, VISIBLE)


def test_a_dry_run_prints_the_mapping_and_cost_counts(run, tmp_path):
    HashFormer("hash-add").save(tmp_path / "theirs")
    printed = convert(run, tmp_path, "--tokenizer", "hash-md", "--dry-run").stdout
    assert "roberta.embeddings.proj_mat_1.weight -> bit_embedding_one" in printed
    assert "roberta.embeddings.special_token_embeddings.weight -> type_embedding" in printed
    assert "dense.weight -> three_way_head.output.weight" in printed
    assert "position_embeddings.weight (without the first 2 rows) -> position_embedding" in printed
    assert "roberta.embeddings.position_ids -> left out" in printed
    assert not (tmp_path / "ours").exists()
    done = run("cost", tmp_path / "theirs", "--json")
    ours = sum(parameter.numel() for parameter in HashFormer("hash-add").backbone.parameters()) - 5 * E - 2 * E
    assert json.loads(done.stdout)[0]["total_parameters"] == ours + 2 * 128 * E + 6 * E + 3 * E + 3
    assert "three-way head" in done.stderr


@pytest.mark.parametrize(
    "kind, flags, changes, says",
    [
        ("hash-proj", [], {}, "do not say which hash its words had; add --tokenizer hash-md"),
        ("hash-proj", ["--tokenizer", "hash-md"], {"pad_token_id": 0}, "pad_token_id"),
        ("hash-proj", ["--tokenizer", "hash-md"], {"vocab_size": 1}, "'embeddings.proj_mat_1.weight' is missing"),
        ("hash-proj", ["--tokenizer", "hash-md"], {"vocab_size": 3}, "vocab_size is 3; a HashFormer has 50265 rows"),
        ("hash-emb", ["--tokenizer", "hash-md"], {"vocab_size": 50264}, "vocab_size is 50264"),
        ("hash-proj", ["--tokenizer", "hash-md"], {"hidden_size": 44}, "has shape [6, 48]"),
        ("hash-proj", ["--tokenizer", "hash-md"], {"hidden_act": "selu"}, "hidden_act"),
        ("hash-proj", ["--tokenizer", "hash-md"], {"architectures": ["RobertaSpanComparisonModel"]}, "RobertaSpanComparisonModel"),
        ("hash-proj", ["--tokenizer", "hash-md"], {"model_type": "bert", "architectures": None}, "embeddings.word_embeddings.weight"),
        ("hash-proj", ["--tokenizer", "hash-md"], {"num_hidden_layers": 1}, "are not part of the HashFormer"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(run, tmp_path, kind, flags, changes, says):
    HashFormer(kind).save(tmp_path / "theirs", **changes)
    done = convert(run, tmp_path, *flags, check=False)
    assert done.returncode == 1 and says in done.stderr, done.stderr
    assert not (tmp_path / "ours").exists()


def test_missing_and_misshapen_tensors_are_named(run, tmp_path):
    for kind in KINDS:
        HashFormer(kind).save(tmp_path / "theirs")
        path = tmp_path / "theirs" / "model.safetensors"
        whole = load_file(path)
        for name in ["roberta." + one for one in HashFormer(kind).own] + ["dense.bias", "roberta.encoder.layer.1.output.dense.bias"]:
            less = {key: value for key, value in whole.items() if key != name}
            cut = {**less, name: whole[name][:-1].contiguous()}
            for tensors in (less, cut):
                save_file(tensors, path, metadata={"format": "pt"})
                done = convert(run, tmp_path, "--tokenizer", "hash-md", check=False)
                assert done.returncode == 1 and name.removeprefix("roberta.") in done.stderr, done.stderr
        save_file(whole, path, metadata={"format": "pt"})
        path.write_bytes(path.read_bytes()[:-1000])
        done = convert(run, tmp_path, "--tokenizer", "hash-md", check=False)
        assert done.returncode == 1 and "model.safetensors" in done.stderr
        assert not (tmp_path / "ours").exists()


def test_weights_of_torch_alone_are_answered_with_the_way_out(run, tmp_path):
    """Follows the message: transformers does not have the class, and what the message says to type makes the directory
    readable."""
    HashFormer("hash-proj").save(tmp_path / "theirs")
    path = tmp_path / "theirs" / "model.safetensors"
    torch.save(load_file(path), tmp_path / "theirs" / "pytorch_model.bin")
    path.unlink()
    said = convert(run, tmp_path, "--tokenizer", "hash-md", check=False).stderr
    code = said[said.index('python -c "') + len('python -c "') :].rstrip().rstrip('"')
    run_command([sys.executable, "-c", code], cwd=tmp_path / "theirs")
    convert(run, tmp_path, "--tokenizer", "hash-md")


def test_options_that_do_not_belong_together(refused, tmp_path):
    both = (tmp_path, tmp_path / "out")
    assert "--hash-merges is for" in refused(2, "convert", "--from", "hf", *both, "--hash-merges", tmp_path)
    assert "--hash-merges" in refused(2, "convert", "--from", "hf", *both, "--tokenizer", "hash-lsh")
    assert "--words belongs to" in refused(2, "convert", "--from", "hf", *both, "--words", tmp_path)
    assert "--hash-merges belongs to" in refused(2, "convert", "--to", "hf", *both, "--hash-merges", tmp_path)
    assert "--words" in refused(2, "convert", "--to", "mqa", *both, "--words", tmp_path)

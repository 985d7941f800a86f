"""Tests `headshare convert --from hf`: a random transformers GPT-2 keeps its logits, loss and gradients, and `--to hf`
gives it back."""

import gzip
import json
import subprocess

import pytest
from conftest import run_command

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file, save_file  # noqa: E402

SIZES = {"vocab_size": 97, "n_positions": 24, "n_embd": 48, "n_layer": 3, "n_head": 4}
CONFIGURATIONS = {
    "tanh": {},
    "erf": {"activation_function": "gelu"},
    "relu, wide heads": {"activation_function": "relu", "n_head": 1},
    "narrow feed-forward, untied": {"n_inner": 20, "tie_word_embeddings": False},
    "pytorch's tanh, other epsilon": {"activation_function": "gelu_pytorch_tanh", "layer_norm_epsilon": 0.01},
    "unscaled scores": {"scale_attn_weights": False},
    "scores scaled by layer": {"scale_attn_by_inverse_layer_idx": True, "reorder_and_upcast_attn": True},
    "nanoGPT's small one": {"n_embd": 128, "n_layer": 4, "n_positions": 64, "vocab_size": 65},
}


def random_gpt2(seed=0, **changes):
    """Makes every parameter random, biases and norms too."""
    config = transformers.GPT2Config(**{**SIZES, **changes}, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config).eval()
    numbers = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        offset = 1.0 if ".ln_" in name and name.endswith("weight") else 0.0
        parameter.data.normal_(offset, 0.1, generator=numbers)
    return model


def random_ids(model, rows=3):
    shape = (rows, model.config.n_positions)
    return torch.randint(model.config.vocab_size, shape, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def ours(build_dir, tmp_path):
    """Returns what the converted model in a directory makes of ids."""

    def compute(directory, ids, *more):
        (tmp_path / "ids.json").write_text(json.dumps(dict(ids=ids.tolist())))
        tool = build_dir / "obj" / "models" / "model_tool"
        run_command([tool, directory, tmp_path / "ids.json", tmp_path / "out.safetensors", *more])
        return load_file(tmp_path / "out.safetensors")

    return compute


def assert_same_outputs(model, found, ids):
    with torch.no_grad():
        expected = model(ids, labels=ids)
    assert found["logits"].shape == expected.logits.shape
    assert (found["logits"] - expected.logits).abs().max() < 1e-4
    assert abs(found["loss"] - expected.loss) < 1e-5
    assert expected.logits.std() > 0.1, "the model is too flat to tell anything"


def expected_gradients(model):
    """Returns transformers' gradients under our names and in our shapes."""
    grads = {name.removeprefix("transformer."): p.grad for name, p in model.named_parameters()}
    width = model.config.n_embd
    mapped = {"token_embedding": grads["wte.weight"], "position_embedding": grads["wpe.weight"]}
    if not model.config.tie_word_embeddings:
        mapped["output_embedding"] = grads["lm_head.weight"]
    for part in ("weight", "bias"):
        mapped[f"norm.{part}"] = grads[f"ln_f.{part}"]
        for i in range(model.config.n_layer):
            block, scheme = f"blocks.{i}", f"blocks.{i}.attention.scheme"
            joint = grads[f"h.{i}.attn.c_attn.{part}"]
            for name, columns in zip(("query", "key", "value"), joint.split(width, -1), strict=True):
                mapped[f"{scheme}.{name}.{part}"] = columns.T if part == "weight" else columns
            for target, source in (
                (f"{scheme}.output", f"h.{i}.attn.c_proj"),
                (f"{block}.feed_forward.expand", f"h.{i}.mlp.c_fc"),
                (f"{block}.feed_forward.contract", f"h.{i}.mlp.c_proj"),
            ):
                grad = grads[f"{source}.{part}"]
                mapped[f"{target}.{part}"] = grad.T if part == "weight" else grad
            mapped[f"{block}.attention_norm.{part}"] = grads[f"h.{i}.ln_1.{part}"]
            mapped[f"{block}.feed_forward_norm.{part}"] = grads[f"h.{i}.ln_2.{part}"]
    return mapped


@pytest.mark.parametrize("changes", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_logits_and_loss(run, ours, tmp_path, changes):
    model = random_gpt2(**changes)
    model.save_pretrained(tmp_path / "hf")
    run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    ids = random_ids(model)
    assert_same_outputs(model, ours(tmp_path / "ours", ids), ids)
    # The way back gives the same model, loaded without a word of complaint.
    run("convert", "--to", "hf", tmp_path / "ours", tmp_path / "back")
    back, notes = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not any(notes[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), notes
    with torch.no_grad():
        # The name that is written for tanh stands for another implementation of it.
        assert (back.eval()(ids).logits - model(ids).logits).abs().max() < 1e-5
    for key in (*SIZES, "resid_pdrop", "embd_pdrop", "attn_pdrop", "layer_norm_epsilon", "tie_word_embeddings"):
        assert getattr(back.config, key) == getattr(model.config, key), key


@pytest.mark.parametrize("tied", [True, False])
def test_gradients(run, ours, tmp_path, tied):
    model = random_gpt2(tie_word_embeddings=tied)
    model.save_pretrained(tmp_path / "hf")
    run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    ids = random_ids(model)
    model(ids, labels=ids).loss.backward()
    expected = expected_gradients(model)
    found = {k.removeprefix("gradient."): v for k, v in ours(tmp_path / "ours", ids, "gradients").items() if "." in k}
    assert found.keys() | {"token_embedding"} == expected.keys() | {"token_embedding"}
    for name, gradient in expected.items():
        # The key bias cannot matter: transformers has rounding noise there, we have exactly nothing.
        assert (found[name] - gradient).abs().max() < 1e-5, name
        assert name.endswith("key.bias") == (found[name].abs().max() == 0), name


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_float32(run, ours, tmp_path, dtype):
    model = random_gpt2().to(dtype)
    model.save_pretrained(tmp_path / "hf")
    run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    assert {t.dtype for t in load_file(tmp_path / "ours" / "model.safetensors").values()} == {torch.float32}
    ids = random_ids(model)
    assert_same_outputs(model.float(), ours(tmp_path / "ours", ids), ids)


def test_shards(run, ours, tmp_path):
    model = random_gpt2()
    model.save_pretrained(tmp_path / "hf", max_shard_size="60KB")
    assert len(list((tmp_path / "hf").glob("model-*.safetensors"))) > 3
    run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    ids = random_ids(model)
    assert_same_outputs(model, ours(tmp_path / "ours", ids), ids)


def test_names_of_the_oldest_checkpoints(run, ours, tmp_path):
    """Reads names as openai-community/gpt2 is stored: no prefix, no lm_head, and the causal masks among the tensors."""
    model = random_gpt2()
    model.transformer.save_pretrained(tmp_path / "hf")
    path = tmp_path / "hf" / "model.safetensors"
    tensors = load_file(path)
    assert "wte.weight" in tensors
    for i in range(SIZES["n_layer"]):
        tensors[f"h.{i}.attn.bias"] = torch.ones(1, 1, 24, 24).tril()
    save_file(tensors, path, {"format": "pt"})
    run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    ids = random_ids(model)
    assert_same_outputs(model, ours(tmp_path / "ours", ids), ids)


def unpack_gpt2_tokenizer(data, folder):
    for theirs, name in (("encoder.json", "vocab.json"), ("vocab.bpe", "merges.txt")):
        (folder / name).write_bytes(gzip.decompress((data / "tokenizers" / "gpt2" / f"{theirs}.gz").read_bytes()))


def test_the_tokenizer_comes_along(run, data, tmp_path):
    random_gpt2(vocab_size=50257, n_embd=4).save_pretrained(tmp_path / "hf")
    unpack_gpt2_tokenizer(data, tmp_path / "hf")
    done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    assert "no tokenizer" not in done.stderr
    assert json.loads((tmp_path / "ours" / "tokenizer.json").read_text())["kind"] == "bpe"


def test_a_missing_tokenizer_is_said_and_can_be_given(run, data, tmp_path):
    random_gpt2(vocab_size=50257, n_embd=4).save_pretrained(tmp_path / "hf")
    done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    assert "has no tokenizer" in done.stderr and "--tokenizer PATH" in done.stderr
    assert not (tmp_path / "ours" / "tokenizer.json").exists()
    (tmp_path / "gpt2").mkdir()
    unpack_gpt2_tokenizer(data, tmp_path / "gpt2")
    given = ("--overwrite", "--tokenizer", tmp_path / "gpt2")
    done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours", *given)
    assert (tmp_path / "ours" / "tokenizer.json").exists() and "make sure" not in done.stderr
    random_gpt2(vocab_size=60000, n_embd=4).save_pretrained(tmp_path / "hf")
    done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours", *given)
    assert "50257 tokens, the model 60000: make sure that it is this model's tokenizer" in " ".join(done.stderr.split())


def test_a_tokenizer_of_another_model_is_refused(run, data, tmp_path):
    random_gpt2().save_pretrained(tmp_path / "hf")
    unpack_gpt2_tokenizer(data, tmp_path / "hf")
    done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours", check=False)
    assert done.returncode == 1 and "has 50257 tokens, the model only 97" in done.stderr
    assert not (tmp_path / "ours").exists()


def test_a_dry_run_prints_the_mapping_and_writes_nothing(run, tmp_path):
    random_gpt2().save_pretrained(tmp_path / "hf")
    done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours", "--dry-run")
    assert "transformer.wte.weight -> token_embedding" in done.stdout.splitlines()
    line = "transformer.h.2.attn.c_attn.weight (columns 96..143, transposed) -> blocks.2.attention.scheme.value.weight"
    assert line in done.stdout.splitlines()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hf"]


def test_an_existing_output_is_safe(run, tmp_path):
    random_gpt2().save_pretrained(tmp_path / "hf")
    run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours", check=False)
    assert done.returncode == 1 and "exists already" in done.stderr and "--overwrite" in done.stderr
    run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours", "--overwrite")
    done = run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "hf", "--overwrite", check=False)
    assert done.returncode == 1 and (tmp_path / "hf" / "model.safetensors").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hf", "ours"]


def test_mistakes_of_the_call(run, tmp_path):
    random_gpt2().save_pretrained(tmp_path / "hf")
    for words, message in (
        (["convert", tmp_path / "hf", tmp_path / "ours"], "--from is missing"),
        (["convert", "--from", "hg", tmp_path / "hf", tmp_path / "ours"], "did you mean 'hf'?"),
        (["convert", "--from", "hf", tmp_path / "hf"], "OUT"),
    ):
        done = run(*words, check=False)
        assert done.returncode == 2 and message in done.stderr, done.stderr


def test_a_full_disk_leaves_nothing_behind(program, tmp_path):
    """Uses a limit on file sizes for the full disk: it also holds for root."""
    random_gpt2().save_pretrained(tmp_path / "hf")
    command = f'ulimit -f 100; "{program}" convert --from hf "{tmp_path}/hf" "{tmp_path}/ours"'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 1 and "model.safetensors" in done.stderr, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hf"]

"""headshare.load against the program: the same checkpoints, the same numbers."""

import copy
import json
import pickle

import pytest
import torch
from conftest import run_command
from safetensors.torch import load_file, save_file

import headshare
from headshare.models import Model, Tokenizer

COMMON = {"layers": 2, "d-model": 24, "heads": 4, "context": 20, "vocabulary": 50, "init-deviation": 0.3}
ENCODER = {**COMMON, "masked-head": True, "pooler": True, "segments": 2}
CONFIGS = {
    "decoder": {"model": {**COMMON, "scheme": "mhe_mul", "positions": "rotary"}},
    "shared": {"model": {**COMMON, "scheme": "collaborative", "key-width": 12, "projection-bias": True,
                         "content-bias": True}},
    "alibi": {"model": {**COMMON, "scheme": "gqa", "positions": "alibi", "norm": "rms", "feed-forward": "swiglu"}},
    "one cache for two layers": {"model": {**COMMON, "scheme": "mla", "positions": "rotary", "share-kv-layers": 2}},
    "sinusoids": {"model": {**COMMON, "scheme": "mqa", "positions": "sinusoidal", "tie-embeddings": False}},
    "encoder": {"kind": "encoder", "model": {**ENCODER, "scheme": "mha"}},
    "one block": {"kind": "encoder", "model": {**ENCODER, "scheme": "skv", "layer-groups": 1, "embedding-width": 8}},
    "scores": {"kind": "encoder", "model": {**ENCODER, "scheme": "mhe_add"},
               "task_head": {"kind": "text", "outputs": 3, "labels": ["a", "b", "c"]}},
    "translator": {"kind": "encoder-decoder", "model": {**COMMON, "scheme": "mqa", "positions": "sinusoidal",
                                                        "cross-scheme": "mhe_mul", "start-id": 1, "end-id": 2}},
}  # fmt: skip


def made(name):
    torch.manual_seed(3)
    model = Model({"format": "headshare", "format_version": 10, **CONFIGS[name]})
    with torch.no_grad():
        for one in model.parameters():
            one.add_(torch.randn_like(one) * 0.2)
    return model.eval()


def inputs_of(model):
    numbers = torch.Generator().manual_seed(4)

    def ids():
        return torch.randint(3, 50, (2, 9), generator=numbers)

    padded = torch.arange(9) < torch.tensor([[9], [6]])
    given = {"ids": ids(), "targets": ids()}
    if model.kind == "encoder":
        given |= {"visible": padded, "segments": (ids() > 20).long()}
    if model.kind == "encoder-decoder":
        given |= {"source": ids(), "source_visible": padded}
    return given


def answers(model, given):
    """Returns everything that the model gives, in evaluation mode."""
    rest = {name: one for name, one in given.items() if name != "targets"}
    found = {"hidden": model.hidden(**rest), "logits": model.ask("logits", **rest), "loss": model(**given)}
    if model.kind == "encoder":
        found["pooled"] = model.ask("pooled", **rest)
    if "task_head" in model.config:
        found["scores"] = model(**rest)
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_a_saved_model_is_the_programs(build_dir, tmp_path, name):
    model = made(name)
    model.save(tmp_path / "model")
    given = inputs_of(model)
    rows = {key.replace("source_visible", "visible"): one.long().tolist() for key, one in given.items()}
    if model.kind == "decoder":  # the tool shifts the ids itself
        given["targets"] = torch.cat([given["ids"][:, 1:], torch.full((2, 1), -100)], 1)
    (tmp_path / "input.json").write_text(json.dumps(rows))
    tool = build_dir / "obj" / "models" / "model_tool"
    run_command([tool, tmp_path / "model", tmp_path / "input.json", tmp_path / "out", "gradients"])
    expected = load_file(tmp_path / "out")
    found = answers(model, given)
    for what, one in found.items():
        torch.testing.assert_close(one, expected[what].view(one.shape), rtol=1e-5, atol=1e-6, msg=lambda m: f"{what}: {m}")
    assert found["hidden"].std() > 0.1
    # Gradients reach the parameters that torch's optimizers see.
    found["loss"].backward()
    for parameter, one in model.named_parameters():
        gradient = torch.zeros_like(one) if one.grad is None else one.grad
        torch.testing.assert_close(gradient, expected["gradient." + parameter], rtol=1e-4, atol=1e-6)
    # What is loaded is what was saved.
    loaded = headshare.load(tmp_path / "model")
    assert not loaded.training and loaded.config == model.config
    for what, one in answers(loaded, given).items():
        assert torch.equal(one, found[what]), what


@pytest.mark.parametrize("name", ["decoder", "sinusoids", "translator"])
def test_copies_compute_the_same_and_share_nothing(name):
    model = made(name)
    given = inputs_of(model)
    before = model(**given)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin(**given), before)
        with torch.no_grad():
            next(twin.parameters()).zero_()
        assert torch.equal(model(**given), before)


def test_torch_trains_a_model_with_dropout():
    torch.manual_seed(0)
    model = Model({"format": "headshare", "format_version": 1,
                   "model": {**COMMON, "scheme": "mhe_mul", "dropout": 0.1, "attention-dropout": 0.1}})  # fmt: skip
    given = inputs_of(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = model(**given)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2, losses
    torch.manual_seed(1)
    first = model(**given)
    assert not torch.equal(model(**given), first)
    torch.manual_seed(1)
    assert torch.equal(model(**given), first)


def test_a_trained_run_is_loaded_with_its_tokenizer(run, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("Rain fell on the old stone bridge all day long. " * 200)
    run("train", "--text", text, "--layers", 1, "--d-model", 16, "--heads", 2, "--context", 16, "--steps", 3, "--scheme",
        "mhe_mul", "--out", tmp_path / "run")  # fmt: skip
    model = headshare.load(tmp_path / "run")
    ids = model.tokenizer.encode("stone bridge")
    assert model.tokenizer.decode(ids) == "stone bridge" and len(model.tokenizer) == model.config["model"]["vocabulary"]
    assert model(torch.tensor([ids])).shape == (1, len(ids), len(model.tokenizer))
    twin = pickle.loads(pickle.dumps(model))
    assert twin.tokenizer.encode("stone bridge") == ids
    # The program goes on with what Python saves.
    model.save(tmp_path / "saved")
    losses = [json.loads(run("evaluate", tmp_path / name, "--text", text, "--json").stdout) for name in ("saved", "run")]
    assert losses[0]["loss"] == losses[1]["loss"]
    assert Tokenizer.read(tmp_path / "saved").encode("stone bridge") == ids


def test_saving_replaces_no_file_of_others(tmp_path):
    model = made("decoder")
    model.save(tmp_path / "model")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        model.save(tmp_path / "model")
    model.save(tmp_path / "model", overwrite=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(FileExistsError, match="letter.txt"):
        model.save(tmp_path / "other", overwrite=True)
    assert (tmp_path / "other" / "letter.txt").read_text() == "dear"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["model", "other"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_checkpoint_holds_float32(tmp_path, dtype):
    model = made("decoder").to(dtype)
    model.save(tmp_path / "model")
    stored = load_file(tmp_path / "model" / "model.safetensors")
    for name, one in model.named_parameters():
        assert stored[name].dtype == torch.float32
        assert torch.equal(stored[name], one.float())


def test_a_value_that_float32_does_not_hold_is_not_saved(tmp_path):
    model = made("decoder").double()
    name, one = next(model.named_parameters())
    with torch.no_grad():
        one.view(-1)[0] = 1e300
    with pytest.raises(ValueError, match=f"{name} holds values up to 1e\\+300"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_options_that_are_no_number_are_named():
    with pytest.raises(ValueError, match="norm-epsilon must be a finite number, not nan"):
        Model({"format": "headshare", "format_version": 10, "model": {**COMMON, "norm-epsilon": float("nan")}})
    with pytest.raises(ValueError, match=r"layer-key-widths\[1\] must be a finite number, not inf"):
        Model({"format": "headshare", "format_version": 10, "model": {**COMMON, "layer-key-widths": [4, float("inf")]}})


def test_bad_files_are_named(tmp_path):
    with pytest.raises(RuntimeError, match="does not exist"):
        headshare.load(tmp_path / "nothing")
    made("decoder").save(tmp_path / "model")
    weights = load_file(tmp_path / "model" / "model.safetensors")
    save_file({**weights, "extra": torch.zeros(2)}, tmp_path / "model" / "model.safetensors")
    with pytest.raises(RuntimeError, match="model.safetensors.*extra"):
        headshare.load(tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"\0" * 20)
    with pytest.raises(RuntimeError, match="model.safetensors"):
        headshare.load(tmp_path / "model")
    (tmp_path / "model" / "config.json").write_text("{")
    with pytest.raises(RuntimeError, match="config.json"):
        headshare.load(tmp_path / "model")


def test_bad_input_is_refused():
    model = made("encoder")
    ids = inputs_of(model)["ids"]
    for bad, message in (
        (lambda: model(ids.float()), "int64"),
        (lambda: model(ids[0]), r"\[B, T\]"),
        (lambda: model(ids.repeat(1, 9)), "context of 20"),
        (lambda: model(ids + 1000), r"ids lie between 10\d\d and 10\d\d, and must be below 50"),
        (lambda: model(ids, segments=ids + 2), r"segments lie between \d+ and \d+, and must be below 2"),
        (lambda: model(ids, attention_mask=ids), "reads no 'attention_mask'; its inputs are ids, targets, visible"),
        (lambda: model(ids, visible=ids), r"not Long \[2, 9\]"),
        (lambda: model(ids.to("meta")), "ids is on meta, the model on cpu"),
        (lambda: model.ask("tea", ids=ids), "not 'tea'"),
        (lambda: model.ask("scores", ids=ids), "no head of a task"),
        (lambda: model.ask("logits"), "needs the input ids"),
        (lambda: model(ids, targets=torch.full_like(ids, -100)), "no token has a target"),
    ):
        with pytest.raises((RuntimeError, IndexError), match=message):
            bad()


def test_a_model_of_images_is_refused():
    config = {"format": "headshare", "format_version": 13, "kind": "vision-transformer", "model": {}}
    with pytest.raises(RuntimeError, match="a vision transformer, .* Python loads decoders, encoders and encoder-decoders"):
        Model(config)


def test_sinusoids_follow_the_parameters():
    model = made("sinusoids")
    ids = inputs_of(model)["ids"]
    single = model(ids)
    half = model.bfloat16()(ids)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), single, rtol=0.1, atol=0.3)
    with torch.no_grad():
        assert model.float()(ids).dtype == torch.float32


def test_tokens_are_decoded_one_by_one(run, tmp_path):
    (tmp_path / "text.txt").write_text("Rain. " * 300)
    run("train", "--text", tmp_path / "text.txt", "--tokenizer", "bytes", "--layers", 1, "--d-model", 16, "--heads", 2,
        "--context", 16, "--steps", 1, "--out", tmp_path / "run")  # fmt: skip
    tokenizer = Tokenizer.read(tmp_path / "run" / "checkpoints" / "best")
    ids = tokenizer.encode("\U0001f600")
    assert tokenizer.decode(ids) == "\U0001f600"
    assert tokenizer.decode(ids[:1]) == "\ufffd"

"""Tests train --start-from: training goes on from the weights of another run."""

import json
import shutil
import signal

import pytest
import yaml
from training import TINY, losses, own_cache, sentences, stop_when, text, weights  # noqa: F401 (fixtures)

# With these options the start is what is evaluated.
STILL = ("--steps", 1, "--learning-rate", 0, "--threads", 1)
MASKED = ("--task", "mlm", "--layers", 1, "--d-model", 16, "--heads", 2, "--context", 16, "--batch-size", 4)


@pytest.fixture
def other_text(tmp_path):
    path = tmp_path / "other.txt"
    path.write_bytes(sentences(9000).replace(b"fox", b"owl"))
    return path


@pytest.fixture
def start(run, text, tmp_path):
    """Trains a decoder."""
    run("train", "--text", text, "--out", tmp_path / "start", *TINY, "--steps", 30, "--dropout", 0.1)
    return tmp_path / "start"


def train(run, start, text, out, *flags):
    done = run("train", "--start-from", start, "--text", text, "--out", out, "--json", *flags)
    return json.loads(done.stdout), done.stderr


def test_it_starts_where_the_model_is(run, start, other_text, tmp_path):
    result, said = train(run, start, other_text, tmp_path / "run", *STILL)
    part = ("--text", other_text, "--part", "validation", "--json", "--threads", 1)
    scored = json.loads(run("evaluate", start, *part).stdout)
    assert result["best_loss"] == pytest.approx(scored["loss"], rel=1e-6)
    assert "differs" not in said
    resolved = yaml.safe_load((tmp_path / "run" / "resolved.yaml").read_text())
    flat = {name: value for group in resolved.values() if isinstance(group, dict) for name, value in group.items()}
    flat.update({name: value for name, value in resolved.items() if not isinstance(value, dict)})
    assert flat["start-from"] == str(start) and flat["d-model"] == 16 and flat["dropout"] == 0.1


def test_it_learns_on(run, start, other_text, tmp_path):
    flags = ("--steps", 30, "--learning-rate", 1e-3, "--evaluate-every", 10, "--threads", 1)
    went_on, _ = train(run, start, other_text, tmp_path / "on", *flags)
    still, _ = train(run, start, other_text, tmp_path / "still", *STILL)
    done = run("train", "--text", other_text, "--out", tmp_path / "new", *TINY, *flags, "--json")
    assert went_on["best_loss"] < still["best_loss"]
    assert went_on["best_loss"] < json.loads(done.stdout)["best_loss"]


def test_options_on_top_of_the_models(run, refused, start, text, tmp_path):
    result, said = train(run, start, text, tmp_path / "run", *STILL, "--context", 8, "--dropout", 0)
    assert "differs from" in said and "context 8 instead of 16 and dropout 0.0 instead of 0.1" in said
    part = ("--text", text, "--part", "validation", "--context", 8, "--json")
    assert result["best_loss"] == pytest.approx(json.loads(run("evaluate", start, *part).stdout)["loss"], rel=1e-6)

    def refusal(*flags):
        return refused(2, "train", "--start-from", start, "--text", text, "--out", tmp_path / "no", *flags)

    message = refusal("--context", 32)
    assert "--context is 32" in message and "is 16: its positions are learned" in message
    message = refusal("--d-model", 32)
    assert "--d-model is 32" in message and "is 16" in message and "leave --d-model out" in message
    assert "--scheme is mqa" in refusal("--scheme", "mqa")
    assert "--tokenizer is bpe" in refusal("--tokenizer", "bpe")
    assert "--task is mlm" in refusal("--task", "mlm")
    assert not (tmp_path / "no").exists()


def test_a_longer_context_where_positions_have_no_end(run, text, tmp_path):
    for positions in ("rotary", "sinusoidal"):
        out = tmp_path / positions
        run("train", "--text", text, "--out", out, *TINY, "--steps", 5, "--positions", positions)
        result, _ = train(run, out, text, tmp_path / f"{positions}-long", *STILL, "--context", 64)
        assert result["best_loss"] > 0
        report = json.loads(run("info", tmp_path / f"{positions}-long", "--json").stdout)
        assert report["options"]["context"] == 64


def test_a_shared_layer_at_more_depths(run, refused, text, tmp_path):
    shared = ("--layers", 2, "--layer-groups", 1, "--embedding-width", 8)
    run("train", "--text", text, "--out", tmp_path / "start", *TINY, *shared, "--steps", 5)
    result, said = train(run, tmp_path / "start", text, tmp_path / "deeper", *STILL, "--layers", 3)
    assert "layers 3 instead of 2" in said and result["best_loss"] > 0
    report = json.loads(run("info", tmp_path / "deeper", "--json").stdout)
    assert report["options"]["layers"] == 3 and report["options"]["layer-groups"] == 1
    flags = ("--start-from", tmp_path / "start", "--text", text, "--out", tmp_path / "no")
    assert "leave --layer-groups out" in refused(2, "train", *flags, "--layer-groups", 2)
    assert "leave --embedding-width out" in refused(2, "train", *flags, "--embedding-width", 4)


def test_where_it_cannot_start(refused, start, text, tmp_path):
    flags = ("--text", text, "--out", tmp_path / "run")
    assert "does not exist" in refused(1, "train", "--start-from", tmp_path / "none", *flags)
    weights = start / "checkpoints" / "best" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-5])
    assert "model.safetensors" in refused(1, "train", "--start-from", start, *flags)
    weights.write_bytes(whole)
    inside = ("--text", text, "--out", start, "--overwrite")
    assert "lies in --out" in refused(2, "train", "--start-from", start, *inside)
    assert (start / "checkpoints").exists()


def test_a_killed_run_goes_on_without_the_start(run, program, start, other_text, tmp_path):
    flags = ("--steps", 60, "--save-every", 5, "--threads", 1, "--log-every", 1, "--text", other_text)
    run("train", "--start-from", start, "--out", tmp_path / "whole", *flags)
    killed = tmp_path / "killed"
    command = [program, "train", "--start-from", start, "--out", killed, *flags]
    stop_when(command, lambda: (killed / "checkpoints" / "step-00000010").exists(), signal.SIGKILL)
    (start / "checkpoints" / "best" / "model.safetensors").unlink()
    run("train", "--resume", "--out", killed)
    assert losses(killed) == losses(tmp_path / "whole")
    assert weights(killed) == weights(tmp_path / "whole")


def test_an_encoder(run, refused, text, other_text, tmp_path):
    flags = (*MASKED, "--vocabulary-size", 80, "--threads", 1)
    run("train", "--text", text, "--out", tmp_path / "start", *flags, "--steps", 20)
    result, said = train(run, tmp_path / "start", other_text, tmp_path / "run", *STILL)
    part = ("--text", other_text, "--part", "validation", "--json", "--pseudo-tokens", 0, "--threads", 1)
    scored = json.loads(run("evaluate", tmp_path / "start", *part).stdout)
    assert result["best_loss"] == pytest.approx(scored["masked_lm_loss"], rel=1e-6)
    assert "random values" not in said
    kept = json.loads((tmp_path / "run" / "checkpoints" / "best" / "config.json").read_text())
    assert kept["kind"] == "encoder"
    flags = ("--start-from", tmp_path / "start", "--text", text, "--out", tmp_path / "no")
    assert "--segments is 1" in refused(2, "train", *flags, "--segments", 1)
    assert "--task is language-model" in refused(2, "train", *flags, "--task", "language-model")


def test_a_vocabulary_with_room_to_spare(run, start, text, tmp_path):
    """Starts from a padded embedding, as of a converted model."""
    out = tmp_path / "padded"
    run("train", "--text", text, "--out", out, *TINY, "--steps", 3, "--model-vocabulary", 300)
    result, _ = train(run, out, text, tmp_path / "run", *STILL)
    scored = json.loads(run("evaluate", out, "--text", text, "--part", "validation", "--json").stdout)
    assert result["best_loss"] == pytest.approx(scored["loss"], rel=1e-6)
    copy = shutil.copytree(tmp_path / "run", tmp_path / "copy")
    assert json.loads(run("info", copy, "--json").stdout)["options"]["vocabulary"] == 300

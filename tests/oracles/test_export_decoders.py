"""Tests what `convert --to hf` makes of decoders whose heads share: transformers has the logits of headshare."""

import json

import pytest
from conftest import run_command
from shared_decoders import SIZES, write_decoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file  # noqa: E402

LLAMA = {"positions": "rotary", "norm": "rms", "feed-forward": "swiglu"}
LLAMA3 = {"rotary-scaling": "llama3", "rotary-factor": 4.0, "rotary-original-context": 32}
PLAIN = {"projection-bias": False, "feed-forward-bias": False}
CASES = {
    "mhe_add": ("mhe_add", {}, "gpt_bigcode"),
    "mhe_mul": ("mhe_mul", {"activation": "gelu-erf"}, "gpt_bigcode"),
    "sha": ("sha", {}, "gpt_bigcode"),
    "gqa": ("gqa", {"groups": 2}, "gpt2"),
    "skv": ("skv", {}, "gpt2"),
    "rotary gqa, scaled": ("gqa", {"groups": 2, **LLAMA, **LLAMA3}, "llama"),
    "normed queries": ("gqa", {"groups": 2, **LLAMA, "qk-norm": True, "norm-epsilon": 0.01, "feed-forward-bias": False}, "qwen3"),
    "windows": ("gqa", {"groups": 2, **LLAMA, **PLAIN, "local-window": 5}, "mistral"),
    "windows in some layers": ("gqa", {"groups": 2, **LLAMA, **PLAIN, "local-window": 5, "global-every": 2}, "qwen2"),
    "windows, normed queries": ("gqa", {"groups": 2, **LLAMA, **PLAIN, "local-window": 5, "global-every": 2, "global-first": 1, "qk-norm": True}, "qwen3"),
    "rotary mhe_mul": ("mhe_mul", {**LLAMA}, "llama"),
}


@pytest.fixture
def logits(build_dir, tmp_path):
    """Returns headshare's logits of ids."""

    def compute(directory, ids):
        (tmp_path / "ids.json").write_text(json.dumps(dict(ids=ids.tolist())))
        tool = build_dir / "obj" / "models" / "model_tool"
        run_command([tool, directory, tmp_path / "ids.json", tmp_path / "out.safetensors"])
        return load_file(tmp_path / "out.safetensors")["logits"]

    return compute


@pytest.mark.parametrize("scheme, changes, written", CASES.values(), ids=CASES.keys())
def test_logits_and_text(run, logits, tmp_path, scheme, changes, written):
    ours = write_decoder(tmp_path / "ours", scheme, **changes)
    done = run("convert", ours, tmp_path / "hf", "--to", "hf", "--verify")
    assert "read back, outputs differ by" in done.stdout and "transformers caches" in done.stderr
    model, notes = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not any(notes[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), notes
    assert model.config.model_type == written
    ids = torch.randint(SIZES["vocabulary"], (3, 40), generator=torch.Generator().manual_seed(1))
    expected = logits(ours, ids)
    with torch.no_grad():
        assert (model.eval()(ids).logits - expected).abs().max() < 1e-4
        # Generation reads token by token, with a cache.
        seen = model(ids[:, :30], use_cache=True)
        after = [model(ids[:, [t]], past_key_values=seen.past_key_values).logits[:, 0] for t in range(30, 40)]
    assert (torch.stack(after, 1) - expected[:, 30:]).abs().max() < 1e-4
    assert expected.std() > 0.1, "too flat to show anything"
    heads = seen.past_key_values.layers[0].keys.shape[1]
    assert heads == {"gpt_bigcode": 1, "gpt2": 4, "llama": 2 if scheme == "gqa" else 4}.get(written, 2)

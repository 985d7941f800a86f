"""Tests `headshare convert --from hf` for ModernBERT: random models keep the outputs that transformers computes, with
texts far longer than the windows, rows that are padded, and the options that change what a model computes. What is
refused stands in hf/families/modernbert_test.cc."""

import json
import subprocess

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file  # noqa: E402

CONTEXT = 300  # more than two blocks of queries
SIZES = {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 40, "num_hidden_layers": 4, "num_attention_heads": 4,
         "max_position_embeddings": CONTEXT, "local_attention": 10, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
         "cls_token_id": 1, "sep_token_id": 2}  # fmt: skip
GLOBAL, LOCAL = "full_attention", "sliding_attention"
ROTATIONS = {GLOBAL: {"rope_type": "default", "rope_theta": 300.0}, LOCAL: {"rope_type": "default", "rope_theta": 20.0}}
# A case has a class, what its configuration changes, and what is edited in config.json before transformers and headshare
# read it (None: the key is removed).
CASES = {
    "usual": ("ForMaskedLM", {}, {}),
    "without a head": ("Model", {}, {}),
    "biases": ("ForMaskedLM", {"norm_bias": True, "attention_bias": True, "mlp_bias": True, "classifier_bias": True}, {}),
    "no output bias, untied": ("ForMaskedLM", {"decoder_bias": False, "tie_word_embeddings": False}, {}),
    "activations, epsilon": ("ForMaskedLM", {"hidden_activation": "gelu_pytorch_tanh", "classifier_activation": "silu", "norm_eps": 0.1}, {}),
    "silu, relu": ("ForMaskedLM", {"hidden_activation": "silu", "classifier_activation": "relu"}, {}),
    "its rotations": ("ForMaskedLM", {"rope_parameters": ROTATIONS}, {}),
    "rotations of old": ("ForMaskedLM", {}, {"rope_parameters": None, "global_rope_theta": 50.0, "local_rope_theta": 9.0}),
    "every second layer": ("ForMaskedLM", {}, {"layer_types": None, "global_attn_every_n_layers": 2}),
    "listed layers": ("ForMaskedLM", {"layer_types": [LOCAL, LOCAL, GLOBAL, LOCAL], "local_attention": 7}, {}),
    "all local": ("ForMaskedLM", {"layer_types": [LOCAL] * 4, "local_attention": 2}, {}),
    "all global": ("ForMaskedLM", {"layer_types": [GLOBAL] * 4}, {}),
    "window longer than the text": ("Model", {"local_attention": 3 * CONTEXT}, {}),
}  # fmt: skip


def saved(folder, name):
    kind, changes, edits = CASES[name]
    torch.manual_seed(0)
    model = getattr(transformers, f"ModernBert{kind}")(transformers.ModernBertConfig(**{**SIZES, **changes})).eval()
    numbers = torch.Generator().manual_seed(3)
    for parameter_name, parameter in model.named_parameters():
        is_norm = "norm" in parameter_name and parameter_name.endswith("weight")
        parameter.data.normal_(1.0 if is_norm else 0.0, 0.2, generator=numbers)
    model.save_pretrained(folder)
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **edits}
    path.write_text(json.dumps({key: value for key, value in config.items() if edits.get(key, value) is not None}))
    return getattr(transformers, f"ModernBert{kind}").from_pretrained(folder, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def imported(build_dir, tmp_path_factory):
    """Returns what headshare and transformers make of all the models, with one start of a program."""
    tool = build_dir / "obj" / "convert" / "import_tool"
    if not tool.is_file():
        pytest.skip(f"{tool} is not built: configure with HEADSHARE_TESTS")
    folder, lines, expected = tmp_path_factory.mktemp("imports"), [], {}
    visible = torch.arange(CONTEXT) < torch.tensor([[CONTEXT], [170], [4]])
    for number, name in enumerate(CASES):
        directory, out = folder / f"{number}", folder / f"{number}.safetensors"
        model = saved(directory, name)
        ids = torch.randint(97, visible.shape, generator=torch.Generator().manual_seed(number))
        with torch.no_grad():
            found = model(ids, attention_mask=visible.long())
        expected[name] = found.last_hidden_state if CASES[name][0] == "Model" else found.logits
        lines.append(json.dumps({"directory": str(directory), "ids": ids.tolist(), "visible": visible.long().tolist(), "out": str(out)}))
    done = subprocess.run([tool], input="\n".join(lines), capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        name: (answer, load_file(folder / f"{number}.safetensors") if "error" not in answer else {}, expected[name], visible)
        for number, (name, answer) in enumerate(zip(CASES, answers, strict=True))
    }


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_theirs(imported, name):
    answer, tensors, expected, visible = imported[name]
    assert "error" not in answer, answer
    [found] = tensors.values()
    assert (found - expected)[visible].abs().max() < 1e-4 * max(1, expected[visible].abs().max())
    assert expected[visible].abs().max() > 0.5


def test_windows_change_the_outputs(imported):
    """Says that the cases tell a window from none: the same weights without windows give something else."""
    usual, wide = imported["usual"][2], imported["all global"][2]
    assert (usual - wide).abs().max() > 0.1

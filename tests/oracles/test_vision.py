"""Tests `headshare convert` for ViT and DeiT of transformers: random models keep the logits that transformers computes, also
in images of another size, and go out again with the same. What is refused stands in hf/families/vit_test.cc."""

import json
import subprocess

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file, save_file  # noqa: E402

SIZES = {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 24,
         "patch_size": 4, "num_labels": 7}  # fmt: skip
# A case has a class, what its configuration changes, and the rows and columns of the images.
CASES = {
    "vit": ("ViTForImageClassification", {}, (24, 24)),
    "vit, larger images": ("ViTForImageClassification", {}, (40, 28)),
    "vit, smaller images": ("ViTForImageClassification", {}, (12, 16)),
    "no biases of queries": ("ViTForImageClassification", {"qkv_bias": False}, (24, 24)),
    "activation, epsilon": ("ViTForImageClassification", {"hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 0.1}, (24, 24)),
    "grey, large patches": ("ViTForImageClassification", {"num_channels": 1, "patch_size": 12, "hidden_act": "relu"}, (24, 24)),
    "sizes as lists": ("ViTForImageClassification", {"image_size": [32, 32], "patch_size": [8, 8]}, (32, 32)),
    "wide heads": ("ViTForImageClassification", {"head_dim": 20}, (24, 24)),
    "vit without a head": ("ViTModel", {}, (24, 24)),
    "deit": ("DeiTForImageClassification", {}, (24, 24)),
    "deit without a head": ("DeiTModel", {"hidden_act": "silu"}, (24, 24)),
    "deit with two heads": ("DeiTForImageClassificationWithTeacher", {}, (24, 24)),
    "deit with two heads, larger images": ("DeiTForImageClassificationWithTeacher", {}, (32, 48)),
}  # fmt: skip


def saved(folder, name):
    kind, changes, _ = CASES[name]
    model = getattr(transformers, kind)
    model = model(model.config_class(**{**SIZES, **changes})).eval()
    numbers = torch.Generator().manual_seed(3)
    for parameter_name, parameter in model.named_parameters():
        is_norm = "layernorm" in parameter_name and parameter_name.endswith("weight")
        parameter.data.normal_(1.0 if is_norm else 0.0, 0.2, generator=numbers)
    model.save_pretrained(folder)
    return model


def outputs(model, pixels):
    with torch.no_grad():
        found = model(pixels, interpolate_pos_encoding=True)
    return found.logits if hasattr(found, "logits") else found.last_hidden_state


@pytest.fixture(scope="module")
def imported(build_dir, tmp_path_factory):
    """Returns what headshare and transformers make of all the models, with one start of a program."""
    tool = build_dir / "obj" / "convert" / "import_tool"
    if not tool.is_file():
        pytest.skip(f"{tool} is not built: configure with HEADSHARE_TESTS")
    folder, lines, cases = tmp_path_factory.mktemp("imports"), [], []
    for number, (name, (_, changes, sides)) in enumerate(CASES.items()):
        directory, case = folder / f"{number}", {part: str(folder / f"{number}.{part}") for part in ("pixels", "out", "export")}
        model = saved(directory, name)
        pixels = torch.randn(3, changes.get("num_channels", 3), *sides, generator=torch.Generator().manual_seed(number))
        save_file({"pixels": pixels}, case["pixels"])
        if "head_dim" in changes:
            del case["export"]
        lines.append(json.dumps({"directory": str(directory), **case}))
        cases.append((model, pixels, case))
    done = subprocess.run([tool], input="\n".join(lines), capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return {name: (answer, *case) for name, answer, case in zip(CASES, answers, cases, strict=True)}


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_theirs(imported, name):
    answer, model, pixels, case = imported[name]
    assert "error" not in answer, answer
    expected = outputs(model, pixels)
    [found] = load_file(case["out"]).values()
    assert expected.abs().max() > 0.5
    assert (found - expected).abs().max() < 1e-4 * max(1, expected.abs().max())
    if "export" not in case:
        return
    back = getattr(transformers, CASES[name][0]).from_pretrained(case["export"]).eval()
    assert (outputs(back, pixels) - expected).abs().max() < 1e-4 * max(1, expected.abs().max())


def test_written_preprocessors_cut_the_middle_out(imported):
    image_module = pytest.importorskip("PIL.Image")
    processor = transformers.AutoImageProcessor.from_pretrained(imported["vit"][3]["export"])
    values = torch.randint(0, 256, (30, 60, 3), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    image = image_module.fromarray(values.numpy())
    found = torch.as_tensor(processor(image)["pixel_values"][0])
    cut = image.resize((48, 24), image_module.BILINEAR).crop((12, 0, 36, 24))
    expected = torch.frombuffer(bytearray(cut.tobytes()), dtype=torch.uint8).view(24, 24, 3).permute(2, 0, 1) / 255
    assert (found - expected).abs().max() < 0.01


def test_predicted_classes_are_theirs(run, tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    model = saved(tmp_path / "vit", "vit")
    model.config.id2label = {i: f"kind {i}" for i in range(7)}
    model.save_pretrained(tmp_path / "vit")
    scale = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}
    processor = transformers.ViTImageProcessor(size={"height": 24, "width": 24}, resample=image_module.BILINEAR, **scale)
    processor.save_pretrained(tmp_path / "vit")
    run("convert", "--from", "hf", tmp_path / "vit", tmp_path / "ours")
    pictures = []
    for number, side in enumerate((24, 48, 100)):
        numbers = torch.Generator().manual_seed(number)
        coarse = torch.randint(0, 256, (6, 6, 3), generator=numbers, dtype=torch.uint8)
        pictures.append(image_module.fromarray(coarse.numpy()).resize((side, side), image_module.BILINEAR))
        pictures[-1].save(tmp_path / f"{number}.png")
    with torch.no_grad():
        pixels = torch.stack([torch.as_tensor(processor(one)["pixel_values"][0]) for one in pictures])
        expected = model(pixels).logits.double().softmax(-1)
    files = [tmp_path / f"{number}.png" for number in range(3)]
    for line, chances in zip(run("predict", tmp_path / "ours", *files, "--json").stdout.splitlines(), expected, strict=True):
        found = {one["label"]: one["probability"] for one in json.loads(line)["classes"]}
        assert found == pytest.approx({f"kind {i}": chance.item() for i, chance in enumerate(chances)}, abs=1e-4)
        assert max(found, key=found.get) == f"kind {chances.argmax().item()}"

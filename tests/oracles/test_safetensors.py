"""Tests safetensors files against the reference implementation, in both directions."""

import json
import random
import subprocess

import pytest
from conftest import run_command

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
safetensors_numpy = pytest.importorskip("safetensors.numpy")
safetensors_torch = pytest.importorskip("safetensors.torch")
from safetensors import SafetensorError, safe_open  # noqa: E402

DTYPES = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "U16": torch.uint16,
    "F16": torch.float16, "BF16": torch.bfloat16, "I32": torch.int32, "U32": torch.uint32, "F32": torch.float32,
    "F64": torch.float64, "I64": torch.int64, "U64": torch.uint64, "C64": torch.complex64,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "F8_E8M0": torch.float8_e8m0fnu,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz, "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
}  # fmt: skip


@pytest.fixture(scope="session")
def tool(build_dir):
    return build_dir / "obj" / "data" / "safetensors_tool"


def raw(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def example():
    """Returns tensors of every type; no size, size 0, a scalar; names that sort and quote badly."""
    numbers = torch.Generator().manual_seed(1)
    tensors = {}
    for index, (name, dtype) in enumerate(DTYPES.items()):
        width = torch.empty((), dtype=dtype).element_size()
        count = 3 + index % 4
        values = torch.randint(0, 2 if dtype == torch.bool else 256, (count * width,), generator=numbers)
        tensors[f"layer.{index % 3}.{name}"] = values.to(torch.uint8).view(dtype)
    tensors["scalar"] = torch.tensor(1.5)
    tensors["empty"] = torch.empty((0, 7), dtype=torch.bfloat16)
    tensors['größe "quoted" \\ \n'] = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    return tensors


METADATA = {"format": "pt", "größe": '"1"\n'}


def listed(tool, path):
    lines = [json.loads(line) for line in run_command([tool, "list", path]).stdout.splitlines()]
    return {line["name"]: line for line in lines[:-1]}, lines[-1]["metadata"]


def test_headshare_reads_what_the_reference_writes(tool, tmp_path):
    path = tmp_path / "reference.safetensors"
    safetensors_torch.save_file(example(), path, METADATA)
    tensors, metadata = listed(tool, path)
    assert metadata == METADATA
    assert set(tensors) == set(example())
    for name, tensor in example().items():
        assert DTYPES[tensors[name]["dtype"]] == tensor.dtype
        assert tensors[name]["shape"] == list(tensor.shape)
        assert bytes.fromhex(tensors[name]["data"]) == raw(tensor), name


def test_the_reference_reads_what_headshare_writes(tool, tmp_path):
    path, copy, again = (tmp_path / name for name in ("reference", "copy", "again"))
    safetensors_torch.save_file(example(), path, METADATA)
    run_command([tool, "copy", path, copy])
    with safe_open(copy, framework="pt") as file:
        assert file.metadata() == METADATA
    loaded = safetensors_torch.load_file(copy)
    assert set(loaded) == set(example())
    for name, tensor in example().items():
        assert loaded[name].dtype == tensor.dtype and loaded[name].shape == tensor.shape
        assert raw(loaded[name]) == raw(tensor), name
    run_command([tool, "copy", copy, again])
    assert copy.read_bytes() == again.read_bytes()


def test_a_file_without_tensors(tool, tmp_path):
    safetensors_numpy.save_file({}, tmp_path / "none")
    assert listed(tool, tmp_path / "none") == ({}, {})
    run_command([tool, "copy", tmp_path / "none", tmp_path / "copy"])
    assert safetensors_numpy.load_file(tmp_path / "copy") == {}


def test_headshare_refuses_whatever_the_reference_refuses(tool, tmp_path):
    """Damages files; headshare may refuse more (duplicate names), never less."""
    chance = random.Random(1)
    whole = safetensors_torch.save({"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(4, dtype=torch.uint8)})
    header_end = 8 + int.from_bytes(whole[:8], "little")
    refused = accepted = 0
    for round_ in range(400):
        content = bytearray(whole)
        for _ in range(chance.randint(1, 2)):
            at = chance.randrange(header_end)
            action = chance.randrange(3)
            if action == 0:
                content[at] = chance.choice(b'0123456789"[]{},: -')
            elif action == 1:
                content[at] = chance.randrange(256)
            else:
                del content[chance.randrange(len(content)) :]
                content = content or bytearray(b"\0")
                break
        path = tmp_path / f"{round_}.safetensors"
        path.write_bytes(content)
        done = subprocess.run([tool, "list", path], capture_output=True)  # messages may quote broken text
        assert done.returncode in (0, 1), (content, done.stderr)
        if done.returncode == 1:
            assert str(path).encode() in done.stderr
            refused += 1
            continue
        accepted += 1
        try:
            safetensors_torch.load(bytes(content))
        except SafetensorError as error:
            pytest.fail(f"the reference refuses {bytes(content[:header_end])}: {error}")
    assert refused > 100 and accepted > 2, (refused, accepted)

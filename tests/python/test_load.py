"""Tests that a library is loaded only into the torch that it was built with."""

import subprocess
import sys

import pytest
import torch
from headshare import _load


def test_the_library_says_which_torch_it_was_built_with():
    built, installed = _load.built_with(_load.library_path()), torch.__version__
    assert built.split(".")[:2] == installed.split(".")[:2]


def test_the_versions_are_compared_before_the_library_is_loaded(tmp_path, root):
    # This is no library at all: loading it would fail in another way.
    (tmp_path / _load.LIBRARY).write_bytes(b"...HEADSHARE_BUILT_WITH_TORCH=1.9.0\0...")
    environment = {"HEADSHARE_BUILD": str(tmp_path), "PYTHONPATH": str(root / "python")}
    done = subprocess.run(
        [sys.executable, "-c", "import headshare.ops"], env=environment, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1
    assert "ImportError: headshare was built with torch 1.9.0, and torch " in done.stderr


def test_a_library_that_is_missing_or_foreign_is_an_import_error(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSHARE_BUILD", str(tmp_path))
    monkeypatch.setattr(_load, "__file__", str(tmp_path / "python" / "headshare" / "_load.py"))
    with pytest.raises(ImportError, match=r"there is no libheadshare_ops\.so at "):
        _load.library_path()
    (tmp_path / _load.LIBRARY).write_bytes(b"something else")
    with pytest.raises(ImportError, match="does not say which torch"):
        _load.built_with(_load.library_path())


def test_the_library_needs_no_python_and_no_library_of_its_own():
    needed = subprocess.run(["readelf", "-d", _load.library_path()], capture_output=True, text=True, check=True).stdout
    names = [line.split("[")[1].rstrip("]") for line in needed.splitlines() if "(NEEDED)" in line]
    assert not [name for name in names if "python" in name]


def test_torchscript_works_after_the_import():
    """SentencePiece and libc10 define one name with two sizes: with the wrong one first a mutex of libc10 is overwritten,
    and the first scripted module waits for ever."""
    script = "import torch, headshare.ops; print(torch.jit.trace(torch.nn.Linear(3, 3), torch.ones(2, 3))(torch.ones(1, 3)).shape)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "torch.Size([1, 3])\n", done.stderr


def test_sentencepieces_names_come_first(build_dir):
    for file in (_load.library_path(), build_dir / "headshare"):
        listed = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
        assert listed.index("libsentencepiece.so") < listed.index("libc10.so"), file

"""Tests that a CUDA build of torch needs no CUDA toolkit: cmake/TorchTargets.cmake against a made-up wheel that has the
CUDA libraries, while no nvcc and no CUDA header is in reach. (A real CUDA wheel is some gigabytes.)
"""

import pathlib
import shutil
import subprocess

import pytest
from conftest import run_command

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(layout LANGUAGES CXX)
set(HEADSHARE_TORCH_LEAST 2.11)
include({root}/cmake/TorchTargets.cmake)
add_executable(program main.cc)
target_compile_features(program PRIVATE cxx_std_20)
target_link_libraries(program PRIVATE headshare::torch)
"""

# torch/cuda.h is libtorch's own header about CUDA devices.
MAIN = """
#include <torch/cuda.h>
#include <cstdio>
int main() { std::printf("cuda: %d\\n", static_cast<int>(torch::cuda::is_available())); }
"""


def shared_library(path, message):
    """Makes a library that prints a message when it is loaded."""
    source = f'#include <cstdio>\n__attribute__((constructor)) static void hello() {{ std::puts("{message}"); }}\n'
    subprocess.run(["g++", "-x", "c++", "-shared", "-fPIC", "-o", path, "-"], input=source, text=True, check=True)


@pytest.fixture
def wheel(tmp_path):
    """Makes a folder of site-packages whose torch is the real one plus libtorch_cuda and libc10_cuda."""
    torch = pathlib.Path(pytest.importorskip("torch").__file__).parent
    folder = tmp_path / "site" / "torch"
    (folder / "lib").mkdir(parents=True)
    (folder / "__init__.py").touch()
    shutil.copy(torch / "version.py", folder)
    (folder / "include").symlink_to(torch / "include")
    for library in (torch / "lib").glob("*.so*"):
        (folder / "lib" / library.name).symlink_to(library)
    for name in ("torch_cuda", "c10_cuda"):
        path = folder / "lib" / f"lib{name}.so"
        path.unlink(missing_ok=True)
        shared_library(path, f"loaded {name}")
    return folder.parent


def test_cuda_wheel_builds_without_a_cuda_toolkit(root, wheel, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(root=root))
    (tmp_path / "main.cc").write_text(MAIN)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{wheel}" exec {root}/.venv/bin/python "$@"\n')
    python.chmod(0o755)
    tools = tmp_path / "tools"  # the only PATH: no nvcc
    tools.mkdir()
    for name in ("cmake", "ninja", "c++", "g++", "as", "ld", "sh"):
        (tools / name).symlink_to(shutil.which(name))
    hidden = {"PATH": str(tools), "CUDA_HOME": "", "CUDA_PATH": "", "CUDACXX": ""}
    build = tmp_path / "build"
    run_command(["cmake", "-G", "Ninja", "-S", tmp_path, "-B", build, f"-DHEADSHARE_PYTHON={python}"], env=hidden)
    run_command(["cmake", "--build", build], env=hidden)
    printed = run_command([build / "program"]).stdout
    # Both are loaded although no symbol refers to them: their kernels register themselves.
    assert "loaded torch_cuda\n" in printed and "loaded c10_cuda\n" in printed
    assert "cuda: 0\n" in printed

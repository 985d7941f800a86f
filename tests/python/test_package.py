"""Tests the wheel: what is in it, that it installs into an environment without anything else and runs there, and that
it says so where torch is another one. It is made of the build that is tested, so nothing is compiled."""

import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import zipfile

import pytest
from conftest import run_command
from headshare import Error
from headshare._torch import Torch, check_torch

pytestmark = pytest.mark.slow

PACKAGES = pathlib.Path(sysconfig.get_path("purelib"))
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
# What every Debian and Ubuntu has, beside libtorch's own folder.
SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so|ld-linux|lib(torch|c10|gomp)")


def version_of_torch():
    text = (PACKAGES / "torch/version.py").read_text()
    return re.search(r"__version__ = '([\d.]+)", text)[1]


@pytest.fixture(scope="module")
def wheel(root, build_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run_command([root / "tools/wheel", folder], env={"HEADSHARE_BUILD": str(build_dir)})
    [path] = folder.glob("*.whl")
    return path


class Environment:
    """A virtual environment that has nothing but headshare, not even pip."""

    def __init__(self, folder, wheel):
        run_command([sys.executable, "-m", "venv", "--without-pip", folder])
        self.folder = folder
        self.packages = folder / "lib" / PYTHON / "site-packages"
        pip = [sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet"]
        run_command([*pip, "--no-deps", "--no-index", wheel])

    def run(self, *words, path="", **options):
        env = {"PYTHONPATH": str(path), "HEADSHARE_BUILD": "", "LD_LIBRARY_PATH": ""}
        return run_command([self.folder / "bin" / words[0], *words[1:]], env=env, **options)


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("bare") / "venv", wheel)


@pytest.fixture(scope="module")
def beside(wheel, tmp_path_factory):
    """Returns an environment with headshare and torch: torch is that of the tests, by a link."""
    made = Environment(tmp_path_factory.mktemp("beside") / "venv", wheel)
    (made.packages / "torch").symlink_to(PACKAGES / "torch")
    return made


def fake_torch(folder, version):
    (folder / "torch").mkdir(parents=True)
    (folder / "torch/__init__.py").write_text("raise AssertionError('torch was imported')")
    (folder / "torch/version.py").write_text(f"__all__ = []\n__version__ = '{version}'\n")
    return folder


def test_wheel_serves_every_python_and_requires_its_torch(wheel, root):
    version = (root / "version.txt").read_text().strip()
    assert re.fullmatch(rf"headshare-{re.escape(version)}-py3-none-linux_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(f"headshare-{version}.dist-info/METADATA").decode()
        built = archive.read("headshare/_built_with.py").decode()
    major, minor = version_of_torch().split(".")[:2]
    assert re.findall(r"^Requires-Dist: ([^;\n]*)$", metadata, re.MULTILINE) == [f"torch=={major}.{minor}.*"]
    assert f'TORCH = "{version_of_torch()}"' in built
    assert "headshare/py.typed" in names and not [name for name in names if "torch" in name and "lib/" in name]
    licences = {name.removeprefix("headshare/lib/licences/") for name in names if "/licences/" in name}
    assert {"zlib1g.txt", "libhwy1.txt"} <= licences


def test_wheel_brings_every_library_that_a_bare_system_lacks(bare):
    folder = bare.packages / "headshare/lib"
    binaries = [path for path in folder.iterdir() if path.is_file()]
    assert "headshare" in [path.name for path in binaries]
    for binary in binaries:
        dynamic = run_command(["readelf", "--dynamic", "--wide", binary]).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
        assert needed and not [name for name in needed if not (folder / name).exists() and not SYSTEM.match(name)]
        if binary.name == "headshare":
            assert "[$ORIGIN:$ORIGIN/../../torch/lib]" in dynamic


def test_program_finds_torch_beside_it(beside):
    program = beside.packages / "headshare/lib/headshare"
    assert run_command(["env", "-i", program, "--version"]).stdout.startswith("headshare ")


def test_console_script_is_the_program(beside, program):
    for words in (["--help"], ["cost", "--schemes", "mha,sha"], ["compare", "--help-all"]):
        assert beside.run("headshare", *words).stdout == run_command([program, *words]).stdout
    refused = beside.run("headshare", "cost", "--nonsense", check=False)
    assert refused.returncode == 2 and "--nonsense" in refused.stderr
    assert beside.run("python", "-m", "headshare", "--version").stdout.startswith("headshare ")


def test_torch_may_be_installed_elsewhere(bare, tmp_path):
    (tmp_path / "torch").symlink_to(PACKAGES / "torch")
    assert "mha" in bare.run("headshare", "cost", path=tmp_path).stdout
    script = "import headshare, sys; print(headshare.cost(schemes='mha')[0]['scheme'], 'torch' in sys.modules)"
    assert bare.run("python", "-c", script, path=tmp_path).stdout == "mha False\n"


def test_layers_and_operations_come_with_the_package(bare):
    """The libraries that torch itself needs come from the tests' packages."""
    script = (
        "import headshare, torch; layer = headshare.nn.SharedHeadAttention(16, 4, scheme='mqa'); "
        "print(headshare.__file__, layer(torch.ones(3, 2, 16))[0].shape, headshare.ops.gelu(torch.zeros(1)))"
    )
    printed = bare.run("python", "-c", script, path=PACKAGES).stdout
    assert printed.startswith(str(bare.packages)) and "torch.Size([3, 2, 16]) tensor([0.])" in printed


@pytest.mark.parametrize("file", ["test_nn.py", "test_ops_values.py", "test_ops_bad_input.py"])
def test_tests_pass_in_the_wheels_environment(bare, root, file, build_dir):
    """Torch and what the tests import come from the tests' packages; headshare is the wheel's."""
    script = "import headshare, pytest, sys; print(headshare.__file__); sys.exit(pytest.main(sys.argv[1:]))"
    options = ["-q", "-o", "pythonpath=tests", "-p", "no:cacheprovider", "-n", "0"]
    done = bare.run("python", "-c", script, *options, f"tests/python/{file}", path=PACKAGES, cwd=root)
    assert done.stdout.startswith(str(bare.packages)) and " passed" in done.stdout and "failed" not in done.stdout


def test_another_torch_is_refused_with_both_versions_and_the_way_out(bare, tmp_path):
    refused = bare.run("headshare", "cost", path=fake_torch(tmp_path, "2.99.1+cpu"), check=False)
    built = version_of_torch()
    line = f"pip install 'torch=={built.rsplit('.', 1)[0]}.*'"
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        f"error: headshare was built with torch {built}, and torch 2.99.1+cpu is installed"
    )
    assert line in refused.stderr and "pip install --force-reinstall --no-deps ." in refused.stderr
    missing = bare.run("headshare", "cost", check=False)
    assert missing.returncode == 1 and "no torch is installed" in missing.stderr and line in missing.stderr


def test_patch_versions_and_builds_of_torch_are_one():
    check_torch("2.13.0", False, Torch(pathlib.Path(), "2.13.4+cpu"))
    check_torch(None, False, None)  # a source tree
    with pytest.raises(Error, match=r"2\.1\.0.*2\.13\.0"):
        check_torch("2.1.0", False, Torch(pathlib.Path(), "2.13.0"))


def test_a_torch_without_cuda_is_refused_by_a_package_that_has_it(tmp_path):
    torch = Torch(tmp_path, "2.13.0+cpu")
    with pytest.raises(Error, match="has CUDA, and the installed torch 2.13.0.cpu has none"):
        check_torch("2.13.0", True, torch)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libtorch_cuda.so").touch()
    check_torch("2.13.0", True, torch)


# --- which torch `pip install .` builds with ---------------------------------------------------

ASK = "import wheel_backend as w; print(w.get_requires_for_build_wheel()); print(w.dynamic_metadata({}, {}))"


@pytest.fixture
def build_environment(tmp_path, root):
    """Returns the environment of pip's build: PYTHONPATH has what the build requires, and hides what is installed."""
    pytest.importorskip("scikit_build_core")
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    for name in ("scikit_build_core", "pathspec", "packaging"):
        (overlay / name).symlink_to(PACKAGES / name)
    hiding = "import sys, sysconfig\nsys.path.remove(sysconfig.get_path('purelib'))\n"
    (overlay / "sitecustomize.py").write_text(hiding)
    return {"PYTHONPATH": f"{overlay}:{root / 'tools'}", "PYTHONNOUSERSITE": "1"}


def asked(environment, folder, root):
    """Asks the backend as pip does, in an environment that is installed into; returns (requirements, metadata)."""
    run_command([sys.executable, "-m", "venv", "--without-pip", folder])
    done = subprocess.run(
        [folder / "bin/python", "-c", ASK], cwd=root, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_build_brings_the_pinned_torch_where_none_is_installed(build_environment, tmp_path, root):
    pinned = re.search(r"^torch=(.+)$", (root / "tools/versions").read_text(), re.MULTILINE)[1]
    requirements, metadata = asked(build_environment, tmp_path / "venv", root)
    assert f"'{pinned}'" in requirements
    assert f"'{pinned.rsplit('.', 1)[0]}.*'" in metadata


def test_build_takes_the_torch_that_is_installed(build_environment, tmp_path, root):
    fake_torch(tmp_path / "venv" / "lib" / PYTHON / "site-packages", "2.99.1")
    requirements, metadata = asked(build_environment, tmp_path / "venv", root)
    assert "torch" not in requirements
    assert "'torch==2.99.*'" in metadata

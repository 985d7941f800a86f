"""Builds the Python package: scikit-build-core, with one thing on top, the choice of the torch to build with.

A wheel works with the minor version of torch that it was built with. pip builds in an environment of its own, which
does not see what is installed; a build that brings its own torch there makes a wheel for another torch than the user
has, or downloads gigabytes for nothing. So the torch of the Python that is installed into is taken, from outside of
that environment. Only where it has none is the torch of tools/versions a requirement of the build. The wheel then
requires that minor version.
"""

import functools
import os
import pathlib
import re
import subprocess
import sys

from scikit_build_core import build as scikit_build
from scikit_build_core.build import build_sdist, get_requires_for_build_sdist

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "dynamic_metadata",
    "dynamic_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIND_TORCH = "import importlib.util as u; s = u.find_spec('torch'); print(s.origin if s else '')"
ISOLATION = ("PYTHONPATH", "PYTHONNOUSERSITE")  # how pip hides what is installed from the build


def pinned(name):
    """Returns a version of tools/versions."""
    return re.search(rf"^{name}=(.+)$", (ROOT / "tools/versions").read_text(), re.MULTILINE)[1]


@functools.cache
def torch_folder():
    """Returns the folder of the torch to build with, of the environment that is installed into before that of the
    build; None where both have none."""
    outside = {name: value for name, value in os.environ.items() if name not in ISOLATION}
    for environment in (outside, os.environ):
        found = subprocess.run(
            [sys.executable, "-c", FIND_TORCH], env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()
        if found:
            return pathlib.Path(found).parent
    return None


def torch_requirement():
    """Returns what the wheel requires: "torch==2.13.*"."""
    folder = torch_folder()
    version = (folder / "version.py").read_text() if folder else pinned("torch")
    major, minor = re.search(r"(\d+)\.(\d+)\.\d+", version).groups()
    return f"torch=={major}.{minor}.*"


def dynamic_metadata(_settings, _project):
    return {"version": (ROOT / "version.txt").read_text().strip(), "dependencies": [torch_requirement()]}


def dynamic_wheel(_settings):
    return {"dependencies": True}


def with_torch(config_settings):
    """Adds the torch to CMake's options, unless the caller says which; an empty one leaves it to CMake."""
    return {"cmake.define.HEADSHARE_TORCH": str(torch_folder() or ""), **(config_settings or {})}


def prepare_folder(config_settings):
    """Keeps a build folder for the next time: scikit-build-core would empty it, because pip's environment for the build
    has another name each time. Nothing of that environment is compiled in. The compiler is the system's, as in
    tools/build, unless CXX is set; scikit-build-core would take the one that Python itself was compiled with."""
    os.environ.setdefault("CXX", "c++")
    folder = (config_settings or {}).get("build-dir", "build/wheel")
    (ROOT / folder / ".skbuild-info.json").unlink(missing_ok=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    prepare_folder(config_settings)
    return scikit_build.build_wheel(wheel_directory, with_torch(config_settings), metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    prepare_folder(config_settings)
    return scikit_build.build_editable(wheel_directory, with_torch(config_settings), metadata_directory)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return scikit_build.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    return scikit_build.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def torch_to_build_with():
    return [] if torch_folder() else [pinned("torch")]


def get_requires_for_build_wheel(config_settings=None):
    return scikit_build.get_requires_for_build_wheel(config_settings) + torch_to_build_with()


def get_requires_for_build_editable(config_settings=None):
    return scikit_build.get_requires_for_build_editable(config_settings) + torch_to_build_with()

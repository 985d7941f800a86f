"""What the tests of tokenizers share."""

import pytest


@pytest.fixture(scope="module")
def tool(build_dir):
    path = build_dir / "obj" / "text" / "tokenize_tool"
    if not path.is_file():
        pytest.skip(f"{path} is not built: configure with HEADSHARE_TESTS")
    return path

"""Tests that docs/paper-map.md leads to every attention scheme."""

import pytest
from conftest import ROOT, SCHEMES


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_has_its_line(scheme):
    assert f"`headshare/attention/schemes/{scheme}.cc`" in (ROOT / "docs/paper-map.md").read_text()
    assert (ROOT / f"headshare/attention/schemes/{scheme}.cc").is_file()

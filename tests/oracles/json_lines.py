"""Runs programs of the build under test that answer one JSON request a line (headshare/metrics/json_lines.h)."""

import json
import subprocess

import pytest


def asker(path, timeout):
    """Returns a function from requests to answers; skips the test where the program is not built."""
    if not path.is_file():
        pytest.skip(f"{path} is not built: configure with HEADSHARE_TESTS")

    def call(requests):
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        done = subprocess.run([path], input=lines, capture_output=True, text=True, timeout=timeout)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.split("\n")[:-1]]  # splitlines would cut at U+2028

    return call

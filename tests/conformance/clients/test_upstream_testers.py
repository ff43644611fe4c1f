"""The public project's own testers of a python runtime, unmodified, in Python and in Go.

Both run commands, move files, try to escape, and end with `python -c` importing pandas, scikit-learn and lightgbm
inside the sandbox: the runtime gets a PATH with such a python first.
"""

import os
import pathlib
import subprocess
import sys

import pytest

from harness.server import tool

pytestmark = pytest.mark.contract("A")


@pytest.fixture(scope="module")
def testers():
    try:
        return pathlib.Path(tool("peers", "testers")), pathlib.Path(tool("venv", "ml")).parent
    except subprocess.CalledProcessError as e:
        pytest.skip(f"cannot fetch the upstream testers: {e}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("language", ["python", "go"])
def test_upstream_tester(start_runtime, testers, language):
    directory, ml = testers
    s = start_runtime(env={"PATH": f"{ml}:{os.environ['PATH']}"})
    argv = [sys.executable, directory / "tester.py"] if language == "python" else [directory / "tester"]
    done = subprocess.run([*argv, "127.0.0.1", str(s.port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    assert "ml-ok 2" in done.stdout

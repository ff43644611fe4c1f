"""The controllers on a real server and on ours as a process of its own: the suite that they also pass on the embedded store."""

import os
import pathlib
import subprocess

import pytest

SUITE = pathlib.Path(__file__).resolve().parents[3] / "build/debug/tests/controller/controller_suite"


@pytest.mark.timeout(900)
def test_the_controller_suite(api):
    if not SUITE.exists():
        pytest.skip("controller_suite is built with the unit tests")
    done = subprocess.run([SUITE, api.kubeconfig], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=800,
                          env={**os.environ, **({"ONE_VERSION": "1"} if api.kind == "real" else {})})
    wrong = [line[:2000] for line in done.stdout.splitlines() if "FAILED" in line or "ERROR" in line or "LINE" in line]
    assert done.returncode == 0, "\n".join(wrong)
    assert "PASSED" in done.stdout

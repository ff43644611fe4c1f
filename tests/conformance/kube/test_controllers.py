"""The controllers on `silica apiserver` as a process of its own: the suite that they also pass on the embedded store, and on a real
server in conformance/cluster."""

import pathlib
import subprocess

import pytest

SUITE = pathlib.Path(__file__).resolve().parents[3] / "build/debug/tests/controller/controller_suite"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("target", ["ours"], indirect=True)
def test_the_controller_suite(api):
    if not SUITE.exists():
        pytest.skip("controller_suite is built with the unit tests")
    done = subprocess.run([SUITE, api.kubeconfig], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=800)
    wrong = [line[:2000] for line in done.stdout.splitlines() if "FAILED" in line or "ERROR" in line or "LINE" in line]
    assert done.returncode == 0, "\n".join(wrong)
    assert "PASSED" in done.stdout

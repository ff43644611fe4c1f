"""The basic example of the public Go SDK, unmodified, in its tunnel mode: it finds the router in the sandbox's own namespace and
forwards a port over SPDY by itself."""

import json
import os
import subprocess

import pytest
from conftest import CLAIMS

from lib import controlplane

POOL = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool", "metadata": {"name": "my-warmpool"},
        "spec": {"replicas": 1, "sandboxTemplateRef": {"name": "python-sandbox-template"}}}


def test_the_basic_example(up):
    try:
        program = controlplane.peer("go-sdk-basic")
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    up.kubectl("apply", "-f", "-", stdin=json.dumps(POOL))
    up.wait_warm("my-warmpool")
    done = subprocess.run([program], env={**os.environ, "KUBECONFIG": up.ready["kubeconfig"]}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Sandbox ready: claim=sandbox-claim-")
    assert lines[1:4] == ["stdout: Hello from Go!", "exit_code: 0", "file content: Hello, world!"]
    assert "  file\thello.txt\t13 bytes" in lines and lines[-1] == "re-attach stdout: re-attached!"
    assert up.api.call("GET", f"{CLAIMS}?labelSelector=agents.x-k8s.io%2Fcreated-by%3Dgo-client")["items"] == []
    up.kubectl("delete", "sandboxwarmpool", "my-warmpool")

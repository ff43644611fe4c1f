"""deploy/samples/inject.yaml on `silica up`: an init container brings silica-runtime into a container of an image that nobody
changed; the pool is warm once the readiness probe, which asks that server, was answered."""

import json

import pytest

from harness.server import TREE, wait_until
from lib.up import Up

pytestmark = pytest.mark.ours
CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims"


def test_the_sample_serves():
    with Up() as up:
        up.kubectl("apply", "-f", str(TREE / "deploy/samples/inject.yaml"))
        up.wait_warm("debian-sandbox-pool")
        claim = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": "mine"},
                 "spec": {"warmPoolRef": {"name": "debian-sandbox-pool"}}}
        up.kubectl("apply", "-f", "-", stdin=json.dumps(claim))
        wait_until(lambda: up.api.call("GET", f"{CLAIMS}/mine").get("status", {}).get("sandbox", {}).get("podIPs"), 60, "it has a sandbox")
        name = up.api.call("GET", f"{CLAIMS}/mine")["status"]["sandbox"]["name"]
        pod = up.api.call("GET", f"/api/v1/namespaces/default/pods/{name}")
        assert pod["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0

"""deploy/samples/inject.yaml on `silica up`: an init container brings silica-runtime into a container of an image that nobody
changed; the pool is warm once the readiness probe, which asks that server, was answered."""

import json
import urllib.error
import urllib.request

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
        # What answers is the injected program, and commands are the image's.
        wait_until(lambda: execute(up, name, "true")[0] == 200, 60, "the router knows it")
        servers = 'cat /proc/[0-9]*/cmdline | tr "\\0" "\\n" | grep -x "/silica/[s]ilica-runtime" | sort -u'
        status, ran = execute(up, name, servers + "; touch /silica/x; echo made > /tmp/note; cat /tmp/note")
        assert status == 200 and ran["exit_code"] == 0, ran
        assert ran["stdout"].splitlines() == ["/silica/silica-runtime", "made"] and "Read-only file system" in ran["stderr"]


def execute(up, sandbox, command):
    """POST /execute at the router: the status, and what came."""
    request = urllib.request.Request(f"{up.ready['router']}/execute", data=json.dumps({"command": f"sh -c '{command}'"}).encode(), headers={
        "x-sandbox-id": sandbox, "x-sandbox-namespace": "default", "content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()

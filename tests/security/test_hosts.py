"""What `silica in-cluster` writes into its session's /etc/hosts is what Pods' nodes said, whatever an object says of itself."""

import json
import subprocess

import pytest

from harness.server import wait_until
from lib import up as ups

pytestmark = pytest.mark.ours
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/team-a/sandboxes"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/role"
MERGE = "application/merge-patch+json"
# Reads the file until it is told to end; prints every line that it ever saw.
SCRIPT = r"""
import os, select, sys
seen, poll = set(), select.poll()
poll.register(0, select.POLLIN | select.POLLHUP)
print("ready", flush=True)
while not poll.poll(1):
    seen.update(open("/etc/hosts").read().split("\n"))
print("\n".join(seen))
"""


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param) as started:
        yield started


def test_no_line_is_a_tenants(up, tmp_path):
    """One whom an operator's own role lets write statuses: of a sandbox that the controllers keep up, and of one that they have left."""
    token = up.run("token", "-n", "team-a").stdout.strip()
    account = json.loads(up.kubectl("get", "serviceaccounts", "-n", "team-a", "-o", "json"))["items"]
    up.api.call("POST", ROLES + "s", {"metadata": {"name": "statuses"}, "rules": [
        {"apiGroups": ["agents.x-k8s.io"], "resources": ["sandboxes/status"], "verbs": ["get", "update", "patch"]}]})
    up.api.call("POST", ROLES + "bindings", {
        "metadata": {"name": "statuses"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "statuses"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "team-a", "name": a["metadata"]["name"]} for a in account]})
    tenant = ups.Reader(tmp_path, up.ready["kubeconfig"])
    tenant.token, tenant.client_cert = token, None
    names = ("runs", "sandbox-router-svc")
    for name in names:
        tenant.call("POST", SANDBOXES, {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": name}, "spec": {
            "podTemplate": {"spec": {"containers": [{"name": "c", "image": "python:3.12-slim", "command": ["sleep", "1000"]}]}}}})
    given = wait_until(lambda: tenant.call("GET", f"{SANDBOXES}/runs").get("status", {}).get("podIPs"), 60)[0]
    taken = wait_until(lambda: tenant.call("GET", f"{SANDBOXES}/sandbox-router-svc").get("status", {}).get("podIPs"), 60)[0]
    tenant.call("POST", SANDBOXES, {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {
        "name": "left", "finalizers": ["example.org/tenants"]}, "spec": {"podTemplate": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}})
    tenant.call("DELETE", f"{SANDBOXES}/left")
    session = subprocess.Popen(up.argv("in-cluster", "-n", "team-a", "--", "python3", "-c", SCRIPT), cwd="/", stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env=up.env)
    assert session.stdout.readline() == "ready\n"
    for _ in range(100):
        for lie in ("203.0.113.9\n203.0.113.9 pypi.org", "203.0.113.9 pypi.org #", "203.0.113.9", "127.0.0.1"):
            for name in ("runs", "left"):
                tenant.call("PATCH", f"{SANDBOXES}/{name}/status", {"status": {"podIPs": [lie]}}, kind=MERGE)
    lines = session.communicate()[0].splitlines()
    assert f"{given} runs.team-a.svc.cluster.local runs.team-a.svc runs.team-a" in lines
    assert [line for line in lines if "203.0.113.9" in line or "pypi.org" in line or line.startswith(("127.0.0.1 runs.", "127.0.0.1 left."))] == []
    assert [line for line in lines if line.startswith(taken)] == []  # the router's name is the router's
    tenant.call("PATCH", f"{SANDBOXES}/left", {"metadata": {"finalizers": None}}, kind=MERGE)
    for name in names:
        tenant.call("DELETE", f"{SANDBOXES}/{name}")

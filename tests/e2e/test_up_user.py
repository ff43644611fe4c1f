"""`silica up` of an account without rights, and what other accounts of the machine reach of it: nothing."""

import json
import os
import subprocess

import pytest

from harness import caller
from harness.server import wait_until
from lib import up as ups

pytestmark = pytest.mark.ours
STRANGER = 65533


@pytest.fixture(scope="module")
def up():
    with ups.as_caller("user", "--pod-addresses") as started:
        yield started


def curl(uid, *args):
    return subprocess.run([*ups.as_user(uid), "curl", "-s", "-m", "20", "-o", "-", "-w", "\n%{http_code}", *args],
                          stdout=subprocess.PIPE, text=True).stdout.rpartition("\n")


def test_a_sandbox_of_a_user(up):
    up.wait_warm()
    up.api.call("POST", "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims", {
        "apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": "mine"},
        "spec": {"warmPoolRef": {"name": "python-sandbox-pool"}}})
    path = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims/mine"
    bound = wait_until(lambda: up.api.call("GET", path).get("status", {}).get("sandbox"), 60)
    address = wait_until(lambda: up.api.call("GET", path)["status"]["sandbox"].get("podIPs"), 60)[0]
    ask = ["-H", "Content-Type: application/json", "-d", json.dumps({"command": "echo mine"})]
    to = ["-H", f"X-Sandbox-ID: {bound['name']}", "-H", "X-Sandbox-Namespace: default"]
    body, _, code = curl(caller.NOBODY, f"{up.ready['router']}/execute", *to, *ask)
    assert (code, json.loads(body)["stdout"]) == ("200", "mine\n")
    assert curl(STRANGER, f"{up.ready['router']}/execute", *to, *ask)[2] == "403"
    page = ["-H", "Accept: text/html", f"{up.ready['router']}/"]
    assert curl(caller.NOBODY, *page)[2] == "200" and curl(STRANGER, *page)[2] == "403"
    assert curl(caller.NOBODY, f"http://{address}:8888/execute", *ask)[2] == "200"
    assert curl(STRANGER, f"http://{address}:8888/execute", *ask)[2] != "200"
    assert curl(STRANGER, "-k", f"https://{up.ready['listen'][0]}/api/v1/pods")[2] in ("401", "403")


def test_what_cannot_be_enforced_is_said(up):
    """Nobody handed this account a cgroup: a limit of memory is left out of the Pod, and `silica status` does not hide it."""
    def lacking():
        return [p for p in json.loads(up.run("status", "-o", "json").stdout)["protections"] if p["name"] == "limits"]

    up.wait_warm()
    assert not lacking()
    up.api.call("POST", "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "greedy"}, "spec": {
        "containers": [{"name": "main", "image": "python:3.11", "command": ["sleep", "600"], "resources": {"limits": {"memory": "64Mi"}}}]}})
    (said,) = wait_until(lacking, 60, "it runs, and is told")
    assert said["verdict"] == "lacks" and said["text"].startswith("memory cannot be enforced, as for '") and "doctor" in said["hint"]
    up.api.call("DELETE", "/api/v1/namespaces/default/pods/greedy?gracePeriodSeconds=0")
    wait_until(lambda: not lacking(), 60, "it is gone")


def test_a_gateway_of_a_user(up):
    """Port 80 is not everybody's: then the Gateway says what to change."""
    path = "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways"
    up.api.call("POST", path, {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "front"}, "spec": {
        "gatewayClassName": "any", "listeners": [{"name": "http", "protocol": "HTTP", "port": 80}]}})

    def programmed():
        found = [c for c in up.api.call("GET", f"{path}/front")["status"]["conditions"] if c["type"] == "Programmed"]
        return found and found[0]["reason"] not in ("Pending",) and found[0]

    told = wait_until(programmed, 60, "it is told")
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start") as f:
        is_allowed = int(f.read()) <= 80
    if is_allowed:
        assert told["status"] == "True", told
    else:
        assert told["status"] == "False" and "net.ipv4.ip_unprivileged_port_start=80" in told["message"], told
    up.api.call("DELETE", f"{path}/front")


def test_a_page_in_a_browser(up):
    page = ["-H", "Origin: https://elsewhere.example", "-H", "X-Sandbox-ID: any"]
    assert curl(caller.NOBODY, f"{up.ready['router']}/execute", "-d", "{}", *page)[2] == "403"
    rebound = ["-H", "Host: elsewhere.example", "-H", "X-Sandbox-ID: any"]
    assert curl(caller.NOBODY, f"{up.ready['router']}/", *rebound)[2] in ("403", "421")


def test_in_cluster_of_a_user(up):
    """The view of a Pod, without rights: an account's files where none are, and ids as they were."""
    kept = sorted(name for name in os.listdir("/run") if os.path.isdir(f"/run/{name}") and name != "secrets")[0]
    show = f"cat /var/run/secrets/kubernetes.io/serviceaccount/namespace; echo; id -u; ls -d /run/{kept}; tail -1 /etc/hosts"
    shown = up.run("in-cluster", "-n", "team-b", "--", "sh", "-c", f"{show}; echo $KUBERNETES_SERVICE_PORT", cwd="/").stdout.split("\n")
    assert shown[:3] == ["team-b", str(caller.NOBODY), f"/run/{kept}"]
    assert ".svc.cluster.local " in shown[3] and shown[4] == up.ready["listen"][0].rpartition(":")[2]
    assert not os.path.exists("/run/secrets/kubernetes.io")

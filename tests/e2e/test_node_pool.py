"""Pools and claims end to end on one machine: API server, controllers, node."""

import socket
import urllib.request

import pytest

from lib.machine import Machine

pytestmark = pytest.mark.ours
EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1"
TEMPLATE = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate", "metadata": {"name": "python"},
            "spec": {"podTemplate": {"spec": {"containers": [{
                "name": "python", "image": "registry.example/agent-sandbox/python-runtime-sandbox:v1",
                "ports": [{"containerPort": 8888}]}]}}}}
POOL = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool", "metadata": {"name": "pool"},
        "spec": {"replicas": 2, "sandboxTemplateRef": {"name": "python"}}}
CLAIM = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": "mine"},
         "spec": {"warmPoolRef": {"name": "pool"}}}


def ready(o):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in (o or {}).get("status", {}).get("conditions", []))


def test_a_pool_fills_and_a_claim_gets_one_of_it():
    with Machine(with_controller=True, node_options=["--pod-addresses"]) as m:
        m.apply(TEMPLATE, POOL)
        m.wait(lambda: (m.get("pool", kind="sandboxwarmpools", group=EXTENSIONS) or {}).get("status", {}).get("readyReplicas") == 2,
               "a full pool")
        pods = m.api.call("GET", "/api/v1/namespaces/default/pods")["items"]
        warm = {p["metadata"]["name"] for p in pods}
        for p in pods:  # nobody has business with them yet
            with pytest.raises(OSError):
                socket.create_connection((p["status"]["podIP"], 8888), 5)
        m.apply(CLAIM)
        claim = m.wait(lambda: (c := m.get("mine", kind="sandboxclaims", group=EXTENSIONS)) and ready(c) and c, "a claim")
        name = claim["status"]["sandbox"]["name"]
        assert name in warm and claim["status"]["sandbox"]["podIPs"][0].startswith("127.")
        ip = claim["status"]["sandbox"]["podIPs"][0]
        assert urllib.request.urlopen(f"http://{ip}:8888/", timeout=30).status == 200, "it was ready"
        assert m.kubectl("exec", name, "--", "python3", "-c", "print(6 * 7)") == "42\n"
        m.wait(lambda: m.get("pool", kind="sandboxwarmpools", group=EXTENSIONS)["status"].get("readyReplicas") == 2, "a refill")
        m.kubectl("delete", "sandboxclaim", "mine", "--wait=false")
        m.kubectl("delete", "sandboxwarmpool", "pool", "--wait=false")
        m.wait(lambda: not m.leftovers(), "nothing left")

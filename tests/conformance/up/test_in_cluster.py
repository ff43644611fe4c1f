"""A program under `silica in-cluster` finds what a Pod would: the SDK's in-cluster modes by name, with nothing set."""

import json
import sys

import pytest
from conftest import RELEASE

pytestmark = pytest.mark.skipif(RELEASE < (1, 0), reason="release 1.0 added it")
GROUP = "extensions.agents.x-k8s.io/v1beta1"
PROGRAM = """
import os
from kubernetes import client, config
config.load_incluster_config()
assert "KUBECONFIG" not in os.environ
from k8s_agent_sandbox import SandboxClient, SandboxdInClusterConnectionConfig
boxes = SandboxClient(connection_config=SandboxdInClusterConnectionConfig(mode="in-cluster-service"))
box = boxes.create_sandbox("served-pool")
try:
    assert box.get_service_fqdn().endswith(".svc.cluster.local")
    print(box.commands.run("echo by name").stdout, end="")
finally:
    box.terminate()
try:
    client.CoreV1Api().list_namespaced_secret("kube-system")
except client.ApiException as e:
    print(e.status)
"""


def test_by_name(up):
    template = up.api.call("GET", f"/apis/{GROUP}/namespaces/default/sandboxtemplates/python-sandbox-template")
    served = {"apiVersion": GROUP, "kind": "SandboxTemplate", "metadata": {"name": "served"},
              "spec": {**template["spec"], "service": True}}
    pool = {"apiVersion": GROUP, "kind": "SandboxWarmPool", "metadata": {"name": "served-pool"},
            "spec": {"replicas": 1, "sandboxTemplateRef": {"name": "served"}}}
    for o in (served, pool):
        up.kubectl("apply", "-f", "-", stdin=json.dumps(o))
    up.wait_warm("served-pool")
    done = up.run("in-cluster", "-n", "default", "--", sys.executable, "-c", PROGRAM)
    assert done.stdout == "by name\n403\n", done.stdout + done.stderr
    assert up.run("in-cluster", "--", "sh", "-c", "exit 7", check=False).returncode == 7
    assert up.run("in-cluster", "--", "no-such-program", check=False).returncode == 127
    assert list(up.data.glob("in-cluster.*")) == []
    up.kubectl("delete", "sandboxwarmpool/served-pool", "sandboxtemplate/served")

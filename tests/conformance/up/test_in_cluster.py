"""A program under `silica in-cluster` finds what a Pod would: the SDK's in-cluster modes by address and by name, with nothing set. The system
was not told to listen at Pods' addresses: the session asks for it."""

import json
import sys

import pytest
from conftest import EXTENSIONS, HAS_POOLS, RELEASE

from lib.up import Up

BEGIN = f"""
import asyncio, os
from kubernetes import client, config
config.load_incluster_config()
assert "KUBECONFIG" not in os.environ
from k8s_agent_sandbox import SandboxClient, models
from k8s_agent_sandbox.sandbox import Sandbox

NAME = "{'python-sandbox-warmpool' if HAS_POOLS else 'python-sandbox-template'}"


def say(box, text):
    print(box.commands.run("echo " + text).stdout, end="")
"""
# The public README's address of the router, in the namespace where this release looks for it.
BY_NAME = """
at_router = models.SandboxDirectConnectionConfig(api_url="http://sandbox-router-svc.{namespace}.svc.cluster.local:8080")
box = SandboxClient(connection_config=at_router).create_sandbox(NAME)
say(box, "router by name")
by_name = models.SandboxDirectConnectionConfig(api_url="http://" + box.sandbox_id + ".default.svc.cluster.local:8888")
say(Sandbox(box.claim_name, box.sandbox_id, connection_config=by_name), "sandbox by name")
box.terminate()
"""
BY_ADDRESS = """
in_cluster = models.SandboxInClusterConnectionConfig()
box = SandboxClient(connection_config=in_cluster).create_sandbox(NAME)
say(box, "by address")
box.terminate()


async def use():
    from k8s_agent_sandbox import AsyncSandboxClient
    async with AsyncSandboxClient(connection_config=in_cluster) as boxes:
        box = await boxes.create_sandbox(NAME)
        print((await box.commands.run("echo async")).stdout, end="")

asyncio.run(use())
"""
SERVED = """
from k8s_agent_sandbox import SandboxdInClusterConnectionConfig
boxes = SandboxClient(connection_config=SandboxdInClusterConnectionConfig(mode="in-cluster-service"))
box = boxes.create_sandbox("served-warmpool")
assert box.get_service_fqdn().endswith(".svc.cluster.local")
say(box, "service by name")
box.terminate()
"""
TRY_MORE = """
try:
    client.CoreV1Api().list_namespaced_secret("kube-system")
except client.ApiException as e:
    print(e.status)
"""


@pytest.fixture(scope="module")
def up():
    with Up() as started:
        started.wait_warm()
        yield started


def serve(up):
    """A pool whose sandboxes have a Service."""
    template = up.api.call("GET", f"/apis/{EXTENSIONS}/namespaces/default/sandboxtemplates/python-sandbox-template")
    for kind, name, spec in (("SandboxTemplate", "served", {**template["spec"], "service": True}),
                             ("SandboxWarmPool", "served-warmpool", {"replicas": 1, "sandboxTemplateRef": {"name": "served"}})):
        up.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": EXTENSIONS, "kind": kind, "metadata": {"name": name}, "spec": spec}))
    up.wait_warm("served-warmpool")


def test_by_address_and_by_name(up):
    """One program for all of it: to load the Kubernetes client takes longer than all that it does here."""
    parts, want = [BEGIN, BY_NAME.format(namespace="agent-sandbox-system" if HAS_POOLS else "default")], ["router by name", "sandbox by name"]
    if RELEASE >= (0, 4):
        parts, want = [*parts, BY_ADDRESS], [*want, "by address", "async"]
    if RELEASE >= (1, 0):
        serve(up)
        parts, want = [*parts, SERVED], [*want, "service by name"]
    done = up.run("in-cluster", "-n", "default", "--", sys.executable, "-c", "".join([*parts, TRY_MORE]))
    assert done.stdout.splitlines() == [*want, "403"], done.stdout + done.stderr


if RELEASE >= (1, 0):
    @pytest.mark.parametrize("words, code", [(["sh", "-c", "exit 7"], 7), (["no-such-program"], 127)])
    def test_how_it_ends(up, words, code):
        assert up.run("in-cluster", "--", *words, check=False).returncode == code
        assert list(up.data.glob("in-cluster.*")) == []

"""The published SDKs on a real control plane with what deploy/ installs: a sandbox is made, found, listed, suspended, resumed and
deleted. Commands and files go by `silica router` to runtimes at the addresses of the Pods. Releases up to 0.4.6 speak v1alpha1, so the
API server has every object converted by our controller."""

import importlib.metadata
import os
import subprocess

import pytest

from harness.server import wait_until
from lib import controlplane
from lib.installed import Installed

RELEASE = tuple(map(int, importlib.metadata.version("k8s-agent-sandbox").split(".")))
POOL = "python-sandbox-pool" if RELEASE >= (0, 5) else "python-sandbox-template"
BETA = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default"
pytestmark = pytest.mark.timeout(300)  # the first test starts all of it
DEFINITIONS = ["sandboxes.agents.x-k8s.io", *(f"sandbox{kind}.extensions.agents.x-k8s.io" for kind in ("claims", "templates", "warmpools"))]


@pytest.fixture(scope="session")
def system():
    try:
        with Installed() as made:
            made.kubectl("apply", "-k", "deploy")
            wait_until(lambda: made.exists(BETA + "/sandboxclaims"), 60, "the kinds are served")
            made.start("--webhook-cert-check=100ms")
            lead_to_webhook(made)
            made.kubectl("apply", "-f", "deploy/samples/python.yaml")
            made.kubectl("delete", "sandboxclaim", "my-sandbox")
            pool = BETA + "/sandboxwarmpools/python-sandbox-pool"
            wait_until(lambda: made.api.call("GET", pool).get("status", {}).get("readyReplicas") == 3, 60, "the pool is warm")
            os.environ["KUBECONFIG"] = str(made.api.kubeconfig)  # read when the Kubernetes client is imported
            yield made
    except controlplane.Unavailable as e:
        pytest.skip(str(e))


def lead_to_webhook(system):
    """Nothing serves the Service's address here, so the definitions name a URL; who signed it comes from the controller."""
    port = system.controllers[0].ready["webhook"].rsplit(":", 1)[1]
    for name in DEFINITIONS:
        system.kubectl("patch", "crd", name, "--type=json", "-p",
                       '[{"op":"replace","path":"/spec/conversion/webhook/clientConfig","value":{"url":"https://127.0.0.1:%s/convert"}}]' % port)
    for name in DEFINITIONS:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        wait_until(lambda: "caBundle" in system.api.call("GET", path)["spec"]["conversion"]["webhook"]["clientConfig"], 60, f"{name} can be converted")
    wait_until(lambda: all(system.exists(f"/apis/{name.split('.', 1)[1]}/v1alpha1/{name.split('.', 1)[0]}") for name in DEFINITIONS), 60, "v1alpha1 is served")


def test_python(system):
    from k8s_agent_sandbox import SandboxClient, models
    from k8s_agent_sandbox.gke_extensions.snapshots.sandbox_with_snapshot_support import SandboxWithSnapshotSupport
    client = SandboxClient(connection_config=models.SandboxDirectConnectionConfig(api_url=system.router.url))
    box = client.create_sandbox(POOL)
    assert box.commands.run("echo made").stdout == "made\n"
    box.files.write("note", "kept")
    again = client.get_sandbox(box.claim_name)
    assert again.sandbox_id == box.sandbox_id and again.files.read("note") == b"kept"
    assert box.claim_name in client.list_all_sandboxes()

    handle = SandboxWithSnapshotSupport(box.claim_name, box.sandbox_id, connection_config=client.connection_config)
    assert handle.suspend(snapshot_before_suspend=False).success and handle.is_suspended()
    wait_until(lambda: not system.exists(f"/api/v1/namespaces/default/pods/{box.sandbox_id}"), 60, "its Pod is gone")
    # Its own resume() lists snapshots of a cloud first; without these, this is what it does.
    set_mode = getattr(handle, "_set_operating_mode", None)
    set_mode("Running") if set_mode else handle._set_replicas(1)
    wait_until(lambda: handle.status()[0] == "SandboxReady", 60, "it is back")
    assert handle.commands.run("echo awake").stdout == "awake\n"

    client.delete_sandbox(box.claim_name)
    wait_until(lambda: not system.exists(f"{BETA}/sandboxclaims/{box.claim_name}"), 60, "the claim is gone")
    wait_until(lambda: not system.exists(f"/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/{box.sandbox_id}"), 60, "and its sandbox")
    assert box.claim_name not in client.list_all_sandboxes()


def go_sdk(system):
    try:
        program = controlplane.peer("go-sdk-life")
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    done = subprocess.run([program, system.router.url, "python-sandbox-pool"], capture_output=True, text=True, timeout=100,
                          env={**os.environ, "KUBECONFIG": str(system.api.kubeconfig)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["created", "got", "kept", "listed", "true", "suspended", "resumed", "awake", "deleted", "true"]


if RELEASE >= (1, 0):  # once is enough
    test_go = go_sdk


def test_nothing_was_forbidden(system):
    assert {call for account in ("agent-sandbox-controller", "sandbox-router") for call in system.calls(account) if call[3] in (401, 403)} == set()

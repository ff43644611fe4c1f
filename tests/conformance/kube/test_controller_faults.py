"""`silica controller` on a real kube-apiserver in trouble: it restarts, takes rights away, loses definitions; and hand-over of the Lease."""

import urllib.error

import pytest

from harness.server import wait_until
from lib import controlplane, failover
from lib.controllers import Controller

SYSTEM = failover.SYSTEM
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/a3317529.agent-sandbox.x-k8s.io"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes"
TEMPLATES = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxtemplates"
PODS = "/api/v1/namespaces/default/pods"
POD = {"spec": {"containers": [{"name": "c", "image": "x"}]}}


@pytest.fixture(scope="module")
def plane():
    try:
        made = controlplane.ControlPlane()
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with made as api:
        yield api


def sandbox(name):
    return {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": name}, "spec": {"podTemplate": POD}}


def warnings(c, msg):
    return [line for line in c.said(msg) if line["level"] == "warn"]


def test_the_lease_is_handed_over(plane):
    with failover.replica(plane, "first") as first:
        first.wait_for("controller.working")
        with failover.replica(plane, "second") as second:
            first.end()  # ends with 0, and gives it back: the second does not wait for it to run out
            assert plane.call("GET", LEASE)["spec"].get("holderIdentity", "") in ("", second_identity(plane))
            second.wait_for("controller.working", 14)
            plane.call("POST", SANDBOXES, sandbox("handed-over"))
            wait_until(lambda: plane.exists(f"{PODS}/handed-over"), 30)


def second_identity(plane):
    return plane.call("GET", LEASE)["spec"]["holderIdentity"]


def test_the_server_restarts(plane):
    with Controller(plane, "--leader-elect=false") as c:
        c.wait_for("controller.working")
        plane.restart()
        plane.call("POST", SANDBOXES, sandbox("after-restart"))
        wait_until(lambda: plane.exists(f"{PODS}/after-restart"), 60)
        assert len(c.said("controller.unreachable")) <= 3 and len(c.lines()) < 60


def test_rights_are_taken_away_and_given_back(plane):
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    kubeconfig = failover.account(plane, "revoked")
    with Controller(plane, "--leader-elect=false", kubeconfig=kubeconfig) as c:
        c.wait_for("controller.working")
        given = plane.call("GET", f"{binding}/revoked")
        plane.call("DELETE", f"{binding}/revoked")
        for i in range(30):
            plane.call("POST", SANDBOXES, sandbox(f"revoked-{i}"))
        wait_until(lambda: c.metric('rest_client_requests_total{code="403",method="POST"}') and
                   float(c.metric('rest_client_requests_total{code="403",method="POST"}')[0]) > 60, 30)
        said = warnings(c, "sandbox.pass")
        assert 1 <= len(said) <= 25 and "forbidden" in said[0]["err"]
        plane.call("POST", binding, {k: given[k] for k in ("subjects", "roleRef")} | {"metadata": {"name": "revoked"}})
        wait_until(lambda: all(plane.exists(f"{PODS}/revoked-{i}") for i in range(30)), 60)


def test_a_definition_goes_and_comes_back(plane):
    name = "sandboxtemplates.extensions.agents.x-k8s.io"
    with Controller(plane, "--leader-elect=false") as c:
        c.wait_for("controller.working")
        definition = plane.call("GET", f"{CRDS}/{name}")
        plane.call("DELETE", f"{CRDS}/{name}")
        wait_until(lambda: c.metric('silica_informer_failing{kind="SandboxTemplate"}') == ["1"], 60)
        wait_until(lambda: not plane.exists(f"{CRDS}/{name}"), 60)
        assert len(warnings(c, "informer.retry")) <= 3
        plane.call("POST", SANDBOXES, sandbox("meanwhile"))  # the other kinds go on
        wait_until(lambda: plane.exists(f"{PODS}/meanwhile"), 30)
        plane.call("POST", CRDS, {"apiVersion": definition["apiVersion"], "kind": definition["kind"], "metadata": {"name": name}, "spec": definition["spec"]})
        wait_until(lambda: c.metric('silica_informer_failing{kind="SandboxTemplate"}') == ["0"], 90)
        wait_until(lambda: made(plane, TEMPLATES, {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate",
                                                   "metadata": {"name": "back"}, "spec": {"podTemplate": POD}}), 30)
        wait_until(lambda: "agents.x-k8s.io/sandbox-template-ref-hash" in plane.call("GET", f"{TEMPLATES}/back")["metadata"].get("labels", {}), 30)
        # A server may list a new kind before it watches it: then the trouble ends twice.
        well = [line["kind"] for line in c.said("informer.well")]
        assert set(well) == {"SandboxTemplate"} and len(well) <= len(warnings(c, "informer.retry"))


def made(plane, path, body):
    try:
        return plane.call("POST", path, body)
    except urllib.error.HTTPError as e:
        assert e.code in (404, 429)  # not served again yet
        return None

"""The cluster itself: what judges the others must work."""

from harness.server import wait_until
from lib.cluster import Upstream
from lib.controllers import condition

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
BLUEPRINT = {"podTemplate": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}


def make_namespace(cluster, name):
    cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    wait_until(lambda: cluster.exists(f"/api/v1/namespaces/{name}/serviceaccounts/default"), 60, "the service account")


def test_a_pod_runs_and_goes(cluster):
    make_namespace(cluster, "judge-pod")
    path = "/api/v1/namespaces/judge-pod/pods"
    cluster.call("POST", path, POD)
    wait_until(lambda: condition(cluster.call("GET", f"{path}/p")) == "True", 60, "the Pod")
    pod = cluster.call("GET", f"{path}/p")
    assert pod["status"]["phase"] == "Running" and pod["spec"]["nodeName"].startswith("node-")
    assert pod["status"]["podIP"].startswith("127.16.")
    cluster.call("DELETE", f"{path}/p")
    wait_until(lambda: not cluster.exists(f"{path}/p"), 60, "the end of the Pod")


def test_the_public_controller_serves_a_sandbox(cluster):
    make_namespace(cluster, "judge-upstream")
    path = "/apis/agents.x-k8s.io/v1beta1/namespaces/judge-upstream/sandboxes"
    with Upstream(cluster) as upstream:
        cluster.call("POST", path, {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "s"}, "spec": BLUEPRINT})
        wait_until(lambda: condition(cluster.call("GET", f"{path}/s")) == "True", 60, "the sandbox")
        assert "controller_runtime_reconcile_total" in upstream.metrics()
        upstream.end()

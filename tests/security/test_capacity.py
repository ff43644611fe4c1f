"""The node takes so many Pods and no more: others wait, and say so; pools make no more than there is room for."""

import pytest

from harness.server import wait_until
from lib import up as ups

MAX = 6
EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default"
PODS = "/api/v1/namespaces/default/pods"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes"


@pytest.fixture(params=["root", "user"])
def up(request):
    with ups.as_caller(request.param, "--max-pods", str(MAX)) as started:
        for pool in ("python-sandbox-pool", "python-sandbox-warmpool"):
            started.api.patch(f"{EXTENSIONS}/sandboxwarmpools/{pool}", {"spec": {"replicas": 0}})
        wait_until(lambda: not pods(started), 60, "the pools are empty")
        yield started


def pods(up):
    """Without the one that stands for the router."""
    return [p for p in up.api.call("GET", PODS)["items"] if p["metadata"]["name"] != "sandbox-router"]


def on_a_node(up):
    return [p for p in pods(up) if p["spec"].get("nodeName") and p["status"].get("phase") not in ("Succeeded", "Failed")]


def condition(pod):
    return next((c for c in pod["status"].get("conditions", []) if c["type"] == "PodScheduled"), {})


def make(up, name):
    up.api.call("POST", PODS, {"metadata": {"name": name}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [
        {"name": "c", "image": "host", "command": ["sleep", "1000"]}]}})


def test_pods_beyond_it_wait(up):
    node = up.api.call("GET", "/api/v1/nodes")["items"][0]
    assert node["status"]["allocatable"]["pods"] == node["status"]["capacity"]["pods"] == str(MAX)
    for i in range(MAX + 3):
        make(up, f"p{i}")
    waiting = wait_until(lambda: (lambda found: found if len(found) == 3 else None)([p for p in pods(up) if condition(p).get("status") == "False"]),
                         60, "three wait")
    assert len(on_a_node(up)) == MAX
    assert all(condition(p)["reason"] == "Unschedulable" and condition(p)["message"] == "0/1 nodes are available: 1 Too many pods." for p in waiting)
    name = waiting[0]["metadata"]["name"]
    wait_until(lambda: "FailedScheduling" in up.kubectl("describe", "pod", name), 30, "an Event says so")
    assert "Too many pods" in up.kubectl("describe", "pod", name) and "Pending" in up.kubectl("get", "pod", name)
    # the same after a start; and where one ends, one that waited takes its place
    up.wait_back("control", up.kill("control"))
    assert len(on_a_node(up)) == MAX
    first = on_a_node(up)[0]["metadata"]["name"]
    up.api.call("DELETE", f"{PODS}/{first}")
    wait_until(lambda: len(pods(up)) == MAX + 2 and len(on_a_node(up)) == MAX, 60, "another takes its place")
    took = [p for p in on_a_node(up) if p["metadata"]["name"] in {w["metadata"]["name"] for w in waiting}]
    assert len(took) == 1
    wait_until(lambda: condition(up.api.call("GET", f"{PODS}/{took[0]['metadata']['name']}")).get("status") == "True", 60, "and says so")


def test_a_pool_stops_there(up):
    pool = f"{EXTENSIONS}/sandboxwarmpools/python-sandbox-pool"
    up.api.patch(pool, {"spec": {"replicas": 300}})
    wait_until(lambda: "TooManyPods" in up.kubectl("describe", "sandboxwarmpool", "python-sandbox-pool"), 60, "an Event says so")
    wait_until(lambda: up.api.call("GET", pool)["status"].get("readyReplicas") == MAX, 60, "the node is full")
    assert len(up.api.call("GET", SANDBOXES)["items"]) == MAX == len(pods(up))
    assert "there is no room for more" in up.kubectl("describe", "sandboxwarmpool", "python-sandbox-pool")
    # a member that goes is replaced, and a pool that asks for less is served
    up.api.call("DELETE", f"{SANDBOXES}/{up.api.call('GET', SANDBOXES)['items'][0]['metadata']['name']}")
    wait_until(lambda: up.api.call("GET", pool)["status"].get("readyReplicas") == MAX and len(pods(up)) == MAX, 60, "it is full again")
    up.api.patch(pool, {"spec": {"replicas": 2}})
    wait_until(lambda: len(pods(up)) == 2, 60, "it is as asked")

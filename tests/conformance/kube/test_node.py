"""`silica node` on both servers: a Pod that is given to it becomes a sandbox, its status settles, and it goes.

The node takes no Pod that nobody gave it: other tests have theirs in the same servers."""

import os
import pathlib
import shutil
import tempfile

import pytest

from harness import proc
from harness.server import wait_until
from lib.machine import Process, pod

NODE = "conformance"


class Node:
    """As lib.machine has it, on a server of somebody else's."""

    def __init__(self, target):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="silica-node-"))
        self.data, self.wrap, self.api = self.directory / "data", [], self
        self.program = os.environ.get("SILICA", str(pathlib.Path(__file__).parents[3] / "build" / "silica"))
        self.process = Process(self, "node", "--kubeconfig", target.kubeconfig, "--data", self.data, "--node-name", NODE, "--no-scheduler")

    def stop(self):
        self.process.end()
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.fixture
def node(target):
    n = Node(target)
    yield n
    n.stop()


def test_a_pod_lives_and_goes(api, ns, node):
    path, mark = f"/api/v1/namespaces/{ns}/pods", proc.unique_sleep()
    wait_until(lambda: api.request("GET", f"/api/v1/namespaces/{ns}/serviceaccounts/default").status_code == 200, 60)
    made = api.request("POST", path, json=pod("demo", command=["sleep", mark], nodeName=NODE))
    assert made.status_code == 201, made.text

    def ready():
        got = api.request("GET", f"{path}/demo").json()
        is_ready = any(c["type"] == "Ready" and c["status"] == "True" for c in got["status"].get("conditions", []))
        return got if is_ready else None

    found = wait_until(ready, 60, "a ready Pod")
    assert found["status"]["phase"] == "Running" and found["status"]["podIP"].startswith("127.")
    assert os.listdir(node.data / "sandboxes") == [f"{found['metadata']['uid']}_main_0"] and proc.with_argument(mark)
    # What was written is what the server keeps: nothing is written again and again.
    wait_until(lambda: api.request("GET", f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}").ok, 60)
    assert api.request("GET", f"{path}/demo").json()["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
    assert node.process.log().count("event=pod.status") <= 3
    assert api.request("DELETE", f"{path}/demo").status_code == 200
    wait_until(lambda: api.request("GET", f"{path}/demo").status_code == 404, 60)
    wait_until(lambda: not os.listdir(node.data / "sandboxes") and not proc.with_argument(mark), 60)
    wait_until(lambda: {"Started", "Killing"} <= {e["reason"] for e in api.request("GET", f"/api/v1/namespaces/{ns}/events").json()["items"]},
               60, "both are told")

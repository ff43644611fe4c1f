"""Sandboxes that a node owns, and the verbs on sandboxes: what would leave a Pod or a claim that says it runs is refused, with the
owner's name and the command that ends it there."""

import json

import pytest

from harness.server import wait_until
from lib.up import as_caller

pytestmark = pytest.mark.ours
CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with as_caller(request.param) as started:
        started.wait_warm()
        yield started


@pytest.fixture(scope="module")
def claimed(up):
    """The Pod of a claim that is bound, and its sandbox's name."""
    up.api.call("POST", CLAIMS, {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": "mine"},
                                 "spec": {"warmPoolRef": {"name": "python-sandbox-pool"}}})
    name = wait_until(lambda: up.api.call("GET", f"{CLAIMS}/mine").get("status", {}).get("sandbox"), 60)["name"]
    return up.api.call("GET", f"{PODS}/{name}")


@pytest.fixture(scope="module")
def box(claimed):
    return f"{claimed['metadata']['uid']}_{claimed['spec']['containers'][0]['name']}_0"


def boxes(up):
    return {b["name"]: b["status"] for b in json.loads(up.run("ps", "-a", "-o", "json").stdout or "[]")}


def test_rm_names_the_claim_and_kills_nothing(up, box):
    done = up.run("rm", "-f", box, check=False)
    assert done.returncode == 1
    assert done.stderr == (f"silica: sandbox '{box}' belongs to SandboxClaim 'mine' in namespace 'default'\n"
                           "hint: kubectl delete sandboxclaim mine -n default\n")
    assert boxes(up)[box] == "running"


def test_rm_of_all_removes_the_rest(up, claimed, box):
    up.run("run", "--keep", "-d", "--name", "my_app_1", "--", "sleep", "4711")
    before = boxes(up)
    done = up.run("rm", "-a", "-f", check=False)
    assert done.returncode == 1 and set(before) - set(boxes(up)) == {"my_app_1"}
    assert set(boxes(up).values()) == {"running"}
    assert f"'{box}' belongs to SandboxClaim 'mine' in namespace 'default'\n" in done.stderr
    for name in boxes(up):  # each is named, each with what ends it
        assert f"silica: sandbox '{name}' belongs to " in done.stderr
    spare = next(p for p in up.api.call("GET", f"{PODS}?labelSelector=%21silica.dev%2Fpart")["items"]
                 if p["metadata"]["name"] != claimed["metadata"]["name"])["metadata"]["name"]
    assert f"hint: kubectl delete sandbox {spare} -n default; a pool then makes another one\n" in done.stderr
    assert up.api.call("GET", f"{PODS}/{claimed['metadata']['name']}")["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_plain_pod(up):
    up.api.call("POST", PODS, {"metadata": {"name": "plain"}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [
        {"name": "c", "image": "python:3.11", "command": ["sleep", "infinity"]}]}})
    uid = wait_until(lambda: (p := up.api.call("GET", f"{PODS}/plain"))["status"]["phase"] == "Running" and p, 60)["metadata"]["uid"]
    done = up.run("rm", "-f", f"{uid}_c_0", check=False)
    assert done.returncode == 1 and done.stderr.endswith("belongs to Pod 'plain' in namespace 'default'\n"
                                                         "hint: kubectl delete pod plain -n default\n")
    up.kubectl("delete", "pod", "plain")
    wait_until(lambda: f"{uid}_c_0" not in boxes(up), 30, "what the hint says ends it")


def test_pause_would_not_be_seen(up, box):
    done = up.run("pause", box, check=False)
    assert done.returncode == 125 and f"sandbox '{box}' belongs to the Pod with uid {box.split('_')[0]}" in done.stderr
    assert '"operatingMode":"Suspended"' in done.stderr and boxes(up)[box] == "running"
    assert up.run("resume", box, check=False).returncode == 0


def test_what_only_looks_goes_on(up, box, tmp_path):
    assert up.run("exec", box, "--", "echo", "in").stdout == "in\n"
    assert up.run("cp", f"{box}:/etc/hostname", "-").stdout is not None
    assert box in up.run("stats", box).stdout and up.run("logs", box).returncode == 0


def test_a_node_s_names_are_its_own(up, box):
    done = up.run("run", "--keep", "-d", "--name", box, "--", "true", check=False)
    assert done.returncode == 2 and f"--name: '{box}' is what a node calls a sandbox of a Pod" in done.stderr


def test_while_it_is_down(up, box):
    """Last: it ends the daemon. Nothing is lost all the same."""
    assert up.end() == 0
    done = up.run("rm", "-f", box, check=False)
    assert done.returncode == 1 and "which a node runs\nhint: silica down --sandboxes ends all sandboxes of Pods" in done.stderr
    assert boxes(up)[box] == "running"
    up.start()
    assert up.kubectl("get", "sandboxclaim", "mine", "-o", "jsonpath={.status.conditions[0].status}") == "True"

"""kill -9 of the controller and of the API server while claims come in: each claim ends with one sandbox of its own, no sandbox
serves two, the pool has its size again, nothing is left over. Judged by what the API shows, and by nothing else.

SILICA_CONTROLLER_KILLS is how many kills there are.
"""

import os
import random
import threading
import time
import urllib.error

import pytest
from test_controller import SANDBOX, Controller, condition, ready_pods

from harness.server import wait_until
from lib import controlplane

pytestmark = pytest.mark.ours
KILLS = int(os.environ.get("SILICA_CONTROLLER_KILLS", "16"))
CLAIMS = 200
POOL = 20
NAMESPACE = "chaos"
EXTENSIONS = f"/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{NAMESPACE}"
SANDBOXES = f"/apis/agents.x-k8s.io/v1beta1/namespaces/{NAMESPACE}/sandboxes"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
LOST = (OSError, urllib.error.URLError, ValueError)  # no answer, or half of one


def make(api, kind, name, spec):
    """Until the server says that it is there: a request that was cut may have been done."""
    body = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    while True:
        try:
            api.call("POST", f"{EXTENSIONS}/{kind.lower()}s", body)
            return
        except urllib.error.HTTPError as refused:
            if refused.code == 409:
                return
            raise
        except LOST:
            time.sleep(0.02)


class Nodes(threading.Thread):
    """Makes every Pod run, whoever is dead at the moment."""

    def __init__(self, api):
        super().__init__(daemon=True)
        self.api, self.ends = api, threading.Event()

    def run(self):
        while not self.ends.wait(0.01):
            try:
                ready_pods(self.api, NAMESPACE)
            except LOST:
                pass

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.join()


def owner(thing):
    return next((ref for ref in thing["metadata"].get("ownerReferences", []) if ref.get("controller")), None)


def items(api, path):
    return {thing["metadata"]["name"]: thing for thing in api.call("GET", path)["items"]}


def is_settled(api):
    claims, pool = items(api, f"{EXTENSIONS}/sandboxclaims"), api.call("GET", f"{EXTENSIONS}/sandboxwarmpools/p")
    return all(condition(claim) == "True" for claim in claims.values()) and pool.get("status", {}).get("readyReplicas") == POOL


def judge(api):
    """What is wrong, a line each."""
    claims, sandboxes, pods = items(api, f"{EXTENSIONS}/sandboxclaims"), items(api, SANDBOXES), items(api, PODS)
    pool = api.call("GET", f"{EXTENSIONS}/sandboxwarmpools/p")["metadata"]["uid"]
    of = {}
    for name, sandbox in sandboxes.items():
        of.setdefault(owner(sandbox)["uid"] if owner(sandbox) else None, []).append(name)
        refs = sandbox["metadata"].get("ownerReferences", [])
        if len(refs) != 1:
            yield f"sandbox {name} has {len(refs)} owners"
        if sandbox["metadata"]["annotations"].get("agents.x-k8s.io/pod-name") != name:
            yield f"sandbox {name} names another pod"
    for name, claim in claims.items():
        own = of.pop(claim["metadata"]["uid"], [])
        if own != [claim["status"]["sandbox"]["name"]]:
            yield f"claim {name} owns {own} and shows {claim['status']['sandbox']}"
    if len(of.pop(pool, [])) != POOL:
        yield f"the pool has not {POOL} members"
    if of:
        yield f"left over: {of}"
    for name, pod in pods.items():
        ref = owner(pod)
        if not ref or sandboxes.get(ref["name"], {"metadata": {"uid": None}})["metadata"]["uid"] != ref["uid"]:
            yield f"pod {name} belongs to nobody"
    if len(pods) != len(sandboxes):
        yield f"{len(pods)} pods for {len(sandboxes)} sandboxes"


@pytest.mark.timeout(240 + 10 * KILLS)
def test_killed_under_claims():
    seed = int(os.environ.get("SILICA_SEED", random.randrange(1 << 32)))
    rng = random.Random(seed)
    print(f"seed {seed}")
    with controlplane.Silica("--log-level", "warn") as api:
        api.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        make(api, "SandboxTemplate", "t", SANDBOX["spec"])
        make(api, "SandboxWarmPool", "p", {"replicas": POOL, "sandboxTemplateRef": {"name": "t"}})
        with Nodes(api):
            made = 0
            for kill in range(KILLS):
                with Controller(api, "--leader-elect=false") as controller:
                    until = (kill + 1) * CLAIMS // KILLS
                    while made < until:
                        make(api, "SandboxClaim", f"c{made}", {"warmPoolRef": {"name": "p"}})
                        made += 1
                    time.sleep(rng.uniform(0, 0.3))
                    if rng.random() < 0.4:
                        api.kill()
                        api.start()
                    controller.process.kill()
            with Controller(api, "--leader-elect=false") as controller:
                wait_until(lambda: is_settled(api), 120, "claims and pool")
                wait_until(lambda: not list(judge(api)), 30, "nothing left over")
                assert list(judge(api)) == []
                controller.end()
        launched = [thing["metadata"]["labels"]["agents.x-k8s.io/launch-type"] for thing in items(api, SANDBOXES).values() if
                    owner(thing)["kind"] == "SandboxClaim"]
        print(f"{KILLS} kills, {launched.count('warm')} warm and {launched.count('cold')} cold claims")


def test_the_other_takes_over_from_one_that_was_killed():
    """No word of farewell: the Lease runs out first. Nothing is done twice."""
    with controlplane.Silica("--log-level", "warn") as api:
        api.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        make(api, "SandboxTemplate", "t", SANDBOX["spec"])
        make(api, "SandboxWarmPool", "p", {"replicas": POOL, "sandboxTemplateRef": {"name": "t"}})
        with Nodes(api), Controller(api) as one, Controller(api) as two:
            wait_until(lambda: is_settled(api), 60, "the pool")
            first, second = (one, two) if one.said("controller.working") else (two, one)
            for i in range(5):
                make(api, "SandboxClaim", f"c{i}", {"warmPoolRef": {"name": "p"}})
            first.process.kill()
            assert second.said("controller.working") == []
            wait_until(lambda: second.said("controller.working"), 60, "the other's turn")
            wait_until(lambda: is_settled(api), 60, "claims and pool")
            wait_until(lambda: not list(judge(api)), 30, "nothing left over")
            second.end()

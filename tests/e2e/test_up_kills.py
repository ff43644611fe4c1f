"""Any process of `silica up`, killed at any moment under load: sandboxes go on, and answer again; nothing is lost or left.

SILICA_KILLS and SILICA_CLIENTS say how many (make soak-up: 100 and 50). The keeper is another matter: its sandboxes end with it."""

import http.client
import json
import os
import random
import signal
import threading

import pytest

from harness import owner, proc
from harness.server import wait_until
from lib.up import Up

pytestmark = pytest.mark.ours
KILLS = int(os.environ.get("SILICA_KILLS", "30"))
CLIENTS = int(os.environ.get("SILICA_CLIENTS", "50"))
PARTS = ["control", "node", "router", "parts", "up", "spawner"]
PATH = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default"


class Client(threading.Thread):
    """Asks its sandbox for what it once wrote there, again and again."""

    def __init__(self, up, number, sandbox):
        super().__init__(daemon=True)
        self.up, self.number, self.sandbox = up, number, sandbox
        self.answers, self.wrong, self.is_over = 0, [], False

    def ask(self, command):
        c = http.client.HTTPConnection(self.up.ready["router"].removeprefix("http://"), timeout=30)
        try:
            c.request("POST", "/execute", json.dumps({"command": command}),
                      {"content-type": "application/json", "x-sandbox-id": self.sandbox, "x-sandbox-namespace": "default"})
            answer = c.getresponse()
            body = answer.read()
            return json.loads(body) if answer.status == 200 else None
        finally:
            c.close()

    def try_ask(self, command):
        try:
            return self.ask(command)
        except (OSError, http.client.HTTPException, ValueError):
            return None  # it was killed in the middle of this

    def run(self):
        while not self.is_over:
            got = self.try_ask("cat /tmp/mine")
            if got and got["stdout"] != f"{self.number}\n":
                self.wrong.append(got)
            elif got:
                self.answers += 1


def claim(up, number):
    up.api.call("POST", f"{PATH}/sandboxclaims", {
        "apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": f"load-{number}"},
        "spec": {"warmPoolRef": {"name": "python-sandbox-pool"}}})

    def is_ready():
        status = up.api.call("GET", f"{PATH}/sandboxclaims/load-{number}").get("status", {})
        ready = [c for c in status.get("conditions", []) if c["type"] == "Ready" and c["status"] == "True"]
        return ready and status["sandbox"]["name"]

    return wait_until(is_ready, 60, f"claim {number} is ready")


def pods_of(up, names):
    listed = up.api.call("GET", "/api/v1/namespaces/default/pods")["items"]
    return {p["metadata"]["name"]: (p["metadata"]["uid"], [c["restartCount"] for c in p["status"]["containerStatuses"]])
            for p in listed if p["metadata"]["name"] in names}


def kill(up, part):
    """Returns when another one is there."""
    if part == "spawner":
        try:
            os.kill(owner.spawner_of(up.data), signal.SIGKILL)
        except (IndexError, FileNotFoundError, ProcessLookupError):
            pass  # the last one was killed a moment ago, and the keeper has not started the next
        return
    pid = up.kill(part)
    if part == "up":
        up.process.wait()
        up.start()
    else:
        up.wait_back(part, pid)


def test_killed_under_load():
    seed = int(os.environ.get("SILICA_SEED", random.randrange(1 << 30)))
    dice = random.Random(seed)
    with Up() as up:
        clients = [Client(up, i, claim(up, i)) for i in range(CLIENTS)]
        for c in clients:
            assert c.ask(f"sh -c 'echo {c.number} >/tmp/mine'")["exit_code"] == 0
            c.start()
        names = {c.sandbox for c in clients}
        before = pods_of(up, names)
        killed = []
        deck = (PARTS * (KILLS // len(PARTS) + 1))[:KILLS]  # each as often as any other
        dice.shuffle(deck)
        for part in deck:
            killed.append(part)
            seen = [c.answers for c in clients]
            kill(up, part)
            wait_until(lambda: all(c.answers > n for c, n in zip(clients, seen)), 60, f"all answer (seed {seed}, {killed})\n{up.said()}")
        for c in clients:
            c.is_over = True
            c.join(60)
            assert c.wrong == [], (seed, killed)
        assert pods_of(up, names) == before, (seed, killed)
        assert len(up.api.call("GET", f"{PATH}/sandboxclaims")["items"]) == CLIENTS
        for c in clients:
            up.api.call("DELETE", f"{PATH}/sandboxclaims/load-{c.number}")
        wait_until(lambda: not pods_of(up, names), 60, "their Pods are gone")
        up.wait_warm()
        data = str(up.data)
    wait_until(lambda: not proc.with_argument(data), 30, "nothing is left")


def condition(thing, kind):
    return next((c for c in thing.get("status", {}).get("conditions", []) if c["type"] == kind), {"status": "Unknown"})


def test_the_keeper_is_killed():
    """Its sandboxes end with it, and start again in place: claims and pools keep theirs, and new claims get theirs."""
    with Up() as up:
        up.wait_warm()
        lost = claim(up, 0)
        up.wait_warm()
        old = {p["metadata"]["uid"] for p in up.api.call("GET", "/api/v1/namespaces/default/pods")["items"]}
        os.kill(owner.keeper_of(up.data), signal.SIGKILL)

        def are_back():
            pods = [p for p in up.api.call("GET", "/api/v1/namespaces/default/pods")["items"] if p["metadata"]["uid"] in old
                    and "restartCount" in str(p["status"].get("containerStatuses")) and p["metadata"]["name"] != "sandbox-router"]
            return len(pods) == 7 and all(condition(p, "Ready")["status"] == "True" and
                                          [c["restartCount"] for c in p["status"]["containerStatuses"]] == [1] for p in pods)

        wait_until(are_back, 120, f"all are back\n{up.said()}")
        wait_until(lambda: condition(up.api.call("GET", f"{PATH}/sandboxclaims/load-0"), "Ready")["status"] == "True", 60, "its claim says so")
        assert condition(up.api.call("GET", f"{PATH}/sandboxclaims/load-0"), "Finished")["status"] == "Unknown"
        assert Client(up, 0, lost).ask("echo there")["stdout"] == "there\n"
        up.wait_warm()
        assert Client(up, 1, claim(up, 1)).ask("echo there")["stdout"] == "there\n"
        data = str(up.data)
    wait_until(lambda: not proc.with_argument(data), 30, "nothing is left")

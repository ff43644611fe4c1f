"""Claims that come and go while controllers and API server are killed, and whether each of them was served right.

    figures = run(seconds=60, seed=7)     # raises AssertionError with the faults
    figures = run_cluster(cluster, seconds=60, seed=7)

So many claims live at any time; each is made, becomes ready, is held for a while and deleted, and another takes its place. In
the end all that live must be served, the pools have their size, and nothing be left of those that are gone. What happened
meanwhile is judged from a journal of the API (lib/journal.py), version by version.
"""

import queue
import random
import statistics
import threading
import time

from lib import controlplane
from lib.controllers import RUNNING, Controller, condition
from lib.failover import make_system
from lib.journal import GROUPS, Journal, judge_end, path_of
from lib.writers import Connection, Gone

NAMESPACE = "chaos"
CLAIMS, THREADS = 200, 4  # claims that live at any time, and who looks after them
POOLS = {"p": 20, "q": 10}
CLUSTER_CLAIMS = 40  # at any time on a real control plane, where each costs some thirty writes
HOLD_S = (1.0, 12.0)
CONTROLLER_KILLS, SERVER_KILLS, LEADER_KILLS = "kills of the controller", "kills of the server", "of them the leader"
HANDED_OVER, RESIGNED = "leaders that were asked to go", "controllers that gave up by themselves"
PATIENCE_S = 120  # for the end: only a failing run waits this long
BLUEPRINT = {"service": True, "podTemplate": {"spec": {"containers": [{"name": "c", "image": "x", "ports": [{"containerPort": 8080}]}]}},
             "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                                              "resources": {"requests": {"storage": "1Gi"}}}}]}


def make(connection, plural, name, spec):
    """Until the server says that it is there: a request that was cut may have been done. True: it was this one that made it."""
    kind = {"sandboxclaims": "SandboxClaim", "sandboxwarmpools": "SandboxWarmPool", "sandboxtemplates": "SandboxTemplate"}[plural]
    body = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    status, answer = insist(connection, "POST", f"/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{NAMESPACE}/{plural}", body)
    assert status in (201, 409), answer


def insist(connection, method, path, body=None, kind="application/json"):
    while True:
        try:
            status, answer = connection.call(method, path, body, kind)
            if status < 500 and status != 429:
                return status, answer
        except (Gone, ValueError):
            pass
        time.sleep(0.02)


class Nodes(threading.Thread):
    """Makes every Pod run, whoever is dead at the moment."""

    def __init__(self, api, namespace=NAMESPACE):
        super().__init__(daemon=True)
        self.connection, self.pods, self.namespace = Connection(api), queue.Queue(), namespace

    def on_pod(self, kind, pod):
        if kind != "DELETED" and "deletionTimestamp" not in pod["metadata"] and pod.get("status", {}).get("phase") != "Running":
            self.pods.put(pod["metadata"]["name"])

    def run(self):
        while (name := self.pods.get()) is not None:
            insist(self.connection, "PATCH", f"/api/v1/namespaces/{self.namespace}/pods/{name}/status", {"status": RUNNING},
                   "application/merge-patch+json")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.pods.put(None)


class Claimer(threading.Thread):
    """Looks after some of the claims. A slot is (name, pool, made at, due at or None while it is not ready)."""

    def __init__(self, api, journal, number, count, seed):
        super().__init__(daemon=True)
        self.connection, self.journal, self.number = Connection(api), journal, number
        self.rng, self.slots, self.made, self.latencies = random.Random(f"{seed}-{number}"), [None] * count, 0, []
        self.ends, self.fault = threading.Event(), None

    def run(self):
        try:
            while not self.ends.is_set():
                for i in range(len(self.slots)):
                    self.look(i)
                self.ends.wait(0.02)
        except Exception as e:
            self.fault = f"claimer {self.number}: {type(e).__name__} {e}"

    def look(self, i):
        now = time.monotonic()
        if self.slots[i] is None:
            name, pool = f"c{self.number}-{self.made}", self.rng.choice(list(POOLS))
            make(self.connection, "sandboxclaims", name, {"warmPoolRef": {"name": pool}})
            self.made += 1
            self.slots[i] = [name, now, None]
            return
        name, began, due = self.slots[i]
        if due is None:
            claim = self.journal.get("sandboxclaims", name)
            if claim and condition(claim) == "True":
                self.latencies.append(now - began)
                self.slots[i][2] = now + self.rng.uniform(*HOLD_S)
        elif now > due and not self.ends.is_set():
            status, answer = insist(self.connection, "DELETE", f"{path_of(NAMESPACE, 'sandboxclaims')}/{name}")
            assert status in (200, 404), answer
            self.slots[i] = None

    def end(self):
        """Every slot has its claim in the end."""
        self.ends.set()
        self.join(PATIENCE_S)
        for i, slot in enumerate(self.slots):
            if slot is None and not self.fault:
                self.look(i)


class Killer:
    """Ends programs without a word, and begins them again."""

    PAUSE_S = (0.1, 2.5)

    def __init__(self, api, rng, options):
        self.api, self.rng, self.options, self.kills = api, rng, options, {CONTROLLER_KILLS: 0, SERVER_KILLS: 0}
        self.controller = Controller(api, *options)

    def strike(self):
        kind = self.rng.random()
        if kind < 0.7:
            self.controller.kill()
            self.kills[CONTROLLER_KILLS] += 1
        if kind >= 0.5:
            self.api.kill()
            time.sleep(self.rng.uniform(0, 0.2))
            self.api.start()
            self.kills[SERVER_KILLS] += 1
        if kind < 0.7:
            self.controller = Controller(self.api, *self.options)
        assert self.controller.process.poll() is None, self.controller.log.read_text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.controller.kill()


class Replicas:
    """Two controllers that elect a leader. The leader is killed or ended, or the other is; who ended, for whatever reason, is
    replaced, as a Deployment would. kube-apiserver is killed once, in the middle."""

    PAUSE_S = (1.0, 6.0)

    def __init__(self, api, rng, seconds):
        self.api, self.rng, self.server_at = api, rng, time.monotonic() + seconds / 2
        self.kills = {CONTROLLER_KILLS: 0, SERVER_KILLS: 0, LEADER_KILLS: 0, HANDED_OVER: 0, RESIGNED: 0}
        self.replicas = [Controller(api), Controller(api)]

    def strike(self):
        if not self.kills[SERVER_KILLS] and time.monotonic() > self.server_at:
            self.api.restart()
            self.kills[SERVER_KILLS] += 1
        self.kills[RESIGNED] += sum(c.process.poll() is not None for c in self.replicas)
        self.replicas = [c if c.process.poll() is None else Controller(self.api) for c in self.replicas]
        leader = next((c for c in self.replicas if c.said("controller.working")), None)
        if leader is None:
            return  # nobody leads yet: a strike now would prove little
        victim = leader if self.rng.random() < 0.7 else next(c for c in self.replicas if c is not leader)
        if victim is leader and self.rng.random() < 0.3:
            victim.end()
            self.kills[HANDED_OVER] += 1
        else:
            victim.kill()
            self.kills[CONTROLLER_KILLS] += 1
            self.kills[LEADER_KILLS] += victim is leader
        self.replicas = [Controller(self.api) if c is victim else c for c in self.replicas]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for c in self.replicas:
            c.kill()


def until_nothing(ask, what, faults):
    """Until ask() finds nothing any more; fails with what it found last."""
    end = time.monotonic() + PATIENCE_S
    while found := list(ask()):
        assert not faults(), faults()
        assert time.monotonic() < end, f"{what}: {found[:20]}"
        time.sleep(0.1)


def begin(api):
    first = Connection(api)
    insist(first, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    make(first, "sandboxtemplates", "t", BLUEPRINT)
    for name, size in POOLS.items():
        make(first, "sandboxwarmpools", name, {"replicas": size, "sandboxTemplateRef": {"name": "t"}})
    first.close()


def leave(api, journal, faults):
    """All claims and pools go, and everything with them."""
    last = Connection(api)
    for plural in ("sandboxclaims", "sandboxwarmpools"):
        for name in journal.now(plural):
            insist(last, "DELETE", f"{path_of(NAMESPACE, plural)}/{name}")
    until_nothing(lambda: [f"{plural} {name}" for plural in GROUPS for name in journal.now(plural)], "left over", faults)
    last.close()


def run(seconds, seed):
    """On `silica apiserver`, with one controller; both are killed."""
    rng = random.Random(seed)
    with controlplane.Silica("--log-level", "warn") as api:
        begin(api)
        nodes = Nodes(api)
        with nodes, Journal(api, NAMESPACE, {"pods": [nodes.on_pod]}) as journal, Killer(api, rng, ["--leader-elect=false"]) as killer:
            return drive(api, journal, killer, rng, seconds, seed)


def run_cluster(cluster, seconds, seed, claims=CLUSTER_CLAIMS):
    """On a cluster, with two replicas of the controller that elect a leader; they are killed, and kube-apiserver once."""
    rng = random.Random(seed)
    make_system(cluster)
    begin(cluster)
    with Journal(cluster, NAMESPACE) as journal, Replicas(cluster, rng, seconds) as killer:
        return drive(cluster, journal, killer, rng, seconds, seed, claims)


def drive(api, journal, killer, rng, seconds, seed, claims=CLAIMS):
    claimers = [Claimer(api, journal, i, claims // THREADS, seed) for i in range(THREADS)]

    def faults():
        return journal.faults() + [c.fault for c in claimers if c.fault]

    for c in claimers:
        c.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end and not faults():
        time.sleep(rng.uniform(*killer.PAUSE_S))
        killer.strike()
    for c in claimers:
        c.end()
    until_nothing(lambda: judge_end(journal, POOLS), f"seed {seed}: not settled", faults)
    assert len(journal.now("sandboxclaims")) == claims
    journal.settle()
    assert list(judge_end(journal, POOLS)) == []
    launched = [box["metadata"]["labels"]["agents.x-k8s.io/launch-type"] for box in journal.now("sandboxes").values()]
    leave(api, journal, faults)
    state = journal.replay()
    assert not state.faults, f"seed {seed}: {len(state.faults)}, {state.faults[:20]}"
    return figures(killer, claimers, journal, state, launched)


def figures(killer, claimers, journal, state, launched):
    waits = sorted(s for c in claimers for s in c.latencies)
    return {**killer.kills, "claims made": sum(c.made for c in claimers), "claims served": len(waits),
            "served warm at the end": launched.count("warm"), "events judged": len(journal.events()),
            "watches resumed": sum(f.resumed - 1 for f in journal.followers.values()),
            "watches begun anew": sum(f.relisted for f in journal.followers.values()),
            "most members of pools": sorted(state.most_members.values()), "pools wish for": sorted(POOLS.values()),
            "seconds to ready, median": round(statistics.median(waits), 3), "the longest": round(waits[-1], 3)}

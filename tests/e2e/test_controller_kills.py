"""kill -9 of controllers and of the API server while claims come and go: each claim ends with one sandbox of its own, no sandbox
ever serves two, pools have their size again, nothing is left over. Of two controllers one works at a time, whoever of them is
killed or stands still. Judged by what the API shows (lib/journal.py), and by nothing else.

SILICA_CHAOS_S is how long the kills go on.
"""

import contextlib
import os
import random
import signal
import threading

import pytest

from harness.server import wait_until
from lib import chaos, controlplane, failover
from lib.controllers import condition
from lib.journal import Event, Journal, judge_end, replay
from lib.writers import Connection

pytestmark = pytest.mark.ours
SERVED = {"sandbox": {"name": "s"}, "conditions": [{"type": "Ready", "status": "True"}]}
CHAOS_S = int(os.environ.get("SILICA_CHAOS_S", "60"))


@pytest.mark.timeout(600 + CHAOS_S)
def test_killed_under_claims():
    figures = chaos.run(CHAOS_S, int(os.environ.get("SILICA_SEED", random.randrange(1 << 32))))
    print(figures)
    assert figures["claims served"] >= chaos.CLAIMS and figures["kills of the controller"] and figures["kills of the server"]


class Told:
    """An object as a watch tells of it, version by version."""

    def __init__(self):
        self.version, self.events = 0, []

    def tell(self, plural, name, owner=None, kind="SandboxClaim", told="MODIFIED", **status):
        self.version += 1
        meta = {"name": name, "uid": f"u-{name}", "resourceVersion": str(self.version), "annotations": {"agents.x-k8s.io/pod-name": name},
                "ownerReferences": [{"kind": kind, "uid": f"u-{owner}", "controller": True}] if owner else []}
        self.events.append(Event(told, plural, {"metadata": meta, "status": status}))
        return self


@pytest.mark.parametrize("text, story", [
    (None, lambda t: t.tell("sandboxes", "s", "p", "SandboxWarmPool").tell("sandboxes", "s", "c").tell("sandboxclaims", "c", **SERVED)),
    ("has served 2 claims", lambda t: t.tell("sandboxes", "s", "c").tell("sandboxes", "s", "d")),
    ("is one of 2 sandboxes of one claim", lambda t: t.tell("sandboxes", "s", "c").tell("sandboxes", "r", "c")),
    (None, lambda t: t.tell("sandboxes", "s", "c").tell("sandboxes", "s", "c", told="DELETED").tell("sandboxes", "r", "c")),
    ("is one no more", lambda t: t.tell("sandboxes", "s", "c").tell("sandboxes", "s", "p", "SandboxWarmPool")),
    ("which is not its own", lambda t: t.tell("sandboxes", "s", "d").tell("sandboxclaims", "c", **SERVED)),
    ("has shown ['r', 's']", lambda t: t.tell("sandboxclaims", "c", sandbox={"name": "r"}).tell("sandboxclaims", "c", sandbox={"name": "s"})),
    ("is one of 2 pods", lambda t: t.tell("pods", "a", "s", "Sandbox").tell("pods", "b", "s", "Sandbox")),
])
def test_the_judge_sees_what_is_wrong(text, story):
    faults = replay(story(Told()).events).faults
    assert [text in fault for fault in faults] == [True] if text else faults == []


@pytest.mark.parametrize("text, story", [
    # The adoption, at version 2, was not heard of: the sandbox's last version is after that of the claim.
    (None, lambda t: t.tell("sandboxes", "s", "p", "SandboxWarmPool").tell("sandboxclaims", "c", **SERVED).tell("sandboxes", "s", "c")
     .tell("pods", "a", "s", "Sandbox").tell("sandboxclaims", "c", **SERVED)),
    ("which is not its own", lambda t: t.tell("sandboxes", "s", "p", "SandboxWarmPool").tell("sandboxclaims", "c", **SERVED).tell("sandboxes", "s", "d")),
    (None, lambda t: t.tell("sandboxes", "s", "p", "SandboxWarmPool").tell("sandboxclaims", "c", **SERVED).tell("sandboxclaims", "c", told="DELETED", **SERVED)),
    ("which is not its own", lambda t: t.tell("sandboxes", "s", "p", "SandboxWarmPool").tell("pods", "a", "s", "Sandbox").tell("pods", "a", "s", "Sandbox")
     .tell("sandboxclaims", "c", **SERVED)),
])
def test_the_judge_knows_what_was_forgotten(text, story):
    faults = replay(story(Told()).events, [(1, 3)]).faults
    assert [text in fault for fault in faults] == [True] if text else faults == []


class Scene:
    """Two replicas on a server that notes who asked for what, a full pool, and a journal."""

    def __init__(self):
        self.api = controlplane.Silica("--log-level", "debug")
        chaos.begin(self.api)
        self.maker = Connection(self.api)
        self.nodes = chaos.Nodes(self.api).__enter__()
        self.journal = Journal(self.api, chaos.NAMESPACE, {"pods": [self.nodes.on_pod]}).__enter__()
        self.replicas = {name: failover.replica(self.api, name) for name in ("a", "b")}
        self.until_settled()
        self.leader = next(name for name, c in self.replicas.items() if c.said("controller.working"))
        self.other = next(name for name in self.replicas if name != self.leader)

    def until_settled(self):
        chaos.until_nothing(lambda: judge_end(self.journal, chaos.POOLS), "not settled", self.journal.faults)

    def claim(self, prefix, count, maker=None):
        for i in range(count):
            chaos.make(maker or self.maker, "sandboxclaims", f"{prefix}{i}", {"warmPoolRef": {"name": "p"}})

    @contextlib.contextmanager
    def claimed_meanwhile(self):
        """Claims come in from several sides; inside, their controller is in the middle of it."""
        threads = [threading.Thread(target=self.claim, args=(f"{who}-", 15, Connection(self.api)), daemon=True) for who in ("c", "d", "e")]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(self.journal.now("sandboxclaims")) >= 10, 60, "claims")
        yield
        for thread in threads:
            thread.join(60)

    def take_over(self):
        """The other's turn comes, and it does what is left to be done."""
        assert self.replicas[self.other].said("controller.working") == []
        self.replicas[self.other].wait_for("controller.working")
        self.until_settled()

    def judge(self):
        self.journal.settle()
        assert list(judge_end(self.journal, chaos.POOLS)) == []
        assert replay(self.journal.events()).faults == []
        runs, counts = failover.writers(self.api, self.replicas)
        assert runs == [self.leader, self.other], (runs, counts)
        assert all(count > 20 for count in counts.values()), counts

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for c in self.replicas.values():
            c.kill()
        self.journal.__exit__()
        self.nodes.__exit__()
        self.api.stop()


@pytest.mark.timeout(300)
def test_the_other_takes_over_from_one_that_was_killed():
    """No word of farewell: the Lease runs out first. Nothing is done twice."""
    with Scene() as scene:
        with scene.claimed_meanwhile():
            scene.replicas[scene.leader].kill()
        scene.take_over()
        scene.replicas[scene.other].end()
        scene.judge()


@pytest.mark.timeout(300)
def test_one_that_stood_still_writes_nothing_more():
    """The leader stops in the middle of its work and wakes when another has done it: it finds a thousand changes that it has not
    looked at, and must not act on one of them."""
    with Scene() as scene:
        first = scene.replicas[scene.leader]
        with scene.claimed_meanwhile():
            first.process.send_signal(signal.SIGSTOP)
        scene.take_over()
        scene.claim("late-", 3)  # the pool is short of members when it wakes
        first.process.send_signal(signal.SIGCONT)
        assert first.process.wait(60) == 1
        assert first.said("controller.lost") or first.said("lease.lost")
        scene.until_settled()
        wait_until(lambda: all(condition(c) == "True" for c in scene.journal.now("sandboxclaims").values()), 60, "claims")
        scene.replicas[scene.other].end()
        scene.judge()

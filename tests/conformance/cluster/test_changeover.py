"""The public controller runs pools and claims, is stopped, ours takes over, and back again, and once more: no Pod is restarted or
replaced, no member deleted, no claim loses its sandbox, and ours writes nothing on what nobody touched.

Each turn: the newcomer looks at everything there is, and each write of that is told, whatever it changes. Then it must do what
comes: claims, a pool that grows and shrinks, a sandbox that is suspended and resumed.
"""

import functools
import re

import pytest

from harness.server import wait_until
from lib.cluster import Upstream
from lib.controllers import Controller, condition, owner
from lib.failover import make_system
from lib.journal import AGENTS, EXTENSIONS, GROUPS, Journal, path_of, replay

NAMESPACE = "take-over"
CONTAINER = {"name": "c", "image": "i", "ports": [{"containerPort": 8080}], "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}}}
TEMPLATES = {
    "plain": {"podTemplate": {"spec": {"containers": [CONTAINER]}}},
    "rich": {"service": True, "envVarsInjectionPolicy": "Allowed",
             "podTemplate": {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}, "spec": {"containers": [CONTAINER]}},
             "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                                              "resources": {"requests": {"storage": "1Gi"}}}}]}}
# Recreate: whose members do not look like its template to a newcomer loses them.
POOLS = {"p": {"replicas": 4, "sandboxTemplateRef": {"name": "plain"}},
         "r": {"replicas": 3, "sandboxTemplateRef": {"name": "rich"}, "updateStrategy": {"type": "Recreate"}}}
CLAIMS = {"warm": {"warmPoolRef": {"name": "p"}}, "rich": {"warmPoolRef": {"name": "r"}},
          "cold": {"warmPoolRef": {"name": "r"}, "env": [{"name": "A", "value": "b"}]},
          "dated": {"warmPoolRef": {"name": "p"}, "lifecycle": {"shutdownTime": "2099-01-01T00:00:00Z", "shutdownPolicy": "Delete"},
                    "additionalPodMetadata": {"labels": {"sandbox.users.io/task": "t"}}}}
FIRST_READY = "agents.x-k8s.io/claim-first-ready-at"
RECONCILED = {"sandbox": f"{AGENTS}/sandboxes", "sandboxclaim": f"{EXTENSIONS}/sandboxclaims",
              "sandboxwarmpool": f"{EXTENSIONS}/sandboxwarmpools", "sandboxtemplate": f"{EXTENSIONS}/sandboxtemplates"}
PATHS = {**{plural: path_of(NAMESPACE, plural) for plural in GROUPS},
         "sandboxtemplates": f"{EXTENSIONS}/namespaces/{NAMESPACE}/sandboxtemplates",
         "networkpolicies": f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies"}


def version_of(thing):
    return int(thing["metadata"]["resourceVersion"])


def seen_by(thing):
    """The generation that each of its conditions speaks of."""
    return [c.get("observedGeneration") for c in thing.get("status", {}).get("conditions", [])]


class Scene:
    """What is there, and the pools as they are wished."""

    def __init__(self, cluster):
        self.cluster, self.sizes, self.turn = cluster, {name: spec["replicas"] for name, spec in POOLS.items()}, 0
        make_system(cluster)
        cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        wait_until(lambda: cluster.exists(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"), 60, "the service account")
        for name, spec in TEMPLATES.items():
            self.make("sandboxtemplates", "SandboxTemplate", name, spec)
        for name, spec in POOLS.items():
            self.make("sandboxwarmpools", "SandboxWarmPool", name, spec)
        self.writes = []  # (kind, object) of each, in the order of its kind
        self.journal = Journal(cluster, NAMESPACE, {plural: [functools.partial(self.see, plural)] for plural in GROUPS})

    def see(self, plural, _, thing):
        self.writes.append((plural, thing))

    def make(self, plural, kind, name, spec):
        group = "agents.x-k8s.io" if kind == "Sandbox" else "extensions.agents.x-k8s.io"
        self.cluster.call("POST", PATHS[plural],
                          {"apiVersion": f"{group}/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec})

    def now(self, plural):
        return self.journal.now(plural)

    def claim(self, name, spec):
        self.make("sandboxclaims", "SandboxClaim", name, spec)
        wait_until(lambda: condition(self.now("sandboxclaims").get(name, {})) == "True", 60, f"claim {name}")

    def suspend(self, name, mode):
        self.cluster.patch(f"{path_of(NAMESPACE, 'sandboxes')}/{name}", {"spec": {"operatingMode": mode}})
        wanted = {"Suspended": ("Suspended", "True"), "Running": ("Ready", "True")}[mode]
        wait_until(lambda: condition(self.now("sandboxes")[name], wanted[0]) == wanted[1], 60, f"{name} {mode}")

    def scale(self, pool, size):
        self.sizes[pool] = size
        self.cluster.patch(f"{path_of(NAMESPACE, 'sandboxwarmpools')}/{pool}", {"spec": {"replicas": size}})
        self.settle()

    def members(self, pool):
        uid = self.now("sandboxwarmpools")[pool]["metadata"]["uid"]
        return [box for box in self.now("sandboxes").values() if (ref := owner(box)) and ref["uid"] == uid]

    def unsettled(self):
        """What is still to be done, a line each."""
        for name, size in self.sizes.items():
            status = self.now("sandboxwarmpools")[name].get("status", {})
            have = (len(self.members(name)), status.get("replicas"), status.get("readyReplicas"))
            if have != (size, size, size):
                yield f"pool {name} {have} not {size}"
        for name, pod in self.now("pods").items():
            member = "agents.x-k8s.io/warm-pool-sandbox" in pod["metadata"]["labels"]
            ref = owner(self.now("sandboxes").get(name, {"metadata": {}}))
            if condition(pod) != "True" or member != (ref is not None and ref["kind"] == "SandboxWarmPool"):
                yield f"pod {name}"
        boxes = self.now("sandboxes")
        for name, box in boxes.items():
            if set(seen_by(box)) != {box["metadata"]["generation"]}:
                yield f"status of sandbox {name}"
        for name, claim in self.now("sandboxclaims").items():
            box = boxes.get(claim.get("status", {}).get("sandbox", {}).get("name"), claim)
            if FIRST_READY not in claim["metadata"].get("annotations", {}) \
                    or not set(seen_by(claim)) <= {claim["metadata"]["generation"], box["metadata"]["generation"]}:
                yield f"claim {name}"
        yield from self.leftovers()

    def leftovers(self):
        """What is about to go, as it is being deleted or its owner is gone."""
        things = {plural: self.now(plural) for plural in GROUPS}
        living = {thing["metadata"]["uid"] for kind in things.values() for thing in kind.values()}
        for plural, kind in things.items():
            for name, thing in kind.items():
                if "deletionTimestamp" in thing["metadata"] or ((ref := owner(thing)) and ref["uid"] not in living):
                    yield f"{plural} {name}"

    def settle(self):
        try:
            wait_until(lambda: not list(self.unsettled()), 60, "all of it done")
        except AssertionError as e:
            raise AssertionError(list(self.unsettled())) from e
        self.journal.settle()

    def clear(self):
        """Nothing is left for those who come after."""
        for plural in ("sandboxclaims", "sandboxwarmpools", "sandboxes", "sandboxtemplates"):
            self.cluster.call("DELETE", PATHS[plural])
        wait_until(lambda: not any(self.now(plural) for plural in GROUPS), 60, "the end of everything")

    def objects(self):
        """uid -> (kind, object) of everything, its templates and policies too."""
        return {thing["metadata"]["uid"]: (plural, thing) for plural, path in PATHS.items() for thing in self.cluster.call("GET", path)["items"]}

    def pods(self):
        """What must not change as long as a Pod lives."""
        return {pod["metadata"]["uid"]: (name, pod["spec"]["nodeName"], pod["status"]["startTime"],
                                         [c["restartCount"] for c in pod["status"]["containerStatuses"]])
                for name, pod in self.now("pods").items()}

    def bound(self):
        return {name: (claim["metadata"]["uid"], claim["status"]["sandbox"]["name"]) for name, claim in self.now("sandboxclaims").items()}


def changes(was, now, path=""):
    """Each place at which two objects differ; but for who manages what, and the version, as these always do."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in sorted((was.keys() | now.keys()) - {"resourceVersion", "managedFields"}):
            yield from changes(was.get(key), now.get(key), f"{path}.{key}")
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for i, pair in enumerate(zip(was, now, strict=True)):
            yield from changes(*pair, f"{path}[{i}]")
    elif was != now:
        yield f"{path[1:]}: {was} -> {now}"


def writes_of(scene, before, after):
    """(kind, name, what changed) of each write since then, one that changed nothing too."""
    for kind, thing in [*scene.writes, *(pair for pair in after.values() if pair[0] not in GROUPS)]:
        was = before.get(thing["metadata"]["uid"], (kind, {}))[1]
        if not was or version_of(thing) > version_of(was):
            yield kind, thing["metadata"]["name"], list(changes(was, thing))


def passes(text, name, controller):
    return sum(float(value) for value in re.findall(rf'^{name}{{(?=[^}}]*\b(?:controller|name)="{controller}").*}} (.*)$', text, re.M))


def until_looked(controller, counts):
    """Until each part of it has looked at so many objects and has nothing more to look at."""
    def is_idle():
        try:
            text = controller.metrics()
        except OSError:
            return False
        return all(passes(text, "controller_runtime_reconcile_total", part) >= count and not passes(text, "workqueue_depth", part)
                   and not passes(text, "controller_runtime_active_workers", part) for part, count in counts.items())

    wait_until(is_idle, 60, "a look at everything")


def work(scene):
    """What comes in a turn: claims, a pool that grows and shrinks, a sandbox that sleeps; one of the earlier claims goes."""
    scene.turn += 1
    scene.claim(f"turn-{scene.turn}", CLAIMS["warm"])
    scene.claim(f"turn-{scene.turn}-rich", CLAIMS["rich"])
    scene.settle()
    scene.scale("p", 6)
    scene.scale("p", 4)
    name = scene.now("sandboxclaims")[f"turn-{scene.turn}"]["status"]["sandbox"]["name"]
    scene.suspend(name, "Suspended")
    scene.suspend(name, "Running")
    scene.cluster.call("DELETE", f"{path_of(NAMESPACE, 'sandboxclaims')}/turn-{scene.turn}")
    wait_until(lambda: name not in scene.now("pods"), 60, "the end of the claim")
    scene.settle()


def renumbered(scene):
    """What v0.5.6 of the public controller writes on claims that it finds: with the sandbox's Ready it copies the generation of
    that, where ours says the claim's own."""
    boxes = scene.now("sandboxes")
    for name, claim in sorted(scene.now("sandboxclaims").items()):
        box = boxes[claim["status"]["sandbox"]["name"]]
        (was,), now = seen_by(claim), box["metadata"]["generation"]
        if was != now:
            yield "sandboxclaims", name, [f"status.conditions[0].observedGeneration: {was} -> {now}"]


def end(scene, controller):
    """When it is at rest."""
    scene.settle()
    if isinstance(controller, Upstream):
        wait_until(lambda: not list(renumbered(scene)), 60, "the numbers that the public controller writes")
    controller.end()


def take_over(scene, start):
    """A newcomer looks at everything, then works. Each write that it made by looking."""
    scene.settle()
    before, pods, bound = scene.objects(), scene.pods(), scene.bound()
    # Of the pool that does not shrink nobody may go: who is there stays there, or serves a claim.
    staying = {name for _, name in bound.values()} | {"direct"} | {box["metadata"]["name"] for box in scene.members("r")}
    counts = {part: len(scene.cluster.call("GET", path)["items"]) for part, path in RECONCILED.items()}
    scene.writes.clear()
    with start(scene.cluster) as newcomer:
        until_looked(newcomer, counts)
        scene.journal.settle()
        after = scene.objects()
        wrote = list(writes_of(scene, before, after))
        assert after.keys() == before.keys(), wrote
        assert scene.pods() == pods and scene.bound() == bound
        work(scene)
        now, row = scene.bound(), scene.pods()
        assert {name: now.get(name) for name in bound} == bound
        assert [pod for uid, pod in pods.items() if pod[0] in staying and row.get(uid) != pod] == []
        end(scene, newcomer)
    return sorted(wrote)


@pytest.mark.timeout(400)
def test_there_and_back_and_there_again(cluster):
    scene = Scene(cluster)
    with scene.journal:
        with Upstream(cluster) as upstream:
            scene.settle()
            for name, spec in CLAIMS.items():
                scene.claim(name, spec)
            for name in ("direct", "asleep"):
                scene.make("sandboxes", "Sandbox", name, TEMPLATES["plain"])
                wait_until(lambda n=name: condition(scene.now("sandboxes").get(n, {})) == "True", 60, name)
            scene.suspend("asleep", "Suspended")
            scene.settle()
            work(scene)
            end(scene, upstream)
        dated = scene.now("sandboxclaims")["dated"]
        assert (seen_by(dated), dated["metadata"]["generation"]) == ([2], 1)  # which ours would not have written, and leaves
        assert take_over(scene, Controller) == []
        expected = list(renumbered(scene))
        assert [name for _, name, _ in expected] == ["turn-2-rich"]  # that ours has served; the others it left as they were
        assert take_over(scene, Upstream) == expected
        assert take_over(scene, Controller) == []
        assert replay(scene.journal.events()).faults == []
        scene.clear()

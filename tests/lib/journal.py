"""Everything that happens to the objects of a namespace, as watches of the API tell it, in the order of its versions; and what
must hold of that at every moment. Reads the API and nothing else.

    with Journal(api, "chaos") as journal:
        ...                       # kills, claims
        journal.settle(version)   # it has heard of everything up to there
        faults = list(judge(journal.events()))
"""

import contextlib
import http.client
import json
import threading
import time

from lib.controllers import condition, owner
from lib.writers import Connection, Gone

EXTENSIONS, AGENTS = "/apis/extensions.agents.x-k8s.io/v1beta1", "/apis/agents.x-k8s.io/v1beta1"
GROUPS = {"sandboxclaims": EXTENSIONS, "sandboxwarmpools": EXTENSIONS, "sandboxes": AGENTS, "pods": "/api/v1", "services": "/api/v1",
          "persistentvolumeclaims": "/api/v1"}
POD_NAME = "agents.x-k8s.io/pod-name"
PATIENCE_S = 120  # with a server that says 503


def path_of(namespace, plural):
    return f"{GROUPS[plural]}/namespaces/{namespace}/{plural}"


class Event:
    """One change, and what of it matters."""

    __slots__ = ("version", "type", "plural", "name", "uid", "owner_kind", "owner_uid", "owner_count", "is_ready", "shown", "pod_name")

    def __init__(self, kind, plural, thing):
        meta, ref = thing["metadata"], owner(thing)
        self.version, self.type, self.plural = int(meta["resourceVersion"]), kind, plural
        self.name, self.uid = meta["name"], meta["uid"]
        self.owner_kind, self.owner_uid = (ref["kind"], ref["uid"]) if ref else (None, None)
        self.owner_count = len(meta.get("ownerReferences", []))
        self.is_ready = condition(thing) == "True"
        self.shown = thing.get("status", {}).get("sandbox", {}).get("name") if plural == "sandboxclaims" else None
        self.pod_name = meta.get("annotations", {}).get(POD_NAME)

    def __str__(self):
        return f"{self.plural} {self.name} at version {self.version}"


class Forgotten(Exception):
    """The server does not know any more what happened since then."""


class Follower(threading.Thread):
    """Watches one kind, and goes on from the last version it heard of. A kube-apiserver that was killed has forgotten what was
    before: then what is there now is taken for what happened, and those that are gone went as early as can be. `gaps` are such
    versions, (heard last, listed): of what is between, only the last state of each object is known."""

    def __init__(self, journal, plural):
        super().__init__(daemon=True)
        self.journal, self.plural, self.events, self.now, self.gaps, self.fault = journal, plural, [], {}, [], None
        self.version = 0
        self.path, self.connection, self.resumed, self.relisted = path_of(journal.namespace, plural), Connection(journal.api), 0, 0
        self.heard_at = time.monotonic()
        self.list()

    def list(self):
        status, there = self.connection.call("GET", self.path)
        self.check(status, there)
        heard, self.version = self.version, int(there["metadata"]["resourceVersion"])
        self.gaps.append((heard, self.version))
        found = {thing["metadata"]["uid"] for thing in there["items"]}
        for thing in list(self.now.values()):
            if thing["metadata"]["uid"] not in found:
                self.take("DELETED", {**thing, "metadata": {**thing["metadata"], "resourceVersion": str(heard)}})
        for thing in there["items"]:
            was = self.now.get(thing["metadata"]["name"])
            if was is None or was["metadata"]["resourceVersion"] != thing["metadata"]["resourceVersion"]:
                self.take("MODIFIED" if was else "ADDED", thing)

    def check(self, status, answer):
        """A server that begins may ask for patience, but not for ever."""
        if status in (429, 500, 503) and time.monotonic() < self.heard_at + PATIENCE_S:
            raise Gone
        assert status == 200, answer
        self.heard_at = time.monotonic()

    def run(self):
        while not self.journal.is_over:
            try:
                self.read(self.connection.send("GET", f"{self.path}?watch=1&allowWatchBookmarks=1&resourceVersion={self.version}&timeoutSeconds=600"))
            except (Gone, OSError, http.client.HTTPException, ValueError):
                self.connection.close()
                time.sleep(0.02)
            except Forgotten:
                self.connection.close()
                self.relist()
            except Exception as e:
                self.fault = f"follower of {self.plural}: {type(e).__name__} {e}"
                return

    def relist(self):
        with contextlib.suppress(Gone, OSError, http.client.HTTPException, ValueError):  # then the watch finds it so again
            self.list()
            self.relisted += 1

    def read(self, answer):
        self.check(answer.status, answer.status if answer.status == 200 else answer.read())
        self.resumed += 1
        for line in answer:
            self.heard_at = time.monotonic()  # a watch lives long: patience begins with its last word, not with its first
            event = json.loads(line)  # half a line is no event
            if event["type"] == "ERROR" and event["object"]["code"] == 410 and self.journal.api.kind == "real":
                raise Forgotten
            assert event["type"] != "ERROR", event
            version = int(event["object"]["metadata"]["resourceVersion"])
            if event["type"] != "BOOKMARK":
                assert version > self.version, f"{event['object']['metadata']['name']} at {version} after {self.version}"
                self.take(event["type"], event["object"])
            self.version = max(version, self.version)
        self.connection.close()

    def take(self, kind, thing):
        name = thing["metadata"]["name"]
        self.events.append(Event(kind, self.plural, thing))
        if kind == "DELETED":
            self.now.pop(name, None)
        else:
            self.now[name] = thing
        for listener in self.journal.listeners.get(self.plural, []):
            listener(kind, thing)


class Journal:
    """listeners: plural -> functions of (type, object), called from the follower's thread."""

    def __init__(self, api, namespace, listeners=None):
        self.api, self.namespace, self.listeners, self.is_over = api, namespace, listeners or {}, False
        self.followers = {plural: Follower(self, plural) for plural in GROUPS}

    def now(self, plural):
        """Name -> object, as far as it has heard."""
        return dict(self.followers[plural].now)

    def get(self, plural, name):
        return self.followers[plural].now.get(name)

    def faults(self):
        return [f.fault for f in self.followers.values() if f.fault]

    def events(self):
        return sorted((e for f in self.followers.values() for e in f.events), key=lambda e: e.version)

    def replay(self):
        """What happened so far; where the server has forgotten what happened to sandboxes, that is not judged version by version."""
        return replay(self.events(), self.followers["sandboxes"].gaps)

    def settle(self, timeout_s=60):
        """Until what it heard of adds up to what the lists say."""
        reader, end = Connection(self.api), time.monotonic() + timeout_s
        for plural, follower in self.followers.items():
            while True:
                status, there = reader.call("GET", path_of(self.namespace, plural))
                assert status == 200, there
                wanted = {(o["metadata"]["uid"], o["metadata"]["resourceVersion"]) for o in there["items"]}
                if wanted == {(o["metadata"]["uid"], o["metadata"]["resourceVersion"]) for o in dict(follower.now).values()}:
                    break
                assert not self.faults(), self.faults()
                assert time.monotonic() < end, f"the watch of {plural} does not come to what the list says"
                time.sleep(0.05)
        reader.close()

    def __enter__(self):
        for f in self.followers.values():
            f.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        for f in self.followers.values():
            if f.connection.open is not None and f.connection.open.sock is not None:
                f.connection.open.sock.close()


class Replay:
    """The state at each version, and what was wrong with it. gaps: (after, up to) versions of sandboxes of which only the last state
    of each is known; whose a sandbox is that a claim showed meanwhile is judged at the end of them."""

    def __init__(self, gaps=()):
        self.gaps, self.unsure = list(gaps), {}
        self.boxes, self.claims_of, self.boxes_of, self.pods_of, self.shown = {}, {}, {}, {}, {}
        self.members, self.most_members, self.faults = {}, {}, []

    def wrong(self, text):
        self.faults.append(text)

    def see(self, e):
        while self.gaps and e.version > self.gaps[0][1]:
            self.pass_gap()
        getattr(self, f"see_{e.plural}", lambda _: None)(e)

    def pass_gap(self):
        self.gaps.pop(0)
        for claim in self.unsure.values():
            self.judge_claim(claim)
        self.unsure.clear()

    def see_sandboxes(self, e):
        was = self.boxes.pop(e.name, None)
        if was is not None and was.owner_uid in self.boxes_of:
            self.boxes_of[was.owner_uid].discard(e.uid)
        if was is not None and was.owner_kind == "SandboxWarmPool":
            self.members[was.owner_uid].discard(e.uid)
        if e.type == "DELETED":
            return
        self.boxes[e.name] = e
        if e.owner_count > 1:
            self.wrong(f"{e} has {e.owner_count} owners")
        if e.owner_kind == "SandboxWarmPool":
            members = self.members.setdefault(e.owner_uid, set())
            members.add(e.uid)
            self.most_members[e.owner_uid] = max(self.most_members.get(e.owner_uid, 0), len(members))
        claims = self.claims_of.setdefault(e.uid, set())
        if e.owner_kind != "SandboxClaim":
            if claims:
                self.wrong(f"{e} was a claim's and is one no more")
            return
        claims.add(e.owner_uid)
        if len(claims) > 1:
            self.wrong(f"{e} has served {len(claims)} claims")
        own = self.boxes_of.setdefault(e.owner_uid, set())
        own.add(e.uid)
        if len(own) > 1:
            self.wrong(f"{e} is one of {len(own)} sandboxes of one claim")
        if e.is_ready and not e.pod_name:
            self.wrong(f"{e} is ready and says no pod")

    def see_sandboxclaims(self, e):
        self.unsure.pop(e.uid, None)
        if e.type == "DELETED" or not e.shown:
            return
        names = self.shown.setdefault(e.uid, set())
        names.add(e.shown)
        if len(names) > 1:
            self.wrong(f"{e} has shown {sorted(names)}")
        if self.gaps and e.version > self.gaps[0][0]:
            self.unsure[e.uid] = e
        else:
            self.judge_claim(e)

    def judge_claim(self, e):
        box = self.boxes.get(e.shown)
        if e.is_ready and (box is None or box.owner_uid != e.uid):
            self.wrong(f"{e} is ready with {e.shown}, which is not its own")

    def see_pods(self, e):
        pods = self.pods_of.setdefault(e.owner_uid, set())
        if e.type == "DELETED":
            pods.discard(e.uid)
            return
        pods.add(e.uid)
        if e.owner_uid and len(pods) > 1:
            self.wrong(f"{e} is one of {len(pods)} pods of a sandbox")


def replay(events, gaps=()):
    """What happened, version by version; its .faults are the moments at which something was wrong."""
    state = Replay(gaps)
    for e in events:
        state.see(e)
    while state.gaps:
        state.pass_gap()
    return state


def judge_end(journal, pools):
    """What is wrong with what there is now, a line each. pools: name -> size."""
    things = {plural: journal.now(plural) for plural in GROUPS}
    living = {o["metadata"]["uid"]: name for kind in things.values() for name, o in kind.items()}
    owned = {}
    for name, box in things["sandboxes"].items():
        ref = owner(box)
        owned.setdefault(ref["uid"] if ref else None, []).append(name)
        if box["metadata"].get("annotations", {}).get(POD_NAME) != name:
            yield f"sandbox {name} names another pod"
    for name, claim in things["sandboxclaims"].items():
        shown = claim.get("status", {}).get("sandbox", {}).get("name")
        if owned.get(claim["metadata"]["uid"], []) != [shown]:
            yield f"claim {name} owns {owned.get(claim['metadata']['uid'])} and shows {shown}"
        if condition(claim) != "True":
            yield f"claim {name} is not ready"
    for name, size in pools.items():
        pool = things["sandboxwarmpools"].get(name)
        if pool is None:
            yield f"pool {name} is gone"
            continue
        members, ready = len(owned.get(pool["metadata"]["uid"], [])), pool.get("status", {}).get("readyReplicas", 0)
        if (members, ready) != (size, size):
            yield f"pool {name} has {members} members and says {ready}, not {size}"
    for plural in ("sandboxes", "pods", "services", "persistentvolumeclaims"):
        for name, thing in things[plural].items():
            ref = owner(thing)
            if not ref or ref["uid"] not in living:
                yield f"{plural} {name} belongs to nobody"
    for plural in ("pods", "services", "persistentvolumeclaims"):
        if len(things[plural]) != len(things["sandboxes"]):
            yield f"{len(things[plural])} {plural} for {len(things['sandboxes'])} sandboxes"

"""Clients that write to an API server and remember what it acknowledged, while somebody kills it.

    with Writers(api, 4) as writers:    # api: controlplane.Silica
        api.kill()
        api.start()
        writers.judge()                 # raises AssertionError when an acknowledged write is not there

Each client has names of its own, so that it knows what each object must be: what was acknowledged last, or what the one
request without an answer would have made of it. A follower watches everything, and comes back where it was.
"""

import http.client
import json
import random
import ssl
import threading
import time

NAMESPACE = "default"
KINDS = {"configmaps": "data", "secrets": "stringData"}
PATH = f"/api/v1/namespaces/{NAMESPACE}/"
OBJECTS = 25  # names of one client


class Gone(Exception):
    """The server went away; nobody knows what became of the request."""


class Connection:
    """One keep-alive connection, made anew when it broke."""

    def __init__(self, api):
        self.api, self.open = api, None

    def send(self, method, path, body=None, kind="application/json"):
        try:
            if self.open is None:
                context = ssl.create_default_context(cafile=str(self.api.ca_file))
                if self.api.client_cert:
                    context.load_cert_chain(self.api.client_cert, self.api.client_key)
                self.open = http.client.HTTPSConnection(self.api.url.removeprefix("https://"), context=context, timeout=30)
            headers = {"content-type": kind, **({"authorization": f"Bearer {self.api.token}"} if self.api.token else {})}
            self.open.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            return self.open.getresponse()
        except (OSError, http.client.HTTPException) as e:
            self.close()
            raise Gone from e

    def call(self, method, path, body=None, kind="application/json"):
        """(status, answer), or Gone."""
        answer = self.send(method, path, body, kind)
        try:
            text = answer.read()
        except (OSError, http.client.HTTPException) as e:
            self.close()
            raise Gone from e
        return answer.status, json.loads(text)

    def close(self):
        if self.open is not None:
            self.open.close()
        self.open = None


class Client(threading.Thread):
    """Writes until it is stopped. `known`: name -> (version, value) as acknowledged, or None when it was deleted.
    `open_write`: (name, value or None) that has no answer yet."""

    def __init__(self, writers, number):
        super().__init__(daemon=True)
        self.writers, self.number = writers, number
        self.plural = list(KINDS)[number % len(KINDS)]
        self.rng, self.connection = random.Random(f"{writers.seed}-{number}"), Connection(writers.api)
        self.known, self.open_write, self.count, self.fault = {}, None, 0, None

    def name(self, i):
        return f"w{self.number}-{i}"

    def run(self):
        try:
            while not self.writers.is_over:
                self.writers.may_write.wait()
                with self.writers.lock_of(self.number):
                    if self.writers.may_write.is_set() and not self.writers.is_over:
                        self.write()
        except Exception as e:  # told by judge()
            self.fault = f"client {self.number}: {type(e).__name__} {e}"

    def write(self):
        name, there = self.name(self.rng.randrange(OBJECTS)), None
        there = self.known.get(name)
        self.count += 1
        value = f"{self.number}-{self.count}-" + "x" * self.rng.randrange(2000)
        verb = "create" if there is None else self.rng.choice(["update", "patch", "patch", "delete"])
        self.open_write = (name, None if verb == "delete" else value)
        try:
            status, answer = self.ask(verb, name, value, there)
        except Gone:
            self.writers.lost.set()
            self.writers.may_write.clear()
            return
        assert status in (200, 201), f"{verb} {name}: {status} {answer}"
        self.open_write = None
        if verb == "delete":
            self.known[name] = None
            self.writers.note(None, self.plural, name)
            return
        version = int(answer["metadata"]["resourceVersion"])
        self.known[name] = (version, value)
        self.writers.note(version, self.plural, name)

    def ask(self, verb, name, value, there):
        body = {"metadata": {"name": name, "labels": {"client": str(self.number)}}, "immutable": False,
                KINDS[self.plural]: {"v": value}}
        path = PATH + self.plural
        if verb == "create":
            return self.connection.call("POST", path, body)
        if verb == "delete":
            return self.connection.call("DELETE", f"{path}/{name}")
        if verb == "update":
            body["metadata"]["resourceVersion"] = str(there[0])
            return self.connection.call("PUT", f"{path}/{name}", body)
        return self.connection.call("PATCH", f"{path}/{name}", {KINDS[self.plural]: {"v": value}}, "application/merge-patch+json")


class Follower(threading.Thread):
    """Watches one kind, and goes on from the last version it heard of. events: (version, type, name), without a gap."""

    def __init__(self, writers, plural):
        super().__init__(daemon=True)
        self.writers, self.plural, self.events, self.resumed, self.expired, self.fault = writers, plural, [], 0, 0, None
        self.connection = Connection(writers.api)
        status, first = self.connection.call("GET", PATH + plural)
        assert status == 200, first
        self.start_version = self.version = int(first["metadata"]["resourceVersion"])

    def run(self):
        while not self.writers.is_over:
            try:
                answer = self.connection.send("GET", f"{PATH}{self.plural}?watch=1&resourceVersion={self.version}&timeoutSeconds=60")
                self.resumed += 1
                self.read(answer)
            except (Gone, OSError, http.client.HTTPException, ValueError):
                self.connection.close()
                time.sleep(0.02)
            except Exception as e:
                self.fault = f"follower of {self.plural}: {type(e).__name__} {e}"
                return

    def read(self, answer):
        for line in answer:
            event = json.loads(line)  # half a line is no event
            if event["type"] == "ERROR":
                assert event["object"]["code"] == 410, event
                self.expired += 1
                raise AssertionError("the history was long enough, and it was told 410")
            meta = event["object"]["metadata"]
            version = int(meta["resourceVersion"])
            assert version > self.version, f"{meta['name']} at {version} after {self.version}"
            self.version = version
            self.events.append((version, event["type"], meta["name"]))
        self.connection.close()


class Writers:
    def __init__(self, api, clients, seed=None):
        self.api, self.seed = api, seed if seed is not None else random.randrange(1 << 30)
        self.is_over, self.may_write, self.lost = False, threading.Event(), threading.Event()
        self.lock, self.locks = threading.Lock(), [threading.Lock() for _ in range(clients)]
        self.versions, self.highest, self.writes = {}, 0, 0
        self.reader = Connection(api)
        self.clients = [Client(self, i) for i in range(clients)]
        self.followers = [Follower(self, plural) for plural in KINDS]
        self.may_write.set()
        for t in self.clients + self.followers:
            t.start()

    def lock_of(self, number):
        return self.locks[number]

    def note(self, version, plural, name):
        with self.lock:
            self.writes += 1
            if version is None:
                return
            assert version not in self.versions, f"version {version} of {name} was {self.versions[version]}'s before"
            self.versions[version] = (plural, name)
            self.highest = max(self.highest, version)

    def faults(self):
        return [t.fault for t in self.clients + self.followers if t.fault]

    def pause(self):
        """No request is under way when this returns."""
        self.may_write.clear()
        for lock in self.locks:
            with lock:
                pass

    def go_on(self):
        self.lost.clear()
        self.may_write.set()

    def judge(self):
        """Everything that was acknowledged is there, as it was; what had no answer is there whole, or not."""
        assert not self.faults(), self.faults()
        self.reader.close()  # the server it spoke with may be gone
        for plural in KINDS:
            status, found = self.reader.call("GET", PATH + plural)
            assert status == 200, found
            assert int(found["metadata"]["resourceVersion"]) >= self.highest, "the version went back"
            there = {o["metadata"]["name"]: o for o in found["items"]}
            for client in self.clients:
                if client.plural == plural:
                    self.judge_client(client, there)

    def judge_client(self, client, there):
        for name in map(client.name, range(OBJECTS)):
            found, known = self.read(client, there.get(name)), client.known.get(name)
            if found == known:
                continue
            assert client.open_write and client.open_write[0] == name, f"seed {self.seed}: {name}: acknowledged {known}, found {found}"
            value = client.open_write[1]
            assert (found[1] if found else None) == value, f"seed {self.seed}: {name}: half a write: {found}, sent {value}"
            if found:
                assert known is None or found[0] > known[0], (known, found)
                self.note(found[0], client.plural, name)
            client.known[name] = found
        client.open_write = None

    @staticmethod
    def read(client, o):
        if o is None:
            return None
        value = o["data"]["v"]
        if client.plural == "secrets":
            import base64
            value = base64.b64decode(value).decode()
        return int(o["metadata"]["resourceVersion"]), value

    def judge_followers(self, timeout_s=30):
        """They heard of every version that was acknowledged, once, in order. The writers rest."""
        for f in self.followers:
            wanted = {v for v, (plural, _) in self.versions.items() if plural == f.plural and v > f.start_version}
            end = time.monotonic() + timeout_s
            while not f.fault and (not f.events or f.events[-1][0] < max(wanted)) and time.monotonic() < end:
                time.sleep(0.02)
            heard = [v for v, _, _ in f.events]
            assert not f.fault, f.fault
            assert heard == sorted(set(heard))
            missing = wanted - set(heard)
            assert not missing, f"{f.plural}: {len(missing)} events never came, the first is {min(missing)}"
            self.judge_end(f)

    def judge_end(self, f):
        """What the events add up to is what is there."""
        names = {}
        for _, kind, name in f.events:
            names[name] = kind != "DELETED"
        _, found = self.reader.call("GET", PATH + f.plural)
        there = {o["metadata"]["name"] for o in found["items"] if o["metadata"]["name"].startswith("w")}
        assert {n for n, is_there in names.items() if is_there} == there

    def stop(self):
        self.is_over = True
        self.may_write.set()
        for c in self.clients:
            c.join(30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

"""Processes of `silica up` are killed at random under claims, files, commands and streams: every byte that was acknowledged is there, and
nothing is left. The readers at the end are not ours: the files are read where the disk has them, the store by SQLite.

SILICA_KILLS and SILICA_WORKERS say how many (make soak-trust: 200 and 16)."""

import collections
import hashlib
import http.client
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import threading
import time
import urllib.error
import uuid

import pytest

from harness import owner, proc
from harness.server import wait_until
from lib import controlplane
from lib.up import Up

pytestmark = pytest.mark.ours
KILLS = int(os.environ.get("SILICA_KILLS", "20"))
WORKERS = int(os.environ.get("SILICA_WORKERS", "8"))
PARTS = ["control", "node", "router", "parts", "up", "spawner"]
KEEPERS = min(3, KILLS // 6)  # containers that it takes along come back after 0, 10, 20 s: as often as others it would be minutes
PATH = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims"
FAILURES = (OSError, http.client.HTTPException, urllib.error.URLError, ValueError, KeyError, subprocess.SubprocessError)


def new_claim(name):
    return {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": name},
            "spec": {"warmPoolRef": {"name": "python-sandbox-pool"}}}


class Worker(threading.Thread):
    """Has a sandbox, and keeps books of what was acknowledged. What broke off may have happened or not."""

    def __init__(self, up, number):
        super().__init__(daemon=True)
        self.up, self.number, self.name = up, number, f"chaos-{number}"
        self.dice = random.Random(number)
        self.files = {}      # name: digest, of what was acknowledged
        self.claims = {}     # name: "made" or "deleted"; without a row: nobody knows
        self.done = collections.Counter()
        self.wrong, self.is_over, self.sandbox = [], False, None

    # -- what a client does

    def own(self):
        status = self.up.api.call("GET", f"{PATH}/{self.name}").get("status", {})
        return status.get("sandbox", {}).get("name") if any(
            c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", [])) else None

    def request(self, method, path, body, headers):
        c = http.client.HTTPConnection(self.up.ready["router"].removeprefix("http://"), timeout=20)
        try:
            c.request(method, path, body, {"x-sandbox-id": self.sandbox, "x-sandbox-namespace": "default", **headers})
            answer = c.getresponse()
            return answer.status, answer.read()
        finally:
            c.close()

    def upload(self):
        name, data = f"up-{uuid.uuid4().hex[:12]}", self.dice.randbytes(self.dice.randrange(1, 200_000))
        edge = uuid.uuid4().hex
        body = (f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode() + data + f"\r\n--{edge}--\r\n".encode())
        status, _ = self.request("POST", "/upload", body, {"content-type": f"multipart/form-data; boundary={edge}"})
        if status == 200:
            self.files[name] = hashlib.sha256(data).hexdigest()
            self.done["uploads"] += 1

    def execute(self):
        word = uuid.uuid4().hex
        command = f"sh -c 'printf {word} >.{word} && mv .{word} ex-{word} && printf {word}'"
        status, text = self.request("POST", "/execute", json.dumps({"command": command}), {"content-type": "application/json"})
        answer = json.loads(text) if status == 200 else {}
        if answer.get("exit_code") == 0:
            if answer["stdout"] != word:
                self.wrong.append(("execute", word, answer))
            self.files[f"ex-{word}"] = hashlib.sha256(word.encode()).hexdigest()
            self.done["execs"] += 1

    def stream(self):
        """By the API server: input goes in, and comes out, and is on the disk; or kubectl says that it broke off."""
        name, data = f"st-{uuid.uuid4().hex[:12]}", self.dice.randbytes(self.dice.randrange(1, 400_000))
        script = f"cat >.{name} && mv .{name} {name} && cat {name}"
        done = subprocess.run([controlplane.peer("kubectl"), "--kubeconfig", str(self.up.ready["kubeconfig"]), "exec", "-i", self.sandbox, "--",
                               "sh", "-c", f"cd /workspace && {script}"], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        if done.returncode == 0:
            if done.stdout != data:
                self.wrong.append(("stream", name, len(data), len(done.stdout), done.stderr[-300:]))
            self.files[name] = hashlib.sha256(data).hexdigest()
            self.done["streams"] += 1

    def read_back(self):
        name, digest = self.dice.choice(list(self.files.items()))
        status, data = self.request("GET", f"/download/{name}", None, {})
        if status == 200 and hashlib.sha256(data).hexdigest() != digest or status == 404 and b"not found" in data.lower():
            self.wrong.append(("read", name, status, len(data)))
        self.done["reads"] += status == 200

    def claim(self):
        name = f"extra-{self.number}-{uuid.uuid4().hex[:8]}"
        self.up.api.call("POST", PATH, new_claim(name))
        self.claims[name] = "made"
        if self.dice.random() < 0.8:
            del self.claims[name]  # from here on, until it is acknowledged
            self.up.api.call("DELETE", f"{PATH}/{name}")
            self.claims[name] = "deleted"
        self.done["claims"] += 1

    # -- its life

    def run(self):
        acts = [self.upload, self.execute, self.stream, self.claim, self.read_back]
        while not self.is_over:
            try:
                self.sandbox = self.own()
                act = self.dice.choice(acts[: 5 if self.files else 4])
                if self.sandbox:
                    act()
                    continue
            except FAILURES:
                pass  # it was killed in the middle of this
            time.sleep(0.02)


def kill(up, part):
    """Returns when another one is there."""
    if part in ("spawner", "keeper"):
        try:
            os.kill((owner.spawner_of if part == "spawner" else owner.keeper_of)(up.data), signal.SIGKILL)
        except (IndexError, FileNotFoundError, ProcessLookupError):
            pass  # the last one was killed a moment ago, and the next is not there yet
        return
    pid = up.kill(part)
    if part == "up":
        up.process.wait()
        up.start()
    else:
        up.wait_back(part, pid)


def moved_on(worker, before):
    """It did each kind of thing again, since then."""
    return all(worker.done[what] > before[what] for what in ("uploads", "execs"))


def judge_files(data, worker):
    """The disk's own word: the directory of the sandbox's volume."""
    places = list((pathlib.Path(data) / "claims" / "default").glob(f"workspace-{worker.sandbox}.*"))
    assert len(places) == 1, (worker.sandbox, places)
    for name, digest in worker.files.items():
        found = [p for p in places[0].rglob(name)]
        assert len(found) == 1, (worker.number, name, len(worker.files))
        assert hashlib.sha256(found[0].read_bytes()).hexdigest() == digest, (worker.number, name)


def judge_claims(data, workers):
    """SQLite's word: the last row of each name says whether it is there."""
    with sqlite3.connect(f"file:{data}/store.db?mode=ro", uri=True) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = db.execute("SELECT name, op, MAX(version) FROM log WHERE resource LIKE '%sandboxclaims%' GROUP BY namespace, name").fetchall()
    there = {name for name, op, _ in rows if op != 2}  # 2: deleted
    for w in workers:
        for name, what in w.claims.items():
            assert (name in there) == (what == "made"), (name, what)
        assert w.name in there


@pytest.mark.timeout(300 + 20 * KILLS)
def test_every_acknowledged_byte_is_there():
    seed = int(os.environ.get("SILICA_SEED", random.randrange(1 << 30)))
    dice = random.Random(seed)
    with Up() as up:
        workers = [Worker(up, i) for i in range(WORKERS)]
        for w in workers:
            up.api.call("POST", PATH, new_claim(w.name))
        for w in workers:
            wait_until(w.own, 60, f"{w.name} is ready")
            w.start()
        killed = []
        deck = (PARTS * (KILLS // len(PARTS) + 1))[:KILLS - KEEPERS] + ["keeper"] * KEEPERS
        dice.shuffle(deck)
        for part in deck:
            killed.append(part)
            before = [w.done.copy() for w in workers]
            time.sleep(dice.uniform(0, 0.3))  # anywhere in what they do
            kill(up, part)
            try:
                wait_until(lambda: all(moved_on(w, b) for w, b in zip(workers, before)), 120, "all go on")
            except AssertionError as e:
                raise AssertionError(f"{e} (seed {seed}, {killed}, {[dict(w.done) for w in workers]})\n{up.said()}") from None
            assert [w.wrong for w in workers if w.wrong] == [], (seed, killed)
        for w in workers:
            w.is_over = True
        for w in workers:
            w.join(90)
            assert not w.is_alive() and w.wrong == [], (seed, w.wrong)
            w.sandbox = wait_until(w.own, 60, f"{w.name} is ready again")
        total = sum((w.done for w in workers), collections.Counter())
        print(f"seed {seed}: {KILLS} kills, {dict(total)}")
        assert all(total[what] > KILLS for what in ("uploads", "execs", "claims", "streams", "reads")), total
        up.end()
        data = up.data
        for w in workers:
            judge_files(data, w)
        judge_claims(data, workers)
    wait_until(lambda: not proc.with_argument(str(data)), 30, "nothing is left")
    assert str(data) not in pathlib.Path("/proc/mounts").read_text()

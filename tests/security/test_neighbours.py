"""Root and two accounts, each with a `silica up` of its own, attack each other in every way there is between accounts, while their own sandboxes
take all they can get: no effect. make soak-trust does it for ten minutes, and also compares the owners' waits with those beside as many
processes that only spin (SILICA_SECONDS, SILICA_JUDGE)."""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

import pytest

from harness.server import wait_until
from lib import neighbour, up as ups

pytestmark = pytest.mark.ours
SECONDS = int(os.environ.get("SILICA_SECONDS", "8"))
IS_JUDGED = bool(os.environ.get("SILICA_JUDGE"))
CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims"
ACCOUNTS = [("root", 0), ("user", 65534), ("user", 65533)]
P99_TIMES = 5
# The keeper answers its own account alone.
KEEPER = "import json, socket, sys; s = socket.socket(1, 5); s.connect(sys.argv[1]); print(json.loads(s.recv(65536))['keeper'])"
# What a sandbox does to take more than its share; each ends by itself.
GREED = ["timeout 4 sh -c 'f() { f | f & }; f' 2>/dev/null", "python3 -c 'a = [bytearray(1 << 20) for _ in range(400)]; import time; time.sleep(1)'",
         "timeout 3 sh -c 'while :; do dd if=/dev/zero of=big bs=1M count=64 2>/dev/null; done'; rm -f big",
         "timeout 3 python3 -c 'import socket\nfor i in range(3000): socket.socketpair()'", "timeout 3 sh -c 'while :; do :; done'"]


class Person:
    """An owner with a daemon and a sandbox, who uses it all the time."""

    def __init__(self, up, uid, program):
        self.up, self.uid, self.word, self.program = up, uid, f"by-{uid}", program
        self.prefix = ups.as_user(uid) if uid else []
        up.wait_warm()
        up.api.call("POST", CLAIMS, {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": "mine"},
                                     "spec": {"warmPoolRef": {"name": "python-sandbox-pool"}}})
        self.sandbox = wait_until(self._ready, 60, "the claim is ready")
        self.execute("echo kept >kept")
        self.before = self.state()

    def _ready(self):
        status = self.up.api.call("GET", f"{CLAIMS}/mine").get("status", {})
        return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", [])) and status["sandbox"]["name"]

    def execute(self, command, timeout=60):
        """As the owner: by a process of that account, since the router asks the kernel."""
        request = json.dumps({"command": f"sh -c {json.dumps(command)}" if "\n" not in command else command})
        done = subprocess.run([*self.prefix, "curl", "-s", "-m", str(timeout), f"http://{self.router}/execute", "-H", "Content-Type: application/json",
                               "-H", f"X-Sandbox-ID: {self.sandbox}", "-d", request], stdout=subprocess.PIPE, text=True, cwd="/")
        return json.loads(done.stdout) if done.returncode == 0 else None

    @property
    def router(self):
        return self.up.ready["router"].removeprefix("http://")

    def keeper(self):
        return int(subprocess.run([*self.prefix, "/usr/bin/python3", "-c", KEEPER, str(self.up.data / "engine.sock")], stdout=subprocess.PIPE,
                                  cwd="/", check=True).stdout)

    def target(self):
        return {"router": self.router, "api": self.up.ready["listen"][0], "data": str(self.up.data), "sandbox": self.sandbox,
                "pids": [p["pid"] for p in self.up.info()["parts"]] + [self.keeper()]}

    def state(self):
        """What must be the same afterwards: every process, and the sandbox's Pod."""
        pod = self.up.api.call("GET", f"/api/v1/namespaces/default/pods/{self.sandbox}")
        return {"parts": {p["name"]: p["pid"] for p in self.up.info()["parts"]}, "keeper": self.keeper(),
                "pod": (pod["metadata"]["uid"], [c["restartCount"] for c in pod["status"]["containerStatuses"]])}


class Waits(threading.Thread):
    """How long the owner waits: for the API server and for its sandbox, each time on a new connection."""

    def __init__(self, person):
        super().__init__(daemon=True)
        self.person, self.times, self.failed, self.is_over = person, [], [], False

    def run(self):
        while not self.is_over:
            before = time.monotonic()
            got = self.person.execute("cat kept")
            if not got or got["stdout"] != "kept\n":
                self.failed.append(got)
            try:
                self.person.up.api.call("GET", f"{CLAIMS}/mine")
            except (OSError, http.client.HTTPException) as e:
                self.failed.append(repr(e))
            self.times.append(time.monotonic() - before)


class Greed(threading.Thread):
    """Another sandbox of the same owner takes all it can get."""

    def __init__(self, person):
        super().__init__(daemon=True)
        self.person, self.is_over = person, False

    def run(self):
        while not self.is_over:
            for command in GREED:
                if not self.is_over:
                    subprocess.run([*self.person.prefix, self.person.program, "run", "--timeout", "10s", "--", "sh", "-c", command],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", timeout=120,
                                   env={**os.environ, "SILICA_DATA": str(self.person.up.data), "HOME": "/"})


def p99(times):
    return sorted(times)[int(len(times) * 0.99)]


def beside(people, modes, seconds, is_greedy):
    """Everybody against everybody by these modes: what the attackers say, and the waits of each owner."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="silica-neighbour-"))
    path.chmod(0o755)
    shutil.copy2(neighbour.__file__, path / "neighbour.py")
    attackers = []
    for attacker in people:
        for victim in people:
            for mode in modes if attacker is not victim else ():
                if mode == "files" and attacker.uid == 0:
                    continue  # root may
                target = {**victim.target(), "word": attacker.word}
                attackers.append((attacker, victim, mode, subprocess.Popen(
                    [*attacker.prefix, "/usr/bin/python3", str(path / "neighbour.py"), mode, json.dumps(target)], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, text=True, cwd="/")))
    for *_, process in attackers:
        assert process.stdout.readline() == "ready\n"
    waits = [Waits(p) for p in people]
    greed = [Greed(p) for p in people] if is_greedy else []
    try:
        for t in [*waits, *greed]:
            t.start()
        time.sleep(seconds)  # how long it goes on, not a wait for something
        for t in waits:
            t.is_over = True
        for t in waits:
            t.join(120)
    finally:
        for t in greed:
            t.is_over = True
        said = []
        for attacker, victim, mode, process in attackers:
            out, _ = process.communicate(timeout=60)
            said.append({"from": attacker.uid, "to": victim.uid, "mode": mode, **json.loads(out)})
        for t in greed:
            t.join(120)
        shutil.rmtree(path)
    return said, waits


def report(said):
    tries = {}
    for row in said:
        tries[row["mode"]] = tries.get(row["mode"], 0) + row["tries"]
    print(f"\n{SECONDS} s twice, {len(said) // 2} attackers: {tries}, {sum(len(row['hits']) for row in said)} hits")


def waited(person, beside_attacks, beside_loops):
    """Prints the owner's waits; returns the line where they are too long."""
    line = f"uid {person.uid}: {len(beside_attacks.times)} rounds, p99 {p99(beside_attacks.times) * 1000:.0f} ms"
    print(line + (f", beside busy loops {p99(beside_loops.times) * 1000:.0f} ms" if beside_loops else ""))
    return line if beside_loops and p99(beside_attacks.times) > P99_TIMES * p99(beside_loops.times) else None


@pytest.mark.timeout(300 + 4 * SECONDS)
def test_no_effect():
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with contextlib.ExitStack() as stack:
        people = []
        for who, uid in ACCOUNTS:
            up = stack.enter_context(ups.as_caller(who, uid=uid) if uid else ups.as_caller(who))
            people.append(Person(up, uid, ups.program()))
        modes = [m for m in neighbour.MODES if m != "spins"]
        quiet = beside(people, ["spins"] * len(modes), SECONDS, False)[1] if IS_JUDGED else [None] * len(people)
        said, waits = beside(people, modes, SECONDS, False)
        more, also = beside(people, modes, SECONDS, True)  # how fast is no question then: greed may make a thousand processes
        report(said + more)
        slow = [line for line in map(waited, people, waits, quiet) if line]
        for row in said + more:
            assert row["hits"] == [] and not row["is_stuck"], row
            assert row["tries"] > 10, row
        for person, *of_both in zip(people, waits, also):
            for wait in of_both:
                assert wait.failed == [] and wait.times, (person.uid, wait.failed[:3])
            assert person.state() == person.before, person.uid
            listed = person.execute("ls -a; cat kept")["stdout"]
            assert "hit-" not in listed and "kept\n" in listed, (person.uid, listed)
        assert slow == []

"""Another account of the machine at the doors of a `silica up`: the router, the Pods' addresses, what `silica in-cluster` listens on,
the unix sockets. It connects, sends a command and is gone before the daemon asks the kernel about it; or it holds on. root is such an
account to a daemon that is not root's."""

import json
import re
import socket
import subprocess
import sys

import pytest

from harness import caller
from harness.server import wait_until
from lib import up as ups

pytestmark = pytest.mark.ours
OTHER = 65533
CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims"

# Sends commands from six processes at once, each on a connection of its own that ends at once, in every way a connection can end; then
# some on connections that stay. Prints how many answers said that it was done.
ATTACK = r"""
import os, socket, struct, sys
host, port, fields, rounds = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
body = b'{"command": "touch /tmp/hit"}'
head = f"POST /execute HTTP/1.1\nHost: localhost\nContent-Type: application/json\nContent-Length: {len(body)}\n{fields}\n"
request = head.replace("\n", "\r\n").encode() + body
at_once = struct.pack("ii", 1, 0)

def send(how):
    s = socket.socket()
    try:
        s.connect((host, port))
        s.send(request)
        if how == "shutdown":
            s.shutdown(socket.SHUT_WR)
        if how == "killed":  # the process with it
            if not os.fork():
                s.close()
                os.kill(os.getpid(), 9)
        own = s.getsockname()
        if how in ("reset", "reuse"):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        s.close()
        if how == "reuse":  # its port, for a listener at the same address
            with socket.socket() as later:
                later.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                later.bind(own)
                later.listen(1)
    except OSError:
        s.close()

children = []
for how in ("close", "close", "shutdown", "reset", "reuse", "killed"):
    pid = os.fork()
    if not pid:
        for _ in range(rounds if how != "killed" else rounds // 10):
            send(how)
            while how == "killed" and os.waitpid(-1, os.WNOHANG)[0]:
                pass
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
served = 0
for _ in range(20):  # and with patience
    s = socket.create_connection((host, port), timeout=30)
    try:
        s.sendall(request)
        served += s.recv(12) == b"HTTP/1.1 200"
    except OSError:
        pass
    s.close()
print(served)
"""


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param, "--router-workers=1", "--pod-addresses") as started:
        started.others = [OTHER] if request.param == "root" else [OTHER, 0]
        yield started


class Sandbox:
    """One that was claimed, as its owner uses it: with processes of the daemon's own account."""

    def __init__(self, up, name):
        self.up = up
        up.api.call("POST", CLAIMS, {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim",
                                     "metadata": {"name": name}, "spec": {"warmPoolRef": {"name": "python-sandbox-pool"}}})
        found = wait_until(lambda: up.api.call("GET", f"{CLAIMS}/{name}").get("status", {}).get("sandbox"), 60)
        self.name = found["name"]
        self.ip = wait_until(lambda: up.api.call("GET", f"{CLAIMS}/{name}")["status"]["sandbox"].get("podIPs"), 60)[0]
        self.fields = f"X-Sandbox-ID: {self.name}\nX-Sandbox-Namespace: default\n"

    def run(self, command):
        at = ["-H", f"X-Sandbox-ID: {self.name}", "-H", "X-Sandbox-Namespace: default", "-H", "Content-Type: application/json"]
        done = subprocess.run([*self.up.prefix, "curl", "-sS", "-m", "30", *at, "-d", json.dumps({"command": command}),
                               f"{self.up.ready['router']}/execute"], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout)

    def was_hit(self):
        """Connections are accepted in their order: what came before this was served, or refused."""
        for _ in range(10):
            self.run("true")
        return self.run("rm /tmp/hit")["exit_code"] == 0


@pytest.fixture(scope="module")
def sandbox(up):
    up.wait_warm()
    box = Sandbox(up, "mine")
    assert not box.was_hit()
    return box


def attack(uid, host, port, fields="", rounds=500):
    done = subprocess.run([*ups.as_user(uid), sys.executable, "-c", ATTACK, host, str(port), fields, str(rounds)], cwd="/",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_the_router(up, sandbox):
    host, port = up.ready["router"].removeprefix("http://").split(":")
    for uid in up.others:
        assert attack(uid, host, port, sandbox.fields) == 0, uid
        assert not sandbox.was_hit(), uid


def test_an_address_of_a_pod(up, sandbox):
    for uid in up.others:
        assert attack(uid, sandbox.ip, 8888) == 0, uid
        assert not sandbox.was_hit(), uid


def test_the_router_of_a_session_in_the_cluster(up, sandbox):
    script = "import re, sys; print(re.search(r'^(\\S+) sandbox-router-svc$', open('/etc/hosts').read(), re.M)[1], flush=True); sys.stdin.read()"
    session = subprocess.Popen(up.argv("in-cluster", "--", "python3", "-c", script), cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True, env=up.env)
    try:
        host = session.stdout.readline().strip()
        assert re.fullmatch(r"127\.32\.\d+\.\d+", host)
        for uid in up.others:
            assert attack(uid, host, 8080, sandbox.fields) == 0, uid
            assert not sandbox.was_hit(), uid
    finally:
        session.communicate()


def test_half_of_a_connection_is_its_owners(up, sandbox):
    """The owner's process says that no more requests follow, and still reads: it is served. (The router takes a client that ended its
    side of a request to a sandbox for gone; what it answers itself comes.)"""
    script = "import socket, sys\ns = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)\n" \
             "s.sendall(b'GET / HTTP/1.1\\r\\nHost: localhost\\r\\nAccept: text/html\\r\\n\\r\\n')\n" \
             "s.shutdown(socket.SHUT_WR)\nprint(s.recv(12))"
    for address in (up.ready["router"].removeprefix("http://"), f"{sandbox.ip}:8888"):
        for _ in range(10):
            done = subprocess.run([*up.prefix, sys.executable, "-c", script, *address.split(":")], cwd="/", stdout=subprocess.PIPE, text=True,
                                  timeout=60)
            assert done.stdout == "b'HTTP/1.1 200'\n", address


@pytest.mark.parametrize("up", ["user"], indirect=True)
def test_unix_sockets(up, sandbox):
    """Their directory is the owner's; where root enters it all the same, the kernel's word on who connects counts."""
    pod = up.api.call("GET", "/api/v1/namespaces/default/pods?labelSelector=app!=sandbox-router")["items"][0]["metadata"]["uid"]
    ask = json.dumps({"id": 1, "pod": pod, "family": 4, "count": 2}).encode()
    found = 0
    for path in up.data.rglob("*"):
        if not path.is_socket() or path.parent.parent.name == "sandboxes":
            continue
        for kind, text in ((socket.SOCK_SEQPACKET, ask), (socket.SOCK_STREAM, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")):
            with socket.socket(socket.AF_UNIX, kind) as s:
                s.settimeout(30)
                try:
                    s.connect(str(path))
                except OSError:
                    continue  # the other kind
                found += 1
                try:
                    s.send(text)
                    assert s.recv(4096) == b"", path
                except (BrokenPipeError, ConnectionResetError):
                    pass
    assert found >= 3


@pytest.mark.parametrize("up", ["user"], indirect=True)
def test_root_is_told_why(up, sandbox):
    """Commands of root's on the directory of another account's daemon."""
    done = subprocess.run([ups.program(), "in-cluster", "--data", str(up.data), "--", "true"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode != 0
    assert f"the data directory '{up.data}' belongs to user {caller.NOBODY}" in done.stderr
    assert f"setpriv --reuid {caller.NOBODY}" in done.stderr
    done = subprocess.run(["curl", "-s", "-m", "30", "-H", f"X-Sandbox-ID: {sandbox.name}", f"{up.ready['router']}/health"],
                          stdout=subprocess.PIPE, text=True)
    assert "Only the router's own user is served" in done.stdout
    # root has the account's token all the same.
    assert up.api.call("GET", "/api/v1/namespaces/default/pods")["items"]

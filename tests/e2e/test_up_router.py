"""The router of `silica up`: straight into sandboxes, at any port, whatever was killed meanwhile."""

import http.client
import json
import os
import shlex
import socket
import stat
import subprocess
import urllib.error

import pytest

from harness.server import wait_until
from lib.up import Up

pytestmark = pytest.mark.ours
CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims"
# A server that says where it is; on 127.0.0.1 or ::1 alone. It is there when the command that starts it has ended.
SERVER = """
import http.server, os, socket, sys
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        said = ('port %d' % self.server.server_address[1]).encode()
        self.send_response(200)
        self.send_header('content-length', str(len(said)))
        self.end_headers()
        self.wfile.write(said)
    def log_message(self, *_):
        pass
server = Server((sys.argv[1], int(sys.argv[2])), Handler)
if os.fork():
    os._exit(0)
os.setsid()
null = os.open('/dev/null', os.O_RDWR)
for fd in (0, 1, 2):
    os.dup2(null, fd)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def up():
    with Up() as started:
        yield started


@pytest.fixture(scope="module")
def sandbox(up):
    """A claimed sandbox in which servers listen on ports that its Pod does not declare."""
    up.wait_warm()
    up.api.call("POST", CLAIMS, {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": "ports"},
                                 "spec": {"warmPoolRef": {"name": "python-sandbox-pool"}}})

    def is_ready():
        status = up.api.call("GET", f"{CLAIMS}/ports").get("status", {})
        ready = [c for c in status.get("conditions", []) if c["type"] == "Ready" and c["status"] == "True"]
        return ready and status["sandbox"]["name"]

    name = wait_until(is_ready, 60)
    for host, port in (("127.0.0.1", 5005), ("::1", 5006)):
        run(up, name, "python3", "-c", SERVER, host, port)
    return name


def run(up, sandbox, *words):
    """A command in the sandbox, through the router."""
    c = http.client.HTTPConnection(up.ready["router"].removeprefix("http://"), timeout=30)
    c.request("POST", "/execute", json.dumps({"command": shlex.join(map(str, words))}),
              {"content-type": "application/json", "x-sandbox-id": sandbox})
    answer = c.getresponse()
    done = answer.status, answer.read()
    c.close()
    assert done[0] == 200 and json.loads(done[1])["exit_code"] == 0, done


def get(up, sandbox, port=8888, path="/", fields=None, connection=None):
    c = connection or http.client.HTTPConnection(up.ready["router"].removeprefix("http://"), timeout=30)
    try:
        c.request("GET", path, headers={"x-sandbox-id": sandbox, "x-sandbox-port": str(port), **(fields or {})})
        answer = c.getresponse()
        return answer.status, answer.read().decode()
    finally:
        if not connection:
            c.close()


def test_a_port_that_is_not_declared(up, sandbox):
    for port in (5005, 5006):
        assert get(up, sandbox, port) == (200, f"port {port}")
    assert get(up, sandbox)[0] == 200
    address = up.api.call("GET", f"/api/v1/namespaces/default/pods/{sandbox}")["status"]["podIP"]
    assert get(up, sandbox, 5005, fields={"x-sandbox-pod-ip": address}) == (200, "port 5005")
    with pytest.raises(ConnectionRefusedError):  # there is no listener on this side
        socket.create_connection((address, 5005), 5)
    status, said = get(up, sandbox, 5007)
    assert status == 502 and "Could not connect" in said


def test_nobody_stands_between(up, sandbox):
    """The router's own connection is in the sandbox: no process of ours has one to the Pod's address."""
    c = http.client.HTTPConnection(up.ready["router"].removeprefix("http://"), timeout=30)
    assert get(up, sandbox, 5005, connection=c) == (200, "port 5005")
    address = up.api.call("GET", f"/api/v1/namespaces/default/pods/{sandbox}")["status"]["podIP"]
    assert address not in subprocess.run(["ss", "-Htn"], stdout=subprocess.PIPE, text=True, check=True).stdout
    c.close()


def test_a_killed_node_and_a_killed_router(up, sandbox):
    kept = http.client.HTTPConnection(up.ready["router"].removeprefix("http://"), timeout=30)
    assert get(up, sandbox, 5005, connection=kept) == (200, "port 5005")
    for _ in range(3):
        pid = up.kill("node")
        # What is connected goes on without the node; who is not waits for it.
        assert get(up, sandbox, 5005, connection=kept) == (200, "port 5005")
        assert get(up, sandbox, 5006) == (200, "port 5006")
        up.wait_back("node", pid)
    kept.close()
    for _ in range(3):
        pid = up.kill("router")
        assert get(up, sandbox, 5005) == (200, "port 5005")
        up.wait_back("router", pid)


def test_suspended_and_resumed(up, sandbox):
    """The Pod is another, and so is its network; sockets that were made ahead in the old one are nobody's."""
    path = f"/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/{sandbox}"

    def set_mode(mode):
        def was_taken():  # somebody else may have written it meanwhile
            now = up.api.call("GET", path)
            now["spec"]["operatingMode"] = mode
            try:
                return up.api.call("PUT", path, now)
            except urllib.error.HTTPError as e:
                assert e.code == 409
                return None

        wait_until(was_taken, 30)

    for _ in range(8):
        assert get(up, sandbox, 5005) == (200, "port 5005")
    set_mode("Suspended")
    wait_until(lambda: get(up, sandbox)[0] == 503, 60, "it is suspended")
    set_mode("Running")
    wait_until(lambda: get(up, sandbox)[0] == 200, 60, "it answers")
    assert get(up, sandbox, 5005)[0] == 502  # what it ran is gone
    run(up, sandbox, "python3", "-c", SERVER, "127.0.0.1", 5005)
    assert get(up, sandbox, 5005) == (200, "port 5005")


def test_whose_the_socket_is(up):
    path = up.data / "sockets.sock"
    assert stat.S_ISSOCK(os.stat(path).st_mode)
    assert stat.S_IMODE(os.stat(up.data).st_mode) & 0o077 == 0
    pod = up.api.call("GET", "/api/v1/namespaces/default/pods?labelSelector=app!=sandbox-router")["items"][0]["metadata"]["uid"]
    ask = json.dumps({"id": 1, "pod": pod, "family": 4, "count": 2}).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asker:
        asker.settimeout(30)
        asker.connect(str(path))
        asker.send(ask)
        text, fds, _, _ = socket.recv_fds(asker, 4096, 8)
        assert json.loads(text) == {"id": 1} and len(fds) == 2
        for fd in fds:
            os.close(fd)
        asker.send(b'{"id":2,"pod":"nobody","family":4,"count":1}')
        assert json.loads(asker.recv(4096)) == {"id": 2, "error": "there is no Pod with the uid nobody here", "unknown": True}
        asker.send(b'{"id":2,"pod":"../x","family":4,"count":1}')
        assert asker.recv(4096) == b""  # who talks like that is not spoken to
    if os.geteuid() != 0:
        return
    # Where the file's mode would let a stranger in, the kernel's word on who it is does not.
    os.chmod(path, 0o777)
    chain = [up.data, *up.data.parents]
    modes = [(p, os.stat(p).st_mode) for p in chain if not os.stat(p).st_mode & 0o001]
    for p, mode in modes:
        os.chmod(p, stat.S_IMODE(mode) | 0o001)
    try:
        code = f"import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.settimeout(30); s.connect({str(path)!r})\n" \
               f"try:\n    s.send({ask!r}); print(len(socket.recv_fds(s, 4096, 8)[1]), 'sockets')\n" \
               "except OSError:\n    print('0 sockets')"
        done = subprocess.run(["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", "python3", "-c", code],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.stdout == "0 sockets\n", done.stderr
        wait_until(lambda: "event=sockets.denied" in (up.data / "logs/node/log").read_text(), 30)
    finally:
        os.chmod(path, 0o600)
        for p, mode in modes:
            os.chmod(p, stat.S_IMODE(mode))

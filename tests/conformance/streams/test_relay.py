"""What the API server does with streams, and what it does not: it reads none of them, and outlives whatever comes."""

import contextlib
import ctypes
import os
import pathlib
import re
import select
import signal
import socket
import ssl
import stat
import struct
import subprocess
import threading
import time

import pytest

from apiserver import UPGRADES, ApiServer
from harness import server as servers
from harness.server import wait_until

pytestmark = pytest.mark.core

WEBSOCKET = UPGRADES["websocket"].format("v5.channel.k8s.io")
EXEC = "/api/v1/namespaces/{}/pods/p/exec?"
SYS_PIDFD_GETFD = 438
libc = ctypes.CDLL(None, use_errno=True)


@pytest.fixture(scope="module")
def ns(server):
    name = server.make_namespace()
    server.make_pod(name, "p")
    return name


@pytest.fixture(scope="module")
def token(server, ns):
    return server.make_user(ns, "u", "edit")


def frame(payload, opcode=2):
    """One masked frame of a client, with a mask of zeroes."""
    n = len(payload)
    head = bytes([0x80 | opcode, 0x80 | n]) if n < 126 else bytes([0x80 | opcode, 0xfe]) + struct.pack("!H", n)
    return head + b"\0\0\0\0" + payload


def read_all(c):
    got = b""
    while more := c.recv(65536):
        got += more
    return got


def run(server, ns, token, *command):
    """A short command by WebSocket: all that came behind the 101."""
    query = "&".join(f"command={word}" for word in command)
    c, head = server.open(EXEC.format(ns) + query + "&stdout=1&stderr=1", token)
    assert c, head
    with c:
        return read_all(c)


def works(server, ns, token):
    return b"\x01hello\n" in run(server, ns, token, "echo", "hello")


# ---- nothing is read ----

class PodSide:
    """We stand in for the pod side: it is held, and we accept from the socket that the API server made."""

    def __init__(self, server):
        self.pid, api = server.pod_side(), server.process.pid
        inode = next(line.split()[6] for line in open("/proc/net/unix") if line.rstrip().endswith("/pods.sock") and
                     line.split()[3] == "00010000" and self.has(api, line.split()[6]))
        number = next(int(fd) for fd in os.listdir(f"/proc/{api}/fd") if os.readlink(f"/proc/{api}/fd/{fd}") == f"socket:[{inode}]")
        pidfd = os.pidfd_open(api)
        fd = libc.syscall(SYS_PIDFD_GETFD, pidfd, number, 0)
        os.close(pidfd)
        if fd < 0:
            pytest.skip("descriptors of a child cannot be had here")
        self.listener = socket.socket(fileno=fd)

    @staticmethod
    def has(pid, inode):
        return any(os.readlink(f"/proc/{pid}/fd/{fd}") == f"socket:[{inode}]" for fd in os.listdir(f"/proc/{pid}/fd"))

    def __enter__(self):
        os.kill(self.pid, signal.SIGSTOP)
        return self

    def accept(self):
        """A connection, and the head of its request."""
        assert select.select([self.listener], [], [], 20)[0]  # it stays non-blocking: that is the socket's, which we share
        c, _ = self.listener.accept()
        c.settimeout(20)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += c.recv(1)
        return c, head.decode()

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)
        self.listener.close()


def test_the_request_as_it_arrives(server, ns, token):
    """Who asks stays behind; what is asked arrives, with the container and the uid that count at its end."""
    uid = server.ask("GET", f"/api/v1/namespaces/{ns}/pods/p").json()["metadata"]["uid"]
    opened = []
    with PodSide(server) as pod:
        path = EXEC.format(ns) + "command=a%20b&stdout=1&uid=x&x=%41"
        asking = threading.Thread(target=lambda: opened.append(server.open(
            path, token, extra="Cookie: secret\r\nX-Remote-User: secret\r\nProxy-Authorization: secret\r\nX-Mine: kept\r\n")))
        asking.start()
        c, head = pod.accept()
        line, *fields = head.rstrip().split("\r\n")
        assert line == f"GET {path}&container=main&uid={uid} HTTP/1.1"
        names = {field.split(":")[0].lower() for field in fields}
        assert names == {"host", "connection", "upgrade", "sec-websocket-version", "sec-websocket-key", "sec-websocket-protocol", "x-mine"}
        assert token not in head and "secret" not in head
        # No WebSocket at all, and no answer to its key: the API server does not mind, or notice.
        c.sendall(b"HTTP/1.1 101 Whatever\r\nConnection: Upgrade\r\nUpgrade: nonsense/9\r\nX-Told: yes\r\n\r\n\x00\xff first")
        asking.join()
        client, told = opened[0]
        assert "upgrade: nonsense/9\r\n" in told and "x-told: yes\r\n" in told
        assert client.recv(100) == b"\x00\xff first"
        noise = os.urandom(1_000_000)
        for one, other in ((client, c), (c, client)):
            sending = threading.Thread(target=one.sendall, args=(noise,))
            sending.start()
            got = b""
            while len(got) < len(noise):
                got += other.recv(65536)
            sending.join()
            assert got == noise
        c.close()
        assert client.recv(1) == b""
        client.close()


@pytest.mark.parametrize("answer", [b"nonsense\r\n\r\n", b"HTTP/1.1 101 Yes\r\n\r\n", b"HTTP/1.1 101 Yes\r\nUpgrade: " + b"x" * 100 + b"\r\n\r\n",
                                    b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000000000\r\n\r\n", b""])
def test_a_pod_side_that_talks_nonsense(server, ns, token, answer):
    with PodSide(server) as pod:
        opened = []
        asking = threading.Thread(target=lambda: opened.append(server.open(EXEC.format(ns) + "command=a&stdout=1", token)))
        asking.start()
        c, _ = pod.accept()
        c.sendall(answer)
        c.close()
        asking.join()
        client, told = opened[0]
        assert client is None
        code, status = server.status_of(told)
        assert code == 500 and status["reason"] == "InternalError" and "error dialing backend" in status["message"]
    assert works(server, ns, token)


def test_a_refusal_of_the_pod_side_is_given_back(server, ns, token):
    c, told = server.open(EXEC.format(ns) + "stdout=1", token)
    assert c is None and server.status_of(told) == (400, {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "BadRequest", "code": 400,
        "message": "you must specify at least one command for the container"})


def test_garbage_ends_its_own_stream_alone(server, ns, token):
    """Broken frames are the pod side's to judge: it answers with a close frame. The neighbour does not notice."""
    good, _ = server.open(EXEC.format(ns) + "command=cat&stdin=1&stdout=1", token)
    with good:
        for garbage in (b"\xff" * 100, b"\x82\x05hello", bytes(5000), b"GET / HTTP/1.1\r\n\r\n"):
            bad, _ = server.open(EXEC.format(ns) + "command=cat&stdin=1&stdout=1", token)
            with bad:
                bad.sendall(garbage)
                assert read_all(bad)[:1] == b"\x88"
        bad, _ = server.open(f"/api/v1/namespaces/{ns}/pods/p/portforward", token, "spdy", "portforward.k8s.io")
        with bad:
            bad.sendall(b"\xff" * 5000)
            read_all(bad)
        good.sendall(frame(b"\0still here\n"))
        assert good.recv(100) == b"\x82\x0c\x01still here\n"
    assert works(server, ns, token)


def test_the_socket_is_its_owners(server):
    there = os.stat(server.data / "pods.sock")
    assert there.st_uid == os.geteuid() and stat.S_ISSOCK(there.st_mode) and stat.S_IMODE(there.st_mode) == 0o600


# ---- what may be asked ----

def test_finished_pods(server, token, ns):
    for name, phase in (("done", "Succeeded"), ("broken", "Failed")):
        made = server.make_pod(ns, name, phase=phase)
        server.log_file(made).write_text("2026-11-16T09:30:00.000000001Z stdout F last words\n")
        for sub, message in ((f"exec?command=a&stdout=1", f"cannot exec into a container in a completed pod; current phase is {phase}"),
                             (f"attach?stdout=1", f"cannot attach a container in a completed pod; current phase is {phase}"),
                             (f"portforward", f"unable to forward port because pod is not running. Current status={phase}")):
            c, told = server.open(f"/api/v1/namespaces/{ns}/pods/{name}/{sub}", token)
            assert c is None and server.status_of(told)[0] == 400 and server.status_of(told)[1]["message"] == message
        assert server.ask("GET", f"/api/v1/namespaces/{ns}/pods/{name}/log").text == "last words\n"


def test_containers(server, ns, token):
    server.make_pod(ns, "two", containers=("a", "b"))
    path = f"/api/v1/namespaces/{ns}/pods/two/exec?command=true&stdout=1"
    for query, message in (("", "a container name must be specified for pod two, choose one of: [a b]"),
                           ("&container=c", "container c is not valid for pod two")):
        c, told = server.open(path + query, token)
        assert c is None and server.status_of(told)[0] == 400 and server.status_of(told)[1]["message"] == message
    c, _ = server.open(path + "&container=b", token)
    c.close()


def test_without_an_upgrade(server, ns):
    """Never 404: clients take that for the news that the Pod is gone."""
    for name in ("p", "none"):
        for method in ("GET", "POST"):
            answer = server.ask(method, f"/api/v1/namespaces/{ns}/pods/{name}/exec?command=a&stdout=1")
            assert answer.status_code == 400 and answer.json()["message"] == "Upgrade request required"
    assert server.ask("PUT", f"/api/v1/namespaces/{ns}/pods/p/exec").status_code == 405


def test_a_pod_that_is_not_there(server, ns, token):
    c, told = server.open(f"/api/v1/namespaces/{ns}/pods/none/exec?command=a&stdout=1", token)
    assert c is None and server.status_of(told)[0] == 404 and server.status_of(told)[1]["message"] == 'pods "none" not found'


def test_a_request_line_near_a_mebibyte(server, ns, token):
    """The whole head may have 1 MiB; the words of a command pass through two processes as they are."""
    word = "x" * 100_000
    c, head = server.open(EXEC.format(ns) + "stdout=1&command=sh&command=-c&command=echo+n=$%23&command=sh" + f"&command={word}" * 10, token)
    assert c, head[:500]
    with c:
        assert b"\x01n=10\n" in read_all(c)
    c = server.connect()
    with c:
        c.sendall(f"GET {EXEC.format(ns)}stdout=1&command={'x' * 1_050_000} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        assert c.recv(100).startswith((b"HTTP/1.1 414 ", b"HTTP/1.1 431 "))


def test_long_requests_do_not_pile_up(server, ns, token):
    """While the pod side does not answer: some 64 MiB of what is asked for, then 429. Those that wait are served in the end."""
    path = EXEC.format(ns) + "stdout=1&command=true" + f"&command={'x' * 100_000}" * 9
    with PodSide(server):
        asked = [server.connect() for _ in range(85)]
        for c in asked:
            c.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{WEBSOCKET}\r\n".encode())
        codes = {}

        def first_answer():
            for c in asked:
                c.settimeout(0)
                with contextlib.suppress(ssl.SSLWantReadError):
                    codes[c] = c.recv(100)[9:12]
                    return True
            return False

        wait_until(first_answer, 20, "the first refusal")
        assert list(codes.values()) == [b"429"]
    for c in asked:
        c.settimeout(60)
        codes[c] = codes.get(c) or c.recv(100)[9:12]
    assert set(codes.values()) == {b"101", b"429"} and 60 < list(codes.values()).count(b"101") < 80
    for c in asked:
        c.close()
    assert works(server, ns, token)


# ---- many, and the end ----

def test_many_at_once(server, ns, token):
    opened = [server.open(EXEC.format(ns) + "command=cat&stdin=1&stdout=1", token)[0] for _ in range(100)]
    for i, c in enumerate(opened):
        c.sendall(frame(f"\0number {i}\n".encode()))
    for i, c in enumerate(opened):
        assert f"\x01number {i}\n".encode() in c.recv(100)
    for c in opened:
        c.close()


def test_nothing_is_left_behind(server, ns, token):
    def descriptors(pid):
        return len(os.listdir(f"/proc/{pid}/fd"))

    pids = [server.process.pid, server.pod_side()]
    server.session.close()
    assert works(server, ns, token)
    time.sleep(0.5)
    before = [descriptors(pid) for pid in pids]
    for _ in range(20):
        works(server, ns, token)
        c, _ = server.open(EXEC.format(ns) + "command=cat&stdin=1&stdout=1", token)
        c.close()  # without a word
        server.open(EXEC.format(ns) + "stdout=1", token)
    wait_until(lambda: all(descriptors(pid) <= n for pid, n in zip(pids, before)), 40, "no descriptor more than before")


def test_a_slow_reader_holds_the_command_up(server, ns, token):
    """Nothing piles up on the way: neither process grows."""
    def memory_kib():
        return sum(int(re.search(r"RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])
                   for pid in (server.process.pid, server.pod_side()))

    c, _ = server.open(EXEC.format(ns) + "command=yes&stdout=1", token)
    with c:
        time.sleep(0.3)
        before = memory_kib()
        time.sleep(0.7)
        assert memory_kib() < before + 20 * 1024


def test_a_pod_side_that_is_killed(server, ns, token):
    """Its streams end; whoever comes meanwhile waits for the next one."""
    c, _ = server.open(EXEC.format(ns) + "command=cat&stdin=1&stdout=1", token)
    with c:
        c.sendall(frame(b"\0hello\n"))
        assert b"hello" in c.recv(100)
        for _ in range(3):
            killed = server.pod_side()
            os.kill(killed, signal.SIGKILL)
            assert works(server, ns, token)
            assert server.pod_side() != killed
        assert read_all(c) == b""


def test_metrics(server, ns, token):
    assert works(server, ns, token)
    text = server.ask("GET", "/metrics").text
    assert re.search(r'apiserver_request_total\{[^}]*code="101"[^}]*resource="pods"[^}]*subresource="exec"[^}]*\} \d+', text), text


def pod_sides_of(directory):
    """Pids of pod sides whose logs are below."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"pod-backend" in words and str(directory).encode() in entry.read_bytes():
            found.append(int(entry.parent.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_ends(number):
    """With open streams, gracefully or not: the pod side and what runs there end with it, and the next server works."""
    s = ApiServer()
    try:
        ns = s.make_namespace()
        s.make_pod(ns, "p")
        token = s.make_user(ns, "u", "edit")
        c, _ = s.open(EXEC.format(ns) + "command=sh&command=-c&command=echo+$$;exec+sleep+1000&stdout=1", token)
        pid = int(c.recv(100)[3:])
        s.process.send_signal(number)
        assert s.process.wait(30) == (0 if number == signal.SIGTERM else -number)
        read_all(c)
        c.close()
        wait_until(lambda: not pod_sides_of(s.data) and not os.path.exists(f"/proc/{pid}"), 30, "the end of the pod side")
        s.api.start()
        assert works(s, ns, token)
    finally:
        s.end()


def test_it_is_for_tests_only(tmp_path):
    program = os.environ.get("SILICA", str(servers.TREE / "build" / "silica"))
    env = {k: v for k, v in os.environ.items() if k != "SILICA_TEST"}
    for options, env, message in (
            (["--pod-backend=local-exec"], env, "silica: --pod-backend=local-exec runs commands on this machine itself: for tests only\n"),
            (["--pod-backend=local-exec"], {**env, "SILICA_TEST": "0"}, "for tests only\n"),
            (["--pod-backend=docker"], {**env, "SILICA_TEST": "1"}, "silica: --pod-backend: 'docker' is not local-exec\n")):
        done = subprocess.run([program, "apiserver", "--data", str(tmp_path / "d"), *options], env=env, capture_output=True, text=True, timeout=20)
        assert done.returncode == 2 and message in done.stderr and not (tmp_path / "d").exists()


def test_without_a_backend():
    """Nobody has the Pod: what a real server says of a Pod that has no node."""
    from lib import controlplane
    with controlplane.Silica() as bare:
        bare.call("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "x"}]}})
        assert bare.call("GET", "/api/v1/namespaces/default/pods/p/log", raw=True) == b""
        done = subprocess.run([servers.tool("peers", "kubectl"), "--kubeconfig", str(bare.kubeconfig), "exec", "p", "--", "true"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "pod p does not have a host assigned" in done.stderr
        assert not (bare.data / "pods.sock").exists()

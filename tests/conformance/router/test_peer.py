"""The public project's router in Go and ours, side by side: the same requests, the same sandbox behind them.

What differs on purpose is in docs/router.md, and left out or named here.
"""

import base64
import hashlib
import hmac
import json
import pathlib
import socket
import subprocess
import tempfile
import time

import pytest

from harness.raw import read_all
from harness.router import Backend, Router, ask, at
from harness.server import free_port, tool, wait_until

pytestmark = pytest.mark.ours
SECRET = "0123456789abcdef0123456789abcdef"
OURS_ONLY = {"x-sandbox-id", "x-sandbox-namespace", "x-sandbox-port", "x-sandbox-pod-ip", "x-sandbox-timeout"}  # Go passes them on
GUESS = ("content-type", "text/plain; charset=utf-8")  # Go adds it to an answer without a type when the first bytes are there before its flush


class Go:
    def __init__(self, directory, *options):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = directory / "go.log"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [tool("peers", "sandbox-router"), f"--http-bind-address=127.0.0.1:{self.port}", "--metrics-bind-address=127.0.0.1:0",
                 "--health-probe-bind-address=127.0.0.1:0", "--allow-loopback-pod-ip", *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def serves():
            assert self.process.poll() is None, self.log_path.read_text()
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            except OSError:
                return False

        wait_until(serves, 60, "the public router serves")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def both(directory, *options):
    ours = [*options, "--allow-host=evil.example.com", "--allow-origin=http://o"]
    return Go(directory, *options), Router(None, *ours, directory=directory)


@pytest.fixture(scope="module")
def routers():
    with tempfile.TemporaryDirectory(prefix="silica-routers-") as directory:
        go, ours = both(pathlib.Path(directory), "--upstream-max-retries=1", "--upstream-retry-initial-delay=10ms")
        with go, ours:
            yield go, ours


@pytest.fixture(scope="module")
def backend():
    with Backend("127.80.0.1") as b:
        yield b


def said(answer):
    """Status and words of an answer that is the router's own."""
    assert answer[1]["content-type"] == "application/json"
    return answer[0], json.loads(answer[2])


@pytest.mark.parametrize("fields", [
    {}, {"X-Sandbox-ID": ""}, {"X-Sandbox-ID": "bad.sandbox.id"}, {"X-Sandbox-ID": "foo/bar"}, {"X-Sandbox-ID": "FooBar"},
    {"X-Sandbox-ID": "-foo"}, {"X-Sandbox-ID": "a" * 64}, {"X-Sandbox-ID": "box", "X-Sandbox-Namespace": "a b"},
    {"X-Sandbox-ID": "box", "X-Sandbox-Namespace": "---"}, {"X-Sandbox-ID": "box", "X-Sandbox-Port": "abc"},
    {"X-Sandbox-ID": "box", "X-Sandbox-Port": "0"}, {"X-Sandbox-ID": "box", "X-Sandbox-Port": "65536"},
    {"X-Sandbox-ID": "box", "X-Sandbox-Port": "-80"}, {"X-Sandbox-ID": "box", "X-Sandbox-Pod-IP": "10.0.0.256"},
    {"X-Sandbox-ID": "box", "X-Sandbox-Pod-IP": "[::1]"}, {"X-Sandbox-ID": "box", "X-Sandbox-Pod-IP": "10.0.0.1:80"},
    {"X-Sandbox-ID": "box", "X-Sandbox-Pod-IP": "169.254.169.254"}, {"X-Sandbox-ID": "box", "X-Sandbox-Pod-IP": "fe80::1"},
    {"X-Sandbox-ID": "box", "X-Sandbox-Pod-IP": "::ffff:169.254.169.254"}, {"X-Sandbox-ID": "box", "X-Sandbox-Pod-IP": "ff02::1"},
    {"X-Sandbox-ID": "box", "X-Sandbox-Pod-IP": "0.0.0.0"}, {"X-Sandbox-ID": "box", "X-Sandbox-Pod-IP": "::"},
], ids=lambda fields: "-".join(fields.values()) or "none")
def test_refusals_in_the_same_words(routers, fields):
    go, ours = (said(ask(r, fields=fields)) for r in routers)
    assert ours == go and ours[0] == 400


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("target", ["/", "/a/b?x=1&y=%20", "/status/201", "/status/404", "/hops"])
def test_what_reaches_the_sandbox_and_what_comes_back(routers, backend, method, target):
    more = {"X-Forwarded-For": "6.6.6.6", "Forwarded": "for=6.6.6.6", "X-Mine": "1", "Origin": "http://o", "Cookie": "c=1",
            "Authorization": "Bearer x", "TE": "trailers", "User-Agent": "tester"}
    data = b"body" if method in ("POST", "PUT", "PATCH") else None
    seen = []
    for r in routers:
        status, fields, body = ask(r, target, method, data, {**at(backend), **more})
        told = json.loads(body) if body else {}
        for name, value in told.pop("fields", []):
            if name.lower() not in OURS_ONLY | {"x-forwarded-host", "x-sandbox-uid"}:
                told.setdefault("heads", []).append((name.lower(), value))
        told.get("heads", []).sort()
        answer = sorted((k.lower(), v) for k, v in fields.items() if k.lower() not in ("date", "content-length", "connection"))
        seen.append((status, told, answer))
    (go_status, go_told, go_answer), ours = seen
    assert (go_status, go_told, [field for field in go_answer if field != GUESS]) == ours


def test_nobody_there(routers, backend):
    fields = {**at(backend), "X-Sandbox-Port": str(free_port())}
    go, ours = (said(ask(r, fields=fields)) for r in routers)
    assert ours == go == (502, {"detail": "Could not connect to the backend sandbox: box"})


def test_one_that_goes_without_an_answer(routers, backend):
    go, ours = (said(ask(r, "/cut", "POST", b"{}", at(backend))) for r in routers)
    assert ours == go and ours[0] == 502


def test_large_bodies(routers, backend):
    data = bytes(range(256)) * 20000
    for r in routers:
        told = json.loads(ask(r, "/", "POST", data, at(backend))[2])
        assert (told["length"], told["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        assert len(ask(r, "/flow/3000000", fields=at(backend))[2]) == 3000000


def test_other_protocols(routers, backend):
    for r in routers:
        with socket.create_connection(("127.0.0.1", r.port), 60) as s:
            s.sendall(b"GET /switch HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: loud\r\nOrigin: http://o\r\n"
                      + "".join(f"{k}: {v}\r\n" for k, v in at(backend).items()).encode() + b"\r\n")
            got = b""
            while not got.endswith(b"hello "):
                got += s.recv(65536)
            assert got.startswith(b"HTTP/1.1 101 ")
            assert "origin" not in backend.server.switched
            s.sendall(b"abc")
            assert s.recv(65536) == b"ABC"
            s.shutdown(socket.SHUT_WR)
            assert read_all(s) == b""


def test_healthz(routers):
    go, ours = (said(ask(r, "/healthz")) for r in routers)
    assert ours == go == (200, {"status": "ok"})


def token(name="box", seconds=60, secret=SECRET):
    claims = json.dumps({"ns": "default", "name": name, "exp": int(time.time()) + seconds}).encode()
    payload = base64.urlsafe_b64encode(claims).rstrip(b"=")
    mac = hmac.new(secret.encode(), b"agent-sandbox/scoped-token/v1." + payload, hashlib.sha256).digest()
    return f"v1.{payload.decode()}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def test_scoped_tokens(routers, tmp_path):
    assert routers
    (tmp_path / "secret").write_text(SECRET + "\n")
    go, ours = both(tmp_path, "--authz-mode=scoped-token", f"--authz-scoped-token-secret-file={tmp_path}/secret",
                    "--upstream-max-retries=0")
    dead = {"X-Sandbox-ID": "box", "X-Sandbox-Port": "1"}  # its name is nobody's: what is let in ends with 502
    with go, ours:
        for more in ({"Authorization": f"Bearer {token()}"}, {"Authorization": f"bearer {token()}"}, {},
                     {"Authorization": f"Basic {token()}"}, {"Authorization": f"Bearer {token('other')}"},
                     {"Authorization": f"Bearer {token(seconds=-1)}"}, {"Authorization": f"Bearer {token(secret=SECRET[::-1])}"},
                     {"Authorization": "Bearer v1.x.y"}, {"Authorization": f"Bearer {token()}", "X-Sandbox-Pod-IP": "10.0.0.1"},
                     {"Authorization": "Bearer no", "X-Sandbox-Pod-IP": "10.0.0.1"},
                     {"Authorization": f"Bearer {token()}", "X-Sandbox-UID": "u"}):
            verdicts = [said(ask(r, fields={**dead, **more})) for r in (go, ours)]
            assert verdicts[0] == verdicts[1]

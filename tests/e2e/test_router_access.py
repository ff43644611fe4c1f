"""Who may have a sandbox through `silica router`: by one secret, by tokens of single sandboxes, by the API server's word."""

import base64
import hashlib
import hmac
import json
import os
import socket
import struct
import subprocess
import time

import pytest

from harness import router as routers
from harness.raw import read_all
from harness.router import Backend, Router, place
from harness.server import wait_until
from lib import controlplane
from test_router import ask, detail, seen

pytestmark = pytest.mark.ours
SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def api():
    with controlplane.Silica("--log-level", "warn") as server:
        yield server


@pytest.fixture(scope="module")
def backend(api):
    with Backend("127.78.0.1") as b:
        place(api, "box", b.ip)
        place(api, "other", "127.78.0.2")
        yield b


def scoped(name="box", namespace="default", seconds=60, secret=SECRET, context="agent-sandbox/scoped-token/v1."):
    claims = json.dumps({"ns": namespace, "name": name, "exp": int(time.time()) + seconds}).encode()
    payload = base64.urlsafe_b64encode(claims).rstrip(b"=")
    mac = hmac.new(secret.encode(), context.encode() + payload, hashlib.sha256).digest()
    return f"v1.{payload.decode()}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


@pytest.mark.core
def test_one_secret_for_all(api, backend):
    with Router(api, env={"ROUTER_AUTH_TOKEN": f"  {SECRET}\n"}) as r:
        at = {"x_sandbox_id": "box", "x_sandbox_port": backend.port}
        got = seen(ask(r, authorization=f"bEaReR  {SECRET} ", **at))
        assert "authorization" not in [name.lower() for name, _ in got["fields"]]
        missing = (401, "Missing or invalid Authorization header.")
        assert detail(ask(r, **at)) == missing
        assert detail(ask(r, authorization=f"Basic {SECRET}", **at)) == missing
        assert detail(ask(r, authorization="Bearer ", **at)) == missing
        assert detail(ask(r, authorization=f"Bearer {SECRET}x", **at)) == (401, "Invalid token.")
        assert detail(ask(r)) == missing  # who asks comes before what is wrong
        assert detail(ask(r, authorization=f"Bearer {SECRET}"))[0] == 400
        assert ask(r, "/healthz")[0] == 200
        assert SECRET not in r.log
        r.end()


@pytest.mark.core
def test_tokens_of_single_sandboxes(api, backend, tmp_path):
    (tmp_path / "secret").write_text(SECRET + "\n")
    with Router(api, "--authz-mode=scoped-token", f"--authz-scoped-token-secret-file={tmp_path}/secret") as r:
        at = {"x_sandbox_id": "box", "x_sandbox_port": backend.port}
        good = f"Bearer {scoped()}"
        seen(ask(r, authorization=good, **at))
        unknown, forbidden = (401, "unauthenticated"), (403, "forbidden")
        for token in (scoped(seconds=0), scoped(secret=SECRET[::-1]), scoped(context=""), "v1.x.y", "v1", scoped()[3:]):
            assert detail(ask(r, authorization=f"Bearer {token}", **at)) == unknown
            assert detail(ask(r, authorization=f"Bearer {token}", x_sandbox_pod_ip=backend.ip, **at)) == unknown
        assert detail(ask(r, **at)) == unknown
        assert detail(ask(r, authorization=good, x_sandbox_id="other")) == forbidden
        assert detail(ask(r, authorization=good, x_sandbox_namespace="prod", **at)) == forbidden
        assert detail(ask(r, authorization=good, x_sandbox_pod_ip=backend.ip, **at)) == forbidden
        assert detail(ask(r, authorization=good, x_sandbox_uid="u", **at)) == forbidden
        assert detail(ask(r, authorization=good, x_sandbox_id="box", x_sandbox_port="0")) == (400, "Invalid port format.")
        allowed = 'sandbox_router_authz_decisions_total{sandbox_namespace="default",decision="'
        assert int(r.metric(allowed + 'deny"')[0]) >= 10 and int(r.metric(allowed + 'allow"')[0]) >= 1
        assert len(r.said("router.denied")) >= 10
        r.end()


@pytest.mark.core
def test_whom_the_api_server_knows(api, backend):
    api.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "agent"}})
    token = api.call("POST", "/api/v1/namespaces/default/serviceaccounts/agent/token",
                     {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    reviews = 'rest_client_requests_total{code="201",method="POST"'
    at = {"x_sandbox_id": "box", "x_sandbox_port": backend.port}
    with Router(api, "--authz-mode=tokenreview", "--authz-tokenreview-require-token") as r:
        assert detail(ask(r, **at)) == (401, "unauthenticated")
        assert r.metric(reviews) == []
        for _ in range(3):
            seen(ask(r, authorization=f"Bearer {token}", **at))
            assert detail(ask(r, authorization="Bearer wrong", **at)) == (401, "unauthenticated")
        assert r.metric(reviews) == ["2"]  # each was asked about once
        assert token not in r.log
        r.end()
    with Router(api, "--authz-mode=tokenreview", "--authz-tokenreview-ttl=50ms") as r:
        seen(ask(r, **at))
        assert detail(ask(r, authorization="Bearer wrong", **at))[0] == 401
        wait_until(lambda: ask(r, authorization="Bearer wrong", **at) and int(r.metric(reviews)[0]) > 1, 30)
        r.end()


def test_an_api_server_that_does_not_answer(backend):
    with controlplane.Silica("--log-level", "warn") as mine:
        place(mine, "box", backend.ip)
        with Router(mine, "--authz-mode=tokenreview") as r:
            at = {"x_sandbox_id": "box", "x_sandbox_port": backend.port}
            seen(ask(r, **at))
            mine.kill()
            status, text = detail(ask(r, authorization="Bearer who", **at))
            assert (status, text[:13]) == (500, "tokenreview: ")
            status, text = detail(ask(r, authorization="Bearer who", **at))
            assert (status, text[:22]) == (500, "tokenreview (cached): ")
            seen(ask(r, **at))  # what is known is still known
            r.end()


@pytest.mark.parametrize("secret, text", [("short", "the secret has 5 bytes; at least 32"), ("   \n", "the secret has 0 bytes")])
def test_secrets_that_are_none(api, tmp_path, secret, text):
    (tmp_path / "secret").write_text(secret)
    done = subprocess.run([routers.program(), "router", "--kubeconfig", api.kubeconfig, "--listen", "127.0.0.1:0",
                           "--metrics-listen", "0", "--health-listen", "0", "--authz-mode=scoped-token",
                           f"--authz-scoped-token-secret-file={tmp_path}/secret"],
                          stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == 125 and text in done.stderr


@pytest.mark.core
def test_pages_of_other_sites_are_kept_out(api, backend):
    at = {"x_sandbox_id": "box", "x_sandbox_port": backend.port}
    with Router(api, "--allow-host=mine.example", "--allow-origin=https://page.example") as r:
        assert detail(ask(r, origin="http://evil.example", **at)) == (
            403, "a foreign Origin is not allowed; see --allow-origin")
        assert detail(ask(r, host="rebound.example", **at)) == (403, "this Host is not allowed; see --allow-host")
        for fields in ({"origin": r.url}, {"origin": "https://page.example"}, {"host": "mine.example"},
                       {"host": "sandbox-router-svc.default.svc.cluster.local"}, {"host": "localhost:1"}):
            seen(ask(r, **fields, **at))
        r.end()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to be somebody else")
def test_other_users_of_the_machine_are_strangers(api, backend):
    script = "import socket, sys\ns = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n" \
             "s.sendall(b'GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')\n" \
             "while got := s.recv(65536): sys.stdout.buffer.write(got)"

    def as_nobody(port):
        return subprocess.run(["python3", "-c", script, str(port)], user=65534, group=65534, stdout=subprocess.PIPE,
                              timeout=60, check=True, cwd="/", env={"PATH": os.environ["PATH"]}).stdout

    with Router(api) as r:
        assert as_nobody(r.port).startswith(b"HTTP/1.1 403 ")
        assert ask(r)[0] == 400
        assert r.said("router.stranger") != []
        r.end()
    with Router(api, "--allow-unauthenticated") as r:
        assert as_nobody(r.port).startswith(b"HTTP/1.1 400 ")
        r.end()


# ---- port-forwards through the API server, which says who is behind them ----


def through(path, caller, sandbox, namespace, *fields):
    """One request by the tunnel, of this caller: its status and detail, or (None, None) when it was turned away."""
    text = caller if isinstance(caller, bytes) else json.dumps(caller).encode()
    lines = [f"X-Sandbox-ID: {sandbox}", f"X-Sandbox-Namespace: {namespace}", *fields]
    if not any(line.startswith("Host:") for line in lines):
        lines.append("Host: localhost:8080")
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(str(path))
        try:
            s.sendall(struct.pack(">I", len(text)) + text)
            s.sendall("\r\n".join(["GET / HTTP/1.1", *lines, "Connection: close", "", ""]).encode())
        except (BrokenPipeError, ConnectionResetError):
            return None, None
        head, _, body = read_all(s).partition(b"\r\n\r\n")
    return (int(head.split()[1]), json.loads(body)) if head else (None, None)


@pytest.fixture(scope="module")
def teams(api, backend):
    """A sandbox in each of two namespaces; alice may edit the first, bob may look at both."""
    def bind(namespace, user, role):
        api.call("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", {
            "metadata": {"name": f"{user}-{role}"}, "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}})

    for team in ("team-a", "team-b"):
        api.call("POST", "/api/v1/namespaces", {"metadata": {"name": team}})
        place(api, f"of-{team}", backend.ip, namespace=team)
        bind(team, "bob", "view")
    bind("team-a", "alice", "edit")
    return bind


@pytest.mark.core
def test_callers_have_what_they_may(api, backend, teams, tmp_path):
    path, port = tmp_path / "router.sock", f"X-Sandbox-Port: {backend.port}"
    alice, bob = {"user": "alice", "groups": ["system:authenticated"]}, {"user": "bob"}
    with Router(api, "--tunnel-socket", path) as r:
        assert through(path, alice, "of-team-a", "team-a", port)[0] == 200
        status, told = through(path, alice, "of-team-b", "team-b", port)
        assert status == 403 and told["detail"].startswith('User "alice" may not forward ports of Pods in namespace team-b')
        # Of what is there and what is not the same is said.
        assert through(path, alice, "none", "team-b", port) == (403, told)
        for team in ("team-a", "team-b"):
            assert through(path, bob, f"of-{team}", team, port)[0] == 403  # who may look may not come in
            assert through(path, {"user": "root", "groups": ["system:masters"]}, f"of-{team}", team, port)[0] == 200
        # No other way to say whom is meant leads out of the namespace.
        uid = api.call("GET", "/apis/agents.x-k8s.io/v1beta1/namespaces/team-b/sandboxes/of-team-b")["metadata"]["uid"]
        for more in (f"X-Sandbox-UID: {uid}", f"X-Sandbox-Pod-IP: {backend.ip}"):
            assert through(path, alice, "of-team-b", "team-b", port, more)[0] == 403
            assert through(path, alice, "of-team-b", "team-a", port, more)[0] in (404, 503)
        assert through(path, alice, "of-team-a", "team-b", port, f"X-Sandbox-Pod-IP: {backend.ip}")[0] == 403
        # A page in the caller's browser is not the caller.
        assert through(path, alice, "of-team-a", "team-a", port, "Origin: http://evil.example")[0] == 403
        assert through(path, alice, "of-team-a", "team-a", port, "Host: rebound.example")[0] == 403
        assert through(path, alice, "Of", "team-a", port)[0] == 400
        denied = [d for d in r.said("router.denied") if "alice" in d["why"]]
        assert denied and all(d["namespace"] == "team-b" for d in denied)
        assert {a.get("user") for a in r.said("access.request")} == {"alice", "bob", "root"}
        # A right that was given is noticed, and one that was taken away.
        teams("team-b", "alice", "edit")
        wait_until(lambda: through(path, alice, "of-team-b", "team-b", port)[0] == 200, 30)
        api.call("DELETE", "/apis/rbac.authorization.k8s.io/v1/namespaces/team-b/rolebindings/alice-edit")
        wait_until(lambda: through(path, alice, "of-team-b", "team-b", port)[0] == 403, 60)
        r.end()
    assert not path.exists() or path.is_socket()


@pytest.mark.core
@pytest.mark.parametrize("workers", ["1", "2"])
def test_who_does_not_say_who_calls_is_turned_away(api, backend, teams, tmp_path, workers):
    path = tmp_path / "router.sock"
    with Router(api, "--tunnel-socket", path, "--workers", workers) as r:
        for caller in (b"", b"{}", b'{"user":""}', b"x" * 40000, b'{"user":"a","user":"root"}', b"GET / HTTP/1.1\r\n\r\n"):
            assert through(path, caller, "of-team-a", "team-a") == (None, None), caller
        with socket.socket(socket.AF_UNIX) as s:  # without a preface the first four bytes are one
            s.settimeout(60)
            s.connect(str(path))
            s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_all(s) == b""
        assert len(r.said("router.tunnel")) >= 6
        assert through(path, {"user": "root", "groups": ["system:masters"]}, "of-team-a", "team-a",
                       f"X-Sandbox-Port: {backend.port}")[0] == 200
        r.end()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to be somebody else")
def test_nobody_else_can_say_who_calls(api, tmp_path_factory):
    directory = tmp_path_factory.mktemp("tunnel")
    path = directory / "router.sock"
    text = b'{"user":"root","groups":["system:masters"]}'
    script = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(60)\ns.connect(sys.argv[1])\n" \
             "try:\n s.sendall(bytes.fromhex(sys.argv[2]))\n print(s.recv(100))\nexcept OSError: print(b'')"
    sent = struct.pack(">I", len(text)) + text + b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def as_nobody():
        return subprocess.run(["python3", "-c", script, str(path), sent.hex()], user=65534, group=65534, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=60, cwd="/", env={"PATH": os.environ["PATH"]}, text=True)

    with Router(api, "--tunnel-socket", path) as r:
        for d in (directory, *directory.parents):
            if d != d.parent and d.stat().st_uid == 0 and len(d.parts) > 2:
                d.chmod(0o755)
        assert as_nobody().returncode != 0  # the socket's mode
        path.chmod(0o666)
        assert as_nobody().stdout.strip() == "b''"  # and the kernel's word
        assert r.said("router.stranger") != []
        r.end()


def test_a_tunnel_leads_to_known_sandboxes_only(tmp_path):
    done = subprocess.run([routers.program(), "router", "--cache-enabled=false", "--allow-unlisted-pod-ip", "--tunnel-socket",
                           str(tmp_path / "s")], stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == 2 and "callers may have known sandboxes only" in done.stderr

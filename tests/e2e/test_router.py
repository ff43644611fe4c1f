"""`silica router` on a real API server: whom it finds, what it passes on and back, and what it says when it cannot."""

import json
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import httpx
import pytest

from harness import router as routers
from harness.raw import read_all
from harness.router import Backend, Router, place, set_status
from harness.server import Silica, wait_until
from lib import controlplane

pytestmark = pytest.mark.ours


@pytest.fixture(scope="module")
def api():
    with controlplane.Silica("--log-level", "warn") as server:
        server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "prod"}})
        yield server


@pytest.fixture(scope="module")
def router(api):
    with Router(api, "--allow-host", "evil.example.com", "--allow-origin", "http://o") as r:
        yield r
        r.end()


@pytest.fixture(scope="module")
def backend(api):
    """The sandbox `box` in default; others stand beside it at addresses of their own, on the same port."""
    with Backend("127.77.0.1") as b:
        place(api, "box", b.ip)
        yield b


def ask(router, target="/", method="GET", data=None, timeout=60, **fields):
    """(status, fields, body). Fields are named with underscores; those of the sandbox begin with x_sandbox_."""
    headers = {name.replace("_", "-"): str(value) for name, value in fields.items()}
    request = urllib.request.Request(router.url + target, method=method, data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, refused.read()


def detail(answer):
    status, fields, body = answer
    assert fields["content-type"] == "application/json"
    told = json.loads(body)
    assert list(told) == ["detail"]
    return status, told["detail"]


def seen(answer):
    assert answer[0] == 200, answer
    return json.loads(answer[2])


# ---- whom it finds ----


@pytest.mark.core
def test_by_name_address_and_uid(router, backend, api):
    uid = api.call("GET", "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/box")["metadata"]["uid"]
    for fields in ({}, {"x_sandbox_namespace": "default"}, {"x_sandbox_pod_ip": backend.ip}, {"x_sandbox_uid": uid},
                   {"x_sandbox_uid": "nobody"}):
        got = seen(ask(router, x_sandbox_id="box", x_sandbox_port=backend.port, **fields))
        assert got["where"] == backend.ip


@pytest.mark.core
def test_unknown_ones_are_not_found(router, backend, api):
    place(api, "neighbour", "127.77.0.2")
    at = {"x_sandbox_port": backend.port}
    began = time.monotonic()
    assert detail(ask(router, x_sandbox_id="nobody", **at)) == (404, "Sandbox nobody not found in namespace default.")
    assert time.monotonic() - began >= 0.9  # it may have been made a moment ago
    assert detail(ask(router, x_sandbox_id="box", x_sandbox_namespace="prod", **at))[0] == 404
    # An address must be the named sandbox's own.
    for ip in ("127.77.0.99", "10.1.2.3", "127.77.0.2"):
        assert detail(ask(router, x_sandbox_id="box", x_sandbox_pod_ip=ip, **at)) == (
            503, f"Sandbox box in namespace default has no Pod at {ip}.")
    assert detail(ask(router, x_sandbox_id="nobody", x_sandbox_pod_ip=backend.ip, **at))[0] == 404
    assert detail(ask(router, x_sandbox_id="box", x_sandbox_namespace="prod", x_sandbox_pod_ip=backend.ip, **at))[0] == 404


@pytest.mark.core
def test_one_that_comes_while_its_request_waits_is_found(router, backend, api):
    with Backend("127.77.0.3", backend.port):
        answers = []
        t = threading.Thread(target=lambda: answers.append(ask(router, x_sandbox_id="late", x_sandbox_port=backend.port)))
        t.start()
        place(api, "late", "127.77.0.3")
        t.join(60)
        assert seen(answers[0])["where"] == "127.77.0.3"


def test_members_of_a_pool_have_no_name_until_they_are_claimed(router, backend, api):
    pool = {"agents.x-k8s.io/warm-pool-sandbox": "hash"}
    with Backend("127.77.0.4", backend.port):
        uid = place(api, "waits", "127.77.0.4", labels=pool)
        at = {"x_sandbox_id": "waits", "x_sandbox_port": backend.port}
        assert detail(ask(router, **at))[0] == 503
        assert seen(ask(router, x_sandbox_uid=uid, **at))["where"] == "127.77.0.4"
        pod = api.call("GET", "/api/v1/namespaces/default/pods/waits")
        del pod["metadata"]["labels"]["agents.x-k8s.io/warm-pool-sandbox"]
        api.call("PUT", "/api/v1/namespaces/default/pods/waits", pod)
        assert seen(ask(router, **at))["where"] == "127.77.0.4"


def test_what_is_not_ready_or_suspended_or_gone_says_so(router, backend, api):
    path = "/apis/agents.x-k8s.io/v1beta1/namespaces/prod/sandboxes/sleeper"
    with Backend("127.77.0.5", backend.port):
        place(api, "sleeper", "127.77.0.5", namespace="prod", ready=False)
        at = {"x_sandbox_id": "sleeper", "x_sandbox_namespace": "prod", "x_sandbox_port": backend.port}
        status, text = detail(ask(router, **at))
        assert status == 503 and text.startswith("Sandbox sleeper is not ready")
        set_status(api, "sleeper", "127.77.0.5", namespace="prod")
        assert seen(ask(router, **at))["where"] == "127.77.0.5"
        box = api.call("GET", path)
        box["spec"]["operatingMode"] = "Suspended"
        api.call("PUT", path, box)
        wait_until(lambda: ask(router, **at)[0] == 503, 30)
        began = time.monotonic()
        status, text = detail(ask(router, **at))
        assert (status, text[:30]) == (503, "Sandbox sleeper is suspended: "[:30])
        box = api.call("GET", path)
        box["spec"]["operatingMode"] = "Running"
        api.call("PUT", path, box)
        wait_until(lambda: ask(router, **at)[0] == 200, 30)
        api.call("DELETE", "/api/v1/namespaces/prod/pods/sleeper?gracePeriodSeconds=0")
        api.call("DELETE", path)
        wait_until(lambda: ask(router, **at)[0] == 404, 30)
        assert began


def test_unlisted_targets_where_they_are_allowed(api, backend):
    with Router(api, "--allow-unlisted-pod-ip") as r:
        got = ask(r, x_sandbox_id="stranger", x_sandbox_pod_ip=backend.ip, x_sandbox_port=backend.port)
        assert seen(got)["where"] == backend.ip
        status, text = detail(ask(r, x_sandbox_id="stranger", x_sandbox_timeout="2"))
        assert (status, text) in ((502, "Could not connect to the backend sandbox: stranger"),
                                  (504, "Timed out waiting for the backend sandbox: stranger"))
        r.end()


@pytest.mark.core
@pytest.mark.parametrize("fields, text", [
    ({}, "X-Sandbox-ID header is required."),
    ({"x_sandbox_id": "Bad_Name"}, "Invalid sandbox ID format."),
    ({"x_sandbox_id": "box", "x_sandbox_namespace": "a.b"}, "Invalid namespace format."),
    ({"x_sandbox_id": "box", "x_sandbox_port": "0"}, "Invalid port format."),
    ({"x_sandbox_id": "box", "x_sandbox_pod_ip": "169.254.169.254"}, "Invalid target IP address."),
])
def test_wrong_fields(router, fields, text):
    assert detail(ask(router, **fields)) == (400, text)


# ---- what it passes on ----


@pytest.mark.core
def test_heads_go_on_without_what_is_not_theirs(router, backend):
    with socket.create_connection(("127.0.0.1", router.port), 30) as s:
        s.sendall(b"GET /a/%%2E%%2E/b%%2Fc//d?x=%%20&y=+ HTTP/1.1\r\nHost: evil.example.com\r\nX-Sandbox-ID: box\r\n"
                  b"X-Sandbox-Port: %d\r\nX-Sandbox-Namespace: default\r\nX-Sandbox-Timeout: 30\r\nX-Sandbox-UID: u\r\n"
                  b"X-Sandbox-Token: kept\r\nAuthorization: Bearer secret\r\nConnection: close, X-Custom-Hop\r\n"
                  b"X-Custom-Hop: 1\r\nKeep-Alive: timeout=5\r\nTE: trailers, gzip\r\nProxy-Authorization: x\r\n"
                  b"X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Request-ID: 0011\r\nOrigin: http://o\r\n"
                  b"X-Two: a\r\nX-Two: b\r\nCookie: c=1\r\n\r\n" % backend.port)
        got = read_all(s)
    told = json.loads(got.split(b"\r\n\r\n", 1)[1])
    assert told["target"] == "/a/%2E%2E/b%2Fc//d?x=%20&y=+"
    assert sorted((k.lower(), v) for k, v in told["fields"]) == sorted([
        ("host", f"{backend.ip}:{backend.port}"), ("x-sandbox-token", "kept"), ("x-request-id", "0011"),
        ("origin", "http://o"), ("x-two", "a"), ("x-two", "b"), ("cookie", "c=1"), ("te", "trailers"),
        ("x-forwarded-for", "127.0.0.1"), ("x-forwarded-host", "evil.example.com"), ("x-forwarded-proto", "http")])


def test_proxies_that_are_trusted_say_whence_a_request_came(api, backend):
    theirs = {"x_forwarded_for": "192.0.2.1, 10.0.0.9", "x_forwarded_host": "page.example", "x_forwarded_proto": "https"}
    at = {"x_sandbox_id": "box", "x_sandbox_port": backend.port, **theirs}
    for ranges, want in (("127.0.0.0/8", ("192.0.2.1, 10.0.0.9, 127.0.0.1", "page.example", "https")), ("10.0.0.0/8", None)):
        with Router(api, env={"TRUSTED_PROXY_CIDRS": f"fd00::/8,{ranges}"}) as r:
            got = {name.lower(): value for name, value in seen(ask(r, **at))["fields"]}
            assert tuple(got[f"x-forwarded-{part}"] for part in ("for", "host", "proto")) == (
                want or ("127.0.0.1", r.address, "http"))
            r.end()


def test_answers_come_back_without_what_was_one_connection_s(router, backend):
    status, fields, _ = ask(router, "/hops", x_sandbox_id="box", x_sandbox_port=backend.port)
    assert status == 200
    assert "x-gone" not in fields and "keep-alive" not in fields
    assert fields.get_all("x-stays") == ["a", "b"] and fields.get_all("set-cookie") == ["a=1", "b=2"]
    assert fields["server"].startswith("BaseHTTP") and len(fields.get_all("date")) == 1


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
def test_methods_and_statuses(router, backend, method):
    for status in (201, 204, 404, 503):
        assert ask(router, f"/status/{status}", method, x_sandbox_id="box", x_sandbox_port=backend.port)[0] == status
    assert backend.seen[-1][0] == method


def test_redirects_are_the_client_s(router, backend):
    with httpx.Client() as c:
        got = c.get(router.url + "/status/302", headers={"X-Sandbox-ID": "box", "X-Sandbox-Port": str(backend.port)})
    assert got.status_code == 302


@pytest.mark.core
def test_bodies_stream_both_ways(router, backend):
    size = 5 << 20
    sent = bytes(range(256)) * (size // 256)
    at = {"X-Sandbox-ID": "box", "X-Sandbox-Port": str(backend.port)}
    with httpx.Client(timeout=60) as c:
        got = c.post(router.url + "/", headers=at, content=sent).json()
        assert (got["length"], dict(got["fields"])["content-length"]) == (size, str(size))

        def pieces():
            for i in range(0, size, 100000):
                yield sent[i:i + 100000]

        chunked = c.post(router.url + "/", headers=at, content=pieces()).json()
        assert (chunked["length"], chunked["sha256"]) == (size, got["sha256"])
        assert dict(chunked["fields"])["transfer-encoding"] == "chunked"
        assert len(c.get(router.url + f"/flow/{size}", headers=at).content) == size
        with c.stream("GET", router.url + "/ticks", headers=at) as answer:
            parts = answer.iter_raw()
            assert next(parts) == b"first"  # while the rest is not there yet
            backend.server.let_go.set()
            assert b"".join(parts) == b"second"
        backend.server.let_go.clear()


def test_trailers_come_back(router, backend):
    with socket.create_connection(("127.0.0.1", router.port), 30) as s:
        s.sendall(b"GET /flow/3 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Sandbox-ID: box\r\nX-Sandbox-Port: %d\r\n\r\n"
                  % backend.port)
        assert read_all(s).endswith(b"\r\n3\r\nxxx\r\n0\r\nx-sum: done\r\n\r\n")


@pytest.mark.core
def test_other_protocols(router, backend):
    with socket.create_connection(("127.0.0.1", router.port), 30) as s:
        s.sendall(b"GET /switch HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: loud\r\nOrigin: http://o\r\n"
                  b"X-Sandbox-ID: box\r\nX-Sandbox-Port: %d\r\n\r\n" % backend.port)
        got = b""
        while not got.endswith(b"hello "):
            got += s.recv(65536)
        head = got.split(b"\r\n\r\n")[0].lower()
        assert head.startswith(b"http/1.1 101 ") and b"upgrade: loud" in head and b"x-mine: yes" in head
        assert "origin" not in backend.server.switched
        s.sendall(b"is anybody there")
        got = b""
        while len(got) < 16:
            got += s.recv(65536)
        assert got == b"IS ANYBODY THERE"
        s.shutdown(socket.SHUT_WR)
        assert read_all(s) == b""
    wait_until(lambda: any(line["status"] == 101 for line in router.said("access.request")), 30)
    # One that nobody asked for is no answer.
    at = {"x_sandbox_id": "box", "x_sandbox_port": backend.port}
    status, text = detail(ask(router, "/switch?force", **at))
    assert status == 502 and "WebSocket" in text
    assert ask(router, "/switch", **at)[0] == 400


# ---- what goes wrong ----


@pytest.mark.core
def test_times_out_as_the_request_says(router, backend):
    at = {"x_sandbox_id": "box", "x_sandbox_port": backend.port}
    began = time.monotonic()
    assert detail(ask(router, "/hang", x_sandbox_timeout="0.4", **at)) == (
        504, "Timed out waiting for the backend sandbox: box")
    assert 0.3 < time.monotonic() - began < 30
    backend.server.let_go.set()
    backend.server.let_go.clear()
    assert router.metric('sandbox_router_upstream_errors_total{sandbox_namespace="default",reason="timeout"}') != []


@pytest.mark.core
def test_nobody_listens_until_somebody_does(api, router):
    place(api, "slow", "127.77.0.6")
    port = routers.free_port("127.77.0.6")
    at = {"x_sandbox_id": "slow", "x_sandbox_port": port}
    assert detail(ask(router, **at)) == (502, "Could not connect to the backend sandbox: slow")
    before = int(router.metric('sandbox_router_upstream_retries_total{sandbox_namespace="default"}')[0])
    assert before >= 3
    answers = []
    t = threading.Thread(target=lambda: answers.append(ask(router, method="POST", data=b"once", **at)))
    t.start()
    wait_until(lambda: int(router.metric('sandbox_router_upstream_retries_total{sandbox_namespace="default"}')[0]) > before, 30)
    with Backend("127.77.0.6", port) as b:
        t.join(60)
        got = seen(answers[0])
        assert (got["length"], b.seen) == (4, [("POST", "/")])
    # A refused port says nothing about the sandbox: it is still known.
    assert router.metric("sandbox_router_cache_invalidations_total") == []


@pytest.mark.core
def test_what_may_have_been_done_is_not_said_twice(router, backend):
    at = {"x_sandbox_id": "box", "x_sandbox_port": backend.port}
    for data in (b"{}", None):
        before = len(backend.seen)
        ask(router, x_sandbox_id="box", x_sandbox_port=backend.port)  # a connection that is kept
        assert detail(ask(router, "/cut", "POST", data=data, **at))[0] == 502
        assert backend.seen[before + 1:] == [("POST", "/cut")]
    # An answer that breaks off is cut, not ended.
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(router.url + "/half", headers={"X-Sandbox-ID": "box", "X-Sandbox-Port": str(backend.port)})


def test_a_client_that_leaves_is_not_waited_for(router, backend):
    with socket.create_connection(("127.0.0.1", router.port), 30) as s:
        s.sendall(b"GET /hang HTTP/1.1\r\nHost: localhost\r\nX-Sandbox-ID: box\r\nX-Sandbox-Port: %d\r\n\r\n" % backend.port)
        wait_until(lambda: ("GET", "/hang") in backend.seen[-1:], 30)
    wait_until(lambda: any(line["status"] == 499 for line in router.said("access.request")), 30)
    wait_until(lambda: router.metric("sandbox_router_inflight_requests") == ["0"], 30)
    backend.server.let_go.set()
    backend.server.let_go.clear()


def test_too_large_bodies(api, backend):
    at = {"X-Sandbox-ID": "box", "X-Sandbox-Port": str(backend.port)}
    with Router(api, "--max-request-body-bytes", "1000") as r:
        assert httpx.post(r.url, headers=at, content=b"x" * 1000).status_code == 200
        assert httpx.post(r.url, headers=at, content=b"x" * 1001).status_code == 413
        got = httpx.post(r.url, headers=at, content=iter([b"x" * 600] * 2))
        assert (got.status_code, got.json()) == (413, {"detail": "The request body is too large."})
        r.end()


# ---- a real sandbox's server behind it ----


@pytest.fixture(scope="module")
def runtime(api):
    s = Silica()
    place(api, "real", "127.0.0.1")
    yield s
    s.stop()
    s.remove()


@pytest.mark.core
def test_commands_in_a_sandbox(router, runtime):
    at = {"X-Sandbox-ID": "real", "X-Sandbox-Port": str(runtime.port), "X-Sandbox-Pod-IP": "127.0.0.1"}
    with httpx.Client(timeout=60, headers=at) as c:
        got = c.post(router.url + "/execute", json={"command": "echo out; echo err >&2; exit 3"}).json()
        assert (got["stdout"], got["stderr"], got["exit_code"]) in (("out\n", "err\n", 3), ("out; echo err >&2; exit 3\n", "", 0))
    curl = subprocess.run(["curl", "-sS", "-H", "X-Sandbox-ID: real", "-H", f"X-Sandbox-Port: {runtime.port}",
                           router.url + "/health"], stdout=subprocess.PIPE, check=True, timeout=60)
    assert json.loads(curl.stdout)
    two = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", "-H", "X-Sandbox-ID: real", "-H",
                          f"X-Sandbox-Port: {runtime.port}", "-w", " %{http_version}", "-b", "a=1", router.url + "/health"],
                         stdout=subprocess.PIPE, check=True, timeout=60)
    assert two.stdout == curl.stdout + b" 2"


@pytest.mark.core
def test_grpc_goes_through(router, runtime):
    import grpc
    from harness import process_pb as pb

    at = [("x-sandbox-id", "real"), ("x-sandbox-port", str(runtime.port))]
    with grpc.insecure_channel(router.address) as channel:
        stub = pb.Stub(channel)
        out = b"".join(m.stdout for m in stub.Start(pb.start("sh", "-c", "echo hello; sleep 0.1; echo again"), metadata=at, timeout=60))
        assert out == b"hello\nagain\n"
        with pytest.raises(grpc.RpcError) as refused:  # the sandbox's own words, in a head that is all
            stub.SendSignal(pb.SendSignalRequest(process_id=999999, signal=9), metadata=at, timeout=60)
        direct = grpc.insecure_channel(runtime.address)
        with pytest.raises(grpc.RpcError) as same:
            pb.Stub(direct).SendSignal(pb.SendSignalRequest(process_id=999999, signal=9), timeout=60)
        direct.close()
        assert (refused.value.code(), refused.value.details()) == (same.value.code(), same.value.details())
        with pytest.raises(grpc.RpcError) as unknown:  # ours
            list(stub.Start(pb.start("true"), metadata=[("x-sandbox-id", "nobody")], timeout=60))
        assert unknown.value.code() == grpc.StatusCode.NOT_FOUND
        assert unknown.value.details() == "Sandbox nobody not found in namespace default."


# ---- the process ----


def plain(address, path):
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


@pytest.mark.core
def test_shows_itself(router, backend):
    assert plain(router.address, "/healthz") == (200, '{"status":"ok"}')
    assert plain(router.ready["health"], "/healthz")[0] == 200
    assert plain(router.ready["health"], "/readyz") == (200, "ok")
    ask(router, "/logged?secret=1", user_agent="tester", x_sandbox_id="box", x_sandbox_namespace="default",
        x_sandbox_port=backend.port)
    line = wait_until(lambda: [x for x in router.said("access.request") if x["path"] == "/logged"], 30)[0]
    assert (line["method"], line["status"], line["client_ip"], line["sandbox_id"], line["sandbox_namespace"],
            line["user_agent"], line["logger"]) == ("GET", 200, "127.0.0.1", "box", "default", "tester", "access")
    assert line["bytes_out"] > 0 and line["duration_ms"] >= 0
    assert router.metric('sandbox_router_requests_total{method="GET",code="200",sandbox_namespace="default"}') != []
    assert router.metric('sandbox_router_request_duration_seconds_bucket{method="GET",code="200",'
                         'sandbox_namespace="default",le="180"}') != []
    assert router.metric("sandbox_router_build_info") == ["1"]
    assert "secret=1" not in router.log


@pytest.mark.core
def test_ends_when_what_is_under_way_has(api, backend):
    with Router(api) as r:
        answers = []
        t = threading.Thread(target=lambda: answers.append(ask(r, "/ticks", x_sandbox_id="box", x_sandbox_port=backend.port)))
        t.start()
        wait_until(lambda: ("GET", "/ticks") in backend.seen[-1:], 30)
        r.process.terminate()
        wait_until(lambda: plain(r.ready["health"], "/readyz") == (503, "draining"), 30)
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", r.port), 5)
        assert r.process.poll() is None
        backend.server.let_go.set()
        t.join(60)
        backend.server.let_go.clear()
        assert answers[0][2] == b"firstsecond"
        assert r.process.wait(60) == 0, r.log


def test_a_port_that_is_taken(backend):
    """It says so and is gone, also where there is no cluster to wait for."""
    done = subprocess.run([routers.program(), "router", "--cache-enabled=false", "--allow-unlisted-pod-ip", "--listen", f"{backend.ip}:{backend.port}",
                           "--metrics-listen", "0", "--health-listen", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 125 and "in use" in done.stdout, done


def test_two_share_a_port(api, backend):
    with Router(api, "--reuse-port") as one:
        with Router(api, "--reuse-port", listen=one.address) as two:
            assert two.port == one.port
            one.end()
            seen(ask(two, x_sandbox_id="box", x_sandbox_port=backend.port))
            two.end()


@pytest.mark.parametrize("arguments, text", [
    (["--listen", ":0"], "everybody who can connect would be served"),
    (["--listen", "nowhere"], "--listen: address 'nowhere'"),
    (["--cache-enabled=false"], "no sandbox would be known"),
    (["--authz-mode", "trust"], "'trust' is not allow-all"),
    (["--authz-mode", "token"], "ROUTER_AUTH_TOKEN must be set"),
    (["--authz-mode", "scoped-token"], "--authz-scoped-token-secret-file"),
    (["--proxy-timeout", "0"], "--proxy-timeout"),
    (["--trusted-proxy-cidrs", "10.0.0.0/33"], "--trusted-proxy-cidrs: '10.0.0.0/33' is no range"),
    (["now"], "unexpected argument 'now'"),
])
def test_wrong_flags(arguments, text):
    done = subprocess.run([routers.program(), "router", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=30)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr

"""Pages of a browser on the same machine: Origin and Host."""

import http.client

import pytest

pytestmark = pytest.mark.ours


def status(server, headers, path="/list/"):
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    c.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        c.putheader(name, value)
    c.endheaders()
    answer = c.getresponse()
    answer.read()
    return answer.status


@pytest.mark.core
@pytest.mark.parametrize("origin, want", [
    ("http://evil.example", 403), ("null", 403), ("http://127.0.0.1:1", 403), ("https://localhost", 403), ("file://", 403), ("", 403),
])
def test_foreign_origins_are_refused(runtime, origin, want):
    assert status(runtime, {"Origin": origin}) == want
    assert status(runtime, {"Origin": origin}, "/") == want


def test_our_own_origin_is_not(runtime):
    assert status(runtime, {"Origin": f"http://127.0.0.1:{runtime.port}"}) == 200


@pytest.mark.parametrize("host, want", [
    ("127.0.0.1:1", 200), ("localhost:8888", 200), ("[::1]:8888", 200), ("10.1.2.3", 200), ("x.default.svc.cluster.local:8888", 200),
    ("router.svc", 200), ("evil.example", 403), ("evil.example:8888", 403), ("127.0.0.1.evil.example", 403), ("localhost.evil.example", 403),
])
def test_hosts_on_loopback(runtime, host, want):
    assert status(runtime, {"Host": host}) == want


def test_they_can_be_allowed(start_runtime):
    server = start_runtime("--allow-origin", "https://app.example", "--allow-host", "sandbox.example")
    assert status(server, {"Origin": "https://app.example"}) == 200
    assert status(server, {"Host": "sandbox.example:80"}) == 200
    assert status(server, {"Origin": "https://other.example"}) == 403


def test_with_a_token_any_host_will_do(start_runtime):
    server = start_runtime(token="t")
    assert status(server, {"Host": "evil.example", "X-Sandbox-Token": "t"}) == 200

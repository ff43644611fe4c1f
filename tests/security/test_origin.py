"""Pages of a browser on the same machine: Origin and Host."""

import http.client
import subprocess
import types

import pytest

from harness import router as routers
from lib import up as ups

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


HOSTS = [
    ("127.0.0.1:1", 200), ("localhost:8888", 200), ("[::1]:8888", 200), ("10.1.2.3", 200), ("x.default.svc.cluster.local:8888", 200),
    ("x.default.svc", 200), ("X.Default.SVC.cluster.local.:1", 200), ("evil.example", 403), ("evil.example:8888", 403),
    ("127.0.0.1.evil.example", 403), ("localhost.evil.example", 403), ("x.default.svc.evil.example", 403), ("a.svc.evil.example:8888", 403),
    ("evil.svc", 403), ("x.default.svc.cluster.local.evil.example", 403), ("x.default.svc.cluster.example", 403), ("evil.x.default.svc", 403),
]


@pytest.mark.parametrize("host, want", HOSTS)
def test_hosts_on_loopback(runtime, host, want):
    assert status(runtime, {"Host": host}) == want


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param, "--router-workers=1", "--allow-host", "mine.example") as started:
        address, port = started.ready["router"].removeprefix("http://").split(":")
        yield types.SimpleNamespace(up=started, port=int(port))


# A request that only its Host is wrong with names no sandbox: 400.
@pytest.mark.parametrize("host, want", [(host, 400 if want == 200 and ".svc" not in host.lower() else 403) for host, want in HOSTS] + [
    ("sandbox-router-svc.default.svc", 400), ("sandbox-router-svc.team-a.svc.cluster.local:8080", 400), ("mine.example:1", 400),
    ("sandbox-router-svc.default.svc.evil.example", 403), ("sandbox-router-svc.default.svc.example.com", 403), ("sandbox-router-svc.evil", 403),
    ("evil.sandbox-router-svc.default.svc", 403), ("sandbox-router-svc.default.svc.cluster.local.evil.example", 403)])
def test_hosts_of_the_router(up, host, want):
    if up.up.prefix:  # only its own account is served
        argv = [*up.up.prefix, "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", f"Host: {host}", f"http://127.0.0.1:{up.port}/list/"]
        assert int(subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=60, cwd="/").stdout) == want
    else:
        assert status(up, {"Host": host}) == want


def test_figures_are_not_for_pages_of_other_sites(tmp_path):
    with routers.Router(None, directory=tmp_path) as router:
        metrics = types.SimpleNamespace(port=int(router.ready["metrics"].rpartition(":")[2]))
        for fields, want in (({}, 200), ({"Host": "localhost:1"}, 200), ({"Host": "evil.example"}, 403), ({"Origin": "http://evil.example"}, 403),
                             ({"Host": "evil.example", "Origin": "http://evil.example"}, 403), ({"Host": "a.svc.evil.example"}, 403)):
            assert status(metrics, fields, "/metrics") == want, fields


def test_another_domain(start_runtime):
    server = start_runtime("--cluster-domain", "corp.example")
    assert [status(server, {"Host": f"x.default.svc{rest}"}) for rest in ("", ".corp.example", ".cluster.local")] == [200, 200, 403]


def test_they_can_be_allowed(start_runtime):
    server = start_runtime("--allow-origin", "https://app.example", "--allow-host", "sandbox.example")
    assert status(server, {"Origin": "https://app.example"}) == 200
    assert status(server, {"Host": "sandbox.example:80"}) == 200
    assert status(server, {"Origin": "https://other.example"}) == 403


def test_with_a_token_any_host_will_do(start_runtime):
    server = start_runtime(token="t")
    assert status(server, {"Host": "evil.example", "X-Sandbox-Token": "t"}) == 200

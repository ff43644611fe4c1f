"""What the public router tells a collector of a request, and what ours does. More of ours: e2e/test_router_traces.py."""

import pathlib
import tempfile
import time

import pytest
from test_peer import Go

from harness.collector import Collector
from harness.router import Backend, Router, ask, at, passed_on

pytestmark = pytest.mark.ours
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{CALLER}-01"
SERVER = 2  # kinds of spans


@pytest.fixture
def directory():
    with tempfile.TemporaryDirectory(prefix="silica-traces-") as d:
        yield pathlib.Path(d)


@pytest.fixture(scope="module")
def backend():
    with Backend("127.80.0.1") as b:
        yield b


@pytest.mark.parametrize("fields, path, status", [
    ({}, "/", 200), ({"traceparent": PARENT, "tracestate": "a=1,b=2"}, "/some/path?secret=1", 200), ({"traceparent": PARENT}, "/status/503", 503),
    ({"traceparent": PARENT, "X-Sandbox-Namespace": "team"}, "/status/404", 404), ({"traceparent": "00-zz"}, "/", 200)],
    ids=["new", "parent", "failed", "namespace", "bad"])
def test_as_the_public_router_tells_it(directory, backend, monkeypatch, fields, path, status):
    told = []
    for make in (lambda c: Go(directory, "--enable-tracing"), lambda c: Router(None, directory=directory)):
        with Collector() as c:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.url)
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_INSECURE", "true")
            monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
            with make(c) as r:
                answer = ask(r, path, fields=at(backend, **{k.replace("-", "_"): v for k, v in fields.items()}))
                assert answer[0] == status
                told.append((c.wait(1)[-1], passed_on(answer)))
    (theirs, they_passed), (ours, we_passed) = told
    assert (ours.name, ours.kind, ours.attributes) == (theirs.name, theirs.kind, theirs.attributes)
    assert ours.name == "HTTP GET" and ours.kind == SERVER
    assert (ours.parent, ours.state) == (theirs.parent, theirs.state)
    assert ours.resource["service.name"] == theirs.resource["service.name"] == "sandbox-router"
    for span, got in told:
        assert got["traceparent"] == f"00-{span.trace}-{span.id}-01"
        assert ("tracestate" in got) == ("tracestate" in fields)
    assert we_passed.get("tracestate") == they_passed.get("tracestate")
    if fields.get("traceparent") == PARENT:
        assert (ours.trace, ours.parent) == (theirs.trace, theirs.parent) == (TRACE, CALLER)
    assert ours.ended_ns >= ours.began_ns > (time.time() - 60) * 1e9
    assert ours.error == (status >= 500)

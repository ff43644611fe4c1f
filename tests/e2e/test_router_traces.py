"""What the router tells of requests to a collector, whose messages the OpenTelemetry project wrote. The public router beside it:
conformance/router/test_traces.py."""

import http.client
import os
import pathlib
import subprocess
import tempfile

import grpc
import pytest
from harness import router
from harness.collector import Collector
from harness.router import Backend, Router, ask, at, passed_on
from harness.server import free_port, wait_until
from lib import certificates

pytestmark = [pytest.mark.ours, pytest.mark.core]
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{CALLER}-01"
SOON = {"OTEL_BSP_SCHEDULE_DELAY": "50"}  # ms: as fast as a test likes it


@pytest.fixture
def directory():
    with tempfile.TemporaryDirectory(prefix="silica-traces-") as d:
        yield pathlib.Path(d)


@pytest.fixture
def collector():
    with Collector() as c:
        yield c


@pytest.fixture(scope="module")
def backend():
    with Backend("127.80.0.1") as b:
        yield b


def traced(directory, collector, *options, env=None):
    return Router(None, *options, directory=directory, env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **SOON, **(env or {})})


def test_every_request_is_told(directory, collector, backend):
    """Those that no sandbox answers, too; in the order of their ends, in one trace each, with what the log says."""
    with traced(directory, collector, "--zap-log-level=info") as r:
        ask(r, "/healthz")
        assert ask(r, "/", fields={"X-Sandbox-ID": "No"})[0] == 400
        assert ask(r, "/x", "POST", b"data", at(backend))[0] == 200
        assert ask(r, "/", fields=at(backend, X_Sandbox_Port="1"))[0] == 502
        spans = collector.wait(4)
        assert [(s.name, s.attributes["http.target"], s.attributes["http.status_code"], s.error) for s in spans] == [
            ("HTTP GET", "/healthz", 200, False), ("HTTP GET", "/", 400, False), ("HTTP POST", "/x", 200, False), ("HTTP GET", "/", 502, True)]
        assert len({s.trace for s in spans}) == len({s.id for s in spans}) == 4
        assert {s.parent for s in spans} == {""} and {s.scope for s in spans} == {"silica"}
        logged = r.said("access.request")
        assert [(line["trace_id"], line["span_id"]) for line in logged] == [(s.trace, s.id) for s in spans[1:]]


def test_what_its_caller_does_not_record_is_not_told(directory, collector, backend):
    with traced(directory, collector) as r:
        got = passed_on(ask(r, "/", fields=at(backend, traceparent=PARENT[:-2] + "00")))
        assert got["traceparent"].startswith(f"00-{TRACE}-") and got["traceparent"].endswith("-00") and CALLER not in got["traceparent"]
        ask(r, "/last", fields=at(backend))
        assert [s.attributes["http.target"] for s in collector.wait(1)] == ["/last"]
    with traced(directory, collector, env={"OTEL_TRACES_SAMPLER": "always_off"}) as r:
        assert passed_on(ask(r, "/", fields=at(backend, traceparent=PARENT)))["traceparent"].endswith("-00")
        r.end()
    with traced(directory, collector, env={"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"}) as r:
        flags = [passed_on(ask(r, "/by-chance", fields=at(backend)))["traceparent"][-2:] for _ in range(64)]
        r.end()
    assert 8 < flags.count("01") < 56  # by chance it fails once in 10^9 times
    assert len([s for s in collector.spans if s.attributes["http.target"] == "/by-chance"]) == flags.count("01")


def test_without_tracing_fields_pass_as_they_are(directory, collector, backend):
    for options, env in (([], {}), (["--enable-tracing=false"], {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}),
                         ([], {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SDK_DISABLED": "true"})):
        with Router(None, *options, directory=directory, env={**SOON, **env}) as r:
            got = passed_on(ask(r, "/", fields=at(backend, traceparent=PARENT, tracestate="Not Valid")))
            assert (got["traceparent"], got["tracestate"]) == (PARENT, "Not Valid")
            line = wait_until(lambda: r.said("access.request"), 10, "the line of the request")[0]  # written behind the answer
            assert "trace_id" not in line
            r.end()
    assert collector.calls == []


def test_a_collector_that_is_not_there(directory, backend):
    """Nobody waits for it; what came meanwhile is told when it is there, and the log says both once."""
    port = free_port()
    with Router(None, directory=directory, env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", **SOON}) as r:
        for i in range(20):
            assert ask(r, f"/{i}", fields=at(backend))[0] == 200
        wait_until(lambda: r.said("trace.export"), 30, "it says that nobody is there")
        with Collector(port) as c:
            assert [s.attributes["http.target"] for s in c.wait(20)] == [f"/{i}" for i in range(20)]
            wait_until(lambda: r.said("trace.resumed"), 30, "it says that somebody is")
        assert len(r.said("trace.export")) == 1 and not r.said("trace.lost")


def test_what_a_collector_refuses(directory, collector, backend):
    """A status that may pass is tried again, any other is the end of that batch, and of no other."""
    collector.refusals = [(grpc.StatusCode.UNAVAILABLE, "in a moment"), (grpc.StatusCode.INVALID_ARGUMENT, "never")]
    with traced(directory, collector) as r:
        ask(r, "/lost", fields=at(backend))
        wait_until(lambda: r.said("trace.lost"), 30, "the second answer ends it")
        assert "UNAVAILABLE: in a moment" in r.said("trace.export")[0]["err"]
        assert r.said("trace.lost")[0]["spans"] == 1 and "INVALID_ARGUMENT: never" in r.said("trace.lost")[0]["err"]
        collector.partial = (3, "too old")
        ask(r, "/taken", fields=at(backend))
        assert [s.attributes["http.target"] for s in collector.wait(1)] == ["/taken"]
        wait_until(lambda: r.said("trace.partial"), 30, "it says what was not taken")
        assert (r.said("trace.partial")[0]["rejected"], r.said("trace.partial")[0]["why"]) == (3, "too old")
        assert r.said("trace.resumed")[0]["dropped"] == 1


def test_the_last_spans_are_told_at_the_end(directory, collector, backend):
    with traced(directory, collector, env={"OTEL_BSP_SCHEDULE_DELAY": "600000"}) as r:
        ask(r, "/", fields=at(backend))
        assert collector.calls == []
        r.end()
    assert len(collector.spans) == 1


def test_a_dead_collector_does_not_hold_up_the_end(directory, backend):
    with Router(None, directory=directory, env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}", **SOON}) as r:
        ask(r, "/", fields=at(backend))
        r.end()


def test_more_than_can_wait(directory, backend):
    """2,048 wait for a collector that is away; the rest is dropped, counted and said."""
    port = free_port()
    with Router(None, "--access-log=false", directory=directory, env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", **SOON}) as r:
        subprocess.run(["h2load", "--h1", "-n", "3000", "-c", "4", f"{r.url}/healthz"], check=True, stdout=subprocess.DEVNULL)
        with Collector(port) as c:
            c.wait(2048)
            wait_until(lambda: r.said("trace.resumed"), 30, "it says how many")
        assert sum(line["dropped"] for line in r.said("trace.resumed")) + len(c.spans) == 3000 and len(c.spans) == 2048
        assert len({s.id for s in c.spans}) == 2048


def test_what_clients_choose_is_fit_to_be_told(directory, collector, backend):
    """Texts are UTF-8 and have an end; a tracestate that is none goes no further, several fields are one."""
    with traced(directory, collector) as r:
        c = http.client.HTTPConnection("127.0.0.1", r.port)
        c.putrequest("BREW", "/" + "p" * 3000)
        for name, value in (*at(backend).items(), ("traceparent", PARENT), ("tracestate", "a=1"), ("tracestate", "b=2")):
            c.putheader(name, value)
        c.putheader("X-Sandbox-Namespace", b"\xff\xfe")
        c.endheaders()
        assert c.getresponse().status == 400
        span = collector.wait(1)[0]
        assert span.name == "HTTP BREW" and span.attributes["http.target"] == "/" + "p" * 1023 and span.state == "a=1,b=2"
        assert span.attributes["sandbox.namespace"] == "\ufffd\ufffd"
        got = passed_on(ask(r, "/", fields=at(backend, traceparent=PARENT, tracestate="Not Valid")))
        assert "tracestate" not in got
        assert collector.wait(2)[1].state == ""


def test_by_tls_with_headers(directory, backend):
    certificates.authority(directory)
    certificates.issue(directory, "collector")
    key, crt = ((directory / f"collector.{end}").read_bytes() for end in ("key", "crt"))
    with Collector(credentials=grpc.ssl_server_credentials([(key, crt)])) as c:
        secret = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=very%20secret", "OTEL_SERVICE_NAME": "my-router"}
        with traced(directory, c, env={**secret, "OTEL_EXPORTER_OTLP_CERTIFICATE": str(directory / "ca.crt")}) as r:
            ask(r, "/", fields=at(backend))
            assert c.wait(1)[0].resource["service.name"] == "my-router"
            assert c.calls[0]["api-key"] == "very secret" and "very secret" not in r.log
        with traced(directory, c, env=secret) as r:  # whose certificate nobody here knows
            ask(r, "/", fields=at(backend))
            wait_until(lambda: r.said("trace.export"), 30, "it is told")
            assert "certificate" in r.said("trace.export")[0]["err"] and len(c.spans) == 1


@pytest.mark.parametrize("env, says", [
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "ftp://a"}, "OTEL_EXPORTER_OTLP_ENDPOINT: 'ftp://a' is no collector"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_TRACES_SAMPLER": "some"}, "OTEL_TRACES_SAMPLER: 'some' is not known"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://a", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/none.crt"}, "/none.crt")])
def test_wrong_variables_are_named(directory, backend, env, says):
    """Who asks for traces is not served without; who only has the variables is, and the log says why there are none."""
    done = subprocess.run([router.program(), "router", "--cache-enabled=false", "--allow-unlisted-pod-ip", "--enable-tracing"],
                          env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
    assert done.returncode in (2, 125) and says in done.stdout
    with Router(None, directory=directory, env=env) as r:
        assert ask(r, "/", fields=at(backend))[0] == 200
        assert says in r.said("trace.off")[0]["err"]


def test_a_port_that_is_taken(directory, collector, backend):
    """Nothing was traced, and what traces is let go."""
    done = subprocess.run([router.program(), "router", "--cache-enabled=false", "--allow-unlisted-pod-ip", "--listen", f"{backend.ip}:{backend.port}"],
                          env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=30)
    assert done.returncode == 125 and "in use" in done.stdout, done


def test_workers_tell_of_theirs(directory, collector, backend):
    with traced(directory, collector, "--workers=2") as r:
        for i in range(8):
            ask(r, f"/{i}", fields=at(backend))
        assert sorted(s.attributes["http.target"] for s in collector.wait(8)) == [f"/{i}" for i in range(8)]
        r.end()

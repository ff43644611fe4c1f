"""What no honest client sends: the answer names the fault, the connection ends, the server goes on."""

import resource
import socket
import time

import pytest
import requests

from harness import proc, raw

pytestmark = [pytest.mark.ours, pytest.mark.contract("A")]

HOST = b"Host: localhost\r\n"


def status(answer):
    assert answer.startswith(b"HTTP/1.1 "), answer[:200]
    return int(answer[9:12])


@pytest.mark.core
@pytest.mark.parametrize("request_bytes, want", [
    (b"GET /\r\n\r\n", (400, 505)),
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/2.7\r\n" + HOST + b"\r\n", 505),
    (b"GET / HTTP/1.1\n" + HOST + b"\r\n", 400),
    (b"G ET / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    (b"GET /\0 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    (b"GET / HTTP/1.1\r\n" + HOST + b"A : b\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r\n c\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\0c\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
    (b"GET / HTTP/1.1\r\n" + HOST + b"A: " + b"x" * 70000 + b"\r\n\r\n", 431),
    (b"GET /" + b"x" * 70000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
    # smuggling shapes
    (b"POST /execute HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"POST /execute HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
    (b"POST /execute HTTP/1.1\r\n" + HOST + b"Content-Length: +5\r\n\r\nhello", 400),
    (b"POST /execute HTTP/1.1\r\n" + HOST + b"Content-Length: 0x5\r\n\r\nhello", 400),
    (b"POST /execute HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999999999999999\r\n\r\nhello", 400),
    (b"POST /execute HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", (400, 501)),
    (b"POST /execute HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", (400, 501)),
    (b"POST /execute HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    (b"POST /execute HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 400),
    (b"POST /execute HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n", 400),
])
def test_malformed_requests_are_refused(runtime, request_bytes, want):
    got = raw.exchange(runtime, request_bytes)
    assert status(got) in (want if isinstance(want, tuple) else (want,)), got[:300]
    assert got.count(b"HTTP/1.1 ") == 1
    assert b'{"detail":"' in got
    assert requests.get(runtime.url + "/").status_code == 200


def test_nothing_is_run_after_a_smuggled_request(runtime):
    inner = b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n" + b'{"command":"touch smuggled"}'
    got = raw.exchange(runtime, b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner)
    assert got.count(b"HTTP/1.1 ") == 1
    assert not (runtime.root / "smuggled").exists()


def test_pipelined_requests_are_answered_in_order(runtime):
    body = b'{"command":"echo one"}'
    got = raw.exchange(runtime, b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
                       + b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"GET /nope HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert [got.index(t) for t in (b"one", b"is active", b"Not Found")] == sorted(got.index(t) for t in (b"one", b"is active", b"Not Found"))


def test_requests_cut_at_every_byte(runtime):
    body = b'{"command":"echo cut"}'
    request = b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with raw.connect(runtime) as s:
        for cut in range(1, len(request), 7):
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.sendall(request[:cut])
            time.sleep(0.001)
            s.sendall(request[cut:])
            code, _, answer = raw.read_answer(s)
            assert code == 200 and b"cut" in answer


def test_expect_continue(runtime):
    body = b'{"command":"echo waited"}'
    with raw.connect(runtime) as s:
        s.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert s.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        s.sendall(body)
        code, _, answer = raw.read_answer(s)
        assert code == 200 and b"waited" in answer


def test_http_1_0_and_close(runtime):
    got = raw.exchange(runtime, b"GET / HTTP/1.0\r\n\r\n")
    assert status(got) == 200
    with raw.connect(runtime) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b"connection: close" in raw.read_all(s).lower()


def test_a_body_that_is_too_large(runtime):
    answer = requests.post(runtime.url + "/execute", data=b'{"command":"' + b"x" * (5 << 20), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert "larger than" in answer.json()["detail"]


def test_a_slow_head_is_timed_out(start_runtime):
    server = start_runtime()
    with raw.connect(server, 30) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nSlow")
        start = time.monotonic()
        got = raw.read_all(s)
        assert status(got) == 408
        assert 5 < time.monotonic() - start < 25


def test_a_body_that_stops_is_timed_out(start_runtime):
    server = start_runtime("--stall-timeout", "1s")
    with raw.connect(server, 30) as s:
        s.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        assert status(raw.read_all(s)) == 408
    with raw.connect(server, 30) as s:
        s.sendall(b"POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000\r\n\r\n--b\r\n")
        assert status(raw.read_all(s)) == 408


def test_a_slow_but_moving_body_is_not(start_runtime):
    server = start_runtime("--stall-timeout", "1s")
    body = b'{"command":"echo slow"}'
    with raw.connect(server, 30) as s:
        s.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        for i in range(len(body)):
            s.sendall(body[i:i + 1])
            time.sleep(0.15)
        code, _, answer = raw.read_answer(s)
        assert code == 200 and b"slow" in answer


def test_a_reader_that_stops_is_closed(start_runtime):
    server = start_runtime("--stall-timeout", "1s")
    (server.root / "big").write_bytes(b"x" * (64 << 20))
    with raw.connect(server, 30) as s:
        s.sendall(b"GET /download/big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(4)
        try:
            got = raw.read_all(s)
        except OSError:
            got = b""
        assert len(got) < 64 << 20, "the server gave up on a reader that took nothing"
    assert requests.get(server.url + "/").status_code == 200


def test_a_slow_reader_gets_everything(start_runtime):
    server = start_runtime("--stall-timeout", "1s")
    data = b"0123456789abcdef" * (1 << 17)
    (server.root / "slow").write_bytes(data)
    with raw.connect(server, 30) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        s.sendall(b"GET /download/slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        got = b""
        while more := s.recv(200_000):
            got += more
            time.sleep(0.1)
        assert got.endswith(data)


def test_thousands_of_idle_connections(start_runtime):
    """Each costs little, and the next request is answered as before."""
    server = start_runtime()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(10_000, hard - 500)
    before = proc.memory(server.pid)["rss"]
    idle = []
    try:
        for _ in range(count):
            idle.append(socket.create_connection(("127.0.0.1", server.port), 10))
        for s in idle[::100]:
            s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for s in idle[::100]:
            assert s.recv(4096).startswith(b"HTTP/1.1 200")
        assert requests.get(server.url + "/").status_code == 200
        each = (proc.memory(server.pid)["rss"] - before) / count
        assert each < 4096, f"{each:.0f} bytes per idle connection"
    finally:
        for s in idle:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert requests.get(server.url + "/").status_code == 200


def test_connections_beyond_the_ceiling_are_closed(start_runtime):
    server = start_runtime("--max-connections", "5")
    held = [raw.connect(server) for _ in range(5)]
    for s in held:
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        raw.read_answer(s)
    with raw.connect(server) as s:  # in the place of the oldest that only waits
        assert raw.read_all(held[0]) == b""
        for busy in [*held[1:], s]:  # a request without its body: all of them are in use
            busy.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
            assert busy.recv(100).startswith(b"HTTP/1.1 100 ")
        with raw.connect(server) as late:
            assert raw.read_all(late) == b""
    for s in held:
        s.close()


def test_an_http2_client_that_breaks_the_rules(runtime):
    for junk in [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 64, b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", b"PRI"]:
        raw.exchange(runtime, junk)
    assert requests.get(runtime.url + "/").status_code == 200

"""WebSockets through `silica router`: a client that nobody here wrote, and the limits that can be set."""

import contextlib
import socket
import struct
import time

import pytest
import websocket

from harness.router import Router
from harness.server import wait_until
from harness.websockets import Echo, close, frame

pytestmark = pytest.mark.ours

CLOSE = websocket.ABNF.OPCODE_CLOSE


@pytest.fixture(scope="module")
def echo():
    with Echo("127.0.0.1") as e:
        yield e


@contextlib.contextmanager
def limited(tmp_path, *options, env=None):
    with Router(None, *options, directory=tmp_path, env=env) as router:
        yield router
        router.end()


def connect(router, echo, **fields):
    at = {"X-Sandbox-ID": "box", "X-Sandbox-Port": echo.port, "X-Sandbox-Pod-IP": "127.0.0.1", **fields}
    return websocket.create_connection(f"ws://{router.address}/", timeout=30, header=[f"{k}: {v}" for k, v in at.items()])


def end_of(ws):
    """(code, reason) of the close frame, behind whatever else comes."""
    while True:
        opcode, payload = ws.recv_data(control_frame=True)
        if opcode == CLOSE:
            return struct.unpack(">H", payload[:2])[0], payload[2:].decode()


@pytest.mark.core
def test_messages_and_ends_pass_as_they_are(tmp_path, echo):
    with limited(tmp_path) as router:
        ws = connect(router, echo)
        for text in ("hi", "x" * 200, "y" * 70000):
            ws.send(text)
            assert ws.recv() == text
        ws.send_binary(b"\x00\xff")
        assert ws.recv() == b"\x00\xff"
        ws.send("say:" + close(1011, "kernel restart").hex())
        assert end_of(ws) == (1011, "kernel restart")
        ws.close()
        ws = connect(router, echo)
        ws.send_close(4001, b"auth failed")
        assert end_of(ws) == (4001, "auth failed")
        assert echo.closes[-1] == (4001, "auth failed")
        ws.close()


@pytest.mark.core
def test_one_without_messages_is_ended(tmp_path, echo):
    with limited(tmp_path, env={"WEBSOCKET_IDLE_TIMEOUT_SECONDS": "0.5"}) as router:
        ws = connect(router, echo)
        for _ in range(4):  # messages count, and longer together than the time
            ws.send("hi")
            assert ws.recv() == "hi"
            time.sleep(0.2)
        began = len(echo.closes)
        ws.ping("pings do not")
        assert end_of(ws) == (1001, "idle timeout exceeded")
        wait_until(lambda: (1001, "idle timeout exceeded") in echo.closes[began:], 30)
        ws.close()


@pytest.mark.core
def test_one_that_is_too_old_is_ended(tmp_path, echo):
    with limited(tmp_path, "--websocket-max-lifetime", "700ms") as router:
        ws = connect(router, echo)
        began = len(echo.closes)
        with pytest.raises(Exception, match="max lifetime exceeded"):
            while True:
                ws.send("hi")
                opcode, data = ws.recv_data(control_frame=True)
                if opcode == CLOSE:
                    raise AssertionError(data[2:].decode())
                assert data == b"hi"
                time.sleep(0.01)
        wait_until(lambda: (1001, "max lifetime exceeded") in echo.closes[began:], 30)
        ws.close()


@pytest.mark.core
def test_messages_that_are_too_big_end_both_sides(tmp_path, echo):
    with limited(tmp_path, "--websocket-max-message-bytes", "1000") as router:
        big = (1009, "message too big")
        ws = connect(router, echo)
        ws.send("x" * 1000)  # as much as may be
        assert ws.recv() == "x" * 1000
        began = len(echo.closes)
        ws.send("x" * 1001)
        assert end_of(ws) == big
        wait_until(lambda: big in echo.closes[began:], 30)
        ws.close()
        # In pieces; from the other side; and one that only says that it will be.
        says = {"pieces": frame(1, b"x" * 600, fin=False) + frame(0, b"x" * 401), "whole": frame(2, b"x" * 1001),
                "length": b"\x82\x7f" + struct.pack(">Q", 1 << 62)}
        for name, frames in says.items():
            ws = connect(router, echo)
            began = len(echo.closes)
            for at in range(0, len(frames), 400):  # what the order itself holds must be short
                ws.send_frame(websocket.ABNF.create_frame("say:" + frames[at:at + 400].hex(), websocket.ABNF.OPCODE_TEXT))
            assert end_of(ws) == big, name
            wait_until(lambda since=began: big in echo.closes[since:], 30)
            ws.close()


@pytest.mark.core
def test_one_client_has_so_many(tmp_path, echo):
    with limited(tmp_path, "--websocket-max-connections-per-client", "2", "--trusted-proxy-cidrs", "127.0.0.0/8") as router:
        def count():
            return int(float(router.metric("sandbox_router_inflight_requests")[0]))

        held = [connect(router, echo), connect(router, echo)]
        with pytest.raises(websocket.WebSocketBadStatusException) as refused:
            connect(router, echo)
        assert refused.value.status_code == 403
        assert refused.value.resp_body == b'{"detail":"Too many concurrent WebSocket connections (limit: 2)."}'
        # Others behind the same proxy have their own; the last that is no proxy of ours counts.
        others = [connect(router, echo, **{"X-Forwarded-For": "203.0.113.9, 198.51.100.7"}) for _ in range(2)]
        with pytest.raises(websocket.WebSocketBadStatusException):
            connect(router, echo, **{"X-Forwarded-For": "192.0.2.77, 198.51.100.7"})
        # A place is free again once one has left, however it did.
        held.pop().close()
        wait_until(lambda: count() == 3, 30)
        held.append(connect(router, echo))
        held[-1].sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        held.pop().shutdown()
        wait_until(lambda: count() == 3, 30)
        held.append(connect(router, echo))
        with pytest.raises(websocket.WebSocketBadStatusException):
            connect(router, echo)
        for ws in held + others:
            ws.close()
        wait_until(lambda: count() == 0, 30)


def test_settings_that_make_no_sense(tmp_path):
    for name, value in (("WEBSOCKET_MAX_CONNECTIONS_PER_CLIENT", "0.5"), ("WEBSOCKET_IDLE_TIMEOUT_SECONDS", "soon"),
                        ("WEBSOCKET_MAX_MESSAGE_BYTES", "-1")):
        with pytest.raises(AssertionError, match=name), Router(None, directory=tmp_path, env={name: value}):
            pass

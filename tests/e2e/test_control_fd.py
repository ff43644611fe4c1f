"""The inherited socket of --control-fd: one that listens, and a connected stream that the server lives and dies with."""

import json
import socket
import subprocess

import pytest

from harness import proc
from harness.server import binary, wait_until

pytestmark = pytest.mark.ours


def start(sock, *args):
    return subprocess.Popen([binary(), "--control-fd", str(sock.fileno()), "--log-level", "off", *args], pass_fds=[sock.fileno()])


def ask(sock, method, path, body=b""):
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    sock.sendall(head.encode() + body)
    reader = sock.makefile("rb")
    status = int(reader.readline().split()[1])
    length = 0
    while (line := reader.readline()) not in (b"\r\n", b""):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return status, reader.read(length)


@pytest.fixture
def connected():
    ours, theirs = socket.socketpair()
    ours.settimeout(20)
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.mark.core
def test_a_connected_stream_is_served_and_ends_the_server(connected, tmp_path):
    ours, theirs = connected
    server = start(theirs, "--root", str(tmp_path))
    theirs.close()
    assert ask(ours, "GET", "/v1/health")[0] == 200
    status, body = ask(ours, "POST", "/execute", b'{"command":"echo one"}')
    assert status == 200 and json.loads(body)["stdout"] == "one\n"
    ours.close()
    assert server.wait(10) == 0


def test_commands_end_with_the_connection(connected, tmp_path):
    ours, theirs = connected
    server = start(theirs, "--root", str(tmp_path), "--", "sleep", "1000")
    theirs.close()
    wait_until(lambda: proc.children(server.pid), 5, "the main command runs")
    main = proc.children(server.pid)
    ours.close()
    assert server.wait(15) == 128 + 15
    assert not any(proc.state(p) for p in main)


def test_the_connection_may_rest(connected, tmp_path):
    """No idle deadline runs for the owner's connection, whatever the option says."""
    ours, theirs = connected
    server = start(theirs, "--root", str(tmp_path), "--http-idle-timeout", "50ms")
    theirs.close()
    assert ask(ours, "GET", "/v1/health")[0] == 200
    with pytest.raises(subprocess.TimeoutExpired):
        server.wait(0.5)
    assert ask(ours, "GET", "/v1/health")[0] == 200
    ours.close()
    assert server.wait(10) == 0


def test_a_listening_socket_outlives_its_connections(tmp_path):
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "door"))
        door.listen()
        server = start(door, "--root", str(tmp_path))
        for _ in range(2):
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(20)
                s.connect(str(tmp_path / "door"))
                assert ask(s, "GET", "/v1/health")[0] == 200
        assert server.poll() is None
        server.terminate()
        assert server.wait(10) == 0

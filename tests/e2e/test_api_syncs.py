"""No success leaves the API server before the sync that covers it: judged by what strace sees (lib/synctrace.py)."""

import os
import pathlib
import shutil
import signal
import subprocess
import threading

import pytest

from harness import proc
from lib import controlplane, synctrace
from lib.writers import Connection

pytestmark = pytest.mark.ours
WRITES = 30
CLIENTS = 3


def can_trace():
    return shutil.which("strace") and subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL).returncode == 0


def write_much(api, number, ports):
    """Every verb that changes something, one after the other on one connection."""
    connection, path = Connection(api), "/api/v1/namespaces/default/configmaps"
    assert connection.call("GET", "/version")[0] == 200
    done = 0
    for i in range(WRITES // 3):
        name = f"t{number}-{i}"
        steps = [("POST", path, {"metadata": {"name": name}}, "application/json"),
                 ("PATCH", f"{path}/{name}", {"data": {"a": "b"}}, "application/merge-patch+json"),
                 ("DELETE", f"{path}/{name}", None, "application/json")]
        for method, where, body, kind in steps:
            status, answer = connection.call(method, where, body, kind)
            assert status in (200, 201), answer
            done += 1
    ports[number] = (connection.open.sock.getsockname()[1], done)


def trace(tmp_path, clients, *more):
    """The trace of a server that these clients wrote to, and their ports."""
    if not can_trace():
        pytest.skip("strace may not trace here")
    out, ports = tmp_path / "trace", {}
    wrap = [*synctrace.STRACE, *more, "-o", str(out)]
    with controlplane.Silica("--log-level", "warn", wrap=wrap) as api:
        threads = [threading.Thread(target=write_much, args=(api, i, ports)) for i in range(clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        os.kill(proc.children(api.process.pid)[0], signal.SIGTERM)  # strace ends with it
        api.process.wait(20)
    assert len(ports) == clients
    return pathlib.Path(out).read_text().splitlines(), ports


def test_no_answer_before_its_sync(tmp_path):
    lines, ports = trace(tmp_path, CLIENTS)
    for port, count in ports.values():
        assert count == WRITES
        assert synctrace.judge(lines, port, count) == []


def test_the_judge_sees_a_server_that_does_not_sync(tmp_path):
    lines, ports = trace(tmp_path, 1, "-e", "inject=fdatasync,fsync:retval=0")
    (port, count), = ports.values()
    assert len(synctrace.judge(lines, port, count)) == count


def test_the_judge_sees_an_answer_that_leaves_too_early(tmp_path):
    """The trace of an honest server, with one answer before its sync, and one sync before its write."""
    lines, ports = trace(tmp_path, 1)
    (port, count), = ports.values()
    syncs = [i for i, line in enumerate(lines) if " fdatasync(" in line and "store.db-wal" in line]
    send = synctrace.exchanges(synctrace.read(lines), port)[-3][1]
    sync = max(i for i in syncs if i < send)
    early = lines[:sync] + [lines[send]] + lines[sync:send] + lines[send + 1:]
    assert synctrace.judge(early, port, count) == [count - 3]
    write = max(i for i, line in enumerate(lines[:sync]) if " pwrite64(" in line)
    swapped = lines[:write] + [lines[sync], lines[write]] + lines[write + 1:sync] + lines[sync + 1:]
    assert synctrace.judge(swapped, port, count) == [count - 3]

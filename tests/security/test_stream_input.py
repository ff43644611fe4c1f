"""Every byte that a client sends to a command arrives, or the client hears of it: slow readers, a sandbox that is reached late,
and both protocols of kubectl.

What waits for a sandbox is made to wait: a lease on the file that the node reads first holds its open() up until the test says so.
"""

import fcntl
import hashlib
import os
import select
import signal
import subprocess

import pytest

from harness.server import wait_until
from lib import controlplane
from lib.machine import pod
from lib.up import as_caller

pytestmark = pytest.mark.ours
BY_SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false"}
BYTES = 8 << 20
# Reads with pauses, so that all queues on the way are full.
SLOW = ("import hashlib, sys, time\nh = hashlib.sha256(); n = 0\n"
        "while True:\n  b = sys.stdin.buffer.read1(65536)\n  if not b: break\n  h.update(b); n += len(b); time.sleep(0.002)\n"
        "print(n, h.hexdigest())")


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with as_caller(request.param) as started:
        started.api.call("POST", "/api/v1/namespaces/default/pods", pod("reader", command=["sleep", "4721"]))
        started.kubectl("wait", "--for=condition=Ready", "pod/reader", "--timeout=90s")
        yield started


@pytest.fixture(params=["kubectl", "kubectl by SPDY", "kubectl-1.20"])
def kubectl(request, up):
    name = request.param.split()[0]
    program = controlplane.peer(name)
    env = {**os.environ, "KUBECONFIG": str(up.ready["kubeconfig"]), **(BY_SPDY if "SPDY" in request.param else {})}
    cache = ["--cache-dir", str(up.directory / f"cache-{name}")]

    def start(*args, **kw):
        return subprocess.Popen([program, *cache, *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)

    return start


def summary(data):
    return f"{len(data)} {hashlib.sha256(data).hexdigest()}\n".encode()


class Held:
    """Nobody opens the state of the Pod's sandbox while this lasts."""

    def __init__(self, up):
        uid = up.api.call("GET", "/api/v1/namespaces/default/pods/reader")["metadata"]["uid"]
        (self.path,) = up.data.glob(f"**/sandboxes/{uid}_main_0/state.json")

    def __enter__(self):
        self.fd = os.open(self.path, os.O_RDWR)

        def take():
            try:
                fcntl.fcntl(self.fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
                return True
            except BlockingIOError: # the node reads it now
                return False

        signal.signal(signal.SIGIO, signal.SIG_IGN) # says that it is wanted
        wait_until(take, 30, "a lease")

    def __exit__(self, *_):
        os.close(self.fd)


def feed_until_full(process, data):
    """Writes until the pipe stays full; returns how much went."""
    fd, done = process.stdin.fileno(), 0
    os.set_blocking(fd, False)
    while done < len(data) and select.select([], [fd], [], 0.5)[1]:
        done += os.write(fd, data[done:done + 65536])
    os.set_blocking(fd, True)
    return done


def test_a_slow_reader_gets_all_of_it(kubectl):
    data = os.urandom(BYTES)
    process = kubectl("exec", "-i", "reader", "--", "python3", "-c", SLOW, stdin=subprocess.PIPE)
    out, err = process.communicate(data, timeout=90)
    assert process.returncode == 0, err
    assert out == summary(data)


def test_what_came_before_the_command_ran(up, kubectl):
    data = os.urandom(BYTES)
    with Held(up):
        process = kubectl("exec", "-i", "reader", "--", "python3", "-c", SLOW, stdin=subprocess.PIPE)
        sent = feed_until_full(process, data)
        assert 1 << 19 < sent < BYTES # it is held up, not kept
    out, err = process.communicate(data[sent:], timeout=90)
    assert process.returncode == 0, err
    assert out == summary(data)


def test_an_end_that_came_before_the_command_ran(up, kubectl):
    """All of it, and its end, before the command is there: the end comes last."""
    data = os.urandom(900_000)
    with Held(up):
        process = kubectl("exec", "-i", "reader", "--", "python3", "-c", SLOW, stdin=subprocess.PIPE)
        sent = feed_until_full(process, data)
    out, err = process.communicate(data[sent:], timeout=90)
    assert process.returncode == 0, err
    assert out == summary(data)


def test_output_at_the_same_time(kubectl):
    data = os.urandom(BYTES)
    process = kubectl("exec", "-i", "reader", "--", "cat", stdin=subprocess.PIPE)
    out, err = process.communicate(data, timeout=90)
    assert process.returncode == 0, err
    assert summary(out) == summary(data)


def test_files_copied_while_the_sandbox_is_late(up, kubectl, tmp_path):
    data = os.urandom(BYTES)
    (tmp_path / "in").write_bytes(data)
    with Held(up):
        process = kubectl("cp", str(tmp_path / "in"), "reader:/tmp/copied", stdin=subprocess.DEVNULL)
        select.select([process.stdout], [], [], 1.0) # as much as will has been sent
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, out + err
    process = kubectl("exec", "reader", "--", "sha256sum", "/tmp/copied")
    assert process.communicate(timeout=90)[0].split()[0].decode() == hashlib.sha256(data).hexdigest()
    process = kubectl("cp", "reader:/tmp/copied", str(tmp_path / "back"), stdin=subprocess.DEVNULL)
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, out + err
    assert (tmp_path / "back").read_bytes() == data

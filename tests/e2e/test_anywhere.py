"""The same file runs in any root: an empty one, one of busybox, without /proc, without /dev, without stdio."""

import base64
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import threading
import time

import grpc
import pytest
import requests

from harness import proc
from harness import process_pb as pb
from harness.server import Silica, binary, wait_until

pytestmark = pytest.mark.ours

SIZE_MAX = 3 << 20
PT_DYNAMIC, PT_INTERP, DT_NEEDED = 2, 3, 1
BUSYBOX = shutil.which("busybox", path="/bin:/usr/bin")


def segments(data):
    """(type, bytes) of each segment of a 64-bit little-endian ELF file."""
    assert data[:6] == b"\x7fELF\x02\x01"
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, at, _, _, length = struct.unpack_from("<IIQQQQ", data, offset + i * size)
        yield kind, data[at:at + length]


def test_the_file_is_static_and_small():
    data = pathlib.Path(binary()).read_bytes()
    found = list(segments(data))
    assert found and PT_INTERP not in [kind for kind, _ in found]
    for kind, body in found:
        if kind == PT_DYNAMIC:
            tags = [tag for tag, _ in struct.iter_unpack("<QQ", body)]
            assert tags and DT_NEEDED not in tags
    assert len(data) <= SIZE_MAX
    assert b".debug_info" not in data, "stripped"


def enter(jail):
    """Words before a command that make `jail` its root, as root or in a user namespace of its own."""
    words = ["chroot", str(jail)] if os.geteuid() == 0 else ["unshare", "-r", "chroot", str(jail)]
    tried = subprocess.run([*words, "/silica-runtime", "--version"], capture_output=True, text=True)
    if tried.returncode != 0 and "not permitted" in tried.stderr:
        pytest.skip("neither root nor user namespaces here")
    assert tried.returncode == 0, tried.stderr
    return words


class Jailed(Silica):
    """A runtime whose root directory is `jail`, ours if None; `before` are words that run ahead of it, outside."""

    def __init__(self, jail, *args, before=(), **kwargs):
        self.words = [*before, *enter(jail), "/silica-runtime"] if jail else [*before, binary()]
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C"}
        super().__init__("--root", "/", *args, add_root=False, keep_env=False, env=env, **kwargs)

    def spawn(self, argv, env, pass_fds=()):
        super().spawn(self.words + argv[1:], env, pass_fds)


@pytest.fixture
def empty(tmp_path):
    shutil.copy2(binary(), tmp_path / "silica-runtime")
    return tmp_path


@pytest.fixture
def busybox(empty):
    """A root as small as they come: one static busybox and links to it. No /proc, /dev, /tmp or /etc."""
    if BUSYBOX is None:
        pytest.skip("no busybox on this machine")
    (empty / "bin").mkdir()
    shutil.copy2(BUSYBOX, empty / "bin" / "busybox")
    for name in ("sh", "ls", "cat", "echo", "sleep", "setsid", "true", "grep", "kill", "wc"):
        (empty / "bin" / name).symlink_to("busybox")
    return empty


@pytest.fixture
def no_proc(busybox):
    """Commands in the background want a /dev/null for input; a file does, and needs no right to make devices."""
    (busybox / "dev").mkdir()
    (busybox / "dev" / "null").touch()
    return busybox


@pytest.fixture
def start():
    mine = []

    def begin(*args, **kwargs):
        mine.append(Jailed(*args, **kwargs))
        return mine[-1]

    yield begin
    for s in mine:
        log, status = s.log, s.stop()
        s.remove()
        assert status == 0, f"ended with {status}:\n{log}"


def post(server, route, /, **body):
    answer = requests.post(server.url + route, json=body, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


def move_files(server, jail):
    up = requests.post(server.url + "/upload", files={"file": ("deep/er/a.txt", b"\0bytes\n")}, timeout=10)
    assert up.status_code == 200, up.text
    assert (jail / "deep/er/a.txt").read_bytes() == b"\0bytes\n"
    assert requests.get(server.url + "/download/deep/er/a.txt", timeout=10).content == b"\0bytes\n"
    assert [f["name"] for f in requests.get(server.url + "/list/deep/er", timeout=10).json()] == ["a.txt"]
    assert requests.put(server.url + "/v1/files/b.txt", data=b"two", timeout=10).status_code < 300
    assert requests.get(server.url + "/v1/files/b.txt", timeout=10).content == b"two"
    post(server, "/write", path="/c.txt", content_b64=base64.b64encode(b"three").decode())
    assert (jail / "c.txt").read_bytes() == b"three"


def test_an_empty_root(start, empty):
    """Files and probes work; a command is an answer that says why not."""
    server = start(empty)
    assert requests.get(server.url + "/", timeout=5).json()["status"] == "ok"
    assert requests.get(server.url + "/v1/health", timeout=5).status_code == 200
    assert requests.get(server.url + "/health", timeout=5).json() == {"ready": True}
    move_files(server, empty)
    got = post(server, "/execute", command="true")
    assert got["exit_code"] != 0 and "No such file or directory" in got["stderr"]
    got = requests.post(server.url + "/exec", json={"command": "true", "timeout_seconds": 5}, timeout=10)
    assert "No such file or directory" in got.text or got.json().get("exit_code") == 127, got.text
    got = post(server, "/execute", command="/silica-runtime --version")
    assert got["exit_code"] == 0 and "silica-runtime " in got["stdout"]


def test_a_busybox_root(start, busybox):
    server = start(busybox)
    move_files(server, busybox)
    got = post(server, "/execute", command="sh -c 'echo out; ls /; cat; echo err >&2; exit 3'")
    assert got["exit_code"] == 3 and got["stderr"] == "err\n"
    assert got["stdout"].split() == ["out", "b.txt", "bin", "c.txt", "deep", "silica-runtime"]
    assert post(server, "/exec", command="echo a; cat; echo b >&2", timeout_seconds=5)["output"] == "a\nb\n"
    assert "c.txt" in str(post(server, "/grep", pattern="thr[e]+", path="/"))
    assert "deep/er/a.txt" in str(post(server, "/glob", pattern="**/*.txt", path="/"))


def test_grpc_in_a_busybox_root(start, busybox):
    """Commands stream; a terminal, which only /dev can give, is refused in words."""
    server = start(busybox)
    with grpc.insecure_channel(server.grpc_address) as channel:
        stub = pb.Stub(channel)
        done = stub.Execute(pb.execute("sh", "-c", "echo out; exit 4"), timeout=20)
        assert (done.exit_code, done.stdout) == (4, b"out\n")
        with pytest.raises(grpc.RpcError) as e:
            list(stub.Start(pb.start("sh", pty=(80, 24)), timeout=20))
        assert "No such file or directory" in e.value.details(), e.value
        kinds = [m.WhichOneof("event") for m in stub.Start(pb.start("echo", "x"), timeout=20)]
        assert kinds == ["init", "stdout", "exit"]


def ends_at_its_deadline(server, command, marks):
    began = time.monotonic()
    got = post(server, "/execute", command=command, timeout_seconds=1)
    assert got["timed_out"] and got["exit_code"] == 124
    assert time.monotonic() - began < 6
    for mark in marks:
        wait_until(lambda: not proc.with_argument(mark), 5, f"'{mark}' of {command} is gone")


@pytest.mark.parametrize("command", [
    "sleep {0}",
    "sh -c 'sleep {0} & sleep {1}'",
    "sh -c 'sleep {0} & exit 0'",
    "sh -c 'trap \"\" TERM INT HUP; sleep {0} & sleep {1}; sleep {2}'",
])
def test_without_proc_a_deadline_ends_the_group(start, no_proc, command):
    """No /proc to find descendants in: what stayed in the command's group ends all the same."""
    server = start(no_proc)
    marks = [proc.unique_sleep() for _ in range(3)]
    ends_at_its_deadline(server, command.format(*marks), marks)
    assert post(server, "/execute", command="echo still here")["stdout"] == "still here\n"


def test_without_proc_what_left_the_group_holds_up_nothing(start, no_proc):
    """Nobody can find it there, but the answer comes and the server goes on, and stops when told to."""
    server = start(no_proc)
    mark = proc.unique_sleep()
    try:
        ends_at_its_deadline(server, f"sh -c 'setsid sleep {mark} & sleep 60'", [])
        assert post(server, "/execute", command="echo still here")["stdout"] == "still here\n"
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 15
    finally:
        for pid in proc.with_argument(mark):
            os.kill(pid, 9)


def test_without_proc_a_stop_ends_commands(start, no_proc):
    server = start(no_proc)
    mark = proc.unique_sleep()
    with pytest.raises(requests.exceptions.ReadTimeout):
        requests.post(server.url + "/exec", json={"command": f"sleep {mark} & sleep {mark}", "timeout_seconds": 60}, timeout=0.5)
    wait_until(lambda: not proc.with_argument(mark), 5, "its client left, so it ends")
    waiting = threading.Thread(target=lambda: post(server, "/execute", command=f"sh -c 'sleep {mark} & sleep {mark}'"))
    waiting.start()
    wait_until(lambda: len(proc.with_argument(mark)) == 2, 5)
    assert server.stop() == 0
    waiting.join()
    wait_until(lambda: not proc.with_argument(mark), 5, "ended with the server")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("has_dev", [True, False], ids=["dev", "no-dev"])
def test_with_closed_stdio(start, busybox, closed, has_dev):
    """Sockets and files must not land on 0, 1 and 2, where logs would go into them and children would get them."""
    server = start(None if has_dev else busybox, before=["sh", "-c", f'exec "$@" {closed}', "sh"])
    for _ in range(3):
        got = post(server, "/execute", command="sh -c 'cat; echo out; echo err >&2'")
        assert (got["stdout"], got["stderr"], got["exit_code"]) == ("out\n", "err\n", 0)
    if not has_dev:
        move_files(server, busybox)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_with_closed_stdio_the_main_command_has_one(closed):
    """An empty input and two outputs that take what is written, not the descriptors of the server."""
    script = f'exec "$@" {closed}'
    argv = [binary(), "--listen", "127.0.0.1:0", "--", "sh", "-c", "echo out && echo err >&2 && cat && exit 7"]
    done = subprocess.run(["sh", "-c", script, "sh", *argv], stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    assert done.returncode == 7, done.stderr


def test_started_with_ignored_signals(start):
    """nohup and a shell's & start the server so. It heeds them itself, but commands are not their jobs."""
    ignore = "import os, signal, sys; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 17)]; os.execv(sys.argv[1], sys.argv[1:])"
    server = start(None, before=[sys.executable, "-c", ignore])
    for number, status in ((1, -1), (2, -2), (3, -3), (15, -15)):
        got = post(server, "/execute", command=f"sh -c 'kill -{number} $$; sleep 0.1; echo alive'")
        assert (got["stdout"], got["exit_code"]) == ("", status)
    for number in (1, 2, 3):
        server.signal(number)
    assert post(server, "/execute", command="echo here")["stdout"] == "here\n"
    assert requests.get(server.url + "/v1/health", timeout=5).status_code == 200

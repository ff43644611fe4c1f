"""What release 1.0 added: command_timeout, env and cwd, streamed uploads, read_to, delete."""

import io
import os
import time

import pytest
from k8s_agent_sandbox import models
from k8s_agent_sandbox.exceptions import SandboxRequestError

from harness import proc
from harness.server import wait_until


class Stream(io.RawIOBase):
    """A file object that cannot be measured or rewound: the SDK must send it chunked."""

    def __init__(self, total, piece=b"0123456789abcdef"):
        self.left, self.piece = total, piece

    def readable(self):
        return True

    def read(self, n=-1):
        n = self.left if n < 0 else min(n, self.left)
        self.left -= n
        return (self.piece * (n // len(self.piece) + 1))[:n]


@pytest.mark.core
@pytest.mark.ours
def test_command_timeout(box):
    mark = proc.unique_sleep()
    began = time.monotonic()
    r = box.run(f"sleep {mark}", command_timeout=1)
    assert r.timed_out is True
    assert r.exit_code == 124
    assert time.monotonic() - began < 8
    wait_until(lambda: not proc.with_argument(mark), 5, "the command died")
    assert box.run("echo next").stdout == "next\n"


@pytest.mark.core
@pytest.mark.ours
def test_command_timeout_kills_descendants(box):
    mark = proc.unique_sleep()
    r = box.run(box.shell(f"setsid sleep {mark} & (sleep {mark} &); sleep {mark}"), command_timeout=1)
    assert r.timed_out is True
    wait_until(lambda: not proc.with_argument(mark), 10, "descendants died, those that left the session too")


def test_command_timeout_not_reached(box):
    r = box.run("echo quick", command_timeout=30.5)
    assert (r.stdout, r.exit_code, r.timed_out) == ("quick\n", 0, False)


@pytest.mark.ours
def test_command_timeout_longer_than_the_call_timeout(box):
    r = box.run(box.shell("sleep 2; echo late"), timeout=1, command_timeout=20)
    assert (r.stdout, r.timed_out) == ("late\n", False)


@pytest.mark.ours
def test_output_that_is_not_utf8(box):
    r = box.run(box.shell(r"printf \"a\\377b\"; exit 3".replace('\\"', '"')))
    assert (r.stdout, r.exit_code) == ("a\ufffdb", 3)


def test_env_and_cwd(box):
    (box.root / "work").mkdir(exist_ok=True)
    if box.family == "execute":
        with pytest.raises(NotImplementedError):
            box.run("true", env={"A": "b"})
        return
    r = box.run("echo $A; pwd", env={"A": "b c"}, cwd="work")
    assert r.stdout.splitlines() == ["b c", str(box.root / "work")]


def test_cwd_outside(box):
    if box.family == "execute":
        pytest.skip("contract A has no cwd")
    with pytest.raises(RuntimeError, match="PERMISSION_DENIED"):
        box.run("pwd", cwd="../..")


@pytest.mark.core
def test_streamed_write(box):
    total = 20 << 20
    box.files.write("streamed/deep/file.bin", Stream(total))
    data = (box.root / "streamed/deep/file.bin").read_bytes()
    assert len(data) == total
    assert data == (b"0123456789abcdef" * (1 << 16)) * 20  # pieces line up: each read is a multiple of 16


def test_streamed_write_of_nothing(box):
    box.files.write("streamed.empty", Stream(0))
    assert (box.root / "streamed.empty").read_bytes() == b""


def test_write_nested(box):
    box.files.write("a/b/c.txt", b"nested")
    assert (box.root / "a/b/c.txt").read_bytes() == b"nested"
    assert box.files.read("/a/b/c.txt") == b"nested"


def test_read_to(box, tmp_path):
    content = os.urandom(3 << 20)
    (box.root / "big.bin").write_bytes(content)

    class Sink:
        def __init__(self):
            self.data = bytearray()

        def write(self, piece):
            self.data += piece
            return len(piece)

    class AsyncSink(Sink):
        async def write(self, piece):
            self.data += piece
            return len(piece)

    sink = Sink() if box.style == "sync" else AsyncSink()
    assert box.files.read_to("big.bin", sink) == len(content)
    assert bytes(sink.data) == content
    with pytest.raises(RuntimeError, match="limit"):
        box.files.read_to("big.bin", Sink() if box.style == "sync" else AsyncSink(), max_bytes=1000)
    assert box.files.exists("big.bin") is True


def test_list_times_and_modes(box):
    path = box.root / "stamped"
    path.write_bytes(b"x")
    path.chmod(0o640)
    os.utime(path, (1700000000, 1700000000))
    entry = {e.name: e for e in box.files.list("")}["stamped"]
    assert entry.modified.timestamp() == 1700000000
    if box.family == "sandboxd":
        assert entry.mode == "0640"


@pytest.mark.core
def test_delete(box):
    (box.root / "gone").write_bytes(b"")
    (box.root / "full").mkdir(exist_ok=True)
    (box.root / "full" / "f").write_bytes(b"")
    if box.family == "execute":
        with pytest.raises(NotImplementedError):
            box.files.delete("gone")
        return
    box.files.delete("gone")
    assert not (box.root / "gone").exists()
    for path, want in (("gone", 404), ("full", 409)):
        with pytest.raises(SandboxRequestError) as e:
            box.files.delete(path)
        assert e.value.status_code == want
    box.files.delete("full", recursive=True)
    assert not (box.root / "full").exists()


@pytest.mark.core
def test_unsafe_paths_are_refused_by_the_server(box):
    for call in (lambda: box.files.write("../escaped", b"x", allow_unsafe_paths=True),
                 lambda: box.files.read("../../etc/passwd", allow_unsafe_paths=True)):
        with pytest.raises(SandboxRequestError) as e:
            call()
        assert e.value.status_code == 403
    assert not (box.root.parent / "escaped").exists()


@pytest.mark.ours
def test_list_dot_in_both_spellings(box):
    (box.root / "dots").mkdir(exist_ok=True)
    (box.root / "dots" / "x").write_bytes(b"")
    assert {e.name for e in box.files.list(".")} == {p.name for p in box.root.iterdir()}
    assert [e.name for e in box.files.list("dots/.")] == ["x"]


@pytest.mark.contract("B")
@pytest.mark.parametrize("style", ["sync", "async"])
def test_service_mode(open_box, runtime, style):
    config = models.SandboxdInClusterConnectionConfig(mode="in-cluster-service", rest_port=runtime.ports[0],
                                                      grpc_port=runtime.ports[1])
    box = open_box("sandboxd", style, runtime, config=config)
    assert box.run("echo hi").stdout == "hi\n"
    box.files.write("service", b"x")
    assert box.files.read("service") == b"x"


@pytest.mark.contract("A")
@pytest.mark.parametrize("style", ["sync", "async"])
def test_in_cluster_mode(open_box, runtime, style):
    config = models.SandboxInClusterConnectionConfig(server_port=runtime.port)
    box = open_box("execute", style, runtime, config=config)
    assert box.run("echo hi").stdout == "hi\n"
    box.files.write("in/cluster", b"x")
    assert box.files.read("in/cluster") == b"x"


@pytest.mark.ours
@pytest.mark.contract("A")
@pytest.mark.parametrize("style", ["sync", "async"])
def test_token_as_an_extra_header(open_box, start_runtime, style):
    guarded = start_runtime(token="s3cret")
    bare = open_box("execute", style, guarded)
    with pytest.raises(SandboxRequestError) as e:
        bare.run("true")
    assert e.value.status_code == 401
    config = models.SandboxDirectConnectionConfig(api_url=guarded.url, extra_headers={"Authorization": "Bearer s3cret"})
    box = open_box("execute", style, guarded, config=config)
    assert box.run("echo in").stdout == "in\n"
    box.files.write("x", b"y")
    assert box.files.read("x") == b"y"


@pytest.mark.ours
@pytest.mark.contract("B")
def test_sandboxd_calls_without_the_token(open_box, start_runtime):
    box = open_box("sandboxd", "sync", start_runtime(token="s3cret"))
    with pytest.raises(RuntimeError, match="UNAUTHENTICATED"):
        box.run("true")
    with pytest.raises(SandboxRequestError) as e:
        box.files.read("x")
    assert e.value.status_code == 401

"""grpcio, unmodified, against process.v1.ProcessService."""

import concurrent.futures
import os
import threading
import time

import grpc
import pytest

from harness import proc
from harness import process_pb as pb
from harness.server import wait_until

pytestmark = pytest.mark.contract("B")
Code = grpc.StatusCode


@pytest.fixture(scope="module")
def channel(runtime):
    with grpc.insecure_channel(runtime.grpc_address) as c:
        yield c


@pytest.fixture(scope="module")
def stub(channel):
    return pb.Stub(channel)


def refusal(call, *args, **kwargs):
    with pytest.raises(grpc.RpcError) as e:
        got = call(*args, **kwargs)
        list(got) if hasattr(got, "__iter__") else got
    return e.value


def events(stream):
    """Collects a Start stream: its id, both outputs and the exit code."""
    pid, out, err, code = None, b"", b"", None
    for m in stream:
        kind = m.WhichOneof("event")
        assert code is None, "a message after exit"
        if kind == "init":
            assert pid is None, "two init messages"
            pid = m.init.process_id
        elif kind == "stdout":
            out += m.stdout
        elif kind == "stderr":
            err += m.stderr
        else:
            code = m.exit.exit_code
    return pid, out, err, code


# ---- Execute


@pytest.mark.core
@pytest.mark.parametrize("command, want", [
    (["echo", "hello"], (0, b"hello\n", b"")),
    (["true"], (0, b"", b"")),
    (["sh", "-c", "echo out; echo err >&2; exit 3"], (3, b"out\n", b"err\n")),
    (["sh", "-c", "kill -9 $$"], (-1, b"", b"")),
    (["sh", "-c", "kill -15 $$"], (-1, b"", b"")),
    (["sh", "-c", "exit 255"], (255, b"", b"")),
    (["printf", "%s|", "a b", "$HOME", "*", ""], (0, b"a b|$HOME|*||", b"")),
    (["printf", "\\377\\000\\001"], (0, b"\xff\0\1", b"")),
    (["cat"], (0, b"", b"")),
], ids=lambda v: " ".join(v)[:30] if isinstance(v, list) else "")
def test_execute(stub, command, want):
    r = stub.Execute(pb.execute(*command), timeout=20)
    assert (r.exit_code, r.stdout, r.stderr) == want


def test_execute_env_and_cwd(stub, runtime):
    (runtime.root / "sub").mkdir(exist_ok=True)
    r = stub.Execute(pb.execute("sh", "-c", "pwd; echo $A; echo ${PATH:+has path}", env={"A": "b c"}, cwd="sub"))
    assert r.stdout.decode().splitlines() == [str(runtime.root / "sub"), "b c", "has path"]


def test_execute_default_cwd_is_the_root(stub, runtime):
    assert stub.Execute(pb.execute("pwd")).stdout.decode().strip() == str(runtime.root)


def test_execute_absolute_cwd_is_rooted(stub, runtime):
    (runtime.root / "sub").mkdir(exist_ok=True)
    for cwd in ("/sub", str(runtime.root / "sub"), "x/../sub", "./sub/"):
        assert stub.Execute(pb.execute("pwd", cwd=cwd)).stdout.decode().strip() == str(runtime.root / "sub"), cwd


@pytest.mark.core
@pytest.mark.parametrize("request_, code, text", [
    (pb.ExecuteRequest(), Code.INVALID_ARGUMENT, "command is required"),
    (pb.execute(), Code.INVALID_ARGUMENT, "command is required"),
    (pb.execute("no-such-program-here"), Code.NOT_FOUND, "command or path not found"),
    (pb.execute("/no/such/program"), Code.NOT_FOUND, "command or path not found"),
    (pb.execute("/etc/passwd"), Code.PERMISSION_DENIED, "failed to execute command"),
    (pb.execute("pwd", cwd="../.."), Code.PERMISSION_DENIED, "cwd"),
    (pb.execute("pwd", cwd="missing"), Code.NOT_FOUND, ""),
], ids=["empty message", "empty command", "unknown name", "unknown path", "not executable", "cwd escapes", "cwd missing"])
def test_execute_errors(stub, request_, code, text):
    e = refusal(stub.Execute, request_, timeout=20)
    assert e.code() == code, e.details()
    assert text in e.details()


def test_execute_cwd_through_a_link_that_leaves(stub, runtime):
    link = runtime.root / "out"
    if not link.is_symlink():
        link.symlink_to("/")
    assert refusal(stub.Execute, pb.execute("pwd", cwd="out/tmp")).code() == Code.PERMISSION_DENIED


def test_execute_deadline(stub):
    began = time.monotonic()
    e = refusal(stub.Execute, pb.execute("sleep", "30"), timeout=0.5)
    assert e.code() == Code.DEADLINE_EXCEEDED
    assert time.monotonic() - began < 10
    assert stub.Execute(pb.execute("true")).exit_code == 0


@pytest.mark.core
def test_execute_deadline_kills_the_command(stub):
    mark = proc.unique_sleep()
    refusal(stub.Execute, pb.execute("sleep", mark), timeout=0.5)
    wait_until(lambda: not proc.with_argument(mark), 10, "the command died")


@pytest.mark.ours
@pytest.mark.core
def test_execute_deadline_kills_the_whole_tree(stub):
    mark = proc.unique_sleep()
    refusal(stub.Execute, pb.execute("sh", "-c", f"setsid sleep {mark} & (sleep {mark} &) ; sleep {mark}"), timeout=1)
    wait_until(lambda: not proc.with_argument(mark), 10, "descendants died")


@pytest.mark.core
def test_execute_cancel_kills(stub):
    mark = proc.unique_sleep()
    call = stub.Execute.future(pb.execute("sleep", mark))
    wait_until(lambda: proc.with_argument(mark), 10, "the command runs")
    call.cancel()
    wait_until(lambda: not proc.with_argument(mark), 10, "the command died")


def test_execute_many_at_once(stub):
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        results = list(pool.map(lambda i: stub.Execute(pb.execute("echo", str(i)), timeout=60), range(200)))
    assert [r.stdout for r in results] == [b"%d\n" % i for i in range(200)]


def test_execute_large_output(stub):
    r = stub.Execute(pb.execute("head", "-c", "3000000", "/dev/zero"), timeout=30)
    assert len(r.stdout) == 3000000 and r.exit_code == 0


@pytest.mark.ours
def test_execute_output_past_the_default_client_limit(start_runtime):
    server = start_runtime("--grpc-output-limit", "8MiB")
    with grpc.insecure_channel(server.grpc_address, options=[("grpc.max_receive_message_length", -1)]) as c:
        r = pb.Stub(c).Execute(pb.execute("head", "-c", "6000000", "/dev/zero"), timeout=30)
    assert len(r.stdout) == 6000000


@pytest.mark.ours
def test_execute_output_is_cut_where_a_default_client_still_takes_it(stub):
    r = stub.Execute(pb.execute("sh", "-c", "head -c 6000000 /dev/zero; exit 3"), timeout=30)
    assert r.exit_code == 3
    assert 4000000 < len(r.stdout) < 4 << 20
    assert f"{len(r.stdout)} of 6000000 bytes kept" in r.stderr.decode()


def test_request_over_4_mib(stub):
    e = refusal(stub.Execute, pb.execute("true", env={"A": "x" * (5 << 20)}), timeout=20)
    assert e.code() == Code.RESOURCE_EXHAUSTED
    assert stub.Execute(pb.execute("true")).exit_code == 0


def test_request_just_under_4_mib(stub):
    # the kernel refuses an argument this long, the message itself is fine: anything but RESOURCE_EXHAUSTED
    e = refusal(stub.Execute, pb.execute("true", env={"A": "x" * ((4 << 20) - 64)}), timeout=20)
    assert e.code() == Code.INTERNAL, e.details()


def test_gzip_is_refused(runtime):
    with grpc.insecure_channel(runtime.grpc_address, compression=grpc.Compression.Gzip) as c:
        e = refusal(pb.Stub(c).Execute, pb.execute("echo", "x" * 2000), timeout=20)
    assert e.code() == Code.UNIMPLEMENTED


def test_unknown_methods(channel):
    for path in ("/process.v1.ProcessService/Nope", "/no.such.Service/Execute", "/grpc.health.v1.Health/Check"):
        call = channel.unary_unary(path, request_serializer=bytes, response_deserializer=bytes)
        assert refusal(call, b"", timeout=20).code() == Code.UNIMPLEMENTED, path


def test_garbage_message(channel):
    call = channel.unary_unary("/process.v1.ProcessService/Execute", request_serializer=bytes,
                               response_deserializer=bytes)
    for body in (b"\xff\xff\xff", b"\x0a\x7f", b"\x0a\x04\x0a\x02\xff\xfe"):
        assert refusal(call, body, timeout=20).code() == Code.INTERNAL, body


def test_unknown_fields_are_skipped(channel):
    call = channel.unary_unary("/process.v1.ProcessService/Execute", request_serializer=bytes,
                               response_deserializer=pb.ExecuteResponse.FromString)
    body = pb.execute("echo", "x").SerializeToString() + b"\x98\x06\x01" + b"\xa2\x06\x03abc"
    assert call(body, timeout=20).stdout == b"x\n"


# ---- Start


@pytest.mark.core
def test_start_streams(stub):
    pid, out, err, code = events(stub.Start(pb.start("sh", "-c", "echo out; echo err >&2; exit 7"), timeout=20))
    assert pid > 0
    assert (out, err, code) == (b"out\n", b"err\n", 7)


def test_start_ids_count_up(stub):
    ids = [events(stub.Start(pb.start("true"), timeout=20))[0] for _ in range(3)]
    assert ids == sorted(set(ids))


def test_start_sends_output_as_it_comes(stub):
    stream = stub.Start(pb.start("sh", "-c", "echo one; read x; echo two"), timeout=20)
    pid = next(stream).init.process_id
    assert next(stream).stdout == b"one\n"
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, input=b"\n"))
    assert next(stream).stdout == b"two\n"
    assert next(stream).WhichOneof("event") == "exit"


def test_start_chunks_are_at_most_4096(stub):
    sizes = [len(m.stdout) for m in stub.Start(pb.start("head", "-c", "1000000", "/dev/zero"), timeout=30)
             if m.WhichOneof("event") == "stdout"]
    assert sum(sizes) == 1000000 and max(sizes) <= 4096


@pytest.mark.core
def test_start_stdin_and_eof(stub):
    stream = stub.Start(pb.start("cat"), timeout=20)
    pid = next(stream).init.process_id
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, input=b"abc"))
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, input=b""))
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid))
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, eof=pb.Empty()))
    _, out, _, code = events(stream)
    assert (out, code) == (b"abc", 0)
    assert refusal(stub.WriteStdin, pb.WriteStdinRequest(process_id=pid, input=b"x")).code() == Code.NOT_FOUND


def test_start_large_stdin(stub):
    stream = stub.Start(pb.start("wc", "-c"), timeout=60)
    pid = next(stream).init.process_id
    for _ in range(8):
        stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, input=b"x" * 500000), timeout=30)
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, eof=pb.Empty()))
    assert events(stream)[1].strip() == b"4000000"


def test_stdin_after_eof(stub):
    stream = stub.Start(pb.start("sleep", "20"), timeout=30)
    pid = next(stream).init.process_id
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, eof=pb.Empty()))
    assert refusal(stub.WriteStdin, pb.WriteStdinRequest(process_id=pid, input=b"x"), timeout=20).code() == Code.INTERNAL
    assert refusal(stub.WriteStdin, pb.WriteStdinRequest(process_id=pid, eof=pb.Empty()), timeout=20).code() == Code.INTERNAL
    stub.SendSignal(pb.SendSignalRequest(process_id=pid, signal=9))
    events(stream)


@pytest.mark.core
@pytest.mark.parametrize("signal", [2, 9, 15])
def test_signals(stub, signal):
    stream = stub.Start(pb.start("sleep", "30"), timeout=30)
    pid = next(stream).init.process_id
    stub.SendSignal(pb.SendSignalRequest(process_id=pid, signal=signal))
    assert events(stream)[3] == -1


def test_signal_reaches_the_group(stub):
    mark = proc.unique_sleep()
    stream = stub.Start(pb.start("sh", "-c", f"sleep {mark} & echo ready; wait"), timeout=30)
    pid = next(stream).init.process_id
    assert next(stream).stdout == b"ready\n"
    stub.SendSignal(pb.SendSignalRequest(process_id=pid, signal=15))
    assert events(stream)[3] == -1
    wait_until(lambda: not proc.with_argument(mark), 10, "the child of the child died")


def test_signal_can_be_trapped(stub):
    stream = stub.Start(pb.start("sh", "-c", "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.05; done"),
                        timeout=30)
    pid = next(stream).init.process_id
    assert next(stream).stdout == b"ready\n"
    stub.SendSignal(pb.SendSignalRequest(process_id=pid, signal=15))
    _, out, _, code = events(stream)
    assert (out, code) == (b"got\n", 5)


@pytest.mark.parametrize("signal", [0, 1, 64, -1])
def test_other_signals_are_refused(stub, signal):
    stream = stub.Start(pb.start("sleep", "30"), timeout=30)
    pid = next(stream).init.process_id
    e = refusal(stub.SendSignal, pb.SendSignalRequest(process_id=pid, signal=signal))
    assert e.code() == Code.INVALID_ARGUMENT
    stub.SendSignal(pb.SendSignalRequest(process_id=pid, signal=9))
    assert events(stream)[3] == -1


@pytest.mark.parametrize("method, request_", [
    ("WriteStdin", pb.WriteStdinRequest(process_id=424242, input=b"x")),
    ("SendSignal", pb.SendSignalRequest(process_id=424242, signal=9)),
    ("SendSignal", pb.SendSignalRequest(process_id=424242, signal=0)),
    ("ResizeTTY", pb.ResizeTTYRequest(process_id=424242, cols=1, rows=1)),
], ids=["WriteStdin", "SendSignal", "SendSignal unspecified", "ResizeTTY"])
def test_unknown_process(stub, method, request_):
    e = refusal(getattr(stub, method), request_)
    assert e.code() == Code.NOT_FOUND
    assert "424242" in e.details()


@pytest.mark.parametrize("request_, code", [
    (pb.StartRequest(), Code.INVALID_ARGUMENT),
    (pb.start("no-such-program-here"), Code.NOT_FOUND),
    (pb.start("/etc/passwd"), Code.PERMISSION_DENIED),
    (pb.start("pwd", cwd="../.."), Code.PERMISSION_DENIED),
    (pb.start("no-such-program-here", pty=(80, 24)), Code.NOT_FOUND),
], ids=["empty", "unknown", "not executable", "cwd escapes", "unknown with a terminal"])
def test_start_errors(stub, request_, code):
    e = refusal(stub.Start, request_, timeout=20)
    assert e.code() == code, e.details()


@pytest.mark.core
def test_cancelled_stream_kills(stub):
    mark = proc.unique_sleep()
    stream = stub.Start(pb.start("sleep", mark))
    next(stream)
    wait_until(lambda: proc.with_argument(mark), 10, "the command runs")  # exec returns before its argv is in /proc
    stream.cancel()
    wait_until(lambda: not proc.with_argument(mark), 10, "the command died")


def test_lost_connection_kills(runtime):
    mark = proc.unique_sleep()
    channel = grpc.insecure_channel(runtime.grpc_address)
    stream = pb.Stub(channel).Start(pb.start("sleep", mark))
    next(stream)
    channel.close()
    wait_until(lambda: not proc.with_argument(mark), 10, "the command died")


def test_slow_reader_holds_the_command(stub):
    # yes(1) would produce gigabytes; with nobody reading it must stand still instead of filling memory
    stream = stub.Start(pb.start("yes"), timeout=60)
    pid = next(stream).init.process_id
    total = 0
    for m in stream:
        total += len(m.stdout)
        if total > 1 << 20:
            break
    time.sleep(1)
    stub.SendSignal(pb.SendSignalRequest(process_id=pid, signal=9))
    stream.cancel()
    assert stub.Execute(pb.execute("true"), timeout=20).exit_code == 0


def test_background_child_does_not_hold_the_stream_for_ever(stub):
    mark = proc.unique_sleep()
    began = time.monotonic()
    _, out, _, code = events(stub.Start(pb.start("sh", "-c", f"sleep {mark} & echo hi"), timeout=40))
    assert (out, code) == (b"hi\n", 0)
    assert time.monotonic() - began < 15
    for pid in proc.with_argument(mark):  # only a peer leaves it behind
        os.kill(pid, 9)


# ---- terminals


@pytest.mark.core
def test_pty_size(stub):
    pid, out, err, code = events(stub.Start(pb.start("sh", "-c", "sleep 0.2; stty size", pty=(80, 24)), timeout=20))
    assert (out.replace(b"\r", b""), err, code) == (b"24 80\n", b"", 0)


@pytest.mark.ours
def test_pty_size_is_set_before_the_program_starts(stub):
    for _ in range(10):
        assert events(stub.Start(pb.start("stty", "size", pty=(132, 43)), timeout=20))[1] == b"43 132\r\n"


@pytest.mark.ours
def test_pty_output_is_complete(stub):
    for _ in range(10):
        out = events(stub.Start(pb.start("seq", "2000", pty=(80, 24)), timeout=20))[1]
        assert out == b"".join(b"%d\r\n" % i for i in range(1, 2001))


def test_pty_resize(stub):
    command = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done"
    stream = stub.Start(pb.start("sh", "-c", command, pty=(80, 24)), timeout=30)
    pid = next(stream).init.process_id
    seen = b""
    resized = False
    for m in stream:
        seen += m.stdout
        if b"ready" in seen and not resized:
            stub.ResizeTTY(pb.ResizeTTYRequest(process_id=pid, cols=100, rows=50))
            resized = True
        if b"50 100" in seen:
            break
    assert b"50 100" in seen
    stub.SendSignal(pb.SendSignalRequest(process_id=pid, signal=9))
    assert events(stream)[3] == -1


def test_pty_is_a_terminal_and_takes_input(stub):
    stream = stub.Start(pb.start("sh", "-c", "test -t 0 && test -t 1 && test -t 2 && read x && echo got $x",
                                 pty=(0, 0)), timeout=20)
    pid = next(stream).init.process_id
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, input=b"abc\n"))
    _, out, err, code = events(stream)
    assert b"got abc" in out and err == b""
    assert code == 0


def test_pty_interrupt_character(stub):
    mark = proc.unique_sleep()
    stream = stub.Start(pb.start("sh", "-c", f"sleep {mark}; exit 1", pty=(80, 24)), timeout=20)
    pid = next(stream).init.process_id
    # dash loses an interrupt that comes between its fork and the program's exec
    wait_until(lambda: proc.with_argument(mark), 10, "the command runs")
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, input=b"\x03"))
    assert events(stream)[3] in (-1, 130)


@pytest.mark.ours
def test_pty_eof_hangs_up(stub):
    stream = stub.Start(pb.start("sleep", "30", pty=(80, 24)), timeout=20)
    pid = next(stream).init.process_id
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, eof=pb.Empty()))
    assert events(stream)[3] == -1


def test_resize_without_a_terminal(stub):
    stream = stub.Start(pb.start("sleep", "30"), timeout=20)
    pid = next(stream).init.process_id
    e = refusal(stub.ResizeTTY, pb.ResizeTTYRequest(process_id=pid, cols=1, rows=1))
    assert e.code() == Code.FAILED_PRECONDITION
    stub.SendSignal(pb.SendSignalRequest(process_id=pid, signal=9))
    events(stream)


# ---- the channel


def test_many_streams_on_one_channel(stub):
    streams = [stub.Start(pb.start("cat"), timeout=60) for _ in range(60)]
    ids = [next(s).init.process_id for s in streams]
    assert len(set(ids)) == 60
    for i, pid in enumerate(ids):
        stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, input=b"%d" % i), timeout=20)
        stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, eof=pb.Empty()), timeout=20)
    for i, s in enumerate(streams):
        assert events(s)[1:] == (b"%d" % i, b"", 0)


def test_many_channels(runtime):
    def one(i):
        with grpc.insecure_channel(runtime.grpc_address, options=[("grpc.use_local_subchannel_pool", 1)]) as c:
            return pb.Stub(c).Execute(pb.execute("echo", str(i)), timeout=60).stdout

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert list(pool.map(one, range(64))) == [b"%d\n" % i for i in range(64)]


def test_cancels_leave_nothing(stub):
    mark = proc.unique_sleep()
    done = threading.Barrier(9)

    def one():
        for _ in range(5):
            call = stub.Execute.future(pb.execute("sleep", mark))
            time.sleep(0.01)
            call.cancel()
        done.wait(30)

    for _ in range(8):
        threading.Thread(target=one).start()
    done.wait(30)
    wait_until(lambda: not proc.with_argument(mark), 15, "all cancelled commands died")
    assert stub.Execute(pb.execute("true"), timeout=20).exit_code == 0

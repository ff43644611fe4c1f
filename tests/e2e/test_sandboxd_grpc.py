"""process.v1.ProcessService beyond what its clients ask: the wire, statuses and texts, back-pressure, the end of things."""

import http.client
import json
import os
import signal
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
    return e.value.code(), e.value.details()


def begin(stub, *command, **kw):
    """A Start stream whose init was read, and its id."""
    stream = stub.Start(pb.start(*command, **kw), timeout=60)
    return stream, next(stream).init.process_id


def rest(stream):
    """Both outputs and the exit code of what is left of a stream; the order of messages is checked on the way."""
    out, err, code = b"", b"", None
    for m in stream:
        kind = m.WhichOneof("event")
        assert code is None and kind != "init"
        out, err = out + m.stdout, err + m.stderr
        if kind == "exit":
            code = m.exit.exit_code
    return out, err, code


def kill(stub, pid):
    stub.SendSignal(pb.SendSignalRequest(process_id=pid, signal=9), timeout=20)


def raw_call(channel, method, request, stream=False):
    make = channel.unary_stream if stream else channel.unary_unary
    got = make(f"/{pb.SERVICE}/{method}", request_serializer=bytes, response_deserializer=bytes)(request, timeout=20)
    return list(got) if stream else got


# ---- the wire, byte by byte


@pytest.mark.core
def test_messages_on_the_wire(channel):
    execute = lambda *command: raw_call(channel, "Execute", pb.execute(*command).SerializeToString())  # noqa: E731
    assert execute("true") == b""
    assert execute("sh", "-c", "exit 3") == b"\x08\x03"
    assert execute("sh", "-c", "kill -9 $$") == b"\x08" + b"\xff" * 9 + b"\x01"
    assert execute("sh", "-c", "printf o; printf e >&2") == b"\x12\x01o\x1a\x01e"
    first, *middle, last = raw_call(channel, "Start", pb.start("printf", "o").SerializeToString(), stream=True)
    assert first[:2] in (b"\x0a\x02", b"\x0a\x03") and first[2] == 0x08
    assert (middle, last) == ([b"\x12\x01o"], b"\x22\x00")


def test_an_empty_pty_asks_for_a_terminal(channel):
    request = pb.start("sh", "-c", "test -t 0 && printf yes").SerializeToString() + b"\x12\x00"
    assert b"\x12\x03yes" in raw_call(channel, "Start", request, stream=True)


def test_env_vars_the_last_wins(channel):
    entry = lambda k, v: b"\x12" + bytes([len(k) + len(v) + 4]) + b"\x0a" + bytes([len(k)]) + k + b"\x12" + bytes([len(v)]) + v  # noqa: E731
    config = pb.config("printenv", "A").SerializeToString() + entry(b"A", b"one") + entry(b"A", b"two")
    assert raw_call(channel, "Execute", b"\x0a" + bytes([len(config)]) + config) == b"\x12\x04two\n"


def test_config_in_two_pieces_is_one(channel):
    one, two = pb.config("echo").SerializeToString(), pb.config("hi").SerializeToString()
    both = b"".join(b"\x0a" + bytes([len(c)]) + c for c in (one, two))
    assert raw_call(channel, "Execute", both) == b"\x12\x03hi\n"


# ---- what is refused, and how


@pytest.mark.core
@pytest.mark.parametrize("path, text", [
    ("/no.such.Service/Execute", "unknown service no.such.Service"),
    ("/grpc.health.v1.Health/Check", "unknown service grpc.health.v1.Health"),
    (f"/{pb.SERVICE}/Nope", f"unknown method Nope for service {pb.SERVICE}"),
    ("/grpc.reflection.v1.ServerReflection/X", "unknown method X for service grpc.reflection.v1.ServerReflection"),
])
def test_unknown_methods(channel, path, text):
    call = channel.unary_unary(path, request_serializer=bytes, response_deserializer=bytes)
    assert refusal(call, b"", timeout=20) == (Code.UNIMPLEMENTED, text)


@pytest.mark.parametrize("method", list(pb.METHODS))
@pytest.mark.parametrize("body", [b"\xff\xff\xff", b"\x0a\x7f", b"\x0b\x0c", b"\x00\x00", b"\x08" + b"\xff" * 11],
                         ids=["cut tag", "cut field", "groups", "field zero", "long number"])
def test_bytes_that_are_no_message(channel, method, body):
    make = channel.unary_stream if method == "Start" else channel.unary_unary
    call = make(f"/{pb.SERVICE}/{method}", request_serializer=bytes, response_deserializer=bytes)
    assert refusal(call, body, timeout=20)[0] == Code.INTERNAL


@pytest.mark.parametrize("config", [b"\x0a\x02\xff\xfe", b"\x0a\x01a\x1a\x02\xc3\x28", b"\x0a\x01a\x12\x04\x0a\x02\xff\xff",
                                    b"\x0a\x03a\x00b", b"\x0a\x01a\x1a\x03x\x00y"],
                         ids=["command", "cwd", "name of a variable", "NUL in command", "NUL in cwd"])
def test_strings_that_are_no_text(channel, config):
    for method in ("Execute", "Start"):
        make = channel.unary_stream if method == "Start" else channel.unary_unary
        call = make(f"/{pb.SERVICE}/{method}", request_serializer=bytes, response_deserializer=bytes)
        assert refusal(call, b"\x0a" + bytes([len(config)]) + config, timeout=20)[0] == Code.INTERNAL


def test_more_than_4_mib_for_every_method(channel):
    for method in pb.METHODS:
        make = channel.unary_stream if method == "Start" else channel.unary_unary
        call = make(f"/{pb.SERVICE}/{method}", request_serializer=bytes, response_deserializer=bytes)
        assert refusal(call, b"x" * ((4 << 20) + 1), timeout=20)[0] == Code.RESOURCE_EXHAUSTED, method


@pytest.mark.parametrize("start", [False, True], ids=["Execute", "Start"])
def test_refusals_word_for_word(stub, runtime, start):
    (runtime.root / "a-file").write_text("")
    call, make = (stub.Start, pb.start) if start else (stub.Execute, pb.execute)
    op = "failed to start command" if start else "failed to execute command"
    assert refusal(call, make()) == (Code.INVALID_ARGUMENT, "command is required")
    assert refusal(call, make("nope-nope")) == \
        (Code.NOT_FOUND, f"{op}: command or path not found: 'nope-nope': No such file or directory")
    assert refusal(call, make("")) == (Code.INTERNAL, f"{op}: the program's name is empty")
    assert refusal(call, make("/etc/passwd")) == (Code.PERMISSION_DENIED, f"{op}: '/etc/passwd': Permission denied")
    code, text = refusal(call, make("true", cwd="../.."))
    assert code == Code.PERMISSION_DENIED and text.startswith("cwd: ")
    code, text = refusal(call, make("true", cwd="not-there"))
    assert code == Code.NOT_FOUND and text.startswith(f"{op}: command or path not found: ")
    code, text = refusal(call, make("true", cwd="a-file/x"))
    assert code == Code.INTERNAL and text.startswith("cwd: ")
    assert refusal(call, make("true", cwd="a-file"))[0] == Code.INTERNAL
    for name in ("", "A=B"):
        assert refusal(call, make("true", env={name: "x"}))[0] == Code.INVALID_ARGUMENT, name


def test_refusal_with_a_terminal(stub):
    code, text = refusal(stub.Start, pb.start("nope-nope", pty=(80, 24)))
    assert code == Code.NOT_FOUND and text.startswith("failed to start command with PTY: command or path not found: ")


def test_a_script_without_an_interpreter(stub, runtime):
    script = runtime.root / "plain-script"
    script.write_text("echo hi\n")
    script.chmod(0o755)
    assert refusal(stub.Execute, pb.execute("./plain-script"))[0] == Code.INTERNAL
    script.write_text("#!/bin/sh\necho hi\n")
    assert stub.Execute(pb.execute("./plain-script"), timeout=20).stdout == b"hi\n"


def test_a_failed_start_uses_up_an_id(stub):
    first = begin(stub, "true")[1]
    refusal(stub.Start, pb.start("nope-nope"))
    assert begin(stub, "true")[1] == first + 2


def test_ids_begin_with_one(start_runtime):
    with grpc.insecure_channel(start_runtime().grpc_address) as c:
        assert [begin(pb.Stub(c), "true")[1] for _ in range(3)] == [1, 2, 3]


def test_a_hundred_ids_at_once_are_unique(stub):
    streams = [stub.Start(pb.start("true"), timeout=60) for _ in range(100)]
    ids = [next(s).init.process_id for s in streams]
    assert len(set(ids)) == 100
    for s in streams:
        assert rest(s) == (b"", b"", 0)


# ---- environment and directory


def test_path_of_the_request_does_not_find_the_program(stub, runtime):
    tool = runtime.root / "bin/private-tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    env = {"PATH": f"{tool.parent}:{os.environ['PATH']}"}
    assert refusal(stub.Execute, pb.execute("private-tool", env=env))[0] == Code.NOT_FOUND
    assert stub.Execute(pb.execute("sh", "-c", "private-tool", env=env), timeout=20).stdout == b"found\n"
    assert stub.Execute(pb.execute("bin/private-tool"), timeout=20).stdout == b"found\n"
    assert stub.Execute(pb.execute("./private-tool", cwd="bin"), timeout=20).stdout == b"found\n"


def test_pwd_says_where(stub, runtime):
    (runtime.root / "where").mkdir(exist_ok=True)
    assert stub.Execute(pb.execute("printenv", "PWD", cwd="where")).stdout.decode().strip() == str(runtime.root / "where")
    assert stub.Execute(pb.execute("printenv", "PWD", cwd="where", env={"PWD": "mine"})).stdout == b"mine\n"


def test_the_token_is_not_for_children(start_runtime):
    server = start_runtime(token="hush")
    with grpc.insecure_channel(server.grpc_address) as c:
        call = pb.Stub(c).Execute
        assert refusal(call, pb.execute("env"))[0] == Code.UNAUTHENTICATED
        out = call(pb.execute("env"), metadata=[("authorization", "Bearer hush")], timeout=20).stdout
        assert out and b"hush" not in out and b"SANDBOX_EXEC_TOKEN" not in out
        assert call(pb.execute("true"), metadata=[("x-sandbox-token", "hush")], timeout=20).exit_code == 0


def test_the_root_comes_back_when_it_was_deleted(start_runtime):
    server = start_runtime()
    with grpc.insecure_channel(server.grpc_address) as c:
        os.rmdir(server.root)
        assert refusal(pb.Stub(c).Execute, pb.execute("pwd"))[0] == Code.NOT_FOUND
        assert pb.Stub(c).Execute(pb.execute("pwd"), timeout=20).stdout.decode().strip() == str(server.root)


# ---- output


def test_output_limit(start_runtime):
    server = start_runtime("--grpc-output-limit", "64KiB")
    share = 65536 // 8  # neither stream can take all
    with grpc.insecure_channel(server.grpc_address) as c:
        r = pb.Stub(c).Execute(pb.execute("sh", "-c", "head -c 200000 /dev/zero; printf err >&2; exit 5"), timeout=20)
        assert (r.exit_code, len(r.stdout)) == (5, 65536 - share)
        assert r.stderr == b"err\n[silica: stdout is cut: %d of 200000 bytes kept]\n" % len(r.stdout)
        r = pb.Stub(c).Execute(pb.execute("sh", "-c", "head -c 200000 /dev/zero >&2; printf out"), timeout=20)
        assert r.stdout == b"out"
        assert r.stderr == b"\0" * (65536 - share) + b"\n[silica: stderr is cut: 200000 bytes in all]\n"


@pytest.mark.core
def test_gigabytes_of_output_cost_a_fixed_buffer(start_runtime):
    server = start_runtime()
    with grpc.insecure_channel(server.grpc_address) as c:
        assert pb.Stub(c).Execute(pb.execute("true"), timeout=20).exit_code == 0
        before = proc.memory(server.pid)["rss"]
        r = pb.Stub(c).Execute(pb.execute("head", "-c", "500000000", "/dev/zero"), timeout=60)
        assert b"of 500000000 bytes kept" in r.stderr
        assert proc.memory(server.pid)["rss"] - before < 40 << 20


@pytest.mark.core
def test_a_slow_client_stops_the_command(runtime, stub):
    stream, pid = begin(stub, "sh", "-c", "echo $$; exec yes")
    child = int(next(stream).stdout.split()[0])

    def written():
        return int(next(line for line in open(f"/proc/{child}/io") if line.startswith("wchar")).split()[1])

    def stands():
        before = written()
        time.sleep(0.3)
        return before == written()

    wait_until(stands, 20, "the command blocks")
    assert written() < 64 << 20
    assert proc.memory(runtime.pid)["rss"] < 100 << 20
    before = written()
    got = 0
    for m in stream:
        got += len(m.stdout)
        if got > before + (1 << 20):
            break
    assert written() > before, "it goes on once the client reads"
    kill(stub, pid)
    assert rest(stream)[2] == -1


def test_nothing_is_lost_when_the_client_is_slow(stub):
    stream, _ = begin(stub, "seq", "300000")
    time.sleep(6)  # longer than a pipe is waited for after the end: here it is us who do not read
    out, err, code = rest(stream)
    assert (err, code) == (b"", 0)
    assert out == b"".join(b"%d\n" % i for i in range(1, 300001))


def test_chunk_size(start_runtime):
    server = start_runtime("--stream-chunk-size", "100")
    with grpc.insecure_channel(server.grpc_address) as c:
        sizes = [len(m.stdout) for m in pb.Stub(c).Start(pb.start("head", "-c", "10000", "/dev/zero"), timeout=20)]
    assert sum(sizes) == 10000 and max(sizes) == 100


@pytest.mark.core
def test_execute_returns_what_there_is_when_a_background_process_holds_the_pipe(stub):
    mark = proc.unique_sleep()
    began = time.monotonic()
    r = stub.Execute(pb.execute("sh", "-c", f"echo hi; sleep {mark} & exit 4"), timeout=40)
    took = time.monotonic() - began
    assert (r.exit_code, r.stdout) == (4, b"hi\n")
    assert 9 < took < 20
    for pid in proc.with_argument(mark):
        os.kill(pid, signal.SIGKILL)


# ---- stdin


@pytest.mark.core
def test_a_write_waits_for_the_pipe_and_nobody_else_does(stub, runtime):
    stream, pid = begin(stub, "sh", "-c", "read x; sleep 1; wc -c")
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, input=b"go\n"), timeout=20)
    began = time.monotonic()
    write = stub.WriteStdin.future(pb.WriteStdinRequest(process_id=pid, input=b"x" * 1_000_000), timeout=30)
    c = http.client.HTTPConnection("127.0.0.1", runtime.port, timeout=5)
    c.request("GET", "/v1/health")
    assert c.getresponse().status == 200
    assert not write.done()
    write.result()
    assert time.monotonic() - began > 0.5, "the pipe was full until wc began to read"
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, eof=pb.Empty()), timeout=20)
    assert rest(stream) == (b"1000000\n", b"", 0)


def test_writes_that_wait_end_with_the_process(stub):
    stream, pid = begin(stub, "sleep", "60")
    write = stub.WriteStdin.future(pb.WriteStdinRequest(process_id=pid, input=b"x" * 1_000_000), timeout=30)
    wait_until(lambda: not write.done(), 1, "it waits")
    kill(stub, pid)
    assert rest(stream)[2] == -1
    assert write.code() == Code.INTERNAL and write.details().startswith("failed to write stdin: ")


def test_a_write_that_is_given_up_frees_the_queue(stub):
    stream, pid = begin(stub, "sleep", "60")
    for _ in range(4):
        code, _ = refusal(stub.WriteStdin, pb.WriteStdinRequest(process_id=pid, input=b"x" * 4_000_000), timeout=0.3)
        assert code == Code.DEADLINE_EXCEEDED
    kill(stub, pid)
    assert rest(stream)[2] == -1


def test_too_much_waiting_input(stub):
    stream, pid = begin(stub, "sleep", "60")
    writes = [stub.WriteStdin.future(pb.WriteStdinRequest(process_id=pid, input=b"x" * 4_000_000), timeout=30)
              for _ in range(3)]
    refused = wait_until(lambda: [w for w in writes if w.done()], 20, "one is refused")
    assert [w.code() for w in refused] == [Code.RESOURCE_EXHAUSTED]
    kill(stub, pid)
    rest(stream)


def test_stdin_of_a_reader_that_is_gone(stub):
    stream, pid = begin(stub, "sh", "-c", "exec <&-; echo closed; sleep 60")
    assert next(stream).stdout == b"closed\n"
    code, text = refusal(stub.WriteStdin, pb.WriteStdinRequest(process_id=pid, input=b"x"), timeout=20)
    assert code == Code.INTERNAL and text.startswith("failed to write stdin: ")
    kill(stub, pid)
    rest(stream)


def test_second_eof(stub):
    stream, pid = begin(stub, "sleep", "60")
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, eof=pb.Empty()), timeout=20)
    code, text = refusal(stub.WriteStdin, pb.WriteStdinRequest(process_id=pid, eof=pb.Empty()), timeout=20)
    assert code == Code.INTERNAL and text.startswith("failed to close stdin: ")
    kill(stub, pid)
    rest(stream)


@pytest.mark.parametrize("method, request_", [
    ("WriteStdin", lambda i: pb.WriteStdinRequest(process_id=i, input=b"x")),
    ("WriteStdin", lambda i: pb.WriteStdinRequest(process_id=i)),
    ("SendSignal", lambda i: pb.SendSignalRequest(process_id=i, signal=0)),
    ("ResizeTTY", lambda i: pb.ResizeTTYRequest(process_id=i)),
])
@pytest.mark.parametrize("number", [424242, 0, -1, 2**31 - 1, -2**31])
def test_unknown_process(stub, method, request_, number):
    assert refusal(getattr(stub, method), request_(number), timeout=20) == \
        (Code.NOT_FOUND, f"process {number} not found")


def test_an_id_ends_with_its_stream(stub):
    stream, pid = begin(stub, "true")
    assert rest(stream)[2] == 0
    assert refusal(stub.SendSignal, pb.SendSignalRequest(process_id=pid, signal=9))[0] == Code.NOT_FOUND
    stream, pid = begin(stub, "sleep", "60")
    stream.cancel()
    wait_until(lambda: refusal(stub.ResizeTTY, pb.ResizeTTYRequest(process_id=pid))[0] == Code.NOT_FOUND, 10, "forgotten")


# ---- signals, terminals


def test_a_bad_signal_leaves_the_process_killable(stub):
    stream, pid = begin(stub, "sleep", "60")
    for number in (0, 1, 3, 64, -9):
        assert refusal(stub.SendSignal, pb.SendSignalRequest(process_id=pid, signal=number))[0] == Code.INVALID_ARGUMENT
    kill(stub, pid)
    assert rest(stream)[2] == -1


def test_sizes_are_cut_to_16_bits(stub):
    stream, pid = begin(stub, "sh", "-c", "stty size; read x; stty size", pty=(65536 + 90, 65536 * 3 + 30))
    assert next(stream).stdout == b"30 90\r\n"
    stub.ResizeTTY(pb.ResizeTTYRequest(process_id=pid, cols=65536 + 100, rows=40), timeout=20)
    stub.WriteStdin(pb.WriteStdinRequest(process_id=pid, input=b"\n"), timeout=20)
    out, _, code = rest(stream)
    assert out.endswith(b"40 100\r\n") and code == 0


def test_resize_without_a_terminal(stub):
    stream, pid = begin(stub, "sleep", "60")
    assert refusal(stub.ResizeTTY, pb.ResizeTTYRequest(process_id=pid, cols=1, rows=1))[0] == Code.FAILED_PRECONDITION
    kill(stub, pid)
    rest(stream)


def test_a_terminal_is_controlling(stub):
    stream, _ = begin(stub, "sh", "-c", "exec </dev/null >/dev/null; echo here > /dev/tty", pty=(80, 24))
    assert rest(stream) == (b"here\r\n", b"", 0)


# ---- the end


@pytest.mark.core
@pytest.mark.parametrize("method", ["Start", "Execute"])
@pytest.mark.parametrize("how", ["cancel", "deadline", "disconnect"])
def test_a_client_that_leaves_takes_the_tree(runtime, how, method):
    mark = proc.unique_sleep()
    command = ["sh", "-c", f"setsid sleep {mark} & (sleep {mark} &); exec sleep {mark}"]
    c = grpc.insecure_channel(runtime.grpc_address, options=[("grpc.use_local_subchannel_pool", 1)])
    timeout = 2 if how == "deadline" else 60
    if method == "Start":
        call = pb.Stub(c).Start(pb.start(*command), timeout=timeout)
    else:
        call = pb.Stub(c).Execute.future(pb.execute(*command), timeout=timeout)
    wait_until(lambda: len(proc.with_argument(mark)) == 3, 10, "the tree stands")
    if how == "deadline":
        assert call.code() == Code.DEADLINE_EXCEEDED
    elif how == "cancel":
        call.cancel()
    else:
        c.close()
    wait_until(lambda: not proc.with_argument(mark), 10, "the tree is gone")
    c.close()


def test_cancels_during_the_start_leave_nothing(runtime, stub):
    (runtime.root / "somewhere").mkdir(exist_ok=True)
    mark = proc.unique_sleep()
    for i in range(60):
        cwd = "somewhere" if i % 2 else None
        call = stub.Start(pb.start("sleep", mark, cwd=cwd)) if i % 3 else stub.Execute.future(pb.execute("sleep", mark, cwd=cwd))
        if i % 5 == 0:
            time.sleep(0.002)
        call.cancel()
    wait_until(lambda: not proc.with_argument(mark), 15, "all are gone")
    assert stub.Execute(pb.execute("true"), timeout=20).exit_code == 0


@pytest.mark.core
def test_shutdown_ends_streams_with_a_reason(start_runtime):
    server = start_runtime()
    with grpc.insecure_channel(server.grpc_address) as c:
        stream, _ = begin(pb.Stub(c), "sleep", "300")
        running = pb.Stub(c).Execute.future(pb.execute("sleep", "300"))
        wait_until(lambda: len(proc.children(server.pid)) == 2, 10, "both run")
        server.signal(signal.SIGTERM)
        assert rest(stream) == (b"", b"", -1)
        assert running.result().exit_code == -1
    assert server.wait() == 0


def test_no_command_starts_while_stopping(start_runtime):
    server = start_runtime()
    with grpc.insecure_channel(server.grpc_address) as c:
        stream, pid = begin(pb.Stub(c), "sh", "-c", "trap : TERM; echo ready; while :; do sleep 0.05; done")
        assert next(stream).stdout == b"ready\n"
        server.signal(signal.SIGTERM)

        def stopping():
            h = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
            h.request("GET", "/v1/health")
            return h.getresponse().status == 503

        wait_until(stopping, 2, "health says so")
        assert refusal(pb.Stub(c).Execute, pb.execute("true"), timeout=5)[0] == Code.UNAVAILABLE
        assert rest(stream)[2] == -1
    assert server.wait() == 0


def test_no_descriptor_is_left(runtime, stub):
    def work(i):
        if i % 3 == 0:
            stub.Execute(pb.execute("true", cwd="."), timeout=60)
        elif i % 3 == 1:
            rest(begin(stub, "echo", "x", pty=(1, 1))[0])
        else:
            refusal(stub.Start, pb.start("nope-nope"), timeout=60)

    work(0), work(1), work(2)
    before = proc.open_fds(runtime.pid)
    for i in range(90):
        work(i)
    wait_until(lambda: proc.open_fds(runtime.pid) <= before + 2, 10, "descriptors are closed")


# ---- together with files (B.7's integration)


@pytest.mark.core
def test_files_and_commands_see_the_same_tree(runtime, stub):
    def rest_call(method, path, body=None):
        c = http.client.HTTPConnection("127.0.0.1", runtime.port, timeout=20)
        c.request(method, path, body)
        answer = c.getresponse()
        return answer.status, answer.read()

    assert rest_call("GET", "/v1/health")[0] == 200
    assert rest_call("PUT", "/v1/files/shared/hello.txt", b"hello")[0] == 204
    assert stub.Execute(pb.execute("cat", "shared/hello.txt"), timeout=20).stdout == b"hello"
    assert stub.Execute(pb.execute("sh", "-c", "pwd; echo more >> hello.txt", cwd="shared"), timeout=20).stdout.endswith(b"/shared\n")
    assert rest_call("GET", "/v1/files/shared/hello.txt") == (200, b"hellomore\n")
    assert [e["name"] for e in json.loads(rest_call("GET", "/v1/files/shared")[1])["entries"]] == ["hello.txt"]
    assert rest_call("DELETE", "/v1/files/shared/hello.txt")[0] == 204
    assert rest_call("GET", "/v1/files/shared/hello.txt")[0] == 404


def test_reflection_answers_a_client_that_asks_faster_than_it_reads(channel):
    question = b"\x3a\x00"  # list_services
    symbol = b"\x22\x0eprocess.v1.PTY"
    call = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                                 request_serializer=bytes, response_deserializer=bytes)
    sent = threading.Event()

    def ask():
        for i in range(1500):
            yield symbol if i % 2 else question
        sent.set()

    answers = call(ask(), timeout=60)
    time.sleep(1)
    sizes = [len(a) for a in answers]
    assert len(sizes) == 1500 and len(set(sizes)) == 2

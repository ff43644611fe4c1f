"""The Python client, 37.0.2 and 36.0.3: stream() for exec and attach, portforward()."""

import time

import pytest
from kubernetes import client
from kubernetes.stream import portforward, stream


@pytest.fixture
def api(streams):
    """A client of its own: while stream() runs, it changes the one it was given."""
    return client.CoreV1Api(client.ApiClient(streams.configuration()))


def run(api, *command, **kw):
    flags = {"stderr": True, "stdin": False, "stdout": True, "tty": False, **kw}
    return stream(api.connect_get_namespaced_pod_exec, "local", "default", command=list(command), **flags)


def finish(ws, timeout=30):
    ws.run_forever(timeout=timeout)
    assert not ws.is_open()
    return ws.returncode


def test_a_whole_call(api):
    assert run(api, "sh", "-c", "echo out; echo err >&2") == "out\nerr\n"


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
def test_exit_codes(api, code):
    assert finish(run(api, "sh", "-c", f"exit {code}", _preload_content=False)) == code


def test_a_missing_program(api):
    ws = run(api, "no-such-program", _preload_content=False)
    assert finish(ws) == 127
    assert "cannot run 'no-such-program'" in ws.read_stderr()


def test_streams_apart(api):
    ws = run(api, "sh", "-c", "echo out; echo err >&2; exit 2", _preload_content=False)
    assert finish(ws) == 2
    assert ws.read_stdout() == "out\n" and ws.read_stderr() == "err\n"


def test_input(api):
    ws = run(api, "sh", "-c", "while read x; do echo got $x; done", stdin=True, _preload_content=False)
    for word in ("one", "zwei", "três"):
        ws.write_stdin(word + "\n")
        assert ws.readline_stdout(timeout=20) == f"got {word}"
    ws.close()


def test_binary_input_and_its_end(api):
    ws = run(api, "wc", "-c", stdin=True, binary=True, _preload_content=False)
    assert ws.subprotocol == "v5.channel.k8s.io"
    for _ in range(20):
        ws.write_stdin(b"\x00\xff" * 50000)
    ws.close_channel(0)
    assert finish(ws) == 0
    assert ws.read_stdout() == b"2000000\n"


def test_large_output_with_characters_of_many_bytes(api):
    text = run(api, "python3", "-c", "print('aä€😀' * 200000)")
    assert text == "aä€😀" * 200000 + "\n"


def test_it_ends_with_the_process(api):
    began = time.monotonic()
    assert run(api, "sh", "-c", "sleep 40 & echo started") == "started\n"
    assert time.monotonic() - began < 35


def test_a_client_that_is_slow_between_its_channels(api):
    """It looks at one channel after the other until it sees the close, as programs on this client do. What comes in between must
    not come together with the close: release 37 would drop it."""
    for _ in range(10):
        ws, got = run(api, "sh", "-c", "printf a; sleep 0.005; printf ll; printf errors >&2", _preload_content=False), ["", ""]
        while ws.is_open():
            ws.update(timeout=1)
            got[0] += ws.read_stdout() if ws.peek_stdout() else ""
            time.sleep(0.02)
            got[1] += ws.read_stderr() if ws.peek_stderr() else ""
        assert (got, ws.returncode) == (["all", "errors"], 0)


def test_a_terminal(api):
    ws = run(api, "sh", "-c", "read x; stty size", stdin=True, tty=True, _preload_content=False)
    ws.write_channel(4, '{"Width":91,"Height":33}')
    ws.write_stdin("go\n")
    assert finish(ws) == 0
    assert "33 91\r\n" in ws.read_stdout()


def test_a_long_request_line(api):
    words = ["x" * 100000] * 9
    assert run(api, "sh", "-c", "echo n=$#", "sh", *words) == "n=9\n"  # a bare 9 would be read as JSON


def test_attach(api):
    ws = stream(api.connect_get_namespaced_pod_attach, "local", "default", stdin=True, stdout=True, stderr=True, tty=False,
                _preload_content=False)
    ws.write_stdin("to the main process\n")
    assert ws.readline_stdout(timeout=20) == "to the main process"
    ws.close()


@pytest.mark.parametrize("pod,container", [("other", None), ("local", "other")])
def test_refusals_are_told(api, pod, container):
    with pytest.raises((client.ApiException, AttributeError)) as told:  # 36 stumbles over an answer without a body
        extra = {"container": container} if container else {}
        stream(api.connect_get_namespaced_pod_exec, pod, "default", command=["true"], stdout=True, **extra)
    said = f"{told.value} {told.value.__context__}"
    assert "404 Not Found" in said if pod == "other" else "400 Bad Request" in said


def read_to_end(s):
    got = b""
    while more := s.recv(65536):
        got += more
    return got


def test_portforward(api, pages):
    pf = portforward(api.connect_get_namespaced_pod_portforward, "local", "default", ports=str(pages.port))
    s = pf.socket(pages.port)
    s.setblocking(True)
    s.sendall(b"GET / HTTP/1.0\r\n\r\n")
    assert read_to_end(s).endswith(pages.blob)
    assert pf.error(pages.port) is None


def test_portforward_to_nobody(api):
    from harness.server import free_port
    port = free_port()
    pf = portforward(api.connect_get_namespaced_pod_portforward, "local", "default", ports=str(port))
    s = pf.socket(port)
    s.setblocking(True)
    assert s.recv(100) == b""
    assert pf.error(port).endswith("Connection refused")

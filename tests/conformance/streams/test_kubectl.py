"""kubectl of two eras: 1.36 speaks WebSocket (v5 channels; SPDY in a WebSocket for ports), and SPDY where it is told to; 1.20
speaks SPDY."""

import os
import pty
import re
import select
import subprocess
import time
import urllib.request

import pytest

from harness import server as servers

NEWEST, NEWEST_BY_SPDY, OLD = "kubectl", "kubectl by SPDY", "kubectl-1.20"
BY_SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}


@pytest.fixture(params=[NEWEST, NEWEST_BY_SPDY, OLD], scope="module")
def kubectl(request, streams, tmp_path_factory):
    program = servers.tool("peers", request.param.split()[0])
    home = tmp_path_factory.mktemp("home")
    env = {k: v for k, v in os.environ.items() if k not in ("KUBECONFIG", "HTTPS_PROXY", "https_proxy")}
    env.update(HOME=str(home), **(BY_SPDY if request.param == NEWEST_BY_SPDY else {}))

    class Kubectl:
        name = request.param
        argv = [program, *streams.kubectl_options]

        def start(self, *args, **kw):
            return subprocess.Popen([*self.argv, *map(str, args)], env=env, **kw)

        def __call__(self, *args, data=b"", timeout=60):
            return subprocess.run([*self.argv, *map(str, args)], env=env, input=data, capture_output=True, timeout=timeout)

    return Kubectl()


def test_which_protocol_is_judged(kubectl, streams):
    before = len(streams.log)
    assert kubectl("exec", "local", "--", "true").returncode == 0
    line = [line for line in streams.log[before:].splitlines() if "podstream.open" in line][-1]
    want = "upgrade=websocket protocol=v5.channel.k8s.io" if kubectl.name == NEWEST else \
        "upgrade=SPDY/3.1 protocol=v4.channel.k8s.io"
    assert want in line


def test_output_and_exit_code(kubectl):
    done = kubectl("exec", "local", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert done.stdout == b"out\n" and done.returncode == 7
    assert done.stderr == b"err\ncommand terminated with exit code 7\n"


def test_a_missing_program(kubectl):
    done = kubectl("exec", "local", "--", "no-such-program")
    assert done.returncode == 127 and b"cannot run 'no-such-program': No such file or directory" in done.stderr


def test_input_both_ways(kubectl):
    data = os.urandom(3_000_000)
    done = kubectl("exec", "-i", "local", "--", "cat", data=data)
    assert done.returncode == 0 and done.stdout == data


def test_the_end_of_input(kubectl):
    done = kubectl("exec", "-i", "local", "--", "sh", "-c", "wc -c; echo done", data=b"12345")
    assert done.stdout.split() == [b"5", b"done"]


def test_it_ends_with_the_process(kubectl):
    began = time.monotonic()
    done = kubectl("exec", "local", "--", "sh", "-c", "sleep 40 & echo started")
    assert done.stdout == b"started\n" and time.monotonic() - began < 35


def test_arguments_arrive_as_they_are(kubectl):
    words = ["a b", "c+d", "é&=%41", "", "x" * 50000, "-v", '"quotes"']
    done = kubectl("exec", "local", "--", "printf", "%s|", *words)
    assert done.stdout.decode() == "".join(w + "|" for w in words)


def test_a_terminal(kubectl):
    """A terminal of ours for kubectl's own: what is typed is echoed by the other one, whose size is ours."""
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "rows", "33", "cols", "91"], stdin=theirs, check=True)
    with kubectl.start("exec", "-it", "local", "--", "sh", "-c", "read x; stty size; tty; exit 5", stdin=theirs, stdout=theirs,
                       stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        time.sleep(1)  # kubectl sends the size when it likes, and we cannot see when it has
        os.write(ours, b"hello\n")
        got = b""
        while select.select([ours], [], [], 20)[0]:
            try:
                got += os.read(ours, 4096)
            except OSError:
                break
        assert process.wait(20) == 5
    os.close(ours)
    assert re.search(rb"hello\r\n33 91\r\n/dev/pts/\d+\r\n", got), got


def test_attach(kubectl):
    """The main process is a `cat`; attaching gives its streams."""
    done = kubectl("attach", "-i", "local", data=b"to the main process\n")
    assert done.returncode == 0 and done.stdout.endswith(b"to the main process\n")


def test_cp(kubectl, tmp_path):
    """Files and trees both ways: `kubectl cp` is tar behind exec."""
    source, there, back = tmp_path / "source", tmp_path / "there", tmp_path / "back"
    (source / "below").mkdir(parents=True)
    (source / "below" / "blob").write_bytes(os.urandom(2_000_000))
    (source / "text").write_text("text\n")
    done = kubectl("cp", str(source), f"local:{there}")
    assert done.returncode == 0, done.stderr
    assert (there / "below" / "blob").read_bytes() == (source / "below" / "blob").read_bytes()
    done = kubectl("cp", f"local:{there}", str(back))
    assert done.returncode == 0, done.stderr
    assert (back / "below" / "blob").read_bytes() == (source / "below" / "blob").read_bytes() and (back / "text").read_text() == "text\n"


def test_a_pod_that_is_not_there(kubectl):
    done = kubectl("exec", "other", "--", "true")
    assert done.returncode == 1 and b"not found" in done.stderr


@pytest.fixture
def forward(kubectl, pages):
    """A port-forward, and the local port it says it has."""
    with kubectl.start("port-forward", "pod/local", f":{pages.port}", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True) as process:
        line = process.stdout.readline()
        yield process, int(re.match(r"Forwarding from 127.0.0.1:(\d+)", line)[1])
        process.terminate()


def get(port, **kw):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(f"http://127.0.0.1:{port}/", **kw), timeout=60) as answer:
        return answer.read()


def test_port_forward(forward, pages):
    process, port = forward
    for _ in range(5):
        assert get(port) == pages.blob
    assert get(port, data=b"abc" * 100000) == b"cba" * 100000
    assert process.poll() is None


def test_port_forward_many(forward, pages):
    import concurrent.futures
    _, port = forward
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for body in pool.map(lambda _: get(port), range(48)):
            assert body == pages.blob


def test_port_forward_connections_without_a_word(forward, pages):
    import socket
    process, port = forward
    for _ in range(20):
        socket.create_connection(("127.0.0.1", port)).close()
    assert get(port) == pages.blob and process.poll() is None

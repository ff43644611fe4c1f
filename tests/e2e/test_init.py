"""The duties of PID 1: orphans, signals, exit status; and a graceful stop."""

import os
import shlex
import signal
import subprocess
import threading
import time

import pytest
import requests

from harness import proc
from harness.server import binary, wait_until

pytestmark = pytest.mark.ours


@pytest.mark.core
@pytest.mark.parametrize("command, status", [(["sh", "-c", "exit 7"], 7), (["true"], 0), (["sh", "-c", "kill -TERM $$"], 143)])
def test_the_main_commands_status_is_ours(command, status):
    done = subprocess.run([binary(), "--listen", "127.0.0.1:0", "--log-level", "off", "--", *command], timeout=20)
    assert done.returncode == status


def test_a_main_command_that_cannot_run():
    done = subprocess.run([binary(), "--listen", "127.0.0.1:0", "--", "nope-such"], timeout=20, capture_output=True, text=True)
    assert done.returncode == 127
    assert "cannot run 'nope-such': No such file or directory" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_are_forwarded(start_runtime, number):
    server = start_runtime(command=["sh", "-c", "trap 'exit 42' TERM INT USR1; echo ready > ready; while :; do sleep 0.05; done"])
    wait_until(lambda: (server.dir / "ready").exists(), 5)
    server.signal(number)
    assert server.wait(10) == 42


@pytest.mark.core
def test_orphans_are_reaped(start_runtime):
    server = start_runtime()
    requests.post(server.url + "/execute", json={"command": "sh -c 'for i in 1 2 3 4 5; do (setsid sleep 0.2 >/dev/null 2>&1 &) ; done'"})
    wait_until(lambda: len(proc.children(server.pid)) == 5, 5, "five orphans are ours")
    wait_until(lambda: not proc.children(server.pid), 5, "all reaped")


def test_as_pid_1_of_a_namespace():
    """In a PID namespace of its own it is PID 1: everything ends with it, and it reaps what nobody waits for."""
    script = (f"exec {shlex.quote(binary())} --listen 127.0.0.1:0 --log-level off -- sh -c "
              "'for i in 1 2 3; do (setsid sleep 0.1 &) ; done; sleep 0.5; ps -e -o stat= | grep -c Z; exit 9'")
    done = subprocess.run(["unshare", "-rpf", "--mount-proc", "sh", "-c", script], capture_output=True, text=True, timeout=20)
    if "Operation not permitted" in done.stderr:
        pytest.skip("user namespaces are not allowed here")
    assert done.returncode == 9, done.stderr
    assert done.stdout.strip() == "0", "no zombie is left"


@pytest.mark.core
def test_a_graceful_stop(start_runtime):
    """503 while commands end, answers under way are sent, exit 0."""
    server = start_runtime()
    answers = {}

    def run():
        answers["sleep"] = requests.post(server.url + "/execute", json={"command": "sh -c 'trap \"\" TERM; sleep 30'"}, timeout=30)

    t = threading.Thread(target=run)
    t.start()
    wait_until(lambda: proc.children(server.pid), 5)
    time.sleep(0.2)
    server.signal(signal.SIGTERM)
    wait_until(lambda: requests.get(server.url + "/v1/health", timeout=5).status_code == 503, 5, "health says 503")
    assert server.wait(15) == 0
    t.join()
    assert answers["sleep"].status_code == 200
    assert answers["sleep"].json()["exit_code"] == -9


def test_help_version_and_bad_usage():
    shown = subprocess.run([binary(), "--help"], capture_output=True, text=True)
    assert shown.returncode == 0 and "--listen HOST:PORT" in shown.stdout and len(shown.stdout.splitlines()) < 70
    assert subprocess.run([binary(), "--version"], capture_output=True, text=True).stdout.startswith("sandboxd, version ")
    for args, text in [(["--nope"], "unknown option '--nope'"), (["--listen"], "--listen needs a value"), (["--listen", "x"], "HOST:PORT"),
                       (["--exec-timeout", "abc"], "'abc' is not a duration"), (["word"], "unexpected argument 'word'"),
                       (["--rest-port", "0"], "out of range"), (["--root", ""], "--root")]:
        bad = subprocess.run([binary(), *args], capture_output=True, text=True, timeout=10)
        assert bad.returncode == 2, (args, bad)
        assert text in bad.stderr.splitlines()[0], bad.stderr


def test_a_port_that_is_taken(start_runtime):
    server = start_runtime(listeners=1)
    bad = subprocess.run([binary(), "--listen", server.address], capture_output=True, text=True, timeout=10)
    assert bad.returncode == 1
    assert bad.stderr.startswith(f"silica-runtime: cannot listen on '{server.address}': Address already in use\nhint: ")


def test_sandboxd_flags_as_go_writes_them():
    from harness.server import free_port
    rest, grpc = free_port(), free_port()
    p = subprocess.Popen([binary(), f"-rest-port={rest}", "--grpc-port", str(grpc), "-listen-host", "127.0.0.1", "-http-idle-timeout=2m",
                          "--zap-log-level=debug", "-root-dir", "/tmp"], stderr=subprocess.DEVNULL)
    try:
        def ok():
            try:
                return requests.get(f"http://127.0.0.1:{rest}/v1/health", timeout=1).ok and requests.get(f"http://127.0.0.1:{grpc}/", timeout=1).ok
            except requests.ConnectionError:
                return False
        wait_until(ok, 10)
    finally:
        p.terminate()
        assert p.wait(15) == 0


def test_no_descriptor_and_no_process_leaks(start_runtime):
    server = start_runtime()

    def use():
        for i in range(50):
            requests.post(server.url + "/execute", json={"command": "true"})
            requests.post(server.url + "/execute", json={"command": "nope-such"})
            requests.post(server.url + "/upload", files={"file": ("f", b"x")})
            requests.get(server.url + "/download/f")
            requests.get(server.url + "/list/")
            requests.get(server.url + "/download/nope")

    use()
    time.sleep(0.5)
    before = proc.open_fds(server.pid)
    use()
    wait_until(lambda: proc.open_fds(server.pid) <= before, 5, "as many descriptors as before")
    assert not proc.children(server.pid)
    os.listdir(server.root)

"""`silica router --workers`: several processes that are one router, and what stays of one that was killed."""

import http.client
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from harness import router as routers
from harness.router import Backend, Router, place
from harness.server import wait_until
from lib import controlplane

pytestmark = pytest.mark.ours

SERVED = "sandbox_router_worker_requests_total"
TOTAL = 'sandbox_router_requests_total{method="GET",code="200",sandbox_namespace="default"}'


@pytest.fixture(scope="module")
def api():
    with controlplane.Silica("--log-level", "warn") as server:
        yield server


@pytest.fixture(scope="module")
def backend(api):
    with Backend("127.77.1.1") as b:
        place(api, "box", b.ip)
        yield b


def ask(router, backend, target="/"):
    """The body of one request, on a connection of its own."""
    fields = {"X-Sandbox-ID": "box", "X-Sandbox-Port": str(backend.port), "Connection": "close"}
    with urllib.request.urlopen(urllib.request.Request(router.url + target, headers=fields), timeout=60) as answer:
        return answer.read()


def pids(router):
    """The workers that serve now, by their numbers."""
    told = {}
    for line in router.said("router.worker"):
        told[line["worker"]] = line["pid"]
    return told


def is_gone(pid):
    """Also one that nobody has waited for yet."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(") ")[2][0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def served(router):
    return [int(n) for n in router.metric(SERVED)]


def counted(router, name):
    return sum(float(v) for v in router.metric(name))


def readyz(router):
    try:
        with urllib.request.urlopen(f"http://{router.ready['health']}/readyz", timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def all_take_part(router, backend, tries=2000):
    """True when every worker has served; so many connections do not all fall to the same ones."""
    for _ in range(tries):
        ask(router, backend)
        if all(served(router)):
            return True
    return False


@pytest.mark.core
def test_all_of_them_serve_and_are_one_to_monitors(api, backend):
    with Router(api, "--workers", "3") as r:
        assert sorted(pids(r)) == [0, 1, 2] and r.process.pid not in pids(r).values()
        assert r.metric("sandbox_router_workers") == ["3"]
        assert all_take_part(r, backend)
        n = len([line for line in backend.seen if line == ("GET", "/")])
        assert wait_until(lambda: [int(v) for v in r.metric(TOTAL)] == [n], 30)
        assert sum(served(r)) == n
        assert counted(r, "sandbox_router_request_duration_seconds_count") == n
        assert counted(r, 'rest_client_requests_total{code="200",method="GET"}') >= 3  # each knows the cluster by itself
        assert r.metric("sandbox_router_worker_restarts_total") == ["0"]
        assert readyz(r) == (200, b"ok")
        r.end()
        assert all(is_gone(pid) for pid in pids(r).values())


def test_a_queue_that_was_given_is_shared(api, backend):
    with socket.create_server(("127.0.0.1", 0)) as s, \
            Router(api, "--workers", "2", "--listen-fd", "0", stdin=s) as r:
        assert r.port == s.getsockname()[1]
        halves = [threading.Thread(target=lambda: [ask(r, backend) for _ in range(50)]) for _ in range(4)]
        for t in halves:
            t.start()
        for t in halves:
            t.join(60)
        wait_until(lambda: sum(served(r)) == 200, 10, "all are counted, which is behind their answers")
        # One that is stopped takes nothing, and the other takes all.
        os.kill(pids(r)[0], signal.SIGSTOP)
        before = served(r)
        for _ in range(20):
            ask(r, backend)
        os.kill(pids(r)[0], signal.SIGCONT)
        wait_until(lambda: sum(served(r)) == sum(before) + 20, 10, "these, too")
        assert served(r) == [before[0], before[1] + 20]
        r.end()


class Load:
    """Clients that ask on a new connection each time; what failed, and when it had begun."""

    def __init__(self, router, backend, clients):
        self.router, self.backend = router, backend
        self.done, self.failed, self.is_over = 0, [], False
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.go, daemon=True) for _ in range(clients)]

    def go(self):
        while not self.is_over:
            began = time.monotonic()
            try:
                ask(self.router, self.backend)
                with self.lock:
                    self.done += 1
            except (OSError, http.client.HTTPException) as e:
                with self.lock:
                    self.failed.append((began, repr(e)))

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        for t in self.threads:
            t.join(90)


@pytest.mark.core
def test_one_that_is_killed_comes_back_and_only_its_own_connections_are_lost(api, backend):
    clients = 4
    with Router(api, "--workers", "2") as r:
        assert all_take_part(r, backend)
        totals = [counted(r, TOTAL)]

        def goes_forward():
            totals.append(counted(r, TOTAL))
            assert totals[-1] >= totals[-2], totals
            return True

        with Load(r, backend, clients) as load:
            for number in (0, 1, 0):
                pid, failed, done = pids(r)[number], len(load.failed), load.done
                wait_until(lambda: load.done > done + 50, 60)
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda: is_gone(pid), 30)
                gone, done = time.monotonic(), load.done
                assert readyz(r) == (200, b"ok")  # the other one is there
                wait_until(lambda: goes_forward() and pids(r)[number] != pid, 30)
                back = served(r)[number]
                wait_until(lambda: goes_forward() and served(r)[number] > back and load.done > done + 50, 60)
                lost = load.failed[failed:]
                assert len(lost) <= clients and all(began < gone for began, _ in lost), (gone, lost)
        assert r.metric("sandbox_router_worker_restarts_total") == ["3"]
        assert wait_until(lambda: r.metric("sandbox_router_inflight_requests") == ["0"], 30)
        # What was answered is counted, but for what a killed one had not come to.
        assert counted(r, TOTAL) >= totals[0] + load.done - 3 * clients
        r.end()


def test_told_to_end_they_let_requests_end(api, backend):
    with Router(api, "--workers", "2") as r:
        answers = []
        t = threading.Thread(target=lambda: answers.append(ask(r, backend, "/ticks")))
        t.start()
        wait_until(lambda: ("GET", "/ticks") in backend.seen[-1:], 30)
        workers = list(pids(r).values())
        r.process.terminate()
        for pid in workers:  # as a service manager does that tells all processes; twice is not at once
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass  # had nothing to do
        wait_until(lambda: readyz(r) == (503, b"draining"), 30)
        wait_until(lambda: not can_connect(r.port), 30)
        assert r.process.poll() is None
        backend.server.let_go.set()
        t.join(60)
        backend.server.let_go.clear()
        assert answers == [b"firstsecond"]
        assert r.process.wait(60) == 0, r.log


def can_connect(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


def test_they_do_not_outlive_the_one_above_them(api):
    with Router(api, "--workers", "2") as r:
        workers = list(pids(r).values())
        r.process.kill()
        r.process.wait()
        wait_until(lambda: all(is_gone(pid) for pid in workers), 30)


def start(*arguments):
    return subprocess.run([routers.program(), "router", "--workers", "2", "--metrics-listen", "0", "--health-listen", "0",
                           *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)


def test_what_cannot_start_says_so_once(api, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = start("--kubeconfig", str(api.kubeconfig), "--listen", "127.0.0.1:%d" % taken.getsockname()[1])
    assert done.returncode == 125 and "cannot listen on '127.0.0.1:" in done.stderr
    with Router(api, "--workers", "2") as r:  # nor do two share a port by accident
        done = start("--kubeconfig", str(api.kubeconfig), "--listen", r.address)
        assert done.returncode == 125 and f"cannot listen on '{r.address}'" in done.stderr
        r.end()
    done = start("--kubeconfig", str(tmp_path / "none"), "--listen", "127.0.0.1:0")
    assert done.returncode == 125 and done.stderr.count("silica: ") == 1, done.stderr
    for text in ("65", "-1", "many", ""):
        done = start("--workers", text)
        assert done.returncode == 2 and "--workers" in done.stderr


def test_auto_is_one_for_each_processor(api):
    with Router(api, "--workers", "auto") as r:
        n = len(os.sched_getaffinity(0))
        assert r.metric("sandbox_router_workers") == ([str(n)] if n > 1 else [])
        r.end()

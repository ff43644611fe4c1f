"""The reason this program exists: the probe answers at once whatever else runs (A.6)."""

import concurrent.futures
import http.client
import threading
import time

import pytest
import requests

from harness import proc
from harness.server import wait_until

pytestmark = [pytest.mark.ours, pytest.mark.contract("A")]


def test_the_upstream_acceptance_test(runtime):
    """GET / every 500 ms with a client timeout of 200 ms while `sleep 5` runs."""
    answer = {}
    t = threading.Thread(target=lambda: answer.update(r=requests.post(runtime.url + "/execute", json={"command": "sleep 5"})))
    t.start()
    probes = 0
    while t.is_alive():
        assert requests.get(runtime.url + "/", timeout=0.2).status_code == 200
        probes += 1
        time.sleep(0.5)
    t.join()
    assert answer["r"].status_code == 200
    assert probes >= 9


def test_thirty_probes_while_a_hundred_sleep_and_sixty_four_execute(start_runtime):
    server = start_runtime()
    stop = threading.Event()
    counts = [0] * 64

    def sleeper(_):
        return requests.post(server.url + "/execute", json={"command": "sleep 30"}, timeout=90).json()["exit_code"]

    def busy(i):
        c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        while not stop.is_set():
            c.request("POST", "/execute", b'{"command":"/bin/true"}', {"Content-Type": "application/json"})
            body = c.getresponse().read()
            assert b'"exit_code":0' in body, body
            counts[i] += 1
        c.close()

    with concurrent.futures.ThreadPoolExecutor(170) as pool:
        sleepers = [pool.submit(sleeper, i) for i in range(100)]
        wait_until(lambda: sum(1 for p in proc.children(server.pid)) >= 100, 20, "a hundred sleep")
        workers = [pool.submit(busy, i) for i in range(64)]
        for _ in range(30):
            began = time.monotonic()
            answer = requests.get(server.url + "/", timeout=5)
            assert answer.status_code == 200
            time.sleep(max(0, 1 - (time.monotonic() - began)))
        stop.set()
        for w in workers:
            w.result()
        assert [s.result() for s in sleepers] == [0] * 100
    assert min(counts) > 0
    assert requests.post(server.url + "/execute", json={"command": "echo after"}).json()["stdout"] == "after\n"


def test_a_command_that_never_ends_wedges_nothing(runtime):
    got = requests.post(runtime.url + "/execute", json={"command": "sleep infinity", "timeout_seconds": 1.0}, timeout=20).json()
    assert got["timed_out"] is True
    assert requests.post(runtime.url + "/execute", json={"command": "echo next"}, timeout=20).json()["stdout"] == "next\n"

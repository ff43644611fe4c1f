"""Thousands of watches on one API server, readers that do not read, clients that vanish.

SILICA_API_CONNECTIONS is how many watches have a connection of their own; `make soak-apiserver` asks for 10,000.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest

from harness import proc
from harness.server import wait_until
from lib import controlplane
from lib.writers import Connection

pytestmark = pytest.mark.ours
WATCHES = 10_000
CONNECTIONS = int(os.environ.get("SILICA_API_CONNECTIONS", "400"))
HISTORY = 10_000  # superseded states the server keeps
SLOW = 20
BODY = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"@NAME@","labels":{"app":"bench"}},"data":{"n":"@N@","v":"%s"}}'
KUBE_LOAD = controlplane.TREE / "build" / "release" / "tests" / "bench" / "kube_load"


@pytest.fixture
def api():
    with controlplane.Silica("--log-level", "warn") as server:
        server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "w"}})
        yield server


PATH = "/api/v1/namespaces/w/configmaps"


def load(api, tmp_path, verb, clients, count, http="1", fill=0):
    if not KUBE_LOAD.exists():
        pytest.skip("no kube_load; run `make all`")
    body = tmp_path / "body.json"
    body.write_text(BODY % ("x" * fill))
    host, port = api.url.removeprefix("https://").rsplit(":", 1)
    env = {**os.environ, "KUBE_CERT": str(api.client_cert), "KUBE_KEY": str(api.client_key), "KUBE_HTTP": http}
    done = subprocess.run([KUBE_LOAD, host, port, api.ca_file, PATH, body, verb, str(clients), str(count)], env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:] + api.log("")[-2000:]
    return json.loads(done.stdout)


def peak(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def watches(api):
    return int(re.search(rb"^silica_store_watches (\d+)$", api.call("GET", "/metrics", raw=True), re.M)[1])


def storm(api, tmp_path, count, http, events):
    """Each event came to each watch once and in order: kube_load looks. Bytes of the server for one watch, at the worst."""
    pid, own = api.process.pid, watches(api)
    before = proc.memory(pid)["rss"]
    got = load(api, tmp_path, "watch", count, events, http)
    assert (got["done"], got["failed"]) == (count * events, 0)
    each = (peak(pid) - before) / count
    print(f"{count} watches over HTTP/{http}: {each / 1024:.1f} KiB each, {got['rate']:,.0f} events/s")
    wait_until(lambda: watches(api) == own, 30, "the watches of a client that vanished are forgotten")
    return each


@pytest.mark.timeout(600)
def test_ten_thousand_watches(api, tmp_path):
    assert storm(api, tmp_path, WATCHES, "2", 20) < 24 * 1024


@pytest.mark.timeout(3600)
def test_a_connection_for_each_watch(api, tmp_path):
    assert storm(api, tmp_path, CONNECTIONS, "1", 20) < 96 * 1024


@pytest.mark.timeout(900)
def test_readers_that_do_not_read_are_told_410(api, tmp_path):
    count, rounds, fill, pid = 1000, 16, 5000, api.process.pid
    load(api, tmp_path, "create", 16, count, fill=fill)
    version = api.call("GET", f"{PATH}?limit=1")["metadata"]["resourceVersion"]
    before = proc.memory(pid)["rss"]
    slow = []
    for _ in range(SLOW):
        connection = Connection(api)
        answer = connection.send("GET", f"{PATH}?watch=1&resourceVersion={version}")
        assert answer.status == 200
        slow.append((connection, answer))
    for _ in range(rounds):  # the history, and what the kernel holds for a reader
        load(api, tmp_path, "update", 16, count, fill=fill)
    grown = proc.memory(pid)["rss"] - before
    print(f"{SLOW} watches that do not read, {count * rounds} events: {grown >> 20} MiB more")
    # A state is kept as it was, as it became and as it was told. What is not read would be 1,600 MB.
    assert grown < 5 * HISTORY * fill + SLOW * (1 << 20), "memory grows with what is not read"
    for connection, answer in slow:
        last, versions = None, []
        for line in answer:
            last = json.loads(line)
            if last["type"] != "ERROR":
                versions.append(int(last["object"]["metadata"]["resourceVersion"]))
        assert last["type"] == "ERROR" and last["object"]["code"] == 410 and last["object"]["reason"] == "Expired", last
        assert versions == sorted(set(versions)) and 0 < len(versions) < rounds * count
        connection.close()


def test_one_that_was_away_for_long_is_told_where_it_is(api, tmp_path):
    """Nothing has happened to what it watches, and much elsewhere: if it is cut off again, its version is not the old one."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/w/leases"
    began = int(api.call("GET", leases)["metadata"]["resourceVersion"])
    load(api, tmp_path, "create", 8, 1200)
    now = int(api.call("GET", leases)["metadata"]["resourceVersion"])
    c = Connection(api)
    answer = c.send("GET", f"{leases}?watch=1&allowWatchBookmarks=1&timeoutSeconds=20&resourceVersion={began}")
    event = json.loads(answer.readline())
    assert event["type"] == "BOOKMARK" and int(event["object"]["metadata"]["resourceVersion"]) >= now > began + 1000
    api.call("POST", leases, {"metadata": {"name": "later"}})
    assert json.loads(answer.readline())["type"] == "ADDED"  # so that was not the bookmark of its end
    c.close()

"""Events go by themselves: an hour after they last happened, and the oldest first where there are too many."""

import json

import pytest

from harness.server import wait_until
from lib import controlplane
from lib.writers import Connection

pytestmark = pytest.mark.ours
PATH = "/api/v1/namespaces/default/events"


def event(name):
    return {"metadata": {"name": name}, "reason": "Test", "message": "m", "type": "Normal",
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}}


def names(connection):
    status, answer = connection.call("GET", PATH)
    assert status == 200, answer
    return [o["metadata"]["name"] for o in answer["items"]]


def test_events_go_after_their_time():
    with controlplane.Silica("--log-level", "warn", "--event-ttl", "1s") as api:
        connection, watcher = Connection(api), Connection(api)
        lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "renewTime": "2020-01-01T00:00:00.000000Z"}}
        assert connection.call("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", lease)[0] == 201
        status, made = connection.call("POST", PATH, event("gone"))
        assert status == 201, made
        held = event("held")
        held["metadata"]["finalizers"] = ["example.com/mine"]
        status, held = connection.call("POST", PATH, held)
        assert status == 201 and "finalizers" not in held["metadata"]  # an Event's end is its age
        watch = watcher.send("GET", f"{PATH}?watch=1&resourceVersion={made['metadata']['resourceVersion']}&fieldSelector=metadata.name%3Dgone")
        told = json.loads(watch.readline())
        assert (told["type"], told["object"]["metadata"]["name"]) == ("DELETED", "gone")
        wait_until(lambda: names(connection) == [], 10, "both are gone")
        wait_until(lambda: connection.call("GET", f"{PATH}/gone")[0] == 404, 10, "it is gone")
        assert connection.call("GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/l")[0] == 200  # made today


def test_events_have_a_ceiling():
    with controlplane.Silica("--log-level", "warn", "--event-ttl", "30s", "--max-events", "100") as api:
        connection = Connection(api)
        for i in range(100):
            assert connection.call("POST", PATH, event(f"e{i:03}"))[0] == 201
        again = {"message": "it happened again"}
        assert connection.call("PATCH", f"{PATH}/e000", again, "application/merge-patch+json")[0] == 200
        for i in range(100, 130):
            assert connection.call("POST", PATH, event(f"e{i:03}"))[0] == 201
        wait_until(lambda: len(names(connection)) == 100, 25, "the oldest are gone")
        left = names(connection)
        assert "e000" in left and left[1:] == [f"e{i:03}" for i in range(31, 130)]


def test_the_ceiling_does_not_wait_for_a_sweep():
    """With an hour to live the next sweep is a minute away; the first Events over the ceiling are gone long before, and a warning stays."""
    with controlplane.Silica("--log-level", "warn", "--max-events", "100") as api:
        connection = Connection(api)
        assert connection.call("POST", PATH, dict(event("a-warning"), type="Warning"))[0] == 201
        for i in range(170):
            assert connection.call("POST", PATH, event(f"e{i:03}"))[0] == 201
        wait_until(lambda: len(names(connection)) == 100, 20, "the oldest are gone")
        assert names(connection) == ["a-warning"] + [f"e{i:03}" for i in range(71, 170)]

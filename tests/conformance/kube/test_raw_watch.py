"""Watches: where they start, what they tell, how they end."""

import json
import re
import threading

import pytest

from things import CM, PODS, SANDBOXES, config_map, pod, sandbox

MERGE = {"content-type": "application/merge-patch+json"}


def is_initial_end(event):
    return event["type"] == "BOOKMARK" and "k8s.io/initial-events-end" in event["object"]["metadata"].get("annotations", {})


def change(t, name, value):
    return t.ask("PATCH", CM + f"/{name}", {"data": {"k": value}}, headers=MERGE)


def test_changes(t):
    start = t.ask("POST", CM, config_map("a", {"k": "1"}))
    change(t, "a", "2")
    t.ask("POST", CM, config_map("b"))
    t.ask("DELETE", CM + "/a")
    mine = "metadata.name!=kube-root-ca.crt"
    t.watch("from a version: what came after it", CM, count=3, resourceVersion=start.rv, fieldSelector=mine)
    t.watch("from nothing: what is there", CM, count=1, fieldSelector=mine)
    t.watch("from version 0", CM, count=1, resourceVersion="0", fieldSelector=mine)
    t.watch("one object by its name", CM, count=2, resourceVersion=start.rv, fieldSelector="metadata.name=a")
    gone = t.ask("GET", CM)
    t.watch("ends at its time", CM, resourceVersion=gone.rv, fieldSelector=mine, seconds=1)


def test_selectors(t):
    """An object that comes to match is ADDED, one that ceases to match is DELETED."""
    start = t.ask("POST", CM, config_map("a"))
    for labels in ({"x": "1"}, {"x": "1", "y": "2"}, {"x": "2"}, {"x": "1"}):
        t.ask("PUT", CM + "/a", config_map("a", labels=labels))
    t.watch("by label", CM, count=4, resourceVersion=start.rv, labelSelector="x=1")
    t.watch("bad selector", CM, labelSelector="x in")
    t.watch("bad field", CM, fieldSelector="data.k=v")
    t.ask("POST", PODS, pod("p"))
    begin = t.ask("GET", PODS)
    t.ask("PATCH", PODS + "/p/status", {"status": {"phase": "Running"}}, headers=MERGE)
    events = t.ask("GET", PODS)
    t.note("pods moved on", int(events.rv) > int(begin.rv))
    short = lambda e: [e["type"], e["object"]["metadata"]["name"], e["object"]["status"]["phase"]]  # noqa: E731
    with t.api.watch(t.path(PODS), {"resourceVersion": begin.rv, "fieldSelector": "status.phase=Pending", "timeoutSeconds": 5}) as stream:
        t.note("by phase", short(json.loads(next(stream.iter_lines()))))


def test_initial_events(t):
    for name in "ab":
        t.ask("POST", SANDBOXES, sandbox(name))
    listing = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    t.watch("all of them, then a bookmark", SANDBOXES, until=is_initial_end, **listing)
    t.watch("with a version", SANDBOXES, until=is_initial_end, resourceVersion=t.ask("GET", SANDBOXES).rv, **listing)
    t.watch("with version 0", SANDBOXES, until=is_initial_end, resourceVersion="0", **listing)
    t.watch("none there", "/apis/agents.x-k8s.io/v1beta1/namespaces/none/sandboxes", until=is_initial_end, **listing)
    t.watch("without its match", SANDBOXES, sendInitialEvents="true", allowWatchBookmarks="true")
    t.watch("with another match", SANDBOXES, sendInitialEvents="true", resourceVersionMatch="Exact", resourceVersion="5", allowWatchBookmarks="true")
    t.watch("match without it", SANDBOXES, resourceVersionMatch="NotOlderThan", resourceVersion="5")
    t.watch("without bookmarks", SANDBOXES, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", seconds=1)
    t.watch("not wanted", SANDBOXES, sendInitialEvents="false", resourceVersionMatch="NotOlderThan", count=1, seconds=1)
    t.get("for a list it is refused", SANDBOXES, sendInitialEvents="true", resourceVersionMatch="NotOlderThan")


def test_ends(t):
    t.ask("POST", SANDBOXES, sandbox("a"))
    t.watch("a version that is no number", SANDBOXES, resourceVersion="abc", count=1)
    t.watch("a namespace that is not there is just quiet", "/api/v1/namespaces/none/configmaps", resourceVersion="0", seconds=1)
    t.watch("the old path for a watch", "/api/v1/watch/namespaces/{ns}/configmaps", count=1, fieldSelector="metadata.name=kube-root-ca.crt")
    t.watch("a timeout that is no number", SANDBOXES, seconds="soon")
    t.watch("a limit means nothing to a watch", SANDBOXES, limit=1, resourceVersion="0", count=1)
    t.get("watch of one object by its path", SANDBOXES + "/a", watch="1", resourceVersion="0", timeoutSeconds="1", only=lambda o: o["kind"] if isinstance(o, dict) and "kind" in o else o)


def test_too_old(api, ns):
    """A version that is no longer kept: one ERROR event with 410, and the end."""
    api.request("POST", SANDBOXES.replace("{ns}", ns), json=sandbox("a"))
    with api.watch(SANDBOXES.replace("{ns}", ns), {"resourceVersion": "1", "timeoutSeconds": 5}) as stream:
        events = [json.loads(line) for line in stream.iter_lines()]
    assert [e["type"] for e in events] == ["ERROR"]
    status = events[0]["object"]
    assert re.fullmatch(r"too old resource version: 1 \(\d+\)", status.pop("message"))
    assert status == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Expired", "code": 410}


def test_headers(t):
    with t.api.watch(t.path(CM), {"resourceVersion": "0", "timeoutSeconds": 1}) as stream:
        t.note("type and form", [stream.headers["content-type"], stream.headers.get("transfer-encoding"), stream.headers.get("cache-control")])


@pytest.mark.parametrize("path", [CM, SANDBOXES])
def test_order(api, ns, path):
    """A watch tells every change, in the order of versions, each once, while many are made."""
    url = path.replace("{ns}", ns)
    start = api.request("GET", url).json()["metadata"]["resourceVersion"]
    make = (lambda n: config_map(n)) if path is CM else (lambda n: sandbox(n))
    seen = []

    def read():
        with api.watch(url, {"resourceVersion": start, "timeoutSeconds": 30, "labelSelector": "o=1"}) as stream:
            for line in stream.iter_lines():
                event = json.loads(line)
                seen.append((event["type"], event["object"]["metadata"]["name"], int(event["object"]["metadata"]["resourceVersion"])))
                if len(seen) == 90:
                    return

    reader = threading.Thread(target=read)
    reader.start()

    def write(who):
        session = type(api)(api.target)
        for i in range(10):
            body = make(f"o-{who}-{i}")
            body["metadata"]["labels"] = {"o": "1"}
            assert session.request("POST", url, json=body).status_code == 201
            body["metadata"]["annotations"] = {"x": "y"}
            at = f"{url}/{body['metadata']['name']}"
            assert session.request("PATCH", at, data=json.dumps({"metadata": {"annotations": {"x": "y"}}}), headers=MERGE).status_code == 200
            assert session.request("DELETE", at).status_code == 200

    writers = [threading.Thread(target=write, args=(w,)) for w in range(3)]
    for w in writers:
        w.start()
    for w in writers:
        w.join()
    reader.join(40)
    assert len(seen) == 90
    assert [v for _, _, v in seen] == sorted({v for _, _, v in seen}), "versions rise, none twice"
    for w in range(3):
        for i in range(10):
            assert [k for k, n, _ in seen if n == f"o-{w}-{i}"] == ["ADDED", "MODIFIED", "DELETED"]

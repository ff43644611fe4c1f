"""What one tenant writes without end takes the place of its own, never of another tenant's."""

import http.client
import json
import ssl
import urllib.parse

import pytest

from harness import caller
from lib import controlplane

EVENTS, LEASES = "events", "leases"


class Writer:
    """A tenant's calls on one connection."""

    def __init__(self, api, token):
        url = urllib.parse.urlparse(api.url)
        self.connection = http.client.HTTPSConnection(url.hostname, url.port, context=ssl.create_default_context(cafile=str(api.ca_file)))
        self.headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def call(self, method, path, body=None):
        self.connection.request(method, path, json.dumps(body) if body else None, self.headers)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.fixture(scope="module", params=["root", "user"])
def tenants(request):
    """(a server with room for 100 Events, writers of two namespaces). `silica up` has the same server, with room for more."""
    owner = caller.caller_or_skip(request.param)
    try:
        with controlplane.Silica("--log-level", "warn", "--max-events", "100", data=str(owner.home / "data"), wrap=owner.prefix,
                                 program=str(owner.silica)) as api:
            found = []
            for ns in ("victim", "attacker"):
                api.call("POST", "/api/v1/namespaces", {"metadata": {"name": ns}})
                api.call("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "it"}})
                api.call("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles", {"metadata": {"name": "it"}, "rules": [
                    {"apiGroups": ["", "events.k8s.io", "coordination.k8s.io"], "resources": [EVENTS, LEASES], "verbs": ["*"]}]})
                api.call("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings", {
                    "metadata": {"name": "it"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "it"},
                    "subjects": [{"kind": "ServiceAccount", "name": "it", "namespace": ns}]})
                token = api.call("POST", f"/api/v1/namespaces/{ns}/serviceaccounts/it/token", {"spec": {}})["status"]["token"]
                found.append(Writer(api, token))
            yield found
    finally:
        owner.remove()


def events(ns):
    return f"/api/v1/namespaces/{ns}/events"


def event(ns, name, **more):
    return {"metadata": {"name": name, **more}, "reason": "Test", "type": "Warning", "involvedObject": {"kind": "Pod", "namespace": ns, "name": "p"}}


def names(writer, ns):
    return sorted(o["metadata"]["name"] for o in writer.call("GET", events(ns))[1]["items"])


def test_a_flood_of_events_puts_out_its_own(tenants):
    victim, attacker = tenants
    for i in range(30):
        assert victim.call("POST", events("victim"), event("victim", f"v{i:02}"))[0] == 201
    for i in range(400):
        held = {"finalizers": ["example.com/for-ever"]} if i % 2 else {}
        assert attacker.call("POST", events("attacker"), event("attacker", f"a{i:03}", **held))[0] == 201
    assert names(victim, "victim") == [f"v{i:02}" for i in range(30)]
    assert attacker.call("POST", events("attacker"), event("attacker", "last"))[0] == 201
    assert 0 < len(names(attacker, "attacker")) <= 75


def test_an_event_has_no_finalizers(tenants):
    _, attacker = tenants
    path, finalizers = events("attacker"), {"finalizers": ["example.com/for-ever"]}
    status, made = attacker.call("POST", path, event("attacker", "held", **finalizers))
    assert status == 201 and "finalizers" not in made["metadata"]
    made["metadata"].update(finalizers)
    status, made = attacker.call("PUT", f"{path}/held", made)
    assert status == 200 and "finalizers" not in made["metadata"]
    newer = "/apis/events.k8s.io/v1/namespaces/attacker/events"
    status, made = attacker.call("POST", newer, {"metadata": {"name": "newer", **finalizers}, "eventTime": "2026-01-01T00:00:00.000000Z", "reason": "Test",
                                                 "reportingController": "a/b", "reportingInstance": "c", "action": "Do", "type": "Normal",
                                                 "regarding": {"kind": "Pod", "namespace": "attacker", "name": "p"}})
    assert status == 201 and "finalizers" not in made["metadata"], made
    for name in ("held", "newer"):
        assert attacker.call("DELETE", f"{path}/{name}")[0] == 200 and attacker.call("GET", f"{path}/{name}")[0] == 404

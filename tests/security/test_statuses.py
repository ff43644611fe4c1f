"""A status is what controllers and nodes say, and parts with more rights believe it: a tenant reads it and never writes it."""

import json
import urllib.error

import pytest

from harness.server import wait_until
from lib import controlplane, up as ups

GROUP = "/apis/agents.x-k8s.io/v1beta1/namespaces/team-a"
EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/team-a"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
FORGED = {"status": {"podIPs": ["127.0.0.1"], "podIP": "127.0.0.1", "replicas": 7, "sandbox": {"name": "x", "podIPs": ["127.0.0.1"]}}}
SPEC = {"containers": [{"name": "c", "image": "python:3.12-slim"}]}
STATUSES = [f"{GROUP}/sandboxes/x/status", f"{EXTENSIONS}/sandboxclaims/x/status", f"{EXTENSIONS}/sandboxwarmpools/x/status",
            "/api/v1/namespaces/team-a/pods/x/status", "/api/v1/namespaces/team-a/services/x/status",
            "/api/v1/namespaces/team-a/persistentvolumeclaims/x/status", "/apis/apps/v1/namespaces/team-a/deployments/x/status",
            "/apis/apps/v1/namespaces/team-a/replicasets/x/status"]


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param) as started:
        yield started


def answer(api, method, path, body=None, kind="application/json"):
    try:
        api.call(method, path, body, kind=kind)
        return 200
    except urllib.error.HTTPError as e:
        return e.code


@pytest.mark.parametrize("role", ["edit", "admin"])
def test_no_tenant_writes_a_status(up, role, tmp_path):
    api = ups.Reader(tmp_path, up.ready["kubeconfig"])
    api.token, api.client_cert = up.run("token", "-n", "team-a", "--role", role).stdout.strip(), None
    made = f"{GROUP}/sandboxes", {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "x"},
                                  "spec": {"podTemplate": {"spec": SPEC}}}
    assert answer(api, "POST", *made) in (200, 409)  # what is theirs they write, as before
    assert answer(api, "PATCH", f"{made[0]}/x", {"metadata": {"labels": {"a": role}}}, "application/merge-patch+json") == 200
    for path in STATUSES:
        for kind in ("application/merge-patch+json", "application/apply-patch+yaml"):
            assert answer(api, "PATCH", path + ("?fieldManager=x" if "apply" in kind else ""), FORGED, kind) == 403, path
        assert answer(api, "PUT", path, FORGED) == 403, path
        assert answer(api, "GET", path) in (200, 404), path  # to read it is allowed


def test_roles_of_an_older_release_lose_it_too(up):
    """Their rules were these; a role that a user has changed is the user's."""
    now = {name: up.api.call("GET", f"{ROLES}/{name}") for name in ("edit", "admin")}
    for name, role in now.items():
        old = json.loads(json.dumps(role["rules"]))
        for rule in old:  # quotas came later
            rule["resources"] = [r for r in rule["resources"] if not r.startswith("resourcequotas")]
        for group in ("apps", "agents.x-k8s.io"):
            read, written = (r for r in old if r["apiGroups"][0] == group)
            written["resources"] = read["resources"]
        _, written = (r for r in old if r["apiGroups"][0] == "networking.k8s.io")
        written["resources"] = ["networkpolicies", "gateways", "httproutes", "poddisruptionbudgets"]  # of a later release, too
        assert old != role["rules"]
        more = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}] if name == "admin" else []
        up.api.patch(f"{ROLES}/{name}", {"rules": old + more})
    up.wait_back("control", up.kill("control"))
    assert up.api.call("GET", f"{ROLES}/edit")["rules"] == now["edit"]["rules"]
    assert any("sandboxes/status" in r["resources"] and "patch" in r["verbs"] for r in up.api.call("GET", f"{ROLES}/admin")["rules"])
    up.api.patch(f"{ROLES}/admin", {"rules": now["admin"]["rules"]})


def rights(rules, served):
    """What a role gives, of verbs on resources that this server serves."""
    given = {(group, resource, verb) for rule in rules for group in rule.get("apiGroups", []) for resource in rule.get("resources", [])
             for verb in rule["verbs"]}
    return given & served


def all_verbs(api):
    """Every verb on every resource that the server serves, but those of kinds that are not Kubernetes' own."""
    lists = {"": api.call("GET", "/api/v1"), **{g["name"]: api.call("GET", f"/apis/{g['preferredVersion']['groupVersion']}")
                                                for g in api.call("GET", "/apis")["groups"] if not g["name"].endswith(".x-k8s.io")}}
    lists.pop("gateway.networking.k8s.io", None)
    return {(group, r["name"], verb) for group, found in lists.items() for r in found["resources"] for verb in r["verbs"]}


def test_no_built_in_role_gives_more_than_kubernetes_does(up):
    """Those of a real API server, as its controllers aggregate them, give each of these rights."""
    names = ("view", "edit", "admin")
    try:
        plane = controlplane.ControlPlane(with_crds=False)
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with plane:
        wait_until(lambda: all(plane.call("GET", f"{ROLES}/{n}").get("rules") for n in names), 60, "the roles are aggregated")
        real = {n: plane.call("GET", f"{ROLES}/{n}")["rules"] for n in names}
    served = all_verbs(up.api)
    for name in names:
        ours = rights(up.api.call("GET", f"{ROLES}/{name}")["rules"], served)
        assert len(ours) > 40 and sorted(ours - rights(real[name], served)) == []

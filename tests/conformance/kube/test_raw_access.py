"""Who may do what: service accounts, roles, reviews; a tenant sees its own namespace and no other."""

import pytest

from things import ACCOUNTS, BINDINGS, CM, PODS, ROLES, SANDBOXES, config_map, pod, sandbox
from transcript import Transcript

RBAC = "rbac.authorization.k8s.io"
REVIEWS = "/apis/authorization.k8s.io/v1"


def grant(t, ns, account, rules):
    """A service account in ns with a role of these rules there; its token."""
    at = lambda path: path.replace("{ns}", ns)  # noqa: E731
    assert t.ask("POST", at(ACCOUNTS), {"metadata": {"name": account}}).status == 201
    assert t.ask("POST", at(ROLES), {"metadata": {"name": account}, "rules": rules}).status == 201
    assert t.ask("POST", at(BINDINGS), {"metadata": {"name": account}, "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": account},
                                      "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": ns}]}).status == 201
    made = t.ask("POST", at(ACCOUNTS) + f"/{account}/token", {"spec": {}})
    assert made.status == 201
    return made["status"]["token"]


FULL = [{"apiGroups": ["", "agents.x-k8s.io"], "resources": ["*"], "verbs": ["*"]}]
READ = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
        {"apiGroups": ["agents.x-k8s.io"], "resources": ["sandboxes"], "resourceNames": ["mine"], "verbs": ["get", "delete"]}]


@pytest.fixture
def other(api):
    name = api.namespace()
    yield name
    api.request("DELETE", f"/api/v1/namespaces/{name}")


def as_(t, token):
    """Calls like t.call, in the name of a token."""
    def call(step, method, path, body=None, **query):
        got = t.ask(method, path, body, token=token, **query)
        t.note(step, [f"{method} {t.request_line(method, path, query).split(' ', 1)[1]}", got.status, got.json if got.status >= 400 else got.json.get("kind")])
        return got
    return call


def test_tenants(t, other):
    t.alias(other, "other")
    token = grant(t, t.ns, "tenant", FULL)
    t.ask("POST", SANDBOXES.replace("{ns}", other), sandbox("theirs"))
    t.wait("the role is known", lambda: t.ask("GET", CM, token=token).status == 200)
    call = as_(t, token)
    call("creates in its own", "POST", SANDBOXES, sandbox("mine"))
    call("lists its own", "GET", SANDBOXES)
    call("watches its own", "GET", SANDBOXES, fieldSelector="metadata.name=none")
    for what, path in (("sandboxes", SANDBOXES), ("pods", PODS), ("config maps", CM)):
        there = path.replace("{ns}", other)
        call(f"lists {what} of another", "GET", there)
        call(f"reads {what} of another", "GET", there + "/theirs")
        call(f"creates {what} of another", "POST", there, sandbox("x"))
        call(f"deletes {what} of another", "DELETE", there + "/theirs")
    call("exec into another's pod", "POST", PODS.replace("{ns}", other) + "/theirs/exec", command="id")
    call("port-forward to another's pod", "POST", PODS.replace("{ns}", other) + "/theirs/portforward")
    call("lists all sandboxes", "GET", "/apis/agents.x-k8s.io/v1beta1/sandboxes")
    call("reads its namespace", "GET", "/api/v1/namespaces/{ns}")
    call("lists namespaces", "GET", "/api/v1/namespaces")
    call("discovery is open", "GET", "/apis")
    call("metrics are not", "GET", "/metrics")
    call("deletes its namespace", "DELETE", "/api/v1/namespaces/{ns}")
    t.get("theirs is untouched", SANDBOXES.replace("{ns}", other) + "/theirs", only=lambda o: "deletionTimestamp" in o["metadata"])


def test_streams(t):
    """A WebSocket begins with a GET, SPDY with a POST: which verbs each of them needs."""
    t.ask("POST", PODS, pod("p"))
    for verbs in (["get"], ["create"], ["get", "create"]):
        name = "-".join(verbs)
        token = grant(t, t.ns, name, [{"apiGroups": [""], "resources": ["pods/exec", "pods/log"], "verbs": verbs},
                                      {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}])
        t.wait("the role is known", lambda: t.ask("GET", CM, token=token).status == 200)  # noqa: B023
        for method, upgrade in (("GET", "websocket"), ("POST", "SPDY/3.1")):
            for sub in ("exec", "attach"):
                got = t.ask(method, PODS + f"/p/{sub}", token=token, headers={"connection": "Upgrade", "upgrade": upgrade}, command="id", stdout="1")
                t.note(f"{method} {sub} with {name}", [got.status, got.json])
        got = t.ask("GET", PODS + "/p/log", token=token)
        t.note(f"log with {name}", [got.status, got.json])


def test_verbs(t):
    token = grant(t, t.ns, "reader", READ)
    t.ask("POST", CM, config_map("c"))
    t.ask("POST", SANDBOXES, sandbox("mine"))
    t.ask("POST", SANDBOXES, sandbox("other"))
    t.wait("the role is known", lambda: t.ask("GET", CM, token=token).status == 200)
    call = as_(t, token)
    call("get", "GET", CM + "/c")
    call("list", "GET", CM)
    call("watch", "GET", CM, watch="1")
    call("create", "POST", CM, config_map("d"))
    call("update", "PUT", CM + "/c", config_map("c"))
    call("delete", "DELETE", CM + "/c")
    call("deletecollection", "DELETE", CM)
    patched = t.ask("PATCH", CM + "/c", {}, headers={"content-type": "application/merge-patch+json"}, token=token)
    t.note("patch", [patched.status, patched.json])
    call("by resource name", "GET", SANDBOXES + "/mine")
    call("another resource name", "GET", SANDBOXES + "/other")
    call("no list by resource name", "GET", SANDBOXES)
    call("a subresource is another resource", "GET", SANDBOXES + "/mine/status")
    call("secrets were never granted", "GET", "/api/v1/namespaces/{ns}/secrets")
    call("a resource nobody knows", "GET", "/api/v1/namespaces/{ns}/nothings")
    call("a cluster-wide resource", "GET", "/api/v1/nodes")
    call("the delete it was granted", "DELETE", SANDBOXES + "/mine")


def test_reviews(t):
    token = grant(t, t.ns, "reader", READ)
    t.wait("the role is known", lambda: t.ask("GET", CM, token=token).status == 200)
    user = f"system:serviceaccount:{t.ns}:reader"

    def may(step, verb, resource, group="", **more):
        spec = {"resourceAttributes": {"namespace": t.ns, "verb": verb, "resource": resource, "group": group, **more}}
        mine = t.ask("POST", REVIEWS + "/selfsubjectaccessreviews", {"spec": spec}, token=token)
        other = t.ask("POST", REVIEWS + "/subjectaccessreviews", {"spec": {**spec, "user": user}})
        t.note(step, [mine.status, mine["status"]["allowed"], other.status, other["status"]["allowed"]])

    may("get config maps", "get", "configmaps")
    may("create config maps", "create", "configmaps")
    may("get a sandbox by name", "get", "sandboxes", "agents.x-k8s.io", name="mine")
    may("get another", "get", "sandboxes", "agents.x-k8s.io", name="other")
    may("in another namespace", "get", "configmaps", namespace="default")
    may("everything", "*", "*", "*")
    t.post("the administrator may", REVIEWS + "/selfsubjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "*", "resource": "*", "group": "*"}}},
           only=lambda o: o["status"]["allowed"])
    t.post("a path", REVIEWS + "/subjectaccessreviews", {"spec": {"user": "someone", "nonResourceAttributes": {"verb": "get", "path": "/metrics"}}}, only=lambda o: o["status"]["allowed"])
    t.post("an open path", REVIEWS + "/subjectaccessreviews", {"spec": {"user": "someone", "groups": ["system:authenticated"], "nonResourceAttributes": {"verb": "get", "path": "/version"}}},
           only=lambda o: o["status"]["allowed"])
    t.post("neither", REVIEWS + "/selfsubjectaccessreviews", {"spec": {}})
    t.post("nobody", REVIEWS + "/subjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}})
    t.post("in a namespace", f"/apis/authorization.k8s.io/v1/namespaces/{t.ns}/localsubjectaccessreviews",
           {"metadata": {"namespace": t.ns}, "spec": {"user": user, "resourceAttributes": {"namespace": t.ns, "verb": "list", "resource": "configmaps"}}}, only=lambda o: o["status"]["allowed"])
    rules = t.ask("POST", REVIEWS + "/selfsubjectrulesreviews", {"spec": {"namespace": t.ns}}, token=token)
    wanted = [r for r in rules["status"]["resourceRules"] if "configmaps" in r["resources"] or "sandboxes" in r["resources"]]
    t.note("its rules", [rules.status, rules["status"]["incomplete"], wanted])
    t.post("rules of no namespace", REVIEWS + "/selfsubjectrulesreviews", {"spec": {}})
    who = t.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=token)
    t.note("who it is", [who.status, who["kind"], who["status"]["userInfo"]["username"], sorted(who["status"]["userInfo"]["groups"])])


def test_unknown(t):
    for what, token in (("no token", ""), ("a token nobody made", "rubbish"), ("a token of another key", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln")):
        got = t.ask("GET", CM, token=token)
        t.note(what, [got.status, got.json, got.headers.get("www-authenticate")])
    basic = t.ask("GET", CM, headers={"authorization": "Basic YTpi"}, token="")
    t.note("basic", [basic.status, basic.json["reason"]])


def test_escalation(t):
    token = grant(t, t.ns, "builder", [{"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": ["create", "update", "get", "list"]}, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}])
    t.wait("the role is known", lambda: t.ask("GET", ROLES, token=token).status == 200)
    call = as_(t, token)
    call("a role with what it has", "POST", ROLES, {"metadata": {"name": "same"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]})
    call("a role with more", "POST", ROLES, {"metadata": {"name": "more"}, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]})
    to = {"metadata": {"name": "up"}, "subjects": [{"kind": "ServiceAccount", "name": "builder", "namespace": t.ns}]}
    call("a binding to more", "POST", BINDINGS, {**to, "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}})
    call("a binding to what it has", "POST", BINDINGS, {**to, "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "same"}})
    t.post("a binding cannot change its role", BINDINGS, {"metadata": {"name": "b"}, "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "same"}}, only=lambda o: o["roleRef"])
    t.put("not even by update", BINDINGS + "/b", {"metadata": {"name": "b"}, "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "other"}})
    t.post("a rule without verbs", ROLES, {"metadata": {"name": "bad"}, "rules": [{"apiGroups": [""], "resources": ["pods"]}]})
    t.post("a subject of no kind", BINDINGS, {"metadata": {"name": "bad"}, "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "same"}, "subjects": [{"kind": "Robot", "name": "x"}]})
    t.post("edit is granted in a namespace", BINDINGS, {"metadata": {"name": "edit"}, "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"},
                                                        "subjects": [{"kind": "User", "apiGroup": RBAC, "name": "ann"}]}, only=lambda o: o["kind"])

    def allowed(verb, resource):
        spec = {"user": "ann", "resourceAttributes": {"namespace": t.ns, "verb": verb, "resource": resource}}
        return t.ask("POST", REVIEWS + "/subjectaccessreviews", {"spec": spec})["status"]["allowed"]

    t.wait("the binding is known", lambda: allowed("create", "pods"))
    t.note("what edit means", {f"{v} {r}": allowed(v, r) for v, r in (("create", "pods"), ("get", "secrets"), ("delete", "configmaps"), ("create", "roles"), ("delete", "namespaces"), ("get", "nodes"))})


def test_impersonation(api, ns, other):
    """Only who may act for others does, and then has their rights and no more. Both targets, without a record."""
    t = Transcript(api, "impersonation", ns)
    token = grant(t, ns, "tenant", FULL)
    t.wait("the role is known", lambda: t.ask("GET", CM, token=token).status == 200)
    tenant = {"impersonate-user": f"system:serviceaccount:{ns}:tenant"}
    there = CM.replace("{ns}", other)
    assert t.ask("GET", CM, headers=tenant).status == 200
    assert t.ask("GET", there, headers=tenant).status == 403
    assert t.ask("GET", there, headers={"impersonate-user": "alice"}).status == 403
    assert t.ask("GET", there, headers={"impersonate-user": "alice", "impersonate-group": "system:masters"}).status == 200
    for more in ({"impersonate-user": "admin", "impersonate-group": "system:masters"}, {"impersonate-user": "admin"},
                 {"impersonate-user": f"system:serviceaccount:{other}:default"}):
        refused = t.ask("GET", CM, headers=more, token=token)
        assert refused.status == 403 and "cannot impersonate" in refused["message"], refused.json
    assert t.ask("GET", CM, headers={"impersonate-group": "system:masters"}, token=token).status >= 400
    assert t.ask("GET", CM, headers={"impersonate-group": "system:masters"}).status >= 400
    me = t.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers=tenant)["status"]["userInfo"]
    assert me["username"] == tenant["impersonate-user"]
    assert sorted(me["groups"]) == ["system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{ns}"]

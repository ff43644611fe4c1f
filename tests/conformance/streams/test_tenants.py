"""Tenants: who may have a stream of whose Pods. Each `cannot` has its `can`, and is told before anything is switched."""

import pytest

pytestmark = pytest.mark.core

STREAMS = [("exec", "exec?command=echo&command=hi&stdout=1"), ("attach", "attach?stdin=1&stdout=1"), ("portforward", "portforward")]
PROTOCOLS = {("websocket", "portforward"): "SPDY/3.1+portforward.k8s.io", ("spdy", "portforward"): "portforward.k8s.io",
             ("websocket", "exec"): "v5.channel.k8s.io", ("spdy", "exec"): "v4.channel.k8s.io"}


class Tenant:
    def __init__(self, server, ns, role):
        self.server, self.ns = server, ns
        self.name = f"{role or 'nobody'}-of-{ns}"
        self.token = server.make_user(ns, self.name, role)

    def open(self, ns, sub, upgrade, extra=""):
        """101, or the code and the Status of a refusal."""
        query = dict(STREAMS)[sub]
        protocol = PROTOCOLS.get((upgrade, sub), PROTOCOLS[upgrade, "exec"])
        c, answer = self.server.open(f"/api/v1/namespaces/{ns}/pods/p/{query}", self.token, upgrade, protocol, extra)
        if c:
            c.close()
            return 101, None
        return self.server.status_of(answer)

    def get(self, path):
        answer = self.server.ask("GET", path, token=self.token)
        return answer.status_code, answer


@pytest.fixture(scope="module")
def world(server):
    """Two namespaces, each with a Pod that wrote something; edit and view of the first, view of nothing."""
    spaces = [server.make_namespace() for _ in range(2)]
    for ns in spaces:
        server.log_file(server.make_pod(ns, "p")).write_text(f"2026-11-16T09:30:00.000000001Z stdout F log of {ns}\n")
    return spaces, Tenant(server, spaces[0], "edit"), Tenant(server, spaces[0], "view"), Tenant(server, spaces[0], None)


def refused(server, tenant, verb, sub, ns, got):
    code, status = got
    resource = f"pods/{sub}" if sub else "pods"
    who = f"system:serviceaccount:{tenant.ns}:{tenant.name}"
    assert code == 403 and status["kind"] == "Status" and status["reason"] == "Forbidden", status
    assert status["message"] == f'pods "p" is forbidden: User "{who}" cannot {verb} resource "{resource}" in API group "" in the namespace "{ns}"'


@pytest.mark.parametrize("upgrade", ["websocket", "spdy"])
@pytest.mark.parametrize("sub", ["exec", "attach", "portforward"])
def test_streams(server, world, sub, upgrade):
    (a, b), edit, view, nobody = world
    verb = "get" if upgrade == "websocket" else "create"
    before = server.log.count("event=podstream.open")
    assert edit.open(a, sub, upgrade) == (101, None)
    refused(server, edit, verb, sub, b, edit.open(b, sub, upgrade))
    for tenant in (view, nobody):
        for ns in (a, b):
            refused(server, tenant, verb, sub, ns, tenant.open(ns, sub, upgrade))
    assert server.log.count("event=podstream.open") == before + 1, "a refused request came as far as the pod side"


def test_logs(server, world):
    (a, b), edit, view, nobody = world
    for tenant in (edit, view):
        assert tenant.get(f"/api/v1/namespaces/{a}/pods/p/log")[1].text == f"log of {a}\n"
    for tenant, ns in ((edit, b), (view, b), (nobody, a), (nobody, b)):
        code, answer = tenant.get(f"/api/v1/namespaces/{ns}/pods/p/log")
        refused(server, tenant, "get", "log", ns, (code, answer.json()))


def test_pods_are_not_seen(server, world):
    (a, b), edit, view, nobody = world
    for tenant in (edit, view):
        assert tenant.get(f"/api/v1/namespaces/{a}/pods/p")[0] == 200
        refused(server, tenant, "get", "", b, (lambda got: (got[0], got[1].json()))(tenant.get(f"/api/v1/namespaces/{b}/pods/p")))
        assert tenant.get("/api/v1/pods")[0] == 403
    assert nobody.get(f"/api/v1/namespaces/{a}/pods/p")[0] == 403


def test_whether_a_pod_is_there_is_not_told(server, world):
    """Of Pods that are there and of others the same is said to who may not look."""
    (_, b), edit, _, _ = world
    for name in ("p", "none"):
        c, answer = server.open(f"/api/v1/namespaces/{b}/pods/{name}/exec?command=a&stdout=1", edit.token)
        assert c is None and server.status_of(answer)[1]["message"].startswith(f'pods "{name}" is forbidden')


@pytest.mark.parametrize("verbs,websocket,spdy", [(["get"], 403, 403), (["create"], 403, 101), (["get", "create"], 101, 101)])
def test_verbs(server, verbs, websocket, spdy):
    """A WebSocket opens with a GET: that needs the right to get, and none to look is one to run something."""
    ns = server.make_namespace()
    server.make_pod(ns, "p")
    server.make(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
                {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods/exec"], "verbs": verbs}]})
    token = server.make_user(ns, "u", "r", "Role")
    for upgrade, want in (("websocket", websocket), ("spdy", spdy)):
        c, answer = server.open(f"/api/v1/namespaces/{ns}/pods/p/exec?command=true&stdout=1", token, upgrade,
                                PROTOCOLS[upgrade, "exec"])
        assert (101 if c else server.status_of(answer)[0]) == want
        if c:
            c.close()


def test_one_name_alone(server):
    """A role for one Pod is not one for its neighbour."""
    ns = server.make_namespace()
    for name in ("p", "q"):
        server.make_pod(ns, name)
    server.make(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles", {"metadata": {"name": "r"}, "rules": [
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["*"], "resourceNames": ["p"]}]})
    token = server.make_user(ns, "u", "r", "Role")
    path = f"/api/v1/namespaces/{ns}/pods/%s/exec?command=true&stdout=1"
    c, _ = server.open(path % "p", token)
    c.close()
    c, answer = server.open(path % "q", token)
    assert c is None and server.status_of(answer)[0] == 403


def test_nobody_and_nonsense(server, world):
    (a, _), edit, _, _ = world
    path = f"/api/v1/namespaces/{a}/pods/p/exec?command=true&stdout=1"
    c, answer = server.open(path, "rubbish")
    assert c is None and server.status_of(answer)[0] == 401
    c, answer = server.open(path, edit.token, extra="Impersonate-User: silica-admin\r\nImpersonate-Group: system:masters\r\n")
    assert c is None and server.status_of(answer)[0] == 403
    with server.connect() as plain:
        plain.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n".encode())
        assert plain.recv(100).startswith((b"HTTP/1.1 401 ", b"HTTP/1.1 403 "))


def test_impersonation_counts(server, world):
    """An administrator in a tenant's name has that tenant's rights, and no others."""
    (a, b), edit, _, _ = world
    admin = server.make_user(a, "admin-of-all", None)
    server.make("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": f"all-{a}"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "admin-of-all", "namespace": a}]})
    extra = f"Impersonate-User: system:serviceaccount:{a}:{edit.name}\r\n"
    for ns, want in ((a, True), (b, False)):
        c, _ = server.open(f"/api/v1/namespaces/{ns}/pods/p/exec?command=true&stdout=1", admin, extra=extra)
        assert bool(c) == want
        if c:
            c.close()

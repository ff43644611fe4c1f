"""What a tenant may have: objects and bytes of its namespace, and what its pools may make."""

import http.client
import json
import resource
import ssl
import threading
import urllib.parse

import pytest

from harness.server import wait_until
from lib import up as ups

MIB = 1 << 20
LIMITS = ("--namespace-max-objects", "120", "--namespace-max-bytes", "4MiB")


class Writer:
    """A tenant's calls on one connection."""

    def __init__(self, api, token):
        url = urllib.parse.urlparse(api.url)
        self.connection = http.client.HTTPSConnection(url.hostname, url.port, context=ssl.create_default_context(cafile=str(api.ca_file)))
        self.headers = {"authorization": f"Bearer {token}"}

    def call(self, method, path, body=None, kind="application/json"):
        self.connection.request(method, path, json.dumps(body) if body else None, {**self.headers, "content-type": kind})
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param, *LIMITS) as started:
        yield started


@pytest.fixture
def tenant(up, request):
    """(the path of a namespace of its own, its name, calls with the role edit there)."""
    ns = "t-" + "".join(c if c.isalnum() else "-" for c in request.node.name.lower())[-40:].strip("-")
    up.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": ns}})
    token = up.run("token", "-n", ns, "--role", "edit").stdout.strip()
    yield f"/api/v1/namespaces/{ns}", ns, Writer(up.api, token)
    up.api.call("DELETE", f"/api/v1/namespaces/{ns}")


def config_map(name, bytes=10):
    return {"metadata": {"name": name}, "data": {"v": "x" * bytes}}


def test_bytes(up, tenant):
    path, ns, it = tenant
    made = 0
    while made < 20:
        status, said = it.call("POST", f"{path}/configmaps", config_map(f"c{made}", MIB * 9 // 10))
        if status != 201:
            break
        made += 1
    assert made == 4 and status == 403 and said["reason"] == "Forbidden"
    assert said["message"].startswith(f'configmaps "c4" is forbidden: exceeded quota: of the namespace, requested: bytes=9')
    assert "limited: bytes=4194304" in said["message"] and "silica.dev/max-bytes" in said["message"]
    # what grows is refused, what does not grow or shrinks is not, and what is deleted makes room
    patch = "application/merge-patch+json"
    assert it.call("POST", f"{path}/configmaps", config_map("fill", MIB // 4))[0] == 201
    assert it.call("PATCH", f"{path}/configmaps/fill", {"data": {"more": "x" * (MIB // 2)}}, patch)[0] == 403
    assert it.call("PATCH", f"{path}/configmaps/c0", {"metadata": {"labels": {"a": "b"}}}, patch)[0] == 200
    assert it.call("PUT", f"{path}/configmaps/c1", config_map("c1"))[0] == 200
    assert it.call("DELETE", f"{path}/configmaps/c2")[0] == 200
    assert it.call("POST", f"{path}/configmaps", config_map("c4", MIB * 9 // 10))[0] == 201
    # another namespace has its own
    other = up.api.call("POST", "/api/v1/namespaces/default/configmaps", config_map("other", MIB * 9 // 10))
    up.api.call("DELETE", f"/api/v1/namespaces/default/configmaps/{other['metadata']['name']}")


def test_objects_by_many_at_once(up, tenant):
    path, ns, it = tenant
    token, answers = it.headers["authorization"].split()[1], []

    def write(first):
        mine = Writer(up.api, token)
        answers.extend(mine.call("POST", f"{path}/configmaps", config_map(f"c{first}-{i}"))[0] for i in range(60))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    left = len(it.call("GET", f"{path}/configmaps")[1]["items"])
    assert set(answers) == {201, 403} and answers.count(201) <= 120 and left <= 120
    for dry in ("", "?dryRun=All"):
        status, said = it.call("POST", f"{path}/secrets{dry}", {"metadata": {"name": "s"}})
        assert status == 403 and "requested: objects=1, used: objects=120, limited: objects=120" in said["message"]


def test_it_is_the_same_after_a_start(up, tenant):
    path, ns, it = tenant
    assert [it.call("POST", f"{path}/configmaps", config_map(f"c{i}", MIB // 2))[0] for i in range(9)] == [201] * 7 + [403] * 2
    left = len(it.call("GET", f"{path}/configmaps")[1]["items"])
    up.wait_back("control", up.kill("control"))
    again = Writer(up.api, it.headers["authorization"].split()[1])
    assert again.call("POST", f"{path}/configmaps", config_map("more", MIB // 2))[0] == 403
    assert again.call("DELETE", f"{path}/configmaps/c0")[0] == 200
    assert again.call("POST", f"{path}/configmaps", config_map("more", MIB // 2))[0] == 201
    assert again.call("POST", f"{path}/configmaps", config_map("more-yet", MIB // 2))[0] == 403
    assert len(again.call("GET", f"{path}/configmaps")[1]["items"]) == left


def test_an_administrator_raises_it(up, tenant):
    path, ns, it = tenant
    raised = {"metadata": {"annotations": {"silica.dev/max-bytes": "6Mi", "silica.dev/max-objects": "40"}}}
    assert it.call("PATCH", path, raised, "application/merge-patch+json")[0] == 403
    up.api.patch(path, raised)
    answers = [it.call("POST", f"{path}/configmaps", config_map(f"c{i}", MIB * 9 // 10))[0] for i in range(7)]
    assert answers == [201] * 6 + [403]
    for i in range(40):
        status, said = it.call("POST", f"{path}/secrets", {"metadata": {"name": f"s{i}"}})
    assert status == 403 and "limited: objects=40;" in said["message"]


def test_a_pool_without_end(up, tenant):
    """Its controller writes in the tenant's place, and stops where the tenant would."""
    path, ns, it = tenant
    group = f"/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{ns}"
    version = "extensions.agents.x-k8s.io/v1beta1"
    template = {"apiVersion": version, "kind": "SandboxTemplate", "metadata": {"name": "t"},
                "spec": {"podTemplate": {"spec": {"containers": [{"name": "c", "image": "none"}]}}}}
    pool = {"apiVersion": version, "kind": "SandboxWarmPool", "metadata": {"name": "p"},
            "spec": {"replicas": 300000, "sandboxTemplateRef": {"name": "t"}}}
    assert it.call("POST", f"{group}/sandboxtemplates", template)[0] == 201
    assert it.call("POST", f"{group}/sandboxwarmpools", pool)[0] == 201
    wait_until(lambda: it.call("POST", f"{path}/secrets?dryRun=All", {"metadata": {"name": "s"}})[0] == 403, 60, "the namespace is full")
    sandboxes = f"/apis/agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxes"
    assert 10 < len(it.call("GET", sandboxes)[1]["items"]) <= 120
    assert it.call("DELETE", f"{group}/sandboxwarmpools/p")[0] == 200
    wait_until(lambda: it.call("POST", f"{path}/secrets", {"metadata": {"name": "s"}})[0] in (201, 409), 60, "it has room again")


def watch(up, token):
    """An open watch: (its connection, the status)."""
    url = urllib.parse.urlparse(up.api.url)
    c = http.client.HTTPSConnection(url.hostname, url.port, context=CONTEXTS.setdefault(up.api.url, ssl.create_default_context(cafile=str(up.api.ca_file))))
    c.request("GET", f"/api/v1/namespaces/{up.ns}/configmaps?watch=1&resourceVersion={up.version}", headers={"authorization": f"Bearer {token}"})
    return c, c.getresponse()


CONTEXTS = {}


def test_watches(up, tenant):
    path, ns, it = tenant
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 10000), hard))
    up.ns, up.version = ns, it.call("GET", f"{path}/configmaps")[1]["metadata"]["resourceVersion"]
    up.api.call("POST", f"{path}/serviceaccounts", {"metadata": {"name": "other"}})
    up.api.call("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings", {
        "metadata": {"name": "other"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "other", "namespace": ns}]})
    other = up.api.call("POST", f"{path}/serviceaccounts/other/token", {"spec": {}})["status"]["token"]
    token, held = it.headers["authorization"].split()[1], []
    try:
        while len(held) < 2100 and (not held or held[-1][1].status == 200):
            held.append(watch(up, token))
        assert (len(held), held[-1][1].status) == (2001, 429) and "which is as many as one may" in held[-1][1].read().decode()
        c, answer = watch(up, other)
        assert answer.status == 200  # another's are its own
        c.close()
        for c, answer in held:
            answer.close()
            c.close()
        held.clear()

        def is_let_in():
            c, answer = watch(up, token)
            status = answer.status
            answer.close()
            c.close()
            return status == 200

        wait_until(is_let_in, 30, "there is room again")
    finally:
        for c, answer in held:
            answer.close()
            c.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

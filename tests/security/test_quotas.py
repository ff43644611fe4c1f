"""A ResourceQuota holds for its namespace's tenants and for what writes in their place, and says what is used."""

import threading

import pytest

from harness.server import wait_until
from lib import up as ups
from test_ceilings import Writer, config_map

APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
VERSION = "extensions.agents.x-k8s.io/v1beta1"


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param) as started:
        yield started


@pytest.fixture
def tenant(up, request):
    """(the path of a namespace of its own, its name, calls with the role admin there)."""
    ns = "q-" + "".join(c if c.isalnum() else "-" for c in request.node.name.lower())[-40:].strip("-")
    up.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": ns}})
    token = up.run("token", "-n", ns, "--role", "admin").stdout.strip()
    yield f"/api/v1/namespaces/{ns}", ns, Writer(up.api, token)
    up.api.call("DELETE", f"/api/v1/namespaces/{ns}")


def limit(up, path, hard, name="q", **spec):
    up.api.call("POST", f"{path}/resourcequotas", {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})


def used(it, path, name="q"):
    status = it.call("GET", f"{path}/resourcequotas/{name}")[1]["status"]
    assert sorted(status["hard"]) == sorted(status["used"])
    return status["used"]


def pod(name, requests=None, limits=None, **spec):
    resources = {k: v for k, v in (("requests", requests), ("limits", limits)) if v}
    # no node takes it, so that nothing runs
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x", "resources": resources}], "schedulerName": "none", **spec}}


def test_count(up, tenant):
    path, ns, it = tenant
    before = len(it.call("GET", f"{path}/configmaps")[1]["items"])
    limit(up, path, {"configmaps": str(before + 2), "count/secrets": "1", "count/sandboxtemplates.extensions.agents.x-k8s.io": "0"})
    assert used(it, path)["configmaps"] == str(before)
    assert [it.call("POST", f"{path}/configmaps", config_map(f"c{i}"))[0] for i in range(3)] == [201, 201, 403]
    status, said = it.call("POST", f"{path}/configmaps?dryRun=All", config_map("c2"))
    full = f"exceeded quota: q, requested: configmaps=1, used: configmaps={before + 2}, limited: configmaps={before + 2}"
    assert (status, said["message"]) == (403, f'configmaps "c2" is forbidden: {full}')
    # nor by an apply or a patch that would make it; what is there may change
    applied = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("c2")}
    status, said = it.call("PATCH", f"{path}/configmaps/c2?fieldManager=m", applied, APPLY)
    assert status == 403 and full in said["message"]
    assert it.call("PATCH", f"{path}/configmaps/c1", {"data": {"v": "more" * 100}}, MERGE)[0] == 200
    assert it.call("POST", f"{path}/secrets", {"metadata": {"name": "s0"}})[0] == 201
    assert it.call("POST", f"{path}/secrets", {"metadata": {"generateName": "s"}})[0] == 403
    template = {"apiVersion": VERSION, "kind": "SandboxTemplate", "metadata": {"name": "t"}, "spec": {"podTemplate": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}}
    assert it.call("POST", f"/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxtemplates", template)[0] == 403
    assert used(it, path) == {"configmaps": str(before + 2), "count/secrets": "1", "count/sandboxtemplates.extensions.agents.x-k8s.io": "0"}
    assert it.call("DELETE", f"{path}/configmaps/c0")[0] == 200
    assert used(it, path)["configmaps"] == str(before + 1)
    assert it.call("POST", f"{path}/configmaps", config_map("c2"))[0] == 201
    assert it.call("DELETE", f"{path}/secrets")[0] == 200
    assert used(it, path)["count/secrets"] == "0"


def test_many_at_once(up, tenant):
    path, ns, it = tenant
    limit(up, path, {"secrets": "25"})
    token, answers = it.headers["authorization"].split()[1], []

    def write():
        mine = Writer(up.api, token)
        answers.extend(mine.call("POST", f"{path}/secrets", {"metadata": {"generateName": "s-"}})[0] for _ in range(20))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert answers.count(201) == 25 and answers.count(403) == 55
    assert used(it, path)["secrets"] == "25" == str(len(it.call("GET", f"{path}/secrets")[1]["items"]))


def test_sums_of_pods(up, tenant):
    path, ns, it = tenant
    limit(up, path, {"pods": "3", "requests.cpu": "1", "limits.memory": "1Gi"})
    status, said = it.call("POST", f"{path}/pods", pod("silent"))
    assert status == 403 and said["message"].endswith("failed quota: q: must specify limits.memory for: c; requests.cpu for: c")
    small = ({"cpu": "300m", "memory": "64Mi"}, {"memory": "256Mi"})
    assert it.call("POST", f"{path}/pods", pod("a", *small))[0] == 201
    assert it.call("POST", f"{path}/pods", pod("b", *small))[0] == 201
    status, said = it.call("POST", f"{path}/pods", pod("c", {"cpu": "500m"}, {"memory": "256Mi"}))
    assert status == 403 and said["message"].endswith("exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1")
    assert used(it, path) == {"pods": "2", "requests.cpu": "600m", "limits.memory": "512Mi"}
    # what has ended takes no part
    up.api.call("PATCH", f"{path}/pods/a/status", {"status": {"phase": "Succeeded"}}, kind=MERGE)
    assert used(it, path) == {"pods": "1", "requests.cpu": "300m", "limits.memory": "256Mi"}
    assert it.call("POST", f"{path}/pods", pod("c", {"cpu": "700m"}, {"memory": "768Mi"}))[0] == 201
    assert used(it, path) == {"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi"}


def test_storage(up, tenant):
    path, ns, it = tenant
    limit(up, path, {"requests.storage": "3Gi", "standard.storageclass.storage.k8s.io/persistentvolumeclaims": "1"})

    def claim(name, size, storage_class):
        return it.call("POST", f"{path}/persistentvolumeclaims", {"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": {"requests": {"storage": size}}}})[0]

    assert [claim("a", "1Gi", "standard"), claim("b", "1Gi", "standard"), claim("c", "3Gi", "other"), claim("d", "2Gi", "other")] == [201, 403, 403, 201]
    assert used(it, path) == {"requests.storage": "3Gi", "standard.storageclass.storage.k8s.io/persistentvolumeclaims": "1"}


def test_tenants_only_read_it(up, tenant):
    path, ns, it = tenant
    limit(up, path, {"secrets": "1"})
    for role in ("admin", "edit", "view"):
        by = Writer(up.api, up.run("token", "-n", ns, "--role", role).stdout.strip())
        assert by.call("GET", f"{path}/resourcequotas/q")[0] == 200 and by.call("GET", f"{path}/resourcequotas")[0] == 200
        assert by.call("DELETE", f"{path}/resourcequotas/q")[0] == 403
        assert by.call("PATCH", f"{path}/resourcequotas/q", {"spec": {"hard": {"secrets": "9"}}}, MERGE)[0] == 403
        assert by.call("PATCH", f"{path}/resourcequotas/q/status", {"status": {"used": {"secrets": "0"}}}, MERGE)[0] == 403
        assert by.call("POST", f"{path}/resourcequotas", {"metadata": {"name": "more"}})[0] == 403
    # a status that says otherwise does not help
    up.api.call("POST", f"{path}/secrets", {"metadata": {"name": "s"}})
    up.api.call("PATCH", f"{path}/resourcequotas/q/status", {"status": {"used": {"secrets": "0"}}}, kind=MERGE)
    assert used(it, path) == {"secrets": "1"}
    assert it.call("POST", f"{path}/secrets", {"metadata": {"name": "t"}})[0] == 403


def test_it_is_the_same_after_a_kill(up, tenant):
    path, ns, it = tenant
    limit(up, path, {"secrets": "40"})
    token, made = it.headers["authorization"].split()[1], []

    def write(first):
        mine = Writer(up.api, token)
        try:
            for i in range(30):
                made.append(mine.call("POST", f"{path}/secrets", {"metadata": {"name": f"s{first}-{i}"}})[0])
        except OSError:
            pass  # killed meanwhile

    threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    for t in threads:
        t.start()
    wait_until(lambda: len(made) > 15, 60, "some are made")
    pid = up.kill("control")
    for t in threads:
        t.join()
    up.wait_back("control", pid)
    again = Writer(up.api, token)
    there = len(again.call("GET", f"{path}/secrets")[1]["items"])
    assert made.count(201) <= there <= 40 and used(again, path) == {"secrets": str(there)}
    more = [again.call("POST", f"{path}/secrets", {"metadata": {"name": f"later-{i}"}})[0] for i in range(45 - there)]
    assert more == [201] * (40 - there) + [403] * 5
    assert used(again, path) == {"secrets": "40"}


def test_a_pool_stops_at_it(up, tenant):
    """Its controller writes in the tenant's place, is refused as the tenant would be, and goes on when there is room."""
    path, ns, it = tenant
    group, sandboxes = f"/apis/{VERSION}/namespaces/{ns}", f"/apis/agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxes"
    limit(up, path, {"count/sandboxes.agents.x-k8s.io": "3"})
    template = {"apiVersion": VERSION, "kind": "SandboxTemplate", "metadata": {"name": "t"}, "spec": {"podTemplate": {"spec": {"containers": [{"name": "c", "image": "none"}]}}}}
    assert it.call("POST", f"{group}/sandboxtemplates", template)[0] == 201
    assert it.call("POST", f"{group}/sandboxwarmpools", {"apiVersion": VERSION, "kind": "SandboxWarmPool", "metadata": {"name": "p"}, "spec": {"replicas": 8, "sandboxTemplateRef": {"name": "t"}}})[0] == 201
    wait_until(lambda: used(it, path) == {"count/sandboxes.agents.x-k8s.io": "3"}, 60, "the pool has what the quota lets it have")

    def is_told():
        events = it.call("GET", f"{path}/events")[1]["items"]
        return any("exceeded quota: q" in e.get("message", "") and e["involvedObject"]["name"] == "p" for e in events)

    wait_until(is_told, 60, "an Event of the pool says why it has no more")
    assert len(it.call("GET", sandboxes)[1]["items"]) == 3
    up.api.call("PATCH", f"{path}/resourcequotas/q", {"spec": {"hard": {"count/sandboxes.agents.x-k8s.io": "5"}}}, kind=MERGE)
    wait_until(lambda: used(it, path) == {"count/sandboxes.agents.x-k8s.io": "5"}, 120, "the pool uses the room it got")

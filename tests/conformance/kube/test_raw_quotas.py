"""ResourceQuotas: what they may say, what they refuse, and what their status tells."""

import pytest

NS = "/api/v1/namespaces/{ns}"
QUOTAS = NS + "/resourcequotas"


def quota(hard=None, name="q", **spec):
    return {"metadata": {"name": name}, "spec": {**({"hard": hard} if hard else {}), **spec}}


def pod(name, requests=None, limits=None, inits=(), **spec):
    def container(name, requests, limits):
        resources = {k: v for k, v in (("requests", requests), ("limits", limits)) if v}
        return {"name": name, "image": "x", **({"resources": resources} if resources else {})}

    more = {"initContainers": [container(*i) for i in inits]} if inits else {}
    return {"metadata": {"name": name}, "spec": {"containers": [container("c", requests, limits)], "schedulerName": "none", **more, **spec}}


def claim(name, size, storage_class):
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": {"requests": {"storage": size}}}}


def status(o):
    return o.get("status")


def told(t, used, name="q"):
    """Once the status says so: the controller of the real server takes its time."""
    t.wait(f"{name} has {used}", lambda: (t.ask("GET", f"{QUOTAS}/{name}").json.get("status") or {}).get("used") == used)


def make(t, step, body, used):
    t.post(step, QUOTAS, body)
    told(t, used, body["metadata"]["name"])


def made(o):
    return o["kind"]


@pytest.fixture
def settled(t):
    t.wait("the service account is there", lambda: t.ask("GET", NS + "/serviceaccounts/default").status == 200)


BAD = [{"pods": "-1"}, {"pods": "1500m"}, {"count/secrets": "1500m"}, {"disk": "1"}, {"storage": "1Gi"}, {"Not Ok/x": "1"}, {"requests.example.com/gpu": "1"}, {"example.com/gpu": "1.5"},
       {"limits.cpu": "1.5", "requests.hugepages-2Mi": "4Mi", "hugepages-2Mi": "1Mi"}, {"pods": "many"}, {"replicationcontrollers": "0.5"}, {"limits.storage": "1"}]
SCOPES = [["BestEffort"], ["Terminating", "NotBestEffort"], ["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"], ["Sideways"]]


def test_rules(t):
    for i, hard in enumerate(BAD):
        t.post(f"hard {i}", QUOTAS, quota(hard, f"h{i}"), dryRun="All")
    for i, scopes in enumerate(SCOPES):
        t.post(f"scopes {i}", QUOTAS, quota({"pods": "1"}, f"s{i}", scopes=scopes), dryRun="All")
    t.post("a sum of what asks for nothing", QUOTAS, quota({"pods": "1", "cpu": "1"}, scopes=["BestEffort"]), dryRun="All")
    t.post("a scope of no Pods", QUOTAS, quota({"secrets": "1"}, scopes=["Terminating"]), dryRun="All")
    t.post("nothing", QUOTAS, quota(name="empty"), dryRun="All")
    t.post("no spec", QUOTAS, {"metadata": {"name": "none"}}, dryRun="All")
    t.ask("POST", QUOTAS, quota({"pods": "1"}, "s", scopes=["Terminating"]))
    t.patch("other scopes", QUOTAS + "/s", "merge", {"spec": {"scopes": ["NotTerminating"]}})
    t.patch("no scopes", QUOTAS + "/s", "merge", {"spec": {"scopes": None}})


def test_counts(t, settled):
    make(t, "a quota", quota({"secrets": "2", "count/leases.coordination.k8s.io": "1", "services": "1", "services.nodeports": "0", "count/nothing.example.com": "1"}),
         {"secrets": "0", "count/leases.coordination.k8s.io": "0", "services": "0", "services.nodeports": "0"})
    t.get("it says what is used", QUOTAS + "/q", only=status)
    for i in range(3):
        t.post(f"secret {i}", NS + "/secrets", {"metadata": {"name": f"s{i}"}}, only=made)
    t.post("dry run", NS + "/secrets", {"metadata": {"name": "s2"}}, dryRun="All")
    t.patch("apply", NS + "/secrets/s2", "apply", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s2"}}, fieldManager="m")
    t.patch("what is there may change", NS + "/secrets/s1", "merge", {"stringData": {"a": "b"}}, only=made)
    t.post("ports of nodes", NS + "/services", {"metadata": {"name": "np"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
    t.post("a service", NS + "/services", {"metadata": {"name": "a"}, "spec": {"clusterIP": "None"}}, only=made)
    t.post("one more", NS + "/services", {"metadata": {"name": "b"}, "spec": {"clusterIP": "None"}})
    leases = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
    t.post("a lease", leases, {"metadata": {"name": "a"}}, only=made)
    t.post("one lease more", leases, {"metadata": {"name": "b"}})
    told(t, {"secrets": "2", "count/leases.coordination.k8s.io": "1", "services": "1", "services.nodeports": "0"})
    t.get("all is used", QUOTAS + "/q", only=status)
    t.get("as a table", QUOTAS, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, only=lambda o: [[c["name"] for c in o["columnDefinitions"]], [r["cells"] for r in o["rows"]]])
    t.delete("one goes", NS + "/secrets/s0", only=made)
    told(t, {"secrets": "1", "count/leases.coordination.k8s.io": "1", "services": "1", "services.nodeports": "0"})
    t.patch("the quota changes", QUOTAS + "/q", "json", [{"op": "replace", "path": "/spec/hard", "value": {"secrets": "0", "resourcequotas": "1"}}], only=lambda o: o["spec"])
    told(t, {"secrets": "1", "resourcequotas": "1"})
    t.get("what it counts now", QUOTAS + "/q", only=status)
    t.post("there is more than it says", NS + "/secrets", {"metadata": {"name": "s2"}})
    t.patch("what is there may change still", NS + "/secrets/s1", "merge", {"stringData": {"a": "c"}}, only=made)
    t.post("quotas are counted", QUOTAS, quota({"pods": "1"}, "r"))


def test_sums(t, settled):
    make(t, "a quota", quota({"pods": "3", "requests.cpu": "1", "limits.memory": "1Gi", "cpu": "2", "count/pods": "10"}),
         {"pods": "0", "requests.cpu": "0", "limits.memory": "0", "cpu": "0", "count/pods": "0"})
    t.post("says nothing", NS + "/pods", pod("a"))
    t.post("says a half", NS + "/pods", pod("a", {"cpu": "1"}, inits=[("i", None, {"memory": "1Mi"})]))
    t.post("a Pod", NS + "/pods", pod("a", {"cpu": "300m"}, {"memory": "256Mi"}), only=made)
    t.post("an init container that needs more", NS + "/pods", pod("b", {"cpu": "100m"}, {"memory": "1Mi"}, inits=[("i", {"cpu": "200m"}, {"memory": "128Mi"})]), only=made)
    told(t, {"pods": "2", "requests.cpu": "500m", "limits.memory": "384Mi", "cpu": "500m", "count/pods": "2"})
    t.post("too much", NS + "/pods", pod("c", {"cpu": "600m"}, {"memory": "1Gi"}))
    t.patch("one ends", NS + "/pods/a/status", "merge", {"status": {"phase": "Succeeded"}}, only=made)
    told(t, {"pods": "1", "requests.cpu": "200m", "limits.memory": "128Mi", "cpu": "200m", "count/pods": "2"})
    t.post("there is room", NS + "/pods", pod("c", {"cpu": "800m"}, {"memory": "768Mi"}), only=made)
    told(t, {"pods": "2", "requests.cpu": "1", "limits.memory": "896Mi", "cpu": "1", "count/pods": "3"})
    t.get("what is used", QUOTAS + "/q", only=status)
    t.get("as a table", QUOTAS, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, only=lambda o: [r["cells"] for r in o["rows"]])


def test_claims(t, settled):
    hard = {"requests.storage": "3Gi", "persistentvolumeclaims": "5", "fast.storageclass.storage.k8s.io/requests.storage": "1Gi"}
    make(t, "a quota", quota(hard), {k: "0" for k in hard})
    claims = NS + "/persistentvolumeclaims"
    t.post("a claim", claims, claim("a", "1Gi", "fast"), only=made)
    t.post("of its class", claims, claim("b", "1Gi", "fast"))
    t.post("of another", claims, claim("b", "2Gi", "slow"), only=made)
    t.post("of any", claims, claim("c", "1Mi", "slow"))
    told(t, {"requests.storage": "3Gi", "persistentvolumeclaims": "2", "fast.storageclass.storage.k8s.io/requests.storage": "1Gi"})
    t.get("what is used", QUOTAS + "/q", only=status)


def test_scopes(t, settled):
    for name, scopes in (("ends", ["Terminating"]), ("stays", ["NotTerminating"]), ("best", ["BestEffort"]), ("asks", ["NotBestEffort"])):
        make(t, name, quota({"pods": "1"}, name, scopes=scopes), {"pods": "0"})
    t.post("one that stays", NS + "/pods", pod("a"), only=made)
    t.post("one that ends and asks", NS + "/pods", pod("b", {"cpu": "1"}, activeDeadlineSeconds=60), only=made)
    for name in ("ends", "stays", "best", "asks"):
        told(t, {"pods": "1"}, name)
    t.delete("one scope less", QUOTAS + "/best", only=made)
    t.wait("it is gone", lambda: t.ask("GET", QUOTAS + "/best").status == 404)
    t.post("another that stays", NS + "/pods", pod("c"))
    t.post("secrets are in no scope", NS + "/secrets", {"metadata": {"name": "s"}}, only=made)

"""Where the system connects to: into sandboxes, by sockets that the node made in their network, and never to an address that an object
carries. An object of a tenant's, or one of the system's that a tenant bends, leads to nothing on the host."""

import http.server
import json
import socket
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

from harness import router as routers
from harness.server import wait_until
from lib import controlplane, up as ups

pytestmark = pytest.mark.ours
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/team-a/sandboxes"
PODS = "/api/v1/namespaces/team-a/pods"
SPEC = {"containers": [{"name": "c", "image": "python:3.12-slim"}]}
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


class Secret:
    """A service of the host's, on loopback, that was never meant for a tenant."""

    def __init__(self, host, family=socket.AF_INET):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.server.seen.append(self.path)
                self.send_response(200)
                self.send_header("Content-Length", "6")
                self.end_headers()
                self.wfile.write(b"secret")

            def log_message(self, *args):
                pass

        server = type("Server", (http.server.ThreadingHTTPServer,), {"address_family": family, "daemon_threads": True})
        self.server = server((host, 0), Handler)
        self.server.seen = self.seen = []
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True).start()


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param, "--router-workers=1") as started:
        yield started


@pytest.fixture(scope="module")
def secret():
    made = Secret("127.0.0.1")
    yield made
    made.server.shutdown()
    made.server.server_close()


class Tenant:
    """One with a token for the namespace team-a, and a Sandbox there that runs."""

    def __init__(self, up, directory):
        self.up = up
        self.api = ups.Reader(directory, up.ready["kubeconfig"])
        self.kubeconfig = directory / "tenant"
        self.kubeconfig.write_text(up.run("token", "-n", "team-a", "-o", "kubeconfig").stdout)
        self.api.token, self.api.client_cert = up.run("token", "-n", "team-a").stdout.strip(), None
        wait_until(lambda: up.api.exists(f"{PODS}/sandbox-router"), 60)

    def write(self, method, path, body=None, kind="application/json"):
        try:
            self.api.call(method, path, body, kind=kind)
            return 200
        except urllib.error.HTTPError as e:
            return e.code

    def sandbox(self, name):
        """Its uid. Nothing runs in it: its image is unknown."""
        made = self.api.call("POST", SANDBOXES, {
            "apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": name},
            "spec": {"podTemplate": {"spec": {"containers": [{"name": "c", "image": "no.such/image:1"}]}}}})
        return made["metadata"]["uid"]


@pytest.fixture(scope="module")
def tenant(up, tmp_path_factory):
    return Tenant(up, tmp_path_factory.mktemp("tenant"))


def bend(name, uid):
    """What makes a Pod a sandbox's, for those that look at its metadata."""
    return {"metadata": {"labels": {"agents.x-k8s.io/sandbox-name-hash": "x"},
                         "ownerReferences": [{"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "name": name, "uid": uid,
                                              "controller": True}]}}


def ask(url, name, uid, port, **fields):
    """The router's answer to a request for that port of a sandbox."""
    fields = {"X-Sandbox-ID": name, "X-Sandbox-Namespace": "team-a", "X-Sandbox-Port": str(port), **fields}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{url}/x", headers=fields), timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def ways(uid, *addresses):
    """How a request says which Pod it means: by name, by uid, by each of these addresses."""
    return [{}, {"X-Sandbox-UID": uid}, *({"X-Sandbox-Pod-IP": ip} for ip in addresses)]


def test_the_routers_pod_is_no_target(up, tenant, secret):
    """As a tenant, end to end: bend the Pod that stands for the router, whose address is the host's, and ask for it."""
    uid = tenant.sandbox("evil")
    tenant.write("PATCH", f"{PODS}/sandbox-router", bend("evil", uid), MERGE)
    with ups.forwarded(up, tenant.kubeconfig) as tunnel:
        for fields in ways(uid, "127.0.0.1"):
            status, text = ask(tunnel, "evil", uid, secret.port, **fields)
            assert status >= 400 and b"secret" not in text, (fields, status, text)
    assert secret.seen == []
    tenant.write("DELETE", f"{SANDBOXES}/evil")


def test_an_address_of_an_object_leads_nowhere(up, tenant, secret):
    """Whoever wrote it: here it is the administrator, on a Pod that no node has and on the router's own."""
    uid = tenant.sandbox("aimed")
    made = bend("aimed", uid)["metadata"]
    up.api.call("POST", PODS, {"metadata": {"name": "elsewhere", **made}, "spec": {**SPEC, "nodeName": "elsewhere"}})
    addresses = ["127.0.0.1"]
    host = next((a[4][0] for a in socket.getaddrinfo(socket.gethostname(), None) if not a[4][0].startswith(("127.", "::1"))), None)
    for ip in filter(None, [*addresses, host]):
        up.api.call("PATCH", f"{PODS}/elsewhere/status", {"status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [{"type": "Ready", "status": "True"}]}}, kind=MERGE)
        with ups.forwarded(up, tenant.kubeconfig) as tunnel:
            for fields in ways(uid, ip):
                status, text = ask(tunnel, "aimed", uid, secret.port, **fields)
                assert status >= 400 and b"secret" not in text, (fields, status, text)
    up.api.call("PATCH", f"{PODS}/sandbox-router", bend("aimed", uid), kind=MERGE)
    with ups.forwarded(up, tenant.kubeconfig) as tunnel:
        for fields in ways(uid, "127.0.0.1"):
            status, text = ask(tunnel, "aimed", uid, secret.port, **fields)
            assert status >= 400 and b"secret" not in text, (fields, status, text)
    assert secret.seen == []
    tenant.write("DELETE", f"{PODS}/elsewhere?gracePeriodSeconds=0")
    tenant.write("DELETE", f"{SANDBOXES}/aimed")


def addresses_of_this_machine():
    """Those that are no loopback."""
    found = json.loads(subprocess.run(["ip", "-j", "addr"], stdout=subprocess.PIPE, check=True).stdout)
    return [a["local"] for link in found for a in link["addr_info"] if a["scope"] == "global"]


@pytest.mark.parametrize("more", [[], ["--allow-unlisted-pod-ip"]], ids=["known", "unlisted"])
def test_on_a_cluster_no_address_of_the_host_is_connected_to(more, secret):
    """A router that connects to Pods' addresses: none of its own machine's, in any form, whatever the API server says."""
    everywhere = Secret("::", socket.AF_INET6)  # IPv4, too
    own = addresses_of_this_machine()
    assert own, "a machine with an address"
    lies = ["127.0.0.1", "127.3.2.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", *own,
            *(f"::ffff:{ip}" for ip in own if ":" not in ip)]
    with controlplane.Silica() as api, routers.Router(api, *more, "--upstream-max-retries=0", has_loopback=False) as router:
        for number, ip in enumerate(lies):
            name = f"box-{number}"
            uid = routers.place(api, name, ip)
            for fields in ways(uid, ip):
                status, text = ask(router.url, name, uid, everywhere.port, **{"X-Sandbox-Namespace": "default", **fields})
                assert status >= 400 and b"secret" not in text, (ip, fields, status, text)
        # A Pod that says two addresses: the first is the one, whichever the request names.
        uid = routers.place(api, "two", "192.0.2.250")
        pod = api.call("GET", "/api/v1/namespaces/default/pods/two")
        pod["status"]["podIPs"].append({"ip": "127.0.0.1"})
        api.call("PUT", "/api/v1/namespaces/default/pods/two/status", pod)
        status, text = ask(router.url, "two", uid, everywhere.port, **{"X-Sandbox-Namespace": "default", "X-Sandbox-Pod-IP": "127.0.0.1"})
        assert status >= 400 and b"secret" not in text
        # The switch lets loopback in, and nothing else of this machine.
        with routers.Router(api, *more, "--upstream-max-retries=0") as loose:
            assert ask(loose.url, "box-0", "", everywhere.port, **{"X-Sandbox-Namespace": "default"}) == (200, b"secret")
            for number, ip in enumerate(lies):
                if ip in own:
                    status, text = ask(loose.url, f"box-{number}", "", everywhere.port, **{"X-Sandbox-Namespace": "default"})
                    assert status >= 400 and b"secret" not in text, (ip, status, text)
    assert everywhere.seen == ["/x"]
    everywhere.server.shutdown()
    everywhere.server.server_close()


SERVICE = {"spec": {"selector": {"app": "mine"}, "ports": [{"port": 8080}]}}
SYSTEMS = [("/api/v1/namespaces/team-a/pods", "sandbox-router", {"spec": SPEC}),
           ("/api/v1/namespaces/team-a/services", "sandbox-router-svc", SERVICE),
           ("/apis/discovery.k8s.io/v1/namespaces/team-a/endpointslices", "sandbox-router-svc",
            {"addressType": "IPv4", "endpoints": [{"addresses": ["127.0.0.9"]}], "ports": []})]


@pytest.mark.parametrize("role", ["edit", "admin"])
@pytest.mark.parametrize("place,name,body", SYSTEMS, ids=[s[0].rsplit("/", 1)[1] for s in SYSTEMS])
def test_what_stands_for_the_system_is_not_written(up, tenant, place, name, body, role):
    tenant.api.token = up.run("token", "-n", "team-a", "--role", role).stdout.strip()
    path = f"{place}/{name}"
    before = wait_until(lambda: up.api.exists(path) and up.api.call("GET", path), 60)
    metadata = {"name": name}
    tries = [("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE),
             ("PATCH", path, {"metadata": {"annotations": {"a": "b"}}}, "application/strategic-merge-patch+json"),
             ("PATCH", path, [{"op": "add", "path": "/metadata/finalizers", "value": ["a/b"]}], "application/json-patch+json"),
             ("PATCH", path, bend("x", before["metadata"]["uid"]), MERGE),
             ("PATCH", f"{path}?fieldManager=x&force=true", {"apiVersion": before["apiVersion"], "kind": before["kind"],
                                                            "metadata": {**metadata, "labels": {"a": "b"}}}, APPLY),
             ("PATCH", f"{path}?dryRun=All", {"metadata": {"labels": {"a": "b"}}}, MERGE),
             ("PUT", path, {**before, "metadata": {**before["metadata"], "labels": {}}}),
             ("PATCH", f"{path}/status", {"status": {"podIP": "127.0.0.1", "loadBalancer": {}}}, MERGE),
             ("DELETE", path),
             ("DELETE", f"{path}?dryRun=All")]
    if place.endswith("pods"):
        tries += [("POST", f"{path}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}),
                  ("POST", f"{path}/binding", {"metadata": metadata, "target": {"kind": "Node", "name": "x"}}),
                  ("PATCH", f"{path}/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}]}}, MERGE),
                  ("PATCH", f"{path}/resize", {"spec": {"containers": [{"name": "router", "resources": {"limits": {"cpu": "1"}}}]}}, MERGE)]
    for how in tries:
        code = tenant.write(*how)
        assert code == 403 or (code in (404, 405) and path != how[1].split("?")[0]), (code, how)
    mine = {"apiVersion": before["apiVersion"], "kind": before["kind"], "metadata": {"name": "mine"}, **body}
    if not place.endswith("endpointslices"):  # which no tenant writes at all
        assert tenant.write("POST", place, mine) == 200
        assert tenant.write("DELETE", place) == 200  # what is the tenant's goes, what is the system's is passed over
        wait_until(lambda: not up.api.exists(f"{place}/mine"), 60)
    after = up.api.call("GET", path)["metadata"]
    assert after["uid"] == before["metadata"]["uid"] and after["resourceVersion"] == before["metadata"]["resourceVersion"]
    # A name that is reserved is not free while what has it is away.
    up.api.call("DELETE", path)
    assert tenant.write("POST", place, {**mine, "metadata": metadata}) in (403, 409)
    wait_until(lambda: up.api.exists(path) and up.api.call("GET", path)["metadata"]["uid"] != before["metadata"]["uid"], 60)


def test_the_api_servers_service_is_the_operators(up, tenant):
    """Those who may edit the namespace default are tenants, too."""
    mine, tenant.api.token = tenant.api.token, up.run("token", "-n", "default", "--role", "admin").stdout.strip()
    path = "/api/v1/namespaces/default/services/kubernetes"
    for how in (("PATCH", path, {"spec": {"externalName": "evil.example"}}, MERGE), ("DELETE", path),
                ("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)):
        assert tenant.write(*how) == 403, how
    assert tenant.write("DELETE", "/api/v1/namespaces/default/services") == 200
    tenant.api.token = mine
    assert up.api.exists(path) and up.api.exists("/api/v1/namespaces/default/services/sandbox-router-svc")


def test_no_sandbox_takes_the_place_of_the_system(up, tenant):
    """What the controllers make for a tenant is the tenant's: of these names they make nothing, and change nothing."""
    before = {path: up.api.call("GET", f"/api/v1/namespaces/team-a/{path}")["metadata"]["resourceVersion"]
              for path in ("pods/sandbox-router", "services/sandbox-router-svc")}
    for name in ("sandbox-router", "sandbox-router-svc"):
        uid = tenant.sandbox(name)
        tenant.api.call("PATCH", f"{SANDBOXES}/{name}", {"metadata": {"annotations": {"agents.x-k8s.io/pod-name": "sandbox-router"}},
                                                         "spec": {"service": True}}, kind=MERGE)
        wait_until(lambda n=name: up.api.call("GET", f"{SANDBOXES}/{n}").get("status", {}).get("conditions"), 60)
        for path in before:
            owners = up.api.call("GET", f"/api/v1/namespaces/team-a/{path}")["metadata"].get("ownerReferences", [])
            assert uid not in json.dumps(owners)
        tenant.api.call("DELETE", f"{SANDBOXES}/{name}")
        wait_until(lambda n=name: not up.api.exists(f"{SANDBOXES}/{n}"), 60)
    for path, version in before.items():
        assert up.api.call("GET", f"/api/v1/namespaces/team-a/{path}")["metadata"]["resourceVersion"] == version, path


def test_who_may(up, tenant):
    """The operator, and an account that may do everything everywhere."""
    path = f"{PODS}/sandbox-router"
    uid = up.api.call("GET", path)["metadata"]["uid"]
    up.api.call("PATCH", path, {"metadata": {"annotations": {"a": "b"}}}, kind=MERGE)
    up.api.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "chief"}})
    up.api.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": "chief"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "chief"}]})
    token = up.api.call("POST", "/api/v1/namespaces/default/serviceaccounts/chief/token", {"spec": {}})["status"]["token"]
    mine, tenant.api.token = tenant.api.token, token
    assert tenant.write("DELETE", path) == 200
    tenant.api.token = mine
    wait_until(lambda: up.api.exists(path) and up.api.call("GET", path)["metadata"]["uid"] != uid, 60)
    up.api.call("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/chief")

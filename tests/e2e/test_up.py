"""`silica up`: what its first start gives, what stays, and how its other commands see it. Judged by kubectl."""

import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import urllib.error
import urllib.request

import pytest

from harness import owner
from harness.server import wait_until
from lib import controlplane
from lib.up import Up, as_caller, forwarded, program

pytestmark = pytest.mark.ours
CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims"
POOLS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxwarmpools"
TEMPLATES = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxtemplates"
CLAIM = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": "mine"},
         "spec": {"warmPoolRef": {"name": "python-sandbox-pool"}}}


@pytest.fixture(scope="module")
def up():
    with Up() as started:
        yield started


@pytest.fixture
def fresh():
    with Up() as started:
        yield started


def names(listing):
    return sorted(item["metadata"]["name"] for item in listing["items"])


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z"
    except FileNotFoundError:
        return True


def test_first_start(up):
    assert set(up.ready) == {"listen", "router", "kubeconfig"}
    assert up.ready["kubeconfig"] == str(up.data / "kubeconfig")
    assert stat.S_IMODE(os.stat(up.ready["kubeconfig"]).st_mode) == 0o600
    assert up.kubectl("get", "sandboxtemplates", "-o", "name").split() == [
        "sandboxtemplate.extensions.agents.x-k8s.io/python-sandbox-template",
        "sandboxtemplate.extensions.agents.x-k8s.io/simple-sandbox-template"]
    pools = json.loads(up.kubectl("get", "sandboxwarmpools", "-o", "json"))["items"]
    assert {p["metadata"]["name"]: p["spec"]["replicas"] for p in pools} == {
        "python-sandbox-pool": 4, "python-sandbox-warmpool": 2}
    for name in ("python-sandbox-template", "simple-sandbox-template"):
        spec = up.api.call("GET", f"{TEMPLATES}/{name}")["spec"]
        assert spec["envVarsInjectionPolicy"] == "Overrides" and spec["volumeClaimTemplatesPolicy"] == "Overrides"
        assert [v["metadata"]["name"] for v in spec["volumeClaimTemplates"]] == ["workspace"]
    # The controllers are at work: each pool gets its sandboxes, each of them its Pod.
    wait_until(lambda: len(up.api.call("GET", "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes")["items"]) >= 6, 60)


def test_the_pool_becomes_warm(up):
    up.wait_warm()
    wait_until(lambda: "python-sandbox-pool is warm: 4 sandboxes are ready" in up.out.read_text(), 30, "it is told")
    pod = up.kubectl("get", "pods", "-l", "app!=sandbox-router", "-o", "name").split()[0]
    assert up.kubectl("exec", pod, "--", "python3", "-c", "print(6 * 7)") == "42\n"


def test_what_it_says(up):
    said = up.out.read_text()
    assert f"https://{up.ready['listen'][0]}" in said and f"export KUBECONFIG={up.ready['kubeconfig']}" in said
    assert "python-sandbox-pool" in said


def test_the_router_is_in_every_namespace(up):
    for namespace in ("default", "agent-sandbox-system", "kube-system"):
        assert up.kubectl("get", "svc/sandbox-router-svc", "-n", namespace, "-o", "name") == "service/sandbox-router-svc\n"
    up.kubectl("create", "namespace", "later")

    def phase():
        pods = up.api.call("GET", "/api/v1/namespaces/later/pods?labelSelector=app%3Dsandbox-router")["items"]
        return [p["status"].get("phase") for p in pods] == ["Running"]

    wait_until(phase, 60, "the router's Pod in a new namespace")
    slices = up.api.call("GET", "/apis/discovery.k8s.io/v1/namespaces/later/endpointslices"
                                "?labelSelector=kubernetes.io%2Fservice-name%3Dsandbox-router-svc")["items"]
    assert [e["targetRef"]["name"] for s in slices for e in s["endpoints"]] == ["sandbox-router"]
    before = up.api.call("GET", "/api/v1/namespaces/later/pods/sandbox-router")["metadata"]["uid"]
    up.kubectl("delete", "pod", "-n", "later", "sandbox-router")
    wait_until(lambda: phase() and up.api.call("GET", "/api/v1/namespaces/later/pods/sandbox-router")["metadata"]["uid"] != before,
               60, "a deleted one is back")
    up.kubectl("delete", "namespace", "later", "--timeout=60s")
    assert not up.api.exists("/api/v1/namespaces/later")


def test_the_controllers_log(up):
    log = up.kubectl("logs", "-n", "agent-sandbox-system", "deployment/agent-sandbox-controller")
    assert "event=control.serve" in log
    assert len(up.kubectl("logs", "-n", "agent-sandbox-system", "deployment/agent-sandbox-controller", "--tail=1").splitlines()) == 1
    refused = up.kubectl("exec", "-n", "agent-sandbox-system", "agent-sandbox-controller", "--", "true", check=False)
    assert refused.returncode != 0 and "stands for a part of silica" in refused.stderr


def test_deployments_of_the_public_manifests(up):
    """What they would start runs already, and they are told so."""
    labels = {"app": "sandbox-router"}
    up.kubectl("apply", "-f", "-", stdin=json.dumps({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "sandbox-router-deployment", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "router", "image": "router:v1"}]}}}}))
    assert "successfully rolled out" in up.kubectl("rollout", "status", "deployment/sandbox-router-deployment", "--timeout=60s")
    up.kubectl("scale", "deployment/sandbox-router-deployment", "--replicas=3")
    up.kubectl("rollout", "status", "deployment/sandbox-router-deployment", "--timeout=60s")
    shown = up.kubectl("get", "deployment", "sandbox-router-deployment", "-o", "jsonpath={.status}")
    assert '"availableReplicas":3' in shown and "a part of silica up does this work" in shown
    assert "event=router" in up.kubectl("logs", "-n", "default", "sandbox-router")


GATEWAYS = "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways"
GATEWAY = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "front"},
           "spec": {"gatewayClassName": "any", "listeners": [{"name": "http", "protocol": "HTTP", "port": 80},
                                                             {"name": "tls", "protocol": "HTTPS", "port": 443}]}}
ROUTE = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "to-router"},
         "spec": {"parentRefs": [{"name": "front"}], "rules": [{"backendRefs": [{"name": "sandbox-router-svc", "port": 8080}]}]}}


def conditions(thing):
    return {c["type"]: (c["status"], c["reason"]) for c in thing.get("conditions", [])}


def listens(address):
    try:
        socket.create_connection((address, 80), 5).close()
        return True
    except OSError:
        return False


def test_a_gateway(up):
    """The router at an address of its own, as long as somebody wants it."""
    up.api.call("POST", GATEWAYS, GATEWAY)
    up.api.call("POST", GATEWAYS.replace("gateways", "httproutes"), ROUTE)

    def status():
        return up.api.call("GET", f"{GATEWAYS}/front")["status"]

    wait_until(lambda: conditions(status()).get("Programmed", ["Unknown", "Pending"])[1] != "Pending", 60, "it is told")
    if not can_listen():
        assert conditions(status())["Programmed"] == ("False", "AddressNotUsable") and "addresses" not in status()
        assert "net.ipv4.ip_unprivileged_port_start" in json.dumps(status())
        return
    assert conditions(status()) == {"Accepted": ("True", "Accepted"), "Programmed": ("True", "Programmed")}
    address = status()["addresses"][0]["value"]
    assert address.startswith("127.63.") and up.info()["gateway"] == address
    wait_until(lambda: status()["listeners"][0]["attachedRoutes"] == 1, 60, "its route")
    http, tls = status()["listeners"]
    assert conditions(http)["Programmed"] == ("True", "Programmed")
    assert conditions(tls)["Accepted"] == ("False", "UnsupportedProtocol")
    route = up.api.call("GET", GATEWAYS.replace("gateways", "httproutes") + "/to-router")["status"]["parents"]
    assert [conditions(p) for p in route] == [{"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}]
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://{address}/x", timeout=30)
    assert refused.value.code == 400 and "X-Sandbox-ID" in refused.value.read().decode()
    # It is told again by a new control, and comes back like every part.
    pid = up.kill("control")
    up.wait_back("control", pid)
    pid = up.kill("gateway")
    up.wait_back("gateway", pid)
    wait_until(lambda: conditions(status())["Programmed"][0] == "True" and listens(address), 60)
    assert "event=router.serve" in (up.data / "logs" / "gateway" / "log").read_text()
    up.api.call("DELETE", f"{GATEWAYS}/front")
    wait_until(lambda: not listens(address) and up.info()["gateway"] is None, 60, "the port is free again")
    up.api.call("DELETE", GATEWAYS.replace("gateways", "httproutes") + "/to-router")


def can_listen():
    try:
        socket.create_server(("127.63.255.1", 80)).close()
        return True
    except OSError:
        return False


def test_rights_of_the_parts(up):
    def may(part, verb, group, resource, sub=""):
        asked = {"verb": verb, "group": group, "resource": resource, "subresource": sub}
        review = {"spec": {"user": f"system:serviceaccount:agent-sandbox-system:silica-{part}", "resourceAttributes": asked}}
        return up.api.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]

    assert may("router", "watch", "", "pods") and may("router", "list", "agents.x-k8s.io", "sandboxes")
    assert may("router", "list", "extensions.agents.x-k8s.io", "sandboxclaims") and may("router", "list", "", "events")
    assert not may("router", "delete", "extensions.agents.x-k8s.io", "sandboxclaims") and not may("router", "create", "", "events")
    assert not may("router", "get", "", "secrets") and not may("router", "delete", "", "pods")
    assert may("router", "create", "authorization.k8s.io", "subjectaccessreviews")
    assert not may("router", "create", "", "pods", "portforward") and not may("router", "create", "authentication.k8s.io", "tokenreviews")
    assert may("node", "patch", "", "pods", "status") and may("node", "get", "", "secrets")
    assert not may("node", "create", "rbac.authorization.k8s.io", "clusterrolebindings") and not may("node", "create", "", "pods", "binding")
    assert not may("node", "create", "extensions.agents.x-k8s.io", "sandboxclaims")
    for part in ("node", "router"):
        for name in (f"{part}.kubeconfig", f"{part}.token"):
            assert stat.S_IMODE(os.stat(up.data / name).st_mode) == 0o600
    assert "silica-node" in up.kubectl("auth", "whoami", kubeconfig=up.data / "node.kubeconfig")


def test_pods_are_given_to_the_node(up):
    """By control, as a cluster's scheduler would: not those with a gate, nor those of another scheduler."""
    pods, node = "/api/v1/namespaces/default/pods", up.api.call("GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]

    def make(name, **spec):
        up.api.call("POST", pods, {"metadata": {"name": name}, "spec": {"containers": [
            {"name": "c", "image": "python:3.11", "command": ["sleep", "infinity"]}], "terminationGracePeriodSeconds": 0, **spec}})

    def node_of(name):
        return up.api.call("GET", f"{pods}/{name}")["spec"].get("nodeName")

    make("gated", schedulingGates=[{"name": "silica.dev/later"}])
    make("of-another", schedulerName="somebody-else")
    make("plain")
    wait_until(lambda: up.api.call("GET", f"{pods}/plain")["status"]["phase"] == "Running", 60, "it runs")
    assert [node_of(name) for name in ("plain", "gated", "of-another")] == [node, None, None]
    told = wait_until(lambda: [e for e in up.api.call("GET", "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dplain,"
                                                     "reason%3DScheduled")["items"]], 30, "it is told")
    assert [(e["message"], e["source"]["component"]) for e in told] == [
        (f"Successfully assigned default/plain to {node}", "default-scheduler")]
    up.api.patch(f"{pods}/gated", {"spec": {"schedulingGates": []}})
    wait_until(lambda: up.api.call("GET", f"{pods}/gated")["status"]["phase"] == "Running", 60, "its gate is open")
    assert node_of("gated") == node
    for name in ("gated", "of-another", "plain"):
        up.api.call("DELETE", f"{pods}/{name}")


def test_status_and_env(up):
    shown = up.status()
    assert shown["listen"] == up.ready["listen"] and shown["ready"] is True and shown["claims"] == 0
    assert {p["name"]: p["state"] for p in shown["parts"]}["control"] == "serving"
    assert {(p["name"], p["wanted"]) for p in shown["pools"]} == {("python-sandbox-pool", 4), ("python-sandbox-warmpool", 2)}
    text = up.run("status").stdout
    assert f"https://{up.ready['listen'][0]}" in text and "python-sandbox-pool: " in text
    up.wait_warm()
    shown = up.status()
    held = {p["name"]: p["verdict"] for p in shown["protections"]}
    assert shown["sandboxes"] >= 6
    assert {n: held[n] for n in ("ids", "seccomp", "no_new_privs", "capabilities", "egress")} == dict.fromkeys(
        ("ids", "seccomp", "no_new_privs", "capabilities", "egress"), "ok")
    assert held["ingress"] == "lacks"
    assert "ok        seccomp: an allow-list of system calls is on" in up.run("status").stdout.splitlines()
    env = subprocess.run(["sh", "-c", f'eval "$({program()} env --data {up.data})"; printf %s "$KUBECONFIG"'],
                         stdout=subprocess.PIPE, text=True)
    assert env.stdout == up.ready["kubeconfig"]


def test_merged_into_ones_own(up, tmp_path):
    own = tmp_path / "config"
    own.write_text("apiVersion: v1\nkind: Config\ncurrent-context: mine\n"
                   "clusters: [{name: mine, cluster: {server: 'https://127.0.0.1:1'}}]\n"
                   "users: [{name: me, user: {token: abc}}]\ncontexts: [{name: mine, context: {cluster: mine, user: me}}]\n")
    for _ in range(2):  # the second time changes nothing
        up.run("kubeconfig", "--merge", "--file", own)
        assert stat.S_IMODE(own.stat().st_mode) == 0o600
        assert up.kubectl("config", "get-contexts", "-o", "name", kubeconfig=own).split() == ["mine", "silica"]
        assert up.kubectl("get", "namespace", "default", "-o", "name", kubeconfig=own) == "namespace/default\n"
    up.run("kubeconfig", "--unmerge", "--file", own)
    assert up.kubectl("config", "get-contexts", "-o", "name", kubeconfig=own).split() == ["mine"]
    assert "silica" not in own.read_text()
    assert up.run("kubeconfig").stdout == pathlib.Path(up.ready["kubeconfig"]).read_text()


def test_a_token_for_one_namespace(up, tmp_path):
    tenant = tmp_path / "tenant"
    tenant.write_text(up.run("token", "-n", "team-a", "-o", "kubeconfig").stdout)
    assert "no resources found" in up.kubectl("get", "sandboxclaims", kubeconfig=tenant, check=False).stderr.lower()
    for namespace in ("default", "agent-sandbox-system"):
        refused = up.kubectl("get", "sandboxclaims", "-n", namespace, kubeconfig=tenant, check=False)
        assert refused.returncode != 0 and "forbidden" in refused.stderr
    wait_until(lambda: up.api.exists("/api/v1/namespaces/team-a/pods/sandbox-router"), 60)
    refused = up.kubectl("logs", "sandbox-router", kubeconfig=tenant, check=False)
    assert refused.returncode != 0 and "agent-sandbox-system" in refused.stderr, refused.stderr


def test_a_tenant_reaches_its_own_sandboxes(up, tmp_path):
    """By the router's Pod, which is in every namespace: with a token for one of them nothing of another can be had."""
    up.wait_warm()
    up.api.call("POST", CLAIMS, {**CLAIM, "metadata": {"name": "theirs"}})
    theirs = wait_until(lambda: up.api.call("GET", f"{CLAIMS}/theirs").get("status", {}).get("sandbox"), 60)["name"]
    assert wait_until(lambda: ask(up, theirs, "true")[0] == 200, 60)
    tenant = tmp_path / "tenant"
    tenant.write_text(up.run("token", "-n", "team-c", "-o", "kubeconfig").stdout)
    pod = up.api.call("GET", f"{TEMPLATES}/simple-sandbox-template")["spec"]["podTemplate"]["spec"]
    for container in pod["containers"]:
        container.pop("volumeMounts", None)
    up.kubectl("apply", "-f", "-", kubeconfig=tenant, stdin=json.dumps({
        "apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "ours"}, "spec": {"podTemplate": {"spec": pod}}}))
    wait_until(lambda: up.api.exists("/api/v1/namespaces/team-c/pods/sandbox-router"), 60)
    with forwarded(up, tenant) as tunnel:
        assert wait_until(lambda: ask(up, "ours", "echo mine", "team-c", tunnel)[0] == 200, 60)
        status, told = ask(up, theirs, "true", "default", tunnel)
        assert status == 403 and "may not forward ports of Pods in namespace default" in told["detail"]
        # Neither does a word of the client's on who it is count.
        assert ask(up, theirs, "true", "default", tunnel, {"x-remote-user": "silica-admin", "x-remote-group": "system:masters"})[0] == 403
    with forwarded(up, up.ready["kubeconfig"], "-n", "team-c") as tunnel:
        assert ask(up, theirs, "true", "default", tunnel)[0] == 200  # an administrator has all, by any of these Pods
    for args in (("get", "pod", theirs), ("exec", theirs, "--", "true"), ("logs", theirs), ("port-forward", theirs, ":8888"),
                 ("port-forward", "-n", "agent-sandbox-system", "sandbox-router", ":8080")):
        words = args if "-n" in args else (args[0], "-n", "default", *args[1:])
        refused = up.kubectl(*words, kubeconfig=tenant, check=False)
        assert refused.returncode != 0 and "forbidden" in refused.stderr.lower(), (args, refused.stderr)
    up.api.call("DELETE", f"{CLAIMS}/theirs")
    up.kubectl("delete", "namespace", "team-c", "--timeout=60s")


def test_only_one(up):
    again = up.run("up", check=False)
    assert again.returncode == 125 and "silica is up already" in again.stderr and "hint: silica status" in again.stderr
    assert up.run("up", "-d", check=False).stderr == again.stderr
    assert up.status()["ready"] is True


def test_what_the_user_left(fresh):
    fresh.kubectl("delete", "sandboxtemplate", "simple-sandbox-template")
    fresh.kubectl("delete", "sandboxwarmpool", "python-sandbox-warmpool")
    fresh.kubectl("scale", "sandboxwarmpool", "python-sandbox-pool", "--replicas=1")
    fresh.kubectl("apply", "-f", "-", stdin=json.dumps(CLAIM))
    assert fresh.end() == 0
    fresh.start()
    assert names(fresh.api.call("GET", TEMPLATES)) == ["python-sandbox-template"]
    assert [(p["metadata"]["name"], p["spec"]["replicas"]) for p in fresh.api.call("GET", POOLS)["items"]] == [
        ("python-sandbox-pool", 1)]
    assert names(fresh.api.call("GET", CLAIMS)) == ["mine"]


def test_a_killed_control_comes_back(fresh):
    for _ in range(3):
        pid = fresh.kill("control")
        # Nobody is refused meanwhile: the supervisor has the socket.
        assert names(fresh.api.call("GET", TEMPLATES)) == ["python-sandbox-template", "simple-sandbox-template"]
        fresh.wait_back("control", pid)
    pid = fresh.kill("parts")
    fresh.wait_back("parts", pid)
    assert "event=control.serve" in fresh.kubectl("logs", "-n", "agent-sandbox-system", "agent-sandbox-controller")
    assert {p["name"]: p["restarts"] for p in fresh.status()["parts"]}["control"] == 3


def test_a_killed_supervisor_takes_its_parts_along(fresh):
    listen, parts = fresh.ready["listen"], [p["pid"] for p in fresh.info()["parts"]]
    fresh.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "kept"}})
    fresh.kill("up")
    fresh.process.wait()
    fresh.start()  # at once: it waits for what is left of the other
    assert all(is_gone(pid) for pid in parts)
    assert fresh.ready["listen"] == listen and fresh.api.exists("/api/v1/namespaces/kept")
    parts = [p["pid"] for p in fresh.info()["parts"]]
    assert fresh.end() == 0 and all(is_gone(pid) for pid in parts)


def started_at(up, name):
    status = up.api.call("GET", f"/api/v1/namespaces/default/pods/{name}")["status"]
    return [(c["restartCount"], c["state"]["running"]["startedAt"]) for c in status["containerStatuses"]]


def test_sandboxes_outlive_all_of_it(fresh):
    """Whatever is killed, what a sandbox holds is there afterwards."""
    fresh.wait_warm()
    fresh.api.call("POST", CLAIMS, CLAIM)
    bound = wait_until(lambda: fresh.api.call("GET", f"{CLAIMS}/mine").get("status", {}).get("sandbox"), 60)
    fresh.kubectl("exec", bound["name"], "--", "sh", "-c", "echo kept >/tmp/note")
    before = started_at(fresh, bound["name"])
    for part in ("node", "control", "up"):
        pid = fresh.kill(part)
        if part == "up":
            fresh.process.wait()
            fresh.start()
        else:
            fresh.wait_back(part, pid)
        # The node is asked through a socket that the supervisor holds, so this waits and does not fail.
        assert wait_until(lambda: fresh.kubectl("exec", bound["name"], "--", "cat", "/tmp/note", check=False).stdout, 60) == "kept\n"
        assert started_at(fresh, bound["name"]) == before
    pid = fresh.process.pid
    assert "sandboxes run on: silica down --sandboxes" in fresh.run("down").stdout and is_gone(pid)
    assert "sandboxes were ended" in fresh.run("down", "--sandboxes").stdout
    assert fresh.run("ps", "-o", "json").stdout.strip() in ("[]", "")


def test_a_newer_program_takes_over(fresh, tmp_path):
    """The program is replaced by another one, as an update does it, and the old one's file is gone: its sandboxes run on, and the new one has them."""
    def members():
        return fresh.api.call("GET", "/api/v1/namespaces/default/pods?labelSelector=%21silica.dev%2Fpart")["items"]

    def are_back():
        """Those whose sandboxes were ended have others in place: a container each that the next keeper made."""
        return all([c["restartCount"] for c in p["status"].get("containerStatuses", []) if c["ready"]] == [1]
                   for p in members() if p["metadata"]["uid"] in ended)

    old = tmp_path / "silica"
    shutil.copy2(program(), old)
    fresh.wait_warm()  # what was not begun yet would begin then
    ended = {p["metadata"]["uid"] for p in members()}
    assert ended and fresh.end() == 0
    fresh.run("down", "--sandboxes", check=False)
    wait_until(lambda: not (fresh.data / "engine.sock").exists(), 60, "their keeper has ended")
    fresh.program = str(old)
    fresh.start()
    wait_until(are_back, 60, "members whose sandboxes were ended are there again")
    fresh.wait_warm()
    fresh.api.call("POST", CLAIMS, CLAIM)
    name = wait_until(lambda: fresh.api.call("GET", f"{CLAIMS}/mine").get("status", {}).get("sandbox"), 60)["name"]
    fresh.kubectl("exec", name, "--", "sh", "-c", "echo kept >/tmp/note")
    before = started_at(fresh, name)
    fresh.kill("up")
    fresh.process.wait()
    new = tmp_path / "new"
    new.write_bytes(old.read_bytes() + b"another build")  # what stands behind a program is no part of it
    new.chmod(0o755)
    new.replace(old)
    fresh.start()
    assert wait_until(lambda: fresh.kubectl("exec", name, "--", "cat", "/tmp/note", check=False).stdout, 60) == "kept\n"
    assert started_at(fresh, name) == before and ask(fresh, name, "echo there")[1]["stdout"] == "there\n"
    fresh.api.call("POST", CLAIMS, {**CLAIM, "metadata": {"name": "next"}})  # made by the keeper of the old one
    again = wait_until(lambda: fresh.api.call("GET", f"{CLAIMS}/next").get("status", {}).get("sandbox"), 60)["name"]
    assert wait_until(lambda: ask(fresh, again, "echo there")[0] == 200, 60)
    fresh.wait_warm()


@pytest.mark.parametrize("who", ["root", "user"])
def test_a_newer_program_brings_its_own_keeper(who):
    """What makes sandboxes is replaced as soon as none runs under it; until then status says so, and how."""
    said = b"All pools are full, all claims and sandboxes are ready."
    with as_caller(who) as up:
        up.wait_warm()
        first = owner.keeper_of(up.data)
        assert "of another build" not in up.run("status").stdout
        assert up.end() == 0
        other = pathlib.Path(up.program).with_name("other") if who == "user" else up.directory / "other"
        text = pathlib.Path(up.program).read_bytes()
        assert said in text
        other.write_bytes(text.replace(said, said[::-1]))
        other.chmod(0o755)
        up.program = str(other)
        up.start()
        up.wait_warm()
        assert owner.keeper_of(up.data) == first, "sandboxes are never ended for it"
        told = up.run("status").stdout
        assert "lacks     keeper: one of another build keeps the sandboxes" in told and "`silica down --sandboxes`, then `silica up`" in told
        assert [row["verdict"] for row in up.status()["protections"] if row["name"] == "keeper"] == ["lacks"]
        up.run("down", "--sandboxes")
        up.process.wait(60)
        up.start()  # at once: the first one waits for others to ask it
        up.wait_warm()
        second = owner.keeper_of(up.data)
        assert second != first and said[::-1] in pathlib.Path(f"/proc/{second}/exe").read_bytes()
        assert "of another build" not in up.run("status").stdout


def ask(up, sandbox, command, namespace="default", at=None, fields=None):
    """POST /execute at the router: the status, and what came."""
    request = urllib.request.Request(f"{at or up.ready['router']}/execute", data=json.dumps({"command": command}).encode(), headers={
        "content-type": "application/json", "x-sandbox-id": sandbox, "x-sandbox-namespace": namespace, **(fields or {})})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.loads(e.read())


def test_suspended_and_resumed(up):
    """What is in its volume is there afterwards; meanwhile the router says why it does not answer."""
    up.wait_warm()
    up.api.call("POST", CLAIMS, {**CLAIM, "metadata": {"name": "sleeper"}})
    name = wait_until(lambda: up.api.call("GET", f"{CLAIMS}/sleeper").get("status", {}).get("sandbox"), 60)["name"]
    assert wait_until(lambda: ask(up, name, "sh -c 'echo kept >/workspace/note'")[0] == 200, 60)
    before = up.api.call("GET", f"/api/v1/namespaces/default/pods/{name}")
    up.kubectl("patch", "sandbox", name, "--type=merge", "-p", '{"spec":{"operatingMode":"Suspended"}}')
    wait_until(lambda: not up.api.exists(f"/api/v1/namespaces/default/pods/{name}"), 60, "its Pod is gone")
    status, why = wait_until(lambda: (got := ask(up, name, "true")) and got[0] == 503 and got, 60)
    assert "suspended" in json.dumps(why).lower()
    up.kubectl("patch", "sandbox", name, "--type=merge", "-p", '{"spec":{"operatingMode":"Running"}}')
    status, got = wait_until(lambda: (got := ask(up, name, "cat /workspace/note")) and got[0] == 200 and got, 60, "it is back")
    assert got["stdout"] == "kept\n"
    after = up.api.call("GET", f"/api/v1/namespaces/default/pods/{name}")  # another Pod: of the same name, at the same address
    assert after["metadata"]["uid"] != before["metadata"]["uid"] and after["status"]["podIP"] == before["status"]["podIP"]
    up.api.call("DELETE", f"{CLAIMS}/sleeper")


def test_in_the_background(tmp_path):
    data = ["--data", str(tmp_path / "data")]

    def call(*args):
        return subprocess.run([program(), *args, *data], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=100)

    missing = call("status")
    assert missing.returncode == 3 and "hint: silica up" in missing.stderr
    started = call("up", "-d", "--listen", "127.0.0.1:0")
    try:
        assert started.returncode == 0, started.stderr
        assert "silica is up: https://127.0.0.1:" in started.stdout and "silica down" in started.stdout
        pid = json.loads(call("status", "-o", "json").stdout)["pid"]
        assert os.getsid(pid) == pid  # no terminal's end concerns it
    finally:
        ended = call("down", "--sandboxes")
    assert ended.returncode == 0 and "silica is down" in ended.stdout and is_gone(pid)
    assert call("down").stdout.splitlines()[0] + "\n" == f"silica is not up in '{tmp_path / 'data'}'\n"
    assert call("env").returncode == 3


def test_a_port_that_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        for detach in ((), ("-d",)):
            done = subprocess.run([program(), "up", *detach, "--data", str(tmp_path / "data"), "--listen", address],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
            assert done.returncode == 125 and f"cannot listen on '{address}'" in done.stderr and "hint: " in done.stderr
    assert not (tmp_path / "data" / "up.json").exists()


def test_a_part_that_cannot_start(tmp_path):
    """Its own words are the user's message, and nothing is left running."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "store.db").write_bytes(b"not a store" * 1000)
    done = subprocess.run([program(), "up", "--data", str(data), "--listen", "127.0.0.1:0"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
    assert done.returncode == 125 and done.stderr.startswith("silica: the control could not start: "), done.stderr


def test_terminal_signals(fresh):
    """Ctrl-C reaches the whole foreground group: the parts must not die before they are told to."""
    fresh.process.send_signal(signal.SIGINT)
    fresh.process.send_signal(signal.SIGINT)
    assert fresh.process.wait(60) == 0
    with pytest.raises((urllib.error.URLError, OSError)):
        fresh.api.call("GET", TEMPLATES)

"""What a tenant's object has root's processes listen on. A listener at 127.x:22 keeps the machine's own server from port 22 of all
addresses, so no tenant gets one below 1024: neither by a Pod's ports, nor by a Gateway, which has one on port 80 made."""

import json
import socket
import urllib.error

import pytest

from harness.network import own_network
from harness.server import wait_until
from lib import up as ups

pytestmark = pytest.mark.ours
LOW, HIGH = 79, 7079  # finger, which no machine serves any more
PODS = "/api/v1/namespaces/default/pods"


def declare(up, name, ports, **meta):
    up.api.call("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **meta}, "spec": {
        "terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "python:3.11", "command": ["sleep", "3600"],
                                                            "ports": [{"containerPort": p} for p in ports]}]}})
    return wait_until(lambda: up.api.call("GET", f"{PODS}/{name}").get("status", {}).get("podIP"), 60, "an address")


def listens(ip, port):
    with socket.socket() as s:
        s.settimeout(10)
        return s.connect_ex((ip, port)) == 0


def can_be_had(port):
    """By the machine's own server, at all addresses."""
    with socket.socket() as s:
        s.bind(("0.0.0.0", port))
        s.listen(1)
        return True


def events(up, name, reason):
    found = up.api.call("GET", "/api/v1/namespaces/default/events")["items"]
    return [e["message"] for e in found if e["involvedObject"]["name"] == name and e["reason"] == reason]


@pytest.mark.parametrize("who", ["root", "user"])
def test_no_port_of_the_machines(who):
    with own_network(), ups.as_caller(who, "--pod-addresses") as up:
        ip = declare(up, "low", [LOW, HIGH])
        wait_until(lambda: listens(ip, HIGH), 60, "the other one")
        assert not listens(ip, LOW) and can_be_had(LOW)
        (told,) = wait_until(lambda: events(up, "low", "PortNotServed"), 30, "an Event")
        assert f"port {LOW} is not listened on" in told and "--pod-port-min" in told


def test_unless_the_operator_says_so():
    with own_network(), ups.as_caller("root", "--pod-addresses", f"--pod-port-min={LOW}") as up:
        ip = declare(up, "low", [LOW - 1, LOW])
        wait_until(lambda: listens(ip, LOW), 60, "as the operator opened it")
        assert not listens(ip, LOW - 1)
        (told,) = wait_until(lambda: events(up, "low", "PortNotServed"), 30, "an Event")
        assert f"port {LOW - 1} is not listened on" in told


GATEWAYS = "/apis/gateway.networking.k8s.io/v1/namespaces/team-a/gateways"
GATEWAY = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "front"}, "spec": {
    "gatewayClassName": "any", "listeners": [{"name": "http", "protocol": "HTTP", "port": 80}]}}
ROUTE = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "front"}, "spec": {
    "parentRefs": [{"name": "front"}]}}


def answer(api, method, path, body=None):
    try:
        api.call(method, path, body)
        return 200
    except urllib.error.HTTPError as e:
        return e.code


@pytest.mark.parametrize("who", ["root", "user"])
def test_no_gateway_of_a_tenants(who, tmp_path):
    """Roles of a directory that an older release made lose it, too."""
    with own_network(), ups.as_caller(who) as up:
        for role in ("edit", "admin"):
            tenant = ups.Reader(tmp_path, up.ready["kubeconfig"])
            tenant.token, tenant.client_cert = up.run("token", "-n", "team-a", "--role", role).stdout.strip(), None
            assert answer(tenant, "POST", GATEWAYS, GATEWAY) == 403, role
            assert answer(tenant, "GET", GATEWAYS) == 200, role
            routes = GATEWAYS.replace("gateways", "httproutes")
            assert answer(tenant, "POST", routes, ROUTE) == 200 and answer(tenant, "DELETE", f"{routes}/front") == 200, role
        assert can_be_had(80)
        path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit"
        rules = up.api.call("GET", path)["rules"]
        older = json.loads(json.dumps(rules))
        for rule in older:  # quotas came later
            rule["resources"] = [r for r in rule["resources"] if not r.startswith("resourcequotas")]
        _, written = (r for r in older if r["apiGroups"][0] == "networking.k8s.io")
        written["resources"] = ["networkpolicies", "gateways", "httproutes", "poddisruptionbudgets"]
        up.api.patch(path, {"rules": older})
        up.wait_back("control", up.kill("control"))
        assert up.api.call("GET", path)["rules"] == rules

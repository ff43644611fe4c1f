"""What a Pod's author chooses, and the node listens on: ports at the Pod's address. A listener at 127.x:22 keeps the machine's own server
from port 22 of all addresses, so no tenant gets one below 1024."""

import socket

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

"""Ports at Pods' addresses: nothing listens there until it is asked for, as a listener on 127.x:8888 keeps other programs from that port
of all addresses. Asked for by `silica in-cluster` while it lives, by an annotation, by `silica up --pod-addresses`; then a claim is
ready only when its ports listen."""

import contextlib
import json
import os
import socket
import subprocess
import sys

import pytest

from harness.network import own_network
from harness.server import wait_until
from lib import up as ups

pytestmark = pytest.mark.ours
GROUP = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}"
PODS = "/api/v1/namespaces/{}/pods"
NOTE = {"silica.dev/pod-addresses": "true"}
CONDITION = "silica.dev/PodAddresses"
OTHER = 65533
OURS = (8888, 8080, 9090)  # what the runtime serves


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with own_network(), ups.as_caller(request.param) as started:
        started.wait_warm()
        yield started


def condition(o, kind="Ready"):
    return next((c for c in o.get("status", {}).get("conditions", []) if c["type"] == kind), {})


def listens(up, ip, port):
    """As the daemon's own account sees it: others are turned away after they are connected."""
    script = "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30); " \
             "s.sendall(b'GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'); sys.exit(s.recv(7) != b'HTTP/1.')"
    done = subprocess.run([*up.prefix, sys.executable, "-c", script, ip, str(port)], cwd="/", stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0 or "refused" in done.stderr or done.stderr == "", done.stderr
    return done.returncode == 0


def is_free(ip, port):
    with socket.socket() as s:
        return s.connect_ex((ip, port)) != 0


@contextlib.contextmanager
def program(port, host="0.0.0.0", prefix=()):
    """Another program of the machine, which serves that port; its pid."""
    script = "import socket, sys; s = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET); " \
             "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(9); " \
             "print('listens', flush=True); sys.stdin.read()"
    running = subprocess.Popen([*prefix, sys.executable, "-c", script, host, str(port)], cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        said = running.stdout.readline()
        assert said == "listens\n", running.stderr.read()
        yield running.pid
    finally:
        running.stdin.close()
        running.wait(30)
        running.stdout.close(), running.stderr.close()


class Claim:
    """A claim of the first pool, deleted in the end. ip: of its Pod, at the moment it became ready."""

    def __init__(self, up, name, namespace="default", pool="python-sandbox-pool", spec=None, **meta):
        self.up, self.name, self.path = up, name, f"{GROUP.format(namespace)}/sandboxclaims"
        self.namespace = namespace
        self.body = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": name, **meta},
                     "spec": {"warmPoolRef": {"name": pool}, **(spec or {})}}

    def get(self):
        return self.up.api.call("GET", f"{self.path}/{self.name}")

    def ready(self):
        o = self.get()
        return condition(o).get("status") == "True" and o

    def pod(self):
        return self.up.api.call("GET", f"{PODS.format(self.namespace)}/{self.sandbox}")

    def make(self):
        self.up.api.call("POST", self.path, self.body)

    def __enter__(self):
        self.make()
        return self.wait()

    def wait(self):
        ready = wait_until(self.ready, 60, f"claim {self.name} is ready")
        self.sandbox = ready["status"]["sandbox"]["name"]
        self.ip = ready["status"]["sandbox"]["podIPs"][0]
        return self

    def __exit__(self, *_):
        self.up.api.call("DELETE", f"{self.path}/{self.name}")
        wait_until(lambda: self.name not in [c["metadata"]["name"] for c in self.up.api.call("GET", self.path)["items"]], 60, "it is gone")


@contextlib.contextmanager
def session(up, namespace="default"):
    """`silica in-cluster`, whose command has begun."""
    running = subprocess.Popen(up.argv("in-cluster", "-n", namespace, "--", "sh", "-c", "echo begun; cat"), cwd="/", stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env=up.env)
    try:
        assert running.stdout.readline() == "begun\n"
        yield running
    finally:
        running.stdin.close()
        running.stdout.read()
        running.wait(60)


def events(up, name, reason, namespace="default"):
    found = up.api.call("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    return [e["message"] for e in found if e["involvedObject"]["name"] == name and e["reason"] == reason]


def execute(up, sandbox, command):
    """Through the router, which needs no listener."""
    at = ["-H", f"X-Sandbox-ID: {sandbox}", "-H", "X-Sandbox-Namespace: default", "-H", "Content-Type: application/json"]
    done = subprocess.run([*up.prefix, "curl", "-sS", "-m", "30", *at, "-d", json.dumps({"command": command}),
                           f"{up.ready['router']}/execute"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)["stdout"]


def test_nothing_listens_unasked(up):
    """Neither for claims, warm and cold, nor for a Pod made directly: the machine's ports are its other programs'."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "direct"}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [
        {"name": "main", "image": "python:3.11", "command": ["sleep", "600"], "ports": [{"containerPort": 8888}]}]}}
    up.api.call("POST", PODS.format("default"), pod)
    with Claim(up, "warm") as warm, Claim(up, "cold", spec={"env": [{"name": "A", "value": "b"}]}) as cold:
        direct = wait_until(lambda: condition(o := up.api.call("GET", f"{PODS.format('default')}/direct")).get("status") == "True" and o, 60)
        for ip in (warm.ip, cold.ip, direct["status"]["podIP"]):
            assert all(is_free(ip, port) for port in OURS)
        for host in ("0.0.0.0", "::"):
            with contextlib.ExitStack() as stack:
                for port in OURS:
                    stack.enter_context(program(port, host))
        assert execute(up, warm.sandbox, "echo works") == "works\n"
        # Not one write more: the Pod says nothing of its address.
        assert all(not condition(p, CONDITION) for p in (direct, warm.pod(), cold.pod()))
    up.api.call("DELETE", f"{PODS.format('default')}/direct")


def test_an_annotation(up):
    """On the claim, for its Pod in the claim, on the template, for its Pods in the template; and on a Pod."""
    with Claim(up, "quiet") as quiet, Claim(up, "noted", annotations=NOTE) as noted, \
            Claim(up, "for-pod", spec={"additionalPodMetadata": {"annotations": NOTE}}) as for_pod:
        for c in (noted, for_pod):  # ready is ready: nothing is waited for here
            assert all(listens(up, c.ip, port) for port in OURS), c.name
            assert condition(c.pod(), CONDITION)["reason"] == "Listening"
        assert is_free(quiet.ip, 8888)
    template = up.api.call("GET", f"{GROUP.format('default')}/sandboxtemplates/python-sandbox-template")["spec"]
    meta = dict(template["podTemplate"].get("metadata", {}), annotations=NOTE)
    for name, notes, spec in (("on-template", NOTE, template),
                              ("in-template", {}, {**template, "podTemplate": {**template["podTemplate"], "metadata": meta}})):
        up.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate",
             "metadata": {"name": name, "namespace": "default", "annotations": notes}, "spec": spec},
            {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool",
             "metadata": {"name": name, "namespace": "default"}, "spec": {"replicas": 1, "sandboxTemplateRef": {"name": name}}}]}))
        up.wait_warm(name)
        (member,) = [p for p in up.api.call("GET", PODS.format("default"))["items"] if p["metadata"]["name"].startswith(name)]
        assert is_free(member["status"]["podIP"], 8888), "it waits in a pool"
        with Claim(up, name, pool=name) as c:
            assert c.sandbox == member["metadata"]["name"] and listens(up, c.ip, 8888)
        up.kubectl("delete", "sandboxwarmpool,sandboxtemplate", name)


def test_an_annotation_that_comes_and_goes(up):
    with Claim(up, "later") as c:
        up.kubectl("annotate", "sandboxclaim", "later", "silica.dev/pod-addresses=true")
        wait_until(lambda: listens(up, c.ip, 8888), 60)
        assert c.ready()
        up.kubectl("annotate", "sandboxclaim", "later", "silica.dev/pod-addresses-")
        wait_until(lambda: is_free(c.ip, 8888), 60)
        wait_until(lambda: not condition(c.pod(), CONDITION), 60)
        assert c.ready()


def test_a_session(up):
    """For the Pods of its namespace, those that were there and those to come, while it lives."""
    with Claim(up, "before") as before:
        with session(up) as first, session(up) as second:
            assert all(listens(up, before.ip, port) for port in OURS), "when its command has begun"
            members = [p for p in up.api.call("GET", PODS.format("default"))["items"]
                       if "agents.x-k8s.io/warm-pool-sandbox" in p["metadata"].get("labels", {}) and p["status"].get("podIP")]
            assert members and all(is_free(p["status"]["podIP"], 8888) for p in members)
            for i in range(5):
                with Claim(up, f"during-{i}") as c:
                    assert listens(up, c.ip, 8888), "when the claim is ready"
            with Claim(up, "cold", spec={"env": [{"name": "A", "value": "b"}]}) as c:
                assert listens(up, c.ip, 8888)
            first.kill()
            first.wait()
            with Claim(up, "still") as c:
                assert listens(up, c.ip, 8888), "the second one lives"
            second.kill()
            second.wait()
            wait_until(lambda: is_free(before.ip, 8888), 60, "none lives")
        for port in OURS:
            with program(port):
                pass
        wait_until(lambda: all(not condition(p, CONDITION) for p in up.api.call("GET", PODS.format("default"))["items"]), 60)
        with Claim(up, "after") as c:
            assert is_free(c.ip, 8888)


def test_another_namespace_is_not_asked_for(up):
    with Claim(up, "here") as c, session(up, "elsewhere"):
        assert is_free(c.ip, 8888)


def test_a_session_outlives_the_node(up):
    """The node is killed under it: the next one hears of it again, and no claim is ready before its ports listen."""
    with Claim(up, "lasting") as lasting, session(up) as s:
        for i in range(3):
            up.wait_back("node", up.kill("node"))
            with Claim(up, f"next-{i}") as c:
                assert listens(up, c.ip, 8888), i
            wait_until(lambda: listens(up, lasting.ip, 8888), 60)
            assert lasting.ready()
        s.kill()
        s.wait()
        wait_until(lambda: is_free(lasting.ip, 8888), 60)


def test_a_session_that_ends_with_the_node(up):
    """Both are killed: what the session asked for ends with the next node's patience."""
    with Claim(up, "orphan") as orphan, session(up) as s:
        assert listens(up, orphan.ip, 8888)
        pid = up.kill("node")
        s.kill()
        s.wait()
        up.wait_back("node", pid)
        wait_until(lambda: not condition(orphan.pod(), CONDITION), 60)
        assert is_free(orphan.ip, 8888)
        with Claim(up, "fresh") as c:
            assert is_free(c.ip, 8888)


def test_a_port_that_is_taken(up):
    """The Event names who has it, the claim is ready all the same, and the router reaches the sandbox; the port follows when it is free."""
    with contextlib.ExitStack() as stack:
        pid = stack.enter_context(program(8888, "::"))
        with Claim(up, "late", annotations=NOTE) as c:
            (told,) = wait_until(lambda: events(up, c.sandbox, "PortTaken"), 60)
            # An account does not see the processes of others.
            who = f"(pid {pid}, user 0)" if os.geteuid() == 0 and not up.prefix else "a program of user "
            assert f"port 8888 of the Pod's address {c.ip} is taken by " in told and who in told, told
            assert "which listens on all addresses" in told
            assert condition(c.pod(), CONDITION)["reason"] == "PortTaken"
            assert listens(up, c.ip, 8080) and execute(up, c.sandbox, "echo reached") == "reached\n"
            stack.close()
            wait_until(lambda: listens(up, c.ip, 8888), 60, "it is free")
            wait_until(lambda: condition(c.pod(), CONDITION)["reason"] == "Listening", 60)
            assert len(events(up, c.sandbox, "PortTaken")) == 1


def test_a_port_that_another_account_has(up):
    """Its program would be reached in the sandbox's place: the claim waits, a session does not begin, and the router goes on."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(program(8888, prefix=ups.as_user(OTHER)))
        c = Claim(up, "spoofed", annotations=NOTE)
        c.make()
        why = wait_until(lambda: "another account" in (said := condition(c.get()).get("message", "")) and said, 60)
        assert condition(c.get())["status"] == "False" and "its Events say which" in why
        sandbox = c.get()["status"]["sandbox"]["name"]
        (told,) = wait_until(lambda: events(up, sandbox, "PortTaken"), 60)
        assert f", user {OTHER})" in told or f"a program of user {OTHER}" in told, told
        assert execute(up, sandbox, "echo reached") == "reached\n"
        running = subprocess.Popen(up.argv("in-cluster", "--", "echo", "begun"), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   text=True, env=up.env)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(3)
        stack.close()
        assert running.communicate(timeout=60)[0] == "begun\n" and running.returncode == 0
        c.wait()
        assert listens(up, c.ip, 8888)
        c.__exit__()


def test_a_session_without_a_node(up):
    """Its command does not begin; what it was told to end by ends it."""
    pid, before = up.pid("node"), set(up.data.glob("in-cluster.*"))  # those that were killed left something
    os.kill(pid, 19)
    try:
        running = subprocess.Popen(up.argv("in-cluster", "--", "echo", "begun"), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   text=True, env=up.env)
        wait_until(lambda: [d for d in set(up.data.glob("in-cluster.*")) - before if (d / "account/namespace").exists()], 60)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(1)
        running.terminate()
        assert (running.wait(60), running.stdout.read()) == (128 + 15, "")
        assert set(up.data.glob("in-cluster.*")) == before
    finally:
        os.kill(pid, 18)


def test_by_option_and_by_file(tmp_path):
    """`silica up --pod-addresses`, for programs that know only addresses; declared ports, too. Restarted without it, they are let go."""
    config = tmp_path / "up.yaml"
    config.write_text("pod-addresses: true\n")
    with own_network(), ups.Up("--config", str(config)) as up:
        up.wait_warm()
        up.api.call("POST", PODS.format("default"), {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "direct"}, "spec": {
            "terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "python:3.11", "command": ["python3", "-m", "http.server", "7001"],
                                                                "ports": [{"containerPort": 7001}]}]}})
        with Claim(up, "mine") as c:
            assert all(listens(up, c.ip, port) for port in OURS)
            direct = wait_until(lambda: up.api.call("GET", f"{PODS.format('default')}/direct").get("status", {}).get("podIP"), 60)
            wait_until(lambda: listens(up, direct, 7001), 60)
            assert up.end() == 0
            up.start("--pod-addresses")
            wait_until(lambda: listens(up, c.ip, 8888), 60)
            assert up.end() == 0
            up.start()
            wait_until(lambda: is_free(c.ip, 8888) and not condition(c.pod(), CONDITION), 60)

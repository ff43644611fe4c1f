"""`silica apiserver --pod-backend=local-exec`: a whole API whose Pods are this machine, and what tests do to it."""

import contextlib
import json
import os
import pathlib
import secrets
import socket
import ssl
import threading
import urllib.parse

import requests

from harness.server import wait_until
from lib import controlplane

UPGRADES = {
    "websocket": "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {}\r\n",
    "spdy": "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: {}\r\nContent-Length: 0\r\n",
}


class ApiServer:
    def __init__(self, *options):
        self.api = controlplane.Silica("--pod-backend=local-exec", *options, env={"SILICA_TEST": "1"})
        self.kubectl_options = ["--kubeconfig", str(self.kubeconfig)]
        self.session = requests.Session()
        self.session.verify, self.session.trust_env = str(self.ca_file), False
        self.session.cert = (str(self.client_cert), str(self.client_key))

    def __getattr__(self, name):
        return getattr(self.api, name)

    log = property(lambda self: self.api.log("silica"))

    def configuration(self):
        """Of the Python client, as the administrator."""
        from kubernetes import client, config
        made = client.Configuration()
        config.load_kube_config(str(self.kubeconfig), client_configuration=made)
        return made

    def ask(self, method, path, body=None, token=None, **kw):
        if token is None:
            return self.session.request(method, self.url + path, json=body, timeout=60, **kw)
        return requests.request(method, self.url + path, json=body, timeout=60, verify=str(self.ca_file),
                                headers={"authorization": f"Bearer {token}"}, **kw)

    def make(self, path, body):
        made = self.ask("POST", path, body)
        assert made.status_code == 201, made.text
        return made.json()

    def make_namespace(self):
        name = f"ns-{secrets.token_hex(4)}"
        self.make("/api/v1/namespaces", {"metadata": {"name": name}})
        return name

    def make_pod(self, ns, name, containers=("main",), phase="Running", **meta):
        """A Pod that says it runs; its JSON."""
        pods = f"/api/v1/namespaces/{ns}/pods"
        self.make(pods, {"metadata": {"name": name, **meta}, "spec": {
            "containers": [{"name": c, "image": "none", "stdin": True} for c in containers]}})
        return self.set_status(ns, name, phase=phase)

    def set_status(self, ns, name, **status):
        """What a kubelet would tell: it is ready, and this. The Pod's JSON."""
        status = {"conditions": [{"type": "Ready", "status": "True"}], **status}
        done = self.ask("PATCH", f"/api/v1/namespaces/{ns}/pods/{name}/status", {"status": status},
                        headers={"content-type": "application/merge-patch+json"})
        assert done.status_code == 200, done.text
        return done.json()

    def log_file(self, pod, container="main", name="current"):
        """Where local-exec reads what the container wrote."""
        meta = pod["metadata"]
        path = self.directory / "data" / "pod-logs" / f"{meta['namespace']}_{meta['name']}_{meta['uid']}" / container / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def make_user(self, ns, name, role, role_kind="ClusterRole"):
        """The token of a new ServiceAccount, bound to a role in its own namespace."""
        self.make(f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": name}})
        if role:
            self.make(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings", {
                "metadata": {"name": name}, "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": ns}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role}})
        made = self.make(f"/api/v1/namespaces/{ns}/serviceaccounts/{name}/token", {"spec": {}})
        return made["status"]["token"]

    def pod_side(self):
        """The pid of the process that has the Pods."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = []

        def is_there():
            found[:] = [int(pid) for pid in children.read_text().split()
                        if "pod-backend" in pathlib.Path(f"/proc/{pid}/cmdline").read_text()]
            return len(found) == 1

        wait_until(is_there, 30, "the pod side")
        return found[0]

    def connect(self):
        """A TLS connection that has shown no certificate."""
        host = urllib.parse.urlsplit(self.url)
        context = ssl.create_default_context(cafile=str(self.ca_file))
        return context.wrap_socket(socket.create_connection((host.hostname, host.port), 30), server_hostname=host.hostname)

    def open(self, path, token, upgrade="websocket", protocol="v5.channel.k8s.io", extra=""):
        """A request to switch, by hand: the socket behind the head, and the head; of a refusal with its body."""
        method = "GET" if upgrade == "websocket" else "POST"
        c = self.connect()
        c.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{extra}"
                  f"{UPGRADES[upgrade].format(protocol)}\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            more = c.recv(1)
            assert more, head
            head += more
        head = head.decode()
        if " 101 " in head.splitlines()[0]:
            return c, head
        fields = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
        body = b""
        while len(body) < int(fields["content-length"]):
            body += c.recv(65536)
        c.close()
        return None, head + body.decode()

    def status_of(self, answer):
        """The code and the Status of a refusal that open() gave."""
        head, _, body = answer.partition("\r\n\r\n")
        return int(head.split()[1]), json.loads(body)

    @contextlib.contextmanager
    def kubelet(self, ns="default"):
        """Does what a kubelet would tell, of every new Pod there: it runs, and is ready."""
        ended = threading.Event()

        def keep_ready():
            while not ended.wait(0.05):
                for pod in self.ask("GET", f"/api/v1/namespaces/{ns}/pods").json()["items"]:
                    if pod["status"].get("phase") == "Pending":
                        with contextlib.suppress(AssertionError):  # it may be gone by now
                            self.set_status(ns, pod["metadata"]["name"], phase="Running", podIP="127.0.0.1", podIPs=[{"ip": "127.0.0.1"}])

        thread = threading.Thread(target=keep_ready)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def end(self):
        """Its log, after a graceful end."""
        self.process.terminate()
        self.process.wait(30)
        log = self.log
        self.api.stop()
        return log

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

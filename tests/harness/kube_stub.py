"""The few Kubernetes answers a client asks for before it talks to a runtime, so that clients run unmodified.

Pods named in a POST become Running and Ready at once with the address given; every Sandbox is Ready at that
address. Nothing else exists. This stands in for a cluster's address book only: no byte of runtime traffic
passes through it.
"""

import http.server
import json
import pathlib
import re
import threading

POD = re.compile(r"^/api/v1/namespaces/([^/]+)/pods(?:/([^/?]+))?(?:\?.*)?$")
SANDBOX = re.compile(r"^/apis/agents\.x-k8s\.io/(v1alpha1|v1beta1)/namespaces/([^/]+)/sandboxes/([^/?]+)$")


class KubeStub:
    def __init__(self, directory, pod_ip="127.0.0.1"):
        self.pods = {}
        self.requests = []  # (method, path), for tests that care what was asked
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def answer(self, status, body):
                raw = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def missing(self):
                self.answer(404, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                                  "reason": "NotFound", "message": "not found", "code": 404})

            def do(self):
                stub.requests.append((self.command, self.path))
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                pod, sandbox = POD.match(self.path), SANDBOX.match(self.path)
                if sandbox and self.command == "GET":
                    self.answer(200, stub.sandbox(*sandbox.groups(), pod_ip))
                elif pod and self.command == "POST":
                    given = json.loads(body)
                    given["status"] = {"phase": "Running", "podIP": pod_ip,
                                       "conditions": [{"type": "Ready", "status": "True"}]}
                    stub.pods[given["metadata"]["name"]] = given
                    self.answer(201, given)
                elif pod and self.command == "GET" and pod.group(2) in stub.pods:
                    self.answer(200, stub.pods[pod.group(2)])
                elif pod and self.command == "DELETE" and pod.group(2) in stub.pods:
                    self.answer(200, stub.pods.pop(pod.group(2)))
                else:
                    self.missing()

            do_GET = do_POST = do_DELETE = do

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.kubeconfig = pathlib.Path(directory) / "kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "stub",
            "clusters": [{"name": "stub", "cluster": {"server": f"http://127.0.0.1:{self.server.server_port}"}}],
            "contexts": [{"name": "stub", "context": {"cluster": "stub", "user": "stub"}}],
            "users": [{"name": "stub", "user": {"token": "stub"}}]}))

    @staticmethod
    def sandbox(version, namespace, name, pod_ip):
        return {"apiVersion": f"agents.x-k8s.io/{version}", "kind": "Sandbox",
                "metadata": {"name": name, "namespace": namespace, "uid": "1", "resourceVersion": "1"},
                "spec": {"operatingMode": "Running"},
                "status": {"podIPs": [pod_ip], "serviceFQDN": "localhost",
                           "conditions": [{"type": "Ready", "status": "True", "message": "ready"}]}}

    def close(self):
        self.server.shutdown()
        self.server.server_close()

"""`silica router` as tests see it, sandboxes that it can know, and servers in the place of theirs.

A sandbox is a Sandbox and its Pod on an API server; where the Pod's address says, a real silica-runtime listens, or a
Backend: a small server that tells what reached it, and misbehaves on request.
"""

import hashlib
import http.server
import json
import os
import re
import socket
import subprocess
import threading
import urllib.error
import urllib.request

from harness.server import TREE

SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/{}/sandboxes"
PODS = "/api/v1/namespaces/{}/pods"


def program():
    return os.environ.get("SILICA", str(TREE / "build" / "silica"))


class Router:
    """Knows api's sandboxes; api None: no cluster at all, and every address is taken as it comes. Theirs are on loopback here;
    has_loopback False: that is not allowed."""

    def __init__(self, api, *options, env=None, directory=None, listen="127.0.0.1:0", stdin=subprocess.DEVNULL, has_loopback=True):
        reader, writer = os.pipe()
        self.log_path = (directory or api.directory) / f"router-{os.urandom(4).hex()}.log"
        where = ["--kubeconfig", api.kubeconfig] if api else ["--cache-enabled=false", "--allow-unlisted-pod-ip"]
        given = {k: v for k, v in os.environ.items() if not k.startswith("ROUTER_")}
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [program(), "router", *where, "--listen", listen, "--metrics-listen", "127.0.0.1:0", "--health-listen",
                 "127.0.0.1:0", "--ready-fd", str(writer), *(["--allow-loopback-pod-ip"] if has_loopback else []), *options],
                stdin=stdin, stdout=log, stderr=log, pass_fds=[writer], env={**given, **(env or {})})
        os.close(writer)
        with os.fdopen(reader) as ready:
            line = ready.readline()
        assert line, self.log
        self.ready = json.loads(line)
        self.address = self.ready["listen"][0]
        self.port = int(self.address.rsplit(":", 1)[1])
        self.url = f"http://{self.address}"

    @property
    def log(self):
        return self.log_path.read_text(errors="replace")

    def said(self, msg):
        return [line for line in map(json.loads, self.log.splitlines()) if line["msg"] == msg]

    def metric(self, text):
        """The values of the samples whose name and labels begin so."""
        with urllib.request.urlopen(f"http://{self.ready['metrics']}/metrics", timeout=10) as answer:
            return re.findall(rf"^{re.escape(text)}.* (\S+)$", answer.read().decode(), re.M)

    def end(self, code=0):
        self.process.terminate()
        assert self.process.wait(60) == code, self.log

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        assert "Sanitizer" not in self.log and "runtime error:" not in self.log, self.log[-20000:]


def place(api, name, ip, namespace="default", labels=None, ready=True, pod_name=None):
    """A Sandbox with a Pod at this address. Returns the Sandbox's uid."""
    spec = {"podTemplate": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}
    made = api.call("POST", SANDBOXES.format(namespace), {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox",
                                                          "metadata": {"name": name}, "spec": spec})
    owner = {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "name": name, "uid": made["metadata"]["uid"],
             "controller": True}
    api.call("POST", PODS.format(namespace),
             {"metadata": {"name": pod_name or name, "ownerReferences": [owner],
                           "labels": {"agents.x-k8s.io/sandbox-name-hash": "x", **(labels or {})}},
              "spec": spec["podTemplate"]["spec"]})
    set_status(api, pod_name or name, ip, namespace, ready)
    return made["metadata"]["uid"]


def set_status(api, pod_name, ip, namespace="default", ready=True):
    path = f"{PODS.format(namespace)}/{pod_name}"
    pod = api.call("GET", path)
    pod["status"] = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
                     "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    api.call("PUT", path + "/status", pod)


class Handler(http.server.BaseHTTPRequestHandler):
    """What came goes back as JSON; /cut and others misbehave."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def body(self):
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        got = b""
        while size := int(self.rfile.readline(), 16):
            got += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return got

    def tell(self, status=200, fields=()):
        body = self.body()
        raw = json.dumps({"method": self.command, "target": self.path, "fields": self.headers.items(),
                          "length": len(body), "sha256": hashlib.sha256(body).hexdigest(),
                          "where": self.server.server_address[0]}).encode()
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(raw)

    def do(self):
        self.server.seen.append((self.command, self.path))
        what, _, number = self.path.split("?")[0].strip("/").partition("/")
        if what == "cut":  # takes the request, and goes without a word
            self.body()
            self.close_connection = True
        elif what == "hang":
            self.body()
            self.server.let_go.wait(60)
            self.close_connection = True
        elif what == "half":  # promises more than it gives
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"half")
            self.close_connection = True
        elif what == "flow":  # so many bytes, in chunks
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            left = int(number)
            while left:
                n = min(left, 65536)
                self.wfile.write(b"%x\r\n%s\r\n" % (n, b"x" * n))
                left -= n
            self.wfile.write(b"0\r\nx-sum: done\r\n\r\n")
        elif what == "ticks":  # a piece, then another when the test says so
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\r\nfirst\r\n")
            self.server.let_go.wait(60)
            self.wfile.write(b"6\r\nsecond\r\n0\r\n\r\n")
        elif what == "switch":
            self.switch()
        elif what == "hops":
            self.tell(fields=[("Connection", "X-Gone"), ("X-Gone", "1"), ("Keep-Alive", "timeout=5"), ("X-Stays", "a"),
                              ("X-Stays", "b"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])
        elif what == "status":
            self.tell(int(number))
        else:
            self.tell()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_BREW = do

    def switch(self):
        """Bytes come back in capitals."""
        self.close_connection = True
        self.server.switched = self.headers
        if self.headers.get("upgrade") is None and "force" not in self.path:
            return self.tell(400)
        self.connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: loud\r\n"
                                b"X-Mine: yes\r\n\r\nhello ")
        while more := self.connection.recv(65536):
            self.connection.sendall(more.upper())
        return None


class Backend:
    """Listens on its own address; port is the same for all that share one."""

    def __init__(self, ip, port=0):
        self.ip = ip

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self.server = Server((ip, port), Handler)
        self.server.seen, self.server.let_go, self.server.switched = [], threading.Event(), None
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True)
        self.thread.start()

    @property
    def seen(self):
        return self.server.seen

    def close(self):
        self.server.let_go.set()
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def ask(router, target="/", method="GET", data=None, fields=()):
    """Status, fields and body, whatever the status. router: whatever has a url."""
    request = urllib.request.Request(router.url + target, method=method, data=data, headers=dict(fields))
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, refused.read()


def at(backend, **more):
    """Fields that lead to a Backend, and more: X_Sandbox_Port="1"."""
    return {"X-Sandbox-ID": "box", "X-Sandbox-Port": str(backend.port), "X-Sandbox-Pod-IP": backend.ip,
            **{name.replace("_", "-"): value for name, value in more.items()}}


def passed_on(answer):
    """The fields that reached the Backend, of what ask() returned."""
    return {name.lower(): value for name, value in json.loads(answer[2])["fields"]}


def free_port(ip):
    with socket.socket() as s:
        s.bind((ip, 0))
        return s.getsockname()[1]

"""`silica controller` as a process of its own, and a stand-in for the nodes that its Pods would run on.

    with Controller(api, "--leader-elect=false") as c:    # api: controlplane.Api
        c.wait_for("controller.working")
"""

import json
import os
import pathlib
import re
import subprocess
import time
import urllib.error
import urllib.request

from lib.controlplane import die_with_parent

TREE = pathlib.Path(__file__).resolve().parents[2]


class Controller:
    """kubeconfig: whose rights it has; the administrator's, unless said otherwise."""

    def __init__(self, api, *options, kubeconfig=None, program=None):
        reader, writer = os.pipe()
        program = program or os.environ.get("SILICA", str(TREE / "build" / "silica"))
        self.log = api.directory / f"controller-{os.urandom(4).hex()}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [program, "controller", "--kubeconfig", kubeconfig or api.kubeconfig, "--metrics-bind-address", "127.0.0.1:0",
                 "--health-probe-bind-address", "127.0.0.1:0", "--webhook-port=0", "--ready-fd", str(writer), *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[writer], preexec_fn=die_with_parent)
        os.close(writer)
        with os.fdopen(reader) as ready:
            line = ready.readline()
        assert line, self.log.read_text()
        self.ready = json.loads(line)

    def lines(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def said(self, msg):
        return [line for line in self.lines() if line["msg"] == msg]

    def wait_for(self, msg, timeout_s=60):
        end = time.monotonic() + timeout_s
        while not self.said(msg):
            assert time.monotonic() < end, f"no {msg} in {self.log.read_text()}"
            time.sleep(0.01)

    def metrics(self):
        with urllib.request.urlopen(f"http://{self.ready['metrics']}/metrics", timeout=10) as answer:
            assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
            return answer.read().decode()

    def metric(self, name):
        return re.findall(rf"^{re.escape(name)}(?:{{.*}})? (.*)$", self.metrics(), re.M)

    def end(self):
        self.process.terminate()
        assert self.process.wait(60) == 0, self.log.read_text()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


RUNNING = {"phase": "Running", "podIPs": [{"ip": "127.1.0.9"}], "podIP": "127.1.0.9", "conditions": [{"type": "Ready", "status": "True"}]}


def ready_pods(api, namespace):
    """The pod side, once: marks every Pod ready. How many it marked."""
    marked = 0
    for pod in api.call("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]:
        if pod["status"].get("phase") == "Running":
            continue
        pod["status"] = RUNNING
        try:
            api.call("PUT", f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/status", pod)
        except urllib.error.HTTPError as e:
            if e.code not in (404, 409):  # it went, or was written, since it was listed
                raise
            continue
        marked += 1
    return marked


def condition(thing, kind="Ready"):
    return next((c["status"] for c in thing.get("status", {}).get("conditions", []) if c["type"] == kind), None)


def owner(thing):
    """The reference to what controls it, or None."""
    return next((ref for ref in thing["metadata"].get("ownerReferences", []) if ref.get("controller")), None)

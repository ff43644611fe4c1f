"""A machine that runs Pods: `silica apiserver`, `silica node` and, where asked for, `silica controller`, in one directory.

    with Machine() as m:
        m.apply({"kind": "Pod", ...})
        m.wait_phase("demo", "Running")
        m.kubectl("exec", "demo", "--", "true")

What it leaves behind is looked at when it ends: no sandbox, no process, no volume of a Pod that is gone.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from harness import caller, owner, proc
from harness.server import wait_until
from lib import controlplane

PATIENCE_S = 60
NODE = "machine"
NOBODY = 65534


def pod(name, *, image="python:3.11", command=None, namespace=None, **spec):
    """A Pod with one container, `main`; what spec says goes beside it, or into it where it is a container's."""
    of_container = {k: spec.pop(k) for k in ("args", "env", "envFrom", "ports", "volumeMounts", "readinessProbe", "livenessProbe",
                                             "startupProbe", "workingDir", "resources", "securityContext", "lifecycle",
                                             "terminationMessagePolicy", "terminationMessagePath")
                    if k in spec}
    container = {"name": "main", "image": image, **({"command": command} if command else {}), **of_container}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 5, "automountServiceAccountToken": False, **spec}}


def calmed(o):
    """A sanitized PID 1 cannot look for leaks: that wants ptrace."""
    if "ASAN_OPTIONS" in os.environ and o["kind"] == "Pod":
        for c in o["spec"].get("initContainers", []) + o["spec"]["containers"]:
            c["env"] = [*c.get("env", []), {"name": "ASAN_OPTIONS", "value": "detect_leaks=0"}]
    return o


class Process:
    """One program of ours, its log beside it."""

    def __init__(self, machine, *argv):
        self.log_path = machine.directory / f"{argv[0]}-{os.urandom(3).hex()}.log"
        reader, writer = os.pipe()
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen([*machine.wrap, machine.api.program, *map(str, argv), "--ready-fd", str(writer)],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[writer],
                                            preexec_fn=controlplane.die_with_parent)
        os.close(writer)
        with os.fdopen(reader) as ready:
            line = ready.readline()
        assert line, self.log()
        self.ready = json.loads(line)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self, timeout_s=PATIENCE_S):
        self.process.terminate()
        status = self.process.wait(timeout_s)
        assert status == 0, f"status {status}: {self.log()[-5000:]}"


class Machine:
    def __init__(self, with_controller=False, who="root", node_options=()):
        """who: `user` is an account that has nothing but its uid, `ranged` one with a range of ids, where the tests run as root."""
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="silica-machine-"))
        self.data = self.directory / "node"
        self.data.mkdir(mode=0o700)
        self.wrap, self.node_options = [], node_options
        if who != "root" and os.geteuid() == 0:
            uid = NOBODY if who == "user" else caller.RANGED
            self.wrap = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            if who == "ranged":
                self.wrap = caller.Accounts(self.directory).prefix()
                self.directory.chmod(0o755)
            for path in (self.directory, self.data):
                os.chown(path, uid, uid)
            for there in (caller.program(), caller.runtime()):  # the tree may be nobody else's to read
                shutil.copy2(there, self.directory / there.name.removesuffix(".stripped"))
        self.node = self.controller = self.api = None
        try:
            program = str(self.directory / "silica") if self.wrap else None
            self.api = controlplane.Silica("--pod-socket", str(self.data / "pods.sock"), "--log-level", "warn",
                                           parent=self.directory, data=self.directory / "api", wrap=self.wrap, program=program)
            self.kubectl_program = controlplane.peer("kubectl")
            self.start_node()
            if with_controller:
                self.controller = Process(self, "controller", "--kubeconfig", self.api.kubeconfig, "--metrics-bind-address",
                                          "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0", "--leader-elect=false", "--enable-webhook=false")
        except BaseException:
            self.stop()
            raise

    def start_node(self):
        self.node = Process(self, "node", "--kubeconfig", self.api.kubeconfig, "--data", self.data, "--node-name", NODE, *self.node_options)

    # ---- objects ----

    def run(self, *args, timeout=PATIENCE_S, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([self.kubectl_program, "--kubeconfig", str(self.api.kubeconfig), *map(str, args)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, **kwargs)

    def kubectl(self, *args, **kwargs):
        """What kubectl prints; it must succeed."""
        done = self.run(*args, **kwargs)
        assert done.returncode == 0, f"{args}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{self.tail()}"
        return done.stdout

    def tail(self):
        return self.node.log()[-4000:]

    def apply(self, *objects):
        for o in objects:
            kwargs = {"input": json.dumps(calmed(o))}
            done = subprocess.run([self.kubectl_program, "--kubeconfig", str(self.api.kubeconfig), "apply", "-f", "-"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, **kwargs)
            assert done.returncode == 0, done.stdout

    def get(self, name, namespace="default", kind="pods", group="/api/v1"):
        """The object, or None."""
        try:
            return self.api.call("GET", f"{group}/namespaces/{namespace}/{kind}/{name}")
        except OSError as e:
            if getattr(e, "code", None) == 404:
                return None
            raise

    def status(self, name, namespace="default"):
        found = self.get(name, namespace)
        return found["status"] if found else None

    def wait(self, check, what, timeout_s=PATIENCE_S):
        def alive_and_so():
            assert self.node.process.poll() is None, f"the node ended with {self.node.process.returncode}"
            return check()

        try:
            return wait_until(alive_and_so, timeout_s, what)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.tail()}") from None

    def wait_phase(self, name, phase, namespace="default"):
        self.wait(lambda: (self.status(name, namespace) or {}).get("phase") == phase, f"{name} {phase}")
        return self.get(name, namespace)

    def wait_ready(self, name, namespace="default"):
        def is_ready():
            found = self.get(name, namespace)
            conditions = {c["type"]: c["status"] for c in (found or {}).get("status", {}).get("conditions", [])}
            return found if conditions.get("Ready") == "True" else None

        return self.wait(is_ready, f"{name} ready")

    def wait_gone(self, name, namespace="default"):
        self.wait(lambda: self.get(name, namespace) is None, f"{name} gone")

    def delete(self, name, namespace="default"):
        self.kubectl("delete", "pod", name, "-n", namespace, "--wait=false")
        self.wait_gone(name, namespace)

    def events(self, name, namespace="default"):
        found = self.api.call("GET", f"/api/v1/namespaces/{namespace}/events?limit=500")["items"]
        return [(e["reason"], e.get("message") or e.get("note") or "") for e in found if e["involvedObject"]["name"] == name]

    # ---- what stands on the machine ----

    def boxes(self):
        there = self.data / "sandboxes"
        return sorted(p.name for p in there.iterdir()) if there.exists() else []

    def boxes_of(self, found):
        return [b for b in self.boxes() if b.startswith(found["metadata"]["uid"])]

    def pid_of(self, box):
        return json.loads((self.data / "sandboxes" / box / "state.json").read_text())["pid"]

    def keeper(self):
        return owner.keeper_of(self.data)

    def leftovers(self):
        """What should not be there when no Pod is: boxes and volumes."""
        volumes = self.data / "pods"
        return self.boxes() + (sorted(str(p) for p in volumes.iterdir()) if volumes.exists() else [])

    # ---- the end ----

    def stop(self):
        keeper = None
        try:
            keeper = self.keeper()
        except (OSError, ValueError):
            pass
        for p in (self.controller, self.node):
            if p and p.process.poll() is None:
                p.kill()
        if keeper:
            os.kill(keeper, 15)
            end = time.monotonic() + PATIENCE_S
            while proc.state(keeper) not in ("", "Z", "X") and time.monotonic() < end:
                time.sleep(0.02)
        if self.api:
            self.api.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

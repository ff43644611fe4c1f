"""deploy/ on a real control plane: our controller and router run as processes beside it, with exactly the rights that their
ServiceAccounts have there, and a stand-in plays the kubelet: a Pod's container is a silica-runtime at the address that it gives the Pod.

    with Installed() as system:
        system.kubectl("apply", "-f", "deploy/samples/python.yaml")
        system.start()

The API server writes an audit, from which `calls` tells who asked for what, and what of it was forbidden.
"""

import contextlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import threading
import types
import urllib.error

from harness.router import Router
from harness.server import TREE, binary, wait_until
from lib.controllers import Controller
from lib.controlplane import CONTROLLERS, ControlPlane, die_with_parent, peer, write_kubeconfig

SYSTEM = "agent-sandbox-system"
# Only who asked for what, of those we look at, once it is done; watches, which are never done, when they begin.
AUDIT = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
    {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{SYSTEM}"]}, {"level": "None"}]}


class Installed:
    """api_options: more for the API server."""

    def __init__(self, api_options=()):
        self.kubectl_path = peer("kubectl")
        self.closing = contextlib.ExitStack()
        self.directory = pathlib.Path(self.closing.enter_context(temporary()))
        policy, self.audit = self.directory / "audit-policy.json", self.directory / "audit.log"
        policy.write_text(json.dumps(AUDIT))
        try:
            self.api = self.closing.enter_context(ControlPlane(
                with_crds=False, parent=self.directory, controllers=[*CONTROLLERS, "persistentvolumeclaim-protection-controller"], api_options=[
                f"--audit-policy-file={policy}", f"--audit-log-path={self.audit}", "--audit-log-mode=blocking",
                "--enable-admission-plugins=OwnerReferencesPermissionEnforcement", *api_options]))
        except BaseException:
            self.closing.close()
            raise
        self.controllers, self.router = [], None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing.close()

    def run(self, *argv, check=True, stdin=None):
        done = subprocess.run(argv, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, cwd=TREE,
                              env={**os.environ, "KUBECONFIG": str(self.api.kubeconfig)})
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def kubectl(self, *argv, **kw):
        return self.run(self.kubectl_path, *argv, **kw)

    def account(self, name):
        """A kubeconfig with the token of a ServiceAccount of ours."""
        token = self.api.call("POST", f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{name}/token", {"spec": {"expirationSeconds": 7200}})
        return write_kubeconfig(self.directory / f"kubeconfig-{name}", self.api.url, self.api.ca_file, token["status"]["token"])

    def arguments(self, deployment):
        """What the Deployment gives its container."""
        found = self.api.call("GET", f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/{deployment}")
        return found["spec"]["template"]["spec"]["containers"][0]["args"]

    def start(self, *more, replicas=2):
        """Two replicas of the controller, unless said otherwise, and one of the router, as the Deployments start them but for the addresses."""
        mine = self.account("agent-sandbox-controller")
        for _ in range(replicas):
            self.controllers.append(self.closing.enter_context(
                Controller(self.api, *self.arguments("agent-sandbox-controller"), *more, kubeconfig=mine)))
        wait_until(lambda: any(c.said("controller.working") for c in self.controllers), 60, "one of them works")
        self.router = self.start_router()
        self.kubelet = self.closing.enter_context(Kubelet(self))

    def start_router(self):
        """One that its Deployment would start, as that is now."""
        given = [a for a in self.arguments("sandbox-router") if not a.startswith(("--listen", "--metrics", "--health"))]
        as_router = types.SimpleNamespace(kubeconfig=self.account("sandbox-router"), directory=self.directory)
        router = Router(as_router, *given)
        self.closing.callback(router.process.kill)
        return router

    def audited(self):
        """How many lines the audit has: `calls` tells of those that came since."""
        return len(self.audit.read_text().splitlines())

    def may(self, account, verb, resource):
        """By the API server's own word; resource: plural.group or plural.group/subresource."""
        plural, _, subresource = resource.partition("/")
        asked = self.kubectl("auth", "can-i", verb, plural, f"--as=system:serviceaccount:{SYSTEM}:{account}",
                             *([f"--subresource={subresource}"] if subresource else []), check=False)
        return asked.stdout.strip() == "yes"

    def calls(self, account, since=0):
        """(verb, group, resource with its subresource, code) of what it asked for, as the API server saw it."""
        seen = set()
        for line in self.audit.read_text().splitlines()[since:]:
            event = json.loads(line)
            if event["user"]["username"] == f"system:serviceaccount:{SYSTEM}:{account}" and "objectRef" in event:
                ref = event["objectRef"]
                resource = "/".join(filter(None, (ref["resource"], ref.get("subresource"))))
                seen.add((event["verb"], ref.get("apiGroup", ""), resource, event["responseStatus"].get("code", 200)))
        return seen

    def snapshot(self):
        """Every object there is, but for Events and what the control plane does for itself."""
        groups = [("/api/v1", self.api.call("GET", "/api/v1"))]
        for group in self.api.call("GET", "/apis")["groups"]:
            path = f"/apis/{group['preferredVersion']['groupVersion']}"
            with contextlib.suppress(urllib.error.HTTPError):  # a group that goes with its kinds
                groups.append((path, self.api.call("GET", path)))
        found = set()
        for path, told in groups:
            for resource in told["resources"]:
                if "list" not in resource["verbs"] or resource["name"] in ("events", "componentstatuses"):
                    continue
                for item in self.list(f"{path}/{resource['name']}"):
                    where = item["metadata"].get("namespace")
                    if where not in ("kube-system", "kube-public", "kube-node-lease"):
                        found.add((resource["name"], where, item["metadata"]["name"]))
        return found

    def list(self, path):
        """Its objects; none, of a kind that went meanwhile."""
        try:
            return self.api.call("GET", path)["items"]
        except urllib.error.HTTPError as e:
            if e.code in (404, 429):
                return []
            raise

    def exists(self, path):
        try:
            return self.api.exists(path)
        except urllib.error.HTTPError as e:
            if e.code == 429:  # a kind that is not quite there yet
                return False
            raise


@contextlib.contextmanager
def temporary():
    made = tempfile.mkdtemp(prefix="silica-installed-")
    yield made
    shutil.rmtree(made, ignore_errors=True)


class Kubelet:
    """Gives every Pod an address of this machine's and a runtime there, then says it is ready; ends it when the Pod is gone. A volume
    claim is a directory that stays."""

    def __init__(self, system):
        self.system, self.running, self.next, self.is_over, self.failure = system, {}, 1, threading.Event(), None
        self.net = f"127.{random.randrange(80, 250)}"  # two such suites may run at once
        self.thread = threading.Thread(target=self.work, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()
        for process in self.running.values():
            process.kill()
            process.wait()
        assert self.failure is None, self.failure

    def work(self):
        while not self.is_over.wait(0.05):
            try:
                self.look()
            except (urllib.error.HTTPError, OSError):
                continue  # a Pod that went meanwhile, or another write first: the next look sees how it is
            except BaseException as e:  # noqa: B036: told when it ends, as nobody joins before
                self.failure = repr(e)
                return

    def look(self):
        pods = {p["metadata"]["uid"]: p for p in self.system.api.call("GET", "/api/v1/pods")["items"]}
        for uid in self.running.keys() - pods.keys():
            process = self.running.pop(uid)
            process.kill()
            process.wait()
        for uid, pod in pods.items():
            if uid not in self.running and "deletionTimestamp" not in pod["metadata"]:
                self.begin(uid, pod)

    def begin(self, uid, pod):
        meta = pod["metadata"]
        claims = [v["persistentVolumeClaim"]["claimName"] for v in pod["spec"].get("volumes", []) if "persistentVolumeClaim" in v]
        root = self.system.directory / "roots" / meta["namespace"] / (claims[0] if claims else uid)
        root.mkdir(parents=True, exist_ok=True)
        address = f"{self.net}.{self.next // 250}.{self.next % 250 + 1}"
        self.next += 1
        reader, writer = os.pipe()
        self.running[uid] = subprocess.Popen(
            [binary(), "--listen", f"{address}:8888", "--root", root, "--ready-fd", str(writer)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[writer], preexec_fn=die_with_parent)
        os.close(writer)
        with os.fdopen(reader) as ready:
            assert ready.readline(), f"no runtime at {address}"
        pod["status"] = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
                         "conditions": [{"type": "Ready", "status": "True"}]}
        self.system.api.call("PUT", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status", pod)

"""A real Kubernetes control plane on free loopback ports: etcd, kube-apiserver and, unless asked not to, the
controller-manager's controllers that an API server does not work without: owner-reference garbage collection,
namespaces, service accounts and their root certificate, aggregated cluster roles.

    with ControlPlane() as plane:
        subprocess.run([peer("kubectl"), "--kubeconfig", plane.kubeconfig, "get", "namespaces"])

The programs come from tools/peers. Our CustomResourceDefinitions are installed before the controllers start, v1beta1
only and without conversion, because nothing serves /convert here. Everything lives in one directory and ends with
the object, by pid; a parent that is killed takes its children along (PR_SET_PDEATHSIG).
"""

import base64
import contextlib
import ctypes
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

TREE = pathlib.Path(__file__).resolve().parents[2]
READY_TIMEOUT_S = 90
CONTROLLERS = ["garbage-collector-controller", "namespace-controller", "serviceaccount-controller",
               "serviceaccount-token-controller", "root-ca-certificate-publisher-controller",
               "clusterrole-aggregation-controller"]
QUOTAS = "resourcequota-controller"  # lists every kind there is, which suites that make and delete kinds need not wait for
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


class Unavailable(Exception):
    """A program that this machine cannot have; its text is the reason of a skip."""


def peer(name):
    """The path of a foreign program, built on first use."""
    made = subprocess.run([str(TREE / "tools" / "peers"), name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if made.returncode != 0:
        raise Unavailable(f"cannot make {name}: {made.stderr.strip()[-300:]}")
    return made.stdout.strip().splitlines()[-1]


def free_ports(count):
    """Ports that were free a moment ago. These programs cannot be given port 0 and asked what they got."""
    with contextlib.ExitStack() as held:
        ports = []
        for _ in range(count):
            s = held.enter_context(socket.socket())
            s.bind(("127.0.0.1", 0))
            ports.append(s.getsockname()[1])
        return ports


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def write_kubeconfig(path, url, ca_file, token):
    """A kubeconfig with one user, known by a token; mode 0600."""
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": str(ca_file)}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": {"token": token}}]}
    path = pathlib.Path(path)
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=1))  # JSON is YAML
    return path


class Api:
    """What both targets are to their users: url, ca_file and token or client_cert reach it as an administrator;
    kubeconfig says the same; pids maps names to process ids; directory holds everything it has."""

    kind, token, client_cert, client_key = "", None, None, None

    def call(self, method, path, body=None, raw=False, kind="application/json"):
        """One request as the administrator; HTTP errors raise."""
        headers = {"content-type": kind, **({"authorization": f"Bearer {self.token}"} if self.token else {})}
        request = urllib.request.Request(self.url + path, method=method, data=json.dumps(body).encode() if body else None,
                                         headers=headers)
        context = ssl.create_default_context(cafile=str(self.ca_file))
        if self.client_cert:
            context.load_cert_chain(self.client_cert, self.client_key)
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            got = answer.read()
        return got if raw else json.loads(got)

    def patch(self, path, body):
        """A merge patch."""
        return self.call("PATCH", path, body, kind="application/merge-patch+json")

    def exists(self, path):
        try:
            self.call("GET", path)
            return True
        except urllib.error.HTTPError as e:
            if e.code == 404:
                return False
            raise

    def stop(self):
        raise NotImplementedError

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class ControlPlane(Api):
    """is_durable: etcd syncs what it wrote, as it does for its users; tests have no need of that. controllers: which of the
    controller-manager's. api_options: more for the API server."""

    kind = "real"

    def __init__(self, is_durable=False, with_controllers=True, with_crds=True, parent=None, controllers=(*CONTROLLERS, QUOTAS), api_options=()):
        self.controllers, self.api_options = controllers, api_options
        programs = ["etcd", "kube-apiserver"] + (["kube-controller-manager"] if with_controllers else [])
        paths = {name: peer(name) for name in programs}
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="silica-plane-", dir=parent))
        self.processes = {}
        self.token = secrets.token_hex(16)
        try:
            self._start(paths, is_durable, with_controllers, with_crds)
        except BaseException:
            self.stop()
            raise

    def _start(self, paths, is_durable, with_controllers, with_crds):
        etcd_port, peer_port, self.port, manager_port = free_ports(4)
        self.url = f"https://127.0.0.1:{self.port}"
        etcd_url = f"http://127.0.0.1:{etcd_port}"
        peer_url = f"http://127.0.0.1:{peer_port}"
        self._run("etcd", paths["etcd"], f"--data-dir={self.directory}/etcd", f"--listen-client-urls={etcd_url}",
                  f"--advertise-client-urls={etcd_url}", f"--listen-peer-urls={peer_url}",
                  f"--initial-advertise-peer-urls={peer_url}", f"--initial-cluster=default={peer_url}",
                  "--log-level=warn", *([] if is_durable else ["--unsafe-no-fsync"]))
        key = self.directory / "service-account.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, stderr=subprocess.DEVNULL)
        tokens = self.directory / "tokens.csv"
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n')
        self._run("kube-apiserver", paths["kube-apiserver"], f"--etcd-servers={etcd_url}", "--bind-address=127.0.0.1",
                  f"--secure-port={self.port}", f"--cert-dir={self.directory}/certs", "--authorization-mode=RBAC",
                  f"--token-auth-file={tokens}", f"--service-account-key-file={key}",
                  f"--service-account-signing-key-file={key}", "--service-account-issuer=https://kubernetes.default.svc",
                  "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true", "--profiling=false", "--v=1",
                  *self.api_options)
        self.ca_file = self.directory / "certs" / "apiserver.crt"
        self._wait(lambda: self.ca_file.exists() and self.call("GET", "/readyz", raw=True) == b"ok", "kube-apiserver")
        self.kubeconfig = write_kubeconfig(self.directory / "kubeconfig", self.url, self.ca_file, self.token)
        if with_crds:
            self.install_crds()
        if with_controllers:
            self._run("kube-controller-manager", paths["kube-controller-manager"], f"--kubeconfig={self.kubeconfig}",
                      f"--controllers={','.join(self.controllers)}", f"--service-account-private-key-file={key}",
                      f"--root-ca-file={self.ca_file}", "--leader-elect=false", "--kube-api-qps=1000",
                      "--kube-api-burst=2000", f"--secure-port={manager_port}", "--bind-address=127.0.0.1",
                      f"--cert-dir={self.directory}/manager-certs", "--profiling=false")
            self._wait(lambda: self.exists("/api/v1/namespaces/default/serviceaccounts/default"), "kube-controller-manager")

    def _run(self, name, *argv):
        log = open(self.directory / f"{name}.log", "wb")
        with log:
            self.processes[name] = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                    cwd=self.directory, preexec_fn=die_with_parent)

    def restart(self):
        """kill -9 of the API server; etcd goes on."""
        old = self.processes["kube-apiserver"]
        old.kill()
        old.wait()
        self._run("kube-apiserver", *old.args)
        self._wait(lambda: self.call("GET", "/readyz", raw=True) == b"ok", "kube-apiserver")

    def _wait(self, is_done, name):
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if is_done():
                    return
            for who, process in self.processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{who} ended with {process.returncode}:\n{self.log(who)[-3000:]}")
            time.sleep(0.05)
        raise RuntimeError(f"{name} was not ready within {READY_TIMEOUT_S} s:\n{self.log(name)[-3000:]}")

    def log(self, name):
        path = self.directory / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def pids(self):
        return {name: process.pid for name, process in self.processes.items()}

    def install_crds(self):
        """Ours, v1beta1 only; waits until the API serves every kind."""
        for crd in our_crds():
            self.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        for crd in our_crds():
            group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
            self._wait(lambda p=f"/apis/{group}/v1beta1/{plural}": self.exists(p), "kube-apiserver")

    def stop(self):
        for process in reversed(self.processes.values()):
            process.kill()  # nothing here is to be kept, and a graceful end takes seconds
            process.wait()
        self.processes.clear()
        shutil.rmtree(self.directory, ignore_errors=True)


def our_crds():
    """deploy/crds for a cluster without our webhook: one version, no conversion."""
    import yaml  # only the virtualenvs of these suites have it
    for path in sorted((TREE / "deploy" / "crds").glob("*.x-k8s.io_*.yaml")):
        crd = yaml.safe_load(path.read_text())
        crd["spec"]["conversion"] = {"strategy": "None"}
        crd["spec"]["versions"] = [v for v in crd["spec"]["versions"] if v["name"] == "v1beta1"]
        yield crd


class Silica(Api):
    """`silica apiserver` alone. It can be killed and started again on the same data; then it has the same port.

    data: a directory of the caller's, instead of one that goes with the object. wrap: what stands before the program."""

    kind = "ours"

    def __init__(self, *options, parent=None, data=None, wrap=(), env=None, program=None):
        self.program = program or os.environ.get("SILICA", str(TREE / "build" / "silica"))
        knows = subprocess.run([self.program, "apiserver", "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if knows.returncode != 0:
            raise Unavailable("this silica has no apiserver")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="silica-api-", dir=parent))
        self.data = pathlib.Path(data or self.directory / "data")
        self.options, self.wrap, self.env, self.process = options, wrap, env, None
        try:
            self.start("--listen", "127.0.0.1:0")
        except BaseException:
            self.stop()
            raise

    def start(self, *options):
        """Returns when it serves. Without options: where it served the last time."""
        reader, writer = os.pipe()
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*self.wrap, self.program, "apiserver", "--data", str(self.data), "--ready-fd", str(writer), *self.options, *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[writer], preexec_fn=die_with_parent,
                env={**os.environ, **(self.env or {})})
        os.close(writer)
        with os.fdopen(reader) as ready:
            line = ready.readline()
        if not line:
            raise RuntimeError(f"silica apiserver did not become ready:\n{self.log('silica')[-3000:]}")
        self.kubeconfig = pathlib.Path(json.loads(line)["kubeconfig"])
        self._read_kubeconfig()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def restart(self):
        self.kill()
        self.start()

    def _read_kubeconfig(self):
        # One "key: value" a line, and no two keys alike: no reader of YAML is needed.
        config = dict(re.findall(r"^ *([a-z-]+): (\S+)$", self.kubeconfig.read_text(), re.M))
        self.url, self.token = config["server"], config.get("token")
        self.ca_file = self._file("ca.crt", config, "certificate-authority")
        self.client_cert = self._file("client.crt", config, "client-certificate")
        self.client_key = self._file("client.key", config, "client-key")

    def _file(self, name, section, key):
        if key in section:
            return pathlib.Path(section[key])
        if f"{key}-data" not in section:
            return None
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(section[f"{key}-data"]))
        return path

    def log(self, _name):
        return (self.directory / "log").read_text(errors="replace")

    @property
    def pids(self):
        return {"silica": self.process.pid}

    def end(self):
        """Ends it as its owner would; its data stay."""
        if not self.process or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def stop(self):
        self.end()
        shutil.rmtree(self.directory, ignore_errors=True)

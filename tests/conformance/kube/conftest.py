"""Two targets for every test: `real`, a kube-apiserver with etcd and its controllers (lib/controlplane.py), and `ours`,
`silica apiserver`. One instance of each per session; each test has a namespace of its own.

    api       the target: api.request(method, path), api.watch(path), api.url, api.kubeconfig
    ns        a fresh namespace, deleted afterwards without waiting
    t         a Transcript (transcript.py) named after the test, compared with its golden when the test ends
    k         runs kubectl 1.36 and records what came: k("list", "get pods -o json")
"""

import contextlib
import functools
import os
import subprocess
import sys

import pathlib

import pytest
import requests

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

from lib import controlplane  # noqa: E402
from transcript import Transcript  # noqa: E402

MAKERS = {"real": controlplane.ControlPlane, "ours": controlplane.Silica}


class Api:
    """A running target with an HTTP session of its administrator."""

    def __init__(self, target):
        self.target, self.kind, self.url, self.kubeconfig = target, target.kind, target.url, str(target.kubeconfig)
        self.token, self.ca_file = target.token, str(target.ca_file)
        self.session = requests.Session()
        self.session.verify = self.ca_file
        self.session.trust_env = False
        self.session.headers = requests.structures.CaseInsensitiveDict({"user-agent": "judge/1"})
        if self.token:
            self.session.headers["authorization"] = f"Bearer {self.token}"
        if target.client_cert:
            self.session.cert = (str(target.client_cert), str(target.client_key))
        self.made = 0

    def request(self, method, path, data=None, headers=None, params=None, token=None, **kw):
        """token: a bearer token instead of the administrator's; "" for none at all."""
        if token is None:
            return self.session.request(method, self.url + path, data=data, headers=headers, params=params, timeout=60, **kw)
        headers = {**(headers or {}), **({"authorization": f"Bearer {token}"} if token else {})}
        return requests.request(method, self.url + path, data=data, headers=headers, params=params, verify=self.ca_file,
                                timeout=60, **kw)

    @contextlib.contextmanager
    def watch(self, path, params, headers=None):
        with self.session.get(self.url + path, params={"watch": "1", **params}, headers=headers, stream=True,
                              timeout=60) as answer:
            answer.encoding = "utf-8"
            yield answer

    def namespace(self):
        self.made += 1
        name = f"ns-{os.getpid()}-{self.made}"
        answer = self.request("POST", "/api/v1/namespaces", json={"metadata": {"name": name}})
        assert answer.status_code == 201, answer.text
        return name


@pytest.fixture(scope="session", params=["real", "ours"])
def target(request):
    try:
        made = MAKERS[request.param]()
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with made:
        yield made


@pytest.fixture(scope="session")
def api(target):
    return Api(target)


@pytest.fixture
def ns(api):
    name = api.namespace()
    yield name
    api.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def t(request, api, ns):
    """Named after file and test: test_raw_lists.py's test_paging is golden/lists-paging.json."""
    name = f"{request.path.stem.removeprefix('test_').removeprefix('raw_')}-{request.function.__name__.removeprefix('test_')}"
    return Transcript(api, name, ns)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """A scenario that ran to its end is compared with its golden, as part of the test."""
    result = yield
    if "t" in pyfuncitem.funcargs:
        pyfuncitem.funcargs["t"].finish()
    return result


class Kubectl:
    """One kubectl against one target, in the test's namespace."""

    def __init__(self, program, api, ns):
        self.program, self.api, self.ns = program, api, ns

    def argv(self, *args):
        cache = self.api.target.directory / f"cache-{pathlib.Path(self.program).name}"
        return [self.program, "--kubeconfig", self.api.kubeconfig, "--cache-dir", str(cache), "-n", self.ns, *map(str, args)]

    def run(self, *args, stdin=None, env=None):
        return subprocess.run(self.argv(*args), input=stdin or "", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=100, env={**os.environ, **(env or {})})

    def start(self, *args):
        return subprocess.Popen(self.argv(*args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kubectl_of(name, api, ns):
    try:
        return Kubectl(controlplane.peer(name), api, ns)
    except controlplane.Unavailable as e:
        pytest.skip(str(e))


@pytest.fixture
def k(t):
    tool = kubectl_of("kubectl", t.api, t.ns)
    return functools.partial(call_kubectl, t, tool)


@pytest.fixture
def old_k(t):
    """Debian's kubectl 1.20."""
    tool = kubectl_of("kubectl-1.20", t.api, t.ns)
    return functools.partial(call_kubectl, t, tool)


def call_kubectl(t, tool, step, line, **kw):
    return t.cli(step, tool, line, **kw)

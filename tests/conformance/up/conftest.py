"""The published SDK, unmodified, against `silica up`: nothing else is told to it than a kubeconfig and, in direct mode, a URL.

    up        the system, one for the session, with its pools warm
    client    a SandboxClient in one of its connection modes; what a test leaves behind is deleted
    direct    the same at the router only, for what does not depend on the mode
    make      create(client, ...), ended with the test
    create    client.create_sandbox with what this release calls the thing: a template up to 0.4.6, a pool after
    apply     a template and, where this release wants one, a pool of it; gone with the session
    story     a long command, begun with the session where a test asks how it went, and what a watch says of its Pod

What a release does not have is not collected, so nothing is skipped for that.
"""

import concurrent.futures
import contextlib
import importlib.metadata
import json
import os
import pathlib
import threading

import pytest
import urllib3

from harness.server import wait_until
from lib import controlplane
from lib.up import Up


RELEASE = tuple(map(int, importlib.metadata.version("k8s-agent-sandbox").split(".")))
HAS_POOLS = RELEASE >= (0, 5)
EXTENSIONS = "extensions.agents.x-k8s.io/v1beta1"
CLAIMS = f"/apis/{EXTENSIONS}/namespaces/default/sandboxclaims"
MODES = ["direct", "tunnel"] + (["in-cluster"] if RELEASE >= (0, 4) else [])

collect_ignore = []
if RELEASE < (1, 0):
    collect_ignore += ["test_go_sdk.py", "test_release_1_0.py", "test_sandboxd.py", "test_stays_ready.py"]
if RELEASE < (0, 4):
    collect_ignore += ["test_async.py", "test_suspend.py"]


@pytest.fixture(scope="session")
def up():
    try:
        kubectl = pathlib.Path(controlplane.peer("kubectl"))
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with Up("--pod-addresses") as started:  # the SDK's modes by address
        # The Kubernetes client reads KUBECONFIG when it is imported, and the SDK runs `kubectl`.
        os.environ["KUBECONFIG"] = started.ready["kubeconfig"]
        os.environ["PATH"] = f"{kubectl.parent}:{os.environ['PATH']}"
        started.wait_warm()
        yield started


def config_of(mode, up, **kw):
    from k8s_agent_sandbox import models
    if mode == "direct":
        return models.SandboxDirectConnectionConfig(api_url=up.ready["router"], **kw)
    if mode == "tunnel":
        return models.SandboxLocalTunnelConnectionConfig(**kw)
    return models.SandboxInClusterConnectionConfig(**kw)


def create(client, name=None, **kw):
    return client.create_sandbox(name or ("python-sandbox-pool" if HAS_POOLS else "python-sandbox-template"), **kw)


@pytest.fixture(scope="session")
def open_client(up):
    from k8s_agent_sandbox import SandboxClient
    made = []

    def open_(mode, **kw):
        made.append(SandboxClient(connection_config=config_of(mode, up, **kw)))
        return made[-1]

    yield open_
    for c in made:
        c.delete_all()


@pytest.fixture(scope="session", params=MODES)
def client(request, open_client):
    return open_client(request.param)


@pytest.fixture(scope="session")
def direct(open_client):
    return open_client("direct")


@pytest.fixture
def make():
    boxes = []

    def made(*args, **kw):
        boxes.append(create(*args, **kw))
        return boxes[-1]

    yield made
    for box in boxes:
        box.terminate()


@pytest.fixture(scope="session")
def apply(up):
    """apply(name, spec): what create() is to be given for a sandbox of that template."""
    things = []

    def put(kind, name, spec):
        up.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": EXTENSIONS, "kind": kind, "metadata": {"name": name}, "spec": spec}))
        things.append(f"{kind}/{name}")

    def both(name, spec):
        put("SandboxTemplate", f"{name}-template", spec)
        if not HAS_POOLS:
            return f"{name}-template"
        put("SandboxWarmPool", f"{name}-warmpool", {"replicas": 1, "sandboxTemplateRef": {"name": f"{name}-template"}})
        up.wait_warm(f"{name}-warmpool")
        return f"{name}-warmpool"

    yield both
    if things:
        up.kubectl("delete", *reversed(things))


class Story:
    """A sandbox with a command that takes half a minute; `seen` has every version of its Pod that a watch told of."""

    def __init__(self, client):
        import kubernetes
        self.box = create(client)
        self.core, self.pod, self.seen = kubernetes.client.CoreV1Api(), self.box.get_pod_name(), []
        threading.Thread(target=self.watch, args=(kubernetes.watch.Watch(),), daemon=True).start()
        wait_until(lambda: self.seen, 30, "the Pod is watched")
        self.pool = concurrent.futures.ThreadPoolExecutor(1)
        self.command = self.pool.submit(self.box.commands.run, "sh -c 'sleep 30; echo worked'", timeout=100)

    def watch(self, watch):
        with contextlib.suppress(urllib3.exceptions.HTTPError):  # its end, which is the server's; settled() notices another one
            for event in watch.stream(self.core.list_namespaced_pod, "default", field_selector=f"metadata.name={self.pod}", timeout_seconds=600):
                self.seen.append(event["raw_object"])

    def settled(self):
        """All versions until now: a last one, made here, is waited for."""
        self.core.patch_namespaced_pod(self.pod, "default", {"metadata": {"annotations": {"example.com/last": "yes"}}})
        wait_until(lambda: "example.com/last" in self.seen[-1]["metadata"]["annotations"], 30, "the watch tells it")
        return list(self.seen)


@pytest.fixture(scope="session")
def story(open_client):
    told = Story(open_client("direct"))
    yield told
    told.box.terminate()
    told.pool.shutdown()


@pytest.fixture(scope="session", autouse=True)
def begin_story(request):
    if any("story" in item.fixturenames for item in request.session.items):
        request.getfixturevalue("story")

"""The published SDK, unmodified, against `silica up`: nothing else is told to it than a kubeconfig and, in direct mode, a URL.

    up       the system, one for the session, with its pools warm
    client   a SandboxClient in one of its connection modes; what a test leaves behind is deleted
    make     client.create_sandbox with what this release calls the thing: a template up to 0.4.6, a pool after
"""

import importlib.metadata
import os
import pathlib

import pytest

from lib import controlplane
from lib.up import Up

RELEASE = tuple(map(int, importlib.metadata.version("k8s-agent-sandbox").split(".")))


@pytest.fixture(scope="session")
def up():
    try:
        kubectl = pathlib.Path(controlplane.peer("kubectl"))
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with Up() as started:
        # The Kubernetes client reads KUBECONFIG when it is imported, and the SDK runs `kubectl`.
        os.environ["KUBECONFIG"] = started.ready["kubeconfig"]
        os.environ["PATH"] = f"{kubectl.parent}:{os.environ['PATH']}"
        started.wait_warm()
        yield started


@pytest.fixture(scope="session", params=["direct", "tunnel"])
def client(request, up):
    from k8s_agent_sandbox import SandboxClient, models
    if request.param == "direct":
        config = models.SandboxDirectConnectionConfig(api_url=up.ready["router"])
    else:
        config = models.SandboxLocalTunnelConnectionConfig()
    made = SandboxClient(connection_config=config)
    yield made
    made.delete_all()


@pytest.fixture
def make(client):
    boxes = []

    def create(**kw):
        if RELEASE < (0, 5):
            box = client.create_sandbox("python-sandbox-template", **kw)
        else:
            box = client.create_sandbox("python-sandbox-pool", **kw)
        boxes.append(box)
        return box

    yield create
    for box in boxes:
        box.terminate()

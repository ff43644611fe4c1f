"""pydantic-ai's own suite for workspaces, on KubernetesWorkspace of pydantic-ai-backend 0.2.37: every operation is an exec
through the API server, whose Pods are this machine."""

import pathlib
import sys

import pytest
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite
from pydantic_ai_backends.workspaces import KubernetesWorkspace

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "streams"))

from apiserver import ApiServer  # noqa: E402


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
def server():
    s = ApiServer()
    with s.kubelet():
        yield s
    log = s.end()
    assert s.process.returncode == 0 and "Sanitizer" not in log, log[-20000:]


@pytest.fixture(scope="module")
def pods(server, tmp_path_factory):
    return KubernetesWorkspace(image="host", work_dir=str(tmp_path_factory.mktemp("work")), kube_config_path=str(server.kubeconfig))


class TestKubernetesWorkspace(WorkspaceBackendSuite):
    # Ending what runs in a Pod that is deleted is a node's work, and here is none.
    test_destroying_environment_during_command_raises_unavailable = None

    @pytest.fixture
    async def backend(self, pods):
        made = pods.backend()
        yield made
        if made.ref:
            await pods.destroy(made.ref)

    @pytest.fixture
    def fresh_backend(self, pods):
        return pods.backend

    @pytest.fixture
    def attach_backend(self, pods):
        return pods.backend

    @pytest.fixture
    def destroy_environment(self, pods):
        async def destroy(backend):
            await pods.destroy(backend.ref)

        return destroy

"""pydantic-ai's own suite for workspaces, on KubernetesWorkspace of 0.2.37: every operation is an exec in one Pod."""

import pytest
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite
from pydantic_ai_backends.workspaces import KubernetesWorkspace


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
def pods(up):
    return KubernetesWorkspace(image="python:3.12", work_dir="/workspace", kube_config_path=up.ready["kubeconfig"])


class TestUp(WorkspaceBackendSuite):
    @pytest.fixture(scope="class")
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

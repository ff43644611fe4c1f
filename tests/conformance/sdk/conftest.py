"""k8s-agent-sandbox, unmodified: its Sandbox handle pointed at a running runtime.

The handle looks its Sandbox object up in Kubernetes; harness/kube_stub.py answers that one question with
127.0.0.1. From there on every byte is the package's own: direct mode for the `/execute` family, in-cluster mode
for sandboxd. Sync and async handles run the same tests: `box.run(...)`, `box.files.write(...)` block in both.
"""

import asyncio
import os
import tempfile

import pytest

from harness.kube_stub import KubeStub

# The Kubernetes client reads KUBECONFIG when it is imported, so the stub is there before it.
directory = tempfile.TemporaryDirectory(prefix="silica-kube-")
stub = KubeStub(directory.name)
os.environ["KUBECONFIG"] = str(stub.kubeconfig)

try:
    from k8s_agent_sandbox.models import SandboxdInClusterConnectionConfig
except ImportError:
    SandboxdInClusterConnectionConfig = None  # releases before 1.0 know only the /execute family


class Blocking:
    """Calls the async object's methods and waits for them."""

    def __init__(self, loop, target):
        self._loop, self._target = loop, target

    def __getattr__(self, name):
        method = getattr(self._target, name)
        return lambda *a, **kw: self._loop.run_until_complete(method(*a, **kw))


class Box:
    def __init__(self, family, style, runtime, config=None):
        from k8s_agent_sandbox import models
        self.family, self.style, self.runtime, self.root = family, style, runtime, runtime.root
        if config is None and family == "execute":
            config = models.SandboxDirectConnectionConfig(api_url=runtime.url)
        elif config is None:
            config = SandboxdInClusterConnectionConfig(mode="in-cluster-pod-ip", rest_port=runtime.ports[0],
                                                       grpc_port=runtime.ports[1])
        if style == "sync":
            from k8s_agent_sandbox.sandbox import Sandbox
            self.handle = Sandbox("claim", "box", connection_config=config)
            self.commands, self.files = self.handle.commands, self.handle.files
        else:
            from k8s_agent_sandbox.async_sandbox import AsyncSandbox
            self.loop = asyncio.new_event_loop()

            async def make():  # grpc.aio and httpx bind to the running loop
                return AsyncSandbox("claim", "box", connection_config=config)

            self.handle = self.loop.run_until_complete(make())
            self.commands = Blocking(self.loop, self.handle.commands)
            self.files = Blocking(self.loop, self.handle.files)
        self.run = self.commands.run

    def shell(self, text):
        """The command line that runs text in a shell: sandboxd mode adds the shell itself."""
        return "sh -c '" + text.replace("'", "'\\''") + "'" if self.family == "execute" else text

    def close(self):
        if self.style == "sync":
            self.handle.close_connection()
        else:
            async def end():
                if hasattr(self.handle, "close_connection"):
                    await self.handle.close_connection()
                else:
                    await self.handle.connector.close()  # 0.4.6 has no more public way that keeps the claim
                await self.handle.k8s_helper.close()

            self.loop.run_until_complete(end())
            self.loop.close()


def families():
    for family, contract in (("execute", "A"), ("sandboxd", "B")):
        if family == "sandboxd" and SandboxdInClusterConnectionConfig is None:
            continue
        for style in ("sync", "async"):
            yield pytest.param((family, style), id=f"{family}-{style}", marks=pytest.mark.contract(contract))


@pytest.fixture(scope="module", params=list(families()))
def box(request, runtime):
    b = Box(*request.param, runtime)
    yield b
    b.close()


@pytest.fixture
def open_box():
    """open_box(family, style, runtime, config): a handle of the test's own."""
    made = []

    def make(*args, **kw):
        made.append(Box(args[0], args[1], args[2], **kw))
        return made[-1]

    yield make
    for b in made:
        b.close()

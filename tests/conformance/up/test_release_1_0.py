"""What release 1.0 added, and what needs it: named claims, variables, deadlines, the in-cluster modes by address, sandboxd, the async client."""

import asyncio

import pytest
from conftest import RELEASE

pytestmark = pytest.mark.skipif(RELEASE < (1, 0), reason="release 1.0 added it")


def test_named_claims_and_variables(client):
    first = client.create_sandbox("python-sandbox-pool", claim_name="by-name", env={"GREETING": "hi there"})
    try:
        assert first.commands.run("sh -c 'echo $GREETING'").stdout == "hi there\n"
        second = client.create_sandbox("python-sandbox-pool", claim_name="by-name", adopt_existing=True)
        assert second.claim_name == first.claim_name and second.commands.run("echo 1").stdout == "1\n"
    finally:
        client.delete_sandbox("by-name")


def test_a_deadline(make):
    late = make().commands.run("sleep 60", command_timeout=1)
    assert late.timed_out and late.exit_code == 124


def test_in_cluster_by_address(up):
    from k8s_agent_sandbox import SandboxClient, models
    client = SandboxClient(connection_config=models.SandboxInClusterConnectionConfig())
    box = client.create_sandbox("python-sandbox-pool")
    try:
        assert box.get_pod_ip().startswith("127.")
        assert box.commands.run("echo by address").stdout == "by address\n"
    finally:
        box.terminate()


def test_async(up):
    from k8s_agent_sandbox import AsyncSandboxClient, models

    async def use():
        config = models.SandboxDirectConnectionConfig(api_url=up.ready["router"])
        async with AsyncSandboxClient(connection_config=config) as client:
            boxes = await asyncio.gather(*(client.create_sandbox("python-sandbox-pool") for _ in range(3)))
            done = await asyncio.gather(*(b.commands.run(f"echo {i}") for i, b in enumerate(boxes)))
            return [d.stdout for d in done]

    assert asyncio.run(use()) == ["0\n", "1\n", "2\n"]


@pytest.fixture(params=["pod-tunnel", "in-cluster-pod-ip"])
def sandboxd(request, up):
    """A sandbox whose server is spoken to as sandboxd: REST on 8080, gRPC on 9090."""
    from k8s_agent_sandbox import SandboxClient, SandboxdInClusterConnectionConfig, models
    if request.param == "pod-tunnel":
        config = models.SandboxdPodTunnelConnectionConfig()
    else:
        config = SandboxdInClusterConnectionConfig(mode=request.param)
    box = SandboxClient(connection_config=config).create_sandbox("python-sandbox-pool")
    yield box
    box.terminate()


def test_sandboxd(sandboxd):
    assert sandboxd.commands.run("mkdir -p sub").exit_code == 0
    done = sandboxd.commands.run("echo $WHO; basename $PWD; exit 4", env={"WHO": "me"}, cwd="sub")
    assert (done.stdout, done.exit_code) == ("me\nsub\n", 4)
    sandboxd.files.write("sub/note", "text")
    assert sandboxd.files.read("sub/note") == b"text" and sandboxd.files.exists("sub/note")
    sandboxd.files.delete("sub/note")
    assert not sandboxd.files.exists("sub/note")


def test_labels_life_and_volumes(make, client, up):
    box = make(labels={"team": "blue"}, shutdown_after_seconds=3600)
    claims = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims"
    claim = up.api.call("GET", f"{claims}/{box.claim_name}")
    assert claim["metadata"]["labels"]["team"] == "blue" and claim["spec"]["lifecycle"]["shutdownTime"]
    assert box.claim_name in client.list_all_sandboxes(label_selector="team=blue")
    assert box.status()[0] == "SandboxReady"
    assert box.commands.run("sh -c 'echo kept >/workspace/note && cat /workspace/note'").stdout == "kept\n"

"""The sandbox's server spoken to as sandboxd, which release 1.0 added: REST on 8080, gRPC on 9090."""

import asyncio

import pytest

MODES = ["pod-tunnel", "in-cluster-pod-ip"]


def config_of(mode):
    from k8s_agent_sandbox import SandboxdInClusterConnectionConfig, models
    return models.SandboxdPodTunnelConnectionConfig() if mode == "pod-tunnel" else SandboxdInClusterConnectionConfig(mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_sandboxd(make, up, mode):
    from k8s_agent_sandbox import SandboxClient
    box = make(SandboxClient(connection_config=config_of(mode)))
    assert box.commands.run("mkdir -p sub").exit_code == 0
    done = box.commands.run("echo $WHO; basename $PWD; echo no >&2; exit 4", env={"WHO": "me"}, cwd="sub")
    assert (done.stdout, done.stderr, done.exit_code) == ("me\nsub\n", "no\n", 4)
    box.files.write("sub/note", "text")
    assert box.files.read("sub/note") == b"text" and box.files.exists("sub/note")
    assert [(e.name, e.size, e.type) for e in box.files.list("sub")] == [("note", 4, "file")]
    box.files.delete("sub/note")
    assert not box.files.exists("sub/note")
    late = box.commands.run("echo early; sleep 60", command_timeout=1)
    assert late.timed_out and late.exit_code == 124


@pytest.mark.parametrize("mode", MODES)
def test_async(up, mode):
    from k8s_agent_sandbox import AsyncSandboxClient

    async def use():
        async with AsyncSandboxClient(connection_config=config_of(mode)) as client:
            box = await client.create_sandbox("python-sandbox-warmpool")
            done = await box.commands.run("echo 'Hello from sandboxd'")
            await box.files.write("hello.txt", done.stdout)
            return await box.files.read("hello.txt")

    assert asyncio.run(use()) == b"Hello from sandboxd\n"


def test_no_service(make, up):
    """A template without one has no name to be reached by, and the SDK says so at once."""
    from k8s_agent_sandbox import SandboxClient, exceptions
    box = make(SandboxClient(connection_config=config_of("in-cluster-service")))
    with pytest.raises(exceptions.SandboxNoServiceError):
        box.commands.run("true")

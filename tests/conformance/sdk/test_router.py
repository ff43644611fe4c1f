"""The SDK's direct mode at `silica router`: the headers are the package's own, the sandbox is found by them."""

import pytest
from conftest import Box
from k8s_agent_sandbox import models

from harness.router import Router, place
from lib import controlplane

pytestmark = [pytest.mark.ours, pytest.mark.core]


@pytest.fixture(scope="module")
def router():
    with controlplane.Silica("--log-level", "warn") as api:
        place(api, "box", "127.0.0.1")  # as the stub in conftest.py says of it
        with Router(api) as r:
            yield r
            r.end()


@pytest.fixture(params=["sync", "async"])
def routed(request, router, runtime):
    config = models.SandboxDirectConnectionConfig(api_url=router.url, server_port=runtime.ports[0])
    box = Box("execute", request.param, runtime, config=config)
    yield box
    box.close()


def test_commands_and_files(routed, router):
    got = routed.run(routed.shell("echo out; echo err >&2; exit 3"))
    assert (got.stdout, got.stderr, got.exit_code) == ("out\n", "err\n", 3)
    data = bytes(range(256)) * 4096
    routed.files.write("routed.bin", data)
    assert (routed.root / "routed.bin").read_bytes() == data
    assert routed.files.read("routed.bin") == data
    assert routed.files.exists("routed.bin") and not routed.files.exists("nothing")
    assert "routed.bin" in [entry.name for entry in routed.files.list(".")]
    line = router.said("access.request")[-1]
    assert (line["sandbox_id"], line["sandbox_namespace"], line["status"]) == ("box", "default", 200)


def test_a_command_that_takes_longer_than_it_may(routed):
    got = routed.run("sleep 60", command_timeout=0.5)
    assert got.timed_out is True

"""What a tenant writes into its objects is shown by the owner's `silica status` as text: no line and no command to the terminal."""

import pytest

from lib import up as ups

pytestmark = pytest.mark.ours
FORGED = "x\x1b]0;title\x07\x1b[2J\nproblem   forged"


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param) as started:
        yield started


def test_a_pool_and_a_claim(up):
    group = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default"
    up.api.call("POST", f"{group}/sandboxwarmpools", {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool",
                "metadata": {"name": "forger"}, "spec": {"replicas": 0, "sandboxTemplateRef": {"name": FORGED}}})
    done = up.run("status", check=False)
    said = done.stdout
    mine = [line for line in said.splitlines() if "default/forger:" in line and line.startswith("problem")]
    assert len(mine) == 1 and "does not exist" in mine[0]
    assert not any(line.startswith("problem   forged") for line in said.splitlines())
    assert not any(ord(c) < 0x20 and c != "\n" for c in said)

"""Images as a newcomer meets them on `silica up`: names that stand for something else say so, unknown ones say what to do where people look,
and the samples of the repository run."""

import re

import pytest

from harness.server import TREE, wait_until
from lib.up import Up

pytestmark = pytest.mark.ours
SAMPLES = TREE / "deploy" / "samples"
EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default"
UNKNOWN = """
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: {name: unknown}
spec: {podTemplate: {spec: {containers: [{name: main, image: "no-such-image:1"}]}}}
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {name: unknown}
spec: {replicas: 1, sandboxTemplateRef: {name: unknown}}
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata: {name: unknown}
spec: {warmPoolRef: {name: unknown}}
"""


@pytest.fixture(scope="module")
def up():
    with Up() as started:
        yield started


def described(up, word, *what):
    """What kubectl describes, once it says the word."""
    def text():
        said = up.kubectl("describe", *what)
        return said if word in said else None

    return wait_until(text, 30, f"{what} says {word}")


@pytest.mark.parametrize("image", ["python:3.12-slim", "debian:12", "alpine"])
def test_another_systems_name_says_what_there_is(up, image):
    name = "named-" + re.sub(r"\W", "-", image)
    up.kubectl("run", name, f"--image={image}", "--restart=Never", "--command", "--", "sleep", "60")
    text = described(up, "ImageSubstituted", "pod", name)
    system = re.search(r'PRETTY_NAME="?([^"\n]+)', open("/etc/os-release").read())[1]
    assert f'image "{image}" is not pulled here: this machine\'s own programs run in its place ({system}' in text


def test_our_own_image_says_nothing(up):
    up.wait_warm()
    pods = up.api.call("GET", "/api/v1/namespaces/default/pods")["items"]
    pool = next(p["metadata"]["name"] for p in pods if p["metadata"]["name"].startswith("python-sandbox-pool"))
    assert "ImageSubstituted" not in described(up, "Started", "pod", pool)


def test_an_unknown_image_is_told_where_people_look(up):
    up.kubectl("apply", "-f", "-", stdin=UNKNOWN)

    def message():
        claim = up.api.call("GET", f"{EXTENSIONS}/sandboxclaims/unknown")
        ready = [c for c in claim.get("status", {}).get("conditions", []) if c["type"] == "Ready"]
        return ready[0]["message"] if ready and "images.yaml" in ready[0]["message"] else None

    told = wait_until(message, 30, "the claim's condition says why")
    assert 'container "main": ErrImagePull: image "no-such-image:1" is not in the table of images' in told
    text = described(up, "SandboxNotReady", "sandboxwarmpool", "unknown")
    assert "ErrImagePull" in text and "no-such-image:1" in text
    # What it says is what heals.
    (up.data / "images.yaml").write_text('images:\n- {names: ["no-such-image:1"], root: host, command: [sleep, infinity]}\n')
    up.kubectl("wait", "--for=condition=Ready", "sandboxclaim/unknown", "--timeout=90s")


def test_the_samples_become_ready(up):
    up.kubectl("create", "namespace", "team-a")
    for path in sorted(SAMPLES.glob("*.yaml")):
        up.kubectl("apply", "-f", path)
    up.kubectl("apply", "-k", SAMPLES / "team")
    up.kubectl("wait", "--for=condition=Ready", "sandboxclaim/my-sandbox", "sandbox/notebook", "--timeout=90s")
    for pool in ("python-sandbox-pool", "debian-sandbox-pool"):
        up.wait_warm(pool)
    up.kubectl("wait", "--for=condition=Programmed", "-n", "agent-sandbox-system", "gateway/sandbox-gateway", "--timeout=90s")
    up.kubectl("rollout", "status", "-n", "team-a", "deployment/sandbox-router", "--timeout=90s")

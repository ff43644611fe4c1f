"""The public definitions put into a server that has its own: every way of installing and removing them works, and the kinds
that are served stay as they are."""

import time

import pytest
import yaml

from conftest import Api, Kubectl
from lib import controlplane
from things import sandbox

BOX = "sandboxes.agents.x-k8s.io"
AT = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MARK = "silica.dev/built-in"


@pytest.fixture(scope="module")
def ours():
    try:
        made = controlplane.Silica()
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with made:
        yield Api(made)


@pytest.fixture
def kubectl(ours):
    try:
        tool = Kubectl(controlplane.peer("kubectl"), ours, "default")
    except controlplane.Unavailable as e:
        pytest.skip(str(e))

    def run(*args, stdin=None, code=0):
        done = tool.run(*args, stdin=stdin)
        assert done.returncode == code, done.stdout + done.stderr
        return done
    yield run
    ours.request("DELETE", AT)
    as_at_first(ours)  # for the next test


def as_at_first(ours):
    deadline = time.monotonic() + 20
    while [MARK in crd["metadata"].get("annotations", {}) for crd in ours.request("GET", AT).json()["items"]] != [True] * 4:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def manifest():
    return yaml.safe_dump_all(list(controlplane.our_crds()))


def check_served(ours, name):
    """The kinds are what they were: both versions, columns, and their rules."""
    versions = ours.request("GET", "/apis/agents.x-k8s.io").json()["versions"]
    assert [v["version"] for v in versions] == ["v1beta1", "v1alpha1"]
    at = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes"
    assert ours.request("POST", at, json=sandbox(name)).status_code == 201
    refused = ours.request("POST", at, json=sandbox(name + "x", operatingMode="Sleeping"))
    assert refused.status_code == 422
    table = ours.request("GET", at, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).json()
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Ready", "Reason", "Age"]
    definition = ours.request("GET", f"{AT}/{BOX}").json()
    assert {c["type"]: c["status"] for c in definition["status"]["conditions"]} == {"NamesAccepted": "True", "Established": "True"}
    assert definition["status"]["acceptedNames"]["plural"] == "sandboxes"
    assert definition["status"]["storedVersions"] == ["v1beta1"]
    return definition


def test_from_the_start(ours, kubectl):
    assert kubectl("get", "crds", "-o", "name").stdout.split() == [f"customresourcedefinition.apiextensions.k8s.io/{n}" for n in (
        "sandboxclaims.extensions.agents.x-k8s.io", BOX, "sandboxtemplates.extensions.agents.x-k8s.io", "sandboxwarmpools.extensions.agents.x-k8s.io")]
    assert kubectl("wait", "--for=condition=Established", f"crd/{BOX}", "--timeout=5s").stdout == f"customresourcedefinition.apiextensions.k8s.io/{BOX} condition met\n"
    assert MARK in check_served(ours, "start")["metadata"]["annotations"]
    assert "FIELD: operatingMode" in kubectl("explain", "sandbox.spec.operatingMode").stdout


def test_create(ours, kubectl, manifest):
    """As in a cluster that has none: it is made once, and then it is there."""
    assert kubectl("create", "-f", "-", stdin=manifest).stdout.count(" created\n") == 4
    assert MARK not in check_served(ours, "create")["metadata"].get("annotations", {})
    again = kubectl("create", "-f", "-", stdin=manifest, code=1)
    assert again.stderr.count("(AlreadyExists)") == 4


def test_apply(ours, kubectl):
    crds = [crd for crd in controlplane.our_crds() if "pool" in crd["metadata"]["name"] or "claim" in crd["metadata"]["name"]]
    text = yaml.safe_dump_all(crds)  # the two others are larger than the annotation of a client's apply may be
    assert kubectl("apply", "-f", "-", stdin=text).stdout.count(" configured\n") == 2
    assert kubectl("apply", "-f", "-", stdin=text).stdout.count(" unchanged\n") == 2
    check_served(ours, "apply")


def test_server_side_apply(ours, kubectl, manifest):
    """Nobody owns fields of ours: no conflict, though what is applied is not what we have."""
    for _ in range(2):
        assert kubectl("apply", "--server-side", "-f", "-", stdin=manifest).stdout.count(" serverside-applied\n") == 4
    definition = check_served(ours, "server-side")
    assert [f["manager"] for f in definition["metadata"]["managedFields"] if f.get("subresource") is None] == ["kubectl"]
    assert [v["name"] for v in definition["spec"]["versions"]] == ["v1beta1"]


def test_replace(ours, kubectl, manifest):
    assert kubectl("replace", "-f", "-", stdin=manifest).stdout.count(" replaced\n") == 4
    check_served(ours, "replace")
    forced = kubectl("replace", "--force", "-f", "-", stdin=manifest)
    assert forced.stdout.count(" replaced\n") == 4
    check_served(ours, "force")


def test_delete(ours, kubectl, manifest):
    """Ours comes back, and the sandboxes never went."""
    kubectl("create", "-f", "-", stdin=manifest)
    check_served(ours, "kept")
    before = ours.request("GET", f"{AT}/{BOX}").json()["metadata"]["uid"]
    done = kubectl("delete", "-f", "-", stdin=manifest)
    assert done.stdout.count(" deleted") == 4
    assert f"Warning: {BOX} is served by this server itself: its objects stay, and its first definition comes back" in done.stderr
    as_at_first(ours)
    definition = check_served(ours, "deleted")
    assert definition["metadata"]["uid"] != before
    assert ours.request("GET", "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/kept").status_code == 200
    answer = ours.request("DELETE", AT)
    assert answer.status_code == 200 and len(answer.json()["items"]) == 4
    as_at_first(ours)


def test_dry_runs(ours, kubectl, manifest):
    before = ours.request("GET", f"{AT}/{BOX}").json()
    assert kubectl("create", "--dry-run=server", "-f", "-", stdin=manifest).stdout.count("created (server dry run)") == 4
    kubectl("delete", "--dry-run=server", f"crd/{BOX}")
    assert ours.request("GET", f"{AT}/{BOX}").json() == before


def test_other_kinds(ours, kubectl):
    """No other kinds can be defined here."""
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
           "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                    "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
    answer = ours.request("POST", AT, json=crd)
    assert (answer.status_code, answer.json()["reason"]) == (403, "Forbidden")
    said = ('customresourcedefinitions.apiextensions.k8s.io "things.example.com" is forbidden: this server serves a fixed set of kinds, and this is none of them; '
            "definitions of other kinds need a cluster")
    assert answer.json()["message"] == said
    for args in (["apply", "-f", "-"], ["apply", "--server-side", "-f", "-"], ["create", "-f", "-"]):
        assert said in kubectl(*args, stdin=yaml.safe_dump(crd), code=1).stderr
    gateways = {**crd, "metadata": {"name": "gateways.gateway.networking.k8s.io"}, "spec": {**crd["spec"], "group": "gateway.networking.k8s.io", "names": {"plural": "gateways", "kind": "Gateway"}}}
    assert "created" in kubectl("create", "-f", "-", stdin=yaml.safe_dump(gateways)).stdout
    assert "deleted" in kubectl("delete", "crd", "gateways.gateway.networking.k8s.io").stdout

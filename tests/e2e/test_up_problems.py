"""What does not get better by waiting is a problem of `silica status`: in words, as JSON, in the exit code, and on the page; with what heals it."""

import contextlib
import json
import os
import subprocess

import pytest

from harness.server import wait_until
from lib.up import PORTS, as_caller, program
from test_up_kills import condition

pytestmark = pytest.mark.ours
EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MIB = 1 << 20


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with as_caller(request.param) as started:
        yield started


def problems(up):
    """The same in words and as JSON; the exit code says that there are some."""
    text, data = up.run("status", check=False), up.run("status", "-o", "json", check=False)
    rows = json.loads(data.stdout)["problems"]
    assert text.returncode == data.returncode == (4 if rows else 0), text
    for row in rows:
        shown = f"{row['namespace']}/{row['name']}" if row["namespace"] else row["name"]
        assert f"problem   {row['kind']} {shown}: {row['text']}\n          heals: {row['heals']}\n" in text.stdout, text
    return {(row["kind"], row["name"]): row for row in rows}


def page(up):
    done = subprocess.run([*up.prefix, "curl", "-sf", "-H", "accept: text/html", f"{up.ready['router']}/"], stdout=subprocess.PIPE, text=True,
                          timeout=60, cwd="/")
    assert done.returncode == 0, done
    return done.stdout


def binding(kind, name, role_kind, role, path):
    return f"{RBAC}/{path}", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name},
                              "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
                              "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]}


def test_bindings_to_roles_that_are_not_there(up):
    assert problems(up) == {}
    up.api.call("POST", *binding("RoleBinding", "typo", "ClusterRole", "edti", "namespaces/default/rolebindings"))
    up.api.call("POST", *binding("RoleBinding", "fine", "ClusterRole", "edit", "namespaces/default/rolebindings"))
    up.api.call("POST", *binding("RoleBinding", "own; rm -rf .", "Role", "edit", "namespaces/default/rolebindings"))
    up.api.call("POST", *binding("ClusterRoleBinding", "wide", "ClusterRole", "nothing-like-it", "clusterrolebindings"))
    found = problems(up)
    assert set(found) == {("rolebinding", "typo"), ("rolebinding", "own; rm -rf ."), ("clusterrolebinding", "wide")}
    assert "the ClusterRole 'edti' does not exist: did you mean 'edit'?" in found["rolebinding", "typo"]["text"]
    assert found["rolebinding", "own; rm -rf ."]["heals"] == "delete it, and bind a role that exists"
    for row in found.values():
        if "kubectl" in row["heals"]:
            up.kubectl(*row["heals"].split(",")[0].split()[1:])
    up.kubectl("delete", "rolebinding", "own; rm -rf .")
    assert problems(up) == {}


def sandbox(name, **spec):
    container = {"name": "main", "image": "host", "command": ["sh", "-c", "exit 3"]}
    return {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": name}, "spec": {
        "podTemplate": {"spec": {"containers": [container], "restartPolicy": "Never"}}, **spec}}


def test_sandboxes_that_no_claim_has(up):
    up.api.call("POST", SANDBOXES, sandbox("broken"))
    up.api.call("POST", SANDBOXES, sandbox("asleep", operatingMode="Suspended"))
    wait_until(lambda: condition(up.api.call("GET", f"{SANDBOXES}/broken"), "Ready").get("reason") == "PodFailed", 60, "it has failed")
    wait_until(lambda: condition(up.api.call("GET", f"{SANDBOXES}/asleep"), "Ready").get("reason") == "SandboxSuspended", 60, "it sleeps")
    found = problems(up)
    assert set(found) == {("sandbox", "broken")} and found["sandbox", "broken"]["heals"] == "kubectl delete pod -n default broken"
    assert "<br>heals: <code>kubectl delete pod -n default broken</code>" in page(up)
    told = up.run("status", check=False).stdout
    assert "suspended sandbox default/asleep\n" in told
    listed = json.loads(up.run("status", "-o", "json", check=False).stdout)["suspended"]
    assert {"kind": "sandbox", "namespace": "default", "name": "asleep"} in listed
    up.kubectl("delete", "sandbox", "broken", "asleep")
    wait_until(lambda: problems(up) == {}, 30, "nothing is left")


def test_a_claim_that_is_suspended(up):
    up.wait_warm()
    up.api.call("POST", f"{EXTENSIONS}/sandboxclaims", {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim",
                                                        "metadata": {"name": "rests"}, "spec": {"warmPoolRef": {"name": "python-sandbox-pool"}}})
    name = wait_until(lambda: up.api.call("GET", f"{EXTENSIONS}/sandboxclaims/rests").get("status", {}).get("sandbox"), 60)["name"]
    up.kubectl("patch", "sandbox", name, "--type=merge", "-p", '{"spec":{"operatingMode":"Suspended"}}')
    wait_until(lambda: "suspended sandboxclaim default/rests\n" in up.run("status").stdout, 60, "it is told")
    assert {"kind": "sandboxclaim", "namespace": "default", "name": "rests"} in up.status()["suspended"]
    up.kubectl("delete", "sandboxclaim", "rests")


def test_images_that_become_wrong(up):
    """The old table stays in use, and the file is a problem until it is mended."""
    table = up.data / "images.yaml"
    table.write_text("images:\n- names: [team/tool]\n  root: host\n  serverr: true\n")
    row = problems(up)["images", "images.yaml"]
    assert f"'{up.data}/images.yaml': line 4: image 1: 'serverr' is nothing that is known here" in row["text"]
    assert "did you mean 'server'?" in row["heals"]
    up.kubectl("run", "goes-on", "--image=host", "--restart=Never", "--command", "--", "true")
    up.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/goes-on", "--timeout=60s")
    table.unlink()
    assert problems(up) == {}


@pytest.mark.parametrize("text, said", [
    ("images:\n- {names: [a], root: host}\n- names: [b]\n  rot: host\n", "line 4: image 2: 'rot' is nothing that is known here"),
    ("defaults: false\nimages: host\n", "line 2: images is a string, not a list"),
    ("images: [\n", "yaml: line "),
])
@pytest.mark.parametrize("before", [[], ["-d"]], ids=["foreground", "background"])
def test_wrong_images_are_told_at_once(tmp_path, text, said, before):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "images.yaml").write_text(text)
    done = subprocess.run([program(), "up", "--data", data, *before, *PORTS], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=100)
    assert done.returncode == 125 and f"'{data}/images.yaml': {said}" in done.stderr, done
    assert ("hint: did you mean 'root'?" in done.stderr) == ("rot:" in text), done
    assert not (data / "store.db").exists()


@pytest.mark.parametrize("who", ["root", "user"])
def test_a_full_disk(who):
    with as_caller(who, "--disk-floor", "16Mi", disk="96m") as up:
        filler = up.data.parent / "filler"
        up.wait_warm()
        assert problems(up) == {} and "nearly full" not in page(up)
        with open(filler, "wb") as out:
            free = os.statvfs(filler)
            os.posix_fallocate(out.fileno(), 0, free.f_bavail * free.f_frsize - 8 * MIB)
            assert "MiB are free, and sandboxes leave 16 MiB" in problems(up)["disk", str(up.data)]["text"]
            assert "The disk is nearly full: only " in page(up)
            out.seek(0, os.SEEK_END)
            with contextlib.suppress(OSError):  # up to its last page
                while True:
                    os.write(out.fileno(), b"x" * 4096)
            assert "nothing new is stored" in problems(up)["disk", str(up.data)]["text"]
            assert "nothing new is stored" in page(up)
        filler.unlink()
        assert problems(up) == {} and "nearly full" not in page(up)

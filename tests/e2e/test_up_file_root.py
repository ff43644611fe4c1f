"""One file root: what our server calls /app in one contract and /workspace in the others is one directory, so a volume at either
keeps the files of all of them when a sandbox is suspended. Paths stay: each contract has its own working directory and confinement."""

import json
import os
import subprocess

import pytest

from harness.server import wait_until
from lib.up import as_caller

pytestmark = pytest.mark.ours
EXTENSIONS = "extensions.agents.x-k8s.io/v1beta1"
CLAIMS = f"/apis/{EXTENSIONS}/namespaces/default/sandboxclaims"
SERVER = "registry.example/agent-sandbox/python-runtime-sandbox:v1"


def call(up, sandbox, method, path, body=b"", kind="application/json"):
    """At the router, as the owner's SDK asks: the status, and what came."""
    fields = {"content-type": kind, "x-sandbox-id": sandbox, "x-sandbox-namespace": "default", "x-sandbox-port": "8888"}
    done = subprocess.run([*up.prefix, "curl", "-s", "-m", "30", "--path-as-is", "-X", method, "-w", "\n%{http_code}", *(["--data-binary", "@-"] if body else []),
                           *[a for k, v in fields.items() for a in ("-H", f"{k}: {v}")], f"{up.ready['router']}{path}"], input=body, stdout=subprocess.PIPE)
    came, _, status = done.stdout.rpartition(b"\n")
    return int(status), came


def upload(up, sandbox, name, data):
    """What files.write of the SDK sends."""
    body = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode() + data + b"\r\n--b--\r\n"
    assert call(up, sandbox, "POST", "/upload", body, "multipart/form-data; boundary=b")[0] == 200


def say(up, sandbox, path, command):
    status, body = call(up, sandbox, "POST", path, json.dumps({"command": command, **({"timeout_seconds": 10} if path == "/exec" else {})}).encode())
    return json.loads(body) if status == 200 else None


def mode(up, sandbox, to):
    up.kubectl("patch", "sandbox", sandbox, "--type=merge", "-p", json.dumps({"spec": {"operatingMode": to}}))


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with as_caller(request.param) as started:
        yield started


def template(place):
    return {"apiVersion": EXTENSIONS, "kind": "SandboxTemplate", "metadata": {"name": "other"}, "spec": {
        "podTemplate": {"spec": {"containers": [{"name": "main", "image": SERVER, "ports": [{"containerPort": 8888}], "volumeMounts": [{"name": "files", "mountPath": place}]}],
                                 "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1}},
        "volumeClaimTemplates": [{"metadata": {"name": "files"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}}


@pytest.mark.parametrize("pool", ["python-sandbox-pool", "/app", "/workspace"])
def test_files_of_every_contract_stay_when_it_is_suspended(up, pool):
    """The pool that is there from the first start, whose volume is at /workspace, and templates with a volume at either place."""
    name = "claim-" + pool.strip("/")
    if pool.startswith("/"):
        up.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [template(pool), {
            "apiVersion": EXTENSIONS, "kind": "SandboxWarmPool", "metadata": {"name": "other-" + pool[1:]},
            "spec": {"replicas": 1, "sandboxTemplateRef": {"name": "other"}}}]}))
        pool = "other-" + pool[1:]
    up.wait_warm(pool)
    up.api.call("POST", CLAIMS, {"apiVersion": EXTENSIONS, "kind": "SandboxClaim", "metadata": {"name": name}, "spec": {"warmPoolRef": {"name": pool}}})
    box = wait_until(lambda: up.api.call("GET", f"{CLAIMS}/{name}").get("status", {}).get("sandbox"), 60)["name"]
    assert wait_until(lambda: say(up, box, "/execute", "pwd"), 60)["stdout"] == "/app\n"
    data = os.urandom(100_000)
    upload(up, box, "of-the-sdk", data)
    assert call(up, box, "PUT", "/v1/files/deep/of-sandboxd", data[::-1], "application/octet-stream")[0] in (200, 201, 204)
    assert say(up, box, "/exec", "pwd; cmp of-the-sdk /app/of-the-sdk; echo x >of-exec")["output"] == "/workspace\n"
    mode(up, box, "Suspended")
    wait_until(lambda: not up.api.exists(f"/api/v1/namespaces/default/pods/{box}"), 60, "its Pod is gone")
    mode(up, box, "Running")
    assert wait_until(lambda: say(up, box, "/execute", "pwd"), 60, "it is back")["stdout"] == "/app\n"
    assert say(up, box, "/exec", "pwd")["output"] == "/workspace\n"
    for path in ("/download/of-the-sdk", "/v1/files/of-the-sdk"):
        assert call(up, box, "GET", path) == (200, data), path
    for path in ("/download/deep/of-sandboxd", "/v1/files/deep/of-sandboxd"):
        assert call(up, box, "GET", path) == (200, data[::-1]), path
    listed = json.loads(call(up, box, "GET", "/list/.")[1])
    assert {"of-the-sdk", "deep", "of-exec"} <= {f["name"] for f in listed}, listed
    assert call(up, box, "GET", "/download/..%2Fworkspace%2Fof-exec")[0] == 403  # two roots for who asks, as before
    up.api.call("DELETE", f"{CLAIMS}/{name}")
    if pool.startswith("other-"):
        up.kubectl("delete", f"sandboxwarmpool/{pool}", "sandboxtemplate/other")

"""Our CustomResourceDefinitions in both versions on a real kube-apiserver, converted by `silica controller`, which it reaches by URL."""

import base64
import json
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest
import yaml

from harness.server import wait_until
from lib import certificates, controlplane
from lib.controllers import Controller

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SYSTEM = "agent-sandbox-system"
SECRET = f"/api/v1/namespaces/{SYSTEM}/secrets/agent-sandbox-webhook-certs"
GROUP = "extensions.agents.x-k8s.io"
POLICY = "api.agents.x-k8s.io/v1beta1-volume-claim-templates-policy"
POD = {"spec": {"containers": [{"name": "c", "image": "x", "env": [{"name": "A", "value": "1"}]}]}}


def definitions(url):
    for path in sorted((controlplane.TREE / "deploy" / "crds").glob("*.x-k8s.io_*.yaml")):
        crd = yaml.safe_load(path.read_text())
        crd["spec"]["conversion"]["webhook"]["clientConfig"] = {"url": url}
        yield crd


def is_there(api, path):
    """The API server says 429 while it takes in a definition that changed; every client comes again."""
    try:
        return api.exists(path)
    except urllib.error.HTTPError as e:
        if e.code != 429:
            raise
        return False


@pytest.fixture(scope="module")
def plane():
    try:
        made = controlplane.ControlPlane(with_controllers=False, with_crds=False)
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with made as api:
        api.call("POST", "/api/v1/namespaces", {"metadata": {"name": SYSTEM}})
        api.webhook_port = controlplane.free_ports(1)[0]
        for crd in definitions(f"https://127.0.0.1:{api.webhook_port}/convert"):
            api.call("POST", CRDS, crd)
        for crd in definitions(""):
            for version in ("v1beta1", "v1alpha1"):
                wait_until(lambda p=f"/apis/{crd['spec']['group']}/{version}/{crd['spec']['names']['plural']}": is_there(api, p), 30)
        yield api


def replica(plane, *options, port=None):
    return Controller(plane, "--leader-elect=false", f"--webhook-port={port or plane.webhook_port}", "--webhook-cert-check=1s", *options)


def settled(c):
    """/readyz says so: the Secret is there and the definitions have its authority."""
    try:
        with urllib.request.urlopen(f"http://{c.ready['health']}/readyz", timeout=10) as answer:
            return answer.status == 200
    except urllib.error.HTTPError as refused:
        assert refused.code == 503 and "certificate" in refused.read().decode()
        return False


@pytest.fixture(scope="module")
def served(plane):
    with replica(plane) as c:
        wait_until(lambda: settled(c), 30)
        for crd in definitions(""):
            wait_until(lambda p=f"/apis/{crd['spec']['group']}/v1alpha1/{crd['spec']['names']['plural']}": is_there(plane, p), 30)
        yield c


def kubectl(plane, *args, stdin=None):
    done = subprocess.run([controlplane.peer("kubectl"), "--kubeconfig", plane.kubeconfig, "--cache-dir", str(plane.directory / "cache"), *args],
                          input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def url(plural, version, name="", group=GROUP):
    return f"/apis/{group}/{version}/namespaces/default/{plural}" + (f"/{name}" if name else "")


def bundle(plane, name=f"sandboxclaims.{GROUP}"):
    return plane.call("GET", f"{CRDS}/{name}")["spec"]["conversion"]["webhook"]["clientConfig"].get("caBundle")


def core(o):
    """What a user wrote; the rest is the server's."""
    return {"spec": o["spec"], "labels": o["metadata"].get("labels"), "annotations": o["metadata"].get("annotations")}


def add_label(plane, path):
    now = plane.call("GET", path)
    now["metadata"]["labels"]["m"] = "2"
    try:
        return plane.call("PUT", path, now)
    except urllib.error.HTTPError as e:
        assert e.code == 409  # the controller wrote it meanwhile
        return None


OLDER = [
    ("sandboxes", "agents.x-k8s.io", "Sandbox", {"replicas": 0, "podTemplate": POD}),
    ("sandboxtemplates", GROUP, "SandboxTemplate", {"podTemplate": POD}),
    ("sandboxwarmpools", GROUP, "SandboxWarmPool", {"replicas": 3, "sandboxTemplateRef": {"name": "t"}}),
    ("sandboxclaims", GROUP, "SandboxClaim", {"sandboxTemplateRef": {"name": "t"}, "warmpool": "none"}),
]


@pytest.mark.parametrize("plural, group, kind, spec", OLDER)
def test_what_an_older_client_writes_it_reads(plane, served, plural, group, kind, spec):
    given = {"apiVersion": f"{group}/v1alpha1", "kind": kind, "metadata": {"name": "older", "labels": {"l": "1"}, "annotations": {"a": "b"}}, "spec": spec}
    made = plane.call("POST", url(plural, "v1alpha1", group=group), given)
    newer = plane.call("GET", url(plural, "v1beta1", "older", group))
    assert newer["apiVersion"] == f"{group}/v1beta1" and newer["metadata"]["uid"] == made["metadata"]["uid"]
    assert any(key.startswith("api.agents.x-k8s.io/v1alpha1-") for key in newer["metadata"]["annotations"])
    # A newer client that changes something else takes nothing away.
    wait_until(lambda: add_label(plane, url(plural, "v1beta1", "older", group)), 30)
    older = plane.call("GET", url(plural, "v1alpha1", "older", group))
    # The schema of v1beta1 has a default that v1alpha1 has no field for: it is said in an annotation.
    policy = {POLICY: "Disallowed"} if kind == "SandboxTemplate" else {}
    assert core(older)["annotations"] == {"a": "b", **policy} and {"l": "1", "m": "2"}.items() <= core(older)["labels"].items()
    assert {k: older["spec"].get(k) for k in spec} == {k: made["spec"].get(k) for k in spec}
    assert older["spec"] == made["spec"]


def test_both_versions_by_kubectl(plane, served):
    claim = {"apiVersion": f"{GROUP}/v1beta1", "kind": "SandboxClaim", "metadata": {"name": "by-kubectl", "namespace": "default"},
             "spec": {"warmPoolRef": {"name": "pool"}}}
    kubectl(plane, "apply", "-f", "-", stdin=json.dumps(claim))
    older = json.loads(kubectl(plane, "get", f"sandboxclaims.v1alpha1.{GROUP}", "by-kubectl", "-o", "json"))
    assert older["apiVersion"] == f"{GROUP}/v1alpha1" and older["spec"]["warmpool"] == "pool" and "warmPoolRef" not in older["spec"]
    newer = json.loads(kubectl(plane, "get", f"sandboxclaims.v1beta1.{GROUP}", "by-kubectl", "-o", "json"))
    assert newer["spec"]["warmPoolRef"] == {"name": "pool"}
    both = json.loads(kubectl(plane, "get", f"sandboxclaims.v1alpha1.{GROUP}", "-o", "json"))["items"]
    assert {item["apiVersion"] for item in both} == {f"{GROUP}/v1alpha1"} and len(both) > 1
    assert kubectl(plane, "apply", "-f", "-", stdin=json.dumps(claim)).strip().endswith("unchanged")


def test_both_versions_by_the_python_client(plane, served):
    from kubernetes import client, config
    custom = client.CustomObjectsApi(config.new_client_from_config(str(plane.kubeconfig)))
    older = custom.create_namespaced_custom_object(GROUP, "v1alpha1", "default", "sandboxwarmpools", {
        "apiVersion": f"{GROUP}/v1alpha1", "kind": "SandboxWarmPool", "metadata": {"name": "by-python"},
        "spec": {"replicas": 2, "sandboxTemplateRef": {"name": "t"}}})
    custom.patch_namespaced_custom_object_scale(GROUP, "v1beta1", "default", "sandboxwarmpools", "by-python", {"spec": {"replicas": 5}})
    assert older["spec"]["replicas"] == 2
    assert custom.get_namespaced_custom_object(GROUP, "v1alpha1", "default", "sandboxwarmpools", "by-python")["spec"]["replicas"] == 5


def test_what_cannot_be_converted_is_refused_with_its_name(plane, served):
    with pytest.raises(urllib.error.HTTPError) as refused:
        plane.call("POST", url("sandboxtemplates", "v1alpha1"), {
            "apiVersion": f"{GROUP}/v1alpha1", "kind": "SandboxTemplate", "metadata": {"name": "wrong", "annotations": {POLICY: "Sometimes"}},
            "spec": {"podTemplate": POD}})
    assert "SandboxTemplate 'default/wrong'" in json.loads(refused.value.read())["message"]


def test_a_definition_that_lost_the_authority_has_it_back(plane, served):
    before = bundle(plane)
    kubectl(plane, "patch", "crd", f"sandboxclaims.{GROUP}", "--type=json", "-p", '[{"op":"remove","path":"/spec/conversion/webhook/clientConfig/caBundle"}]')
    wait_until(lambda: bundle(plane) == before, 30)
    wait_until(lambda: is_there(plane, url("sandboxclaims", "v1alpha1")), 30)


def test_a_second_replica_shows_the_same_certificate(plane, served):
    with replica(plane, port=controlplane.free_ports(1)[0]) as second:
        wait_until(lambda: settled(second), 30)
        shown = [ssl.get_server_certificate(("127.0.0.1", int(c.ready["webhook"].rpartition(":")[2]))) for c in (served, second)]
        assert shown[0] == shown[1]
    secret = plane.call("GET", SECRET)
    assert secret["type"] == "Opaque" and set(secret["data"]) == {"ca.crt", "tls.crt", "tls.key"}
    assert bundle(plane) == secret["data"]["ca.crt"]
    assert base64.b64decode(secret["data"]["tls.key"]).startswith(b"-----BEGIN EC PRIVATE KEY-----")


def test_a_certificate_near_its_end_is_renewed_and_no_request_fails(plane, served, tmp_path):
    """A Secret as an older controller left it; a third of its life is not there any more. Meanwhile older clients go on."""
    served.end()
    certificates.authority(tmp_path)
    certificates.issue(tmp_path, "old", san=f"DNS:agent-sandbox-webhook-service.{SYSTEM}.svc,DNS:agent-sandbox-webhook-service.{SYSTEM},"
                       f"DNS:agent-sandbox-webhook-service,DNS:agent-sandbox-webhook-service.{SYSTEM}.svc.cluster.local,IP:127.0.0.1", lasts_s=900, age_s=3600)
    secret = plane.call("GET", SECRET)
    secret["data"] = {key: base64.b64encode((tmp_path / file).read_bytes()).decode()
                      for key, file in (("ca.crt", "ca.crt"), ("tls.crt", "old.crt"), ("tls.key", "old.key"))}
    plane.call("PUT", SECRET, secret)
    failures, asked, stop = [], [], threading.Event()

    def older_client():
        while not stop.is_set():
            try:
                if is_there(plane, url("sandboxclaims", "v1alpha1")):
                    asked.append(1)
            except urllib.error.HTTPError as e:
                failures.append(e.read().decode())

    with replica(plane) as c:
        wait_until(lambda: settled(c), 30)
        wait_until(lambda: is_there(plane, url("sandboxclaims", "v1alpha1")), 30)
        thread = threading.Thread(target=older_client)
        thread.start()
        try:
            wait_until(lambda: [line["step"] for line in c.said("webhook.renewal")] == ["stage", "switch"], 60)
            wait_until(lambda: float(c.metric("silica_webhook_certificate_not_after_seconds")[0]) > time.time() + 300 * 86400, 30)
            count = len(asked)
            wait_until(lambda: len(asked) > count + 20, 30)
        finally:
            stop.set()
            thread.join()
        assert failures == [] and len(asked) > 20
        now = plane.call("GET", SECRET)
        assert set(now["data"]) == {"ca.crt", "tls.crt", "tls.key"} and now["data"]["tls.crt"] != secret["data"]["tls.crt"]
        assert base64.b64decode(now["data"]["ca.crt"]).count(b"BEGIN CERTIFICATE") == 2 and bundle(plane) == now["data"]["ca.crt"]

        # Stored versions can be migrated: each object is written once, then v1alpha1 may go from the status.
        for plural, group, _, _ in OLDER:
            for item in plane.call("GET", url(plural, "v1beta1", group=group))["items"]:
                kubectl(plane, "patch", f"{plural}.v1beta1.{group}", item["metadata"]["name"], "--type=merge", "-p",
                        '{"metadata":{"annotations":{"agents.x-k8s.io/storage-migrated-at":"now"}}}')
                older = plane.call("GET", url(plural, "v1alpha1", item["metadata"]["name"], group))
                assert older["metadata"]["annotations"]["agents.x-k8s.io/storage-migrated-at"] == "now"
            assert plane.call("GET", f"{CRDS}/{plural}.{group}")["status"]["storedVersions"] == ["v1beta1"]


def test_a_secret_that_cannot_be_used_ends_it(plane):
    secret = plane.call("GET", SECRET)
    secret["data"] = {"ca.crt": "eA==", "tls.crt": "eA==", "tls.key": "eA=="}
    plane.call("PUT", SECRET, secret)
    with replica(plane) as c:
        assert c.process.wait(30) == 1
        assert c.said("webhook.secret")[0]["hint"] == "delete it, and a new one is made"
    kubectl(plane, "delete", "secret", "-n", SYSTEM, "agent-sandbox-webhook-certs")
    with replica(plane) as c:
        wait_until(lambda: settled(c), 30)
        wait_until(lambda: is_there(plane, url("sandboxclaims", "v1alpha1")), 30)

"""The conversion webhook behind its Service, as deploy/ leads there: certificate made, named for the Service and renewed by the controller, and
believed by the API server. A cluster has kube-proxy for the address of a Service; here it is one of the machine's, in a network of the
test's own, and the webhook listens there at the Service's port."""

import base64
import json
import pathlib
import subprocess
import sys
import urllib.error

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[2]
SANDBOXES = "/apis/agents.x-k8s.io/{}/namespaces/default/sandboxes"
SECRET = "/api/v1/namespaces/agent-sandbox-system/secrets/agent-sandbox-webhook-certs"
NAME = "agent-sandbox-webhook-service"


@pytest.mark.timeout(300)
def test_objects_are_converted_by_the_service():
    from lib import controlplane
    try:
        for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl"):
            controlplane.peer(name)
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    told = subprocess.run(["unshare", "--user", "--map-root-user", "--net", sys.executable, __file__], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=280)
    assert told.returncode == 0 and told.stdout.endswith("converted, renewed, converted\n"), told.stdout[-6000:]


# ---- in the network of its own ----

def ip(*argv):
    subprocess.run(["busybox", "ip", *argv], check=True)


def make_old_one(system, name):
    """A Sandbox of v1alpha1, which is stored as v1beta1: the API server must have it converted there and back."""
    made = system.api.call("POST", SANDBOXES.format("v1alpha1"), {
        "apiVersion": "agents.x-k8s.io/v1alpha1", "kind": "Sandbox", "metadata": {"name": name},
        "spec": {"replicas": 0, "podTemplate": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}})
    assert made["spec"]["replicas"] == 0, made
    stored = system.api.call("GET", SANDBOXES.format("v1beta1") + f"/{name}")
    assert stored["spec"]["operatingMode"] == "Suspended", stored
    return True


def can_make(system, name):
    try:
        return make_old_one(system, name)
    except urllib.error.HTTPError as e:
        assert e.code in (404, 409, 429, 500, 503), e.read()  # the kind, or the webhook's certificate, is not there yet
        return e.code == 409


def story():
    from harness.server import wait_until
    from lib import certificates
    from lib.installed import SYSTEM, Installed
    ip("link", "set", "lo", "up")
    with Installed(api_options=["--advertise-address=192.0.2.1"]) as system:  # no other address can be found in this network
        system.kubectl("apply", "-k", "deploy")
        address = system.api.call("GET", f"/api/v1/namespaces/{SYSTEM}/services/{NAME}")["spec"]["clusterIP"]
        ip("addr", "add", f"{address}/32", "dev", "lo")
        wait_until(lambda: system.exists(SANDBOXES.format("v1beta1")), 60, "the kinds are served")
        assert not can_make(system, "early"), "nothing converts yet"
        system.start("--webhook-port=443", "--webhook-cert-check=100ms", replicas=1)
        wait_until(lambda: can_make(system, "first"), 60, "it is converted")
        leads = system.api.call("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sandboxes.agents.x-k8s.io")["spec"]["conversion"]["webhook"]
        assert leads["clientConfig"]["service"] == {"namespace": SYSTEM, "name": NAME, "path": "/convert", "port": 443} and "url" not in leads["clientConfig"]
        # One that is about to end is replaced, and the new one is believed.
        before = system.api.call("GET", SECRET)["data"]
        certificates.authority(system.directory)
        certificates.issue(system.directory, "hook", san=f"DNS:{NAME}.{SYSTEM}.svc", lasts_s=600)
        old = {key: base64.b64encode((system.directory / file).read_bytes()).decode()
               for key, file in (("ca.crt", "ca.crt"), ("tls.crt", "hook.crt"), ("tls.key", "hook.key"))}
        system.kubectl("patch", "secret", "-n", SYSTEM, "agent-sandbox-webhook-certs", "--type=merge", "-p", json.dumps({"data": old}))
        wait_until(lambda: system.api.call("GET", SECRET)["data"]["tls.crt"] not in (old["tls.crt"], before["tls.crt"]), 60, "it is renewed")
        wait_until(lambda: can_make(system, "second"), 60, "and believed")
    print("converted, renewed, converted")


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    story()

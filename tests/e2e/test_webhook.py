"""The conversion webhook of `silica controller` with the operator's certificate files: what it answers, what it refuses, and files that change."""

import contextlib
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess

import pytest

from harness.server import TREE, wait_until
from lib import certificates, controlplane
from lib.controllers import Controller

pytestmark = pytest.mark.ours
ALPHA, BETA = "extensions.agents.x-k8s.io/v1alpha1", "extensions.agents.x-k8s.io/v1beta1"
CLAIM = {"apiVersion": ALPHA, "kind": "SandboxClaim", "metadata": {"name": "c"}, "spec": {"sandboxTemplateRef": {"name": "t"}}}


@pytest.fixture(scope="module")
def api():
    with controlplane.Silica("--log-level", "warn") as server:
        yield server


@pytest.fixture()
def certs(tmp_path):
    certificates.authority(tmp_path)
    certificates.issue(tmp_path, "tls")
    return tmp_path


def review(wanted, *objects):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u-1", "desiredAPIVersion": wanted, "objects": list(objects)}}


def webhook(api, certs, *options):
    return Controller(api, "--leader-elect=false", "--manage-webhook-certs=false", f"--webhook-cert-dir={certs}", *options)


def port(c):
    return int(c.ready["webhook"].rpartition(":")[2])


def connect(c, ca):
    return http.client.HTTPSConnection("127.0.0.1", port(c), timeout=20, context=ssl.create_default_context(cafile=str(ca)))


def raw_connection(c, certs):
    return ssl.create_default_context(cafile=str(certs / "ca.crt")).wrap_socket(
        socket.create_connection(("127.0.0.1", port(c)), 20), server_hostname="127.0.0.1")


def ask(c, ca, body, method="POST", path="/convert"):
    with_raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = connect(c, ca)
    try:
        connection.request(method, path, with_raw, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_converts_and_refuses(api, certs):
    with webhook(api, certs) as c:
        status, answer = ask(c, certs / "ca.crt", review(BETA, CLAIM, {**CLAIM, "metadata": {"name": "d"}}))
        made = answer["response"]["convertedObjects"]
        assert status == 200 and answer["response"]["uid"] == "u-1" and answer["response"]["result"] == {"status": "Success"}
        assert [o["metadata"]["name"] for o in made] == ["c", "d"] and made[0]["spec"]["warmPoolRef"] == {"name": "shadow-pool-t"}
        # What goes there and back is what it was.
        back = ask(c, certs / "ca.crt", review(ALPHA, *made))[1]["response"]["convertedObjects"]
        assert back[0]["spec"]["sandboxTemplateRef"] == {"name": "t"} and back[0]["metadata"] == CLAIM["metadata"]

        status, answer = ask(c, certs / "ca.crt", review(BETA, CLAIM, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}))
        assert status == 200 and answer["response"]["convertedObjects"] == []
        assert answer["response"]["result"] == {"status": "Failure", "message":
                                                f"cannot convert object 2 of 2, Pod 'n/p', to '{BETA}': version 'v1' of this kind is not one of ours"}
        assert ask(c, certs / "ca.crt", b"{")[0] == 400
        assert ask(c, certs / "ca.crt", {"kind": "Pod"})[0] == 400
        assert ask(c, certs / "ca.crt", review(BETA), path="/other")[0] == 404
        assert ask(c, certs / "ca.crt", review(BETA), method="PUT")[0] == 405
        said = [line["err"] for line in c.said("webhook.convert")]
        assert len(said) == 1 and "Pod 'n/p'" in said[0]
        metrics = c.metrics()
        assert 'controller_runtime_webhook_requests_total{webhook="/convert",code="200"} 3' in metrics
        assert "silica_webhook_objects_total 4" in metrics and "silica_webhook_failures_total 1" in metrics


def test_bodies_have_a_ceiling(api, certs):
    with webhook(api, certs) as c:
        with raw_connection(c, certs) as raw:
            raw.sendall(b"POST /convert HTTP/1.1\r\nhost: x\r\ncontent-length: 70000000\r\n\r\n")
            assert raw.recv(12) == b"HTTP/1.1 413"
        # All of them together have one, too: whoever comes then is told to come again, and those who go make room.
        piece, held = bytes(1 << 20), [raw_connection(c, certs) for _ in range(3)]
        for s in held:
            s.sendall(b"POST /convert HTTP/1.1\r\nhost: x\r\ncontent-length: 65000000\r\n\r\n")
        for s in held[:2]:
            for _ in range(61):
                s.sendall(piece)
        with contextlib.suppress(OSError):  # refused while we still send
            for _ in range(20):
                held[2].sendall(piece)
        answer = held[2].recv(4096)
        assert answer.startswith(b"HTTP/1.1 503") and b"retry-after: 1" in answer.lower()
        for s in held:
            s.close()
        wait_until(lambda: c.metric("controller_runtime_webhook_requests_in_flight") == ["0"], 20)
        assert ask(c, certs / "ca.crt", review(BETA, CLAIM))[0] == 200


def test_large_lists_and_http2(api, certs):
    with webhook(api, certs) as c:
        many = [{**CLAIM, "metadata": {"name": f"c{i}", "annotations": {"a": "x" * 1000}}} for i in range(5000)]
        status, answer = ask(c, certs / "ca.crt", review(BETA, *many))
        assert status == 200 and len(answer["response"]["convertedObjects"]) == 5000
        got = subprocess.run(["curl", "-s", "--http2", "--cacert", str(certs / "ca.crt"), "-w", "%{http_version} %{http_code}", "-o", "/dev/null",
                              "-d", json.dumps(review(BETA, CLAIM)), f"https://127.0.0.1:{port(c)}/convert"], stdout=subprocess.PIPE, text=True, check=True)
        assert got.stdout == "2 200"


def test_files_that_change_are_read_again(api, certs):
    with webhook(api, certs) as c:
        assert ask(c, certs / "ca.crt", review(BETA, CLAIM))[0] == 200
        old = connect(c, certs / "ca.crt")
        old.request("POST", "/convert", json.dumps(review(BETA, CLAIM)))
        assert json.loads(old.getresponse().read())["response"]["result"]["status"] == "Success"
        certificates.authority(certs, "ca2")
        certificates.issue(certs, "new", ca="ca2")
        os.replace(certs / "new.crt", certs / "tls.crt")  # the key comes later: meanwhile the old pair is shown
        wait_until(lambda: c.metric("certwatcher_read_certificate_errors_total") == ["1"], 20)
        assert ask(c, certs / "ca.crt", review(BETA, CLAIM))[0] == 200
        os.replace(certs / "new.key", certs / "tls.key")
        wait_until(lambda: c.metric("certwatcher_read_certificate_total") == ["3"], 20)
        assert ask(c, certs / "ca2.crt", review(BETA, CLAIM))[0] == 200
        with pytest.raises(ssl.SSLError):
            ask(c, certs / "ca.crt", review(BETA, CLAIM))
        old.request("POST", "/convert", json.dumps(review(BETA, CLAIM)))  # a connection that lives goes on
        assert json.loads(old.getresponse().read())["response"]["result"]["status"] == "Success"


def test_one_file_for_both(api, certs, tmp_path_factory):
    there = tmp_path_factory.mktemp("combined")
    (there / "cert.pem").write_bytes((certs / "tls.crt").read_bytes() + (certs / "tls.key").read_bytes())
    with webhook(api, there) as c:
        assert ask(c, certs / "ca.crt", review(BETA, CLAIM))[0] == 200


def test_says_what_is_missing(api, certs):
    program = os.environ.get("SILICA", str(TREE / "build" / "silica"))
    shutil.rmtree(certs)
    done = subprocess.run([program, "controller", "--kubeconfig", api.kubeconfig, "--manage-webhook-certs=false", f"--webhook-cert-dir={certs}",
                           "--metrics-bind-address=0", "--health-probe-bind-address=0", "--webhook-port=0"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 125
    assert f"the webhook's certificate: cannot open '{certs}/tls.crt': No such file or directory" in done.stderr
    assert "hint: put the certificate there, or let it be made: --manage-webhook-certs" in done.stderr


def test_core_only_converts_sandboxes_only(api, certs):
    with webhook(api, certs, "--extensions=false") as c:
        sandbox = {"apiVersion": "agents.x-k8s.io/v1alpha1", "kind": "Sandbox", "metadata": {"name": "s"}, "spec": {"replicas": 0}}
        answer = ask(c, certs / "ca.crt", review("agents.x-k8s.io/v1beta1", sandbox))[1]["response"]
        assert answer["convertedObjects"][0]["spec"]["operatingMode"] == "Suspended"
        answer = ask(c, certs / "ca.crt", review(BETA, CLAIM))[1]["response"]
        assert answer["result"]["message"].endswith("this controller runs without --extensions")

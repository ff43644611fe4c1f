"""`silica router` by TLS: both HTTPs, certificates of clients, and certificates of its own that change under it."""

import json
import os
import socket
import ssl
import subprocess

import pytest

from harness import router as routers
from harness.router import Backend, Router, place
from harness.server import wait_until
from lib import controlplane

pytestmark = pytest.mark.ours


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_pair(directory, name, issuer=None):
    """name.crt and name.key for 127.0.0.1; its own issuer, or another's."""
    request = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
               directory / f"{name}.key", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
    if issuer is None:
        openssl(*request, "-x509", "-days", "2", "-out", directory / f"{name}.crt")
        return
    openssl(*request, "-out", directory / f"{name}.csr")
    openssl("x509", "-req", "-in", directory / f"{name}.csr", "-CA", directory / f"{issuer}.crt", "-CAkey",
            directory / f"{issuer}.key", "-CAcreateserial", "-days", "2", "-out", directory / f"{name}.crt")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pairs")
    for name, issuer in (("one", None), ("two", None), ("ca", None), ("friend", "ca"), ("stranger", None)):
        make_pair(directory, name, issuer)
    return directory


@pytest.fixture(scope="module")
def api():
    with controlplane.Silica("--log-level", "warn") as server:
        yield server


@pytest.fixture(scope="module")
def backend(api):
    with Backend("127.79.0.1") as b:
        place(api, "box", b.ip)
        yield b


def secure(api, pairs, *options, name="one", **kw):
    return Router(api, "--https-listen", "127.0.0.1:0", "--tls-cert-file", pairs / f"{name}.crt", "--tls-key-file",
                  pairs / f"{name}.key", *options, **kw)


def curl(r, backend, *arguments):
    done = subprocess.run(["curl", "-sS", "--max-time", "60", "-H", "X-Sandbox-ID: box", "-H",
                           f"X-Sandbox-Port: {backend.port}", "-w", "\n%{http_version}", *map(str, arguments),
                           f"https://{r.ready['listen'][-1]}/by-tls"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return done.stderr, None
    body, _, version = done.stdout.rpartition("\n")
    return version, json.loads(body)


@pytest.mark.core
@pytest.mark.parametrize("workers", ["1", "2"])
def test_both_https(api, pairs, backend, workers):
    with secure(api, pairs, "--workers", workers) as r:
        assert len(r.ready["listen"]) == 2
        for flag, want in (("--http2", "2"), ("--http1.1", "1.1")):
            version, told = curl(r, backend, flag, "--cacert", pairs / "one.crt")
            assert (version, told["target"], dict(told["fields"])["X-Forwarded-Proto".lower()]) == (want, "/by-tls", "https")
        assert "certificate" in curl(r, backend, "--cacert", pairs / "two.crt")[0]
        r.end()
    with secure(api, pairs, "--workers", workers, listen="") as r:  # nothing in clear
        assert len(r.ready["listen"]) == 1 and curl(r, backend, "--cacert", pairs / "one.crt")[0] == "2"
        r.end()


def test_certificates_of_clients(api, pairs, backend):
    ours = ("--cacert", pairs / "one.crt")
    friend = ("--cert", pairs / "friend.crt", "--key", pairs / "friend.key")
    stranger = ("--cert", pairs / "stranger.crt", "--key", pairs / "stranger.key")
    ca = ("--tls-client-ca-file", pairs / "ca.crt")
    with secure(api, pairs, "--mtls-mode=required", *ca) as r:
        assert curl(r, backend, *ours, *friend)[0] == "2"
        assert curl(r, backend, *ours)[1] is None
        assert curl(r, backend, *ours, *stranger)[1] is None
        r.end()
    with secure(api, pairs, "--mtls-mode=optional", *ca) as r:
        assert curl(r, backend, *ours, *friend)[0] == "2"
        assert curl(r, backend, *ours)[0] == "2"
        r.end()


def shown(r):
    host, port = r.ready["listen"][-1].rsplit(":", 1)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, int(port)), 30) as s, context.wrap_socket(s) as t:
        return t.getpeercert(binary_form=True)


def test_a_certificate_that_is_swapped(api, pairs, tmp_path):
    """As Kubernetes swaps a secret: the files are links into ..data, which is a link itself."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for kind in ("crt", "key"):
            (tmp_path / name / f"tls.{kind}").write_bytes((pairs / f"{name}.{kind}").read_bytes())
    (tmp_path / "..data").symlink_to("one")
    for kind in ("crt", "key"):
        (tmp_path / f"tls.{kind}").symlink_to(f"..data/tls.{kind}")
    with Router(api, "--https-listen", "127.0.0.1:0", "--tls-cert-file", tmp_path / "tls.crt", "--tls-key-file",
                tmp_path / "tls.key") as r:
        first = shown(r)
        (tmp_path / "new").symlink_to("two")
        os.rename(tmp_path / "new", tmp_path / "..data")
        wait_until(lambda: shown(r) != first, 30)
        second = shown(r)
        (tmp_path / "two" / "tls.crt").write_text("no certificate")
        wait_until(lambda: r.metric('sandbox_router_cert_reloads_total{outcome="failure"}'), 30)
        assert shown(r) == second  # the old one stays
        assert int(r.metric('sandbox_router_cert_reloads_total{outcome="success"}')[0]) == 2
        r.end()


@pytest.mark.parametrize("arguments, code, text", [
    (["--https-listen", "127.0.0.1:0"], 2, "--tls-cert-file and --tls-key-file must be given"),
    (["--mtls-mode", "maybe"], 2, "'maybe' is not off, optional or required"),
    (["--mtls-mode", "required"], 2, "--tls-client-ca-file must be given"),
    (["--listen", ""], 2, "one of them must be given"),
    (["--https-listen", ":0", "--tls-cert-file", "x", "--tls-key-file", "x"], 2, "everybody who can connect would be served"),
    (["--https-listen", "127.0.0.1:0", "--tls-cert-file", "/nowhere", "--tls-key-file", "/nowhere"], 125, "/nowhere"),
])
def test_wrong_flags(api, arguments, code, text):
    done = subprocess.run([routers.program(), "router", "--kubeconfig", api.kubeconfig, "--listen", "127.0.0.1:0",
                           "--metrics-listen", "0", "--health-listen", "0", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr

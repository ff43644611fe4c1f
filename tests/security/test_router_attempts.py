"""What a tenant tries at the router to reach the sandbox of another namespace: names, addresses, uids, fields said twice or in another
form, paths, methods, requests in requests. Each goes as it stands through the tenant's own port-forward; none gets the file that only that
sandbox has. The control is the administrator's port-forward: a request in proper form gets it there."""

import concurrent.futures
import json
import socket
import urllib.parse
import urllib.request

import pytest

from harness.server import wait_until
from lib import security_report, up as ups

pytestmark = pytest.mark.ours
CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims"
TEMPLATE = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxtemplates/python-sandbox-template"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/%s/sandboxes"
ATTEMPTS_MIN = 50
SECRET = b"of the other tenant"


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param, "--router-workers=1") as started:
        yield started


def execute(url, name, namespace, command):
    request = urllib.request.Request(f"{url}/execute", json.dumps({"command": command}).encode(),
                                     {"X-Sandbox-ID": name, "X-Sandbox-Namespace": namespace, "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["exit_code"] == 0
    except OSError:
        return False


def request(fields, path="/download/who", method="GET", version="HTTP/1.1", host="localhost", body="", end="close"):
    lines = [f"{method} {path} {version}", f"Host: {host}", *fields, *([f"Connection: {end}"] if end else [])]
    return "\r\n".join(lines) + "\r\n\r\n" + body


def attempts(name, uid, ip, mine, token):
    """{name: (the bytes, whether the administrator gets the file so)}."""
    who, there, here = f"X-Sandbox-ID: {name}", "X-Sandbox-Namespace: default", "X-Sandbox-Namespace: team-a"
    own = f"X-Sandbox-ID: {mine}"
    aimed = [who, there]
    proper = {
        "by-name": request(aimed), "by-default-namespace": request([who]), "by-uid": request([*aimed, f"X-Sandbox-UID: {uid}"]),
        "by-address": request([*aimed, f"X-Sandbox-Pod-IP: {ip}"]), "small-letters": request([who.lower(), there.lower()]),
        "spaces": request([f"X-Sandbox-ID:   {name}  ", "X-Sandbox-Namespace:\tdefault\t"]), "port": request([*aimed, "X-Sandbox-Port: 8888"]),
        "http-1.0": request(aimed, version="HTTP/1.0"), "query": request(aimed, "/download/who?namespace=team-a"),
        "remote-user": request([*aimed, "X-Remote-User: silica-admin", "X-Remote-Group: system:masters"]),
        "impersonate": request([*aimed, "Impersonate-User: silica-admin", "Impersonate-Group: system:masters"]),
        "forwarded-for": request([*aimed, "X-Forwarded-For: 127.0.0.1", "X-Forwarded-User: silica-admin"]),
        "forwarded": request([*aimed, "Forwarded: for=127.0.0.1;by=127.0.0.1"]), "real-ip": request([*aimed, "X-Real-IP: 127.0.0.1"]),
        "client-certificate": request([*aimed, "X-Forwarded-Client-Cert: Subject=\"CN=silica-admin\"", "X-SSL-Client-S-DN: CN=silica-admin"]),
        "envoy": request([*aimed, "X-Envoy-Original-Path: /healthz", "X-Envoy-Internal: true"]),
        "original-path": request([*aimed, "X-Original-URL: /healthz", "X-Rewrite-URL: /healthz"]), "method-override": request([*aimed, "X-HTTP-Method-Override: GET"]),
        "cookie": request([*aimed, "Cookie: X-Sandbox-Namespace=team-a; user=silica-admin"]), "accept": request([*aimed, "Accept: */*"]),
        "sandbox-token": request([*aimed, "X-Sandbox-Token: x"]), "timeout": request([*aimed, "X-Sandbox-Timeout: 5"]),
        "pipelined": request([own, here], "/", end="") + request(aimed), "body": request([*aimed, "Content-Length: 4"], body="body"),
        "post": request([*aimed, "Content-Type: application/json", "Content-Length: 22"], "/execute", "POST", body='{"command": "cat who"}'),
        "host-of-the-service": request(aimed, host="sandbox-router-svc.default.svc.cluster.local"),
    }
    forged = {
        "own-name-their-uid": request([own, here, f"X-Sandbox-UID: {uid}"]), "own-name-their-address": request([own, here, f"X-Sandbox-Pod-IP: {ip}"]),
        "own-namespace": request([who, here]), "own-namespace-their-uid": request([who, here, f"X-Sandbox-UID: {uid}"]),
        "own-namespace-their-address": request([who, here, f"X-Sandbox-Pod-IP: {ip}"]), "uid-alone": request([f"X-Sandbox-UID: {uid}"]),
        "address-alone": request([f"X-Sandbox-Pod-IP: {ip}"]), "uid-for-a-name": request([f"X-Sandbox-ID: {uid}", here]),
        "namespace-twice": request([who, here, there]), "namespace-twice-turned": request([who, there, here]), "name-twice": request([own, who, here]),
        "name-twice-turned": request([who, own, here]), "namespaces-joined": request([who, "X-Sandbox-Namespace: team-a,default"]),
        "namespace-empty": request([who, "X-Sandbox-Namespace:"]), "namespace-in-capitals": request([who, "X-Sandbox-Namespace: DEFAULT"]),
        "namespace-up": request([who, "X-Sandbox-Namespace: team-a/../default"]), "namespace-encoded": request([who, "X-Sandbox-Namespace: %64efault"]),
        "name-with-namespace": request([f"X-Sandbox-ID: default/{name}", here]), "name-up": request([f"X-Sandbox-ID: ../default/{name}", here]),
        "name-dotted": request([f"X-Sandbox-ID: {name}.default", here]), "name-of-a-service": request([f"X-Sandbox-ID: {name}.default.svc.cluster.local", here]),
        "name-encoded": request([f"X-Sandbox-ID: ..%2fdefault%2f{name}", here]), "underscores": request([f"X_Sandbox_ID: {name}", "X_Sandbox_Namespace: default", own, here]),
        "space-before-colon": request([own, here, f"X-Sandbox-ID : {name}"]), "folded": request([own, here, f"X-A: b\r\n {who}"]),
        "bare-line-end": request([own, here, f"X-A: b\n{who}\nX-Sandbox-Namespace: default"]), "carriage-return": request([own, here, f"X-A: b\r{who}"]),
        "field-removed": request([who, here, "Connection: X-Sandbox-Namespace"]), "nul": request([f"X-Sandbox-ID: {mine}\0{name}", here]),
        "trailer": request([own, here, "Transfer-Encoding: chunked", "Trailer: X-Sandbox-ID"], body=f"0\r\n{who}\r\n{there}\r\n\r\n"),
        "two-lengths": request([own, here, "Content-Length: 0", "Content-Length: 5"], end="") + request(aimed),
        "length-and-chunks": request([own, here, "Content-Length: 4", "Transfer-Encoding: chunked"], method="POST", end="", body="0\r\n\r\n") + request(aimed),
        "request-in-a-body": request([own, here, f"Content-Length: {len(request(aimed))}"], "/", "POST", end="", body=request(aimed)) + request([own, here], "/"),
        "own-token": request([*aimed, f"Authorization: Bearer {token}"]), "any-token": request([*aimed, "Authorization: Bearer x"]),
        "scoped-token": request([*aimed, "Authorization: Bearer v1.e30.AAAA"]), "basic": request([*aimed, "Authorization: Basic c2lsaWNhLWFkbWluOg=="]),
        "absolute": request([own, here], f"http://{name}.default:8888/download/who"), "absolute-address": request([own, here], f"http://{ip}:8888/download/who"),
        "host": request([own, here], host=f"{name}.default.svc.cluster.local:8888"), "host-address": request([], host=f"{ip}:8888"),
        "query-fields": request([own, here], f"/download/who?X-Sandbox-ID={name}&X-Sandbox-Namespace=default"),
        "path-of-the-namespace": request([own, here], f"/default/{name}/download/who"), "path-up": request([own, here], f"/../../default/{name}/download/who"),
        "connect": request(aimed, f"{ip}:8888", "CONNECT"), "trace": request(aimed, method="TRACE"),
        "websocket": request([who, there, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="], end=""),
        "h2c": request([*aimed, "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__", "Connection: Upgrade, HTTP2-Settings"], end=""),
    }
    return {n: (text, True) for n, text in proper.items()} | {n: (text, False) for n, text in forged.items()}


def send(url, text):
    """All that comes back, until the router closes or has no more to say."""
    at = urllib.parse.urlsplit(url)
    said = b""
    with socket.create_connection((at.hostname, at.port), timeout=30) as s:
        s.sendall(text.encode())
        s.settimeout(30 if "Connection: close" in text else 1)
        try:
            while SECRET not in said and (more := s.recv(65536)):
                said += more
        except (TimeoutError, ConnectionResetError):
            pass
    return said


def send_all(url, rows):
    """{name: what came back}. At once: the router waits a second for names that it does not know."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return dict(zip(rows, pool.map(lambda text: send(url, text), rows.values())))


def test_no_request_reaches_another_namespaces_sandbox(up, tmp_path):
    up.wait_warm()
    up.api.call("POST", CLAIMS, {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": "theirs"},
                                 "spec": {"warmPoolRef": {"name": "python-sandbox-pool"}}})
    name = wait_until(lambda: up.api.call("GET", f"{CLAIMS}/theirs").get("status", {}).get("sandbox"), 60)["name"]
    config = tmp_path / "tenant"
    config.write_text(up.run("token", "-n", "team-a", "-o", "kubeconfig").stdout)
    token = up.run("token", "-n", "team-a").stdout.strip()
    spec = up.api.call("GET", TEMPLATE)["spec"]["podTemplate"]["spec"]
    for container in spec["containers"]:
        container.pop("volumeMounts", None)
    up.api.call("POST", SANDBOXES % "team-a", {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "mine"},
                                               "spec": {"podTemplate": {"spec": spec}}})
    wait_until(lambda: up.api.exists("/api/v1/namespaces/team-a/pods/sandbox-router"), 60)
    sandbox = up.api.call("GET", f"{SANDBOXES % 'default'}/{name}")
    ip = wait_until(lambda: up.api.call("GET", f"/api/v1/namespaces/default/pods/{name}").get("status", {}).get("podIP"), 60)
    rows = attempts(name, sandbox["metadata"]["uid"], ip, "mine", token)
    assert len({text for text, _ in rows.values()}) == len(rows) >= ATTEMPTS_MIN
    with ups.forwarded(up, up.ready["kubeconfig"], "-n", "default") as tunnel:
        assert wait_until(lambda: execute(tunnel, name, "default", f"sh -c 'printf \"{SECRET.decode()}\" > who'"), 60)
        controls = send_all(tunnel, {n: text for n, (text, is_proper) in rows.items() if is_proper})
        assert {n: said for n, said in controls.items() if SECRET not in said} == {}
    with ups.forwarded(up, config) as tunnel:
        assert wait_until(lambda: execute(tunnel, "mine", "team-a", "sh -c 'echo mine > who'"), 60)
        got = {n: said for n, said in send_all(tunnel, {n: text for n, (text, _) in rows.items()}).items() if SECRET in said}
    assert got == {}
    security_report.record("router", {"distinct": len(rows), "tried": len(rows), "blocked": len(rows) - len(got), "attempts": sorted(rows)})

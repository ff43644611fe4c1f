"""requests, httpx (HTTP/1.1 and HTTP/2), curl, nghttp and h2load, each as their users call them."""

import concurrent.futures
import json
import shutil
import subprocess

import httpx
import pytest
import requests

from harness.server import Silica, target

HEALTH = {"status": "ok", "message": "Sandbox Runtime is active."}
BIG = bytes(range(256)) * 4096 * 3 + b"tail"  # 3 MiB and a bit


def need(program):
    if shutil.which(program) is None:
        pytest.skip(f"no {program} on this machine")


def curl(*args, data=None):
    need("curl")
    done = subprocess.run(["curl", "-sS", "--max-time", "60", *args], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def clients():
    yield "requests", lambda url: requests.Session()
    yield "httpx", lambda url: httpx.Client(timeout=60)
    if target() is Silica:
        yield "httpx h2", lambda url: httpx.Client(timeout=60, http1=False, http2=True)


@pytest.fixture(scope="module", params=list(clients()), ids=lambda p: p[0])
def client(request, runtime):
    with request.param[1](runtime.url) as c:
        yield c


# ---- contract A


@pytest.mark.contract("A")
@pytest.mark.core
def test_health(client, runtime):
    r = client.get(runtime.url + "/")
    assert (r.status_code, r.json()) == (200, HEALTH)
    assert r.headers["content-type"] == "application/json"


@pytest.mark.contract("A")
@pytest.mark.core
def test_execute(client, runtime):
    r = client.post(runtime.url + "/execute", json={"command": "sh -c 'echo a; echo b >&2; exit 4'"})
    assert r.status_code == 200
    body = r.json()
    assert list(body)[:3] == ["stdout", "stderr", "exit_code"]
    assert (body["stdout"], body["stderr"], body["exit_code"]) == ("a\n", "b\n", 4)


@pytest.mark.contract("A")
@pytest.mark.core
@pytest.mark.parametrize("content", [b"", b"x", BIG], ids=["empty", "one byte", "3 MiB"])
def test_upload_and_download(client, runtime, content):
    r = client.post(runtime.url + "/upload", files={"file": ("up/load.bin", content)})
    assert (r.status_code, r.json()) == (200, {"message": "File 'up/load.bin' uploaded successfully."})
    assert (runtime.root / "up/load.bin").read_bytes() == content
    r = client.get(runtime.url + "/download/up/load.bin")
    assert (r.status_code, r.content) == (200, content)
    assert r.headers["content-type"] == "application/octet-stream"


@pytest.mark.contract("A")
def test_upload_chunked(client, runtime):
    frame = "boundary-of-the-test"
    head = f'--{frame}\r\nContent-Disposition: form-data; name="file"; filename="chunked.bin"\r\n\r\n'.encode()

    def body():
        yield head
        for i in range(0, len(BIG), 50_001):
            yield BIG[i:i + 50_001]
        yield f"\r\n--{frame}--\r\n".encode()

    kind = {"Content-Type": f"multipart/form-data; boundary={frame}"}
    r = client.post(runtime.url + "/upload", headers=kind,
                    **({"content": body()} if isinstance(client, httpx.Client) else {"data": body()}))
    assert r.status_code == 200
    assert (runtime.root / "chunked.bin").read_bytes() == BIG


@pytest.mark.contract("A")
def test_list_and_exists(client, runtime):
    (runtime.root / "dir").mkdir(exist_ok=True)
    (runtime.root / "dir" / "f").write_bytes(b"123")
    rows = client.get(runtime.url + "/list/dir").json()
    assert [(r["name"], r["size"], r["type"]) for r in rows] == [("f", 3, "file")]
    assert client.get(runtime.url + "/exists/dir%2Ff").json() == {"path": "dir/f", "exists": True}
    assert client.get(runtime.url + "/exists/dir/g").json() == {"path": "dir/g", "exists": False}


@pytest.mark.contract("A")
@pytest.mark.core
@pytest.mark.parametrize("path, status, body", [
    ("/nope", 404, {"detail": "Not Found"}),
    ("/download/missing", 404, {"message": "File not found"}),
    ("/list/missing", 404, {"message": "Path is not a directory"}),
    ("/download/%2E%2E%2Fx", 403, {"message": "Access denied"}),
    ("/list/%2E%2E%2F", 403, {"message": "Access denied"}),
    ("/exists/a/%2E%2E/%2E%2E/x", 403, {"message": "Access denied"}),
    ("/execute", 405, {"detail": "Method Not Allowed"}),
])
def test_errors(client, runtime, path, status, body):
    r = client.get(runtime.url + path)
    assert (r.status_code, r.json()) == (status, body)


@pytest.mark.contract("A")
@pytest.mark.parametrize("sent, error", [
    ({}, {"type": "missing", "loc": ["body", "command"], "msg": "Field required", "input": {}}),
    ({"command": 5}, {"type": "string_type", "loc": ["body", "command"], "msg": "Input should be a valid string",
                      "input": 5}),
    (None, {"type": "missing", "loc": ["body"], "msg": "Field required", "input": None}),
    ([1], {"type": "model_attributes_type", "loc": ["body"],
           "msg": "Input should be a valid dictionary or object to extract fields from", "input": [1]}),
])
def test_validation(client, runtime, sent, error):
    r = client.post(runtime.url + "/execute", headers={"Content-Type": "application/json"},
                    **({"content": json.dumps(sent)} if isinstance(client, httpx.Client) else {"data": json.dumps(sent)}))
    assert (r.status_code, r.json()) == (422, {"detail": [error]})


@pytest.mark.contract("A")
def test_upload_without_a_file(client, runtime):
    r = client.post(runtime.url + "/upload")
    assert r.status_code == 422
    assert r.json()["detail"][0]["loc"] == ["body", "file"]


@pytest.mark.contract("A")
def test_range(client, runtime):
    (runtime.root / "range").write_bytes(b"0123456789")
    r = client.get(runtime.url + "/download/range", headers={"Range": "bytes=2-4"})
    if r.status_code == 200:  # the contract allows ignoring ranges, but then they are not offered
        assert r.content == b"0123456789" and "accept-ranges" not in r.headers
    else:
        assert (r.status_code, r.content, r.headers["content-range"]) == (206, b"234", "bytes 2-4/10")


@pytest.mark.contract("A")
def test_many_clients(runtime):
    def one(i):
        with httpx.Client(timeout=60) as c:
            return [c.post(runtime.url + "/execute", json={"command": f"echo {i} {j}"}).json()["stdout"] for j in range(5)]

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        assert list(pool.map(one, range(32))) == [[f"{i} {j}\n" for j in range(5)] for i in range(32)]


# ---- contract B


@pytest.mark.contract("B")
@pytest.mark.core
@pytest.mark.parametrize("content", [b"", b"x", BIG], ids=["empty", "one byte", "3 MiB"])
def test_put_and_get(client, runtime, content):
    r = client.put(runtime.url + "/v1/files/put/it.bin",
                   **({"content": content} if isinstance(client, httpx.Client) else {"data": content}))
    assert (r.status_code, r.content) == (204, b"")
    r = client.get(runtime.url + "/v1/files/put/it.bin")
    assert (r.status_code, r.content) == (200, content)
    head = client.head(runtime.url + "/v1/files/put/it.bin")
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(content)))


@pytest.mark.contract("B")
def test_put_form(client, runtime):
    r = client.put(runtime.url + "/v1/files/form.bin?mode=0600", files={"skip": b"no", "file": ("ignored", BIG)})
    assert r.status_code == 204
    assert (runtime.root / "form.bin").read_bytes() == BIG
    assert (runtime.root / "form.bin").stat().st_mode & 0o777 == 0o600


@pytest.mark.contract("B")
@pytest.mark.parametrize("method, path, status, code", [
    ("GET", "/v1/files/missing", 404, "NOT_FOUND"),
    ("GET", "/v1/files/%2E%2E%2F%2E%2E%2Fetc%2Fpasswd", 403, "PERMISSION_DENIED"),
    ("PUT", "/v1/files/x?mode=0999", 400, "INVALID_ARGUMENT"),
    ("PUT", "/v1/files/", 400, "INVALID_ARGUMENT"),
    ("DELETE", "/v1/files/", 409, "CONFLICT"),
    ("DELETE", "/v1/files/missing", 404, "NOT_FOUND"),
])
def test_rest_errors(client, runtime, method, path, status, code):
    r = client.request(method, runtime.url + path)
    assert (r.status_code, r.json()["code"]) == (status, code)


@pytest.mark.contract("B")
def test_rest_health_and_metadata(client, runtime):
    r = client.get(runtime.url + "/v1/health")
    assert r.status_code == 200 and r.json()["status"] == "ok" and isinstance(r.json()["uptime_seconds"], int)
    assert isinstance(client.get(runtime.url + "/v1/metadata").json()["env"], dict)


# ---- the tools


@pytest.mark.contract("A")
@pytest.mark.core
@pytest.mark.parametrize("version", ["--http1.0", "--http1.1", "--http2-prior-knowledge", "--http2"])
def test_curl(runtime, version):
    if "2" in version and target() is not Silica:
        pytest.skip("HTTP/2 is ours")
    assert json.loads(curl(version, runtime.url + "/")) == HEALTH
    out = curl(version, "--json", '{"command":"echo hi"}', runtime.url + "/execute")
    assert json.loads(out)["stdout"] == "hi\n"


@pytest.mark.contract("A")
@pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge"])
def test_curl_transfers(runtime, tmp_path, version):
    if "2" in version and target() is not Silica:
        pytest.skip("HTTP/2 is ours")
    (tmp_path / "big").write_bytes(BIG * 5)  # over 1 MiB: curl sends Expect: 100-continue
    out = curl(version, "-F", f"file=@{tmp_path}/big;filename=by/curl", runtime.url + "/upload")
    assert json.loads(out)["message"] == "File 'by/curl' uploaded successfully."
    assert (runtime.root / "by/curl").read_bytes() == BIG * 5
    curl(version, "-o", str(tmp_path / "back"), runtime.url + "/download/by/curl")
    assert (tmp_path / "back").read_bytes() == BIG * 5


@pytest.mark.contract("B")
@pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge"])
def test_curl_put(runtime, tmp_path, version):
    if "2" in version and target() is not Silica:
        pytest.skip("HTTP/2 is ours")
    (tmp_path / "big").write_bytes(BIG * 5)
    for extra in ([], ["-H", "Transfer-Encoding: chunked"] if "1.1" in version else []):
        curl(version, *extra, "-T", str(tmp_path / "big"), runtime.url + "/v1/files/by/put")
        assert (runtime.root / "by/put").read_bytes() == BIG * 5
    assert curl(version, runtime.url + "/v1/files/by/put") == BIG * 5
    curl(version, "-X", "DELETE", runtime.url + "/v1/files/by?recursive=true")
    assert not (runtime.root / "by").exists() or not (runtime.root / "by" / "put").exists()


@pytest.mark.contract("A")
@pytest.mark.ours
def test_nghttp(runtime):
    need("nghttp")
    out = subprocess.run(["nghttp", "-v", runtime.url + "/"], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert ":status: 200" in out and HEALTH["message"] in out


def h2load(*args):
    need("h2load")
    done = subprocess.run(["h2load", *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
    text = done.stdout.decode()
    assert done.returncode == 0, text
    line = next(x for x in text.splitlines() if x.startswith("requests:"))
    counts = {part.split()[1].rstrip(","): int(part.split()[0]) for part in line[len("requests:"):].split(", ")}
    codes = next(x for x in text.splitlines() if x.startswith("status codes:"))
    return counts, codes


@pytest.mark.contract("A")
@pytest.mark.ours
@pytest.mark.core
def test_h2load_health(runtime):
    counts, codes = h2load("-n", "5000", "-c", "20", "-m", "10", runtime.url + "/")
    assert counts["succeeded"] == 5000 and "5000 2xx" in codes


@pytest.mark.contract("A")
@pytest.mark.ours
def test_h2load_over_http1(runtime):
    counts, codes = h2load("--h1", "-n", "5000", "-c", "20", runtime.url + "/")
    assert counts["succeeded"] == 5000 and "5000 2xx" in codes


@pytest.mark.contract("B")
@pytest.mark.core
def test_h2load_grpc(runtime, tmp_path):
    # config { command: "/bin/true" }, framed: flag 0, 4-byte length, message
    message = b"\x0a\x0b\x0a\x09/bin/true"
    (tmp_path / "body").write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
    counts, codes = h2load("-n", "200", "-c", "8", "-d", str(tmp_path / "body"), "-H", "content-type: application/grpc",
                           "-H", "te: trailers", f"http://{runtime.grpc_address}/process.v1.ProcessService/Execute")
    assert counts["succeeded"] == 200 and "200 2xx" in codes

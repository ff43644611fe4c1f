"""/v1/files, /v1/health, /v1/metadata, contract B: shapes, path rules, order of checks, files that are whole or not there."""

import datetime
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import tempfile
import threading
import time

import grpc
import pytest
import requests

from harness import process_pb as pb
from harness import raw
from harness import server as servers
from harness.server import wait_until

pytestmark = pytest.mark.contract("B")

ESCAPES = "path traversal outside sandbox root is forbidden"
MISSING = "path does not exist within the sandbox"


def call(server, method, path, body=None, **headers):
    """The path goes out as it is: requests would clean it."""
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    c.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
    answer = c.getresponse()
    data = answer.read()
    c.close()
    return answer, data


def refusal(server, method, path, body=None, **headers):
    """Status, code and message of an error, whose form is checked on the way."""
    answer, data = call(server, method, path, body, **headers)
    assert answer.getheader("content-type") == "application/json", data
    assert data.endswith(b"}\n")
    error = json.loads(data)
    assert list(error) == ["code", "message"]
    return answer.status, error["code"], error["message"]


def put(server, path, data=b"x", query="", **headers):
    answer, body = call(server, "PUT", f"/v1/files/{path}{query}", data, **headers)
    assert (answer.status, body) == (204, b""), body


def entries(server, path=""):
    answer, body = call(server, "GET", f"/v1/files/{path}")
    assert answer.status == 200, body
    return {e["name"]: e for e in json.loads(body)["entries"]}


def temps(server):
    return [p for p in server.root.rglob(".sandboxd-tmp-*")]


def multipart(*parts, boundary="bdry"):
    """Parts are (name, filename or None, bytes)."""
    out = b""
    for name, filename, data in parts:
        disposition = f'form-data; name="{name}"' + (f'; filename="{filename}"' if filename is not None else "")
        out += f"--{boundary}\r\nContent-Disposition: {disposition}\r\n\r\n".encode() + data + b"\r\n"
    return out + f"--{boundary}--\r\n".encode()


FORM = "multipart/form-data; boundary=bdry"


# ---- health and metadata


@pytest.mark.core
def test_health(runtime):
    answer, body = call(runtime, "GET", "/v1/health")
    assert (answer.status, answer.getheader("content-type")) == (200, "application/json")
    assert body.endswith(b"}\n")
    got = json.loads(body)
    assert list(got) == ["status", "uptime_seconds"]
    assert got["status"] == "ok" and isinstance(got["uptime_seconds"], int)


def test_health_head(runtime):
    answer, body = call(runtime, "HEAD", "/v1/health")
    assert (answer.status, body) == (200, b"")
    assert int(answer.getheader("content-length")) > 0


@pytest.mark.core
def test_health_while_stopping(start_runtime):
    server = start_runtime()
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    c.request("POST", "/execute", json.dumps({"command": "sh -c 'trap : TERM; while :; do sleep 0.05; done'"}),
              {"Content-Type": "application/json"})
    wait_until(lambda: b"while :" in b"".join(open(f"/proc/{p}/cmdline", "rb").read() for p in
                                              open(f"/proc/{server.pid}/task/{server.pid}/children").read().split()),
               10, "the command runs")
    server.signal(signal.SIGTERM)

    def stopping():
        answer, body = call(server, "GET", "/v1/health")
        return answer.status == 503 and json.loads(body)

    assert wait_until(stopping, 2, "503") == {"code": "UNAVAILABLE", "message": "sandboxd is shutting down"}
    assert server.wait() == 0


def test_metadata_keeps_and_withholds(start_runtime):
    secret = ["SANDBOX_TOKEN", "SANDBOX_API_SECRET", "SANDBOX_password", "SANDBOX_PASSWD_FILE", "SANDBOX_CREDS",
              "SANDBOX_ssh_key", "SANDBOX_AUTHOR", "SANDBOX_BEARER", "SANDBOX_PRIVATE_X", "SANDBOX_CERTS"]
    server = start_runtime(env={"SANDBOX_ID": "sb-1", "SANDBOX_WORKSPACE": "/w=x", "SANDBOX_EMPTY": "", "OTHER": "1",
                                "sandbox_lower": "1", **{name: "hidden" for name in secret}})
    answer, body = call(server, "GET", "/v1/metadata")
    assert (answer.status, answer.getheader("content-type")) == (200, "application/json")
    assert body == b'{"env":{"SANDBOX_EMPTY":"","SANDBOX_ID":"sb-1","SANDBOX_WORKSPACE":"/w=x"}}\n'
    assert call(server, "GET", "/v1/metadata")[1] == body
    answer, nothing = call(server, "HEAD", "/v1/metadata")
    assert (answer.status, answer.getheader("content-length"), nothing) == (200, str(len(body)), b"")


def test_metadata_prefix(start_runtime):
    server = start_runtime("--metadata-env-prefix", "APP_", env={"SANDBOX_ID": "x", "APP_A": "<&>"})
    assert call(server, "GET", "/v1/metadata")[1] == b'{"env":{"APP_A":"\\u003c\\u0026\\u003e"}}\n'


def test_metadata_empty(start_runtime):
    server = start_runtime("--metadata-env-prefix", "NOTHING_IS_NAMED_SO")
    assert call(server, "GET", "/v1/metadata")[1] == b'{"env":{}}\n'


# ---- what is no route


@pytest.mark.parametrize("method, path, status, allow, text", [
    ("GET", "/v1", 404, None, b"404 page not found\n"),
    ("GET", "/v1/", 404, None, b"404 page not found\n"),
    ("GET", "/v1/nope", 404, None, b"404 page not found\n"),
    ("GET", "/v1/filesystem", 404, None, b"404 page not found\n"),
    ("POST", "/v1/nope", 404, None, b"404 page not found\n"),
    ("POST", "/v1/files/x", 405, "DELETE, GET, HEAD, PUT", b"Method Not Allowed\n"),
    ("PATCH", "/v1/files", 405, "DELETE, GET, HEAD, PUT", b"Method Not Allowed\n"),
    ("POST", "/v1/health", 405, "GET, HEAD", b"Method Not Allowed\n"),
    ("DELETE", "/v1/metadata", 405, "GET, HEAD", b"Method Not Allowed\n"),
    ("HEAD", "/v1/nope", 404, None, b""),
])
def test_no_route(runtime, method, path, status, allow, text):
    answer, body = call(runtime, method, path)
    assert (answer.status, answer.getheader("allow"), body) == (status, allow, text)
    assert answer.getheader("content-type") == "text/plain; charset=utf-8"
    assert answer.getheader("x-content-type-options") == "nosniff"


# ---- PUT and GET


@pytest.mark.core
def test_put_get_round_trip(runtime):
    data = os.urandom(300_000)
    put(runtime, "a/b/c.bin", data)
    answer, body = call(runtime, "GET", "/v1/files/a/b/c.bin")
    assert (answer.status, body) == (200, data)
    assert answer.getheader("content-type") == "application/octet-stream"
    assert answer.getheader("content-length") == "300000"
    assert answer.getheader("accept-ranges") == "bytes"
    assert answer.getheader("etag") is None and answer.getheader("content-disposition") is None
    mtime = os.stat(runtime.root / "a/b/c.bin").st_mtime
    assert answer.getheader("last-modified") == datetime.datetime.fromtimestamp(
        int(mtime), datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert not temps(runtime)


def test_put_encoded_slashes(runtime):
    put(runtime, "enc%2Fsub%2Ffile.txt", b"1")
    assert (runtime.root / "enc/sub/file.txt").read_bytes() == b"1"
    put(runtime, "%2Fenc%2Frooted", b"2")
    assert (runtime.root / "enc/rooted").read_bytes() == b"2"


def test_names_are_decoded_once_and_plus_is_plus(runtime):
    put(runtime, "odd/a+b%20c%2525%C3%A9", b"1")
    assert os.listdir(runtime.root / "odd") == ["a+b c%25\u00e9"]
    assert call(runtime, "GET", "/v1/files/odd/a+b%20c%2525%c3%a9")[1] == b"1"


def test_put_chunked(runtime):
    answer = requests.put(runtime.url + "/v1/files/chunked", data=(b"%d," % i for i in range(1000)), timeout=30)
    assert answer.status_code == 204
    assert (runtime.root / "chunked").read_bytes() == b"".join(b"%d," % i for i in range(1000))


def test_put_nothing(runtime):
    put(runtime, "empty", b"")
    assert (runtime.root / "empty").read_bytes() == b""


@pytest.mark.parametrize("query, want", [("", 0o644), ("?mode=", 0o644), ("?mode=0755", 0o755), ("?mode=0600", 0o600),
                                         ("?mode=0000", 0), ("?mode=%30777", 0o777), ("?other=1", 0o644)])
def test_put_mode(runtime, query, want):
    put(runtime, "mode.txt", b"x", query)
    assert stat.S_IMODE(os.stat(runtime.root / "mode.txt").st_mode) == want


def test_overwrite_resets_the_mode(runtime):
    put(runtime, "reset", b"one", "?mode=0755")
    put(runtime, "reset", b"two")
    assert stat.S_IMODE(os.stat(runtime.root / "reset").st_mode) == 0o644
    assert (runtime.root / "reset").read_bytes() == b"two"
    assert not temps(runtime)


def test_put_ignores_a_trailing_slash(runtime):
    put(runtime, "slashed/", b"x")
    assert (runtime.root / "slashed").read_bytes() == b"x"


def test_put_through_a_link_replaces_its_target(runtime):
    (runtime.root / "target").write_text("old")
    (runtime.root / "to-target").symlink_to("target")
    put(runtime, "to-target", b"new")
    assert (runtime.root / "to-target").is_symlink()
    assert (runtime.root / "target").read_bytes() == b"new"


def test_put_replaces_a_dangling_link(runtime):
    outside = runtime.dir / "created-outside"
    (runtime.root / "dangling").symlink_to(outside)
    put(runtime, "dangling", b"x")
    assert not outside.exists() and not (runtime.root / "dangling").is_symlink()


@pytest.mark.parametrize("mode", ["0999", "777", "abcd", "01777", "+755", "0o755", "0755 "])
def test_put_bad_mode(runtime, mode):
    quoted = mode.replace("+", "%2B").replace(" ", "%20")
    assert refusal(runtime, "PUT", f"/v1/files/bad-mode?mode={quoted}", b"x") == \
        (400, "INVALID_ARGUMENT", f'mode "{mode}" must match ^0[0-7]{{3}}$')
    assert not (runtime.root / "bad-mode").exists()


def test_put_onto_a_directory(runtime):
    (runtime.root / "is-dir").mkdir(exist_ok=True)
    for path in ("is-dir", "is-dir/", "", ".", "%2E", "is-dir/x/.."):
        assert refusal(runtime, "PUT", f"/v1/files/{path}", b"x") == \
            (400, "INVALID_ARGUMENT", "target path is a directory"), path


def test_put_below_a_file(runtime):
    put(runtime, "plain", b"x")
    status, code, _ = refusal(runtime, "PUT", "/v1/files/plain/below", b"x")
    assert (status, code) == (500, "INTERNAL")
    assert not temps(runtime)


# ---- forms


@pytest.mark.core
def test_put_multipart(runtime):
    body = multipart(("note", None, b"skipped"), ("file", "ignored.txt", b"content\r\n--bdr"), ("file", "b", b"later"))
    put(runtime, "from-form", body, Content_Type=FORM)
    assert (runtime.root / "from-form").read_bytes() == b"content\r\n--bdr"


def test_put_multipart_without_a_filename(runtime):
    put(runtime, "from-field", multipart(("file", None, b"field")), Content_Type=FORM)
    assert (runtime.root / "from-field").read_bytes() == b"field"


def test_put_multipart_large(runtime):
    data = os.urandom(5_000_000)
    put(runtime, "large-form", multipart(("file", "x", data)), Content_Type=FORM)
    assert (runtime.root / "large-form").read_bytes() == data


def test_put_multipart_missing_file(runtime):
    assert refusal(runtime, "PUT", "/v1/files/no-form", multipart(("other", "x", b"y")), Content_Type=FORM) == \
        (400, "INVALID_ARGUMENT", 'multipart body is missing the required "file" part')
    assert not (runtime.root / "no-form").exists()


@pytest.mark.parametrize("content_type, body", [
    ("multipart/form-data", multipart(("file", "x", b"y"))),
    (FORM, b"--bdry\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\ncut short"),
    (FORM, b"no boundary at all"),
    (FORM, b""),
], ids=["no boundary parameter", "cut short", "no boundary", "empty"])
def test_put_bad_multipart(runtime, content_type, body):
    status, code, message = refusal(runtime, "PUT", "/v1/files/bad/form", body, Content_Type=content_type)
    assert (status, code) == (400, "INVALID_ARGUMENT")
    assert message.startswith("invalid multipart body: ")
    wait_until(lambda: not temps(runtime), 10, "no temporary file is left")
    assert not (runtime.root / "bad/form").exists()


@pytest.mark.parametrize("content_type", ["application/json", "multipart/mixed; boundary=bdry", "nonsense", ";;;", ""])
def test_put_any_other_type_is_raw(runtime, content_type):
    body = multipart(("file", "x", b"y"))
    put(runtime, "raw-type", body, Content_Type=content_type)
    assert (runtime.root / "raw-type").read_bytes() == body


# ---- the order of checks


def test_order_of_checks_in_put(runtime):
    (runtime.root / "order").mkdir(exist_ok=True)
    bad_form = {"Content_Type": "multipart/form-data"}
    assert refusal(runtime, "PUT", "/v1/files/%2E%2E/x?mode=9", b"", **bad_form)[0] == 400
    assert refusal(runtime, "PUT", "/v1/files/%2E%2E/x", b"", **bad_form)[2] == ESCAPES
    assert refusal(runtime, "PUT", "/v1/files/order", b"", **bad_form)[2] == "target path is a directory"
    assert refusal(runtime, "PUT", "/v1/files/order/x", b"", **bad_form)[2].startswith("invalid multipart")


def test_order_of_checks_in_delete(runtime):
    assert refusal(runtime, "DELETE", "/v1/files/%2E%2E?recursive=banana")[0] == 403
    assert refusal(runtime, "DELETE", "/v1/files/not-there?recursive=banana")[0] == 404
    status, code, message = refusal(runtime, "DELETE", "/v1/files/?recursive=banana")
    assert (status, code, message) == (400, "INVALID_ARGUMENT", 'recursive "banana" must be a boolean')


# ---- paths (B.3)


@pytest.fixture(scope="module")
def tree(runtime):
    """A root with a sibling of a similar name, a secret outside, and links to it."""
    outside = runtime.dir / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    evil = runtime.dir / "root-evil"
    evil.mkdir()
    (evil / "f").write_text("evil")
    root = runtime.root
    (root / "main.py").write_text("main")
    (root / "root").mkdir()
    (root / "root/main.py").write_text("nested")
    (root / "link").symlink_to(outside)
    (root / "link-file").symlink_to(outside / "secret")
    (root / "loop").symlink_to("loop")
    (root / "inside").symlink_to("root")
    (root / "f.txt").write_text("f")
    return root


@pytest.mark.core
@pytest.mark.parametrize("path, want", [
    ("main.py", b"main"), ("/main.py", b"main"), ("%2Fmain.py", b"main"), ("{root}/main.py", b"main"),
    ("root/main.py", b"nested"), ("inside/main.py", b"nested"), ("./main.py", b"main"), ("x/../main.py", b"main"),
    ("%2e/main.py", b"main"), ("//root//main.py", b"nested"), ("main.py/", b"main"), ("/../main.py", b"main"),
])
def test_paths_that_name_a_file(runtime, tree, path, want):
    answer, body = call(runtime, "GET", "/v1/files/" + path.format(root=str(runtime.root).replace("/", "%2F")))
    assert (answer.status, body) == (200, want)


@pytest.mark.core
@pytest.mark.parametrize("path", [
    "..", "%2E%2E", "%2e%2e/", "../etc/passwd", "%2E%2E/%2E%2E/etc/passwd", "..%2F..%2Fetc%2Fpasswd", "a/../../etc",
    "../root-evil/f", "link/secret", "link/new", "link/sub/new", "link", "link-file", "root/../../x",
])
def test_paths_that_escape(runtime, tree, path):
    for method in ("GET", "PUT", "DELETE"):
        assert refusal(runtime, method, f"/v1/files/{path}", b"x" if method == "PUT" else None) == \
            (403, "PERMISSION_DENIED", ESCAPES), method
    answer, body = call(runtime, "HEAD", f"/v1/files/{path}")
    assert (answer.status, body) == (403, b"")
    assert (runtime.dir / "outside/secret").read_text() == "secret"
    assert os.listdir(runtime.dir / "outside") == ["secret"]


@pytest.mark.parametrize("path", ["/../etc/passwd", "/root-evil/f", "root-evil/f", "nope", "main.pyx", "nope/deeper"])
def test_paths_that_name_nothing(runtime, tree, path):
    assert refusal(runtime, "GET", f"/v1/files/{path}") == (404, "NOT_FOUND", MISSING)
    assert refusal(runtime, "DELETE", f"/v1/files/{path}") == (404, "NOT_FOUND", MISSING)
    answer, body = call(runtime, "HEAD", f"/v1/files/{path}")
    assert (answer.status, body) == (404, b"")


@pytest.mark.parametrize("path", ["f.txt/x", "loop", "a%00b", "x" * 5000])
def test_paths_that_are_internal_errors(runtime, tree, path):
    for method in ("GET", "DELETE"):
        status, code, message = refusal(runtime, method, f"/v1/files/{path}")
        assert (status, code) == (500, "INTERNAL") and message, method


@pytest.mark.parametrize("path", ["/v1/files", "/v1/files/", "/v1/files/.", "/v1/files/%2E", "/v1/files/%2F",
                                  "/v1/files/root/.."])
def test_the_root_has_many_names(runtime, tree, path):
    answer, body = call(runtime, "GET", path)
    assert answer.status == 200
    assert "main.py" in [e["name"] for e in json.loads(body)["entries"]]


def test_special_files_are_refused_at_once(runtime):
    os.mkfifo(runtime.root / "fifo")
    status, code, message = refusal(runtime, "GET", "/v1/files/fifo")
    assert (status, code) == (403, "PERMISSION_DENIED")
    assert "not a regular file" in message
    os.unlink(runtime.root / "fifo")


# ---- listings


@pytest.mark.core
def test_listing(runtime):
    base = runtime.root / "listing"
    (base / "zdir").mkdir(parents=True)
    (base / "b.txt").write_bytes(b"12345")
    (base / "a.sh").write_bytes(b"")
    (base / "C").write_bytes(b"1")
    (base / "<&>").write_bytes(b"")
    os.chmod(base / "b.txt", 0o600)
    os.chmod(base / "a.sh", 0o4755)
    os.utime(base / "b.txt", (1_700_000_000.9, 1_700_000_000.9))
    (base / "to-b").symlink_to("b.txt")
    (base / "to-dir").symlink_to("zdir")
    (base / "gone").symlink_to("nothing")
    (base / "out").symlink_to("/etc/passwd")
    answer, body = call(runtime, "GET", "/v1/files/listing/")
    assert (answer.status, answer.getheader("content-type")) == (200, "application/json")
    assert body.startswith(b'{"path":"/listing/","entries":[{"name":"\\u003c\\u0026\\u003e","size":0,') and body.endswith(b"]}\n")
    got = json.loads(body)
    assert [e["name"] for e in got["entries"]] == ["<&>", "C", "a.sh", "b.txt", "to-b", "to-dir", "zdir"]
    by_name = {e["name"]: e for e in got["entries"]}
    assert by_name["b.txt"] == {"name": "b.txt", "size": 5, "type": "file", "modified_at": "2023-11-14T22:13:20Z",
                                "mode": "0600"}
    assert list(by_name["b.txt"]) == ["name", "size", "type", "modified_at", "mode"]
    assert {**by_name["to-b"], "name": ""} == {**by_name["b.txt"], "name": ""}
    assert by_name["a.sh"]["mode"] == "0755"
    assert by_name["zdir"]["type"] == by_name["to-dir"]["type"] == "directory"
    answer, nothing = call(runtime, "HEAD", "/v1/files/listing/")
    assert (answer.status, answer.getheader("content-length"), nothing) == (200, str(len(body)), b"")


@pytest.mark.parametrize("path, shown", [("", "/"), ("hollow", "/hollow"), ("hollow/", "/hollow/"), (".", "/."),
                                         ("%2Fhollow", "/hollow"), ("hollow%2F%2E", "/hollow/."), ("//hollow", "//hollow")])
def test_listing_echoes_the_parameter(runtime, path, shown):
    (runtime.root / "hollow").mkdir(exist_ok=True)
    assert json.loads(call(runtime, "GET", f"/v1/files/{path}")[1])["path"] == shown


def test_empty_listing(runtime):
    (runtime.root / "hollow").mkdir(exist_ok=True)
    assert call(runtime, "GET", "/v1/files/hollow")[1] == b'{"path":"/hollow","entries":[]}\n'


def test_names_that_are_not_text(runtime):
    (runtime.root / "bytes").mkdir(exist_ok=True)
    with open(os.fsencode(runtime.root / "bytes") + b"/\xff\xfe", "wb"):
        pass
    body = call(runtime, "GET", "/v1/files/bytes")[1]
    assert "\ufffd" in json.loads(body.decode())["entries"][0]["name"]
    assert call(runtime, "GET", "/v1/files/bytes/%ff%fe")[0].status == 200


# ---- ranges and conditions


@pytest.mark.parametrize("value, status, content_range, want", [
    ("bytes=0-3", 206, "bytes 0-3/10", b"0123"),
    ("bytes=7-", 206, "bytes 7-9/10", b"789"),
    ("bytes=-2", 206, "bytes 8-9/10", b"89"),
    ("bytes=5-100", 206, "bytes 5-9/10", b"56789"),
    ("bytes=10-", 416, "bytes */10", None),
])
def test_ranges(runtime, value, status, content_range, want):
    (runtime.root / "digits").write_bytes(b"0123456789")
    answer, body = call(runtime, "GET", "/v1/files/digits", Range=value)
    assert (answer.status, answer.getheader("content-range")) == (status, content_range)
    if want is not None:
        assert body == want


def test_several_ranges(runtime):
    (runtime.root / "digits").write_bytes(b"0123456789")
    answer, body = call(runtime, "GET", "/v1/files/digits", Range="bytes=0-1,8-9")
    assert answer.status == 206
    assert answer.getheader("content-type").startswith("multipart/byteranges; boundary=")
    assert b"\r\n\r\n01\r\n" in body and b"\r\n\r\n89\r\n" in body


def test_conditions(runtime):
    (runtime.root / "dated").write_bytes(b"0123456789")
    os.utime(runtime.root / "dated", (1_700_000_000, 1_700_000_000))
    same, before = "Tue, 14 Nov 2023 22:13:20 GMT", "Tue, 14 Nov 2023 22:13:19 GMT"
    status = lambda **fields: call(runtime, "GET", "/v1/files/dated", **fields)[0].status  # noqa: E731
    assert status(If_Modified_Since=same) == 304
    assert status(If_Modified_Since=before) == 200
    assert status(If_Unmodified_Since=same) == 200
    assert status(If_Unmodified_Since=before) == 412
    assert status(Range="bytes=0-1", If_Range=same) == 206
    assert status(Range="bytes=0-1", If_Range=before) == 200


def test_head(runtime):
    put(runtime, "headed", b"12345")
    answer, body = call(runtime, "HEAD", "/v1/files/headed")
    assert (answer.status, answer.getheader("content-length"), body) == (200, "5", b"")
    assert answer.getheader("content-type") == "application/octet-stream"


def test_a_deleted_file_is_still_served_to_its_reader(runtime):
    data = os.urandom(8_000_000)
    put(runtime, "doomed", data)
    with raw.connect(runtime) as s:
        s.sendall(b"GET /v1/files/doomed HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        got = s.recv(1000)
        assert call(runtime, "DELETE", "/v1/files/doomed")[0].status == 204
        got += raw.read_all(s)
    assert got.split(b"\r\n\r\n", 1)[1] == data


# ---- DELETE


@pytest.mark.core
def test_delete(runtime):
    put(runtime, "del/one", b"1")
    put(runtime, "del/sub/two", b"2")
    assert call(runtime, "DELETE", "/v1/files/del/one") [0].status == 204
    assert refusal(runtime, "DELETE", "/v1/files/del/one") == (404, "NOT_FOUND", MISSING)
    assert refusal(runtime, "DELETE", "/v1/files/del") == \
        (409, "CONFLICT", "directory is not empty; pass recursive=true to remove it")
    assert refusal(runtime, "DELETE", "/v1/files/del?recursive=false")[0] == 409
    answer, body = call(runtime, "DELETE", "/v1/files/del?recursive=true")
    assert (answer.status, body) == (204, b"")
    assert not (runtime.root / "del").exists()
    (runtime.root / "hollow-del").mkdir()
    assert call(runtime, "DELETE", "/v1/files/hollow-del/")[0].status == 204


@pytest.mark.parametrize("word", ["1", "t", "T", "TRUE", "true", "True"])
def test_delete_words_for_yes(runtime, word):
    put(runtime, "yes/x", b"1")
    assert call(runtime, "DELETE", f"/v1/files/yes?recursive={word}")[0].status == 204


@pytest.mark.parametrize("word", ["0", "f", "F", "FALSE", "false", "False", ""])
def test_delete_words_for_no(runtime, word):
    put(runtime, "no/x", b"1")
    assert call(runtime, "DELETE", f"/v1/files/no?recursive={word}")[0].status == 409


@pytest.mark.parametrize("word", ["banana", "yes", "on", "TrUe", "2", "true%20"])
def test_delete_other_words(runtime, word):
    put(runtime, "word/x", b"1")
    assert refusal(runtime, "DELETE", f"/v1/files/word?recursive={word}")[:2] == (400, "INVALID_ARGUMENT")
    assert (runtime.root / "word/x").exists()


def test_delete_a_link_deletes_the_link(runtime):
    put(runtime, "kept/x", b"1")
    (runtime.root / "to-kept").symlink_to("kept")
    assert call(runtime, "DELETE", "/v1/files/to-kept?recursive=true")[0].status == 204
    assert not (runtime.root / "to-kept").is_symlink()
    assert (runtime.root / "kept/x").exists()


def test_delete_a_tree_leaves_what_its_links_lead_to(runtime):
    outside = runtime.dir / "kept-outside"
    outside.mkdir()
    (outside / "x").write_text("1")
    (runtime.root / "linked").mkdir()
    (runtime.root / "linked/out").symlink_to(outside)
    assert call(runtime, "DELETE", "/v1/files/linked?recursive=true")[0].status == 204
    assert (outside / "x").read_text() == "1"


def test_delete_the_root(start_runtime):
    server = start_runtime()
    put(server, "a/b", b"1")
    (server.root / "link").symlink_to("/")
    for path in ("", ".", "%2F"):
        assert refusal(server, "DELETE", f"/v1/files/{path}") == \
            (409, "CONFLICT", "cannot delete the sandbox root; pass recursive=true to clear its contents")
    assert call(server, "DELETE", "/v1/files/?recursive=true")[0].status == 204
    assert server.root.is_dir() and os.listdir(server.root) == []
    assert call(server, "GET", "/v1/files/")[1] == b'{"path":"/","entries":[]}\n'
    assert call(server, "DELETE", "/v1/files/?recursive=true")[0].status == 204


def test_the_root_comes_back_when_it_was_deleted(start_runtime):
    server = start_runtime()
    os.rmdir(server.root)
    assert entries(server) == {}
    assert server.root.is_dir()


# ---- whole or not at all


@pytest.mark.core
@pytest.mark.parametrize("head", [b"Content-Length: 1000000", b"Transfer-Encoding: chunked"])
def test_an_aborted_put_leaves_nothing(runtime, head):
    put(runtime, "aborted/kept", b"old")
    with raw.connect(runtime) as s:
        s.sendall(b"PUT /v1/files/aborted/kept HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n80000\r\n" + b"x" * 400_000)
        wait_until(lambda: temps(runtime), 10, "the temporary file")
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    wait_until(lambda: not temps(runtime), 10, "the temporary file went")
    assert (runtime.root / "aborted/kept").read_bytes() == b"old"
    assert os.listdir(runtime.root / "aborted") == ["kept"]


def test_an_aborted_form_leaves_nothing(runtime):
    with raw.connect(runtime) as s:
        body = multipart(("file", "x", b"y" * 900_000))
        s.sendall(f"PUT /v1/files/aborted/form HTTP/1.1\r\nHost: localhost\r\nContent-Type: {FORM}\r\n"
                  f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:600_000])
        wait_until(lambda: temps(runtime), 10, "the temporary file")
    wait_until(lambda: not temps(runtime), 10, "the temporary file went")
    assert not (runtime.root / "aborted/form").exists()


@pytest.mark.parametrize("path, status", [("x?mode=9", 400), ("%2E%2E/x", 403), ("", 400)])
def test_an_early_refusal_is_seen_by_a_client_that_sends_on(runtime, path, status):
    answer, _ = call(runtime, "PUT", f"/v1/files/{path}", b"x" * 8_000_000)
    assert answer.status == status


def test_a_refusal_before_100_continue(runtime):
    with raw.connect(runtime) as s:
        s.sendall(b"PUT /v1/files/x?mode=9 HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n")
        assert raw.read_answer(s)[0] == 400


def test_100_continue(runtime):
    with raw.connect(runtime) as s:
        s.sendall(b"PUT /v1/files/continued HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert s.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        s.sendall(b"abc")
        assert raw.read_answer(s)[0] == 204
    assert (runtime.root / "continued").read_bytes() == b"abc"


def test_put_onto_a_full_disk(runtime):
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    small = runtime.root / "small"
    small.mkdir()
    if os.system(f"mount -t tmpfs -o size=1m none '{small}' 2>/dev/null") != 0:
        pytest.skip("mounting is not allowed here")
    try:
        put(runtime, "small/kept", b"old")
        status, code, message = refusal(runtime, "PUT", "/v1/files/small/kept", b"x" * 3_000_000)
        assert (status, code) == (500, "INTERNAL") and "No space left" in message
        assert (small / "kept").read_bytes() == b"old"
        wait_until(lambda: os.listdir(small) == ["kept"], 10, "the temporary file went")
    finally:
        os.system(f"umount '{small}'")


def test_readers_never_see_a_torn_file(runtime):
    size = 400_000
    put(runtime, "torn", b"0" * size)
    end = time.monotonic() + 3
    seen, broken = set(), []

    def write(digit):
        while time.monotonic() < end:
            put(runtime, "torn", digit * size)

    def read():
        while time.monotonic() < end:
            _, body = call(runtime, "GET", "/v1/files/torn")
            if len(body) != size or len(set(body)) != 1:
                broken.append((len(body), set(body)))
            seen.add(body[:1])

    threads = [threading.Thread(target=write, args=(d,)) for d in (b"1", b"2")] + \
              [threading.Thread(target=read) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not broken
    assert len(seen) >= 2
    assert not temps(runtime)


# ---- as a user without rights


@pytest.fixture
def unprivileged(start_runtime):
    """Starts a server that is not root on a directory that root owns."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root, to become another user with setpriv")
    base = pathlib.Path(tempfile.mkdtemp(prefix="silica-user-"))
    base.chmod(0o755)
    (base / "root").mkdir(mode=0o755)
    shutil.copy(servers.binary(), base / "runtime")
    program = base / "as-user"
    program.write_text(f'#!/bin/sh\nexec setpriv --reuid 1000 --regid 1000 --clear-groups {base}/runtime "$@"\n')
    program.chmod(0o755)
    yield lambda **kw: start_runtime(program=str(program), **{"root": base / "root", **kw})
    shutil.rmtree(base)


def test_no_permission(unprivileged):
    server = unprivileged()
    root = server.root
    (root / "locked").write_text("x")
    os.chmod(root / "locked", 0)
    (root / "shut").mkdir(mode=0o700)
    (root / "shut/x").write_text("x")
    assert refusal(server, "GET", "/v1/files/locked") == (403, "PERMISSION_DENIED", "permission denied")
    assert refusal(server, "PUT", "/v1/files/new", b"x") == (403, "PERMISSION_DENIED", "permission denied")
    assert refusal(server, "PUT", "/v1/files/deep/new", b"x") == (403, "PERMISSION_DENIED", "permission denied")
    assert refusal(server, "DELETE", "/v1/files/locked") == (403, "PERMISSION_DENIED", "permission denied")
    assert refusal(server, "GET", "/v1/files/shut")[:2] == (500, "INTERNAL")
    assert refusal(server, "GET", "/v1/files/shut/x")[:2] == (500, "INTERNAL")
    assert (root / "locked").exists()


def test_a_default_root_that_cannot_be_made(unprivileged):
    if os.path.exists("/workspace"):
        pytest.skip("/workspace exists here")
    server = unprivileged(add_root=False)
    for method, path in (("GET", ""), ("GET", "x"), ("PUT", "x"), ("DELETE", "x")):
        status, code, message = refusal(server, method, f"/v1/files/{path}", b"x" if method == "PUT" else None)
        assert (status, code) == (500, "INTERNAL") and "/workspace" in message, method
    with grpc.insecure_channel(server.grpc_address) as c:
        with pytest.raises(grpc.RpcError) as e:
            pb.Stub(c).Execute(pb.execute("true"), timeout=20)
    assert e.value.code() == grpc.StatusCode.INTERNAL and "/workspace" in e.value.details()
    assert call(server, "GET", "/v1/health")[0].status == 200

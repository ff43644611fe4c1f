"""/upload, /download, /list, /exists, contract A: shapes, path rules, half-written files."""

import http.client
import os
import socket
import threading
import time

import pytest
import requests

from harness import raw
from harness.server import wait_until

pytestmark = pytest.mark.contract("A")
DENIED = {"message": "Access denied"}


def upload(server, name, data, field="file"):
    return requests.post(server.url + "/upload", files={field: (name, data)}, timeout=60)


def get(server, path):
    """The path goes out as it is: requests would clean it."""
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    c.request("GET", path)
    answer = c.getresponse()
    body = answer.read()
    c.close()
    return answer, body


@pytest.mark.core
def test_upload_list_download_exists(runtime):
    data = os.urandom(100_000)
    answer = upload(runtime, "deep/er/file.bin", data)
    assert (answer.status_code, answer.json()) == (200, {"message": "File 'deep/er/file.bin' uploaded successfully."})
    assert (runtime.root / "deep/er/file.bin").read_bytes() == data
    answer = requests.get(runtime.url + "/download/deep/er/file.bin")
    assert answer.status_code == 200
    assert answer.content == data
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-length"] == "100000"
    assert answer.headers["content-disposition"] == 'attachment; filename="deep/er/file.bin"'
    assert answer.headers["etag"].startswith('"')
    (entry,) = requests.get(runtime.url + "/list/deep%2Fer").json()
    assert list(entry) == ["name", "size", "type", "mod_time"]
    assert (entry["name"], entry["size"], entry["type"]) == ("file.bin", 100000, "file")
    assert abs(entry["mod_time"] - os.stat(runtime.root / "deep/er/file.bin").st_mtime) < 0.001
    assert requests.get(runtime.url + "/list/deep").json()[0]["type"] == "directory"
    assert requests.get(runtime.url + "/exists/deep/er/file.bin").content == b'{"path":"deep/er/file.bin","exists":true}'
    assert requests.get(runtime.url + "/exists/deep/nope").json() == {"path": "deep/nope", "exists": False}


@pytest.mark.parametrize("path, echoed", [("/exists/", ""), ("/exists/.", "."), ("/exists//foo", "/foo"), ("/exists/a%2Fb", "a/b")])
def test_exists_echoes_the_decoded_parameter(runtime, path, echoed):
    answer, body = get(runtime, path)
    assert answer.status == 200
    assert f'"path":"{echoed}"'.encode() in body


@pytest.mark.ours
@pytest.mark.parametrize("path", ["/list", "/list/", "/list/.", "/list/%2E", "/list/%2F", "/list//"])
def test_the_root_by_all_its_names(runtime, path):
    answer, body = get(runtime, path)
    assert answer.status == 200
    assert body.startswith(b"[")


@pytest.mark.core
@pytest.mark.parametrize("path", [
    "%2e%2e%2fetc%2fpasswd", "%252e%252e%252fetc%252fpasswd", "foo/%2e%2e/%2e%2e/bar", "..%2Fx", "%2F..%2Fetc%2Fpasswd",
    "../etc/passwd", "a/../../x", "%00", "a%00b",
])
@pytest.mark.parametrize("route", ["download", "list", "exists"])
def test_leaving_the_root_is_denied(runtime, route, path):
    answer, body = get(runtime, f"/{route}/{path}")
    assert (answer.status, body) == (403, b'{"message":"Access denied"}')


@pytest.mark.parametrize("name", ["../evil", "../../evil", "a/../../evil", "/../evil"])
def test_uploads_cannot_leave(runtime, name):
    body = (b'--b\r\nContent-Disposition: form-data; name="file"; filename="' + name.encode() + b'"\r\n\r\nx\r\n--b--\r\n')
    answer = requests.post(runtime.url + "/upload", data=body, headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert (answer.status_code, answer.json()) == (403, DENIED)
    assert not (runtime.root.parent / "evil").exists()


def test_a_refused_upload_in_two_pieces(runtime):
    """The refusal is known before the form has ended; the answer is still the refusal."""
    body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="../evil"\r\n\r\nx\r\n--b--\r\n'
    with raw.connect(runtime) as s:
        s.sendall(b"POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                  b"Content-Length: %d\r\n\r\n" % len(body) + body[:-8])
        time.sleep(0.3)
        s.sendall(body[-8:])
        code, _, answer = raw.read_answer(s)
    assert (code, answer) == (403, b'{"message":"Access denied"}')


def test_paths_that_come_back_in_are_allowed(runtime):
    (runtime.root / "in").mkdir(exist_ok=True)
    (runtime.root / "q").write_text("q")
    answer, body = get(runtime, f"/download/in/../../{runtime.root.name}/q")
    assert (answer.status, body) == (200, b"q")


def test_leading_slashes_are_dropped(runtime):
    (runtime.root / "s").write_text("s")
    assert get(runtime, "/download////s")[1] == b"s"


def test_links(runtime):
    (runtime.root / "real").write_text("real")
    for name, to in [("good", "real"), ("absolute", str(runtime.root / "real")), ("out", "/etc/passwd"), ("outdir", "/etc"),
                     ("dangling", "missing"), ("loop", "loop")]:
        if not (runtime.root / name).is_symlink():
            (runtime.root / name).symlink_to(to)
    assert get(runtime, "/download/good")[1] == b"real"
    assert get(runtime, "/download/absolute")[1] == b"real"
    for path in ["out", "outdir/passwd", "outdir/new/x"]:
        assert get(runtime, "/download/" + path)[0].status == 403
        assert upload(runtime, path, b"x").status_code == 403
    assert get(runtime, "/download/dangling")[0].status == 404
    assert get(runtime, "/exists/dangling")[1] == b'{"path":"dangling","exists":false}'
    for name in ["good", "absolute", "out", "outdir", "dangling", "loop"]:
        (runtime.root / name).unlink()


@pytest.mark.ours
def test_a_listing_survives_odd_entries(runtime):
    odd = runtime.root / "odd"
    odd.mkdir()
    (odd / "dangling").symlink_to("nowhere")
    (odd / "out").symlink_to("/etc")
    os.mkfifo(odd / "fifo")
    open(os.fsencode(odd) + b"/\xff", "w").close()
    names = {e["name"]: e["type"] for e in requests.get(runtime.url + "/list/odd").json()}
    assert names == {"dangling": "file", "out": "file", "fifo": "file", "\ufffd": "file"}


def test_what_is_not_a_file(runtime):
    (runtime.root / "d").mkdir(exist_ok=True)
    (runtime.root / "f").write_text("f")
    assert (get(runtime, "/download/d")[0].status, get(runtime, "/download/d")[1]) == (404, b'{"message":"File not found"}')
    assert get(runtime, "/download/nope")[1] == b'{"message":"File not found"}'
    assert (get(runtime, "/list/f")[0].status, get(runtime, "/list/f")[1]) == (404, b'{"message":"Path is not a directory"}')
    assert get(runtime, "/list/nope")[0].status == 404
    assert get(runtime, "/exists/" + "x" * 300)[1].endswith(b'"exists":false}')


@pytest.mark.ours
def test_a_fifo_does_not_hang_anybody(runtime):
    os.mkfifo(runtime.root / "pipe")
    assert get(runtime, "/download/pipe")[0].status == 404
    assert upload(runtime, "pipe", b"x").status_code in (200, 500)
    assert get(runtime, "/")[0].status == 200


def test_uploading_over_a_directory(runtime):
    (runtime.root / "dir").mkdir(exist_ok=True)
    answer = upload(runtime, "dir", b"x")
    assert answer.status_code == 500
    assert answer.json()["message"].startswith("File upload failed: [Errno 21] Is a directory: '")


def test_names_as_clients_write_them(runtime):
    for written, stored in [(rb"a\"b", 'a"b'), (b"caf\xc3\xa9", "café"), (b"x%22y", "x%22y"), (rb"C:\dir\win.txt", "win.txt"),
                            (b"sp ace", "sp ace")]:
        body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="' + written + b'"\r\n\r\nx\r\n--b--\r\n'
        answer = requests.post(runtime.url + "/upload", data=body, headers={"Content-Type": "multipart/form-data; boundary=b"})
        assert answer.status_code == 200, (written, answer.text)
        assert (runtime.root / stored).read_bytes() == b"x", written


def test_the_last_file_wins_and_mode_is_kept(runtime):
    (runtime.root / "twice").write_text("old")
    (runtime.root / "twice").chmod(0o640)
    body = b"".join(b'--b\r\nContent-Disposition: form-data; name="file"; filename="' + n + b'"\r\n\r\n' + v + b"\r\n"
                    for n, v in [(b"first", b"1"), (b"twice", b"2")]) + b"--b--\r\n"
    answer = requests.post(runtime.url + "/upload", data=body, headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert answer.status_code == 200
    assert (runtime.root / "twice").read_text() == "2"
    assert (runtime.root / "twice").stat().st_mode & 0o777 == 0o640
    assert not (runtime.root / "first").exists()


@pytest.mark.core
def test_chunked_uploads(runtime):
    pieces = [b'--b\r\nContent-Disposition: form-data; name="file"; filename="chunked"\r\n\r\n'] + [b"y" * 50_000] * 20 + [b"\r\n--b--\r\n"]
    answer = requests.post(runtime.url + "/upload", data=iter(pieces), headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert answer.status_code == 200
    assert (runtime.root / "chunked").stat().st_size == 1_000_000


@pytest.mark.parametrize("content_type, body, status, text", [
    ("multipart/form-data", b"x", 400, "Missing boundary in multipart."),
    ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n', 400,
     'The Content-Disposition header field "name" must be provided.'),
    ("text/plain", b"x", 422, None),
    ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="other"\r\n\r\nx\r\n--b--\r\n', 422, None),
])
def test_bad_forms(runtime, content_type, body, status, text):
    answer = requests.post(runtime.url + "/upload", data=body, headers={"Content-Type": content_type})
    assert answer.status_code == status
    if text:
        assert answer.json() == {"detail": text}
    else:
        assert answer.json()["detail"] == [{"type": "missing", "loc": ["body", "file"], "msg": "Field required", "input": None}]


def test_a_field_instead_of_a_file(runtime):
    answer = requests.post(runtime.url + "/upload", files={"file": (None, "text")})
    assert answer.status_code == 422
    assert answer.json()["detail"] == [{"type": "value_error", "loc": ["body", "file"], "input": "text", "ctx": {"error": {}},
                                        "msg": "Value error, Expected UploadFile, received: <class 'str'>"}]


@pytest.mark.core
@pytest.mark.ours
def test_an_aborted_upload_leaves_nothing(runtime):
    (runtime.root / "keep").write_text("old")
    with raw.connect(runtime) as s:
        s.sendall(b"POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n"
                  b'--b\r\nContent-Disposition: form-data; name="file"; filename="keep"\r\n\r\n' + b"z" * 3_000_000)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    wait_until(lambda: not [n for n in os.listdir(runtime.root) if n.startswith(".sandboxd-tmp-")], 10, "no temporary file is left")
    assert (runtime.root / "keep").read_text() == "old"


@pytest.mark.ours
def test_readers_never_see_half_a_file(runtime):
    small, large = b"s" * 10, b"L" * 3_000_000
    upload(runtime, "torn", small)
    stop = threading.Event()
    seen = []

    def read():
        while not stop.is_set():
            seen.append(len(requests.get(runtime.url + "/download/torn").content))

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(1000):  # at least ten, and until the reader had its share
        assert upload(runtime, "torn", large if i % 2 else small).status_code == 200
        if i >= 9 and len(seen) > 5:
            break
    stop.set()
    reader.join()
    assert set(seen) <= {len(small), len(large)}
    assert len(seen) > 5


def test_ranges(runtime):
    (runtime.root / "r").write_bytes(bytes(range(100)))
    answer = requests.get(runtime.url + "/download/r", headers={"Range": "bytes=10-19"})
    assert (answer.status_code, answer.content) == (206, bytes(range(10, 20)))
    assert answer.headers["content-range"] == "bytes 10-19/100"
    answer = requests.get(runtime.url + "/download/r", headers={"Range": "bytes=-5"})
    assert answer.content == bytes(range(95, 100))
    answer = requests.get(runtime.url + "/download/r", headers={"Range": "bytes=200-"})
    assert answer.status_code == 416
    assert answer.headers["content-range"].endswith("*/100")
    answer = requests.get(runtime.url + "/download/r", headers={"Range": "bytes=0-1,50-51"})
    assert answer.status_code == 206
    assert answer.headers["content-type"].startswith("multipart/byteranges")


@pytest.mark.ours
def test_a_large_file_goes_both_ways(runtime):
    data = os.urandom(1 << 20) * 30
    assert upload(runtime, "large", data).status_code == 200
    assert requests.get(runtime.url + "/download/large").content == data

"""The pydantic exec contract (E): shapes, caps, texts."""

import base64
import os
import time

import pytest
import requests

from harness import proc
from harness.server import wait_until

pytestmark = [pytest.mark.contract("E"), pytest.mark.ours]


def post(server, route, /, **body):
    return requests.post(server.url + route, json=body, timeout=60)


@pytest.mark.core
def test_health(runtime):
    assert requests.get(runtime.url + "/health").json() == {"ready": True}


@pytest.mark.core
def test_exec_merges_output_in_order(runtime):
    got = post(runtime, "/exec", command="echo a; echo b >&2; echo c; exit 3", timeout_seconds=10).json()
    assert got == {"output": "a\nb\nc\n", "exit_code": 3, "truncated": False}


def test_exec_unknown_command(runtime):
    got = post(runtime, "/exec", command="nope-such", timeout_seconds=10).json()
    assert got["exit_code"] == 127


@pytest.mark.parametrize("size, truncated", [(99_999, False), (100_000, False), (100_001, True), (5_000_000, True)])
def test_the_cap(runtime, size, truncated):
    got = post(runtime, "/exec", command=f"head -c {size} /dev/zero | tr '\\0' x", timeout_seconds=30).json()
    assert len(got["output"]) == min(size, 100_000)
    assert got["truncated"] is truncated
    assert got["exit_code"] == 0


def test_exec_timeout_keeps_the_output_and_ends_the_tree(runtime):
    mark = proc.unique_sleep()
    start = time.monotonic()
    got = post(runtime, "/exec", command=f"echo before; setsid sleep {mark} & sleep {mark}", timeout_seconds=1).json()
    assert got == {"output": "before\n", "exit_code": 124, "truncated": False}
    assert time.monotonic() - start < 6
    wait_until(lambda: not proc.with_argument(mark), 5)


def test_a_client_that_leaves_ends_its_command(runtime):
    mark = proc.unique_sleep()
    with pytest.raises(requests.exceptions.ReadTimeout):
        requests.post(runtime.url + "/exec", json={"command": f"sleep {mark}", "timeout_seconds": 60}, timeout=0.5)
    wait_until(lambda: not proc.with_argument(mark), 5, "the command is gone")


def test_a_background_server_does_not_hold_the_call(runtime):
    mark = proc.unique_sleep()
    got = post(runtime, "/exec", command=f"sleep {mark} & echo started", timeout_seconds=60).json()
    assert (got["output"], got["exit_code"]) == ("started\n", 0)
    for pid in proc.with_argument(mark):
        os.kill(pid, 9)


@pytest.mark.core
def test_write_and_read(runtime):
    text = "line 1\nline 2\r\nlé 3\nno newline"
    answer = post(runtime, "/write", path="notes/a.txt", content_b64=base64.b64encode(text.encode()).decode())
    assert answer.ok
    assert (runtime.root / "notes/a.txt").read_bytes() == text.encode()
    assert post(runtime, "/read", path="notes/a.txt", offset=0, limit=1_000_000_000).json() == {"content": text}
    assert post(runtime, "/read", path="notes/a.txt", offset=1, limit=2).json() == {"content": "line 2\r\nlé 3\n"}
    assert post(runtime, "/read", path=str(runtime.root / "notes/a.txt"), offset=0, limit=1).json() == {"content": "line 1\n"}
    assert post(runtime, "/read", path="notes/nope", offset=0, limit=1).status_code == 404
    binary = bytes(range(256))
    assert post(runtime, "/write", path="bin", content_b64=base64.b64encode(binary).decode()).ok
    assert (runtime.root / "bin").read_bytes() == binary


def test_ls_and_glob(runtime):
    for name in ["z/one.py", "z/sub/two.py", "z/three.txt"]:
        (runtime.root / name).parent.mkdir(parents=True, exist_ok=True)
        (runtime.root / name).write_text(name)
    rows = post(runtime, "/ls", path="z").json()
    assert [(r["name"], r["is_dir"]) for r in rows] == [("sub", True), ("one.py", False), ("three.txt", False)]
    assert rows[1]["path"].endswith("/z/one.py") and rows[1]["size"] == 8 and rows[1]["modified_at"].endswith("Z")
    rows = post(runtime, "/glob", pattern="**/*.py", path="/").json()
    assert [r["path"].split("/z/")[1] for r in rows if "/z/" in r["path"]] == ["one.py", "sub/two.py"]
    assert post(runtime, "/glob", pattern="*.py", path="z").json()[0]["name"] == "one.py"
    assert post(runtime, "/ls", path="nope").status_code == 404
    assert post(runtime, "/ls", path="z/one.py").status_code == 400


def test_edit_and_grep(runtime):
    (runtime.root / "e.txt").write_text("a b a\n")
    assert post(runtime, "/edit", path="e.txt", old_string="b", new_string="c").json() == {"occurrences": 1}
    assert (runtime.root / "e.txt").read_text() == "a c a\n"
    answer = post(runtime, "/edit", path="e.txt", old_string="a", new_string="x")
    assert answer.status_code == 400 and "found 2 times" in answer.json()["detail"]
    assert post(runtime, "/edit", path="e.txt", old_string="a", new_string="x", replace_all=True).json() == {"occurrences": 2}
    assert post(runtime, "/edit", path="nope", old_string="a", new_string="x").status_code == 404
    (row,) = post(runtime, "/grep", pattern="x c", path="/").json()
    assert (row["path"].endswith("/e.txt"), row["line_number"], row["line"]) == (True, 1, "x c x")


@pytest.mark.core
@pytest.mark.parametrize("path", ["../x", "a/../../x", "../../etc/passwd"])
def test_leaving_the_root_is_denied(runtime, path):
    assert post(runtime, "/read", path=path, offset=0, limit=1).status_code == 403
    assert post(runtime, "/write", path=path, content_b64="eA==").status_code == 403
    assert post(runtime, "/ls", path=path).status_code == 403


@pytest.mark.parametrize("route, body, status, text", [
    ("/exec", {}, 422, "'command'"), ("/exec", {"command": 5}, 422, "'command'"), ("/exec", {"command": "a\0b"}, 422, "NUL"),
    ("/exec", {"command": "true", "timeout_seconds": -1}, 422, "'timeout_seconds'"),
    ("/write", {"path": "x", "content_b64": "%%%"}, 400, "base64"), ("/read", {"path": 1}, 422, "'path'"), ("/ls", [], 422, "object"),
])
def test_bad_requests_say_what_is_wrong(runtime, route, body, status, text):
    answer = requests.post(runtime.url + route, json=body)
    assert answer.status_code == status
    assert text in answer.json()["detail"]


def test_bad_json(runtime):
    answer = requests.post(runtime.url + "/exec", data=b"{", headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert "JSON" in answer.json()["detail"]

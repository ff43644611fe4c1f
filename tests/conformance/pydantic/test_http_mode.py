"""pydantic-ai-backend's KubernetesPodSandbox(mode="http"), unmodified.

Its pod comes from harness/kube_stub.py, which answers the POST and GET of a pod with Ready at 127.0.0.1; all calls
after start() are the class's own HTTP to our runtime.
"""

import concurrent.futures
import os
import time

import httpx
import pytest
from pydantic_ai_backends import KubernetesPodSandbox

from harness import proc
from harness.kube_stub import KubeStub
from harness.server import wait_until

pytestmark = pytest.mark.contract("E")
TOKEN = "a-token-of-the-test"


@pytest.fixture(scope="module")
def kube(tmp_path_factory):
    stub = KubeStub(tmp_path_factory.mktemp("kube"))
    yield stub
    stub.close()


@pytest.fixture(scope="module")
def guarded():
    """A runtime that wants the token, as the pod's environment would give it."""
    from conftest import begin, end
    s = begin(token=TOKEN)
    yield s
    end(s)


@pytest.fixture(scope="module")
def box(kube, guarded):
    sandbox = KubernetesPodSandbox("image", port=guarded.port, exec_token=TOKEN, sandbox_id="judge",
                                   kube_config_path=str(kube.kubeconfig), in_cluster=False)
    sandbox.start()
    assert sandbox.is_alive()
    yield sandbox
    sandbox.stop()


@pytest.fixture
def root(guarded):
    return guarded.root


@pytest.mark.core
def test_execute(box):
    r = box.execute("echo out; echo err >&2; exit 3")
    assert (r.output, r.exit_code, r.truncated) == ("out\nerr\n", 3, False)


def test_execute_is_a_shell(box):
    r = box.execute("A=1; for i in a b; do echo $i$A; done | tr a-z A-Z && pwd >/dev/null")
    assert (r.output, r.exit_code) == ("A1\nB1\n", 0)


def test_execute_starts_in_the_root(box, root):
    assert box.execute("pwd").output.strip() == str(root)


def test_execute_unknown_command(box):
    r = box.execute("no-such-program-here")
    assert r.exit_code == 127 and "not found" in r.output


@pytest.mark.core
def test_execute_timeout(box):
    mark = proc.unique_sleep()
    began = time.monotonic()
    r = box.execute(f"echo before; setsid sleep {mark} & sleep {mark}", timeout=1)
    assert r.exit_code == 124
    assert r.output.startswith("before\n")
    assert time.monotonic() - began < 6  # the client gives up five seconds after the limit
    wait_until(lambda: not proc.with_argument(mark), 5, "the tree died")


def test_execute_keeps_the_order_of_both_outputs(box):
    r = box.execute("for i in 1 2 3; do echo o$i; echo e$i >&2; done")
    assert r.output == "o1\ne1\no2\ne2\no3\ne3\n"


@pytest.mark.parametrize("size, truncated", [(99_999, False), (100_000, False), (100_001, True), (5_000_000, True)])
def test_execute_cap(box, size, truncated):
    r = box.execute(f"head -c {size} /dev/zero | tr '\\0' x; exit 5")
    assert len(r.output) == min(size, 100_000)
    assert (r.truncated, r.exit_code) == (truncated, 5)


def test_execute_output_that_is_not_utf8(box):
    r = box.execute("printf 'a\\377b\\303'")
    assert r.output == "a\ufffdb\ufffd"


def test_execute_unicode(box):
    assert box.execute("printf 'h\u00e9 \u4f60 \U0001f600'").output == "h\u00e9 \u4f60 \U0001f600"


def test_execute_wrong_token(kube, guarded):
    stranger = KubernetesPodSandbox("image", port=guarded.port, exec_token="wrong", sandbox_id="stranger",
                                    kube_config_path=str(kube.kubeconfig), in_cluster=False)
    stranger.start()
    r = stranger.execute("true")
    assert r.exit_code == 1 and r.output.startswith("Error: ") and "401" in r.output
    assert stranger.read("x") == "Error: HTTP 401"
    assert stranger.write("x", "y").error is not None
    assert stranger.ls_info(".") == [] and stranger.glob_info("*") == []
    stranger.stop()


@pytest.mark.core
@pytest.mark.parametrize("content", ["", "text\n", "no newline", "a\r\nb\rc\n", "h\u00e9\u4f60\n", "x" * 1_000_000 + "\n"],
                         ids=["empty", "text", "no newline", "cr", "unicode", "1 MB line"])
def test_write_and_read(box, root, content):
    w = box.write("data.txt", content)
    assert w.error is None and w.path == "data.txt"
    assert (root / "data.txt").read_bytes() == content.encode()
    assert box.read_bytes("data.txt") == content.encode()
    assert box.read("data.txt") == content


def test_write_bytes(box, root):
    assert box.write("raw.bin", bytes(range(256))).error is None
    assert (root / "raw.bin").read_bytes() == bytes(range(256))


def test_write_makes_parents(box, root):
    assert box.write("a/b/c.txt", "deep").error is None
    assert (root / "a/b/c.txt").read_text() == "deep"


def test_absolute_path_below_the_root(box, root):
    assert box.write(str(root / "abs.txt"), "abs").error is None
    assert (root / "abs.txt").read_text() == "abs"
    assert box.read(str(root / "abs.txt")) == "abs"


def test_write_replaces_and_keeps_the_mode(box, root):
    (root / "script").write_text("old old old")
    (root / "script").chmod(0o750)
    assert box.write("script", "new").error is None
    assert (root / "script").read_text() == "new"
    assert (root / "script").stat().st_mode & 0o777 == 0o750


def test_write_onto_a_directory(box, root):
    (root / "dir").mkdir(exist_ok=True)
    assert box.write("dir", "x").error is not None


def test_read_lines(box, root):
    (root / "lines").write_text("".join(f"line {i}\n" for i in range(10)))
    assert box.read("lines", offset=2, limit=3) == "line 2\nline 3\nline 4\n"
    assert box.read("lines", offset=9) == "line 9\n"
    assert box.read("lines", offset=10) == ""


def test_read_missing(box):
    assert box.read("missing") == "Error: File 'missing' not found"
    assert box.read_bytes("missing") == b""


@pytest.mark.core
def test_edit(box, root):
    (root / "edit.txt").write_text("one two two\n")
    r = box.edit("edit.txt", "one", "1")
    assert r.error is None and r.occurrences == 1
    assert (root / "edit.txt").read_text() == "1 two two\n"
    assert "2 times" in box.edit("edit.txt", "two", "2").error
    assert box.edit("edit.txt", "two", "2", replace_all=True).error is None
    assert (root / "edit.txt").read_text() == "1 2 2\n"
    assert box.edit("missing.txt", "a", "b").error == "File 'missing.txt' not found"


def test_exists(box, root):
    (root / "here").write_text("")
    assert box.exists("here") is True
    assert box.exists("nowhere") is False


@pytest.mark.core
def test_ls(box, root):
    (root / "ls" / "sub").mkdir(parents=True, exist_ok=True)
    (root / "ls" / "file").write_text("12345")
    rows = {r["name"]: r for r in box.ls_info("ls")}
    assert set(rows) == {"sub", "file"}
    assert rows["file"]["is_dir"] is False and rows["file"]["size"] == 5
    assert rows["sub"]["is_dir"] is True
    assert rows["file"]["path"].endswith("ls/file")
    assert rows["file"]["modified_at"].startswith("20")
    assert box.ls_info("missing") == []
    box.ls_info("ls/file")  # the contract says nothing of a file; it must not raise


def test_paths_of_ls_can_be_read(box, root):
    (root / "round").mkdir(exist_ok=True)
    (root / "round" / "f").write_text("via ls")
    assert [box.read(r["path"]) for r in box.ls_info("round")] == ["via ls"]


def test_glob(box, root):
    for name in ("g/a.py", "g/sub/b.py", "g/c.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    names = lambda *a: sorted(r["name"] for r in box.glob_info(*a))  # noqa: E731
    assert names("*.py", "g") == ["a.py"]
    assert names("**/*.py", "g") == ["a.py", "b.py"]
    assert names("*.none", "g") == []
    assert all(box.read(r["path"]) == "x" for r in box.glob_info("**/*.py", "g"))


def test_grep(box, root):
    (root / "gr").mkdir(exist_ok=True)
    (root / "gr" / "a.txt").write_text("first\nneedle here\n")
    rows = box.grep_raw("needle", "gr")
    assert [(os.path.basename(r["path"]), r["line_number"], r["line"]) for r in rows] == [("a.txt", 2, "needle here")]
    assert box.grep_raw("nothing-like-it", "gr") == []


@pytest.mark.core
def test_escapes(box, root):
    (root.parent / "outside").write_text("secret")
    (root / "link").unlink(missing_ok=True)
    (root / "link").symlink_to(root.parent)
    for path in ("../outside", "link/outside"):
        assert box.read(path).startswith("Error: "), path
        assert box.write(path, "x").error is not None, path
    assert (root.parent / "outside").read_text() == "secret"
    assert box.ls_info("link") == []


def test_health_needs_no_token(guarded):
    r = httpx.get(guarded.url + "/health")
    assert (r.status_code, r.json()) == (200, {"ready": True})


def test_many_at_once(box):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        out = list(pool.map(lambda i: box.execute(f"echo {i}").output, range(64)))
    assert out == [f"{i}\n" for i in range(64)]

"""What every release of the SDK does with a runtime: run, write, read, list, exists."""

import os
import threading

import pytest
from k8s_agent_sandbox.exceptions import SandboxRequestError

from harness import proc
from harness import server as servers


def status_of(e):
    return e.value.status_code


@pytest.mark.core
def test_run(box):
    r = box.run("echo 'hello world'")
    assert (r.stdout, r.stderr, r.exit_code) == ("hello world\n", "", 0)


@pytest.mark.core
def test_run_both_outputs_and_status(box):
    r = box.run(box.shell("echo out; echo err >&2; exit 7"))
    assert (r.stdout, r.stderr, r.exit_code) == ("out\n", "err\n", 7)


def test_run_unknown_program(box):
    r = box.run("no-such-program-here")
    if box.family == "execute":
        assert r.exit_code == 1
        assert r.stderr == "Failed to execute command: [Errno 2] No such file or directory: 'no-such-program-here'"
    else:
        assert r.exit_code == 127 and "not found" in r.stderr
    assert r.stdout == ""


def test_run_killed_by_a_signal(box):
    assert box.run(box.shell("kill -9 $$")).exit_code == (-9 if box.family == "execute" else -1)


def test_run_unicode(box):
    assert box.run("printf 'h\u00e9 \u4f60\u597d \U0001f600'").stdout == "h\u00e9 \u4f60\u597d \U0001f600"


def test_run_has_no_stdin(box):
    assert box.run("cat").stdout == ""


def test_run_starts_in_the_root(box):
    assert box.run("pwd").stdout.strip() == str(box.root)


def test_run_large_output(box):
    r = box.run("head -c 3000000 /dev/zero")
    assert len(r.stdout) == 3000000 and r.exit_code == 0


def test_run_quotes(box):
    assert box.run("""printf '%s|' "a  b" c\\ d ''""").stdout == "a  b|c d||"


def test_run_in_parallel(box):
    if box.style == "async":
        pytest.skip("the sync handle is enough: the wire is the same")
    out = [None] * 16

    def one(i):
        out[i] = box.run(f"echo {i}").stdout

    threads = [threading.Thread(target=one, args=(i,)) for i in range(16)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert out == [f"{i}\n" for i in range(16)]


@pytest.mark.core
@pytest.mark.parametrize("content", [b"", b"text\n", bytes(range(256)) * 20, b"x" * (5 << 20)],
                         ids=["empty", "text", "all bytes", "5 MiB"])
def test_write_and_read(box, content):
    box.files.write("data.bin", content)
    assert (box.root / "data.bin").read_bytes() == content
    assert box.files.read("data.bin") == content


def test_write_text(box):
    box.files.write("text.txt", "h\u00e9\n")
    assert (box.root / "text.txt").read_bytes() == "h\u00e9\n".encode()


def test_write_replaces(box):
    box.files.write("again.txt", b"a much longer first version")
    box.files.write("again.txt", b"short")
    assert box.files.read("again.txt") == b"short"


@pytest.mark.parametrize("name", ["with space.txt", "h\u00e9\u4f60.txt", "a%20b.txt", "a+b&c=d;e.txt", "#hash?.txt",
                                  "back\\slash.txt", "single'quote.txt"])
def test_odd_names(box, name):
    if "%" in name and box.family == "execute":
        pytest.skip("contract A decodes twice: this name cannot be addressed")
    box.files.write(name, name.encode())
    assert (box.root / name).read_bytes() == name.encode()
    assert box.files.exists(name) is True
    assert box.files.read(name) == name.encode()


@pytest.mark.core
@pytest.mark.ours  # both peers redirect one spelling of "." and the SDK refuses redirects
def test_list_root(box):
    (box.root / "dir").mkdir(exist_ok=True)
    (box.root / "one.txt").write_bytes(b"12345")
    entries = {e.name: e for e in box.files.list(".")}
    assert entries["one.txt"].size == 5 and entries["one.txt"].type == "file"
    assert entries["dir"].type == "directory"
    assert set(entries) == {p.name for p in box.root.iterdir()}


def test_list_subdirectory(box):
    (box.root / "list" / "sub").mkdir(parents=True, exist_ok=True)
    (box.root / "list" / "sub" / "f").write_bytes(b"")
    assert [e.name for e in box.files.list("list/sub")] == ["f"]
    assert [e.name for e in box.files.list("/list")] == ["sub"]


def test_list_empty_directory(box):
    (box.root / "hollow").mkdir(exist_ok=True)
    assert box.files.list("hollow") == []


@pytest.mark.core
def test_exists(box):
    (box.root / "here").write_bytes(b"")
    (box.root / "dir").mkdir(exist_ok=True)
    assert box.files.exists("here") is True
    assert box.files.exists("dir") is True
    assert box.files.exists("not-here") is False
    assert box.files.exists("dir/not-here") is False


def test_read_missing(box):
    with pytest.raises(SandboxRequestError) as e:
        box.files.read("missing")
    assert status_of(e) == 404
    assert box.run("true").exit_code == 0  # the handle survives its error


def test_list_missing(box):
    with pytest.raises(SandboxRequestError) as e:
        box.files.list("missing")
    assert status_of(e) == 404


def test_list_of_a_file(box):
    (box.root / "plain").write_bytes(b"x")
    with pytest.raises((SandboxRequestError, RuntimeError)):
        box.files.list("plain")


@pytest.mark.core
def test_escapes_are_refused(box):
    (box.root / "out").unlink(missing_ok=True)
    (box.root / "out").symlink_to("/etc")
    for call in (lambda: box.files.list("out"), lambda: box.files.read("out/passwd"),
                 lambda: box.files.exists("out/passwd")):
        with pytest.raises(SandboxRequestError) as e:
            call()
        assert status_of(e) == 403
    (box.root / "out").unlink()


@pytest.mark.ours  # releases up to 0.5.6 repeat the call six times, which fills the python peer's pool for good
def test_command_that_outlives_the_call(box, request):
    mark = proc.unique_sleep()
    with pytest.raises(Exception):
        box.run(f"sleep {mark}", timeout=1)
    assert box.run("echo next").stdout == "next\n"
    if box.family == "sandboxd":
        servers.wait_until(lambda: not proc.with_argument(mark), 10, "a deadline kills")
    for pid in proc.with_argument(mark):  # contract A: a client that goes away does not end its command
        os.kill(pid, 9)

"""What people run works in a sandbox, as root and as an account that has nothing: compilers, git, Python with its
packages, node, Chromium. What a machine does not have is skipped; `make setup-test` installs Chromium."""

import base64
import hashlib
import os
import pathlib
import zipfile

import pytest

from harness.caller import caller_or_skip

pytestmark = pytest.mark.ours
GO = "/usr/local/go/bin:/usr/lib/go/bin"
PATH = f"/usr/local/bin:/usr/bin:/bin:{GO}"


@pytest.fixture(scope="module", params=["root", "user"])
def who(request):
    caller = caller_or_skip(request.param)
    yield caller
    caller.remove()


def needs(program):
    """The image is this machine's /usr: what is elsewhere is not inside."""
    for directory in PATH.split(":"):
        found = pathlib.Path(directory, program)
        if found.exists() and os.path.realpath(found).startswith("/usr/"):
            return
    pytest.skip(f"no {program} on this machine")


def sh(who, script, *options, timeout=110):
    done = who.run("-e", f"PATH={PATH}", *options, "--", "/bin/sh", "-ec", script, timeout=timeout)
    assert done.returncode == 0, (done.returncode, done.stdout[-1000:], done.stderr[-2000:])
    return done.stdout


def test_a_compiler(who):
    needs("gcc")
    script = """cat >a.c <<X
#include <pthread.h>
#include <stdio.h>
static void *say(void *text) { puts(text); return 0; }
int main(void) { pthread_t t; return pthread_create(&t, 0, say, "built inside") || pthread_join(t, 0); }
X
gcc -O2 -pthread -o a a.c && ./a"""
    assert sh(who, script) == "built inside\n"


def test_git(who):
    needs("git")
    script = """git init -q one && cd one && echo text >f && git add f
git -c user.name=n -c user.email=n@example.org commit -qm first
cd .. && git clone -q one two && cat two/f && git -C two log --format=%s"""
    assert sh(who, script) == "text\nfirst\n"


def write_wheel(path):
    """A package of one module, made by hand: there is no network to get one from."""
    files = {"answer.py": "VALUE = 42\n",
             "answer-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: answer\nVersion: 1.0\n",
             "answer-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(text)}\n"
    files["answer-1.0.dist-info/RECORD"] = record + "answer-1.0.dist-info/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as z:
        for name, text in files.items():
            z.writestr(name, text)


def test_python_with_venv_and_pip(who):
    needs("python3")
    if not list(pathlib.Path("/usr/lib").glob("python3*/venv")) or not list(pathlib.Path("/usr/share/python-wheels").glob("pip-*")):
        pytest.skip("no venv with pip on this machine")
    wheels = who.dir / "wheels"
    wheels.mkdir(exist_ok=True)
    write_wheel(wheels / "answer-1.0-py3-none-any.whl")
    script = """/usr/bin/python3 -m venv v
v/bin/pip install -q --no-index --find-links /wheels answer
v/bin/python -c 'import answer, multiprocessing as m; print(answer.VALUE, m.Pool(2).map(abs, [-1, -2]))'"""
    assert sh(who, script, "-v", f"{wheels}:/wheels:ro") == "42 [1, 2]\n"


def test_node(who):
    needs("node")
    script = """cat >a.js <<'X'
const http = require("http");
const s = http.createServer((q, r) => r.end("served"));
s.listen(0, "127.0.0.1", () => http.get({ port: s.address().port, host: "127.0.0.1" }, r =>
    r.on("data", d => { console.log(String(d)); s.close(); })));
X
node a.js"""
    assert sh(who, script) == "served\n"


def test_go(who):
    needs("go")
    script = """mkdir m && cd m && printf 'module example.org/m\\n\\ngo 1.18\\n' >go.mod
printf 'package main\\nfunc main() { c := make(chan int); go func() { c <- 42 }(); println(<-c) }\\n' >m.go
export GOFLAGS=-mod=mod GOTOOLCHAIN=local GOCACHE=/workspace/cache
go build -o m . && ./m 2>&1"""
    assert sh(who, script, timeout=115) == "42\n"


def test_chromium_headless(who):
    needs("chromium")
    script = "chromium --headless --no-sandbox --disable-gpu --dump-dom 'data:text/html,<p>shown</p>' 2>/dev/null"
    more = ["--host-path", "/etc/chromium.d"] if pathlib.Path("/etc/chromium.d").exists() else []  # Debian's script reads it
    assert "<p>shown</p>" in sh(who, script, *more)

"""What another account of the machine tries at somebody's `silica up`: its files and sockets, its processes, its ports.

The attempts are in harness/account_attempts.py, which runs as any account and prints what each got. As another account none gets
anything; as root, who may, each does: so no attempt fails because it asks for nothing."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

from harness import proc
from harness.owner import keeper_of
from harness.server import TREE, wait_until
from lib import security_report, up as ups

pytestmark = pytest.mark.ours
OTHER = 64321  # an account that has nothing here
SCRIPT = TREE / "tests" / "harness" / "account_attempts.py"
ATTEMPTS_MIN = 100
SOCKET_PATH_MAX = 108
LACKS = ["ENOSYS", "ENOENT"]  # what root is answered where this kernel has nothing of the kind


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param, "--router-workers=1") as started:
        started.who = request.param
        yield started


def attempts(up, uid, what):
    argv = [*(ups.as_user(uid) if uid else []), sys.executable, "-"]
    with open(SCRIPT, "rb") as script:
        done = subprocess.run([*argv, json.dumps(what)], stdin=script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, cwd="/")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def is_pid_1(pid):
    """Of a sandbox: 1 in a namespace of its own."""
    return re.search(r"^NSpid:\t\d+\t1$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)


def below(pid):
    return [p for c in proc.children(pid) for p in [c, *below(c)]]


def first_of(paths, number):
    """A few of them, of different names."""
    return [str(p) for p in {p.name: p for p in sorted(paths)}.values()][:number]


def test_another_account_gets_nothing(up):
    """The same attempts with the same code: the account's answers beside root's."""
    up.wait_warm()
    found = [p for p in up.data.rglob("*") if "volumes" not in p.parts]
    keeper = keeper_of(next(p for p in found if p.name == "engine.sock").parent)
    inside = wait_until(lambda: [p for p in below(keeper) if is_pid_1(p)], 60)[0]
    what = {"data": str(up.data), "pids": {"node": up.pid("node"), "inside": inside},
            "files": first_of((p for p in found if p.is_file()), 14), "sockets": first_of((p for p in found if p.is_socket() and len(str(p)) < SOCKET_PATH_MAX), 8)}
    allowed, got = attempts(up, 0, what), attempts(up, OTHER, what)
    assert set(got) == set(allowed)
    assert {n: v for n, v in got.items() if v == "ok"} == {}
    absent = sorted(n for n, v in allowed.items() if v in LACKS)
    assert {n: v for n, v in allowed.items() if v != "ok" and n not in absent} == {}
    tried = sorted(set(got) - set(absent))
    assert len(tried) >= ATTEMPTS_MIN
    security_report.record("accounts", {"distinct": len(got), "tried": len(tried), "blocked": len(tried), "absent": absent, "attempts": tried})

"""Code inside the sandbox runs as the same user as the server, and must not get at its token, memory or descriptors."""

import os
import pwd
import shutil
import subprocess
import sys

import pytest
import requests

from harness.server import Silica, binary, wait_until

pytestmark = pytest.mark.ours
TOKEN = "s3cr3t-token-that-nobody-may-see"
PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """As an ordinary user: root's capabilities would open every door these tests knock on."""
    as_user = []
    program = binary()
    if os.getuid() == 0:
        pwd.getpwnam("nobody")
        as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
        copy = tmp_path_factory.mktemp("bin", numbered=True)
        for part in [copy, *copy.parents]:
            if str(part) != "/tmp" and str(part).startswith("/tmp"):
                os.chmod(part, 0o755)
        program = str(shutil.copy(program, copy / "silica-runtime"))
        os.chmod(program, 0o755)

    class AsUser(Silica):
        def spawn(self, argv, env, pass_fds=()):
            os.chmod(self.dir, 0o755)
            os.chmod(self.root, 0o777)
            super().spawn([*as_user, *argv], env, pass_fds)

    s = AsUser(token=TOKEN, program=program)
    yield s
    s.stop()
    s.remove()


def inside(server, command):
    answer = requests.post(server.url + "/exec", json={"command": command, "timeout_seconds": 20}, headers={"X-Sandbox-Token": TOKEN}, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("path", ["/", "/health", "/v1/health"])
def test_health_needs_no_token(guarded, path):
    assert requests.get(guarded.url + path).status_code == 200


@pytest.mark.parametrize("method, path", [
    ("POST", "/execute"), ("POST", "/upload"), ("GET", "/download/x"), ("GET", "/list/"), ("GET", "/exists/x"), ("GET", "/nope"),
    ("POST", "/exec"), ("POST", "/read"), ("POST", "/write"), ("POST", "/edit"), ("POST", "/ls"), ("POST", "/glob"), ("POST", "/grep"),
    ("GET", "/v1/files/"), ("PUT", "/v1/files/x"), ("DELETE", "/v1/files/x"), ("GET", "/v1/metadata"), ("POST", "/"), ("POST", "/health"),
])
def test_every_other_route_needs_it(guarded, method, path):
    for headers in [{}, {"X-Sandbox-Token": "wrong"}, {"X-Sandbox-Token": TOKEN[:-1]}, {"Authorization": "Bearer wrong"},
                    {"Authorization": "Basic " + TOKEN}, {"X-Sandbox-Token": TOKEN + "x"}]:
        answer = requests.request(method, guarded.url + path, headers=headers)
        assert answer.status_code == 401, (headers, answer.text)
    assert requests.request(method, guarded.url + path, headers={"X-Sandbox-Token": TOKEN}).status_code != 401
    assert requests.request(method, guarded.url + path, headers={"Authorization": "Bearer " + TOKEN}).status_code != 401


def test_the_401_body(guarded):
    assert requests.post(guarded.url + "/exec").json() == {"detail": "Unauthorized"}
    assert requests.get(guarded.url + "/v1/files/").json()["code"] == "UNAUTHENTICATED"


def test_commands_do_not_inherit_it(guarded):
    assert TOKEN not in inside(guarded, "env; cat /proc/self/environ")["output"]
    assert "SANDBOX_EXEC_TOKEN" not in inside(guarded, "env")["output"]


@pytest.mark.parametrize("what", ["environ", "mem", "fd", "maps", "exe", "root", "cwd"])
def test_the_servers_proc_entries_are_closed(guarded, what):
    look = "ls" if what == "fd" else "readlink -v" if what in ("exe", "root", "cwd") else "head -c 4000000"
    got = inside(guarded, f"{look} /proc/{guarded.pid}/{what}")
    assert got["exit_code"] != 0
    assert TOKEN not in got["output"]
    assert "denied" in got["output"].lower() or "not permitted" in got["output"].lower()


def test_the_command_line_does_not_show_it(start_runtime):
    server = start_runtime("--token", TOKEN)
    assert TOKEN.encode() not in open(f"/proc/{server.pid}/cmdline", "rb").read()
    if os.geteuid() == 0:
        assert TOKEN.encode() not in open(f"/proc/{server.pid}/environ", "rb").read()
    else:
        with pytest.raises(PermissionError):
            open(f"/proc/{server.pid}/environ", "rb")
    assert requests.get(server.url + "/list/", headers={"X-Sandbox-Token": TOKEN}).status_code == 200


ATTACK = r"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
def call(name, got):
    print(name, "refused" if got < 0 else "ALLOWED", ctypes.get_errno())
call("ptrace", libc.ptrace(16, pid, 0, 0))                    # PTRACE_ATTACH
call("seize", libc.ptrace(0x4206, pid, 0, 0))                 # PTRACE_SEIZE
fd = libc.syscall(434, pid, 0)                                # pidfd_open
for n in range(12):
    if libc.syscall(438, fd, n, 0) >= 0:                      # pidfd_getfd
        print("pidfd_getfd ALLOWED", n)
print("pidfd_getfd refused")
buf = ctypes.create_string_buffer(64)
class iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
here, there = iovec(ctypes.addressof(buf), 64), iovec(0x400000, 64)
call("process_vm_readv", libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
"""


def test_it_cannot_be_traced_or_robbed_of_descriptors(guarded):
    (guarded.root / "attack.py").write_text(ATTACK)
    got = inside(guarded, f"{PYTHON} attack.py {guarded.pid}")
    assert got["exit_code"] == 0, got["output"]
    assert "ALLOWED" not in got["output"]
    for name in ["ptrace", "seize", "pidfd_getfd", "process_vm_readv"]:
        assert f"{name} refused" in got["output"]


def test_the_log_never_shows_it(guarded):
    requests.post(guarded.url + "/exec", headers={"X-Sandbox-Token": TOKEN + "-wrong"})
    assert TOKEN not in guarded.log


def test_a_token_file(start_runtime, tmp_path):
    (tmp_path / "token").write_text("from-a-file\n")
    server = start_runtime("--token-file", tmp_path / "token")
    assert requests.get(server.url + "/list/").status_code == 401
    assert requests.get(server.url + "/list/", headers={"X-Sandbox-Token": "from-a-file"}).status_code == 200

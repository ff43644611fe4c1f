"""Whose files the data directory's are: others can enter none of it, and no file in it was ever open to them."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

from harness.caller import NOBODY
from harness.server import wait_until
from lib import controlplane, up as ups

STRACE = ["strace", "-f", "-qq", "-yy", "-s", "300", "-e", "trace=open,openat,creat,mkdir,mkdirat,mknod,mknodat,bind,fchmod"]


@pytest.fixture(params=["root", "user"])
def account(request):
    """(what stands before a command, a directory of the account's)."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    public = tempfile.mkdtemp(prefix="silica-modes-")
    os.chmod(public, 0o755)
    shutil.copy2(ups.program(), f"{public}/silica")
    home = f"{public}/home"
    os.mkdir(home, 0o755)
    uid = 0 if request.param == "root" else NOBODY
    os.chown(home, uid, uid)
    yield ([] if uid == 0 else ups.as_user(uid)), home, f"{public}/silica"
    shutil.rmtree(public)


def apiserver(account, data, *options):
    """What it says when it does not start; it may not serve longer than that."""
    prefix, _, program = account
    done = subprocess.run(["timeout", "10", *prefix, program, "apiserver", "--data", data, "--listen", "127.0.0.1:0", *options],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.mark.parametrize("mode", [0o755, 0o711, 0o750, 0o705, 0o777, 0o1777, 0o704])
def test_a_data_directory_that_others_may_enter(account, mode):
    prefix, home, _ = account
    data = f"{home}/data"
    subprocess.run([*prefix, "mkdir", data], check=True)
    os.chmod(data, mode)
    code, said = apiserver(account, data)
    assert code == 125 and f"others can enter the data directory '{data}'" in said and f"chmod 700 '{data}'" in said
    assert os.listdir(data) == []


def test_a_link_to_such_a_directory(account):
    prefix, home, _ = account
    subprocess.run([*prefix, "sh", "-c", f"mkdir -m 755 {home}/there && ln -s there {home}/data"], check=True)
    code, said = apiserver(account, f"{home}/data")
    assert code == 125 and "others can enter" in said and os.listdir(f"{home}/there") == []


def test_a_data_directory_of_another_account(account):
    prefix, home, _ = account
    data = f"{home}/data"
    os.mkdir(data, 0o700)
    other = NOBODY - 1 if prefix else NOBODY
    os.chown(data, other, other)
    code, said = apiserver(account, data)
    assert code == 125 and data in said and ("belongs to user" in said or "ermission denied" in said)
    assert os.listdir(data) == []


def births(log, data):
    """(call, file, mode) of all that was made below data; a socket's file has the mode that the socket had when it was bound."""
    sockets, files, found = {}, set(), []
    for line in open(log):
        call = re.match(r"^\d+ +(\w+)\((.*)\) += \d+(?:<(.*)>)?$", line)
        if not call:
            continue
        name, args, file = call.groups()
        socket = (line.split()[0], args.split("<")[0])
        if name == "fchmod":
            sockets[socket] = int(args.rsplit(" ", 1)[1], 8)
        elif name == "bind" and "sun_path" in args:
            found.append((name, args, sockets.get(socket, 0o777)))
        elif name.startswith("mkdir") and data in args or "O_CREAT" in args and file.startswith(data) and file not in files:
            found.append((name, args, int(args.rsplit(" ", 1)[1], 8)))
        files.add(file)  # one that was opened before is not made
    return found


def seen(data):
    """Names below data whose mode lets others in."""
    return [f"{at[len(data):]}/{name} {os.lstat(f'{at}/{name}').st_mode & 0o777:o}" for at, dirs, files in os.walk(data) for name in dirs + files
            if not os.path.islink(f"{at}/{name}") and os.lstat(f"{at}/{name}").st_mode & 0o077]


def test_every_file_is_born_its_owners(account):
    """With a umask of 0, which takes nothing away: what the files are asked to be is what they are."""
    prefix, home, program = account
    data, log = f"{home}/data", f"{home}/trace"
    reader, writer = os.pipe()
    env = {**os.environ, "SILICA_TEST": "1"}
    p = subprocess.Popen([*prefix, "sh", "-c", 'umask 0; exec "$@"', "sh", *STRACE, "-o", log, program, "apiserver", "--data", data,
                          "--listen", "127.0.0.1:0", "--pod-backend", "local-exec", "--ready-fd", str(writer)],
                         stdin=subprocess.DEVNULL, pass_fds=[writer], env=env, preexec_fn=controlplane.die_with_parent)
    os.close(writer)
    with os.fdopen(reader) as ready:
        assert ready.readline()
    served = int(pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()[0])
    wait_until(lambda: os.path.exists(f"{data}/store.db-wal"), 30, "the store's log")
    assert seen(data) == []
    os.kill(served, signal.SIGTERM)
    p.wait(30)
    made = births(log, data)
    names = {"store.db", "lock", "reserve", "kubeconfig", "sa.key", "ca.key", "server.key"}
    assert {n for n in names if not any(n in args for _, args, _ in made)} == set(), made
    assert any(call == "bind" for call, _, _ in made)
    assert [(call, args, oct(mode)) for call, args, mode in made if mode & 0o077] == []


def test_a_link_of_the_owners_is_followed(account):
    prefix, home, program = account
    subprocess.run([*prefix, "sh", "-c", f"mkdir -m 700 {home}/there && ln -s there {home}/data"], check=True)
    with controlplane.Silica(data=f"{home}/data", wrap=prefix, program=program) as api:
        assert api.exists("/api/v1/namespaces") and seen(f"{home}/there") == [] and "store.db" in os.listdir(f"{home}/there")


def test_files_of_an_older_release_are_closed(account):
    prefix, home, program = account
    data = f"{home}/data"
    with controlplane.Silica(data=data, wrap=prefix, program=program) as api:
        api.kill()
        for name in ("store.db", "store.db-wal", "store.db-shm"):
            os.chmod(f"{data}/{name}", 0o644)
        api.start()
        assert seen(data) == [] and api.exists("/api/v1/namespaces")


def test_all_of_silica_up(account, monkeypatch):
    """The supervisor, its parts, the keeper and a sandbox; then the owner's own kubeconfig, beside what a write cut short left."""
    prefix, home, program = account
    monkeypatch.setenv("SILICA", program)
    old = os.umask(0)
    try:
        with ups.Up(data=f"{home}/data", prefix=prefix, env={"HOME": home}) as up:
            os.umask(old)
            up.wait_warm()
            assert seen_up(f"{home}/data") == []
            subprocess.run([*prefix, "sh", "-c", f"umask 022; mkdir {home}/.kube; echo old >{home}/.kube/config.new"], check=True)
            up.run("kubeconfig", "--merge")
            assert os.listdir(f"{home}/.kube") == ["config"] and seen(f"{home}/.kube") == []
    finally:
        os.umask(old)


def seen_up(data):
    """What a container sees keeps the modes that it asks for; the directories above it are closed."""
    return [row for row in seen(data) if not row.startswith(("/claims/", "/pods/"))]

"""Long-lived sandboxes: silica run -d and --keep, ps, rm; that they outlive their makers and end without a trace."""

import os
import signal

import pytest

from harness.caller import caller_or_skip
from harness.owner import Owner, alive, groups_of
from harness.server import wait_until

pytestmark = [pytest.mark.ours, pytest.mark.core]


@pytest.fixture(scope="module", params=["root", "user"])
def who(request):
    owner = caller_or_skip(request.param, Owner)
    yield owner
    owner.ok("rm", "-f", "--all")
    owner.remove()


# ---- in the background ----


def test_a_command_in_the_background(who):
    name = who.up(script="echo out; echo err >&2; exec sleep 4720")
    row = who.list()[name]
    assert (row["status"], row["kept"]) == ("running", False) and alive(row["pid"])
    wait_until(lambda: who.log(name) == b"out\nerr\n", what="its output")
    lines = (who.of(name) / "log").read_text().splitlines()
    assert [line.split(" ", 3)[1:3] for line in lines] == [["stdout", "F"], ["stderr", "F"]]
    who.ok("rm", "-f", name)
    assert name not in who.list() and not alive(row["pid"]) and not who.of(name).exists()
    assert groups_of(name) == []


def test_it_goes_when_its_command_ends(who):
    name = who.up(script="read x < /dev/null; sleep 0.2")
    wait_until(lambda: name not in who.list(), what="it is gone")
    wait_until(lambda: not who.of(name).exists() and groups_of(name) == [], what="nothing is left")


def test_a_command_that_is_not_there(who):
    done = who.call("run", "-d", "--", "no-such-program")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr.startswith("silica: cannot run 'no-such-program': not found in the sandbox\n")
    assert who.call("run", "-d", "--keep", "--", "/etc/passwd").returncode == 126
    wait_until(lambda: who.list() == {}, what="nothing stays")


# ---- kept ----


def test_a_sandbox_that_stays(who):
    done = who.call("run", "--keep", "--name", "kept", "--", "sh", "-c", "echo one > /workspace/x; echo out; exit 3")
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert done.stderr == "silica: sandbox 'kept' stays; `silica rm -f kept` removes it\n"
    row = who.list()["kept"]
    assert (row["status"], row["kept"]) == ("running", True) and alive(row["pid"])
    done = who.call("rm", "kept")
    assert (done.returncode, done.stderr) == (1, "silica: sandbox 'kept' is running\nhint: silica rm -f kept kills it\n")
    assert who.call("run", "--keep", "--name", "kept", "--", "true").stderr.startswith(
        "silica: cannot make the sandbox: there is a sandbox 'kept' already")
    who.ok("rm", "-f", "kept")
    assert who.list() == {} and not alive(row["pid"])


def test_what_is_kept_outlives_its_command(who):
    name = who.up("--keep", script="echo once; exit 5")
    wait_until(lambda: who.list()[name].get("exit_code") == 5, what="its command's end")
    row = who.list()[name]
    assert row["status"] == "running" and alive(row["pid"])
    assert who.log(name) == b"once\n"
    os.kill(row["pid"], signal.SIGKILL)
    wait_until(lambda: who.list()[name]["status"] == "exited", what="its end")
    assert who.list()[name]["exit_code"] == 5
    who.ok("rm", name)


def test_the_keepers_clock(who):
    name = who.up("--keep", "--timeout", "300ms", script="trap '' TERM; sleep 4720 & sleep 4720")
    wait_until(lambda: who.list()[name]["status"] == "exited", what="its end")
    row = who.list()[name]
    assert (row["exit_code"], row["timed_out"]) == (124, True)
    who.ok("rm", name)


def test_the_keeper_ends_with_its_last_sandbox(who):
    name = who.up()
    keeper, spawner = who.keeper(), who.spawner()
    who.ok("rm", "-f", name)
    wait_until(lambda: not alive(keeper) and not alive(spawner), 20, "they end")
    assert sorted(p.name for p in who.data.iterdir()) == ["keeper.lock", "keeper.log", "sandboxes"]


def test_what_an_idle_sandbox_costs_its_keeper(who):
    """No task, and two descriptors for the output of a command, none without one."""
    first = who.up()
    keeper = who.keeper()
    names = [who.up() for _ in range(3)]
    for i in range(3):
        who.call("run", "--keep", "--name", f"idle-{i}", "--", "true")
    own = {"anon_inode:[eventpoll]", "anon_inode:[signalfd]", "anon_inode:[eventfd]", "anon_inode:[pidfd]"}

    def held():
        links = [os.readlink(f"/proc/{keeper}/fd/{n}") for n in os.listdir(f"/proc/{keeper}/fd")]
        return [x for x in links if x not in own and not x.startswith(("/", "user:"))]  # files are of the keeper itself

    wait_until(lambda: len([x for x in held() if x.startswith("pipe:")]) == 2 * 4, what="two pipes for each command")
    wait_until(lambda: len([x for x in held() if x.startswith("socket:")]) == 2, what="a listener and the spawner")
    assert os.listdir(f"/proc/{keeper}/task") == [str(keeper)]
    for row in who.list().values():
        wait_until(lambda: len(os.listdir(f"/proc/{row['pid']}/task")) == 1, what="PID 1 has one thread")
    who.ok("rm", "-f", first, *names, *(f"idle-{i}" for i in range(3)))


# ---- joined ----

SERVE = """python3 -c "
import socket
s = socket.create_server(('127.0.0.1', 8000))
open('/workspace/mine', 'w').write('x')
print('up', flush=True)
while True: s.accept()[0].sendall(b'hello')
" """
ASK = """python3 -c "
import os, socket
print(socket.create_connection(('127.0.0.1', 8000)).recv(5).decode())
print(len([p for p in os.listdir('/proc') if p.isdigit()]), os.path.exists('/workspace/mine'), socket.gethostname())
" """


def spaces(pid):
    return {n: os.readlink(f"/proc/{pid}/ns/{n}") for n in ("user", "net", "ipc", "uts", "mnt", "pid", "cgroup")}


def test_containers_of_one_pod(who):
    """They meet on 127.0.0.1 and by name, and see neither each other's processes nor files; each ends alone."""
    first = who.up(script=SERVE)
    wait_until(lambda: who.log(first) == b"up\n", what="it listens")
    second = who.up("--keep", "--join", first, script=ASK)
    wait_until(lambda: who.list()[second].get("exit_code") == 0, what="its end")
    assert who.log(second) == f"hello\n3 False {first}\n".encode()
    if os.geteuid() == 0:
        a, b = (spaces(who.list()[n]["pid"]) for n in (first, second))
        assert {n for n in a if a[n] == b[n]} == {"user", "net", "ipc", "uts"}
    who.ok("rm", "-f", first)
    assert who.list()[second]["status"] == "running"
    third = who.up("--keep", "--join", second, script="id -u; touch /workspace/x && hostname")  # the ids are the first's still
    wait_until(lambda: who.log(third) == f"1000\n{first}\n".encode(), what="the third")
    who.ok("rm", "-f", second, third)


def test_nobody_to_join(who):
    done = who.call("run", "-d", "--name", "alone", "--join", "nobody", "--", "true")
    assert (done.returncode, done.stderr) == (
        125, "silica: cannot make the sandbox: sandbox 'alone': there is no sandbox 'nobody' to join\n")
    assert who.list() == {} and not who.of("alone").exists()


@pytest.mark.parametrize("args, text", [
    (["run", "--join", "x", "--", "true"], "--join: only with -d or --keep"),
    (["ps", "x"], "unexpected argument 'x'"),
    (["ps", "-o", "xml"], "--output: 'xml' is neither 'text' nor 'json'"),
    (["rm"], "no sandbox is named"),
    (["rm", "--all", "x"], "--all takes no names"),
    (["run", "-d", "-t", "--", "true"], "--tty: there is no terminal in the background"),
    (["run", "-d", "--name", "../x", "--", "true"], "--name: '../x' cannot be the name of a sandbox"),
    (["run", "--name", ".x", "--", "true"], "--name: '.x' cannot be the name of a sandbox"),
])
def test_bad_usage(who, args, text):
    done = who.call(*args)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[0]) == (2, "", f"silica: {text}")


def test_no_such_sandbox(who):
    done = who.call("rm", "nobody")
    assert (done.returncode, done.stderr) == (1, "silica: there is no sandbox 'nobody'\nhint: silica ps -a lists them\n")

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


@pytest.mark.parametrize("args, text", [
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

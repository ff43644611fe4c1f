"""Accounts with a range of ids in /etc/subuid: `silica run --range`, what it leaves behind, and ranges that cannot be had."""

import json
import os
import pathlib
import random
import subprocess
import time

import pytest

from harness.caller import RANGE, RANGED, Accounts, caller_or_skip
from harness.owner import Owner, alive
from harness.server import wait_until

pytestmark = [pytest.mark.ours, pytest.mark.core]


@pytest.fixture(scope="module")
def who():
    c = caller_or_skip("ranged", Owner)
    yield c
    c.remove()


@pytest.fixture
def volume(who):
    """A directory of the account's that every id may write into, and a file of its own in it."""
    path = who.home / "volume"
    path.mkdir()
    (path / "mine").write_text("mine\n")
    (path / "mine").chmod(0o600)
    for p in (path, path / "mine"):
        os.chown(p, RANGED, RANGED)
    path.chmod(0o777)
    yield path
    subprocess.run(["rm", "-rf", path], check=True)


def test_without_it_the_command_is_the_account(who, volume):
    """As on a machine without a range: whatever --user says, what it makes in a volume is the caller's."""
    for user in ("0", "1000", "33:44"):
        out = who.ok("run", "--user", user, "-v", f"{volume}:/v", "--", "sh", "-c", "id -u; cat /v/mine; touch /v/new; wc -l </proc/self/uid_map")
        assert out == f"{user.partition(':')[0]}\nmine\n1\n"
        made = (volume / "new").stat()
        assert (made.st_uid, made.st_gid) == (RANGED, RANGED)
        (volume / "new").unlink()


@pytest.mark.parametrize("life", [[], ["--keep"]], ids=["run", "kept"])
def test_any_id_of_the_range(who, volume, life):
    show = "id -u; id -g; id -G; awk '{print $1, $3}' /proc/self/uid_map; stat -c %u:%g / /workspace /v/mine; cat /v/mine 2>&1; touch /v/new"
    for user, uid, gid in (("1000", 1000, 1000), ("33:44", 33, 44), ("65535", 65535, 65535)):
        out = who.ok("run", *life, "--range", "--user", user, "-v", f"{volume}:/v", "--", "sh", "-c", show)
        assert out == f"{uid}\n{gid}\n{gid}\n0 1\n1 65535\n0:0\n{uid}:{gid}\n0:0\ncat: /v/mine: Permission denied\n"
        made = (volume / "new").stat()
        assert (made.st_uid, made.st_gid) == (RANGE + uid - 1, RANGE + gid - 1)
        # The account may take it away by who made it: ids stay what they are from one sandbox to the next.
        who.ok("run", *life, "--range", "--user", user, "-v", f"{volume}:/v", "--", "rm", "/v/new")
    out = who.ok("run", *life, "--range", "--user", "0", "-v", f"{volume}:/v", "--", "sh", "-c", "id -u; cat /v/mine; touch /v/new")
    assert out == "0\nmine\n" and (volume / "new").stat().st_uid == RANGED
    who.ok("rm", "--force", "--all")


def test_verbs_of_a_sandbox_of_another_id(who, volume):
    """PID 1 and all inside are an id that the caller is not: it is reached, held, counted and killed all the same."""
    name = who.up("--range", "--user", "33", "-v", f"{volume}:/v", script="mkdir /v/deep; chmod 700 /v/deep; touch /v/deep/x; exec sleep 4720")
    pid = who.list()[name]["pid"]
    assert os.stat(f"/proc/{pid}").st_uid == RANGE + 32
    assert who.ok("exec", name, "--", "id", "-u") == "33\n"
    assert "33:33 and has no other" in who.call("exec", "-u", "0", name, "--", "true").stderr
    who.ok("pause", name)
    assert who.list()[name]["status"] == "paused"
    who.ok("resume", name)
    (row,) = json.loads(who.ok("stats", "-o", "json", name))
    assert row["pids"] >= 2
    (who.home / "in").write_text("in\n")
    who.ok("cp", who.home / "in", f"{name}:")
    assert who.ok("exec", name, "--", "cat", "in") == "in\n"
    assert who.ok("exec", name, "--", "stat", "-c", "%u", "in") == "33\n"
    keeper = who.keeper()
    os.kill(keeper, 9)
    wait_until(lambda: not alive(keeper), what="the keeper is dead")
    who.ok("doctor", "--clean")
    assert not alive(pid) and not list((who.data / "sandboxes").iterdir())
    assert who.call("run", "--", "true").returncode == 0
    who.ok("run", "--range", "--user", "33", "-v", f"{volume}:/v", "--", "rm", "-r", "/v/deep")
    assert not (volume / "deep").exists()


def processes_of(uids):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid in uids and alive(int(pid)):
                found.append(int(pid))
        except OSError:
            pass
    return found


def test_killed_anywhere(who):
    """Also while newuidmap is at work: nothing of the account's or of its range's is left."""
    ours = {RANGED, *range(RANGE, RANGE + 65536)}
    wait_until(lambda: processes_of(ours) == [], 20, "keepers of other tests end")
    mounts, chance = pathlib.Path("/proc/mounts").read_text(), random.Random(4711)
    for i in range(30):
        p = subprocess.Popen([*who.prefix, str(who.silica), "run", "--range", "--user", "33", "--", "sh", "-c", "setsid sleep 4721 & sleep 4721"],
                             env=who.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if i % 5 == 0:  # most are struck while they begin, some when they run
            wait_until(lambda: processes_of({RANGE + 32}), 20, "it runs")
        time.sleep(chance.uniform(0, 0.05))
        p.kill()
        p.wait(20)
    wait_until(lambda: processes_of(ours) == [], 20, "the sandboxes end")
    assert pathlib.Path("/proc/mounts").read_text() == mounts


def test_doctor_and_status_of_it(who):
    facts = {f["name"]: f for f in json.loads(who.ok("doctor", "-o", "json"))["facts"]}
    assert facts["range"]["verdict"] == "ok" and "--range" in facts["range"]["text"]
    assert facts["ids"]["text"].startswith("one: ")


BROKEN = {
    "none": ("other:1000000:65536", f"user {RANGED} has no 65536 ids in /etc/subuid and /etc/subgid", "usermod --add-subuids"),
    "small": ("ranged:1000000:65535", f"user {RANGED} has no 65536 ids", "usermod --add-subuids"),
    "past-the-end": ("ranged:4294950000:65536", f"user {RANGED} has no 65536 ids", "usermod --add-subuids"),
    "overlapping": ("ranged:60000:65536", "'newgidmap' refused the ids of this account", "/etc/subgid must be ids that are no account's"),
    "no-helper": (None, "cannot run 'newgidmap'", "uidmap"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_range_that_cannot_be_had(kind):
    """One id, as ever, and said; an error with what to do where a range is asked for."""
    line, text, hint = BROKEN[kind]
    who = caller_or_skip("ranged", Owner)
    try:
        subprocess.run(["rm", "-r", who.dir / "etc"], check=True)
        who.prefix = Accounts(who.dir, line).prefix()
        assert who.ok("run", "--user", "7", "--", "sh", "-c", "id -u; cat /proc/self/uid_map").split() == ["7", "7", str(RANGED), "1"]
        for life in ([], ["--keep"]):
            assert who.ok("run", *life, "--user", "7", "--", "id", "-u") == "7\n"
            done = who.call("run", *life, "--range", "--", "true")
            assert done.returncode == 125, done
            if not life or "has no" in text:
                assert text in done.stderr and hint in done.stderr, done.stderr
            else:  # the keeper looked when it began
                assert "the keeper has no range" in done.stderr, done.stderr
        facts = {f["name"]: f for f in json.loads(who.ok("doctor", "-o", "json"))["facts"]}
        assert facts["range"]["verdict"] == "lacks" and text in facts["range"]["text"] and hint in facts["range"]["hint"]
        assert facts["ids"]["verdict"] == "ok"
        who.ok("rm", "--force", "--all")
    finally:
        who.remove()

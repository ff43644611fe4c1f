"""What long-lived sandboxes survive and what ends them: killed keepers, spawners, callers and sandboxes, full disks, floods.

SILICA_KILLS is how many kills test_killed_anywhere makes; `make soak-isolate` asks for 200.
"""

import collections
import os
import pathlib
import random
import signal
import subprocess
import time
import uuid

import pytest

from harness import proc
from harness.caller import caller_or_skip
from harness.owner import Owner, alive, carrying, groups_of
from harness.server import wait_until

pytestmark = [pytest.mark.ours]
KILLS = int(os.environ.get("SILICA_KILLS", "30"))


@pytest.fixture(params=["root", "user"])
def who(request):
    owner = caller_or_skip(request.param, Owner)
    yield owner
    owner.ok("rm", "-f", "--all")
    owner.remove()


# ---- killed ----


def test_a_killed_spawner_is_replaced_and_nobody_notices(who):
    one = who.up()
    keeper, spawner = who.keeper(), who.spawner()
    os.kill(spawner, signal.SIGKILL)
    two = who.up()
    assert who.keeper() == keeper and who.spawner() != spawner
    assert {one, two} <= set(who.list()) and all(who.list()[n]["status"] == "running" for n in (one, two))


def test_sandboxes_end_with_their_keeper(who):
    gone, kept = who.up(), who.up("--keep")
    pids = [who.list()[n]["pid"] for n in (gone, kept)]
    os.kill(who.keeper(), signal.SIGKILL)
    wait_until(lambda: not any(map(alive, pids)), what="they end")
    rows = who.list()
    assert (rows[kept]["status"], rows[kept]["exit_code"]) == ("lost", 137)
    who.ok("doctor", "--clean")
    assert set(who.list()) == {kept} and who.list()[kept]["status"] == "lost"
    assert groups_of(gone) == groups_of(kept) == []
    three = who.up()  # a new keeper; what was lost stays lost
    assert {n: r["status"] for n, r in who.list().items()} == {kept: "lost", three: "running"}
    who.ok("rm", kept)


def test_a_new_keeper_clears_up(who):
    name = who.up()
    pid = who.list()[name]["pid"]
    os.kill(who.keeper(), signal.SIGKILL)
    other = who.up()
    assert set(who.list()) == {other} and not alive(pid) and groups_of(name) == []


def test_a_keeper_that_is_told_to_end(who):
    name, kept = who.up(), who.up("--keep")
    keeper = who.keeper()
    os.kill(keeper, signal.SIGTERM)
    wait_until(lambda: not alive(keeper), 20, "it ends")
    assert {n: r["status"] for n, r in who.list().items()} == {kept: "exited"}
    assert groups_of(name) == groups_of(kept) == []


def test_a_killed_caller_leaves_what_it_was_promised(who):
    """An attached command ends with its caller, the kept sandbox does not."""
    p = subprocess.Popen([*who.prefix, str(who.silica), "run", "--keep", "--name", "k", "--", "sh", "-c", "echo up; exec sleep 4731"],
                         env=who.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    assert p.stdout.readline() == b"up\n"
    p.kill()
    p.wait(20)
    assert who.list()["k"]["status"] == "running"


class Strike:
    """Something is going on; somebody is killed at some moment of it."""

    def __init__(self, who, mark, chance):
        self.who, self.mark, self.chance = who, mark, chance
        self.tag = f"x{uuid.uuid4().hex[:8]}"
        self.struck = collections.Counter()

    def start(self, *args):
        return subprocess.Popen([*self.who.prefix, str(self.who.silica), *args], env=self.who.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def victims(self, caller):
        """Whoever there is now."""
        found = {"caller": caller.pid}
        try:
            found["keeper"] = self.who.keeper()
            found["spawner"] = self.who.spawner()
            found.update({f"sandbox {n}": r["pid"] for n, r in self.who.list().items() if r["pid"]})
        except (OSError, IndexError):
            pass  # no keeper, or not any more
        return found

    def once(self, number):
        name = f"{self.tag}-{number}"
        args = self.chance.choice([["-d"], ["-d", "--keep"], ["--keep"]])
        p = self.start("run", *args, "--name", name, "--pids", "50", "-e", self.mark, "--", "sh", "-c",
                       "echo out; setsid sleep 4732 & sleep 4732" if "-d" in args else "setsid sleep 4732 & true")
        found = {"caller": p.pid}
        if self.chance.random() < 0.7:  # with a look around, which takes time; else right into the beginning
            found = self.victims(p)
        time.sleep(self.chance.uniform(0, 0.05))
        kinds = sorted({k.split()[0] for k in found})
        seldom = min(self.struck[k] for k in kinds)
        kind = self.chance.choice([k for k in kinds if self.struck[k] == seldom])
        self.struck[kind] += 1
        victim = self.chance.choice([pid for k, pid in sorted(found.items()) if k.split()[0] == kind])
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            pass
        p.wait(60)
        if self.chance.random() < 0.3:
            self.start("rm", "-f", name).wait(60)
        return kind


@pytest.mark.timeout(600)
def test_killed_anywhere(who):
    """Callers, spawners, keepers and sandboxes, each at another moment; afterwards nothing is left, and a neighbour with
    another keeper never noticed."""
    neighbour = Owner(who.name)
    beside = neighbour.up(script="while sleep 0.1; do echo tick; done")
    mark = f"MARK={uuid.uuid4()}"
    mounts = pathlib.Path("/proc/mounts").read_text()
    strike = Strike(who, mark, random.Random(4711))
    killed = [strike.once(i) for i in range(KILLS)]
    who.ok("rm", "-f", "--all")
    wait_until(lambda: carrying(mark) == [], 30, "the sandboxes end")

    def is_clean():
        who.ok("doctor", "--clean")
        return groups_of(strike.tag) == []

    wait_until(is_clean, 30, "no cgroups are left")
    assert pathlib.Path("/proc/mounts").read_text() == mounts
    assert who.list() == {} and list((who.data / "sandboxes").iterdir()) == []
    # A namespace lives as long as a process is in it or holds it: keeper and spawner are the last of those.
    wait_until(lambda: proc.with_argument(str(who.data)) == [], 30, "keepers and spawners end")
    wait_until(lambda: {p.name for p in who.data.iterdir()} == {"keeper.lock", "keeper.log", "sandboxes"}, 20, "files")
    ticks = len(neighbour.log(beside))
    wait_until(lambda: len(neighbour.log(beside)) > ticks, what="the neighbour goes on")
    neighbour.ok("rm", "-f", "--all")
    neighbour.remove()
    assert set(killed) == {"caller", "keeper", "spawner", "sandbox"}, killed


# ---- too much ----


def test_an_output_flood_is_bounded(who):
    name, calm = who.up(script="exec yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), who.up(script="while sleep 0.1; do echo tick; done")
    wait_until(lambda: (who.of(name) / "log.1").exists(), 60, "the log is full once")
    ticks = len(who.log(calm))
    wait_until(lambda: len(who.log(calm)) > ticks + 25, what="the neighbour is heard")
    time.sleep(1)
    sizes = [(who.of(name) / f).stat().st_size for f in ("log", "log.1")]
    assert all(size <= 8 << 20 for size in sizes)
    who.ok("rm", "-f", name)


def test_a_fork_bomb_in_a_kept_sandbox(who):
    calm = who.up(script="while sleep 0.1; do echo tick; done")
    name = who.up("--keep", "--pids", "60", script="f() { f | f & }; while :; do f; sleep 0.01; done 2>/dev/null")
    time.sleep(1)
    ticks = len(who.log(calm))
    wait_until(lambda: len(who.log(calm)) > ticks, what="the neighbour goes on")
    pid = who.list()[name]["pid"]
    who.ok("rm", "-f", name)
    assert not alive(pid) and groups_of(name) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_full_disk(who):
    """The data directory on a file system without room: a clear error, nothing half-made, and sandboxes that run go on."""
    uid = who.home.stat().st_uid
    who.data.mkdir(mode=0o700)
    os.chown(who.data, uid, uid)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=64k,mode=700,uid={uid}", "silica-test", who.data], check=True)
    try:
        name = who.up("--keep", script="while sleep 0.05; do echo tick; done")
        wait_until(lambda: len(who.log(name)) > 10, what="it runs")
        with open(who.data / "filler", "wb") as f, pytest.raises(OSError):
            while True:
                os.write(f.fileno(), b"x" * 4096)
        done = who.call("run", "-d", "--name", "late", "--", "sleep", "4733")
        assert done.returncode == 125 and "No space left on device" in done.stderr, done
        assert set(who.list()) == {name} and groups_of("late") == []
        assert alive(who.list()[name]["pid"])
        os.remove(who.data / "filler")
        ticks = len(who.log(name))
        wait_until(lambda: len(who.log(name)) > ticks, what="its log goes on")
        who.ok("rm", "-f", name)
        wait_until(lambda: not (who.data / "engine.sock").exists(), 20, "the keeper ends")
    finally:
        subprocess.run(["umount", "-l", who.data], check=True)


def test_a_directory_that_others_can_enter_is_refused(who):
    name = who.up()
    who.data.chmod(0o755)
    try:
        done = who.call("run", "-d", "--", "true")
        assert done.returncode == 125 and f"others can enter the data directory '{who.data}'" in done.stderr
    finally:
        who.data.chmod(0o700)
    who.ok("rm", "-f", name)

"""Sandboxes of root have ids of the host that no other sandbox of the machine has, whichever data directory or command they are of."""

import concurrent.futures
import os
import pathlib
import random
import signal
import subprocess
import textwrap

import pytest

from harness.caller import Caller, caller_or_skip
from harness.owner import Owner, alive, keeper_of
from harness.server import wait_until
from lib.machine import Machine, pod

pytestmark = pytest.mark.ours
SLOTS = 4095  # those that names have of their own
BASE, HIGH_BASE, STRIDE = 0x70000000, 0x80000000, 65537
OWNERS, EACH = 8, 30


def own_base(name):
    value = 2166136261
    for byte in name.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return BASE + value % SLOTS * STRIDE


def meeting(name):
    """Another name with the same range of its own."""
    return next(other for i in range(1000000) if own_base(other := f"meets-{i}") == own_base(name) and other != name)


def base_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/uid_map").read_text().split()[1])


@pytest.fixture
def owners():
    made = []

    def make(count):
        made.extend(caller_or_skip("root", Owner) for _ in range(count))
        return made

    yield make
    for owner in made:
        owner.call("rm", "-f", "--all")
        owner.remove()


def test_names_that_meet(owners):
    """In one data directory, in another, and of a command that keeps nothing."""
    one, two = owners(2)
    name = "first-of-a-range"
    other = meeting(name)
    third = meeting(other)
    for owner, box in ((one, name), (one, other), (two, name)):
        owner.ok("run", "-d", "--name", box, "--", "sleep", "4720")
    pids = [one.list()[name]["pid"], one.list()[other]["pid"], two.list()[name]["pid"]]
    done = two.run("--name", third, "--", "cat", "/proc/self/uid_map")
    bases = [*map(base_of, pids), int(done.stdout.split()[1])]
    assert len(set(bases)) == 4 and own_base(name) in bases, bases


def test_hundreds_of_many_data_directories(owners):
    made = owners(OWNERS)
    rng = random.Random(15)
    names = {owner: [f"s-{rng.getrandbits(64):x}" for _ in range(EACH)] for owner in made}
    assert len({own_base(name) for some in names.values() for name in some}) < OWNERS * EACH
    with concurrent.futures.ThreadPoolExecutor(OWNERS) as pool:
        list(pool.map(lambda o: [o.ok("run", "-d", "--name", name, "--", "sleep", "4720") for name in names[o]], made))
    bases = [base_of(row["pid"]) for owner in made for row in owner.list().values()]
    assert len(bases) == OWNERS * EACH
    assert len(set(bases)) == len(bases), f"{len(bases) - len(set(bases))} of {len(bases)} share a range"


def test_gone_with_its_holder(owners):
    """The next sandbox of the name has the same ids, also when a keeper was killed."""
    (owner,) = owners(1)
    name = "held-by-a-keeper"
    owner.ok("run", "-d", "--keep", "--name", name, "--", "sleep", "4720")
    pid = owner.list()[name]["pid"]
    assert base_of(pid) == own_base(name)
    os.kill(owner.spawner(), signal.SIGKILL)  # not its holder
    done = owner.run("--name", name, "--", "cat", "/proc/self/uid_map")
    assert int(done.stdout.split()[1]) != own_base(name)
    os.kill(keeper_of(owner.data), signal.SIGKILL)
    wait_until(lambda: not alive(pid), what="its end")
    done = owner.run("--name", name, "--", "cat", "/proc/self/uid_map")
    assert int(done.stdout.split()[1]) == own_base(name)


def test_a_volume_with_another_range(owners):
    """Ids on disk are ids inside, whichever ids of the host those are."""
    (owner,) = owners(1)
    name, volume = "has-a-volume", owner.home / "volume"
    volume.mkdir()
    os.chown(volume, 1000, 1000)
    volume.chmod(0o700)
    read = "cat /proc/self/uid_map; umask 077; cat /v/* 2>/dev/null; date +%s%N > /v/$(ls /v | wc -l); stat -c %u:%g /v/*"
    first = owner.run("--name", name, "-v", f"{volume}:/v", "--", "sh", "-c", read)
    assert int(first.stdout.split()[1]) == own_base(name) and "1000:1000" in first.stdout, first.stderr
    owner.ok("run", "-d", "--name", meeting(name), "--", "sleep", "4720")
    again = owner.run("--name", name, "-v", f"{volume}:/v", "--", "sh", "-c", read)
    assert int(again.stdout.split()[1]) != own_base(name), again.stderr
    assert (volume / "0").read_text() in again.stdout and again.stdout.count("1000:1000") == 2
    assert {(p.stat().st_uid, p.stat().st_mode & 0o777) for p in volume.iterdir()} == {(1000, 0o600)}


def test_a_container_that_starts_again_with_another_range():
    """What the first one left in the Pod's volumes, on disk and in memory, is the second one's to read and change."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    volumes = [{"name": "mem", "emptyDir": {"medium": "Memory"}}, {"name": "disk", "emptyDir": {}}]
    mounts = [{"name": v["name"], "mountPath": f"/{v['name']}"} for v in volumes]
    script = "umask 077; for v in mem disk; do date +%s%N >> /$v/said; done; while ! test -e /mem/end; do sleep 0.05; done; rm /mem/end"

    def inside(m, script):
        return m.kubectl("exec", "moves", "--", "sh", "-c", script)

    with Machine(who="root") as m:
        m.apply(pod("moves", command=["sh", "-c", script], volumes=volumes, volumeMounts=mounts))
        m.wait_ready("moves")
        look = "head -n1 /mem/said /disk/said; stat -c '%u %a' /mem/said /disk/said"
        base = int(inside(m, "cat /proc/self/uid_map").split()[1])
        before = inside(m, look)
        assert before.count("\n0 600\n0 600\n") == 1, before
        # A process that took no lock, as one of a release that had none: the range is not free for the next container.
        other = subprocess.Popen(["setpriv", f"--reuid={base + 1000}", f"--regid={base + 1000}", "--clear-groups", "sleep", "4720"])
        try:
            wait_until(lambda: os.stat(f"/proc/{other.pid}").st_uid == base + 1000, what="its ids")
            inside(m, "touch /mem/end")
            m.wait(lambda: m.status("moves")["containerStatuses"][0]["restartCount"] == 1, "it is started again")
            m.wait_ready("moves")
            assert int(inside(m, "cat /proc/self/uid_map").split()[1]) != base
        finally:
            other.kill()
            other.wait()
        m.wait(lambda: inside(m, "wc -l < /disk/said") == "2\n", "it has written")
        assert inside(m, look) == before


HOLD = textwrap.dedent("""
    import fcntl, os, struct, subprocess, sys
    os.makedirs("/run/silica", 0o700)
    fd = os.open("/run/silica/ids", os.O_RDWR | os.O_CREAT, 0o600)
    lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, int(sys.argv[1]), 0)
    fcntl.fcntl(fd, 37, lock)  # F_OFD_SETLK
    sys.exit(subprocess.run(sys.argv[2:]).returncode)
""")


class Alone(Caller):
    """With a /run of its own, in which somebody holds the first ranges."""

    def __init__(self, name, held):
        super().__init__(name)
        self.prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh",
                       "/usr/bin/python3", "-c", HOLD, str(held)]


def test_ranges_above_2_to_the_31():
    who = caller_or_skip("root", lambda name: Alone(name, SLOTS))
    volume = who.home / "volume"
    volume.mkdir(mode=0o777)
    os.chown(volume, 1000, 1000)
    script = ("cat /proc/self/uid_map && id -u && umask 077 && mkdir /v/d /tmp/d && echo said > /v/d/f && cat /v/d/f && mkfifo /tmp/p && stat -c %u /v/d/f /tmp/d"
              "; python3 -c 'import os, pty, socket; s = socket.socketpair(); "
              "print(s[0].getsockopt(1, 17, 12)[4:8] == (1000).to_bytes(4, \"little\")); print(os.fstat(pty.openpty()[1]).st_uid)'")
    done = who.run("-v", f"{volume}:/v", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert int(words[1]) >= HIGH_BASE and words[3:7] == ["1000", "said", "1000", "1000"], words
    assert words[-2:] == ["True", "1000"]
    assert (volume / "d/f").stat().st_uid == 1000
    who.remove()


def test_none_is_left():
    who = caller_or_skip("root", lambda name: Alone(name, 1 << 20))
    done = who.run("--", "true")
    assert done.returncode == 125
    assert "all 16383 ranges of ids for root's sandboxes are taken\nhint: remove sandboxes that are not needed any more\n" in done.stderr
    who.remove()


def test_a_file_that_others_could_lock():
    """Who could open it could keep root from having sandboxes."""
    who = caller_or_skip("root")
    script = 'mount -t tmpfs none /run && mkdir -m 777 /run/silica && exec "$@"'
    who.prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]
    done = who.run("--", "true")
    assert done.returncode == 125 and "'/run/silica' can be changed by other users" in done.stderr, done.stderr
    who.remove()
    assert subprocess.run(["stat", "-c", "%u %a", "/run/silica/ids"], capture_output=True, text=True).stdout in ("0 600\n", "")

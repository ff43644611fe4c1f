"""emptyDir with medium Memory: a tmpfs of its own that outlives containers and the node, and goes with the Pod; by root and by an account."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from lib.machine import Machine, pod

pytestmark = pytest.mark.ours
SLEEP = ["sleep", "4722"]
NEWNS = 0x00020000


@pytest.fixture(scope="module", params=["root", "user"])
def machine(request):
    if request.param == "user" and os.geteuid() != 0:
        pytest.skip("the first run is a user's already")
    with Machine(who=request.param) as m:
        yield m


def memory(name="mem", **more):
    return {"name": name, "emptyDir": {"medium": "Memory", **more}}


def at(path, name="mem", **more):
    return {"name": name, "mountPath": path, **more}


def inside(m, name, script, container="main"):
    return m.kubectl("exec", name, "-c", container, "--", "sh", "-c", script)


def holder(pid):
    """The descriptor of a mount namespace that this process has without being in it, and which one it is."""
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(fd).startswith("mnt:["):
                return fd, os.readlink(fd)
        except FileNotFoundError:
            pass
    return None, None


def volumes(m):
    """The names of all volumes in memory that the keeper has."""
    if os.geteuid() != 0:
        pytest.skip("only root can look in there")
    there, _ = holder(m.keeper())
    if not there:
        return []
    look = "import ctypes, os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\nlibc = ctypes.CDLL(None, use_errno=True)\n" \
           f"assert libc.setns(fd, {NEWNS}) == 0, os.strerror(ctypes.get_errno())\nprint(*os.listdir('/'))"
    return subprocess.run([sys.executable, "-c", look, there], check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def nobody_has(namespace):
    """No process of the machine is in the namespace, or holds it."""
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(p / "ns/mnt") == namespace or holder(p.name)[1] == namespace:
                return False
        except OSError:
            pass
    return True


def test_shared_sized_and_gone(machine):
    m = machine
    two = pod("shared", command=SLEEP, volumes=[memory(sizeLimit="1Mi"), memory("free")],
              volumeMounts=[at("/mem"), at("/free", "free"), at("/sub", subPath="a/b"), at("/ro", readOnly=True)])
    two["spec"]["containers"].append({"name": "side", "image": "python:3.11", "command": SLEEP, "volumeMounts": [at("/there")]})
    m.apply(two)
    found = m.wait_ready("shared")
    assert inside(m, "shared", "stat -f -c %T /mem; stat -c %a /mem; df -B1 --output=size /mem | tail -1").split() == ["tmpfs", "777", str(1 << 20)]
    inside(m, "shared", "echo one > /mem/x; echo two > /sub/y; mkdir /mem/d")
    assert inside(m, "shared", "cat /there/x /there/a/b/y; echo three > /there/z", "side") == "one\ntwo\n"
    assert inside(m, "shared", "cat /mem/z /ro/x; ! touch /ro/q 2>/dev/null && stat -c %u /mem/x") == "three\none\n0\n"
    # Full is full, at its size, whoever fills it; without a size it is half of the machine's memory.
    assert "No space left" in inside(m, "shared", "head -c 2000000 /dev/zero 2>&1 > /mem/large | cat")
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") // 2
    assert abs(int(inside(m, "shared", "df -B1 --output=size /free | tail -1")) - half) <= 4096
    assert not [e for e in m.events("shared") if "Memory" in e[1]]
    uid = found["metadata"]["uid"]
    assert not (m.data / "pods" / uid / "volumes" / "mem").exists()  # nothing of it is on disk
    assert sorted(volumes(m)) == [f"{uid}.free", f"{uid}.mem"]
    m.delete("shared")
    assert not m.leftovers() and volumes(m) == []


def test_it_outlives_containers_and_the_node(machine):
    m = machine
    m.apply(pod("lasting", command=["sh", "-c", "echo start >> /mem/log; while ! test -e /mem/end; do sleep 0.05; done; rm /mem/end"],
                volumes=[memory(sizeLimit="1Mi")], volumeMounts=[at("/mem")]))
    m.wait_ready("lasting")
    m.node.kill()
    m.start_node()
    assert inside(m, "lasting", "cat /mem/log") == "start\n"
    inside(m, "lasting", "touch /mem/end")
    m.wait(lambda: m.status("lasting")["containerStatuses"][0]["restartCount"] == 1, "it is started again")
    m.wait_ready("lasting")
    m.wait(lambda: inside(m, "lasting", "cat /mem/log") == "start\nstart\n", "what the first one wrote")
    # Deleted while nobody looks: the next node finds that there was some.
    m.node.kill()
    m.kubectl("delete", "pod", "lasting", "--force", "--grace-period=0")
    m.start_node()
    m.wait(lambda: not m.leftovers() and volumes(m) == [], "nothing left")


def test_killed_at_any_moment(machine):
    m = machine
    for n in range(4):
        m.apply(*(pod(f"k{n}-{i}", command=SLEEP, volumes=[memory()], volumeMounts=[at("/mem")]) for i in range(3)))
        m.node.kill()
        if n:
            m.kubectl("delete", "pod", *(f"k{n - 1}-{i}" for i in range(3)), "--wait=false", "--grace-period=0", "--force")
        m.start_node()
    uids = [m.wait_ready(f"k3-{i}")["metadata"]["uid"] for i in range(3)]
    m.wait(lambda: sorted(volumes(m)) == sorted(f"{u}.mem" for u in uids), "no volume but these")
    m.kubectl("delete", "pods", "--all", "--wait=false", "--grace-period=1")
    m.wait(lambda: not m.leftovers() and volumes(m) == [], "nothing left")


def test_it_counts_as_memory_of_the_container(machine):
    """Of the one that writes. Where this host enforces no limit for this account, an Event said so."""
    m = machine
    fat = pod("fat", command=["sh", "-c", "exec head -c 100000000 /dev/zero > /mem/x"], restartPolicy="Never",
              volumes=[memory(sizeLimit="200Mi")], volumeMounts=[at("/mem")], resources={"limits": {"memory": "32Mi"}})
    fat["spec"]["containers"].append({"name": "side", "image": "python:3.11", "command": SLEEP, "resources": {"limits": {"memory": "200Mi"}}})
    m.apply(fat)
    ended = m.wait(lambda: next((c["state"].get("terminated") for c in m.status("fat").get("containerStatuses", []) if c["name"] == "main"), None),
                   "its end")
    is_enforced = "memory" not in dict(m.events("fat")).get("LimitsNotEnforced", "")
    assert ended["reason"] == ("OOMKilled" if is_enforced else "Completed")
    m.delete("fat")


def test_the_keeper_is_killed(machine):
    m = machine
    m.apply(pod("lost", command=SLEEP, volumes=[memory()], volumeMounts=[at("/mem")], restartPolicy="Never"))
    m.wait_ready("lost")
    _, namespace = holder(m.keeper())
    assert namespace and not nobody_has(namespace)
    os.kill(m.keeper(), signal.SIGKILL)
    m.wait_phase("lost", "Failed")
    m.wait(lambda: nobody_has(namespace), "it is gone with its keeper")
    m.delete("lost")
    m.wait(lambda: not m.leftovers() and volumes(m) == [], "nothing left")


def test_a_container_that_starts_again_after_its_keeper_was_killed(machine):
    m = machine
    m.apply(pod("back", command=SLEEP, volumes=[memory()], volumeMounts=[at("/mem")]))
    m.wait_ready("back")
    m.kubectl("exec", "back", "--", "touch", "/mem/x")
    os.kill(m.keeper(), signal.SIGKILL)
    m.wait(lambda: [row for row in m.status("back")["containerStatuses"] if row["restartCount"] == 1 and row["ready"]], "it is back")
    assert m.kubectl("exec", "back", "--", "ls", "/mem") == ""  # as on a machine that was switched off
    m.delete("back")
    m.wait(lambda: not m.leftovers() and volumes(m) == [], "nothing left")

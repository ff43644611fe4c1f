"""Volumes of Pods, while the sandboxes that have them do what they can: a claim is removed under a Pod that goes on swapping its
directories for links to the host's."""

import os
import subprocess

import pytest

from harness import caller
from harness.server import wait_until
from lib.machine import pod
from lib.up import as_caller

pytestmark = pytest.mark.ours
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
PODS = "/api/v1/namespaces/default/pods"
EXCHANGE = 2

# Directories that nobody can enter, so that their mode has to be changed before they are emptied, and links to `sys.argv[1]`, which
# change places without end.
SWAP = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.chdir("/data")
names = [(f"d{{i}}".encode(), f"l{{i}}".encode()) for i in range(40)]
for d, l in names:
    os.makedirs(d + b"/below", exist_ok=True)
    os.chmod(d, 0)
    os.symlink(sys.argv[1], l)
open("started", "w").close()
while True:
    for d, l in names:
        libc.renameat2(-100, d, -100, l, {EXCHANGE})
"""


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with as_caller(request.param) as started:
        started.who = request.param
        yield started


def claim(name, size="64Mi"):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}}


def with_claim(name, command, **spec):
    """A Pod with a claim of its own name at /data."""
    return pod(name, command=command, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}],
               volumeMounts=[{"name": "data", "mountPath": "/data"}], **spec)


def place(up, name):
    """The claim's directory, or None."""
    found = list((up.data / "claims" / "default").glob(f"{name}.*"))
    return found[0] if found else None


def start(up, name, command, **spec):
    up.api.call("POST", CLAIMS, claim(name))
    up.api.call("POST", PODS, with_claim(name, command, **spec))
    wait_until(lambda: place(up, name) and (place(up, name) / "started").exists(), 60, f"{name} has started")


def drop(up, name):
    """The claim goes as a tenant makes it go: its finalizer with it."""
    up.kubectl("delete", "pvc", name, "--wait=false")
    up.kubectl("patch", "pvc", name, "--type=merge", "-p", '{"metadata": {"finalizers": null}}', check=False)
    assert "not found" in up.kubectl("get", "pvc", name, check=False).stderr


@pytest.fixture
def prey(up, tmp_path_factory):
    """Directories of the daemon's own account, which it may change and a sandbox may not."""
    top = tmp_path_factory.mktemp("prey")
    top.chmod(0o755)
    (top / "dir").mkdir()
    (top / "dir" / "file").write_text("theirs")
    (top / "dir" / "file").chmod(0o640)
    (top / "dir").chmod(0o751)
    if up.who != "root":
        for path in (top, top / "dir", top / "dir" / "file"):
            os.chown(path, caller.NOBODY, caller.NOBODY)
    return top


def look(top):
    return [(str(p), s.st_mode, s.st_uid, s.st_gid) for p in (top, top / "dir", top / "dir" / "file") for s in [p.stat()]] + \
        [(top / "dir" / "file").read_text(), sorted(os.listdir(top / "dir"))]


def test_a_claim_that_is_mounted_is_not_removed(up, prey):
    """And what its Pod has put into it leads nowhere when it is."""
    before = look(prey)
    start(up, "idle", ["sh", "-c", "touch /data/started"], restartPolicy="Never")
    up.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/idle", "--timeout=60s")
    start(up, "swapper", ["python3", "-c", SWAP, str(prey / "dir")])
    drop(up, "swapper")
    drop(up, "idle")  # nothing of its Pod runs: it goes, and the node has heard of the first by then
    wait_until(lambda: not place(up, "idle"), 60, "the idle claim's directory is gone")
    everything = sorted([*(f"{kind}{i}" for kind in "dl" for i in range(40)), "started"])
    assert (sorted(os.listdir(place(up, "swapper"))), look(prey)) == (everything, before), up.said()[-3000:]
    assert up.kubectl("exec", "swapper", "--", "ls", "/data/started") == "/data/started\n"
    up.kubectl("delete", "pod", "swapper", "--grace-period=0", "--force")
    wait_until(lambda: not place(up, "swapper"), 60, "the claim's directory is gone with its Pod")
    assert look(prey) == before
    up.kubectl("delete", "pod", "idle")


def test_it_stays_mounted_across_a_restart_of_the_node(up):
    start(up, "stayer", ["sh", "-c", "touch /data/started; exec sleep 4761"])
    drop(up, "stayer")
    up.wait_back("node", up.kill("node"))
    assert up.kubectl("exec", "stayer", "--", "ls", "/data/started") == "/data/started\n"
    assert place(up, "stayer")
    up.kubectl("delete", "pod", "stayer", "--grace-period=0", "--force")
    wait_until(lambda: not place(up, "stayer"), 60, "the claim's directory is gone with its Pod")


def test_a_removal_that_was_cut_short_is_taken_up_again(up):
    """Killed as soon as files are seen to go."""
    start(up, "many", ["python3", "-c", "import os\nfor i in range(30000): open(f'/data/{i}', 'w').close()\nopen('/data/started', 'w').close()"],
          restartPolicy="Never")
    up.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/many", "--timeout=60s")
    path = place(up, "many")
    up.kubectl("delete", "pod", "many")
    up.kubectl("delete", "pvc", "many", "--wait=false")
    wait_until(lambda: not path.exists() or len(os.listdir(path)) < 30001, 60, "files go")
    pid = up.kill("node")
    assert path.exists(), "it was over before the node was killed"
    up.wait_back("node", pid)
    wait_until(lambda: not path.exists(), 60, "the rest goes too")

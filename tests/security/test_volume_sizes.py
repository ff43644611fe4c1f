"""Volumes hold what their size says: a Pod that writes more is frozen and evicted, and what it was told is written is there. A disk
that is nearly full keeps room for the store: what writes most stands still until there is room again."""

import json
import os
import subprocess

import pytest

from harness.server import wait_until
from lib.machine import pod
from lib.up import as_caller

pytestmark = pytest.mark.ours
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
PODS = "/api/v1/namespaces/default/pods"
MIB = 1 << 20

# Blocks with their number, each told when it is written, `sys.argv[2]` MiB of them, with pauses of `sys.argv[3]` seconds.
WRITE = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
for i in range(int(sys.argv[2])):
    block = i.to_bytes(4, "little") * (1 << 18)
    while block:
        block = block[os.write(fd, block):]
    print(i, flush=True)
    time.sleep(float(sys.argv[3]))
print("done", flush=True)
time.sleep(4771)
"""
# Lines that are told when they are written.
QUIET = "import time\nwith open('/data/lines', 'a') as f:\n  for i in range(10**9):\n    f.write(f'{i}\\n'); f.flush(); print(i, flush=True); time.sleep(0.05)"


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with as_caller(request.param) as started:
        yield started


def claim(name, size):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}}


def start(up, name, program, *args, volume=None, **spec):
    """A Pod that runs python on a volume at /data: a claim of its own name, or what is given."""
    volume = volume or {"persistentVolumeClaim": {"claimName": name}}
    up.api.call("POST", PODS, pod(name, command=["python3", "-c", program, *map(str, args)], restartPolicy="Never",
                                  volumes=[{"name": "data", **volume}], volumeMounts=[{"name": "data", "mountPath": "/data"}], **spec))


def status(up, name):
    return up.api.call("GET", f"{PODS}/{name}")["status"]


def wait_evicted(up, name):
    wait_until(lambda: status(up, name).get("phase") == "Failed", 60, f"{name} is evicted")
    found = status(up, name)
    assert found["reason"] == "Evicted", found
    return found["message"]


def told(up, name):
    """What the Pod said it had written."""
    return [int(line) for line in up.kubectl("logs", name).splitlines() if line != "done"]


def file_of(up, name, file):
    (path,) = (up.data / "claims" / "default").glob(f"{name}.*")
    return path / file


def check_blocks(path, numbers):
    with open(path, "rb") as f:
        for i in numbers:
            assert f.read(MIB) == i.to_bytes(4, "little") * (1 << 18), f"block {i}"


def test_a_claim_is_held_to_its_size(up):
    up.api.call("POST", CLAIMS, claim("quiet", "64Mi"))
    start(up, "quiet", QUIET)
    up.kubectl("wait", "--for=condition=Ready", "pod/quiet", "--timeout=60s")
    up.api.call("POST", CLAIMS, claim("greedy", "64Mi"))
    start(up, "greedy", WRITE, "/data/file", 4096, 0)
    assert wait_evicted(up, "greedy") == 'Usage of PersistentVolumeClaim "greedy" exceeds its size "64Mi". '
    numbers = told(up, "greedy")
    assert numbers and max(numbers) < 4095  # it did not come to its end
    path = file_of(up, "greedy", "file")
    assert path.stat().st_size < 2048 * MIB
    check_blocks(path, numbers)
    shown = up.kubectl("describe", "pvc", "greedy")
    assert "VolumeSizeExceeded" in shown and "Pod greedy" in shown
    assert [p for p in up.status()["protections"] if p["name"] == "volumes" and "measured" in p["text"]]
    # The others and the store go on.
    up.kubectl("create", "configmap", "after", "--from-literal=a=b")
    before = len(told(up, "quiet"))
    wait_until(lambda: len(told(up, "quiet")) > before + 5, 30, "the neighbour goes on")
    lines = [int(line) for line in file_of(up, "quiet", "lines").read_text().splitlines()]
    assert lines[:before] == list(range(before)) and status(up, "quiet")["phase"] == "Running"


def test_it_may_shrink_and_not_grow(up):
    """The next Pods of a claim that holds too much."""
    up.api.call("POST", CLAIMS, claim("full", "32Mi"))
    start(up, "full", WRITE, "/data/file", 2048, 0)
    wait_evicted(up, "full")
    path = file_of(up, "full", "file")
    held = path.stat().st_size
    start(up, "grows", WRITE, "/data/file", 2048, 0.02, volume={"persistentVolumeClaim": {"claimName": "full"}})
    wait_evicted(up, "grows")
    assert path.stat().st_size < held + 256 * MIB
    start(up, "shrinks", "import os\nos.truncate('/data/file', 0)\n" + WRITE, "/data/file", 16, 0,
          volume={"persistentVolumeClaim": {"claimName": "full"}})
    wait_until(lambda: "done" in up.kubectl("logs", "shrinks", check=False).stdout, 60, "it is written anew")
    assert status(up, "shrinks")["phase"] == "Running"
    check_blocks(path, range(16))


def test_what_goes_with_the_pod_is_held_too(up):
    start(up, "scratch", WRITE, "/data/file", 4096, 0, volume={"emptyDir": {"sizeLimit": "32Mi"}})
    start(up, "total", WRITE, "/data/file", 4096, 0, volume={"emptyDir": {}}, resources={"limits": {"ephemeral-storage": "32Mi"}})
    assert wait_evicted(up, "scratch") == 'Usage of EmptyDir volume "data" exceeds the limit "32Mi". '
    assert wait_evicted(up, "total") == "Pod ephemeral local storage usage exceeds the total limit of containers 32Mi. "
    assert max(told(up, "scratch")) < 4095 and max(told(up, "total")) < 4095


def test_a_project_quota_says_no_space(tmp_path):
    """Where the kernel has them: the program hears of it, and nothing is evicted."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with open(tmp_path / "image", "wb") as f:
        f.truncate(1 << 30)
    (tmp_path / "place").mkdir()
    disk = ["-o", "loop,prjquota", str(tmp_path / "image")]
    if subprocess.run(["mkfs.ext4", "-q", "-O", "quota,project", tmp_path / "image"]).returncode != 0 or \
            subprocess.run(["mount", *disk, tmp_path / "place"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("this kernel has no project quotas")
    subprocess.run(["umount", tmp_path / "place"], check=True)
    with as_caller("root", "--disk-floor=64MiB", disk=disk) as up:
        up.api.call("POST", CLAIMS, claim("quota", "64Mi"))
        start(up, "quota", "import errno, time\ntry:\n  with open('/data/file', 'wb', 0) as f:\n    while f.write(bytes(1 << 16)): pass\n"
                           "except OSError as e: print(errno.errorcode[e.errno], flush=True)\ntime.sleep(4772)")
        wait_until(lambda: up.kubectl("logs", "quota", check=False).stdout, 60, "the write fails")
        assert up.kubectl("logs", "quota") == "ENOSPC\n"
        assert 60 * MIB < file_of(up, "quota", "file").stat().st_size <= 64 * MIB
        assert status(up, "quota")["phase"] == "Running"
        assert [p for p in up.status()["protections"] if p["name"] == "volumes" and "quotas of the file system, and" in p["text"]]


@pytest.mark.parametrize("who", ["root", "user"])
def test_a_disk_that_fills_keeps_room(who):
    with as_caller(who, "--disk-floor=256MiB", disk="768m") as up:
        filler = up.data.parent / "filler"
        with open(filler, "wb") as f:
            for _ in range(300):
                f.write(bytes(MIB))
        up.api.call("POST", CLAIMS, claim("quiet", "64Mi"))
        start(up, "quiet", QUIET)
        up.kubectl("wait", "--for=condition=Ready", "pod/quiet", "--timeout=60s")
        start(up, "fills", WRITE, "/data/file", 350, 0.005, volume={"emptyDir": {}})
        wait_until(lambda: "DiskPressure" in up.kubectl("describe", "pod", "fills"), 60, "it stands still")
        (path,) = (up.data / "pods").glob("*/volumes/data/file")
        stood = path.stat().st_size
        assert stood < 350 * MIB
        def is_said():
            done = up.run("status", "-o", "json", check=False)
            told = json.loads(done.stdout)
            return done.returncode == 4 and [row["kind"] for row in told["problems"]] == ["disk"] and [
                p for p in told["protections"] if p["name"] == "disk" and p["verdict"] == "lacks"]

        wait_until(is_said, 30, "status says so")
        # The store and the neighbour go on, and the node forgets nothing.
        up.kubectl("create", "configmap", "after", "--from-literal=a=b")
        before = len(told(up, "quiet"))
        wait_until(lambda: len(told(up, "quiet")) > before + 5, 30, "the neighbour goes on")
        assert path.stat().st_size == stood and status(up, "fills")["phase"] == "Running"
        up.wait_back("node", up.kill("node"))
        assert up.kubectl("exec", "quiet", "--", "echo", "here") == "here\n"
        assert path.stat().st_size == stood
        filler.unlink()
        wait_until(lambda: "done" in up.kubectl("logs", "fills", check=False).stdout, 60, "it goes on")
        check_blocks(path, range(350))

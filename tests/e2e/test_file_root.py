"""Which of a Pod's volumes and servers make /app and /workspace one directory (test_up_file_root.py says what for)."""

import os

import pytest

from harness.caller import RANGE, caller_or_skip
from lib.machine import Machine, pod

pytestmark = pytest.mark.ours
SERVER = "registry.example/agent-sandbox/python-runtime-sandbox:v1"


@pytest.fixture(scope="module", params=["root", "user", "ranged"])
def machine(request):
    caller_or_skip(request.param).remove()
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with Machine(who=request.param) as m:
        yield m


EMPTY = {"emptyDir": {}}
SHOW = """
import os
def same(a, b):
    try:
        x, y = os.stat(a), os.stat(b)
    except FileNotFoundError as e:
        return 'no ' + e.filename
    return 'one' if (x.st_dev, x.st_ino) == (y.st_dev, y.st_ino) else 'two'
def writes(path):
    try:
        open(path + '/probe', 'w').close()
        return 'written'
    except OSError as e:
        return os.strerror(e.errno)
print(same('/app', '/workspace'), same('/app/deep', '/workspace/deep'), writes('/app'), writes('/workspace'))
print(*[m.split()[4] for m in open('/proc/self/mountinfo') if m.split()[4].startswith(('/app', '/workspace'))])
"""


@pytest.mark.parametrize("case", [
    ("nothing", {}, "one no /app/deep written written"),
    ("a volume at /app", {"mounts": ["/app"]}, "one no /app/deep written written"),
    ("a volume at /workspace", {"mounts": ["/workspace/"]}, "one no /app/deep written written"),
    ("one volume at both", {"mounts": ["/app", "/workspace"], "names": "same"}, "one no /app/deep written written"),
    ("volumes at both", {"mounts": ["/app", "/workspace"]}, "two no /app/deep written written"),
    ("a volume in one of them", {"mounts": ["/app/deep"]}, "one one written written"),
    ("a volume in the other", {"mounts": ["/workspace/deep"]}, "one one written written"),
    ("a volume, and one in it", {"mounts": ["/workspace", "/app/deep"]}, "one one written written"),
    ("volumes in both", {"mounts": ["/workspace/deep", "/app/deep"]}, "one two written written"),
    ("read-only", {"mounts": ["/workspace"], "read_only": True}, "one no /app/deep Read-only file system Read-only file system"),
    ("a sealed root", {"spec": {"securityContext": {"readOnlyRootFilesystem": True}}}, "one no /app/deep written written"),
    ("another user", {"spec": {"securityContext": {"runAsUser": 1000}}}, "one no /app/deep written written"),
    ("another user's sealed root", {"spec": {"securityContext": {"runAsUser": 1000, "readOnlyRootFilesystem": True}}}, "one no /app/deep written written"),
    ("a base directory", {"spec": {"env": [{"name": "SANDBOX_BASE_DIR", "value": "/srv"}]}}, "two no /app/deep written written"),
    ("a blank base directory", {"spec": {"env": [{"name": "SANDBOX_BASE_DIR", "value": " \t"}]}}, "one no /app/deep written written"),
    ("a root by a variable", {"spec": {"env": [{"name": "SILICA_RUNTIME_ROOT", "value": "/workspace"}]}}, "two no /app/deep written written"),
    ("a root by an option", {"image": "registry.example/sandboxd:v1", "spec": {"args": ["--root=/workspace"]}}, "no /app no /app/deep No such file or directory written"),
    ("the other server", {"image": "registry.example/sandboxd:v1"}, "one no /app/deep written written"),
    ("no server", {"image": "debian:12", "spec": {"command": ["sleep", "4761"]}}, "no /app no /app/deep No such file or directory written"),
    ("no server of ours", {"spec": {"command": ["sleep", "4762"]}}, "two no /app/deep written written"),
], ids=lambda c: c[0].replace(" ", "-").replace("/", ""))
def test_which_volumes_and_servers(machine, case):
    m, (_, how, want) = machine, case
    places = how.get("mounts", [])
    names = ["same" if how.get("names") else f"v{i}" for i in range(len(places))]
    made = pod("box", image=how.get("image", SERVER), volumes=[{"name": n, **EMPTY} for n in dict.fromkeys(names)],
               volumeMounts=[{"name": n, "mountPath": p, "readOnly": how.get("read_only", False)} for n, p in zip(names, places)], **how.get("spec", {}))
    m.apply(made)
    m.wait_ready("box")
    said, mounts = (m.kubectl("exec", "box", "--", "python3", "-c", SHOW) + "\n").splitlines()[:2]
    assert said == want, mounts
    m.delete("box")


def test_ids_on_disk(machine):
    """What is written at one of the two is on the claim's disk as at the other."""
    m = machine
    m.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "files"},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
            pod("box", image=SERVER, volumes=[{"name": "files", "persistentVolumeClaim": {"claimName": "files"}}],
                volumeMounts=[{"name": "files", "mountPath": "/workspace"}], securityContext={"runAsUser": 33}))
    m.wait_ready("box")
    m.kubectl("exec", "box", "--", "sh", "-c", "pwd; echo x >/app/a; echo x >/workspace/b")
    (claim,) = (m.data / "claims" / "default").glob("files.*")
    owner = {(p.name, p.stat().st_uid) for p in claim.iterdir()}
    account = m.data.stat().st_uid
    uid = {0: 33}.get(account, RANGE + 32 if "unshare" in m.wrap else account)
    assert owner == {("a", uid), ("b", uid)}
    m.delete("box")
    m.kubectl("delete", "pvc", "files")

"""The node of an account with a range of ids: who a Pod says it is, it is; and what it leaves on disk is removed though it is
another's than the account's."""

import os
import shutil

import pytest

from harness.caller import RANGE, RANGED
from lib.machine import Machine, pod

pytestmark = pytest.mark.ours
FILES = "import os\nfor p in ('/data', '/data/deep', '/scratch', '/map/key', '/map/..data/key'):\n s = os.stat(p); print(p, f'{s.st_uid}:{s.st_gid} {s.st_mode & 0o7777:o}')"


@pytest.fixture(scope="module")
def machine():
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if not shutil.which("newuidmap"):
        pytest.skip("newuidmap is not installed")
    with Machine(who="ranged") as m:
        yield m


def claim(name):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def on_disk(m, name):
    (path,) = [p for p in (m.data / "claims" / "default").iterdir() if p.name.startswith(name + ".")]
    return path


def test_ids_and_groups_and_files(machine):
    m = machine
    m.apply(claim("kept"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"}, "data": {"key": "value"}})
    p = pod("many", command=["sh", "-c", "umask 077; mkdir -p /data/deep /scratch/deep; echo x >/data/deep/file; echo x >/scratch/deep/file; exec sleep 4730"],
            volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "kept"}}, {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
                     {"name": "map", "configMap": {"name": "map", "defaultMode": 0o400}}],
            volumeMounts=[{"name": "data", "mountPath": "/data"}, {"name": "scratch", "mountPath": "/scratch"}, {"name": "map", "mountPath": "/map"}],
            securityContext={"runAsUser": 1000, "runAsGroup": 1500})
    p["spec"]["securityContext"] = {"fsGroup": 2000, "supplementalGroups": [3000]}
    p["spec"]["containers"].append({"name": "side", "image": "python:3.11", "command": ["sleep", "4731"], "securityContext": {"runAsUser": 33},
                                    "volumeMounts": [{"name": "data", "mountPath": "/data"}]})
    m.apply(p)
    found = m.wait_ready("many")
    assert m.kubectl("exec", "many", "-c", "main", "--", "id", "-G").split() == ["1500", "2000", "3000"]
    assert m.kubectl("exec", "many", "-c", "main", "--", "id", "-u") == "1000\n"
    assert m.kubectl("exec", "many", "-c", "side", "--", "id", "-u") == "33\n"
    assert m.kubectl("exec", "many", "-c", "main", "--", "cat", "/map/key") == "value"
    seen = m.kubectl("exec", "many", "-c", "main", "--", "python3", "-c", FILES).splitlines()
    assert seen == ["/data 0:2000 2777", "/data/deep 1000:2000 2700", "/scratch 0:2000 2777", "/map/key 0:2000 440", "/map/..data/key 0:2000 440"]
    # They share the group's directory, and each its own files alone.
    assert m.kubectl("exec", "many", "-c", "side", "--", "sh", "-c", "touch /data/side && cat /data/deep/file 2>&1 || true").endswith("Permission denied\n")
    assert not [e for e in m.events("many") if e[0] == "IdsNotServed"]
    outside = {b: os.stat(f"/proc/{m.pid_of(b)}").st_uid for b in m.boxes_of(found)}
    assert sorted(outside.values()) == [RANGE + 32, RANGE + 999]
    path = on_disk(m, "kept")
    assert (path.stat().st_uid, path.stat().st_gid) == (RANGED, RANGE + 1999)
    assert (path / "deep" / "file").stat().st_uid == RANGE + 999

    m.delete("many")
    assert not m.leftovers()  # the emptyDir had a directory that the account may not look into
    # The next Pod of that id finds its files; another does not read them.
    for name, uid, says in (("again", 1000, "x\n"), ("other", 44, "cat: /data/deep/file: Permission denied\n")):
        p = pod(name, command=["sleep", "4732"], volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "kept"}}],
                volumeMounts=[{"name": "data", "mountPath": "/data"}], securityContext={"runAsUser": uid})
        m.apply(p)
        m.wait_ready(name)
        assert m.kubectl("exec", name, "--", "sh", "-c", "cat /data/deep/file 2>&1; true") == says
        m.delete(name)
    m.kubectl("delete", "pvc", "kept", "--wait=true")
    m.wait(lambda: not path.exists(), "the claim's directory is gone")


def test_a_token_is_the_users(machine):
    m = machine
    p = pod("token", command=["sleep", "4733"], securityContext={"runAsUser": 1000})
    p["spec"]["automountServiceAccountToken"] = True
    m.apply(p)
    m.wait_ready("token")
    place = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    assert m.kubectl("exec", "token", "--", "sh", "-c", f"stat -L -c '%u %a' {place}; test -s {place} && cat {place} >/dev/null && echo read") == "1000 600\nread\n"
    m.delete("token")
    assert not m.leftovers()


def test_who_says_nothing_is_the_account(machine):
    m = machine
    m.apply(pod("plain", command=["sleep", "4734"]))
    (box,) = m.boxes_of(m.wait_ready("plain"))
    assert m.kubectl("exec", "plain", "--", "id", "-u") == "0\n"
    assert os.stat(f"/proc/{m.pid_of(box)}").st_uid == RANGED
    m.delete("plain")


def test_what_is_kept_from_the_account_is_counted(machine):
    """A sizeLimit holds for directories that only the Pod's user may read."""
    m = machine

    def holding(name, size):
        return pod(name, command=["sh", "-c", f"umask 077; mkdir /scratch/deep; head -c {size} /dev/zero >/scratch/deep/file; exec sleep 4735"],
                   volumes=[{"name": "scratch", "emptyDir": {"sizeLimit": "4Mi"}}], volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}],
                   securityContext={"runAsUser": 1000}, restartPolicy="Never")

    m.apply(holding("small", "1M"))
    m.wait_ready("small")
    m.apply(holding("full", "8M"))
    assert m.wait_phase("full", "Failed")["status"]["reason"] == "Evicted"
    assert m.status("small")["phase"] == "Running"  # it was looked at before; what nobody can count is evicted too
    m.delete("full")
    m.delete("small")
    assert not m.leftovers()

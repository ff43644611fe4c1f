"""Set-user-ID files on the volumes of Pods: what others of the machine cannot reach may have the bit (dpkg and tar set it), and
where an operator opened the directories of volumes to others it may not."""

import os
import subprocess

import pytest

from harness.caller import caller_or_skip
from lib.machine import Machine, pod

pytestmark = pytest.mark.ours

TRY = """
import errno, os
os.umask(0)
for way in ('chmod', 'create'):
    for where in ('/data', '/scratch', '/tmp'):
        try:
            fd = os.open(f'{where}/{way}', os.O_CREAT | os.O_RDWR, 0o4755 if way == 'create' else 0o755)
            if way == 'chmod':
                os.fchmod(fd, 0o4755)
            said = oct(os.fstat(fd).st_mode & 0o7777)
        except OSError as e:
            said = errno.errorcode[e.errno]
        print(way, where, said)
"""


@pytest.fixture(params=["root", "user", "ranged"])
def machine(request):
    caller_or_skip(request.param).remove()
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with Machine(who=request.param) as m:
        yield m


def tried(m, name):
    m.apply(pod(name, command=["sleep", "4751"], volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "kept"}}, {"name": "scratch", "emptyDir": {}}],
                volumeMounts=[{"name": "data", "mountPath": "/data"}, {"name": "scratch", "mountPath": "/scratch"}]))
    m.wait_ready(name)
    lines = m.kubectl("exec", name, "--", "python3", "-c", TRY).splitlines()
    return {" ".join(line.split()[:2]): line.split()[2] for line in lines}


def with_bit(place):
    return sorted(p.name for p in place.rglob("*") if p.lstat().st_mode & 0o4000)


def test_on_volumes_of_pods(machine, tmp_path):
    m = machine
    m.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "kept"},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
    assert set(tried(m, "closed").values()) == {"0o4755"}
    m.directory.chmod(0o755)
    assert m.data.stat().st_mode & 0o777 == 0o700
    (claim,) = (m.data / "claims" / "default").iterdir()
    assert with_bit(claim) == ["chmod", "create"]
    stranger = ["setpriv", "--reuid=64321", "--regid=64321", "--clear-groups"]
    assert subprocess.run([*stranger, "test", "-e", m.data / "claims"]).returncode == 1
    # A program with the bit in a tree that is copied in by tar, which sets modes as they were.
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "su").write_text("x")
    (tmp_path / "tree" / "su").chmod(0o4755)
    m.kubectl("cp", tmp_path / "tree", "closed:/data/tree")
    assert m.kubectl("exec", "closed", "--", "stat", "-c", "%a", "/data/tree/su") == "4755\n"
    m.kubectl("exec", "closed", "--", "rm", "-r", "/data/tree", "/data/chmod", "/data/create")
    m.delete("closed")
    # Opened by its operator: whatever a new sandbox may write there, others may run.
    for path in (m.data, m.data / "claims", m.data / "claims" / "default"):
        path.chmod(0o755)
    assert set(tried(m, "opened").values()) == {"EPERM"}
    assert with_bit(claim) == []
    m.delete("opened")
    # One closed directory on the way is enough.
    (m.data / "claims").chmod(0o700)
    assert set(tried(m, "again").values()) == {"0o4755"}
    m.delete("again")

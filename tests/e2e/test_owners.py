"""Owners of files, as uid 0 of a sandbox: no sandbox has CAP_CHOWN, so programs that give files away (tar, cp -a, kubectl cp) are
told that it worked, and nothing has changed. What asks for the id that the process has, or for none, is the kernel's to answer."""

import io
import json
import os
import subprocess
import tarfile

import pytest

from harness.caller import caller_or_skip
from lib.machine import Machine, pod

pytestmark = [pytest.mark.ours, pytest.mark.core]
PYTHON = "/usr/bin/python3"

CALLS = """
import errno, json, os
os.chdir('/tmp')
fd = os.open('f', os.O_CREAT | os.O_RDWR)
os.symlink('f', 'l')
here = os.open('.', os.O_RDONLY)
ways = {'chown': lambda *ids: os.chown('f', *ids), 'fchown': lambda *ids: os.fchown(fd, *ids), 'lchown': lambda *ids: os.lchown('l', *ids),
        'fchownat': lambda *ids: os.chown('f', *ids, dir_fd=here), 'none': lambda *ids: os.chown('none', *ids),
        'none at': lambda *ids: os.chown('none', *ids, dir_fd=here, follow_symlinks=False)}
said = {}
for name, way in ways.items():
    for ids in ((1234, 5678), (1234, -1), (-1, 5678), (0, 5678), (1234, 0), (0, 0), (0, -1), (-1, 0), (-1, -1)):
        try:
            way(*ids)
            said[f'{name} {ids[0]} {ids[1]}'] = 'ok'
        except OSError as e:
            said[f'{name} {ids[0]} {ids[1]}'] = errno.errorcode[e.errno]
owners = [(os.lstat(p).st_uid, os.lstat(p).st_gid) for p in ('f', 'l')]
print(json.dumps([said, owners]))
"""


@pytest.fixture(scope="module", params=["root", "user", "ranged"])
def who(request):
    caller = caller_or_skip(request.param)
    yield caller
    caller.remove()


def options(who, user):
    return [*(["--range"] if who.name == "ranged" else []), "--user", user]


def calls(who, user):
    done = who.run(*options(who, user), "--", PYTHON, "-c", CALLS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def is_kernels(name):
    return not {"1234", "5678"} & set(name.split())


def test_as_uid_0_every_call_that_gives_away_succeeds_without_effect(who):
    said, owners = calls(who, "0")
    assert {n: v for n, v in said.items() if not is_kernels(n)} == {n: "ok" for n in said if not is_kernels(n)}
    # The kernel's answer, as a file that is not there shows.
    assert {v for n, v in said.items() if is_kernels(n) and not n.startswith("none")} == {"ok"}
    assert {v for n, v in said.items() if is_kernels(n) and n.startswith("none")} == {"ENOENT"}
    assert owners == [[0, 0], [0, 0]]


def test_another_uid_hears_what_the_kernel_says(who):
    said, owners = calls(who, "1000")
    assert not [n for n, v in said.items() if v == "ok" and not n.endswith(" -1 -1")], said
    assert {v for n, v in said.items() if n.startswith("none")} <= {"ENOENT", "EINVAL"}  # EINVAL: no such id here
    assert owners == [[1000, 1000], [1000, 1000]]


def archive():
    """A directory, files and a link of people nobody here knows."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind, uid in (("t", tarfile.DIRTYPE, 4321), ("t/f", tarfile.REGTYPE, 1234), ("t/x", tarfile.REGTYPE, 70000), ("t/l", tarfile.SYMTYPE, 1234)):
            m = tarfile.TarInfo(name)
            m.type, m.uid, m.gid, m.mode = kind, uid, uid + 1, 0o755 if kind == tarfile.DIRTYPE or name == "t/x" else 0o640
            m.linkname, m.size = "f" if kind == tarfile.SYMTYPE else "", 2 if kind == tarfile.REGTYPE else 0
            tar.addfile(m, io.BytesIO(b"x\n"))
    return out.getvalue()


@pytest.mark.parametrize("root", [[], ["--read-only"]], ids=["writable", "read-only"])
def test_tar_unpacks_what_belongs_to_others(who, root):
    """GNU tar as uid 0 sets owners, and ends with 2 where it cannot."""
    argv = [*who.prefix, str(who.silica), "run", *root, *options(who, "0"), "--", "sh", "-c",
            "tar -xf - -C /tmp && cd /tmp && stat -c '%n %u:%g %a' t t/f t/x t/l && cp -a t /tmp/copy && cat copy/l"]
    done = subprocess.run(argv, env=who.env, input=archive(), capture_output=True, timeout=60, cwd="/")
    assert (done.returncode, done.stderr) == (0, b""), done
    assert done.stdout.decode().splitlines() == ["t 0:0 755", "t/f 0:0 640", "t/x 0:0 755", "t/l 0:0 777", "x"]


@pytest.fixture(scope="module", params=["root", "user", "ranged"])
def machine(request):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    caller_or_skip(request.param).remove()
    with Machine(who=request.param) as m:
        yield m


def test_kubectl_cp_of_files_of_others(machine, tmp_path):
    """A tree whose files are of several owners goes in, and comes back as it was but for them."""
    m, tree = machine, tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    for name, uid in (("one", 1234), ("deep/two", 4321), ("deep/three", 0)):
        (tree / name).write_text(name)
        os.chown(tree / name, uid, uid + 1)
    os.chown(tree / "deep", 2345, 2345)
    (tree / "one").chmod(0o750)
    m.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "kept"},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
    m.apply(pod("box", command=["sleep", "4741"], volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "kept"}}],
                volumeMounts=[{"name": "data", "mountPath": "/data"}]))
    m.wait_ready("box")
    for there in ("/tmp/tree", "/data/tree"):
        m.kubectl("cp", tree, f"box:{there}")
        assert m.kubectl("exec", "box", "--", "stat", "-c", "%u:%g %a", f"{there}/one", f"{there}/deep/two") == "0:0 750\n0:0 644\n"
        m.kubectl("cp", f"box:{there}", tmp_path / there[1:].replace("/", "-"))
        back = tmp_path / there[1:].replace("/", "-")
        assert {p.name: p.read_text() for p in back.rglob("*") if p.is_file()} == {"one": "one", "two": "deep/two", "three": "deep/three"}
    m.delete("box")
    m.kubectl("delete", "pvc", "kept")


UPLOAD = """
import urllib.request
body = (b'--b\\r\\nContent-Disposition: form-data; name="file"; filename="theirs"\\r\\n\\r\\nnew\\r\\n--b--\\r\\n')
request = urllib.request.Request('http://127.0.0.1:8888/upload', body, {'Content-Type': 'multipart/form-data; boundary=b'})
print(urllib.request.urlopen(request).status)
"""


def test_a_file_of_another_stays_its_own_when_the_server_writes_it(machine):
    """It is written in place, since a new file cannot be given to its owner."""
    m = machine
    if m.wrap and m.wrap[0] == "setpriv":
        return  # one id: whatever is on a volume is the account's
    m.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "app"},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
    m.apply(pod("server", image="registry.example/agent-sandbox/python-runtime-sandbox:v1",
                volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "app"}}], volumeMounts=[{"name": "data", "mountPath": "/app"}]))
    m.wait_ready("server")
    (path,) = (m.data / "claims" / "default").glob("app.*")
    theirs = path / "theirs"
    theirs.write_text("old, and longer")
    owner = 1234 if not m.wrap else 1_000_041  # of the range: 42 inside
    os.chown(theirs, owner, owner)
    theirs.chmod(0o666)
    assert m.kubectl("exec", "server", "--", PYTHON, "-c", UPLOAD) == "200\n"
    assert (theirs.read_text(), theirs.stat().st_uid, theirs.stat().st_gid) == ("new", owner, owner)
    m.delete("server")
    m.kubectl("delete", "pvc", "app")

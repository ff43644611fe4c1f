"""What the API server does on a full disk, and with a store that is not what it was."""

import os
import shutil
import subprocess

import pytest

from harness.server import wait_until
from lib import controlplane
from lib.writers import Connection

pytestmark = pytest.mark.ours
PATH = "/api/v1/namespaces/default/configmaps"
FULL = "the disk of the store is full: only deletes are accepted"


# ---- a full disk ----


@pytest.fixture
def small_disk(tmp_path):
    """24 MiB in memory."""
    where = tmp_path / "small"
    where.mkdir()
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=700", "none", where], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield where
    subprocess.run(["umount", "-l", where], check=True)


def big(name):
    return {"metadata": {"name": name}, "data": {"v": "x" * 200_000}}


def fill_up(connection, prefix):
    """Creates until the disk is full; the names that were acknowledged, and the refusal."""
    for i in range(1000):
        status, answer = connection.call("POST", PATH, big(f"{prefix}{i}"))
        if status != 201:
            return [f"{prefix}{n}" for n in range(i)], (status, answer)
    raise AssertionError("the disk never became full")


def names(connection):
    status, answer = connection.call("GET", PATH)
    assert status == 200, answer
    return {o["metadata"]["name"] for o in answer["items"]} - {"kube-root-ca.crt"}


def test_full_disk(small_disk):
    with controlplane.Silica("--log-level", "warn", data=small_disk / "data") as api:
        connection = Connection(api)
        made, (status, answer) = fill_up(connection, "a")
        assert len(made) > 20
        assert (status, answer["kind"], answer["reason"]) == (500, "Status", "InternalError"), answer
        assert "full" in answer["message"]
        status, answer = connection.call("POST", PATH, {"metadata": {"name": "small"}})
        assert status == 500 and FULL in answer["message"], answer
        status, answer = connection.call("PATCH", f"{PATH}/{made[0]}", {"data": {"v": "y"}}, "application/merge-patch+json")
        assert status == 500 and FULL in answer["message"], answer
        assert names(connection) == set(made)  # reads go on, and nothing is there that was refused
        for name in made[:-5]:
            status, answer = connection.call("DELETE", f"{PATH}/{name}")
            assert status == 200, (name, answer["message"])
        assert names(connection) == set(made[-5:])
        wait_until(lambda: connection.call("POST", PATH, {"metadata": {"name": "small"}})[0] in (201, 409), 30, "writes go on")
        more, _ = fill_up(connection, "b")  # what was deleted made room within the file
        assert len(more) > 10
        kept = names(connection)
        api.kill()
        api.start()  # on a disk that is still full
        connection.close()
        assert names(connection) == kept == {*made[-5:], *more, "small"}
        for name in more:
            status, answer = connection.call("DELETE", f"{PATH}/{name}")
            assert status == 200, (name, answer["message"])
        assert names(connection) == {*made[-5:], "small"}


def test_room_that_others_make(small_disk):
    """Somebody else filled the disk, and clears it."""
    with controlplane.Silica("--log-level", "warn", data=small_disk / "data") as api:
        connection = Connection(api)
        assert connection.call("POST", PATH, big("before"))[0] == 201
        ballast = small_disk / "ballast"
        with open(ballast, "wb") as f:
            try:
                while True:
                    f.write(b"x" * 65536)
                    f.flush()
            except OSError:
                pass
        made, (status, answer) = fill_up(connection, "a")
        assert status == 500 and "full" in answer["message"]
        assert connection.call("DELETE", f"{PATH}/before")[0] == 200
        ballast.unlink()
        wait_until(lambda: connection.call("POST", PATH, {"metadata": {"name": "small"}})[0] in (201, 409), 30, "writes go on")
        assert names(connection) == {*made, "small"}


# ---- a store that is not what it was ----


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Data of a server that was killed, with everything still in its log; and of one that ended, where it is in the file."""
    where = tmp_path_factory.mktemp("stores")
    with controlplane.Silica("--log-level", "warn") as api:
        connection = Connection(api)
        for i in range(30):
            assert connection.call("POST", PATH, {"metadata": {"name": f"c{i}"}, "data": {"v": "x" * 3000}})[0] == 201
        api.kill()
        shutil.copytree(api.data, where / "killed")
        api.start()
        api.end()
        shutil.copytree(api.data, where / "ended")
    return where


def copy(store, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(store, data)
    data.chmod(0o700)
    return data


def files(data):
    """What counts; SQLite makes an empty log before it has read a byte."""
    return {p.name: p.read_bytes() for p in data.iterdir() if p.name in ("store.db", "store.db-wal") and p.stat().st_size}


def refused(data):
    """What `silica apiserver` says and ends with."""
    done = subprocess.run([os.environ.get("SILICA", str(controlplane.TREE / "build" / "silica")), "apiserver", "--data", str(data),
                           "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    return done.returncode, done.stderr


def zero(data):
    return b""


def text(data):
    return b"kind: List\n" * 100


def half(data):
    return data[:len(data) // 2]


def flip_in_an_object(data):
    at = data.index(b"x" * 1000, len(data) // 2) + 500
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]


@pytest.mark.parametrize("state,name,damage,words", [
    ("killed", "store.db", zero, "is there without its store.db"),
    ("ended", "store.db", zero, "store.db is empty"),
    ("ended", "store.db", text, "file is not a database"),
    ("ended", "store.db", half, "malformed"),
    ("ended", "store.db", flip_in_an_object, "at version"),
    ("killed", "store.db-wal", flip_in_an_object, "the log is damaged at frame"),
    ("killed", "store.db-wal", text, "the head of the log is damaged"),
], ids=lambda v: getattr(v, "__name__", None))
def test_a_damaged_store_is_refused(stores, tmp_path, state, name, damage, words):
    data = copy(stores / state, tmp_path)
    path = data / name
    path.write_bytes(damage(path.read_bytes()))
    before = files(data)
    status, said = refused(data)
    assert status == 125, said
    assert f"the store in '{data}' is damaged" in said and words in said, said
    assert "hint: restore store.db and store.db-wal from a backup, or move both away to begin with an empty store" in said
    assert files(data) == before, "what was refused was changed"


def test_what_the_hint_says_helps(stores, tmp_path):
    data = copy(stores / "ended", tmp_path)
    (data / "store.db").write_bytes(b"gone bad")
    assert refused(data)[0] == 125
    (data / "store.db").rename(tmp_path / "store.db")
    with controlplane.Silica("--log-level", "warn", data=data) as api:
        assert names(Connection(api)) == set()  # empty, with the same keys
    for name in ("store.db", "store.db-wal"):
        shutil.copy(stores / "killed" / name, data)
    with controlplane.Silica("--log-level", "warn", data=data) as api:
        assert len(names(Connection(api))) == 30


def test_a_copy_taken_while_it_runs_is_a_backup(tmp_path):
    """As docs/kubernetes-api.md says it: store.db first, then store.db-wal."""
    with controlplane.Silica("--log-level", "warn") as api:
        connection = Connection(api)
        for i in range(20):
            assert connection.call("POST", PATH, {"metadata": {"name": f"c{i}"}})[0] == 201
        data = tmp_path / "data"
        data.mkdir(mode=0o700)
        for name in ("store.db", "store.db-wal"):
            shutil.copy(api.data / name, data)
    with controlplane.Silica("--log-level", "warn", data=data) as api:
        assert len(names(Connection(api))) == 20

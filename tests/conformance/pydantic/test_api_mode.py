"""KubernetesPodSandbox(mode="api"), unmodified: everything is an exec through the API server, whose Pods are this machine."""

import pathlib
import sys
import time

import pytest
from pydantic_ai_backends.backends.kubernetes import KubernetesPodSandbox

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "streams"))

from apiserver import ApiServer  # noqa: E402


@pytest.fixture(scope="module")
def server():
    s = ApiServer()
    with s.kubelet():
        yield s
    log = s.end()
    assert s.process.returncode == 0 and "Sanitizer" not in log, log[-20000:]


@pytest.fixture(scope="module")
def sandbox(server):
    made = KubernetesPodSandbox("host", mode="api", sandbox_id="one", kube_config_path=str(server.kubeconfig), in_cluster=False)
    made.start()
    yield made
    name = server.ask("GET", "/api/v1/namespaces/default/pods").json()["items"][0]["metadata"]["name"]
    made.stop()
    assert not made.is_alive() and server.ask("GET", f"/api/v1/namespaces/default/pods/{name}").status_code == 404


def test_execute(sandbox):
    assert sandbox.is_alive()
    done = sandbox.execute("echo out; echo err >&2; exit 3")
    assert done.output == "out\nerr\n" and done.exit_code == 3 and not done.truncated


def test_it_ends_with_the_command(sandbox):
    began = time.monotonic()
    assert sandbox.execute("sleep 40 & echo started").output == "started\n"
    assert time.monotonic() - began < 35


def test_a_time_limit(sandbox):
    assert sandbox.execute("sleep 30", timeout=1).exit_code == 124


def test_output_is_cut_by_the_client(sandbox):
    """It closes the stream at 100,000 bytes, while the command goes on. (Client 37 reads for as long as something comes, so
    the command must pause.)"""
    done = sandbox.execute("head -c 300000 /dev/zero | tr '\\0' x; sleep 5")
    assert done.truncated and done.exit_code == 1 and done.output == "x" * 100_000


def test_files(sandbox, tmp_path):
    path = tmp_path / "below" / "file.txt"
    text = "one\ntwo ä€😀\nthree\n" * 1000  # one argument of a command: far beyond a usual request line
    assert not sandbox.write(str(path), text).error
    assert path.read_text() == text
    assert sandbox.read_bytes(str(path)) == text.encode()
    assert "two ä€😀" in sandbox.read(str(path), 0, 5)
    assert [row["name"] for row in sandbox.ls_info(str(tmp_path / "below"))] == ["file.txt"]
    edited = sandbox.edit(str(path), "one\ntwo ä€😀\nthree\n" * 1000, "short\n")
    assert not edited.error and path.read_text() == "short\n"


def test_a_long_write(sandbox, tmp_path):
    """About what still fits in one argument of 128 KiB."""
    text = "x" * 90_000
    assert not sandbox.write(str(tmp_path / "long"), text).error
    assert (tmp_path / "long").read_text() == text

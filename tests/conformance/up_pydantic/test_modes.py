"""KubernetesPodSandbox of 0.2.29: by HTTP at the Pod's address, and by exec through the API server."""

import pytest
from pydantic_ai_backends import KubernetesPodSandbox


@pytest.fixture(scope="module", params=["http", "api"])
def sandbox(request, up):
    made = KubernetesPodSandbox("python:3.12-slim", mode=request.param, sandbox_id=request.param, kube_config_path=up.ready["kubeconfig"],
                                in_cluster=False)
    made.start()
    yield made
    made.stop()
    assert not made.is_alive()


def test_execute(sandbox):
    assert sandbox.is_alive()
    done = sandbox.execute("echo out; exit 3")
    assert (done.output, done.exit_code, done.truncated) == ("out\n", 3, False)
    assert sandbox.execute("sleep 30", timeout=1).exit_code == 124
    assert sandbox.execute("id -u").output == "1000\n"  # its Pod says so
    assert sandbox.execute("touch /usr/x /x").exit_code != 0  # a root that is only read


def test_files(sandbox):
    text = "first\nneedle ä€😀\n" * 500
    path = "/workspace/below/file.txt"
    assert not sandbox.write(path, text).error
    assert sandbox.read_bytes(path) == text.encode() and sandbox.exists(path) and not sandbox.exists("/workspace/none")
    assert "needle ä€😀" in sandbox.read(path, 0, 5)
    assert [row["name"] for row in sandbox.ls_info("/workspace/below")] == ["file.txt"]
    assert [row["path"] for row in sandbox.glob_info("*.txt", "/workspace/below")]
    assert len(sandbox.grep_raw("needle", "/workspace/below")) == 500
    assert not sandbox.edit(path, text, "short\n").error and sandbox.read_bytes(path) == b"short\n"
    assert sandbox.execute(f"cat {path}").output == "short\n"

"""A start of `silica up` that fails: it says which option is meant, and leaves nothing that the next one would meet."""

import json
import socket
import subprocess

import pytest

from lib.up import Up, program

pytestmark = pytest.mark.ours


def up(tmp_path, *options):
    return subprocess.run([program(), "up", "--data", tmp_path / "data", *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=100)


@pytest.fixture
def taken():
    """A port that another program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        yield f"127.0.0.1:{s.getsockname()[1]}"


@pytest.mark.parametrize("option", ["--listen", "--router-listen"])
@pytest.mark.parametrize("before", [[], ["-d"]], ids=["foreground", "background"])
def test_a_listener_that_cannot_be(tmp_path, taken, option, before):
    other = {"--listen": "--router-listen", "--router-listen": "--listen"}[option]
    for given, why in ((taken, "Address already in use"), ("nonsense", "want HOST:PORT")):
        done = up(tmp_path, *before, option, given, other, "127.0.0.1:0")
        said = done.stderr.splitlines()
        assert done.returncode not in (0, 2), done
        assert option in said[0] and given in said[0] and why in said[0] and other not in done.stderr, done
        if given == taken:
            assert said[1] == f"hint: another program listens there: choose another port with {option}", done
    assert not (tmp_path / "data/port").exists() and not (tmp_path / "data/router-port").exists()


def test_ports_are_remembered_of_one_that_serves():
    with Up() as served:
        assert (served.data / "port").read_text() == served.ready["listen"][0].rsplit(":", 1)[1]
        assert (served.data / "router-port").read_text() == served.ready["router"].rsplit(":", 1)[1]


def test_a_pool_of_no_template(tmp_path):
    config = tmp_path / "up.yaml"
    config.write_text("pools:\n- {name: mine, template: python-sandbox-tempalte}\n")
    done = up(tmp_path, "--config", config, "--listen", "127.0.0.1:0", "--router-listen", "127.0.0.1:0")
    assert done.returncode not in (0, 2), done
    assert done.stderr.splitlines() == [
        f"silica: '{config}': line 2: the template 'python-sandbox-tempalte' of the pool 'mine' does not exist",
        "hint: did you mean 'python-sandbox-template'?"], done
    assert not (tmp_path / "data/store.db").exists()


def test_a_pool_whose_template_is_gone():
    """What the config could not know is a problem of status."""
    with Up() as served:
        served.kubectl("apply", "-f", "-", stdin=json.dumps({
            "apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool", "metadata": {"name": "empty", "namespace": "default"},
            "spec": {"replicas": 1, "sandboxTemplateRef": {"name": "nowhere"}}}))
        told = served.run("status", check=False)
        assert told.returncode == 4 and "problem   sandboxwarmpool default/empty: " in told.stdout, told


def test_a_role_that_does_not_exist():
    with Up() as served:
        done = served.run("token", "-n", "team-x", "--role", "edti", check=False)
        assert (done.returncode, done.stdout) == (125, ""), done
        assert done.stderr == "silica: there is no ClusterRole 'edti'\nhint: did you mean 'edit'?\n", done
        assert served.kubectl("get", "namespace", "team-x", check=False).returncode != 0, "nothing was made"
        assert served.run("token", "-n", "team-x", "--role", "view").stdout

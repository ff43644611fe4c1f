"""Our client (src/kubeclient) on a real server and on ours: the suite that every implementation of the interface runs, and
what happens when servers are killed, connections are cut and credentials change."""

import contextlib
import json
import os
import pathlib
import random
import re
import stat
import subprocess
import threading
import time

import pytest
import yaml

from harness.cutter import Cutter
from lib import controlplane

BUILT = pathlib.Path(__file__).resolve().parents[3] / "build/debug/src/kubeclient"
WAIT_S = 60


def program(name):
    if not (BUILT / name).exists():
        pytest.skip(f"{name} is built with the unit tests")
    return str(BUILT / name)


class Probe:
    """kubeclient_probe with its lines as they come; ended by the end of its input."""

    def __init__(self, kubeconfig, ns, *what, **env):
        self.process = subprocess.Popen([program("kubeclient_probe"), str(kubeconfig), ns, *map(str, what)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**os.environ, **env})
        self.lines, self.wake = [], threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.wake:
                self.lines.append(line.split())
                self.wake.notify_all()

    def wait(self, is_there):
        """Until is_there(lines) says something true."""
        with self.wake:
            if not self.wake.wait_for(lambda: is_there(self.lines), WAIT_S):
                raise AssertionError(f"not within {WAIT_S} s: {self.lines[-20:]}")

    def ask(self):
        """One more get; its line."""
        count = len(self.lines)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.wait(lambda lines: len(lines) > count)
        return self.lines[count]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        assert self.process.returncode == 0, self.process.stderr.read()


def with_server(api, path, url=None, user=None):
    """A kubeconfig like the target's, for another place or another user."""
    config = yaml.safe_load(pathlib.Path(api.kubeconfig).read_text())
    if url:
        config["clusters"][0]["cluster"]["server"] = url
    if user:
        config["users"][0]["user"] = user
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


def seen_by(lines):
    """Names and versions of the probe's own config maps, as its follower learnt of them. Where the server's history was too
    short (410) it listed again: nothing may be missing from that list, and what was in it does not come again."""
    seen = {}
    for line in lines:
        name = re.fullmatch(r"\+?(p\d+)", line[1] if line[0] == "has" else line[0])
        if line[0] == "gone":
            assert line[1] == "410", line
        elif line[0] == "has" and name:
            assert seen.setdefault(name[1], int(line[2])) == int(line[2])
        elif line[0][0] == "+" and name:
            assert name[1] not in seen, f"{name[1]} came twice"
            assert int(line[1]) > max(seen.values(), default=0), "versions went back"
            seen[name[1]] = int(line[1])
    return seen


def judge(follower, creator):
    """Every create that was acknowledged was seen, once, in the order of versions; those without an answer at most once."""
    acknowledged = {line[1]: int(line[2]) for line in creator.lines if line[0] == "ok"}
    lost = {line[1] for line in creator.lines if line[0] == "lost"}
    assert not [line for line in creator.lines if line[0] == "refused"]
    follower.wait(lambda lines: acknowledged.keys() <= seen_by(lines).keys())
    seen = seen_by(follower.lines)
    assert seen.keys() <= acknowledged.keys() | lost
    assert {name: seen[name] for name in acknowledged} == acknowledged


def is_over(lines):
    return lines and lines[-1][0] == "done"


@pytest.fixture
def follow(api, ns):
    """A follower that has listed, through another kubeconfig perhaps."""
    with contextlib.ExitStack() as stack:
        def start(kubeconfig, **env):
            probe = stack.enter_context(Probe(kubeconfig, ns, "follow", **env))
            probe.wait(lambda lines: any(line[0] == "list" for line in lines))
            return probe
        yield start


def test_the_client_suite(api, ns, tmp_path):
    stranger = with_server(api, tmp_path / "stranger", user={"token": account_token(api, ns)})
    env = {**os.environ, **({"ONE_VERSION": "1"} if api.kind == "real" else {})}
    done = subprocess.run([program("kubeclient_suite"), api.kubeconfig, str(stranger)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "PASSED" in done.stdout


def test_connections_that_are_cut(api, ns, follow, tmp_path):
    port = int(api.url.rsplit(":", 1)[1])
    rng = random.Random(7)
    with Cutter(port) as proxy:
        config = with_server(api, tmp_path / "cut", url=f"https://127.0.0.1:{proxy.port}")
        follower = follow(config)
        with Probe(config, ns, "create", 1500, 8) as creator:
            cuts = 0
            while not is_over(creator.lines):
                until = len(creator.lines) + rng.randint(20, 60)
                creator.wait(lambda lines: is_over(lines) or len(lines) >= until)
                proxy.cut()
                cuts += 1
            judge(follower, creator)
        assert cuts > 8 and proxy.accepted > cuts, "what was cut was not dialled again"


def test_a_connection_that_fell_silent(api, ns, follow, tmp_path):
    port = int(api.url.rsplit(":", 1)[1])
    with Cutter(port) as proxy:
        config = with_server(api, tmp_path / "frozen", url=f"https://127.0.0.1:{proxy.port}")
        follower = follow(config, PING_MS="300")
        proxy.freeze()
        with Probe(api.kubeconfig, ns, "create", 20, 4) as creator:
            creator.wait(is_over)
            judge(follower, creator)
        assert proxy.accepted >= 2


def test_a_token_in_a_file_is_rotated(api, ns, tmp_path):
    token = viewer_token(api, ns)
    (tmp_path / "token").write_text("this-is-no-token")
    config = with_server(api, tmp_path / "config", user={"tokenFile": "token"})
    with Probe(config, ns, "get", "kube-root-ca.crt") as probe:
        assert probe.ask()[:3] == ["refused", "kube-root-ca.crt", "401"]
        (tmp_path / "token").write_text(token + "\n")
        assert probe.ask()[0] == "ok"


def test_a_plugin_says_who_we_are(api, ns, tmp_path):
    """Its first token is wrong, its second one ends at once, the third one lasts."""
    (tmp_path / "token").write_text(viewer_token(api, ns))
    plugin = tmp_path / "plugin"
    plugin.write_text("""#!/bin/sh
cd "$(dirname "$0")"
echo "$KUBERNETES_EXEC_INFO" >info
echo run >>runs
token=$(cat token) until=2000-01-01T00:00:00Z
case $(wc -l <runs) in 1) token=wrong until=2100-01-01T00:00:00Z;; 3) until=2100-01-01T00:00:00Z;; esac
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"'$token'","expirationTimestamp":"'$until'"}}'
""")
    plugin.chmod(stat.S_IRWXU)
    config = with_server(api, tmp_path / "config", user={"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": "./plugin",
        "provideClusterInfo": True}})
    with Probe(config, ns, "get", "kube-root-ca.crt") as probe:
        assert probe.ask()[0] == "ok"
        assert (tmp_path / "runs").read_text() == "run\n" * 2
        time.sleep(2.1)  # so long one is kept that had ended when it came
        assert [probe.ask()[0] for _ in range(3)] == ["ok"] * 3
        assert (tmp_path / "runs").read_text() == "run\n" * 3
    info = json.loads((tmp_path / "info").read_text())
    assert info["spec"]["cluster"]["server"] == api.url
    assert info["spec"]["cluster"]["certificate-authority-data"]


def account_token(api, ns):
    """Of the namespace's default account."""
    for _ in range(200):  # the real server's controllers make it a moment after the namespace
        if api.request("GET", f"/api/v1/namespaces/{ns}/serviceaccounts/default").ok \
                and api.request("GET", f"/api/v1/namespaces/{ns}/configmaps/kube-root-ca.crt").ok:
            break
        time.sleep(0.05)
    answer = api.request("POST", f"/api/v1/namespaces/{ns}/serviceaccounts/default/token", json={"spec": {}})
    answer.raise_for_status()
    return answer.json()["status"]["token"]


def viewer_token(api, ns):
    """The same account, after it was allowed to read."""
    token = account_token(api, ns)
    api.request("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings", json={
        "metadata": {"name": "view"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": ns}]}).raise_for_status()
    for _ in range(200):  # the real server's authorizer learns of it a moment later
        if api.request("GET", f"/api/v1/namespaces/{ns}/configmaps", token=token).ok:
            break
        time.sleep(0.05)
    return token


MAKERS = {"ours": lambda: controlplane.Silica(),
          "real": lambda: controlplane.ControlPlane(with_controllers=False, with_crds=False)}


@pytest.mark.parametrize("kind, kills", [("ours", 8), ("real", 2)])
def test_the_server_is_killed_and_comes_back(kind, kills):
    try:
        server = MAKERS[kind]()
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with server, Probe(server.kubeconfig, "default", "follow") as follower:
        follower.wait(lambda lines: any(line[0] == "list" for line in lines))
        with Probe(server.kubeconfig, "default", "create", 3000, 8) as creator:
            for i in range(kills):
                count = len(creator.lines)
                creator.wait(lambda lines, n=count, more=5 + 7 * i: len(lines) > n + more or is_over(lines))
                assert not is_over(creator.lines), "nothing was killed"
                server.restart()
            creator.wait(is_over)
            judge(follower, creator)
        # Ours has its history on disk; the real one's begins anew.
        assert kind == "real" or not [line for line in follower.lines if line[0] == "gone"]

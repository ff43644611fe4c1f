"""Claims after their sandboxes were lost, by a killed keeper or a reboot: containers start again in place, by their restartPolicy."""

import json
import os
import signal

import pytest

from harness import owner, proc
from harness.server import wait_until
from lib.up import as_caller
from test_up_kills import PATH, condition

pytestmark = pytest.mark.ours


def template(name, **spec):
    container = {"name": "main", "image": "silica/python-runtime-sandbox:latest", "ports": [{"containerPort": 8888}],
                 "readinessProbe": {"httpGet": {"path": "/", "port": 8888}, "periodSeconds": 1},
                 "volumeMounts": [{"name": "kept", "mountPath": "/workspace"}, {"name": "memory", "mountPath": "/memory"}]}
    return {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate", "metadata": {"name": name, "namespace": "default"},
            "spec": {"podTemplate": {"spec": {"containers": [container], "terminationGracePeriodSeconds": 0,
                                              "volumes": [{"name": "memory", "emptyDir": {"medium": "Memory"}}], **spec}},
                     "volumeClaimTemplates": [{"metadata": {"name": "kept"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                                                      "resources": {"requests": {"storage": "1Gi"}}}}]}}


def init_container():
    return {"name": "first", "image": "silica/python-runtime-sandbox:latest", "command": ["sh", "-c", "echo made >/memory/by-init; echo x >>/count/x"],
            "volumeMounts": [{"name": "memory", "mountPath": "/memory"}, {"name": "count", "mountPath": "/count"}]}


class Claimed:
    """A claim that was ready, with a file on its volume."""

    def __init__(self, up, name, policy):
        self.up, self.name, self.policy = up, name, policy
        up.api.call("POST", f"{PATH}/sandboxtemplates", template(name, restartPolicy=policy, initContainers=[init_container()], volumes=[
            {"name": "memory", "emptyDir": {"medium": "Memory"}}, {"name": "count", "emptyDir": {}}]))
        up.api.call("POST", f"{PATH}/sandboxwarmpools", {
            "apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool", "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": 0, "sandboxTemplateRef": {"name": name}}})
        up.api.call("POST", f"{PATH}/sandboxclaims", {
            "apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {"warmPoolRef": {"name": name}}})
        wait_until(lambda: self.is_ready(), 60, f"{name} is ready\n{up.said()}")
        self.sandbox = self.claim()["status"]["sandbox"]["name"]
        self.pod_before = self.pod()
        assert self.ask(f"echo {name} >/workspace/mine") == ""
        assert self.ask("cat /memory/by-init") == "made\n"

    def ask(self, command):
        return self.up.kubectl("exec", self.sandbox, "--", "sh", "-c", command)

    def claim(self):
        return self.up.api.call("GET", f"{PATH}/sandboxclaims/{self.name}")

    def pod(self):
        return self.up.api.call("GET", f"/api/v1/namespaces/default/pods/{self.sandbox}")

    def is_ready(self):
        return condition(self.claim(), "Ready")["status"] == "True"

    def has_restarted(self, times):
        pod = self.pod()
        rows = pod["status"].get("containerStatuses", [])
        return condition(pod, "Ready")["status"] == "True" and [row["restartCount"] for row in rows] == [times]

    def judge_back(self, times):
        """In place: the same Pod at the same address, its volumes, and what its init container makes in memory."""
        what = f"{self.name} is back\n{self.up.said()}"
        wait_until(lambda: self.has_restarted(times) and self.is_ready(), 60, what)
        pod, before = self.pod(), self.pod_before
        assert (pod["metadata"]["uid"], pod["status"]["podIP"]) == (before["metadata"]["uid"], before["status"]["podIP"])
        last = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
        assert last["exitCode"] == 137 and last["message"].startswith("The sandbox ended with the process that kept it"), last
        assert [row["restartCount"] for row in pod["status"]["initContainerStatuses"]] == [times]
        assert condition(self.claim(), "Finished")["status"] == "Unknown", self.claim()
        assert self.ask("cat /workspace/mine") == f"{self.name}\n"
        assert self.ask("cat /memory/by-init") == "made\n"


def reboot(up):
    """All processes at once, and what the kernel keeps for them."""
    keeper = owner.keeper_of(up.data)
    all_of_it = [up.process.pid, *(p["pid"] for p in up.info()["parts"]), *proc.children(keeper), keeper]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in all_of_it:
            if pid and owner.alive(pid):
                os.kill(pid, number)
    up.process.wait(60)
    wait_until(lambda: not proc.with_argument(str(up.data)), 60, "all of it is dead")
    for name in ("engine.sock", "pods.sock", "sockets.sock"):
        (up.data / name).unlink(missing_ok=True)


def judge_healed(up, gone):
    """What failed is listed with the command that heals it; it does."""
    told = up.run("status", check=False)
    heals = f"kubectl delete pod -n default {gone.sandbox}"
    assert told.returncode == 4, told
    assert f"problem   sandboxclaim default/{gone.name}: PodFailed: Pod failed\n          heals: {heals}\n" in told.stdout, told
    told = up.run("status", "-o", "json", check=False)
    assert told.returncode == 4 and [row["heals"] for row in json.loads(told.stdout)["problems"]] == [heals], told
    up.kubectl(*heals.split()[1:])
    wait_until(gone.is_ready, 60, f"{gone.name} is healed\n{up.said()}")
    assert gone.ask("cat /workspace/mine") == f"{gone.name}\n"
    assert up.run("status", check=False).returncode == 0 and up.status()["problems"] == []


@pytest.fixture(params=["root", "user"])
def up(request):
    with as_caller(request.param) as started:
        yield started


def test_a_killed_keeper(up):
    kept = [Claimed(up, f"with-{policy.lower()}", policy) for policy in ("Always", "OnFailure")]
    gone = Claimed(up, "with-never", "Never")
    os.kill(owner.keeper_of(up.data), signal.SIGKILL)
    for claimed in kept:
        claimed.judge_back(1)
    wait_until(lambda: condition(gone.claim(), "Finished")["status"] == "True", 60, "what is not to start again has failed")
    assert condition(gone.claim(), "Ready")["reason"] == "PodFailed"
    assert gone.pod()["status"]["containerStatuses"][0]["restartCount"] == 0
    judge_healed(up, gone)


def test_a_reboot(up):
    kept = [Claimed(up, f"with-{policy.lower()}", policy) for policy in ("Always", "OnFailure")]
    up.wait_warm()
    members = {p["metadata"]["uid"] for p in up.api.call("GET", "/api/v1/namespaces/default/pods")["items"]}
    for times in (1, 2):
        reboot(up)
        up.start()
        for claimed in kept:
            claimed.judge_back(times)
    up.wait_warm()
    now = {p["metadata"]["uid"] for p in up.api.call("GET", "/api/v1/namespaces/default/pods")["items"]}
    assert now == members, "members of pools start again, too"

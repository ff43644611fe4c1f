"""Hosts where no sandbox can be made: `silica up` says so, and what to change, instead of "is up"; as do the other commands."""

import json
import subprocess

import pytest

from harness import caller, container
from lib.up import PORTS

pytestmark = pytest.mark.ours

HOSTS = {
    "filtered": (container.as_filtered, "a seccomp filter, as containers have it, forbids user namespaces", "--security-opt seccomp=unconfined"),
    "no-user-namespaces": (lambda prefix: container.as_limited(prefix, "user.max_user_namespaces"),
                           "user.max_user_namespaces is 0", "sysctl -w user.max_user_namespaces="),
    "no-networks": (lambda prefix: container.as_limited(prefix, "user.max_net_namespaces"),
                    "user.max_net_namespaces is 0", "sysctl -w user.max_net_namespaces="),
    "covered-proc": (container.as_covered, "a part of /proc is covered, as in containers (/proc/fs)", "--security-opt systempaths=unconfined"),
}


class Host(caller.Caller):
    """A caller whose host forbids sandboxes until allow()."""

    def call(self, command, *args):
        return subprocess.run([*self.prefix, str(self.silica), command, *map(str, args)], env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, cwd="/")

    @property
    def data(self):
        return self.home / "data"

    def forbid(self, forbid):
        self.allowed, self.prefix = self.prefix, forbid(self.prefix)

    def allow(self):
        self.prefix = self.allowed


@pytest.fixture(params=["root", "user"])
def who(request):
    found = caller.caller_or_skip(request.param, Host)
    if request.param == "user" and not found.prefix:
        pytest.skip("needs root")
    yield found
    if hasattr(found, "allowed"):
        found.allow()
    found.call("down", "--sandboxes", "--data", found.data)
    found.remove()


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("options", [["-d"], []], ids=["background", "foreground"])
def test_up_says_what_forbids_sandboxes(who, name, options):
    forbid, cause, change = HOSTS[name]
    who.forbid(forbid)
    done = who.call("up", *options, "--data", who.data, *PORTS)
    assert done.returncode not in (0, 2), done
    assert "is up" not in done.stdout + done.stderr
    said = [line for line in done.stderr.splitlines() if not line.startswith("ts=")]
    assert said[0].startswith(f"silica: no sandbox can be made here: {cause}: "), said
    assert len(said) == 2 and said[1].startswith("hint: ") and change in said[1], said
    assert who.call("status", "--data", who.data).returncode == 3
    who.allow()
    done = who.call("up", "-d", "--data", who.data, *PORTS)
    assert done.returncode == 0 and done.stdout.startswith("silica is up: "), done


@pytest.mark.parametrize("name", HOSTS)
def test_doctor_run_and_node_use_the_same_words(who, name):
    forbid, cause, change = HOSTS[name]
    who.forbid(forbid)
    done = who.call("doctor", "-o", "json")
    told = json.loads(done.stdout)
    fact = next(f for f in told["facts"] if f["name"] == "sandbox")
    assert done.returncode == 1 and told["works"] is False
    assert fact["verdict"] == "broken" and fact["text"].startswith(f"{cause}: "), fact
    assert change in fact["hint"], fact
    for command, words, before in (("run", ["--", "true"], "cannot make the sandbox"),
                                   ("run", ["-d", "--data", who.data, "--", "true"], "cannot make the sandbox"),
                                   ("node", ["--data", who.data, "--kubeconfig", "/none"], "no sandbox can be made here")):
        done = who.call(command, *words)
        assert done.returncode == 125, done
        said = done.stderr.splitlines()
        assert said[0].startswith(f"silica: {before}: {cause}: ") and said[1].startswith("hint: ") and change in said[1], done


def test_a_sandbox_that_was_made_to_see_is_gone(who):
    done = who.call("up", "-d", "--data", who.data, *PORTS)
    assert done.returncode == 0, done
    listed = json.loads(who.call("ps", "-a", "--data", who.data, "-o", "json").stdout)
    assert not [row for row in listed if row["name"].startswith("check-")], listed

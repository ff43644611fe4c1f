"""What a container writes to its terminationMessagePath is the message of its end."""

import json
import os

import pytest

from harness.server import wait_until
from lib.machine import Machine, pod

pytestmark = pytest.mark.ours


@pytest.fixture(scope="module", params=["root", "user"])
def machine(request):
    if request.param == "user" and os.geteuid() != 0:
        pytest.skip("the first run is a user's already")
    with Machine(who=request.param) as m:
        yield m
        m.kubectl("delete", "pods", "--all", "--wait=false", "--grace-period=1")
        m.wait(lambda: not m.leftovers(), "nothing left")


def ended(m, name, container="main"):
    m.wait(lambda: (m.status(name) or {}).get("phase") in ("Succeeded", "Failed"), f"{name} is over")
    (found,) = [c for c in m.status(name)["containerStatuses"] if c["name"] == container]
    return found["state"]["terminated"]


def once(name, script, **more):
    return pod(name, command=["sh", "-c", script], restartPolicy="Never", **more)


@pytest.mark.parametrize("uid", [None, 1000])
def test_the_usual_file(machine, uid):
    """It is there, anybody may write it, and what it says is no output."""
    name = f"usual-{uid or 0}"
    machine.apply(once(name, "test -w /dev/termination-log && printf 'said %s' $(id -u) > /dev/termination-log; echo out; exit 3",
                       **({"securityContext": {"runAsUser": uid}} if uid else {})))
    found = ended(machine, name)
    assert (found["exitCode"], found["message"]) == (3, f"said {uid or 0}")
    assert machine.kubectl("logs", name) == "out\n"


def test_a_file_elsewhere(machine):
    for name, path in (("tmp", "/tmp/words"), ("deep", "/var/lib/tool/words"), ("volume", "/data/words")):
        machine.apply(once(f"at-{name}", f"echo at {name} > {path}", terminationMessagePath=path,
                           volumes=[{"name": "d", "emptyDir": {}}], volumeMounts=[{"name": "d", "mountPath": "/data"}]))
        assert ended(machine, f"at-{name}")["message"] == f"at {name}\n"


def test_a_sealed_root(machine):
    machine.apply(once("sealed", "! touch /var/x 2>/dev/null && echo here > /dev/termination-log",
                       securityContext={"readOnlyRootFilesystem": True, "runAsUser": 1000}))
    found = ended(machine, "sealed")
    assert (found["exitCode"], found["message"]) == (0, "here\n")


def test_how_much(machine):
    """The end of a long one; a Pod of many has less for each; what is no text is made one."""
    machine.apply(once("long", "seq -w 2000 > /dev/termination-log"))
    said = ended(machine, "long")["message"]
    assert len(said) == 4096 and said.endswith("1999\n2000\n")
    machine.apply(once("raw", r"printf 'a\377b\000c' > /dev/termination-log"))
    assert ended(machine, "raw")["message"] == "a\ufffdb c"
    many = once("many", "seq -w 2000 > /dev/termination-log")
    (main,) = many["spec"]["containers"]
    many["spec"]["containers"] = [{**main, "name": n} for n in "abcdef"]
    machine.apply(many)
    assert len(ended(machine, "many", "a")["message"]) == len(ended(machine, "many", "f")["message"]) == 12 * 1024 // 6


def test_what_is_no_file_says_nothing(machine):
    for name, make in (("link", "ln -s /etc/passwd /tmp/w"), ("fifo", "mkfifo /tmp/w"), ("dir", "mkdir /tmp/w"), ("none", "true")):
        machine.apply(once(f"no-{name}", f"rm -f /tmp/w; {make}; echo out; exit 1", terminationMessagePath="/tmp/w"))
        assert "message" not in ended(machine, f"no-{name}")


def test_the_log_instead(machine):
    """Only where nothing was written, and it ended badly."""
    last = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    machine.apply(once("file", "echo log; echo file > /dev/termination-log; exit 1", **last), once("log", "echo log; exit 1", **last),
                  once("well", "echo log", **last))
    assert ended(machine, "file")["message"] == "file\n" and ended(machine, "log")["message"] == "log\n"
    assert "message" not in ended(machine, "well")


def test_while_others_write(machine):
    """Output to the very end, by processes that are left over: the log has what was written, and nothing of the message."""
    machine.apply(once("busy", "(while :; do echo noise >&2; done) & seq 20000; echo words > /dev/termination-log; exit 4"))
    found = ended(machine, "busy")
    assert (found["exitCode"], found["message"]) == (4, "words\n")
    logs = machine.kubectl("logs", "busy")
    assert "20000" in logs and "words" not in logs


def test_it_is_told_again(machine):
    """Of the attempt before; and by a node that was not there when it ended."""
    m = machine
    m.apply(pod("again", command=["sh", "-c", "echo one > /dev/termination-log; sleep 0.3; exit 1"]))
    m.wait(lambda: ((m.status("again").get("containerStatuses") or [{}])[0].get("lastState", {}).get("terminated") or {}).get("message") == "one\n",
           "the last attempt's")
    m.delete("again")
    m.apply(once("missed", "while ! test -e /tmp/end; do sleep 0.05; done; echo bye > /dev/termination-log; exit 5"))
    uid = m.wait_ready("missed")["metadata"]["uid"]
    box = m.data / "sandboxes" / f"{uid}_main_0"
    end = m.run("exec", "missed", "--", "sh", "-c", "(sleep 1; touch /tmp/end) >/dev/null 2>&1 &")
    assert end.returncode == 0, end.stderr
    m.node.kill()
    wait_until(lambda: (box / "exit.json").exists(), 30, "it ended while nobody looked")
    assert (box / "message").read_text() == "bye\n" and json.loads((box / "exit.json").read_text())["code"] == 5
    m.start_node()
    assert ended(m, "missed")["message"] == "bye\n"

"""The node, its keeper and the API server are killed; nothing is lost that was there, and nothing leaks."""

import json
import os
import signal
import subprocess

import pytest

from harness import proc
from harness.server import wait_until
from lib.machine import Machine, pod

pytestmark = pytest.mark.ours


@pytest.fixture
def machine():
    with Machine() as m:
        yield m


def rest(m):
    m.kubectl("delete", "pods", "--all", "--wait=false", "--grace-period=1")
    m.wait(lambda: not m.leftovers(), "nothing left")


def test_a_new_node_takes_over(machine):
    m, mark, short = machine, proc.unique_sleep(), proc.unique_sleep()
    m.apply(pod("stays", command=["sh", "-c", f"echo first; exec sleep {mark}"]), pod("goes", command=["sleep", short]),
            pod("ends", command=["sh", "-c", "while ! test -e /tmp/end; do sleep 0.05; done; exit 6"], restartPolicy="Never"))
    before = {name: m.wait_ready(name) for name in ("stays", "goes", "ends")}
    running = wait_until(lambda: proc.with_argument(mark), 30)
    m.node.kill()
    # While nobody looks: one Pod is deleted, another one's command ends.
    m.kubectl("delete", "pod", "goes", "--force", "--grace-period=0")
    os.kill(m.pid_of(before["ends"]["metadata"]["uid"] + "_main_0"), signal.SIGKILL)
    m.start_node()
    ended = m.wait_phase("ends", "Failed")
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    m.wait(lambda: not m.boxes_of(before["goes"]) and not proc.with_argument(short), "the orphan is gone")
    now = m.get("stays")
    assert now["status"] == before["stays"]["status"] and proc.with_argument(mark) == running
    assert m.kubectl("exec", "stays", "--", "echo", "there") == "there\n" and m.kubectl("logs", "stays") == "first\n"
    rest(m)


def test_killed_at_any_moment(machine):
    """The node is killed over and over while Pods come and go: in the end there is what the API says, and nothing else."""
    m = machine
    for n in range(6):
        m.apply(*(pod(f"p{n}-{i}", command=["sleep", "4722"]) for i in range(3)))
        m.node.kill()
        if n:
            m.kubectl("delete", "pod", *(f"p{n - 1}-{i}" for i in range(3)), "--wait=false", "--grace-period=0", "--force")
        m.start_node()
    found = [m.wait_ready(f"p5-{i}") for i in range(3)]
    m.wait(lambda: sorted(m.boxes()) == sorted(f"{f['metadata']['uid']}_main_0" for f in found), "no sandbox but these")
    assert len({f["status"]["podIP"] for f in found}) == 3
    rest(m)


def test_the_keeper_is_killed(machine):
    m, mark = machine, proc.unique_sleep()
    m.apply(pod("lost", command=["sleep", mark]))
    m.wait_ready("lost")
    os.kill(m.keeper(), signal.SIGKILL)
    rows = m.wait(lambda: [row for row in m.status("lost")["containerStatuses"] if row["restartCount"] == 1 and row["ready"]], "it is back")
    assert rows[0]["lastState"]["terminated"]["exitCode"] == 137
    assert "Started" in dict(m.events("lost"))
    wait_until(lambda: len(proc.with_argument(mark)) == 2, 30)  # PID 1, and the command: of the new one alone
    m.apply(pod("never", command=["sleep", "4729"], restartPolicy="Never"))
    m.wait_ready("never")
    os.kill(m.keeper(), signal.SIGKILL)
    found = m.wait_phase("never", "Failed")
    ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 137 and "the process that kept it" in ended["message"], ended
    m.apply(pod("next", command=["sleep", "4723"]))
    m.wait_ready("next")
    rest(m)


def test_the_api_server_is_killed(machine):
    m = machine
    m.apply(pod("a", command=["sleep", "4724"]))
    m.wait_ready("a")
    m.api.restart()
    m.apply(pod("b", command=["sleep", "4725"]))
    m.wait_ready("b")
    assert m.kubectl("exec", "a", "--", "echo", "there") == "there\n"
    rest(m)


def test_a_node_that_is_told_to_end_leaves_its_sandboxes(machine):
    m, mark = machine, proc.unique_sleep()
    m.apply(pod("stays", command=["sleep", mark]))
    m.wait_ready("stays")
    running = wait_until(lambda: len(found := proc.with_argument(mark)) == 2 and found, 30)  # PID 1, and the command
    m.node.end()
    assert proc.with_argument(mark) == running
    m.start_node()
    rest(m)
    wait_until(lambda: not proc.with_argument(mark), 30)

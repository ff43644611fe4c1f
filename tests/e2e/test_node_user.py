"""The node of an account that has nothing but its uid: no root is needed."""

import os
import signal

import pytest

from harness import proc
from harness.server import wait_until
from lib.machine import Machine, pod

pytestmark = pytest.mark.ours


@pytest.fixture(scope="module")
def machine():
    if os.geteuid() != 0:
        pytest.skip("the other node tests are a user's already")
    with Machine(who="user") as m:
        yield m


def test_a_pod_runs_and_goes(machine):
    m = machine
    m.apply(pod("server", image="registry.example/agent-sandbox/python-runtime-sandbox:v1"))
    found = m.wait_ready("server")
    assert m.kubectl("exec", "server", "--", "id", "-u") == "0\n"  # inside; outside it is the account
    (box,) = m.boxes_of(found)
    assert os.stat(f"/proc/{m.pid_of(box)}").st_uid != 0
    m.delete("server")
    assert not m.leftovers()


def test_groups_of_a_user(machine):
    m = machine
    grouped = pod("grouped", command=["sleep", "4722"])
    grouped["spec"]["securityContext"] = {"supplementalGroups": [3000]}
    m.apply(grouped)
    m.wait_ready("grouped")
    m.wait(lambda: ("IdsNotServed", 'container "main" is in no group but its own: this account has one id to give') in m.events("grouped"),
           "the Event")
    m.delete("grouped")


def test_containers_share_a_network_and_a_new_node_takes_over(machine):
    m, mark = machine, proc.unique_sleep()
    two = pod("two", command=["python3", "-m", "http.server", "--bind", "127.0.0.1", "7000"])
    two["spec"]["containers"].append({"name": "side", "image": "python:3.11", "command": ["sleep", mark]})
    m.apply(two)
    before = m.wait_ready("two")
    m.node.kill()
    m.start_node()
    fetch = "import urllib.request, time\nfor _ in range(600):\n  try: print(urllib.request.urlopen('http://127.0.0.1:7000').status); break\n" \
            "  except OSError: time.sleep(0.05)"
    assert m.kubectl("exec", "two", "-c", "side", "--", "python3", "-c", fetch) == "200\n"
    assert m.get("two")["status"] == before["status"]
    os.kill(m.keeper(), signal.SIGKILL)
    m.wait(lambda: [(row["restartCount"], row["ready"]) for row in m.status("two")["containerStatuses"]] == [(1, True)] * 2, "both are back")
    assert [row["lastState"]["terminated"]["exitCode"] for row in m.status("two")["containerStatuses"]] == [137] * 2
    assert m.kubectl("exec", "two", "-c", "side", "--", "python3", "-c", fetch) == "200\n"
    wait_until(lambda: len(proc.with_argument(mark)) == 2, 30)  # PID 1, and the command: of the new one alone
    m.delete("two")
    m.wait(lambda: not m.leftovers(), "nothing left")

"""What sandboxes take of their machine has an end where no limit is asked for: each one's, and that of all together; and whoever
is beside them goes on. As root, with cgroups, and as an account that has nothing but its uid. What is tried is small: the limits
are configured, but for one test of the defaults, which asks for no more than 1,100 processes."""

import json
import os
import pathlib
import signal
import subprocess

import pytest

from harness.owner import keeper_of
from harness.server import wait_until
from lib import controlplane
from lib import up as ups

pytestmark = pytest.mark.ours
PIDS, MEMORY_MIB, TOTAL_PIDS, TOTAL_MIB = 64, 96, 400, 256

# Says how many it made before the kernel refused, and ends all of them.
BOMB = """
import os, signal
made = []
try:
    while len(made) < %d:
        pid = os.fork()
        if pid == 0:
            os.closerange(0, 3)
            signal.pause()
        made.append(pid)
    why = 'all'
except OSError as e:
    why = os.strerror(e.errno)
print(why, len(made), flush=True)
%s
for pid in made:
    os.kill(pid, 9)
"""
GRAB = "x = bytearray(%d << 20); print(len(x) >> 20)"


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param, "--pids", PIDS, "--memory", f"{MEMORY_MIB}M", "--total-pids", TOTAL_PIDS,
                       "--total-memory", f"{TOTAL_MIB}M") as started:
        started.is_root = request.param == "root"
        started.wait_warm()
        yield started


def pods(up):
    return [p for p in up.api.call("GET", "/api/v1/namespaces/default/pods")["items"]
            if p["status"].get("phase") == "Running" and not p["metadata"].get("deletionTimestamp")]


def start_pod(up, name, **container):
    up.api.call("POST", "/api/v1/namespaces/default/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "python:3.11", "command": ["sleep", "600"], **container}]}})
    wait_until(lambda: any(p["metadata"]["name"] == name for p in pods(up)), 60, f"{name} runs")
    return name


def python_in(up, pod, code, check=True):
    return up.kubectl("exec", pod, "--", "python3", "-c", code, check=check)


def spawn_in(up, pod, code):
    return subprocess.Popen([controlplane.peer("kubectl"), "--kubeconfig", up.ready["kubeconfig"], "--cache-dir",
                             str(up.directory / "cache"), "exec", pod, "--", "python3", "-c", code],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def goes_on(up, neighbour):
    """A neighbour's commands, the API server and another `run`."""
    assert python_in(up, neighbour, "print(6 * 7)") == "42\n"
    assert up.api.call("GET", f"/api/v1/namespaces/default/pods/{neighbour}")["status"]["phase"] == "Running"
    done = up.run("run", "--", "echo", "on")
    assert done.stdout == "on\n", done


@pytest.fixture(scope="module")
def neighbours(up):
    return [start_pod(up, f"neighbour-{i}") for i in range(3)]


SOCKETS = """
import socket
reader = socket.create_server(('127.0.0.1', 0))
sent = socket.create_connection(reader.getsockname())
sent.setblocking(False)
n = 0
try:
    while n < 64 << 20: n += sent.send(bytes(1 << 16))
except BlockingIOError:
    print(n)
"""


@pytest.mark.parametrize("up", ["root", "user"], indirect=True)
def test_a_socket_that_nobody_reads_holds_little(up, neighbours):
    assert int(python_in(up, neighbours[1], SOCKETS)) < 1 << 20


@pytest.mark.parametrize("who", ["root", "user"])
def test_a_sandbox_of_the_default_pool_has_limits_that_nobody_asked_for(who):
    with ups.as_caller(who) as up:
        up.wait_warm()
        pod = pods(up)[0]
        assert not pod["spec"]["containers"][0].get("resources"), "they are the node's, and not written into the Pod"
        why, made = python_in(up, pod["metadata"]["name"], BOMB % (1100, "")).rsplit(" ", 1)
        assert why == "Resource temporarily unavailable" and 900 < int(made) < 1024
        assert python_in(up, pod["metadata"]["name"], "print(open('/proc/self/oom_score_adj').read())").strip() == "500"


def test_a_fork_bomb_ends_at_the_configured_limit(up, neighbours):
    bomb, neighbour, _ = neighbours
    running = spawn_in(up, bomb, BOMB % (4 * PIDS, "import time; time.sleep(20)"))
    try:
        why, made = running.stdout.readline().rsplit(" ", 1)
        assert why == "Resource temporarily unavailable" and PIDS // 2 < int(made) < PIDS
        goes_on(up, neighbour)
        assert running.poll() is None, "it went on while the bomb was there"
    finally:
        running.kill()
        running.wait()


@pytest.mark.parametrize("up", ["root"], indirect=True)
def test_a_limit_that_a_pod_asks_for_is_its_own(up):
    pod = start_pod(up, "asks", resources={"limits": {"memory": "160Mi"}})
    assert python_in(up, pod, GRAB % 120) == "120\n"
    assert python_in(up, pod, GRAB % 180, check=False).returncode == 137
    up.api.call("DELETE", f"/api/v1/namespaces/default/pods/{pod}?gracePeriodSeconds=0")


@pytest.mark.parametrize("up", ["root"], indirect=True)
def test_memory_ends_at_the_configured_limit(up, neighbours):
    _, neighbour, hog = neighbours
    assert python_in(up, hog, GRAB % 48) == "48\n"
    assert python_in(up, hog, GRAB % (2 * MEMORY_MIB), check=False).returncode == 137
    goes_on(up, neighbour)
    fill = f"f = open('/tmp/f', 'wb')\nfor i in range({2 * MEMORY_MIB}): f.write(bytes(1 << 20)); f.flush()"
    assert python_in(up, hog, fill, check=False).returncode == 137, "files in memory count"


def test_all_sandboxes_together_have_a_limit(up, neighbours):
    """Each stays below its own, and `silica run` joins."""
    pods = [start_pod(up, f"crowd-{i}") for i in range(7)]
    hold = "import time; time.sleep(30)"
    running, made, refused = [], 0, 0
    try:
        for pod in pods:
            running.append(spawn_in(up, pod, BOMB % (PIDS - 16, hold)))
        for each in running:
            line = each.stdout.readline()
            made += int(line.rsplit(" ", 1)[1]) if " " in line else 0
            refused += "all" not in line
        assert refused and made < TOTAL_PIDS, (made, refused)
        if up.is_root:
            done = up.run("run", "--", "python3", "-c", BOMB % (PIDS, ""), check=False)
            assert "all" not in done.stdout, "a run without a word of limits is in the group, too"
        assert up.api.call("GET", f"/api/v1/namespaces/default/pods/{pods[0]}")["status"]["phase"] == "Running"
    finally:
        for each in running:
            each.kill()
            each.wait()
        for pod in pods:
            up.api.call("DELETE", f"/api/v1/namespaces/default/pods/{pod}?gracePeriodSeconds=0")


def groups_of(up):
    """Of the keeper's parent, as its file says."""
    return [pathlib.Path(p) for p in json.loads((up.data / "limits.json").read_text())["cgroups"].values()]


@pytest.mark.parametrize("up", ["root"], indirect=True)
def test_all_memory_together_has_a_limit(up, neighbours):
    pods = [start_pod(up, f"eater-{i}") for i in range(4)]
    running = [spawn_in(up, pod, GRAB % 80 + "\nimport time; time.sleep(10)") for pod in pods]
    codes = [each.wait(60) for each in running]
    assert 137 in codes and codes.count(137) < len(codes), codes
    goes_on(up, neighbours[1])
    for pod in pods:
        up.api.call("DELETE", f"/api/v1/namespaces/default/pods/{pod}?gracePeriodSeconds=0")


def test_what_does_not_hold_is_told(up):
    """A default that cannot be enforced is no error: the Node's condition, one Event and `silica status` say so."""
    node = up.api.call("GET", "/api/v1/nodes")["items"][0]
    condition = next(c for c in node["status"]["conditions"] if c["type"] == "SandboxLimitsEnforced")
    events = [e for e in up.api.call("GET", "/api/v1/namespaces/default/events")["items"]
              if e["reason"] == "LimitsNotEnforced" and e["involvedObject"]["kind"] == "Node"]
    rows = [p for p in up.status()["protections"] if p["name"] == "total limits"]
    if up.is_root:
        assert condition["status"] == "True" and not events and rows[0]["verdict"] == "ok"
    else:
        assert condition["status"] == "False" and "memory" in condition["message"]
        assert len(events) == 1 and rows[0]["verdict"] == "lacks" and "memory" in rows[0]["text"]


HOG = """
import time
held = []
for _ in range(128):
    held.append(b'x' * (16 << 20))
    time.sleep(0.01)
time.sleep(60)
"""


def figure(name):
    return next(int(l.split()[1]) << 10 for l in pathlib.Path("/proc/meminfo").read_text().splitlines() if l.startswith(name + ":"))


LOOPS = """
import os, resource, sys, time
for _ in range(%d):
    if os.fork() == 0:
        end = time.monotonic() + 4
        while time.monotonic() < end: pass
        os._exit(0)
while True:
    try: os.wait()
    except ChildProcessError: break
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""


@pytest.mark.parametrize("up", ["root"], indirect=True)
def test_one_busy_process_has_its_part_beside_a_sandbox_of_many(up, neighbours):
    processors = os.cpu_count()
    many, one = (spawn_in(up, pod, LOOPS % n) for pod, n in zip(neighbours[1:], (8 * processors, 1)))
    many, one = (float(p.communicate(timeout=60)[0]) for p in (many, one))
    assert one / (many / processors) > 0.3, "an eighth, if each process had the same"


def test_without_cgroups_the_sandbox_most_over_its_share_ends_before_the_machine_runs_out():
    """The floor is 300 MiB below what the machine has left now, so 2 GiB reach it."""
    total = figure("MemTotal") - figure("MemAvailable") + (300 << 20)
    with ups.as_caller("user", "--memory", "64M", "--total-memory", total) as up:
        up.wait_warm()
        neighbour = start_pod(up, "neighbour")
        up.api.call("POST", "/api/v1/namespaces/default/pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hog"},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "python:3.11", "command": ["python3", "-c", HOG]}]}})

        def ended():
            statuses = up.api.call("GET", "/api/v1/namespaces/default/pods/hog")["status"].get("containerStatuses")
            return statuses and statuses[0]["state"].get("terminated")

        assert {k: wait_until(ended, 60, "it ends")[k] for k in ("reason", "exitCode")} == {"reason": "OOMKilled", "exitCode": 137}
        wait_until(lambda: [e for e in up.api.call("GET", "/api/v1/namespaces/default/events")["items"]
                            if e["reason"] == "OOMKilled" and e["involvedObject"]["name"] == "hog"], 20, "an Event")
        goes_on(up, neighbour)


def test_the_groups_go_with_the_keeper():
    """Also when it is killed: the next one has its own, and removes what is left."""
    with ups.as_caller("root") as up:
        up.wait_warm()
        first = groups_of(up)
        assert first and all(p.is_dir() for p in first)
        os.kill(keeper_of(up.data), signal.SIGKILL)
        wait_until(lambda: (up.data / "limits.json").exists() and groups_of(up) != first, 60, "another keeper has its own")
        second = groups_of(up)
        wait_until(lambda: not any(p.exists() for p in first), 30, "those of the killed one are gone")
        up.run("down", "--sandboxes")
        wait_until(lambda: not any(p.exists() for p in second), 30, "all are gone")

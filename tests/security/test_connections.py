"""Another account of the machine opens as many connections as a `silica up` may have, and says nothing on them: the owner is served all the
same, at the API server and at the router."""

import http.client
import json
import ssl
import subprocess
import sys

import pytest

from lib import up as ups

pytestmark = pytest.mark.ours
OTHER = 65533
PROCESSES, EACH = 3, 7000  # more than each of the two may have; a process has few descriptors

# Opens connections until the number is reached, and again those that end, for as long as its input is open. Says when it is at the number,
# or when the server lets it have no more.
ATTACK = r"""
import os, resource, select, socket, sys
host, port, wanted = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
held, ended, opened = {}, select.epoll(), 0

def drop_ended():
    for fd, _ in ended.poll(0, 4096):
        held.pop(fd).close()

while opened < wanted:
    s = socket.socket()
    try:
        s.connect((host, port))
    except OSError:
        s.close()
        break
    opened += 1
    held[s.fileno()] = s
    ended.register(s.fileno(), select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR)
    if opened % 256 == 0:
        drop_ended()
print(opened, flush=True)
sys.stdin.read()
"""


class Crowd:
    """Silent connections of another account."""

    def __init__(self, address, each=EACH, processes=PROCESSES):
        host, _, port = address.rpartition(":")
        argv = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", sys.executable, "-c", ATTACK, host, port, str(each)]
        self.processes = [subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/") for _ in range(processes)]
        self.opened = sum(int(p.stdout.readline()) for p in self.processes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.processes:
            p.kill()
            p.communicate()


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param) as started:
        yield started


def answer_to(prefix, url):
    """The status that a new connection of an account gets; 0: none."""
    done = subprocess.run([*prefix, "curl", "-s", "-m", "30", "-o", "/dev/null", "-w", "%{http_code}", url], stdout=subprocess.PIPE, text=True, cwd="/")
    return int(done.stdout)


def test_the_api_server(up):
    with Crowd(up.ready["listen"][0]) as crowd:
        assert crowd.opened == PROCESSES * EACH
        for _ in range(5):
            up.kubectl("get", "pods")  # on a connection of its own


def test_the_router(up):
    address = up.ready["router"].removeprefix("http://")
    with Crowd(address) as crowd:
        assert crowd.opened == PROCESSES * EACH
        for _ in range(5):
            assert answer_to(up.prefix, f"http://{address}/healthz") == 200


def test_the_log_stays_short(up):
    """A line for each connection would be a way to fill the owner's disk."""
    for name in ("control", "router"):
        lines = [line for path in (up.data / "logs").glob(f"{name}*/log") for line in path.read_text(errors="replace").splitlines()]
        assert lines and len([line for line in lines if "event=http.full" in line or "event=router.stranger" in line]) < 300


def follow(up, token, pod, namespace):
    """An open stream of the Pod's log: its status and what holds it."""
    host, _, port = up.ready["listen"][0].rpartition(":")
    context = ssl.create_default_context(cafile=str(up.api.ca_file))
    there = http.client.HTTPSConnection(host, int(port), context=context, timeout=60)
    there.request("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}/log?follow=true", headers={"Authorization": f"Bearer {token}"})
    answer = there.getresponse()
    return answer, there


def test_one_namespaces_streams(up):
    """A tenant that follows logs without end still leaves streams to the tenants of other namespaces, and to the administrator."""
    tokens = {}
    for namespace in ("team-a", "team-b"):
        tokens[namespace] = up.run("token", "-n", namespace, "--role", "edit").stdout.strip()
        up.kubectl("run", "-n", namespace, "x", "--image=python:3.12-slim", "--restart=Never", "--command", "--", "sleep", "600")
        up.kubectl("wait", "-n", namespace, "--for=condition=Ready", "pod/x", "--timeout=60s")
    held = []
    try:
        for _ in range(1100):
            held.append(follow(up, tokens["team-a"], "x", "team-a"))
            if held[-1][0].status != 200:
                break
        refused = held[-1][0]
        assert refused.status == 429 and "team-a" in json.loads(refused.read())["message"] and refused.headers["Retry-After"]
        assert len(held) > 1000
        assert follow(up, tokens["team-b"], "x", "team-b")[0].status == 200
        assert up.kubectl("exec", "-n", "team-a", "x", "--", "echo", "in") == "in\n"
    finally:
        for _, there in held:
            there.close()

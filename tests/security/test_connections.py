"""Another account of the machine opens as many connections as a `silica up` may have, and says nothing on them: the owner is served all the
same, at the API server and at the router."""

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

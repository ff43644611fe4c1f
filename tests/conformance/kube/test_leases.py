"""Leader election: ours (src/kube/lease.h) and client-go's want the same Lease."""

import contextlib
import pathlib
import subprocess
import threading
import time

import pytest

from lib import controlplane

PROBE = pathlib.Path(__file__).resolve().parents[3] / "build/debug/src/kubeclient/lease_probe"
LEASE = "leader"  # what client-go's part "election" is about: "one" leads for half a second, then "two"


class Lines:
    """A program whose lines are collected as they come."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(map(str.strip, iter(self.process.stdout.readline, ""))),
                                       daemon=True)
        self.errors = threading.Thread(target=self.process.stderr.read, daemon=True)
        self.reader.start()
        self.errors.start()

    def wait_for(self, line):
        end = time.monotonic() + 40
        while line not in self.lines:
            assert time.monotonic() < end, f"no {line!r} in {self.lines}"
            time.sleep(0.01)

    def end(self):
        """Ours gives its Lease back and goes."""
        self.process.stdin.close()
        assert self.process.wait(30) == 0
        self.reader.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def want(api, ns):
    """Starts one of ours."""
    if not PROBE.exists():
        pytest.skip("lease_probe is built with the unit tests")
    with contextlib.ExitStack() as all_of_them:
        yield lambda identity, seconds=5: all_of_them.enter_context(
            Lines(PROBE, api.kubeconfig, ns, LEASE, identity, str(seconds)))


@pytest.fixture
def client_go(api, ns):
    try:
        program = controlplane.peer("client-go")
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with contextlib.ExitStack() as all_of_them:
        yield lambda: all_of_them.enter_context(Lines(program, "-kubeconfig", api.kubeconfig, "-namespace", ns, "election"))


def lease_of(api, ns):
    return api.request("GET", f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/{LEASE}").json()["spec"]


def test_handed_from_ours_to_client_go_and_back(api, ns, want, client_go):
    ours = want("ours")
    ours.wait_for("leads")
    first = lease_of(api, ns)
    assert (first["holderIdentity"], first["leaseDurationSeconds"], first["leaseTransitions"]) == ("ours", 5, 0)
    theirs = client_go()
    time.sleep(6)  # longer than the Lease lasts: ours renews it all the while
    assert theirs.lines == []
    assert ours.lines == ["leader ours", "leads"]
    assert lease_of(api, ns)["acquireTime"] == first["acquireTime"]
    ours.end()
    assert ours.lines[-1] == "closed"
    theirs.wait_for("one leads: holder one, 1 transitions")
    again = want("again")
    assert theirs.process.wait(60) == 0  # "two" had it too
    theirs.reader.join()
    assert [line for line in theirs.lines if "leads" in line][1].startswith("two leads: holder two, ")
    again.wait_for("leads")
    assert "lost" not in again.lines
    assert lease_of(api, ns)["holderIdentity"] == "again"


def test_taken_over_when_ours_is_killed(api, ns, want, client_go):
    ours = want("ours")
    ours.wait_for("leads")
    theirs = client_go()
    time.sleep(1)
    killed = time.monotonic()
    ours.process.kill()
    theirs.wait_for("one leads: holder one, 1 transitions")
    assert time.monotonic() - killed > 3  # not before the Lease was over: 5 s, less some renewals' time


def test_taken_over_when_client_go_is_killed(api, ns, want, client_go):
    theirs = client_go()
    theirs.wait_for("one leads: holder one, 0 transitions")
    theirs.process.kill()
    ours = want("ours")
    ours.wait_for("leader one")
    assert "leads" not in ours.lines
    ours.wait_for("leads")
    assert lease_of(api, ns)["leaseTransitions"] == 1
    ours.end()
    assert lease_of(api, ns)["holderIdentity"] == ""


def test_of_three_of_ours_one_leads_at_a_time(api, ns, want):
    left = [want(name) for name in ("a", "b", "c")]
    for turn in range(3):
        end = time.monotonic() + 30
        while not any("leads" in probe.lines for probe in left):
            assert time.monotonic() < end
            time.sleep(0.01)
        time.sleep(0.5)
        leading = [probe for probe in left if "leads" in probe.lines]
        assert len(leading) == 1
        leading[0].end()
        left.remove(leading[0])
        assert "lost" not in leading[0].lines

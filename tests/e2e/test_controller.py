"""`silica controller` as a process of its own: what it shows, who of two works, and how it ends."""

import os
import re
import subprocess
import urllib.error
import urllib.request

import pytest

from harness.server import TREE, wait_until
from lib import controlplane
from lib.controllers import Controller, condition, ready_pods

pytestmark = pytest.mark.ours
LEASE = "/apis/coordination.k8s.io/v1/namespaces/agent-sandbox-system/leases/a3317529.agent-sandbox.x-k8s.io"
SANDBOX = {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "demo"},
           "spec": {"service": True, "podTemplate": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}}


@pytest.fixture(scope="module")
def api():
    with controlplane.Silica("--log-level", "warn") as server:
        yield server


def get(address, path, method="GET"):
    try:
        with urllib.request.urlopen(urllib.request.Request(f"http://{address}{path}", method=method), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_shows_itself_and_gives_the_lease_back(api):
    with Controller(api) as c:
        assert set(c.ready) == {"metrics", "health", "webhook"} and re.fullmatch(r".+:\d+", c.ready["webhook"])
        assert get(c.ready["health"], "/healthz") == (200, "ok")
        wait_until(lambda: get(c.ready["health"], "/readyz") == (200, "ok"), 30)  # no definition here leads to its webhook
        assert get(c.ready["health"], "/metrics")[0] == 404
        assert get(c.ready["metrics"], "/healthz")[0] == 404
        assert get(c.ready["metrics"], "/metrics", "POST")[0] == 405
        c.wait_for("controller.working")
        first = c.lines()[0]
        assert list(first)[:4] == ["level", "ts", "logger", "msg"] and first["logger"] == "controller"
        assert c.metric("leader_election_master_status") == ["1"]
        assert c.metric("workqueue_depth") != []
        assert c.metric('rest_client_requests_total{code="200",method="GET"}') != []
        assert float(c.metric("process_resident_memory_bytes")[0]) > 1 << 20
        held = api.call("GET", LEASE)["spec"]
        assert held["leaseDurationSeconds"] == 15 and "_" in held["holderIdentity"]
        c.end()
    assert api.call("GET", LEASE)["spec"]["holderIdentity"] == ""


def test_makes_what_a_sandbox_wants(api):
    with Controller(api, "--cluster-domain=example.org") as c:
        api.call("POST", "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes", SANDBOX)
        path = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/demo"
        wait_until(lambda: api.call("GET", path).get("status", {}).get("serviceFQDN") == "demo.default.svc.example.org", 30)
        pods = api.call("GET", "/api/v1/namespaces/default/pods")["items"]
        assert [(pod["metadata"]["name"], pod["metadata"]["ownerReferences"][0]["kind"]) for pod in pods] == [("demo", "Sandbox")]
        c.end()


def test_a_claim_takes_a_warm_sandbox_and_the_pool_makes_another(api):
    ours = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/pooled"
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "pooled"}})

    def make(kind, name, spec):
        api.call("POST", f"{ours}/{kind.lower()}s", {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": kind,
                                                     "metadata": {"name": name}, "spec": spec})

    make("SandboxTemplate", "t", SANDBOX["spec"])
    make("SandboxWarmPool", "p", {"replicas": 1, "sandboxTemplateRef": {"name": "t"}})
    with Controller(api) as c:
        wait_until(lambda: ready_pods(api, "pooled"), 30)
        wait_until(lambda: api.call("GET", f"{ours}/sandboxwarmpools/p").get("status", {}).get("readyReplicas") == 1, 30)
        make("SandboxClaim", "c", {"warmPoolRef": {"name": "p"}})
        wait_until(lambda: condition(api.call("GET", f"{ours}/sandboxclaims/c")) == "True", 30)
        name = api.call("GET", f"{ours}/sandboxclaims/c")["status"]["sandbox"]["name"]
        taken = api.call("GET", f"/apis/agents.x-k8s.io/v1beta1/namespaces/pooled/sandboxes/{name}")
        assert name.startswith("p-") and taken["metadata"]["ownerReferences"][0]["kind"] == "SandboxClaim"
        wait_until(lambda: ready_pods(api, "pooled"), 30)
        sandboxes = api.call("GET", "/apis/agents.x-k8s.io/v1beta1/namespaces/pooled/sandboxes")["items"]
        assert len(sandboxes) == 2
        assert len(c.metric("workqueue_depth")) == 4
        # Its latency is counted once, and noted on the claim, so that nobody counts it again.
        notes = "agents.x-k8s.io/claim-first-ready-at"
        wait_until(lambda: notes in api.call("GET", f"{ours}/sandboxclaims/c")["metadata"].get("annotations", {}), 30)
        assert c.metric("agent_sandbox_claim_controller_startup_latency_ms_count") == ["1"]
        assert c.metric("agent_sandbox_claim_creation_total") == ["1"]
        assert sorted(c.metric("agent_sandboxes"))[-1] == "1"
        first = api.call("GET", f"{ours}/sandboxclaims/c")["metadata"]["annotations"][notes]
        c.end()
    with Controller(api) as c:
        c.wait_for("controller.working")
        wait_until(lambda: ready_pods(api, "pooled") == 0, 30)
        assert c.metric("agent_sandbox_claim_controller_startup_latency_ms_count") == []
        assert api.call("GET", f"{ours}/sandboxclaims/c")["metadata"]["annotations"][notes] == first
        c.end()


def test_of_two_the_second_works_when_the_first_ends(api):
    with Controller(api) as one:
        one.wait_for("controller.working")
        with Controller(api) as two:
            two.wait_for("lease.leader")
            assert two.metric("leader_election_master_status") == ["0"]
            assert two.said("controller.working") == []
            one.end()
            two.wait_for("controller.working")
            two.end()


def test_without_election_there_is_no_lease(api):
    with Controller(api, "--leader-elect=false") as c:
        c.wait_for("controller.working")
        assert c.said("lease.state") == []
        c.end()


@pytest.mark.parametrize("arguments, code, text", [
    (["--sandbox-concurrent-workers=0"], 2, "--sandbox-concurrent-workers"),
    (["--sandbox-warm-pool-max-refill-rate=-1"], 125, "--sandbox-warm-pool-max-refill-rate: -1 is less than 0"),
    (["--kube-api-qps=many"], 125, "--kube-api-qps: 'many' is not a number"),
    (["--zap-log-level=loud"], 125, "--zap-log-level: 'loud'"),
    (["--zap-encoder=xml"], 125, "--zap-encoder: 'xml' is neither json nor console"),
    (["--kubeconfig=/nowhere/at/all"], 125, "/nowhere/at/all"),
    (["now"], 2, "unexpected argument 'now'"),
])
def test_wrong_flags(arguments, code, text):
    done = subprocess.run([os.environ.get("SILICA", str(TREE / "build" / "silica")), "controller", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr


def test_flags_without_effect_are_taken_and_said(api):
    with Controller(api, "--enable-webhook=false", "--enable-tracing", "--api-connections=2", "--leader-elect=false") as c:
        assert c.ready["webhook"] is None
        c.wait_for("controller.working")
        assert [line["flag"] for line in c.said("controller.flag")] == ["--enable-tracing", "--api-connections"]
        c.end()


def test_what_runs_of_the_program_stands_together(api):
    """The kernel maps 64 KiB around each page that runs: spread over the program (without src/cli/used.ld and packed relocations)
    that was 6.3 of its 11 MiB."""
    with Controller(api, "--enable-webhook=false", "--leader-elect=false") as c:
        c.wait_for("controller.working")
        with open(f"/proc/{c.process.pid}/status", encoding="ascii") as status:
            kib = {line.split(":")[0]: int(line.split()[1]) for line in status if line.startswith("Rss")}
        assert kib["RssShmem"] + kib["RssFile"] < 5 * 1024, kib
        c.end()

"""`silica controller` before an API server in trouble: throttling, tokens that end, refusals. It backs off, says so once, and recovers."""

import pytest

from harness.kube_gate import Gate
from harness.server import wait_until
from lib import controlplane
from lib.controllers import Controller

pytestmark = pytest.mark.ours
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes"
PODS = "/api/v1/namespaces/default/pods"


def sandbox(name):
    return {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": name},
            "spec": {"podTemplate": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}}


@pytest.fixture(scope="module")
def api():
    with controlplane.Silica("--log-level", "warn") as server:
        yield server


def behind(api, gate, *options):
    return Controller(api, "--leader-elect=false", "--enable-webhook=false", *options, kubeconfig=gate.kubeconfig)


def warnings(c, msg):
    return [line for line in c.said(msg) if line["level"] == "warn"]


def test_throttled_writes_wait_as_long_as_they_are_told(api, tmp_path):
    with Gate(api, tmp_path) as gate, behind(api, gate) as c:
        c.wait_for("controller.working")
        gate.refuse = lambda method, path, headers: (429, {"retry-after": "1"}) if method == "POST" and path.startswith(PODS) else None
        api.call("POST", SANDBOXES, sandbox("throttled"))
        wait_until(lambda: gate.count(429) >= 2, 30)
        gate.refuse = None
        wait_until(lambda: api.exists(f"{PODS}/throttled"), 30)
        # One call asked again after a second each: no new passes, so few refusals and not a line about them.
        assert gate.count(429) <= 5 and warnings(c, "sandbox.pass") == []
        assert c.metric('rest_client_requests_total{code="429",method="POST"}') != []


def test_throttled_lists_begin_later(api, tmp_path):
    with Gate(api, tmp_path) as gate:
        gate.refuse = lambda method, path, headers: (429, {"retry-after": "1"})
        with behind(api, gate) as c:
            wait_until(lambda: gate.count(429) >= 12, 30)  # eight copies, a second time
            assert c.said("controller.working") == []
            gate.refuse = None
            c.wait_for("controller.working")
            assert len(warnings(c, "informer.retry")) <= 8


def test_a_token_that_ended_is_read_anew(api, tmp_path):
    token = tmp_path / "token"
    token.write_text("old")
    good = ["old"]
    with Gate(api, tmp_path, token_file=token) as gate:
        gate.refuse = lambda method, path, headers: None if headers.get("authorization") == f"Bearer {good[0]}" else (401, {})
        with behind(api, gate) as c:
            c.wait_for("controller.working")
            good[0] = "new"
            api.call("POST", SANDBOXES, sandbox("late"))
            wait_until(lambda: warnings(c, "sandbox.pass"), 30)
            assert not api.exists(f"{PODS}/late") and gate.count(401) >= 1 and "401" in c.metrics()
            token.write_text("new")
            wait_until(lambda: api.exists(f"{PODS}/late"), 60)


def test_refusals_of_everything_are_few_lines(api, tmp_path):
    with Gate(api, tmp_path) as gate, behind(api, gate) as c:
        c.wait_for("controller.working")
        gate.refuse = lambda method, path, headers: (403, {}) if method in ("POST", "PATCH", "PUT", "DELETE") else None
        for i in range(40):
            api.call("POST", SANDBOXES, sandbox(f"many-{i}"))
        wait_until(lambda: gate.count(403) >= 200, 60)
        said = warnings(c, "sandbox.pass")
        assert 1 <= len(said) <= 30 and "refused at the gate" in said[0]["err"]
        gate.refuse = None
        wait_until(lambda: all(api.exists(f"{PODS}/many-{i}") for i in range(40)), 60)


def test_a_copy_that_cannot_be_kept_up_is_said_once_and_shown(api, tmp_path):
    with Gate(api, tmp_path) as gate:
        gate.refuse = lambda method, path, headers: (403, {}) if path.startswith("/api/v1/services") else None
        with behind(api, gate) as c:
            wait_until(lambda: gate.count(403) >= 4, 30)
            said = warnings(c, "informer.retry")
            assert [(line["kind"], line["code"]) for line in said] == [("Service", 403)]
            assert c.metric('silica_informer_failing{kind="Service"}') == ["1"] and c.metric('silica_informer_failing{kind="Pod"}') == ["0"]
            gate.refuse = None
            c.wait_for("controller.working")
            assert [line["kind"] for line in c.said("informer.well")] == ["Service"]
            assert c.metric('silica_informer_failing{kind="Service"}') == ["0"]


def test_a_server_that_is_gone_is_said_once(api, tmp_path):
    with Controller(api, "--leader-elect=false", "--enable-webhook=false") as c:
        c.wait_for("controller.working")
        assert c.metric("silica_apiserver_reachable") == ["1"]
        api.kill()
        c.wait_for("controller.unreachable")
        assert c.metric("silica_apiserver_reachable") == ["0"]
        api.start("--listen", api.url.removeprefix("https://"))
        c.wait_for("controller.reached")
        api.call("POST", SANDBOXES, sandbox("after"))
        wait_until(lambda: api.exists(f"{PODS}/after"), 60)
        assert len(c.said("controller.unreachable")) == 1 and c.metric("silica_apiserver_reachable") == ["1"]

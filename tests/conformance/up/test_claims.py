"""Claims as every release makes them: labels, their time, wrong names, and what the SDK says of all that in its log."""

import datetime
import logging

import pytest
from conftest import CLAIMS, HAS_POOLS, RELEASE, create

from harness.server import wait_until

# Words of its log, in their order; a claim becomes ready where it is resolved, since 0.5.
STEPS = ["Creating SandboxClaim", "Resolved sandbox name", *(() if HAS_POOLS else ("is ready",)), "Starting tunnel", "Tunnel ready at",
         "Stopping port-forwarding", "has been closed", "Terminated SandboxClaim"]


def test_labels_and_listing(make, direct, up):
    box = make(direct, labels={"team": "blue", "example.com/stage": "test"})
    claim = up.api.call("GET", f"{CLAIMS}/{box.claim_name}")
    assert claim["metadata"]["labels"].items() >= {"team": "blue", "example.com/stage": "test"}.items()
    if HAS_POOLS:
        assert direct.list_all_sandboxes(label_selector="team=blue") == [box.claim_name]
        assert direct.list_all_sandboxes(label_selector="team=red") == []
    assert box.get_pod_name()
    if RELEASE >= (0, 4):
        assert box.status()[0] == "SandboxReady" and box.get_pod_ip().startswith("127.")


if RELEASE >= (0, 4):
    def test_its_time(make, direct, up):
        from k8s_agent_sandbox import exceptions
        short, long = make(direct, shutdown_after_seconds=1), make(direct, shutdown_after_seconds=3600)
        lifecycle = up.api.call("GET", f"{CLAIMS}/{long.claim_name}")["spec"]["lifecycle"]
        left = datetime.datetime.fromisoformat(lifecycle["shutdownTime"].replace("Z", "+00:00")) - datetime.datetime.now(datetime.timezone.utc)
        assert 3000 < left.total_seconds() <= 3600 and lifecycle["shutdownPolicy"] == "Delete"
        wait_until(lambda: not up.api.exists(f"{CLAIMS}/{short.claim_name}"), 60, "its time is over")
        with pytest.raises(exceptions.SandboxNotFoundError):
            direct.get_sandbox(short.claim_name, resolve_timeout=1)
        assert long.commands.run("echo here").stdout == "here\n"


def test_wrong_names(direct, open_client, make, up):
    from k8s_agent_sandbox import exceptions, models
    with pytest.raises(exceptions.SandboxNotFoundError):
        direct.get_sandbox("nobody-made-this", resolve_timeout=1)
    wrong = {(0, 3): TimeoutError, (0, 4): exceptions.__dict__.get("SandboxTemplateNotFoundError")}.get(RELEASE[:2])
    with pytest.raises(wrong or exceptions.SandboxWarmPoolNotFoundError):
        create(direct, "no-such-thing", **({"sandbox_ready_timeout": 1} if wrong is TimeoutError else {}))
    assert not [c for c in up.api.call("GET", CLAIMS)["items"] if "no-such-thing" in str(c["spec"])]  # it is deleted again
    with pytest.raises(Exception, match="(?i)not found") as e:
        create(direct, namespace="no-such-namespace")
    assert e.value.status == 404
    if "router_namespace" in models.SandboxLocalTunnelConnectionConfig.model_fields:
        with pytest.raises(exceptions.SandboxPortForwardError, match="not found"):
            make(open_client("tunnel", router_namespace="no-such-namespace")).commands.run("true")


def test_what_its_log_says(open_client, caplog):
    caplog.set_level(logging.INFO)
    box = create(open_client("tunnel"))
    assert box.commands.run("echo 1").stdout == "1\n"
    box.terminate()
    said = [r for r in caplog.records if r.threadName == "MainThread"]
    assert [r.getMessage() for r in said if r.levelno > logging.INFO] == []
    text = "\n".join(r.getMessage() for r in said)
    at = [text.find(step) for step in STEPS]
    assert -1 not in at and at == sorted(at), text

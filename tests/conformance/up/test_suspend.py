"""A handle suspends its sandbox, as the public extension does it, and speaks to it again when it runs."""

import pytest
from conftest import CLAIMS, RELEASE

from harness.server import wait_until


def test_suspended_and_resumed(make, direct, up):
    from k8s_agent_sandbox import exceptions
    from k8s_agent_sandbox.gke_extensions.snapshots.sandbox_with_snapshot_support import SandboxWithSnapshotSupport
    made = make(direct)
    box = SandboxWithSnapshotSupport(made.claim_name, made.sandbox_id, connection_config=direct.connection_config)
    box.commands.run("sh -c 'echo kept >/workspace/note'")
    box.files.write("of-the-sdk", b"kept as well\n")
    assert not box.is_suspended()
    done = box.suspend(snapshot_before_suspend=False)
    assert done.success and box.is_suspended(), done
    assert up.api.exists(f"{CLAIMS}/{box.claim_name}") and not up.api.exists(f"/api/v1/namespaces/default/pods/{box.sandbox_id}")
    if RELEASE >= (1, 0):  # those before ask again and again, for 15 s
        with pytest.raises(exceptions.SandboxRequestError) as e:
            made.commands.run("true")
        assert e.value.status_code == 503
    # Its own resume() lists snapshots of a cloud first; without these, this is what it does.
    set_mode = getattr(box, "_set_operating_mode", None)
    set_mode("Running") if set_mode else box._set_replicas(1)
    wait_until(lambda: box.status()[0] == "SandboxReady", 60, "it is back")
    assert not box.is_suspended() and box.commands.run("cat /workspace/note").stdout == "kept\n"
    assert box.files.read("of-the-sdk") == b"kept as well\n" and box.commands.run("pwd").stdout == "/app\n"

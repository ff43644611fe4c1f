"""What release 1.0 added: named claims and their adoption, variables, deadlines, streamed files, a client of one's own."""

import io
import logging

import pytest
from conftest import CLAIMS, config_of, create

POOL = "python-sandbox-pool"


@pytest.fixture
def named(direct):
    names = []

    def make(name, **kw):
        names.append(name)
        return direct.create_sandbox(kw.pop("pool", POOL), claim_name=name, **kw)

    yield make
    for name in names:
        direct.delete_sandbox(name)


def test_named_claims_and_variables(named):
    first = named("by-name", env={"GREETING": "hi there", "EMPTY": ""})
    assert first.commands.run("sh -c 'echo $GREETING$EMPTY.'").stdout == "hi there.\n"
    second = named("by-name", adopt_existing=True)
    assert second.claim_name == "by-name" and second.sandbox_id == first.sandbox_id
    assert second.commands.run("echo 1").stdout == "1\n"
    with pytest.raises(ValueError, match="(?i)pool"):
        named("by-name", pool="python-sandbox-warmpool", adopt_existing=True)
    with pytest.raises(Exception) as e:
        named("by-name")
    assert e.value.status == 409
    assert first.commands.run("echo still mine").stdout == "still mine\n"  # a conflict deletes nothing


def test_named_claims_outlive_their_client(up, direct):
    from k8s_agent_sandbox import SandboxClient
    with SandboxClient(connection_config=config_of("direct", up)) as client:
        kept, left = client.create_sandbox(POOL, claim_name="kept", adopt_existing=True), client.create_sandbox(POOL)
        name = left.claim_name
    assert up.api.exists(f"{CLAIMS}/kept") and not up.api.exists(f"{CLAIMS}/{name}")
    direct.delete_sandbox("kept")
    assert not up.api.exists(f"{CLAIMS}/kept")


def test_labels_of_pods(make, direct, up):
    """Those outside of the domain that users have are refused: the claim says so, and the SDK does not wait for the end of its time."""
    from k8s_agent_sandbox import exceptions
    box = make(direct, pod_labels={"sandbox.users.io/client-id": "tenant-a"}, pod_annotations={"owner": "tenant-a"})
    pod = up.api.call("GET", f"/api/v1/namespaces/default/pods/{box.get_pod_name()}")["metadata"]
    assert (pod["labels"]["sandbox.users.io/client-id"], pod["annotations"]["owner"]) == ("tenant-a", "tenant-a")
    for labels in ({"client-id": "x"}, {"agents.x-k8s.io/sandbox-name-hash": "x"}):
        with pytest.raises(exceptions.SandboxClaimFailedError, match="InvalidMetadata"):
            make(direct, pod_labels=labels)


def test_volumes_of_a_claim(make, direct, up):
    template = {"metadata": {"name": "mine"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    box = make(direct, volume_claim_templates=[template])
    assert up.api.exists(f"/api/v1/namespaces/default/persistentvolumeclaims/mine-{box.sandbox_id}")
    assert box.commands.run("sh -c 'echo kept >/workspace/note && cat /workspace/note'").stdout == "kept\n"


def test_a_deadline(make, client):
    late = make(client).commands.run("sleep 60", command_timeout=1)
    assert late.timed_out and late.exit_code == 124


def test_long_commands_are_allowed(make, direct):
    """The public caps are 300 s for the command and 180 s at the router. What a command may take here is an hour, and where a
    claim says less, less."""
    box = make(direct)
    words = box.commands.run("sh -c 'tr \"\\0\" \" \" </proc/1/cmdline; echo; cat /proc/*/cmdline | tr \"\\0\" \" \"'").stdout
    assert "--exec-timeout 3600s" in words, words
    short = make(direct, env={"SANDBOX_EXEC_TIMEOUT_SECONDS": "1"})
    done = short.commands.run("sleep 30")
    assert done.exit_code == 1 and "timed out after 1.0 seconds" in done.stderr


def test_streams(make, client):
    box, data = make(client), bytes(range(256)) * (1 << 13)
    box.files.write("sub/big", io.BytesIO(data))  # in pieces, without a length
    got = io.BytesIO()
    assert box.files.read_to("sub/big", got) == len(data) and got.getvalue() == data
    with pytest.raises(RuntimeError):
        box.files.read_to("sub/big", io.BytesIO(), max_bytes=1000)


def test_a_client_of_ones_own(up, make, monkeypatch, caplog):
    """Not the kubeconfig of the environment: kubectl gets one that the SDK writes for it."""
    import kubernetes
    from k8s_agent_sandbox import SandboxClient
    caplog.set_level(logging.INFO)
    own = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(up.ready["kubeconfig"], client_configuration=own)
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    with kubernetes.client.ApiClient(own) as api:
        box = create(SandboxClient(connection_config=config_of("tunnel", up), api_client=api))
        assert box.commands.run("echo own").stdout == "own\n"
        box.terminate()
    assert "Tunnel ready at" in caplog.text

"""What every release can do: the code of the public README, in direct and in tunnel mode."""

import pytest
from conftest import RELEASE

CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims"


def test_commands_and_files(make):
    box = make()
    done = box.commands.run("echo 'hello from a sandbox'")
    assert (done.stdout, done.stderr, done.exit_code) == ("hello from a sandbox\n", "", 0)
    failed = box.commands.run("sh -c 'echo no >&2; exit 3'")
    assert (failed.stdout, failed.stderr, failed.exit_code) == ("", "no\n", 3)
    assert box.commands.run("python3 -c 'print(6 * 7)'").stdout == "42\n"
    box.files.write("note.txt", "one\ntwo\n")
    assert box.files.read("note.txt") == b"one\ntwo\n"
    assert box.files.exists("note.txt") and not box.files.exists("missing.txt")
    assert {e.name: e.size for e in box.files.list(".")}["note.txt"] == 8
    assert box.commands.run("cat note.txt").stdout == "one\ntwo\n"
    blob = bytes(range(256)) * 4096
    box.files.write("blob", blob)
    assert box.files.read("blob") == blob


def test_two_at_once_and_their_end(make, client, up):
    one, two = make(), make()
    one.files.write("mine", "1")
    two.files.write("mine", "2")
    assert (one.files.read("mine"), two.files.read("mine")) == (b"1", b"2")
    assert {one.claim_name, two.claim_name} <= set(client.list_all_sandboxes())
    again = client.get_sandbox(one.claim_name)
    assert again.commands.run("cat mine").stdout == "1"
    gone = two.claim_name
    two.terminate()
    assert not up.api.exists(f"{CLAIMS}/{gone}")
    assert one.commands.run("echo still here").stdout == "still here\n"


def test_wrong_names(client):
    from k8s_agent_sandbox import exceptions
    if RELEASE >= (0, 4):  # the one before waits for half a minute, which cannot be changed
        with pytest.raises(exceptions.SandboxNotFoundError):
            client.get_sandbox("nobody-made-this", resolve_timeout=2)
    assert "nobody-made-this" not in client.list_all_sandboxes()
    if RELEASE >= (0, 5):
        with pytest.raises(exceptions.SandboxWarmPoolNotFoundError):
            client.create_sandbox("no-such-pool")
    elif RELEASE >= (0, 4):
        with pytest.raises(exceptions.SandboxTemplateNotFoundError):
            client.create_sandbox("no-such-template")

"""What every release can do in every mode it has: the code of the public README."""

import pytest
from conftest import CLAIMS


def test_commands_and_files(make, client):
    box = make(client)
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
    from k8s_agent_sandbox import SandboxClient
    one, two = make(client), make(client)
    one.files.write("mine", "1")
    two.files.write("mine", "2")
    assert (one.files.read("mine"), two.files.read("mine")) == (b"1", b"2")
    assert {one.claim_name, two.claim_name} <= set(client.list_all_sandboxes())
    assert {("default", one.claim_name), ("default", two.claim_name)} <= set(client.list_active_sandboxes())
    assert client.get_sandbox(one.claim_name) is one
    other = SandboxClient(connection_config=client.connection_config)  # as another program would
    assert other.get_sandbox(one.claim_name).commands.run("cat mine").stdout == "1"
    gone = two.claim_name
    two.terminate()
    assert not two.is_active and not up.api.exists(f"{CLAIMS}/{gone}")
    assert one.commands.run("echo still here").stdout == "still here\n"
    gone = one.claim_name
    client.delete_sandbox(gone)
    assert not up.api.exists(f"{CLAIMS}/{gone}") and ("default", gone) not in client.list_active_sandboxes()
    other.delete_all()  # what is gone already is no error


def test_what_is_not_there(make, client):
    from k8s_agent_sandbox import exceptions
    box = make(client)
    for call in (box.files.read, box.files.list):
        with pytest.raises(exceptions.SandboxRequestError) as e:
            call("missing")
        assert e.value.status_code == 404
    assert box.commands.run("no-such-program").exit_code != 0
    assert box.commands.run("echo goes on").stdout == "goes on\n"

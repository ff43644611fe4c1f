"""What commands return: one table (`silica help exit-codes`), the same for all of them."""

import re
import subprocess

import pytest

from harness.caller import program
from lib.up import Up

pytestmark = pytest.mark.ours


def call(*args, env=None, **kw):
    return subprocess.run([str(program()), *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60, env=env, **kw)


def commands():
    """As `silica --help` lists them."""
    listed = call("--help").stdout.partition("Commands:\n")[2].partition("\n\n")[0]
    return [line.split()[0] for line in listed.splitlines()]


def test_the_table():
    rows = dict(re.findall(r"^  (\w+) +(\S.*)$", call("help", "exit-codes").stdout, re.M))
    assert list(rows) == ["0", "1", "2", "3", "4", "124", "125", "126", "127", "other"]
    assert "exit-codes" in call("--help").stdout


@pytest.mark.parametrize("command", commands())
def test_each_command(command):
    """Help is 0, what is not known is 2 and named."""
    if command in ("help", "version"):
        assert call(command).returncode == 0
    else:
        shown = call(command, "--help")
        assert (shown.returncode, shown.stderr) == (0, "") and "18446744073709551615" not in shown.stdout
    wrong = call(command, "--no-such-thing")
    assert wrong.returncode == 2 and wrong.stdout == "" and "no-such-thing" in wrong.stderr, wrong


# What is called, and the code.
ROWS = [
    (["run", "--", "true"], 0),
    (["run", "--", "sh", "-c", "exit 3"], 3),
    (["run", "--", "sh", "-c", "kill -9 $$"], 137),
    (["run", "--timeout", "100ms", "--", "sleep", "5"], 124),
    (["run", "--", "no-such-program"], 127),
    (["run", "--", "/etc"], 126),
    (["run", "-v", "/no/such/place:/x", "--", "true"], 2),
    (["run"], 2),
    (["exec", "no-such-sandbox", "--", "true"], 125),
    (["logs", "no-such-sandbox"], 125),
    (["pause", "no-such-sandbox"], 125),
    (["resume", "no-such-sandbox"], 125),
    (["cp", "no-such-sandbox:/x", "y"], 125),
    (["rm", "no-such-sandbox"], 1),
    (["rm", "-a"], 0),
    (["ps"], 0),
    (["stats"], 0),
    (["stats", "no-such-sandbox"], 125),
    (["status"], 3),
    (["env"], 3),
    (["kubeconfig"], 3),
    (["token", "-n", "a"], 3),
    (["down"], 0),
    (["in-cluster", "--", "true"], 125),
    (["apiserver", "--data", "/dev/null"], 125),
    (["no-such-command"], 2),
    ([], 2),
]


@pytest.mark.parametrize("argv, code", ROWS, ids=[" ".join(argv) or "nothing" for argv, _ in ROWS])
def test_codes(tmp_path, argv, code):
    done = call(*argv, env={"HOME": str(tmp_path), "SILICA_DATA": str(tmp_path / "data"), "PATH": "/usr/bin:/bin"}, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert done.stderr == "" or code, done.stderr
    assert not code or argv[:1] == ["run"] or done.stderr.startswith("silica: "), done.stderr


def test_codes_of_what_is_up():
    """What the API server refuses is 125, what is no longer up is 3."""
    with Up() as up:
        assert up.run("status").returncode == 0
        assert up.run("env").returncode == 0
        assert up.run("token", "-n", "default").returncode == 0
        refused = up.run("token", "-n", "No_Namespace", check=False)
        assert refused.returncode == 125 and "No_Namespace" in refused.stderr
        up.end()
        assert up.run("status", check=False).returncode == 3

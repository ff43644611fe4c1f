"""A sandbox has no network but loopback, and programs are not kept waiting for one: names fail for good, and what tries again
whatever the reason is told not to. Nothing is said in the output of programs; files in /etc say why."""

import json
import re
import shutil

import pytest

from harness.caller import caller_or_skip
from lib.up import Up

pytestmark = pytest.mark.ours
PYTHON = "/usr/bin/python3"
NAME = "nosuch.example"


@pytest.fixture(scope="module", params=["root", "user"])
def who(request):
    caller = caller_or_skip(request.param)
    yield caller
    caller.remove()


@pytest.mark.parametrize("user", ["0", "1000"])
def test_a_name_does_not_exist(who, user):
    """No temporary failure, which is what programs try again; names of the sandbox itself are there."""
    script = f"""
import json, socket
def ask(name):
    try:
        return sorted({{a[4][0] for a in socket.getaddrinfo(name, 80)}})
    except socket.gaierror as e:
        return [k for k in dir(socket) if k.startswith('EAI_') and getattr(socket, k) == e.errno]
print(json.dumps([ask('{NAME}'), ask('localhost'), ask(socket.gethostname())]))
"""
    done = who.run("--user", user, "--", PYTHON, "-c", script)
    unknown, local, own = json.loads(done.stdout)
    assert unknown == ["EAI_NONAME"] and "127.0.0.1" in local and own == ["127.0.0.1"], done


def test_what_has_no_names_fails_at_once(who):
    script = "import errno, socket\ntry: socket.create_connection(('192.0.2.1', 80))\nexcept OSError as e: print(errno.errorcode[e.errno])"
    assert who.run("--", PYTHON, "-c", script).stdout == "ENETUNREACH\n"


@pytest.mark.parametrize("user", ["0", "1000"])
@pytest.mark.parametrize("environment", [False, True], ids=["system", "venv"])
def test_pip_tries_once(who, user, environment):
    made = f"{PYTHON} -m venv --without-pip --system-site-packages /tmp/v && /tmp/v/bin/python" if environment else PYTHON
    done = who.run("--user", user, "--", "sh", "-c", f"{made} -m pip install --target /tmp/t nosuch")
    if "No module named pip" in done.stderr:
        pytest.skip("pip is not installed")
    assert done.returncode == 1 and "No matching distribution found for nosuch" in done.stderr, done
    assert "Retrying" not in done.stderr and done.stdout == "", done


@pytest.mark.parametrize("user", ["0", "1000"])
@pytest.mark.parametrize("given, more", [([], 0), (["-e", "NPM_CONFIG_FETCH_RETRIES=1", "-e", "NPM_CONFIG_FETCH_RETRY_MINTIMEOUT=1",
                                                  "-e", "NPM_CONFIG_FETCH_RETRY_MAXTIMEOUT=1"], 1)], ids=["ours", "given"])
def test_npm_tries_once(who, user, given, more):
    """Unless it is asked for otherwise."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    done = who.run("--user", user, *given, "--", "sh", "-c", "cd /tmp && npm install nosuch; code=$?; cat ~/.npm/_logs/*.log; exit $code")
    tried = re.findall(r"GET https://\S+/nosuch attempt (\d+) failed with ENOTFOUND", done.stdout)
    assert done.returncode == 1 and "npm error code ENOTFOUND" in done.stderr, done
    assert tried == [str(1 + n) for n in range(more + 1)], done


def test_npm_in_a_pod():
    with Up() as up:
        for name, given in (("ours", []), ("given", ["--env=NPM_CONFIG_FETCH_RETRIES=7"])):
            up.kubectl("run", name, "--image=host", "--restart=Never", *given, "--command", "--", "printenv", "NPM_CONFIG_FETCH_RETRIES")
            up.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{name}", "--timeout=60s")
        assert [up.kubectl("logs", name) for name in ("ours", "given")] == ["0\n", "7\n"]


@pytest.mark.parametrize("program, words, code, said", [
    ("git", ["clone", f"https://{NAME}/x", "/tmp/x"], 128, f"Could not resolve host: {NAME}"),
    ("curl", ["-sS", f"https://{NAME}/"], 6, f"Could not resolve host: {NAME}"),
    ("wget", [f"http://{NAME}/"], 4, f"unable to resolve host address ‘{NAME}’"),
])
def test_others_fail_for_good(who, program, words, code, said):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    done = who.run("--", program, *words)
    assert done.returncode == code and said in done.stderr and "etry" not in done.stderr, done


@pytest.mark.parametrize("user", ["0", "1000"])
def test_files_say_why(who, user):
    done = who.run("--user", user, "--", "grep", "-l", "no network but loopback", "/etc/resolv.conf", "/etc/pip.conf")
    assert done.stdout.split() == ["/etc/resolv.conf", "/etc/pip.conf"], done

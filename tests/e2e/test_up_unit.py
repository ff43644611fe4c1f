"""`silica up --install`: the unit of systemd that starts it, which is printed where systemd does not run."""

import configparser
import os
import shlex
import shutil
import subprocess

import pytest

from harness.owner import Owner
from harness.caller import caller_or_skip
from lib.up import PORTS

pytestmark = pytest.mark.ours


@pytest.fixture(params=["root", "user"])
def who(request):
    if os.path.exists("/run/systemd/system"):
        pytest.skip("systemd runs here")
    found = caller_or_skip(request.param, Owner)
    yield found
    found.call("down", "--sandboxes")
    found.remove()


def unit_of(done):
    assert done.returncode == 0, done
    parser = configparser.RawConfigParser()
    parser.optionxform = str
    parser.read_string(done.stdout)
    return parser


def test_the_unit_starts_it(who):
    config = who.home / "with space %n $HOME.yaml"
    config.write_text("log-level: debug\n")
    config.chmod(0o644)
    done = who.call("up", "--install", "-d", "--config", config, *PORTS)
    unit = unit_of(done)
    assert "systemd does not run here" in done.stderr and not (who.data / "store.db").exists(), done
    service = unit["Service"]
    assert (service["KillMode"], service["Delegate"], service["Restart"]) == ("process", "yes", "on-failure")
    assert unit["Install"]["WantedBy"] == ("multi-user.target" if who.name == "root" else "default.target")
    words = [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(service["ExecStart"])]
    assert words[:2] == [str(who.silica), "up"] and "-d" not in words and "--install" not in words, words
    assert words[-4:] == ["--data", str(who.data), "--config", str(config)], words
    started = subprocess.run([*who.prefix, *words, "-d"], env=who.env, cwd="/", capture_output=True, text=True, timeout=60)
    assert started.returncode == 0 and started.stdout.startswith("silica is up: "), started
    assert who.ok("status").startswith("silica ")


def test_systemd_reads_it(who, tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    (tmp_path / "silica.service").write_text(who.call("up", "--install").stdout)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / "silica.service"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


def test_what_cannot_be_removed(who):
    done = who.call("up", "--uninstall")
    assert done.returncode == 125 and "there is no '" in done.stderr and "silica.service'" in done.stderr, done

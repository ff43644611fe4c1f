"""silica exec, pause, resume, stats and logs on long-lived sandboxes, as root and as an account that has nothing."""

import json
import os
import signal
import time
import uuid

import pytest

from harness import proc
from harness.caller import caller_or_skip
from harness.server import wait_until
from harness.talker import Talker
from harness.terminal import Terminal

PYTHON = "/usr/bin/python3"
pytestmark = [pytest.mark.ours, pytest.mark.core]


@pytest.fixture(scope="module", params=["root", "user"])
def who(request):
    owner = caller_or_skip(request.param, Talker)
    yield owner
    owner.remove()


@pytest.fixture(scope="module")
def box(who):
    """One that many tests share: none may end or pause it."""
    return who.up()


@pytest.fixture
def fresh(who):
    name = who.up()
    yield name
    who.call("rm", "-f", name)


# ---- exec ----


@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143)])
def test_the_exit_code_is_the_commands(who, box, script, code):
    assert who.call("exec", box, "--", "sh", "-c", script).returncode == code


def test_commands_that_cannot_be_run(who, box):
    who.says("cannot run 'no-such-program': not found in the sandbox\n", 127, "exec", box, "--", "no-such-program")
    who.says("cannot run '/etc/passwd': permission denied\n", 126, "exec", box, "--", "/etc/passwd")
    assert b"/nowhere" in who.call("exec", "-w", "/nowhere", box, "--", "true").stderr


def test_streams(who, box):
    done = who.call("exec", box, "sh", "-c", "cat; echo err >&2", input=b"some\0input")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"some\0input", b"err\n")
    data = os.urandom(1 << 20)
    assert who.call("exec", "-i", box, "--", "cat", input=data).stdout == data


def test_variables_directories_and_users(who, box):
    done = who.ok("exec", "-e", "A=b=c", "-e", "NOT_HERE", "-w", "/usr", box, "--", "sh", "-c", 'echo "$A-$NOT_HERE-$PWD-$HOME"')
    assert done == "b=c--/usr-/workspace\n"
    assert who.ok("exec", box, "pwd") == "/workspace\n"
    assert who.ok("exec", "-u", "1000", box, "--", "id", "-u") == "1000\n"
    assert who.ok("exec", "-u", "1000:1000", box, "--", "id", "-g") == "1000\n"
    who.says(f"sandbox '{box}' is user 1000:1000 and has no other\nhint: ", 125, "exec", "-u", "0", box, "--", "id")


def test_one_sandbox_many_commands(who, box):
    who.sh(box, "echo kept > /tmp/file")
    assert who.sh(box, "cat /tmp/file") == "kept\n"
    many = [who.start("exec", box, "--", "sh", "-c", f"sleep 0.1; echo {i}") for i in range(12)]
    assert [p.communicate(timeout=60)[0] for p in many] == [b"%d\n" % i for i in range(12)]


def test_what_is_left_in_the_background_goes_on(who, box):
    """And is not waited for."""
    assert who.sh(box, "(sleep 0.5; echo done > /tmp/later) & echo now", timeout=30) == "now\n"
    wait_until(lambda: who.call("exec", box, "--", "cat", "/tmp/later").stdout == b"done\n", what="it goes on")


def test_a_killed_exec_takes_its_command_along(who, box):
    mark = str(uuid.uuid4())
    p = who.start("exec", "-e", f"MARK={mark}", box, "--", "sh", "-c", "echo up; sleep 4722 & sleep 4722")
    assert p.stdout.readline() == b"up\n"
    look = f"cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c {mark} || true"
    assert int(who.sh(box, look)) >= 2
    p.kill()
    p.wait(20)
    wait_until(lambda: who.sh(box, look) == "0\n", what="its command has ended")


def test_signals_and_the_deadline(who, box):
    p = who.start("exec", box, "--", "sh", "-c", "trap 'echo usr1; exit 5' USR1; echo up; while :; do sleep 0.02; done")
    assert p.stdout.readline() == b"up\n"
    p.send_signal(signal.SIGUSR1)
    assert (p.communicate(timeout=30)[0], p.returncode) == (b"usr1\n", 5)
    assert who.call("exec", "--timeout", "300ms", box, "--", "sleep", "4723").returncode == 124
    assert who.sh(box, "echo alive") == "alive\n"


def test_a_terminal(who, box):
    t = Terminal(who.argv("exec", "-t", box, "--", "sh", "-c", "tty; echo term $TERM; stty size; read line; stty size; echo got $line; exit 5"),
                 {**who.env, "TERM": "vt220"})
    t.until(b"33 101\r\n")
    assert b"/dev/pts/" in t.seen and b"term vt220" in t.seen
    t.resize(40, 90)
    t.type(b"word\r")
    t.until(b"got word")
    assert b"40 90" in t.seen
    assert t.end() == 5


def test_huge_arguments(who, box):
    assert who.ok("exec", box, "--", "sh", "-c", "echo ${#1}", "sh", "x" * 100_000) == "100000\n"
    many = ["y" * 100_000] * 19  # nearly all that the kernel lets us have; inside there are more variables
    done = who.call("exec", box, "--", "echo", *many)
    assert done.returncode == 0 and len(done.stdout) == 1_900_019 or done.returncode in (125, 126) and done.stderr.startswith(b"silica: ")
    assert who.sh(box, "echo alive") == "alive\n"


# ---- sandboxes that are not to be talked to ----


def test_near_names(who, box):
    who.says(f"there is no sandbox '{box[:-1]}'\nhint: did you mean '{box}'?\n", 125, "exec", box[:-1], "--", "true")
    who.says("there is no sandbox 'something-else'\nhint: silica ps -a lists them\n", 125, "exec", "something-else", "--", "true")


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", "-x", "x" * 300, "a b", "ü", "x\n"])
@pytest.mark.parametrize("verb", [["exec"], ["pause"], ["resume"], ["logs"], ["stats"], ["cp"]])
def test_bad_names(who, box, verb, name):
    args = {"exec": [name, "--", "true"], "cp": [f"{name}:/etc/passwd", "/nowhere"]}.get(verb[0], [name])
    done = who.call(*verb, *args)
    assert done.returncode in (2, 125) and done.stderr.startswith(b"silica: "), done.stderr
    assert done.stdout == b""


def test_a_paused_one_says_so_at_once(who, fresh):
    who.ok("pause", fresh)
    began = time.monotonic()
    for args in (["exec", fresh, "--", "true"], ["cp", f"{fresh}:/etc/passwd", "/tmp/x"], ["cp", "/etc/passwd", f"{fresh}:"]):
        who.says(f"sandbox '{fresh}' is paused\nhint: silica resume {fresh}\n", 125, *args)
    assert time.monotonic() - began < 20  # the wait for an answer alone would be 30 s
    assert who.list()[fresh]["status"] == "paused"
    who.ok("resume", fresh)
    assert who.sh(fresh, "echo on") == "on\n"


def test_one_that_is_paused_while_a_command_waits(who, fresh):
    """It stands still and goes on: nothing is lost."""
    p = who.start("exec", fresh, "--", "sh", "-c", "echo up; sleep 0.3; echo down; exit 4")
    assert p.stdout.readline() == b"up\n"
    who.ok("pause", fresh)
    time.sleep(0.6)
    assert p.poll() is None
    who.ok("resume", fresh)
    assert (p.communicate(timeout=30)[0], p.returncode) == (b"down\n", 4)


def test_one_that_has_ended(who):
    name = who.up("--timeout", "300ms", script="echo bye; sleep 4726")
    wait_until(lambda: who.list()[name]["status"] == "exited", what="it has ended")
    who.says(f"sandbox '{name}' has ended, with code 124\nhint: silica logs {name} ", 125, "exec", name, "--", "true")
    who.says(f"sandbox '{name}' has ended, with code 124\n", 125, "cp", f"{name}:/etc/passwd", "/tmp")
    who.says("", 125, "pause", name)
    who.says("", 125, "stats", name)
    assert who.ok("logs", name) == "bye\n"
    who.ok("rm", name)


def test_one_that_is_removed_meanwhile(who, fresh):
    p = who.start("exec", fresh, "--", "sh", "-c", "echo up; sleep 4724")
    assert p.stdout.readline() == b"up\n"
    who.ok("rm", "-f", fresh)
    assert p.wait(30) == 125
    assert p.stderr.read().startswith(b"silica: ")


def test_no_sandboxes_at_all(who, tmp_path):
    done = who.call("exec", "--data", who.home / "nothing", "x", "--", "true")
    assert done.returncode == 125
    assert done.stderr.startswith(b"silica: there are no long-lived sandboxes\nhint: silica run --keep -d ")
    assert not (who.home / "nothing").exists()


@pytest.mark.parametrize("args, text", [
    (["exec"], "no sandbox is named"), (["exec", "x"], "no command given"), (["exec", "x", "-t", "--", "true"], "unexpected argument '-t'"),
    (["exec", "-w", "here", "x", "--", "true"], "--workdir: 'here' is not an absolute path"), (["exec", "-e", "=x", "x", "--", "true"], "--env: "),
    (["exec", "-u", "root", "x", "--", "true"], ""), (["pause"], "no sandbox is named"), (["resume"], "no sandbox is named"),
    (["logs"], "one sandbox is to be named, not 0"), (["logs", "a", "b"], "one sandbox is to be named, not 2"),
    (["logs", "--tail", "-1", "a"], "--tail: '-1' is neither"), (["stats", "-o", "xml"], "--output: 'xml' is neither"),
    (["cp", "a"], "two paths are needed, not 1"), (["cp", "a", "b"], "neither 'a' nor 'b' is in a sandbox"),
    (["cp", "a:b", "c:d"], "'a:b' and 'c:d' are both in sandboxes"), (["cp", "", "a:b"], "a path is empty"),
    (["cp", "./a:b", "c"], "neither './a:b' nor 'c' is in a sandbox"),
])
def test_bad_usage(who, box, args, text):
    done = who.call(*args)
    assert done.returncode == 2 and done.stderr.startswith(f"silica: {text}".encode()), (done.returncode, done.stderr)


@pytest.mark.parametrize("verb", ["exec", "cp", "pause", "resume", "stats", "logs"])
def test_help_teaches(who, verb):
    shown = who.ok(verb, "--help")
    assert f"silica {verb} " in shown.splitlines()[0] + shown.splitlines()[1] + shown.splitlines()[2]
    assert len(shown.splitlines()) < 40 and who.ok("help", verb) == shown


# ---- pause and resume ----


def test_nothing_runs_while_it_is_paused(who, fresh):
    count = "i=0; while :; do i=$((i+1)); echo $i > /tmp/count; done"
    who.sh(fresh, f"({count}) > /dev/null 2>&1 & :")
    wait_until(lambda: who.call("exec", fresh, "cat", "/tmp/count").stdout != b"", what="it counts")
    pid1 = who.list()[fresh]["pid"]

    def used():
        """Processor time of all that descends from PID 1."""
        pids, all_of = [pid1], []
        while pids:
            all_of.append(pids.pop())
            pids += proc.children(all_of[-1])
        return sum(sum(map(int, open(f"/proc/{p}/stat").read().rsplit(") ", 1)[1].split()[11:13])) for p in all_of)

    who.ok("pause", fresh)
    before = used()
    time.sleep(0.5)
    assert used() == before
    who.ok("resume", fresh)
    wait_until(lambda: used() > before, what="it goes on")


def test_one_bad_name_does_not_stop_the_others(who, fresh):
    done = who.call("pause", "nobody-there", fresh)
    assert done.returncode == 125 and b"'nobody-there'" in done.stderr
    assert who.list()[fresh]["status"] == "paused"
    assert who.call("resume", fresh, "nobody-there").returncode == 125
    assert who.list()[fresh]["status"] == "running"


def test_a_paused_one_can_be_removed(who):
    name = who.up()
    who.ok("pause", name)
    who.ok("rm", "-f", name, timeout=30)
    assert name not in who.list()


def test_a_row_is_one_line(who):
    name = who.up(script="echo a\nexec sleep 4727 # \33[2J")
    lines = who.ok("ps").splitlines()
    assert all(line.startswith(("NAME", "t-")) for line in lines) and "\33" not in "".join(lines)
    who.ok("rm", "-f", name)


# ---- stats ----


def test_stats(who, box):
    (row,) = json.loads(who.ok("stats", "-o", "json", box))
    assert row["name"] == box and row["status"] == "running"
    assert set(row) == {"name", "status", "cpu_us", "memory_bytes", "memory_limit_bytes", "pids", "pids_limit"}
    assert row["pids"] is None or row["pids"] >= 2
    if who.name == "root" and row["memory_bytes"] is not None:
        fat = who.start("exec", box, "--", PYTHON, "-c", "x = b'x' * 30_000_000; print('fat', flush=True); import time; time.sleep(99)")
        assert fat.stdout.readline() == b"fat\n"
        assert json.loads(who.ok("stats", "-o", "json", box))[0]["memory_bytes"] > row["memory_bytes"] + 25_000_000
        fat.terminate()
        fat.wait(20)
    lines = who.ok("stats").splitlines()
    assert lines[0].split() == ["NAME", "STATUS", "CPU", "TIME", "MEMORY", "LIMIT", "PIDS"]
    assert any(line.startswith(box) for line in lines[1:])


def test_stats_watched(who, box):
    p = who.start("stats", "-w", "-o", "json", box)
    first, second = (json.loads(p.stdout.readline())[0] for _ in range(2))
    p.terminate()
    p.wait(20)
    assert "cpu_percent" not in first
    assert first["cpu_us"] is None or second["cpu_percent"] >= 0


# ---- logs ----


def test_logs(who):
    name = who.up(script="echo one; echo two >&2; printf 'three\\0\\377\\n'; printf unfinished; sleep 4725")
    wait_until(lambda: b"unfinished" in who.call("logs", name).stdout, what="its output")
    done = who.call("logs", name)
    assert (done.stdout, done.stderr) == (b"one\nthree\0\xff\nunfinished", b"two\n")
    assert who.call("logs", "--tail", "1", name).stdout.endswith(b"unfinished")
    timed = who.call("logs", "-t", name).stdout.splitlines()
    assert timed[0].startswith(b"20") and timed[0].endswith(b"Z one")
    assert who.call("logs", "-n", "0", name).stdout in (b"", b"unfinished")
    who.ok("rm", "-f", name)


def test_logs_are_followed_to_the_end(who):
    name = who.up(script="for i in $(seq 20); do echo line $i; sleep 0.05; done")
    done = who.call("logs", "-f", name, timeout=60)
    assert done.stdout == b"".join(b"line %d\n" % i for i in range(1, 21))
    assert who.ok("logs", "--tail", "3", name) == "line 18\nline 19\nline 20\n"
    assert who.ok("logs", "--tail", "99", name).count("\n") == 20
    who.ok("rm", "-f", name)


def test_a_long_log_is_rotated_and_followed(who):
    name = who.up(script="seq 1500000; echo last")
    done = who.call("logs", "-f", name, timeout=120)
    assert done.stdout.endswith(b"\nlast\n")
    numbers = [int(n) for n in done.stdout.split()[:-1]]
    assert numbers == sorted(numbers)
    if b"dropped" not in done.stderr:
        assert numbers[-1] == 1500000
    kept = who.call("logs", name).stdout
    assert kept.endswith(b"1500000\nlast\n") and 1 << 20 < len(kept) < 16 << 20
    assert who.ok("logs", "-n", "2", name) == "1500000\nlast\n"
    who.ok("rm", "-f", name)


def test_logs_of_nothing(who):
    who.call("run", "--keep", "--name", "silent", "--", "echo", "attached")
    done = who.call("logs", "silent")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"silica: sandbox 'silent' has no main command: nothing is logged\n"
    who.ok("rm", "-f", "silent")

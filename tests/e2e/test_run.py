"""silica run, as root and as an account that has nothing: what goes in and out, and that nothing stays."""

import errno
import fcntl
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time
import uuid

import pytest

from harness.caller import Caller, caller_or_skip
from harness.server import wait_until
from harness.terminal import Terminal as CallersTerminal

pytestmark = [pytest.mark.ours, pytest.mark.core]
PYTHON = "/usr/bin/python3"


class Runner(Caller):
    """A caller whose silica is given bytes, signals and terminals."""

    def argv(self, *args):
        return [*self.prefix, str(self.silica), *args]

    def call(self, *args, timeout=60, **kwargs):
        if "input" not in kwargs:
            kwargs.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(self.argv(*args), capture_output=True, env=self.env, timeout=timeout, **kwargs)

    def run(self, *args, **kwargs):
        """args up to "--" are options, the rest is the command; only a command needs no "--"."""
        return self.call("run", *(args if "--" in args else ("--", *args)), **kwargs)

    def start(self, *args, **kwargs):
        kwargs.setdefault("stdin", subprocess.PIPE)
        return subprocess.Popen(self.argv("run", *args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.env, **kwargs)


@pytest.fixture(scope="module", params=["root", "user"])
def who(request):
    caller = caller_or_skip(request.param, Runner)
    yield caller
    caller.remove()


def ran(done, code=0):
    assert done.returncode == code, (done.returncode, done.stdout[-500:], done.stderr[-500:])
    return done.stdout.decode()


def carrying(mark):
    """The processes that have this in their environment: PID 1 of a sandbox and all it started."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark.encode() in pathlib.Path("/proc", pid, "environ").read_bytes():
                found.append(int(pid))
        except OSError:
            pass
    return found


def is_empty(group):
    try:
        return not pathlib.Path(group, "cgroup.procs").read_text()
    except OSError:
        return False  # gone meanwhile


def cgroups():
    """Ours that nobody is in; what others run meanwhile is not meant."""
    return {path for path, _, _ in os.walk("/sys/fs/cgroup") if ("silica" in path or "/run-" in path) and is_empty(path)}


# ---- where PID 1's program comes from ----


def program_of_pid_1(who):
    """The file that PID 1 of a sandbox is executed from, as the host sees it: (device, inode)."""
    mark = uuid.uuid4().hex
    started = who.start("-e", f"MARK={mark}", "--", "cat")
    try:
        wait_until(lambda: len(carrying(mark)) >= 2)
        found = [os.stat(f"/proc/{pid}/exe") for pid in carrying(mark)]
        return [(st.st_dev, st.st_ino) for st in found]
    finally:
        started.communicate(timeout=30)


@pytest.fixture
def beside(who):
    """silica-runtime beside silica, put back after the test."""
    path = who.dir / "silica-runtime"
    kept = path.rename(who.dir / "kept")
    shutil.copy2(kept, path)
    yield path
    path.unlink(missing_ok=True)
    kept.rename(path)


def is_executed(who, path):
    st = path.stat()
    return (st.st_dev, st.st_ino) in program_of_pid_1(who)


def test_the_program_beside_is_executed(who, beside):
    assert is_executed(who, beside)


def test_silica_alone_is_enough(who, beside):
    beside.unlink()
    assert ran(who.run("echo", "alone")) == "alone\n"


@pytest.mark.parametrize("change", ["older", "longer", "writable", "not-for-all", "link", "directory"])
def test_another_program_beside_is_not_executed(who, beside, change):
    """A build of another time, or one that others could have changed."""
    if change == "older":
        with open(beside, "r+b") as f:
            f.seek(0x310)  # in the note that names the build
            f.write(b"another")
    elif change == "longer":
        with open(beside, "ab") as f:
            f.write(b"x")
    elif change == "writable":
        beside.chmod(0o777)
    elif change == "not-for-all":
        beside.chmod(0o750)
    elif change == "link":
        moved = beside.rename(who.dir / "moved")
        beside.symlink_to(moved)
    else:
        beside.unlink()
        beside.mkdir()
    try:
        assert beside.is_dir() or not is_executed(who, beside)
        assert ran(who.run("echo", "from memory")) == "from memory\n"
    finally:
        if beside.is_dir():
            beside.rmdir()
        (who.dir / "moved").unlink(missing_ok=True)


def test_a_program_of_somebody_else_is_not_executed(who, beside):
    if os.geteuid() != 0:
        pytest.skip("needs root to give a file away")
    os.chown(beside, 12345, 12345)
    assert not is_executed(who, beside)


# ---- how it ends ----


@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 1", 1), ("exit 7", 7), ("exit 255", 255),
                                          ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
def test_the_exit_code_is_the_commands(who, script, code):
    assert who.run("sh", "-c", script).returncode == code


def test_a_program_that_is_not_there(who):
    done = who.run("no-such-program", "x")
    assert done.returncode == 127
    assert done.stderr.startswith(b"silica: cannot run 'no-such-program': not found in the sandbox\n")


@pytest.mark.parametrize("program", ["/etc/passwd", "/usr"])
def test_a_program_that_cannot_be_run(who, program):
    done = who.run(program)
    assert done.returncode == 126
    assert done.stderr == f"silica: cannot run '{program}': permission denied\n".encode()


def test_a_file_that_is_no_program(who):
    (who.dir / "x").write_bytes(b"\0\1\2")
    (who.dir / "x").chmod(0o755)
    done = who.run("-v", f"{who.dir}:/data:ro", "--", "/data/x")
    assert done.returncode == 126
    assert done.stderr == b"silica: cannot run '/data/x': it is no program\n"


def test_a_directory_that_is_not_there(who):
    done = who.run("-w", "/nowhere", "--", "true")
    assert done.returncode == 125
    assert b"/nowhere" in done.stderr


def test_the_deadline_ends_all_of_it(who):
    mark = f"MARK={uuid.uuid4()}"
    began = time.monotonic()
    done = who.run("--timeout", "500ms", "-e", mark, "--", "sh", "-c", "trap '' TERM INT HUP; sleep 4711 & setsid sleep 4711 & sleep 4711")
    assert done.returncode == 124
    assert time.monotonic() - began < 5
    assert carrying(mark) == []


def test_what_runs_in_the_background_is_not_waited_for(who):
    """The command's end is the end: its own output is whole, and a process that holds the pipe does not count."""
    mark = f"MARK={uuid.uuid4()}"
    done = who.run("-e", mark, "--", "sh", "-c", "sleep 4711 & echo said; exit 3", timeout=30)
    assert (done.returncode, done.stdout) == (3, b"said\n")
    assert carrying(mark) == []
    flood = who.run("sh", "-c", "yes & head -c 200000 /dev/zero", timeout=30)
    assert flood.returncode == 0
    assert flood.stdout.count(b"\0") == 200000


# ---- what goes in and out ----


def test_output_and_errors_stay_apart(who):
    done = who.run("sh", "-c", "echo out; echo err >&2; echo more")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\nmore\n", b"err\n")


def test_a_mebibyte_through_cat(who):
    data = os.urandom(1 << 20)
    assert who.run("cat", input=data).stdout == data


def test_input_from_a_file(who, tmp_path):
    data = os.urandom(300_000)
    (tmp_path / "in").write_bytes(data)
    with open(tmp_path / "in", "rb") as f:
        assert who.run("cat", stdin=f).stdout == data


def test_output_into_a_file(who, tmp_path):
    with open(tmp_path / "out", "wb") as f:
        status = subprocess.run(who.argv("run", "--", "head", "-c", "3000000", "/dev/zero"), stdout=f, env=who.env).returncode
    assert status == 0
    assert (tmp_path / "out").read_bytes() == bytes(3_000_000)


def test_a_reader_that_is_slow_gets_all_of_it(who):
    p = who.start("--", "head", "-c", "5000000", "/dev/zero")
    got = 0
    while piece := p.stdout.read1(100_000):
        got += len(piece)
        time.sleep(0.005)
    assert (got, p.wait(20)) == (5_000_000, 0)


def test_a_reader_that_leaves_ends_the_command(who):
    p = who.start("--", "yes")
    assert p.stdout.read(2) == b"y\n"
    p.stdout.close()
    assert p.wait(20) == 141


def test_a_command_that_reads_nothing(who):
    p = who.start("--", "sleep", "0.3")
    try:
        p.stdin.write(bytes(4_000_000))
        p.stdin.flush()
    except BrokenPipeError:
        pass
    assert p.wait(20) == 0


def test_standard_streams_keep_their_mode(who):
    r, w = os.pipe()
    mode = fcntl.fcntl(w, fcntl.F_GETFL)
    subprocess.run(who.argv("run", "--", "echo", "x"), stdout=w, env=who.env, check=True)
    assert fcntl.fcntl(w, fcntl.F_GETFL) == mode
    assert os.read(r, 10) == b"x\n"
    os.close(r), os.close(w)


def test_closed_standard_streams(who):
    done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *who.argv("run", "--", "sh", "-c", "cat; exit 3")],
                          env=who.env, timeout=30)
    assert done.returncode == 3


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"])
def test_signals_are_forwarded(who, name):
    number = getattr(signal, f"SIG{name}")
    p = who.start("--", "sh", "-c", f"trap 'echo got {name}; exit 9' {name}; echo up; while :; do sleep 0.05; done")
    assert p.stdout.readline() == b"up\n"
    p.send_signal(number)
    assert p.stdout.read() == f"got {name}\n".encode()
    assert p.wait(20) == 9


def test_a_signal_that_kills(who):
    p = who.start("--", "sh", "-c", "echo up; exec sleep 100")
    assert p.stdout.readline() == b"up\n"
    p.send_signal(signal.SIGTERM)
    assert p.wait(20) == 143


# ---- terminals ----


class Terminal(CallersTerminal):
    def __init__(self, who, *args, **kwargs):
        super().__init__(who.argv("run", "-t", *args), who.env, **kwargs)


def test_a_terminal_of_its_own(who):
    t = Terminal(who, "--", "sh", "-c", "tty; stty size; read line; echo got $line; exit 5")
    t.until(b"33 101\r\n")
    assert b"/dev/pts/0\r\n" in t.seen
    t.type(b"hello\r")
    t.until(b"got hello\r\n")
    assert t.end() == 5


def test_a_terminal_grows(who):
    t = Terminal(who, "--", "sh", "-c", "stty size; read a; stty size")
    t.until(b"33 101\r\n")
    t.resize(50, 120)
    t.p.send_signal(signal.SIGWINCH)
    time.sleep(0.2)
    t.type(b"\r")
    t.until(b"50 120\r\n")
    assert t.end() == 0


def test_keys_are_signals_inside(who):
    t = Terminal(who, "--", "sh", "-c", "trap 'echo stopped; exit 4' INT; echo up; while :; do sleep 0.05; done")
    t.until(b"up\r\n")
    t.type(b"\x03")
    t.until(b"stopped")
    assert t.end() == 4


def test_the_terminal_is_restored_when_it_cannot_run(who):
    t = Terminal(who, "--", "no-such-program")
    t.until(b"not found")
    assert t.end() == 127


def test_the_terminal_is_restored_after_the_deadline(who):
    t = Terminal(who, "--timeout", "300ms", "--", "sleep", "100")
    assert t.end() == 124


def test_the_callers_terminal_is_not_inside(who):
    t = Terminal(who, "--", "sh", "-c", "readlink /proc/1/fd/0 /proc/1/fd/1 /proc/1/fd/2 /proc/self/fd/0; echo over")
    t.until(b"over")
    host = os.ttyname(t.slave).encode()
    assert t.end() == 0
    assert host == b"/dev/pts/0" or host not in t.seen


def test_a_terminal_without_one_here(who):
    done = who.run("-t", "--", "sh", "-c", "test -t 0 && test -t 1 && cat", input=b"typed\n")
    assert done.returncode == 0
    assert b"typed" in done.stdout


# ---- what is inside ----


def test_variables(who):
    who.env["FROM_HERE"] = "kept"
    who.env["SECRET_OF_MINE"] = "x"
    out = ran(who.run("-e", "A=b=c", "-e", "FROM_HERE", "-e", "NOT_SET_HERE", "-e", "LANG=C", "--", "env"))
    got = dict(line.split("=", 1) for line in out.splitlines())
    assert (got["A"], got["FROM_HERE"], got["LANG"], got["HOME"]) == ("b=c", "kept", "C", "/workspace")
    assert "NOT_SET_HERE" not in got and "SECRET_OF_MINE" not in got


def test_directories(who):
    assert ran(who.run("pwd")) == "/workspace\n"
    assert ran(who.run("-w", "/usr/bin", "--", "pwd")) == "/usr/bin\n"
    assert ran(who.run("sh", "-c", "echo x >f && echo y >/tmp/g && cat f /tmp/g")) == "x\ny\n"


def test_users(who):
    assert ran(who.run("id", "-u")) == "1000\n"
    assert ran(who.run("--user", "0", "--", "id", "-u")) == "0\n"
    assert ran(who.run("-u", "7:7", "--", "sh", "-c", "id -u; id -g")) == "7\n7\n"


def test_volumes(who):
    shared = who.home / "shared"
    shared.mkdir(exist_ok=True)
    (shared / "f").write_text("of the host\n")
    shared.chmod(0o777)
    assert ran(who.run("-v", f"{shared}:/data", "--", "sh", "-c", "cat /data/f; echo new >/data/g")) == "of the host\n"
    assert (shared / "g").read_text() == "new\n"
    done = who.run("-v", f"{shared}:/data:ro", "--", "sh", "-c", "cat /data/f; echo new >/data/h")
    assert done.returncode != 0 and done.stdout == b"of the host\n" and b"Read-only file system" in done.stderr
    assert not (shared / "h").exists()


def test_host_paths(who):
    shown = who.dir / "shown"
    shown.mkdir(exist_ok=True)
    (shown / "f").write_text("seen\n")
    assert ran(who.run("--host-path", str(shown), "--", "cat", str(shown / "f"))) == "seen\n"
    assert who.run("cat", str(shown / "f")).returncode == 1
    done = who.run("--host-path", str(shown), "--", "sh", "-c", f"echo x >{shown}/g")
    assert done.returncode != 0 and not (shown / "g").exists()


def test_a_root_that_cannot_be_written(who):
    assert ran(who.run("--read-only", "--", "sh", "-c", "echo a >/tmp/f && echo b >f && cat /tmp/f f")) == "a\nb\n"
    done = who.run("--read-only", "--user", "0", "--", "sh", "-c", "echo a >/f || echo a >/opt/f")
    assert done.returncode != 0 and b"Read-only file system" in done.stderr


def test_files_of_the_host_are_not_there(who):
    secret = who.dir / "secret"
    secret.write_text("mine\n")
    done = who.run("sh", "-c", f"cat {secret} /etc/shadow; ls -A /home")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.count(b"No such file or directory") == 2


def test_the_hosts_processes_are_not_there(who):
    pids = ran(who.run("sh", "-c", "cd /proc && echo [0-9]*")).split()
    assert "1" in pids and len(pids) < 5


REFUSED = """
import socket, sys
s = socket.socket()
s.settimeout(3)
try:
    s.connect(("%s", %d))
    print("connected")
except OSError as e:
    print(e.errno)
"""


def test_the_network_is_not_there(who):
    with socket.socket() as s:  # a server on this machine: we reach it, they do not
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            pass
        assert ran(who.run(PYTHON, "-c", REFUSED % ("127.0.0.1", port))) == f"{errno.ECONNREFUSED}\n"
    assert ran(who.run(PYTHON, "-c", REFUSED % ("192.0.2.1", 80))) == f"{errno.ENETUNREACH}\n"


def test_python_runs(who):
    script = "import sys, json, sqlite3, threading; t = threading.Thread(target=print, args=(6 * 7,)); t.start(); t.join()"
    assert ran(who.run(PYTHON, "-c", script)) == "42\n"


# ---- limits ----


def test_processes_are_counted(who):
    done = who.run("--pids", "20", "--", "sh", "-c", "for i in $(seq 60); do sleep 5 & done; echo all")
    assert b"all" not in done.stdout, done
    assert b"fork" in done.stderr.lower()


def test_a_limit_that_cannot_be_enforced(who):
    done = who.run("--memory", "64M", "--", "true")
    if done.returncode == 0:
        return  # this host can
    assert done.returncode == 125
    assert b"memory" in done.stderr and b"hint: " in done.stderr and b"best-effort" in done.stderr
    done = who.run("--memory", "64M", "--limits=best-effort", "--", "true")
    assert (done.returncode, done.stderr) == (0, b"silica: not limited, as this host cannot: memory\n")
    done = who.run("--memory", "64M", "--limits=best-effort", "-o", "json", "--", "true")
    assert json.loads(done.stderr)["unenforced"] == "memory"


def test_memory_is_limited(who):
    done = who.run("--memory", "64M", "--", PYTHON, "-c", "print(len(bytearray(300 << 20)))")
    if done.returncode == 125:
        assert b"cannot be enforced" in done.stderr  # and doctor tells; the test above has the words
        return
    assert (done.returncode, done.stdout) == (137, b"")
    assert ran(who.run("--memory", "64M", "--", PYTHON, "-c", "print(len(bytearray(20 << 20)))")) == f"{20 << 20}\n"


# ---- nothing stays ----


def test_nothing_is_left_behind(who):
    mounts, groups, mark = pathlib.Path("/proc/mounts").read_text(), cgroups(), f"MARK={uuid.uuid4()}"
    p = who.start("-e", mark, "--", "sh", "-c", "echo up; read x")  # what is looked for can be found
    assert p.stdout.readline() == b"up\n"
    assert len(carrying(mark)) == (2 if os.geteuid() == 0 else 1)  # PID 1's environment is closed to its user
    p.stdin.close()
    p.wait(20)
    for script in ("true", "sleep 4712 & sleep 0.1", "setsid sleep 4712 & exit 3", "kill -9 $$"):
        who.run("-e", mark, "--", "sh", "-c", f"({script}) >/dev/null 2>&1")
    assert carrying(mark) == []
    assert pathlib.Path("/proc/mounts").read_text() == mounts
    wait_until(lambda: cgroups() <= groups, what="cgroups are gone")
    assert not [n for n in os.listdir(who.home) if n.startswith(".") or "silica" in n]


def test_nothing_outlives_a_killed_silica(who):
    mark = f"MARK={uuid.uuid4()}"
    p = who.start("-e", mark, "--", "sh", "-c", "trap '' TERM HUP; setsid sleep 4713 & echo up; sleep 4713")
    assert p.stdout.readline() == b"up\n"
    assert len(carrying(mark)) >= 3
    p.kill()
    p.wait(20)
    wait_until(lambda: carrying(mark) == [], what="the sandbox ends")


def test_killed_anywhere(who):
    """30 times at another moment of its life; then `doctor --clean` finds what a killed process cannot remove."""
    mounts, groups, mark = pathlib.Path("/proc/mounts").read_text(), cgroups(), f"MARK={uuid.uuid4()}"
    chance = random.Random(4711)
    for _ in range(30):
        p = who.start("-e", mark, "--pids", "50", "--", "sh", "-c", "setsid sleep 4714 & sleep 4714", stdin=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, 0.06))
        p.kill()
        p.communicate(timeout=20)
    wait_until(lambda: carrying(mark) == [], what="the sandboxes end")
    assert pathlib.Path("/proc/mounts").read_text() == mounts

    def is_clean():
        assert who.call("doctor", "--clean").returncode == 0
        return cgroups() <= groups

    wait_until(is_clean, what="no cgroups are left")


# ---- what is typed ----


@pytest.mark.parametrize("args, text", [
    ([], "no command given"),
    (["bogus"], "unknown command 'bogus'"),
    (["run"], "no command given"),
    (["run", "--"], "no command given"),
    (["run", "host"], "no command given"),
    (["run", "python:3", "--", "true"], "unknown image 'python:3': the only one is 'host'"),
    (["run", "echo", "hi"], "unknown image 'echo': the only one is 'host'"),
    (["run", "--bogus", "--", "true"], "unknown option '--bogus'"),
    (["run", "-v", "/tmp", "--", "true"], "--volume: '/tmp' is not SRC:DST[:ro]"),
    (["run", "-v", "/tmp:x", "--", "true"], "--volume: 'x' inside is not an absolute path"),
    (["run", "-v", "/tmp:/x:rx", "--", "true"], "--volume: '/tmp:/x:rx' ends neither in :ro nor in :rw"),
    (["run", "-v", "/no/where:/x", "--", "true"], "--volume: cannot use '/no/where' of the host: No such file or directory"),
    (["run", "-w", "x", "--", "true"], "--workdir: 'x' is not an absolute path"),
    (["run", "--host-path", "x", "--", "true"], "--host-path: 'x' is not an absolute path"),
    (["run", "--user", "root", "--", "true"], "--user: 'root' is not UID[:GID], numbers up to 65535"),
    (["run", "--user", "1:", "--", "true"], "--user: '1:' is not UID[:GID], numbers up to 65535"),
    (["run", "--cpus", "0", "--", "true"], "--cpus: '0' is not a number from 0.01 to 4096"),
    (["run", "--pids", "0", "--", "true"], "--pids: '0' is out of range: 1 to 4194304"),
    (["run", "--memory", "1", "--", "true"], "--memory: '1' is too small: at least 1048576 bytes"),
    (["run", "--timeout", "soon", "--", "true"], "--timeout: 'soon' is not a duration such as 500ms, 2m or 1.5 (seconds)"),
    (["run", "--limits", "no", "--", "true"], "--limits: 'no' is neither 'strict' nor 'best-effort'"),
    (["run", "-o", "xml", "--", "true"], "--output: 'xml' is neither 'text' nor 'json'"),
    (["run", "-e", "=x", "--", "true"], "--env: '=x' has no name"),
    (["doctor", "x"], "unexpected argument 'x'"),
    (["doctor", "-o", "xml"], "--output: 'xml' is neither 'text' nor 'json'"),
    (["version", "x"], "unexpected argument 'x'"),
])
def test_bad_usage(who, args, text):
    done = who.call(*args)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines()[0] == f"silica: {text}"


def test_help_teaches(who):
    for args in (["--help"], ["help"], ["-h"]):
        assert ran(who.call(*args)).startswith("silica run -- ")
    text = ran(who.call("run", "--help"))
    assert ran(who.call("help", "run")) == text
    assert text.startswith("silica run -- ") and "-v, --volume SRC:DST[:ro]" in text and "127" in text
    assert all(len(line) <= 125 for line in text.splitlines())
    assert ran(who.call("version")) == ran(who.call("--version"))


def test_the_summary(who):
    done = who.run("-o", "json", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, b"out\n")
    first, last = done.stderr.decode().splitlines()
    summary = json.loads(last)
    assert first == "err" and summary.pop("start_ms") >= 0 and summary.pop("ran_ms") >= 0
    assert summary == {"exit_code": 3, "timed_out": False}
    summary = json.loads(who.run("-o", "json", "--", "no-such-program").stderr)
    assert (summary["exit_code"], summary["code"]) == (127, "not-found")
    assert json.loads(who.run("-o", "json", "--timeout", "200ms", "--", "sleep", "9").stderr)["timed_out"] is True


# ---- silica doctor ----


def test_the_doctor_says_what_holds(who):
    told = json.loads(ran(who.call("doctor", "-o", "json")))
    facts = {f["name"]: f for f in told["facts"]}
    assert told["works"] is True
    for name in ("sandbox", "ids", "seccomp", "no_new_privs", "capabilities"):
        assert facts[name]["verdict"] == "ok", facts[name]
    assert facts["ids"]["text"].startswith("65536" if who.name == "root" else "one")
    for flag, value in (("--memory", "64M"), ("--pids", "64"), ("--cpus", "0.5")):  # it tells what run does
        assert (facts[flag]["verdict"] == "ok") == (who.run(flag, value, "--", "true").returncode == 0), facts[flag]
        assert facts[flag]["verdict"] == "ok" or facts[flag]["hint"]
    assert ran(who.call("doctor")).startswith("ok      sandbox       made in ")


def test_the_doctor_says_what_to_do(who):
    """Where user namespaces are used up: inside one that allows none below it."""
    script = 'echo 0 >/proc/sys/user/max_user_namespaces && "$0" doctor; echo $?; "$0" run -- true; echo $?'
    done = subprocess.run([*who.prefix, "unshare", "--user", "--map-root-user", "sh", "-c", script, str(who.silica)],
                          capture_output=True, env=who.env, text=True, timeout=30)
    assert done.stdout.startswith("broken  sandbox ") and "max_user_namespaces" in done.stdout, done
    assert done.stdout.splitlines()[-2:] == ["1", "125"]
    assert done.stderr.startswith("silica: cannot make the sandbox: ") and "hint: " in done.stderr

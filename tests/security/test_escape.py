"""Ways out of a sandbox. Each attempt of escape/attempts.def runs inside and must end as its row says, by name; its twin, the same
code outside with what it needs, must succeed, so that a refusal is the sandbox's and not the probe's. What this kernel lacks
altogether is absent: listed, not counted. The result is a table, and build/security.json.

Callers: root; root with --user 0, so that the code inside is uid 0 of its namespace; an account with nothing; one with a range
of ids, whose code is another id than the account, and the account itself as uid 0. Kept sandboxes are made by a spawner, in other
steps than those of a `silica run`: root's and the accounts' are tried as well.
"""

import ctypes
import os
import pathlib
import re
import socket
import struct
import subprocess
import threading

import pytest

from harness.caller import Caller, caller_or_skip
from harness.owner import Owner
from lib import security_report

pytestmark = pytest.mark.ours
HERE = pathlib.Path(__file__).parent / "escape"
ROW = re.compile(r'^X\((\w+), ((\w+)\(.*?\)), "([A-Za-z0-9|]+)", (HOST|SCRATCH|ROOT), "([A-Za-z0-9|]+)", "((?:[^"\\]|\\.)*)"\)$', re.M)
ATTEMPTS = {m[1]: {"does": m[2], "how": m[3], "inside": m[4].split("|"), "where": m[5], "twin": m[6].split("|"), "what": m[7].replace('\\"', '"')}
            for m in ROW.finditer((HERE / "attempts.def").read_text())}
CALLERS = {"root": ("root", []), "root-as-0": ("root", ["--user", "0"]), "root-kept": ("root", ["--keep"]), "user": ("user", []),
           "user-kept": ("user", ["--keep"]), "ranged": ("ranged", ["--range"]), "ranged-as-0": ("ranged", ["--range", "--user", "0"]),
           "ranged-kept": ("ranged", ["--range", "--keep"])}
DISTINCT_MIN = 500
ATTEMPTS_MIN = 400  # of those that this kernel has something to offer for

# What a twin says where the kernel, not the sandbox, has nothing to offer.
LACKS = {"CALL": ["ENOSYS"], "TRY": ["ENOSYS", "SIGSEGV", "EAFNOSUPPORT"], "SOCKET": ["EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT"],
         "PAIR": ["EAFNOSUPPORT"], "OPEN": ["ENOENT", "ENXIO", "ENODEV", "EROFS"], "READ": ["ENOENT", "EMPTY"], "MOUNT": ["ENODEV", "EBUSY"], "CLONE": ["EINVAL"],
         "NUMBER": ["ENOSYS"], "OF_PID_1": ["ENOENT"], "OF_HOST": [], "ROUTE": [], "OPTION": ["ENOPROTOOPT"], "INTERFACE": []}
LEAK = "exec 9</"  # the caller's root directory as a descriptor that whoever comes next inherits


class Host:
    """What there is to reach: a file, sockets, a process, memory, and a volume with programs in it."""

    def __init__(self):
        self.caller = Caller("host")
        self.dir = self.caller.dir
        self.volume = self.dir / "volume"
        self.volume.mkdir()
        self.program = self.volume / "attempts"
        subprocess.run(["gcc", "-std=gnu17", "-O1", "-static", "-Wall", "-Wextra", "-Werror", "-o", str(self.program),
                        *map(str, sorted(HERE.glob("*.c")))], check=True)
        self.program.chmod(0o755)
        for name in ("copy", "setuid", "capable"):
            (self.volume / name).write_bytes(self.program.read_bytes())
            (self.volume / name).chmod(0o755)
        self.volume.chmod(0o777)
        (self.volume / "copy").chmod(0o777)
        self.shared = self.dir / "shared"  # what code inside may write to and other accounts of the host may enter
        self.shared.mkdir()
        self.shared.chmod(0o777)
        if os.geteuid() == 0:
            (self.volume / "setuid").chmod(0o4755)
            # struct vfs_cap_data, revision 2, effective: CAP_NET_RAW permitted
            os.setxattr(self.volume / "capable", "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
        self.file = self.dir / "secret"
        self.file.write_text("of the host\n")
        (self.volume / "link").symlink_to(self.file)
        self.sockets = []
        self.process = subprocess.Popen(["sleep", "600"])
        libc = ctypes.CDLL(None)
        self.shm = libc.shmget(0, 4096, 0o666 | 0o1000)
        self.sem, self.queue = libc.semget(0, 1, 0o666 | 0o1000), libc.msgget(0, 0o666 | 0o1000)
        self.memory = pathlib.Path("/dev/shm") / f"silica-test-{os.getpid()}"
        self.memory.write_text("of the host\n")
        name = f"silica-test-{os.getpid()}"
        self.env = {"E_PID": str(self.process.pid), "E_PORT": str(self.listen_ipv4()), "E_UDP": str(self.echo_udp()),
                    "E_ABSTRACT": "@" + name, "E_SOCKET": str(self.dir / "socket"), "E_FILE": str(self.file),
                    "E_SHM": str(self.shm), "E_SEM": str(self.sem), "E_QUEUE": str(self.queue), "E_MEMORY": "/" + self.memory.name,
                    "E_PORT6": str(self.listen_ipv6()), "E_DIR": str(self.volume)}
        self.listen_unix("\0" + name, socket.SOCK_STREAM)
        self.listen_unix("\0" + name + "-datagram", socket.SOCK_DGRAM)
        self.listen_unix(self.env["E_SOCKET"], socket.SOCK_STREAM)
        os.chmod(self.env["E_SOCKET"], 0o777)

    def listen_unix(self, name, kind):
        s = socket.socket(socket.AF_UNIX, kind)
        s.bind(name)
        if kind == socket.SOCK_STREAM:
            s.listen()
        self.sockets.append(s)

    def listen_ipv4(self):
        s = socket.create_server(("127.0.0.1", 0))
        self.sockets.append(s)
        return s.getsockname()[1]

    def listen_ipv6(self):
        s = socket.create_server(("::1", 0), family=socket.AF_INET6)
        self.sockets.append(s)
        return s.getsockname()[1]

    def echo_udp(self):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("127.0.0.1", 0))
        self.sockets.append(s)

        def echo():
            while True:
                try:
                    data, peer = s.recvfrom(16)
                    s.sendto(data, peer)
                except OSError:
                    return

        threading.Thread(target=echo, daemon=True).start()
        return s.getsockname()[1]

    def twins(self, where):
        done = subprocess.run(["/bin/sh", "-c", f'{LEAK}; exec "$@"', "sh", str(self.program), where],
                              env={**self.caller.env, **self.env, "E_SECRET": "x"}, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60, cwd="/")
        assert done.returncode == 0, done.stderr
        return read_results(done.stdout)

    def remove(self):
        self.process.kill()
        self.process.wait()
        libc = ctypes.CDLL(None)
        libc.shmctl(self.shm, 0, None)
        libc.semctl(self.sem, 0, 0)
        libc.msgctl(self.queue, 0, None)
        self.memory.unlink()
        for s in self.sockets:
            s.close()
        self.caller.remove()


def read_results(text):
    return dict(line.split(" ", 1) for line in text.splitlines())


@pytest.fixture(scope="module")
def host():
    h = Host()
    yield h
    h.remove()


@pytest.fixture(scope="module")
def twins(host):
    """What each attempt says outside."""
    caller_or_skip("user").remove()
    got = {**host.twins("HOST"), **host.twins("SCRATCH")}
    if os.geteuid() == 0:
        got.update(host.twins("ROOT"))
    return got


@pytest.fixture(scope="module")
def results(host):
    """What each attempt says inside, by caller; each caller's run is made once."""
    kept = {}

    def of(name):
        if name not in kept:
            account, options = CALLERS[name]
            caller = caller_or_skip(account, Owner)
            try:
                variables = [a for k, v in host.env.items() for a in ("-e", f"{k}={v}")]
                done = caller.run(*options, *variables, "-v", f"{host.volume}:{host.volume}:ro", "-v", f"{host.shared}:/shared",
                                  "--", host.program, "inside",
                                  shell_first=LEAK, env={"E_SECRET": "x"})
            finally:
                if "--keep" in options:
                    caller.ok("rm", "--force", "--all")
                caller.remove()
            assert done.returncode == 0, done.stderr
            kept[name] = read_results(done.stdout)
        return kept[name]

    return of


def is_absent(name, twin):
    row = ATTEMPTS[name]
    return twin not in row["twin"] and twin in LACKS[row["how"]]


def test_every_row_was_read():
    assert len(ATTEMPTS) == sum(line.startswith("X(") for line in (HERE / "attempts.def").read_text().splitlines())


def test_they_are_distinct():
    """Each does something that no other does, and no twin answers as the sandbox does."""
    same = [(a, b) for a, x in ATTEMPTS.items() for b, y in ATTEMPTS.items() if a < b and x["does"] == y["does"]]
    assert same == []
    assert [n for n, a in ATTEMPTS.items() if set(a["inside"]) & set(a["twin"])] == []
    assert len(ATTEMPTS) >= DISTINCT_MIN


@pytest.mark.parametrize("name", ATTEMPTS)
def test_the_probe_works_outside(twins, name):
    row = ATTEMPTS[name]
    if row["where"] == "ROOT" and os.geteuid() != 0:
        pytest.skip("needs root")
    if not is_absent(name, twins[name]):
        assert twins[name] in row["twin"], row["what"]


@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.parametrize("caller", CALLERS)
def test_blocked(results, twins, caller, name):
    got, outside = results(caller)[name], twins.get(name, "needs root")
    if is_absent(name, outside) or outside == "needs root" and is_absent(name, got):
        assert got != "ok"
    else:
        assert got in ATTEMPTS[name]["inside"], (ATTEMPTS[name]["what"], "outside: " + outside)


def test_the_table(results, twins, capsys):
    report = {}
    for caller in CALLERS:
        if not caller.startswith("user") and os.geteuid() != 0:
            continue
        rows = [{"name": n, "what": a["what"], "inside": results(caller)[n], "outside": twins.get(n, "needs root"),
                 "absent": is_absent(n, twins.get(n)), "blocked": results(caller)[n] in a["inside"]} for n, a in ATTEMPTS.items()]
        counted = [r for r in rows if not r["absent"] and r["outside"] != "needs root"]
        report[caller] = {"tried": len(counted), "blocked": sum(r["blocked"] for r in counted),
                          "absent": [r["name"] for r in rows if r["absent"]], "attempts": rows}
    security_report.record("escape", {"distinct": len(ATTEMPTS), "callers": report})
    with capsys.disabled():
        print("\n" + table(report))
    for caller, r in report.items():
        assert r["blocked"] == r["tried"], caller
        if os.geteuid() == 0:
            assert r["tried"] >= ATTEMPTS_MIN, caller


def table(report):
    lines = [f"{'attempt':26}{'outside':16}" + "".join(f"{c:16}" for c in report) + "about"]
    for i, name in enumerate(ATTEMPTS):
        rows = [r["attempts"][i] for r in report.values()]
        outside = "absent" if rows[0]["absent"] else rows[0]["outside"]
        lines.append(f"{name:26}{outside:16}" + "".join(f"{r['inside']:16}" for r in rows) + rows[0]["what"])
    for caller, r in report.items():
        lines.append(f"{caller}: {r['tried']} tried, {r['blocked']} blocked, {len(r['absent'])} absent")
    return "\n".join(lines)

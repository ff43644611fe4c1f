"""Whoever has long-lived sandboxes: a caller with a data directory of its own, and what can be seen of it from outside."""

import json
import os
import pathlib
import socket
import struct
import subprocess
import uuid

from harness import proc
from harness.caller import Caller


class Owner(Caller):
    """A caller with a data directory of its own."""

    def __init__(self, name):
        super().__init__(name)
        self.data = self.home / "data"
        self.env = {**self.env, "SILICA_DATA": str(self.data)}

    def call(self, *args, timeout=60, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        if args[0] == "run" and "ASAN_OPTIONS" in os.environ:  # a sanitized PID 1 cannot look for leaks: that wants ptrace
            args = ("run", "-e", "ASAN_OPTIONS=detect_leaks=0", *args[1:])
        return subprocess.run([*self.prefix, str(self.silica), *map(str, args)], capture_output=True, text=True,
                              env=self.env, timeout=timeout, cwd="/", **kwargs)

    def ok(self, *args, **kwargs):
        done = self.call(*args, **kwargs)
        assert done.returncode == 0, (args, done.returncode, done.stdout[-500:], done.stderr[-500:])
        return done.stdout

    def up(self, *args, script="exec sleep 4720"):
        """A sandbox in the background; its name."""
        name = f"t-{uuid.uuid4().hex[:8]}"
        assert self.ok("run", "-d", "--name", name, *args, "--", "sh", "-c", script) == f"{name}\n"
        return name

    def list(self):
        return {row["name"]: row for row in json.loads(self.ok("ps", "-a", "-o", "json"))}

    def of(self, name):
        return self.data / "sandboxes" / name

    def log(self, name):
        """The command's own output as the log has it, both streams."""
        log = self.of(name) / "log"
        lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
        return b"".join(l.split(b" ", 3)[3] if l.split(b" ", 3)[2] == b"F" else l.split(b" ", 3)[3][:-1] for l in lines)

    def keeper(self):
        return keeper_of(self.data)

    def spawner(self):
        return spawner_of(self.data)


def keeper_of(data):
    """The pid of the keeper of a data directory: who listens on its socket, by the kernel's word. It talks to its own account alone."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(str(data / "engine.sock"))
        return struct.unpack("iII", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def spawner_of(data):
    return [p for p in proc.children(keeper_of(data)) if pathlib.Path(f"/proc/{p}/comm").read_text() == "silica-spawner\n"][0]


def alive(pid):
    return proc.state(pid) not in (None, "Z", "X", "")


def groups_of(mark):
    return [path for path, _, _ in os.walk("/sys/fs/cgroup") if mark in path]


def carrying(mark):
    """The processes that have this in their environment: PID 1 of a sandbox and all it started. Only root sees PID 1's."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark.encode() in pathlib.Path("/proc", pid, "environ").read_bytes() and alive(int(pid)):
                found.append(int(pid))
        except OSError:
            pass
    return found

"""Whoever runs `silica`: root, or an account that has nothing but its home."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from harness.server import TREE

NOBODY = 65534


def program():
    """The CLI under test: $SILICA, else build/silica."""
    return pathlib.Path(os.environ.get("SILICA") or TREE / "build" / "silica")


def runtime():
    """What the CLI under test carries: beside it where `make all` left both, or where the build made it."""
    there = program().parent / "silica-runtime"
    return there if there.exists() else there.with_suffix(".stripped")


class Caller:
    """dir is a scratch directory everybody may read, with `silica` and `home` in it, and `silica-runtime` beside `silica` as
    it is installed."""

    def __init__(self, name):
        self.name = name
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="silica-caller-"))
        self.dir.chmod(0o755)
        self.silica = self.dir / "silica"
        for there, to in ((program(), "silica"), (runtime(), "silica-runtime")):
            shutil.copy2(there, self.dir / to)
            (self.dir / to).chmod(0o755)
        self.home = self.dir / "home"
        self.home.mkdir()
        self.prefix = []
        if name == "user" and os.geteuid() == 0:
            os.chown(self.home, NOBODY, NOBODY)
            self.prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        self.env = {"HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin"}

    def run(self, *args, shell_first=None, timeout=60, env=None, **kwargs):
        """`silica run ARGS`. shell_first: what a shell does before it becomes silica, such as leave a descriptor open."""
        argv = [*self.prefix, str(self.silica), "run", *map(str, args)]
        if shell_first:
            argv = ["/bin/sh", "-c", f'{shell_first}; exec "$@"', "sh", *argv]
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(argv, env={**self.env, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=timeout, cwd="/", close_fds=True, **kwargs)

    def remove(self):
        shutil.rmtree(self.dir)


def caller_or_skip(name, kind=Caller):
    if name == "root" and os.geteuid() != 0:
        pytest.skip("needs root")
    caller = kind(name)
    done = subprocess.run([*caller.prefix, "unshare", "--user", "--map-root-user", "true"], capture_output=True)
    if done.returncode != 0:
        caller.remove()
        pytest.skip("user namespaces are not allowed here")
    return caller

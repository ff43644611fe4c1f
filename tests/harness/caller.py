"""Whoever runs `silica`: root, an account that has nothing but its home, or one with a range of ids."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from harness.server import TREE

NOBODY = 65534
RANGED = 64999  # nobody's uid; to those that run as it, it is the account "ranged"
RANGE = 1000000  # the first id of its range, for users and for groups


def program():
    """The CLI under test: $SILICA, else build/silica."""
    return pathlib.Path(os.environ.get("SILICA") or TREE / "build" / "silica")


def runtime():
    """What the CLI under test carries: beside it where `make all` left both, or where the build made it."""
    there = program().parent / "silica-runtime"
    return there if there.exists() else there.with_suffix(".stripped")


class Accounts:
    """Files that lie over the host's /etc/passwd, /etc/subuid and /etc/subgid for the processes of an account, in a mount
    namespace of their own. subuid: the line it has in both; None: newuidmap is not there, but a line is."""

    def __init__(self, dir, subuid=f"ranged:{RANGE}:65536"):
        self.dir = pathlib.Path(dir) / "etc"
        self.dir.mkdir()
        self.has_helpers = subuid is not None
        passwd = f"root:x:0:0::/root:/bin/sh\nranged:x:{RANGED}:{RANGED}::/:/bin/sh\n"
        for name, text in (("passwd", passwd), ("subuid", subuid or f"ranged:{RANGE}:65536"), ("subgid", subuid or f"ranged:{RANGE}:65536"),
                           ("none", "")):
            (self.dir / name).write_text(text.rstrip("\n") + "\n")
            (self.dir / name).chmod(0o644)

    def prefix(self):
        """What stands before a command of the account."""
        over = [("passwd", "/etc/passwd"), ("subuid", "/etc/subuid"), ("subgid", "/etc/subgid")]
        if not self.has_helpers:
            over += [("none", shutil.which(p)) for p in ("newuidmap", "newgidmap") if shutil.which(p)]
        script = " && ".join([*(f"mount --bind {self.dir / name} {path}" for name, path in over),
                              f'exec setpriv --reuid={RANGED} --regid={RANGED} --clear-groups "$@"'])
        return ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh"]


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
        if name == "ranged":
            os.chown(self.home, RANGED, RANGED)
            self.prefix = Accounts(self.dir).prefix()
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
    if name in ("root", "ranged") and os.geteuid() != 0:
        pytest.skip("needs root")
    if name == "ranged" and not shutil.which("newuidmap"):
        pytest.skip("newuidmap is not installed")
    caller = kind(name)
    done = subprocess.run([*caller.prefix, "unshare", "--user", "--map-root-user", "true"], capture_output=True)
    if done.returncode != 0:
        caller.remove()
        pytest.skip("user namespaces are not allowed here")
    return caller

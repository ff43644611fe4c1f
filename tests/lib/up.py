"""`silica up` as tests see it.

    with Up() as up:                       # on free ports, in a directory of its own
        up.api.call("GET", "/api/v1/pods") # as its administrator
        up.kubectl("get", "pods")
        up.kill("control")
    with as_caller("user") as up:          # the same, of an account that has nothing but its uid; "root" is root's
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

from harness import caller
from harness.server import TREE, wait_until
from lib import controlplane

PORTS = ["--listen", "127.0.0.1:0", "--router-listen", "127.0.0.1:0"]


def program():
    return os.environ.get("SILICA", str(TREE / "build" / "silica"))


class Reader(controlplane.Silica):
    """The calls of an administrator, with what a kubeconfig says."""

    def __init__(self, directory, kubeconfig):
        self.directory, self.kubeconfig = directory, pathlib.Path(kubeconfig)
        self._read_kubeconfig()


class Up:
    """data: a directory of the caller's. prefix: what stands before the program, such as setpriv."""

    def __init__(self, *options, data=None, prefix=(), env=None):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="silica-up-"))
        self.data = pathlib.Path(data or self.directory / "data")
        self.prefix, self.env = list(prefix), {**os.environ, **(env or {})}
        self.program = program()  # of what is started from now on
        self.process = None
        try:
            self.start(*PORTS, *options)
        except BaseException:
            self.stop()
            raise

    def argv(self, command, *args):
        return [*self.prefix, self.program, command, "--data", str(self.data), *map(str, args)]

    def start(self, *options):
        """Returns when it serves. Without options: on the ports of last time."""
        reader, writer = os.pipe()
        self.out = self.directory / "out"
        with open(self.out, "ab") as out:
            self.process = subprocess.Popen(self.argv("up", "--ready-fd", writer, *options), stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out, pass_fds=[writer], env=self.env, preexec_fn=controlplane.die_with_parent)
        os.close(writer)
        with os.fdopen(reader) as ready:
            line = ready.readline()
        assert line, self.said()
        self.ready = json.loads(line)
        self.api = Reader(self.directory, self.ready["kubeconfig"])

    def run(self, command, *args, check=True, **kw):
        """Another command on the same directory: run("status", "-o", "json")."""
        done = subprocess.run(self.argv(command, *args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=100, env=self.env, **kw)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def status(self):
        return json.loads(self.run("status", "-o", "json").stdout)

    def info(self):
        return json.loads((self.data / "up.json").read_text())

    def pid(self, part):
        return next(p["pid"] for p in self.info()["parts"] if p["name"] == part)

    def kill(self, part, number=signal.SIGKILL):
        """The part, or the supervisor itself: "up". Returns the pid that was."""
        pid = self.process.pid if part == "up" else wait_until(lambda: self.pid(part), 30, f"a {part}")
        os.kill(pid, number)
        return pid

    def wait_back(self, part, pid):
        """Until another process than that one serves."""
        def is_back():
            row = next(p for p in self.info()["parts"] if p["name"] == part)
            return row["state"] == "serving" and row["pid"] not in (0, pid)

        wait_until(is_back, 60, f"{part} is back")

    def pool(self, name="python-sandbox-pool"):
        return self.api.call("GET", f"/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxwarmpools/{name}")

    def wait_warm(self, name="python-sandbox-pool"):
        def is_warm():
            pool = self.pool(name)
            return pool.get("status", {}).get("readyReplicas", 0) >= pool["spec"]["replicas"]

        wait_until(is_warm, 120, f"{name} is warm")

    def kubectl(self, *args, check=True, stdin=None, kubeconfig=None):
        done = subprocess.run([controlplane.peer("kubectl"), "--kubeconfig", str(kubeconfig or self.ready["kubeconfig"]),
                               "--cache-dir", str(self.directory / "cache"), *map(str, args)], input=stdin or "",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout if check else done

    def said(self):
        logs = [self.out, *sorted((self.data / "logs").glob("*/log"))]
        return "\n".join(f"--- {p}\n{p.read_text(errors='replace')[-6000:]}" for p in logs if p.exists())

    def end(self):
        """As Ctrl-C does; its exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.data.exists():
            self.run("down", "--sandboxes", check=False)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


@contextlib.contextmanager
def forwarded(up, kubeconfig, *args, pod="sandbox-router", port=8080):
    """The address of a port of a Pod, the router's without more words, on this side of a kubectl port-forward."""
    argv = [controlplane.peer("kubectl"), "--kubeconfig", str(kubeconfig), "--cache-dir", str(up.directory / "cache"), "port-forward",
            f"pod/{pod}", f":{port}", *args]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("Forwarding from "), line
            yield "http://" + line.split()[2]
        finally:
            process.kill()


def as_user(uid):
    """What makes a command another account's."""
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


@contextlib.contextmanager
def as_caller(who, *options, uid=caller.NOBODY, env=None, disk=None):
    """`silica up` of root (who="root"), or of an account without rights (who="user"), which has a copy of the program and a
    home of its own. Skips where the tests may not become that account. disk: its data is on a file system of this size, or on what these words
    make mount(8) mount."""
    if who == "root" and not disk:
        if os.geteuid() != 0:
            pytest.skip("needs root")
        with Up(*options, env=env) as started:
            yield started
        return
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if who != "root" and subprocess.run([*as_user(uid), "unshare", "--user", "--map-root-user", "true"]).returncode != 0:
        pytest.skip("user namespaces are not allowed here")
    public = tempfile.mkdtemp(prefix="silica-user-")
    before = os.environ.get("SILICA")
    try:
        os.chmod(public, 0o755)
        os.mkdir(f"{public}/home")
        if disk:
            what = ["-t", "tmpfs", "-o", f"size={disk},mode=755", "tmpfs"] if isinstance(disk, str) else disk
            subprocess.run(["mount", *what, f"{public}/home"], check=True)
        if who != "root":
            os.chown(f"{public}/home", uid, uid)
        shutil.copy2(program(), f"{public}/silica")
        os.environ["SILICA"] = f"{public}/silica"
        with Up(*options, data=f"{public}/home/data", prefix=as_user(uid) if who != "root" else (), env={"HOME": f"{public}/home", **(env or {})}) as started:
            yield started
    finally:
        os.environ.pop("SILICA", None)
        if before:
            os.environ["SILICA"] = before
        if disk:
            subprocess.run(["umount", "--lazy", f"{public}/home"], check=False)
        shutil.rmtree(public, ignore_errors=True)

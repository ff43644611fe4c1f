"""Servers as tests see them: started on a free port, known by pid, stopped by pid, their logs kept.

Target names one server program. `silica` is ours and serves every contract; `fastapi` (contract A) and
`sandboxd` (contract B) are the peers the same tests are checked against: SILICA_TARGET=sandboxd pytest ...
"""

import http.client
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
READY_TIMEOUT_S = 20


def binary():
    """The runtime under test: $SILICA_RUNTIME, else build/silica-runtime."""
    return os.environ.get("SILICA_RUNTIME") or str(TREE / "build" / "silica-runtime")


def tool(name, *args):
    """What tools/NAME prints: a path."""
    done = subprocess.run([str(TREE / "tools" / name), *args], stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout.strip().splitlines()[-1]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(check, timeout_s=10.0, what="condition"):
    """Calls check every 10 ms until it returns something true, and returns that."""
    end = time.monotonic() + timeout_s
    while True:
        got = check()
        if got:
            return got
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {timeout_s} s")
        time.sleep(0.01)


class Server:
    """One running server. Its directory holds `root` (what it serves) and `log` (its stderr and stdout)."""

    contracts = ""

    def __init__(self, keep_root=None):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="silica-test-"))
        self.root = pathlib.Path(keep_root) if keep_root else self.dir / "root"
        self.root.mkdir(exist_ok=True)
        self.log_path = self.dir / "log"
        self.process = None
        self.ports = []

    @property
    def pid(self):
        return self.process.pid

    @property
    def port(self):
        return self.ports[0]

    @property
    def grpc_port(self):
        """The port gRPC clients are given: ours speaks it on all of them, so the last."""
        return self.ports[-1]

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def grpc_address(self):
        return f"127.0.0.1:{self.grpc_port}"

    @property
    def url(self):
        return f"http://{self.address}"

    @property
    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def spawn(self, argv, env, pass_fds=()):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
                                            pass_fds=pass_fds, cwd=self.dir)

    def wait_port(self, port, path=None):
        def answers():
            if self.process.poll() is not None:
                raise AssertionError(f"{self.process.args[0]} ended with {self.process.returncode}:\n{self.log}")
            try:
                if path is None:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    return True
                c = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
                c.request("GET", path)
                c.getresponse().read()
                c.close()
                return True
            except OSError:
                return False

        wait_until(answers, READY_TIMEOUT_S, f"{self.process.args[0]} on port {port}")

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, timeout_s=20):
        return self.process.wait(timeout_s)

    def stop(self, timeout_s=20):
        """TERM, then KILL if it does not end; returns the exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode

    def remove(self):
        if not isinstance(self, Silica):
            self.end_leftovers()
        shutil.rmtree(self.dir, ignore_errors=True)


    def end_leftovers(self):
        """Peers leave commands behind when they end. Ours must not, so it gets no such help."""
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and pathlib.Path(os.readlink(entry / "cwd")).is_relative_to(self.root):
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                pass  # gone, or another user's


class Silica(Server):
    contracts = "ABE"

    def __init__(self, *args, listeners=2, token=None, env=None, root=None, command=None, program=None,
                 add_root=True, keep_env=True):
        """args go on the command line; token into the environment; command after `--`."""
        super().__init__(root)
        given = dict(os.environ) if keep_env else {"PATH": os.environ["PATH"]}
        for name in list(given):
            if name.startswith("SANDBOX"):
                del given[name]
        if token is not None:
            given["SANDBOX_EXEC_TOKEN"] = token
        given.update(env or {})
        self.token = token
        read_fd, write_fd = os.pipe()
        os.set_inheritable(write_fd, True)
        argv = [program or binary()]
        for _ in range(listeners):
            argv += ["--listen", "127.0.0.1:0"]
        if add_root:
            argv += ["--root", str(self.root)]
        argv += ["--ready-fd", str(write_fd), *map(str, args)]
        if command:
            argv += ["--", *command]
        try:
            self.spawn(argv, given, pass_fds=(write_fd,))
        finally:
            os.close(write_fd)
        self.ready = self.read_ready(read_fd)
        self.ports = [int(a.rsplit(":", 1)[1]) for a in self.ready["listen"]]

    def read_ready(self, fd):
        """The ready line. EOF without it is a server that died: its log is the message."""
        line = b""
        end = time.monotonic() + READY_TIMEOUT_S
        try:
            while not line.endswith(b"\n"):
                left = end - time.monotonic()
                if left <= 0 or not select.select([fd], [], [], left)[0]:
                    self.stop(1)
                    raise AssertionError(f"no ready line within {READY_TIMEOUT_S} s:\n{self.log}")
                more = os.read(fd, 4096)
                if not more:
                    status = self.stop(2)
                    raise AssertionError(f"the runtime ended with {status} before it served:\n{self.log}")
                line += more
        finally:
            os.close(fd)
        return json.loads(line)


class Fastapi(Server):
    """The public python runtime in shape: FastAPI on uvicorn, commands on a thread pool."""

    contracts = "A"

    def __init__(self, *args, token=None, env=None, **_):
        super().__init__()
        python = tool("venv", "fastapi")
        port = free_port()
        given = dict(os.environ, SANDBOX_BASE_DIR=str(self.root))
        given.update(env or {})
        self.spawn([python, "-m", "uvicorn", "--app-dir", str(TREE / "tests" / "bench" / "peers"),
                    "fastapi_runtime:app", "--host", "127.0.0.1", "--port", str(port), "--log-level", "warning",
                    "--no-access-log"], given)
        self.ports = [port]
        self.wait_port(port, "/")


class Sandboxd(Server):
    """Go sandboxd, built by tools/peers. v0.5.6 knows no --listen-host: it always binds loopback."""

    contracts = "B"

    def __init__(self, *args, token=None, env=None, **_):
        super().__init__()
        program = tool("peers", "sandboxd")
        rest, grpc = free_port(), free_port()
        given = dict(os.environ)
        given.update(env or {})
        self.spawn([program, "--rest-port", str(rest), "--grpc-port", str(grpc),
                    "--root-dir", str(self.root)], given)
        self.ports = [rest, grpc]
        self.wait_port(rest, "/v1/health")
        self.wait_port(grpc)


TARGETS = {"silica": Silica, "fastapi": Fastapi, "sandboxd": Sandboxd}


def target():
    return TARGETS[os.environ.get("SILICA_TARGET", "silica")]


KILL = signal.SIGKILL

"""The test server of pod streams (src/podstream/testserver.c): one pod, `local`, whose commands and ports are this
machine's. Built with the tests, so it comes from the build directory of the runtime under test, else from build/debug."""

import os
import pathlib

from harness import server as servers

PATH = "src/podstream/podstream_testserver"


def binary():
    """$SILICA_PODSTREAM, the one beside the runtime under test, or build/debug's."""
    given = os.environ.get("SILICA_PODSTREAM")
    if given:
        return given
    beside = pathlib.Path(servers.binary()).resolve().parents[2] / PATH
    return str(beside if beside.exists() else servers.TREE / "build" / "debug" / PATH)


class Podstream(servers.Server):
    read_ready = servers.Silica.read_ready

    def __init__(self, *args, command=None):
        super().__init__()
        read_fd, write_fd = os.pipe()
        os.set_inheritable(write_fd, True)
        argv = [binary(), "--listen", "127.0.0.1:0", "--ready-fd", str(write_fd), *map(str, args)]
        if command:
            argv += ["--", *command]
        try:
            self.spawn(argv, dict(os.environ, SILICA_TEST="1"), pass_fds=(write_fd,))
        finally:
            os.close(write_fd)
        self.ports = [int(address.rsplit(":", 1)[1]) for address in self.read_ready(read_fd)["listen"]]

    def relayed(self):
        """The same server as it looks through a relay, which passes streams on as an API server does."""
        return Relayed(self)

    def path(self, verb, query=""):
        return f"/api/v1/namespaces/default/pods/local/{verb}" + (f"?{query}" if query else "")

    def memory_kib(self):
        """Resident memory that is its own: the heap, not the program."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
        raise AssertionError("no RssAnon")


class Relayed:
    def __init__(self, server):
        self.server = server

    def __getattr__(self, name):
        return getattr(self.server, name)

    port = property(lambda self: self.server.ports[1])
    address = property(lambda self: f"127.0.0.1:{self.port}")
    url = property(lambda self: f"http://{self.address}")

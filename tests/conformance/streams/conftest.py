"""Streams of a pod, judged by clients nobody here wrote: against the test server (harness/podstream.py), and against
`silica apiserver --pod-backend=local-exec`.

    streams   a server whose pod is `local`, its main process a `cat`: spoken to directly, through a relay, or the API server;
              streams.kubectl_options lead kubectl to it, streams.configuration() the Python client, streams.log is its log
    server    the API server alone (apiserver.py)
    pages     an HTTP server of this machine, which stands for a port of the pod: pages.port, pages.blob
"""

import http.server
import os
import pathlib
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from apiserver import ApiServer  # noqa: E402
from harness import podstream  # noqa: E402


def plain(s):
    """What clients of a server without TLS and names are told."""
    from kubernetes import client

    def configuration():
        made = client.Configuration()
        made.host = s.url
        return made

    s.kubectl_options, s.configuration = ["--server", s.url], configuration
    return s


@pytest.fixture(scope="session")
def server():
    s = ApiServer()
    s.make_pod("default", "local")
    yield s
    was_alive = s.process.poll() is None
    log = s.end()
    assert was_alive and s.process.returncode == 0 and "Sanitizer" not in log, f"status {s.process.returncode}:\n{log[-20000:]}"


@pytest.fixture(scope="session", params=["direct", "relayed", "apiserver"])
def streams(request):
    if request.param == "apiserver":
        yield request.getfixturevalue("server")
        return
    s = podstream.Podstream(command=["cat"])
    yield plain(s if request.param == "direct" else s.relayed())
    was_alive = s.is_alive()
    status, log = s.stop(), s.log
    s.remove()
    assert was_alive and status == 0 and "Sanitizer" not in log, f"status {status}:\n{log[-20000:]}"


class Pages:
    def __init__(self):
        self.blob = os.urandom(3_000_000)
        blob = self.blob

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(blob)))
                self.end_headers()
                self.wfile.write(blob)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body[::-1])

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="session")
def pages():
    p = Pages()
    yield p
    p.server.shutdown()

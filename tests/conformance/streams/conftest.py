"""Streams of a pod, judged by clients nobody here wrote, against the test server (harness/podstream.py).

    streams   the server, spoken to directly and through a relay; its pod is `local`, its main process a `cat`
    pages     an HTTP server of this machine, which stands for a port of the pod: pages.port, pages.blob
"""

import http.server
import os
import threading

import pytest

from harness import podstream


@pytest.fixture(scope="session", params=["direct", "relayed"])
def streams(request):
    s = podstream.Podstream(command=["cat"])
    yield s if request.param == "direct" else s.relayed()
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

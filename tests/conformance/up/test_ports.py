"""A server of one's own on a port of one's own: `server_port` of every mode."""

import pytest
from conftest import MODES

SERVER = """
import http.server, json, os
class Desk(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def answer(self, what):
        body = json.dumps(what).encode()
        self.send_response(200)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer({'exists': self.path == '/exists/this'})
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers['content-length'])))
        self.answer({'stdout': asked['command'].upper(), 'stderr': '', 'exit_code': 7})
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(('', PORT), Desk).serve_forever()
"""


@pytest.fixture(scope="module")
def desk(apply):
    """Its own server is all that it runs: nothing of ours is in it."""
    container = {"name": "desk", "image": "python:3.12-slim", "command": ["python3", "-c", SERVER.replace("PORT", "3000")],
                 "ports": [{"containerPort": 3000}], "readinessProbe": {"tcpSocket": {"port": 3000}, "periodSeconds": 1}}
    return apply("desk", {"podTemplate": {"spec": {"containers": [container], "terminationGracePeriodSeconds": 0}}})


def speaks_as_desk(box):
    done = box.commands.run("shout")
    assert (done.stdout, done.exit_code) == ("SHOUT", 7)
    assert box.files.exists("this") and not box.files.exists("that")


@pytest.mark.parametrize("mode", MODES)
def test_declared(make, open_client, desk, mode):
    speaks_as_desk(make(open_client(mode, server_port=3000), desk))

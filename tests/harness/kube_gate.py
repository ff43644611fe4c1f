"""A gate before an API server: passes every request on, or refuses those that a test wants refused, as a server in trouble would.

    with Gate(api, directory) as gate:          # gate.kubeconfig leads through it
        gate.refuse = lambda method, path, headers: (429, {"retry-after": "1"}) if method == "POST" else None

Watches stream. What came in is in gate.seen: (method, path, status).
"""

import contextlib
import http.client
import http.server
import json
import pathlib
import ssl
import threading
import urllib.parse

from lib import certificates


class Gate:
    def __init__(self, api, directory, token_file=None):
        self.refuse, self.seen = None, []
        gate, target = self, urllib.parse.urlsplit(api.url)
        context = ssl.create_default_context(cafile=str(api.ca_file))
        if api.client_cert:
            context.load_cert_chain(api.client_cert, api.client_key)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def whole(self, status, headers, body):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                refused = gate.refuse and gate.refuse(self.command, self.path, self.headers)
                if refused:
                    status, headers = refused
                    gate.seen.append((self.command, self.path, status))
                    self.whole(status, {"content-type": "application/json", **headers}, json.dumps(
                        {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "message": "refused at the gate"}).encode())
                    return
                there = http.client.HTTPSConnection(target.hostname, target.port, context=context, timeout=600)
                headers = {k: v for k, v in self.headers.items() if k.lower() in ("accept", "content-type")}
                if api.token:
                    headers["authorization"] = f"Bearer {api.token}"
                with contextlib.closing(there), contextlib.suppress(OSError, http.client.HTTPException):
                    there.request(self.command, self.path, body or None, headers)
                    answer = there.getresponse()
                    gate.seen.append((self.command, self.path, answer.status))
                    if "watch=" not in self.path:
                        self.whole(answer.status, {"content-type": answer.headers["content-type"]}, answer.read())
                        return
                    self.send_response(answer.status)
                    self.send_header("transfer-encoding", "chunked")
                    self.end_headers()
                    while piece := answer.read1(65536):
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.write(b"0\r\n\r\n")

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        certificates.authority(directory, "gate-ca")
        certificates.issue(directory, "gate", ca="gate-ca")
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(directory / "gate.crt", directory / "gate.key")
        self.server.socket = own.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        user = {"tokenFile": str(token_file)} if token_file else {"token": "gate"}
        self.kubeconfig = pathlib.Path(directory) / "gate-kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "gate",
            "clusters": [{"name": "gate", "cluster": {"server": f"https://127.0.0.1:{self.server.server_port}",
                                                      "certificate-authority": str(directory / "gate-ca.crt")}}],
            "contexts": [{"name": "gate", "context": {"cluster": "gate", "user": "gate"}}], "users": [{"name": "gate", "user": user}]}))

    def count(self, status):
        return sum(1 for _, _, s in list(self.seen) if s == status)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

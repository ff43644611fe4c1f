"""HTTP as raw bytes, for what no client library would send."""

import socket


def connect(server, timeout=10):
    s = socket.create_connection(("127.0.0.1", server.port), timeout)
    s.settimeout(timeout)
    return s


def read_all(s):
    """Everything until the peer closes; a reset ends it too."""
    got = b""
    try:
        while more := s.recv(65536):
            got += more
    except ConnectionResetError:
        pass
    return got


def read_answer(s):
    """One answer with Content-Length: (status, fields, body)."""
    got = b""
    while b"\r\n\r\n" not in got:
        more = s.recv(65536)
        assert more, f"closed before the head was complete: {got!r}"
        got += more
    head, body = got.split(b"\r\n\r\n", 1)
    lines = head.decode("latin-1").split("\r\n")
    fields = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
    want = int(fields.get("content-length", 0))
    while len(body) < want:
        more = s.recv(65536)
        assert more, f"closed inside the body: {len(body)} of {want}"
        body += more
    return int(lines[0].split()[1]), fields, body


def exchange(server, request, timeout=10):
    """Sends bytes, ends our side, returns all that comes back."""
    with connect(server, timeout) as s:
        s.sendall(request)
        s.shutdown(socket.SHUT_WR)
        return read_all(s)

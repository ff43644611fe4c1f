"""A WebSocket server in the place of a sandbox's: it says what it hears, and hears how it ended."""

import hashlib
import base64
import socket
import struct
import threading

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(opcode, payload, fin=True):
    """Of a server: not masked."""
    n = len(payload)
    length = bytes([n]) if n < 126 else b"\x7e" + struct.pack(">H", n) if n < 65536 else b"\x7f" + struct.pack(">Q", n)
    return bytes([opcode | (0x80 if fin else 0)]) + length + payload


def close(code, reason):
    return frame(8, struct.pack(">H", code) + reason.encode())


class Echo:
    """Every message comes back. `say:` followed by frames in hex sends these instead. closes: (code, reason) that clients sent."""

    def __init__(self, ip):
        self.closes, self.threads = [], []
        self.socket = socket.create_server((ip, 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                conn, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=[conn], daemon=True).start()

    def serve(self, conn):
        with conn, conn.makefile("rb") as lines:
            key = b""
            while (line := lines.readline().strip()):
                name, _, value = line.partition(b":")
                if name.lower() == b"sec-websocket-key":
                    key = value.strip()
            accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
            conn.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                         b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
            try:
                while self.answer(conn, lines):
                    pass
            except (OSError, struct.error):
                self.closes.append(None)

    def answer(self, conn, lines):
        """One frame. False: it was the last."""
        first, n = struct.unpack(">BB", lines.read(2))
        assert n & 0x80, "a client's frame is masked"
        n &= 0x7f
        if n > 125:
            n, = struct.unpack(*((">H", lines.read(2)) if n == 126 else (">Q", lines.read(8))))
        mask = lines.read(4)
        payload = lines.read(n)
        if len(payload) < n or len(mask) < 4:
            raise OSError("cut")
        payload = bytes(b ^ mask[i % 4] for i, b in enumerate(payload))
        if first & 0x0f == 8:
            code, = struct.unpack(">H", payload[:2] or b"\x03\xed")
            self.closes.append((code, payload[2:].decode()))
            conn.sendall(frame(8, payload))
            return False
        if payload.startswith(b"say:"):
            conn.sendall(bytes.fromhex(payload[4:].decode()))
        else:
            conn.sendall(frame(first & 0x0f, payload, bool(first & 0x80)))
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

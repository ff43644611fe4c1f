"""A TCP proxy that breaks connections on request.

    with Cutter(port) as proxy:     # to 127.0.0.1:port; clients connect to proxy.port
        proxy.cut()                 # all connections of now, with a reset
        proxy.freeze()              # all connections of now fall silent: nothing passes, nobody is told
"""

import contextlib
import socket
import struct
import threading


class Pair:
    """One connection and its other half."""

    def __init__(self, near, far):
        self.near, self.far, self.is_frozen = near, far, False
        for a, b in ((near, far), (far, near)):
            threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    def pump(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not self.is_frozen:
                    sink.sendall(data)
        if not self.is_frozen:
            for s in (source, sink):
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)

    def reset(self):
        for s in (self.near, self.far):
            with contextlib.suppress(OSError):
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.shutdown(socket.SHUT_RDWR)
            s.close()


class Cutter:
    def __init__(self, to_port):
        self.to_port, self.pairs, self.accepted = to_port, [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self.to_port))
                except OSError:
                    near.close()
                    continue
                with self.lock:
                    self.accepted += 1
                    self.pairs.append(Pair(near, far))

    def take(self):
        with self.lock:
            pairs, self.pairs = self.pairs, []
        return pairs

    def cut(self):
        for pair in self.take():
            pair.reset()

    def freeze(self):
        self.frozen = self.take()
        for pair in self.frozen:
            pair.is_frozen = True

    def close(self):
        self.listener.close()
        self.cut()
        for pair in getattr(self, "frozen", []):
            pair.reset()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

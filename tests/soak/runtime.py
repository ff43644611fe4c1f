#!/usr/bin/env python3
"""`make soak-runtime`: everything at once against one runtime for minutes, then nothing may be left of it.

usage: tests/soak/runtime.py [--minutes N]

Clients of every contract execute, stream, cancel, upload, abort, list and probe, honest ones and rude ones. At the
end: no child, no descriptor, no temporary file, no thread more than at the start, memory back where it was after the
first minute, and every probe was answered. The virtualenv `e2e` brings requests and grpcio.
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests"))


def again_in_virtualenv():
    """The clients need requests and grpcio: run this file again with the virtualenv's python."""
    python = subprocess.run([str(TREE / "tools" / "venv"), "e2e"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()[-1]
    os.execv(python, [python, __file__, "--inside", *sys.argv[1:]])


class Soak:
    def __init__(self, server, seconds):
        self.server, self.until = server, time.monotonic() + seconds
        self.lock, self.counts, self.faults = threading.Lock(), {}, []

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def loop(self, what, step):
        rng = random.Random(hash(what) ^ threading.get_ident())
        while time.monotonic() < self.until:
            try:
                step(rng)
                self.count(what)
            except AssertionError as e:
                with self.lock:
                    self.faults.append(f"{what}: {e}")

    def execute(self, rng):
        import requests
        commands = [("true", 0), ("sh -c 'exit 3'", 3), ("sh -c 'head -c 200000 /dev/zero | tr \"\\0\" x'", 0),
                    ("sh -c 'setsid sleep 0.05 >/dev/null 2>&1 & true'", 0), ("nope-such", 1)]
        command, code = rng.choice(commands)
        got = requests.post(self.server.url + "/execute", json={"command": command}, timeout=60).json()
        assert got["exit_code"] == code, (command, got)

    def time_out(self, rng):
        import requests
        got = requests.post(self.server.url + "/execute", timeout=60,
                            json={"command": "sh -c 'setsid sleep 100 & sleep 100'", "timeout_seconds": 0.2}).json()
        assert got["timed_out"], got

    def leave(self, rng):
        import requests
        try:
            requests.post(self.server.url + "/exec", json={"command": "sleep 100", "timeout_seconds": 100}, timeout=0.1)
        except requests.exceptions.RequestException:
            pass

    def files(self, rng):
        import requests
        name, data = f"f{rng.randrange(20)}", os.urandom(rng.randrange(300000))
        assert requests.post(self.server.url + "/upload", files={"file": (name, data)}, timeout=60).status_code == 200
        assert requests.get(self.server.url + f"/v1/files/{name}", timeout=60).status_code == 200
        requests.get(self.server.url + "/list/", timeout=60)
        requests.put(self.server.url + f"/v1/files/{name}", data=iter([data[:1000], data[1000:]]), timeout=60)

    def abort(self, rng):
        from harness import raw
        with raw.connect(self.server) as s:
            time.sleep(0.01)
            s.sendall(b"PUT /v1/files/aborted HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" + b"x" * rng.randrange(200000))

    def junk(self, rng):
        from harness import raw
        starts = [b"", b"GET / HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"POST /upload HTTP/1.1\r\nHost: localhost\r\n"]
        raw.exchange(self.server, rng.choice(starts) + rng.randbytes(rng.randrange(300)) + b"\r\n\r\n")

    def call(self, rng):
        import grpc
        from harness import process_pb as pb
        with grpc.insecure_channel(self.server.grpc_address) as channel:
            stub = pb.Stub(channel)
            for _ in range(5):
                assert stub.Execute(pb.execute("sh", "-c", "echo hi"), timeout=60).stdout == b"hi\n"
            stream = stub.Start(pb.start("sh", "-c", "while :; do echo line; done"))
            for _, event in zip(range(rng.randrange(1, 50)), stream):
                pass
            stream.cancel()


def probe(port, seconds):
    """A process of its own, so that the probes wait for the server and not for the other clients' threads."""
    import http.client
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        c.request("GET", "/")
        assert c.getresponse().status == 200
        c.close()
        print(time.monotonic() - began)
        time.sleep(0.05)


def left_over(server, before):
    """What of the load is still there; empty when nothing is."""
    from harness import proc
    found = []
    if proc.children(server.pid):
        found.append(f"children {proc.children(server.pid)}")
    if proc.open_fds(server.pid) > before["fds"]:
        found.append(f"{proc.open_fds(server.pid)} descriptors, {before['fds']} before")
    if proc.memory(server.pid)["threads"] > 1:
        found.append(f"{proc.memory(server.pid)['threads']} threads")
    if temporary := [n for n in os.listdir(server.root) if n.startswith(".sandboxd-tmp-")]:
        found.append(f"temporary files {temporary}")
    return found


def soak(minutes):
    from harness import proc
    from harness.server import Silica
    server = Silica("--log-level", "warn")
    before = {"fds": proc.open_fds(server.pid)}
    run = Soak(server, minutes * 60)
    prober = subprocess.Popen([sys.executable, __file__, "--probe", str(server.port), str(minutes * 60)], stdout=subprocess.PIPE, text=True)
    roles = ["execute", "execute", "execute", "time_out", "leave", "files", "files", "abort", "junk", "call"]
    threads = [threading.Thread(target=run.loop, args=(r, getattr(run, r))) for r in roles]
    for t in threads:
        t.start()
    time.sleep(min(60, minutes * 30))
    early = proc.memory(server.pid)["rss"]
    for t in threads:
        t.join()
    end = time.monotonic() + 30
    while (left := left_over(server, before)) and time.monotonic() < end:
        time.sleep(0.2)
    late = proc.memory(server.pid)["rss"]
    probes = sorted(map(float, prober.communicate()[0].split()))
    if prober.returncode:
        run.faults.append("a probe failed")
    print("served:", ", ".join(f"{n} {what}" for what, n in sorted(run.counts.items())))
    print(f"probes: {len(probes)}, median {probes[len(probes) // 2] * 1000:.2f} ms, p99 {probes[len(probes) * 99 // 100] * 1000:.2f} ms, "
          f"slowest {probes[-1] * 1000:.2f} ms (a new connection each, the clients share the machine)")
    print(f"memory: {early // 1024} KiB RSS early, {late // 1024} KiB after")
    faults = run.faults + [f"left over: {x}" for x in left]
    if late > early * 2 + (4 << 20):
        faults.append(f"memory grew from {early} to {late}")
    if not server.is_alive():
        faults.append("the runtime died:\n" + server.log[-4000:])
    status = server.stop()
    if status != 0:
        faults.append(f"exit status {status}")
    server.remove()
    for fault in faults[:20]:
        print("FAULT", fault)
    return 1 if faults else 0


def main():
    if sys.argv[1:2] == ["--probe"]:
        probe(int(sys.argv[2]), float(sys.argv[3]))
        return
    if "--inside" not in sys.argv:
        again_in_virtualenv()
    sys.argv.remove("--inside")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=5)
    sys.exit(soak(parser.parse_args().minutes))


if __name__ == "__main__":
    main()

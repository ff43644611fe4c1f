"""What another account of the machine tries against a `silica up` that is not its own. A program, for the system's python3:

    neighbour.py MODE TARGET

MODE is one of MODES, TARGET the other's daemon as JSON: {"router", "api", "data", "pids", "sandbox", "word"}. It goes on until its input ends,
then prints {"tries": N, "hits": [...]}: a hit is something that should have been refused. What it asks sandboxes for leaves a file named
after the word, so that the other finds it where an answer was never seen."""

import errno
import http.client
import json
import os
import select
import socket
import ssl
import struct
import sys
import threading

TIMEOUT_S = 5
tries, hits = 0, []
over = threading.Event()


def hit(what):
    if len(hits) < 20:
        hits.append(what)


def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def rounds():
    global tries
    while not over.is_set():
        tries += 1
        yield tries


def command(target, **fields):
    """A request that runs something in the other's sandbox."""
    body = json.dumps({"command": f"touch hit-{target['word']}"})
    head = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": len(body), "X-Sandbox-ID": target["sandbox"],
            "X-Sandbox-Namespace": "default", **fields}
    return ("POST /execute HTTP/1.1\r\n" + "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in head.items()) + "\r\n" + body).encode()


def answer(where, request):
    """The status; 0: none came."""
    with socket.create_connection(where, TIMEOUT_S) as s:
        s.sendall(request)
        line = s.makefile("rb").readline().split()
    return int(line[1]) if len(line) > 1 else 0


# ---- the ways


def asks(target):
    """Plainly, by other names, by addresses that are not a sandbox's."""
    others = [{}, {"Host": "evil.svc.attacker.example"}, {"Host": f"{target['sandbox']}.default.svc.cluster.local"}, {"Origin": "http://evil.example"},
              {"X_Sandbox_Pod_IP": "127.0.0.1"}, {"X_Sandbox_Pod_IP": "::ffff:127.0.0.1"}, {"X_Forwarded_For": "127.0.0.1"},
              {"X_Sandbox_ID": "sandbox-router", "X_Sandbox_Pod_IP": "127.0.0.1"}, {"Authorization": "Bearer x"}]
    for n in rounds():
        try:
            status = answer(address(target["router"]), command(target, **others[n % len(others)]))
        except OSError:
            continue
        if status in (200, 201, 204):
            hit(f"router {others[n % len(others)]}: {status}")


def leaves(target):
    """Says something and is gone, in each way a connection can end, before the other's daemon asks whose it was."""
    at_once = struct.pack("ii", 1, 0)
    for n in rounds():
        s = socket.socket()
        try:
            s.connect(address(target["router"]))
            s.send(command(target))
            if n % 4 == 1:
                s.shutdown(socket.SHUT_WR)
            own = s.getsockname()
            if n % 4 >= 2:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            s.close()
            if n % 4 == 3:
                with socket.socket() as later:
                    later.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    later.bind(own)
                    later.listen(1)
        except OSError:
            s.close()


def crowds(target):
    """Silent connections, opened again as they are closed."""
    ended, held, wanted = select.epoll(), {}, 4000
    places = [address(target["router"]), address(target["api"])]
    for n in rounds():
        for fd, _ in ended.poll(0 if len(held) < wanted else 0.05, 1024):
            held.pop(fd).close()
        if len(held) >= wanted:
            continue
        s = socket.socket()
        try:
            s.settimeout(TIMEOUT_S)
            s.connect(places[n % 2])
        except OSError:
            s.close()
            over.wait(0.01)
            continue
        held[s.fileno()] = s
        ended.register(s.fileno(), select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR)


def handshakes(target):
    """TLS again and again, then a question without a right to the answer."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = address(target["api"])
    paths = ["/api/v1/secrets", "/api/v1/namespaces/default/pods", f"/api/v1/namespaces/default/pods/{target['sandbox']}/exec?command=id",
             "/apis/extensions.agents.x-k8s.io/v1beta1/sandboxclaims", "/api/v1/namespaces/kube-system/configmaps"]
    for n in rounds():
        c = http.client.HTTPSConnection(host, port, context=context, timeout=TIMEOUT_S)
        try:
            c.request("GET", paths[n % len(paths)], headers={"Authorization": f"Bearer {'x' * (n % 4000)}"} if n % 2 else {})
            status = c.getresponse().status
        except (OSError, http.client.HTTPException):
            continue
        finally:
            c.close()
        if status not in (401, 403, 429):
            hit(f"api {paths[n % len(paths)]}: {status}")


def files(target):
    """Its directory, its sockets, its processes."""
    data, denied = target["data"], (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ECONNREFUSED, errno.ESRCH, errno.ENOTDIR)
    names = ["", "store.db", "kubeconfig", "admin.key", "pki/ca.key", "pki/sa.key", "router.token", "node.kubeconfig", "up.json", "sandboxes", "claims",
             "logs/control/log", "keeper.log"]
    doors = ["sockets.sock", "parts.sock", "node.sock", "engine.sock", "tunnel.sock"]

    def look(name):
        os.close(os.open(f"{data}/{name}", os.O_RDONLY))

    def write(name):
        os.close(os.open(f"{data}/{name or 'new'}", os.O_WRONLY | os.O_CREAT, 0o666))

    def knock(name):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(TIMEOUT_S)
            s.connect(f"{data}/{name}")

    acts = [(look, names), (write, names), (knock, doors), (lambda p: os.kill(p, 0), target["pids"]),
            (lambda p: os.close(os.open(f"/proc/{p}/environ", os.O_RDONLY)), target["pids"]),
            (lambda p: os.close(os.open(f"/proc/{p}/mem", os.O_RDWR)), target["pids"]), (lambda p: os.listdir(f"/proc/{p}/root"), target["pids"]),
            (lambda p: os.listdir(f"/proc/{p}/fd"), target["pids"])]
    for n in rounds():
        act, things = acts[n % len(acts)]
        thing = things[n // len(acts) % len(things)]
        try:
            act(thing)
            hit(f"file {n % len(acts)} {thing}")
        except OSError as e:
            if e.errno not in denied and not isinstance(e, socket.timeout):
                hit(f"file {n % len(acts)} {thing}: {e}")
        if n % 64 == 0:
            over.wait(0.01)


def spins(_target):
    """Nothing but time: what the others are compared with."""
    for _ in rounds():
        pass


MODES = {f.__name__: f for f in (asks, leaves, crowds, handshakes, files, spins)}


def main():
    mode, target = sys.argv[1:3]
    thread = threading.Thread(target=MODES[mode], args=[json.loads(target)], daemon=True)
    thread.start()
    print("ready", flush=True)
    sys.stdin.read()
    over.set()
    thread.join(4 * TIMEOUT_S)
    print(json.dumps({"tries": tries, "hits": hits, "is_stuck": thread.is_alive()}), flush=True)


if __name__ == "__main__":
    main()

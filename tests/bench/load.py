"""The load generators, as calls: each returns a dict of figures. They are C programs, because on two cores a
generator that costs more than the server would be what is measured. Ours and the peers get the same one."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
EXECUTE_RPC = "/process.v1.ProcessService/Execute"


class Failed(Exception):
    """A measurement that could not be made; its text goes into the table."""


def run(argv, timeout_s=120, env=None):
    """What argv prints. env: variables of its own, for what must not be seen in a list of processes."""
    try:
        done = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=timeout_s, env={**os.environ, **(env or {})})
    except FileNotFoundError as e:
        raise Failed(f"no {argv[0]} on this machine") from e
    except subprocess.TimeoutExpired as e:
        raise Failed(f"{argv[0]} did not end within {timeout_s} s") from e
    if done.returncode != 0:
        raise Failed(f"{pathlib.Path(str(argv[0])).name} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def execute_frame(*command):
    """A framed ExecuteRequest{config{command}}: what h2load sends with -d."""
    config = b"".join(b"\x0a" + varint(len(c)) + c for c in (c.encode() for c in command))
    message = b"\x0a" + varint(len(config)) + config
    return b"\0" + len(message).to_bytes(4, "big") + message


def wrk(port, clients, seconds):
    """POST /execute over HTTP/1.1, keep-alive."""
    out = run(["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "30s", "-s", HERE / "execute.lua",
               f"http://127.0.0.1:{port}/execute"], seconds + 60)
    got = json.loads(out.strip().splitlines()[-1])
    if got["bad"]:
        raise Failed(f"{got['bad']} of {got['requests']} /execute calls failed")
    return {"rate": got["requests"] / got["seconds"], "p50_us": got["p50_us"], "p99_us": got["p99_us"]}


def h2load(port, clients, seconds, body):
    """gRPC Execute, one stream at a time on each of the connections. body is a file with a framed request."""
    out = run(["h2load", "-t1", f"-c{clients}", "-m1", "-D", seconds, "--warm-up-time=0", "-d", body,
               "-H", "content-type: application/grpc", "-H", "te: trailers",
               f"http://127.0.0.1:{port}{EXECUTE_RPC}"], seconds + 60)
    rate = re.search(r"finished in [\d.]+s, ([\d.]+) req/s", out)
    counts = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored", out)
    if not rate or not counts or int(counts.group(1)) == 0:
        raise Failed(f"h2load made nothing of it: {out[-300:]}")
    return {"rate": float(rate.group(1))}


def grpc_answers(port, body):
    """Asks once and looks at the trailers: h2load itself does not judge grpc-status."""
    out = run(["nghttp", "-v", "-d", body, "-H", "content-type: application/grpc", "-H", "te: trailers",
               f"http://127.0.0.1:{port}{EXECUTE_RPC}"])
    if "grpc-status: 0" not in out:
        raise Failed(f"gRPC Execute was not answered with status 0: {out[-400:]}")


@contextlib.contextmanager
def background(argv, served=None):
    """A generator that runs beside a measurement and is ended, by its pid, with it. wrk sums up when interrupted:
    the number of its calls that were answered then goes into the list `served`."""
    child = subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield child
    finally:
        child.send_signal(signal.SIGINT)
        try:
            out = child.communicate(timeout=5)[0]
        except subprocess.TimeoutExpired:
            child.kill()
            out = child.communicate()[0]
        if served is not None and out.strip().endswith("}"):
            served.append(json.loads(out.strip().splitlines()[-1])["requests"])


def sleepers(port, count, is_grpc, directory):
    """count connections, each waiting for a `sleep 30`."""
    body = pathlib.Path(directory) / "sleep"
    if is_grpc:
        body.write_bytes(execute_frame("sleep", "30"))
        extra = ["-H", "content-type: application/grpc", "-H", "te: trailers", f"http://127.0.0.1:{port}{EXECUTE_RPC}"]
    else:
        body.write_text('{"command":"sleep 30"}')
        extra = ["--h1", "-H", "content-type: application/json", f"http://127.0.0.1:{port}/execute"]
    return background(["h2load", "-t1", f"-c{count}", "-n", count, "-m1", "-d", body, *extra])


def busy(port, clients, is_grpc, directory, served=None):
    """clients executing /bin/true without pause, for as long as the block lasts."""
    if not is_grpc:
        return background(["wrk", "-t1", f"-c{clients}", "-d120s", "--timeout", "60s", "-s", HERE / "execute.lua",
                           f"http://127.0.0.1:{port}/execute"], served)
    body = pathlib.Path(directory) / "true"
    body.write_bytes(execute_frame("/bin/true"))
    return background(["h2load", "-t1", f"-c{clients}", "-m1", "-D", "120", "-d", body, "-H",
                       "content-type: application/grpc", "-H", "te: trailers",
                       f"http://127.0.0.1:{port}{EXECUTE_RPC}"])


def curl(*args):
    """Seconds one transfer took, by curl's own clock; any status but 2xx is a failure."""
    out = run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{time_total} %{size_download}", *args])
    status, seconds, size = out.split()
    if not status.startswith("2"):
        raise Failed(f"curl got {status} for {args[-1]}")
    return float(seconds), int(size)


def settle(seconds=0.3):
    """Lets the children of the last measurement be reaped before the next begins."""
    time.sleep(seconds)


class Neighbours:
    """How much of the processors others on the host took, since it was made: the kernel counts what a virtual machine
    wanted and did not get."""

    def __init__(self):
        self.began = self.read()

    @staticmethod
    def read():
        with open("/proc/stat", encoding="ascii") as f:
            ticks = [int(t) for t in f.readline().split()[1:9]]
        return sum(ticks), ticks[7]

    def share(self):
        total, stolen = (now - then for now, then in zip(self.read(), self.began))
        return stolen / total if total else 0.0


def undisturbed(measure, tries=4, limit=0.01):
    """Measures again while neighbours took more than `limit` of the machine, a few times at most; the least disturbed
    counts. Returns what was measured and the share that was taken during it."""
    best = None
    for _ in range(tries):
        neighbours = Neighbours()
        got = measure()
        share = neighbours.share()
        if best is None or share < best[1]:
            best = (got, share)
        if share <= limit:
            break
        settle(1)
    return best


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def calmest(measure, want, limit=0.005, most=4):
    """Measures until `want` times were undisturbed by neighbours, at most `most` times as often; the least disturbed ones count,
    whatever they showed. For what is short: a burst of the neighbours' is over in a second. Returns what was measured, and the
    share that was taken during it."""
    got = []
    while len(got) < want * most and sum(share <= limit for share, _ in got) < want:
        neighbours = Neighbours()
        one = measure()
        got.append((neighbours.share(), one))
    got = sorted(got, key=lambda pair: pair[0])[:want]
    return [one for _, one in got], sum(share for share, _ in got) / len(got)


def abreast(contestants, count):
    """Measures two contestants at the same time, in rounds as rows.interleave's: what neighbours take, they take from both, so a
    ratio that must be close to one shows on a machine that is not ours alone. Returns the rounds; none when one failed."""
    rounds = []
    with concurrent.futures.ThreadPoolExecutor(len(contestants)) as threads:
        for i in range(count):
            order = contestants[::-1] if i % 2 else contestants
            under_way = [(who, threads.submit(measure)) for who, measure in order]
            try:
                rounds.append({who: one.result() for who, one in under_way})
            except Failed:
                return []
            settle()
    return rounds

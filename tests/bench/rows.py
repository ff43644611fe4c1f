"""The bench's rows. Each takes a Bench and adds figures and goals to it."""

import contextlib
import json
import os
import statistics
import subprocess
import threading
import time

import kube_rows
import boxes
import cluster_rows
import load
import router_rows
import up_rows
from harness import proc, server
from peers.nginx import Nginx

MIB = 1 << 20
FILE_BYTES = 100 * MIB
BUSY_CLIENTS = 64
SLEEPERS = 100


class Bench:
    """What a run collects. figures: rows of (row, who, value, unit, note); goals: (row, text, value, want, met)."""

    def __init__(self, tools, quick, work):
        self.tools, self.quick, self.work = tools, quick, work
        self.rounds = 3 if quick else 5
        self.seconds = 1 if quick else 3
        self.many = 3 if quick else 9  # rounds, of what is short enough for a neighbour to hit one side of a round alone
        self.figures, self.goals = [], []

    def add(self, row, who, value, unit, note=""):
        self.figures.append({"row": row, "who": who, "value": value, "unit": unit, "note": note})

    def goal(self, row, text, value, want, at_most=False):
        met = None if value is None else (value <= want if at_most else value >= want)
        self.goals.append({"row": row, "goal": text, "value": value, "want": want, "at_most": at_most, "met": met})

    def helper(self, name, *args, timeout_s=120):
        return json.loads(load.run([self.tools / name, *args], timeout_s=timeout_s))


class Started:
    """Starts each kind of server once, when it is first asked for, and stops all of them at the end."""

    KINDS = {"silica": server.Silica, "fastapi": server.Fastapi, "sandboxd": server.Sandboxd, "nginx": Nginx}

    def __init__(self, stack):
        self.stack, self.have, self.why = stack, {}, {}

    def fresh(self, kind):
        """A server of its own, or None with the reason in why: a peer that cannot be had leaves a gap."""
        try:
            s = self.KINDS[kind]()
        except (AssertionError, OSError, subprocess.CalledProcessError) as e:
            if kind == "silica":
                raise
            self.why[kind] = str(e)[-300:]
            return None
        self.stack.callback(lambda: (s.stop(5), s.remove()))
        return s

    def get(self, kind):
        if kind not in self.have and kind not in self.why:
            self.have[kind] = self.fresh(kind)
        return self.have.get(kind)


def interleave(bench, row, contestants, unit, count=None):
    """Measures every contestant once per round, bench.rounds of them or count, forth and back in turn, so that a neighbour's
    burst hits all alike and a slow drift none more than others. Returns the rounds: one {who: value} each. A contestant that
    fails once is out, with the reason as its note."""
    rounds, out = [], {}

    def one_round(order):
        got = {}
        for who, measure in order:
            if who in out:
                continue
            try:
                got[who] = measure()
            except load.Failed as e:
                out[who] = str(e)
            load.settle()
        return got

    for i in range(count or bench.rounds):
        order = contestants[::-1] if i % 2 else contestants
        rounds.append(load.undisturbed(lambda order=order: one_round(order), 2)[0])
    for who, _ in contestants:
        values = [r[who] for r in rounds if who in r]
        if who in out or not values:
            bench.add(row, who, None, unit, out.get(who, ""))
        else:
            bench.add(row, who, statistics.median(values), unit)
    return [r for r in rounds if not any(w in out for w in r)] or rounds


def ratio(rounds, a, b):
    """The median of the rounds' own ratios a/b: both sides of each saw the same machine."""
    each = [r[a] / r[b] for r in rounds if r.get(a) and r.get(b)]
    return statistics.median(each) if each else None


def fastest(rounds, names):
    """The name with the highest median: one peer for all rounds, since the best of each would be picked by noise."""
    medians = {n: statistics.median([r[n] for r in rounds if n in r]) for n in names if any(n in r for r in rounds)}
    return max(medians, key=medians.get, default=None)


def exec_contestants(bench, servers, clients, seconds):
    body = bench.work / "true.frame"
    body.write_bytes(load.execute_frame("/bin/true"))
    ours, fastapi, sandboxd = (servers.get(k) for k in ("silica", "fastapi", "sandboxd"))
    rows = [("silica /execute", lambda: load.wrk(ours.port, clients, seconds)["rate"]),
            ("silica gRPC", lambda: load.h2load(ours.grpc_port, clients, seconds, body)["rate"])]
    load.grpc_answers(ours.grpc_port, body)
    if sandboxd:
        load.grpc_answers(sandboxd.grpc_port, body)
        rows.append(("sandboxd gRPC", lambda: load.h2load(sandboxd.grpc_port, clients, seconds, body)["rate"]))
    if fastapi:
        rows.append(("FastAPI /execute", lambda: load.wrk(fastapi.port, clients, seconds)["rate"]))
    return rows


def possible(bench, row, value, is_possible):
    """value, or None with a note where it cannot be: a server does not pass the ceiling, its neighbours did that."""
    if value is None or is_possible(value):
        return value
    bench.add(row, "too noisy", value, "", "better than the machine allows: neighbours held the cores; run again when it is quiet")
    return None


def exec64(bench, servers):
    row = "exec64"
    ceiling = ("ceiling", lambda: bench.helper("ceiling", 2, bench.seconds * 1000)["rate"])
    rounds = interleave(bench, row, [ceiling, *exec_contestants(bench, servers, 64, bench.seconds)], "/s")
    for who in ("silica /execute", "silica gRPC"):
        value = possible(bench, row, ratio(rounds, who, "ceiling"), lambda v: v < 1.05)
        bench.goal(row, f"{who} of the ceiling", value, 0.8)
    bench.goal(row, "silica gRPC over sandboxd", ratio(rounds, "silica gRPC", "sandboxd gRPC"), 1.2)
    bench.goal(row, "silica /execute over FastAPI", ratio(rounds, "silica /execute", "FastAPI /execute"), 3.5)


def exec1(bench, servers):
    row = "exec1"
    ms = max(1, bench.seconds - 1) * 1000
    rows = [("bare spawn+wait", lambda: bench.helper("ceiling", 1, ms, "bare")["rate"]),
            *exec_contestants(bench, servers, 1, ms // 1000)]
    if not bench.quick:
        rows.insert(1, ("with 2 pipes, setsid", lambda: bench.helper("ceiling", 1, ms)["rate"]))
    rounds = interleave(bench, row, rows, "/s")
    for who in ("silica /execute", "silica gRPC"):
        value = possible(bench, row, ratio(rounds, "bare spawn+wait", who), lambda v: v > 0.95)
        bench.goal(row, f"{who}: time over the bare spawn+wait", value, 1.4, at_most=True)


def probe_once(bench, servers, kind, path, is_grpc):
    """A server of its own, thrown away after: (what the prober saw, commands served meanwhile)."""
    s = servers.fresh(kind)
    if s is None:
        raise load.Failed(servers.why.get(kind, ""))
    port, served = s.grpc_port if is_grpc else s.port, []
    try:
        with load.sleepers(port, SLEEPERS, is_grpc, bench.work):
            time.sleep(0.5)
            with load.busy(port, BUSY_CLIENTS, is_grpc, bench.work, served):
                time.sleep(0.5)
                got = bench.helper("probe", s.port, path, 200 if bench.quick else 1000, 10000)
    finally:
        s.stop(3)
    return got, served


def probe(bench, servers):
    """Probes while 100 commands sleep and 64 clients execute."""
    for kind, who, path, is_grpc in (("silica", "silica, load by /execute", "/", False),
                                     ("silica", "silica, load by gRPC", "/", True),
                                     ("sandboxd", "sandboxd", "/v1/health", True), ("fastapi", "FastAPI", "/", False)):
        if bench.quick and who == "silica, load by gRPC":
            continue
        try:
            (got, served), taken = load.undisturbed(lambda k=kind, p=path, g=is_grpc: probe_once(bench, servers, k, p, g))
        except load.Failed as e:
            bench.add("probe", who, None, "us", str(e))
            continue
        note = (f"p50 {got['p50_us']:.0f}, max {got['max_us']:.0f}, failed {got['failed']} of {got['count']}, neighbours took {taken:.1%}"
                f"{f'; {served[0]} commands served meanwhile' if served else ''}"
                f"{'' if got['realtime'] else '; prober without real-time priority'}")
        bench.add("probe", who, got["p99_us"], "us p99", note)
        if kind == "silica":
            bench.goal("probe", f"{who}: p99 in us", got["p99_us"], 5000, at_most=True)
            bench.goal("probe", f"{who}: failed probes", got["failed"], 0, at_most=True)


def transfer(bench, servers):
    ours, fastapi, sandboxd, nginx = (servers.get(k) for k in ("silica", "fastapi", "sandboxd", "nginx"))
    blob = bench.work / "blob"
    with open(blob, "wb") as f:
        for _ in range(FILE_BYTES // MIB):
            f.write(os.urandom(MIB))
    for s in (ours, fastapi, sandboxd, nginx):
        if s:
            subprocess.run(["cp", str(blob), str(s.root / "blob")], check=True)

    def form(s):
        return lambda: FILE_BYTES / MIB / load.curl("-F", f"file=@{blob};filename=up", f"{s.url}/upload")[0]

    def put(s):
        return lambda: FILE_BYTES / MIB / load.curl("-T", blob, f"{s.url}/v1/files/up")[0]

    def get(s, path):
        def once():
            seconds, size = load.curl(f"{s.url}{path}")
            if size != FILE_BYTES:
                raise load.Failed(f"{size} bytes came of {FILE_BYTES}")
            return FILE_BYTES / MIB / seconds
        return once

    up = [("silica /upload", form(ours)), ("silica PUT", put(ours))]
    up += [("FastAPI /upload", form(fastapi))] if fastapi else []
    up += [("sandboxd PUT", put(sandboxd))] if sandboxd else []
    down = [("silica /download", get(ours, "/download/blob")), ("silica GET", get(ours, "/v1/files/blob"))]
    down += [("FastAPI /download", get(fastapi, "/download/blob"))] if fastapi else []
    down += [("sandboxd GET", get(sandboxd, "/v1/files/blob"))] if sandboxd else []
    down += [("nginx GET", get(nginx, "/blob"))] if nginx else []
    for row, rows in (("upload", up), ("download", down)):
        rounds = interleave(bench, row, rows, "MiB/s")
        best = fastest(rounds, [w for w, _ in rows if not w.startswith("silica")])
        for who in [w for w, _ in rows if w.startswith("silica")]:
            bench.goal(row, f"{who} of the fastest peer{f' ({best})' if best else ''}", ratio(rounds, who, best), 0.8)


@contextlib.contextmanager
def watching(pid, peak):
    """Keeps the highest RSS and thread count of pid in peak while the block runs."""
    over = threading.Event()

    def watch():
        while not over.wait(0.1):
            now = proc.memory(pid)
            for k, v in now.items():
                peak[k] = max(peak.get(k, 0), v)

    t = threading.Thread(target=watch)
    t.start()
    try:
        yield
    finally:
        over.set()
        t.join()


def memory(bench, servers):
    for kind, who, is_grpc in (("silica", "silica", False), ("sandboxd", "sandboxd", True), ("fastapi", "FastAPI", False)):
        s, second = servers.fresh(kind), servers.fresh(kind)  # the second so that shared file pages count as shared
        if s is None or second is None:
            bench.add("memory", who, None, "KiB", servers.why.get(kind, ""))
            continue
        time.sleep(1)
        idle, peak = proc.memory(s.pid), {}
        port = s.grpc_port if is_grpc else s.port
        with load.sleepers(port, SLEEPERS, is_grpc, bench.work):
            time.sleep(0.5)
            with load.busy(port, BUSY_CLIENTS, is_grpc, bench.work), watching(s.pid, peak):
                time.sleep(1 if bench.quick else 5)
        bench.add("memory", who, idle["rss"] / 1024, "KiB RSS",
                  f"private {idle['private'] / 1024:.0f}, threads {idle['threads']}; under load at most "
                  f"{peak['rss'] / 1024:.0f} RSS, {peak['private'] / 1024:.0f} private, {peak['threads']} threads")
        if kind == "silica":
            bench.goal("memory", "idle RSS in KiB", idle["rss"] / 1024, 4096, at_most=True)
            bench.goal("memory", "idle private KiB", idle["private"] / 1024, 200, at_most=True)
            bench.goal("memory", "idle threads", idle["threads"], 1, at_most=True)
        s.stop(3)
        second.stop(3)


def start(bench, servers):
    program = server.binary()
    got, taken = load.undisturbed(lambda: bench.helper("start", 20, "ready", "--", program, "--listen", "127.0.0.1:0",
                                                       "--root", bench.work, "--ready-fd", "@FD@"), limit=0)
    bench.add("start", "silica", got["median_us"], "us median",
              f"best {got['best_us']:.0f}, worst of 20 {got['worst_us']:.0f}, neighbours took {taken:.1%}")
    bench.goal("start", "exec to serving: median in us", got["median_us"], 1000, at_most=True)
    bench.goal("start", "exec to serving: worst of 20 in us", got["worst_us"], 2000, at_most=True)
    for kind, who in (("sandboxd", "sandboxd"), ("fastapi", "FastAPI")):
        s = servers.fresh(kind)
        if s is None:
            continue
        argv, port = s.process.args, s.port
        s.stop(3)
        try:
            got = bench.helper("start", 3, port, "--", *absolute(argv))
            bench.add("start", who, got["median_us"], "us median", f"worst of 3 {got['worst_us']:.0f}")
        except load.Failed as e:
            bench.add("start", who, None, "us", str(e))


def absolute(argv):
    return [str(a) for a in argv]


def json_row(bench, servers):
    try:
        got = json.loads(load.run([bench.tools / "json_bench", "-o", "json", server.TREE / "tests/bench/pod.json"]))
    except load.Failed as e:
        bench.add("json", "silica", None, "us", str(e))
        return
    for r in got["rows"]:
        for lib in (k[:-3] for k in r if k.endswith("_us")):
            bench.add("json", f"{lib} {r['task']}", r[f"{lib}_us"], "us")
        if r["task"] == "parse+write":
            bench.goal("json", "parse+write: jansson's time over ours", r["vs_jansson"], 5)


def informer(bench, servers):
    got = bench.helper("informer", 10000, 20000 if bench.quick else 200000, server.TREE / "tests/bench/pod.json", "trim")
    bench.add("informer", "memory of one", got["object_bytes"], "bytes", "a 5 KB Pod, two indexes")
    bench.add("informer", "events to a queue", got["events_per_second"], "per s")


def binary(bench, servers):
    program = server.binary()
    size = os.stat(program).st_size
    linked = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    is_static = linked.returncode != 0 or "statically linked" in linked.stdout
    bench.add("binary", "silica", size / 1024, "KiB", "static" if is_static else "dynamic")
    bench.goal("binary", "size in KiB", size / 1024, 3072, at_most=True)
    bench.goal("binary", "shared libraries", 0 if is_static else linked.stdout.count("=>"), 0, at_most=True)


def of_sandboxes(row):
    return lambda bench, servers: row(bench, servers, interleave, ratio)


ROWS = {"exec64": exec64, "exec1": exec1, "probe": probe, "transfer": transfer, "memory": memory, "start": start,
        **{name: of_sandboxes(row) for name, row in boxes.ROWS.items()}, "json": json_row, "informer": informer, "binary": binary, "kube": kube_rows.kube, "local": kube_rows.local,
        "claims": kube_rows.claims, **cluster_rows.ROWS,
        **{name: of_sandboxes(row) for name, row in (router_rows.ROWS | up_rows.ROWS).items()}}
TITLES = {"exec64": "exec of /bin/true, 64 clients", "exec1": "exec of /bin/true, 1 client",
          "probe": "probe while 100 commands sleep and 64 clients execute", "upload": "upload of 100 MiB",
          "download": "download of 100 MiB", "memory": "memory, idle beside a second instance",
          "start": "start: exec to serving", **boxes.TITLES, "json": "JSON, a 5 KB Pod", "informer": "a copy of 10,000 Pods, kept up", "binary": "the program", **kube_rows.TITLES, **cluster_rows.TITLES,
          **router_rows.TITLES, **up_rows.TITLES}

"""Rows for the Kubernetes API: ours and kube-apiserver with etcd, both durable, on the same disk, one after the other in each
round. The load is tests/bench/kube_load.c; the objects are small config maps, which kube-apiserver keeps in its fastest form."""

import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time

import load
from harness import proc
from lib import controlplane

CLIENTS = 32
WATCHERS = 100
LISTED = 10000
TRIES = 3  # of a round
NAMES = {"real": "kube-apiserver + etcd", "ours": "silica apiserver"}
BODY = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"@NAME@","labels":{"app":"bench"}},"data":{"n":"@N@","text":"%s"}}' % ("x" * 200)


class Target:
    def __init__(self, api, bench):
        self.api, self.bench, self.who, self.spaces = api, bench, NAMES[api.kind], 0
        self.body = bench.work / "config-map.json"
        self.body.write_text(BODY)

    def space(self):
        """The collection of a namespace of its own."""
        self.spaces += 1
        name = f"bench-{self.spaces}"
        self.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        return f"/api/v1/namespaces/{name}/configmaps"

    def load(self, path, verb, clients, count):
        host, port = self.api.url.removeprefix("https://").rsplit(":", 1)
        env = {"KUBE_TOKEN": self.api.token, "KUBE_CERT": self.api.client_cert, "KUBE_KEY": self.api.client_key}
        argv = [self.bench.tools / "kube_load", host, port, self.api.ca_file, path, self.body, verb, clients, count]
        return json.loads(load.run(argv, env={k: str(v) for k, v in env.items() if v}))

    def memory(self):
        return sum(proc.memory(pid)["rss"] for pid in self.api.pids.values()) / 1024


def sync_us(directory):
    """The disk's own part of a durable write: the median time of a 4 KiB append with fdatasync."""
    took = []
    with tempfile.NamedTemporaryFile(dir=directory) as f:
        for _ in range(100):
            began = time.perf_counter()
            os.write(f.fileno(), b"x" * 4096)
            os.fdatasync(f.fileno())
            took.append((time.perf_counter() - began) * 1e6)
    return statistics.median(took)


def disk():
    """Where files are on a disk: the bench keeps others in memory."""
    return os.environ.get("SILICA_BENCH_DISK") or "/var/tmp"


def start(bench, stack):
    """The targets that can be had; the reason of one that cannot becomes a row."""
    targets = []
    for kind, make in (("ours", lambda: controlplane.Silica(parent=disk())),
                       ("real", lambda: controlplane.ControlPlane(is_durable=True, with_controllers=False, with_crds=False, parent=disk()))):
        try:
            targets.append(Target(stack.enter_context(make()), bench))
        except (controlplane.Unavailable, RuntimeError, OSError) as e:
            bench.add("kube-create", NAMES[kind], None, "per s", " ".join(str(e).split())[-200:])
    return targets


def rounds(bench, row, targets, measure, unit):
    """measure(target) once per target and round; the figures' medians, and the rounds for ratios. A round during which neighbours
    held the processors is done again."""
    def one_round():
        each = {}
        for t in targets:
            try:
                each[t.api.kind] = measure(t)
            except load.Failed as e:
                bench.add(row, t.who, None, unit, str(e)[-200:])
        return each

    got = [load.undisturbed(one_round, TRIES)[0] for _ in range(bench.rounds)]
    for t in targets:
        values = [r[t.api.kind] for r in got if t.api.kind in r]
        if values:
            bench.add(row, t.who, statistics.median(v["value"] for v in values), unit, values[-1]["note"])
    return got


def ratio(got, over="real", under="ours"):
    """How many times ours is the other, as the median of the rounds' own ratios."""
    each = [r[under]["value"] / r[over]["value"] for r in got if over in r and under in r and r[over]["value"]]
    return statistics.median(each) if each else None


def figure(value, got):
    return {"value": value, "note": f"p50 {got['p50_us'] / 1000:.1f} ms, p99 {got['p99_us'] / 1000:.1f} ms, failed {got['failed']}"}


def kube(bench, servers):
    with contextlib.ExitStack() as stack:
        targets = start(bench, stack)
        sync = sync_us(disk())
        count = 1000 if bench.quick else 5000
        bench.add("kube-memory", "idle: " + ", ".join(f"{t.who} {t.memory():,.0f}" for t in targets), None, "KiB RSS")
        writes(bench, targets, count)
        single(bench, targets, sync)
        reads(bench, targets)
        fan_out(bench, targets, 50 if bench.quick else 200)
        ends = {t.api.kind: t.memory() for t in targets}
        for t in targets:
            bench.add("kube-memory", t.who, ends[t.api.kind], "KiB RSS", "after all of the above")
        both = ends.get("ours") and ends.get("real")
        bench.goal("kube-memory", "ours over theirs", ends["ours"] / ends["real"] if both else None, 0.1, at_most=True)


def writes(bench, targets, count):
    spaces = {}

    def create(t):
        spaces[t.api.kind] = t.space()
        got = t.load(spaces[t.api.kind], "create", CLIENTS, count)
        return figure(got["rate"], got)

    def update(t):
        got = t.load(spaces[t.api.kind], "update", CLIENTS, count)
        return figure(got["rate"], got)

    def get(t):
        got = t.load(spaces[t.api.kind], "get", CLIENTS, count)
        return figure(got["rate"], got)

    created = rounds(bench, "kube-create", targets, create, "per s")
    bench.goal("kube-create", "durable creates per second, ours over theirs", ratio(created), 5)
    updated = rounds(bench, "kube-update", targets, update, "per s")
    bench.goal("kube-update", "durable updates per second, ours over theirs", ratio(updated), 5)
    rounds(bench, "kube-get", targets, get, "per s")


def single(bench, targets, sync):
    def one(t):
        got = t.load(t.space(), "create", 1, 200)
        return figure(got["p50_us"] / 1000, got)

    got = rounds(bench, "kube-single", targets, one, "ms p50")
    bench.add("kube-single", "the disk's own sync", sync / 1000, "ms p50", f"append of 4 KiB and fdatasync in {disk()}")
    ours = [r["ours"]["value"] for r in got if "ours" in r]
    bench.goal("kube-single", "p50 in ms beyond the disk's own", statistics.median(ours) - sync / 1000 if ours else None, 2, at_most=True)


def reads(bench, targets):
    paths = {}
    for t in targets:
        paths[t.api.kind] = t.space()
        t.load(paths[t.api.kind], "create", CLIENTS, LISTED)

    def listing(t):
        got = t.load(paths[t.api.kind], "list", 1, 3)
        return {"value": got["p50_us"] / 1000, "note": f"{got['bytes'] / got['done'] / 1e6:.1f} MB each"}

    rounds(bench, "kube-list", targets, listing, "ms p50")
    beside_lists(bench, targets, paths)


def mixed(bench, t, path):
    t.spaces += 1
    t.body.write_text(BODY.replace("@NAME@", f"mixed-{t.spaces}-@NAME@"))  # n0 and so on are taken
    try:
        return t.load(path, "mixed", 1, 400 if bench.quick else 4000)
    finally:
        t.body.write_text(BODY)


def beside_lists(bench, targets, paths):
    """How much longer a create takes while others list. One long run each instead of rounds: a disk's own slowest hundredth may take
    10 ms, so the p99 of few creates says what the disk did. Those beside lists and those alone come in short turns on the same disk."""
    os.sync()  # what the loads before left to be written
    for t in targets:
        try:
            got, _ = load.undisturbed(lambda t=t: mixed(bench, t, paths[t.api.kind]), TRIES)
        except load.Failed as e:
            bench.add("kube-mixed", t.who, None, "ms p99 more", str(e)[-200:])
            continue
        more = {share: (got[f"{share}_us"] - got[f"alone_{share}_us"]) / 1000 for share in ("p50", "p99")}
        bench.add("kube-mixed", t.who, more["p99"], "ms p99 more",
                  f"p50 {more['p50']:.1f} ms more; create p50 {got['p50_us'] / 1000:.1f} ms and p99 {got['p99_us'] / 1000:.1f} ms,"
                  f" alone {got['alone_p50_us'] / 1000:.1f} and {got['alone_p99_us'] / 1000:.1f}")
        if t.api.kind == "ours":
            bench.goal("kube-mixed", "a create's delay by a list of 10,000, in ms", more["p99"], 5, at_most=True)


def fan_out(bench, targets, count):
    def watch(t):
        got = t.load(t.space(), "watch", WATCHERS, count)
        return figure(got["rate"], got)

    rounds(bench, "kube-watch", targets, watch, "events/s")


def local(bench, servers):
    """A controller in the server's own process: each call begins when the one before is answered, on a disk."""
    count = 1000 if bench.quick else 5000
    with tempfile.TemporaryDirectory(dir=disk()) as data:
        got = bench.helper("kube_local", data, count)
    for what in ("create", "get", "status", "patch", "delete"):
        bench.add("local", what, got[what], "per s", f"{got[what + '_durable']:,.0f} per s until all is on disk, {got[what + '_cpu_us']:.0f} us of processor time each")
    writes = min(got[what + "_durable"] for what in ("create", "status", "patch", "delete"))
    bench.goal("local", "durable writes per second of the slowest kind: four for each of 1,000 claims", writes, 4000)


def claims(bench, servers):
    """Server, controllers, a stand-in for nodes and the load in one process, on a disk; a claim's time ends when it is there."""
    def run(rate, seconds, pool, burst=0):
        with tempfile.TemporaryDirectory(dir=disk()) as data:
            # Those that got none by then count as failed: the helper gives up 60 s after the last was made.
            return bench.helper("claims", data, rate, seconds, pool, burst, timeout_s=seconds + 180)

    steady, burst = run(100, 5 if bench.quick else 30, 300), run(0, 0, 300, 300)
    seconds = 5 if bench.quick else 60
    busy = run(1100, seconds, 3000)  # more than it must take: what is offered bounds what can be seen
    bench.add("claims", "100 a second, p50", steady["disk_p50_us"] / 1000, "ms", f"{steady['seen_p50_us'] / 1000:.1f} ms in the process, before the disk")
    bench.add("claims", "100 a second, p99", steady["disk_p99_us"] / 1000, "ms", f"{steady['seen_p99_us'] / 1000:.1f} ms in the process, before the disk")
    bench.add("claims", "300 at once, all ready", burst["all_us"] / 1000, "ms", f"{burst['loop_us'] / 1000:,.0f} ms of it the loop's processor time")
    bench.add("claims", f"1,100 a second for {seconds} s", busy["ready"] / busy["all_us"] * 1e6, "per s",
              f"{busy['claims'] - busy['ready']} not ready, {costs(busy)}, {busy['third_rss_kib'] // 1024} MiB after a third of them, {busy['rss_kib'] // 1024} at the end")
    bench.goal("claims", "warm claim, p50 in ms before the disk", steady["seen_p50_us"] / 1000, 1, at_most=True)
    bench.goal("claims", "warm claim, p99 in ms before the disk", steady["seen_p99_us"] / 1000, 5, at_most=True)
    bench.goal("claims", "300 claims at once, all ready, ms", burst["all_us"] / 1000, 100, at_most=True)
    bench.goal("claims", "claims per second with refill", busy["ready"] / busy["all_us"] * 1e6, 1000)
    bench.goal("claims", "claims that got no sandbox, or were refused", busy["claims"] - busy["ready"] + busy["refused"], 0, at_most=True)
    bench.goal("claims", "memory at the end, of that after a third of the claims", busy["rss_kib"] / busy["third_rss_kib"], 1.1, at_most=True)
    claims_there(bench)


def costs(got):
    """What a claim took, from its creation to its end and with its successor in the pool."""
    each = max(got["ready"], 1)
    passes = ", ".join(f"{n / each:.1f} {who}" for who, n in got["passes"].items() if n)
    return f"{got['cpu_us'] / each:,.0f} us of processor time, {got['writes'] / each:.1f} writes and passes ({passes}) each"


def claims_there(bench):
    """The same with server and controllers as processes of their own, over HTTPS: recorded; and what the controllers' takes."""
    def run(*args):
        with controlplane.Silica("--log-level", "warn", parent=disk()) as api, controllers(api) as process:
            return bench.helper("claims", api.kubeconfig, *args, timeout_s=300), quiet_kib(process)

    idle = 1 if bench.quick else 5
    got, _ = run(100, idle, 300, 0)
    bench.add("claims", "over HTTPS, 100 a second", got["disk_p50_us"] / 1000, "ms p50", f"p99 {got['disk_p99_us'] / 1000:.1f} ms")
    got, _ = run(0, 0, 300, 300)
    bench.add("claims", "over HTTPS, 300 at once", got["all_us"] / 1000, "ms")
    got, kib = run(0, 0, 50, 1000)
    bench.add("claims", "the controllers' memory", kib / 1024, "MiB RSS", f"{got['ready']:,} claims and a pool of 50, over HTTPS")
    bench.goal("claims", "the controllers' RSS with 1,000 claims, MiB", kib / 1024, 12, at_most=True)


@contextlib.contextmanager
def controllers(api):
    argv = [api.program, "controller", "--kubeconfig", api.kubeconfig, "--leader-elect=false", "--zap-log-level=error",
            "--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0", "--enable-webhook=false"]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def quiet_kib(process):
    """The least of some seconds: memory is given back once all is quiet."""
    least = []
    for _ in range(40):
        least.append(proc.memory(process.pid)["rss"] / 1024)
        time.sleep(0.25)
    return min(least)


TITLES = {"claims": "claims on the embedded store, controllers in its process", "local": "the client interface on the store, 1 caller", "kube-create": f"Kubernetes API: durable creates, {CLIENTS} clients", "kube-update": f"durable updates, {CLIENTS} clients",
          "kube-get": f"gets, {CLIENTS} clients", "kube-single": "one durable create, 1 client", "kube-list": f"list of {LISTED:,} objects",
          "kube-mixed": f"a create while {LISTED:,} objects are listed", "kube-watch": f"one writer to {WATCHERS} watches", "kube-memory": "Kubernetes API: memory"}

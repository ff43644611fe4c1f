"""The row `cluster`: our controller and the public one, in turn on the same Kubernetes control plane (kube-apiserver, etcd,
kube-scheduler, KWOK; lib/cluster.py), each with a pool and claims of the same kind. The claims are tests/bench/up_claims.c's: a claim's
time ends when a watch of the same client shows it ready. The API server counts the calls, by its own metrics; watches and the
bench's own looks are not counted.

On a small machine the API server is what saturates: every call that a controller does not make is throughput."""

import collections
import contextlib
import json
import os
import pathlib
import re
import statistics
import time

import kube_rows
import load
from harness import proc
from lib import cluster, controllers, controlplane

OURS, THEIRS = "silica controller", "public controller"
GROUP = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces"
POOL, CLIENTS = "warm", 24
PIECE_S = 5  # of claims at one rate: a burst of the neighbours' is over by then
POD = {"metadata": {"labels": {"app": "bench"}}, "spec": {"containers": [{"name": "main", "image": "python-runtime", "ports": [{"containerPort": 8888}]}]}}
NOT_COUNTED = {"WATCH", "LIST", "WATCHLIST", "CONNECT"}
# By the clock, whoever is the controller: endpoints are those of the API server itself, which it looks at every ten seconds.
HOUSEKEEPING = {"leases", "nodes", "tokenreviews", "subjectaccessreviews", "", "namespaces", "serviceaccounts", "configmaps", "endpoints", "endpointslices"}
# Made by others for each claim and its successor in the pool: the client, the scheduler, KWOK, and the garbage collector, which
# looks at a pool when a claim takes a member away. The scheduler also writes an Event for each of its bindings.
OTHERS = {"POST sandboxclaims", "POST pods/binding", "PATCH pods/status", "GET sandboxwarmpools"}


class Turn:
    """One controller on the cluster, from an empty namespace on."""

    def __init__(self, bench, api, who, serial):
        self.bench, self.api, self.who, self.namespace = bench, api, who, f"bench-{serial}"
        self.looks, self.figures = 0, {}
        api.call("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self.controller = (controllers.Controller(api, "--leader-elect=false", "--enable-webhook=false", "--zap-log-level=error")
                           if who == OURS else cluster.Upstream(api))
        self.pid = self.controller.process.pid

    # ---- what is made and looked at ----

    def post(self, plural, name, spec):
        kind = {"sandboxtemplates": "SandboxTemplate", "sandboxwarmpools": "SandboxWarmPool"}[plural]
        self.api.call("POST", f"{GROUP}/{self.namespace}/{plural}", {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": kind,
                                                                    "metadata": {"name": name}, "spec": spec})

    def is_full(self, name, size):
        """By what the pool says; what it says may be a second old, so then by its members."""
        pool = self.api.call("GET", f"{GROUP}/{self.namespace}/sandboxwarmpools/{name}")
        self.looks += 1
        status = pool.get("status", {})
        if status.get("readyReplicas", 0) != size:
            return False
        label = status["selector"].replace("=", "%3D").replace("/", "%2F")
        members = self.api.call("GET", f"/apis/agents.x-k8s.io/v1beta1/namespaces/{self.namespace}/sandboxes?labelSelector={label}")["items"]
        return len(members) == size and all(controllers.condition(m) == "True" for m in members)

    def until_full(self, name, size, timeout_s=180):
        began = time.monotonic()
        while not self.is_full(name, size):
            if time.monotonic() - began > timeout_s:
                raise load.Failed(f"{self.who}: no full pool within {timeout_s} s")
            if self.controller.process.poll() is not None:
                raise load.Failed(f"{self.who} ended: {pathlib.Path(self.controller.log).read_text()[-300:]}")
            time.sleep(0.1)

    def claims(self, *how):
        argv = [self.bench.tools / "up_claims", self.api.kubeconfig, POOL, *how]
        return json.loads(load.run(argv, timeout_s=180, env={"NAMESPACE": self.namespace}))

    # ---- what it took ----

    def calls(self):
        """How often each thing was asked of the API server so far."""
        text = self.api.call("GET", "/metrics", raw=True).decode()
        got = collections.Counter()
        for labels, value in re.findall(r"^apiserver_request_total\{(.*)\} (\S+)$", text, re.M):
            of = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            if of["verb"] not in NOT_COUNTED and of["resource"] not in HOUSEKEEPING:
                got[f"{of['verb']} {of['resource']}" + (f"/{of['subresource']}" if of["subresource"] else "")] += float(value)
        got["GET sandboxwarmpools"] -= self.looks
        return got

    def seconds(self):
        """Of processor time: the controller's, the API server's."""
        return [ticks(pid) / os.sysconf("SC_CLK_TCK") for pid in (self.pid, self.api.pids["kube-apiserver"])]

    def measured(self, count, part):
        """Does a part with so many claims; its calls and processor time, up to the full pool, are added to those of others."""
        calls, seconds = self.calls(), self.seconds()
        got = part()
        time.sleep(1)  # what a controller may put off
        self.until_full(POOL, self.bench.pool)
        self.figures.setdefault("seconds", []).append([now - then for now, then in zip(self.seconds(), seconds)])
        self.figures.setdefault("calls", collections.Counter()).update(self.calls() - calls)
        self.figures["counted"] = self.figures.get("counted", 0) + count
        return got

    # ---- the parts ----

    def fill(self):
        self.post("sandboxtemplates", "python", {"podTemplate": POD})
        self.post("sandboxwarmpools", "first", {"replicas": 1, "sandboxTemplateRef": {"name": "python"}})
        self.until_full("first", 1)  # it works
        self.figures["idle_kib"] = proc.memory(self.pid)["rss"] / 1024
        began = time.monotonic()
        self.post("sandboxwarmpools", POOL, {"replicas": self.bench.pool, "sandboxTemplateRef": {"name": "python"}})
        self.until_full(POOL, self.bench.pool)
        self.figures["fill_s"] = time.monotonic() - began

    def rates(self, count):
        """As many claims at each rate: of 75 the slowest one alone would be the p99, and that is whom a pause of the API server met.
        In pieces, and those that neighbours disturbed once more: a pause of the machine is nobody's here."""
        for rate in (5, 10, 20):
            piece = min(rate * PIECE_S, count)
            got, taken = load.calmest(lambda r=rate, p=piece: self.measured(p, lambda: self.claims("rate", p, r)), count // piece, 0.01, 3)
            self.figures[f"rate_{rate}"] = [us for one in got for us in one["took_us"]]
            self.figures[f"taken_{rate}"] = taken

    def burst(self, count):
        self.figures["burst_s"] = self.claims("stay", count)["all_us"] / 1e6
        time.sleep(1)
        self.until_full(POOL, self.bench.pool)

    def sustained(self, count):
        """With the refill: until all are ready and the pool is full again."""
        began = time.monotonic()
        got = self.claims("loop", count, CLIENTS)
        self.until_full(POOL, self.bench.pool)
        self.figures["sustained"] = count / (time.monotonic() - began)
        self.figures["claims_per_s"] = count / got["all_us"] * 1e6

    def memory(self):
        self.figures["rss_kib"] = min(self.rss_each(3))

    def rss_each(self, seconds):
        for _ in range(seconds * 4):
            yield proc.memory(self.pid)["rss"] / 1024
            time.sleep(0.25)

    def end(self):
        """Leaves the cluster as it was."""
        self.controller.end()
        path = f"/api/v1/namespaces/{self.namespace}"
        self.api.call("DELETE", path)
        deadline = time.monotonic() + 180
        while self.api.exists(path):
            if time.monotonic() > deadline:
                raise load.Failed(f"namespace {self.namespace} is not gone after 180 s")
            time.sleep(0.5)


def ticks(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def one_turn(bench, api, who, serial, sizes):
    turn = Turn(bench, api, who, serial)
    try:
        turn.fill()
        turn.burst(sizes["burst"])
        turn.sustained(sizes["sustained"])
        turn.memory()  # with as many claims as the other has then: the pieces of a rate may be more for one
        turn.rates(sizes["each"])
        if who == OURS:
            turn.end()  # the last one's goes with the cluster
    finally:
        turn.controller.kill()
    return turn.figures


def row(bench, servers):
    sizes = ({"pool": 120, "each": 60, "burst": 100, "sustained": 150} if bench.quick else
             {"pool": 350, "each": 300, "burst": 300, "sustained": 400})
    bench.pool = sizes["pool"]
    got = {OURS: [], THEIRS: []}
    with contextlib.ExitStack() as stack:
        try:
            api = stack.enter_context(cluster.Cluster(is_durable=True, parent=kube_rows.disk()))
        except (controlplane.Unavailable, RuntimeError, OSError) as e:
            bench.add("cluster", "cluster", None, "", " ".join(str(e).split())[-200:])
            return
        for who in got:
            got[who].append(one_turn(bench, api, who, "ours" if who == OURS else "theirs", sizes))
    show(bench, got, sizes)


def middle(turns, name):
    return statistics.median(t[name] for t in turns)


def compare(bench, got, text, value, unit, note=None):
    """One figure of both; returns ours over theirs."""
    values = {who: value(turns) for who, turns in got.items()}
    for who, v in values.items():
        bench.add("cluster", f"{text}, {who.split()[0]}", v, unit, note(got[who]) if note else "")
    return values[OURS] / values[THEIRS] if values[THEIRS] else None


def show(bench, got, sizes):
    for rate in (5, 10, 20):
        def of(share, turns, name=f"rate_{rate}"):
            return load.percentile([us for t in turns for us in t[name]], share) / 1000

        ratio = compare(bench, got, f"{rate} claims a second", lambda t: of(0.99, t), "ms p99",
                        lambda t: f"p50 {of(0.5, t):.0f} ms, p90 {of(0.9, t):.0f} ms of {sum(len(x[f'rate_{rate}']) for x in t)}; "
                                  f"neighbours took {middle(t, f'taken_{rate}'):.1%}")
        bench.goal("cluster", f"p99 at {rate} claims a second, ours over theirs", ratio, 0.5, at_most=True)
    ratio = compare(bench, got, f"burst of {sizes['burst']} from {sizes['pool']}", lambda t: middle(t, "burst_s"), "s")
    bench.goal("cluster", "burst, ours over theirs", ratio, 0.5, at_most=True)
    compare(bench, got, f"pool 0 to {sizes['pool']}", lambda t: middle(t, "fill_s"), "s")
    ratio = compare(bench, got, "sustained, with refill", lambda t: middle(t, "sustained"), "per s",
                    lambda t: f"{middle(t, 'claims_per_s'):.1f} per s until the claims were ready; {sizes['sustained']}, {CLIENTS} at a time")
    bench.goal("cluster", "sustained, ours over theirs", ratio, 2)
    ratio = compare(bench, got, "memory", lambda t: middle(t, "rss_kib") / 1024, "MiB RSS", lambda t: f"{middle(t, 'idle_kib') / 1024:.1f} at the start")
    bench.goal("cluster", "memory, ours over theirs", ratio, 0.2, at_most=True)
    for i, what in enumerate(("controller", "API server")):
        compare(bench, got, f"{what}, 1,000 claims",
                lambda t, i=i: 1000 * sum(s[i] for x in t for s in x["seconds"]) / sum(x["counted"] for x in t), "s CPU")
    for who, turns in got.items():
        calls(bench, who, turns)


def calls(bench, who, turns):
    count = sum(t["counted"] for t in turns)
    each = {what: n / count for what, n in sum((t["calls"] for t in turns), collections.Counter()).items()}
    every = sum(each.values())
    own = every - sum(each.get(what, 0) for what in OTHERS) - each.get("POST pods/binding", 0)  # and an Event for each
    listed = ", ".join(f"{what} {n:.2f}" for what, n in sorted(each.items(), key=lambda x: -x[1]) if n >= 0.005)
    bench.add("cluster", f"calls per claim, {who.split()[0]}", every, "", f"{own:.1f} of them the controller's: {listed}")
    if who == OURS:
        bench.goal("cluster", "API calls per claim, refill included", every, 15, at_most=True)
        bench.goal("cluster", "API calls per claim, ours of them", own, 10.5, at_most=True)


ROWS = {"cluster": row}
TITLES = {"cluster": "Kubernetes (kube-apiserver, etcd, KWOK): warm claims by our controller and by the public one"}

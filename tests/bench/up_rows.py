"""Rows for the whole system: a real `silica up` with real sandboxes, as its clients and its machine see it. Claims are timed by
tests/bench/up_claims.c over HTTPS, until a watch of the same client shows them ready; the SDK is the published one."""

import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import kube_rows
import load
import router_rows
from harness import proc
from harness.server import TREE, tool, wait_until
from lib.up import Up

EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default"
SYSTEM_POOLS = ("python-sandbox-pool", "python-sandbox-warmpool")
WARM = 100
ANSWERERS = 4  # threads that ask sandboxes: the asking is Python's


@contextlib.contextmanager
def system(*options):
    """On a disk: what is acknowledged is kept. Its own pools are emptied, so that only what a row asks for is there."""
    with tempfile.TemporaryDirectory(dir=kube_rows.disk(), prefix="silica-bench-up-") as directory:
        with Up("--log-level", "warn", *options, data=pathlib.Path(directory) / "data") as up:
            empty(up)
            yield up


def empty(up):
    """Its own pools give back their sandboxes."""
    for name in SYSTEM_POOLS:
        up.wait_warm(name)
        up.kubectl("scale", "sandboxwarmpool", name, "--replicas=0")
    # Those of the parts stand for processes.
    wait_until(lambda: not up.api.call("GET", "/api/v1/namespaces/default/pods?labelSelector=%21silica.dev%2Fpart")["items"], 120,
               "all sandboxes are gone")


def make_pool(up, name, replicas):
    up.api.call("POST", f"{EXTENSIONS}/sandboxwarmpools", {
        "apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool", "metadata": {"name": name},
        "spec": {"replicas": replicas, "sandboxTemplateRef": {"name": "python-sandbox-template"}}})
    wait_until(lambda: up.pool(name).get("status", {}).get("readyReplicas", 0) == replicas, 600, f"{name} is warm")


def available_kib():
    return next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemAvailable:"))


def quiet_kib():
    """What is free once all is quiet: the most of some seconds, since caches come and go. They begin again when it has grown: the
    kernel takes its time with the namespaces of what ended before."""
    most, grown, still = 0, 0, 0
    deadline = time.monotonic() + 60
    while still < 20 and time.monotonic() < deadline:
        most = max(most, available_kib())
        still = 0 if most > grown + 1024 else still + 1
        if not still:
            grown = most
        time.sleep(0.25)
    return most


def claims(bench, up, pool, how, count):
    return bench.helper("up_claims", up.ready["kubeconfig"], pool, how, count, timeout_s=600)


def each(bench, up, pool, count, batch):
    """Claims one after the other: the times of all in ms, in order, the middle of the answers', and what neighbours took."""
    got, taken = load.calmest(lambda: claims(bench, up, pool, "each", batch), count // batch)
    return sorted(us / 1000 for one in got for us in one["took_us"]), statistics.median(one["answer_p50_us"] for one in got) / 1000, taken


def latency(bench, servers, _interleave, _ratio):
    sync = kube_rows.sync_us(kube_rows.disk()) / 1000
    with system() as up:
        make_pool(up, "bench-warm", 8)
        make_pool(up, "bench-cold", 0)
        for row, pool, count, want in (("up-warm", "bench-warm", 30 if bench.quick else 200, 2),
                                       ("up-cold", "bench-cold", 20 if bench.quick else 100, 10)):
            took, answered, taken = each(bench, up, pool, count, 10)
            bench.add(row, "silica up", load.percentile(took, 0.5), "ms p50",
                      f"p90 {load.percentile(took, 0.9):.1f} ms, p99 {load.percentile(took, 0.99):.1f} ms of {count}; the create itself is answered "
                      f"after {answered:.1f} ms; neighbours took {taken:.1%}")
            bench.add(row, "the disk's own sync", sync, "ms p50", f"append of 4 KiB and fdatasync in {kube_rows.disk()}")
            bench.goal(row, f"{row[3:]} claim to ready over TLS, p50 in ms", load.percentile(took, 0.5), want, at_most=True)
        sdk(bench, up)


def sdk(bench, up):
    """The same session at our router and at the public project's."""
    try:
        python = tool("venv", "sdk-1.0.8")
    except subprocess.CalledProcessError as e:
        bench.add("up-sdk", "Python SDK", None, "ms", f"no virtualenv: {e}")
        return
    sessions, runs = (5, 10) if bench.quick else (20, 50)
    with contextlib.ExitStack() as stack:
        routers = {"silica router": up.ready["router"]}
        try:
            go = router_rows.Go()
            stack.callback(lambda: (go.stop(5), go.remove()))
            routers[router_rows.GO] = f"http://127.0.0.1:{go.port}"
        except (AssertionError, OSError, subprocess.CalledProcessError) as e:
            bench.add("up-sdk", router_rows.GO, None, "ms", str(e)[-200:])
        for who, url in routers.items():
            got = json.loads(load.run([python, TREE / "tests/bench/sdk_session.py", url, "bench-warm", sessions, runs], 300,
                                      {"KUBECONFIG": up.ready["kubeconfig"]}))
            bench.add("up-sdk", f"create to output, {who}", got["first_ms"], "ms p50", f"create_sandbox {got['create_ms']:.1f} ms of it")
            bench.add("up-sdk", f"commands.run, {who}", got["run_ms"], "ms p50")


def answers(up, names):
    """How many of the sandboxes ran a command, asked through the router; and the seconds that took."""
    host, port = up.ready["router"].removeprefix("http://").rsplit(":", 1)

    def ask(part):
        connection, good = http.client.HTTPConnection(host, int(port), timeout=60), 0
        for name in part:
            connection.request("POST", "/execute", json.dumps({"command": f"echo {name}"}), {
                "Content-Type": "application/json", "X-Sandbox-ID": name, "X-Sandbox-Namespace": "default", "X-Sandbox-Port": "8888"})
            answer = connection.getresponse()
            good += answer.status == 200 and json.loads(answer.read())["stdout"] == f"{name}\n"
        return good

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(ANSWERERS) as threads:
        good = sum(threads.map(ask, [names[i::ANSWERERS] for i in range(ANSWERERS)]))
    return good, time.monotonic() - began


def many(bench, servers, _interleave, _ratio):
    count = 50 if bench.quick else 1000
    with system() as up:
        make_pool(up, "bench-cold", 0)
        before = quiet_kib()
        got = claims(bench, up, "bench-cold", "stay", count)
        each = (before - quiet_kib()) / count
        items = up.api.call("GET", f"{EXTENSIONS}/sandboxclaims")["items"]
        good, seconds = answers(up, [c["status"]["sandbox"]["name"] for c in items])
        bench.add("up-many", f"{count:,} claims at once", got["all_us"] / 1e6, "s", f"{count / got['all_us'] * 1e6:.0f} sandboxes a second")
        bench.add("up-many", "memory", each, "KiB each", "; ".join(f"{part} {proc.memory(up.pid(part))['rss'] // 1024:,} KiB"
                                                                 for part in ("control", "node", "router")))
        bench.add("up-many", "a command in each", seconds, "s", f"{ANSWERERS} clients through the router")
        bench.goal("up-many", "claimed sandboxes that answered", good, count)


def memory(bench, servers, _interleave, _ratio):
    count = 20 if bench.quick else WARM
    with tempfile.TemporaryDirectory(dir=kube_rows.disk()) as directory:
        before = quiet_kib()
        with Up("--log-level", "warn", data=pathlib.Path(directory) / "data") as up:
            empty(up)
            idle = before - quiet_kib()
            make_pool(up, "bench-warm", count)
            drop = before - quiet_kib()
            parts = ", ".join(f"{part} {proc.memory(up.pid(part))['rss'] // 1024:,}" for part in ("control", "node", "router"))
    bench.add("up-memory", f"{count} warm sandboxes", drop / 1024, "MiB", f"{idle / 1024:.1f} of it without any; RSS in KiB: {parts}")
    bench.goal("up-memory", f"MemAvailable that silica up with {count} warm takes, in MB", drop * 1024 / 1e6,
               150 if count == WARM else 30 + 1.2 * count, at_most=True)


ROWS = {"up-memory": memory, "up": latency, "up-many": many}  # memory first: the kernel gives back late what others took
TITLES = {"up-warm": "silica up: a claim from a warm pool, to ready", "up-cold": "silica up: a claim that finds its pool empty, to ready",
          "up-sdk": "silica up: the Python SDK, direct mode", "up-many": "silica up: claimed sandboxes alive", "up-memory": "silica up: memory"}

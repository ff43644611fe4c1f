"""Logs through the API server: kubectl of both eras, the Python client, and what raw requests are told."""

import datetime
import os
import subprocess
import threading
import time

import pytest

from harness import server as servers
from harness.server import wait_until

LINES = [("2026-11-16T09:30:00.000000001Z", "stdout", "one"), ("2026-11-16T09:30:01.500000000Z", "stderr", "two"),
         ("2026-11-16T09:30:02.000000000Z", "stdout", "three  with blanks "), ("2026-11-16T09:30:03.250000000Z", "stdout", "")]
TEXT = "".join(f"{time} {stream} F {text}\n" for time, stream, text in LINES)
ALL = "".join(text + "\n" for _, _, text in LINES)


@pytest.fixture(scope="module")
def pod(server):
    """A Pod with two containers that wrote something, one of them before too."""
    made = server.make_pod(server.make_namespace(), "p", containers=("main", "side"))
    server.log_file(made).write_text(TEXT)
    server.log_file(made, name="previous").write_text("2026-11-16T08:00:00.000000000Z stdout F in an earlier life\n")
    server.log_file(made, container="side").write_text("2026-11-16T09:30:00.000000000Z stdout P a line in \n"
                                                       "2026-11-16T09:30:00.100000000Z stdout F two pieces\n")
    return made


@pytest.fixture(scope="module", params=["kubectl", "kubectl-1.20"])
def kubectl(request, server, pod):
    argv = [servers.tool("peers", request.param), *server.kubectl_options, "-n", pod["metadata"]["namespace"], "logs", "p"]

    def run(*args):
        done = subprocess.run([*argv, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        return done.stdout, done.stderr, done.returncode

    run.argv = argv
    return run


@pytest.mark.parametrize("options,want", [
    (["-c", "main"], ALL),
    (["-c", "main", "--tail=2"], "three  with blanks \n\n"),
    (["-c", "main", "--tail=0"], ""),
    (["-c", "main", "--tail=100"], ALL),
    (["-c", "main", "--since-time=2026-11-16T09:30:02Z"], "three  with blanks \n\n"),
    (["-c", "main", "--since-time=2026-11-16T10:30:02+01:00"], "three  with blanks \n\n"),
    (["-c", "main", "--timestamps", "--tail=2"], "2026-11-16T09:30:02.000000000Z three  with blanks \n2026-11-16T09:30:03.250000000Z \n"),
    (["-c", "main", "--limit-bytes=6"], "one\ntw"),
    (["-c", "main", "--previous"], "in an earlier life\n"),
    (["-c", "side"], "a line in two pieces\n"),
    (["-c", "side", "--timestamps"], "2026-11-16T09:30:00.000000000Z a line in two pieces\n"),
])
def test_options(kubectl, options, want):
    assert kubectl(*options) == (want, "", 0)


def test_since_seconds(kubectl, server, pod):
    path = server.log_file(pod, container="main")
    now = datetime.datetime.now(datetime.timezone.utc)
    path.write_text(TEXT + "".join(f"{(now - datetime.timedelta(seconds=s)).strftime('%Y-%m-%dT%H:%M:%S.%f')}000Z stdout F {s} ago\n"
                                   for s in (5000, 0)))
    try:
        assert kubectl("-c", "main", "--since=10m") == ("0 ago\n", "", 0)
        assert kubectl("-c", "main", "--since=2h") == ("5000 ago\n0 ago\n", "", 0)
    finally:
        path.write_text(TEXT)


def test_refusals(kubectl):
    out, err, code = kubectl("-c", "none")
    assert (out, code) == ("", 1) and err.startswith("error: container none is not valid for pod p")
    assert kubectl("-c", "side", "--previous") == (
        "", 'Error from server (BadRequest): previous terminated container "side" in pod "p" not found\n', 1)


def test_all_containers(kubectl):
    out, _, code = kubectl("--all-containers")
    assert code == 0 and sorted(out.splitlines()) == sorted((ALL + "a line in two pieces\n").splitlines())


def test_follow(kubectl, server):
    """Lines come when they are written, and the end with the file."""
    made = server.make_pod(server.make_namespace(), "p")
    path = server.log_file(made)
    path.write_text("2026-11-16T09:30:00.000000001Z stdout F first\n")
    argv = [made["metadata"]["namespace"] if a.startswith("ns-") else a for a in kubectl.argv]
    with subprocess.Popen([*argv, "-f"], stdout=subprocess.PIPE, text=True) as process, path.open("a") as log:
        assert process.stdout.readline() == "first\n"
        for i in range(3):
            log.write(f"2026-11-16T09:30:0{i}.000000001Z stdout F line {i}\n")
            log.flush()
            assert process.stdout.readline() == f"line {i}\n"
        assert process.poll() is None
        log.write("2026-11-16T09:30:09.000000001Z stdout F last\n")
        log.flush()
        path.unlink()
        assert process.stdout.read() == "last\n" and process.wait(20) == 0


def test_of_a_deployment_and_by_label(kubectl, server):
    """kubectl finds the Pods behind a Deployment, or a label, and asks for the log of each."""
    ns, labels = server.make_namespace(), {"app": "d"}
    server.make(f"/apis/apps/v1/namespaces/{ns}/deployments", {"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "x"}]}}}})
    server.log_file(server.make_pod(ns, "d-1", labels=labels)).write_text(TEXT)
    argv = [ns if a.startswith("ns-") else a for a in kubectl.argv[:-1]]
    for how in (["deployment/d"], ["-l", "app=d", "--tail=-1"]):
        done = subprocess.run([*argv, *how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert (done.stdout, done.returncode) == (ALL, 0), done.stderr


# ---- the Python client ----

def test_python_client(server, pod):
    from kubernetes import client
    api = client.CoreV1Api(client.ApiClient(server.configuration()))
    ns = pod["metadata"]["namespace"]
    assert api.read_namespaced_pod_log("p", ns, container="main") == ALL
    assert api.read_namespaced_pod_log("p", ns, container="main", tail_lines=3, limit_bytes=5, timestamps=False) == "two\nt"
    with pytest.raises(client.ApiException) as told:
        api.read_namespaced_pod_log("p", ns)
    assert told.value.status == 400 and "choose one of: [main side]" in told.value.body


def test_python_client_watches(server):
    """watch.Watch().stream() over a log that is followed."""
    from kubernetes import client, watch
    made = server.make_pod(server.make_namespace(), "p")
    path = server.log_file(made)
    path.write_text("2026-11-16T09:30:00.000000001Z stdout F first\n")

    def write_on():
        time.sleep(0.5)
        with path.open("a") as log:
            log.write("2026-11-16T09:30:00.000000002Z stdout F second\n")
        path.unlink()

    writer = threading.Thread(target=write_on)
    writer.start()
    api = client.CoreV1Api(client.ApiClient(server.configuration()))
    assert list(watch.Watch().stream(api.read_namespaced_pod_log, "p", made["metadata"]["namespace"])) == ["first", "second"]
    writer.join()


# ---- by hand ----

def test_large(server):
    made = server.make_pod(server.make_namespace(), "p")
    body = os.urandom(48).hex()
    server.log_file(made).write_text("".join(f"2026-11-16T09:30:00.000000001Z stdout F {i} {body}\n" for i in range(100_000)))
    answer = server.ask("GET", f"/api/v1/namespaces/{made['metadata']['namespace']}/pods/p/log")
    assert answer.status_code == 200 and answer.headers["content-type"] == "text/plain"
    assert answer.text == "".join(f"{i} {body}\n" for i in range(100_000))


def test_a_reader_that_leaves(server):
    """A log that is followed and silent: the pod side lets it go when its reader does."""
    made = server.make_pod(server.make_namespace(), "p")
    server.log_file(made).write_text(TEXT)
    pod_side = server.pod_side()

    def open_logs():
        return sum(os.readlink(f"/proc/{pod_side}/fd/{fd}").endswith("current.log")
                   for fd in os.listdir(f"/proc/{pod_side}/fd") if os.path.islink(f"/proc/{pod_side}/fd/{fd}"))

    wait_until(lambda: open_logs() == 0, 20, "no log open")
    with server.ask("GET", f"/api/v1/namespaces/{made['metadata']['namespace']}/pods/p/log?follow=true", stream=True) as answer:
        lines = answer.iter_lines()
        assert next(lines) == b"one" and open_logs() == 1
        lines.close()  # and with it the connection
    wait_until(lambda: open_logs() == 0, 20, "the end of the log")


@pytest.mark.parametrize("query,code,reason,message", [
    ("container=main&stream=Stderr", 200, None, "two\n"),
    ("container=main&stream=Stdout&limitBytes=5", 200, None, "one\nt"),
    ("container=main&stream=Both", 422, "Invalid", 'stream: Unsupported value: "Both": supported values: "All", "Stderr", "Stdout"'),
    ("container=main&stream=Stdout&tailLines=1", 422, "Invalid", "`tailLines` and specific `stream` are mutually exclusive for now"),
    ("container=main&tailLines=-1", 422, "Invalid", "tailLines: Invalid value: -1: must be greater than or equal to 0"),
    ("container=main&limitBytes=0", 422, "Invalid", "limitBytes: Invalid value: 0: must be greater than 0"),
    ("container=main&sinceSeconds=0", 422, "Invalid", "sinceSeconds: Invalid value: 0: must be greater than 0"),
    ("container=main&sinceSeconds=1&sinceTime=2026-11-16T09:30:02Z", 422, "Invalid", "at most one of `sinceTime` or `sinceSeconds` may be specified"),
    ("container=main&sinceTime=yesterday", 400, "BadRequest", "yesterday"),
    ("container=main&tailLines=many", 400, "BadRequest", "many"),
    ("container=main&sinceSeconds=9000000000000000000", 200, None, ALL),
    ("", 400, "BadRequest", "a container name must be specified for pod p, choose one of: [main side]"),
    ("container=../../x", 400, "BadRequest", "container ../../x is not valid for pod p"),
    ("container=main&uid=another&namespace=another", 200, None, ALL),  # ours count
])
def test_raw(server, pod, query, code, reason, message):
    answer = server.ask("GET", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/p/log?{query}")
    assert answer.status_code == code, answer.text
    if code == 200:
        assert answer.text == message
    else:
        status = answer.json()
        assert status["kind"] == "Status" and status["reason"] == reason and message in status["message"]


def test_the_default_container_of_an_annotation(server):
    made = server.make_pod(server.make_namespace(), "p", containers=("a", "b"),
                           annotations={"kubectl.kubernetes.io/default-container": "b"})
    server.log_file(made, container="b").write_text(TEXT)
    assert server.ask("GET", f"/api/v1/namespaces/{made['metadata']['namespace']}/pods/p/log").text == ALL

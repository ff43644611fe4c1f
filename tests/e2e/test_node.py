"""`silica node`: Pods of the API are sandboxes of this machine, judged by kubectl."""

import os
import socket
import subprocess
import urllib.error
import urllib.request

import pytest

from harness import proc
from harness.server import free_port, wait_until
from lib.machine import NODE, Machine, pod

pytestmark = pytest.mark.ours
SLEEP = ["sleep", "4721"]


@pytest.fixture(scope="module")
def machine():
    with Machine(node_options=["--pod-addresses"]) as m:
        yield m
        m.kubectl("delete", "pods", "--all", "--wait=false", "--grace-period=1")
        m.wait(lambda: not m.leftovers(), "nothing left")
        m.node.end()


def forward(m, name, port):
    """A port-forward of kubectl's: the process and the address."""
    local = free_port()
    process = subprocess.Popen([m.kubectl_program, "--kubeconfig", str(m.api.kubeconfig), "port-forward", f"pod/{name}",
                                f"{local}:{port}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert "Forwarding" in process.stdout.readline()
    return process, f"http://127.0.0.1:{local}"


def test_the_runtime_serves(machine):
    machine.apply(pod("server", image="registry.example/agent-sandbox/python-runtime-sandbox:v1"))
    found = machine.wait_ready("server")
    status = found["status"]
    assert found["spec"]["nodeName"] == NODE and status["phase"] == "Running"
    assert status["podIP"].startswith("127.") and status["podIPs"] == [{"ip": status["podIP"]}] and status["hostIP"] == "127.0.0.1"
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "PodReadyToStartContainers": "True", "Initialized": "True", "Ready": "True", "ContainersReady": "True", "PodScheduled": "True",
        "silica.dev/PodAddresses": "True"}
    (container,) = status["containerStatuses"]
    assert container["ready"] and container["started"] and container["restartCount"] == 0 and "running" in container["state"]
    assert container["containerID"] == f"silica://{found['metadata']['uid']}_main_0"
    process, url = forward(machine, "server", 8888)
    try:
        body = b'{"command": "echo hello"}'
        request = urllib.request.Request(f"{url}/execute", data=body, headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert b"hello" in answer.read()
    finally:
        process.terminate()
        process.wait()
    machine.delete("server")
    assert not machine.boxes_of(found)


def test_a_token_guards_the_server_and_not_its_owner(machine):
    machine.apply(pod("guarded", image="registry.example/agent-sandbox/python-runtime-sandbox:v1",
                      env=[{"name": "SANDBOX_EXEC_TOKEN", "value": "s3cret"}]))
    url = f"http://{machine.wait_ready('guarded')['status']['podIP']}:8888/execute"

    def execute(headers):
        request = urllib.request.Request(url, data=b'{"command": "env"}', headers={"content-type": "application/json", **headers})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()

    with pytest.raises(urllib.error.HTTPError) as refused:
        execute({})
    assert refused.value.code == 401
    assert b"s3cret" not in execute({"X-Sandbox-Token": "s3cret"})  # commands do not inherit it
    assert "s3cret" not in machine.kubectl("exec", "guarded", "--", "env")
    machine.delete("guarded")


def test_a_command_runs_and_is_gone_with_its_pod(machine):
    mark = proc.unique_sleep()
    machine.apply(pod("plain", command=["sh", "-c", f"echo out; echo err >&2; exec sleep {mark}"]))
    machine.wait_ready("plain")
    assert machine.kubectl("exec", "plain", "--", "sh", "-c", "echo $HOSTNAME; hostname").split() == ["plain", "plain"]
    machine.wait(lambda: sorted(machine.kubectl("logs", "plain").split()) == ["err", "out"], "both words")
    wait_until(lambda: len(proc.with_argument(mark)) == 1, 30)
    machine.delete("plain")
    wait_until(lambda: not proc.with_argument(mark), 30)


def test_exec_has_exit_codes_streams_and_a_terminal(machine):
    machine.apply(pod("streams", command=SLEEP))
    machine.wait_ready("streams")
    done = machine.run("exec", "streams", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, "out\n") and done.stderr.startswith("err\n")
    done = subprocess.run([machine.kubectl_program, "--kubeconfig", str(machine.api.kubeconfig), "exec", "-i", "streams", "--",
                           "wc", "-c"], input=b"x" * 3000000, stdout=subprocess.PIPE, timeout=60)
    assert done.stdout.split() == [b"3000000"]
    assert machine.run("exec", "streams", "--", "no-such-program").returncode == 127
    assert "not valid" in machine.run("exec", "streams", "-c", "other", "--", "true").stderr
    machine.delete("streams")


def test_an_exec_ends_as_killed_with_its_pod(machine):
    """Clients take 137 for the end of the Pod, when that is gone too."""
    machine.apply(pod("goes", command=SLEEP))
    machine.wait_ready("goes")
    running = subprocess.Popen([machine.kubectl_program, "--kubeconfig", str(machine.api.kubeconfig), "exec", "goes", "--", "sh", "-c",
                                "echo here; sleep 4722"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "here\n"
    machine.kubectl("delete", "pod", "goes", "--grace-period=0", "--force")
    assert running.wait(60) == 137, running.stderr.read()


def test_attach_shows_what_comes(machine):
    machine.apply(pod("talks", command=["sh", "-c", "echo before; while ! test -e /tmp/go; do sleep 0.05; done; echo out; echo err >&2"],
                      restartPolicy="Never"))
    machine.wait_ready("talks")
    machine.wait(lambda: machine.kubectl("logs", "talks") == "before\n", "its first word")
    attached = subprocess.Popen([machine.kubectl_program, "--kubeconfig", str(machine.api.kubeconfig), "attach", "talks"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    machine.wait(lambda: "/attach" in machine.node.log(), "attached")
    machine.kubectl("exec", "talks", "--", "touch", "/tmp/go")
    out, err = attached.communicate(timeout=60)
    assert (attached.returncode, out) == (0, "out\n") and "err\n" in err
    assert machine.kubectl("logs", "talks", "--tail=2").splitlines() in (["out", "err"], ["err", "out"])
    machine.delete("talks")


def test_it_ends_by_itself(machine):
    machine.apply(pod("good", command=["sh", "-c", "echo done"], restartPolicy="Never"),
                  pod("bad", command=["sh", "-c", "exit 7"], restartPolicy="Never"))
    good = machine.wait_phase("good", "Succeeded")
    (container,) = good["status"]["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == 0 and container["state"]["terminated"]["reason"] == "Completed"
    bad = machine.wait_phase("bad", "Failed")
    assert bad["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7
    assert machine.kubectl("logs", "good") == "done\n"
    machine.delete("good")
    machine.delete("bad")
    assert not machine.boxes_of(good) + machine.boxes_of(bad)


def test_last_words(machine):
    """As the kubelet has it: of a container that ended badly, where the Pod asks for it; the same after it was started again."""
    says = ["sh", "-c", "for i in $(seq 100); do echo line $i; done; echo why >&2; exit ${CODE:-3}"]
    machine.apply(pod("asked", command=says, terminationMessagePolicy="FallbackToLogsOnError", restartPolicy="Never"),
                  pod("comes-back", command=says, terminationMessagePolicy="FallbackToLogsOnError"),
                  pod("not-asked", command=says, restartPolicy="Never"),
                  pod("well", command=says, env=[{"name": "CODE", "value": "0"}], terminationMessagePolicy="FallbackToLogsOnError", restartPolicy="Never"))
    want = "".join(f"line {i}\n" for i in range(22, 101)) + "why\n"

    def end_of(name, phase):
        return machine.wait_phase(name, phase)["status"]["containerStatuses"][0]["state"]["terminated"]

    assert sorted(end_of("asked", "Failed")["message"].splitlines()) == sorted(want.splitlines())
    assert "message" not in end_of("not-asked", "Failed") and "message" not in end_of("well", "Succeeded")

    def ended_before():
        (container,) = (machine.status("comes-back") or {}).get("containerStatuses", [{}])
        return container.get("lastState", {}).get("terminated")

    assert "why" in machine.wait(ended_before, "it was started again")["message"].splitlines()
    for name in ("asked", "comes-back", "not-asked", "well"):
        told = machine.api.call("GET", f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D{name}")["items"]
        assert not [e for e in told if "not served" in e["message"]]
        machine.delete(name)


def test_a_crash_is_restarted_and_then_paused(machine):
    machine.apply(pod("crash", command=["sh", "-c", "echo attempt; exit 4"]))

    def is_paused():
        (container,) = (machine.status("crash") or {}).get("containerStatuses", [{}])
        return container if container.get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff" else None

    container = machine.wait(is_paused, "a pause")
    assert container["restartCount"] == 1 and container["lastState"]["terminated"]["exitCode"] == 4
    assert machine.status("crash")["phase"] == "Running" and not container["ready"]
    assert machine.kubectl("logs", "crash") == "attempt\n" == machine.kubectl("logs", "crash", "--previous")
    machine.delete("crash")


def test_a_command_that_is_not_there(machine):
    machine.apply(pod("missing", command=["/no/such/program"], restartPolicy="Never"))
    found = machine.wait_phase("missing", "Failed")
    ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["reason"] == "StartError" and ended["exitCode"] == 128 and "cannot run its command" in ended["message"]
    machine.delete("missing")


def test_a_deadline(machine):
    machine.apply(pod("late", command=SLEEP, activeDeadlineSeconds=2))
    status = machine.wait_phase("late", "Failed")["status"]
    assert status["reason"] == "DeadlineExceeded" and status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
    wanted = {"Scheduled", "Started", "Killing", "DeadlineExceeded"}
    machine.wait(lambda: wanted <= {reason for reason, _ in machine.events("late")}, "events")
    machine.delete("late")


def test_an_image_that_is_not_there(machine):
    machine.apply(pod("unknown", image="registry.example/nothing:1", command=SLEEP))

    def reason():
        (container,) = (machine.status("unknown") or {}).get("containerStatuses", [{}])
        return container.get("state", {}).get("waiting", {}).get("reason") == "ErrImagePull"

    machine.wait(reason, "ErrImagePull")
    assert machine.status("unknown")["phase"] == "Pending"
    assert any(reason == "Failed" and "images.yaml" in message for reason, message in machine.events("unknown"))
    machine.delete("unknown")


def test_init_containers_come_first_and_one_network_is_shared(machine):
    two = pod("two", command=["python3", "-m", "http.server", "--bind", "127.0.0.1", "7000"])
    two["spec"]["initContainers"] = [{"name": "first", "image": "python:3.11", "command": ["sh", "-c", "echo one"]},
                                     {"name": "second", "image": "python:3.11", "command": ["sh", "-c", "echo two"]}]
    two["spec"]["containers"].append({"name": "side", "image": "python:3.11", "command": SLEEP})
    machine.apply(two)
    status = machine.wait_ready("two")["status"]
    first, second = status["initContainerStatuses"]
    assert [c["state"]["terminated"]["reason"] for c in (first, second)] == ["Completed", "Completed"] and first["ready"]
    assert first["state"]["terminated"]["finishedAt"] <= second["state"]["terminated"]["startedAt"]
    assert machine.kubectl("logs", "two", "-c", "second") == "two\n"
    fetch = "import urllib.request, time\nfor _ in range(600):\n  try: print(urllib.request.urlopen('http://127.0.0.1:7000').status); break\n" \
            "  except OSError: time.sleep(0.05)"
    assert machine.kubectl("exec", "two", "-c", "side", "--", "python3", "-c", fetch) == "200\n"
    machine.delete("two")


def test_a_graceful_end_and_one_by_force(machine):
    slow = pod("slow", command=["sh", "-c", "trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.1; done"])
    deaf = pod("deaf", command=["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"], terminationGracePeriodSeconds=1)
    machine.apply(slow, deaf)
    for name in ("slow", "deaf"):
        machine.wait_ready(name)
        machine.wait(lambda: machine.kubectl("logs", name) == "up\n", "its word")
    follow = subprocess.Popen([machine.kubectl_program, "--kubeconfig", str(machine.api.kubeconfig), "logs", "-f", "slow"],
                              stdout=subprocess.PIPE, text=True)
    assert follow.stdout.readline() == "up\n"
    machine.delete("slow")
    assert follow.communicate(timeout=60)[0] == "told\n"
    machine.delete("deaf")


def test_parts_of_a_log(machine):
    """--tail, --since, --timestamps, --limit-bytes, -f from the middle, and --previous of the attempt before."""
    script = "if test -e /v/again; then echo second; exec sleep 4721; fi; touch /v/again; echo one; echo two; echo three; " \
             "while ! test -e /v/go; do sleep 0.05; done; echo four; exit 1"
    machine.apply(pod("says", command=["sh", "-c", script], volumes=[{"name": "v", "emptyDir": {}}],
                      volumeMounts=[{"name": "v", "mountPath": "/v"}]))
    found = machine.wait_ready("says")
    machine.wait(lambda: machine.kubectl("logs", "says").split() == ["one", "two", "three"], "its words")
    assert machine.kubectl("logs", "says", "--tail=2") == "two\nthree\n" and machine.kubectl("logs", "says", "--tail=0") == ""
    assert machine.kubectl("logs", "says", "--limit-bytes=5") == "one\nt"
    assert machine.kubectl("logs", "says", "--since=1h").split() == ["one", "two", "three"]
    stamps = [line.split(" ", 1) for line in machine.kubectl("logs", "says", "--timestamps").splitlines()]
    assert [s[1] for s in stamps] == ["one", "two", "three"] and all(s[0].endswith("Z") and s[0] >= found["status"]["startTime"][:19] for s in stamps)
    later = "2999-01-01T00:00:00Z"
    assert machine.kubectl("logs", "says", f"--since-time={later}") == ""
    follow = subprocess.Popen([machine.kubectl_program, "--kubeconfig", str(machine.api.kubeconfig), "logs", "says", "-f", "--tail=1"],
                              stdout=subprocess.PIPE, text=True)
    assert follow.stdout.readline() == "three\n"
    machine.kubectl("exec", "says", "--", "touch", "/v/go")
    assert follow.communicate(timeout=60)[0] == "four\n"  # it ends with the container
    machine.wait(lambda: machine.kubectl("logs", "says") == "second\n", "the next attempt's")
    assert machine.kubectl("logs", "says", "--previous").split() == ["one", "two", "three", "four"]
    assert machine.kubectl("logs", "says", "--previous", "--tail=1") == "four\n"
    machine.delete("says")


def test_hooks(machine):
    """postStart comes before the container is said to run and before the next one begins; preStop before TERM."""
    shared = {"volumes": [{"name": "v", "emptyDir": {}}]}
    mount = [{"name": "v", "mountPath": "/v"}]
    hooked = pod("hooked", command=["sh", "-c", "trap 'cat /v/said; exit 0' TERM; echo up; while :; do sleep 0.05; done"], volumeMounts=mount, **shared,
                 lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "while ! test -e /v/go; do sleep 0.05; done; echo post >/v/said"]}},
                            "preStop": {"exec": {"command": ["sh", "-c", "echo pre >>/v/said"]}}})
    hooked["spec"]["containers"].append({"name": "next", "image": "python:3.11", "volumeMounts": mount,
                                         "command": ["sh", "-c", "cat /v/said; exec sleep 4721"]})
    machine.apply(hooked)
    uid = machine.wait(lambda: machine.boxes() and machine.get("hooked"), "its sandbox")["metadata"]["uid"]
    machine.wait(lambda: ("Started", "Started container main") in machine.events("hooked"), "its Event")
    assert machine.status("hooked").get("phase", "Pending") == "Pending"
    (machine.data / "pods" / uid / "volumes" / "v" / "go").touch()
    machine.wait_ready("hooked")
    machine.wait(lambda: machine.kubectl("logs", "hooked", "-c", "next") == "post\n", "the next one saw it")
    follow = subprocess.Popen([machine.kubectl_program, "--kubeconfig", str(machine.api.kubeconfig), "logs", "-f", "hooked", "-c", "main"],
                              stdout=subprocess.PIPE, text=True)
    assert follow.stdout.readline() == "up\n"
    machine.delete("hooked")
    assert follow.communicate(timeout=60)[0] == "post\npre\n"
    assert not [reason for reason, _ in machine.events("hooked") if "Hook" in reason]


def test_hooks_that_fail(machine):
    machine.apply(pod("unhooked", command=SLEEP, restartPolicy="Never", terminationGracePeriodSeconds=1,
                      lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "echo no luck; exit 3"]}},
                                 "preStop": {"httpGet": {"port": 9}}}))
    machine.wait_phase("unhooked", "Failed")
    told = dict(machine.events("unhooked"))
    assert told["FailedPostStartHook"] == "PostStartHook failed: no luck"
    assert told["FailedPreStopHook"].startswith("PreStopHook failed: Get \"http://127.")
    machine.delete("unhooked")
    # One that takes all of its time is ended all the same.
    machine.apply(pod("slow-hook", command=SLEEP, terminationGracePeriodSeconds=1, lifecycle={"preStop": {"sleep": {"seconds": 600}}}))
    machine.wait_ready("slow-hook")
    machine.delete("slow-hook")


FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).status)"


def test_ports_are_served_on_its_address(machine):
    machine.apply(pod("web", image="registry.example/agent-sandbox/python-runtime-sandbox:v1", ports=[{"containerPort": 7001}]))
    ip = machine.wait_ready("web")["status"]["podIP"]
    code = "import http.server; http.server.HTTPServer(('127.0.0.1', 7001), http.server.SimpleHTTPRequestHandler).serve_forever()"
    inside = subprocess.Popen([machine.kubectl_program, "--kubeconfig", str(machine.api.kubeconfig), "exec", "web", "--",
                               "python3", "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for port in (8888, 8080):
        with urllib.request.urlopen(f"http://{ip}:{port}/", timeout=30) as answer:
            assert answer.status == 200

    def serves():
        try:
            return urllib.request.urlopen(f"http://{ip}:7001/", timeout=30).status == 200
        except OSError:
            return False

    machine.wait(serves, "a declared port")
    if os.geteuid() == 0:  # another account of the machine reaches nothing
        other = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", FETCH,
                                f"http://{ip}:8888/"], capture_output=True, text=True, timeout=60)
        assert other.returncode != 0 and "200" not in other.stdout
    machine.delete("web")
    inside.wait(60)
    with pytest.raises(OSError):
        socket.create_connection((ip, 8888), 5)


def test_a_new_pod_of_the_same_name(machine):
    machine.apply(pod("again", command=SLEEP))
    old = machine.wait_ready("again")
    machine.kubectl("delete", "pod", "again", "--force", "--grace-period=0")
    machine.apply(pod("again", command=SLEEP))
    new = machine.wait_ready("again")
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    machine.wait(lambda: not machine.boxes_of(old), "the old one gone")
    machine.delete("again")


def test_the_node_shows_itself(machine):
    node = machine.api.call("GET", f"/api/v1/nodes/{NODE}")
    assert {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"] == "True"
    assert "Ready" in machine.kubectl("get", "nodes")
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + NODE
    machine.wait(lambda: machine.api.exists(lease), "a lease")
    assert machine.api.call("GET", lease)["spec"]["holderIdentity"] == NODE


def test_two_nodes_in_one_directory(machine):
    second = subprocess.run([machine.api.program, "node", "--kubeconfig", str(machine.api.kubeconfig), "--data", str(machine.data),
                             "--pod-socket", str(machine.directory / "other.sock")], capture_output=True, text=True, timeout=60)
    assert second.returncode != 0 and "another node has the directory" in second.stderr
    assert os.path.exists(machine.data / "pods.sock")

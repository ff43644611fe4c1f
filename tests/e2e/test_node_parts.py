"""What a Pod is made of, on `silica node`, judged by kubectl: environment, volumes, probes, users, limits, images."""

import base64
import json

import pytest

from lib.machine import Machine, pod

pytestmark = pytest.mark.ours
SLEEP = ["sleep", "4722"]


@pytest.fixture(scope="module")
def machine():
    with Machine() as m:
        yield m
        m.kubectl("delete", "pods", "--all", "--wait=false", "--grace-period=1")
        m.wait(lambda: not m.leftovers(), "nothing left")
        m.node.end()


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name, **data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def claim(name):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def inside(m, name, script):
    return m.kubectl("exec", name, "--", "sh", "-c", script)


def waiting(m, name):
    """The reason and message of a container that waits."""
    (container,) = (m.status(name) or {}).get("containerStatuses") or [{}]
    found = container.get("state", {}).get("waiting") or {}
    return found.get("reason"), found.get("message", "")


def test_variables_come_from_everywhere(machine):
    machine.apply(
        config_map("settings", color="blue", SIZE="9"), secret("keys", token="s3cret"),
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "my-db"}, "spec": {"ports": [{"port": 5432}]}},
        {**pod("vars", image="busybox", command=["sh", "-c"], args=["echo '$(GREETING)'; exec sleep 4722"],
               envFrom=[{"prefix": "CFG_", "configMapRef": {"name": "settings"}}, {"secretRef": {"name": "none", "optional": True}}],
               resources={"limits": {"cpu": "500m"}},
               env=[{"name": "WHO", "value": "you"}, {"name": "GREETING", "value": "hello $(WHO), $$(WHO) and $(NOBODY)"},
                    {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
                    {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                    {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    {"name": "MILLI", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}}]),
         "metadata": {"name": "vars", "labels": {"app": "web"}}})
    machine.wait_ready("vars")
    found = dict(line.split("=", 1) for line in inside(machine, "vars", "env").splitlines() if "=" in line)
    assert found["CFG_color"] == "blue" and found["CFG_SIZE"] == "9" and found["TOKEN"] == "s3cret"
    assert found["GREETING"] == "hello you, $(WHO) and $(NOBODY)"
    assert (found["NAME"], found["APP"], found["MILLI"]) == ("vars", "web", "500")
    assert found["IP"] == machine.status("vars")["podIP"]
    assert found["MY_DB_SERVICE_PORT"] == "5432" and found["KUBERNETES_SERVICE_HOST"]
    assert machine.kubectl("logs", "vars") == "hello you, $(WHO) and $(NOBODY)\n"
    machine.delete("vars")


def test_what_is_missing_is_waited_for(machine):
    machine.apply(pod("lacking", command=SLEEP, env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "later", "key": "k"}}}]))
    machine.wait(lambda: waiting(machine, "lacking") == ("CreateContainerConfigError", 'configmap "later" not found'), "the reason")
    machine.apply(config_map("later", other="x"))
    machine.wait(lambda: waiting(machine, "lacking")[1] == "couldn't find key k in ConfigMap default/later", "the next reason")
    machine.apply(config_map("later", k="v"))
    machine.wait_ready("lacking")
    assert inside(machine, "lacking", "echo $A") == "v\n"
    machine.delete("lacking")


def test_files_of_objects(machine):
    machine.apply(config_map("files", a="one", b="two"), secret("more", pw="hidden"))
    machine.apply(pod("files", command=SLEEP, volumes=[
        {"name": "all", "configMap": {"name": "files"}},
        {"name": "mix", "projected": {"sources": [
            {"secret": {"name": "more"}}, {"serviceAccountToken": {"path": "token", "audience": "me"}},
            {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}},
        {"name": "tmp", "emptyDir": {}}],
        volumeMounts=[{"name": "all", "mountPath": "/cfg"}, {"name": "mix", "mountPath": "/mix"},
                      {"name": "all", "mountPath": "/one/file", "subPath": "a"}, {"name": "tmp", "mountPath": "/scratch"},
                      {"name": "tmp", "mountPath": "/part", "subPath": "deep/er"}]))
    found = machine.wait_ready("files")
    assert inside(machine, "files", "cat /cfg/a /cfg/b /mix/pw /mix/name /one/file") == "onetwohiddenfilesone"
    claims = json.loads(base64.urlsafe_b64decode(inside(machine, "files", "cut -d. -f2 /mix/token").strip() + "=="))
    assert claims["aud"] == ["me"] and claims["kubernetes.io"]["pod"]["name"] == "files"
    assert "Read-only" in inside(machine, "files", "touch /cfg/x 2>&1; true")
    assert inside(machine, "files", "echo x > /part/f; cat /scratch/deep/er/f") == "x\n"
    machine.delete("files")
    assert not (machine.data / "pods" / found["metadata"]["uid"]).exists()


def test_a_volume_that_cannot_be(machine):
    machine.apply(pod("host", command=SLEEP, volumes=[{"name": "h", "hostPath": {"path": "/etc"}}],
                      volumeMounts=[{"name": "h", "mountPath": "/h"}]))
    machine.wait(lambda: ("FailedMount", 'MountVolume.SetUp failed for volume "h" : hostPath is refused: a Pod sees nothing of this '
                          "machine's files but its image") in machine.events("host"), "the refusal")
    assert machine.status("host")["phase"] == "Pending" and waiting(machine, "host")[0] == "ContainerCreating"
    machine.delete("host")


def test_claims_outlive_pods(machine):
    machine.apply(claim("disk"))
    machine.wait(lambda: machine.get("disk", kind="persistentvolumeclaims")["status"].get("phase") == "Bound", "bound")
    with_disk = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}],
                 "volumeMounts": [{"name": "d", "mountPath": "/data"}]}
    machine.apply(pod("writer", command=["sh", "-c", "echo kept > /data/f"], restartPolicy="Never", **with_disk))
    machine.wait_phase("writer", "Succeeded")
    machine.delete("writer")
    uid = machine.get("disk", kind="persistentvolumeclaims")["metadata"]["uid"]
    here = machine.data / "claims" / "default" / f"disk.{uid}"
    assert (here / "f").read_text() == "kept\n"
    machine.apply(pod("reader", command=["sh", "-c", "cat /data/f; exec sleep 4722"], **with_disk))
    machine.wait_ready("reader")
    assert machine.kubectl("logs", "reader") == "kept\n"
    machine.kubectl("delete", "pvc", "disk", "--wait=false")
    assert inside(machine, "reader", "cat /data/f") == "kept\n"
    machine.delete("reader")
    machine.wait(lambda: machine.get("disk", kind="persistentvolumeclaims") is None and not here.exists(), "the claim gone")


def test_probes_decide(machine):
    ready = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1, "failureThreshold": 1}
    machine.apply(pod("probed", command=["sh", "-c", "cd /tmp && exec python3 -m http.server 8123"], readinessProbe=ready,
                      startupProbe={"httpGet": {"port": "web"}, "periodSeconds": 1, "failureThreshold": 60},
                      ports=[{"name": "web", "containerPort": 8123}],
                      livenessProbe={"tcpSocket": {"port": 8123}, "periodSeconds": 1}))

    def container():
        (found,) = (machine.status("probed") or {}).get("containerStatuses") or [{}]
        return found

    machine.wait(lambda: container().get("started"), "started")
    machine.wait(lambda: any(reason == "Unhealthy" and text.startswith("Readiness probe failed") for reason, text
                             in machine.events("probed")), "an Event")
    assert not container()["ready"]
    inside(machine, "probed", "touch /tmp/ready")
    machine.wait_ready("probed")
    inside(machine, "probed", "rm /tmp/ready")
    machine.wait(lambda: not container()["ready"], "not ready any more")
    assert container()["restartCount"] == 0
    machine.delete("probed")


def test_a_container_that_does_not_answer_is_restarted(machine):
    machine.apply(pod("dead", command=["sh", "-c", "test -e /data/once && exec sleep 4722; touch /data/once; exec sleep 4722"],
                      volumes=[{"name": "d", "emptyDir": {}}], volumeMounts=[{"name": "d", "mountPath": "/data"}],
                      livenessProbe={"httpGet": {"port": 9999, "path": "/x"}, "periodSeconds": 1, "failureThreshold": 1,
                                     "terminationGracePeriodSeconds": 1}))
    machine.wait(lambda: (machine.status("dead") or {}).get("containerStatuses", [{}])[0].get("restartCount", 0) >= 1, "a restart")
    told = machine.events("dead")
    assert ("Killing", "Container main failed liveness probe, will be restarted") in told
    assert any(reason == "Unhealthy" and text.startswith('Liveness probe failed: Get "http://127.') for reason, text in told)
    machine.delete("dead")


def test_who_it_runs_as(machine):
    machine.apply(pod("user", command=SLEEP, securityContext={"runAsUser": 1234, "readOnlyRootFilesystem": True,
                                                              "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}}))
    machine.wait_ready("user")
    assert inside(machine, "user", "id -u; touch /etc/x 2>/dev/null || echo refused") == "1234\nrefused\n"
    assert ("FieldNotServed", 'container "main": not served here, and left out: securityContext.capabilities.add') \
        in machine.events("user")
    machine.delete("user")
    machine.apply(pod("root", command=SLEEP, securityContext={"runAsNonRoot": True}))
    machine.wait(lambda: "runAsNonRoot and image will run as root" in waiting(machine, "root")[1], "the reason")
    machine.delete("root")


def test_its_groups(machine):
    """Root gives ids, others have one; then an Event says so (test_node_user)."""
    spec = pod("grouped", command=["sh", "-c", "id -G; stat -c %g /data; exec sleep 4722"], volumes=[{"name": "d", "emptyDir": {}}],
               volumeMounts=[{"name": "d", "mountPath": "/data"}])
    spec["spec"]["securityContext"] = {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 2000, "supplementalGroups": [3000, 4000]}
    machine.apply(spec)
    machine.wait_ready("grouped")
    machine.wait(lambda: machine.kubectl("logs", "grouped").splitlines() == ["1000 2000 3000 4000", "2000"], "its groups")
    assert inside(machine, "grouped", "id -G; touch /data/x && stat -c %g /data/x") == "1000 2000 3000 4000\n2000\n"
    machine.delete("grouped")


def test_out_of_memory(machine):
    """A limit of memory that this host enforces: the status says what killed it. Where it cannot, an Event said so."""
    machine.apply(pod("hungry", command=["python3", "-c", "x = bytearray(200 << 20); print(len(x))"], restartPolicy="Never",
                      resources={"limits": {"memory": "64Mi"}}))
    machine.wait(lambda: (machine.status("hungry") or {}).get("phase") in ("Failed", "Succeeded"), "its end")
    ended = machine.status("hungry")["containerStatuses"][0]["state"]["terminated"]
    if any(reason == "LimitsNotEnforced" for reason, _ in machine.events("hungry")):
        assert ended["reason"] == "Completed"
    else:
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    machine.delete("hungry")


def test_fields_that_are_not_served(machine):
    """None is left out in silence; served_test.c goes through all of them."""
    asking = pod("asking", command=SLEEP, hostNetwork=True, runtimeClassName="gvisor", nodeSelector={"disk": "fast"},
                 ports=[{"containerPort": 7000, "protocol": "UDP"}])
    asking["spec"]["containers"][0]["tty"] = True
    machine.apply(asking)
    machine.wait_ready("asking")
    told = {message for reason, message in machine.events("asking") if reason == "FieldNotServed"}
    assert any({"hostNetwork", "runtimeClassName", "nodeSelector"} <= set(t.split(": ")[-1].split(", ")) for t in told), told
    assert any(t.startswith('container "main": not served here') and "ports.protocol UDP" in t and "tty" in t for t in told), told
    machine.delete("asking")


def test_the_table_of_images_can_be_edited(machine):
    machine.apply(pod("mine", image="example.com/team/tool:2"))
    machine.wait(lambda: waiting(machine, "mine")[0] in ("ErrImagePull", "ImagePullBackOff"), "no such image")
    assert "images.yaml" in waiting(machine, "mine")[1]
    (machine.data / "images.yaml").write_text(
        "images:\n- {names: ['example.com/team/*'], root: host, command: [sh, -c, 'echo $FROM; exec sleep 4722'], env: {FROM: table}}\n")
    machine.wait_ready("mine")
    assert machine.kubectl("logs", "mine") == "table\n"
    machine.delete("mine")


def test_a_pod_may_have_the_token_of_its_account(machine):
    machine.apply(pod("account", command=SLEEP, automountServiceAccountToken=True))
    machine.wait_ready("account")
    there = "/var/run/secrets/kubernetes.io/serviceaccount"
    assert inside(machine, "account", f"cat {there}/namespace; grep -c BEGIN {there}/ca.crt") == "default1\n"
    assert inside(machine, "account", f"tr -cd . < {there}/token") == ".."
    machine.delete("account")


def test_volumes_are_tended(machine):
    """Files follow their ConfigMap, and a volume over its limit ends its Pod. Both at once: a turn takes ten seconds."""
    machine.apply(config_map("moving", k="old"))
    machine.apply(pod("follows", command=SLEEP, volumes=[{"name": "c", "configMap": {"name": "moving"}}],
                      volumeMounts=[{"name": "c", "mountPath": "/c"}]))
    machine.apply(pod("greedy", command=["sh", "-c", "head -c 3000000 /dev/zero > /big/f; exec sleep 4722"],
                      volumes=[{"name": "big", "emptyDir": {"sizeLimit": "1Mi"}}], volumeMounts=[{"name": "big", "mountPath": "/big"}]))
    machine.wait_ready("follows")
    machine.apply(config_map("moving", k="new"))
    machine.wait(lambda: inside(machine, "follows", "cat /c/k") == "new", "the new file")
    status = machine.wait_phase("greedy", "Failed")["status"]
    assert (status["reason"], status["message"]) == ("Evicted", 'Usage of EmptyDir volume "big" exceeds the limit "1Mi". ')
    machine.delete("greedy")
    machine.delete("follows")


def test_a_probe_may_be_encrypted(machine):
    script = """cd /tmp && openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -subj /CN=any -days 1 2>/dev/null
exec python3 -c "
import http.server, ssl
s = http.server.HTTPServer(('127.0.0.1', 8443), http.server.SimpleHTTPRequestHandler)
c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
c.load_cert_chain('c', 'k')
s.socket = c.wrap_socket(s.socket, server_side=True)
s.serve_forever()" """
    machine.apply(pod("tls", command=["sh", "-c", script], readinessProbe={"httpGet": {"port": 8443, "scheme": "HTTPS"},
                                                                           "periodSeconds": 1}))
    machine.wait_ready("tls")
    assert "GET / HTTP/1.1" in machine.kubectl("logs", "tls")
    machine.delete("tls")


def test_a_busy_sandbox_stays_ready(machine):
    """A command that takes long, a probe every second: nothing of it is noticed."""
    machine.apply(pod("busy", image="registry.example/python-runtime-sandbox:v1",
                      readinessProbe={"httpGet": {"port": 8888, "path": "/"}, "periodSeconds": 1, "failureThreshold": 1},
                      livenessProbe={"tcpSocket": {"port": 8888}, "periodSeconds": 1, "failureThreshold": 1}))
    since = machine.wait_ready("busy")
    ask = ("import urllib.request as u; print(u.urlopen(u.Request('http://127.0.0.1:8888/execute', "
           "b'{\"command\": \"sleep 3\"}', {'content-type': 'application/json'})).status)")
    assert machine.kubectl("exec", "busy", "--", "python3", "-c", ask) == "200\n"
    now = machine.get("busy")
    assert now["status"]["conditions"] == since["status"]["conditions"]
    assert now["status"]["containerStatuses"][0]["restartCount"] == 0
    assert not [reason for reason, _ in machine.events("busy") if reason == "Unhealthy"]
    machine.delete("busy")


def test_claims_that_go_while_nobody_watches(machine):
    machine.apply(claim("left"), claim("others"))
    machine.apply(pod("user-of-both", command=["true"], restartPolicy="Never",
                      volumes=[{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in ("left", "others")]))
    machine.wait_phase("user-of-both", "Succeeded")
    machine.delete("user-of-both")
    here = {n: machine.data / "claims" / "default" / f"{n}.{machine.get(n, kind='persistentvolumeclaims')['metadata']['uid']}"
            for n in ("left", "others")}
    assert all(h.is_dir() for h in here.values())
    machine.node.kill()
    machine.kubectl("delete", "pvc", "left")
    machine.start_node()
    machine.wait(lambda: not here["left"].exists(), "the directory gone")
    assert here["others"].is_dir()
    machine.node.kill()
    machine.kubectl("delete", "pvc", "others")
    (machine.data / "claims" / ".server").write_text("of another server")
    machine.start_node()
    machine.wait(lambda: "holds claims of another API server" in machine.node.log(), "the refusal")
    assert here["others"].is_dir()

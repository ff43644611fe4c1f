"""status, scale, token, eviction, binding: the paths below an object."""

from things import ACCOUNTS, CM, DEPLOYMENTS, PODS, POOLS, SANDBOXES, TEMPLATES, condition, deployment, pod, pool, sandbox, template


def test_status(t):
    made = t.ask("POST", SANDBOXES, {**sandbox("s"), "status": {"service": "x"}})
    t.note("status is dropped at create", made.json.get("status"))
    body = {**made.json, "spec": {**made.json["spec"], "operatingMode": "Suspended"}, "status": {"service": "svc", "conditions": [condition("Ready")]}}
    t.put("status alone changes", SANDBOXES + "/s/status", body)
    t.put("with an old version", SANDBOXES + "/s/status", body)
    t.get("read by its path", SANDBOXES + "/s/status", only=lambda o: [o["kind"], o["status"]])
    t.patch("merge patch, no version", SANDBOXES + "/s/status", "merge", {"status": {"podIPs": ["127.1.2.3"], "nodeName": "n"}}, only=lambda o: [o["status"], o["metadata"]["generation"]])
    t.patch("labels cannot be changed here", SANDBOXES + "/s/status", "merge", {"metadata": {"labels": {"a": "b"}}}, only=lambda o: o["metadata"].get("labels"))
    t.patch("invalid", SANDBOXES + "/s/status", "merge", {"status": {"conditions": [{"type": "Ready", "status": "Perhaps"}]}})
    t.patch("of the wrong type", SANDBOXES + "/s/status", "merge", {"status": {"podIPs": "127.0.0.1"}})
    t.patch("of one that is not there", SANDBOXES + "/none/status", "merge", {"status": {}})
    t.get("templates have none", TEMPLATES + "/t/status")
    t.get("config maps have none", CM + "/c/status")
    t.delete("cannot be deleted", SANDBOXES + "/s/status")
    t.ask("POST", PODS, pod("p"))
    ready = {"status": {"phase": "Running", "podIP": "127.1.2.3", "podIPs": [{"ip": "127.1.2.3"}], "conditions": [{"type": "Ready", "status": "True"}]}}
    t.patch("a pod's", PODS + "/p/status", "strategic", ready, only=lambda o: [o["status"]["phase"], o["status"]["podIPs"], [[c["type"], c["status"]] for c in o["status"]["conditions"]]])
    more = {"status": {"conditions": [{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "False"}]}}
    t.patch("conditions merge by type", PODS + "/p/status", "strategic", more, only=lambda o: sorted([c["type"], c["status"]] for c in o["status"]["conditions"]))
    t.patch("a pod's spec cannot be changed here", PODS + "/p/status", "merge", {"spec": {"nodeName": "n"}}, only=lambda o: o["spec"].get("nodeName"))


def test_generation(t):
    made = t.post("starts at one", POOLS, pool("p", replicas=1), only=lambda o: o["metadata"]["generation"])
    generation = lambda o: o["metadata"]["generation"]  # noqa: E731
    t.patch("labels leave it", POOLS + "/p", "merge", {"metadata": {"labels": {"a": "b"}}}, only=generation)
    t.patch("spec moves it", POOLS + "/p", "merge", {"spec": {"replicas": 2}}, only=generation)
    t.patch("status leaves it", POOLS + "/p/status", "merge", {"status": {"replicas": 2}}, only=generation)
    t.patch("it cannot be set", POOLS + "/p", "merge", {"metadata": {"generation": 77}}, only=generation)
    t.put("unchanged spec leaves it", POOLS + "/p", t.ask("GET", POOLS + "/p").json, only=generation)
    t.note("versions are texts", isinstance(made.rv, str))
    t.ask("POST", DEPLOYMENTS, deployment("d", 1))
    t.patch("a deployment", DEPLOYMENTS + "/d", "merge", {"spec": {"replicas": 2}}, only=generation)
    t.ask("POST", TEMPLATES, template("t"))
    t.patch("a template", TEMPLATES + "/t", "merge", {"spec": {"service": True}}, only=generation)


def test_scale(t):
    t.ask("POST", POOLS, pool("p", replicas=2))
    t.ask("PATCH", POOLS + "/p/status", {"status": {"replicas": 1, "selector": "a=b"}}, headers={"content-type": "application/merge-patch+json"})
    scale = t.get("get", POOLS + "/p/scale").json
    t.put("put", POOLS + "/p/scale", {**scale, "spec": {"replicas": 5}})
    t.put("put with an old version", POOLS + "/p/scale", {**scale, "spec": {"replicas": 6}})
    t.patch("merge patch", POOLS + "/p/scale", "merge", {"spec": {"replicas": 3}})
    t.get("it is in the spec", POOLS + "/p", only=lambda o: [o["spec"]["replicas"], o["metadata"]["generation"]])
    t.patch("below zero", POOLS + "/p/scale", "merge", {"spec": {"replicas": -1}})
    t.put("another name", POOLS + "/p/scale", {"metadata": {"name": "q"}, "spec": {"replicas": 1}})
    t.get("of one that is not there", POOLS + "/none/scale")
    t.get("sandboxes have none", SANDBOXES + "/s/scale")
    t.ask("POST", DEPLOYMENTS, deployment("d", 2))
    t.get("a deployment's", DEPLOYMENTS + "/d/scale")
    t.patch("a deployment's, patched", DEPLOYMENTS + "/d/scale", "merge", {"spec": {"replicas": 0}})
    t.ask("POST", POOLS, {**pool("bare")})
    t.get("without a status", POOLS + "/bare/scale")
    t.put("a text for a number", DEPLOYMENTS + "/d/scale", {"metadata": {"name": "d"}, "spec": {"replicas": "5"}})
    t.put("a list", DEPLOYMENTS + "/d/scale", [])
    t.put("spec is a text", DEPLOYMENTS + "/d/scale", {"metadata": {"name": "d"}, "spec": "five"})
    t.patch("a text for a number, patched", DEPLOYMENTS + "/d/scale", "merge", {"spec": {"replicas": "5"}})
    t.patch("a text for a number, a pool's", POOLS + "/p/scale", "merge", {"spec": {"replicas": "5"}})
    t.get("nothing of it was done", DEPLOYMENTS + "/d", only=lambda o: o["spec"]["replicas"])
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    t.get("as a table", POOLS + "/p/scale", headers=table)
    t.get("a deployment's as a table", DEPLOYMENTS + "/d/scale", headers=table, includeObject="None", only=lambda o: o["rows"])
    t.patch("patched, as a table", POOLS + "/p/scale", "merge", {"spec": {"replicas": 4}}, headers=table)
    t.get("its metadata alone", POOLS + "/p/scale", headers={"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"})


def test_token(t):
    t.ask("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    made = t.post("create", ACCOUNTS + "/robot/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    t.post("with an end", ACCOUNTS + "/robot/token", {"spec": {"expirationSeconds": 600}})
    t.post("too short", ACCOUNTS + "/robot/token", {"spec": {"expirationSeconds": 1}})
    t.post("of an account that is not there", ACCOUNTS + "/none/token", {"spec": {}})
    t.get("cannot be read", ACCOUNTS + "/robot/token")
    who = t.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=made["status"]["token"])
    info = who["status"]["userInfo"]
    t.note("who it is", [info["username"], sorted(info["groups"])])
    review = t.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": made["status"]["token"]}})
    t.note("a review of it", [review.status, review["status"]["authenticated"], review["status"]["user"]["username"], review["status"]["audiences"]])
    t.post("a review of rubbish", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "rubbish"}})
    t.post("a review of nothing", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {}})
    t.ask("DELETE", ACCOUNTS + "/robot")
    t.wait("the token ends with its account", lambda: t.ask("GET", CM, token=made["status"]["token"]).status == 401)


def test_token_bound(t):
    """To a Pod, a Secret, a Node or nothing; and where the object is another by now."""
    secrets, nodes, reviews = PODS.replace("pods", "secrets"), "/api/v1/nodes", "/apis/authentication.k8s.io/v1/tokenreviews"
    node = f"node-{t.ns}"
    other = "11111111-2222-3333-4444-555555555555"
    for name in ("robot", "default"):
        t.ask("POST", ACCOUNTS, {"metadata": {"name": name}})
    spec = pod("p")["spec"]
    objects = {"Pod": (PODS, "p", {**pod("p"), "spec": {**spec, "serviceAccountName": "robot"}}),
               "Secret": (secrets, "s", {"metadata": {"name": "s"}, "stringData": {"a": "b"}}),
               "Node": (nodes, node, {"metadata": {"name": node}})}
    for kind, (path, name, body) in objects.items():
        made = t.ask("POST", path, body)
        ref = {"apiVersion": "v1", "kind": kind, "name": name}

        def answer(label, change, account="robot"):
            got = t.ask("POST", f"{ACCOUNTS}/{account}/token", {"spec": {"boundObjectRef": {**ref, **change}}})
            message = got.json.get("message", "").replace(node, "NODE")
            t.note(f"{kind}: {label}", [got.status, got.json.get("reason"), message, got.json.get("details", {}).get("kind")])
            return got

        answer("another uid", {"uid": other})
        answer("one that is not there", {"name": "none"})
        answer("its version left out", {"apiVersion": ""})
        answer("of another group", {"apiVersion": "apps/v1"})
        answer("another account's", {}, account="default")
        tokens = [answer("without a uid", {})["status"]["token"], answer("with its uid", {"uid": made["metadata"]["uid"]})["status"]["token"]]
        t.note(f"{kind}: they are good", [t.ask("GET", CM, token=token).status for token in tokens])
        t.ask("DELETE", f"{path}/{name}", gracePeriodSeconds="0")
        t.wait_gone(f"{path}/{name}")
        t.wait(f"{kind}: and end with it", lambda: [t.ask("GET", CM, token=token).status for token in tokens] == [401, 401])
        t.ask("POST", path, body)
        t.note(f"{kind}: also beside another of its name", [t.ask("GET", CM, token=token).status for token in tokens])
        t.note(f"{kind}: in a review", [t.ask("POST", reviews, {"spec": {"token": token}})["status"].get("authenticated") for token in tokens])
        t.ask("DELETE", f"{path}/{name}", gracePeriodSeconds="0")
    for ref in ({"apiVersion": "v1", "kind": "ConfigMap", "name": "p"}, {"kind": "pod", "name": "p"}, {"name": "p"}, {"apiVersion": "v1", "kind": "Pod"},
                {}, {"apiVersion": "v2", "kind": "Pod", "name": "p"}):
        t.post(f"bound to {ref}", ACCOUNTS + "/robot/token", {"spec": {"boundObjectRef": ref}}, only=lambda o: [o.get("reason"), o.get("message")])


def test_pods(t):
    t.ask("POST", PODS, pod("p"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    t.post("evict under another name", PODS + "/p/eviction", {**eviction, "metadata": {"name": "q"}})
    t.post("evict with a list", PODS + "/p/eviction", [])
    t.post("evict with a text for options", PODS + "/p/eviction", {**eviction, "deleteOptions": "now"})
    t.post("evict another", PODS + "/p/eviction", {**eviction, "deleteOptions": {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}})
    t.post("evict for show", PODS + "/p/eviction", {**eviction, "deleteOptions": {"dryRun": ["All"]}})
    t.get("it is still there", PODS + "/p", only=lambda o: o["kind"])
    t.post("evict", PODS + "/p/eviction", eviction)
    t.wait_gone(PODS + "/p")
    t.post("evict one that is not there", PODS + "/p/eviction", eviction)
    t.ask("POST", PODS, pod("b"))
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "b"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"}}
    t.post("bind", PODS + "/b/binding", binding)
    t.get("bound", PODS + "/b", only=lambda o: [o["spec"]["nodeName"], [[c["type"], c["status"]] for c in o["status"]["conditions"]]])
    t.post("bind twice", PODS + "/b/binding", binding)
    t.delete("a bound pod has its grace", PODS + "/b", only=lambda o: o["metadata"]["deletionGracePeriodSeconds"])
    t.get("and is still there", PODS + "/b", only=lambda o: "deletionTimestamp" in o["metadata"])
    t.delete("until it is forced", PODS + "/b", gracePeriodSeconds="0", only=lambda o: o["kind"])
    t.get("gone", PODS + "/b")
    t.get("a log of one that is not there", PODS + "/none/log")
    t.get("nothing of that name", PODS + "/b/nothing")


def test_streams(t):
    """What is said before a kubelet would be asked: no Pod here has a node."""
    two = {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}], "initContainers": [{"name": "first", "image": "x"}]}
    t.ask("POST", PODS, pod("p"))
    t.ask("POST", PODS, pod("two", spec=two))
    t.get("a log of a pod without a node", PODS + "/p/log")
    t.get("a log that would be followed", PODS + "/p/log", follow="true", tailLines="5", timestamps="1")
    t.get("a log of no container", PODS + "/two/log")
    t.get("a log of a container", PODS + "/two/log", container="first")
    t.get("a log of another container", PODS + "/two/log", container="c")
    t.get("a log, but fewer lines than none", PODS + "/p/log", tailLines="-1")
    t.get("a log, but nothing of it", PODS + "/p/log", limitBytes="0")
    t.get("a log since now", PODS + "/p/log", sinceSeconds="0")
    t.get("a log since two moments", PODS + "/p/log", sinceSeconds="1", sinceTime="2026-01-02T03:04:05Z")
    t.get("a log, all wrong", PODS + "/none/log", sinceSeconds="-1", tailLines="-2", limitBytes="-3")
    t.get("a log since yesterday", PODS + "/p/log", sinceTime="yesterday")
    t.get("a log of many lines", PODS + "/p/log", tailLines="many")
    t.post("a log is not made", PODS + "/p/log", {})
    upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for sub, query in (("exec", {"command": "true", "stdout": "1"}), ("attach", {"stdout": "1"}), ("portforward", {"ports": "80"})):
        t.get(f"{sub} in a pod without a node", PODS + f"/p/{sub}", headers=upgrade, **query)
        t.post(f"{sub} by POST", PODS + f"/p/{sub}", headers={"connection": "Upgrade", "upgrade": "SPDY/3.1"}, **query)
        t.get(f"{sub} in one that is not there", PODS + f"/none/{sub}", headers=upgrade, **query)
        t.get(f"{sub} in no container", PODS + f"/two/{sub}", headers=upgrade, **query)
        t.get(f"{sub} in another container", PODS + f"/two/{sub}", headers=upgrade, container="c", **query)
        t.put(f"{sub} is not changed", PODS + f"/p/{sub}", {}, headers=upgrade)

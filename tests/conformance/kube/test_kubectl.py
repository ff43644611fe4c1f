"""kubectl 1.36 (and Debian's 1.20), unmodified: what it prints against the real server it must print against ours."""

import json
import shutil
import stat

import pytest
import yaml

from conftest import Kubectl, kubectl_of
from lib.controlplane import write_kubeconfig
from things import AGENTS, CM, DEPLOYMENTS, EXTENSIONS, POOLS, SANDBOXES, claim, condition, config_map, deployment, owner, pool, sandbox, template, wait_root

MERGE = {"content-type": "application/merge-patch+json"}


def text(*objects):
    return yaml.safe_dump_all(objects)


def test_apply(t, k):
    box = sandbox("box", {"labels": {"team": "a"}})
    k("creates", "apply -f -", stdin=text(box, config_map("cm", {"k": "v"})))
    k("again", "apply -f -", stdin=text(box))
    box["spec"]["operatingMode"] = "Suspended"
    k("changes", "apply -f -", stdin=text(box))
    k("the change", "get sandbox box -o jsonpath={.spec.operatingMode}/{.metadata.generation}")
    k("says what would change", "apply -f - --dry-run=server", stdin=text(pool("later")))
    k("dry run of the client", "apply -f - --dry-run=client", stdin=text(pool("later")))
    k("nothing was made", "get swp")
    del box["metadata"]["labels"]
    k("removes what is no longer there", "apply -f -", stdin=text(box))
    k("labels are gone", "get sandbox box --show-labels")
    k("core kinds merge strategically", "apply -f -", stdin=text(deployment("d", 1)))
    k("and again", "apply -f -", stdin=text(deployment("d", 2, "other")))
    k("image", "get deployment d -o jsonpath={.spec.replicas},{.spec.template.spec.containers[*].image}")
    k("refused by the schema", "apply -f -", stdin=text(sandbox("bad", operatingMode="Sleeping")))
    k("refused for an unknown field", "apply -f -", stdin=text(sandbox("bad", colour="red")))
    k("warned of an unknown field", "apply --validate=warn -f -", stdin=text(sandbox("warned", colour="red")))
    k("not looked at", "apply --validate=ignore -f -", stdin=text(sandbox("ignored", colour="red")))
    k("not an object", "apply -f -", stdin="hello: world")
    k("prune by label", "apply -f - --prune -l team=b --prune-allowlist=agents.x-k8s.io/v1beta1/Sandbox", stdin=text(sandbox("keep", {"labels": {"team": "b"}})))
    k("delete what a file names", "delete -f -", stdin=text(box, config_map("cm")))


def test_server_side(t, k):
    k("creates", "apply --server-side -f -", stdin=text(sandbox("box"), config_map("cm", {"k": "v"})))
    k("again", "apply --server-side -f -", stdin=text(sandbox("box")))
    k("another manager", "apply --server-side --field-manager=other -f -", stdin=text(config_map("cm", {"k": "w"})))
    k("by force", "apply --server-side --field-manager=other --force-conflicts -f -", stdin=text(config_map("cm", {"k": "w"})))
    k("managers", "get cm cm -o jsonpath={.metadata.managedFields[*].manager} --show-managed-fields")
    k("from client side to server side", "apply -f -", stdin=text(config_map("moved", {"a": "1"})))
    k("moved", "apply --server-side -f -", stdin=text(config_map("moved", {"b": "2"})))
    k("what moved", "get cm moved -o jsonpath={.data}")
    k("dry run", "apply --server-side --dry-run=server -f -", stdin=text(sandbox("dry")))
    k("diff", "diff --server-side -f -", stdin=text(sandbox("box")))


def test_create(t, k):
    k("config map", "create configmap c --from-literal=a=1 --from-literal=b=2")
    k("its data", "get cm c -o jsonpath={.data}")
    k("again", "create configmap c")
    other = t.ns + "-k"
    t.alias(other, "other")
    k("namespace", f"create ns {other}")
    k("account", "create sa robot")
    token = k("token", "create token robot --duration=1h").strip()
    t.steps[-1]["out"] = ["a token" if token.count(".") == 2 else token]
    k("token of nobody", "create token nobody")
    k("secret", "create secret generic s --from-literal=k=v")
    k("secret's data", "get secret s -o jsonpath={.data.k}")
    k("role", "create role reader --verb=get,list --resource=pods,sandboxes.agents.x-k8s.io")
    k("binding", "create rolebinding reader --role=reader --serviceaccount={}:robot".format(t.ns))
    k("role's rules", "get role reader -o jsonpath={.rules}")
    k("deployment", "create deployment d --image=nginx")
    k("from a file", "create -f -", stdin=text(claim("cl")))
    k("from a file without a name", "create -f -", stdin=text({**claim("x"), "metadata": {"generateName": "gen-"}}))
    t.steps[-1]["out"] = [line[:len("sandboxclaim.extensions.agents.x-k8s.io/gen-")] for line in t.steps[-1]["out"]]
    k("dry run", "create configmap dry --dry-run=server -o name")
    k("the namespace goes", f"delete ns {other} --wait=false")
    k("raw", "create --raw /api/v1/namespaces/{}/configmaps -f -".format(t.ns), stdin=json.dumps(config_map("raw")))
    t.steps[-1]["out"] = [json.loads("".join(t.steps[-1]["out"]))["kind"]]


def fill(t):
    for o, path in ((sandbox("one", {"labels": {"n": "1"}}), SANDBOXES), (sandbox("two", {"labels": {"n": "2"}}), SANDBOXES), (pool("p", replicas=2), POOLS),
                    (config_map("a", {"k": "v"}), CM), (config_map("b", labels={"x": "y"}), CM), (deployment("d", 3), DEPLOYMENTS)):
        assert t.ask("POST", path, o).status == 201
    status = {"conditions": [condition("Ready", reason="DependenciesReady")], "podIPs": ["127.1.2.3"], "service": "one"}
    t.ask("PATCH", SANDBOXES + "/one/status", {"status": status}, headers=MERGE)
    t.ask("PATCH", POOLS + "/p/status", {"status": {"replicas": 2, "readyReplicas": 1, "selector": "a=b"}}, headers=MERGE)


def test_get(t, k):
    fill(t)
    wait_root(t)
    k("plain", "get sandboxes")
    k("short names", "get sandbox,swp")
    k("by full name", "get sandboxes.v1beta1.agents.x-k8s.io one")
    k("wide", "get sandbox -o wide")
    k("yaml", "get sandbox one -o yaml")
    k("json", "get cm a -o json")
    k("names", "get sandbox,cm -o name", sort=True)
    k("jsonpath", "get sandbox -o 'jsonpath={range .items[*]}{.metadata.name}={.spec.operatingMode};{end}'")
    k("custom columns", "get sandbox -o custom-columns=NAME:.metadata.name,IP:.status.podIPs[0]")
    k("go template", "get swp p -o go-template={{.spec.replicas}}")
    k("labels", "get sandbox -l n=1")
    k("label columns", "get sandbox -L n")
    k("fields", "get sandbox --field-selector metadata.name=two")
    k("an unknown field", "get sandbox --field-selector spec.x=two")
    k("sorted", "get sandbox --sort-by=.metadata.labels.n -o name")
    k("in chunks", "get sandbox --chunk-size=1 -o name")
    k("missing", "get sandbox none")
    k("missing is fine", "get sandbox none --ignore-not-found")
    k("none", "get sandboxclaims")
    k("unknown kind", "get nothings")
    k("several", "get cm/a swp/p", sort=True)
    k("deployment", "get deployment")
    k("no headers", "get swp --no-headers")
    k("raw", "get --raw /readyz")
    k("status by its path", "get sandbox one --subresource=status -o jsonpath={.status.service}")
    k("scale by its path", "get swp p --subresource=scale")
    k("namespace", "get ns default -o jsonpath={.status.phase}")
    k("all", "get all", sort=True)


def test_describe(t, k):
    fill(t)
    k("sandbox", "describe sandbox one")
    k("pool", "describe swp p")
    k("config map", "describe cm a")
    t.ask("POST", "/api/v1/namespaces/{ns}/events", {
        "metadata": {"name": "one.1"}, "involvedObject": {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "name": "one", "namespace": t.ns},
        "reason": "Started", "message": "it started", "type": "Normal", "count": 1, "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z", "source": {"component": "me"}})
    k("events", "events")
    t.steps[-1]["out"] = [line.split("  ", 1)[1] for line in t.steps[-1]["out"]]
    k("events of one", "events --for sandbox/one -o jsonpath={.items[*].reason}")
    k("events as objects", "get events -o jsonpath={.items[*].message}")
    k("namespace", f"describe ns {t.ns}")
    k("missing", "describe sandbox none")


def test_quota(t, k):
    k("create", "create quota q --hard=secrets=3,limits.cpu=2,requests.memory=1Gi")
    t.wait("it says what is used", lambda: (t.ask("GET", "/api/v1/namespaces/{ns}/resourcequotas/q").json.get("status") or {}).get("used"))
    k("a secret", "create secret generic s --from-literal=a=b")
    t.wait("it is counted", lambda: t.ask("GET", "/api/v1/namespaces/{ns}/resourcequotas/q").json["status"]["used"]["secrets"] == "1")
    k("get", "get quota")
    k("describe", "describe quota q")
    k("a Pod that does not say", "run p --image=x")
    k("with scopes", "create quota s --hard=pods=1 --scopes=BestEffort")
    t.wait("it has one", lambda: (t.ask("GET", "/api/v1/namespaces/{ns}/resourcequotas/s").json.get("status") or {}).get("used"))
    k("its scopes", "describe quota s")
    k("delete", "delete quota q s")


def test_change(t, k, tmp_path):
    fill(t)
    k("label", "label sandbox one colour=red")
    k("label twice", "label sandbox one colour=blue")
    k("label over", "label sandbox one colour=blue --overwrite")
    k("label away", "label sandbox one colour-")
    k("annotate", "annotate sandbox --all note=hello")
    k("annotation", "get sandbox two -o jsonpath={.metadata.annotations.note}")
    k("scale a pool", "scale swp p --replicas=5")
    k("scale from", "scale swp p --current-replicas=5 --replicas=4")
    k("scale from what is not so", "scale swp p --current-replicas=1 --replicas=2")
    k("scale a deployment", "scale deployment d --replicas=0")
    k("scaled", "get swp/p deployment/d -o jsonpath={.items[*].spec.replicas}")
    k("scale what has no scale", "scale sandbox one --replicas=0")
    k("merge patch", "patch sandbox one --type=merge -p '{\"spec\":{\"operatingMode\":\"Suspended\"}}'")
    k("the same patch", "patch sandbox one --type=merge -p '{\"spec\":{\"operatingMode\":\"Suspended\"}}'")
    k("json patch", "patch swp p --type=json -p '[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":7}]'")
    k("strategic patch", "patch deployment d -p '{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"new\"}]}}}}'")
    k("strategic patch of ours", "patch sandbox one -p '{\"spec\":{}}'")
    k("patch of the status", "patch sandbox one --subresource=status --type=merge -p '{\"status\":{\"nodeName\":\"n\"}}'")
    k("invalid patch", "patch swp p --type=merge -p '{\"spec\":{\"replicas\":-1}}'")
    k("set image", "set image deployment/d main=newer")
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/operatingMode: Suspended/operatingMode: Running/' \"$1\"\n")
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    k("edit", "edit sandbox one", env={"KUBE_EDITOR": str(editor)})
    k("edit of nothing", "edit sandbox one", env={"KUBE_EDITOR": "true"})
    k("edited", "get sandbox one -o jsonpath={.spec.operatingMode}")
    now = t.ask("GET", CM + "/a").json
    k("replace", "replace -f -", stdin=text({**now, "data": {"k": "replaced"}}))
    k("replace with an old version", "replace -f -", stdin=text({**now, "data": {"k": "again"}}))
    k("replace by force", "replace --force -f -", stdin=text(config_map("a", {"k": "new"})))
    k("diff finds nothing", "diff -f -", stdin=text(config_map("a", {"k": "new"})))
    k("diff finds something", "diff -f -", stdin=text(config_map("a", {"k": "other"})))
    t.steps[-1]["out"] = [line for line in t.steps[-1]["out"] if line.startswith(("-  ", "+  "))]


def test_delete(t, k):
    fill(t)
    k("one", "delete sandbox one")
    k("again", "delete sandbox one")
    k("missing is fine", "delete sandbox one --ignore-not-found")
    k("by label", "delete sandbox -l n=2")
    k("all of a kind", "delete swp --all")
    for how in ("background", "foreground", "orphan"):
        parent = t.ask("POST", SANDBOXES, sandbox(how))
        t.ask("POST", CM, config_map(f"of-{how}", ownerReferences=[owner(parent, blockOwnerDeletion=True)]))
        k(f"cascade {how}", f"delete sandbox {how} --cascade={how}")
    for how in ("background", "foreground"):
        t.wait_gone(CM + f"/of-{how}")
    k("the orphan stays", "get cm of-orphan -o jsonpath={.metadata.ownerReferences}")
    k("now", "delete cm of-orphan --now")
    k("dry run", "delete cm a --dry-run=server")
    t.ask("POST", CM, config_map("held", finalizers=["example.com/hold"]))
    k("without waiting", "delete cm held --wait=false")
    k("waits in vain", "delete cm held --timeout=1s")
    t.ask("PATCH", CM + "/held", {"metadata": {"finalizers": None}}, headers=MERGE)
    k("wait until gone", "wait --for=delete cm/held --timeout=10s")
    k("raw", f"delete --raw /api/v1/namespaces/{t.ns}/configmaps/b")
    t.steps[-1]["out"] = [json.loads("".join(t.steps[-1]["out"]))["status"]]


def test_wait(t, k):
    fill(t)
    k("condition that holds", "wait sandbox/one --for=condition=Ready --timeout=5s")
    k("condition that does not", "wait sandbox/two --for=condition=Ready --timeout=1s")
    k("json path", "wait swp/p --for=jsonpath={.status.readyReplicas}=1 --timeout=5s")
    k("create", "wait sandbox/one --for=create --timeout=5s")
    k("missing", "wait sandbox/none --for=condition=Ready --timeout=1s")
    tool = kubectl_of("kubectl", t.api, t.ns)
    waiting = tool.start("wait", "sandbox/two", "--for=condition=Ready", "--timeout=30s")
    t.ask("PATCH", SANDBOXES + "/two/status", {"status": {"conditions": [condition("Ready", "False")]}}, headers=MERGE)
    t.ask("PATCH", SANDBOXES + "/two/status", {"status": {"conditions": [condition("Ready", "True")]}}, headers=MERGE)
    out, err = waiting.communicate(timeout=40)
    t.note("condition that comes", [waiting.returncode, out, err])


def test_watch(t):
    tool = kubectl_of("kubectl", t.api, t.ns)
    t.ask("POST", SANDBOXES, sandbox("first"))
    watching = tool.start("get", "sandboxes", "-w", "-o", "name")
    try:
        seen = [watching.stdout.readline().strip()]
        t.ask("POST", SANDBOXES, sandbox("second"))
        seen.append(watching.stdout.readline().strip())
        t.ask("DELETE", SANDBOXES + "/second")
        seen.append(watching.stdout.readline().strip())
        t.note("names", seen)
    finally:
        watching.kill()
        watching.communicate()
    watching = tool.start("get", "sandboxes", "-w", "--output-watch-events", "--no-headers")
    try:
        first = watching.stdout.readline().split()[:2]
        t.ask("PATCH", SANDBOXES + "/first/status", {"status": {"conditions": [condition("Ready")]}}, headers=MERGE)
        second = watching.stdout.readline().split()[:4]
        t.ask("DELETE", SANDBOXES + "/first")
        third = watching.stdout.readline().split()[:4]
        t.note("tables of changes", [first, second, third])
    finally:
        watching.kill()
        watching.communicate()


OURS = ("sandbox", "configmaps", "pods ", "namespaces", "leases", "events.k8s", "deployments")


def test_discovery(t, k):
    for step, group in (("our kinds", "agents.x-k8s.io"), ("our other kinds", "extensions.agents.x-k8s.io")):
        k(step, f"api-resources --api-group={group} -o wide", sort=True)
        t.steps[-1]["out"] = [" ".join(",".join(sorted(word.split(","))) for word in line.split()) for line in t.steps[-1]["out"]]
    k("core kinds", "api-resources", sort=True)
    t.steps[-1]["out"] = [line for line in t.steps[-1]["out"] if line.startswith(OURS)]
    k("versions", "api-versions", sort=True)
    shared = ("v1", "apps/v1", AGENTS, EXTENSIONS, "coordination.k8s.io/v1")
    t.steps[-1]["out"] = [line for line in t.steps[-1]["out"] if line in shared]
    k("explain", "explain sandbox")
    k("explain a field", "explain sandbox.spec.operatingMode")
    k("explain all", "explain swp --recursive")
    k("explain what is not", "explain sandbox.spec.nothing")
    k("explain core", "explain configmap.data")
    t.steps[-1]["out"] = [line for line in t.steps[-1]["out"][:4]]
    k("version", "version -o json")
    t.steps[-1]["out"] = sorted(json.loads("".join(t.steps[-1]["out"])))
    k("cluster info", "cluster-info")
    t.steps[-1].pop("out")


def test_auth(t, k):
    k("may everything", "auth can-i '*' '*'")
    k("may create", "auth can-i create sandboxes.agents.x-k8s.io")
    k("another may not", "auth can-i create pods --as=system:serviceaccount:{}:default".format(t.ns))
    k("a path", "auth can-i get /healthz")
    k("as another", "get pods --as=system:serviceaccount:{}:default".format(t.ns))
    k("who am I", "auth whoami -o jsonpath={.kind}")
    k("make a reader", "create role reader --verb=get,list --resource=configmaps")
    k("bind it", "create rolebinding reader --role=reader --serviceaccount={}:default".format(t.ns))
    token = t.ask("POST", "/api/v1/namespaces/{ns}/serviceaccounts/default/token", {"spec": {}})
    if token.status != 201:
        t.wait("the account is there", lambda: t.ask("GET", "/api/v1/namespaces/{ns}/serviceaccounts/default").status == 200)
        token = t.ask("POST", "/api/v1/namespaces/{ns}/serviceaccounts/default/token", {"spec": {}})
    secret = token["status"]["token"]
    t.alias(secret, "secret")
    t.wait("the role is known", lambda: t.ask("GET", CM, token=secret).status == 200)
    tool = kubectl_of("kubectl", t.api, t.ns)
    config = t.api.target.directory / "tenant"
    tool.api = type("Tenant", (), {"kubeconfig": str(write_kubeconfig(config, t.api.url, t.api.ca_file, secret)), "target": t.api.target})
    for step, line in (("tenant: who am I", "auth whoami"), ("tenant: config maps", "get cm a"), ("tenant: secrets", "get secrets"), ("tenant: create", "create cm x"),
                       ("tenant: other namespaces", "get cm -A"), ("tenant: can list", "auth can-i list cm"), ("tenant: cannot delete", "auth can-i delete cm")):
        t.cli(step, tool, line)
        t.steps[-1]["out"] = [line for line in t.steps[-1]["out"] if "credential-id" not in line]


def test_old_client(t, old_k):
    k = old_k
    k("apply", "apply --validate=false -f -", stdin=text(sandbox("box"), config_map("cm", {"k": "v"}), pool("p")))
    k("apply again", "apply --validate=false -f -", stdin=text(sandbox("box"), config_map("cm", {"k": "w"})))
    k("get", "get sandbox,swp")
    k("get yaml", "get cm cm -o jsonpath={.data}")
    k("describe", "describe cm cm")
    k("scale", "scale swp p --replicas=3")
    k("label", "label sandbox box a=b")
    k("patch", "patch sandbox box --type=merge -p '{\"spec\":{\"operatingMode\":\"Suspended\"}}'")
    k("missing", "get sandbox none")
    k("can I", "auth can-i create pods")
    k("create", "create configmap two --from-literal=a=1")
    k("delete", "delete sandbox box")
    k("delete all", "delete swp --all")
    k("api versions", "api-versions", sort=True)
    t.steps[-1]["out"] = [line for line in t.steps[-1]["out"] if line in (AGENTS, EXTENSIONS)]


def test_old_client_validates(t, old_k):
    """kubectl 1.20 reads the schema in protobuf and refuses by it, before it asks the server."""
    k = old_k
    k("apply", "apply -f -", stdin=text(sandbox("box"), config_map("cm", {"k": "v"}), pool("p"), deployment("d", 1)))
    k("lists merge by their keys", "apply -f -", stdin=text(deployment("d", 2, "other")))
    k("the image", "get deployment d -o jsonpath={.spec.replicas},{.spec.template.spec.containers[*].image}")
    k("an unknown field of a core kind", "apply -f -", stdin=text({**config_map("bad"), "dada": {"k": "v"}}))
    k("an unknown field of ours", "apply -f -", stdin=text(sandbox("bad", colour="red")))
    k("a number where a text is wanted", "apply -f -", stdin=text({**config_map("bad"), "data": {"k": 5}}))
    k("nothing was made", "get cm bad")
    k("explain core", "explain configmap.data")
    t.steps[-1]["out"] = [line for line in t.steps[-1]["out"][:4]]
    k("explain ours", "explain sandbox.spec.operatingMode")
    t.steps[-1]["out"] = [line for line in t.steps[-1]["out"][:4]]
    k("events", "get events")
    k("annotate", "annotate cm cm note=x")
    k("wait", "wait sandbox/box --for=condition=Ready --timeout=1s")


def test_machines_own(api, ns):
    """Whatever kubectl the machine has works too."""
    program = shutil.which("kubectl")
    if not program:
        pytest.skip("no kubectl on this machine")
    tool = Kubectl(program, api, ns)
    made = tool.run("apply", "-f", "-", stdin=text(sandbox("box"), template("t"), config_map("c")))
    assert made.returncode == 0, made.stderr
    listed = tool.run("get", "sandboxes,sandboxtemplates", "-o", "name")
    assert listed.stdout.split() == ["sandbox.agents.x-k8s.io/box", "sandboxtemplate.extensions.agents.x-k8s.io/t"]
    gone = tool.run("delete", "sandbox", "box")
    assert gone.stdout.startswith('sandbox.agents.x-k8s.io "box" deleted'), gone.stderr

"""The public project's own papers on `silica up`: manifests of its installation, its template, its warm-pool quickstart, and every
command of its troubleshooting guide. The manifests are written anew, with the same kinds, names and images."""

import json
import subprocess

import pytest

from harness.server import wait_until
from lib import controlplane
from lib.up import Up

pytestmark = pytest.mark.ours
EXTENSIONS = "extensions.agents.x-k8s.io/v1beta1"
CLAIMS = f"/apis/{EXTENSIONS}/namespaces/default/sandboxclaims"
SYSTEM = "agent-sandbox-system"
IMAGE = "us-central1-docker.pkg.dev/k8s-staging-images/agent-sandbox/python-runtime-sandbox:latest-main"


@pytest.fixture(scope="module")
def up():
    with Up() as started:
        started.wait_warm()
        yield started


def thing(api_version, kind, name, namespace=None, **members):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, **members}


def deployment(name, namespace, image, args=(), replicas=1):
    labels = {"app": name}
    return thing("apps/v1", "Deployment", name, namespace, spec={
        "replicas": replicas, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "serviceAccountName": name, "containers": [{"name": name, "image": image, "args": list(args),
                                                        "ports": [{"name": "metrics", "containerPort": 8080}]}]}}})


def service(name, namespace, app, port, target):
    return thing("v1", "Service", name, namespace, spec={"selector": {"app": app}, "ports": [{"name": "p", "port": port, "targetPort": target}]})


def bound(name, rules, namespace=None):
    """A role, who has it, and the binding."""
    kind = "Role" if namespace else "ClusterRole"
    group = "rbac.authorization.k8s.io"
    return [thing(f"{group}/v1", kind, name, namespace, rules=rules),
            thing(f"{group}/v1", f"{kind}Binding", name, namespace, roleRef={"apiGroup": group, "kind": kind, "name": name},
                  subjects=[{"kind": "ServiceAccount", "name": "agent-sandbox-controller", "namespace": SYSTEM}])]


def installation():
    every = ["create", "delete", "get", "list", "patch", "update", "watch"]
    return [
        thing("v1", "Namespace", SYSTEM),
        thing("v1", "ServiceAccount", "agent-sandbox-controller", SYSTEM),
        *bound("agent-sandbox-controller", [{"apiGroups": ["agents.x-k8s.io"], "resources": ["sandboxes", "sandboxes/status"], "verbs": every},
                                            {"apiGroups": [""], "resources": ["pods", "services", "persistentvolumeclaims"], "verbs": every}]),
        *bound("agent-sandbox-controller-extensions", [{"apiGroups": ["extensions.agents.x-k8s.io"], "resources": ["*"], "verbs": every}]),
        *bound("agent-sandbox-controller", [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}], SYSTEM),
        service("agent-sandbox-controller", SYSTEM, "agent-sandbox-controller", 8080, "metrics"),
        service("agent-sandbox-webhook-service", SYSTEM, "agent-sandbox-controller", 443, 9443),
        deployment("agent-sandbox-controller", SYSTEM, "registry.k8s.io/agent-sandbox/agent-sandbox-controller:v0.5.6",
                   ["--leader-elect=true", "--extensions", "--zap-log-level=debug"]),
        deployment("sandbox-router-deployment", "default", "sandbox-router:latest", replicas=2),
        deployment("sandbox-router", "default", "registry.k8s.io/agent-sandbox/sandbox-router:v0.5.6", ["--bind-address=:8080"], replicas=2),
        service("sandbox-router-svc", "default", "sandbox-router", 8080, 8080),
    ]


def apply(up, *things):
    return up.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(things)}))


def test_the_installation(up):
    """It applies, twice, its definitions of the kinds too; the Deployments are done by what runs already, and a condition says so."""
    apply(up, *installation())
    assert "unchanged" in apply(up, *installation())
    kinds = up.kubectl("get", "crds", "-o", "name").split()
    for kind in ("sandboxes.agents.x-k8s.io", *(f"{k}.extensions.agents.x-k8s.io" for k in ("sandboxclaims", "sandboxtemplates", "sandboxwarmpools"))):
        assert f"customresourcedefinition.apiextensions.k8s.io/{kind}" in kinds
        up.kubectl("apply", "-f", "-", stdin=up.kubectl("get", "crd", kind, "-o", "json"))
    for name, namespace in (("agent-sandbox-controller", SYSTEM), ("sandbox-router-deployment", "default"), ("sandbox-router", "default")):
        assert "successfully rolled out" in up.kubectl("rollout", "status", f"deployment/{name}", "-n", namespace, "--timeout=60s")
        up.kubectl("wait", f"deployment/{name}", "-n", namespace, "--for=condition=Available", "--timeout=60s")
        shown = up.kubectl("describe", "deployment", name, "-n", namespace)
        assert "BuiltIn" in shown, shown
        (available,) = json.loads(up.kubectl("get", "deployment", name, "-n", namespace, "-o", "jsonpath={.status.conditions}"))
        assert (available["status"], available["message"]) == ("True", "a part of silica up does this work")
    assert up.kubectl("auth", "can-i", "list", "sandboxclaims.extensions.agents.x-k8s.io",
                      "--as", f"system:serviceaccount:{SYSTEM}:agent-sandbox-controller").strip() == "yes"


def volume(name, size, **spec):
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}}


def wait_claim(up, name):
    def is_ready():
        status = up.api.call("GET", f"{CLAIMS}/{name}").get("status", {})
        return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", [])) and status["sandbox"]["name"]

    return wait_until(is_ready, 60, f"{name} is ready\n{up.said()}")


def test_the_python_template(up):
    """The shape of python-sandbox-template.yaml, its image by its public name, over the one that is there."""
    get = {"httpGet": {"path": "/", "port": 8888}}
    apply(up, thing(EXTENSIONS, "SandboxTemplate", "public-template", "default", spec={
        "podTemplate": {"spec": {"restartPolicy": "OnFailure", "containers": [{
            "name": "python-runtime", "image": IMAGE, "ports": [{"containerPort": 8888}],
            "readinessProbe": {**get, "initialDelaySeconds": 0, "periodSeconds": 1}, "livenessProbe": {**get, "initialDelaySeconds": 2, "periodSeconds": 10},
            "resources": {"requests": {"cpu": "250m", "memory": "512Mi", "ephemeral-storage": "512Mi"}}}]}},
        "volumeClaimTemplatesPolicy": "Overrides", "volumeClaimTemplates": [volume("workspace", "1Gi")]}),
        thing(EXTENSIONS, "SandboxWarmPool", "public-pool", "default", spec={"replicas": 1, "sandboxTemplateRef": {"name": "public-template"}}))
    up.wait_warm("public-pool")
    apply(up, thing(EXTENSIONS, "SandboxClaim", "public", "default", spec={"warmPoolRef": {"name": "public-pool"}}))
    name = wait_claim(up, "public")
    pod = up.api.call("GET", f"/api/v1/namespaces/default/pods/{name}")
    (container,) = pod["status"]["containerStatuses"]
    assert container["image"] == IMAGE and container["ready"] and container["restartCount"] == 0
    assert up.kubectl("exec", name, "--", "python3", "-c", "print(6 * 7)") == "42\n"
    up.kubectl("delete", "sandboxclaim/public", "sandboxwarmpool/public-pool", "sandboxtemplate/public-template")


def test_the_quickstart(up):
    """A template that is not root, its pool, and a claim with a volume of its own: the shapes of the warm-pool quickstart."""
    template = {"podTemplate": {"spec": {
        "securityContext": {"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "runAsNonRoot": True},
        "containers": [{"name": "my-container", "image": "busybox", "command": ["/bin/sh", "-c", "sleep 36000"],
                        "ports": [{"containerPort": 8888, "protocol": "TCP"}], "volumeMounts": [{"name": "workspace", "mountPath": "/workspace"}]}]}},
        "volumeClaimTemplatesPolicy": "Overrides", "volumeClaimTemplates": [volume("workspace", "1Gi")]}
    apply(up, thing(EXTENSIONS, "SandboxTemplate", "secure-datascience-template", "default", spec=template),
          thing(EXTENSIONS, "SandboxWarmPool", "sandboxwarmpool-example", "default", spec={
              "updateStrategy": {"type": "Recreate"}, "replicas": 1, "sandboxTemplateRef": {"name": "secure-datascience-template"}}))
    up.wait_warm("sandboxwarmpool-example")
    apply(up, thing(EXTENSIONS, "SandboxClaim", "my-secure-sandbox", "default", spec={
        "warmPoolRef": {"name": "sandboxwarmpool-example"}, "volumeClaimTemplates": [volume("workspace", "6Gi", storageClassName="dynamic-rwo")],
        "lifecycle": {"shutdownPolicy": "Delete"}}))
    name = wait_claim(up, "my-secure-sandbox")
    assert up.kubectl("exec", name, "--", "sh", "-c", "id -u; id -g; touch /workspace/x && stat -c %g /workspace/x").split() == ["1000", "3000", "2000"]
    status = up.api.call("GET", f"/api/v1/namespaces/default/persistentvolumeclaims/workspace-{name}")["status"]
    assert (status["phase"], status["capacity"], status["accessModes"]) == ("Bound", {"storage": "6Gi"}, ["ReadWriteOnce"])
    up.kubectl("delete", "sandboxclaim/my-secure-sandbox", "sandboxwarmpool/sandboxwarmpool-example", "sandboxtemplate/secure-datascience-template")
    wait_until(lambda: not up.api.exists(f"/api/v1/namespaces/default/pods/{name}"), 60, "its Pod is gone")


def until(up, word, *line):
    """What the command shows once it shows that."""
    shown = []
    wait_until(lambda: shown.append(up.kubectl(*line)) or word in shown[-1], 60, f"{word} in {line}: {shown[-1:]}")
    return shown[-1]


def follow(up, word, *line):
    """`logs -f`: until the line with that word comes."""
    with subprocess.Popen([controlplane.peer("kubectl"), "--kubeconfig", up.ready["kubeconfig"], "logs", "-f", *line],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            return next(said for said in process.stdout if word in said)
        finally:
            process.terminate()


def set_args(up, args):
    """Of the controllers' Deployment, as the guide has people edit it."""
    up.kubectl("patch", "deployment", "agent-sandbox-controller", "-n", SYSTEM, "--type=json", "-p",
               json.dumps([{"op": "add", "path": "/spec/template/spec/containers/0/args", "value": args or []}]))


def test_the_troubleshooting_guide(up):
    """Each of its commands, with a claim that is stuck because its pool is not there, and then is not stuck any more."""
    head, *rows = up.kubectl("get", "sandboxtemplates").splitlines()
    assert head.split() == ["NAME", "AGE"] and {r.split()[0] for r in rows} >= {"python-sandbox-template", "simple-sandbox-template"}
    apply(up, thing(EXTENSIONS, "SandboxClaim", "stuck", "default", spec={"warmPoolRef": {"name": "no-such-pool"}}))
    shown = until(up, "WarmPoolNotFound", "get", "sandboxclaims")
    assert shown.split()[:5] == ["NAME", "READY", "SANDBOX", "REASON", "AGE"]
    (row,) = [line.split() for line in shown.splitlines() if line.startswith("stuck")]
    assert row[:3] == ["stuck", "False", "WarmPoolNotFound"]
    shown = until(up, "Warning  WarmPoolNotFound", "describe", "sandboxclaim", "stuck")
    assert 'SandboxWarmPool "no-such-pool" not found' in shown.split("Conditions:")[1].split("Events:")[0], shown
    assert 'SandboxWarmPool "no-such-pool" not found' in shown.split("Events:")[1], shown

    routers = [line.split() for line in up.kubectl("get", "pods", "-n", "default").splitlines() if "sandbox-router" in line]
    assert [r[1:3] for r in routers] == [["1/1", "Running"]]
    said = follow(up, "event=router", "-n", "default", routers[0][0])
    assert "level=" in said
    assert "event=control.serve" in follow(up, "event=control.serve", "-n", SYSTEM, "deployment/agent-sandbox-controller")
    set_args(up, ["--extensions", "--zap-log-level=debug"])
    apply(up, thing(EXTENSIONS, "SandboxClaim", "debugged", "default", spec={"warmPoolRef": {"name": "no-such-pool"}}))
    said = follow(up, "event=controller.write what=", "-n", SYSTEM, "deployment/agent-sandbox-controller")
    assert "level=debug" in said
    up.kubectl("delete", "sandboxclaim/debugged")
    set_args(up, None)
    assert 'zap=""' in follow(up, 'event=up.log_level zap=""', "-n", SYSTEM, "deployment/agent-sandbox-controller")

    apply(up, thing(EXTENSIONS, "SandboxWarmPool", "no-such-pool", "default", spec={"replicas": 0, "sandboxTemplateRef": {"name": "python-sandbox-template"}}))
    wait_claim(up, "stuck")
    assert "SandboxProvisioned" in until(up, "SandboxProvisioned", "describe", "sandboxclaim", "stuck")
    up.kubectl("delete", "sandboxclaim/stuck", "sandboxwarmpool/no-such-pool")

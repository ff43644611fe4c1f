"""`kubectl apply -k deploy/` on a real control plane, and our programs beside it with the rights that it gives them: every one is
needed, none is missing; and `kubectl delete -k` leaves nothing. The tests are one story, in this order."""

import base64
import itertools
import json
import time
import urllib.error
import urllib.request

import pytest
import yaml

from harness.server import TREE, wait_until
from lib import certificates, controlplane
from lib.controllers import condition
from lib.installed import SYSTEM, Installed

BETA = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
CORE = "/api/v1/namespaces/default"
ROLES = "/apis/rbac.authorization.k8s.io/v1"
# What only another's write at the wrong moment asks for.
RARE = {("get", "", "pods"),                                # a Pod of that name is there, and our copy does not know it
        ("get", "agents.x-k8s.io", "sandboxes")}            # the same of a claim's Sandbox
# No request is for these: the admission plugin asks for them when something is given an owner.
ASKED_BY_ADMISSION = {("delete", "", "persistentvolumeclaims"), ("update", "agents.x-k8s.io", "sandboxes/finalizers")} | {
    ("update", "extensions.agents.x-k8s.io", f"sandbox{kind}/finalizers") for kind in ("claims", "templates", "warmpools")}


@pytest.fixture(scope="module")
def system():
    try:
        with Installed() as made:
            yield made
    except controlplane.Unavailable as e:
        pytest.skip(str(e))


@pytest.fixture(scope="module")
def before(system):
    return system.snapshot()


def patch(system, path, body):
    kind, name = path.rsplit("/", 2)[1:]
    system.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(body))


def is_ready(system, path):
    return system.exists(path) and condition(system.api.call("GET", path)) == "True"


def test_applied(system, before):
    system.kubectl("apply", "-k", "deploy")
    wait_until(lambda: system.exists(BETA + "/sandboxclaims") and system.exists(SANDBOXES), 60, "the kinds are served")
    again = system.kubectl("apply", "-k", "deploy").stdout
    # kubectl writes a PodDisruptionBudget each time, as its selector is replaced, not merged
    changed = [line for line in again.splitlines() if not line.endswith(" unchanged")]
    assert len(again.splitlines()) == 24 and all(line.startswith("poddisruptionbudget") for line in changed), again
    system.start("--webhook-cert-check=100ms")


def test_a_claim_becomes_ready(system):
    system.kubectl("apply", "-f", "deploy/samples/python.yaml")
    wait_until(lambda: is_ready(system, BETA + "/sandboxclaims/my-sandbox"), 60, "the claim is ready")
    pool = system.api.call("GET", BETA + "/sandboxwarmpools/python-sandbox-pool")
    assert pool["spec"]["replicas"] == 3


def test_the_other_samples(system):
    system.kubectl("apply", "-f", "deploy/samples/sandbox.yaml", "-f", "deploy/samples/inject.yaml")
    wait_until(lambda: is_ready(system, SANDBOXES + "/notebook"), 60, "the sandbox is ready")
    wait_until(lambda: system.api.call("GET", BETA + "/sandboxwarmpools/debian-sandbox-pool").get("status", {}).get("readyReplicas") == 1, 60, "its pool is")
    system.kubectl("create", "namespace", "team-a")
    system.kubectl("apply", "-k", "deploy/samples/team")
    for crd in foreign_kinds():
        system.kubectl("apply", "-f", "-", stdin=json.dumps(crd))
    for sample in (["-f", "deploy/samples/gateway.yaml"], ["-k", "deploy/monitoring"]):
        wait_until(lambda: system.kubectl("apply", *sample, check=False).returncode == 0, 60, f"{sample} applies")
        system.kubectl("delete", *sample)
    for crd in foreign_kinds():
        system.kubectl("delete", "crd", crd["metadata"]["name"])
    system.kubectl("delete", "namespace", "team-a")


def foreign_kinds():
    """Kinds of others that our samples have: any content, as who brings them checks it."""
    for group, version, kind in (("gateway.networking.k8s.io", "v1", "Gateway"), ("gateway.networking.k8s.io", "v1", "HTTPRoute"),
                                 ("monitoring.coreos.com", "v1", "ServiceMonitor"), ("monitoring.coreos.com", "v1", "PrometheusRule")):
        plural = kind.lower() + "s"
        # The first two are of a protected group: whoever makes such a kind says that it was approved.
        yield {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
               "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api"}},
               "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                        "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                            "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def test_everything_else_that_a_controller_does(system):
    """Each line is there for a verb of its roles."""
    # delete pods, services: suspended and expired; patch pods: a label of the template
    patch(system, SANDBOXES + "/notebook", {"spec": {"podTemplate": {"metadata": {"labels": {"example.com/a": "b"}}}}})
    wait_until(lambda: system.api.call("GET", CORE + "/pods/notebook")["metadata"]["labels"].get("example.com/a"), 60, "the Pod has it")
    system.kubectl("patch", "service", "notebook", "--type=json", "-p", '[{"op":"replace","path":"/spec/selector","value":{"app":"other"}}]')
    wait_until(lambda: "app" not in system.api.call("GET", CORE + "/services/notebook")["spec"]["selector"], 60, "its Service is mended")
    # update, delete networkpolicies
    template = BETA + "/sandboxtemplates/python-sandbox-template"
    patch(system, template, {"spec": {"networkPolicy": {"ingress": [], "egress": []}}})
    name = next(p["metadata"]["name"] for p in system.api.call("GET", POLICIES)["items"] if "python" in p["metadata"]["name"])
    policy = f"{POLICIES}/{name}"
    wait_until(lambda: not system.api.call("GET", policy)["spec"].get("egress"), 60, "its policy is changed")
    patch(system, template, {"spec": {"networkPolicyManagement": "Unmanaged"}})
    wait_until(lambda: not system.exists(policy), 60, "its policy is gone")
    # patch persistentvolumeclaims: one that was there before is adopted
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "workspace-early", "labels": {"agents.x-k8s.io/adoptable": "true"}},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    early = {**yaml.safe_load((TREE / "deploy/samples/sandbox.yaml").read_text()), "metadata": {"name": "early"}}
    for each in (claim, early):
        system.kubectl("apply", "-f", "-", stdin=json.dumps(each))
    wait_until(lambda: is_ready(system, SANDBOXES + "/early"), 60, "it is ready")
    assert system.api.call("GET", CORE + "/persistentvolumeclaims/workspace-early")["metadata"]["ownerReferences"][0]["name"] == "early"
    patch(system, SANDBOXES + "/early", {"spec": {"operatingMode": "Suspended", "service": False}})
    wait_until(lambda: not system.exists(CORE + "/pods/early") and not system.exists(CORE + "/services/early"), 60, "both are gone")
    # delete sandboxes: a pool that shrinks; delete sandboxclaims: one that is over
    patch(system, BETA + "/sandboxwarmpools/python-sandbox-pool", {"spec": {"replicas": 1}})
    past = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
    patch(system, BETA + "/sandboxclaims/my-sandbox", {"spec": {"lifecycle": {"shutdownTime": past, "shutdownPolicy": "Delete"}}})
    wait_until(lambda: not system.exists(BETA + "/sandboxclaims/my-sandbox"), 60, "the claim is gone")
    # patch secrets: a certificate that is about to end
    certificates.authority(system.directory)
    certificates.issue(system.directory, "hook", san=f"DNS:agent-sandbox-webhook-service.{SYSTEM}.svc", lasts_s=600)
    old = {key: base64.b64encode((system.directory / file).read_bytes()).decode()
           for key, file in (("ca.crt", "ca.crt"), ("tls.crt", "hook.crt"), ("tls.key", "hook.key"))}
    system.kubectl("patch", "secret", "-n", SYSTEM, "agent-sandbox-webhook-certs", "--type=merge", "-p", json.dumps({"data": old}))
    wait_until(lambda: system.api.call("GET", f"/api/v1/namespaces/{SYSTEM}/secrets/agent-sandbox-webhook-certs")["data"] != old, 60, "it is renewed")


def granted(system, role):
    """(verb, group, resource) of a role, each."""
    found = system.api.call("GET", role)["rules"]
    return {each for rule in found for each in itertools.product(rule["verbs"], rule["apiGroups"], rule["resources"])}


ACCOUNTS = {"agent-sandbox-controller": ["clusterroles/agent-sandbox-controller", "clusterroles/agent-sandbox-controller-extensions",
                                         f"namespaces/{SYSTEM}/roles/agent-sandbox-controller"],
            "sandbox-router": ["clusterroles/sandbox-router"]}


@pytest.mark.parametrize("account", ACCOUNTS)
def test_nothing_is_forbidden(system, account):
    assert {call for call in system.calls(account) if call[3] in (401, 403)} == set()


def test_nor_do_they_speak_of_it(system):
    for controller in system.controllers:
        assert "forbidden" not in controller.log.read_text() and not [v for v in controller.metric('rest_client_requests_total{code="403"') if v != "0"]
    assert "forbidden" not in system.router.log


@pytest.mark.parametrize("account", ACCOUNTS)
def test_every_right_is_used(system, account):
    """What nobody asked for is too much."""
    may = set().union(*(granted(system, f"{ROLES}/{role}") for role in ACCOUNTS[account]))
    done = {call[:3] for call in system.calls(account)}
    assert may - done - RARE - ASKED_BY_ADMISSION == set()
    assert done - may <= {("create", "authorization.k8s.io", "selfsubjectaccessreviews")}


@pytest.mark.parametrize("verb, group, resource, says", [
    ("create", "networking.k8s.io", "networkpolicies", 'cannot create resource \\"networkpolicies\\"'),
    # Nobody calls it: the admission plugin asks for it when the policy is given its template as owner.
    ("update", "extensions.agents.x-k8s.io", "sandboxtemplates/finalizers", "cannot set blockOwnerDeletion")])
def test_a_right_that_is_missing_is_noticed(system, verb, group, resource, says):
    """And only that one is missing: a template is made, and its policy is not."""
    role, account = "/clusterroles/agent-sandbox-controller-extensions", "agent-sandbox-controller"
    asked = "/".join([resource.split("/")[0] + "." + group, *resource.split("/")[1:]])
    full = system.api.call("GET", ROLES + role)["rules"]
    less = [{**rule, "resources": [r for r in rule["resources"] if r != resource]} for rule in full]
    assert system.may(account, verb, asked)
    patch(system, ROLES + role, {"rules": [rule for rule in less if rule["resources"]]})
    wait_until(lambda: not system.may(account, verb, asked), 60, "the right is gone")
    name, before = "without-" + resource.replace("/", "-"), system.audited()
    template = {"kind": "SandboxTemplate", "apiVersion": "extensions.agents.x-k8s.io/v1beta1", "metadata": {"name": name},
                "spec": {"podTemplate": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}
    system.kubectl("apply", "-f", "-", stdin=json.dumps(template))
    wait_until(lambda: ("create", "networking.k8s.io", "networkpolicies", 403) in system.calls(account, before), 60, "it is forbidden")
    wait_until(lambda: any(says in c.log.read_text() for c in system.controllers), 60, "it says so")
    assert not [p for p in system.api.call("GET", POLICIES)["items"] if name in p["metadata"]["name"]]
    patch(system, ROLES + role, {"rules": full})
    wait_until(lambda: any(name in p["metadata"]["name"] for p in system.api.call("GET", POLICIES)["items"]), 60, "and goes on once it may")


def through(router, sandbox, token=None):
    """Status and body of a command that is run in a sandbox, by whoever shows this token."""
    head = {"X-Sandbox-ID": sandbox, "X-Sandbox-Namespace": "default", "content-type": "application/json",
            **({"authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(router.url + "/execute", data=json.dumps({"command": "sh -c 'echo $((6 * 7))'"}).encode(), headers=head)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def test_the_authenticated_router_wants_a_token(system):
    """deploy/authenticated on top of it: its router, with the rights that it gives, asks the API server whose a token is."""
    system.kubectl("apply", "-k", "deploy/authenticated")
    system.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim",
                                                         "metadata": {"name": "mine"}, "spec": {"warmPoolRef": {"name": "python-sandbox-pool"}}}))
    wait_until(lambda: is_ready(system, BETA + "/sandboxclaims/mine"), 60, "the claim is ready")
    sandbox, before = system.api.call("GET", BETA + "/sandboxclaims/mine")["status"]["sandbox"]["name"], system.audited()
    token = system.kubectl("create", "token", "default").stdout.strip()
    router = system.start_router()
    wait_until(lambda: through(router, sandbox, token)[0] == 200, 60, "the router knows it")
    status, ran = through(router, sandbox, token)
    assert (status, ran["stdout"], ran["exit_code"]) == (200, "42\n", 0)
    assert through(router, sandbox)[0] == 401
    assert through(router, sandbox, token[:-8] + "AAAAAAAA")[0] == 401
    assert through(system.router, sandbox)[0] == 200, "the one without asks nobody"
    calls = system.calls("sandbox-router", before)
    assert ("create", "authentication.k8s.io", "tokenreviews", 201) in calls and not {c for c in calls if c[3] in (401, 403)}
    system.kubectl("apply", "-k", "deploy")  # as the tests behind this one expect it
    system.kubectl("delete", "-f", "deploy/authenticated/tokenreview.yaml")
    system.kubectl("delete", "sandboxclaim", "mine")


def test_deleted(system, before):
    system.kubectl("delete", "-k", "deploy", "--wait=false")
    wait_until(lambda: system.snapshot() <= before, 100, "nothing is left")


def test_the_chart_installs_and_goes(system, before):
    helm = controlplane.peer("helm")
    system.run(helm, "install", "silica", "deploy/chart")
    wait_until(lambda: system.exists(BETA + "/sandboxclaims"), 60, "the kinds are served")
    assert system.arguments("agent-sandbox-controller") == ["--leader-elect=true", "--extensions"]
    system.run(helm, "uninstall", "silica")
    system.kubectl("delete", "-k", "deploy/crds")
    wait_until(lambda: system.snapshot() <= before, 100, "nothing is left")

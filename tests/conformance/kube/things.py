"""Small objects that scenarios send, and the paths where they live."""

CM = "/api/v1/namespaces/{ns}/configmaps"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
PODS = "/api/v1/namespaces/{ns}/pods"
SERVICES = "/api/v1/namespaces/{ns}/services"
ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
REPLICASETS = "/apis/apps/v1/namespaces/{ns}/replicasets"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings"
AGENTS, EXTENSIONS = "agents.x-k8s.io/v1beta1", "extensions.agents.x-k8s.io/v1beta1"
SANDBOXES = f"/apis/{AGENTS}/namespaces/{{ns}}/sandboxes"
TEMPLATES = f"/apis/{EXTENSIONS}/namespaces/{{ns}}/sandboxtemplates"
CLAIMS = f"/apis/{EXTENSIONS}/namespaces/{{ns}}/sandboxclaims"
POOLS = f"/apis/{EXTENSIONS}/namespaces/{{ns}}/sandboxwarmpools"
POD_SPEC = {"containers": [{"name": "main", "image": "python:3.11"}]}


def meta(name, **more):
    return {"name": name, **more}


def config_map(name, data=None, **more):
    out = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(name, **more)}
    if data is not None:
        out["data"] = data
    return out


def pod(name, spec=None, **more):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta(name, **more), "spec": spec or POD_SPEC}


def sandbox(name, metadata=None, **spec):
    return {"apiVersion": AGENTS, "kind": "Sandbox", "metadata": meta(name, **(metadata or {})),
            "spec": {"podTemplate": {"spec": POD_SPEC}, **spec}}


def template(name, **spec):
    return {"apiVersion": EXTENSIONS, "kind": "SandboxTemplate", "metadata": meta(name),
            "spec": {"podTemplate": {"spec": POD_SPEC}, **spec}}


def claim(name, pool="pool", **spec):
    return {"apiVersion": EXTENSIONS, "kind": "SandboxClaim", "metadata": meta(name),
            "spec": {"warmPoolRef": {"name": pool}, **spec}}


def pool(name, **spec):
    return {"apiVersion": EXTENSIONS, "kind": "SandboxWarmPool", "metadata": meta(name),
            "spec": {"sandboxTemplateRef": {"name": "template"}, **spec}}


def deployment(name, replicas=None, image="nginx"):
    spec = {"selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": image}]}}}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(name), "spec": spec}


def owner(answer, **more):
    """An ownerReference to the object of an answer."""
    o = answer.json
    return {"apiVersion": o["apiVersion"], "kind": o["kind"], "name": o["metadata"]["name"], "uid": o["metadata"]["uid"], **more}


def condition(kind, status="True", reason="Because", message="it is"):
    return {"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-02T03:04:05Z"}


def wait_root(t):
    """A real server's controllers put the root certificate into a new namespace in their own time."""
    t.wait("the root certificate is there", lambda: "kube-root-ca.crt" in [o["metadata"]["name"] for o in t.ask("GET", CM)["items"]])

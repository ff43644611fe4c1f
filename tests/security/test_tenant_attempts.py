"""What a tenant tries at the API server: each verb on each resource of another namespace, what is of the whole cluster, more rights,
other names, tokens that lie, paths that two parsers could read differently.

Each attempt is a row: what is asked, and what may be answered. Each has its control, the same request by the administrator, who is not
refused: so no row passes because it asks for nothing. Writes of the
administrator are dry runs. Where a request is refused to all, its control asks in plain words for what it is after."""

import base64
import concurrent.futures
import hashlib
import hmac
import http.client
import json
import ssl
import urllib.parse

import pytest

from harness.server import wait_until
from lib import security_report, up as ups

pytestmark = pytest.mark.ours
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
ATTEMPTS_MIN = 200
B, A = "/api/v1/namespaces/team-b", "/api/v1/namespaces/team-a"
RBAC = "rbac.authorization.k8s.io"
POD = {"containers": [{"name": "c", "image": "no.such/image:1"}]}
AGENTS, EXTENSIONS = "agents.x-k8s.io/v1beta1", "extensions.agents.x-k8s.io/v1beta1"

# Of another namespace: where, apiVersion, kind and what an object of it needs.
RESOURCES = {
    "configmaps": ("v1", "ConfigMap", {"data": {"a": "b"}}),
    "secrets": ("v1", "Secret", {"stringData": {"a": "b"}}),
    "serviceaccounts": ("v1", "ServiceAccount", {}),
    "pods": ("v1", "Pod", {"spec": {**POD, "nodeName": "none"}}),
    "services": ("v1", "Service", {"spec": {"selector": {"a": "b"}, "ports": [{"port": 8080}]}}),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim", {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}),
    "events": ("v1", "Event", {"involvedObject": {"kind": "Pod", "name": "x", "namespace": "team-b"}, "reason": "x", "message": "x"}),
    "sandboxes": (AGENTS, "Sandbox", {"spec": {"podTemplate": {"spec": POD}}}),
    "sandboxtemplates": (EXTENSIONS, "SandboxTemplate", {"spec": {"podTemplate": {"spec": POD}}}),
    "sandboxclaims": (EXTENSIONS, "SandboxClaim", {"spec": {"warmPoolRef": {"name": "none"}}}),
    "sandboxwarmpools": (EXTENSIONS, "SandboxWarmPool", {"spec": {"replicas": 0, "sandboxTemplateRef": {"name": "x"}}}),
    "roles": (f"{RBAC}/v1", "Role", {"rules": []}),
    "rolebindings": (f"{RBAC}/v1", "RoleBinding", {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}, "subjects": []}),
    "leases": ("coordination.k8s.io/v1", "Lease", {"spec": {}}),
    "networkpolicies": ("networking.k8s.io/v1", "NetworkPolicy", {"spec": {"podSelector": {}}}),
    "endpointslices": ("discovery.k8s.io/v1", "EndpointSlice", {"addressType": "IPv4", "endpoints": []}),
}
HAS_STATUS = ["pods", "services", "persistentvolumeclaims", "sandboxes", "sandboxclaims", "sandboxwarmpools"]


def place(resource, namespace="team-b"):
    version = RESOURCES[resource][0]
    return f"/{'api' if version == 'v1' else 'apis'}/{version}/namespaces/{namespace}/{resource}"


def made(resource, name, namespace="team-b"):
    version, kind, more = RESOURCES[resource]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **more}


def row(method, path, body=None, kind="application/json", fields=None, refused=(403,), control=(200, 201, 202), control_path=None, says=""):
    """says: what is in a refusal, and not in the administrator's answer."""
    return {"method": method, "path": path, "body": body, "kind": kind, "fields": fields or {}, "refused": refused, "control": control,
            "control_path": control_path or path, "says": says}


def of_verbs():
    """Each verb on each resource of the namespace team-b."""
    rows = {}
    for r in RESOURCES:
        at, x = place(r), f"{place(r)}/x"
        label = {"metadata": {"labels": {"a": "b"}}}
        rows |= {f"{r}-get": row("GET", x), f"{r}-list": row("GET", at), f"{r}-watch": row("GET", f"{at}?watch=1&timeoutSeconds=1"),
                 f"{r}-create": row("POST", at, made(r, "new")), f"{r}-update": row("PUT", x, made(r, "x"), control=(200, 409, 422)),
                 f"{r}-patch": row("PATCH", x, label, MERGE),
                 f"{r}-apply": row("PATCH", f"{x}?fieldManager=t&force=true", made(r, "x"), APPLY, control=(200, 201)),
                 f"{r}-delete": row("DELETE", x), f"{r}-deletecollection": row("DELETE", at),
                 f"{r}-everywhere": row("GET", place(r).replace("/namespaces/team-b", ""))}
        if r in HAS_STATUS:
            rows[f"{r}-status"] = row("PATCH", f"{x}/status", {"status": {}}, MERGE)
    return rows


def of_streams():
    rows = {}
    for verb in ("exec?command=id&stdout=1", "attach?stdout=1", "portforward?ports=80"):
        # Without an upgrade the administrator learns that one is needed, or that the Pod is not there yet.
        rows["pod-" + verb.split("?")[0]] = row("POST", f"{B}/pods/x/{verb}", control=(400, 404, 409, 500, 502, 503))
        rows["pod-get-" + verb.split("?")[0]] = row("GET", f"{B}/pods/x/{verb}", control=(400, 404, 409, 500, 502, 503))
    rows["pod-log"] = row("GET", f"{B}/pods/x/log", control=(200, 400, 404, 409, 500, 502, 503))
    rows["pod-eviction"] = row("POST", f"{B}/pods/x/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "x"}})
    rows["pod-binding"] = row("POST", f"{B}/pods/x/binding", {"metadata": {"name": "x"}, "target": {"kind": "Node", "name": "x"}}, control=(201, 404, 409))
    rows["service-account-token"] = row("POST", f"{B}/serviceaccounts/x/token", {"spec": {}})
    rows["system-token"] = row("POST", "/api/v1/namespaces/kube-system/serviceaccounts/default/token", {"spec": {}}, control=(201, 404))
    rows["default-token"] = row("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}}, control=(201, 404))
    return rows


def of_the_cluster():
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "t"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    me = {"kind": "ServiceAccount", "name": "t", "namespace": "team-a"}
    bind = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "t"}, "subjects": [me],
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}}
    roles, own = f"/apis/{RBAC}/v1", f"/apis/{RBAC}/v1/namespaces/team-a"
    asks = {"spec": {"user": "silica-admin", "resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "team-b"}}}
    csr = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "t"},
           "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}}
    system = "/api/v1/namespaces/kube-system"
    label = {"metadata": {"labels": {"a": "b"}}}
    return {
        "nodes-list": row("GET", "/api/v1/nodes"), "nodes-watch": row("GET", "/api/v1/nodes?watch=1&timeoutSeconds=1"),
        "nodes-create": row("POST", "/api/v1/nodes", {"metadata": {"name": "t"}}),
        "nodes-deletecollection": row("DELETE", "/api/v1/nodes"),
        "nodes-patch": row("PATCH", "/api/v1/nodes/none", label, MERGE, control=(404,)),
        "nodes-status": row("PATCH", "/api/v1/nodes/none/status", {"status": {}}, MERGE, control=(404,)),
        "nodes-proxy": row("GET", "/api/v1/nodes/none/proxy/", control=(404, 400, 503)),
        "namespaces-list": row("GET", "/api/v1/namespaces"), "namespaces-get": row("GET", "/api/v1/namespaces/team-b"),
        "namespaces-create": row("POST", "/api/v1/namespaces", {"metadata": {"name": "team-t"}}),
        "namespaces-delete": row("DELETE", "/api/v1/namespaces/team-b"),
        "namespaces-patch": row("PATCH", "/api/v1/namespaces/team-b", label, MERGE),
        "namespaces-own-patch": row("PATCH", "/api/v1/namespaces/team-a", label, MERGE),
        "namespaces-finalize": row("PUT", "/api/v1/namespaces/team-b/finalize", {"metadata": {"name": "team-b"}, "spec": {}}, control=(200, 409, 422)),
        "persistentvolumes-list": row("GET", "/api/v1/persistentvolumes", control=(200, 404)),
        "clusterroles-create": row("POST", f"{roles}/clusterroles", role), "clusterroles-list": row("GET", f"{roles}/clusterroles"),
        "clusterroles-edit-patch": row("PATCH", f"{roles}/clusterroles/edit", {"rules": role["rules"]}, MERGE),
        "clusterroles-delete": row("DELETE", f"{roles}/clusterroles/view"),
        "clusterrolebindings-create": row("POST", f"{roles}/clusterrolebindings", bind),
        "clusterrolebindings-list": row("GET", f"{roles}/clusterrolebindings"),
        "clusterrolebindings-patch": row("PATCH", f"{roles}/clusterrolebindings/cluster-admin", {"subjects": [me]}, MERGE, control=(200, 404)),
        "rolebinding-to-cluster-admin": row("POST", f"{own}/rolebindings", {**bind, "kind": "RoleBinding"}),
        "role-of-everything": row("POST", f"{own}/roles", {**role, "kind": "Role"}),
        "role-that-escalates": row("POST", f"{own}/roles", {**role, "kind": "Role", "rules": [{"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["escalate", "bind"]}]}),
        "role-that-impersonates": row("POST", f"{own}/roles", {**role, "kind": "Role", "rules": [{"apiGroups": [""], "resources": ["users", "groups"], "verbs": ["impersonate"]}]}),
        "role-of-statuses": row("POST", f"{own}/roles", {**role, "kind": "Role", "rules": [{"apiGroups": ["agents.x-k8s.io"], "resources": ["sandboxes/status"], "verbs": ["patch"]}]}),
        "role-of-subresources": row("POST", f"{own}/roles", {**role, "kind": "Role", "rules": [{"apiGroups": [""], "resources": ["pods/*"], "verbs": ["*"]}]}),
        "subject-access-review": row("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", asks),
        "subject-access-review-there": row("POST", "/apis/authorization.k8s.io/v1/namespaces/team-b/localsubjectaccessreviews",
                                           {"metadata": {"namespace": "team-b"}, **asks}, control=(201, 404)),
        "token-review": row("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
        "certificate-request": row("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", csr, refused=(403, 404), control=(201, 404, 400, 422)),
        "definition-list": row("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
        "definition-delete": row("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sandboxes.agents.x-k8s.io"),
        "definition-patch": row("PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sandboxes.agents.x-k8s.io", label, MERGE),
        "metrics": row("GET", "/metrics"),
        "system-secrets": row("GET", f"{system}/secrets"), "system-configmaps": row("GET", f"{system}/configmaps"),
        "system-pods-create": row("POST", f"{system}/pods", {"metadata": {"name": "t"}, "spec": POD}, control=(201, 404)),
        "default-secrets": row("GET", "/api/v1/namespaces/default/secrets"),
        "default-pods-delete": row("DELETE", "/api/v1/namespaces/default/pods"),
    }


def of_names():
    """Other names by fields of the request."""
    who = {"user": {"Impersonate-User": "silica-admin"}, "masters": {"Impersonate-User": "silica-admin", "Impersonate-Group": "system:masters"},
           "account": {"Impersonate-User": "system:serviceaccount:team-b:x"}, "controller": {"Impersonate-User": "system:kube-controller-manager"},
           "node": {"Impersonate-User": "system:node:none", "Impersonate-Group": "system:nodes"}}
    rows = {f"impersonate-{n}": row("GET", f"{B}/configmaps", fields=f, control=(200,) if n == "masters" else (200, 403), says="impersonate") for n, f in who.items()}
    for n, f in {"remote-user": {"X-Remote-User": "silica-admin", "X-Remote-Group": "system:masters"}, "forwarded": {"X-Forwarded-User": "silica-admin"},
                 "method": {"X-HTTP-Method-Override": "GET"}, "original": {"X-Original-URL": f"{A}/configmaps"}, "rewrite": {"X-Rewrite-URL": f"{A}/configmaps"},
                 "host": {"Host": "kubernetes.default.svc"}}.items():
        rows[f"field-{n}"] = row("GET", f"{B}/secrets/x", fields=f, control=(200,))
    return rows


def of_paths():
    """One namespace to the one who judges, another to the one who serves."""
    no = (301, 307, 308, 400, 403, 404, 405)
    here = {"dots": f"{A}/../team-b/secrets/x", "dots-encoded": f"{A}/%2e%2e/team-b/secrets/x", "dots-twice": f"{A}/%252e%252e/team-b/secrets/x",
            "slash-encoded": "/api/v1/namespaces/team-a%2f..%2fteam-b/secrets/x", "backslash": f"{A}\\..\\team-b/secrets/x",
            "semicolon": "/api/v1/namespaces/team-b;/secrets/x", "slashes": "//api/v1/namespaces//team-b/secrets/x",
            "dot": "/api/v1/./namespaces/team-b/secrets/x", "case": "/api/v1/Namespaces/team-b/Secrets/x", "end": f"{B}/secrets/x/",
            "space": "/api/v1/namespaces/team-b%20/secrets/x", "nul": "/api/v1/namespaces/team-b%00/secrets/x", "newline": "/api/v1/namespaces/team-b%0a/secrets/x",
            "name-out": f"{A}/secrets/..%2f..%2fteam-b%2fsecrets%2fx", "fragment": f"{A}/secrets/%23/../../team-b/secrets/x", "unicode": "/api/v1/namespaces/team%E2%80%90b/secrets/x"}
    rows = {f"path-{n}": row("GET", p, refused=no, control=(200,), control_path=f"{B}/secrets/x") for n, p in here.items()}
    for n, query in {"namespace": "namespace=team-a", "selector": "fieldSelector=metadata.namespace%3Dteam-a", "as": "as=silica-admin",
                     "token": "access_token=x", "pretty": "pretty=1&namespace=team-a", "method": "_method=GET", "continue": "limit=1&continue=eyJydiI6MX0"}.items():
        rows[f"query-{n}"] = row("GET", f"{B}/secrets?{query}", control=(200, 400, 410))
    rows["selector-everywhere"] = row("GET", "/api/v1/secrets?fieldSelector=metadata.namespace%3Dteam-a")
    rows["old-watch"] = row("GET", "/api/v1/watch/namespaces/team-b/secrets?timeoutSeconds=1", refused=(403, 404), control=(200, 404))
    rows["old-proxy"] = row("GET", "/api/v1/proxy/namespaces/team-b/pods/x/", refused=(403, 404), control=(404,))
    # A body that says another namespace than the path.
    for r in ("configmaps", "secrets", "pods", "sandboxes", "sandboxclaims", "rolebindings"):
        rows[f"body-{r}"] = row("POST", place(r, "team-a"), made(r, "other"), refused=(400, 403), control_path=place(r))
    return rows


ATTEMPTS = of_verbs() | of_streams() | of_the_cluster() | of_names() | of_paths()


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param, "--router-workers=1") as started:
        for namespace in ("team-a", "team-b"):
            started.run("token", "-n", namespace)  # makes it
        wait_until(lambda: started.api.exists(f"{A}/pods/sandbox-router"), 60)
        for r in RESOURCES:
            started.api.call("POST", place(r), made(r, "x"))
        yield started


class Client:
    """Sends what a row says as it stands, on one connection: no library tidies the path."""

    def __init__(self, up, token=None):
        at = urllib.parse.urlsplit(up.api.url)
        context = ssl.create_default_context(cafile=up.api.ca_file)
        context.check_hostname = False
        if not token and up.api.client_cert:
            context.load_cert_chain(up.api.client_cert, up.api.client_key)
        self.token = token or up.api.token
        self.http = http.client.HTTPSConnection(at.hostname, at.port, context=context, timeout=30)

    def ask(self, r, is_control=False):
        """The code and the text of the answer."""
        path = r["control_path" if is_control else "path"]
        if is_control and r["method"] != "GET":
            path += ("&" if "?" in path else "?") + "dryRun=All"
        fields = {"Content-Type": r["kind"], "Accept": "application/json", **r["fields"]}
        if self.token:
            fields.setdefault("Authorization", f"Bearer {self.token}")
        body = json.dumps(r["body"]).encode() if r["body"] is not None else None
        try:
            self.http.putrequest(r["method"], path, skip_host="Host" in fields)
            for name, value in fields.items():
                self.http.putheader(name, value)
            if body is not None:
                self.http.putheader("Content-Length", str(len(body)))
            elif r["method"] != "GET":
                self.http.putheader("Content-Length", "0")
            self.http.endheaders(body)
            answer = self.http.getresponse()
            return answer.status, answer.read()
        except (http.client.HTTPException, OSError):
            self.http.close()
            raise


@pytest.fixture(scope="module", params=["edit", "admin"])
def tenant(up, request):
    return Client(up, up.run("token", "-n", "team-a", "--role", request.param).stdout.strip())


def test_they_are_distinct():
    rows = [json.dumps(a, sort_keys=True) for a in ATTEMPTS.values()]
    assert len(set(rows)) == len(rows) >= ATTEMPTS_MIN


def test_no_tenant_may(up, tenant):
    """All in one, so that they cost one start: what is wrong is listed."""
    def found():
        of = {r: up.api.call("GET", f"{place(r)}/x")["metadata"] for r in RESOURCES}
        return {r: (m["uid"], m.get("generation"), m.get("labels"), m.get("deletionTimestamp")) for r, m in of.items()}

    before = found()
    wrong = {}
    for name, r in ATTEMPTS.items():
        code, text = tenant.ask(r)
        if code not in r["refused"] or r["says"] not in text.decode():
            wrong[name] = (code, r["refused"], text[:200])
    assert wrong == {}
    assert found() == before
    security_report.record("tenants", {"distinct": len(ATTEMPTS), "tried": len(ATTEMPTS), "blocked": len(ATTEMPTS) - len(wrong),
                                       "attempts": sorted(ATTEMPTS)})


def test_the_administrator_may(up):
    """The controls, at once: each watch takes a second."""
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = dict(zip(ATTEMPTS, pool.map(lambda r: Client(up).ask(r, is_control=True), ATTEMPTS.values())))
    wrong = {}
    for name, r in ATTEMPTS.items():
        code, text = answers[name]
        if code not in r["control"] or r["says"] and r["says"] in text.decode():
            wrong[name] = (code, r["control"], text[:300])
    assert wrong == {}


def forge(token, head=None, claims=None, key=None):
    """The token with another head or other claims: unsigned, with the old signature, or signed by that key."""
    def pack(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    def unpack(part):
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))

    first, second, signature = token.split(".")
    text = f"{pack({**unpack(first), **(head or {})})}.{pack({**unpack(second), **(claims or {})})}"
    if key is not None:
        signature = base64.urlsafe_b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).rstrip(b"=").decode()
    return f"{text}.{signature}"


def lies(up, token):
    chief = {"sub": "system:serviceaccount:kube-system:default"}
    ca = up.api.ca_file.read_bytes() if up.api.ca_file else b""
    first, second, signature = token.split(".")
    return {"no-algorithm": forge(token, {"alg": "none"}, chief).rsplit(".", 1)[0] + ".", "None": forge(token, {"alg": "None"}),
            "another-name": forge(token, claims=chief), "never-ends": forge(token, claims={"exp": 1 << 40}), "another-audience": forge(token, claims={"aud": ["x"]}),
            "another-issuer": forge(token, claims={"iss": "x"}), "by-hmac": forge(token, {"alg": "HS256"}, chief, ca), "by-empty-hmac": forge(token, {"alg": "HS256"}, chief, b""),
            "another-key": forge(token, {"kid": "../../dev/null"}, chief), "key-inside": forge(token, {"jwk": {"kty": "oct", "k": ""}}, chief, b""),
            "key-elsewhere": forge(token, {"jku": "http://127.0.0.1/"}, chief), "no-signature": f"{first}.{second}.", "two-parts": f"{first}.{second}",
            "four-parts": f"{token}.x", "cut": token[:-8], "more": token + "AAAA", "zeroes": f"{first}.{second}.{'A' * len(signature)}",
            "newline": f"{first}\t.{second}.{signature}", "nothing": ".", "a-name": "silica-admin", "long": "x" * 60000}


def test_tokens_that_lie(up, tenant):
    own = row("GET", f"{A}/configmaps")
    assert tenant.ask(own)[0] == 200
    wrong = {}
    shown = lies(up, tenant.token)
    for name, token in shown.items():
        code, text = Client(up, token).ask(own)
        if code not in (400, 401, 431):
            wrong[name] = (code, text[:200])
    for name, value in {"basic": "Basic c2lsaWNhLWFkbWluOng=", "two-words": "Bearer x " + tenant.token, "digest": "Digest username=silica-admin"}.items():
        code, text = tenant.ask({**own, "fields": {"Authorization": value}})
        if code not in (400, 401) and not (code == 403 and b"system:anonymous" in text):
            wrong[name] = (code, text[:200])
    assert wrong == {}

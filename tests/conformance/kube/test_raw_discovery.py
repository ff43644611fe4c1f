"""Discovery, versions, health: what clients ask before anything else. Only what both serve is compared."""

OURS = {"": ["bindings", "configmaps", "events", "namespaces", "namespaces/finalize", "namespaces/status", "nodes", "nodes/status", "persistentvolumeclaims", "persistentvolumeclaims/status",
             "pods", "pods/attach", "pods/binding", "pods/eviction", "pods/exec", "pods/log", "pods/portforward", "pods/status", "resourcequotas", "resourcequotas/status", "secrets", "serviceaccounts", "serviceaccounts/token", "services", "services/status"],
        "apps": ["deployments", "deployments/scale", "deployments/status", "replicasets", "replicasets/scale", "replicasets/status"],
        "agents.x-k8s.io": ["sandboxes", "sandboxes/status"],
        "extensions.agents.x-k8s.io": ["sandboxclaims", "sandboxclaims/status", "sandboxtemplates", "sandboxwarmpools", "sandboxwarmpools/scale", "sandboxwarmpools/status"],
        "apiextensions.k8s.io": ["customresourcedefinitions", "customresourcedefinitions/status"],
        "authentication.k8s.io": ["selfsubjectreviews", "tokenreviews"],
        "authorization.k8s.io": ["localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"],
        "coordination.k8s.io": ["leases"], "discovery.k8s.io": ["endpointslices"], "events.k8s.io": ["events"],
        "networking.k8s.io": ["networkpolicies"], "node.k8s.io": ["runtimeclasses"], "policy": ["poddisruptionbudgets", "poddisruptionbudgets/status"],
        "rbac.authorization.k8s.io": ["clusterrolebindings", "clusterroles", "rolebindings", "roles"], "storage.k8s.io": ["storageclasses"]}
VERSIONS = {"agents.x-k8s.io": "v1beta1", "extensions.agents.x-k8s.io": "v1beta1"}


def rows(group):
    """The rows of a resource list that both serve, without what is the server's own business."""
    def pick(o):
        chosen = [{k: v for k, v in r.items() if k != "storageVersionHash"} for r in o["resources"] if r["name"] in OURS[group]]
        return {**o, "resources": sorted(({**r, "verbs": sorted(r["verbs"])} for r in chosen), key=lambda r: r["name"])}
    return pick


def test_legacy(t):
    t.get("/api", "/api", only=lambda o: {k: v for k, v in o.items() if k != "serverAddressByClientCIDRs"})
    t.get("/apis", "/apis", only=lambda o: {**o, "groups": sorted(([g["name"], VERSIONS.get(g["name"], "v1") in [v["version"] for v in g["versions"]]] for g in o["groups"] if g["name"] in OURS))})
    t.get("one group", "/apis/coordination.k8s.io", only=lambda o: [o["kind"], o["name"], o["preferredVersion"]])
    t.get("a group of ours", "/apis/agents.x-k8s.io", only=lambda o: [o["kind"], o["name"], o["preferredVersion"]])
    for group in sorted(OURS):
        path = f"/apis/{group}/{VERSIONS.get(group, 'v1')}" if group else "/api/v1"
        t.get(f"resources of '{group}'", path, only=rows(group))
    t.get("a group nobody knows", "/apis/no.such.group")
    t.get("a version nobody knows", "/api/v9")


def test_aggregated(t):
    accept = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}

    def pick(o):
        groups = []
        for g in o["items"]:
            name = g["metadata"].get("name", "")
            for v in g["versions"]:
                if name in OURS and v["version"] == VERSIONS.get(name, "v1"):
                    kinds = [{**r, "subresources": sorted((s for s in r.get("subresources", []) if f"{r['resource']}/{s['subresource']}" in OURS[name]), key=lambda s: s["subresource"])}
                             for r in v["resources"] if r["resource"] in OURS[name]]
                    for r in kinds:
                        r["verbs"] = sorted(r["verbs"])
                        for s in r["subresources"]:
                            s["verbs"] = sorted(s["verbs"])
                    groups.append({"group": name, "version": v["version"], "resources": sorted(kinds, key=lambda r: r["resource"])})
        return {"kind": o["kind"], "apiVersion": o["apiVersion"], "groups": sorted(groups, key=lambda g: g["group"])}

    t.get("/api", "/api", headers=accept, only=pick)
    t.get("/apis", "/apis", headers=accept, only=pick)
    answer = t.ask("GET", "/apis", headers=accept)
    t.note("its content type", answer.headers["content-type"])


def test_version_and_health(t):
    t.get("/version", "/version", only=lambda o: sorted(o))
    for path in ("/healthz", "/livez", "/readyz", "/livez/ping", "/readyz/ping"):
        t.get(path, path)
    t.get("excluded check", "/readyz", exclude="ping")
    t.get("no such check", "/readyz/nothing")
    t.get("/ is a list of paths", "/", only=lambda o: sorted(set(o["paths"]) & {"/api", "/api/v1", "/apis", "/apis/agents.x-k8s.io", "/apis/agents.x-k8s.io/v1beta1", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}))
    t.get("no such path", "/nothing")
    metrics = t.ask("GET", "/metrics")
    t.note("/metrics", [metrics.status, metrics.type])
    for path in ("/healthz", "/livez", "/readyz", "/version", "/api", "/apis", "/openapi/v3", "/metrics", "/nothing", "/api/v1/namespaces"):
        got = t.ask("GET", path, token="")
        t.note(f"unknown caller, {path}", [got.status, (got.json or {}).get("message") if got.status >= 400 else None])


def test_openapi(t):
    groups = ["api/v1"] + [f"apis/{g}/{VERSIONS.get(g, 'v1')}" for g in OURS if g]
    t.get("the index", "/openapi/v3", only=lambda o: sorted(set(o["paths"]) & set(groups)))
    index = t.ask("GET", "/openapi/v3")
    link = index["paths"]["apis/agents.x-k8s.io/v1beta1"]["serverRelativeURL"]
    t.note("links carry a hash", link.startswith("/openapi/v3/apis/agents.x-k8s.io/v1beta1?hash="))
    document = t.ask("GET", "/openapi/v3/apis/agents.x-k8s.io/v1beta1")
    schemas = document["components"]["schemas"]
    sandbox = next(v for k, v in schemas.items() if k.endswith("v1beta1.Sandbox"))
    t.note("the sandbox's schema", [sandbox["type"], sorted(sandbox["properties"]), sandbox.get("required"), sandbox["x-kubernetes-group-version-kind"]])
    spec = sandbox["properties"]["spec"]
    t.note("its spec", {k: {x: y for x, y in v.items() if x in ("type", "enum", "default", "format")} for k, v in spec["properties"].items()})
    t.note("paths", sorted(p for p in document["paths"] if "sandboxes" in p))
    two = t.ask("GET", "/openapi/v2", headers={"accept": "application/json"})
    t.note("version 2", [two.status, two["swagger"], sorted(k for k in two["definitions"] if k.endswith((".Sandbox", ".SandboxClaim", ".SandboxTemplate", ".SandboxWarmPool")))])

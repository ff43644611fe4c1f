"""The other forms an object is asked for: Table, PartialObjectMetadata."""

from things import CLAIMS, CM, DEPLOYMENTS, PODS, POOLS, SANDBOXES, SECRETS, SERVICES, TEMPLATES, claim, condition, config_map, deployment, pod, pool, sandbox, template

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL = {"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
PARTIAL_LIST = {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}


def columns(o):
    """Columns as (name, type, format, priority); cells per row, with the name of the object."""
    return {"kind": o["kind"], "apiVersion": o["apiVersion"],
            "columns": [[c["name"], c["type"], c["format"], c["priority"]] for c in o["columnDefinitions"]],
            "rows": [[*r["cells"], (r.get("object") or {}).get("kind")] for r in o["rows"]]}


def test_tables(t):
    t.ask("POST", CM, config_map("a", {"k": "v", "l": "w"}))
    t.ask("POST", PODS, pod("p"))
    t.ask("POST", SECRETS, {"metadata": {"name": "s"}, "stringData": {"k": "v"}})
    t.ask("POST", SERVICES, {"metadata": {"name": "svc"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}})
    t.ask("POST", DEPLOYMENTS, deployment("d", 2))
    t.ask("POST", SANDBOXES, sandbox("box"))
    t.ask("POST", CLAIMS, claim("c"))
    t.ask("POST", POOLS, pool("pl", replicas=3))
    t.ask("POST", TEMPLATES, template("tp"))
    t.ask("PATCH", SANDBOXES + "/box/status", {"status": {"conditions": [condition("Ready", reason="DependenciesReady")]}},
          headers={"content-type": "application/merge-patch+json"})
    t.ask("PATCH", CLAIMS + "/c/status", {"status": {"sandbox": {"name": "pool-abcde"}}}, headers={"content-type": "application/merge-patch+json"})
    for path in (CM + "/a", PODS + "/p", SECRETS + "/s", SERVICES + "/svc", DEPLOYMENTS + "/d", SANDBOXES + "/box", CLAIMS + "/c", POOLS + "/pl", TEMPLATES + "/tp"):
        t.get(f"one of {path.split('/')[-2]}", path, headers=TABLE, only=columns)
    t.get("list of sandboxes", SANDBOXES, headers=TABLE, only=columns)
    t.get("empty list", "/apis/agents.x-k8s.io/v1beta1/namespaces/none/sandboxes", headers=TABLE, only=columns)
    t.get("a whole answer", POOLS, headers=TABLE, only=lambda o: {**o, "columnDefinitions": [sorted(c) for c in o["columnDefinitions"]]})
    for include in ("None", "Metadata", "Object"):
        t.get(f"includeObject={include}", SANDBOXES, headers=TABLE, includeObject=include,
              only=lambda o: [[(r.get("object") or {}).get("kind"), sorted(r.get("object") or {})] for r in o["rows"]])
    t.get("includeObject of what nobody knows", SANDBOXES, headers=TABLE, includeObject="Some")
    t.get("table or JSON, as kubectl asks", SANDBOXES + "/box", headers={"accept": TABLE["accept"] + ",application/json"}, only=lambda o: o["kind"])
    t.get("a missing one", SANDBOXES + "/none", headers=TABLE)
    t.get("another version of Table", SANDBOXES, headers={"accept": "application/json;as=Table;v=v9;g=meta.k8s.io"})
    t.get("another form", SANDBOXES, headers={"accept": "application/json;as=Chair;v=v1;g=meta.k8s.io"})
    t.get("namespaces", "/api/v1/namespaces/default", headers=TABLE, only=columns)


def test_partial(t):
    t.ask("POST", SANDBOXES, sandbox("box", {"labels": {"a": "b"}}))
    t.get("one", SANDBOXES + "/box", headers=PARTIAL)
    t.get("list", SANDBOXES, headers=PARTIAL_LIST)
    t.get("list asked for as one", SANDBOXES, headers=PARTIAL)
    t.get("one asked for as list", SANDBOXES + "/box", headers=PARTIAL_LIST)
    t.ask("POST", CM, config_map("a", {"k": "v"}))
    t.get("core", CM + "/a", headers=PARTIAL)
    t.patch("patch answered in part", CM + "/a", "merge", {"metadata": {"labels": {"x": "y"}}}, headers=PARTIAL)
    t.post("create answered in part", CM, config_map("b"), headers=PARTIAL)
    t.watch("watch in part", CM, count=1, fieldSelector="metadata.name=a", resourceVersion="0", headers=PARTIAL)
    t.watch("watch as table", SANDBOXES, count=1, resourceVersion="0", headers=TABLE)

"""Patches: JSON, merge, strategic merge; server-side apply."""

from things import CM, DEPLOYMENTS, PODS, POOLS, SANDBOXES, config_map, deployment, pod, pool, sandbox


def spec_of(o):
    return o["spec"]


def data(o):
    return o.get("data")


def test_json(t):
    made = t.ask("POST", CM, config_map("a", {"k": "v", "l": "w"}))
    at = CM + "/a"
    t.patch("add, replace, remove", at, "json", [{"op": "add", "path": "/data/n", "value": "1"}, {"op": "replace", "path": "/data/k", "value": "2"},
                                                 {"op": "remove", "path": "/data/l"}], only=data)
    t.patch("test that holds, move, copy", at, "json", [{"op": "test", "path": "/data/k", "value": "2"}, {"op": "move", "from": "/data/n", "path": "/data/m"},
                                                        {"op": "copy", "from": "/data/k", "path": "/data/c"}], only=data)
    t.patch("test that does not hold", at, "json", [{"op": "test", "path": "/data/k", "value": "no"}])
    t.patch("escaped names", at, "json", [{"op": "add", "path": "/metadata/annotations", "value": {}},
                                          {"op": "add", "path": "/metadata/annotations/example.com~1x", "value": "y"}], only=lambda o: o["metadata"]["annotations"])
    t.patch("remove what is not there", at, "json", [{"op": "remove", "path": "/data/none"}])
    t.patch("replace what is not there", at, "json", [{"op": "replace", "path": "/data/none", "value": "x"}])
    t.patch("add below what is not there", at, "json", [{"op": "add", "path": "/nothing/here", "value": "x"}])
    t.patch("an operation nobody knows", at, "json", [{"op": "burn", "path": "/data"}])
    t.patch("not an array", at, "json", {"op": "remove", "path": "/data"})
    t.patch("no JSON", at, "json", None, raw=b"[{")
    t.patch("nothing to do", at, "json", [], only=data)
    t.patch("an invalid result", at, "json", [{"op": "add", "path": "/data/not ok", "value": "x"}])
    t.patch("the name", at, "json", [{"op": "replace", "path": "/metadata/name", "value": "b"}])
    t.patch("a version that is old", at, "json", [{"op": "replace", "path": "/metadata/resourceVersion", "value": made.rv}])
    t.patch("one that is not there", CM + "/none", "json", [{"op": "remove", "path": "/data"}])
    t.ask("POST", POOLS, pool("p", replicas=2))
    t.patch("a pool", POOLS + "/p", "json", [{"op": "replace", "path": "/spec/replicas", "value": 4}], only=spec_of)
    t.patch("a pool, invalid", POOLS + "/p", "json", [{"op": "replace", "path": "/spec/replicas", "value": -4}])


def test_merge(t):
    made = t.ask("POST", CM, config_map("a", {"k": "v", "l": "w"}))
    at = CM + "/a"
    t.patch("set and remove", at, "merge", {"data": {"k": "2", "l": None, "m": "3"}}, only=data)
    t.patch("nothing", at, "merge", {})
    t.patch("the same again keeps the version", at, "merge", {"data": {"m": "3"}})
    t.patch("with an old version", at, "merge", {"metadata": {"resourceVersion": made.rv}, "data": {"k": "9"}})
    t.patch("not an object", at, "merge", [])
    t.patch("no JSON", at, "merge", None, raw=b"{")
    t.patch("another uid", at, "merge", {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}})
    t.patch("another name", at, "merge", {"metadata": {"name": "b"}})
    t.patch("another namespace", at, "merge", {"metadata": {"namespace": "default"}})
    t.patch("a value of the wrong type", at, "merge", {"data": {"k": 1}})
    t.patch("create by patch is not", CM + "/none", "merge", {"data": {}})
    t.call("a patch nobody knows", "PATCH", at, raw=b"{}", headers={"content-type": "application/x-patch"})
    t.call("a patch without a type", "PATCH", at, raw=b"{}")
    t.call("a patch that is called JSON", "PATCH", at, raw=b"{}", headers={"content-type": "application/json"})
    t.ask("POST", SANDBOXES, sandbox("s"))
    t.patch("suspend a sandbox", SANDBOXES + "/s", "merge", {"spec": {"operatingMode": "Suspended"}}, only=lambda o: [o["spec"]["operatingMode"], o["metadata"]["generation"]])
    t.patch("annotate a sandbox", SANDBOXES + "/s", "merge", {"metadata": {"annotations": {"a": "b"}}}, only=lambda o: o["metadata"])
    t.patch("status by the main path is ignored", SANDBOXES + "/s", "merge", {"status": {"service": "x"}}, only=lambda o: o.get("status"))
    t.patch("lists are replaced whole", SANDBOXES + "/s", "merge", {"spec": {"podTemplate": {"spec": {"containers": [{"name": "other"}]}}}},
            only=lambda o: o["spec"]["podTemplate"]["spec"])


def test_strategic(t):
    t.ask("POST", DEPLOYMENTS, deployment("d", 1))
    at = DEPLOYMENTS + "/d"
    inner = lambda o: o["spec"]["template"]["spec"]["containers"]  # noqa: E731
    short = lambda o: [{k: c.get(k) for k in ("name", "image", "env", "ports", "args")} for c in inner(o)]  # noqa: E731

    def body(*containers, **more):
        return {"spec": {"template": {"spec": {"containers": list(containers), **more}}}}

    t.patch("containers merge by name", at, "strategic", body({"name": "main", "env": [{"name": "A", "value": "1"}]}, {"name": "side", "image": "x"}), only=short)
    t.patch("variables merge by name", at, "strategic", body({"name": "main", "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "3"}]}), only=short)
    t.patch("ports merge by port", at, "strategic", body({"name": "main", "ports": [{"containerPort": 80}, {"containerPort": 81, "name": "two"}]}), only=short)
    t.patch("a list without a merge key is replaced", at, "strategic", body({"name": "main", "args": ["a", "b"]}), only=short)
    t.patch("and again", at, "strategic", body({"name": "main", "args": ["c"]}), only=short)
    order = {"$setElementOrder/containers": [{"name": "side"}, {"name": "main"}]}
    t.patch("an order", at, "strategic", body({"name": "main"}, **order), only=short)
    t.patch("an order that the patch itself does not keep", at, "strategic", body({"name": "main"}, {"name": "side"}, **order), only=short)
    t.patch("delete an element", at, "strategic", body({"name": "side", "$patch": "delete"}), only=short)
    t.patch("delete an element that is not there", at, "strategic", body({"name": "none", "$patch": "delete"}), only=short)
    t.patch("null removes", at, "strategic", body({"name": "main", "args": None}), only=short)
    t.patch("replace the list", at, "strategic", body({"name": "new", "image": "y"}, {"$patch": "replace"}), only=short)
    t.patch("without the merge key", at, "strategic", body({"image": "y"}))
    t.patch("labels are a map", at, "strategic", {"metadata": {"labels": {"a": "b"}}}, only=lambda o: o["metadata"].get("labels"))
    t.patch("replace a map", at, "strategic", {"metadata": {"labels": {"$patch": "replace", "c": "d"}}}, only=lambda o: o["metadata"].get("labels"))
    t.patch("a directive nobody knows", at, "strategic", {"metadata": {"labels": {"$patch": "burn"}}})
    t.ask("POST", CM, config_map("f", finalizers=["example.com/a"]))
    t.patch("finalizers are a set", CM + "/f", "strategic", {"metadata": {"finalizers": ["example.com/b"]}}, only=lambda o: o["metadata"]["finalizers"])
    t.patch("delete from a set", CM + "/f", "strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}, only=lambda o: o["metadata"]["finalizers"])
    t.ask("PATCH", CM + "/f", {"metadata": {"finalizers": None}}, headers={"content-type": "application/merge-patch+json"})
    owners = [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "u1"}]
    t.patch("owners merge by uid", at, "strategic", {"metadata": {"ownerReferences": owners}}, only=lambda o: o["metadata"]["ownerReferences"], dryRun="All")
    t.patch("retain keys", at, "strategic", {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}, only=lambda o: o["spec"]["strategy"])
    t.patch("not an object", at, "strategic", [])
    t.ask("POST", SANDBOXES, sandbox("s"))
    t.patch("not for sandboxes", SANDBOXES + "/s", "strategic", {"spec": {"operatingMode": "Suspended"}})
    t.ask("POST", PODS, pod("p"))
    t.patch("what a pod cannot change", PODS + "/p", "strategic", {"spec": {"containers": [{"name": "main", "command": ["x"]}]}}, only=None)
    t.steps[-1]["body"] = {k: v for k, v in t.steps[-1]["body"].items() if k in ("kind", "status", "reason", "code")}
    t.patch("what a pod can change", PODS + "/p", "strategic", {"spec": {"containers": [{"name": "main", "image": "other"}]}},
            only=lambda o: o["spec"]["containers"][0]["image"])


def applied(name, k="v", **more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": k, **more}}


def test_apply(t):
    at, kept = CM + "/a", ["managedFields"]
    t.patch("creates", at, "apply", applied("a"), fieldManager="one", keep=kept)
    t.patch("the same again changes nothing", at, "apply", applied("a"), fieldManager="one", keep=kept)
    t.patch("another manager adds a field", at, "apply", {**applied("a"), "data": {"l": "w"}}, fieldManager="two", keep=kept)
    t.patch("another manager disagrees", at, "apply", applied("a", "other"), fieldManager="two")
    t.patch("and insists", at, "apply", applied("a", "other"), fieldManager="two", force="true", keep=kept)
    t.patch("shares when both agree", at, "apply", applied("a", "other"), fieldManager="three", keep=kept)
    t.patch("what is no longer applied is removed", at, "apply", {**applied("a"), "data": {"m": "1"}}, fieldManager="two", force="true", keep=kept)
    t.patch("without a manager", at, "apply", applied("a"))
    t.patch("without apiVersion and kind", at, "apply", {"metadata": {"name": "a"}}, fieldManager="one")
    t.patch("another name", at, "apply", applied("b"), fieldManager="one")
    t.patch("with managedFields", at, "apply", {**applied("a"), "metadata": {"name": "a", "managedFields": [{"manager": "x"}]}}, fieldManager="one")
    t.patch("not YAML", at, "apply", None, raw=b"a: b: c", fieldManager="one")
    t.patch("force for another patch", at, "merge", {}, force="true")
    t.patch("manager too long", at, "apply", applied("a"), fieldManager="x" * 129)
    t.patch("dry run creates nothing", CM + "/dry", "apply", applied("dry"), fieldManager="one", dryRun="All", only=data)
    t.get("it was not", CM + "/dry")
    t.put("an update is another manager", at, {**applied("a", "put")}, fieldManager="putter", keep=kept)
    t.patch("a merge patch is another manager", at, "merge", {"data": {"z": "1"}}, fieldManager="merger", keep=kept)
    t.patch("clears its manager", at, "merge", {"metadata": {"managedFields": [{}]}}, keep=kept)


def test_apply_sandboxes(t):
    at, kept = SANDBOXES + "/s", ["managedFields"]
    first = {**sandbox("s"), "spec": {"podTemplate": {"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}}}
    t.patch("creates", at, "apply", first, fieldManager="one", keep=kept)
    t.patch("the same again changes nothing", at, "apply", first, fieldManager="one", keep=kept)
    t.patch("another owns the mode", at, "apply", {**sandbox("s"), "spec": {"operatingMode": "Suspended"}}, fieldManager="two")
    t.patch("another may own it by force", at, "apply", {**sandbox("s"), "spec": {"podTemplate": first["spec"]["podTemplate"], "operatingMode": "Suspended"}},
            fieldManager="two", force="true", keep=kept)
    second = {**first, "spec": {"podTemplate": {"metadata": {"labels": {"b": "2"}}, "spec": {"containers": [{"name": "main", "image": "y"}]}}}}
    t.patch("a list without keys is one value", at, "apply", second, fieldManager="one")
    t.patch("by force", at, "apply", second, fieldManager="one", force="true", keep=kept)
    t.patch("status is a manager of its own", at + "/status", "apply", {**sandbox("s"), "spec": None, "status": {"nodeName": "n"}}, fieldManager="ctrl", keep=kept)
    t.patch("invalid", at, "apply", {**sandbox("s"), "spec": {"operatingMode": "Sleeping"}}, fieldManager="one", force="true")
    t.patch("unknown field", at, "apply", {**first, "spec": {**first["spec"], "colour": "red"}}, fieldManager="one", force="true")


def test_apply_deployment(t):
    """Lists with keys: every element has its own owner."""
    at, kept = DEPLOYMENTS + "/d", ["managedFields"]
    t.patch("creates", at, "apply", deployment("d"), fieldManager="one", keep=kept)
    more = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "y"}]}}}}
    t.patch("another adds a container", at, "apply", more, fieldManager="two", only=lambda o: [c["name"] for c in o["spec"]["template"]["spec"]["containers"]])
    t.patch("each keeps its own", at, "apply", deployment("d", image="z"), fieldManager="one", only=lambda o: [[c["name"], c["image"]] for c in o["spec"]["template"]["spec"]["containers"]])
    gone = {**more, "spec": {}}
    t.patch("and takes it away", at, "apply", gone, fieldManager="two", only=lambda o: [c["name"] for c in o["spec"]["template"]["spec"]["containers"]])

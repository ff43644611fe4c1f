"""Deletes: preconditions, finalizers, propagation, collections; what owner references then do."""

from things import CLAIMS, CM, PODS, SANDBOXES, claim, config_map, owner, pod, sandbox

MERGE = {"content-type": "application/merge-patch+json"}


def names_of(o):
    return [i["metadata"]["name"] for i in o["items"]]


def test_answers(t):
    t.ask("POST", CM, config_map("a"))
    t.delete("a config map", CM + "/a")
    t.ask("POST", PODS, pod("p"))
    t.delete("a pod that is nowhere", PODS + "/p", only=lambda o: [o["kind"], o["metadata"].get("deletionGracePeriodSeconds")])
    t.wait_gone(PODS + "/p")
    t.ask("POST", SANDBOXES, sandbox("s"))
    t.delete("a sandbox", SANDBOXES + "/s")
    t.ask("POST", CM, config_map("b"))
    t.delete("with an empty body", CM + "/b", raw=b"", headers={"content-type": "application/json"})
    t.ask("POST", CM, config_map("c"))
    t.delete("with options", CM + "/c", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    t.ask("POST", CM, config_map("d"))
    t.delete("with another group's options", CM + "/d", {"kind": "DeleteOptions", "apiVersion": "agents.x-k8s.io/v1beta1"})
    t.delete("a body that is not options", CM + "/d", {"kind": "Pod", "apiVersion": "v1"})
    t.delete("a body that is not JSON", CM + "/d", raw=b"{x", headers={"content-type": "application/json"})
    t.delete("a policy nobody knows", CM + "/d", propagationPolicy="Sideways")
    t.delete("a policy nobody knows, in the body", CM + "/d", {"propagationPolicy": "Sideways"})
    t.delete("two policies", CM + "/d", {"orphanDependents": True, "propagationPolicy": "Orphan"})
    t.delete("grace that is no number", CM + "/d", gracePeriodSeconds="long")
    t.delete("grace below zero", PODS + "/none", gracePeriodSeconds="-1")


def test_preconditions(t):
    made = t.ask("POST", CM, config_map("a"))
    t.delete("another uid", CM + "/a", {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}})
    t.delete("an old version", CM + "/a", {"preconditions": {"resourceVersion": "1"}})
    t.delete("both hold", CM + "/a", {"preconditions": {"uid": made.uid, "resourceVersion": made.rv}})
    made = t.ask("POST", SANDBOXES, sandbox("s"))
    t.delete("another uid of a sandbox", SANDBOXES + "/s", {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}})
    t.delete("a sandbox by uid, kind given", SANDBOXES + "/s", {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": made.uid}})


def test_finalizers(t):
    t.ask("POST", SANDBOXES, sandbox("s", {"finalizers": ["example.com/a", "example.com/b"]}))
    t.delete("delete only marks", SANDBOXES + "/s")
    t.delete("delete again", SANDBOXES + "/s")
    t.get("it is still there", SANDBOXES + "/s")
    t.patch("no new finalizers now", SANDBOXES + "/s", "json", [{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/c"}])
    t.patch("labels can change", SANDBOXES + "/s", "merge", {"metadata": {"labels": {"a": "b"}}}, only=lambda o: o["metadata"]["labels"])
    t.patch("the mark stays", SANDBOXES + "/s", "merge", {"metadata": {"deletionTimestamp": None}}, only=lambda o: "deletionTimestamp" in o["metadata"])
    t.patch("one finalizer less", SANDBOXES + "/s", "merge", {"metadata": {"finalizers": ["example.com/b"]}}, only=lambda o: o["metadata"]["finalizers"])
    t.patch("the last one", SANDBOXES + "/s", "merge", {"metadata": {"finalizers": []}})
    t.get("now it is gone", SANDBOXES + "/s")
    t.ask("POST", CM, config_map("c", finalizers=["example.com/a"]))
    t.delete("a config map", CM + "/c")
    t.post("its name is taken", CM, config_map("c"))
    t.put("update without finalizers deletes", CM + "/c", config_map("c"))
    t.get("gone too", CM + "/c")
    t.post("deletionTimestamp cannot be set", CM, config_map("d", deletionTimestamp="2026-01-01T00:00:00Z"), only=lambda o: "deletionTimestamp" in o["metadata"])


def test_collections(t):
    for i in range(4):
        t.ask("POST", SANDBOXES, sandbox(f"s{i}", {"labels": {"n": str(i % 2)}}))
    t.delete("dry run", SANDBOXES, labelSelector="n=0", dryRun="All", only=names_of)
    t.get("all are there", SANDBOXES, only=names_of)
    t.delete("by label", SANDBOXES, labelSelector="n=0")
    t.get("the others stay", SANDBOXES, only=names_of)
    t.delete("bad selector", SANDBOXES, labelSelector="n in")
    t.delete("all", SANDBOXES, only=names_of)
    t.get("none is left", SANDBOXES, only=names_of)
    t.delete("none to delete", SANDBOXES)
    for i in range(2):
        t.ask("POST", CM, config_map(f"c{i}", labels={"x": "y"}, finalizers=["example.com/a"]))
    t.delete("with finalizers they stay", CM, labelSelector="x=y", only=names_of)
    t.get("they are marked", CM, labelSelector="x=y", only=lambda o: ["deletionTimestamp" in i["metadata"] for i in o["items"]])
    for i in range(2):
        t.ask("PATCH", CM + f"/c{i}", {"metadata": {"finalizers": None}}, headers=MERGE)
    t.get("then they go", CM, labelSelector="x=y", only=names_of)
    t.delete("all over the cluster", "/apis/agents.x-k8s.io/v1beta1/sandboxes")


def test_background(t):
    parent = t.ask("POST", SANDBOXES, sandbox("parent"))
    child = t.ask("POST", PODS, pod("child", ownerReferences=[owner(parent, controller=True, blockOwnerDeletion=True)]))
    t.ask("POST", CM, config_map("grandchild", ownerReferences=[owner(child)]))
    t.ask("POST", CM, config_map("stranger"))
    t.delete("the default for a sandbox", SANDBOXES + "/parent")
    t.wait_gone(PODS + "/child")
    t.wait_gone(CM + "/grandchild")
    t.get("others stay", CM + "/stranger", only=lambda o: o["kind"])


def test_orphan(t):
    parent = t.ask("POST", SANDBOXES, sandbox("parent"))
    t.ask("POST", CM, config_map("child", ownerReferences=[owner(parent)]))
    marked = t.delete("marks with a finalizer first", SANDBOXES + "/parent", propagationPolicy="Orphan")
    t.note("answer", [marked.json["kind"], marked.json.get("metadata", {}).get("finalizers")])
    t.wait_gone(SANDBOXES + "/parent")
    t.get("the child stays, without its owner", CM + "/child")


def test_foreground(t):
    parent = t.ask("POST", CLAIMS, claim("parent"))
    t.ask("POST", CM, config_map("child", ownerReferences=[owner(parent, blockOwnerDeletion=True)], finalizers=["example.com/wait"]))
    t.delete("marks with a finalizer first", CLAIMS + "/parent", {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"})
    t.wait("the child is marked", lambda: "deletionTimestamp" in t.ask("GET", CM + "/child")["metadata"])
    t.get("the parent waits for it", CLAIMS + "/parent", only=lambda o: o["metadata"]["finalizers"])
    t.patch("the child goes", CM + "/child", "merge", {"metadata": {"finalizers": None}}, only=lambda o: o["kind"])
    t.wait_gone(CLAIMS + "/parent")


def test_owners(t):
    one, two = (t.ask("POST", SANDBOXES, sandbox(n)) for n in ("one", "two"))
    t.ask("POST", CM, config_map("both", ownerReferences=[owner(one), owner(two)]))
    t.delete("one of two owners", SANDBOXES + "/one")
    t.wait("its reference goes", lambda: len(t.ask("GET", CM + "/both")["metadata"]["ownerReferences"]) == 1)
    t.get("the object stays", CM + "/both")
    t.delete("the other owner", SANDBOXES + "/two")
    t.wait_gone(CM + "/both")
    ghost = {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "name": "ghost", "uid": "11111111-2222-3333-4444-555555555555"}
    t.ask("POST", CM, config_map("of-a-ghost", ownerReferences=[ghost]))
    t.wait_gone(CM + "/of-a-ghost")
    again = t.ask("POST", SANDBOXES, sandbox("again"))
    t.ask("POST", CM, config_map("of-the-first", ownerReferences=[{**owner(again), "uid": "11111111-2222-3333-4444-555555555555"}]))
    t.wait_gone(CM + "/of-the-first")
    t.get("an owner of the same name with another uid is another", SANDBOXES + "/again", only=lambda o: o["kind"])
    t.ask("POST", CM, config_map("old-version", ownerReferences=[{**owner(again), "apiVersion": "agents.x-k8s.io/v1"}]))
    t.note("a version that is not served keeps the object", t.ask("GET", CM + "/old-version").status)


def test_options(t):
    """Options that are no options: nothing is deleted by what was not understood."""
    t.ask("POST", CM, config_map("a"))
    for step, body in (("a list", []), ("a text for preconditions", {"preconditions": "none"}), ("a number for a uid", {"preconditions": {"uid": 5}}),
                       ("a text for a grace", {"gracePeriodSeconds": "5"}), ("a number for a policy", {"propagationPolicy": 5}), ("a text for a dry run", {"dryRun": "All"}),
                       ("a dry run of what nobody knows", {"dryRun": ["Some"]}), ("a text for a truth", {"orphanDependents": "yes"})):
        t.delete(step, CM + "/a", body)
        t.delete(f"{step}, for all of them", CM, body)
    t.get("it is still there", CM + "/a", only=lambda o: o["kind"])
    t.delete("unknown members are let pass", CM + "/a", {"colour": "red", "dryRun": ["All"]})

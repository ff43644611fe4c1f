"""Lists: paging, selectors, resourceVersion semantics."""

from things import CM, PODS, SANDBOXES, POOLS, config_map, pod, sandbox, pool, wait_root


def names_of(o):
    return [i["metadata"]["name"] for i in o["items"]]


def fill(t, count=5):
    for i in range(count):
        labels = {"n": str(i), "parity": "even" if i % 2 == 0 else "odd", **({"special": ""} if i == 3 else {})}
        assert t.ask("POST", CM, config_map(f"c{i}", labels=labels)).status == 201


def test_paging(t):
    fill(t)
    wait_root(t)
    first = t.get("first page", CM, limit=2)
    second = t.get("second page", CM, limit=2, **{"continue": first["metadata"]["continue"]})
    t.get("the rest", CM, **{"continue": second["metadata"]["continue"]})
    t.note("the pages are of one version", first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"])
    t.get("limit larger than what is there", CM, limit=500, only=lambda o: [o["metadata"].get("continue"), names_of(o)])
    t.get("limit 0 is no limit", CM, limit=0, only=names_of)
    selected = t.get("paging with a selector has no count of the rest", CM, limit=1, labelSelector="parity=even", only=lambda o: [o["metadata"], names_of(o)])
    t.get("its next page", CM, limit=5, labelSelector="parity=even", **{"continue": selected["metadata"]["continue"]}, only=names_of)
    t.get("continue and resourceVersion", CM, limit=2, resourceVersion="5", **{"continue": first["metadata"]["continue"]})
    t.get("continue that is rubbish", CM, limit=2, **{"continue": "rubbish"})
    t.get("limit that is no number", CM, limit="many")
    for i in range(3):
        assert t.ask("POST", SANDBOXES, sandbox(f"s{i}")).status == 201
    first = t.get("page of sandboxes", SANDBOXES, limit=2, only=lambda o: [o["metadata"], names_of(o)])
    t.get("next page of sandboxes", SANDBOXES, limit=2, **{"continue": first["metadata"]["continue"]}, only=lambda o: [o["metadata"], names_of(o)])


def test_label_selectors(t):
    fill(t)
    for selector in ("n=1", "n==1", "n!=1,parity", "parity=odd", "parity in (odd,even),n notin (0,1)", "special", "!special,parity",
                     "special=", "n=1,n=2", "parity=even,n!=0", " n = 1 ", "n in (1)", "n>2", "n<1", "absent notin (a),parity=odd"):
        t.get(selector, CM, labelSelector=selector, only=names_of)
    for selector in ("=", "n=", "n in", "n in (", "n in ()", "n in (a", "a b", "n===1", ",", "n=1,", "!", "-bad", "n=not ok", "n>x", "a/b/c", "n in (a,,b)", "(a)"):
        t.get(f"grammar: {selector}", CM, labelSelector=selector, only=names_of)


def test_field_selectors(t):
    fill(t, 2)
    wait_root(t)
    for selector in ("metadata.name=c1", "metadata.name==c1", "metadata.name!=c1,metadata.name!=kube-root-ca.crt", "metadata.name=c0,metadata.name=c1",
                     "metadata.namespace={ns},metadata.name=c0", "metadata.namespace=other"):
        t.get(selector, CM, fieldSelector=t.path(selector), only=names_of)
    for selector in ("data.k=v", "metadata.name", "metadata.name in (a)", "=", "metadata.uid=1", "metadata.name=c1,"):
        t.get(f"refused: {selector}", CM, fieldSelector=selector, only=names_of)
    t.ask("POST", PODS, pod("p"))
    for selector in ("status.phase=Pending", "status.phase!=Pending", "spec.nodeName=", "spec.nodeName=n", "spec.restartPolicy=Always", "status.podIP=1.2.3.4", "spec.serviceAccountName=default", "spec.schedulerName=default-scheduler", "spec.hostNetwork=false", "status.nominatedNodeName="):
        t.get(f"pods: {selector}", PODS, fieldSelector=selector, only=names_of)
    t.get("pods: refused", PODS, fieldSelector="spec.color=red")
    t.ask("POST", SANDBOXES, sandbox("s"))
    t.get("sandboxes by name", SANDBOXES, fieldSelector="metadata.name=s", only=names_of)
    t.get("sandboxes by another field", SANDBOXES, fieldSelector="spec.operatingMode=Running")


def test_versions(t):
    first = t.ask("POST", CM, config_map("a", {"k": "1"}))
    t.ask("PUT", CM + "/a", config_map("a", {"k": "2"}))
    pick = lambda o: [i["data"] for i in o["items"] if i["metadata"]["name"] == "a"]  # noqa: E731
    t.get("most recent", CM, only=pick)
    listed = t.ask("GET", CM)
    t.note("a list is at least as new as its objects", int(listed.rv) >= int(first.rv))
    t.get("any version", CM, resourceVersion="0", only=lambda o: o["kind"])
    t.get("not older than", CM, resourceVersion=listed.rv, resourceVersionMatch="NotOlderThan", only=pick)
    t.get("not older than, as the default", CM, resourceVersion=listed.rv, only=pick)
    t.get("exactly", CM, resourceVersion=listed.rv, resourceVersionMatch="Exact", only=pick)
    t.get("exactly the first", CM, resourceVersion=first.rv, resourceVersionMatch="Exact", only=pick)
    t.get("exactly zero", CM, resourceVersion="0", resourceVersionMatch="Exact")
    t.get("match without a version", CM, resourceVersionMatch="Exact")
    t.get("match of what nobody knows", CM, resourceVersion="1", resourceVersionMatch="Nearly")
    t.get("a version that is no number", CM, resourceVersion="abc")
    t.get("get of any version", CM + "/a", resourceVersion="0", only=lambda o: o["kind"])
    t.get("get with a version that is no number", CM + "/a", resourceVersion="abc")
    t.get("from the future", CM, resourceVersion=str(int(listed.rv) + 1000000), only=None)
    t.steps[-1]["body"].pop("message")  # it has the current version in it


def test_all_namespaces(t):
    t.ask("POST", POOLS, pool("across"))
    mine = lambda o: [i["metadata"]["name"] for i in o["items"] if i["metadata"]["namespace"] == t.ns]  # noqa: E731
    t.get("pools of all namespaces", "/apis/extensions.agents.x-k8s.io/v1beta1/sandboxwarmpools", only=mine)
    t.get("a field selector for one namespace", "/apis/extensions.agents.x-k8s.io/v1beta1/sandboxwarmpools", fieldSelector=f"metadata.namespace={t.ns}", only=names_of)
    t.get("a namespace that is not there is empty", "/api/v1/namespaces/no-such/configmaps", only=lambda o: o["items"])
    t.get("an empty list", SANDBOXES)
    t.get("an empty core list", "/api/v1/namespaces/{ns}/pods")

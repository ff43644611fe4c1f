"""Create, read, update: status codes, Status bodies, resourceVersions; and bodies that are wrong in every way."""

import random

import yaml

from things import CM, PODS, SANDBOXES, config_map, pod, sandbox
from transcript import field, protobuf


def test_life(t):
    made = t.post("create", CM, config_map("a", {"k": "v"}))
    t.post("create again", CM, config_map("a"))
    t.get("get", CM + "/a")
    t.get("get one that is not there", CM + "/b")
    t.get("list of what is there", CM, fieldSelector="metadata.name=a")
    same = made.json
    t.put("update that changes nothing keeps the version", CM + "/a", same)
    t.put("update without a version is unconditional", CM + "/a", config_map("a", {"k": "w"}))
    t.put("update with an old version", CM + "/a", same)
    t.put("update of one that is not there", CM + "/b", config_map("b"))
    t.put("update of one that is not there, with a version", CM + "/b", config_map("b", resourceVersion="1"))
    t.put("update under another name", CM + "/b", config_map("a"))
    t.put("update without a name", CM + "/a", {"data": {"k": "x"}})
    t.put("update with another uid", CM + "/a", config_map("a", uid="11111111-2222-3333-4444-555555555555"))
    t.put("update with a version that is no number", CM + "/a", config_map("a", resourceVersion="abc"))
    t.delete("delete", CM + "/a")
    t.delete("delete again", CM + "/a")
    t.get("get after delete", CM + "/a")


def test_create_refused(t):
    t.post("namespace of the body is another", CM, config_map("a", namespace="default"))
    t.post("namespace that is not there", "/api/v1/namespaces/no-such/configmaps", config_map("a"))
    t.post("resourceVersion set", CM, config_map("a", resourceVersion="5"))
    t.post("uid set is ignored", CM, config_map("u", uid="11111111-2222-3333-4444-555555555555"), only=lambda o: len(o["metadata"]["uid"]))
    t.post("create on an object's path", CM + "/a", config_map("a"))
    t.put("put on the collection", CM, config_map("a"))
    t.post("resource that is not there", "/api/v1/namespaces/{ns}/nothings", config_map("a"))
    t.get("group that is not there", "/apis/no.such.group/v1/things")
    t.get("version that is not there", "/apis/apps/v9/deployments")
    t.get("version of ours that is not there", "/apis/agents.x-k8s.io/v9/sandboxes")
    t.post("namespaced kind without a namespace", "/api/v1/configmaps", config_map("a"))
    t.call("method that no one knows", "BREW", CM)


def test_names(t):
    t.post("no name", CM, {"metadata": {}})
    t.post("no metadata", CM, {})
    t.post("upper case", CM, config_map("Abc"))
    t.post("slash", CM, config_map("a/b"))
    t.post("254 characters", CM, config_map("a" * 254))
    t.post("253 characters", CM, config_map("a" * 253), only=lambda o: o["kind"])
    t.post("dots are fine", CM, config_map("a.b-c"), only=lambda o: o["metadata"]["name"])
    t.post("a sandbox in upper case", SANDBOXES, sandbox("Abc"))
    t.post("a sandbox without name", SANDBOXES, {k: v for k, v in sandbox("x").items() if k != "metadata"})
    made = t.ask("POST", CM, {"metadata": {"generateName": "gen-"}})
    t.note("generateName adds five characters", [made.status, len(made["metadata"]["name"]), made["metadata"]["generateName"]])
    made = t.ask("POST", CM, {"metadata": {"generateName": "g" * 80 + "-"}})
    t.note("generateName is cut to leave room", [made.status, len(made["metadata"]["name"])])
    t.post("name wins over generateName", CM, {"metadata": {"generateName": "gen-", "name": "plain"}})
    bad = t.ask("POST", CM, {"metadata": {"generateName": "Gen_"}})
    t.note("bad generateName", [bad.status, [c["field"] for c in bad["details"]["causes"]]])


def test_metadata(t):
    t.post("label key", CM, config_map("a", labels={"-bad": "x"}))
    t.post("label value", CM, config_map("a", labels={"ok": "not ok"}))
    t.post("label value too long", CM, config_map("a", labels={"ok": "x" * 64}))
    t.post("label prefix", CM, config_map("a", labels={"Bad_Prefix/x": "y"}))
    t.post("annotation key", CM, config_map("a", annotations={"a b": "x"}))
    t.post("annotations too large", CM, config_map("a", annotations={"a": "x" * (256 * 1024)}))
    t.post("finalizer without a domain", CM, config_map("a", finalizers=["plain"]))
    t.post("finalizer", CM, config_map("f", finalizers=["example.com/keep"]))
    bad = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": ""}]
    t.post("owner without name and uid", CM, config_map("a", ownerReferences=bad))
    two = [{"apiVersion": "v1", "kind": "ConfigMap", "name": n, "uid": n, "controller": True} for n in "xy"]
    t.post("two controllers", CM, config_map("a", ownerReferences=two))
    t.post("label of the wrong type", CM, {"metadata": {"name": "a", "labels": {"a": 1}}})
    t.post("several faults at once", CM, config_map("A_", labels={"-": "-", "x": " "}))
    t.patch("remove the finalizer", CM + "/f", "merge", {"metadata": {"finalizers": None}})


def test_bodies(t):
    json_type = {"content-type": "application/json"}
    t.post("empty body", CM, raw=b"", headers=json_type)
    t.post("not JSON", CM, raw=b"{hello", headers=json_type)
    t.post("cut short", CM, raw=b'{"metadata":{"name":"a"', headers=json_type)
    t.post("an array", CM, raw=b"[]", headers=json_type)
    t.post("null", CM, raw=b"null", headers=json_type)
    t.post("text after the object", CM, raw=b'{"metadata":{"name":"a"}} x', headers=json_type)
    t.post("another kind", CM, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})
    t.post("another version", CM, {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}})
    t.post("a kind nobody knows", CM, {"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "a"}})
    t.post("no kind and no version", CM, {"metadata": {"name": "plain"}})
    t.post("kind without version", CM, {"kind": "ConfigMap", "metadata": {"name": "plain2"}})
    t.post("a number where a text is wanted", CM, config_map("a", {"k": 1}))
    t.post("a text where a map is wanted", CM, {"metadata": {"name": "a"}, "data": "x"})
    t.post("a text where a number is wanted", PODS, pod("a", {"containers": [], "priority": "high"}))
    t.post("null members are absent members", CM, {"metadata": {"name": "nulls", "labels": None}, "data": None})
    t.post("a sandbox of another kind", SANDBOXES, dict(sandbox("a"), kind="Sandbag"))
    t.post("a sandbox of another group", SANDBOXES, dict(sandbox("a"), apiVersion="v1"))
    t.post("a sandbox without kind and version", SANDBOXES, {"metadata": {"name": "a"}, "spec": sandbox("a")["spec"]})
    t.post("a sandbox that is not JSON", SANDBOXES, raw=b"{hello", headers=json_type)


def test_content_types(t):
    text = b"metadata:\n  name: by-yaml\ndata:\n  k: v\n"
    t.post("YAML", CM, raw=text, headers={"content-type": "application/yaml"})
    t.post("YAML that is not", CM, raw=b"a: b: c", headers={"content-type": "application/yaml"})
    t.post("no content type is JSON", CM, raw=b'{"metadata":{"name":"no-type"}}')
    t.post("charset parameter", CM, raw=b'{"metadata":{"name":"charset"}}', headers={"content-type": "application/json; charset=utf-8"})
    t.post("a type nobody knows", CM, raw=b"x", headers={"content-type": "text/plain"})
    t.post("a type for a sandbox nobody knows", SANDBOXES, raw=b"x", headers={"content-type": "text/plain"})
    body = protobuf("v1", "ConfigMap", field(1, field(1, "by-protobuf")) + field(2, field(1, "k") + field(2, "v")))
    t.post("protobuf", CM, raw=body, headers={"content-type": "application/vnd.kubernetes.protobuf", "accept": "application/json"})
    t.post("protobuf without its prefix", CM, raw=b"\x0a\x02hi", headers={"content-type": "application/vnd.kubernetes.protobuf", "accept": "application/json"})
    t.post("protobuf cut short", CM, raw=body[:-3], headers={"content-type": "application/vnd.kubernetes.protobuf", "accept": "application/json"})
    t.get("accept what nobody makes", CM, headers={"accept": "application/xml"})
    t.get("accept a list of types", CM + "/by-protobuf", headers={"accept": "application/xml;q=0.9, application/json"})
    t.get("accept anything", CM + "/by-protobuf", headers={"accept": "*/*"})
    t.get("protobuf or JSON", CM + "/by-protobuf", headers={"accept": "application/vnd.kubernetes.protobuf,application/json"},
          only=lambda _: "either is fine")
    t.get("a sandbox in protobuf or JSON", SANDBOXES, headers={"accept": "application/vnd.kubernetes.protobuf,application/json"}, only=lambda o: o["kind"])


def test_yaml(t):
    """Answers in YAML, line by line: what is quoted, how lists stand, the order of members."""
    yaml_type = {"accept": "application/yaml"}
    data = {"plain": "x y", "yes": "yes", "number": "12", "octal": "010", "float": "1e3", "time": "2026-01-02T03:04:05Z", "empty": "",
            "lines": "a\nb\n", "no-end": "a\n\nb", "ends": "a\n\n", "colon": "a: b", "hash": "a #b", "quote": "it's", "double": 'say "x"', "tab": "a\tb",
            "blank": " x", "star": "*x", "sixty": "12:30", "dash": "- a", "minus": "-a", "tilde": "~", "letters": "\u00e9\u4e2d", "brace": "{a", "comma": "a,b"}
    t.post("create", CM, config_map("y", data), headers=yaml_type, only=t.lines)
    t.get("get", CM + "/y", headers=yaml_type, only=t.lines)
    t.get("list", CM, headers=yaml_type, fieldSelector="metadata.name=y", only=t.lines)
    t.get("none there", CM, headers=yaml_type, fieldSelector="metadata.name=none", only=t.lines)
    made = t.ask("POST", SANDBOXES, sandbox("s", {"labels": {"on": "off"}}))
    t.note("a sandbox is made", made.status)
    t.get("a sandbox", SANDBOXES + "/s", headers=yaml_type, only=t.lines)
    t.get("sandboxes", SANDBOXES, headers=yaml_type, only=t.lines)
    t.get("missing", CM + "/none", headers=yaml_type)
    watch = t.ask("GET", CM, headers=yaml_type, watch="1", timeoutSeconds="1")
    t.note("a watch is none", [watch.status, watch.type, yaml.safe_load(watch.bytes)])
    t.get("discovery", "/apis/coordination.k8s.io", headers=yaml_type, only=t.lines)


def test_yaml_texts(api, ns):
    """Whatever a text is, a reader of YAML gets it back."""
    random.seed(5)
    pieces = ["a", "b c", ":", " ", "#", "- ", "'", '"', "\\", "0", "1", "e", ".", "~", "null", "\u00e9", "|", ">", "&", "*", "!", "%", "@", "`", "{", "}", "[", "]", ",", "?"]
    if api.kind == "ours":  # the other's writer has faults with these
        pieces += ["no", "<<", "2026-01-02", "_", "+", "0x", "\n", "\t", "\r", "\x7f", "\x85", "\u2028", "\ufeff", "\U0001f600", "=", "---", "..."]
    data = {f"k{i}": "".join(random.choice(pieces) for _ in range(random.randrange(6))) for i in range(400)}
    url = CM.replace("{ns}", ns)
    assert api.request("POST", url, json=config_map("texts", data)).status_code == 201
    answer = api.request("GET", url + "/texts", headers={"accept": "application/yaml"})
    assert answer.headers["content-type"] == "application/yaml"
    assert yaml.safe_load(answer.content)["data"] == data
    listed = yaml.safe_load(api.request("GET", url, params={"fieldSelector": "metadata.name=texts"}, headers={"accept": "application/yaml"}).content)
    assert listed["items"][0]["data"] == data


def test_too_large(t):
    data = b'{"metadata":{"name":"big"},"data":{"k":"' + b"x" * (3 * 1024 * 1024) + b'"}}'
    t.post("3 MiB and more", CM, raw=data, headers={"content-type": "application/json"})
    t.post("a config map over 1 MiB", CM, config_map("big", {"k": "x" * (1024 * 1024 + 1)}))


def test_field_validation(t):
    body = {**config_map("a"), "dada": {"k": "v"}}
    nested = sandbox("s", podTemplte={}, service=True)
    for how in ("Ignore", "Warn", "Strict"):
        t.post(f"unknown field, {how}", CM, dict(body, metadata={"name": f"cm-{how.lower()}"}), fieldValidation=how, keep=["warning"])
        t.post(f"unknown field of a sandbox, {how}", SANDBOXES, dict(nested, metadata={"name": f"s-{how.lower()}"}), fieldValidation=how, keep=["warning"])
        raw = b'{"metadata":{"name":"twice-%s"},"data":{"k":"1","k":"2"},"data":{}}' % how.lower().encode()
        t.post(f"field given twice, {how}", CM, raw=raw, headers={"content-type": "application/json"}, fieldValidation=how, keep=["warning"])
    t.post("how nobody knows", CM, config_map("a"), fieldValidation="Maybe")
    t.post("default warns", CM, dict(body, metadata={"name": "default"}), keep=["warning"])
    t.put("update, Strict", CM + "/default", dict(body, metadata={"name": "default"}), fieldValidation="Strict")
    t.patch("patch, Strict", CM + "/default", "merge", {"dada": {"x": "y"}}, fieldValidation="Strict")
    t.patch("patch, Warn", CM + "/default", "merge", {"dada": {"x": "y"}}, fieldValidation="Warn", keep=["warning"])


def test_dry_run(t):
    t.post("create", CM, config_map("a", {"k": "v"}), dryRun="All")
    t.get("it was not", CM + "/a")
    t.post("create for real", CM, config_map("a", {"k": "v"}))
    t.put("update", CM + "/a", config_map("a", {"k": "w"}), dryRun="All", only=lambda o: o["data"])
    t.patch("patch", CM + "/a", "merge", {"data": {"k": "x"}}, dryRun="All", only=lambda o: o["data"])
    t.delete("delete", CM + "/a", dryRun="All")
    t.get("it is as it was", CM + "/a")
    t.post("dryRun of what nobody knows", CM, config_map("b"), dryRun="Some")
    t.post("a sandbox", SANDBOXES, sandbox("a"), dryRun="All")
    t.get("the sandbox was not", SANDBOXES + "/a")

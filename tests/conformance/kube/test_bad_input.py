"""Bodies that are wrong, on every path that takes one: the whole Status, with the place where that is ours to tell (the words
of the public server about its own decoder are not; see differences.py). After all of them nothing has changed."""

import pytest

from conftest import Api
from lib import controlplane
from things import pod
from transcript import field, protobuf

CM = "/api/v1/namespaces/default/configmaps"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/d"
PLAIN, PROTOBUF = "application/json", "application/vnd.kubernetes.protobuf"
WRITES = [("POST", CM, PLAIN), ("PUT", CM + "/a", PLAIN), ("DELETE", CM + "/a", PLAIN), ("DELETE", CM, PLAIN), ("PUT", DEPLOYMENT + "/scale", PLAIN), ("PUT", DEPLOYMENT + "/status", PLAIN),
          ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", PLAIN), ("POST", "/api/v1/namespaces/default/pods/p/eviction", PLAIN),
          ("POST", "/api/v1/namespaces/default/pods/p/binding", PLAIN), ("PUT", "/api/v1/namespaces/default/finalize", PLAIN), ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", PLAIN)]
PATCHES = [("PATCH", CM + "/a", "application/json-patch+json"), ("PATCH", CM + "/a", "application/merge-patch+json"), ("PATCH", CM + "/a", "application/strategic-merge-patch+json"),
           ("PATCH", DEPLOYMENT + "/scale", "application/merge-patch+json")]
APPLY = ("PATCH", CM + "/a?fieldManager=me", "application/apply-patch+yaml")
TOO_LARGE = "Request entity too large: limit is 3145728"
REFUSED = [
    ("cut short", b'{"a":\n [1,', "not JSON: Expecting value: line 2 column 5 (char 10)"),
    ("a comma too many", b'{"a":\n [1,}', "not JSON: Expecting value: line 2 column 5 (char 10)"),
    ("nothing is no JSON", b" ", "not JSON: Expecting value: line 1 column 2 (char 1)"),
    ("not UTF-8", b'{"a":"\xff"}', "not JSON: Invalid UTF-8: line 1 column 7 (char 6)"),
    ("a lone surrogate", b'{"a":"\\ud800"}', "not JSON: Invalid \\uXXXX escape: line 1 column 8 (char 7)"),
]


def status(code, reason, message):
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}


def told(path):
    return "/".join(path.split("?")[0].split("/")[-2:])


@pytest.fixture(scope="module")
def ours():
    try:
        made = controlplane.Silica()
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with made:
        api = Api(made)
        labels = {"a": "b"}
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod("x")["spec"]}, "replicas": 3}
        for path, body in ((CM, {"metadata": {"name": "a"}, "data": {"k": "v"}}), ("/api/v1/namespaces/default/pods", pod("p")), (DEPLOYMENT[:-2], {"metadata": {"name": "d"}, "spec": spec})):
            assert api.request("POST", path, json=body).status_code == 201
        yield api


@pytest.fixture(autouse=True)
def unchanged(ours):
    """What is there before is there after, in the same version."""
    paths = (CM, "/api/v1/namespaces/default/pods", DEPLOYMENT[:-2], "/api/v1/namespaces/default")
    before = [ours.request("GET", path).json() for path in paths]
    yield
    after = [ours.request("GET", path).json() for path in paths]
    assert [o.get("items", o) for o in after] == [o.get("items", o) for o in before]


def ask(ours, where, body):
    method, path, kind = where
    answer = ours.request(method, path, data=body, headers={"content-type": kind, "connection": "close"})  # a body that is too large ends it
    return answer.status_code, answer.json()


@pytest.mark.parametrize("where", WRITES + PATCHES + [APPLY], ids=lambda w: f"{w[0]}-{told(w[1])}-{w[2].split('/')[1]}")
def test_too_large(ours, where):
    body = b'{"metadata":{"name":"a"},"data":{"k":"' + b"x" * (3 << 20) + b'"}}'
    assert ask(ours, where, body) == (413, status(413, "RequestEntityTooLarge", TOO_LARGE))
    assert ask(ours, where, (b"x" * 100000 for _ in range(40))) == (413, status(413, "RequestEntityTooLarge", TOO_LARGE))  # its length not said


@pytest.mark.parametrize("where", WRITES + PATCHES, ids=lambda w: f"{w[0]}-{told(w[1])}-{w[2].split('/')[1]}")
def test_malformed(ours, where):
    before = "error decoding patch: " if where[0] == "PATCH" else "couldn't get version/kind; json parse error: "
    for _, body, why in REFUSED:
        assert ask(ours, where, body) == (400, status(400, "BadRequest", before + why))
    deep = b"[" * 300 + b"]" * 300
    assert ask(ours, where, deep) == (413, status(413, "RequestEntityTooLarge", "JSON text with more than 256 levels"))


@pytest.mark.parametrize("where", WRITES, ids=lambda w: f"{w[0]}-{told(w[1])}")
def test_not_an_object(ours, where):
    for body, what in ((b"[]", "array"), (b'"x"', "string"), (b"7", "number"), (b"true", "boolean")):
        assert ask(ours, where, body) == (400, status(400, "BadRequest", f"the body of the request is {what}, not an object"))


def test_yaml(ours):
    for body, why in ((b"a: b: c", "yaml: mapping values are not allowed in this context"), (b"a: 1\nb: [x\nc: d\n", "yaml: line 1: did not find expected ',' or ']'"),
                      (b"a: *x\n", "yaml: unknown anchor 'x' referenced"), (b"a:\n\t- x\n", "yaml: line 2: found character that cannot start any token")):
        assert ask(ours, ("POST", CM, "application/yaml"), body) == (400, status(400, "BadRequest", "error converting YAML to JSON: " + why))
        assert ask(ours, APPLY, body) == (400, status(400, "BadRequest", "error decoding YAML: error converting YAML to JSON: " + why))
    laughs = b"a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + b"".join(b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 12))
    assert ask(ours, ("POST", CM, "application/yaml"), laughs)[0] == 413


def test_protobuf(ours):
    good = field(1, field(1, "pb")) + field(2, field(1, "k") + field(2, "v"))
    prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    for body, why in ((b"", prefix), (b"hello", prefix), (protobuf("v1", "ConfigMap", good)[:-3], "envelope: proto: unexpected end of the message"),
                      (b"k8s\0" + b"\xff" * 20, "envelope: proto: illegal tag"), (protobuf("v1", "ConfigMap", good[:-1]), "ConfigMap, byte 6 of the object: proto: unexpected end of the message"),
                      (protobuf("v1", "ConfigMap", field(1, b"\x0a\x7f")), "ObjectMeta, byte 2 of the object: proto: unexpected end of the message"),
                      (protobuf("v1", "ConfigMap", b"\x08\x01"), "proto: wrong wireType = 0 for field metadata of ConfigMap"),
                      (protobuf("v1", "Secret", b""), "the kind in the data (Secret) does not match the expected kind (ConfigMap)")):
        assert ask(ours, ("POST", CM, PROTOBUF), body) == (400, status(400, "BadRequest", why))
    code, body = ask(ours, ("POST", "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes", PROTOBUF), protobuf("agents.x-k8s.io/v1beta1", "Sandbox", b""))
    assert (code, body["reason"]) == (415, "UnsupportedMediaType")


def test_queries(ours):
    for query, code, reason in (("limit=many", 400, "BadRequest"), ("resourceVersion=x", 400, "BadRequest"), ("labelSelector=a+in+%28", 400, "BadRequest"), ("fieldSelector=spec.x%3D1", 400, "BadRequest"),
                                ("continue=rubbish", 400, "BadRequest"), ("resourceVersion=99999999999999999", 504, "Timeout"), ("resourceVersionMatch=Exact", 422, "Invalid")):
        answer = ours.request("GET", f"{CM}?{query}")
        assert (answer.status_code, answer.json()["reason"]) == (code, reason), query
    assert ours.request("GET", CM + "/%00").status_code == 404
    assert ours.request("GET", "/api/v1/namespaces/default%2Fx/configmaps").status_code == 404

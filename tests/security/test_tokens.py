"""A token that is bound to an object ends with that object, whatever is made under its name later."""

import urllib.error

import pytest

from harness.server import wait_until
from lib import up as ups

NS = "/api/v1/namespaces/default"
OTHER = "11111111-2222-3333-4444-555555555555"
OBJECTS = {"Secret": (f"{NS}/secrets", {"metadata": {"name": "bound"}}),
           "Node": ("/api/v1/nodes", {"metadata": {"name": "bound"}}),
           "Pod": (f"{NS}/pods", {"metadata": {"name": "bound"}, "spec": {"nodeName": "none", "containers": [{"name": "c", "image": "none"}]}})}


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param) as started:
        yield started


def status(call):
    try:
        call()
        return 200
    except urllib.error.HTTPError as e:
        return e.code


def token(up, ref):
    answer = up.api.call("POST", f"{NS}/serviceaccounts/default/token", {"spec": {"boundObjectRef": ref}})
    return answer["status"]["token"]


def use(up, tmp_path, shown):
    """What a request with the token is answered, and whether a review takes it."""
    caller = ups.Reader(tmp_path, up.ready["kubeconfig"])
    caller.token, caller.client_cert = shown, None
    review = up.api.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": shown}})
    return status(lambda: caller.call("GET", f"{NS}/configmaps")), review["status"].get("authenticated", False)


@pytest.mark.parametrize("kind", OBJECTS)
def test_it_ends_with_what_it_is_bound_to(up, kind, tmp_path):
    path, body = OBJECTS[kind]
    uid = up.api.call("POST", path, body)["metadata"]["uid"]
    ref = {"apiVersion": "v1", "kind": kind, "name": "bound"}
    shown = [token(up, ref), token(up, {**ref, "uid": uid})]
    assert [use(up, tmp_path, t) for t in shown] == [(403, True)] * 2  # known, and without rights
    assert status(lambda: token(up, {**ref, "uid": OTHER})) == 409
    up.api.call("DELETE", f"{path}/bound?gracePeriodSeconds=0")
    wait_until(lambda: not up.api.exists(f"{path}/bound"), 30, "it is gone")
    assert [use(up, tmp_path, t) for t in shown] == [(401, False)] * 2
    up.api.call("POST", path, body)
    try:
        assert [use(up, tmp_path, t) for t in shown] == [(401, False)] * 2
    finally:
        up.api.call("DELETE", f"{path}/bound?gracePeriodSeconds=0")


def test_what_it_cannot_be_bound_to(up):
    for ref in ({"kind": "ConfigMap", "name": "kube-root-ca.crt"}, {"kind": "Sandbox", "apiVersion": "agents.x-k8s.io/v1beta1", "name": "x"}, {}):
        assert status(lambda: token(up, ref)) == 400, ref
    assert status(lambda: token(up, {"kind": "Secret", "name": "none"})) == 404

"""The tables the object model is made from (src/kube/tables) against a real server's OpenAPI documents: every type we have,
every member of it, its type, list type, keys, merge key and strategy, default, and what is required.
"""
import json
import pathlib
import subprocess

import pytest
import requests

from lib import controlplane

PROBE = pathlib.Path(__file__).resolve().parents[3] / "build/debug/src/kube/openapi_probe"
GROUPS = ["", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
          "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io", "apiextensions.k8s.io"]
KEYS = ["type", "format", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
        "x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy"]

# Members we tell otherwise, and why.
OTHERWISE = {
    "Condition.status": "the values are enforced for custom kinds, so we tell them everywhere",
    "CustomResourceSubresources.status": "an empty object; any JSON to us",
    "CustomResourceValidation.openAPIV3Schema": "kept as it came, not read",
    "EndpointSlice.addressType": "the values are computed from another type's in the declarations",
    "ManagedFieldsEntry.fieldsV1": "any JSON to us",
    "PersistentVolumeClaimStatus.allocatedResourceStatuses": "says that the map is granular, as every map is",
}
# Types every document of ours has for the operations, where a real one has them only when used.
SHARED = ("io.k8s.apimachinery.",)


@pytest.fixture(scope="module")
def real():
    try:
        made = controlplane.ControlPlane()
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with made:
        yield made


def schemas(document):
    return document["components"]["schemas"]


def of_real(real, group):
    path = f"/openapi/v3/apis/{group}/v1" if group else "/openapi/v3/api/v1"
    answer = requests.get(real.url + path, verify=str(real.ca_file), timeout=60,
                          headers={"authorization": f"Bearer {real.token}"} if real.token else {},
                          cert=(str(real.client_cert), str(real.client_key)) if real.client_cert else None)
    assert answer.status_code == 200, answer.text
    return schemas(answer.json())


def facts(field):
    """What a member is, without words and without defaults that are only the zero of its type."""
    out = {key: field[key] for key in KEYS if key in field}
    ref = field.get("$ref") or (field.get("allOf") or [{}])[0].get("$ref")
    if ref:
        out["ref"] = ref.split("/")[-1]
    for inner in ("items", "additionalProperties"):
        if isinstance(field.get(inner), dict):
            out[inner] = facts(field[inner])
    if field.get("default") not in (None, {}, "", 0, False):
        out["default"] = field["default"]
    if "enum" in field:
        out["enum"] = sorted(field["enum"])
    return out


def differences(name, ours, real):
    short = name.rsplit(".", 1)[-1]
    if set(ours.get("required", [])) != set(real.get("required", [])):
        yield f"{short}: required {ours.get('required')} but {real.get('required')}"
    if ours.get("x-kubernetes-map-type") != real.get("x-kubernetes-map-type"):
        yield f"{short}: map type {ours.get('x-kubernetes-map-type')} but {real.get('x-kubernetes-map-type')}"
    a, b = ours.get("properties", {}), real.get("properties", {})
    for member in sorted(set(a) | set(b)):
        if f"{short}.{member}" in OTHERWISE and member in a and member in b:
            continue
        if facts(a.get(member, {})) != facts(b.get(member, {})) or (member in a) != (member in b):
            yield f"{short}.{member}: {facts(a.get(member, {}))} but {facts(b.get(member, {}))}"


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: g or "core")
def test_types(real, group):
    ours = schemas(json.loads(subprocess.check_output([PROBE, group, "v1"])))
    theirs = of_real(real, group)
    missing = [name for name in ours if name not in theirs and not name.startswith(SHARED)]
    assert not missing
    found = [line for name in ours if name in theirs for line in differences(name, ours[name], theirs[name])]
    assert not found, "\n".join(found)


def test_every_exception_is_needed(real):
    needed = set()
    for group in GROUPS:
        ours = schemas(json.loads(subprocess.check_output([PROBE, group, "v1"])))
        theirs = of_real(real, group)
        for row in OTHERWISE:
            short, member = row.split(".")
            for name in ours:
                if name.endswith(f".{short}") and name in theirs:
                    a, b = ours[name].get("properties", {}).get(member), theirs[name].get("properties", {}).get(member)
                    if a and b and facts(a) != facts(b):
                        needed.add(row)
    assert needed == set(OTHERWISE)

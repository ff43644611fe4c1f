"""CustomResourceDefinitions: ours are there, and applying the public ones changes nothing of what is served."""

import copy

from lib.controlplane import our_crds
from things import SANDBOXES, sandbox

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMES = ["sandboxclaims.extensions.agents.x-k8s.io", "sandboxes.agents.x-k8s.io", "sandboxtemplates.extensions.agents.x-k8s.io", "sandboxwarmpools.extensions.agents.x-k8s.io"]
BOX = DEFINITIONS + "/sandboxes.agents.x-k8s.io"


def versionless(o):
    return {"names": o["spec"]["names"], "group": o["spec"]["group"], "scope": o["spec"]["scope"], "stored": [v["name"] for v in o["spec"]["versions"] if v["storage"]]}


def beta(o):
    return next({k: v for k, v in version.items() if k != "schema"} for version in o["spec"]["versions"] if version["name"] == "v1beta1")


def schema(o):
    return next(version["schema"] for version in o["spec"]["versions"] if version["name"] == "v1beta1")


def public():
    return next(crd for crd in our_crds() if crd["metadata"]["name"] == "sandboxes.agents.x-k8s.io")


def test_there(t):
    t.get("all of them", DEFINITIONS, only=lambda o: [o["kind"], o["apiVersion"], [i["metadata"]["name"] for i in o["items"] if i["metadata"]["name"] in NAMES]])
    for name in NAMES:
        t.get(f"{name} is established", f"{DEFINITIONS}/{name}", only=lambda o: o["status"])
        t.get(f"{name} says what it is of", f"{DEFINITIONS}/{name}", only=versionless)
        t.get(f"{name} in v1beta1", f"{DEFINITIONS}/{name}", only=beta)
    t.note("its schema is what deploy/crds has", schema(t.ask("GET", BOX).json) == schema(public()))
    t.get("one that is not there", DEFINITIONS + "/things.example.com")
    t.get("as a table", BOX, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, includeObject="None", only=lambda o: [[c["name"] for c in o["columnDefinitions"]], o["rows"][0]["cells"]])


def test_refused(t):
    """What is no definition is told before anything else."""
    body = public()
    for step, change in (("another name", lambda o: o["spec"]["names"].update(plural="boxes")), ("no group", lambda o: o["spec"].pop("group")),
                         ("no scope", lambda o: o["spec"].pop("scope")), ("another scope", lambda o: o["spec"].update(scope="Everywhere"))):
        bad = copy.deepcopy(body)
        change(bad)
        got = t.ask("POST", DEFINITIONS, bad)
        t.note(step, [got.status, got["reason"], sorted({c["field"] for c in got["details"]["causes"]} & {"metadata.name", "spec.group", "spec.scope"})])
    t.note("update without a version", t.ask("PUT", BOX, body).json)


def test_written(t):
    """Written by others it is still a definition, established, and what is served stays."""
    body = public()
    t.patch("labelled", BOX, "merge", {"metadata": {"labels": {"team": "a"}}}, only=lambda o: o["metadata"]["labels"])
    now = t.ask("GET", BOX).json
    now["spec"]["versions"][0]["additionalPrinterColumns"] = [{"name": "Mode", "type": "string", "jsonPath": ".spec.operatingMode"}]
    if t.api.kind == "ours":  # the real server would serve that column from here on
        t.ask("PUT", BOX, now)
    t.get("still established", BOX, only=lambda o: [[c["type"], c["status"]] for c in o["status"]["conditions"]])
    t.post("a sandbox can be made", SANDBOXES, sandbox("s"), only=lambda o: o["kind"])
    t.get("its columns", SANDBOXES, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, only=lambda o: [c["name"] for c in o["columnDefinitions"]])
    applied = t.ask("PATCH", BOX, {**body, "metadata": {"name": "sandboxes.agents.x-k8s.io", "labels": {"team": "b"}}}, headers={"content-type": "application/apply-patch+yaml"}, fieldManager="me", force="true")
    t.note("applied", [applied.status, applied["metadata"]["labels"], [[c["type"], c["status"]] for c in applied["status"]["conditions"]]])
    t.ask("PATCH", BOX, {"metadata": {"labels": None}}, headers={"content-type": "application/merge-patch+json"})

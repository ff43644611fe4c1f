"""Our four kinds: defaults, enumerations, required fields, rules, and what is done with unknown fields."""

from things import CLAIMS, POD_SPEC, POOLS, SANDBOXES, TEMPLATES, claim, pool, sandbox, template

CLAIM_TEMPLATE = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]


def test_sandbox(t):
    t.post("minimal", SANDBOXES, sandbox("a"))
    t.post("everything", SANDBOXES, sandbox("full", service=True, shutdownTime="2030-01-02T03:04:05Z", shutdownPolicy="Delete", operatingMode="Suspended",
                                          volumeClaimTemplates=CLAIM_TEMPLATE, podTemplate={"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": POD_SPEC}))
    t.post("no spec", SANDBOXES, {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "x"}})
    t.post("spec null", SANDBOXES, {**sandbox("x"), "spec": None})
    t.post("no podTemplate", SANDBOXES, {**sandbox("x"), "spec": {}})
    t.post("no pod spec", SANDBOXES, sandbox("x", podTemplate={}))
    t.post("no containers", SANDBOXES, sandbox("x", podTemplate={"spec": {}}))
    t.post("container without a name", SANDBOXES, sandbox("x", podTemplate={"spec": {"containers": [{"image": "y"}]}}))
    t.post("no containers at all is a list", SANDBOXES, sandbox("none", podTemplate={"spec": {"containers": []}}), only=lambda o: o["spec"]["podTemplate"])
    t.post("a mode nobody knows", SANDBOXES, sandbox("x", operatingMode="Sleeping"))
    t.post("a policy nobody knows", SANDBOXES, sandbox("x", shutdownPolicy="Explode"))
    t.post("a time that is none", SANDBOXES, sandbox("x", shutdownTime="tomorrow"))
    t.post("a text where a truth is wanted", SANDBOXES, sandbox("x", service="yes"))
    t.post("a map where a list is wanted", SANDBOXES, sandbox("x", volumeClaimTemplates={}))
    t.post("a claim template without spec", SANDBOXES, sandbox("x", volumeClaimTemplates=[{"metadata": {"name": "d"}}]))
    t.post("labels of the wrong type", SANDBOXES, sandbox("x", podTemplate={"metadata": {"labels": {"a": 1}}, "spec": POD_SPEC}))
    t.post("several faults", SANDBOXES, sandbox("x", operatingMode="A", shutdownPolicy="B", podTemplate={}))
    t.post("null is the default", SANDBOXES, sandbox("nulls", operatingMode=None, shutdownPolicy=None), only=lambda o: o["spec"])
    t.post("unknown fields go", SANDBOXES, sandbox("pruned", colour="red"), only=lambda o: sorted(o["spec"]))


def test_immutable(t):
    t.ask("POST", SANDBOXES, sandbox("with", volumeClaimTemplates=CLAIM_TEMPLATE))
    t.ask("POST", SANDBOXES, sandbox("without"))
    other = [{**CLAIM_TEMPLATE[0], "metadata": {"name": "other"}}]
    t.patch("set to changed", SANDBOXES + "/with", "merge", {"spec": {"volumeClaimTemplates": other}})
    t.patch("set to unset", SANDBOXES + "/with", "merge", {"spec": {"volumeClaimTemplates": None}})
    t.patch("unset to set", SANDBOXES + "/without", "merge", {"spec": {"volumeClaimTemplates": CLAIM_TEMPLATE}})
    t.patch("unset to empty", SANDBOXES + "/without", "merge", {"spec": {"volumeClaimTemplates": []}})
    t.patch("the same is fine", SANDBOXES + "/with", "merge", {"spec": {"volumeClaimTemplates": CLAIM_TEMPLATE, "service": False}}, only=lambda o: o["spec"]["service"])
    t.put("by an update without a version", SANDBOXES + "/with", sandbox("with"))
    t.put("by update", SANDBOXES + "/with", sandbox("with", {"resourceVersion": t.ask("GET", SANDBOXES + "/with").rv}))
    t.patch("by status it is not looked at", SANDBOXES + "/with/status", "merge", {"spec": {"volumeClaimTemplates": None}, "status": {"service": "s"}}, only=lambda o: [o["status"], "volumeClaimTemplates" in o["spec"]])


def test_template(t):
    t.post("minimal", TEMPLATES, template("a"))
    rules = {"ingress": [{"from": [{"podSelector": {"matchLabels": {"a": "b"}}}], "ports": [{"port": 80}]}], "egress": []}
    t.post("policies", TEMPLATES, template("b", networkPolicy=rules, networkPolicyManagement="Unmanaged", envVarsInjectionPolicy="Overrides",
                                           volumeClaimTemplatesPolicy="Allowed", service=False))
    for name in ("networkPolicyManagement", "envVarsInjectionPolicy", "volumeClaimTemplatesPolicy"):
        t.post(f"{name} nobody knows", TEMPLATES, template("x", **{name: "Maybe"}))
    t.post("no spec", TEMPLATES, {"metadata": {"name": "x"}, "apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate"})
    changed = template("b", volumeClaimTemplates=CLAIM_TEMPLATE)
    changed["metadata"]["resourceVersion"] = t.ask("GET", TEMPLATES + "/b").rv
    t.put("everything may change", TEMPLATES + "/b", changed, only=lambda o: o["spec"])


def test_claim(t):
    t.post("minimal", CLAIMS, claim("a"))
    t.post("everything", CLAIMS, claim("b", lifecycle={"shutdownTime": "2030-01-02T03:04:05Z", "ttlSecondsAfterFinished": 5, "shutdownPolicy": "DeleteForeground"},
                                     additionalPodMetadata={"labels": {"a": "b"}}, env=[{"name": "A", "value": "1", "containerName": "main"}], volumeClaimTemplates=CLAIM_TEMPLATE))
    t.post("lifecycle has a default", CLAIMS, claim("c", lifecycle={}), only=lambda o: o["spec"])
    t.post("no pool", CLAIMS, {**claim("x"), "spec": {}})
    t.post("a pool without a name", CLAIMS, {**claim("x"), "spec": {"warmPoolRef": {}}})
    t.post("a policy nobody knows", CLAIMS, claim("x", lifecycle={"shutdownPolicy": "Maybe"}))
    t.post("a time to live below zero", CLAIMS, claim("x", lifecycle={"ttlSecondsAfterFinished": -1}))
    t.post("a time to live too large", CLAIMS, claim("x", lifecycle={"ttlSecondsAfterFinished": 3000000000}))
    t.post("a time to live that is no whole number", CLAIMS, claim("x", lifecycle={"ttlSecondsAfterFinished": 1.5}))
    t.post("a variable without a value", CLAIMS, claim("x", env=[{"name": "A"}]))
    t.patch("another pool", CLAIMS + "/a", "merge", {"spec": {"warmPoolRef": {"name": "other"}}}, only=lambda o: o["spec"])


def test_pool(t):
    t.post("minimal", POOLS, pool("a"))
    t.post("none wanted", POOLS, pool("b", replicas=0, updateStrategy={"type": "Recreate"}), only=lambda o: o["spec"])
    t.post("the strategy has a default", POOLS, pool("c", updateStrategy={}), only=lambda o: o["spec"])
    t.post("below zero", POOLS, pool("x", replicas=-1))
    t.post("too large", POOLS, pool("x", replicas=2147483648))
    t.post("a text", POOLS, pool("x", replicas="3"))
    t.post("a whole number as 3.0", POOLS, raw=b'{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool","metadata":{"name":"float"},"spec":{"replicas":3.0,"sandboxTemplateRef":{"name":"t"}}}',
           headers={"content-type": "application/json"}, only=lambda o: o["spec"])
    t.post("a strategy nobody knows", POOLS, pool("x", updateStrategy={"type": "Sideways"}))
    t.post("no template", POOLS, {**pool("x"), "spec": {"replicas": 1}})
    t.patch("null gives the default back", POOLS + "/b", "merge", {"spec": {"replicas": None}}, only=lambda o: o["spec"])


def inside(**container):
    return {"spec": {"containers": [{"name": "main", "image": "x", **container}]}}


def test_pod_template(t):
    """The pod's own fields inside a sandbox: their types are checked and the declared defaults filled in, no more than that."""
    spec = lambda o: o["spec"]["podTemplate"]["spec"]  # noqa: E731
    t.post("ports have a protocol", SANDBOXES, sandbox("ports", podTemplate=inside(ports=[{"containerPort": 80}])), only=spec)
    t.post("nothing else is filled in", SANDBOXES, sandbox("probes", podTemplate=inside(readinessProbe={"httpGet": {"path": "/", "port": 80}}, resources={"limits": {"cpu": 1, "memory": "64Mi"}})), only=spec)
    t.post("grpc probes have a service", SANDBOXES, sandbox("grpc", podTemplate=inside(readinessProbe={"grpc": {"port": 80}})), only=spec)
    t.post("references have a name", SANDBOXES, sandbox("refs", podTemplate=inside(envFrom=[{"configMapRef": {}}])), only=spec)
    t.post("unknown fields of a container", SANDBOXES, sandbox("unknown", podTemplate=inside(colour="red")), only=spec)
    t.post("unknown fields of a container, Strict", SANDBOXES, sandbox("x", podTemplate=inside(colour="red")), fieldValidation="Strict")
    t.post("values that only a pod would refuse", SANDBOXES, sandbox("loose", podTemplate={"spec": {"restartPolicy": "Sometimes", "containers": [{"name": "Bad_Name"}]}}), only=spec)
    t.post("a container twice", SANDBOXES, sandbox("x", podTemplate={"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}))
    t.post("a text for a port", SANDBOXES, sandbox("x", podTemplate=inside(ports=[{"containerPort": "80"}])))
    t.post("no port", SANDBOXES, sandbox("x", podTemplate=inside(ports=[{}])))
    t.post("no quantity", SANDBOXES, sandbox("x", podTemplate=inside(resources={"limits": {"memory": "much"}})))
    t.post("a truth for a quantity", SANDBOXES, sandbox("x", podTemplate=inside(resources={"limits": {"memory": True}})))
    t.post("number or text", SANDBOXES, sandbox("either", podTemplate=inside(livenessProbe={"tcpSocket": {"port": "http"}})), only=spec)
    t.post("neither number nor text", SANDBOXES, sandbox("x", podTemplate=inside(livenessProbe={"tcpSocket": {"port": []}})))
    t.post("a list for a map", SANDBOXES, sandbox("x", podTemplate={"spec": {"nodeSelector": [], **POD_SPEC}}))
    t.post("a number too large", SANDBOXES, sandbox("x", podTemplate={"spec": {"priority": 3000000000, **POD_SPEC}}))
    t.post("null for a list", SANDBOXES, sandbox("null", podTemplate={"spec": {"volumes": None, **POD_SPEC}}), only=spec)
    t.post("a claim's spec", SANDBOXES, sandbox("claims", volumeClaimTemplates=CLAIM_TEMPLATE), only=lambda o: o["spec"]["volumeClaimTemplates"])
    t.post("a claim's size that is none", SANDBOXES, sandbox("x", volumeClaimTemplates=[{"spec": {"resources": {"requests": {"storage": "big"}}}}]))
    t.post("rules of a template", TEMPLATES, template("rules", networkPolicy={"egress": [{"ports": [{"port": 53, "protocol": "UDP"}], "to": [{"ipBlock": {"cidr": "any"}}]}]}), only=lambda o: o["spec"]["networkPolicy"])
    t.post("rules of the wrong type", TEMPLATES, template("x", networkPolicy={"egress": {}}))

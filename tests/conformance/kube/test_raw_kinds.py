"""Every core kind we serve: what a minimal object becomes, and how an invalid one is refused."""

import pytest

from things import POD_SPEC

NS = "/api/v1/namespaces/{ns}"
LABELS = {"a": "b"}
SELECTOR = {"matchLabels": LABELS}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD_SPEC}
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}

# name: (path, valid bodies without metadata, invalid bodies without metadata)
NAMESPACED = {
    "configmaps": (NS + "/configmaps", [{"data": {"k": "v"}, "binaryData": {"b": "AAE="}}, {"immutable": True}],
                   [{"data": {"not ok": "x"}}, {"data": {"k": "v"}, "binaryData": {"k": "AAE="}}, {"binaryData": {"b": "!"}}]),
    "secrets": (NS + "/secrets", [{"stringData": {"k": "v"}}, {"data": {"k": "dg=="}, "type": "example.com/mine"}], [{"data": {"k": "!"}}, {"type": "kubernetes.io/tls"}]),
    "pods": (NS + "/pods", [{"spec": POD_SPEC}, {"spec": {**POD_SPEC, "restartPolicy": "Never", "initContainers": [{"name": "i", "image": "x", "restartPolicy": "Always"}],
                                                           "volumes": [{"name": "v", "emptyDir": {}}]}},
                             {"spec": {"containers": [{"name": "m", "image": "x:1", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                                                       "readinessProbe": {"httpGet": {"path": "/", "port": 80}}, "resources": {"limits": {"cpu": "0.5", "memory": "64Mi"}}}], "volumes": [{"name": "v", "emptyDir": {}}]}}],
             [{}, {"spec": {"containers": []}}, {"spec": {"containers": [{"name": "Bad_Name", "image": "x"}]}}, {"spec": {"containers": [{"name": "m"}]}},
              {"spec": {"containers": [{"name": "m", "image": "x"}, {"name": "m", "image": "x"}]}}, {"spec": {**POD_SPEC, "restartPolicy": "Sometimes"}},
              {"spec": {"containers": [{"name": "m", "image": "x", "volumeMounts": [{"name": "none", "mountPath": "/v"}]}]}},
              {"spec": {"containers": [{"name": "m", "image": "x", "ports": [{"containerPort": 99999}]}]}},
              {"spec": {"containers": [{"name": "m", "image": "x", "resources": {"limits": {"memory": "much"}}}]}}]),
    "services": (NS + "/services", [{"spec": {"clusterIP": "None", "selector": LABELS, "ports": [{"port": 80}]}}, {"spec": {"ports": [{"port": 80, "targetPort": "http", "name": "web"}]}}, {"spec": {"clusterIP": "None"}},
                                            {"spec": {"clusterIP": "None", "ipFamilies": ["IPv6"]}}, {"spec": {"clusterIP": "None", "ipFamilyPolicy": "SingleStack"}},
                                            {"spec": {"ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 80}]}}],
                 [{"spec": {}}, {"spec": {"ports": [{"port": 0}]}}, {"spec": {"ports": [{"port": 80}, {"port": 81}]}}, {"spec": {"type": "Sideways", "ports": [{"port": 80}]}},
                  {"spec": {"ipFamilyPolicy": "RequireDualStack", "ports": [{"port": 80}]}}, {"spec": {"ipFamilies": ["IPv6"], "ports": [{"port": 80}]}},
                  {"spec": {"ipFamilies": ["IPv4", "IPv6"], "clusterIP": "None", "selector": LABELS, "ports": [{"port": 80}]}}]),
    "serviceaccounts": (NS + "/serviceaccounts", [{}, {"automountServiceAccountToken": False}], []),
    "events": (NS + "/events", [{"involvedObject": {"kind": "Pod", "name": "p", "namespace": "{ns}"}, "reason": "R", "message": "m", "type": "Normal", "count": 1}], [{"involvedObject": {"namespace": "other"}}]),
    "persistentvolumeclaims": (NS + "/persistentvolumeclaims", [{"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "x", "resources": {"requests": {"storage": "1Gi"}}}}],
                               [{}, {"spec": {"accessModes": ["Sideways"], "resources": {"requests": {"storage": "1Gi"}}}}, {"spec": {"accessModes": ["ReadWriteOnce"]}}]),
    "endpointslices": ("/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices", [{"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": True}}], "ports": [{"port": 80}]}],
                       [{}, {"addressType": "IPv9", "endpoints": []}, {"addressType": "IPv4", "endpoints": [{"addresses": ["x"]}]}]),
    "eventsv1": ("/apis/events.k8s.io/v1/namespaces/{ns}/events", [{"eventTime": "2026-01-02T03:04:05.000006Z", "reportingController": "example.com/c", "reportingInstance": "i", "action": "Do", "reason": "R", "type": "Normal",
                                                                      "regarding": {"kind": "Pod", "name": "p", "namespace": "{ns}"}, "note": "n"}], [{"reason": "R"}]),
    "networkpolicies": ("/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies", [{"spec": {"podSelector": {}}}, {"spec": {"podSelector": SELECTOR, "policyTypes": ["Ingress", "Egress"], "egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}]}],
                                                                      "ingress": [{"from": [{"namespaceSelector": SELECTOR, "podSelector": SELECTOR}], "ports": [{"port": 80}]}]}}],
                        [{"spec": {"podSelector": {}, "policyTypes": ["Sideways"]}}, {"spec": {"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "x"}}]}]}}]),
    "leases": ("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", [{"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000006Z"}}, {}], [{"spec": {"leaseDurationSeconds": 0}}, {"spec": {"renewTime": "now"}}]),
    "deployments": ("/apis/apps/v1/namespaces/{ns}/deployments", [{"spec": {"selector": SELECTOR, "template": TEMPLATE}}],
                    [{}, {"spec": {"selector": {"matchLabels": {"x": "y"}}, "template": TEMPLATE}}, {"spec": {"replicas": -1, "selector": SELECTOR, "template": TEMPLATE}}]),
    "replicasets": ("/apis/apps/v1/namespaces/{ns}/replicasets", [{"spec": {"selector": SELECTOR, "template": TEMPLATE}}], [{"spec": {"selector": {}, "template": TEMPLATE}}]),
    "poddisruptionbudgets": ("/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets", [{"spec": {"minAvailable": 1, "selector": SELECTOR}}, {"spec": {"maxUnavailable": "50%", "selector": SELECTOR}}],
                             [{"spec": {"minAvailable": 1, "maxUnavailable": 1}}, {"spec": {"minAvailable": "many"}}]),
    "roles": (RBAC + "/namespaces/{ns}/roles", [{"rules": [RULE]}, {}], [{"rules": [{"verbs": ["get"]}]}]),
    "rolebindings": (RBAC + "/namespaces/{ns}/rolebindings", [{"roleRef": ROLE, "subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": "y"}, {"kind": "User", "name": "u"}]}], [{}, {"roleRef": {**ROLE, "kind": "Sideways"}}]),
}
CLUSTER = {
    "nodes": ("/api/v1/nodes", [{}, {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}], [{"spec": {"taints": [{"key": "k", "effect": "Sideways"}]}}]),
    "storageclasses": ("/apis/storage.k8s.io/v1/storageclasses", [{"provisioner": "example.com/p"}], [{}, {"provisioner": "example.com/p", "volumeBindingMode": "Sideways"}]),
    "runtimeclasses": ("/apis/node.k8s.io/v1/runtimeclasses", [{"handler": "h"}], [{}, {"handler": "Not_Ok"}]),
    "clusterroles": (RBAC + "/clusterroles", [{"rules": [RULE, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]}], [{"rules": [{"verbs": ["get"]}]}]),
    "clusterrolebindings": (RBAC + "/clusterrolebindings", [{"roleRef": ROLE, "subjects": [{"kind": "Group", "name": "g"}]}], [{"roleRef": {**ROLE, "kind": "Role"}}]),
}
ALLOCATED = ("clusterIP", "clusterIPs")


def fill(value, ns):
    if isinstance(value, dict):
        return {k: fill(v, ns) for k, v in value.items()}
    return [fill(v, ns) for v in value] if isinstance(value, list) else value.replace("{ns}", ns) if isinstance(value, str) else value


def steady(o):
    """Without addresses that the server picks, and names of volumes that it makes."""
    spec = o.get("spec")
    if isinstance(spec, dict) and spec.get("clusterIP") not in (None, "None"):
        o = {**o, "spec": {k: "<picked>" if k in ALLOCATED else v for k, v in spec.items()}}
    return o


def run(t, path, valid, invalid, prefix="o"):
    for i, body in enumerate(fill(valid, t.ns)):
        t.post(f"valid {i}", path, {"metadata": {"name": f"{prefix}{i}"}, **body}, only=steady)
        t.put(f"valid {i} again", f"{path}/{prefix}{i}", {"metadata": {"name": f"{prefix}{i}"}, **body}, only=lambda o: o["metadata"].get("generation"))
        got = t.ask("GET", f"{path}/{prefix}{i}")
        t.note(f"valid {i} is unchanged by an update with the same", got.status)
        if prefix != "o":
            t.ask("DELETE", f"{path}/{prefix}{i}")
    for i, body in enumerate(fill(invalid, t.ns)):
        t.post(f"invalid {i}", path, {"metadata": {"name": f"x{i}"}, **body})


@pytest.fixture
def settled(t):
    """Pods can be made once the namespace's service account is there."""
    t.wait("the service account is there", lambda: t.ask("GET", NS + "/serviceaccounts/default").status == 200)


@pytest.mark.parametrize("kind", NAMESPACED)
def test_namespaced(t, settled, kind):
    t.name = f"kinds-{kind}"
    run(t, *NAMESPACED[kind])


@pytest.mark.parametrize("kind", CLUSTER)
def test_cluster(t, kind):
    t.name = f"kinds-{kind}"
    run(t, *CLUSTER[kind], prefix=t.ns + "-")


def test_immutable(t):
    at = NS + "/configmaps"
    t.ask("POST", at, {"metadata": {"name": "i"}, "immutable": True, "data": {"k": "v"}})
    t.patch("data of an immutable config map", at + "/i", "merge", {"data": {"k": "w"}})
    t.patch("immutable itself", at + "/i", "merge", {"immutable": None})
    t.patch("labels may", at + "/i", "merge", {"metadata": {"labels": {"a": "b"}}}, only=lambda o: o["metadata"]["labels"])
    t.ask("POST", NS + "/secrets", {"metadata": {"name": "s"}, "type": "Opaque"})
    t.patch("a secret's type", NS + "/secrets/s", "merge", {"type": "example.com/other"})
    deployments = NAMESPACED["deployments"][0]
    t.ask("POST", deployments, {"metadata": {"name": "d"}, **NAMESPACED["deployments"][1][0]})
    t.patch("a deployment's selector", deployments + "/d", "json", [{"op": "replace", "path": "/spec/selector/matchLabels", "value": {"x": "y"}}, {"op": "replace", "path": "/spec/template/metadata/labels", "value": {"x": "y"}}])
    t.ask("POST", NS + "/services", {"metadata": {"name": "svc"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}})
    t.patch("a service's address", NS + "/services/svc", "merge", {"spec": {"clusterIP": "10.96.0.77", "clusterIPs": None}})

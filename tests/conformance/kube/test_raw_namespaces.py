"""Namespaces: what they are born with, and that everything in them goes with them."""

from things import CM, SANDBOXES, config_map, sandbox

NAMESPACES = "/api/v1/namespaces"


def test_life(t):
    other = t.ns + "-b"
    t.alias(other, "other")
    t.post("create", NAMESPACES, {"metadata": {"name": other}})
    t.post("create again", NAMESPACES, {"metadata": {"name": other}})
    t.get("get", f"{NAMESPACES}/{other}")
    account = f"{NAMESPACES}/{other}/serviceaccounts/default"
    t.wait("its service account is there", lambda: t.ask("GET", account).status == 200)
    t.get("its service account", account)
    root = f"{NAMESPACES}/{other}/configmaps/kube-root-ca.crt"
    t.wait("its root certificate is there", lambda: t.ask("GET", root).status == 200)
    t.get("its root certificate", root)
    t.post("bad name", NAMESPACES, {"metadata": {"name": "Bad.Name"}})
    t.patch("labels", f"{NAMESPACES}/{other}", "merge", {"metadata": {"labels": {"team": "a"}}})
    t.patch("the name label comes back", f"{NAMESPACES}/{other}", "json", [{"op": "remove", "path": "/metadata/labels"}], only=lambda o: o["metadata"]["labels"])
    t.ask("POST", f"{NAMESPACES}/{other}/configmaps", config_map("kept", finalizers=["example.com/keep"]))
    t.ask("POST", SANDBOXES.replace("{ns}", other), sandbox("s"))
    t.delete("delete", f"{NAMESPACES}/{other}", only=lambda o: {**o, "status": o["status"]["phase"]})
    t.post("nothing new is made in it", f"{NAMESPACES}/{other}/configmaps", config_map("late"))
    t.post("no sandbox either", SANDBOXES.replace("{ns}", other), sandbox("late"))
    t.wait_gone(SANDBOXES.replace("{ns}", other) + "/s")
    t.wait("it tells what is left", lambda: "configmaps. has 1" in str(t.ask("GET", f"{NAMESPACES}/{other}")["status"].get("conditions")))
    t.get("it waits for the last finalizer", f"{NAMESPACES}/{other}", only=lambda o: [o["status"], o["spec"]])
    t.ask("PATCH", f"{NAMESPACES}/{other}/configmaps/kept", {"metadata": {"finalizers": None}}, headers={"content-type": "application/merge-patch+json"})
    t.wait_gone(f"{NAMESPACES}/{other}")
    t.get("gone", f"{NAMESPACES}/{other}")


def test_given(t):
    for name in ("default", "kube-system", "kube-public"):
        t.delete(f"{name} stays", f"{NAMESPACES}/{name}")
    t.get("those of the start", NAMESPACES, only=lambda o: [i["metadata"]["name"] for i in o["items"] if i["metadata"]["name"].startswith(("default", "kube-"))])
    t.get("the API's own service", "/api/v1/namespaces/default/services/kubernetes",
          only=lambda o: [o["metadata"]["labels"], {**{k: v for k, v in o["spec"].items() if k not in ("clusterIP", "clusterIPs")}, "ports": [[p["name"], p["port"], p["protocol"]] for p in o["spec"]["ports"]]}])
    t.get("and its slice", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
          only=lambda o: [o["addressType"], o["metadata"]["labels"], [[p["name"], p["protocol"]] for p in o["ports"]], len(o["endpoints"])])
    t.delete("deletecollection of namespaces is not allowed", NAMESPACES)
    t.get("cluster roles of the start", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
          only=lambda o: sorted({i["metadata"]["name"] for i in o["items"]} & {"cluster-admin", "admin", "edit", "view", "system:discovery", "system:basic-user", "system:public-info-viewer"}))
    t.get("bindings of the start", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
          only=lambda o: sorted({i["metadata"]["name"] for i in o["items"]} & {"cluster-admin", "system:discovery", "system:basic-user", "system:public-info-viewer"}))


def test_finalize(t):
    other = t.ns + "-f"
    t.alias(other, "other")
    made = t.ask("POST", NAMESPACES, {"metadata": {"name": other}, "spec": {"finalizers": ["example.com/hold"]}})
    t.note("a finalizer of its own, and the system's", made["spec"])
    t.ask("DELETE", f"{NAMESPACES}/{other}")
    t.wait("the system's is done", lambda: t.ask("GET", f"{NAMESPACES}/{other}")["spec"].get("finalizers") == ["example.com/hold"])
    now = t.ask("GET", f"{NAMESPACES}/{other}").json
    now["spec"] = {}
    t.put("finalize", f"{NAMESPACES}/{other}/finalize", now, only=lambda o: [o["kind"], o["spec"]])
    t.wait_gone(f"{NAMESPACES}/{other}")
    t.put("spec.finalizers is kept by an ordinary update", f"{NAMESPACES}/{t.ns}", {"metadata": {"name": t.ns}, "spec": {}}, only=lambda o: o["spec"])
    t.get("a subresource nobody knows", f"{NAMESPACES}/{t.ns}/nothing")
    t.note("CM path works still", t.ask("GET", CM).status)

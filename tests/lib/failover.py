"""Two controllers, each with a name of its own to the API server, and an audit of who wrote when, from the server's own log."""

import itertools
import re

from lib.controlplane import write_kubeconfig
from lib.controllers import Controller

SYSTEM = "agent-sandbox-system"
WRITES = ("create", "update", "patch", "delete")
LINE = re.compile(r"event=api\.request .*?verb=(\w+) path=(\S+) code=\d+ user=(\S+)")


def make_system(api):
    """Where the Lease is, on a cluster that nothing was installed on."""
    if not api.exists(f"/api/v1/namespaces/{SYSTEM}"):
        api.call("POST", "/api/v1/namespaces", {"metadata": {"name": SYSTEM}})


def account(api, name):
    """A kubeconfig of a service account that may do everything."""
    for path, body in (("/api/v1/namespaces", {"metadata": {"name": SYSTEM}}),
                       (f"/api/v1/namespaces/{SYSTEM}/serviceaccounts", {"metadata": {"name": name}}),
                       ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
                           "metadata": {"name": name}, "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": SYSTEM}],
                           "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}})):
        if not api.exists(path + "/" + body["metadata"]["name"]):
            api.call("POST", path, body)
    token = api.call("POST", f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{name}/token", {"spec": {"expirationSeconds": 7200}})
    return write_kubeconfig(api.directory / f"kubeconfig-{name}", api.url, api.ca_file, token["status"]["token"])


def replica(api, name):
    return Controller(api, kubeconfig=account(api, name))


def writers(api, names):
    """Who wrote, or tried to, in the order of the server's answers, one element for each run of the same: ["a", "b"]; and how often. The
    Lease is nobody's work: those who wait for it write it too."""
    users = {f"system:serviceaccount:{SYSTEM}:{name}": name for name in names}
    done = [users[user] for verb, path, user in LINE.findall(api.log("silica")) if user in users and verb in WRITES and "/leases" not in path]
    return [name for name, _ in itertools.groupby(done)], {name: done.count(name) for name in names}

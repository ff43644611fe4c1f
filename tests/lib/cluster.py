"""A real Kubernetes cluster but for its containers: the control plane of lib/controlplane.py, kube-scheduler, and KWOK, which
plays the nodes. A Pod that is made becomes Running and Ready, with an address below 127.16.0.0/16, where a test may serve for it.

    with Cluster() as cluster, Upstream(cluster) as controller:
        cluster.call("POST", "/apis/...", claim)

Controllers run as processes beside it: ours by lib/controllers.py, the public one by Upstream. All of it listens on loopback
only, lives in one directory and ends with the object.
"""

import json
import subprocess
import urllib.request

from lib.controlplane import CONTROLLERS, ControlPlane, die_with_parent, free_ports, peer

# What makes a Pod run is no volume: KWOK mounts none, so that none is waited for.
SCHEDULER = {
    "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False}, "enableProfiling": False,
    "profiles": [{"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"disabled": [
        {"name": name} for name in ("VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits")]}}}]}
KWOK = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration",
        "options": {"cidr": "127.16.0.1/16", "manageAllNodes": True, "nodeLeaseDurationSeconds": 0,
                    **{f"{what}Parallelism": 16 for what in ("podPlayStage", "nodePlayStage", "nodeLease", "podsOnNodeSync")}}}
# Volume claims have a finalizer from birth that one of these takes off again.
MORE_CONTROLLERS = ["persistentvolumeclaim-protection-controller", "pod-garbage-collector-controller"]
PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kwok-stages"]
CANARY = {"metadata": {"name": "canary"}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "i"}]}}


class Cluster(ControlPlane):
    """nodes: how many KWOK plays, each as large as it gets. controllers: those of the controller-manager."""

    def __init__(self, nodes=4, controllers=(), **options):
        self.node_count = nodes
        paths = {name: peer(name) for name in PROGRAMS}  # all of them, before anything starts
        super().__init__(controllers=[*CONTROLLERS, *MORE_CONTROLLERS, *controllers], **options)
        try:
            self._start_nodes(paths)
        except BaseException:
            self.stop()
            raise

    def _start_nodes(self, paths):
        (port,) = free_ports(1)
        config = self.directory / "scheduler.json"
        config.write_text(json.dumps({**SCHEDULER, "clientConnection": {"kubeconfig": str(self.kubeconfig), "qps": 1000, "burst": 2000}}))
        self._run("kube-scheduler", paths["kube-scheduler"], f"--config={config}", f"--secure-port={port}", "--bind-address=127.0.0.1",
                  f"--cert-dir={self.directory}/scheduler-certs")
        config = self.directory / "kwok.json"
        config.write_text(json.dumps(KWOK))
        self._run("kwok", paths["kwok"], f"--kubeconfig={self.kubeconfig}", f"--config={config}", f"--config={paths['kwok-stages']}")
        for i in range(self.node_count):
            self.call("POST", "/api/v1/nodes", {"metadata": {"name": f"node-{i}", "labels": {"kubernetes.io/hostname": f"node-{i}"}}})
            # Every node is born with the taint not-ready. What takes it off is the node life-cycle controller, which also
            # wants heartbeats and evicts; here there is none.
            self.patch(f"/api/v1/nodes/node-{i}", {"spec": {"taints": None}})
        self.call("POST", "/api/v1/namespaces/default/pods", CANARY)
        self._wait(lambda: self.call("GET", "/api/v1/namespaces/default/pods/canary")["status"]["phase"] == "Running", "kwok")
        self.call("DELETE", "/api/v1/namespaces/default/pods/canary")

    def logs(self):
        """Name -> the end of its log, for a test that failed."""
        return {path.stem: path.read_text(errors="replace")[-6000:] for path in sorted(self.directory.glob("*.log"))}


class Upstream:
    """The public controller, with its extensions, alone. Workers: of each of its controllers."""

    def __init__(self, cluster, *options, workers=50):
        metrics, health = free_ports(2)
        self.log, self.metrics_port = cluster.directory / f"upstream-{metrics}.log", metrics
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [peer("agent-sandbox-controller"), f"--kubeconfig={cluster.kubeconfig}", "-extensions", "-leader-elect=false",
                 "-enable-webhook=false", "-manage-webhook-certs=false", "-kube-api-qps=-1",
                 f"-metrics-bind-address=127.0.0.1:{metrics}", f"-health-probe-bind-address=127.0.0.1:{health}",
                 *[f"-{kind}-concurrent-workers={workers}" for kind in ("sandbox", "sandbox-claim", "sandbox-warm-pool", "sandbox-template")],
                 *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent)

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def end(self):
        """As a Deployment would end it."""
        self.process.terminate()
        self.process.wait(60)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

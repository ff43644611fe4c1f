"""The chart: what it makes of its defaults is what kustomize makes, and its values do what they say. Rendered by Helm itself."""

import json
import subprocess

import pytest
import yaml

from harness.server import TREE
from lib import controlplane

CHART = TREE / "deploy/chart"


def output(*argv, check=True):
    done = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout if check else done


@pytest.fixture(scope="session")
def helm():
    try:
        return controlplane.peer("helm")
    except controlplane.Unavailable as e:
        pytest.skip(str(e))


@pytest.fixture(scope="session")
def render(helm):
    def by(**values):
        args = [a for name, value in values.items() for a in ("--set-json", f"{name}={json.dumps(value)}")]
        return objects(output(helm, "template", "silica", CHART, "--include-crds", *args))
    return by


def objects(text):
    return {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]): o for o in yaml.safe_load_all(text) if o}


def kustomized(path):
    return objects(output(controlplane.peer("kubectl"), "kustomize", TREE / path))


def arguments(rendered, name="agent-sandbox-controller"):
    return rendered["Deployment", "agent-sandbox-system", name]["spec"]["template"]["spec"]["containers"][0]["args"]


def test_lint(helm):
    assert "0 chart(s) failed" in output(helm, "lint", "--strict", CHART)


def test_defaults_are_what_kustomize_installs(render):
    chart, plain = render(), kustomized("deploy")
    assert chart.keys() == plain.keys()
    assert [name for name in chart if chart[name] != plain[name]] == []


def test_the_authenticated_router_is_the_same_too(render):
    chart, plain = render(**{"router.authzMode": "tokenreview"}), kustomized("deploy/authenticated")
    assert chart == plain


def test_monitoring_is_the_same_too(render):
    chart = render(**{"metrics.serviceMonitor.enabled": True, "metrics.prometheusRule.enabled": True})
    assert {name: o for name, o in chart.items() if o["apiVersion"].startswith("monitoring")} == kustomized("deploy/monitoring")


def public_values():
    """Names of the values of the public chart: path, and one value for it."""
    controller = {"clusterDomain": "example.org", "leaderElectionNamespace": "leases", "enableTracing": False, "enablePprof": True, "enablePprofDebug": True,
                  "pprofBlockProfileRate": 1000000, "pprofMutexProfileFraction": 10, "kubeApiQps": -1.5, "kubeApiBurst": 20, "sandboxConcurrentWorkers": 7,
                  "sandboxClaimConcurrentWorkers": 8, "sandboxWarmPoolConcurrentWorkers": 2, "sandboxTemplateConcurrentWorkers": 3,
                  "sandboxWarmPoolMaxBatchSize": 5, "sandboxWarmPoolReadinessGracePeriod": "4m", "sandboxWarmPoolUnschedulableRecheckInterval": "1m30s",
                  "enableWarmPoolEviction": False}
    return controller


def test_every_flag_of_the_public_chart_reaches_the_program(render):
    given = public_values()
    said = arguments(render(**{f"controller.{name}": value for name, value in given.items()}, **{"controller.extraArgs": ["--zap-log-level=debug"]}))
    assert said[:2] == ["--leader-elect=true", "--extensions"] and said[-1] == "--zap-log-level=debug"
    flags = dict(a.removeprefix("--").split("=", 1) for a in said[2:])
    for name, value in given.items():
        flag = "".join(f"-{c.lower()}" if c.isupper() else c for c in name)
        assert flags[flag] == (str(value).lower() if isinstance(value, bool) else str(value)), name
    program = subprocess.run([TREE / "build/silica", "controller", *said, "--kubeconfig", "/nonexistent"], capture_output=True, text=True, timeout=60)
    assert program.returncode == 125 and "/nonexistent" in program.stderr, "it takes every one of them"


def test_the_other_values_of_the_public_chart(render):
    made = render(**{
        "image.repository": "example.org/c", "image.tag": "v9", "image.pullPolicy": "Always", "imagePullSecrets": [{"name": "s"}], "replicaCount": 1,
        "podAnnotations": {"a": "b"}, "podLabels": {"c": "d"}, "resources": {"limits": {"cpu": "1"}}, "nodeSelector": {"e": "f"}, "tolerations": [{"key": "g"}],
        "affinity": {"nodeAffinity": {}}, "podSecurityContext": None, "containerSecurityContext": None, "webhookServiceName": "hook", "service.name": "figures",
        "namespace.create": False, "namespace.name": "elsewhere", "controller.extensions": False})
    pod = made["Deployment", "elsewhere", "agent-sandbox-controller"]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    assert pod["metadata"] == {"annotations": {"a": "b"}, "labels": {"app": "agent-sandbox-controller", "c": "d"}}
    assert (container["image"], container["imagePullPolicy"], container["resources"]["limits"]["cpu"]) == ("example.org/c:v9", "Always", "1")
    assert pod["spec"]["imagePullSecrets"] == [{"name": "s"}] and pod["spec"]["nodeSelector"] == {"e": "f"} and pod["spec"]["tolerations"] == [{"key": "g"}]
    assert "securityContext" not in pod["spec"] and "securityContext" not in container and pod["spec"]["affinity"] == {"nodeAffinity": {}}
    assert container["args"] == ["--leader-elect=true", "--extensions=false", "--webhook-namespace=elsewhere", "--webhook-service-name=hook"]
    assert {("Service", "elsewhere", "hook"), ("Service", "elsewhere", "figures")} <= made.keys()
    assert not {name for kind, _, name in made if kind == "Namespace" or name.endswith("extensions")}
    assert {where for kind, where, _ in made if where} == {"elsewhere"}
    assert ("PodDisruptionBudget", "elsewhere", "agent-sandbox-controller") not in made, "it would forbid every drain"


@pytest.mark.parametrize("name, value, why", [
    ("controller.sandboxWorkers", 1, "sandboxWorkers"), ("replicaCount", "two", "replicaCount"), ("router.authzMode", "none", "authzMode"),
    ("controller.sandboxWarmPoolReadinessGracePeriod", "5 minutes", "sandboxWarmPoolReadinessGracePeriod"), ("namespace.name", "Not_a_name", "name")])
def test_values_that_mean_nothing_are_refused(helm, name, value, why):
    done = output(helm, "template", "silica", CHART, "--set-json", f"{name}={json.dumps(value)}", check=False)
    assert done.returncode != 0 and "don't meet the specifications of the schema" in done.stderr and why in done.stderr

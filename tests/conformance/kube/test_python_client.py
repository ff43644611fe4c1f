"""The Python client, unmodified (37.0.2 and 36.0.3: one virtualenv each): core and custom objects, watches, typed answers."""

import datetime
import threading

import kubernetes
import pytest
from kubernetes import client, watch
from kubernetes.client.rest import ApiException

from things import POD_SPEC, sandbox

AGENTS = ("agents.x-k8s.io", "v1beta1")


@pytest.fixture
def connection(api):
    """An ApiClient; bodies go out as the client's release sends them, 37 without a content type."""
    with kubernetes.config.new_client_from_config(api.kubeconfig) as made:
        yield made


@pytest.fixture
def core(connection):
    return client.CoreV1Api(connection)


@pytest.fixture
def custom(connection):
    return client.CustomObjectsApi(connection)


def test_config_maps(core, ns):
    made = core.create_namespaced_config_map(ns, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a"), data={"k": "v"}))
    assert isinstance(made, client.V1ConfigMap) and made.data == {"k": "v"} and made.metadata.uid
    assert isinstance(made.metadata.creation_timestamp, datetime.datetime)
    with pytest.raises(ApiException) as e:
        core.create_namespaced_config_map(ns, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a")))
    assert (e.value.status, e.value.reason) == (409, "Conflict")
    made.data["k"] = "w"
    assert core.replace_namespaced_config_map("a", ns, made).data == {"k": "w"}
    with pytest.raises(ApiException) as e:
        core.replace_namespaced_config_map("a", ns, made)
    assert e.value.status == 409
    assert core.patch_namespaced_config_map("a", ns, {"data": {"n": "1"}}).data == {"k": "w", "n": "1"}
    patch = [{"op": "remove", "path": "/data/n"}]
    assert core.patch_namespaced_config_map("a", ns, patch).data == {"k": "w"}
    assert core.read_namespaced_config_map("a", ns).data == {"k": "w"}
    listed = core.list_namespaced_config_map(ns, field_selector="metadata.name=a")
    assert [o.metadata.name for o in listed.items] == ["a"]
    gone = core.delete_namespaced_config_map("a", ns)
    assert (gone["status"] if isinstance(gone, dict) else gone.status) == "Success"  # by release
    with pytest.raises(ApiException) as e:
        core.read_namespaced_config_map("a", ns)
    assert (e.value.status, e.value.reason) == (404, "Not Found")


def test_pods(core, ns):
    """Typed answers are validated: a required field that the server leaves out would be a ValueError here."""
    pod = client.V1Pod(metadata=client.V1ObjectMeta(name="p", labels={"a": "b"}), spec=client.V1PodSpec(
        containers=[client.V1Container(name="main", image="x", ports=[client.V1ContainerPort(container_port=80)],
                                       resources=client.V1ResourceRequirements(limits={"cpu": "500m"}))]))
    made = core.create_namespaced_pod(ns, pod)
    assert made.status.phase == "Pending" and made.spec.restart_policy == "Always"
    body = {"status": {"phase": "Running", "podIP": "127.1.2.3", "conditions": [{"type": "Ready", "status": "True"}]}}
    assert core.patch_namespaced_pod_status("p", ns, body).status.phase == "Running"
    assert [p.status.pod_ip for p in core.list_namespaced_pod(ns, label_selector="a=b").items] == ["127.1.2.3"]
    assert core.read_namespaced_pod_status("p", ns).status.conditions[0].type == "Ready"
    deleted = core.delete_namespaced_pod("p", ns, grace_period_seconds=0)
    assert deleted.metadata.name == "p"


def test_typed_kinds(connection, core, ns):
    core.create_namespaced_secret(ns, client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"k": "v"}))
    assert core.read_namespaced_secret("s", ns).data == {"k": "dg=="}
    service = client.V1Service(metadata=client.V1ObjectMeta(name="svc"), spec=client.V1ServiceSpec(cluster_ip="None", ports=[client.V1ServicePort(port=80)]))
    assert core.create_namespaced_service(ns, service).spec.cluster_ip == "None"
    lease = client.V1Lease(metadata=client.V1ObjectMeta(name="l"), spec=client.V1LeaseSpec(
        holder_identity="me", lease_duration_seconds=15, renew_time=datetime.datetime.now(datetime.timezone.utc)))
    assert client.CoordinationV1Api(connection).create_namespaced_lease(ns, lease).spec.holder_identity == "me"
    event = client.CoreV1Event(metadata=client.V1ObjectMeta(name="e"), involved_object=client.V1ObjectReference(kind="Pod", name="p", namespace=ns), reason="R", message="m", type="Normal")
    assert core.create_namespaced_event(ns, event).reason == "R"
    claim = client.V1PersistentVolumeClaim(metadata=client.V1ObjectMeta(name="c"), spec=client.V1PersistentVolumeClaimSpec(
        access_modes=["ReadWriteOnce"], resources=client.V1VolumeResourceRequirements(requests={"storage": "1Gi"})))
    assert core.create_namespaced_persistent_volume_claim(ns, claim).status.phase == "Pending"
    review = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=client.V1ResourceAttributes(verb="get", resource="pods")))
    assert client.AuthorizationV1Api(connection).create_self_subject_access_review(review).status.allowed is True
    assert ns in [o.metadata.name for o in core.list_namespace().items]
    assert client.VersionApi(connection).get_code().major
    names = {r.name for r in client.CustomObjectsApi(connection).get_api_resources("agents.x-k8s.io", "v1beta1").resources}
    assert {"sandboxes", "sandboxes/status"} <= names
    token = core.create_namespaced_service_account_token("default", ns, client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[])))
    assert token.status.token.count(".") == 2
    crds = client.ApiextensionsV1Api(connection).list_custom_resource_definition().items
    assert {"sandboxes.agents.x-k8s.io", "sandboxclaims.extensions.agents.x-k8s.io"} <= {c.metadata.name for c in crds}


def test_custom_objects(custom, ns):
    made = custom.create_namespaced_custom_object(*AGENTS, ns, "sandboxes", sandbox("s"))
    assert made["spec"]["operatingMode"] == "Running"
    patched = custom.patch_namespaced_custom_object(*AGENTS, ns, "sandboxes", "s", {"spec": {"operatingMode": "Suspended"}})
    assert patched["spec"]["operatingMode"] == "Suspended" and patched["metadata"]["generation"] == 2
    status = custom.patch_namespaced_custom_object_status(*AGENTS, ns, "sandboxes", "s", {"status": {"nodeName": "n"}})
    assert status["status"] == {"nodeName": "n"}
    assert custom.get_namespaced_custom_object_status(*AGENTS, ns, "sandboxes", "s")["status"] == {"nodeName": "n"}
    patched["metadata"]["labels"] = {"a": "b"}
    with pytest.raises(ApiException) as e:
        custom.replace_namespaced_custom_object(*AGENTS, ns, "sandboxes", "s", patched)
    assert e.value.status == 409
    fresh = custom.get_namespaced_custom_object(*AGENTS, ns, "sandboxes", "s")
    fresh["metadata"]["labels"] = {"a": "b"}
    custom.replace_namespaced_custom_object(*AGENTS, ns, "sandboxes", "s", fresh)
    listed = custom.list_namespaced_custom_object(*AGENTS, ns, "sandboxes", label_selector="a=b")
    assert [o["metadata"]["name"] for o in listed["items"]] == ["s"]
    everywhere = custom.list_cluster_custom_object(*AGENTS, "sandboxes")
    assert ns in {o["metadata"]["namespace"] for o in everywhere["items"]}
    with pytest.raises(ApiException) as e:
        custom.create_namespaced_custom_object(*AGENTS, ns, "sandboxes", {**sandbox("bad"), "spec": {"podTemplate": {"spec": POD_SPEC}, "operatingMode": "Sleeping"}})
    assert e.value.status == 422 and "Unsupported value" in e.value.body
    gone = custom.delete_namespaced_custom_object(*AGENTS, ns, "sandboxes", "s", body=client.V1DeleteOptions(propagation_policy="Foreground"))
    assert gone["metadata"]["finalizers"] == ["foregroundDeletion"]
    custom.create_namespaced_custom_object(*AGENTS, ns, "sandboxes", sandbox("t"))
    assert custom.delete_namespaced_custom_object(*AGENTS, ns, "sandboxes", "t")["status"] == "Success"
    custom.delete_collection_namespaced_custom_object(*AGENTS, ns, "sandboxes")


def test_watch(custom, ns):
    """watch.Watch asks again when the server ends a watch at its timeout, and misses nothing."""
    begin = custom.list_namespaced_custom_object(*AGENTS, ns, "sandboxes")["metadata"]["resourceVersion"]
    watcher, seen = watch.Watch(), []

    def read():
        for event in watcher.stream(custom.list_namespaced_custom_object, *AGENTS, ns, "sandboxes", resource_version=begin):
            seen.append((event["type"], event["object"]["metadata"]["name"]))
            if seen[-1] == ("DELETED", "s1"):
                watcher.stop()

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(2):
        custom.create_namespaced_custom_object(*AGENTS, ns, "sandboxes", sandbox(f"s{i}"))
        custom.patch_namespaced_custom_object(*AGENTS, ns, "sandboxes", f"s{i}", {"metadata": {"labels": {"a": "b"}}})
        custom.delete_namespaced_custom_object(*AGENTS, ns, "sandboxes", f"s{i}")
    reader.join(30)
    assert not reader.is_alive()
    assert seen == [(kind, f"s{i}") for i in range(2) for kind in ("ADDED", "MODIFIED", "DELETED")]


def test_watch_resumes(core, ns):
    """Two watches of one second each, the second from where the first ended: together everything, once."""
    def stream(version, names):
        watcher = watch.Watch()
        for event in watcher.stream(core.list_namespaced_config_map, ns, resource_version=version, timeout_seconds=1, label_selector="w=1"):
            names.append((event["type"], event["object"].metadata.name))
        return watcher.resource_version

    def make(name):
        core.create_namespaced_config_map(ns, client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"w": "1"})))

    version = core.list_namespaced_config_map(ns).metadata.resource_version
    first, second = [], []
    make("a")
    version = stream(version, first)
    make("b")
    stream(version, second)
    assert (first, second) == ([("ADDED", "a")], [("ADDED", "b")])


def test_watch_too_old(custom, ns):
    """From a version long gone: the client is told 410, lists, and goes on from there."""
    custom.create_namespaced_custom_object(*AGENTS, ns, "sandboxes", sandbox("s0"))
    for how in ({}, {"timeout_seconds": 5}):  # without a timeout the client asks once more by itself
        with pytest.raises(ApiException) as e:
            next(watch.Watch().stream(custom.list_namespaced_custom_object, *AGENTS, ns, "sandboxes", resource_version="1", **how))
        assert e.value.status == 410 and "too old resource version: 1 (" in e.value.reason
    now = custom.list_namespaced_custom_object(*AGENTS, ns, "sandboxes")["metadata"]["resourceVersion"]
    custom.create_namespaced_custom_object(*AGENTS, ns, "sandboxes", sandbox("s1"))
    stream = watch.Watch().stream(custom.list_namespaced_custom_object, *AGENTS, ns, "sandboxes", resource_version=now, timeout_seconds=5)
    event = next(stream)
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "s1")


def test_dynamic(connection, ns):
    """The dynamic client finds our kinds by discovery."""
    found = kubernetes.dynamic.DynamicClient(connection).resources.get(api_version="agents.x-k8s.io/v1beta1", kind="Sandbox")
    assert found.name == "sandboxes" and found.namespaced
    made = found.create(body=sandbox("d"), namespace=ns)
    assert made.spec.operatingMode == "Running"
    assert [o.metadata.name for o in found.get(namespace=ns).items] == ["d"]
    applied = found.server_side_apply(body={**sandbox("d"), "metadata": {"name": "d", "labels": {"x": "y"}}}, namespace=ns, name="d", field_manager="me", force_conflicts=True)
    assert applied.metadata.labels.x == "y"
    found.delete(name="d", namespace=ns)

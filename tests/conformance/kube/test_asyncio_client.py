"""kubernetes_asyncio, unmodified: what the SDK's async side is built on."""

import asyncio
import contextlib

import pytest
from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client.rest import ApiException

from things import sandbox

AGENTS = ("agents.x-k8s.io", "v1beta1")


@contextlib.asynccontextmanager
async def connected(api):
    settings = client.Configuration()
    await config.load_kube_config(api.kubeconfig, client_configuration=settings)
    async with client.ApiClient(settings) as connection:
        yield client.CustomObjectsApi(connection), client.CoreV1Api(connection)


def test_custom_objects(api, ns):
    async def run():
        async with connected(api) as (custom, core):
            made = await custom.create_namespaced_custom_object(*AGENTS, ns, "sandboxes", sandbox("s"))
            assert made["spec"]["shutdownPolicy"] == "Retain"
            patched = await custom.patch_namespaced_custom_object(*AGENTS, ns, "sandboxes", "s", {"spec": {"operatingMode": "Suspended"}},
                                                                  _content_type="application/merge-patch+json")
            assert patched["spec"]["operatingMode"] == "Suspended"
            got = await custom.get_namespaced_custom_object(*AGENTS, ns, "sandboxes", "s")
            assert got["metadata"]["uid"] == made["metadata"]["uid"]
            with pytest.raises(ApiException) as e:
                await custom.get_namespaced_custom_object(*AGENTS, ns, "sandboxes", "none")
            assert e.value.status == 404
            await custom.delete_namespaced_custom_object(*AGENTS, ns, "sandboxes", "s")
            pod = client.V1Pod(metadata=client.V1ObjectMeta(name="p"), spec=client.V1PodSpec(containers=[client.V1Container(name="m", image="x")]))
            while True:  # until the namespace has its service account
                try:
                    assert (await core.create_namespaced_pod(ns, pod)).status.phase == "Pending"
                    break
                except ApiException as e:
                    assert e.status == 403 and "serviceaccount" in e.body
                    await asyncio.sleep(0.05)
            listed = await core.list_namespaced_pod(ns)
            assert [p.metadata.name for p in listed.items] == ["p"]

    asyncio.run(asyncio.wait_for(run(), 60))


def test_watch(api, ns):
    async def run():
        async with connected(api) as (custom, _):
            begin = (await custom.list_namespaced_custom_object(*AGENTS, ns, "sandboxes"))["metadata"]["resourceVersion"]
            seen = []

            async def read():
                async with watch.Watch().stream(custom.list_namespaced_custom_object, *AGENTS, ns, "sandboxes", resource_version=begin,
                                                field_selector="metadata.name=s") as stream:
                    async for event in stream:
                        seen.append(event["type"])
                        if event["type"] == "DELETED":
                            return

            reader = asyncio.create_task(read())
            await custom.create_namespaced_custom_object(*AGENTS, ns, "sandboxes", sandbox("s"))
            await custom.create_namespaced_custom_object(*AGENTS, ns, "sandboxes", sandbox("other"))
            await custom.patch_namespaced_custom_object_status(*AGENTS, ns, "sandboxes", "s", {"status": {"service": "x"}}, _content_type="application/merge-patch+json")
            await custom.delete_namespaced_custom_object(*AGENTS, ns, "sandboxes", "s")
            await reader
            assert seen == ["ADDED", "MODIFIED", "DELETED"]

    asyncio.run(asyncio.wait_for(run(), 60))

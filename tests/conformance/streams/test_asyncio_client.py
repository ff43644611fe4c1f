"""kubernetes_asyncio's WsApiClient: exec, as asynchronous SDKs do it."""

import asyncio
import json

import pytest

pytest.importorskip("kubernetes_asyncio", reason="this virtualenv has the synchronous client alone")

from kubernetes_asyncio import client, config  # noqa: E402
from kubernetes_asyncio.stream import WsApiClient  # noqa: E402


async def run(server, *command, **kw):
    settings = client.Configuration()
    await config.load_kube_config(str(server.kubeconfig), client_configuration=settings)
    async with WsApiClient(settings) as connection:
        api = client.CoreV1Api(connection)
        flags = {"stderr": True, "stdin": False, "stdout": True, "tty": False, **kw}
        return await api.connect_get_namespaced_pod_exec("local", "default", command=list(command), **flags)


def test_a_whole_call(server):
    assert asyncio.run(run(server, "sh", "-c", "echo out; echo err >&2")) == "out\nerr\n"


def test_pieces_and_the_exit_code(server):
    async def talk():
        settings = client.Configuration()
        await config.load_kube_config(str(server.kubeconfig), client_configuration=settings)
        async with WsApiClient(settings) as connection:
            opened = await client.CoreV1Api(connection).connect_get_namespaced_pod_exec(
                "local", "default", command=["sh", "-c", "read x; echo got $x; exit 6"], stdin=True, stdout=True, stderr=True,
                tty=False, _preload_content=False)
            async with opened as ws:
                await ws.send_bytes(b"\0word\n")
                channels = {}
                async for message in ws:
                    channels[message.data[0]] = channels.get(message.data[0], b"") + message.data[1:]
        return channels

    channels = asyncio.run(asyncio.wait_for(talk(), 60))
    assert channels[1] == b"got word\n"
    assert json.loads(channels[3])["details"]["causes"][0]["message"] == "6"


def test_many_at_once(server):
    async def many():
        return await asyncio.gather(*(run(server, "sh", "-c", f"echo number {i}") for i in range(24)))

    assert asyncio.run(asyncio.wait_for(many(), 90)) == [f"number {i}\n" for i in range(24)]


def test_refusals(server):
    async def refused():
        with pytest.raises(Exception) as told:
            await run(server, "true", container="other")
        return told.value

    assert "400" in str(asyncio.run(refused()))

"""Clients that watch while the server is killed and comes back on the same data: they go on from where they were, and see
everything once, in order."""

import asyncio
import subprocess
import threading
import time

import kubernetes
import pytest
import urllib3
from kubernetes import client, watch

from conftest import Api
from lib import controlplane
from things import sandbox

AGENTS = ("agents.x-k8s.io", "v1beta1")
BEFORE, AFTER = [f"before-{i}" for i in range(5)], [f"after-{i}" for i in range(5)]
PLACE = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes"


@pytest.fixture
def ours():
    try:
        made = controlplane.Silica()
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with made:
        yield made


def make(server, names):
    api = Api(server)  # a connection of its own: those of before are gone
    for name in names:
        assert api.request("POST", PLACE, json=sandbox(name)).status_code == 201


def until(what, check):
    deadline = time.monotonic() + 30
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def restart_in_between(server, seen):
    """Some are made and seen, the server is killed and started, and others are made."""
    make(server, BEFORE)
    until(f"seen before: {seen}", lambda: len(seen) == len(BEFORE))
    server.kill()
    server.start()
    make(server, AFTER)


WANTED = [("ADDED", name) for name in BEFORE + AFTER]


def test_python_watch(ours):
    with kubernetes.config.new_client_from_config(str(ours.kubeconfig)) as connection:
        custom = client.CustomObjectsApi(connection)
        version = custom.list_namespaced_custom_object(*AGENTS, "default", "sandboxes")["metadata"]["resourceVersion"]
        seen, broken = [], []

        def read():
            at = version
            while len(seen) < len(WANTED):
                watcher = watch.Watch()
                try:
                    for event in watcher.stream(custom.list_namespaced_custom_object, *AGENTS, "default", "sandboxes", resource_version=at):
                        seen.append((event["type"], event["object"]["metadata"]["name"]))
                        at = event["object"]["metadata"]["resourceVersion"]
                        if len(seen) == len(WANTED):
                            watcher.stop()
                except urllib3.exceptions.HTTPError as e:  # cut off, or not there yet
                    broken.append(e)
                    time.sleep(0.02)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        restart_in_between(ours, seen)
        reader.join(30)
    assert seen == WANTED and broken


def test_asyncio_watch(ours):
    aio = pytest.importorskip("kubernetes_asyncio")
    import aiohttp

    async def read(version, seen):
        settings = aio.client.Configuration()
        await aio.config.load_kube_config(str(ours.kubeconfig), client_configuration=settings)
        async with aio.client.ApiClient(settings) as connection:
            custom = aio.client.CustomObjectsApi(connection)
            while len(seen) < len(WANTED):
                try:
                    async with aio.watch.Watch().stream(custom.list_namespaced_custom_object, *AGENTS, "default", "sandboxes", resource_version=version) as stream:
                        async for event in stream:
                            seen.append((event["type"], event["object"]["metadata"]["name"]))
                            version = event["object"]["metadata"]["resourceVersion"]
                            if len(seen) == len(WANTED):
                                return
                except (aiohttp.ClientError, asyncio.TimeoutError):
                    await asyncio.sleep(0.02)

    seen = []
    version = Api(ours).request("GET", PLACE).json()["metadata"]["resourceVersion"]
    reader = threading.Thread(target=lambda: asyncio.run(asyncio.wait_for(read(version, seen), 60)), daemon=True)
    reader.start()
    restart_in_between(ours, seen)
    reader.join(30)
    assert seen == WANTED


def test_informer(ours):
    """client-go's own: a cache that never lists again, as the server still knows what happened."""
    try:
        program = controlplane.peer("client-go")
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with subprocess.Popen([program, "-kubeconfig", str(ours.kubeconfig), "-namespace", "default", "restart"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as running:
        try:
            seen = []
            assert running.stdout.readline() == "synced 0\n"
            reader = threading.Thread(target=lambda: [seen.append(line.strip()) for line in running.stdout], daemon=True)
            reader.start()
            restart_in_between(ours, seen)
            until(f"seen after: {seen}", lambda: len(seen) == len(WANTED))
            running.stdin.close()
            reader.join(30)
            assert seen == [f"added {name}" for _, name in WANTED] + ["1 list"], running.stderr.read()
        finally:
            running.kill()

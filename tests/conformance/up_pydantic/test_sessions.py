"""SessionManager: one Pod for each session, made again when it was lost, ended when nobody uses it."""

import asyncio
import urllib.error
import uuid

import pytest
from conftest import RELEASE
from pydantic_ai_backends import KubernetesPodSandbox, SessionManager

PODS = "/api/v1/namespaces/default/pods"
OURS = {"pab-sandbox-long", "pab-sandbox-short", "pab-sandbox-third"}
MODES = [{"mode": "http"}, {"mode": "api"}] if RELEASE < (0, 2, 30) else [{}]
PATIENCE_S = 60


def names(up):
    return OURS & {p["metadata"]["name"] for p in up.api.call("GET", PODS)["items"]}


async def until(check, what):
    for _ in range(PATIENCE_S * 10):
        if check():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"not within {PATIENCE_S} s: {what}")


def take_away(up, name):
    """As an eviction would."""
    try:
        up.api.call("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
    except urllib.error.HTTPError as e:
        assert e.code == 404, e


async def say(sandbox, text):
    if RELEASE < (0, 2, 30):
        done = await asyncio.to_thread(sandbox.execute, f"echo {text}")
        return done.output
    done = await sandbox.run_command(["echo", text], run_id=uuid.uuid4().hex)
    return done.stdout


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.get("mode", "exec"))
def test_sessions(up, mode):
    asyncio.run(live(up, mode))


async def live(up, mode):
    released = []

    def factory(session_id):
        return KubernetesPodSandbox("python:3.12-slim", sandbox_id=session_id, kube_config_path=up.ready["kubeconfig"], in_cluster=False,
                                    idle_timeout=1 if session_id == "short" else 3600, **mode)

    manager = SessionManager(sandbox_factory=factory, max_sessions=2, on_release=released.append)
    long, short = await asyncio.gather(manager.get_or_create("long"), manager.get_or_create("short"))
    assert await manager.get_or_create("long") is long and manager.session_count == 2
    assert (await say(long, "one"), await say(short, "two")) == ("one\n", "two\n")
    assert names(up) == {"pab-sandbox-long", "pab-sandbox-short"}
    with pytest.raises(RuntimeError, match="limit of 2"):
        await manager.get_or_create("third")
    manager.start_cleanup_loop(1)
    await until(lambda: "short" not in manager, "the idle one is ended")
    await until(lambda: names(up) == {"pab-sandbox-long"}, "its Pod is gone")
    await until(lambda: released, "somebody is told")  # after its Pod went
    assert released == ["short"] and "long" in manager
    take_away(up, "pab-sandbox-long")
    again = await manager.get_or_create("long")  # a Pod of the same name, at once
    assert again is not long and await say(again, "back") == "back\n"
    assert await manager.shutdown() == 1
    await until(lambda: names(up) == set(), "all are gone")

"""The async client, which knows no tunnel to the router."""

import asyncio

import pytest
from conftest import CLAIMS, config_of, create


@pytest.mark.parametrize("mode", ["direct", "in-cluster"])
def test_async(up, mode):
    from k8s_agent_sandbox import AsyncSandboxClient, exceptions

    async def use():
        async with AsyncSandboxClient(connection_config=config_of(mode, up)) as client:
            boxes = await asyncio.gather(*(create(client) for _ in range(3)))
            done = await asyncio.gather(*(b.commands.run(f"sh -c 'echo {i}; exit {i}'") for i, b in enumerate(boxes)))
            assert [(d.stdout, d.exit_code) for d in done] == [("0\n", 0), ("1\n", 1), ("2\n", 2)]
            box = boxes[0]
            await box.files.write("note", b"\x00\xff")
            assert await box.files.read("note") == b"\x00\xff" and await box.files.exists("note")
            assert "note" in [e.name for e in await box.files.list(".")]
            with pytest.raises(exceptions.SandboxRequestError) as e:
                await box.files.read("missing")
            assert e.value.status_code == 404
            assert (await client.get_sandbox(box.claim_name)).claim_name == box.claim_name
            names = {b.claim_name for b in boxes}
            assert names <= set(await client.list_all_sandboxes())
            await box.terminate()
            return names

    for name in asyncio.run(use()):
        assert not up.api.exists(f"{CLAIMS}/{name}")

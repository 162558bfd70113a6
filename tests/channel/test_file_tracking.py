"""The changes of a workspace's files, over `filetracking/1` through the channel's port."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream
from ssh_peer import PATIENCE_S, published, run, ssh
from wire import ROOT, Served, served

from hud_mcp.channel.client import ChannelClient
from hud_mcp.loading.source import load_environments

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

ROOMS = ROOT / "tests" / "plugins" / "hud" / "template_process" / "authored" / "rooms.py"


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """An author's workspace whose files are followed, served in this process."""
    monkeypatch.setenv("HUD_FILE_TRACKING_ENABLED", "true")
    monkeypatch.setenv("ROOMS_ROOT", str(tmp_path / "work"))
    monkeypatch.setenv("ROOMS_STARTED", str(tmp_path / "started"))
    async with served(load_environments([str(ROOMS)])[0], tmp_path / "store.sqlite3") as running:
        yield running


class Follower:
    """A client of `filetracking/1`: a request a line, and its reply."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._received = BufferedByteReceiveStream(stream)

    async def call(self, method: str) -> Any:
        """What a method returns, or its error."""
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
        await self._stream.send(json.dumps(asked).encode() + b"\n")
        reply = json.loads(await self._received.receive_until(b"\n", 2**20))
        return reply.get("result", reply.get("error"))


@pytest.mark.long
async def test_each_change_of_a_file_is_told_once(here: Served) -> None:
    """What was there at first, then what an agent wrote over ssh; an unknown method is an error."""
    with anyio.fail_after(2 * PATIENCE_S):
        async with ChannelClient.connect(f"tcp://127.0.0.1:{here.port}") as client:
            binding = published(client.bindings, "filetracking/1")
            await client.start("write", {"word": "tea"})
            async with (
                client.forward(binding["name"]) as (host, port),
                await anyio.connect_tcp(host, port) as stream,
            ):
                follower = Follower(stream)
                (given,) = (await follower.call("setup"))["patches"]
                assert (given["path"], given["status"]) == ("sub/given.txt", "added")
                async with ssh(client) as agent:
                    await run(agent, "echo tea > out.txt; echo changed > sub/given.txt")
                changes = {p["path"]: p for p in (await follower.call("diff"))["patches"]}
                assert set(changes) == {"out.txt", "sub/given.txt"}
                assert "-given to tea\n+changed" in changes["sub/given.txt"]["patch"]
                assert (await follower.call("advance")) == {"advanced": True}
                assert (await follower.call("diff"))["patches"] == []
                assert "unknown method: 'nonsense'" in (await follower.call("nonsense"))["message"]


async def test_the_endpoint_itself_answers_nobody(here: Served) -> None:
    """Only a session's own name leads to its files, and that name is not the protocol's."""
    with anyio.fail_after(2 * PATIENCE_S):
        async with ChannelClient.connect(f"tcp://127.0.0.1:{here.port}") as client:
            await client.start("write", {"word": "tea"})
            assert published(client.bindings, "filetracking/1")["name"] != "filetracking"
            async with (
                client.forward("filetracking") as (host, port),
                await anyio.connect_tcp(host, port) as stream,
            ):
                told = await Follower(stream).call("setup")
                assert told["message"] == "No task is in progress."

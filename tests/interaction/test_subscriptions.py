"""Who subscribes to a session's record or picture hears of each change, and of no other's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, ResourceUpdatedNotification
from peers import BOARD, LEGACY, MODERN, WAYS, Held, Peer, Way, http_peer, http_server, stdio_peer
from slate import Moments, registry, slates
from waiting import PATIENCE_S, until

from hud_mcp.plugins.view import subscriptions
from hud_mcp.server.app import build_server
from hud_mcp.server.resources import Resources
from hud_mcp.session.caller import Caller

pytestmark = [
    pytest.mark.anyio,
    # What 2026-07-28 has no more is what 2025-11-25 has.
    pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed"),
]

SOMEBODY_S = f"hud://sessions/sess-{'0' * 32}/trajectory"
NOT_OURS = "test://watched-resource"
"""What the conformance suite of 2025-11-25 subscribes to, of any server."""


class Heard:
    """The addresses of the resources that a client was told have changed."""

    def __init__(self) -> None:
        self.uris: list[str] = []
        self._news = anyio.Event()

    def add(self, uri: str) -> None:
        """Take one in."""
        self.uris.append(uri)
        self._news.set()
        self._news = anyio.Event()

    async def until(self, uri: str, count: int = 1) -> None:
        """Wait until one was told of so often."""
        with anyio.fail_after(PATIENCE_S):
            while self.uris.count(uri) < count:
                await self._news.wait()

    async def on_message(self, message: Any) -> None:
        """Take in what a client of 2025-11-25 is told."""
        if isinstance(message, ResourceUpdatedNotification):
            self.add(str(message.params.uri))


def addresses(task: Held) -> tuple[str, str]:
    """A session's record and picture."""
    of_session = f"hud://sessions/{task.session}"
    return f"{of_session}/trajectory", f"{of_session}/screenshot"


@asynccontextmanager
async def opened(way: Way, folder: Path, heard: Heard) -> AsyncIterator[Peer]:
    """A connection of its own whose news are kept."""
    if way.transport == "stdio":
        async with stdio_peer(
            folder, (BOARD,), era=way.era, message_handler=heard.on_message
        ) as peer:
            yield peer
        return
    with http_server(folder, (BOARD,)) as server:
        async with http_peer(server, era=way.era, message_handler=heard.on_message) as peer:
            yield peer


@asynccontextmanager
async def told(peer: Peer, heard: Heard, *uris: str) -> AsyncIterator[list[str]]:
    """Subscribe, in the way of the connection's era; yields what was granted."""
    if peer.way.era == LEGACY:
        for uri in uris:
            await peer.client.subscribe_resource(uri)
        yield list(uris)
        return
    async with (
        anyio.create_task_group() as group,
        peer.client.listen(resource_subscriptions=list(uris)) as stream,
    ):

        async def listen() -> None:
            async for event in stream:
                heard.add(event.uri)

        group.start_soon(listen)
        yield stream.honored.resource_subscriptions or []
        group.cancel_scope.cancel()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_a_subscriber_hears_of_steps_pictures_and_the_end(way: Way, tmp_path: Path) -> None:
    """What it reads then has the news; another session's changes are not told."""
    heard = Heard()
    async with opened(way, tmp_path, heard) as peer:
        task = await peer.start("collect", marker="news")
        other = await peer.start("collect", marker="other")
        record, picture = addresses(task)
        async with told(peer, heard, record, picture, NOT_OURS) as granted:
            assert {record, picture} <= set(granted)
            assert (NOT_OURS in granted) is (way.era == LEGACY), "and is never told of"
            await peer.ok("step", session=other.session)
            await peer.ok("step", session=task.session)
            await heard.until(record)
            await heard.until(picture)
            read = await peer.client.read_resource(record, cache_mode="bypass")
            assert '"kind":"step"' in read.contents[0].text
            await peer.ok("response", session=task.session, answer="done")
            await heard.until(record, 2)
            status = await peer.status(task.session)
            assert status["state"] == "ended"
        assert set(heard.uris) == {record, picture}


@pytest.mark.long
async def test_an_unsubscribed_client_hears_no_more(tmp_path: Path) -> None:
    """And again is not an error, nor is what was never subscribed to."""
    heard = Heard()
    async with opened(Way("stdio", LEGACY), tmp_path, heard) as peer:
        task = await peer.start("collect")
        record, picture = addresses(task)
        for uri in (record, record, picture, "hud://environments/board"):
            await peer.client.subscribe_resource(uri)
        for uri in (record, record, SOMEBODY_S):
            await peer.client.unsubscribe_resource(uri)
        await peer.ok("step", session=task.session)
        await heard.until(picture)
        assert set(heard.uris) == {picture}


@pytest.mark.long
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_neighbour_hears_nothing_of_a_session_whose_id_it_knows(
    era: str, tmp_path: Path
) -> None:
    """With another token, an id opens no subscription, and none tells whether it exists."""
    tokens = ("--token", "ann=ann-secret-1", "--token", "ben=ben-secret-2")
    hers, his = Heard(), Heard()
    with http_server(tmp_path, (BOARD,), *tokens) as server:
        async with (
            http_peer(
                server, era=era, token="ann-secret-1", message_handler=hers.on_message
            ) as ann,
            http_peer(server, era=era, token="ben-secret-2", message_handler=his.on_message) as ben,
        ):
            task = await ann.start("collect")
            record, _ = addresses(task)
            by_record = f"hud://sessions/{task.trajectory}/trajectory"
            not_his = (record, by_record, SOMEBODY_S, "hud://nothing")
            if era == LEGACY:
                for uri in not_his:
                    with pytest.raises(MCPError, match=f"Resource not found: {uri}") as refused:
                        await ben.client.subscribe_resource(uri)
                    assert refused.value.error.code == INVALID_PARAMS
            asked = () if era == LEGACY else not_his
            async with told(ben, his, *asked) as granted, told(ann, hers, record, by_record):
                assert granted == []
                await ann.ok("step", session=task.session)
                await hers.until(record)
                await hers.until(by_record)
                own = await ben.start("collect", marker="own")
                if era == LEGACY:
                    await ben.client.subscribe_resource(addresses(own)[0])
                    await ben.ok("step", session=own.session)
                    await his.until(addresses(own)[0])
                assert not {record, by_record} & set(his.uris)


@pytest.mark.long
async def test_a_server_that_ends_closes_the_streams_that_listen(tmp_path: Path) -> None:
    """In order, so that a client knows that it was meant."""
    heard = Heard()
    with http_server(tmp_path, (BOARD,)) as server:
        async with http_peer(server, era=MODERN) as peer:
            task = await peer.start("collect")
            with anyio.fail_after(PATIENCE_S):
                async with peer.client.listen(
                    resource_subscriptions=[addresses(task)[0]]
                ) as stream:
                    server.process.terminate()
                    async for event in stream:
                        heard.add(event.uri)
        assert await anyio.to_thread.run_sync(server.process.wait) == 143
    assert "Traceback" not in server.logged()


async def test_a_stream_that_is_too_many_is_refused_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one caller, so that none takes the room of the others; what ends makes room."""
    monkeypatch.setattr(subscriptions, "_MOST_STREAMS", 2)
    async with (
        registry(tmp_path / "s.sqlite3", slates(Moments())) as sessions,
        Client(build_server(sessions), mode=MODERN) as client,
    ):
        uris = [await begun(client)]
        with anyio.fail_after(PATIENCE_S):
            async with client.listen(resource_subscriptions=uris) as first:
                async with client.listen(resource_subscriptions=uris):
                    with pytest.raises(MCPError, match="2 of your streams are open"):
                        async with client.listen(resource_subscriptions=uris):
                            pass
                await client.call_tool("step", {"session": uris[0].split("/")[3]})
                assert (await anext(aiter(first))).uri == uris[0]
                await until(lambda: _listens(client, uris))


async def _listens(client: Client, uris: list[str]) -> bool:
    """Whether there is room for another stream."""
    try:
        async with client.listen(resource_subscriptions=uris) as stream:
            return stream.honored.resource_subscriptions == uris
    except MCPError:
        return False


async def test_what_has_ended_takes_up_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that subscribes to each of its sessions, and never leaves one, may go on."""
    monkeypatch.setattr(subscriptions, "_MOST", 1)
    heard = Heard()
    async with (
        registry(tmp_path / "s.sqlite3", slates(Moments())) as sessions,
        Client(build_server(sessions), mode=LEGACY, message_handler=heard.on_message) as client,
    ):
        for _ in range(3):
            uri = await begun(client)
            await client.subscribe_resource(uri)
            with pytest.raises(MCPError, match="1 subscriptions are open"):
                await client.subscribe_resource(uri.replace("trajectory", "screenshot"))
            await client.call_tool("cancel_task", {"session": uri.split("/")[3]})
            await heard.until(uri)
            await client.subscribe_resource(uri)


class Stuck:
    """A connection whose client does not read."""

    def __init__(self) -> None:
        self.sent, self.under_way, self.reads = 0, 0, anyio.Event()

    async def send_resource_updated(self, uri: str) -> None:
        """Wait until the client reads."""
        assert uri
        self.under_way += 1
        await self.reads.wait()
        self.under_way -= 1
        self.sent += 1


async def test_a_client_that_does_not_read_is_sent_one_message_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever happens meanwhile, nothing piles up for it; then it hears of the rest at once."""
    monkeypatch.setattr(subscriptions, "_PAUSE_S", 0)
    stuck: Any = Stuck()
    async with (
        registry(tmp_path / "s.sqlite3", slates(Moments())) as sessions,
        Client(build_server(sessions)) as client,
    ):
        told = subscriptions.Subscriptions(sessions, Resources(sessions))
        uri = await begun(client)
        ctx: Any = SimpleNamespace(session=stuck)
        await told.subscribe(ctx, uri, Caller(connection="a connection"))
        for _ in range(20):
            await client.call_tool("step", {"session": uri.split("/")[3]})
        assert stuck.under_way == 1
        stuck.reads.set()
        await until(lambda: stuck.sent == 2 and not stuck.under_way)
        told.unsubscribe(uri, Caller(connection="a connection"))


async def begun(client: Client) -> str:
    """Start a session, and return the address of its record."""
    reply = await client.call_tool("start_task", {"template": "fill"})
    return f"hud://sessions/{(reply.structured_content or {})['session']}/trajectory"

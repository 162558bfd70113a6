"""A reply that is lost is asked for again, and nothing is done twice."""

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest
from cutting import cutting
from peers import HttpServer, http_server
from ways import BENCH, CLIENTS, connected

from hud_mcp import Store
from hud_mcp_client import ConnectionFailed, OutOfStep, Unauthorized, connect

pytestmark = pytest.mark.anyio

TOKEN = "a-token-of-a-test-0123456789"  # of a test


def put(word: str) -> dict[str, Any]:
    """The action that puts a word on the bench."""
    return {"type": "custom", "action": "put", "args": {"word": word}}


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """Each way in turn."""
    return request.param


async def sessions_in(store: Path) -> int:
    """How many sessions a store has."""
    opened = Store(store)
    try:
        return len(await opened.list_trajectories())
    finally:
        await opened.close()


async def test_every_lost_reply_is_asked_for_again(client: str, bench: HttpServer) -> None:
    """A start, steps and the answer: each is done once, though each reply was lost once."""
    before = await sessions_in(bench.store)
    async with cutting(bench.url) as proxy, connected(client, proxy.url) as there:
        proxy.lose = 1
        task = await there.start(template="say")
        for word in ("a", "b", "c"):
            proxy.lose = 1
            step = await task.step(put(word))
            assert step.is_repeat, "the second call was told what the first had done"
        assert step.observation.text == "words: start a b c; clicks: []"
        proxy.lose = 1
        assert await task.answer("lamp") == 1.0
    assert await sessions_in(bench.store) == before + 1


async def test_a_request_that_was_never_sent_is_sent_again(client: str, bench: HttpServer) -> None:
    """A connection that is refused, a busy server and a gateway's error cost time alone."""
    async with cutting(bench.url) as proxy, connected(client, proxy.url) as there:
        proxy.refuse = 2
        task = await there.start(template="say")
        proxy.answer = ["503 Service Unavailable", "429 Too Many Requests", "502 Bad Gateway"]
        step = await task.step(put("a"))
        assert step.observation.text == "words: start a; clicks: []"
        assert not step.is_repeat
        assert await task.answer("lamp") == 1.0


async def test_a_tool_of_the_environment_is_not_called_twice(
    client: str, bench: HttpServer
) -> None:
    """Nobody knows whether it may be: a lost reply raises, and the session lives on."""
    async with cutting(bench.url) as proxy, connected(client, proxy.url) as there:
        task = await there.start(template="day")
        before = (await task.tool("sold")).text
        proxy.lose = 1
        with pytest.raises(ConnectionFailed, match="not sent twice"):
            await task.tool("sell", what="lamp")
        assert (await task.tool("sell", what="rug")).text == f"{before} lamp rug"
        assert await task.answer("done") == 1.0


@pytest.mark.long
async def test_a_server_that_restarts_goes_on_with_the_session(client: str, tmp_path: Path) -> None:
    """The client notices nothing but the time: the store has the session."""
    store = str(tmp_path / "shared.sqlite3")
    with http_server(tmp_path / "one", [str(BENCH)], "--store", store) as first:
        port = first.url.rsplit(":", 1)[1].split("/")[0]
        async with connected(client, first.url) as there:
            task = await there.start(template="say")
            await task.step(put("a"))
            first.process.kill()
            first.process.wait()
            second = http_server(
                tmp_path / "two", [str(BENCH)], "--store", store, "--http", f"127.0.0.1:{port}"
            )
            with second:
                step = await task.step(put("b"))
                assert step.observation.text == "words: start a b; clicks: []"
                assert await task.answer("lamp") == 1.0


async def test_who_steps_a_session_beside_another_is_told(bench: HttpServer) -> None:
    """Nothing is done on a picture of the world that is old."""
    async with connect(bench.url) as there:
        task = await there.start(template="say")
        other = await there.resume(task.id)
        await task.step(put("a"))
        await task.step(put("b"))
        with pytest.raises(OutOfStep):
            await other.step(put("c"))
        assert (await task.step()).observation.text == "words: start a b; clicks: []"


@pytest.mark.long
@pytest.mark.parametrize("client", ["async-2026-07-28", "sync-2025-11-25"])
async def test_no_server_and_no_token_are_told_apart(client: str, tmp_path: Path) -> None:
    """Each error says what to do; the session of another token is not to be had."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ann={TOKEN}\n")
    with http_server(tmp_path, [str(BENCH)], "--token-file", str(tokens)) as server:
        async with connected(client, server.url) as nobody:
            with pytest.raises(Unauthorized, match="wants a token"):
                await nobody.start(template="say")
        async with connected(client, server.url, token="wrong") as stranger:
            with pytest.raises(Unauthorized, match="does not take the token"):
                await stranger.start(template="say")
        async with connected(client, server.url, token=TOKEN) as ann:
            task = await ann.start(template="say")
            assert await task.answer("lamp") == 1.0
        url = server.url
    async with connected(client, url, retry_s=0.0) as there:
        with pytest.raises(ConnectionFailed, match="gave no reply"):
            await there.start(template="say")


@pytest.mark.long
async def test_a_hundred_episodes_share_a_few_connections(bench: HttpServer) -> None:
    """Sessions at once, over one client, keep to themselves."""
    async with connect(bench.url) as there:

        async def episode(number: int) -> float | None:
            async with await there.start(template="say", arguments={"word": f"w{number}"}) as task:
                await task.step(put(f"p{number}"))
                seen = (await task.step()).observation.text
                assert seen == f"words: start p{number}; clicks: []"
                return await task.answer(f"w{number}")

        with anyio.fail_after(120):
            rewards = await asyncio.gather(*(episode(number) for number in range(100)))
    assert rewards == [1.0] * 100

"""Which connections a listener keeps: strangers are few and short, clients are left alone."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from anyio.abc import SocketStream
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from waiting import PATIENCE_S

from hud_mcp.base.listening import listen
from hud_mcp.server.web.listener import Connections, serving

pytestmark = pytest.mark.anyio

ASK = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


async def _answer(request: Request) -> Response:
    """Whoever has the token."""
    allowed = request.headers.get("authorization") == "Bearer right"
    return PlainTextResponse("hello" if allowed else "no", 200 if allowed else 401)


async def _read(request: Request) -> Response:
    """Waits for the whole request."""
    return PlainTextResponse(await request.body())


@asynccontextmanager
async def served(connections: Connections) -> AsyncGenerator[tuple[str, int]]:
    """A server with bounds of its own; yields its address."""
    listener: socket.socket = listen("127.0.0.1", 0)
    address = listener.getsockname()[:2]
    with anyio.fail_after(PATIENCE_S):
        async with serving(
            Starlette(routes=[Route("/", _answer), Route("/whole", _read, methods=["POST"])]),
            listener,
            connections=connections,
        ):
            yield address


async def ends(stream: SocketStream) -> bytes:
    """What still comes on a connection until the other side closes it."""
    got = b""
    try:
        while True:
            got += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return got


async def ask(address: tuple[str, int], token: str = "right") -> int:
    """The status of a request on a connection of its own."""
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}) as client:
        return (await client.get(f"http://{address[0]}:{address[1]}/")).status_code


async def test_a_stranger_that_says_nothing_is_closed() -> None:
    """Whether it sends nothing at all or half a head."""
    async with served(Connections(head_s=0.2)) as address:
        for begun in (b"", b"GET / HTTP/1.1\r\nhost:"):
            async with await anyio.connect_tcp(*address) as stream:
                if begun:
                    await stream.send(begun)
                assert await ends(stream) == b""


async def test_the_second_head_of_a_connection_is_bounded_too() -> None:
    """An answered request buys no time for half of the next one."""
    async with (
        served(Connections(head_s=0.2)) as address,
        await anyio.connect_tcp(*address) as stream,
    ):
        await stream.send(ASK)
        assert b"401" in await stream.receive()
        await stream.send(b"GET / HT")
        await ends(stream)


async def test_the_oldest_stranger_gives_way_and_a_client_is_answered() -> None:
    """However many there are: none of them holds the door."""
    async with served(Connections(strangers=3)) as address:
        silent = [await anyio.connect_tcp(*address) for _ in range(8)]
        try:
            assert await ask(address) == 200
            for stream in silent[:5]:
                assert await ends(stream) == b""
        finally:
            for stream in silent:
                await stream.aclose()


async def test_a_stranger_that_never_ends_its_request_gives_way() -> None:
    """It waits for itself, and nobody else does."""
    async with served(Connections(strangers=3)) as address:
        begun = [await anyio.connect_tcp(*address) for _ in range(3)]
        for stream in begun:
            await stream.send(b"POST /whole HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf")
        try:
            assert await ask(address) == 200
            assert await ends(begun[0]) == b""
            await begun[2].send(b" of it")
            assert b"half of it"[:9] in await begun[2].receive()
        finally:
            for stream in begun:
                await stream.aclose()


async def test_whoever_was_answered_is_not_closed_for_strangers() -> None:
    """A client's connection outlives a flood; one that was refused does not."""
    async with served(Connections(strangers=2)) as address:
        async with httpx.AsyncClient(headers={"authorization": "Bearer right"}) as client:
            url = f"http://{address[0]}:{address[1]}/"
            first = await client.get(url)
            async with await anyio.connect_tcp(*address) as refused:
                await refused.send(ASK)
                assert b"401" in await refused.receive()
                silent = [await anyio.connect_tcp(*address) for _ in range(4)]
                await ends(refused)
            again = await client.get(url)
            stream = again.extensions["network_stream"]
            assert stream.get_extra_info("client_addr") == first.extensions[
                "network_stream"
            ].get_extra_info("client_addr")
            for each in silent:
                await each.aclose()
        assert await ask(address, token="wrong") == 401


async def test_all_connections_together_leave_files_for_sessions() -> None:
    """At the most, a new one is closed, and those that are there are answered on."""
    async with served(Connections(most=2)) as address:
        clients = [httpx.AsyncClient(headers={"authorization": "Bearer right"}) for _ in range(2)]
        url = f"http://{address[0]}:{address[1]}/"
        for client in clients:
            assert (await client.get(url)).status_code == 200
        with pytest.raises(httpx.TransportError):
            await ask(address)
        for client in clients:
            assert (await client.get(url)).status_code == 200
            await client.aclose()

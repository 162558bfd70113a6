"""Streams to capabilities through the channel's port."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from waiting import PATIENCE_S, let_pass, until
from wire import Wire, served, wire

from hud_mcp import Capability, Environment
from hud_mcp.channel.client import ChannelClient
from hud_mcp.plugins.hud.wire.streams import ChannelRefused, Place, open_stream

pytestmark = pytest.mark.anyio

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def service(serve: Serve) -> AsyncIterator[int]:
    """A service on a loopback port."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.fixture
async def channel(tmp_path: Path) -> AsyncIterator[tuple[Environment, int]]:
    """An environment to publish on, and the port of its channel."""
    env = Environment("tunnels")
    async with served(env, tmp_path / "store.sqlite3") as here:
        yield env, here.port


def publish(env: Environment, port: int, name: str = "it") -> None:
    """Publish what listens on a port."""
    env.add_capability(Capability(name=name, protocol="mcp", url=f"ws://127.0.0.1:{port}/path"))


@asynccontextmanager
async def stream(port: int, name: str = "it") -> AsyncIterator[Wire]:
    """A stream to a capability, once it is open."""
    async with wire(port, hello=False) as found:
        assert await found.call("tunnel.open", capability=name) == {"capability": name}
        yield found


async def test_bytes_are_carried_both_ways_as_they_are(channel: tuple[Environment, int]) -> None:
    """Also those that are no text, that look like frames, and that come with the first frame."""
    env, port = channel
    heard = bytearray()
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x00\xff\n")
        while chunk := await reader.read(10):
            heard.extend(chunk)
        writer.write(b"after your end")
        writer.close()
        done.set()

    async with service(serve) as far, wire(port, hello=False) as peer:
        publish(env, far)
        early = b'{"id":9,"method":"bye"}\n\x80' + os.urandom(100_000)
        frame = b'{"id":1,"method":"tunnel.open","params":{"capability":"it"}}\n'
        peer.send(frame + early)
        assert (await peer.frame() or {})["result"] == {"capability": "it"}
        assert await peer.reader.readexactly(3) == b"\x00\xff\n"
        peer.writer.write_eof()
        assert await peer.ended() == b"after your end", "each direction ends by itself"
        with anyio.fail_after(PATIENCE_S):
            await done.wait()
        assert bytes(heard) == early


async def test_a_peer_may_say_everything_and_end_before_it_is_answered(
    channel: tuple[Environment, int],
) -> None:
    """What it said arrives with its end, and what the service says then comes back."""
    env, port = channel

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(hashlib.sha256(await reader.read()).digest())
        writer.close()

    said = b"\n \r\n" + os.urandom(60_000)
    async with service(serve) as far, wire(port, hello=False) as peer:
        publish(env, far)
        peer.send(b'{"method":"tunnel.open","params":{"capability":"it"}}\n' + said)
        peer.writer.write_eof()
        assert await peer.ended() == hashlib.sha256(said).digest()


async def test_a_stream_that_is_asked_for_without_an_id_is_not_answered(
    channel: tuple[Environment, int],
) -> None:
    """Its first byte is the service's."""
    env, port = channel

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0")
        writer.close()

    async with service(serve) as far, wire(port, hello=False) as peer:
        publish(env, far)
        peer.send(b'{"method":"tunnel.open","params":{"capability":"it"}}\n')
        assert await peer.ended() == b"SSH-2.0"


async def test_a_side_that_does_not_read_holds_up_the_other(
    channel: tuple[Environment, int],
) -> None:
    """What is on its way is bounded, and all of it arrives once it is read."""
    env, port = channel
    sent = 0
    whole = hashlib.sha256()

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        for _ in range(512):
            chunk = os.urandom(64 * 1024)
            whole.update(chunk)
            writer.write(chunk)
            await writer.drain()
            sent += len(chunk)
        writer.close()

    async with service(serve) as far, stream_of(env, port, far) as peer:
        peer.writer.transport.pause_reading()
        last = -1

        async def stands_still() -> bool:
            nonlocal last
            before, last = last, sent
            await let_pass(0.2)
            return sent == last == before

        await until(stands_still)
        assert sent < 24 * 2**20, "the sockets' own buffers and a little more"
        peer.writer.transport.resume_reading()
        heard = hashlib.sha256(await peer.ended())
    assert heard.digest() == whole.digest()


@asynccontextmanager
async def stream_of(env: Environment, port: int, far: int) -> AsyncIterator[Wire]:
    """Publish a service, and open a stream to it."""
    publish(env, far)
    async with stream(port) as peer:
        yield peer


async def test_a_stream_ends_where_either_side_is_gone(channel: tuple[Environment, int]) -> None:
    """A peer's abort reaches the service, and a service's abort the peer."""
    env, port = channel
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(1) == b"!":
            writer.transport.abort()
            return
        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        ended.set()

    async with service(serve) as far:
        async with stream_of(env, port, far) as peer:
            peer.send(b"?")
            await peer.writer.drain()
        with anyio.fail_after(PATIENCE_S):
            await ended.wait()
        async with stream_of(env, port, far) as peer:
            peer.send(b"!")
            assert await peer.ended() in (b"", b"reset")


async def test_what_is_not_there_is_refused_by_name(channel: tuple[Environment, int]) -> None:
    """Unknown, not answering, and no name at all; the address is not told."""
    env, port = channel
    async with service(lambda _r, w: w.wait_closed()) as far:
        publish(env, far)
    cases = (("nope", -32000, "there are: it"), ("it", -32000, "does not answer"), (7, -32602, ""))
    for name, code, says in cases:
        async with wire(port, hello=False) as peer:
            refused = await peer.refused("tunnel.open", capability=name)
            assert refused.code == code
            assert says in refused.text
            assert str(far) not in refused.text
            assert await peer.ended() == b""


async def test_a_capability_of_the_same_name_takes_the_place_of_the_first(
    channel: tuple[Environment, int],
) -> None:
    """The next hello and the next stream see the new one; an open stream goes on."""
    env, port = channel

    def speaker(word: bytes) -> Serve:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(word)
            writer.close()

        return serve

    async with (
        service(speaker(b"old")) as old,
        service(speaker(b"new")) as new,
        wire(port) as peer,
        stream_of(env, port, old) as first,
    ):
        publish(env, new)
        bindings = (await peer.hello(session_id=peer.session))["bindings"]
        url = f"ws://127.0.0.1:{new}/path"
        assert bindings == [{"name": "it", "protocol": "mcp", "url": url, "params": {}}]
        async with stream(port) as second:
            second.send(b"\n")
            assert await second.ended() == b"new"
        first.send(b"\n")
        assert await first.ended() == b"old"


async def test_our_client_forwards_a_loopback_port(channel: tuple[Environment, int]) -> None:
    """Several connections at once; nothing listens any more afterwards."""
    env, port = channel

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"got " + await reader.read())
        writer.close()

    async with service(serve) as far:
        publish(env, far)
        place = f"tcp://127.0.0.1:{port}"
        async with (
            ChannelClient.connect(place) as client,
            client.forward("it") as (host, local),
        ):
            for word in (b"one", b"two"):
                reader, writer = await asyncio.open_connection(host, local)
                writer.write(word)
                writer.write_eof()
                with anyio.fail_after(PATIENCE_S):
                    assert await reader.read() == b"got " + word
                writer.close()
        with pytest.raises(OSError, match="onnect"):
            await asyncio.open_connection(host, local)
    with pytest.raises(ChannelRefused, match="does not answer"):
        await open_stream(Place("127.0.0.1", port), "it")


async def test_streams_are_no_sessions(tmp_path: Path) -> None:
    """They count as connections, and nothing else is left of one."""
    env = Environment("tunnels")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with (
        service(serve) as far,
        served(env, tmp_path / "store.sqlite3", connections=3) as here,
    ):
        for _ in range(5):
            async with stream_of(env, here.port, far):
                assert len(here.channel._service.hud_sessions) == 0
            await until(lambda: not here.channel.connections)

"""Our client: what it does when the other side does not do what it should."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from tables import each_of
from waiting import PATIENCE_S
from wire import Gate, Served

from hud_mcp.channel.client import ChannelClient
from hud_mcp.plugins.hud.wire.streams import (
    ChannelFailed,
    ChannelRefused,
    Place,
    open_stream,
    read_place,
)

pytestmark = pytest.mark.anyio

Gates = Callable[[str], Gate]


@asynccontextmanager
async def answering(reply: bytes | None, *, close: bool = False) -> AsyncIterator[str]:
    """A server that answers everything in one way; None for silence."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            if reply is not None:
                writer.write(reply)
            if close:
                break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def test_an_address_is_read_with_its_token() -> None:
    """A token is never shown again."""
    place = read_place("tcp://s%40cret@[::1]:99")
    assert place == Place("::1", 99, "s@cret")
    assert "s@cret" not in repr(place)
    assert str(place) == "tcp://[::1]:99"


@each_of("url", ["", "127.0.0.1:8", "http://h:1", "tcp://h", "tcp://x@h:99999"])
def test_what_is_no_address_is_refused(url: str) -> None:
    """The text says how to write one."""
    with pytest.raises(ChannelFailed, match="write tcp://host:port"):
        read_place(url)


@each_of(
    ("reply", "close", "says"),
    [
        (None, False, "did not answer within"),
        (None, True, "closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", False, "does not speak"),
        (b"[1]\n", False, "does not speak"),
        (b'{"id":1,"result":7}\n', False, "not an object"),
        (b'{"id":1,"result":{}}\n', False, "does not speak"),
        (b'{"id":2,"result":{}}\n', True, "closed the connection"),
        (b'{"id":1,"error":{"code":-1,"message":"no"}}\n', False, "refused"),
        (b'{"id":null,"error":{"code":-1,"message":"no"}}\n', False, "refused"),
        (b'{"id":1,"error":{}}\n', False, "no reason was given"),
    ],
)
async def test_what_does_not_answer_as_a_channel_is_said(
    reply: bytes | None,
    close: bool,  # noqa: FBT001  # pytest passes it by name
    says: str,
) -> None:
    """Within the time that was given, and with the address."""
    async with answering(reply, close=close) as url:
        with (
            anyio.fail_after(PATIENCE_S),
            pytest.raises((ChannelFailed, ChannelRefused), match=says),
        ):
            async with ChannelClient.connect(url, reply_s=0.3):
                pass


async def test_nothing_that_listens_is_an_error_at_once() -> None:
    """It is not tried again for minutes."""
    async with answering(None) as url:
        pass
    with (
        anyio.fail_after(PATIENCE_S),
        pytest.raises(ChannelFailed, match="Nothing answers at tcp://"),
    ):
        async with ChannelClient.connect(url):
            pass


async def test_a_task_is_held_between_connections(here: Served) -> None:
    """Start in one, grade in another; the same answer again is given the same grade."""
    url = f"tcp://127.0.0.1:{here.port}"
    async with ChannelClient.connect(url) as client:
        assert client.environment == {"name": "talk", "version": "1.2.3"}
        started = await client.start("ask", {"word": "x"})
        assert started["prompt"] == "Say x."
        with pytest.raises(ChannelRefused, match="unknown task") as refused:
            await client.start("nope")
        assert refused.value.code == -32602
    async with ChannelClient.connect(url, session_id=client.session_id, take_over=True) as again:
        grade = await again.grade("x")
        assert grade["score"] == 1.0
        assert await again.grade("x") == grade
        await again.bye()
        with pytest.raises(ChannelFailed):
            await again.list_tasks()


async def test_the_stored_grade_of_a_session_that_was_graded_is_returned(here: Served) -> None:
    """For the answer that it was graded for; nothing else can be asked of such a session."""
    url = f"tcp://127.0.0.1:{here.port}"
    async with ChannelClient.connect(url) as other, ChannelClient.connect(url) as client:
        await other.start("ask", {"word": "other"})
        await client.start("ask", {"word": "x"})
        grade = await client.grade("x")
    async with ChannelClient.connect(url, session_id=client.session_id) as again:
        assert again.graded is not None
        assert again.session_id == client.session_id
        assert await again.grade("x") == await again.grade("x") == grade
        for asked in (again.grade("y"), again.list_tasks(), again.start("ask"), again.cancel()):
            with pytest.raises(ChannelRefused, match="unknown session") as refused:
                await asked
            assert refused.value.code == -32600
    with pytest.raises(ChannelRefused, match="unknown session"):
        async with ChannelClient.connect(url, session_id="sess-" + "0" * 32):
            pass


async def test_every_frame_of_the_client_says_which_protocol_it_speaks() -> None:
    """Also the first of a stream: strict servers read nothing else."""
    frames: list[dict[str, object]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            frames.append(json.loads(line))
            hello = {"session_id": "s", "env": {"name": "e", "version": "1"}, "bindings": []}
            reply = {"jsonrpc": "2.0", "id": frames[-1]["id"], "result": hello}
            writer.write(json.dumps(reply).encode() + b"\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    place = Place("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        with anyio.fail_after(PATIENCE_S):
            async with ChannelClient.connect(place):
                (_, writer), rest = await open_stream(place, "tools")
                assert rest == b""
                writer.close()
    finally:
        server.close()
    assert [frame["method"] for frame in frames] == ["hello", "tunnel.open"]
    assert [frame["jsonrpc"] for frame in frames] == ["2.0", "2.0"]


async def test_a_call_is_cut_off_by_another_task(here: Served, gate: Gates) -> None:
    """Its waiter is told, and the connection goes on."""
    setup = gate("setup")
    async with ChannelClient.connect(f"tcp://127.0.0.1:{here.port}") as client:
        told: list[str] = []

        async def start() -> None:
            try:
                await client.start("gated", {"setup": setup.path})
            except ChannelRefused as exc:
                told.append(exc.message)

        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                group.start_soon(start)
                await setup.reached()
                await client.cancel()
        assert told == ["tasks.cancel interrupted the task"]
        assert (await client.start("ask"))["prompt"] == "Say tea."


async def test_a_call_that_is_cancelled_closes_the_connection(here: Served, gate: Gates) -> None:
    """Its reply would be taken for the next one's; what is held is resumed by its id."""
    grading = gate("grading")
    url = f"tcp://127.0.0.1:{here.port}"
    async with ChannelClient.connect(url) as client:
        await client.start("gated", {"grading": grading.path})
        with anyio.move_on_after(0.1):
            await client.grade("x")
        with pytest.raises(ChannelFailed, match="connect again"):
            await client.list_tasks()
    grading.open()
    async with ChannelClient.connect(url, session_id=client.session_id, take_over=True) as again:
        assert (await again.grade("x"))["score"] == 0.5

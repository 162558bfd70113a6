"""A server in a process of its own, and peers that send what they like."""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import PATIENCE_S
from wire import Process, Wire, process, wire

pytestmark = pytest.mark.anyio

METHODS = st.sampled_from(
    ["hello", "tasks.list", "tasks.start", "tasks.grade", "tasks.cancel", "bye", "tunnel.open"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["ask", "gated", "rich", "broken", "word", "echo", "sess-" + "0" * 32]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "args", "answer", "session_id", "capability", "word", "token"])
            | st.text(max_size=6),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers() | st.text(max_size=6) | VALUES,
        "method": METHODS | VALUES,
        "params": st.dictionaries(st.sampled_from(["id", "args", "answer"]), VALUES) | VALUES,
    },
)
LINES = REQUESTS.map(lambda r: json.dumps(r).encode()) | st.binary(max_size=80)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One for all; it must outlive everything here."""
    with process(tmp_path_factory.mktemp("fuzz") / "store.sqlite3") as running:
        yield running
        assert running.popen.poll() is None
        assert "Traceback" not in running.logged()


@asynccontextmanager
async def others_go_on(server: Process) -> AsyncIterator[Wire]:
    """A task that is held meanwhile, and is graded in the end; what it all costs is bounded."""
    async with wire(server.port) as peer:
        await peer.start("ask", word="held")
        before = memory(server)
        yield peer
        assert memory(server) - before < 100 * 2**20
        assert (await peer.grade("held"))["score"] == 1.0


def memory(server: Process) -> int:
    """Resident bytes."""
    return psutil.Process(server.popen.pid).memory_info().rss


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(LINES, max_size=6), min_size=1, max_size=8), st.integers(0, 10**6))
def test_whatever_is_sent_is_answered_or_refused(
    server: Process, peers: list[list[bytes]], seed: int
) -> None:
    """Requests of any shape and any bytes, cut anywhere, from several peers at once."""

    async def run() -> None:
        async with others_go_on(server), AsyncExitStack() as stack:
            for lines in peers:
                one = await stack.enter_async_context(wire(server.port, hello=False))
                whole = b"".join(line + b"\n" for line in lines)
                cut = random.Random(seed).randint(0, len(whole))
                one.send(whole[:cut])
                await anyio.lowlevel.checkpoint()
                one.send(whole[cut:])
                with contextlib.suppress(OSError):  # it may have been ended already
                    one.writer.write_eof()
                for line in (await one.ended()).splitlines():
                    if line != b"reset":  # it was ended while it still sent
                        assert_is_reply(line)

    asyncio.run(run())


def assert_is_reply(line: bytes) -> None:
    """One object, with a result or an error that says something."""
    reply: dict[str, Any] = json.loads(line)
    assert ("result" in reply) != ("error" in reply)
    if "error" in reply:
        assert isinstance(reply["error"]["code"], int)
        assert reply["error"]["message"]
        assert reply["error"]["code"] != -32603, "an internal error"


async def test_a_conversation_is_understood_split_at_every_byte(server: Process) -> None:
    """Each byte of a whole conversation comes in a packet of its own."""
    async with others_go_on(server), wire(server.port, hello=False) as peer:
        frames = [
            {"id": 1, "method": "hello", "params": {}},
            {"id": 2, "method": "tasks.start", "params": {"id": "ask", "args": {"word": "\u00e9"}}},
            {"id": 3, "method": "tasks.grade", "params": {"answer": "\u00e9"}},
        ]
        for frame in frames:
            for byte in json.dumps(frame, ensure_ascii=False).encode() + b"\n":
                peer.send(bytes([byte]))
                await peer.writer.drain()
                await anyio.lowlevel.checkpoint()
            assert "result" in await peer.reply(frame["id"])


async def test_deep_nesting_is_refused_wherever_it_stands(server: Process) -> None:
    """As a frame, as arguments, and as an answer; the connection goes on where it can."""
    async with others_go_on(server), wire(server.port) as peer:
        await peer.start("ask")
        for depth in (500, 100_000):
            deep = b"[" * depth + b"]" * depth
            for frame in (
                deep,
                b'{"id":1,"method":"tasks.start","params":{"id":"ask","args":{"word":%s}}}' % deep,
                b'{"id":1,"method":"tasks.grade","params":{"answer":%s}}' % deep,
                b'{"id":1,"method":%s}' % deep,
            ):
                peer.send(frame + b"\n")
                reply = await peer.frame() or {}
                assert reply["error"]["code"] in (-32700, -32600, -32602, -32000)
        assert (await peer.grade("tea"))["score"] == 1.0


async def test_ids_that_are_used_twice_are_answered_twice(server: Process) -> None:
    """Also by two peers at once, each with its own answer."""
    async with others_go_on(server), wire(server.port) as one, wire(server.port) as two:
        for peer, word in ((one, "one"), (two, "two")):
            start = {"id": "ask", "args": {"word": word}}
            peer.send(json.dumps({"id": 7, "method": "tasks.start", "params": start}).encode())
            peer.send(b"\n")
        for peer, word in ((one, "one"), (two, "two")):
            assert (await peer.frame() or {})["result"]["prompt"] == f"Say {word}."
            peer.send(b'{"id":7,"method":"tasks.list"}\n{"id":7,"method":"nope"}\n')
            first, second = await peer.frame() or {}, await peer.frame() or {}
            assert first["id"] == second["id"] == 7
            assert "tasks" in first["result"]
            assert second["error"]["code"] == -32601


async def test_64_megabytes_without_a_newline_cost_no_memory(server: Process) -> None:
    """From several peers at once, one after another sends what nobody keeps."""
    async with others_go_on(server), AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(wire(server.port)) for _ in range(3)]
        chunk = b"x" * 2**20

        async def send(peer: Wire) -> None:
            for _ in range(64):
                peer.send(chunk)
                await peer.writer.drain()
            peer.writer.write_eof()
            lines = (await peer.ended()).splitlines()
            assert json.loads(lines[-1])["error"]["code"] == -32600

        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                for peer in peers:
                    group.start_soon(send, peer)


@pytest.mark.long
async def test_peers_that_send_a_byte_now_and_then_hold_up_nobody(server: Process) -> None:
    """As a request at a byte per second does: many of them wait, and others are answered."""
    async with others_go_on(server) as held, AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(wire(server.port, hello=False)) for _ in range(100)]
        request = b'{"id":1,"method":"tasks.list"}\n'
        for at in range(len(request)):
            for peer in slow:
                peer.send(request[at : at + 1])
            with anyio.fail_after(PATIENCE_S):
                assert (await held.call("hello", session_id=held.session))["session_id"]
        for peer in slow:
            assert (await peer.reply(1))["result"]["tasks"]

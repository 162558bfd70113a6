"""Who may speak on the control channel, how much, and for how long."""

import json
import re
from pathlib import Path

import anyio
import pytest
from talking import parked, refusal
from waiting import PATIENCE_S, let_pass, until
from wire import Gate, Served, served, wire

from hud_mcp import Environment
from hud_mcp.plugins.hud.wire.server import CHANNEL_LIMITS

pytestmark = pytest.mark.anyio


async def test_without_the_token_nothing_is_told_or_done(talk: Environment, tmp_path: Path) -> None:
    """Not to hello, not to any other first frame, not to a stream; the connection ends."""
    async with served(talk, tmp_path / "store.sqlite3", token="a-long-secret") as here:
        for method, params in (
            ("hello", {}),
            ("hello", {"token": "a-long-secreT"}),
            ("hello", {"token": 7}),
            ("tasks.start", {"id": "ask"}),
            ("tunnel.open", {"capability": "echo"}),
        ):
            async with wire(here.port, hello=False) as peer:
                refused = await peer.refused(method, **params)
                assert refused.code == -32001
                assert "token" in refused.text
                assert await peer.ended() == b""
        async with wire(here.port, token="a-long-secret") as peer:
            await peer.start("ask")
            peer.drop()
            await parked(here, peer.session)
        async with wire(here.port, token="a-long-secret") as peer:
            assert (await peer.grade("tea"))["score"] == 1.0, "who knows the token may adopt"


async def test_where_others_can_reach_it_without_a_token_nobody_adopts(
    talk: Environment, tmp_path: Path
) -> None:
    """The session's id is asked for."""
    from hud_mcp.plugins.hud.wire.server import Channel  # noqa: PLC0415
    from hud_mcp.session.registry import Sessions  # noqa: PLC0415
    from hud_mcp.store import Store  # noqa: PLC0415

    sessions = Sessions([talk], store=Store(tmp_path / "store.sqlite3"), limits=CHANNEL_LIMITS)
    channel = Channel(talk, sessions=sessions, closes_sessions=True)
    server = await channel.listen("0.0.0.0")
    here = Served(server.sockets[0].getsockname()[1], channel, sessions)
    try:
        async with wire(here.port) as peer:
            await peer.start("ask")
            peer.drop()
            await parked(here, peer.session)
        async with wire(here.port) as blind:
            assert (await blind.refused("tasks.grade", answer="")).text == "no task in progress"
        async with wire(here.port, session_id=peer.session) as again:
            assert (await again.grade("tea"))["score"] == 1.0
    finally:
        await channel.close()


async def test_arguments_and_answers_are_bounded(talk: Environment, tmp_path: Path) -> None:
    """To the byte, with what is allowed in the error; what is held goes on."""
    limits = CHANNEL_LIMITS.model_copy(update={"argument_bytes": 1000})
    async with (
        served(talk, tmp_path / "store.sqlite3", limits=limits) as here,
        wire(here.port) as peer,
    ):
        refused = await peer.refused("tasks.start", id="ask", args={"word": "x" * 1000})
        assert refused.code == -32602
        assert "at most 1000" in refused.text
        await peer.start("ask", word="x" * 900)
        assert (await peer.refused("tasks.grade", answer="x" * 1000)).code == -32602
        deep = [[]]
        for _ in range(400):
            deep = [deep]
        assert (await peer.refused("tasks.grade", answer=deep)).code == -32000
        assert (await peer.grade("x" * 900))["score"] == 1.0


async def test_arguments_and_answers_are_as_long_as_a_frame(here: Served) -> None:
    """12 MB in each direction, as with HUD; MCP's own limit is 1 MB."""
    word = "x" * 12_000_000
    async with wire(here.port) as peer:
        assert (await peer.start("ask", word=word))["prompt"] == f"Say {word}."
        assert (await peer.grade(word))["score"] == 1.0
        assert here.sessions.limits.argument_bytes == 2**20


async def test_errors_name_the_methods_of_the_wire(talk: Environment, tmp_path: Path) -> None:
    """No tool of MCP is named to a client that has none."""
    limits = CHANNEL_LIMITS.model_copy(update={"sessions": 1, "sessions_per_caller": 1})
    async with (
        served(talk, tmp_path / "store.sqlite3", limits=limits) as here,
        wire(here.port) as one,
        wire(here.port) as two,
    ):
        await one.start("ask")
        said = [(await two.refused("tasks.start", id="ask")).text]
        assert "Finish one with tasks.grade, or end one with tasks.cancel." in said[0]
        await one.grade("tea")
        said.append((await one.refused("tasks.grade", answer="milk")).text)
        for text in said:
            assert not re.search(r"start_task|list_tasks|cancel_task|task_status|response", text)


async def test_a_held_task_expires_where_nobody_attends_to_it(
    talk: Environment, tmp_path: Path
) -> None:
    """An open connection attends to its task; a parked one has the idle time, and says so."""
    limits = CHANNEL_LIMITS.model_copy(update={"idle_s": 0.6})
    async with (
        served(talk, tmp_path / "store.sqlite3", limits=limits) as here,
        wire(here.port) as kept,
        wire(here.port) as left,
    ):
        await kept.start("ask", word="kept")
        await left.start("ask", word="left")
        left.drop()
        session = here.channel._service.hud_sessions._by_id[left.session].session
        await until(lambda: session.state.is_over)
        assert (await kept.grade("kept"))["score"] == 1.0
        refused = await refusal(here, left.session)
        assert ": it expired at" in refused.text
        assert "idle for 0.6 s" in refused.text
        assert refused.data == {"outcome": "expired"}


async def test_a_connection_that_says_nothing_is_closed_and_its_task_stays_held(
    talk: Environment, tmp_path: Path
) -> None:
    """One that never said anything too; not one whose task call runs."""
    store = tmp_path / "store.sqlite3"
    async with served(talk, store, idle_s=0.6, first_s=0.6) as here:
        async with wire(here.port, hello=False) as silent:
            assert b"in time" in await silent.ended()
        async with wire(here.port) as peer:
            slow = Gate(str(tmp_path / "slow"))
            start = peer.ask("tasks.start", id="gated", args={"setup": slow.path})
            await slow.reached()
            await let_pass(1.0)  # longer than it may be idle
            slow.open()
            await peer.result(start)
            assert await peer.ended() == b""
            async with wire(here.port, session_id=peer.session) as again:
                assert (await again.grade("x"))["score"] == 0.5


async def test_more_connections_than_are_taken_are_told_so(
    talk: Environment, tmp_path: Path
) -> None:
    """Those that are open go on, and there is room again once one has left."""
    async with (
        served(talk, tmp_path / "store.sqlite3", connections=2) as here,
        wire(here.port) as one,
        wire(here.port) as two,
    ):
        async with wire(here.port, hello=False) as three:
            assert b"2 connections are open" in await three.ended()
        await one.start("ask")
        two.drop()
        await until(lambda: here.channel.connections == 1)
        async with wire(here.port) as three:
            await three.start("ask")


async def test_a_peer_that_does_not_read_holds_up_nobody(here: Served) -> None:
    """Its replies wait in its own socket, and are not made before there is room."""
    async with wire(here.port) as deaf, wire(here.port) as peer:
        deaf.writer.transport.pause_reading()
        frame = b'{"id":1,"method":"tasks.list"}\n'
        for _ in range(200):
            deaf.send(frame * 500)
        for _ in range(20):
            assert (await peer.call("tasks.list"))["tasks"]
        assert here.channel.connections == 2
        deaf.drop()
        await until(lambda: here.channel.connections == 1)


async def test_a_flood_of_small_frames_and_blank_lines_holds_up_nobody(here: Served) -> None:
    """Others are answered between them."""
    async with wire(here.port) as flood, wire(here.port) as peer:
        flood.send(b"\n" * 2_000_000 + b'{"method":"tasks.list"}\n' * 20_000)
        with anyio.fail_after(PATIENCE_S):
            for _ in range(20):
                assert (await peer.call("hello", session_id=peer.session))["bindings"]


async def test_a_frame_without_an_end_is_refused_and_costs_nothing(here: Served) -> None:
    """64 MB without a newline: the error arrives, the connection ends, and others go on."""
    async with wire(here.port) as long, wire(here.port) as peer:
        await peer.start("ask")
        chunk = b"x" * 2**20
        for _ in range(64):
            long.send(chunk)
            await long.writer.drain()
        long.writer.write_eof()
        lines = (await long.ended()).splitlines()
        assert json.loads(lines[-1])["error"]["code"] == -32600
        assert (await peer.grade("tea"))["score"] == 1.0

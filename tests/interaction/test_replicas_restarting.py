"""Replicas that stop, one after the other, behind nginx: every call has its answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import httpx2
import pytest
from flock import ANN, Flock, One, ask, flock, in_thread, nginx
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from peers import BOARD, LEGACY, MODERN, Gate, Peer, RawHttp, connected
from postgresql import Cluster
from waiting import PATIENCE_S, let_pass, until

from hud_mcp_client import connect

pytestmark = pytest.mark.anyio

TAG = "hud-mcp/replica"
NOTES = ("tea", "milk")


def note(text: str) -> dict[str, Any]:
    """An action that writes one."""
    return {"type": "type", "text": text, "enter_after": True}


@asynccontextmanager
async def official(url: str, era: str) -> AsyncIterator[Peer]:
    """MCP's own client."""
    headers = {"authorization": f"Bearer {ANN}"}
    timeout = httpx2.Timeout(PATIENCE_S, read=None)
    async with httpx2.AsyncClient(headers=headers, timeout=timeout) as web:
        client = Client(streamable_http_client(url, http_client=web), mode=era)
        async with connected(client):
            yield Peer(client, Path())


async def converse(url: str, era: str, until_set: anyio.Event) -> tuple[int, set[str]]:
    """Play one task after the other; how many, and which replicas answered."""
    played, tags = 0, set[str]()
    async with official(url, era) as peer:
        while not until_set.is_set() or not played:
            begun = await peer.ok("start_task", template="collect", arguments={})
            session = begun.structured["session"]
            for count, text in enumerate(NOTES, 1):
                step = await peer.ok("step", session=session, actions=[note(text)])
                assert step.step["steps"] == count
                tags.add(step.meta[TAG])
                await anyio.sleep(0.1)
            done = await peer.ok("response", session=session, answer="done")
            assert done.structured["reward"] == 1.0
            played += 1
    return played, tags


async def state(one: One, path: str) -> tuple[int, str]:
    """What a replica says of itself to whoever asks."""
    async with httpx.AsyncClient(timeout=PATIENCE_S) as web:
        answer = await web.get(one.url.replace("/mcp", f"/{path}"))
    return answer.status_code, answer.text


async def restart_in_turn(replicas: Flock, rounds: int, pause_s: float) -> None:
    """Stop each replica as its operator would, and start it again."""
    for _ in range(rounds):
        for one in replicas.all:
            await let_pass(pause_s)
            assert await in_thread(one.stop) == 143
            await in_thread(one.start)


async def play_through_restarts(
    folder: Path, store: str, *, rounds: int, pause_s: float, each: int
) -> None:
    """Clients of both eras play on while every replica is restarted."""
    played = list[tuple[int, set[str]]]()
    with (
        flock(folder, store, (BOARD,), "--drain-s", "20", count=3) as replicas,
        nginx(folder, replicas) as url,
    ):
        over = anyio.Event()

        async def play(era: str) -> None:
            played.append(await converse(url, era, over))

        async with anyio.create_task_group() as group:
            for era in (MODERN, LEGACY) * each:
                group.start_soon(play, era)
            await restart_in_turn(replicas, rounds, pause_s)
            over.set()
        logs = "".join(one.log.read_text(errors="replace") for one in replicas.all)
    assert len(played) == 2 * each
    assert set().union(*(tags for _, tags in played)) == {"r1", "r2", "r3"}
    assert "Traceback" not in logs


@pytest.mark.long
async def test_every_call_is_answered_while_each_replica_is_restarted(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Two clients of each era, three replicas, nginx: no call fails, each task is graded 1."""
    await play_through_restarts(tmp_path, cluster.new_schema(), rounds=1, pause_s=1.0, each=2)


@pytest.mark.stress
async def test_every_call_is_answered_through_many_restarts(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The same with eight clients and fifteen restarts, one every few seconds."""
    await play_through_restarts(tmp_path, cluster.new_schema(), rounds=5, pause_s=2.0, each=4)


@pytest.mark.long
async def test_a_session_that_cannot_move_is_waited_for(cluster: Cluster, tmp_path: Path) -> None:
    """A call that is under way has its answer of a replica that is not ready any more."""
    with flock(tmp_path, cluster.new_schema(), (BOARD,), "--drain-s", "60") as replicas:
        begun = await ask(replicas[0], MODERN, "start_task", template="collect", arguments={})
        session = begun["structuredContent"]["session"]
        gate = Gate(tmp_path, "held")
        told: list[Any] = []

        async def step() -> None:
            asked = {"session": session, "actions": [note("tea"), gate.hold(), note("milk")]}
            told.append(await ask(replicas[1], MODERN, "step", **asked))

        async with anyio.create_task_group() as group:
            group.start_soon(step)
            await gate.arrived()
            replicas[0].tell_to_stop()
            await until(lambda: "takes no new sessions" in replicas[0].log.read_text())
            assert [await state(replicas[0], path) for path in ("readyz", "healthz")] == [
                (503, "draining\n"),
                (200, "ok\n"),
            ]
            assert await state(replicas[1], "readyz") == (200, "ready\n")
            new = await ask(replicas[0], MODERN, "start_task", template="collect", arguments={})
            assert new["_meta"][TAG] == "r2"
            assert not told
            gate.open()
        assert told[0]["_meta"]["hud-mcp/step"]["performed"] == 3
        done = await ask(replicas[1], MODERN, "response", session=session, answer="done")
        assert done["structuredContent"]["reward"] == 1.0
        assert done["_meta"][TAG] == "r2"


@pytest.mark.long
async def test_our_client_returns_the_tag_and_nginx_finds_the_replica(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Each call of a session has its replica's tag in a header; a stale tag is put right."""
    with (
        flock(tmp_path, cluster.new_schema(), (BOARD,), count=3) as replicas,
        nginx(tmp_path, replicas) as url,
    ):
        async with connect(url, token=ANN) as server:
            session = await server.start(template="collect", arguments={})
            tags = {(await session.tool("count_notes")).meta[TAG] for _ in range(6)}
            assert len(tags) == 1
            owner = next(one for one in replicas.all if one.tag in tags)
            sent = (tmp_path / "access.log").read_text().splitlines()
            by_tag = {line.partition(" ")[2] for line in sent if line.startswith(owner.tag)}
            assert by_tag == {f"127.0.0.1:{owner.port}"}
            await in_thread(owner.stop)
            session = await server.resume(session.id)
            await session.step([note("tea"), note("milk")])
            moved = {(await session.tool("count_notes")).meta[TAG] for _ in range(3)}
            assert len(moved) == 1
            assert not moved & tags
            assert await session.answer("done") == 1.0


@pytest.mark.long
async def test_a_session_that_cannot_move_in_time_is_lost_with_the_reason(
    cluster: Cluster, tmp_path: Path
) -> None:
    """It is served for as long as `--drain-s` says; then any replica tells why it ended."""
    with flock(tmp_path, cluster.new_schema(), (BOARD,), "--drain-s", "20") as replicas:
        begun = await ask(replicas[0], MODERN, "start_task", template="collect", arguments={})
        session = begun["structuredContent"]["session"]
        sent = await ask(replicas[1], MODERN, "send_note", session=session)
        assert not sent.get("isError"), sent  # it must never be done twice
        replicas[0].tell_to_stop()
        await until(lambda: "takes no new sessions" in replicas[0].log.read_text())
        still = await ask(replicas[1], MODERN, "count_notes", session=session)
        assert still["_meta"][TAG] == "r1"
        assert await in_thread(replicas[0].wait) == 143
        told = await ask(replicas[1], MODERN, "task_status", session=session)
        assert told["structuredContent"]["receipt"]["outcome"] == "lost"
        assert "The server was stopped" in str(told)


@pytest.mark.long
async def test_a_call_whose_replica_is_killed_is_told_so_or_repeated(
    cluster: Cluster, tmp_path: Path
) -> None:
    """What could be done twice is not repeated; what names the steps it has seen is."""
    with flock(tmp_path, cluster.new_schema(), (BOARD,)) as replicas:
        for asked in ({}, {"after_step": 0}):
            begun = await ask(replicas[0], MODERN, "start_task", template="collect", arguments={})
            session = begun["structuredContent"]["session"]
            gate = Gate(tmp_path, f"held{len(asked)}")
            told: list[Any] = []

            async def step(session: str, gate: Gate, asked: dict[str, int]) -> None:
                headers = {"authorization": f"Bearer {ANN}"}
                actions = [note("tea"), gate.hold()]
                async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_S) as web:
                    raw = RawHttp(web, replicas[1].url, MODERN)
                    arguments = {"session": session, "actions": actions, **asked}
                    params = {"name": "step", "arguments": arguments}
                    told.append(await raw.request("tools/call", params))  # noqa: B023  # at once

            async with anyio.create_task_group() as group:
                group.start_soon(step, session, gate, asked)
                await gate.arrived()
                replicas[0].kill()
                gate.open()
            if asked:
                assert told[0]["result"]["_meta"]["hud-mcp/step"]["performed"] == 2
            else:
                assert "may have done the call" in told[0]["error"]["message"]
            status = await ask(replicas[1], MODERN, "task_status", session=session)
            assert status["structuredContent"]["steps"] == len(asked)
            await in_thread(replicas[0].start)

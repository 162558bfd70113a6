"""Calls that meet a session which another server has taken over."""

import asyncio
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from crossing import (
    ACCEPTING,
    LOOK,
    STOLEN,
    PadSpec,
    a_while,
    begin,
    find,
    pads,
    refusing,
    serving,
    tell,
    write,
)
from slate import Moments
from waiting import PATIENCE_S, until

from hud_mcp.errors import (
    ActionFailed,
    SessionEnded,
)
from hud_mcp.record.values import Receipt
from hud_mcp.session.session import Session
from hud_mcp.session.starting import SharedWork
from hud_mcp.store import Store
from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio


async def take_over(store: Path, session: Session) -> Store:
    """What another server does that takes the first one for dead, since it is silent."""
    other = Store(store, lease_s=0.01)
    await until(lambda: other.claim_session(session.trajectory_id))
    return other


async def test_a_session_that_is_taken_over_in_a_call_that_fails_is_let_go_of(
    tmp_path: Path,
) -> None:
    """Whoever asks for it is not made to wait for ever, and its world here is closed."""
    store, spec = tmp_path / "s.sqlite3", PadSpec(Moments())
    env = pads(spec)
    async with serving(store, env) as sessions:
        session = await begin(sessions)
        other = await take_over(store, session)
        try:
            with pytest.raises(ActionFailed):
                await session.call_tool(env.tools["fail"], {}, LOOK)
            await session.closed()
            assert spec.closed == 1
        finally:
            await other.close()
        assert await write(await find(sessions, session.id), "milk") == "tea milk"


async def test_a_session_that_is_taken_over_while_it_is_revived_is_not_graded_twice(
    tmp_path: Path,
) -> None:
    """Its answer is the other server's to grade: here the template never gets it."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    spec = PadSpec(moments)
    async with serving(store, pads(spec)) as sessions:
        session = await begin(sessions)
        session.direct_world().fall()  # type: ignore[attr-defined]
        moments.hold("open")

        async def answer() -> None:
            with pytest.raises(SessionEnded):
                await session.respond("done")

        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            await moments.arrived.wait()
            other = await take_over(store, session)
            moments.go_on.set()
        assert (session.receipt, spec.graded) == (None, [])
        await other.close()


async def test_a_grade_that_stands_is_the_one_that_is_told(tmp_path: Path) -> None:
    """Where another server has ended the session meanwhile, its receipt is every server's."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    async with serving(store, pads(PadSpec(moments))) as sessions:
        earlier = await begin(sessions)
        given = await earlier.respond("done")
        assert given is not None
        session = await begin(sessions)
        moments.hold("grade")
        told: list[Any] = []

        async def answer() -> None:
            told.append(await session.respond("done"))

        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            await moments.arrived.wait()
            other = await take_over(store, session)
            update = {"trajectory": session.trajectory_id, "reward": 0.25}
            stands = await other.end_session(session.trajectory_id, given.model_copy(update=update))
            moments.go_on.set()
        assert told == [stands]
        assert session.receipt == stands
        await other.close()


@pytest.mark.long
async def test_an_end_that_another_server_owns_stops_nothing_else(tmp_path: Path) -> None:
    """A session whose end could not be written was taken over: the others expire as they would."""
    store = tmp_path / "s.sqlite3"
    async with serving(store, pads(PadSpec(Moments())), idle_s=4) as sessions:
        taken, idle = await begin(sessions), await begin(sessions)
        tell(store, refusing("UPDATE OF ended_at ON sessions", when="NEW.ended_at IS NOT NULL"))
        await taken.cancel()
        assert taken.journal.has_pending_end
        tell(store, ACCEPTING, f"{STOLEN} WHERE id = '{taken.trajectory_id}'")
        await idle.over()
        assert idle.receipt is not None
        assert idle.receipt.outcome is Outcome.EXPIRED
        assert not taken.journal.has_pending_end


@pytest.mark.long
async def test_one_damaged_record_keeps_no_other_answer_from_its_grade(tmp_path: Path) -> None:
    """A server that goes on with what others left is not stopped by the first that fails."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = pads(PadSpec(moments))
    async with serving(store, env) as first:
        damaged, whole = await begin(first), await begin(first)
        moments.hold("grade")

        async def answer(session: Session) -> None:
            with pytest.raises(SessionEnded):
                await session.respond("done")

        async with anyio.create_task_group() as group:
            group.start_soon(answer, damaged)
            group.start_soon(answer, whole)
            while "open" in (damaged.state, whole.state):
                await anyio.lowlevel.checkpoint()
            await first.close()
    moments.hold("nowhere")
    tell(store, f"UPDATE steps SET row = '[]' WHERE session_id = '{damaged.trajectory_id}'")
    async with serving(store, env) as second:
        second.begin()

        async def found() -> Receipt | None:  # a server looks by itself, now and then
            return (await second.store.load_trajectory(whole.trajectory_id)).receipt

        receipt = await until(found)
        assert (receipt.outcome, receipt.content) == (Outcome.GRADED, "tea; done")


async def test_work_that_ends_as_its_last_caller_leaves_is_forgotten_without_a_fault() -> None:
    """In the very same turn too; and whoever comes then begins it anew."""
    faults: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: faults.append(context))
    turns, gate = SharedWork[int](), asyncio.Event()

    async def work() -> int:
        await gate.wait()
        return 1

    try:
        with anyio.fail_after(PATIENCE_S):
            for turn in range(6):
                gate.clear()
                caller = loop.create_task(turns.result_of("key", work))
                await anyio.lowlevel.checkpoint()
                await anyio.lowlevel.checkpoint()
                gate.set()
                for _ in range(turn):
                    await anyio.lowlevel.checkpoint()
                caller.cancel()
                await asyncio.wait({caller})
                await a_while()
                assert not turns.is_under_way("key")
                assert await turns.result_of("key", work) == 1
    finally:
        loop.set_exception_handler(None)
    assert faults == []

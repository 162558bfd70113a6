"""Steps that nobody waits for are written in order, soon, and never without bound."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from slate import Moments, registry, slates
from waiting import PATIENCE_S, until

from hud_mcp.action import TypeAction
from hud_mcp.environment import Environment
from hud_mcp.errors import HudMcpError, InvalidEnvironment, StoreFailed
from hud_mcp.grade import Outcome
from hud_mcp.observation import Look
from hud_mcp.record.trajectory import TrajectoryStep
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.writes import MOST_WAITING
from hud_mcp.store import Store
from hud_mcp.task import Task

pytestmark = pytest.mark.anyio

ME = Caller()
TEXT = Look(image=None)


def task() -> Task:
    """One that asks to write."""
    return Task(env="slates", template="fill")


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Hold the store's write lock, as another process would."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.rollback()
        other.close()


async def start(sessions: Sessions) -> Session:
    """A session whose first step is written: the ones after it may wait."""
    session = await sessions.start(task(), caller=ME)
    await write(session, "tea")
    return session


async def write(session: Session, *words: str) -> None:
    """Write words, one a step."""
    for word in words:
        await session.step([TypeAction(type="type", text=word)], TEXT)


async def write_on(session: Session) -> None:
    """Write until something is wrong."""
    while True:
        await write(session, "more")


async def recorded(sessions: Sessions, session: Session, count: int) -> list[TrajectoryStep]:
    """What is written, once it is so much."""

    async def steps() -> list[TrajectoryStep] | None:
        found = await sessions.store.load_steps(session.trajectory_id)
        return found if len(found) >= count else None

    return await until(steps)


async def test_steps_are_written_by_themselves_in_order(tmp_path: Path) -> None:
    """Of several sessions at once, without another call."""
    words = [f"word-{i}" for i in range(30)]
    with anyio.fail_after(PATIENCE_S):
        async with registry(tmp_path / "s.sqlite3", slates(Moments()), record="batched") as all_of:
            started = [await start(all_of) for _ in range(8)]
            async with anyio.create_task_group() as group:
                for session in started:
                    group.start_soon(write, session, *words)
            for session in started:
                steps = await recorded(all_of, session, 31)
                assert [step.index for step in steps] == list(range(31))
                assert [step.actions[0]["text"] for step in steps] == ["tea", *words]


async def test_a_store_that_is_held_up_bounds_what_waits_and_loses_nothing(tmp_path: Path) -> None:
    """The call after 256 unwritten steps waits; once the store is free, all are there in order."""
    path = tmp_path / "s.sqlite3"
    with anyio.fail_after(PATIENCE_S):
        async with registry(path, slates(Moments()), record="batched") as sessions:
            session = await start(sessions)
            done = 0

            async def go_on() -> None:
                nonlocal done
                for _ in range(2 * MOST_WAITING):
                    await write(session, "milk")
                    done += 1

            async with anyio.create_task_group() as group:
                with write_lock(path):
                    group.start_soon(go_on)
                    await anyio.wait_all_tasks_blocked()
                    assert MOST_WAITING <= done < 2 * MOST_WAITING
            steps = await recorded(sessions, session, 2 * MOST_WAITING + 1)
            assert [step.index for step in steps] == list(range(2 * MOST_WAITING + 1))


async def test_a_write_that_failed_is_told_by_the_next_call_and_made_good(tmp_path: Path) -> None:
    """Nothing that was acknowledged is dropped, and no answer is taken without it."""
    path = tmp_path / "s.sqlite3"
    with anyio.fail_after(PATIENCE_S):
        place = f"sqlite:///{path}?timeout=0.2"
        sessions = Sessions([slates(Moments())], store=Store(place), record="batched")
        session = await start(sessions)
        with write_lock(path):
            await write(session, "milk")
            with pytest.raises(StoreFailed, match="do not repeat its actions"):
                await write_on(session)
            with pytest.raises(StoreFailed, match="The answer was not submitted"):
                await session.respond("done")
            assert session.state == "open"
        receipt = await session.respond("done")
        assert receipt is not None
        assert receipt.reward == 1
        record = await sessions.store.load_trajectory(session.trajectory_id)
        assert [step.index for step in record.steps] == list(range(session.steps))
        assert [s.actions[0]["text"] for s in record.steps][:2] == ["tea", "milk"]
        await sessions.close()


@pytest.mark.long
async def test_a_write_that_failed_is_tried_again_without_a_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that was full for a moment costs a batch nothing."""
    path = tmp_path / "s.sqlite3"
    with anyio.fail_after(PATIENCE_S):
        place = f"sqlite:///{path}?timeout=0.1"
        sessions = Sessions([slates(Moments())], store=Store(place), record="batched")
        session = await start(sessions)
        with write_lock(path):
            await write(session, "milk")
            await until(lambda: "are not written yet" in caplog.text)
        assert len(await recorded(sessions, session, 2)) == 2
        await sessions.close()


async def test_a_session_that_another_server_took_is_told_so_and_writes_nothing(
    tmp_path: Path,
) -> None:
    """Steps of a server that owns it no more are not in its record."""
    path = tmp_path / "s.sqlite3"
    with anyio.fail_after(PATIENCE_S):
        async with registry(path, slates(Moments()), record="batched") as sessions:
            session = await start(sessions)
            with sqlite3.connect(path) as other:
                other.execute("UPDATE sessions SET owner = 'srv-other'")
            other.close()
            with pytest.raises(HudMcpError, match="does not run this session any more"):
                await write_on(session)
            steps = await sessions.store.load_steps(session.trajectory_id)
            assert [step.index for step in steps] == [0]


async def test_how_a_session_is_recorded_is_the_caller_s_then_the_server_s_then_the_author_s(
    tmp_path: Path,
) -> None:
    """The most special one that says something, else each step is durable."""
    env = slates(Moments())
    told: list[str] = []
    with anyio.fail_after(PATIENCE_S):
        for i, (author, server, caller) in enumerate(
            [
                (None, None, None),
                ("batched", None, None),
                ("batched", "durable", None),
                ("batched", "durable", "batched"),
            ]
        ):
            env.record = author
            async with registry(tmp_path / f"{i}.sqlite3", env, record=server) as sessions:
                session = await sessions.start(task(), caller=ME, record=caller)
                told.append((await sessions.store.load_trajectory(session.trajectory_id)).record)
    assert told == ["durable", "batched", "durable", "batched"]
    with pytest.raises(InvalidEnvironment, match="choose one of durable, batched"):
        Environment("odd", record="sometimes")  # type: ignore[arg-type]


async def test_a_receipt_says_that_steps_were_batched(tmp_path: Path) -> None:
    """One without steps has nothing to say of it, and a durable one neither."""
    notes: list[str] = []
    with anyio.fail_after(PATIENCE_S):
        for mode, words in (("batched", ("tea",)), ("batched", ()), ("durable", ("tea",))):
            async with registry(tmp_path / "s.sqlite3", slates(Moments()), record=mode) as sessions:
                session = await sessions.start(task(), caller=ME)
                await write(session, *words)
                await session.cancel()
                assert session.receipt is not None
                assert session.receipt.outcome is Outcome.CANCELLED
                notes.append(" ".join(session.receipt.notes))
    assert "recorded in batches" in notes[0]
    assert notes[1:] == ["", ""]

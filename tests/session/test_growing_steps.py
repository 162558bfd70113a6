"""Actions that come one by one, and soon after each other, are one step of a batched record."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from open_sessions import opened
from waiting import PATIENCE_S, until

from hud_mcp.action import CustomAction
from hud_mcp.errors import SessionEnded
from hud_mcp.loading.source import load_environments
from hud_mcp.observation import Look
from hud_mcp.session.caller import Caller
from hud_mcp.session.limits import Limits
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.stepped import Taken
from hud_mcp.store import Store
from hud_mcp.task import RecordMode, Task

pytestmark = pytest.mark.anyio

ME = Caller()
VALUES = Look(image=None, text=False, values=True)
SOURCE = "gym:Taxi-v4?screen=0"
MOST = 5


def drive(way: object = 0) -> CustomAction:
    """One action of the taxi's."""
    return CustomAction(action="step", args={"action": way})


async def start(sessions: Sessions, store: Store) -> tuple[Session, Store]:
    """A session whose first step is written: the ones after it may wait."""
    task = Task(id="t", env="Taxi-v4", template="highest_return", args={})
    session = await sessions.start(task, caller=ME)
    await session.step([], Look(image=None))
    return session, store


def served(store: Store, record: RecordMode = "batched") -> Sessions:
    """What a server of taxis has."""
    limits = Limits(actions_per_step=MOST)
    return Sessions(load_environments([SOURCE]), store=store, limits=limits, record=record)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store of its own."""
    made = Store(tmp_path / "runs.sqlite3")
    yield made
    await made.close()


async def actions_of(store: Store, session: Session) -> list[int]:
    """How many actions each step of the record has, once it has all of them."""

    async def whole() -> list[int] | None:
        record = await store.load_trajectory(session.trajectory_id)
        found = [len(step.actions) for step in record.steps if step.kind != "response"]
        return found if len(record.steps) == session.steps else None

    return await until(whole)


async def test_actions_of_one_moment_are_one_step(store: Store) -> None:
    """Each has its own reward and observation; the record has few steps of them all."""
    async with opened(served(store)) as sessions:
        session, _ = await start(sessions, store)
        taken = [await session.take(drive(i % 2), VALUES) for i in range(40)]
        alone = [each for each in taken if isinstance(each, Taken)]
        assert alone, "a machine may be too slow for some, and not for all"
        assert {each.effect.reward for each in alone} == {-1}
        found = await actions_of(store, session)
        assert sum(found) == 40
        assert len(found) < 40
        record = await store.load_trajectory(session.trajectory_id)
        for step in record.steps[1:]:
            assert step.performed == len(step.actions)
            assert step.reward == -step.performed


async def test_nothing_is_added_to_a_step_that_was_seen(store: Store) -> None:
    """A look comes after what was done before it, and what is done next is a step of its own."""
    async with opened(served(store)) as sessions:
        session, _ = await start(sessions, store)
        await session.take(drive(), VALUES)
        await session.step([], Look(image=None))
        await session.take(drive(), VALUES)
        assert await actions_of(store, session) == [0, 1, 0, 1]


async def test_a_step_grows_no_further_than_a_call_may(store: Store) -> None:
    """The limit of actions in a step is that of the record's steps too."""
    async with opened(served(store)) as sessions:
        session, _ = await start(sessions, store)
        for _ in range(2 * MOST + 1):
            await session.take(drive(), VALUES)
        found = await actions_of(store, session)
        assert sum(found) == 2 * MOST + 1
        assert max(found) <= MOST


async def test_a_refused_action_is_recorded_as_a_call_of_its_own(store: Store) -> None:
    """No step is empty, and none has an action that was not done."""
    async with opened(served(store)) as sessions:
        session, _ = await start(sessions, store)
        for way in (17, 0, 18, 1):
            await session.take(drive(way), VALUES)
        await actions_of(store, session)
        record = await store.load_trajectory(session.trajectory_id)
        assert [(step.performed, bool(step.error)) for step in record.steps[1:]] == [
            (0, True),
            (1, False),
            (0, True),
            (1, False),
        ]


async def test_where_each_step_is_durable_each_action_is_one(store: Store) -> None:
    """A record that is written before each reply has a step for each."""
    async with opened(served(store, "durable")) as sessions:
        session, _ = await start(sessions, store)
        for _ in range(3):
            await session.take(drive(), VALUES)
        assert await actions_of(store, session) == [0, 1, 1, 1]


async def test_nothing_is_done_after_the_end(store: Store) -> None:
    """An action of a session that has ended is refused, and nothing more is recorded."""
    async with opened(served(store)) as sessions:
        session, _ = await start(sessions, store)
        await session.take(drive(), VALUES)
        await session.respond("done")
        count = session.steps
        with anyio.fail_after(PATIENCE_S), pytest.raises(SessionEnded):
            await session.take(drive(), VALUES)
        record = await store.load_trajectory(session.trajectory_id)
        assert len(record.steps) == count

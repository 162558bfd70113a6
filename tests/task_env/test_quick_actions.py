"""Quick actions that come one by one are one step of the record, where it is written late."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from open_sessions import opened
from waiting import PATIENCE_S

from hud_mcp.errors import SessionEnded
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.gymnasium import thread
from hud_mcp.plugins.gymnasium.task_env.worker import Performed, QuickActions
from hud_mcp.record.values import TrajectoryStep
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.action import CustomAction
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio

ME = Caller()
VALUES = Look(image=None, text=False, values=True)
SOURCE = "gym:Taxi-v4?screen=0"
MOST = 5


def drive(way: object = 0) -> CustomAction:
    """One action of the taxi's."""
    return CustomAction(action="step", args={"action": way})


@asynccontextmanager
async def served(place: Path, *, most: int = 500) -> AsyncGenerator[Sessions]:
    """What a server of taxis has."""
    limits = Limits(actions_per_step=most)
    sessions = Sessions(
        load_environments([SOURCE]), store=Store(place, writes_late=True), limits=limits
    )
    async with opened(sessions):
        yield sessions


@pytest.fixture(autouse=True)
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step is short to its world, however busy the machine is."""
    for bound in ("_AT_ONCE_S", "_LONG_S"):
        monkeypatch.setattr(thread, bound, PATIENCE_S)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the record is."""
    return tmp_path / "runs.sqlite3"


async def start(sessions: Sessions) -> Session:
    """A session."""
    task = Task(id="t", env="Taxi-v4", template="highest_return", args={}, seed=3)
    return await sessions.start(task, caller=ME)


async def drive_many(quick: QuickActions, count: int) -> None:
    """Perform some actions, each of them quick."""
    for i in range(count):
        performed = await quick.perform(drive(i % 2), VALUES)
        assert isinstance(performed, Performed)
        assert performed.effect.reward == -1


async def steps_of(sessions: Sessions, session: Session) -> list[TrajectoryStep]:
    """What the record has."""
    return list((await sessions.store.load_trajectory(session.trajectory_id)).steps)


async def test_what_is_done_until_it_is_recorded_is_one_step(place: Path) -> None:
    """With the sum of its rewards; then another server goes on after all of it."""
    async with served(place) as sessions:
        session = await start(sessions)
        quick = QuickActions(session)
        await drive_many(quick, 40)
        assert await steps_of(sessions, session) == []
        await quick.record()
        (step,) = await steps_of(sessions, session)
        assert (step.kind, step.performed, len(step.actions), step.reward) == ("step", 40, 40, -40)
        await drive_many(quick, 3)
        quick.end()
        receipt = await session.respond("done")
        assert receipt is not None
        assert receipt.outcome == "graded"
        assert [len(each.actions) for each in await steps_of(sessions, session)] == [40, 3, 1]


async def test_a_session_is_lost_until_it_is_answered(place: Path) -> None:
    """Where its server dies, whatever it has recorded by then; an answer is graded."""
    async with served(place) as sessions:
        both = [await start(sessions) for _ in range(2)]
        for session in both:
            quick = QuickActions(session)
            await drive_many(quick, 2)
            await quick.record()
        await both[1].respond("done")
        found = [(await sessions.store.load_session(each.trajectory_id)).unflushed for each in both]
        assert found == [True, False]


async def test_what_is_called_then_comes_after_them(place: Path) -> None:
    """A look and an answer have the numbers after theirs, and the answer is graded."""
    async with served(place) as sessions:
        session = await start(sessions)
        quick = QuickActions(session)
        await drive_many(quick, 2)
        quick.end()
        await session.step([], Look(image=None))
        await drive_many(quick, 3)
        quick.end()
        receipt = await session.respond("done")
        assert receipt is not None
        assert receipt.outcome == "graded"
        steps = await steps_of(sessions, session)
        found = [(step.index, step.kind, len(step.actions)) for step in steps]
        assert found == [(0, "step", 2), (1, "step", 0), (2, "step", 3), (3, "response", 1)]


async def test_a_step_has_no_more_of_them_than_a_call_may(place: Path) -> None:
    """The limit of actions in a step is that of these steps too."""
    async with served(place, most=MOST) as sessions:
        session = await start(sessions)
        quick = QuickActions(session)
        for _ in range(2 * MOST + 1):
            await quick.perform(drive(), VALUES)
        await quick.record()
        found = [len(step.actions) for step in await steps_of(sessions, session)]
        assert (found[0], max(found), sum(found)) == (MOST, MOST, 2 * MOST + 1)


async def test_a_refused_action_is_a_step_of_its_own(place: Path) -> None:
    """No step is empty, and none has an action that was not done."""
    async with served(place) as sessions:
        session = await start(sessions)
        quick = QuickActions(session)
        for way in (17, 0, 18, 1, 19):
            await quick.perform(drive(way), VALUES)
        await quick.record()
        steps = await steps_of(sessions, session)
        found = [(step.performed, bool(step.error)) for step in steps]
        assert found == [(0, True), (1, False), (0, True), (1, False), (0, True)]


async def test_nothing_is_done_after_the_end(place: Path) -> None:
    """An action of a session that has ended is refused, and nothing more is recorded."""
    async with served(place) as sessions:
        session = await start(sessions)
        quick = QuickActions(session)
        await drive_many(quick, 1)
        quick.end()
        await session.respond("done")
        with anyio.fail_after(PATIENCE_S), pytest.raises(SessionEnded):
            await quick.perform(drive(), VALUES)
        quick.end()
        assert len(await steps_of(sessions, session)) == session.steps == 2

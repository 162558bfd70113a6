"""Steps that are short and pure run on the event loop, and behave as any others."""

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from open_sessions import opened
from waiting import PATIENCE_S

from hud_mcp import Environment, Gymnasium
from hud_mcp.errors import WorldDied
from hud_mcp.session.caller import Caller
from hud_mcp.session.log import LineStream
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.store import Store
from hud_mcp.values.action import CustomAction
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio

ME = Caller()
TEXT = Look(image=None)
LONG_S = 0.1


class Counter(gymnasium.Env[np.ndarray, int]):
    """An environment that says on which thread it steps, and can wait, break and take long."""

    observation_space = spaces.Box(0, 1e9, (1,), np.float32)
    action_space = spaces.Discrete(4)
    metadata = {"render_modes": []}  # noqa: RUF012  # as Gymnasium declares it
    entered = threading.Event()
    gate = threading.Event()

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.threads: list[str] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin at 0."""
        super().reset(seed=seed)
        self.threads.clear()
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Count; 1 waits at the gate, 2 breaks, and 3 computes for long."""
        began_s = time.perf_counter()
        self.threads.append(threading.current_thread().name)
        print(f"took action {action}")
        if action == 1:
            self.entered.set()
            self.gate.wait(PATIENCE_S)
        if action == 2:
            raise ValueError("the engine fell off")
        while action == 3 and time.perf_counter() - began_s < LONG_S:
            pass
        return np.array([len(self.threads)], np.float32), 0.5, False, False, {}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    Counter.entered.clear()
    Counter.gate.clear()
    gymnasium.register("test/Counter-v0", entry_point=Counter)
    yield
    del gymnasium.registry["test/Counter-v0"]


def stepping(world: Gymnasium) -> Environment:
    """An environment whose one task is to step."""
    env = Environment("stepping", world=world, reward="per_step")

    @env.template()
    async def take() -> Any:
        yield "Take steps."
        yield 1.0

    return env


@asynccontextmanager
async def serving(
    folder: Path, world: Gymnasium, store: type[Store] = Store
) -> AsyncIterator[Sessions]:
    """What a server has, until it stops."""
    sessions = Sessions([stepping(world)], store=store(folder / "store.sqlite3"))
    async with opened(sessions):
        yield sessions


async def begin(sessions: Sessions) -> Session:
    """A session whose world begins as every other one's."""
    task = sessions.catalogue.mint("take", {}).model_copy(update={"seed": 3})
    return await sessions.start(task, caller=ME)


async def take(session: Session, action: int) -> Any:
    """Take a step."""
    return await session.step([CustomAction(action="step", args={"action": action})], TEXT)


def threads(session: Session) -> list[str]:
    """Where its steps were taken."""
    world: Any = session.direct_world()
    return world._env.unwrapped.threads  # asking it by its thread would change it


HERE = threading.main_thread().name
OWN = "gymnasium test/Counter-v0"


async def recorded(folder: Path, *, quick: bool) -> Any:
    """What a record says of some steps, but for its times and ids."""
    async with serving(folder, Gymnasium("CartPole-v1", screen=False, quick=quick)) as sessions:
        session = await begin(sessions)
        shown = [(await take(session, action)).result for action in (0, 1, 1, 7, 0)]
        whole = CustomAction(action="step", args={"actions": [0, 1] * 20})
        shown.append((await session.step([whole, whole], TEXT)).result)
        await session.respond("done")
        record = await sessions.store.load_trajectory(session.trajectory_id)
        assert record.receipt is not None
        steps = [step.model_dump(exclude={"started_at", "ended_at"}) for step in record.steps]
        return shown, steps, record.receipt.reward


async def test_a_quick_step_is_shown_and_recorded_as_one_on_a_thread(tmp_path: Path) -> None:
    """Observations, rewards, refusals and ends are the same, one a call and many."""
    quick = await recorded(tmp_path / "quick", quick=True)
    assert quick == await recorded(tmp_path / "thread", quick=False)
    assert len(quick[1]) == 7


async def test_only_what_is_declared_to_be_short_steps_on_the_loop(tmp_path: Path) -> None:
    """Gymnasium's small environments are; any other says so itself."""
    assert Gymnasium("CartPole-v1", screen=False).is_quick
    assert Gymnasium("CARLPendulum").is_quick
    assert Gymnasium("Taxi-v4").is_quick
    assert not Gymnasium("test/Counter-v0").is_quick
    assert not Gymnasium("CartPole-v1", quick=False).is_quick
    for quick, where in ((True, HERE), (False, OWN)):
        async with serving(tmp_path / where, Gymnasium("test/Counter-v0", quick=quick)) as sessions:
            session = await begin(sessions)
            await take(session, 0)
            assert threads(session) == [where]


async def test_a_quick_step_leaves_its_lines_in_its_own_log(tmp_path: Path) -> None:
    """It runs in its caller's task, and in the context of its session."""
    async with serving(tmp_path, Gymnasium("test/Counter-v0", quick=True)) as sessions:
        session = await begin(sessions)
        with redirect_stdout(LineStream(sys.stderr)):
            await take(session, 0)
        await session.respond("done")
        await session.closed()
        record = await sessions.store.load_trajectory(session.trajectory_id)
        assert "took action 0" in (record.logs or "")


async def test_a_step_that_turns_out_long_goes_to_the_thread_for_good(tmp_path: Path) -> None:
    """One that was declared to be short holds others up once."""
    async with serving(tmp_path, Gymnasium("test/Counter-v0", quick=True)) as sessions:
        session = await begin(sessions)
        for action in (0, 3, 0, 3, *[0] * 40):
            await take(session, action)
        assert threads(session) == [HERE, HERE, *[OWN] * 42]


async def test_many_steps_of_one_call_go_to_the_thread(tmp_path: Path) -> None:
    """What is short a hundred thousand times is long."""
    async with serving(tmp_path, Gymnasium("test/Counter-v0", quick=True)) as sessions:
        session = await begin(sessions)
        await session.step([CustomAction(action="step", args={"action": 0, "repeat": 500})], TEXT)
        assert set(threads(session)) == {OWN}


async def test_a_step_that_blocks_on_its_thread_stops_no_other_session(tmp_path: Path) -> None:
    """Neither a quick one nor one of its own kind."""
    slow, fast = Gymnasium("test/Counter-v0"), Gymnasium("CartPole-v1", screen=False)
    async with serving(tmp_path / "slow", slow) as ours, serving(tmp_path / "fast", fast) as theirs:
        stuck, same, other = await begin(ours), await begin(ours), await begin(theirs)
        async with anyio.create_task_group() as group:
            group.start_soon(take, stuck, 1)
            await anyio.to_thread.run_sync(Counter.entered.wait, PATIENCE_S)
            await take(same, 0)
            await take(other, 0)
            assert (stuck.steps, same.steps, other.steps) == (0, 1, 1)
            Counter.gate.set()
        assert stuck.steps == 1


@pytest.mark.parametrize("quick", [True, False])
async def test_a_step_that_breaks_its_world_is_undone(tmp_path: Path, quick: bool) -> None:  # noqa: FBT001  # a parameter
    """On the loop as on a thread: the world comes back, and the session goes on."""
    async with serving(tmp_path, Gymnasium("test/Counter-v0", quick=quick)) as sessions:
        session = await begin(sessions)
        await take(session, 0)
        with pytest.raises(WorldDied, match="the engine fell off"):
            await take(session, 2)
        assert "observation: [2]" in str((await take(session, 0)).result.observation.text)
        steps = await sessions.store.load_steps(session.trajectory_id)
        assert [step.performed for step in steps] == [1, 0, 1]


class Held(Store):
    """A store whose steps are written when a test says so."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked = anyio.Event()
        self.go_on: asyncio.Event | None = None

    def write_steps(self, trajectory_id: str, steps: Any) -> "asyncio.Future[None]":
        """Write them once they may be."""
        self.asked.set()
        go_on = self.go_on

        async def write() -> None:
            if go_on is not None:
                await go_on.wait()
            await super(Held, self).write_steps(trajectory_id, steps)

        return asyncio.ensure_future(write())

    def commit_step(self, trajectory_id: str, new: Any) -> bool:
        """None takes no wait."""
        del trajectory_id, new
        return False


async def test_calls_that_come_while_a_quick_step_is_written_wait_for_it(tmp_path: Path) -> None:
    """Each is performed in its turn, and none is told before it is durable."""
    quick = Gymnasium("CartPole-v1", screen=False)
    async with serving(tmp_path, quick, Held) as sessions:
        store: Any = sessions.store
        session = await begin(sessions)
        store.go_on = asyncio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(take, session, 0)
            await store.asked.wait()
            assert session.is_busy
            group.start_soon(take, session, 1)
            await anyio.lowlevel.checkpoint()
            assert session.steps == 1
            store.go_on.set()
        assert session.steps == 2
        assert not session.is_busy
        found = await store.load_steps(session.trajectory_id)
        assert [step.actions[0]["args"]["action"] for step in found] == [0, 1]


async def test_a_quick_step_whose_caller_leaves_is_recorded(tmp_path: Path) -> None:
    """It was done, so it stands, and the session goes on after it."""
    quick = Gymnasium("CartPole-v1", screen=False)
    async with serving(tmp_path, quick, Held) as sessions:
        store: Any = sessions.store
        session = await begin(sessions)
        store.go_on = asyncio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(take, session, 0)
            await store.asked.wait()
            group.cancel_scope.cancel()
            store.go_on.set()
        assert len(await store.load_steps(session.trajectory_id)) == 1
        await take(session, 1)
        assert session.steps == 2

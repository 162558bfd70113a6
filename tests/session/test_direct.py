"""What an agent does in a session's world directly: recorded, kept by snapshots, or lost aloud."""

# a record in a database tells nobody that it has changed

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S, let_pass, until

from hud_mcp.environment import Environment
from hud_mcp.errors import (
    AlreadyAnswered,
    LimitReached,
    SessionEnded,
    StoreFailed,
)
from hud_mcp.record.values import BEHIND
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.values.action import ActionEffect, WaitAction
from hud_mcp.values.context import ContextSpace
from hud_mcp.values.observation import Look, Observation
from hud_mcp.world import Opening, WorldSpec

pytestmark = pytest.mark.anyio

ME = Caller(connection="me")
SLOW_S = 0.7


class Slate:
    """A world of words, which can be written down."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.snapshot_s = 0.0
        self.too_large = False

    async def act(self, _action: object) -> ActionEffect:
        """Do nothing."""
        return ActionEffect()

    async def observe(self, _look: Look) -> Observation:
        """Its words."""
        return Observation(text=" ".join(self.words))

    async def snapshot(self) -> bytes:
        """Its words, as slowly as it is told."""
        words = " ".join(self.words)
        await anyio.sleep(self.snapshot_s)
        if self.too_large:
            raise LimitReached("It is too large.")
        return words.encode()

    async def restore(self, data: bytes) -> None:
        """Take the words up."""
        self.words = data.decode().split()

    async def close(self) -> None:
        """Nothing is open."""


class SlateSpec(WorldSpec):
    """Declares a slate."""

    name = "slate"
    world_type = Slate
    actions = frozenset({"wait"})
    has_screen = False
    context_space = ContextSpace()

    def __init__(self, *, replayable: bool) -> None:
        self.replayable = replayable

    async def open(self, _opening: Opening) -> Slate:
        """Take one."""
        return Slate()


def slates(*, replayable: bool = False) -> Environment:
    """An environment whose grade is how many words there are."""
    env = Environment("slates", world=SlateSpec(replayable=replayable))

    @env.template()
    async def fill(slate: Slate) -> Any:
        yield "Write."
        yield float(len(slate.words))

    return env


@asynccontextmanager
async def registry(
    store: Path, env: Environment | None = None, **more: Any
) -> AsyncIterator[Sessions]:
    """What a server has, until it stops."""
    sessions = Sessions([env or slates()], store=Store(store), **more)
    try:
        yield sessions
    finally:
        await sessions.close()


async def begun(sessions: Sessions) -> Session:
    """A session."""
    return await sessions.start(sessions.catalogue.mint("fill", {}), caller=ME)


async def visit(session: Session, word: str) -> None:
    """Write one word."""
    async with session.direct_access("slate/1", {"command": word}) as entered:
        entered.world.words.append(word)
        entered.tell(f"wrote {word}", exit_code=0)


async def held(sessions: Sessions, session: Session) -> StoredSession:
    """What the store has of a session."""
    return await sessions.store.load_session(session.trajectory_id)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the record is."""
    return tmp_path / "store.sqlite3"


async def test_the_record_is_behind_before_anything_is_done_and_not_after(store: Path) -> None:
    """Durably, at each visit; several at once are behind until the last one has ended."""
    async with registry(store) as sessions:
        session = await begun(sessions)
        async with session.direct_access("slate/1", {"command": "a"}) as first:
            assert (await held(sessions, session)).snapshot_step == BEHIND
            assert not session.can_park
            first.world.words.append("a")
            await visit(session, "b")
            found = await held(sessions, session)
            assert found.snapshot_step == BEHIND, "the first one goes on"
            assert [s.observation_text for s in found.trajectory.steps] == ["wrote b"]
        found = await held(sessions, session)
        assert (found.snapshot, found.snapshot_step) == (b"a b", 1)
        assert session.can_park
        await visit(session, "c")
        assert (await held(sessions, session)).snapshot == b"a b c"


async def test_a_slow_snapshot_is_taken_once_nothing_is_done(store: Path) -> None:
    """Its first visit waits for it; the next ones do not, and are kept when they have paused."""
    async with registry(store) as sessions:
        session = await begun(sessions)
        async with session.direct_access("slate/1", {"command": "a"}) as entered:
            entered.world.snapshot_s = SLOW_S
        for word in "abc":
            await visit(session, word)
        assert (await held(sessions, session)).snapshot_step == BEHIND

        async def caught_up() -> StoredSession | None:
            found = await held(sessions, session)
            return None if found.snapshot_step == BEHIND else found

        found = await until(caught_up)
        assert (found.snapshot, found.snapshot_step) == (b"a b c", 3)


async def test_a_server_that_stops_takes_the_snapshot_that_is_missing(store: Path) -> None:
    """The next one goes on with what was done last."""
    async with registry(store) as sessions:
        session = await begun(sessions)
        async with session.direct_access("slate/1", {"command": "a"}) as entered:
            entered.world.snapshot_s = SLOW_S
            world = entered.world
        await visit(session, "b")
        assert (await held(sessions, session)).snapshot_step == BEHIND
        world.snapshot_s = 0.0
    async with registry(store) as sessions:
        again = await sessions.find(session.id, ME)
        assert isinstance(again, Session)
        receipt = await again.respond("x")
        assert receipt is not None
        assert receipt.reward == 1.0


@pytest.mark.parametrize("replayable", [False, True])
async def test_what_has_no_snapshot_is_lost_with_the_reason(
    store: Path, *, replayable: bool
) -> None:
    """Also in a world whose actions could be replayed: a replay does not do this again."""
    async with registry(store, slates(replayable=replayable)) as sessions:
        session = await begun(sessions)
        async with session.direct_access("slate/1", {"command": "a"}) as entered:
            entered.world.too_large = True
        assert (await held(sessions, session)).snapshot_step == BEHIND
    assert session.receipt is not None
    assert session.receipt.outcome == "lost"
    assert "used its world directly" in (session.receipt.error or "")


async def test_a_replayable_world_that_was_used_directly_comes_back_by_its_snapshot(
    store: Path,
) -> None:
    """Its steps are not performed again: they would miss what came between them."""
    async with registry(store, slates(replayable=True)) as sessions:
        session = await begun(sessions)
        await visit(session, "a")
        await session.step([WaitAction(time=1)], Look())
    async with registry(store, slates(replayable=True)) as sessions:
        again = await sessions.find(session.id, ME)
        assert isinstance(again, Session)
        await visit(again, "b")
        receipt = await again.respond("x")
        assert receipt is not None
        assert receipt.reward == 2.0


async def test_a_call_during_a_visit_makes_no_snapshot_of_its_middle(store: Path) -> None:
    """Its step is recorded, and the record stays behind until the visit has ended."""
    async with registry(store) as sessions:
        session = await begun(sessions)
        async with session.direct_access("slate/1", {"command": "a"}) as entered:
            await session.step([WaitAction(time=1)], Look())
            assert (await held(sessions, session)).snapshot_step == BEHIND
            entered.world.words.append("a")
        assert (await held(sessions, session)).snapshot == b"a"


async def test_nothing_is_done_where_it_cannot_be_recorded(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block is not entered; once the store is back, it is."""
    async with registry(store) as sessions:
        session = await begun(sessions)
        with monkeypatch.context() as patch:

            async def fail(*_args: object) -> None:
                raise StoreFailed("The disk is full.")

            patch.setattr(sessions.store, "put_snapshot", fail)
            with pytest.raises(StoreFailed, match="The disk is full"):
                await visit(session, "a")
        await visit(session, "b")
        found = await held(sessions, session)
        assert found.snapshot == b"b"
        assert len(found.trajectory.steps) == 1


async def test_what_is_under_way_at_the_end_is_in_the_log(store: Path) -> None:
    """And no step comes after the one that answers; then nothing is let in any more."""
    async with registry(store) as sessions:
        session = await begun(sessions)
        async with session.direct_access("slate/1", {"command": "make all"}) as entered:
            receipt = await session.respond("x")
            with pytest.raises(SessionEnded):
                _ = entered.world
        assert receipt is not None
        with pytest.raises((SessionEnded, AlreadyAnswered)):
            await visit(session, "late")
        await session.closed()
        kept = await sessions.store.load_trajectory(session.trajectory_id)
        assert [step.kind for step in kept.steps] == ["response"]
        assert "over slate/1: make all was under way when the session ended" in (kept.logs or "")


async def test_a_visit_keeps_its_session_from_expiring(store: Path) -> None:
    """While it goes on, and for the idle time after it."""
    async with registry(store, limits=Limits(idle_s=0.2)) as sessions:
        session = await begun(sessions)
        async with session.direct_access("slate/1", {"command": "long"}):
            await let_pass(2.5)  # the registry looks once a second
            assert session.state.shown == "open"
        with anyio.fail_after(PATIENCE_S):
            await session.over()
        assert session.receipt is not None
        assert session.receipt.outcome == "expired"

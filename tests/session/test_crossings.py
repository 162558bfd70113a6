"""What a session does where two things happen to it at once: neither is lost, one end stands."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from slate import Moments, Slate, SlateSpec
from waiting import until

from hud_mcp.action import ActionEffect, ClickAction, MoveAction, Point, ResponseAction, TypeAction
from hud_mcp.environment import Environment
from hud_mcp.errors import (
    ActionFailed,
    EnvironmentFailed,
    HudMcpError,
    SessionBusy,
    SessionEnded,
    StoreFailed,
    WorldDied,
)
from hud_mcp.grade import Cause, Grade, Outcome
from hud_mcp.observation import Look, Observation
from hud_mcp.record.values import Receipt
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.limits import Limits
from hud_mcp.session.operations import Operations
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.session.turns import Turns
from hud_mcp.store import Store
from hud_mcp.world import Opening

pytestmark = pytest.mark.anyio

ME = Caller()
BOSS = Caller(principal=OPERATOR)
ID = f"sess-{'a' * 32}"
LOOK = Look()
BOUND_S = 60


class Pad(Slate):
    """A slate that can fall: it is dead then."""

    def __init__(self, spec: "PadSpec") -> None:
        super().__init__(spec.moments)
        self.broken: str | None = None
        self.spec = spec

    @property
    def died(self) -> str | None:
        """Why it is broken."""
        return self.broken

    def fall(self) -> EnvironmentFailed:
        """Break it."""
        self.broken = "The pad fell."
        return EnvironmentFailed(self.broken)

    def check(self) -> None:
        """Refuse to be used once it is broken."""
        if self.broken:
            raise EnvironmentFailed(self.broken)

    async def act(self, action: object) -> ActionEffect:
        """Write a word; `drop` breaks it, and so does whoever lets go of it in the middle."""
        self.check()
        if isinstance(action, ClickAction | MoveAction):
            return ActionEffect(text=f"at {action.point}")
        if isinstance(action, TypeAction) and action.text == "drop":
            raise self.fall()
        try:
            return await super().act(action)
        except asyncio.CancelledError:
            raise self.fall() from None

    async def observe(self, look: Look) -> Observation:
        """The words."""
        self.check()
        return await super().observe(look)

    async def close(self) -> None:
        """Count it as closed."""
        await self.moments.pass_by("close")
        self.spec.closed += 1


class KeptPad(Pad):
    """One that can be written down."""

    async def snapshot(self) -> bytes:
        """Its words."""
        return " ".join(self.words).encode()

    async def restore(self, data: bytes) -> None:
        """Take the words up."""
        self.words = data.decode().split()


class FarPad(Pad):
    """One that lives elsewhere, and cannot say where."""

    async def handle(self) -> bytes:
        """Fail."""
        raise EnvironmentFailed("Nobody knows where the pad is.")


class PadSpec(SlateSpec):
    """Declares a pad.

    Attributes:
        opened: How many there were.
        closed: How many of them are closed.
        graded: The answers that a template graded.
    """

    actions = frozenset({"type", "click", "move"})
    has_screen = False
    world_type: Any = Pad

    def __init__(self, moments: Moments, kind: type[Pad] = Pad, *, replayable: bool = True) -> None:
        super().__init__(moments, replayable=replayable)
        self.kind = kind
        self.opened = self.closed = 0
        self.graded: list[str] = []

    async def open(self, _opening: Opening) -> Pad:
        """Take one."""
        await self.moments.pass_by("open")
        self.opened += 1
        return self.kind(self)


def pads(spec: PadSpec) -> Environment:
    """An environment that says what was written, and gives 1.0 for tea."""
    env = Environment("pads", world=spec)

    @env.template()
    async def fill(pad: Pad) -> Any:
        await breaking(spec.moments, "setup")
        answer = yield "Write tea."
        await breaking(spec.moments, "grade")
        spec.graded.append(answer)
        yield Grade(reward=float(pad.words == ["tea"]), content=f"{' '.join(pad.words)}; {answer}")

    @env.tool
    async def fail(pad: Pad) -> str:
        """Fail."""
        raise RuntimeError("not today")

    return env


async def breaking(moments: Moments, moment: str) -> None:
    """Pass a moment as a browser's call does, which fails as its process is ended."""
    try:
        await moments.pass_by(moment)
    except asyncio.CancelledError:
        raise EnvironmentFailed("The browser has been closed.") from None


@asynccontextmanager
async def serving(
    store: Path | Store, env: Environment, **limits: float
) -> AsyncIterator[Sessions]:
    """What a server has, until it stops."""
    kept = store if isinstance(store, Store) else Store(store)
    sessions = Sessions([env], store=kept, limits=Limits.model_validate(limits))
    try:
        with anyio.fail_after(BOUND_S):
            yield sessions
    finally:
        with anyio.fail_after(20):
            await sessions.close()


async def begin(sessions: Sessions, caller: Caller = ME, **more: Any) -> Session:
    """A session that has written tea."""
    session = await sessions.start(sessions.mint("fill", {}), caller=caller, **more)
    await write(session, "tea")
    return session


async def write(session: Session, word: str) -> str | None:
    """Write a word; what is seen then."""
    return (await session.step((TypeAction(text=word),), LOOK)).result.observation.text


async def drop(session: Session) -> None:
    """Break its world in a call."""
    with suppress(WorldDied):
        await write(session, "drop")


async def find(sessions: Sessions, session_id: str, caller: Caller = ME) -> Session:
    """The session that goes on."""
    found = await sessions.find(session_id, caller)
    assert isinstance(found, Session)
    return found


async def a_while() -> None:
    """Let whatever can happen, happen: a wait that is passed by would be over."""
    for _ in range(40):
        await anyio.lowlevel.checkpoint()


def tell(store: Path, *statements: str) -> None:
    """Change a store's file behind its server's back."""
    with sqlite3.connect(store, timeout=20, isolation_level=None) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


STOLEN = "UPDATE sessions SET owner = 'srv-another'"


def refusing(what: str, *, when: str = "1") -> str:
    """A trigger by which a store's disk refuses one kind of write."""
    return (
        f"CREATE TRIGGER refusing BEFORE {what} WHEN {when} "
        "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    )


ACCEPTING = "DROP TRIGGER refusing"

# The start.


async def test_a_cancel_that_overtakes_the_setup_ends_the_start(tmp_path: Path) -> None:
    """It is not forgotten, nobody waits for ever, and no world is opened."""
    spec = PadSpec(Moments())
    async with serving(tmp_path / "s.sqlite3", pads(spec)) as sessions:

        async def start() -> None:
            with pytest.raises(HudMcpError, match="cancelled"):
                await begin(sessions, session_id=ID)

        async with anyio.create_task_group() as group:
            group.start_soon(start)
            while (begun := sessions.here(ID, ME)) is None:
                await anyio.lowlevel.checkpoint()
            assert begun.state == "starting"
            await begun.cancel()
        assert begun.receipt is not None
        assert (begun.receipt.outcome, begun.receipt.cause) == (Outcome.CANCELLED, Cause.AGENT)
        record = await sessions.store.load_trajectory(begun.trajectory_id)
        assert record.receipt == begun.receipt
    assert spec.opened == 0


async def test_a_server_that_stops_as_a_start_is_recorded_opens_no_world(tmp_path: Path) -> None:
    """The start ends with its server, before anything of its own has begun."""
    spec = PadSpec(Moments())
    async with serving(tmp_path / "s.sqlite3", pads(spec)) as sessions:

        async def start() -> None:
            with pytest.raises(HudMcpError):
                await begin(sessions, session_id=ID)

        async with anyio.create_task_group() as group:
            group.start_soon(start)
            while sessions.here(ID, ME) is None:
                await anyio.lowlevel.checkpoint()
            await sessions.close()
    assert spec.opened == 0


async def test_a_call_to_a_start_that_fails_is_told_so(tmp_path: Path) -> None:
    """Whoever calls with the chosen id before the start has failed, does not wait for ever."""
    (tmp_path / "file").touch()
    async with serving(tmp_path / "file" / "s.sqlite3", pads(PadSpec(Moments()))) as sessions:

        async def start() -> None:
            with pytest.raises(StoreFailed):
                await begin(sessions, session_id=ID, drawn=True)

        async with anyio.create_task_group() as group:
            group.start_soon(start)
            while (begun := sessions.here(ID, ME)) is None:
                await anyio.lowlevel.checkpoint()
            with pytest.raises(SessionEnded):
                await write(begun, "tea")


@pytest.mark.parametrize("way", ["taken", "nowhere"])
async def test_a_start_that_fails_late_closes_what_it_opened(tmp_path: Path, way: str) -> None:
    """Another server has its record, or its world cannot say where it is: no world is left."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    spec = PadSpec(moments, Pad if way == "taken" else FarPad)
    async with serving(store, pads(spec)) as sessions:
        moments.hold("setup")

        async def start() -> None:
            with pytest.raises(HudMcpError):
                await begin(sessions)

        async with anyio.create_task_group() as group:
            group.start_soon(start)
            await moments.arrived.wait()
            if way == "taken":
                tell(store, STOLEN)
            moments.go_on.set()
        await until(lambda: spec.closed == spec.opened)
        assert spec.opened == 1


async def test_a_start_that_is_cancelled_as_its_world_breaks_is_cancelled(tmp_path: Path) -> None:
    """What a setup makes of being cut off is no failure of its environment."""
    moments = Moments()
    async with serving(tmp_path / "s.sqlite3", pads(PadSpec(moments))) as sessions:
        moments.hold("setup")
        async with anyio.create_task_group() as group:
            group.start_soon(partial(begin, sessions, session_id=None))
            await moments.arrived.wait()
            (begun,) = sessions.living_of(ME) or sessions.roster
            group.cancel_scope.cancel()
        await begun.ended.wait()
        assert begun.receipt is not None
        assert (begun.receipt.outcome, begun.receipt.cause) == (Outcome.CANCELLED, Cause.OPERATOR)


# The answer.


class Late(Store):
    """A store that lets something happen in the very turn in which an answer is durable."""

    then: Callable[[], None] = staticmethod(lambda: None)

    async def add_step(self, *args: Any, **more: Any) -> None:
        """Add it; then something happens."""
        await super().add_step(*args, **more)
        if more.get("answers"):
            self.then()


async def test_an_answer_is_graded_though_the_template_s_deadline_comes_in_the_same_turn(
    tmp_path: Path,
) -> None:
    """It was accepted, so the template gets it, whatever else ends its wait."""
    store, spec = Late(tmp_path / "s.sqlite3"), PadSpec(Moments())
    env, scope = pads(spec), anyio.CancelScope()

    @env.template()
    async def hurry(_pad: Pad) -> Any:
        answer = "none came"
        with scope:
            answer = yield "Answer."
        yield Grade(reward=float(answer == "done"), content=answer)

    store.then = scope.cancel  # type: ignore[method-assign]
    async with serving(store, env) as sessions:
        session = await sessions.start(sessions.mint("hurry", {}), caller=ME)
        receipt = await session.respond("done")
        assert receipt is not None
        assert (receipt.reward, receipt.content) == (1.0, "done")


async def test_an_answer_whose_step_is_durable_is_submitted_though_the_log_is_not(
    tmp_path: Path,
) -> None:
    """A disk that fills up between the two loses no answer, and the record has it once."""
    store = tmp_path / "s.sqlite3"
    async with serving(store, pads(PadSpec(Moments()))) as sessions:
        session = await begin(sessions)
        session.log("a line that has no room")
        tell(store, refusing("INSERT ON logs"))
        with pytest.raises(StoreFailed, match="has ended, but its end is not recorded yet"):
            await session.respond("done")
        tell(store, ACCEPTING)
        receipt = await session.respond("done")
        assert receipt is not None
        assert (receipt.reward, receipt.content) == (1.0, "tea; done")
        record = await sessions.store.load_trajectory(session.trajectory_id)
    assert [step.kind for step in record.steps] == ["step", "response"]
    assert "a line that has no room" in (record.logs or "")


async def test_an_answer_that_cannot_be_recorded_leaves_the_record_as_far_behind_as_it_was(
    tmp_path: Path,
) -> None:
    """Its snapshot was not kept either, so a visit's work is still missing, and that is known."""
    store, spec = tmp_path / "s.sqlite3", PadSpec(Moments(), KeptPad, replayable=False)
    async with serving(store, pads(spec)) as sessions:
        session = await begin(sessions)
        async with session.direct_access("pad/1", {"command": "milk"}) as visit:
            visit.world.words.append("milk")  # type: ignore[attr-defined]
            tell(store, refusing("INSERT ON steps"))
            with pytest.raises(StoreFailed, match="was not submitted"):
                await session.respond("done")
            tell(store, ACCEPTING)
            assert session.is_behind
            assert not session.can_park
        assert not session.is_behind
        assert session.can_park


async def test_an_accepted_answer_is_not_cancelled_while_its_world_is_brought_back(
    tmp_path: Path,
) -> None:
    """At every moment of that its cancellation is refused as it is while it is graded."""
    for moment in ("close", "open", "setup"):
        moments = Moments()
        async with serving(tmp_path / f"{moment}.sqlite3", pads(PadSpec(moments))) as sessions:
            session = await begin(sessions)
            session.direct_world().fall()  # type: ignore[attr-defined]
            moments.hold(moment)
            async with anyio.create_task_group() as group:
                group.start_soon(session.respond, "done")
                await moments.arrived.wait()
                with pytest.raises(SessionBusy, match="ends with its grade"):
                    await session.cancel()
                moments.go_on.set()
            receipt = await session.respond("done")
            assert receipt is not None
            assert (receipt.outcome, receipt.content) == (Outcome.GRADED, "tea; done")


async def test_a_store_that_cannot_be_read_costs_an_accepted_answer_nothing(
    tmp_path: Path,
) -> None:
    """Its world died, and its record cannot be read: it waits there, and is graded later."""
    store, spec = tmp_path / "s.sqlite3", PadSpec(Moments())
    async with serving(store, pads(spec)) as sessions:
        session = await begin(sessions)
        session.direct_world().fall()  # type: ignore[attr-defined]
        tell(store, "ALTER TABLE snapshots RENAME TO elsewhere")
        with pytest.raises(SessionEnded, match="waits in its record"):
            await session.respond("done")
        assert session.receipt is None
        tell(store, "ALTER TABLE elsewhere RENAME TO snapshots")
        receipt = await (await find(sessions, session.id)).respond("done")
        assert receipt is not None
        assert (receipt.reward, receipt.content) == (1.0, "tea; done")
    assert spec.graded == ["done"]


# While a world is resumed.


async def test_an_operator_s_evaluation_meanwhile_grades_the_answer_that_was_kept(
    tmp_path: Path,
) -> None:
    """What the agent said is read once the record has been, and not before."""
    for moment in ("close", "open"):
        moments = Moments()
        async with serving(tmp_path / f"{moment}.sqlite3", pads(PadSpec(moments))) as sessions:
            session = await begin(sessions, BOSS)
            await session.step((ResponseAction(text="done"),), LOOK)
            given: list[Any] = []

            async def evaluate(
                session: Session = session,
                given: list[Any] = given,
            ) -> None:
                given.append(await session.evaluate())

            moments.hold(moment)
            async with anyio.create_task_group() as group:
                group.start_soon(drop, session)
                await moments.arrived.wait()
                group.start_soon(evaluate)
                await a_while()
                moments.go_on.set()
            assert (given[0].value, given[0].grade.content) == (1.0, "tea; done")


@pytest.mark.parametrize("moment", ["close", "open"])
@pytest.mark.parametrize("way", ["visit", "urls", "click"])
async def test_what_reaches_the_world_meanwhile_waits_for_it(
    tmp_path: Path, moment: str, way: str
) -> None:
    """A connection, a question for addresses and a click where the pointer was: none is refused."""
    moments = Moments()
    async with serving(tmp_path / "s.sqlite3", pads(PadSpec(moments))) as sessions:
        session = await begin(sessions, BOSS)
        await session.step((MoveAction(point=Point(x=3, y=4)),), LOOK)
        seen: list[Any] = []

        async def visit() -> None:
            async with session.direct_access("pad/1", {"command": "look"}) as visit:
                seen.append(" ".join(visit.world.words))  # type: ignore[attr-defined]

        async def urls() -> None:
            params = {"session": session.id}
            seen.append(await Operations(sessions).perform("hud-mcp/urls", params))

        async def click() -> None:
            seen.append((await session.step((ClickAction(),), LOOK)).result.observation.text)

        moments.hold(moment)
        async with anyio.create_task_group() as group:
            group.start_soon(drop, session)
            await moments.arrived.wait()
            group.start_soon({"visit": visit, "urls": urls, "click": click}[way])
            await a_while()
            assert seen == []
            moments.go_on.set()
        assert seen == [{"url": None, "live_url": None}] if way == "urls" else ["tea"]


async def test_a_server_that_stops_as_a_world_dies_of_it_revives_nothing(tmp_path: Path) -> None:
    """A call that is cut off breaks its world: the session goes on in the next server."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    spec = PadSpec(moments)
    async with serving(store, pads(spec)) as first:
        session = await begin(first)
        moments.hold("act 1")
        async with anyio.create_task_group() as group:

            async def call() -> None:
                with pytest.raises(SessionEnded, match="waits in its record"):
                    await write(session, "milk")

            group.start_soon(call)
            await moments.arrived.wait()
            await first.close()
        assert (session.state, spec.opened, spec.closed) == ("parked", 1, 1)
    moments.hold("nowhere")
    async with serving(store, pads(spec)) as second:
        receipt = await (await find(second, session.id)).respond("done")
        assert receipt is not None
        assert (receipt.reward, receipt.content) == (1.0, "tea; done")


@pytest.mark.parametrize("moment", ["setup", "grade"])
async def test_a_server_that_stops_as_its_browser_closes_leaves_the_record_as_it_was(
    tmp_path: Path, moment: str
) -> None:
    """What a setup or a grader makes of being cut off ends no session that goes on elsewhere."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = pads(PadSpec(moments))
    async with serving(store, env) as first:
        session = await begin(first)
    moments.hold(moment)
    async with serving(store, env) as second, anyio.create_task_group() as group:

        async def call() -> None:
            with pytest.raises(HudMcpError, match="call again with"):
                await (await find(second, session.id)).respond("done")

        group.start_soon(call)
        await moments.arrived.wait()
        await second.close()
    moments.hold("nowhere")
    async with serving(store, env) as third:
        receipt = await (await find(third, session.id)).respond("done")
        assert receipt is not None
        assert (receipt.outcome, receipt.content) == (Outcome.GRADED, "tea; done")


async def test_a_cancel_that_comes_too_late_says_that_the_session_goes_on(tmp_path: Path) -> None:
    """It waits in its record by then: nobody is told that it is cancelled."""
    async with serving(tmp_path / "s.sqlite3", pads(PadSpec(Moments()))) as sessions:
        session = await begin(sessions)
        await session.finish(SessionEnd(Outcome.LOST, parked=True), abort=True)
        with pytest.raises(SessionEnded, match="waits in its record"):
            await session.cancel()


# Another server.


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
        assert taken.owes
        tell(store, ACCEPTING, f"{STOLEN} WHERE id = '{taken.trajectory_id}'")
        await idle.ended.wait()
        assert idle.receipt is not None
        assert idle.receipt.outcome is Outcome.EXPIRED
        assert not taken.owes


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
    turns, gate = Turns[int](), asyncio.Event()

    async def work() -> int:
        await gate.wait()
        return 1

    try:
        with anyio.fail_after(BOUND_S):
            for turn in range(6):
                gate.clear()
                caller = loop.create_task(turns.take("key", work))
                await anyio.lowlevel.checkpoint()
                await anyio.lowlevel.checkpoint()
                gate.set()
                for _ in range(turn):
                    await anyio.lowlevel.checkpoint()
                caller.cancel()
                await asyncio.wait({caller})
                await a_while()
                assert not turns.waits_for("key")
                assert await turns.take("key", work) == 1
    finally:
        loop.set_exception_handler(None)
    assert faults == []

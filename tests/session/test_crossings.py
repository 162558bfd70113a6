"""Calls, ends and stops of the server that meet a session as it starts or is resumed."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from crossing import (
    LOOK,
    ME,
    STOLEN,
    Pad,
    PadSpec,
    a_while,
    begin,
    drop,
    find,
    pads,
    serving,
    tell,
    write,
)
from slate import Moments
from waiting import until

from hud_mcp.errors import (
    EnvironmentFailed,
    HudMcpError,
    SessionEnded,
    StoreFailed,
)
from hud_mcp.plugins.hud.operating import evaluate
from hud_mcp.plugins.hud.operations import Operations
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.values.action import ClickAction, MoveAction, Point, ResponseAction
from hud_mcp.values.grade import Cause, Outcome

pytestmark = pytest.mark.anyio

BOSS = Caller(principal=OPERATOR)
ID = f"sess-{'a' * 32}"


class FarPad(Pad):
    """One that lives elsewhere, and cannot say where."""

    async def handle(self) -> bytes:
        """Fail."""
        raise EnvironmentFailed("Nobody knows where the pad is.")


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
            assert begun.state.shown == "starting"
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
    """What a setup makes of being cut off is not a failure of its environment."""
    moments = Moments()
    async with serving(tmp_path / "s.sqlite3", pads(PadSpec(moments))) as sessions:
        moments.hold("setup")
        async with anyio.create_task_group() as group:
            group.start_soon(partial(begin, sessions, session_id=None))
            await moments.arrived.wait()
            (begun,) = sessions.roster.living_of(ME) or sessions.roster
            group.cancel_scope.cancel()
        await begun.over()
        assert begun.receipt is not None
        assert (begun.receipt.outcome, begun.receipt.cause) == (Outcome.CANCELLED, Cause.OPERATOR)


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

            async def measure(
                session: Session = session,
                given: list[Any] = given,
            ) -> None:
                given.append(await evaluate(session))

            moments.hold(moment)
            async with anyio.create_task_group() as group:
                group.start_soon(drop, session)
                await moments.arrived.wait()
                group.start_soon(measure)
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
        assert (session.state.shown, spec.opened, spec.closed) == ("parked", 1, 1)
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

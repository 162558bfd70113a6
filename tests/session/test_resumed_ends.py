"""Deadlines, answers, stops and other servers that meet a session which is brought back."""

import gc
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from bringing_back import ME, MOMENTS, Server, a_while, left_behind, record, served, typed
from slate import Moments, Slate, registry, slates
from waiting import PATIENCE_S, let_pass, until

from hud_mcp.errors import (
    AlreadyAnswered,
    HudMcpError,
    SessionBusy,
    SessionEnded,
)
from hud_mcp.plugins.hud.operating import conclude
from hud_mcp.record.values import Receipt
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.session.spec import Limits
from hud_mcp.values.action import TypeAction
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("kind", "moment"), MOMENTS)
async def test_a_server_that_stops_in_the_middle_leaves_the_record_as_it_was(
    tmp_path: Path, kind: str, moment: str
) -> None:
    """Those who wait are told to call again; the next server goes on with all of it."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = slates(moments, replayable=kind == "replayed")
    told: list[str] = []
    with anyio.fail_after(PATIENCE_S):
        session, trajectory = await left_behind(store, env)
        moments.hold(moment)
        async with registry(store, env) as second:
            before = await second.store.load_session(trajectory)

            async def write() -> None:
                try:
                    await second.find(session, ME)
                except HudMcpError as exc:
                    told.append(str(exc))

            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(write)
                await moments.arrived.wait()
                await second.close()
        assert len(told) == 3
        assert all("call again with" in text for text in told)
        moments.hold("nowhere")
        async with registry(store, env) as third:
            after = await third.store.load_session(trajectory)
            assert replace(after, trajectory=before.trajectory) == before
            assert after.trajectory.steps == before.trajectory.steps
            found = await third.find(session, ME)
            assert isinstance(found, Session)
            receipt = await found.respond("done")
            assert receipt is not None
            assert receipt.content == "tea milk; done"


async def test_a_template_s_own_deadline_grades_the_world_that_the_record_says(
    tmp_path: Path,
) -> None:
    """It is over before the world is back, and takes effect afterwards; the grade stands."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    deadline_s = 60.0
    env = slates(moments)

    @env.template()
    async def hurry(slate: Slate) -> Any:
        await moments.pass_by("setup")
        with anyio.move_on_after(deadline_s):
            yield "Write tea and milk."
        yield float(slate.words == ["tea", "milk"])

    with anyio.fail_after(PATIENCE_S):
        async with registry(store, env) as first:
            begun = await first.start(first.catalogue.mint("hurry", {}), caller=ME)
            for word in ("tea", "milk"):
                await begun.step((TypeAction(text=word),), Look())
        deadline_s = 0.0
        moments.hold("act 1")
        async with registry(store, env) as second:
            async with anyio.create_task_group() as group:
                group.start_soon(second.find, begun.id, ME)
                await moments.arrived.wait()
                await a_while()
                moments.go_on.set()
            found = await second.find(begun.id, ME)
            assert isinstance(found, Session)
            await found.over()
            assert found.receipt is not None
            assert (found.receipt.outcome, found.receipt.reward) == (Outcome.GRADED, 1.0)


@pytest.mark.parametrize("kind", ["replayed", "kept"])
async def test_an_answer_that_waits_for_its_grade_is_graded_as_it_was_given(
    tmp_path: Path, kind: str
) -> None:
    """In the middle, the same answer waits for it; another one and more work are refused."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = slates(moments, replayable=kind == "replayed")
    moments.hold("grade")
    given: dict[str, Any] = {}
    with anyio.fail_after(PATIENCE_S):
        async with registry(store, env) as first:
            begun = await first.start(first.catalogue.mint("fill", {}), caller=ME)
            for word in ("tea", "milk"):
                await begun.step((TypeAction(text=word),), Look())
            async with anyio.create_task_group() as group:
                group.start_soon(_quietly, begun.respond("done"))
                await moments.arrived.wait()
                await first.close()
        moments.hold("setup")
        async with registry(store, env) as second:

            async def call(name: str, run: Callable[[Session], Awaitable[Any]]) -> None:
                found = await second.find(begun.id, ME)
                assert isinstance(found, Session)
                try:
                    given[name] = await run(found)
                except HudMcpError as exc:
                    given[name] = exc

            calls: dict[str, Callable[[Session], Awaitable[Any]]] = {
                "same": lambda s: s.respond("done"),
                "other": lambda s: s.respond("other"),
                "step": lambda s: s.step((TypeAction(text="never"),), Look()),
                "cancel": lambda s: s.cancel(),
                "conclude": conclude,
            }
            async with anyio.create_task_group() as group:
                for name, run in calls.items():
                    group.start_soon(call, name, run)
                await moments.arrived.wait()
                await a_while()
                moments.go_on.set()
            for name in ("same", "conclude"):
                assert isinstance(given[name], Receipt)
                assert (given[name].reward, given[name].content) == (1.0, "tea milk; done")
            assert isinstance(given["other"], AlreadyAnswered | SessionEnded)
            assert isinstance(given["step"], AlreadyAnswered | SessionEnded)
            assert given["cancel"] is None or isinstance(given["cancel"], SessionBusy)


async def _quietly(call: Awaitable[Any]) -> None:
    """Make a call that its server's end cuts off."""
    with pytest.raises(SessionEnded):
        await call


async def test_a_reply_does_not_wait_for_ever(tmp_path: Path) -> None:
    """A tool's caller is told to call again, programs by name too; the call did not happen."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = slates(moments)

    async def check(server: Server) -> None:
        arguments = {"session": server.session, **typed("honey")}
        reply = await server.client.call_tool("act", arguments)
        assert reply.is_error
        assert "is being resumed" in reply.content[0].text
        assert "Nothing was done; call again" in reply.content[0].text
        assert (reply.meta or {})["hud-mcp/error"] == "SessionResuming"
        moments.go_on.set()
        await server.find()
        assert "tea milk honey" in await server.tool("act", **typed("honey"))

    with anyio.fail_after(PATIENCE_S):
        session, _ = await left_behind(store, env)
        moments.hold("open")
        async with registry(store, env, limits=Limits(reply_s=0.1)) as sessions:
            await served(sessions, session, ME, check)


@pytest.mark.parametrize("limit", ["idle_s", "total_s"])
async def test_time_that_a_bringing_back_takes_ends_no_session_under_it(
    tmp_path: Path, limit: str
) -> None:
    """Longer than a session may be idle, it is none; past its total time, it expires afterwards."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = slates(moments)
    spec: Any = env.world
    taken = spec.open

    async def slowly(opening: Any) -> Any:
        await let_pass(1.6)  # the sweep comes by meanwhile
        return await taken(opening)

    with anyio.fail_after(PATIENCE_S):
        session, trajectory = await left_behind(store, env)
        spec.open = slowly
        async with registry(store, env, limits=Limits(**{limit: 1.0})) as sessions:  # type: ignore[arg-type]
            found = await sessions.find(session, ME)
            assert isinstance(found, Session)
            if limit == "idle_s":
                receipt = await found.respond("done")
                assert receipt is not None
                assert receipt.content == "tea milk; done"
                return
            await found.over()
            assert (await record(sessions, trajectory)).outcome == Outcome.EXPIRED


@pytest.mark.long
async def test_two_servers_of_one_store_bring_a_session_back_once(tmp_path: Path) -> None:
    """One resumes it; the other says that it does, and does nothing in it."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = slates(moments)
    given: list[Any] = []
    with anyio.fail_after(PATIENCE_S):
        session, trajectory = await left_behind(store, env)
        async with registry(store, env) as one, registry(store, env) as two:

            async def write(sessions: Sessions) -> None:
                try:
                    found = await sessions.find(session, ME)
                    assert isinstance(found, Session)
                    given.append(await found.step((TypeAction(text="honey"),), Look()))
                except SessionBusy as exc:
                    given.append(str(exc))

            async with anyio.create_task_group() as group:
                for sessions in (one, two, one, two):
                    group.start_soon(write, sessions)
            busy = [g for g in given if isinstance(g, str)]
            assert len(busy) == 2
            assert all("Another server process runs this session" in text for text in busy)
            assert len((await record(one, trajectory)).steps) == 4


@pytest.mark.long
async def test_a_session_that_its_own_server_let_go_of_is_brought_back_there(
    tmp_path: Path,
) -> None:
    """Callers meanwhile wait for it to be let go of and resumed; its record stays owned."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = slates(moments, replayable=False)
    with anyio.fail_after(PATIENCE_S):
        async with registry(store, env) as sessions, registry(store, env) as other:
            me = Caller(connection="mine")
            begun = await sessions.start(sessions.catalogue.mint("fill", {}), caller=me)
            for word in ("tea", "milk"):
                await begun.step((TypeAction(text=word),), Look())

            async def write(word: str) -> None:
                found = await sessions.find(begun.id, ME)
                assert isinstance(found, Session)
                await found.step((TypeAction(text=word),), Look())

            async with anyio.create_task_group() as group:
                parked = SessionEnd(Outcome.LOST, parked=True)
                group.start_soon(partial(begun.finish, parked, abort=True))
                await anyio.lowlevel.checkpoint()
                for word in ("honey", "salt"):
                    group.start_soon(write, word)
            found = await sessions.current(begun)
            assert isinstance(found, Session)
            assert found is not begun
            assert await sessions.find(None, me) is found, "without an id too"
            assert found.id == begun.id
            with pytest.raises(SessionBusy, match="Another server process"):
                await other.find(begun.id, ME)
            receipt = await found.respond("done")
            assert receipt is not None
            assert receipt.content == "tea milk honey salt; done"


async def test_an_ended_session_keeps_no_record_picture_or_world(tmp_path: Path) -> None:
    """A server remembers a thousand ended sessions, and a world may have megabytes."""
    store, env = tmp_path / "s.sqlite3", slates(Moments())
    with anyio.fail_after(PATIENCE_S):
        session, _ = await left_behind(store, env)
        async with registry(store, env) as sessions:
            found = await sessions.find(session, ME)
            assert isinstance(found, Session)
            await found.step((), Look(image="png"))
            steps = weakref.ref(found.stored)
            picture = weakref.ref(found.life.world.latest)
            world = weakref.ref(found.life.world.live)
            assert None not in (steps(), picture(), world())
            await found.respond("done")
            await found.closed()
            await until(
                lambda: gc.collect() >= 0 and (steps(), picture(), world()) == (None, None, None)
            )
            assert sessions.here(session, ME) is found

"""Nothing reaches a session that is resumed before its world is what its record says."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp.client import Client
from slate import Moments, Slate, registry, slates

from hud_mcp.action import TypeAction
from hud_mcp.environment import Environment
from hud_mcp.errors import (
    AlreadyAnswered,
    EnvironmentFailed,
    HudMcpError,
    SessionBusy,
    SessionEnded,
)
from hud_mcp.grade import Outcome
from hud_mcp.observation import Look
from hud_mcp.record.trajectory import Receipt, Trajectory
from hud_mcp.server.app import build_server
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.limits import Limits
from hud_mcp.session.operations import Operations
from hud_mcp.session.receipts import digest
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import SessionEnd

pytestmark = pytest.mark.anyio

ME = Caller()
BOUND_S = 60
REPLAYED = ("open", "setup", "act 0", "act 1", "look")
KEPT = ("open", "setup", "restore")
MOMENTS = [("replayed", m) for m in REPLAYED] + [("kept", m) for m in KEPT]


@dataclass
class Server:
    """A server's registry, an MCP client of it, and what its operator may call."""

    sessions: Sessions
    client: Client
    operations: Operations
    session: str

    async def tool(self, name: str, **arguments: Any) -> str:
        """Call a tool that must succeed, and return its text."""
        reply = await self.client.call_tool(name, {"session": self.session, **arguments})
        text = "\n".join(c.text for c in reply.content if c.type == "text")
        assert not reply.is_error, text
        return text

    async def operate(self, name: str, **params: Any) -> dict[str, Any]:
        """Perform an operation."""
        return await self.operations.perform(f"hud-mcp/{name}", {"session": self.session, **params})

    async def find(self) -> Session:
        """The session."""
        found = await self.sessions.find(self.session, self.caller)
        assert isinstance(found, Session)
        return found

    caller: Caller = ME


def typed(word: str) -> dict[str, Any]:
    """An action that writes."""
    return {"type": "type", "text": word}


async def write_directly(server: Server) -> str:
    """Write a word by another way than the session's calls."""
    session = await server.find()
    async with session.direct_access("slate/1", {"command": "honey"}) as visit:
        visit.world.words.append("honey")
        visit.tell("wrote honey")
        return " ".join(visit.world.words)


async def look_directly(server: Server) -> str:
    """Look at the world, as doors do."""
    return " ".join((await server.find()).direct_world().words)  # type: ignore[attr-defined]


async def read_record(server: Server) -> str:
    """Read the session's own resource."""
    found = await server.client.read_resource(f"hud://sessions/{server.session}/trajectory")
    return str(found.contents[0])


CALLS: dict[str, tuple[Callable[[Server], Awaitable[Any]], str, str]] = {
    # What is called; what its reply says; what the slate says at the end.
    "step": (lambda s: s.tool("step", actions=[typed("honey")]), "tea milk honey", "honey"),
    "act": (lambda s: s.tool("act", **typed("honey")), "tea milk honey", "honey"),
    "look": (lambda s: s.tool("step"), "tea milk", ""),
    "screenshot": (lambda s: s.tool("screenshot"), "3 x 1 px", ""),
    "tool": (lambda s: s.tool("add", word="honey"), "wrote honey", "honey"),
    "response": (lambda s: s.tool("response", answer="done"), "reward 1.\ntea milk; done", ""),
    "status": (lambda s: s.tool("task_status"), "open, 2 steps", ""),
    "cancel": (lambda s: s.tool("cancel_task"), "Cancelled.", ""),
    "resource": (read_record, "milk", ""),
    "visit": (write_directly, "tea milk honey", "honey"),
    "door": (look_directly, "tea milk", ""),
}
OPERATED: dict[str, tuple[Callable[[Server], Awaitable[Any]], str, str]] = {
    "step": (
        lambda s: s.operate("step", actions=[typed("honey")]),
        "'text': 'tea milk honey'",
        "honey",
    ),
    "set-up": (lambda s: s.operate("setup"), "'text': 'tea milk'", ""),
    "urls": (lambda s: s.operate("urls"), "None", ""),
    "evaluate": (lambda s: s.operate("evaluate"), "'reward': 1.0", ""),
    "conclude": (lambda s: s.operate("conclude"), "'outcome': 'cancelled'", ""),
}


async def left_behind(store: Path, env: Environment, caller: Caller = ME) -> tuple[str, str]:
    """A session that wrote tea and milk before its server stopped: its id and its record's."""
    async with registry(store, env) as sessions:
        session = await sessions.start(sessions.mint("fill", {}), caller=caller)
        for word in ("tea", "milk"):
            await session.step((TypeAction(text=word),), Look())
        return session.id, session.trajectory_id


async def record(sessions: Sessions, trajectory: str) -> Trajectory:
    """What the store has of it."""
    return await sessions.store.load_trajectory(trajectory)


async def a_while() -> None:
    """Let whatever can happen, happen: a wait that is passed by would be over."""
    for _ in range(40):
        await anyio.lowlevel.checkpoint()


async def served(
    sessions: Sessions, session: str, caller: Caller, run: Callable[[Server], Awaitable[None]]
) -> None:
    """Run with a client of a server."""
    async with Client(build_server(sessions)) as client:
        await run(Server(sessions, client, Operations(sessions), session, caller))


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    ("caller", "call"),
    [pytest.param(ME, name, id=f"agent-{name}") for name in CALLS]
    + [pytest.param(Caller(principal=OPERATOR), name, id=f"operator-{name}") for name in OPERATED],
)
@pytest.mark.parametrize(("kind", "moment"), MOMENTS)
async def test_a_call_waits_for_the_world_and_then_happens_once(  # the matrix
    tmp_path: Path, kind: str, moment: str, caller: Caller, call: str
) -> None:
    """Every call at every moment: it sees what the record says, and the end has all of it once."""
    run, said, written = (CALLS if caller is ME else OPERATED)[call]
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = slates(moments, replayable=kind == "replayed")
    replies: list[str] = []

    async def check(server: Server) -> None:
        async def reply() -> None:
            replies.append(str(await run(server)))

        async with anyio.create_task_group() as group:
            group.start_soon(server.find)
            await moments.arrived.wait()
            group.start_soon(reply)
            await a_while()
            assert replies == [], "it waits"
            moments.go_on.set()
        assert said in replies[0]
        found = await server.sessions.find(server.session, caller)
        assert isinstance(found, Session)
        if found.receipt is None:
            await found.respond("done")
        assert found.receipt is not None
        if call not in {"cancel", "conclude"}:
            assert (found.receipt.outcome, found.receipt.reward) == (Outcome.GRADED, 1.0)
            words = f"tea milk {written}".strip()
            assert str(found.receipt.content).partition(";")[0] == words
        steps = (await record(server.sessions, found.trajectory_id)).steps
        assert [s.index for s in steps] == list(range(len(steps)))

    with anyio.fail_after(BOUND_S):
        session, _ = await left_behind(store, env, caller)
        moments.hold(moment)
        async with registry(store, env) as sessions:
            await served(sessions, session, caller, check)


@pytest.mark.parametrize(("kind", "moment"), [*MOMENTS, ("replayed", "none"), ("kept", "none")])
async def test_calls_at_once_happen_in_the_order_in_which_they_came(
    tmp_path: Path, kind: str, moment: str
) -> None:
    """Twenty words and the answer in one instant: the work is whole when it is graded."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = slates(moments, replayable=kind == "replayed")
    words = [f"w{i}" for i in range(20)]

    async def check(server: Server) -> None:
        async with anyio.create_task_group() as group:
            for word in words:
                group.start_soon(partial(server.tool, "act", **typed(word)))
            group.start_soon(partial(server.tool, "response", answer="done"))
            if moment != "none":
                await moments.arrived.wait()
                await a_while()
                moments.go_on.set()
        receipt = (await server.find()).receipt
        assert receipt is not None
        assert (receipt.outcome, receipt.reward) == (Outcome.GRADED, 1.0)
        assert receipt.content == f"tea milk {' '.join(words)}; done"

    with anyio.fail_after(BOUND_S):
        session, _ = await left_behind(store, env)
        moments.hold(moment)
        async with registry(store, env) as sessions:
            await served(sessions, session, ME, check)


@pytest.mark.long
async def test_who_comes_as_it_is_ready_is_not_let_in_before_those_who_wait(
    tmp_path: Path,
) -> None:
    """An answer that arrives in any turn of the loop around that moment is behind the step."""
    store = tmp_path / "s.sqlite3"
    with anyio.fail_after(BOUND_S):
        for turns in range(12):
            moments = Moments()
            env = slates(moments)
            session, _ = await left_behind(store, env)
            moments.hold("look")
            async with registry(store, env) as sessions:

                async def step(sessions: Sessions = sessions, session: str = session) -> None:
                    found = await sessions.find(session, ME)
                    assert isinstance(found, Session)
                    await found.step((TypeAction(text="honey"),), Look())

                async with anyio.create_task_group() as group:
                    group.start_soon(step)
                    await moments.arrived.wait()
                    moments.go_on.set()
                    here = sessions.roster.get(digest(session))
                    while here.state == "resuming":
                        await anyio.lowlevel.checkpoint()
                    for _ in range(turns):
                        await anyio.lowlevel.checkpoint()
                    found = sessions.here(session, ME) or await sessions.find(session, ME)
                    assert found is here
                    await here.respond("done")
                assert here.receipt is not None
                assert here.receipt.content == "tea milk honey; done", turns


async def test_a_caller_who_leaves_does_nothing_and_ends_nothing(tmp_path: Path) -> None:
    """Its call never happens; what it had begun to wait for goes on, for others too."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = slates(moments)
    with anyio.fail_after(BOUND_S):
        session, trajectory = await left_behind(store, env)
        moments.hold("act 1")
        async with registry(store, env) as sessions:

            async def write() -> None:
                found = await sessions.find(session, ME)
                assert isinstance(found, Session)
                await found.step((TypeAction(text="never"),), Look())

            async with anyio.create_task_group() as staying:
                async with anyio.create_task_group() as leaving:
                    leaving.start_soon(write)
                    leaving.start_soon(write)
                    await moments.arrived.wait()
                    staying.start_soon(sessions.find, session, ME)
                    await a_while()
                    leaving.cancel_scope.cancel()
                moments.go_on.set()
            found = await sessions.find(session, ME)
            assert isinstance(found, Session)
            receipt = await found.respond("done")
            assert receipt is not None
            assert receipt.content == "tea milk; done"
            assert len((await record(sessions, trajectory)).steps) == 3


@pytest.mark.parametrize("kind", ["asks", "fails", "breaks"])
async def test_all_who_wait_are_told_the_same_where_it_cannot_come_back(
    tmp_path: Path, kind: str
) -> None:
    """Nobody hangs, nothing happens, and the record has one reason."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = slates(moments)
    told: list[str] = []
    with anyio.fail_after(BOUND_S):
        session, trajectory = await left_behind(store, env)
        other = slates(moments)
        spec: Any = other.world
        if kind == "asks":
            other.templates["fill"].run = _asking_another  # type: ignore[index, method-assign]
        spec.open = {"asks": spec.open, "fails": _cannot_open, "breaks": _broken(moments)}[kind]
        async with registry(store, other) as sessions:

            async def write() -> None:
                try:
                    found = await sessions.find(session, ME)
                    assert isinstance(found, Session)
                    await found.step((TypeAction(text="never"),), Look())
                except SessionEnded as exc:
                    told.append(str(exc))

            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(write)
            await write()
            found = await record(sessions, trajectory)
        assert len(told) == 6
        assert len(set(told)) == 1
        assert "This session was lost at" in told[0]
        assert (found.outcome, len(found.steps)) == (Outcome.LOST, 2)


async def _cannot_open(_opening: Any) -> Any:
    raise RuntimeError("no more slates")


def _broken(moments: Moments) -> Any:
    """A slate that breaks as it is written on again."""

    class Broken(Slate):
        async def act(self, _action: object) -> Any:
            raise EnvironmentFailed("It fell off the wall.")

    async def open_it(_opening: Any) -> Slate:
        return Broken(moments)

    return open_it


def _asking_another(*_args: Any) -> Any:
    async def run() -> Any:
        yield "Write something else."
        yield 1.0

    return run()


@pytest.mark.parametrize(("kind", "moment"), MOMENTS)
async def test_a_server_that_stops_in_the_middle_leaves_the_record_as_it_was(
    tmp_path: Path, kind: str, moment: str
) -> None:
    """Those who wait are told to call again; the next server goes on with all of it."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = slates(moments, replayable=kind == "replayed")
    told: list[str] = []
    with anyio.fail_after(BOUND_S):
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

    with anyio.fail_after(BOUND_S):
        async with registry(store, env) as first:
            begun = await first.start(first.mint("hurry", {}), caller=ME)
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
            await found.ended.wait()
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
    with anyio.fail_after(BOUND_S):
        async with registry(store, env) as first:
            begun = await first.start(first.mint("fill", {}), caller=ME)
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
                "conclude": lambda s: s.conclude(),
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

    with anyio.fail_after(BOUND_S):
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
        await anyio.sleep(1.6)  # the sweep comes by meanwhile
        return await taken(opening)

    with anyio.fail_after(BOUND_S):
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
            await found.ended.wait()
            assert (await record(sessions, trajectory)).outcome == Outcome.EXPIRED


@pytest.mark.long
async def test_two_servers_of_one_store_bring_a_session_back_once(tmp_path: Path) -> None:
    """One resumes it; the other says that it does, and does nothing in it."""
    moments, store = Moments(), tmp_path / "s.sqlite3"
    env = slates(moments)
    given: list[Any] = []
    with anyio.fail_after(BOUND_S):
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
    with anyio.fail_after(BOUND_S):
        async with registry(store, env) as sessions, registry(store, env) as other:
            me = Caller(connection="mine")
            begun = await sessions.start(sessions.mint("fill", {}), caller=me)
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

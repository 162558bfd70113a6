"""Nothing reaches a session that is resumed before its world is what its record says."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from bringing_back import ME, MOMENTS, Server, a_while, left_behind, record, served, typed
from slate import Moments, Slate, registry, slates
from waiting import PATIENCE_S

from hud_mcp.errors import (
    EnvironmentFailed,
    SessionEnded,
)
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.receipts import digest
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.values.action import TypeAction
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio


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


@pytest.mark.sampled(6)
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

    with anyio.fail_after(PATIENCE_S):
        session, _ = await left_behind(store, env, caller)
        moments.hold(moment)
        async with registry(store, env) as sessions:
            await served(sessions, session, caller, check)


@pytest.mark.sampled(4)
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

    with anyio.fail_after(PATIENCE_S):
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
    with anyio.fail_after(PATIENCE_S):
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
    with anyio.fail_after(PATIENCE_S):
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
    with anyio.fail_after(PATIENCE_S):
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

"""Worlds that move: each move happens once, at its step, and a resumed session repeats it there."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from slate import Moments, Slate, registry, slates
from waiting import PATIENCE_S

from hud_mcp.environment import Environment
from hud_mcp.errors import (
    BrokenByAgent,
    EnvironmentFailed,
    InvalidTemplate,
    LimitReached,
    SessionEnded,
)
from hud_mcp.plugins.view.export.columns import step_row
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.rollout.regrade import Regrader
from hud_mcp.server.app import build_server
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.spec import Limits
from hud_mcp.values.action import ResponseAction, TypeAction
from hud_mcp.values.grade import Grade, Outcome
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio
ME = Caller()

Declared = Callable[[Any], None]


def moving(declare: Declared, *, replayable: bool = True) -> Environment:
    """An environment of slates with one template more, whose moves a test declares."""
    env = slates(Moments(), replayable=replayable)

    @env.template()
    async def watch(slate: Slate, guest: str = "bee") -> Any:
        yield f"Write for {guest}."
        yield Grade(reward=float("honey" in slate.words), content=" ".join(slate.words))

    declare(watch)
    return env


def arrival(watch: Any) -> None:
    """Honey comes after the second step, and is told."""

    @watch.after(step=2)
    async def honey_comes(slate: Slate, guest: str) -> str:
        slate.words.append("honey")
        return f"The {guest} has brought something."


async def started(sessions: Sessions, **args: Any) -> Session:
    """A session of the template that moves."""
    return await sessions.start(sessions.catalogue.mint("watch", args), caller=ME)


async def write(session: Session, *words: str) -> Any:
    """Write words in one step."""
    return await session.step(tuple(TypeAction(text=word) for word in words), Look())


async def found(sessions: Sessions, session_id: str) -> Session:
    """The session, brought back if it has to be."""
    got = await sessions.find(session_id, ME)
    assert isinstance(got, Session)
    return got


async def recorded(sessions: Sessions, session: Session) -> Trajectory:
    """Its record."""
    return await sessions.store.load_trajectory(session.trajectory_id)


def happened(trajectory: Trajectory) -> list[tuple[int, str, bool]]:
    """What happened: the step, the move, and whether it came before the step's actions."""
    return [(s.index, e.move, e.first) for s in trajectory.steps for e in s.events]


async def test_a_move_after_a_step_is_seen_told_and_recorded_at_that_step(tmp_path: Path) -> None:
    """The second reply shows it and has its note; the first and the third do not."""
    async with registry(tmp_path / "s.sqlite3", moving(arrival)) as sessions:
        session = await started(sessions, guest="bear")
        replies = [await write(session, word) for word in ("a", "b", "c")]
        assert [r.result.observation.text for r in replies] == ["a", "a b honey", "a b honey c"]
        told = "The bear has brought something."
        assert [told in r.notes for r in replies] == [False, True, False]
        trajectory = await recorded(sessions, session)
        assert happened(trajectory) == [(1, "honey_comes", False)]
        assert trajectory.steps[1].events[0].text == told
        receipt = await session.respond("done")
        assert receipt is not None
        assert receipt.reward == 1.0


@pytest.mark.parametrize("replayable", [True, False], ids=["replayed", "restored"])
@pytest.mark.parametrize("after", [1, 2, 3])
async def test_a_resumed_session_repeats_a_move_at_its_step_and_once(
    tmp_path: Path, after: int, *, replayable: bool
) -> None:
    """A kill before the move, right after it, and later: one honey, in its place, told once."""
    store, env = tmp_path / "s.sqlite3", moving(arrival, replayable=replayable)
    words, notes = list("abcd"), list[str]()
    async with registry(store, env) as sessions:
        session = await started(sessions)
        for word in words[:after]:
            notes += (await write(session, word)).notes
    async with registry(store, env) as sessions:
        session = await found(sessions, session.id)
        for word in words[after:]:
            notes += (await write(session, word)).notes
        receipt = await session.respond("done")
        assert receipt is not None
        assert receipt.content == "a b honey c d"
        assert notes.count("The bee has brought something.") == 1
        assert happened(await recorded(sessions, session)) == [(1, "honey_comes", False)]


async def test_a_move_by_the_clock_is_repeated_at_its_step_and_not_by_the_clock(
    tmp_path: Path,
) -> None:
    """It came before the second step's actions; another process finds it there, though later."""
    calls: list[str] = []

    def declare(watch: Any) -> None:
        @watch.at(seconds=0.05)
        def rain(slate: Slate) -> None:
            calls.append("rain")
            slate.words.append("rain")

        @watch.at(seconds=3600)
        def snow(slate: Slate) -> None:
            slate.words.append("snow")

    store, env = tmp_path / "s.sqlite3", moving(declare)
    async with registry(store, env) as sessions:
        session = await started(sessions)
        await write(session, "a")
        await anyio.sleep(0.1)
        assert (await write(session, "b")).result.observation.text == "a rain b"
        await write(session, "c")
        assert happened(await recorded(sessions, session)) == [(1, "rain", True)]
    async with registry(store, env) as sessions:
        session = await found(sessions, session.id)
        assert (await write(session, "d")).result.observation.text == "a rain b c d"
        assert calls == ["rain", "rain"]


async def test_a_step_that_waits_sees_what_is_due_meanwhile(tmp_path: Path) -> None:
    """A move by the clock that falls due during the actions comes after them."""

    def declare(watch: Any) -> None:
        @watch.at(seconds=0.1)
        def rain(slate: Slate) -> str:
            slate.words.append("rain")
            return "It rains."

    moments = Moments()
    env = slates(moments)

    @env.template()
    async def watch(slate: Slate) -> Any:
        yield "Write."
        yield float(len(slate.words))

    declare(watch)
    async with registry(tmp_path / "s.sqlite3", env) as sessions:
        session = await started(sessions)
        moments.hold("act 0")
        async with anyio.create_task_group() as group:

            async def go_on() -> None:
                await moments.arrived.wait()
                await anyio.sleep(0.15)
                moments.go_on.set()

            group.start_soon(go_on)
            reply = await write(session, "a")
        assert reply.result.observation.text == "a rain"
        assert "It rains." in reply.notes


async def test_a_condition_is_asked_after_each_step_and_fires_once(tmp_path: Path) -> None:
    """It is asked until it holds, of the world and the arguments, and never again."""
    asked: list[int] = []

    def declare(watch: Any) -> None:
        def enough(slate: Slate, guest: str) -> bool:
            asked.append(len(slate.words))
            return guest in slate.words

        @watch.when(enough)
        async def guest_leaves(slate: Slate, **arguments: Any) -> str:
            slate.words.remove(arguments["guest"])
            return "It is gone."

    async with registry(tmp_path / "s.sqlite3", moving(declare)) as sessions:
        session = await started(sessions)
        seen = [(await write(session, w)).result.observation.text for w in ("a", "bee", "bee")]
        assert seen == ["a", "a", "a bee"]
        assert asked == [1, 2]
        trajectory = await recorded(sessions, session)
        assert happened(trajectory) == [(1, "guest_leaves", False)]


@pytest.mark.parametrize("kind", ["after", "at", "when", "condition"])
async def test_a_move_that_raises_is_the_environments_failure(tmp_path: Path, kind: str) -> None:
    """The record has file and line; the agent has a sentence; nobody has a reward."""

    def declare(watch: Any) -> None:
        def broken(slate: Slate) -> bool:
            if slate.words or kind == "at":
                raise KeyError("honey")
            return False

        if kind == "condition":
            watch.when(broken)(lambda slate: None)  # pyright: ignore[reportUnknownLambdaType]
        elif kind == "when":
            watch.when(lambda slate: True)(broken)  # pyright: ignore[reportUnknownLambdaType]
        else:
            watch.at(seconds=0)(broken) if kind == "at" else watch.after(step=1)(broken)

    async with registry(tmp_path / "s.sqlite3", moving(declare)) as sessions:
        session = await started(sessions)
        with pytest.raises(EnvironmentFailed) as told:
            await write(session, "a")
        assert __file__ not in str(told.value)
        await session.closed()
        receipt = session.receipt
        assert receipt is not None
        assert (receipt.outcome, receipt.reward) == (Outcome.ENVIRONMENT_FAILED, None)
        assert __file__ in str(receipt.error)
        assert "KeyError: 'honey'" in str(receipt.error)


async def test_an_answer_meets_the_moves_that_were_due_before_it(tmp_path: Path) -> None:
    """The clock goes on while an agent thinks; a step's number never makes its own answer late."""

    def declare(watch: Any) -> None:
        arrival(watch)

        @watch.at(seconds=0)
        def rain(slate: Slate) -> None:
            slate.words.append("rain")

    store, env = tmp_path / "s.sqlite3", moving(declare)
    async with registry(store, env) as sessions:
        session = await started(sessions)
        receipt = await session.respond("done")
        assert receipt is not None
        assert receipt.content == "rain"
        assert happened(await recorded(sessions, session)) == [(0, "rain", True)]
        other = await started(sessions)
        await write(other, "a")
        await other.step((TypeAction(text="b"), ResponseAction(text="done")), Look())
        await other.over()
        assert other.receipt is not None
        assert other.receipt.content == "rain a b"


@pytest.mark.long
async def test_a_regrade_repeats_what_happened_and_nothing_else(tmp_path: Path) -> None:
    """The end state has the honey at its place, and no move of a clock that runs again."""

    def declare(watch: Any) -> None:
        arrival(watch)

        @watch.at(seconds=1e6)
        def rain(slate: Slate) -> None:
            slate.words.append("rain")

    env = moving(declare)
    async with registry(tmp_path / "s.sqlite3", env) as sessions:
        session = await started(sessions)
        for word in "abc":
            await write(session, word)
        await session.respond("done")
        runs = await sessions.store.list_trajectories()
        tasks = {session.task.id: session.task}
        regrader = Regrader(sessions, tasks)
        done = await regrader.regrade(runs, max_concurrent=1, on_end=lambda _: None)
        assert [(d.outcome, d.reward) for d in done] == [("graded", 1.0)]
        copy = await sessions.store.load_trajectory(str(done[0].trajectory_id))
        assert copy.receipt is not None
        assert copy.receipt.content == "a b honey c"


async def test_a_move_that_the_agents_doing_prevents_is_recorded_and_the_run_goes_on(
    tmp_path: Path,
) -> None:
    """An agent cannot have its run leave the figures by standing in a move's way."""

    def declare(watch: Any) -> None:
        @watch.after(step=1)
        def honey_comes(slate: Slate) -> str:
            raise BrokenByAgent("The agent has locked the slate.")

    store, env = tmp_path / "s.sqlite3", moving(declare)
    async with registry(store, env) as sessions:
        session = await started(sessions)
        await write(session, "a")
        (event,) = (await recorded(sessions, session)).steps[0].events
        assert "locked" in str(event.error)
    async with registry(store, env) as sessions:
        receipt = await (await found(sessions, session.id)).respond("done")
        assert receipt is not None
        assert (receipt.outcome, receipt.reward) == (Outcome.GRADED, 0.0)


async def test_a_call_that_is_cancelled_does_not_cut_a_move_in_two(tmp_path: Path) -> None:
    """The move ends, is recorded at the step, and its note comes with the next reply."""
    going, go_on = anyio.Event(), anyio.Event()

    def declare(watch: Any) -> None:
        @watch.after(step=1)
        async def honey_comes(slate: Slate) -> str:
            slate.words.append("half")
            going.set()
            await go_on.wait()
            slate.words[-1] = "honey"
            return "Honey is here."

    async with registry(tmp_path / "s.sqlite3", moving(declare)) as sessions:
        session = await started(sessions)
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                group.start_soon(write, session, "a")
                await going.wait()
                group.cancel_scope.cancel()
                go_on.set()
        reply = await write(session, "b")
        assert reply.result.observation.text == "a honey b"
        assert "Honey is here." in reply.notes
        assert happened(await recorded(sessions, session)) == [(0, "honey_comes", False)]


async def test_a_call_that_takes_too_long_leaves_the_note_to_the_next_reply(tmp_path: Path) -> None:
    """The limit stops the call; the move stands, and is told once."""
    go_on = anyio.Event()

    def declare(watch: Any) -> None:
        @watch.after(step=1)
        async def honey_comes(slate: Slate) -> str:
            await go_on.wait()
            slate.words.append("honey")
            return "Honey is here."

    env = moving(declare)
    async with registry(tmp_path / "s.sqlite3", env, limits=Limits(step_s=0.2)) as sessions:
        session = await started(sessions)
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:

                async def late() -> None:
                    await anyio.sleep(0.4)
                    go_on.set()

                group.start_soon(late)
                with pytest.raises(LimitReached):
                    await write(session, "a")
            replies = [await write(session, word) for word in "bc"]
        assert [reply.notes.count("Honey is here.") for reply in replies] == [1, 0]


@pytest.mark.long
async def test_a_clients_replies_carry_the_note_and_its_resources_no_name_of_a_move(
    tmp_path: Path,
) -> None:
    """A step, an own tool and a picture each tell it; the names stay the operator's."""
    for name in ("step", "add", "screenshot"):
        async with registry(tmp_path / f"{name}.sqlite3", moving(arrival)) as sessions:
            session = await started(sessions)
            await write(session, "a")
            async with Client(build_server(sessions)) as client:
                args = {"session": session.id, **({"word": "b"} if name == "add" else {})}
                reply = await client.call_tool(name, args)
                assert not reply.is_error, reply.content
                text = "\n".join(c.text for c in reply.content if c.type == "text")
                assert "The bee has brought something." in text
                uri = f"hud://sessions/{session.id}/trajectory"
                seen = str((await client.read_resource(uri)).contents[0])
                assert "honey_comes" not in seen


async def test_people_see_what_happened_at_its_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A transcript and a row of Parquet name the move; the row has its note."""
    async with registry(tmp_path / "s.sqlite3", moving(arrival)) as sessions:
        session = await started(sessions)
        for word in "ab":
            await write(session, word)
        trajectory = await recorded(sessions, session)
    trajectory.display()
    assert "honey_comes" in capsys.readouterr().out.partition("step 2")[2]
    (event,) = json.loads(step_row(trajectory, trajectory.steps[1], None)["events_json"])
    assert event["text"] == "The bee has brought something."


async def test_a_record_with_a_move_that_is_gone_is_lost_and_never_graded(tmp_path: Path) -> None:
    """A world without what happened would be another world."""
    store = tmp_path / "s.sqlite3"
    async with registry(store, moving(arrival)) as sessions:
        session = await started(sessions)
        await write(session, "a")
        await write(session, "b")
    async with registry(store, moving(lambda _: None)) as sessions:
        with pytest.raises(SessionEnded, match="moves"):
            await sessions.find(session.id, ME)


WRONG: dict[str, tuple[Declared, str]] = {
    "an argument that the template lacks": (
        lambda t: t.after(step=1)(lambda slate, size: None),
        "asks for 'size'",
    ),
    "no world": (lambda t: t.after(step=1)(lambda: None), "receives the world"),
    "the step 0": (lambda t: t.after(step=0)(lambda slate: None), "from 1, got 0"),
    "a time before the prompt": (lambda t: t.at(seconds=-1)(lambda slate: None), "got -1"),
    "no condition": (lambda t: t.when("now")(lambda slate: None), "got 'now'"),
    "a name twice": (lambda t: (arrival(t), arrival(t)), "has a move 'honey_comes' already"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_move_is_refused_where_it_is_declared(name: str) -> None:
    """Its file and line, what was given, and what to write."""
    declare, said = WRONG[name]
    with pytest.raises(InvalidTemplate, match=said) as refused:
        moving(declare)
    assert __file__ in str(refused.value)

"""Worlds that die in the middle of a session: undone, brought back, or the agent's doing."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from dying import LOOK, Faults, Gated, Slate, add, begin, registry, slates
from waiting import PATIENCE_S

from hud_mcp.errors import (
    BrokenByAgent,
    EnvironmentFailed,
    SessionEnded,
    WorldDied,
)
from hud_mcp.server.results import receipt_text, receipt_view
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.store import Store
from hud_mcp.values.grade import Cause, Outcome

pytestmark = pytest.mark.anyio


def once(name: str) -> Callable[[str, Slate], None]:
    """A fault that breaks the slate the first time that an action of this name is done."""
    left = [name]

    def fail(given: str, slate: Slate) -> None:
        if given in left:
            left.remove(given)
            slate.broken = "The slate fell."
            raise EnvironmentFailed("The slate fell.")

    return fail


def always(*names: str) -> Callable[..., None]:
    """A fault that breaks the slate at every action of these names."""

    def fail(given: str, slate: Slate) -> None:
        if given in names:
            slate.broken = "The slate fell."
            slate.check()

    return fail


@pytest.mark.parametrize("replayable", [True, False], ids=["replayed", "restored"])
async def test_a_world_that_dies_once_is_back_as_it_was_and_the_call_is_undone(
    tmp_path: Path, *, replayable: bool
) -> None:
    """The call is refused in words, its step is performed 0 times, and the task goes on to 1.0."""
    faults = Faults(act=once("drop"))
    async with registry(tmp_path, faults, replayable=replayable) as sessions:
        session = await begin(sessions)
        await add(session, 1)
        with pytest.raises(WorldDied) as refused:
            await add(session, 2, "drop")
        said = str(refused.value)
        assert "The world of this session died: The slate fell. It has been restored" in said
        assert "What this call did is undone" in said
        assert session.state.shown == "open"
        assert await add(session, 2, "drop") == "[1, 2]"
        receipt = await session.respond("3")
        assert receipt is not None
        assert (receipt.outcome, receipt.reward, receipt.error) == (Outcome.GRADED, 1.0, None)
        record = await sessions.store.load_trajectory(session.trajectory_id)
    assert [step.performed for step in record.steps] == [1, 0, 1, 1]
    assert record.steps[1].undone
    assert "The slate fell." in (record.steps[1].error or "")
    assert "its world died: The slate fell." in (record.logs or "")
    assert faults.opened == 2


async def test_a_look_that_leaves_no_snapshot_costs_no_session(tmp_path: Path) -> None:
    """Looking changes nothing: the world comes back as the last action left it."""

    def fail(_slate: Slate) -> None:
        raise EnvironmentFailed("The camera is broken.")

    faults = Faults(act=once("drop"))
    async with registry(tmp_path, faults, replayable=False) as sessions:
        session = await begin(sessions)
        await add(session, 1)
        faults.snapshot = fail
        await session.step((), LOOK)
        with pytest.raises(WorldDied):
            await add(session, 2, "drop")
        faults.snapshot = lambda _slate: None
        assert await add(session, 3) == "[1, 3]"


async def test_a_world_that_dies_again_of_the_same_action_is_the_agents_doing(
    tmp_path: Path,
) -> None:
    """The second time ends the session: graded 0.0, cause agent, with the reason, in the record."""
    async with registry(tmp_path, Faults(act=always("drop"))) as sessions:
        session = await begin(sessions)
        with pytest.raises(WorldDied):
            await add(session, 2, "drop")
        with pytest.raises(SessionEnded, match=r"by its agent's doing: Its world died a second"):
            await add(session, 2, "drop")
        record = await sessions.store.load_trajectory(session.trajectory_id)
    receipt = record.receipt
    assert receipt is not None
    assert (receipt.outcome, receipt.reward, receipt.cause) == (Outcome.GRADED, 0.0, Cause.AGENT)
    assert "a second time of the same: The slate fell." in (receipt.error or "")
    assert [step.undone for step in record.steps] == [True, True]


async def test_the_second_death_is_counted_from_the_record_in_another_server(
    tmp_path: Path,
) -> None:
    """A server that resumes the session between the two deaths knows of the first."""
    async with registry(tmp_path, Faults(act=always("drop"))) as sessions:
        session = await begin(sessions)
        session_id = session.id
        with pytest.raises(WorldDied):
            await add(session, 2, "drop")
    async with registry(tmp_path, Faults(act=always("drop"))) as sessions:
        found = await sessions.find(session_id, Caller(connection="d"))
        assert isinstance(found, Session)
        with pytest.raises(SessionEnded, match="by its agent's doing"):
            await add(found, 2, "drop")


async def test_other_ways_to_break_the_world_in_a_row_are_the_agents_doing_too(
    tmp_path: Path,
) -> None:
    """Two actions that take turns do not keep a session alive for ever."""
    async with registry(tmp_path, Faults(act=always("drop", "throw"))) as sessions:
        session = await begin(sessions)
        for name in ("drop", "throw"):
            with pytest.raises(WorldDied):
                await add(session, 1, name)
        with pytest.raises(SessionEnded, match="by its agent's doing"):
            await add(session, 1, "drop")


async def test_a_replay_that_the_last_action_kills_again_is_the_agents_doing(
    tmp_path: Path,
) -> None:
    """What was performed, and broke the world later, breaks it again: graded 0.0, cause agent."""

    def fail(name: str, slate: Slate) -> None:
        if name == "mine" and faults.opened > 1:
            slate.broken = "The slate blew up."
            slate.check()

    faults = Faults(act=fail)
    async with registry(tmp_path, faults) as sessions:
        session = await begin(sessions)
        await add(session, 1)
        await add(session, 2, "mine")
        session.direct_world().broken = "The slate blew up."  # type: ignore[attr-defined]
        with pytest.raises(SessionEnded, match="by its agent's doing"):
            await add(session, 3)
        receipt = session.receipt
        assert receipt is not None
        assert (receipt.reward, receipt.cause) == (0.0, Cause.AGENT)


async def test_a_replay_that_an_earlier_action_kills_is_the_machines(tmp_path: Path) -> None:
    """A world that cannot come back is `environment_failed`, cause machine, and no reward."""

    def fail(name: str, slate: Slate) -> None:
        if name == "mine" and faults.opened > 1:
            slate.broken = "The slate blew up."
            slate.check()

    faults = Faults(act=fail)
    async with registry(tmp_path, faults) as sessions:
        session = await begin(sessions)
        await add(session, 1, "mine")
        await add(session, 2)
        session.direct_world().broken = "The slate blew up."  # type: ignore[attr-defined]
        with pytest.raises(EnvironmentFailed, match="could not be resumed"):
            await add(session, 3)
        receipt = session.receipt
        assert receipt is not None
        assert (receipt.outcome, receipt.reward) == (Outcome.ENVIRONMENT_FAILED, None)
        assert receipt.cause is Cause.MACHINE


async def test_a_world_that_died_between_calls_is_held_against_nobody(tmp_path: Path) -> None:
    """However often somebody kills it before the same call, the session goes on to its grade."""
    async with registry(tmp_path, Faults()) as sessions:
        session = await begin(sessions)
        for _ in range(4):
            session.direct_world().broken = "It was killed."  # type: ignore[attr-defined]
            with pytest.raises(WorldDied, match="Nothing of this call was done"):
                await add(session, 5)
        assert await add(session, 5) == "[5]"
        receipt = await session.respond("5")
        assert receipt is not None
        assert receipt.reward == 1.0


async def test_only_looking_at_what_dies_is_held_against_nobody(tmp_path: Path) -> None:
    """A world that dies of every look, before anything was done in it, is the machine's."""

    def fail(slate: Slate) -> None:
        slate.broken = "The slate fell."
        slate.check()

    async with registry(tmp_path, Faults(look=fail)) as sessions:
        session = await begin(sessions)
        with pytest.raises(WorldDied):
            await session.step((), LOOK)
        with pytest.raises(EnvironmentFailed):
            await session.step((), LOOK)
        receipt = session.receipt
        assert receipt is not None
        assert (receipt.outcome, receipt.cause) == (Outcome.ENVIRONMENT_FAILED, Cause.MACHINE)


async def test_what_cannot_come_back_is_the_machines(tmp_path: Path) -> None:
    """A world without a replay or a snapshot ends its session when it dies."""

    def no_snapshot(_slate: Slate) -> None:
        raise BrokenByAgent("There is too much on it.")

    faults = Faults(act=always("drop"), snapshot=no_snapshot)
    async with registry(tmp_path, faults, replayable=False) as sessions:
        session = await begin(sessions)
        await add(session, 1)
        with pytest.raises(EnvironmentFailed):
            await add(session, 2, "drop")
        receipt = session.receipt
        assert receipt is not None
        assert receipt.reward is None
        assert (receipt.outcome, receipt.cause) == (Outcome.ENVIRONMENT_FAILED, Cause.MACHINE)


async def test_a_call_that_comes_while_the_world_is_brought_back_waits_for_it(
    tmp_path: Path,
) -> None:
    """Calls at once with the one under which it died are refused, or see the world as it was."""
    faults = Faults(act=once("drop"))
    async with registry(tmp_path, faults) as sessions:
        session = await begin(sessions)
        await add(session, 1)
        seen: list[str] = []

        async def call(name: str, number: int) -> None:
            try:
                seen.append(await add(session, number, name))
            except WorldDied as exc:
                seen.append(str(exc))

        async with anyio.create_task_group() as group:
            for i in range(4):
                group.start_soon(call, "drop" if i == 0 else "add", 10 + i)
        assert len(seen) == 4
        assert sum("world of this session died" in text for text in seen) >= 1
        assert all(text.startswith(("[1", "The world of this session died")) for text in seen)
        world = session.direct_world()
        assert isinstance(world, Slate)
        numbers = list(world.numbers)
        receipt = await session.respond(str(sum(numbers)))
        assert receipt is not None
        assert receipt.reward == 1.0
        record = await sessions.store.load_trajectory(session.trajectory_id)
    added = [s for s in record.steps[:-1] if s.performed]
    done = [s.actions[0]["args"]["number"] for s in added]
    assert done == numbers, "what is in the world is what the record says"


@pytest.mark.parametrize("end", ["cancel", "close"])
async def test_a_session_can_be_ended_while_its_world_is_brought_back(
    tmp_path: Path, end: str
) -> None:
    """A cancelled one has that outcome; one whose server stops goes on in the next one."""
    world = Gated(Faults(act=once("drop")))
    sessions = Sessions([slates(world)], store=Store(tmp_path / "s.sqlite3"))
    said: list[str] = []
    with anyio.fail_after(PATIENCE_S):
        session = await begin(sessions)
        await add(session, 1)

        async def call() -> None:
            try:
                await add(session, 2, "drop")
            except (SessionEnded, WorldDied) as exc:
                said.append(str(exc))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await world.waits.wait()
            assert session.is_busy
            if end == "cancel":
                await session.cancel()
            else:
                await sessions.close()
        (told,) = said
        if end == "cancel":
            assert session.receipt is not None
            assert (session.receipt.outcome, session.receipt.cause) == ("cancelled", Cause.AGENT)
            assert "was cancelled" in told
            await sessions.close()
            return
        assert "The session waits in its record" in told
    async with registry(tmp_path, Faults()) as later:
        found = await later.find(session.id, Caller(connection="d"))
        assert isinstance(found, Session)
        assert await add(found, 2) == "[1, 2]"


async def test_a_death_leaves_what_others_hold_of_the_session_as_it_was(tmp_path: Path) -> None:
    """Whoever holds the session, holds the one that goes on: id, prompt, seed and start."""
    async with registry(tmp_path, Faults(act=once("drop"))) as sessions:
        session = await begin(sessions)
        before = (session.id, session.prompt, session.spec.started_at, session.trajectory_id)
        with pytest.raises(WorldDied):
            await add(session, 2, "drop")
        found = await sessions.find(session.id, Caller(connection="c"))
        assert found is session
        assert (
            session.id,
            session.prompt,
            session.spec.started_at,
            session.trajectory_id,
        ) == before


async def test_a_death_is_not_answered_with_a_reward_where_rewards_are_hidden(
    tmp_path: Path,
) -> None:
    """The agent learns why its session is over, and of no number."""
    async with registry(tmp_path, Faults(act=always("drop")), policy="hidden") as sessions:
        session = await begin(sessions)
        with pytest.raises(WorldDied):
            await add(session, 2, "drop")
        with pytest.raises(SessionEnded) as told:
            await add(session, 2, "drop")
        receipt = session.receipt
    assert receipt is not None
    for said in (str(told.value), receipt_text(receipt, "hidden", "")):
        assert "Its world died a second time" in said
        assert "reward" not in said
        assert "0.0" not in said
    assert "reward" not in receipt_view(receipt, "hidden")
    shown = receipt_text(receipt, "on_submit", "")
    assert shown.startswith("Graded: reward 0, by the agent's doing.")

"""Answers to worlds that are dead, hang, or die as they are graded."""

import asyncio
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from dying import LOOK, Faults, Slate, SlateSpec, add, answer, begin, registry
from waiting import PATIENCE_S

from hud_mcp.environment import Environment
from hud_mcp.errors import (
    AlreadyAnswered,
    BrokenByAgent,
    EnvironmentFailed,
    GraderFailed,
    SessionEnded,
)
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store
from hud_mcp.values.action import CustomAction
from hud_mcp.values.grade import Cause

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("way", ["response", "step"])
async def test_a_world_that_knows_its_agent_has_ended_it_is_graded_as_its_doing(
    tmp_path: Path, way: str
) -> None:
    """It cannot come back and says whose doing that is, call after call, until it is answered."""

    def gone(_name: str, slate: Slate) -> None:
        if slate.numbers:
            raise BrokenByAgent("The slate is in pieces.")

    def look(slate: Slate) -> None:
        gone("", slate)

    faults = Faults(act=gone, look=look, snapshot=look)
    async with registry(tmp_path, faults, replayable=False) as sessions:
        session = await begin(sessions)
        await session.step((CustomAction(action="add", args={"number": 4}),), LOOK)
        for _ in range(4):
            stepped = await session.step((CustomAction(action="add", args={"number": 5}),), LOOK)
            assert "The slate is in pieces." in (stepped.error or "")
        receipt = await answer(session, "4", way)
    assert (receipt.outcome, receipt.reward, receipt.cause) == ("graded", 0.0, "agent")
    assert receipt.content == "The slate is in pieces."


@pytest.mark.parametrize("way", ["response", "step"])
async def test_an_answer_is_taken_where_the_agent_has_made_looking_impossible(
    tmp_path: Path, way: str
) -> None:
    """It is graded 0.0, cause agent, with the world's reason; the answer's step has no text."""

    def broken(slate: Slate) -> None:
        if slate.numbers:
            raise BrokenByAgent("The slate's frame is gone.")

    async with registry(tmp_path, Faults(look=broken)) as sessions:
        session = await begin(sessions)
        stepped = await session.step((CustomAction(action="add", args={"number": 4}),), LOOK)
        assert "What was done stands" in (stepped.error or "")
        receipt = await answer(session, "4", way)
        assert (receipt.outcome, receipt.reward, receipt.cause) == ("graded", 0.0, "agent")
        assert receipt.content == "The slate's frame is gone."
        assert "The slate's frame is gone." in (receipt.error or "")
        record = await sessions.store.load_trajectory(session.trajectory_id)
    assert record.steps[-1].observation_text is None
    assert "The observation at the answer failed" in (record.steps[-1].error or "")


@pytest.mark.parametrize("way", ["response", "step"])
async def test_an_answer_is_taken_by_a_world_whose_look_hangs(tmp_path: Path, way: str) -> None:
    """It is handed over within seconds, and the template grades what it can see."""

    def hang(slate: Slate) -> None:
        faults.hangs = bool(slate.numbers) and not graded.is_set()
        graded.set()

    graded = asyncio.Event()
    faults = Faults()
    async with registry(tmp_path, faults, step_s=2) as sessions:
        session = await begin(sessions)
        await add(session, 4)
        faults.look = hang
        with anyio.fail_after(PATIENCE_S):
            receipt = await answer(session, "4", way)
        assert receipt.reward == 1.0
        record = await sessions.store.load_trajectory(session.trajectory_id)
    assert "it took longer than 0.5 s" in (record.steps[-1].error or "")


async def test_a_snapshot_that_fails_or_hangs_does_not_stop_an_answer(tmp_path: Path) -> None:
    """It costs durability alone, and the log says so."""

    def fail(_slate: Slate) -> None:
        raise EnvironmentFailed("The camera is broken.")

    async with registry(tmp_path, Faults(snapshot=fail), replayable=False) as sessions:
        session = await begin(sessions)
        await add(session, 4)
        receipt = await session.respond("4")
        assert receipt is not None
        assert receipt.reward == 1.0
        record = await sessions.store.load_trajectory(session.trajectory_id)
    assert "no snapshot after step 0: The camera is broken." in (record.logs or "")


@pytest.mark.parametrize("replayable", [True, False], ids=["replayed", "restored"])
@pytest.mark.parametrize("way", ["response", "step"])
async def test_an_answer_to_a_dead_world_is_graded_in_the_one_that_comes_back(
    tmp_path: Path, way: str, *, replayable: bool
) -> None:
    """Nobody has to give it again, and correct work is graded 1.0."""
    faults = Faults()
    async with registry(tmp_path, faults, replayable=replayable) as sessions:
        session = await begin(sessions)
        await add(session, 4)
        session.direct_world().broken = "It was killed."  # type: ignore[attr-defined]
        receipt = await answer(session, "4", way)
        assert (receipt.reward, receipt.error) == (1.0, None)
        with pytest.raises((SessionEnded, AlreadyAnswered)):
            await session.respond("5")
    assert faults.opened == 2


async def test_a_world_that_dies_as_it_is_graded_is_graded_again(tmp_path: Path) -> None:
    """Once: the second time it is the agent's doing, who filled it, and nobody's else."""
    for deaths, outcome, cause in ((1, 1.0, "agent"), (2, 0.0, "agent")):
        left = [deaths]

        def fail(slate: Slate, left: list[int] = left) -> None:
            if asyncio.current_task().get_name().startswith("driver") and left[0]:  # type: ignore[union-attr]
                left[0] -= 1
                slate.broken = "The slate fell."
                slate.check()

        async with registry(tmp_path, Faults(look=fail)) as sessions:
            session = await begin(sessions)
            await add(session, 4)
            receipt = await session.respond("4")
            assert receipt is not None
            assert (receipt.reward, receipt.cause) == (outcome, cause)
            assert (receipt.error is None) == (deaths == 1)


@pytest.mark.parametrize(
    ("how", "reward", "error"),
    [
        ("catches", 0.5, None),
        ("passes_on", 0.0, "The slate's frame is gone."),
        ("wraps", 0.0, "The slate's frame is gone."),
        ("groups", 0.0, "The slate's frame is gone."),
        ("fails_itself", None, "the grader's own bug"),
    ],
)
async def test_a_template_is_told_what_the_agent_broke_and_grades_what_there_is(
    tmp_path: Path, how: str, reward: float | None, error: str | None
) -> None:
    """Its own grade is an ordinary one; what it does not catch is 0.0; its own fault none."""

    def broken(slate: Slate) -> None:
        if slate.numbers:
            raise BrokenByAgent("The slate's frame is gone.")

    env = Environment("slates", world=SlateSpec(Faults(look=broken), replayable=True))

    @env.template(id="sum")
    async def total(slate: Slate):  # noqa: ANN202
        yield "Fill the slate."
        try:
            if how == "groups":
                async with anyio.create_task_group() as group:
                    group.start_soon(slate.observe, LOOK)
            await slate.observe(LOOK)
        except BrokenByAgent as exc:
            if how == "passes_on":
                raise
            if how == "wraps":
                raise GraderFailed("The grader cannot run.") from exc
            if how == "fails_itself":
                raise ValueError("the grader's own bug") from exc
        yield 0.5

    sessions = Sessions([env], store=Store(tmp_path / "s.sqlite3"))
    with anyio.fail_after(PATIENCE_S):
        session = await begin(sessions)
        await session.step((CustomAction(action="add", args={"number": 4}),), LOOK)
        with suppress(SessionEnded):
            await session.respond("4")
        receipt = session.receipt
        await sessions.close()
    assert receipt is not None
    failed = reward is None
    assert receipt.outcome == ("grading_failed" if failed else "graded")
    assert receipt.reward == reward
    assert receipt.cause is (Cause.MACHINE if failed else Cause.AGENT)
    assert receipt.is_by_agent == (reward == 0.0)
    assert (receipt.error or "").endswith(error or "")
    assert (error is None) == (receipt.error is None)

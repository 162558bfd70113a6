"""A grading that failed is made again from the same answer, and its facts are columns."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from bringing_back import ME
from slate import Moments, registry, slates
from waiting import PATIENCE_S

from hud_mcp.environment import Environment
from hud_mcp.errors import EnvironmentFailed, SessionEnded
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt
from hud_mcp.session.session import Session
from hud_mcp.session.spec import Limits
from hud_mcp.task import Task
from hud_mcp.values.action import TypeAction
from hud_mcp.values.grade import Cause, Outcome
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio

TASK = Task(id="fill", env="slates", template="fill")
PROSE = (
    "refused while the machine was overloaded, which took 9.0 of 9.1 s",
    "its answer is graded again, as its server ended before it had a grade",
    "its world died before it had a grade; it is brought back, and graded again",
    "its server was stopped, and the session waits in its record",
)
"""Lines of a log that a tool may print for its agent."""


class Unsteady(Moments):
    """Raises as it grades, so often; and counts what is done."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)
        self.seen: list[str] = []

    async def pass_by(self, moment: str) -> None:
        """Count it, and raise where that is due."""
        self.seen.append(moment)
        if moment == "grade" and self.errors:
            raise self.errors.pop(0)
        await super().pass_by(moment)


async def graded(store: Path, env: Environment, **limits: Any) -> tuple[Receipt | None, Trajectory]:
    """Do the task, answer, and return how it ended."""
    with anyio.fail_after(PATIENCE_S):
        async with registry(store, env, limits=Limits(**limits)) as sessions:
            session = await sessions.start(TASK, caller=ME)
            for word in ("tea", "milk"):
                await session.step((TypeAction(text=word),), Look())
            try:
                receipt = await session.respond("done")
            except SessionEnded:
                receipt = session.receipt
            await session.closed()
            return receipt, await sessions.store.load_trajectory(session.trajectory_id)


@pytest.mark.parametrize("replayable", [True, False], ids=["replayed", "kept"])
@pytest.mark.parametrize("error", [OSError("no route"), EnvironmentFailed("no room")], ids=str)
async def test_a_grading_that_failed_once_is_made_again_from_the_same_answer(
    tmp_path: Path, error: Exception, *, replayable: bool
) -> None:
    """The agent does nothing again: its steps are repeated or its world restored."""
    moments = Unsteady(error)
    receipt, record = await graded(tmp_path / "s", slates(moments, replayable=replayable))
    assert receipt is not None
    assert (receipt.outcome, receipt.reward) == (Outcome.GRADED, 1.0)
    assert receipt.content == "tea milk; done"
    assert [step.kind for step in record.steps] == ["step", "step", "response"]
    assert moments.seen.count("grade") == 2
    assert str(error) in (record.logs or "")


@pytest.mark.parametrize("kind", [KeyError, EnvironmentFailed])
async def test_a_grading_that_fails_twice_stands_and_no_agent_tries_again(
    tmp_path: Path, kind: type[Exception]
) -> None:
    """It is a failed grading, whatever it raised: what the agent left may be what broke it."""
    moments = Unsteady(*(kind("first"), kind("second"), kind("third")))
    receipt, record = await graded(tmp_path / "s", slates(moments))
    assert receipt is not None
    assert (receipt.outcome, receipt.reward, receipt.cause) == (
        Outcome.GRADING_FAILED,
        None,
        Cause.MACHINE,
    )
    assert "second" in (receipt.error or "")
    assert moments.seen.count("grade") == 2
    assert not receipt.outcome.tried_again
    assert len(record.steps) == 3


async def test_a_world_that_cannot_come_back_leaves_the_failure_as_it_was(tmp_path: Path) -> None:
    """Its first error is told, and not that it could not be graded again."""

    class Sealed(Unsteady):
        async def pass_by(self, moment: str) -> None:
            if moment == "setup" and "grade" in self.seen:
                raise RuntimeError("the setup works once")
            await super().pass_by(moment)

    receipt, _ = await graded(tmp_path / "s", slates(Sealed(KeyError("the first"))))
    assert receipt is not None
    assert receipt.outcome is Outcome.GRADING_FAILED
    assert "the first" in (receipt.error or "")


@pytest.mark.parametrize("log_lines", [0, 1, 10_000])
async def test_an_answer_whose_servers_end_as_they_grade_it_is_graded_three_times(
    tmp_path: Path, log_lines: int
) -> None:
    """However full its log is, and whatever was printed there."""
    moments, limits = Moments(), Limits(log_lines=log_lines)
    env = slates(moments)
    session_id = ""
    with anyio.fail_after(PATIENCE_S):
        for _ in range(3):
            moments.hold("grade")
            async with registry(tmp_path / "s", env, limits=limits) as sessions:
                if not session_id:
                    begun = await sessions.start(TASK, caller=ME)
                    session_id = begun.id
                    for line in PROSE:
                        begun.journal.log(line)
                    async with anyio.create_task_group() as group:
                        group.start_soon(_answer, begun)
                        await moments.arrived.wait()
                        await sessions.close()
                else:
                    assert isinstance(await sessions.find(session_id, ME), Session)
                    await moments.arrived.wait()
        moments.hold("nothing")
        async with registry(tmp_path / "s", env, limits=limits) as sessions:
            with pytest.raises(SessionEnded, match="each of the 3 times"):
                await sessions.find(session_id, ME)


async def _answer(session: Session) -> None:
    with pytest.raises(SessionEnded):
        await session.respond("done")


async def test_what_is_printed_decides_nothing(tmp_path: Path) -> None:
    """Lines as the server's own, in the log of a session that is brought back."""
    moments = Moments()
    env = slates(moments)
    with anyio.fail_after(PATIENCE_S):
        async with registry(tmp_path / "s", env) as sessions:
            begun = await sessions.start(TASK, caller=ME)
            for line in PROSE * 3:
                begun.journal.log(line)
            await begun.step((TypeAction(text="tea"),), Look())
        async with registry(tmp_path / "s", env) as sessions:
            found = await sessions.find(begun.id, ME)
            assert isinstance(found, Session)
            receipt = await found.respond("done")
            stored = await sessions.store.load_session(begun.trajectory_id)
    assert receipt is not None
    assert (receipt.outcome, receipt.overloaded, receipt.notes) == (Outcome.GRADED, 0, ())
    assert not stored.facts.was_stopped, "it was brought back"
    assert (stored.facts.lost_gradings, stored.facts.died_in_grading) == (0, False)

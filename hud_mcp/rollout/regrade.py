"""Grade stored answers again, without their agent.

A run is regraded on a copy of its record, in a job of its own; the original does not change. Its
template runs to the prompt, and its world is brought to the recorded state, as after a server's
death.
"""

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import anyio

from hud_mcp.analysis.tries import outcome_class
from hud_mcp.base.lines import storable
from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.errors import HudMcpError, InvalidContext, InvalidTask
from hud_mcp.record.trajectory import Trajectory, TrajectorySummary
from hud_mcp.record.values import BEHIND, Receipt, TrajectoryStep, utc_now
from hud_mcp.session.caller import Caller
from hud_mcp.session.history import FINAL_RESPONSE, standing
from hud_mcp.session.receipts import digest
from hud_mcp.session.registry import Sessions
from hud_mcp.session.replay import can_resume, submitted_answer
from hud_mcp.session.session import Session
from hud_mcp.store import Store
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.values.grade import Outcome

logger = logging.getLogger(__name__)

NO_ANSWER = "no_answer"
"""No answer was submitted."""
NO_TASK = "no_task"
"""The given tasks have none of its id, or none that its environment takes."""
PRUNED = "pruned"
"""Its answer was removed from the store."""
NOT_REGRADED = "not_regraded"
"""The record could not be read or written."""
LIVE_WORLD = "needs_live_world"
"""Its grader needs a world, whose state cannot be reached again."""


@dataclass(frozen=True)
class Regraded:
    """The result of one regraded run: the new outcome, or one of the reasons above for none.

    Without a new record, `trajectory_id` is None. `reason` tells why it was not graded, or remarks
    on the new grade.
    """

    original: TrajectorySummary
    trajectory_id: str | None
    outcome: str
    reward: float | None
    reason: str | None

    @property
    def is_graded(self) -> bool:
        """Whether there is a new grade."""
        return self.outcome == Outcome.GRADED.value

    @property
    def has_changed(self) -> bool:
        """Whether the new reward differs from the original one."""
        return self.is_graded and self.reward != self.original.reward


class Regrader:
    """A grader of recorded runs by given tasks; the job of its sessions has the copies."""

    def __init__(self, sessions: Sessions, tasks: Mapping[str, Task]) -> None:
        self._sessions = sessions
        self._store: Store = sessions.store
        self._tasks = tasks

    async def regrade(
        self,
        runs: Sequence[TrajectorySummary],
        *,
        max_concurrent: int,
        on_end: Callable[[Regraded], None],
    ) -> list[Regraded]:
        """Grade the answers of runs again, in order.

        A run that cannot be graded is data, and raises nothing.
        """
        done: dict[str, Regraded] = {}
        limiter = anyio.Semaphore(max_concurrent)  # each may open a world

        async def one(run: TrajectorySummary) -> None:
            async with limiter:
                done[run.id] = await self._regrade_one(run)
                on_end(done[run.id])

        async with anyio.create_task_group() as group:
            for run in runs:
                group.start_soon(one, run)
        return [done[run.id] for run in runs]

    async def _regrade_one(self, run: TrajectorySummary) -> Regraded:
        try:
            if run.pruned is not None:
                return Regraded(run, None, PRUNED, None, f"Its answer is gone: {run.pruned}.")
            stored = _submitted(await self._store.load_session(run.id))
            if submitted_answer(stored.trajectory.steps) is None:
                text = f"It was {outcome_class(run)}, and had submitted no answer."
                return Regraded(run, None, NO_ANSWER, None, text)
            row = self._tasks.get(run.task_id)
            if row is None:
                return Regraded(run, None, NO_TASK, None, "No task has its id.")
            return await self._grade_copy(run, stored, row)
        except (InvalidTask, InvalidContext) as exc:
            return Regraded(run, None, NO_TASK, None, str(exc))
        except HudMcpError as exc:
            return Regraded(run, None, NOT_REGRADED, None, str(exc))

    async def _grade_copy(
        self, run: TrajectorySummary, stored: StoredSession, row: Task
    ) -> Regraded:
        recorded = stored.trajectory.task
        task = row.model_copy(
            update={
                # The end state was reached in this context, and under this seed.
                "context": recorded.context,
                "seed": recorded.seed,
                "metadata": {**row.metadata, "regrade_of": run.id},
            }
        )
        environment = self._sessions.catalogue.find_environment(task.env)
        task = environment.bind(task)
        template = environment.template_of(task)
        steps = stored.trajectory.steps
        if not template.needs_world:
            steps = _answer_alone(steps)  # no step before changed anything that it grades
        elif (reason := _why_not(environment, stored)) is not None:
            return Regraded(run, None, LIVE_WORLD, None, reason)
        copy = Trajectory(
            id=f"traj-{secrets.token_hex(8)}",
            job_id=self._sessions.job_id,
            environment=environment.name,
            environment_version=environment.version,
            task=task,
            context=environment.context_space.fill(task.context),
            seed=stored.trajectory.seed,
            started_at=utc_now(),
        )
        receipt, prompt = await self._grade(copy, environment, stored, steps)
        if receipt is None:
            text = "It has not ended; the record says more."
            return Regraded(run, copy.id, Outcome.GRADING_FAILED.value, None, text)
        outcome, reason = receipt.outcome.value, receipt.error
        if receipt.outcome is Outcome.LOST:
            outcome = LIVE_WORLD
        elif prompt is not None and prompt != stored.trajectory.prompt:
            reason = reason or "Its prompt is another one now than the one that was answered."
        return Regraded(run, copy.id, outcome, receipt.reward, reason)

    async def _grade(
        self,
        copy: Trajectory,
        environment: Environment,
        stored: StoredSession,
        steps: Sequence[TrajectoryStep],
    ) -> tuple[Receipt | None, str | None]:
        """Record the copy as a session before its grade, and resume it; return end and prompt."""
        session_id = f"sess-{secrets.token_hex(16)}"
        # The plan has the session first: what is not in it does not count.
        if copy.job_id is not None:
            await self._store.plan_run(copy.job_id, digest(session_id))
        await self._store.add_session(
            copy,
            secret_digest=digest(session_id),
            principal=None,
            reward_policy=stored.reward_policy,
            environment_digest=environment.digest,
        )
        said = f"the answer of {stored.trajectory.id}, graded again"
        await self._store.add_logs(copy.id, [(utc_now(), said)])
        for step in steps:
            # Only the last step answers, and only it may carry the snapshot of the end.
            last = step is steps[-1]
            await self._store.add_step(
                copy.id,
                step,
                answers=last,
                snapshot=stored.snapshot if last and stored.snapshot_step == step.index else None,
            )
        prompt: str | None = None
        try:
            found = await self._sessions.find(session_id, Caller())
            if isinstance(found, Session):
                prompt = storable(found.prompt.text) if found.prompt else None
                await found.closed()
                await found.flush_end()
        except HudMcpError as exc:
            logger.info("%s: %s", copy.id, exc)
        ended = await self._store.find_session(digest(session_id), principal=None)
        return (None if ended is None else ended[1]), prompt


def _submitted(stored: StoredSession) -> StoredSession:
    """Return a record whose last step submits the answer, also if its operator graded it.

    The operator's own measurements are left out: the grade is of the world then, and of the kept
    answer or an empty one.
    """
    steps = stored.trajectory.steps
    own = [i for i, s in enumerate(steps) if s.kind == "evaluate" and not s.info.get("override")]
    if stored.trajectory.outcome is not Outcome.GRADED or not own:
        return stored
    measured = steps[own[-1]]
    answer, kept = "", list[TrajectoryStep]()
    for step in steps[: own[-1]]:
        if step.kind == "evaluate":
            continue
        # A new beginning has no answer yet.
        answer = "" if step.kind == "reset" else step.info.get(FINAL_RESPONSE, answer)
        info = {name: value for name, value in step.info.items() if name != FINAL_RESPONSE}
        kept.append(step.model_copy(update={"index": len(kept), "info": info}))
    if submitted_answer(kept) != answer:
        action = {"type": "response", "text": answer}
        update = {"index": len(kept), "kind": "response", "actions": (action,), "performed": 1}
        kept.append(measured.model_copy(update={**update, "info": {}}))
    # Then the snapshot shows another world.
    changed_since = any(step.kind not in ("evaluate", "response") for step in steps[own[-1] :])
    at_end = stored.snapshot_step == steps[-1].index and not changed_since
    where = stored.snapshot_step if stored.snapshot_step == BEHIND else -1
    return replace(
        stored,
        trajectory=stored.trajectory.model_copy(update={"steps": tuple(kept)}),
        snapshot_step=kept[-1].index if at_end else where,
        snapshot=stored.snapshot if at_end else None,
    )


def _answer_alone(steps: Sequence[TrajectoryStep]) -> Sequence[TrajectoryStep]:
    """Return the answer, after the words of its conversation."""
    words, last = [s for s in steps[:-1] if s.kind in ("message", "user")], steps[-1]
    if last.kind != "message":
        update = {"kind": "response", "actions": [last.actions[last.performed - 1]]}
        last = last.model_copy(update={**update, "performed": 1, "observation_text": None})
    return [s.model_copy(update={"index": i, "events": ()}) for i, s in enumerate((*words, last))]


def _why_not(environment: Environment, stored: StoredSession) -> str | None:
    """Return the reason why a world cannot reach the end of its record; None if it may."""
    steps = standing(stored.trajectory.steps)
    acted = [step for step in steps if step.kind != "response"]
    tools = [str(step.actions[0].get("tool")) for step in steps if step.kind == "tool"]
    # Some tools act outside of the world.
    unrepeatable = [
        name
        for name in tools
        if name in environment.tools and not environment.tools[name].replayable
    ]
    direct = stored.snapshot_step == BEHIND or any(step.kind == "direct" for step in steps)
    snapshot_step = stored.snapshot_step if stored.snapshot is not None else None
    changed = max((step.index + 1 for step in steps if step.changes_world), default=0)
    last = changed if acted or direct else 0
    if can_resume(
        last,
        snapshot_step,
        replayable=environment.replays(stored.trajectory.task),
        tools_replay=not unrepeatable and not direct,
    ):
        return None
    if unrepeatable:
        return f"The tool {unrepeatable[0]!r} was called, which must not run twice."
    if direct:
        return "Its agent used its world directly, and there is no snapshot of the end."
    return "Its world can neither be replayed nor restored."

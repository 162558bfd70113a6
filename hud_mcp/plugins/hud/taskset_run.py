"""`Task.run` and `Taskset.run`: run an agent of the HUD SDK's newer releases through tasks.

Such an agent is called with a live `Run`. It reads `run.prompt`, works through `run.client`, and
leaves its answer in `run.trace.content`.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import anyio

from hud_mcp.base.contention import Contention
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, InvalidTask
from hud_mcp.plugins.hud.runtimes import LocalRuntime, Placement, Runtime, started_by
from hud_mcp.plugins.hud.wire.client import ChannelClient
from hud_mcp.plugins.hud.wire.hud_session import PRINCIPAL
from hud_mcp.plugins.hud.wire.streams import Place
from hud_mcp.record.job import Job
from hud_mcp.record.run import Run, RunGrade, RunStep
from hud_mcp.record.values import Receipt, utc_now
from hud_mcp.rollout.run import FirstSigns, PlannedRun, Rollout, plan_runs
from hud_mcp.rollout.trusted import (
    TrustedJob,
    end_as_lost,
    plan_trusted,
    recorded_runs,
    resume_trusted,
)
from hud_mcp.session.receipts import digest
from hud_mcp.store import Store
from hud_mcp.values.outcome import INTERRUPTED, NOT_BEGUN, Cause, Outcome, OutcomeClass

logger = logging.getLogger(__name__)

_CANCEL_S = 10.0
_GRADE_S = 5.0
"""Seconds for an answer in grading if the program is interrupted."""
_CUT_OFF = "Its run was stopped, or took longer than it may."
_ENDS: Mapping[str, OutcomeClass] = {
    "connecting": NOT_BEGUN,
    "starting": Outcome.ENVIRONMENT_FAILED,
    "agent loop": INTERRUPTED,
    "grading": Outcome.GRADING_FAILED,
}
"""The outcome of a run without a grade and without a record here, by its last phase."""


class ChannelTry:
    """One run from its start to its grade; `run` is the agent's argument, and the result.

    `contention` is the time that the machine takes, which is added to the agent's bound. `bound_s`
    are the seconds after which the run is cancelled.
    """

    server_lost: str | None = None

    def __init__(
        self, run: Run, planned: PlannedRun, contention: Contention, *,
        agent: Callable[[Run], Awaitable[Any]], place: Place, job: Job, store: Store,
        knows_rows: bool, bound_s: float | None,
    ) -> None:  # fmt: skip
        self.planned = planned
        self._run = run
        self._agent = agent
        self._place = place
        self._job = job
        self._store = store
        self._contention = contention
        self._knows_rows = knows_rows
        self._bound_s = bound_s
        self._began_s = time.monotonic()
        self._session = ""
        self._phase = "connecting"

    async def run(self) -> Rollout:
        """Let the agent work, and have its answer graded. Failures are in the run's trace."""
        run, bound_s = self._run, self._bound_s
        try:
            with anyio.move_on_after(bound_s) as bound:
                await self._drive(bound)
            if bound.cancelled_caught:
                run.trace.stop_reason = "timeout"
                self._fail(f"it took more than {bound_s:g} s")
        except anyio.get_cancelled_exc_class():
            run.trace.status = run.trace.status or "cancelled"
            raise
        except Exception as exc:  # one run's failure is data of this run
            logger.warning("%s: %s", run.slug, exc, exc_info=not isinstance(exc, HudMcpError))
            self._fail(f"{type(exc).__name__}: {exc}")
        finally:
            run.client = None
        return self._done(await self._find_receipt())

    async def finish_grading(self) -> Rollout | None:
        """Return the result of a run that was cancelled; None if it has no end."""
        receipt = await self._find_receipt()
        return None if receipt is None else self._done(receipt)

    async def give_up(self, reason: str) -> bool:
        """Record a begun run without an end as lost; return whether this call did so.

        HudMcpError says that this cannot be recorded, or that a living server runs the session.
        """
        receipt = await self._find_receipt()
        if receipt is not None or self._run.trajectory is None:
            return False
        if not await end_as_lost(self._store, self._run.trajectory, reason):
            raise HudMcpError(f"A living server still runs {self._run.trajectory}.")
        return True

    def lost(self, reason: str) -> Rollout:
        """Return the result of a run that cannot be brought to an end."""
        trajectory = self._run.trajectory
        return Rollout.lost(self.planned, trajectory, reason, began_s=self._began_s)

    async def _drive(self, bound: anyio.CancelScope) -> None:
        run = self._run
        async with ChannelClient.connect(self._place) as client:
            self._session = client.session_id
            # Planned before the start: a run that is lost on its way counts in the job.
            await self._store.plan_run(self._job.id, digest(client.session_id))
            name, args = started_by(run.task, knows_rows=self._knows_rows)
            self._phase, began = "starting", utc_now()
            run.started = await self._start(client, name, args)
            run.prompt = run.started.get("prompt", "")
            self._record("setup", args, run.started, began.isoformat())
            run.record(RunStep("user", messages=run.prompt_messages))
            try:
                # The agent gets a connection that can neither start nor grade.
                async with client.for_agent() as run.client:
                    await self._work()
                run.client = None
            except anyio.get_cancelled_exc_class():
                await _cut_off(client)
                raise
            self._phase = "grading"
            await self._grade(client, bound)

    async def _start(
        self, client: ChannelClient, name: str, args: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Start the task. If this call is cancelled, the start is cancelled on the server too."""
        # A cancelled call would close the connection, over which the server's start is cancelled.
        starting = asyncio.ensure_future(client.start(name, args))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _cut_off(client)
            await _leave(starting)
            raise

    async def _grade(self, client: ChannelClient, bound: anyio.CancelScope) -> None:
        """Have the answer graded. If the program is interrupted, the grade has a moment more."""
        began = utc_now()
        grading = asyncio.ensure_future(client.grade(self._run.trace.content))
        try:
            self._note_grade(await asyncio.shield(grading), began.isoformat())
        except asyncio.CancelledError:
            if not bound.cancel_called:
                with anyio.move_on_after(_GRADE_S, shield=True):
                    await asyncio.wait([grading])
            if grading.done() and not grading.cancelled() and grading.exception() is None:
                self._note_grade(grading.result(), began.isoformat())
            else:
                await _cut_off(client)
                await _leave(grading)
            raise

    def _note_grade(self, frame: dict[str, Any], began: str) -> None:
        run = self._run
        run.grade = RunGrade.of_frame(frame)
        self._record("evaluate", run.trace.content, frame, began)
        run.trace.status = run.trace.status or "completed"

    async def _work(self) -> None:
        """Let the agent work. Its answer is graded even if it failed."""
        run, timeout_s = self._run, _agent_timeout(self._agent)
        self._phase = "agent loop"
        began_s = time.monotonic()
        try:
            if timeout_s is None:
                await self._agent(run)
                return
            with self._contention.bound(timeout_s) as bound:
                await self._agent(run)
        except Exception as exc:  # the agent's own failure, which the trace says
            logger.warning("the agent failed on %s", run.slug, exc_info=True)
            self._fail(f"{type(exc).__name__}: {exc}")
            return
        if bound.cancelled_caught:
            run.trace.stop_reason = "timeout"
            self._fail(f"the agent was stopped after {time.monotonic() - began_s:.1f} s")

    def _record(self, phase: str, arguments: Any, result: Any, began: str) -> None:
        call = {
            "phase": phase,
            "name": self._run.task.template,
            "arguments": arguments,
            "result": result,
        }
        self._run.record(RunStep("task", task_call=call, started_at=began))

    def _fail(self, error: str) -> None:
        self._run.trace.status = "error"
        self._run.record(RunStep("system", error=f"[{self._phase}] {error}"))

    async def _find_receipt(self) -> Receipt | None:
        """Return the recorded end; None if there is no end, or no record here."""
        if not self._session or not self._store.exists:
            return None
        found = await self._store.find_session(digest(self._session), principal=PRINCIPAL)
        if found is None:
            return None
        self._run.trajectory = found[0]
        return found[1]

    def _done(self, receipt: Receipt | None) -> Rollout:
        run = self._run
        done = Rollout.of(
            self.planned, run.trajectory, receipt, error=run.trace.error,
            agent_failed=run.trace.is_error and self._phase == "grading", began_s=self._began_s,
        )  # fmt: skip
        if run.trajectory is not None:
            return done
        if run.grade.is_error:  # another server has the record
            return replace(done, outcome=_ENDS[self._phase])
        return replace(done, outcome=Outcome.GRADED, reward=run.grade.reward)


async def _cut_off(client: ChannelClient) -> None:
    """End the run's session as its operator. If its server is gone, it has ended already."""
    with anyio.move_on_after(_CANCEL_S, shield=True), suppress(HudMcpError):
        await client.cancel(reason=_CUT_OFF, cause=Cause.OPERATOR)


async def _leave(call: "asyncio.Future[Any]") -> None:
    """Cancel a call that nobody needs, and wait until it ends."""
    call.cancel()
    await asyncio.wait([call])
    if not call.cancelled():
        call.exception()  # seen


def _agent_timeout(agent: Any) -> float | None:
    found = getattr(getattr(agent, "config", None), "timeout_seconds", None)
    return None if found is None else float(found)


async def run_task(task: Task, agent: Callable[[Run], Awaitable[Any]], **options: Any) -> Job:
    """Run an agent on one task, as `run_tasks` does; its options are these."""
    return await run_tasks(Taskset([task], task.id), agent, **options)


async def run_tasks(
    tasks: Taskset,
    agent: Callable[[Run], Awaitable[Any]],
    *,
    runtime: Placement | None = None,
    group: int | None = None,
    max_concurrent: int | None = None,
    job: Job | None = None,
    rollout_timeout: float | None = None,
    retries: int = 0,
    resume: Job | str | None = None,
) -> Job:
    """Run an agent through the tasks, as `Taskset.run` describes."""
    _check(tasks, runtime, group, max_concurrent, retries)
    placed = runtime or LocalRuntime()
    trusted = await _trusted(tasks, agent, group=group, job=job, resume=resume, runtime=placed)
    job, played = trusted.job, dict[tuple[str, int], Run]()
    async with trusted.recorded() as (store, begun), placed.serve(tasks, job) as places:

        def begin(planned: PlannedRun, _signs: FirstSigns, contention: Contention) -> ChannelTry:
            place = places[planned.task.env]
            run = Run(planned.task, runtime=f"tcp://{place.host}:{place.port}")
            played[planned.task.id, planned.place] = run
            return ChannelTry(
                run, planned, contention, agent=agent, place=place, job=job, store=store,
                knows_rows=placed.knows_rows, bound_s=rollout_timeout,
            )  # fmt: skip

        await trusted.run(begin, begun, max_concurrent=max_concurrent, retries=retries)
        if resume is not None:
            job.runs[:] = await _all_runs(store, job, played.values())
            return job
    order = {task.id: place for place, task in enumerate(tasks)}
    job.runs.extend(played[key] for key in sorted(played, key=lambda key: (order[key[0]], key[1])))
    return job


async def _trusted(
    tasks: Taskset,
    agent: Any,
    *,
    group: int | None,
    job: Job | None,
    resume: Job | str | None,
    runtime: Placement,
) -> TrustedJob:
    """Return the job: a new one, one that gets more runs, or one that goes on."""
    if resume is not None:
        if isinstance(runtime, Runtime):
            raise InvalidTask(
                "Runtime(…) is a server that keeps its own record, so no job of it can be resumed."
            )
        if job is not None or group is not None:
            raise InvalidTask("A resumed job has its group in its record; leave job and group out.")
        return await resume_trusted(tasks, agent, resume)
    if job is None:
        return plan_trusted(tasks, agent, name=tasks.name, group=group or 1)
    planned = plan_runs(list(tasks), [], group=group or job.group, seed=None)
    return TrustedJob(job, tasks, planned)


async def _all_runs(store: Store, job: Job, played: Iterable[Run]) -> list[Run]:
    """Return the runs of a job that went on: those of this call, and the others from the record."""
    now = {run.trajectory: run for run in played}
    return [now.get(run.trajectory, run) for run in await recorded_runs(store, job.id)]


def _check(
    tasks: Taskset, runtime: Any, group: int | None, max_concurrent: int | None, retries: int
) -> None:
    for name, number in (("group", group), ("max_concurrent", max_concurrent)):
        if number is not None and number < 1:
            raise InvalidTask(f"{name} is {number}; give 1 or more.")
    if retries < 0:
        raise InvalidTask(f"retries is {retries}; give 0 or more.")
    if runtime is not None and not hasattr(runtime, "serve"):
        raise InvalidTask(
            f"{runtime!r:.60} is not a runtime of this package; give LocalRuntime(…), "
            "SubprocessRuntime(…) or Runtime('tcp://host:port')."
        )
    verified = [task.id for task in tasks if "verifier" in task.metadata.get("hud", {})]
    if verified:
        raise InvalidTask(
            f"The task {verified[0]!r} has a verifier, which this command does not run. Leave "
            "it out of the row, or run it with HUD's SDK on this server's channel."
        )

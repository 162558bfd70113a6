"""One try of a run on the control channel, by an agent of HUD's newer SDK."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import anyio

from hud_mcp.base.contention import Contention
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.hud.runs.runtime import started_by
from hud_mcp.plugins.hud.wire.client import ChannelClient
from hud_mcp.plugins.hud.wire.hud_session import PRINCIPAL
from hud_mcp.plugins.hud.wire.place import Place
from hud_mcp.record.job import Job
from hud_mcp.record.run import Run, RunGrade, RunStep
from hud_mcp.record.trajectory import Receipt, utc_now
from hud_mcp.rollout.plan import PlannedRun, Rollout
from hud_mcp.rollout.trusted import end_as_lost
from hud_mcp.session.receipts import digest
from hud_mcp.store import Store
from hud_mcp.values.outcome import INTERRUPTED, NOT_BEGUN, Cause, Outcome, OutcomeClass

__all__ = ["ChannelTry"]

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
    """One run from its start to its grade.

    Args:
        run: The agent's argument, and the result.
        planned: The run of the plan.
        contention: The time that the machine takes, which is added to the agent's bound.
        agent: The agent.
        place: The address of its environment.
        job: Its job.
        store: The store of the job.
        knows_rows: Whether the place can start every row by its id.
        bound_s: Seconds after which the run is cancelled.
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
        """Record the run as lost if it has begun and has no end.

        Returns:
            Whether this call recorded the end.

        Raises:
            HudMcpError: The end cannot be recorded, or a living server runs the session.
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
            await self._store.plan_run(self._job.id, digest(client.session_id))
            name, args = started_by(run.task, knows_rows=self._knows_rows)
            self._phase, began = "starting", utc_now()
            run.started = await self._start(client, name, args)
            run.prompt = run.started.get("prompt", "")
            self._record("setup", args, run.started, began.isoformat())
            run.record(RunStep("user", messages=run.prompt_messages))
            try:
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
            self._take(await asyncio.shield(grading), began.isoformat())
        except asyncio.CancelledError:
            if not bound.cancel_called:
                with anyio.move_on_after(_GRADE_S, shield=True):
                    await asyncio.wait([grading])
            if grading.done() and not grading.cancelled() and grading.exception() is None:
                self._take(grading.result(), began.isoformat())
            else:
                await _cut_off(client)
                await _leave(grading)
            raise

    def _take(self, frame: dict[str, Any], began: str) -> None:
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
    """Return `config.timeout_seconds` of an agent, which HUD's agents may have."""
    found = getattr(getattr(agent, "config", None), "timeout_seconds", None)
    return None if found is None else float(found)

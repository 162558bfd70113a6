"""Many runs at once: each is tried until it says something of the agent, or has been enough.

A run that is cut short leaves no session without an end: what was under way is recorded as
lost, with the reason, so that the job can be resumed and counts it for nobody.
"""

import logging
from collections.abc import Callable, Iterator, Sequence

import anyio

from hud_mcp.contention import Contention
from hud_mcp.errors import HudMcpError
from hud_mcp.outcome import UNFINISHED, Outcome
from hud_mcp.rollout.attempt import Attempt, Bounds, Rollout, Solver
from hud_mcp.rollout.plan import PlannedRun
from hud_mcp.rollout.server import RunServer, ServerLost
from hud_mcp.rollout.signs import FirstSigns
from hud_mcp.session.receipts import receipt_of_stored
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.store import Store

__all__ = ["Runs", "end_as_lost"]

logger = logging.getLogger(__name__)

_FINISH_S = 5.0
"""How long answers that are being graded may take when the run is interrupted."""


class Runs:
    """Runs that an agent works on, several at once.

    Args:
        solver: Who works on them.
        store: Where the server records.
        bounds: What the agent may use for each.
        max_concurrent: How many at once.
        retries: How often a run is tried again that failed for infrastructure.
        job_id: The job whose plan each try is added to before it begins; None for none.
        on_start: Called as a try begins.
        on_end: Called as a try ends, and whether another one follows.

    Attributes:
        lost: Why no other run can be begun, or None.
    """

    def __init__(
        self,
        solver: Solver,
        store: Store,
        *,
        bounds: Bounds,
        max_concurrent: int,
        retries: int = 0,
        job_id: str | None = None,
        on_start: Callable[[PlannedRun], None] = lambda _run: None,
        on_end: Callable[[Rollout, bool], None] = lambda _done, _again: None,
    ) -> None:
        self.lost: str | None = None
        self._signs = FirstSigns()
        self._contention = Contention()
        self._solver = solver
        self._store = store
        self._bounds = bounds
        self._max_concurrent = max_concurrent
        self._retries = retries
        self._job_id = job_id
        self._on_start = on_start
        self._on_end = on_end
        self._under_way: set[Attempt] = set()

    async def run(self, planned: Sequence[PlannedRun], server: RunServer) -> None:
        """Work on all of them. A failed one is data, not an exception.

        If this call is cancelled, answers that are being graded have a moment to get their
        grade; the rest stays under way, for `record_lost`.
        """
        queue = iter(planned)
        self._contention.start()
        try:
            async with anyio.create_task_group() as group:
                for _ in range(min(self._max_concurrent, len(planned))):
                    group.start_soon(self._work, queue, server)
        finally:
            self._contention.stop()

    async def record_lost(self, reason: str) -> int:
        """Record what is still under way as lost; call it once the server has ended.

        Returns:
            How many those are.
        """
        left = list(self._under_way)
        self._under_way.clear()
        lost = 0
        for attempt in left:
            conversation = attempt.conversation
            try:
                receipt = await conversation.find_receipt()  # which also finds its record
                await attempt.keep_lines()
                if receipt is None and conversation.trajectory_id is not None:
                    lost += await end_as_lost(self._store, conversation.trajectory_id, reason)
            except HudMcpError as exc:
                logger.warning("%s: %s", attempt.planned.task.id, exc)
        return lost

    async def _work(self, queue: Iterator[PlannedRun], server: RunServer) -> None:
        for planned in queue:
            if self.lost is not None:
                return
            for left in range(self._retries, -1, -1):
                done = await self._try(planned, server)
                if done is None:
                    return
                self.lost = self.lost or self._signs.verdict
                again = left > 0 and done.is_tried_again and self.lost is None
                self._on_end(done, again)
                if not again:
                    break

    async def _try(self, planned: PlannedRun, server: RunServer) -> Rollout | None:
        """One try; None where there is no server any more."""
        attempt = Attempt(
            planned, solver=self._solver, server=server, store=self._store, bounds=self._bounds,
            job_id=self._job_id, signs=self._signs, contention=self._contention,
        )  # fmt: skip
        self._on_start(planned)
        self._under_way.add(attempt)
        try:
            done = await attempt.run()
        except ServerLost as exc:
            return await self._lose(attempt, server, exc)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_FINISH_S, shield=True):
                await self._finish(attempt)
            raise
        if done.outcome is not UNFINISHED:
            self._under_way.discard(attempt)
        return done

    async def _lose(self, attempt: Attempt, server: RunServer, exc: ServerLost) -> Rollout | None:
        """Give one run up: alone, if servers go on without it; else with all the others."""
        if server.lost is not None:
            self.lost = server.lost
            return None
        try:
            await attempt.conversation.find_receipt()
            await attempt.keep_lines()
            trajectory_id = attempt.conversation.trajectory_id
            # Now, while no server has it: the next one would resume it, and die of it too.
            if trajectory_id is None or await end_as_lost(self._store, trajectory_id, str(exc)):
                self._under_way.discard(attempt)
        except HudMcpError as failure:
            logger.warning("%s: %s", attempt.planned.task.id, failure)
        return attempt.lost(str(exc))

    async def _finish(self, attempt: Attempt) -> None:
        """Wait a moment for the grade of an answer that was submitted before an interruption."""
        try:
            done = await attempt.finish_grading()
        except HudMcpError as exc:
            logger.debug("%s: %s", attempt.planned.task.id, exc)
            return
        if done is not None:
            self._under_way.discard(attempt)
            self._on_end(done, False)


async def end_as_lost(store: Store, trajectory_id: str, reason: str) -> bool:
    """Record that a session cannot go on.

    Args:
        store: Where it is recorded.
        trajectory_id: Its record's id.
        reason: For the record.

    Returns:
        Whether it has an end now; not where a living server runs it.

    Raises:
        SourceNotFound: There is no such session.
        StoreFailed: Nothing was written.
    """
    claimed = await store.claim_session(trajectory_id)
    stored = await store.load_session(trajectory_id)
    receipt = stored.trajectory.receipt
    if not claimed or receipt is not None:
        return receipt is not None
    receipt = receipt_of_stored(stored, SessionEnd(Outcome.LOST, error=reason, told=reason))
    await store.end_session(trajectory_id, receipt)
    return True

"""Several servers of one job on one store: each run goes to the one that has least to do."""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hud_mcp.contention import Contention
from hud_mcp.rollout.attempt import Rollout
from hud_mcp.rollout.plan import PlannedRun
from hud_mcp.rollout.run import Begin, Try
from hud_mcp.rollout.server import AnyServer
from hud_mcp.rollout.signs import FirstSigns

__all__ = ["Pool", "Worker"]


@dataclass(frozen=True, eq=False)
class Worker:
    """One server process of a job, and what begins a run on it."""

    server: AnyServer
    begin: Begin


class Pool:
    """Begins each run on the worker that has the fewest under way.

    A worker whose server cannot be had any more gets no other run; the job goes on with the rest.

    Args:
        workers: At least one.
    """

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = list(workers)
        self._busy: Counter[Worker] = Counter()

    @property
    def lost(self) -> str | None:
        """Why no worker has a server any more; None as long as one has."""
        reasons = [worker.server.lost for worker in self._workers]
        return reasons[-1] if all(reasons) else None

    def begin(self, planned: PlannedRun, signs: FirstSigns, contention: Contention) -> Try:
        """Make a try of a run, on the worker that is free."""
        living = [w for w in self._workers if w.server.lost is None] or self._workers
        worker = min(living, key=lambda each: self._busy[each])
        return _PooledTry(self, worker, worker.begin(planned, signs, contention))

    @contextmanager
    def busy(self, worker: Worker) -> Generator[None]:
        """Count one run more of a worker while the block runs."""
        self._busy[worker] += 1
        try:
            yield
        finally:
            self._busy[worker] -= 1


class _PooledTry:
    """A try on one of several workers."""

    def __init__(self, pool: Pool, worker: Worker, one: Try) -> None:
        self._pool = pool
        self._worker = worker
        self._one = one
        self.planned = one.planned
        self.finish_grading = one.finish_grading
        self.give_up = one.give_up
        self.lost = one.lost

    @property
    def server_lost(self) -> str | None:
        """Why there is no worker any more, or None."""
        return self._pool.lost

    async def run(self) -> Rollout:
        """Let the agent work."""
        with self._pool.busy(self._worker):
            return await self._one.run()

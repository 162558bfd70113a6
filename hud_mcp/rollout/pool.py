"""Several servers of one job on one store: each run goes to the one that has least to do."""

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from hud_mcp.base.contention import Contention
from hud_mcp.plugins.cluster.anywhere import Anywhere
from hud_mcp.rollout.attempt import Rollout
from hud_mcp.rollout.link import Address
from hud_mcp.rollout.plan import PlannedRun
from hud_mcp.rollout.run import FirstSigns, Try
from hud_mcp.rollout.server import AnyServer, RunServer
from hud_mcp.values.needs import Needs

__all__ = ["BeginOn", "Moves", "Pool", "Worker"]


class BeginOn(Protocol):
    """Begins a try of a run on a server."""

    def __call__(
        self,
        planned: PlannedRun,
        signs: FirstSigns,
        contention: Contention,
        /,
        *,
        server: AnyServer,
    ) -> Try:
        """Make it."""
        ...


@dataclass(frozen=True, eq=False)
class Worker:
    """One server process of a job, and what begins a run on it.

    Attributes:
        server: The process.
        begin: Begins a run.
        number: From 1, for people.
        offers: What a session finds there.
    """

    server: AnyServer
    begin: BeginOn
    number: int = 1
    offers: Needs = field(default_factory=Needs)


@dataclass(frozen=True)
class Moves:
    """How runs go on with another worker where theirs is gone.

    Attributes:
        needs: What a session of each environment needs, by its name.
        each: How many runs at once are meant for one worker.
        address: Where agents of their own reach any of the workers.
        tell: Given a line for people.
    """

    needs: dict[str, Needs]
    each: int
    address: Address | None
    tell: Callable[[str], None]


class Pool:
    """Begins each run on the worker that has the fewest under way.

    A worker whose server cannot be had any more gets no other run; the job goes on with the rest.

    Args:
        workers: At least one.
        moves: Where runs may change their worker; None where each stays with its own.
    """

    def __init__(self, workers: Sequence[Worker], moves: Moves | None = None) -> None:
        self._workers = list(workers)
        self._moves = moves
        self._busy: Counter[Worker] = Counter()
        self._seated: set[_Seat] = set()

    @property
    def lost(self) -> str | None:
        """Why no worker has a server any more; None as long as one has."""
        reasons = [worker.server.lost for worker in self._workers]
        return reasons[-1] if all(reasons) else None

    def why_lost(self, planned: PlannedRun) -> str | None:
        """Why no worker that offers what a run needs has a server any more, or None."""
        reasons = [worker.server.lost for worker in self._able(planned)]
        return reasons[-1] if all(reasons) else None

    def begin(self, planned: PlannedRun, signs: FirstSigns, contention: Contention) -> Try:
        """Make a try of a run, on the worker that is free."""
        able = self._able(planned)
        living = [w for w in able if w.server.lost is None] or able
        if self._moves is not None:
            living = [w for w in living if _is_up(w.server)] or living
        worker = self._least_busy(living)
        seat = _Seat(self, worker, planned)
        server: AnyServer = worker.server
        if self._moves is not None and isinstance(server, RunServer):
            server = Anywhere(server, seat, self._moves.address)
        return _PooledTry(self, seat, worker.begin(planned, signs, contention, server=server))

    def other_worker(self, planned: PlannedRun, left: Worker) -> Worker | None:
        """A worker that answers and may take a run whose own is gone, or None."""
        able = [w for w in self._able(planned) if w is not left and _is_up(w.server)]
        if not able or self._moves is None:
            return None
        other = self._least_busy(able)
        self._moves.tell(
            f"{planned.task.id} goes on with worker {other.number}: the server of worker "
            f"{left.number} is gone."
        )
        return other

    @contextmanager
    def busy(self, seat: "_Seat") -> Generator[None]:
        """Count one run more of a worker while the block runs."""
        self._busy[seat.worker] += 1
        self._seated.add(seat)
        try:
            yield
        finally:
            self._seated.discard(seat)
            self._busy[seat.worker] -= 1

    def change(self, seat: "_Seat", taken: Worker) -> None:
        """Count a run to another worker, where it is counted at all."""
        if seat in self._seated:
            self._busy[seat.worker] -= 1
            self._busy[taken] += 1

    def _able(self, planned: PlannedRun) -> list[Worker]:
        """The workers whose machine offers what a run needs."""
        if self._moves is None:
            return self._workers
        wanted = self._moves.needs.get(planned.task.env, Needs()).offered
        return [w for w in self._workers if wanted <= w.offers.offered] or self._workers

    def _least_busy(self, workers: Sequence[Worker]) -> Worker:
        """The free one; of several, one that offers little is left nothing else to do."""
        each = 1 if self._moves is None else self._moves.each
        return min(
            workers,
            key=lambda w: (self._busy[w] >= each, len(w.offers.offered), self._busy[w]),
        )


def _is_up(server: AnyServer) -> bool:
    return not isinstance(server, RunServer) or server.is_up


class _Seat:
    """Where a run is.

    Attributes:
        worker: The one that has it.
    """

    def __init__(self, pool: Pool, worker: Worker, planned: PlannedRun) -> None:
        self.worker = worker
        self._pool = pool
        self._planned = planned

    @property
    def lost(self) -> str | None:
        """Why there is no worker any more that may have the run, or None."""
        return self._pool.why_lost(self._planned)

    def other_place(self) -> RunServer | None:
        """The server of another worker, which has the run from now on; or None."""
        other = self._pool.other_worker(self._planned, self.worker)
        if other is None or not isinstance(other.server, RunServer):
            return None
        self._pool.change(self, other)
        self.worker = other
        return other.server


class _PooledTry:
    """A try on one of several workers."""

    def __init__(self, pool: Pool, seat: _Seat, one: Try) -> None:
        self._pool = pool
        self._seat = seat
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
        with self._pool.busy(self._seat):
            return await self._one.run()

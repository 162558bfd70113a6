"""Several servers of one job on one store: each run goes to the least busy, and may move."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from hud_mcp.agents.agent import Reply
from hud_mcp.base.contention import Contention
from hud_mcp.errors import SessionBusy
from hud_mcp.rollout.link import Address, ConnectionLost, Meta, ServerLost
from hud_mcp.rollout.run import FirstSigns, PlannedRun, Rollout, Try
from hud_mcp.rollout.server import AnyServer, RunServer
from hud_mcp.store.lease import LEASE_S
from hud_mcp.values.needs import Needs

if TYPE_CHECKING:
    from mcp.client.client import Client


T = TypeVar("T")

_PAUSE_S = 0.1
_TAKEN_S = LEASE_S + 30.0
"""The time that a server which died on another machine may still own a session, and some more."""


class AnyOf:
    """Any of several servers; at least one."""

    def __init__(self, servers: Sequence[RunServer]) -> None:
        self._servers = list(servers)

    @property
    def lost(self) -> str | None:
        """The reason why no server is left, or None."""
        reasons = [server.lost for server in self._servers]
        return reasons[-1] if all(reasons) else None

    def other_place(self) -> RunServer | None:
        """Return the first server that answers."""
        return next((server for server in self._servers if server.is_up), None)


class Anywhere:
    """The server of one run, or another one once that is gone, at one address for agents."""

    principal = "token"

    def __init__(self, server: RunServer, places: "AnyOf | _Seat", address: Address | None) -> None:
        self.address = address
        self._server = server
        self._places = places
        self._known = (server, server.deaths)
        self._taken_until_s = 0.0  # no move yet, so no lease to wait for

    @property
    def lost(self) -> str | None:
        """The reason why there will be no server any more, or None."""
        return self._places.lost

    @property
    def deaths(self) -> int:
        """The number of deaths of its present server."""
        return self._server.deaths

    async def call(
        self, name: str, arguments: dict[str, Any], meta: Meta = None, *, suspect: bool = False
    ) -> Reply:
        """Call a tool once. After a move, wait until the former server has let go of the session.

        Raises:
            ConnectionLost: No reply came. Calling again reaches the next server.
            ServerLost: There will be none.
        """
        while True:
            server = await self._ready()
            try:
                reply = await server.call(name, arguments, meta, suspect=suspect)
            except ServerLost as exc:
                raise self._loss(exc) from exc
            if not _is_taken(reply) or time.monotonic() >= self._taken_until_s:
                return reply
            await anyio.sleep(5 * _PAUSE_S)  # the dead server's lease ends by itself

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        """Make a request that is not a tool's call."""
        server = await self._ready()
        try:
            return await server.ask(request)
        except ServerLost as exc:
            raise self._loss(exc) from exc

    def find_ended(self, session: str) -> None:
        """Return None: the record alone knows the ended sessions."""

    async def death_after(self, count: int) -> None:
        """Wait until its present server has died more than so many times."""
        await self._server.death_after(count)

    async def _ready(self) -> RunServer:
        while not self._server.is_up:
            if self._places.lost is not None:
                raise ServerLost(self._places.lost)
            if (other := self._places.other_place()) is not None:
                self._server = other
                break
            await anyio.sleep(_PAUSE_S)
        found = (self._server, self._server.deaths)
        if found != self._known:  # also if its own is back before the dead one's lease has ended
            self._known = found
            self._taken_until_s = time.monotonic() + _TAKEN_S
        return self._server

    def _loss(self, exc: ServerLost) -> ServerLost | ConnectionLost:
        # Another server may take the call.
        return exc if self._places.lost is not None else ConnectionLost(str(exc))


def _is_taken(reply: Reply) -> bool:
    return reply.is_error and reply.error_kind == SessionBusy.__name__


BeginOn = Callable[..., Try]
"""Makes a try as `Begin` does, on the server that `server` names."""


@dataclass(frozen=True, eq=False)
class Worker:
    """One server process of a job: its number for people, from 1, and the needs that it meets."""

    server: AnyServer
    begin: BeginOn
    number: int = 1
    offers: Needs = field(default_factory=Needs)


@dataclass(frozen=True)
class Moves:
    """The rules by which a run goes on with another worker once its own is gone.

    `needs` is by the environment's name. `each` is the number of runs that one worker is meant for.
    """

    needs: dict[str, Needs]
    each: int
    address: Address | None
    tell: Callable[[str], None]


class Pool:
    """The workers of a job; at least one. Each run begins on the one with the fewest runs.

    A worker whose server is gone for good gets no other run. Without rules of moving, each run
    stays with its worker.
    """

    def __init__(self, workers: Sequence[Worker], moves: Moves | None = None) -> None:
        self._workers = list(workers)
        self._moves = moves
        self._busy: Counter[Worker] = Counter()
        self._seated: set[_Seat] = set()

    @property
    def lost(self) -> str | None:
        """The reason why no worker has a server any more, or None."""
        reasons = [worker.server.lost for worker in self._workers]
        return reasons[-1] if all(reasons) else None

    def why_lost(self, planned: PlannedRun) -> str | None:
        """Return the reason why no worker for a run has a server any more, or None."""
        reasons = [worker.server.lost for worker in self._able(planned)]  # others cannot run it
        return reasons[-1] if all(reasons) else None

    def begin(self, planned: PlannedRun, signs: FirstSigns, contention: Contention) -> Try:
        """Make a try of a run on the least busy worker."""
        able = self._able(planned)
        # With no living worker, the try begins anyway, and reports the loss.
        living = [w for w in able if w.server.lost is None] or able
        if self._moves is not None:
            living = [w for w in living if _is_up(w.server)] or living
        worker = self._least_busy(living)
        seat = _Seat(self, worker, planned)
        # Only a server process has others beside it; runs of this process stay here.
        server: AnyServer = worker.server
        if self._moves is not None and isinstance(server, RunServer):
            server = Anywhere(server, seat, self._moves.address)
        return _PooledTry(self, seat, worker.begin(planned, signs, contention, server=server))

    def other_worker(self, planned: PlannedRun, left: Worker) -> Worker | None:
        """Return a worker that answers and may take a run whose own is gone, or None."""
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
        """Count one more run of a worker while the block runs."""
        self._busy[seat.worker] += 1
        # A run counts while its agent works: a try that has not begun is no load.
        self._seated.add(seat)
        try:
            yield
        finally:
            self._seated.discard(seat)  # before the count: `change` must not count it again
            self._busy[seat.worker] -= 1

    def change(self, seat: "_Seat", taken: Worker) -> None:
        """Count a run to another worker, if it is counted at all."""
        # A run may move before it counts, as its first server dies at its start.
        if seat in self._seated:
            self._busy[seat.worker] -= 1
            self._busy[taken] += 1

    def _able(self, planned: PlannedRun) -> list[Worker]:
        """Return the workers that meet a run's needs; all of them if no worker does."""
        if self._moves is None:
            return self._workers
        wanted = self._moves.needs.get(planned.task.env, Needs()).offered
        return [w for w in self._workers if wanted <= w.offers.offered] or self._workers

    def _least_busy(self, workers: Sequence[Worker]) -> Worker:
        """Return a free worker, if possible the free worker that meets the fewest needs."""
        each = 1 if self._moves is None else self._moves.each
        return min(
            workers, key=lambda w: (self._busy[w] >= each, len(w.offers.offered), self._busy[w])
        )


def _is_up(server: AnyServer) -> bool:
    return not isinstance(server, RunServer) or server.is_up


class _Seat:
    def __init__(self, pool: Pool, worker: Worker, planned: PlannedRun) -> None:
        self.worker = worker
        self._pool = pool
        self._planned = planned

    @property
    def lost(self) -> str | None:
        return self._pool.why_lost(self._planned)

    def other_place(self) -> RunServer | None:
        other = self._pool.other_worker(self._planned, self.worker)
        if other is None or not isinstance(other.server, RunServer):
            return None
        self._pool.change(self, other)
        self.worker = other
        return other.server


class _PooledTry:
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
        return self._pool.lost

    async def run(self) -> Rollout:
        with self._pool.busy(self._seat):
            return await self._one.run()

"""A run of an agent as its gateway sees it: what is under way, what was refused, what was heard."""

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

from hud_mcp.agents.agent import Agent, BoundReached, JobHalted, OperatorFailed
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.gateway.choice import Route
from hud_mcp.plugins.models.gateway.conversation import Conversation
from hud_mcp.plugins.models.gateway.http1 import Bounds, Connection
from hud_mcp.plugins.models.gateway.retrying import FirstRefusals, OutputCap
from hud_mcp.plugins.models.gateway.translation import Translation, Ways, translation
from hud_mcp.plugins.models.gateway.upstream import Upstream
from hud_mcp.plugins.models.spending import Rates, RunSpending, Spending
from hud_mcp.values.model_turn import ModelTurn

__all__ = ["JobModels", "Recorder", "Run"]

Recorder = Callable[[ModelTurn], Awaitable[int | None]]
"""Records a turn of the run's session; it returns its number, if any, once it is durable."""

_END_S = 90.0
_AT_ONCE, _CONNECTIONS = 16, 64
"""The most exchanges and connections of one run."""
_IN_VAIN = 20
"""The most requests in a row that a bound refuses: as many as sub-agents may have under way."""


@dataclass(frozen=True)
class JobModels:
    """The models of a job, and the limits that all its runs share."""

    routes: Mapping[str, Route]
    spending: Spending
    rates: Rates
    max_turns: int | None = None
    bounds: Bounds = field(default_factory=Bounds)
    upstream: Upstream = field(default_factory=Upstream)
    translator: Translation = field(default_factory=translation)
    ways: Ways = field(default_factory=Ways)
    refusals: FirstRefusals = field(default_factory=FirstRefusals)
    cap: OutputCap = field(default_factory=OutputCap)


class Run:
    """One run: its bounds and its record.

    Attributes:
        refused: The first bound that it reached, or the reason that ends it.
        turns: The numbers of its turns, and of those beside its dialogue, that were begun.
        end: Ends the agent.
    """

    def __init__(self, job: JobModels, agent: Agent, record: Recorder) -> None:
        self.job = job
        self.agent = agent
        self.pauses = agent.pauses
        self._record = record
        self.spending: RunSpending = job.spending.of_run()
        self.refused: HudMcpError | None = None
        self.turns = [0, 0]
        self.conversation = Conversation()
        self.end: Callable[[], None] = lambda: None
        self._recorded = self._failed = self._in_vain = 0
        self._under_way = 0
        self._ended = anyio.Event()
        self._connections: set[Connection] = set()

    def admit(self, connection: Connection) -> bool:
        """Count a connection as this run's; return whether it may have another one."""
        if connection in self._connections:
            return True
        if len(self._connections) >= _CONNECTIONS:
            return False
        self._connections.add(connection)
        connection.on_close.append(lambda: self._connections.discard(connection))
        return True

    async def aclose(self) -> None:
        """Break off all that is under way, and wait until its turns are recorded."""
        for connection in [*self._connections]:
            connection.close()
        with anyio.move_on_after(_END_S, shield=True):
            while self._under_way:
                self._ended = anyio.Event()
                await self._ended.wait()
        if self._failed:
            self.agent.log(
                f"gateway: {self._failed} of {self._recorded} requests to its model brought no "
                "whole reply; their turns say why"
            )

    @contextmanager
    def exchange(self) -> Generator[bool]:
        """Count an exchange while the block runs; its value is whether it may begin."""
        self._under_way += 1
        try:
            yield self._under_way <= _AT_ONCE
        finally:
            self._under_way -= 1
            self._ended.set()

    @contextmanager
    def turn(self, *, is_side: bool) -> Generator[None]:
        """Count a turn as it begins; one that ends with an error does not count.

        Raises:
            BoundReached: The run has had all its turns. An agent could call each of them a side
                turn, so these have a bound too.
        """
        most = self.job.max_turns
        if most is not None and self.turns[is_side] >= most:
            raise BoundReached(f"at {most} turns (--max-turns)")
        self.turns[is_side] += 1
        try:
            yield
        except Exception:
            self.turns[is_side] -= 1
            raise

    async def keep(self, turn: ModelTurn) -> int:
        """Record a turn, and return its number once it is durable."""
        number = await self._record(turn)
        self._recorded += 1
        self._failed += turn.error is not None
        self._in_vain = self._in_vain if turn.error else 0
        return self._recorded - 1 if number is None else number

    def refuse(self, error: HudMcpError) -> None:
        """Keep the first bound, or the reason that ends the run, which counts more."""
        ends = not isinstance(error, BoundReached)
        if self.refused is None or (ends and isinstance(self.refused, BoundReached)):
            self.refused = error

    def refuses_again(self) -> None:
        """Count a request that a bound refuses; end an agent that goes on after many."""
        self._in_vain += 1
        if self._in_vain > _IN_VAIN:
            self.end()

    @property
    def is_over(self) -> bool:
        """Whether each later request would fail too, so that none is sent."""
        return isinstance(self.refused, JobHalted | OperatorFailed)

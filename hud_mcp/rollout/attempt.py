"""One try of a run: an agent on one task, from the start of its session to its recorded end."""

import logging
import time
import traceback
from dataclasses import dataclass, replace

import anyio

from hud_mcp.agents.agent import (
    Agent,
    BoundReached,
    JobHalted,
    MachineFailed,
    OperatorFailed,
    Reply,
)
from hud_mcp.agents.command import CommandDied
from hud_mcp.agents.kind import Solver
from hud_mcp.base.contention import Contention
from hud_mcp.errors import HudMcpError, SessionBusy, StoreFailed, sole_cause
from hud_mcp.record.values import utc_now
from hud_mcp.rollout.conversation import AgentStopped, Conversation, SessionIds
from hud_mcp.rollout.link import ServerLost
from hud_mcp.rollout.run import FirstSigns, PlannedRun, Rollout
from hud_mcp.rollout.server import AnyServer
from hud_mcp.rollout.trusted import end_as_lost
from hud_mcp.session.caller import CALLED
from hud_mcp.store import Store
from hud_mcp.values.model_turn import ModelTurn
from hud_mcp.values.outcome import NOT_BEGUN, Cause, Counts, Outcome

logger = logging.getLogger(__name__)

_LOOK_S = 0.5
"""The time between two counts of the steps of an agent that calls the server by itself."""
_FLUSH_S = 10.0
"""The time to record the last turns of an agent's model."""
_ELSEWHERE_S = 60.0
"""The time that another server has to grade the answer of a session that it has resumed."""
_STARTS = 3
"""The most sessions that begin for one try: a server may die as it prepares them."""
_DEATHS = 10
"""The servers that may die while such an agent works, as it may be what kills them."""


@dataclass(frozen=True)
class Bounds:
    """The bounds of an agent's work on one task, in seconds and in steps; None for any number.

    The steps of an agent that calls the server by itself are counted twice a second, so it may take
    a few more.
    """

    timeout_s: float = 600.0
    max_steps: int | None = None


class Attempt:
    """One try of a planned run. All tries share the first signs of life and the machine's load."""

    def __init__(
        self, planned: PlannedRun, signs: FirstSigns, contention: Contention, *, solver: Solver,
        server: AnyServer, store: Store, bounds: Bounds, ids: SessionIds,
    ) -> None:  # fmt: skip
        self.planned = planned
        remote = solver.is_remote
        self.conversation = Conversation(
            server, store, ids=ids, max_steps=None if remote else bounds.max_steps
        )
        self._solver = solver
        self._server = server
        self._store = store
        self._bounds = bounds
        self._signs = signs
        self._contention = contention
        self._died: str | None = None
        self._refused: str | None = None
        self._cause = Cause.AGENT
        self._began_s = time.monotonic()
        self._error: str | None = None
        self._lines: list[str] = []
        self._unanswered = False  # set once this try itself ended a session without an answer

    async def run(self) -> Rollout:
        """Work on the task, end its session, and read its record."""
        conversation = self.conversation
        started = await self._start()
        if started.is_error:
            # A store that cannot be written would refuse every other start, too.
            if started.error_kind == StoreFailed.__name__:
                self._signs.halt(started.text)
            return await self._result(started.text)
        agent = Agent(
            conversation,
            session=conversation.session,
            prompt=str(started.structured["prompt"]),
            started=started.structured,
        )
        self._lines = agent.lines
        agent.record = self._record
        try:
            await self._solve(agent)
        finally:
            await self._flush_turns(agent)  # also after a failure: the turns are paid for
        await self._close()
        return await self._result(None)

    async def _start(self) -> Reply:
        """Start a session, and another one if it was lost before the agent had its prompt."""
        task_id, seed = self.planned.task.id, self.planned.seed
        for _ in range(_STARTS - 1):
            started = await self.conversation.start(task_id, seed=seed)
            receipt = await self.conversation.find_receipt() if started.is_error else None
            if receipt is None or receipt.outcome is not Outcome.LOST:
                return started
        return await self.conversation.start(task_id, seed=seed)

    @property
    def server_lost(self) -> str | None:
        """The reason why there will be no server any more, or None."""
        return self._server.lost

    async def finish_grading(self) -> Rollout | None:
        """Wait for the grade of a submitted answer; return None without such an answer."""
        state = (await self.conversation.status()).structured.get("state")
        if state not in ("grading", "ended"):
            return None
        await self._close()
        return await self._result(None)

    def lost(self, reason: str) -> Rollout:
        """Return the result of a try that cannot end in order."""
        trajectory_id = self.conversation.trajectory_id
        return Rollout.lost(self.planned, trajectory_id, reason, began_s=self._began_s)

    async def give_up(self, reason: str) -> bool:
        """Record that it is lost, if it has begun and has no end; return whether it did."""
        receipt = await self.conversation.find_receipt()  # this also finds its record
        await self._keep_lines()
        trajectory_id = self.conversation.trajectory_id
        if receipt is not None or trajectory_id is None:
            return False
        if not await end_as_lost(self._store, trajectory_id, reason):
            raise HudMcpError(f"A living server still runs {trajectory_id}.")
        return True

    async def _keep_lines(self) -> None:
        # Taken first: a second call must not record them again.
        lines, self._lines = list(self._lines), []
        if self.conversation.trajectory_id is not None and lines:
            now = utc_now()
            await self._store.add_logs(
                self.conversation.trajectory_id, [(now, line) for line in lines]
            )

    async def _record(self, turn: ModelTurn) -> int | None:
        """Record a turn that a gateway has seen, and return its number."""
        trajectory_id = self.conversation.trajectory_id
        if trajectory_id is None:
            return None
        return await self._store.add_seen_turn(trajectory_id, turn)

    async def _flush_turns(self, agent: Agent) -> None:
        turns = agent.take_turns()
        if not turns:
            return
        try:
            with anyio.move_on_after(_FLUSH_S, shield=True):
                await self.conversation.report(turns)
        except HudMcpError as exc:  # the task has its end, with or without them
            logger.warning("%d turns of a model were not recorded: %s", len(turns), exc)

    async def _solve(self, agent: Agent) -> None:
        """Let the agent work within its bounds. Its own failures are its result."""
        timeout_s = self._bounds.timeout_s
        try:
            with self._contention.bound(timeout_s, agent.pauses) as scope:
                await self._work(agent)
            if scope.cancelled_caught:
                self._time_out(agent)
        except AgentStopped as exc:
            logger.debug("%s", exc)  # the conversation keeps the reason
        # The caller decides: one run is given up, or all of them.
        except ServerLost:
            raise
        except HudMcpError as exc:
            self._attribute(exc)
        except Exception as exc:  # an agent's own failure is attributed to it, and recorded
            logger.info("the agent failed on %s", self.planned.task.id, exc_info=True)
            frame = traceback.extract_tb(exc.__traceback__)[-1]
            self._error = f"{type(exc).__name__}: {exc} ({frame.filename}:{frame.lineno})"

    def _attribute(self, exc: HudMcpError) -> None:
        if isinstance(exc, BoundReached):
            self.conversation.stop(str(exc))
        elif isinstance(exc, CommandDied):
            self._died = str(exc)
        elif isinstance(exc, MachineFailed):
            logger.warning("the run of %s failed", self.planned.task.id, exc_info=exc)
            self._blame(str(exc), Cause.MACHINE)
        elif isinstance(exc, OperatorFailed):
            self._blame(str(exc), Cause.OPERATOR)
            if isinstance(exc, JobHalted):
                self._signs.halt(str(exc))
        else:
            self._error = str(exc)

    def _blame(self, reason: str, cause: Cause) -> None:
        """Note that not the agent has ended its work."""
        self._refused, self._cause = reason, cause

    def _time_out(self, agent: Agent) -> None:
        """Note that its time is up: the agent's doing, unless its provider never replied."""
        timeout_s, silence_s = self._bounds.timeout_s, agent.silence_s
        if silence_s:
            said = f"had not replied for {silence_s:.0f} s when --timeout ended the run"
            self._blame(f"The model's provider {said}.", Cause.OPERATOR)
        else:
            self.conversation.stop(f"after {timeout_s:g} s (--timeout)")

    async def _work(self, agent: Agent) -> None:
        task, seed = self.planned.task, self.planned.seed
        if seed is not None:
            task = task.model_copy(update={"seed": seed})
        if not self._solver.is_remote:
            await self._solver.solve(agent, task)
            return
        try:
            async with anyio.create_task_group() as group:
                # Such an agent calls again after each death: only a count ends that.
                group.start_soon(self._watch_deaths)
                if self._bounds.max_steps is not None:
                    group.start_soon(self._watch_steps, self._bounds.max_steps)
                await self._solver.solve(agent, task)
                group.cancel_scope.cancel()
        except BaseExceptionGroup as found:
            raise sole_cause(found) from None

    async def _watch_deaths(self) -> None:
        await self._server.death_after(self._server.deaths + _DEATHS)
        raise ServerLost(f"{_DEATHS} servers died while the agent worked on this task.")

    async def _watch_steps(self, most: int) -> None:
        while True:
            await anyio.sleep(_LOOK_S)
            status = (await self.conversation.status()).structured
            steps = int(status.get("steps", 0))
            if status.get("state") == "open" and steps > most:
                raise self.conversation.stop(f"after {steps} steps (--max-steps)")

    async def _close(self) -> None:
        """Wait for a grading that is under way, and end a session without an answer."""
        # Short at first, as most grades take milliseconds; longer then, as some take minutes.
        pause_s, until_s = 0.05, time.monotonic() + _ELSEWHERE_S
        while not self.conversation.is_over:
            reply = await self.conversation.status()
            status = reply.structured
            elsewhere = reply.error_kind == SessionBusy.__name__
            state = "grading" if elsewhere and time.monotonic() < until_s else status.get("state")
            if state == "grading":
                await anyio.sleep(pause_s)
                pause_s = min(1.0, 2 * pause_s)
                continue
            if state in ("open", "starting"):
                called = bool(reply.meta.get(CALLED) or status.get("steps"))
                if self._signs.note(self._died, called=called):
                    self._cause = Cause.OPERATOR
                await self.conversation.cancel(reason=self._why_ended(), cause=self._cause)
                self._unanswered = True
            if not self.conversation.is_over:
                return
        self._signs.note(None, called=True)

    def _why_ended(self) -> str:
        if self._refused is not None:
            return self._refused
        if self.conversation.stopped is not None:
            return f"The agent was stopped {self.conversation.stopped}."
        if self._error is not None or self._died is not None:
            return f"The agent failed: {self._error or self._died}"
        return "The agent ended without an answer."

    async def _result(self, refused: str | None) -> Rollout:
        receipt = await self.conversation.find_receipt()
        done = Rollout.of(
            self.planned, self.conversation.trajectory_id, receipt, error=refused,
            agent_failed=False, began_s=self._began_s,
        )  # fmt: skip
        by_agent = receipt is not None and receipt.is_by_agent
        if (done.outcome is not NOT_BEGUN and done.outcome.counts is Counts.NOWHERE) or by_agent:
            # After such an end, the agent's error follows from it, or says less.
            self._error = None
        error: str | None = None
        if self.conversation.stopped is not None or self._error is not None or self._unanswered:
            error = self._why_ended()
            said = error.removesuffix(".").removeprefix("The ").removeprefix("agent was ")
            self._lines.append(said if said.startswith("agent") else f"agent {said}")
        await self._keep_lines()
        recorded = receipt.error if receipt is not None else None
        if receipt is not None and recorded and receipt.said_cause:
            recorded = f"{receipt.said_cause}: {recorded}"
        return replace(done, error=error or refused or recorded, agent_failed=error is not None)

"""What an operator does with a world beside its agent: measure it, and set it up again."""

import asyncio
from collections.abc import Sequence

from hud_mcp.call import FunctionConfig
from hud_mcp.environment import Environment
from hud_mcp.environment.calls import Measurement, combination, measure, prepare
from hud_mcp.errors import ActionFailed, BrokenByAgent, EnvironmentFailed, HudMcpError
from hud_mcp.function import Situation
from hud_mcp.observation import Look
from hud_mcp.session.attempts import Attempts
from hud_mcp.session.journal import Journal
from hud_mcp.session.live_world import LiveWorld
from hud_mcp.session.measuring import BY_AGENT, Measuring
from hud_mcp.session.stepped import Stepped, as_actions, as_shown
from hud_mcp.task import Task

__all__ = ["OperatorCalls"]


class OperatorCalls:
    """Makes an operator's calls on one life of a world; each is a step of the record.

    Args:
        environment: Whose functions are called.
        world: What they are called on.
        attempts: Begins the calls.
        journal: Takes their steps.
        measuring: Takes what is measured.
        rewards_shown: Whether the reward of a step is told.
    """

    def __init__(
        self,
        environment: Environment,
        world: LiveWorld,
        attempts: Attempts,
        *,
        journal: Journal,
        measuring: Measuring,
        rewards_shown: bool,
    ) -> None:
        self._environment = environment
        self._world = world
        self._attempts = attempts
        self._journal = journal
        self._measuring = measuring
        self._rewards_shown = rewards_shown

    async def measure(self, task: Task, calls: Sequence[FunctionConfig] | None) -> Measurement:
        """Make `evaluate` calls on the world as it is, and record what they returned.

        Args:
            task: Whose own calls they are where others are not given.
            calls: Others in their place: what they return is never the task's grade.

        Raises:
            GradingFailed: One cannot run; that is recorded, and the session lives on.
            EnvironmentFailed, StoreFailed, SessionTaken: As for `Steps.perform`.
        """
        own = calls is None
        named = task.evaluate if calls is None else calls
        attempt = self._attempts.begin("evaluate", as_actions(named), Look())
        draft = attempt.draft
        draft.tell(override=not own)
        situation = Situation(
            world=self._world.live,
            answer=self._measuring.final_response or "",
            history=self._measuring.history,
        )
        try:
            measured = await measure(
                named, self._environment.functions, situation, combine=combination(task)
            )
            draft.keep(await self._attempts.snapshot())
        except BaseException as exc:
            by_agent = isinstance(exc, BrokenByAgent)
            if by_agent:
                draft.tell(**{BY_AGENT: True})
            interrupted = isinstance(exc, asyncio.CancelledError)
            attempt.fail(exc, "while it was evaluated", interrupted=interrupted)
            if own and not isinstance(exc, EnvironmentFailed):
                self._measuring.fail(None if interrupted else draft.error, by_agent=by_agent)
            await self._journal.keep(draft)
            raise
        grade = measured.grade
        draft.do(len(named))
        draft.tell(
            results=list(measured.results),
            grade=None if grade is None else grade.model_dump(mode="json"),
        )
        await self._journal.add(draft)
        if own:
            self._measuring.note(measured)
        return measured

    async def set_up(self, calls: Sequence[FunctionConfig], look: Look) -> Stepped:
        """Make `setup` calls again, and look: what was measured before does not count any more.

        Raises:
            ActionFailed: One raised; the session lives on.
            EnvironmentFailed, StoreFailed, SessionTaken: As for `Steps.perform`.
        """
        attempt = self._attempts.begin("reset", as_actions(calls), look)
        draft = attempt.draft
        situation = Situation(world=self._world.live)
        self._measuring.forget()
        try:
            await prepare(calls, self._environment.functions, situation)
            seen = await self._world.observe(look, deliver_image=True)
            draft.see(seen)
            draft.deliver(image=seen.image is not None)
            draft.keep(await self._attempts.snapshot())
        except BaseException as exc:
            interrupted = isinstance(exc, asyncio.CancelledError)
            attempt.fail(exc, "while it was set up", interrupted=interrupted)
            await self._journal.keep(draft)
            if isinstance(exc, HudMcpError) or not isinstance(exc, Exception):
                raise
            raise ActionFailed(f"The setup failed: {draft.error}") from exc
        draft.do(len(calls))
        await self._journal.add(draft)
        return as_shown(draft, deliver_image=True, rewards_shown=self._rewards_shown)

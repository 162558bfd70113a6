"""What a session's calls do to its world, and what the agent is shown of it.

Every call is recorded durably before it returns, with what it did, also where it failed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from hud_mcp.action import Action, ResponseAction
from hud_mcp.call import FunctionConfig
from hud_mcp.environment import Environment
from hud_mcp.environment.calls import Measurement, combination, measure, prepare
from hud_mcp.errors import (
    ActionFailed,
    BrokenByAgent,
    EnvironmentFailed,
    HudMcpError,
    InvalidAction,
    LimitReached,
    StoreFailed,
)
from hud_mcp.function import Situation
from hud_mcp.grade import Cause, Outcome
from hud_mcp.observation import (
    Look,
    Observation,
    TaskResult,
)
from hud_mcp.record.trajectory import utc_now
from hud_mcp.session.deaths import whose_doing
from hud_mcp.session.direct import DirectAccess
from hud_mcp.session.endings import Ending, died_again
from hud_mcp.session.events import Answered, Broke
from hud_mcp.session.executor import Post
from hud_mcp.session.journal import Draft, Journal, StepKind
from hud_mcp.session.limits import Limits
from hud_mcp.session.live_world import LiveWorld
from hud_mcp.session.measuring import BY_AGENT, FINAL_RESPONSE, Measuring
from hud_mcp.session.patience import within
from hud_mcp.session.stepped import (
    Stepped,
    as_actions,
    tool_observation,
    which_failed,
    why,
    why_stopped,
)
from hud_mcp.task import Task
from hud_mcp.tool import Tool

__all__ = ["Stepped", "Steps"]

logger = logging.getLogger(__name__)
T = TypeVar("T")

_LOOK_S = 5.0
"""How long a world may take to be looked at as it is answered: the answer does not wait longer."""
_KEEP_S = 20.0
"""The same for its snapshot, which the grade does not need."""


class Steps:
    """Performs one session's calls on its world, one at a time, and observes after each.

    Args:
        environment: Whose actions they are.
        world: What they act on.
        limits: What bounds a call.
        journal: Takes every step.
        direct: Who else uses the world.
        rewards_shown: Whether the agent is told the reward of a step.
        post: Is told of the answer, once the step that submits it is recorded.
        life: In which life of the world.
        measuring: Takes what is done and measured.
        operated: Whether an answer is kept for an operator's `evaluate`, and not handed over.
        log: Takes a line for the session's log.
    """

    def __init__(
        self,
        environment: Environment,
        world: LiveWorld,
        *,
        limits: Limits,
        journal: Journal,
        direct: DirectAccess,
        rewards_shown: bool,
        post: Post,
        life: int,
        measuring: Measuring,
        operated: bool,
        log: Callable[[str], None],
    ) -> None:
        self._measuring = measuring
        self._operated = operated
        self._environment = environment
        self._world = world
        self._limits = limits
        self._journal = journal
        self._direct = direct
        self._rewards_shown = rewards_shown
        self._post = post
        self._life = life
        self._log = log
        self._was_dead = False
        self._could_come_back = False

    @property
    def can_come_back(self) -> bool:
        """Whether the world, if it dies now, can be brought back from what is recorded."""
        journal = self._journal
        return (
            journal.is_complete
            and not journal.is_behind
            and not journal.taken
            and self._world.can_come_back(journal.changed, journal.snapshot_step)
        )

    async def attempt(self, run: Callable[[], Awaitable[T]]) -> T:
        """Make a call; where it finds the world broken, say so, and whose doing it is."""
        try:
            return await run()
        except EnvironmentFailed as exc:
            self._post(self._broke(exc))
            raise

    def _broke(self, exc: EnvironmentFailed) -> Broke:
        reason, deaths = self._world.died or str(exc), self._journal.deaths
        undone = bool(deaths) and deaths[-1].index == self._journal.count - 1
        cause = whose_doing(deaths, has_acted=self._journal.changed > 0) if undone else None
        if undone and cause is None:
            ending = None  # nobody is to blame, and it comes back
        elif cause is Cause.AGENT:
            ending = died_again(reason)
        else:
            ending = Ending(Outcome.ENVIRONMENT_FAILED, error=str(exc), told=str(exc))
        return Broke(self._life, reason, ending)

    def check_actions(self, actions: Sequence[Action]) -> None:
        """Refuse actions that cannot be performed here.

        Raises:
            InvalidAction: One is not of this environment.
            LimitReached: They are too many, or an answer among them is too long.
        """
        limit = self._limits.actions_per_step
        if len(actions) > limit:
            raise LimitReached(
                f"{len(actions)} actions in one step; at most {limit} are taken. Nothing was done; "
                "send them in several steps."
            )
        allowed = self._environment.world.actions | {"response"}
        for i, action in enumerate(actions):
            if action.type not in allowed:
                where = f"actions[{i}]: " if len(actions) > 1 else ""
                raise InvalidAction(
                    f"{where}{action.type!r} is not an action of environment "
                    f"{self._environment.name!r}; it takes {', '.join(sorted(allowed))}. None was "
                    "performed."
                )
            if isinstance(action, ResponseAction):
                self.check_answer(action.text)
        self._world.pointer.check(actions, follows=self._operated)

    def check_answer(self, answer: str, max_bytes: int | None = None) -> None:
        """Refuse an answer that is too long: longer than arguments may be, by default.

        Raises:
            LimitReached: Saying how long it may be.
        """
        most = self._limits.argument_bytes if max_bytes is None else max_bytes
        if (size := len(answer.encode())) > most:
            raise LimitReached(
                f"The answer has {size} bytes; at most {most} are taken. Nothing was submitted."
            )

    async def perform(
        self,
        actions: Sequence[Action],
        look: Look,
        kind: StepKind,
        *,
        deliver_image: bool,
    ) -> Stepped:
        """Perform actions that were checked, in order, then observe.

        Args and what is raised are those of `Session.step`.
        """
        draft = self._draft(
            kind, [a.model_dump(mode="json", exclude_none=True) for a in actions], look
        )
        draft.delivered_image = deliver_image and self._environment.world.has_screen
        died = False
        try:
            answer = await self._act(actions, draft)
            if answer is not None:
                died = await self._look_for_answer(draft, look, deliver_image=deliver_image)
            else:
                await self._look(draft, look, deliver_image=deliver_image)
                draft.snapshot = await self._snapshot(answers=False)
        except BaseException as exc:
            draft.error = why_stopped(exc, f"after {draft.performed} of {len(actions)} actions")
            draft.interrupted = not isinstance(exc, HudMcpError)
            self._undo_if_dead(draft, exc)
            self._note(draft)  # what was done before it stopped, was done
            await self._journal.keep(draft)
            raise
        self._note(draft)
        if answer is None:
            await self._journal.add(draft)
        elif self._operated:
            await self._keep_answer(answer, draft)
        else:
            await self._submit(answer, draft, died=died)
        return self._shown(draft, deliver_image=deliver_image, answered=answer is not None)

    async def measure(self, task: Task, calls: Sequence[FunctionConfig] | None) -> Measurement:
        """Make `evaluate` calls on the world as it is, and record what they returned.

        Args:
            task: Whose own calls they are where others are not given.
            calls: Others in their place: what they return is never the task's grade.

        Raises:
            GradingFailed: One cannot run; that is recorded, and the session lives on.
            EnvironmentFailed, StoreFailed, SessionTaken: As for `perform`.
        """
        own = calls is None
        named = task.evaluate if calls is None else calls
        draft = self._draft("evaluate", as_actions(named), Look())
        draft.info = {"override": not own}
        situation = Situation(
            world=self._world.live,
            answer=self._measuring.final_response or "",
            history=self._measuring.history,
        )
        try:
            measured = await measure(
                named, self._environment.functions, situation, combine=combination(task)
            )
            draft.snapshot = await self._snapshot(answers=False)
        except BaseException as exc:
            draft.error = why_stopped(exc, "while it was evaluated")
            draft.interrupted = isinstance(exc, asyncio.CancelledError)
            if isinstance(exc, BrokenByAgent):
                draft.info[BY_AGENT] = True
            self._undo_if_dead(draft, exc)
            if own and not isinstance(exc, EnvironmentFailed):
                failure = None if draft.interrupted else draft.error
                self._measuring.fail(failure, by_agent=isinstance(exc, BrokenByAgent))
            await self._journal.keep(draft)
            raise
        grade = measured.grade
        draft.performed = len(named)
        draft.info |= {
            "results": list(measured.results),
            "grade": None if grade is None else grade.model_dump(mode="json"),
        }
        await self._journal.add(draft)
        if own:
            self._measuring.note(measured)
        return measured

    async def set_up(self, calls: Sequence[FunctionConfig], look: Look) -> Stepped:
        """Make `setup` calls again, and look: what was measured before does not count any more.

        Raises:
            ActionFailed: One raised; the session lives on.
            EnvironmentFailed, StoreFailed, SessionTaken: As for `perform`.
        """
        draft = self._draft("reset", as_actions(calls), look)
        situation = Situation(world=self._world.live)
        self._measuring.forget()
        try:
            await prepare(calls, self._environment.functions, situation)
            draft.observation = await self._world.observe(look, deliver_image=True)
            draft.delivered_image = draft.observation.image is not None
            draft.snapshot = await self._snapshot(answers=False)
        except BaseException as exc:
            draft.error = why_stopped(exc, "while it was set up")
            draft.interrupted = isinstance(exc, asyncio.CancelledError)
            self._undo_if_dead(draft, exc)
            await self._journal.keep(draft)
            if isinstance(exc, HudMcpError) or not isinstance(exc, Exception):
                raise
            raise ActionFailed(f"The setup failed: {draft.error}") from exc
        draft.performed = len(calls)
        await self._journal.add(draft)
        return self._shown(draft, deliver_image=True, answered=False)

    async def run_tool(self, tool: Tool, arguments: dict[str, Any], look: Look) -> Stepped:
        """Call a tool with arguments that were checked, and record what the world looks like then.

        Raises:
            ActionFailed: It raised.
            EnvironmentFailed, StoreFailed, SessionTaken: As for `perform`.
        """
        draft = self._draft("tool", [{"tool": tool.name, "args": arguments}], look)
        self._world.note_tool(tool)
        try:
            value = await tool.call_in(arguments, self._world.live, self._world.services)
            seen = await self._world.observe(
                look.model_copy(update={"text": False}), deliver_image=False
            )
            shown = tool_observation(value, look)
            draft.snapshot = await self._snapshot(answers=False)
        except BaseException as exc:
            draft.error = why_stopped(exc, f"while {tool.name} ran")
            draft.interrupted = isinstance(exc, asyncio.CancelledError)
            # A tool that leaves with SystemExit is not the server's end.
            theirs = isinstance(exc, Exception | SystemExit)
            ours = isinstance(exc, HudMcpError) or not theirs
            self._undo_if_dead(draft, exc)
            if not ours:
                draft.error = f"{tool.name} failed: {draft.error}"
                logger.exception("tool %s raised", tool.name)
            await self._journal.keep(draft)
            if ours:
                raise
            raise ActionFailed(draft.error) from None
        draft.performed = 1
        draft.observation = Observation(text=shown.text or "", image=seen.image)
        await self._journal.add(draft)
        return Stepped(result=TaskResult(observation=shown), performed=1)

    async def respond(self, answer: str) -> None:
        """Submit an answer, with what the world looks like, if it shows that.

        Raises:
            StoreFailed: It could not be recorded, and was not submitted.
            SessionTaken: The same.
        """
        look = Look()
        draft = self._draft("response", [{"type": "response", "text": answer}], look)
        died = await self._look_for_answer(draft, look, deliver_image=False)
        await self._submit(answer, draft, died=died)

    async def _look(self, draft: Draft, look: Look, *, deliver_image: bool) -> None:
        """Look at the world after what was done; where the agent's doing prevents that, say so."""
        try:
            draft.observation = await self._world.observe(look, deliver_image=deliver_image)
        except BrokenByAgent as exc:
            if draft.error is None and not draft.performed:
                raise
            said = f"{draft.error} " if draft.error else ""
            draft.error = f"{said}What was done stands, but it cannot be looked at: {exc}"

    async def _look_for_answer(self, draft: Draft, look: Look, *, deliver_image: bool) -> bool:
        """Look at the world as it is answered, and keep its state: neither may stop the answer.

        Returns:
            Whether the world is dead.

        Raises:
            EnvironmentFailed: It died of what this call did before the answer, and it is better
                undone than answered.
        """
        if getattr(self._environment.world, "opens_nothing", False):
            draft.observation = await self._world.observe(look, deliver_image=deliver_image)
            return False
        step_s = self._limits.step_s
        try:
            draft.observation = await within(
                min(_LOOK_S, step_s / 4),
                self._world.observe(look, deliver_image=deliver_image),
            )
        except EnvironmentFailed as exc:
            if draft.performed and self.can_come_back and not self._world.replays:
                raise
            draft.error = f"Nothing was seen as it was answered: {exc}"
            return True
        except Exception as exc:  # noqa: BLE001  # whatever a world raises, the answer stands
            draft.error = f"Nothing was seen as it was answered: {why(exc)}"
        try:
            draft.snapshot = await within(min(_KEEP_S, step_s / 2), self._snapshot(answers=True))
        except Exception as exc:  # noqa: BLE001  # the same
            self._log(f"no snapshot of what was answered: {why(exc)}")
        return False

    def _undo_if_dead(self, draft: Draft, exc: BaseException) -> None:
        """Where the world died and can come back, nothing of the call stands."""
        if isinstance(exc, EnvironmentFailed) and self._could_come_back:
            draft.undo(was_dead=self._was_dead)
            draft.error = self._world.died or str(exc)

    async def _snapshot(self, *, answers: bool) -> bytes | None:
        """The world's state: where it is answered as it is, else not in the middle of a visit."""
        if answers:
            return await self._world.snapshot(self._journal.count)
        return await self._direct.take()

    async def _act(self, actions: Sequence[Action], draft: Draft) -> str | None:
        """Perform actions until one is refused or the episode ends; return the answer, if any."""
        answers = (i for i, each in enumerate(actions) if isinstance(each, ResponseAction))
        end = next(answers, len(actions))
        try:
            await self._world.act(actions[:end], draft.add)
        except ActionFailed as exc:
            draft.error = which_failed(actions, draft.performed, exc)
            return None
        over = draft.terminated or draft.truncated
        last = actions[end] if end < len(actions) and not over else None
        return last.text if isinstance(last, ResponseAction) else None

    def _shown(self, draft: Draft, *, deliver_image: bool, answered: bool) -> Stepped:
        """A step as the agent sees it."""
        seen = draft.observation or Observation()
        image = seen.image if deliver_image else None
        return Stepped(
            result=TaskResult(
                observation=Observation(text=seen.text, image=image, values=seen.values),
                reward=draft.reward if self._rewards_shown else None,
                terminated=draft.terminated,
                truncated=draft.truncated,
                info=draft.info,
            ),
            performed=draft.performed,
            error=None if answered else draft.error,
            notes=tuple(draft.notes),
            answered=answered,
        )

    async def _keep_answer(self, answer: str, draft: Draft) -> None:
        """Record an answer that an operator will grade."""
        draft.performed += 1
        draft.info[FINAL_RESPONSE] = answer
        self._measuring.note_actions(draft.actions[draft.performed - 1 : draft.performed])
        self._measuring.final_response = answer
        await self._journal.add(draft)

    async def _submit(self, answer: str, draft: Draft, *, died: bool) -> None:
        """Record the step that answers, and only then hand the answer over."""
        await self._world.stop_agent()
        draft.performed += 1
        draft.answers = True
        try:
            await self._journal.add(draft)
        except StoreFailed as exc:
            self._journal.withdraw()
            draft.performed -= 1
            draft.answers = False
            done = ""
            if draft.kind != "response":
                draft.error = "the answer was not submitted"
                self._journal.owe(draft)
                done = " What came before it in this call was performed: do not repeat it."
            raise StoreFailed(
                "The answer was not submitted, because it cannot be recorded. "
                f"{exc.__cause__}{done}"
            ) from None
        self._measuring.note_actions(draft.actions[draft.performed - 1 : draft.performed])
        self._post(
            Answered(
                self._life,
                answer,
                utc_now(),
                died=(self._world.died or "It could not be looked at.") if died else None,
                comes_back=died and self.can_come_back,
            )
        )

    def _note(self, draft: Draft) -> None:
        """Add what was performed to what functions may ask for."""
        self._measuring.note_actions(draft.actions[: draft.performed], draft.targets)

    def _draft(self, kind: StepKind, actions: list[dict[str, Any]], look: Look) -> Draft:
        draft = Draft(kind, actions)
        draft.scale = self._world.scale
        draft.look = look.model_dump(mode="json", exclude_defaults=True)
        self._was_dead = self._world.died is not None
        self._could_come_back = self.can_come_back  # before the call adds what no replay repeats
        return draft

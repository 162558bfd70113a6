"""One held task for its callers: each call takes its turn, and is durable before it returns."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import anyio

from hud_mcp.environment.conversation import NOT_CARRIED
from hud_mcp.environment.spec import Shared
from hud_mcp.environment.tool import Exchange, Tool
from hud_mcp.environment.world import World
from hud_mcp.errors import (
    AlreadyAnswered,
    HudMcpError,
    InvalidTask,
    OutOfStep,
    SessionBusy,
    SessionEnded,
    SessionResuming,
)
from hud_mcp.record.values import Receipt, utc_now
from hud_mcp.session.caller import Caller
from hud_mcp.session.carry_out import EFFECTS
from hud_mcp.session.direct import Access, access
from hud_mcp.session.draft import StepKind, Stepped
from hud_mcp.session.events import Changes, EndWanted, Meets, Phase
from hud_mcp.session.held_task import HeldTask
from hud_mcp.session.messages import recall, say
from hud_mcp.session.receipts import DONE, NEXT, RESUMING, answered_text, over_text
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.session.spec import SessionSpec
from hud_mcp.session.steps import (
    RequestedStep,
    ask,
    check_actions,
    check_answer,
    out_of_step,
    perform,
    respond,
    run_tool,
)
from hud_mcp.session.talk import Heard
from hud_mcp.store import Store
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.values.action import Action
from hud_mcp.values.grade import Cause, Outcome
from hud_mcp.values.observation import Look, Screenshot

_MEASURE_S = 5.0
"""The longest time that a start waits for the measurement of a screen."""

_MARGIN_S = 30.0
"""The time of a message beside its template's own, which ends first."""


class Session(HeldTask):
    """One held task with the calls on it, made and started by `Sessions`."""

    __slots__ = (
        "agent_called", "begun_s", "caller", "environment", "id", "name", "reward_policy",
        "secret_digest", "task", "trajectory_id", "waited_at_begin_s",
    )  # fmt: skip

    def __init__(
        self,
        spec: SessionSpec,
        *,
        session_id: str,
        caller: Caller,
        store: Store,
        shared: Shared,
        provisional: bool = False,
        stored: StoredSession | None = None,
        program: "asyncio.Task[None] | None" = None,
        changes: Changes,
        on_over: "Callable[[Session], None]" = lambda _: None,
    ) -> None:
        super().__init__(
            spec,
            effects=EFFECTS,
            store=store,
            shared=shared,
            stored=stored,
            provisional=provisional,
            program=program,
            changes=changes,
            on_over=on_over,
        )
        self.id = session_id  # empty while this process does not know it
        self.caller = caller
        self.agent_called = False  # whether an agent in a process of its own has
        self.environment = spec.environment
        self.task = spec.task
        self.reward_policy = spec.reward_policy
        self.trajectory_id = spec.trajectory_id
        self.secret_digest = spec.secret_digest
        self.name = spec.name
        open_s = (utc_now() - spec.started_at).total_seconds()
        # By `time.monotonic`, also for a session that began in another process.
        self.begun_s = self.touched_s - max(0.0, open_s)
        self.waited_at_begin_s = self.waited_at_touch_s

    # Facts that the state alone does not tell.

    @property
    def receipt(self) -> Receipt | None:
        """The receipt; None until it is recorded."""
        return self.state.receipt

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.journal.count

    @property
    def latest(self) -> Screenshot | None:
        """The picture of the last observation; None before any, and after the end."""
        return None if self.state.is_over else self.life.world.latest

    @property
    def screen_size(self) -> tuple[int, int] | None:
        """The width and height of the agent's pictures, in pixels; None without any, or unknown."""
        # A closed world has no screen to look at, so no size is promised.
        shows = self.environment.world.has_screen and not self.state.is_over
        return self.life.world.screen_size if shows else None

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way, or the task is being graded."""
        return self.state.is_at_work or self.life.is_used

    @property
    def can_park(self) -> bool:
        """Whether another server process could resume the session."""
        journal, world = self.journal, self.life.world
        return self.state.may_be_taken(
            is_behind=journal.is_behind,
            can_resume=world.can_resume(journal.changed, journal.snapshot_step),
        )

    # The calls.

    async def measure_screen(self) -> None:
        """Have `screen_size` known, if the world can soon measure it."""
        shows = self.environment.world.has_screen and not self.state.is_over
        if shows and self.screen_size is None:
            life = self.life
            with suppress(HudMcpError):  # it took too long, or the session ended
                await life.turn.call(life.world.measure_screen, _MEASURE_S)

    def explain(self) -> str:
        """The rules of the world, if it tells them before a look; else empty."""
        prompt = self.prompt.text if self.prompt else ""
        return "" if self.state.is_over else self.life.world.explain(prompt)

    async def step(
        self,
        actions: Sequence[Action],
        look: Look,
        *,
        kind: StepKind = "step",
        deliver_image: bool = True,
        after_step: int | None = None,
    ) -> Stepped:
        """Perform actions in order, then observe. A response action is the last one performed.

        If this call is cancelled, what was performed is recorded, and the session lives on.

        Args:
            actions: None for a look alone.
            look: The wanted observation.
            kind: The call's name in the record.
            deliver_image: Whether the agent sees the picture. If not, places in its next actions
                still refer to the picture before.
            after_step: The number of steps that the caller has seen. If the record has one more,
                and that is this very call, it is returned, and nothing is done.

        Returns:
            The agent's view. If an action was refused, `error` names it and the reason.

        Raises:
            OutOfStep, InvalidAction, SessionEnded, SessionBusy, AlreadyAnswered: Nothing was done.
            LimitReached: The actions are too many, or take too long; the session lives on.
            EnvironmentFailed: The world broke, and the session has ended without a grade.
            StoreFailed: The step was done but not recorded; the text says so.
        """
        if self.state.phase is not Phase.OPEN:
            await self.back()
        check_actions(self.life, actions)
        asked = RequestedStep(
            kind, actions, look, deliver_image and self.environment.world.has_screen
        )
        if after_step is None:
            return await self.in_turn(partial(perform, self.life, asked), self.spec.limits.step_s)
        return await self._perform_once(asked, after_step)

    async def _perform_once(self, asked: RequestedStep, after_step: int) -> Stepped:
        """Perform a step whose caller names the steps that it has seen; raises as `step` does."""

        async def run() -> Stepped:
            if after_step == self.steps:
                self.refuse_if_over()
                return await perform(self.life, asked)
            await self.journal.flush()  # a step that is not written yet counts
            return await self._recall(asked, after_step)

        try:
            # Not refused before its turn: a repeated call gets its recorded reply even after the
            # end.
            return await self.in_turn(run, self.spec.limits.step_s, refuses=False)
        except (SessionEnded, AlreadyAnswered):
            if self.state.is_let_go or after_step == self.steps:
                raise
            with suppress(OutOfStep):  # that it is over says more
                return await self._recall(asked, after_step)
            raise

    async def _recall(self, asked: RequestedStep, after_step: int) -> Stepped:
        """Return the result of the last step; raise OutOfStep if that is another call's."""
        shown = self.spec.rewards_shown
        found = await asked.recall(self.store, self.trajectory_id, after_step, rewards_shown=shown)
        if found is None:
            raise OutOfStep(out_of_step(after_step, self.steps))
        return found

    async def call_tool(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        look: Look,
        exchange: Exchange | None = None,
    ) -> Stepped:
        """Call an own tool of the environment; raises as `step` does.

        Raises:
            InvalidTask: An argument is wrong. The tool did not run.
            ActionFailed: The tool raised; the session lives on.
        """
        # Before the turn, so that a wrong argument waits for nobody.
        tool.arguments.parse(arguments)
        if self.state.phase is not Phase.OPEN:
            await self.back()
        run = partial(run_tool, self.life, tool, arguments, look, exchange)
        return await self.in_turn(run, self.spec.limits.step_s)

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Ask the world for a prompt or a resource of its own; raises as `step` does."""
        if self.state.phase is not Phase.OPEN:
            await self.back()
        return await self.in_turn(partial(ask, self.life, method, params), self.spec.limits.step_s)

    @property
    def waits_for(self) -> str | None:
        """The tool that a conversation waits for; None for a template that asks once."""
        talk = self.life.driver.talk
        return None if talk is None else "response" if talk.heard.asks else "message_user"

    async def person(self) -> Any:
        """Return the person in place of the users of its conversation; None without one."""
        if self.state.phase is not Phase.OPEN:
            await self.back()
        talk = self.life.driver.talk
        return None if talk is None else talk.conversation.speaker

    async def say(self, text: str, *, ends: bool, after_step: int | None = None) -> Heard:
        """Say something in a conversation, and wait for the words that come back.

        If this call is cancelled, the words stay said. With `ends`, they end the conversation or
        answer an `Ask`. `after_step` is that of `step`: a repeated message is said once.

        Raises:
            InvalidAction, LimitReached, OutOfStep: Nothing was said.
            SessionEnded, SessionBusy, AlreadyAnswered, EnvironmentFailed, StoreFailed: As `step`.
        """
        check_answer(self.life, text)
        if self.state.phase is not Phase.OPEN:
            await self.back()

        async def run() -> Heard:
            if after_step is not None and after_step != self.steps:
                await self.journal.flush()
                return await recall(self.store, self.trajectory_id, after_step, text)
            return await say(self.life, text, ends=ends)

        # Detached: the user's reply is paid for, and the template cannot go back.
        limit_s = self.spec.limits.grade_s + _MARGIN_S
        return await self.in_turn(run, limit_s, detached=True)

    async def respond(
        self, answer: str, *, wait_s: float | None = None, max_bytes: int | None = None
    ) -> Receipt | None:
        """Submit the final answer, once, and wait for the grade, at most `wait_s` if given.

        If this call is cancelled, the answer stays submitted and grading goes on.

        Returns:
            The receipt, also for the same answer again; None if grading goes on after `wait_s`.

        Raises:
            AlreadyAnswered: Another answer was submitted before; its grade stands.
            SessionEnded: The session ended without a grade; the text says how.
            LimitReached: The answer has more than `max_bytes`, or the limit. Nothing was submitted.
            StoreFailed: The grade was not recorded. The same answer again writes it again.
        """
        check_answer(self.life, answer, max_bytes)
        if (
            self.waits_for is not None and self.state.answer is None
        ):  # callers without `end_talk` have one answer
            raise InvalidTask(NOT_CARRIED)
        if self.state.answer is None:
            submit = partial(self._submit, answer)
            # Detached: an answer whose caller leaves stays submitted. The same answer may come
            # again.
            await self.in_turn(submit, self.spec.limits.step_s, detached=True, refuses=False)
        elif self.state.answer != answer:
            raise AlreadyAnswered(answered_text(self.state))
        return await self.graded(wait_s)

    async def end_talk(self, answer: str, *, wait_s: float) -> Heard | Receipt | None:
        """Respond in a conversation: end it, or answer an `Ask`; raises as `respond` does.

        Returns:
            The words that come back if the session goes on; else as `respond`, also for any answer
            after the template graded a message.
        """
        if not (self.state.is_graded or self.state.is_over):
            with suppress(AlreadyAnswered, SessionEnded):  # by now; the receipt tells more
                heard = await self.say(answer, ends=True)
                if not heard.is_over:
                    return heard
        if not self.state.by_message and self.state.answer not in (None, answer):
            raise AlreadyAnswered(answered_text(self.state))
        return await self.graded(wait_s)

    async def graded(self, wait_s: float | None) -> Receipt | None:
        """Wait for the grade of what was answered; as `respond`."""
        if wait_s is None:
            await self.over()
        else:
            with anyio.move_on_after(wait_s):
                await self.over()
        if not self.state.is_over:
            return None
        # The same answer again is also the way to write an end that the store refused before.
        if self.journal.has_pending_end:
            await self.flush_end()
        receipt = self.state.receipt
        if receipt is None or receipt.outcome is not Outcome.GRADED:
            raise SessionEnded(over_text(self.state))
        return receipt

    async def _submit(self, answer: str) -> None:
        given = self.state.answer
        if given is None:
            self.refuse_if_over()
            await respond(self.life, answer)
        elif given != answer:  # another call's answer had its turn before this one
            raise AlreadyAnswered(answered_text(self.state))

    @asynccontextmanager
    async def direct_access(self, protocol: str, what: Mapping[str, Any]) -> AsyncGenerator[Access]:
        """Use the live world directly, while the block runs, after any resumption of it.

        The use is one step, durable when the block has been left. Before the block, the record says
        durably that it is behind. If the server dies then, the session is lost, and not graded
        without it.

        Raises:
            SessionBusy: The session is being started.
            SessionEnded, AlreadyAnswered: The session is over, or being graded.
            StoreFailed: The use cannot be recorded; before the block was entered, nothing was done.
        """
        # A world that has died and comes back can be used a moment later.
        await self.back()
        async with access(self.life.direct, self, protocol, what) as one:
            yield one

    def direct_world(self) -> World:
        """Return the live world for looks alone; `direct_access` is for acting in it.

        Raises:
            SessionBusy, SessionEnded, AlreadyAnswered: As for `direct_access`. SessionBusy also
                while the world is being resumed; `back` waits for that.
        """
        try:
            self.refuse_if_over()
        except SessionEnded as exc:  # a user of its world has this session alone
            raise SessionEnded(str(exc).replace(NEXT, DONE)) from None
        if self.state.meets is Meets.START:
            raise SessionBusy("The task is being started; wait for its prompt, then try again.")
        return self.life.world.live

    async def catch_up(self) -> None:
        """Take the snapshot that is missing after a direct use, if one is."""
        direct = self.life.direct

        async def run() -> None:
            self.direct_world()
            await direct.catch_up()

        if direct.is_behind:
            with suppress(HudMcpError):
                await self.in_turn(run, 2 * direct.limit_s, refuses=False)

    async def cancel(self, *, reason: str | None = None, cause: Cause = Cause.AGENT) -> None:
        """End the session without a grade. An ended session stays unchanged.

        Raises:
            SessionBusy: The session was answered, and is being graded.
            SessionEnded: The session is over here, and goes on elsewhere.
        """
        if not self.state.is_coming_back and self.state.meets is Meets.RESUMING:
            raise SessionResuming(RESUMING)
        if not self.state.is_over:
            if self.state.is_graded:
                raise SessionBusy("The task is being graded; it ends with its grade.")
            told = "It was cancelled by the client."
            await self.finish(SessionEnd(Outcome.CANCELLED, error=reason, told=told, cause=cause))
        if self.state.phase is Phase.PARKED:
            raise SessionEnded(over_text(self.state))

    async def finish(self, end: SessionEnd, *, abort: bool = False) -> None:
        """End the session, after its grading unless `abort` is set, and close its world."""
        self.post(EndWanted(end, abort=abort))
        await self.closed()

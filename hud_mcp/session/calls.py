"""What callers do with a session's world: each call in its turn, refused where the state says so.

Every call is recorded durably before it returns.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import anyio

from hud_mcp.action import Action, CustomAction
from hud_mcp.contention import Contention
from hud_mcp.errors import (
    AlreadyAnswered,
    EnvironmentFailed,
    HudMcpError,
    OutOfStep,
    SessionBusy,
    SessionEnded,
    SessionResuming,
    WorldDied,
)
from hud_mcp.grade import Outcome
from hud_mcp.observation import Look
from hud_mcp.record.trajectory import Receipt
from hud_mcp.record.values import UNDONE
from hud_mcp.session.commands import CallCutOff
from hud_mcp.session.core import Core
from hud_mcp.session.direct import Access, access
from hud_mcp.session.draft import StepKind
from hud_mcp.session.events import Recorded, Touched
from hud_mcp.session.life import SessionSpec
from hud_mcp.session.phase import Meets, Phase
from hud_mcp.session.quick import Performed
from hud_mcp.session.receipts import DONE, NEXT, died_text
from hud_mcp.session.repeats import RepeatedStep, out_of_step
from hud_mcp.session.stepped import Stepped
from hud_mcp.session.view import SessionView
from hud_mcp.store import Store
from hud_mcp.tool import Tool
from hud_mcp.world import World

__all__ = ["RESUMING", "SessionCalls"]

T = TypeVar("T")

RESUMING = (
    "The session is being resumed after its server ended, which takes a while. Nothing was "
    "done; call again in some seconds with its id."
)
"""What a caller is told who does not wait for that any longer."""


class SessionCalls(SessionView):
    """What callers do with the world of one session.

    Args:
        spec: The parts of the session.
        core: Its state and its parts.
        store: Where its steps are read again.
        contention: What the machine takes.
    """

    def __init__(
        self, spec: SessionSpec, core: Core, *, store: Store, contention: Contention
    ) -> None:
        super().__init__(spec, core)
        self._store = store
        self._contention = contention

    async def step(
        self,
        actions: Sequence[Action],
        look: Look,
        *,
        kind: StepKind = "step",
        deliver_image: bool = True,
        after_step: int | None = None,
    ) -> Stepped:
        """Perform actions in order, then observe.

        Args:
            actions: None of them for a look alone. A response action submits the answer
                and ends the list.
            look: What to observe.
            kind: How the record names the call.
            deliver_image: Whether the agent is shown the picture; where not, the places
                that it names still refer to the picture before.
            after_step: How many steps the caller has seen. Where there is one more, and it is
                this very call's, that is returned as it is recorded, and nothing is done.

        Returns:
            What the agent sees; also where an action was refused: its `error` then says
            which, and `performed` how many came before it.

        Raises:
            OutOfStep: There are others than `after_step` says. Nothing was done.
            InvalidAction: One is not of this environment. None was performed.
            LimitReached: They are too many, or take too long; the session lives on.
            SessionEnded, SessionBusy, AlreadyAnswered: Nothing was done.
            EnvironmentFailed: The world broke, and the session has ended without a grade.
            StoreFailed: The step was done but not recorded; the text says so.

        If this call is cancelled, the action under way may or may not have happened;
        what was performed is recorded, and the session lives on.
        """
        await self.back()
        self._core.life.steps.check_actions(actions)
        shows = deliver_image and self.environment.world.has_screen
        asked = RepeatedStep(kind, actions, look, shows)

        async def run() -> Stepped:
            if after_step is not None and after_step != self.steps:
                await self._core.journal.flush()  # a step that is still owed is one
                return await self._recall(asked, after_step)
            self._refuse_if_over()
            return await self._core.life.steps.perform(
                actions, look, kind, deliver_image=deliver_image
            )

        def runs_now() -> bool:
            repeats = after_step is not None and after_step != self.steps
            return self.is_open and not repeats and self._core.life.acts_now(actions, look)

        try:
            return await self.enqueue(run, self.limits.step_s, now=runs_now)
        except (SessionEnded, AlreadyAnswered):
            if after_step is None or self.is_let_go or after_step == self.steps:
                raise
            with suppress(OutOfStep):  # that it is over says more
                return await self._recall(asked, after_step)
            raise

    async def perform_quickly(self, action: CustomAction, look: Look) -> Performed | Stepped:
        """Perform one action of many, as a program does that trains.

        Where the store writes late, as it can, and the world waits for nothing, the actions until
        `end_quick_actions` are one step of the record. That is called before anything else is done
        with the session. Elsewhere this is a `step`.

        Args:
            action: Of the environment's own; what it is was checked.
            look: What to observe; without a picture.

        Raises:
            SessionEnded, SessionBusy, AlreadyAnswered, EnvironmentFailed, StoreFailed: As
                for `step`.
        """
        life = self._core.life
        may_wait = self._store.writes_late and self.is_open and self._core.journal.is_complete
        if may_wait and life.acts_now((action,), look):
            run = partial(life.quick.perform, action, look)
            performed = await self.enqueue(run, self.limits.step_s, now=lambda: True)
            if performed is not None:
                return performed
        life.quick.end()
        return await self.step((action,), look, deliver_image=False)

    def end_quick_actions(self) -> None:
        """Let what `perform_quickly` has done be a step, which is written with the next one."""
        if self.is_open:
            self._core.life.quick.end()

    async def record_quick_actions(self) -> None:
        """Write what `perform_quickly` has done.

        Raises:
            StoreFailed: It was not written; it is kept, and written with the next step.
            SessionTaken: Another server runs the session.
        """
        self.end_quick_actions()
        await self._core.journal.flush()

    async def _recall(self, asked: RepeatedStep, after_step: int) -> Stepped:
        """What the last step gave, if it is this call's.

        Raises:
            OutOfStep: It is not.
        """
        found = await asked.recall(
            self._store, self.trajectory_id, after_step, rewards_shown=self._spec.rewards_shown
        )
        if found is None:
            raise OutOfStep(out_of_step(after_step, self.steps))
        return found

    async def call_tool(self, tool: Tool, arguments: dict[str, Any], look: Look) -> Stepped:
        """Call a tool of the environment's own.

        Raises:
            InvalidTask: An argument is wrong. It did not run.
            ActionFailed: The tool raised; the session lives on.
            SessionEnded, SessionBusy, AlreadyAnswered, EnvironmentFailed, StoreFailed: As
                for `step`.
        """
        tool.arguments.parse(arguments)

        async def run() -> Stepped:
            self._refuse_if_over()
            return await self._core.life.steps.run_tool(tool, arguments, look)

        return await self.enqueue(run, self.limits.step_s)

    async def respond(
        self, answer: str, *, wait_s: float | None = None, max_bytes: int | None = None
    ) -> Receipt | None:
        """Submit the final answer, once, and wait for the grade.

        Args:
            answer: What the template receives.
            wait_s: How long to wait; None for as long as grading may take.
            max_bytes: How long the answer may be; None for the limit of arguments.

        Returns:
            The receipt; None where grading goes on after `wait_s`. The same answer again
            gives the same receipt.

        Raises:
            AlreadyAnswered: Another answer was submitted before; its grade stands.
            SessionEnded: The session ended without a grade; the text says how.
            LimitReached: The answer is too long. Nothing was submitted.
            StoreFailed: It was graded but not recorded. The same answer again tries again.

        If this call is cancelled, the answer stays submitted and grading goes on.
        """
        self._core.life.answers.check(answer, max_bytes)
        given = self._core.state.answer
        if given is None:
            await self._submit(answer)
        elif given != answer:
            raise AlreadyAnswered(self._already_answered())
        if not self.ended.is_set():
            with anyio.move_on_after(wait_s):
                await self.ended.wait()
        if not self.ended.is_set():
            return None
        await self.flush_end()
        if self.receipt is None or self.receipt.outcome is not Outcome.GRADED:
            raise SessionEnded(self._over_text())
        return self.receipt

    async def _submit(self, answer: str) -> None:
        """Submit an answer: now where nothing waits before it, or of it; else in its turn."""
        life = self._core.life
        if not (self.is_open and life.submits_at_once):
            await self.enqueue(partial(self._respond, answer), self.limits.step_s, detached=True)
            return
        self.touch()
        if self.provisional:
            self._core.post(Touched())
        began_s, waited_s = self.touched_s, self._contention.waited_s
        try:
            await asyncio.shield(life.submit_at_once(answer))
        except HudMcpError:
            waited_s = self._contention.waited_s - waited_s
            self._core.strain.note_refusal(waited_s, time.monotonic() - began_s)
            raise
        finally:
            self.touch()

    async def _respond(self, answer: str) -> None:
        """Submit an answer, in its turn."""
        given = self._core.state.answer
        if given is None:
            self._refuse_if_over()
            await self._core.life.answers.respond(answer)
        elif given != answer:  # another call's answer was before this one in the queue
            raise AlreadyAnswered(self._already_answered())

    @asynccontextmanager
    async def direct_access(self, protocol: str, what: Mapping[str, Any]) -> AsyncGenerator[Access]:
        """Use the session's live world directly, while the block runs.

        A world that is being resumed is waited for.

        What is done there is a step of the record, and durable when the block has been left.
        That the record is behind meanwhile is durable before the block is entered: where the
        server dies then, the session ends as lost, and is not graded without that work.

        Args:
            protocol: What it is used over, such as `ssh/2`.
            what: What is done, for the record.

        Raises:
            SessionBusy: It is being started.
            SessionEnded, AlreadyAnswered: It is over, or being graded.
            StoreFailed: It cannot be recorded; before the block was entered, nothing was done.
        """
        await self.back()
        async with access(self._core.life.direct, self, protocol, what) as one:
            yield one

    def direct_world(self) -> World:
        """The live world, to be looked at alone; `direct_access` is for whoever acts in it.

        Raises:
            SessionBusy, SessionEnded, AlreadyAnswered: As for `direct_access`; SessionBusy also
                while it is being resumed, for which `back` waits.
        """
        self._refuse_direct()
        return self._core.life.world.live

    async def catch_up(self) -> None:
        """Take the snapshot that is missing after its world was used directly, if one is."""
        self.end_quick_actions()
        direct = self._core.life.direct
        if direct.is_behind:
            with suppress(HudMcpError):
                await self.enqueue(self._catch_up, 2 * direct.limit_s)

    async def _catch_up(self) -> None:
        self._refuse_direct()
        await self._core.life.direct.catch_up()

    def touch(self) -> None:
        """Note that somebody attends to it: it does not expire as idle meanwhile."""
        self._core.touch()

    async def flush_end(self) -> None:
        """Write the end that the record does not have yet.

        Raises:
            StoreFailed: It still cannot be written.
            SessionTaken: Another server runs the session; its end is decided there.
        """
        stands = await self._core.journal.flush_end()
        if stands is not None:
            self._core.post(Recorded(stands))

    async def enqueue(
        self,
        run: Callable[[], Awaitable[T]],
        limit_s: float,
        *,
        detached: bool = False,
        now: Callable[[], bool] = lambda: False,
    ) -> T:
        """Do something with the world after the calls that wait, and return what that returns.

        Args:
            run: What is done.
            limit_s: How long it may take.
            detached: Whether it goes on where the caller is cancelled.
            now: Whether it can be done in the caller's task, with no limit.

        Raises:
            SessionEnded, SessionResuming, AlreadyAnswered, SessionBusy: It was not done.
            WorldDied: It was undone: the world died of it, and is resumed.
            EnvironmentFailed: The world broke, and the session has ended without a grade.
        """
        await self.back()
        self._refuse_if_over()
        self.touch()
        if self.provisional:
            self._core.post(Touched())
        began_s, waited_s = self.touched_s, self._contention.waited_s
        life, refused = self._core.life.number, True
        try:
            if now():
                result = await self._core.call_now(run)
            else:
                result = await self._core.call(run, limit_s, detached=detached)
            refused = isinstance(result, Stepped) and result.error is not None
        except CallCutOff:
            raise SessionEnded(self._over_text()) from None
        except EnvironmentFailed as exc:
            raise await self._as_told(exc, life) from exc
        else:
            return result
        finally:
            self.touch()
            if refused:
                waited_s = self._contention.waited_s - waited_s
                self._core.strain.note_refusal(waited_s, self.touched_s - began_s)

    async def _as_told(self, exc: EnvironmentFailed, life: int) -> HudMcpError:
        """What a call is told that found its world broken, once it is known what follows."""
        core = self._core
        reason, deaths = core.state.died or str(exc), core.journal.deaths
        if core.state.is_coming_back or core.state.life != life:
            was_dead = bool(deaths) and deaths[-1].info.get(UNDONE) == "before"
            with anyio.move_on_after(self.limits.reply_s):
                await self.back()
            if not (self.is_over or core.state.phase is Phase.ENDING):
                is_back = not core.state.is_coming_back
                return WorldDied(died_text(reason, was_dead=was_dead, is_back=is_back))
        await self.ended.wait()
        if self.receipt is None or self.receipt.outcome is not Outcome.ENVIRONMENT_FAILED:
            return SessionEnded(self._over_text())
        return EnvironmentFailed(self.told or reason)

    def _refuse_if_over(self) -> None:
        meets = self._core.state.meets
        if meets is Meets.END:
            raise SessionEnded(self._over_text())
        self._refuse_if_resuming()
        if meets is Meets.ANSWER:
            raise AlreadyAnswered(self._already_answered())

    def _refuse_if_resuming(self) -> None:
        """Refuse whoever would reach a world that is not yet what the record says.

        `Sessions.find` waits for it, so that callers meet it afterwards.
        """
        if self._core.state.meets is Meets.RESUMING:
            raise SessionResuming(RESUMING)

    def _refuse_direct(self) -> None:
        try:
            self._refuse_if_over()
        except SessionEnded as exc:  # whoever is in its world has this session alone
            raise SessionEnded(str(exc).replace(NEXT, DONE)) from None
        if self._core.state.meets is Meets.START:
            raise SessionBusy("The task is being started; wait for its prompt, then try again.")

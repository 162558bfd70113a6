"""A session: one held task, from its prompt until it is graded, cancelled, expired or lost.

This is its life: how it begins, is resumed and ends. What it is and what follows from what
happens to it is decided in `state`; `core` has that carried out.
"""

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress

from hud_mcp.call import FunctionConfig
from hud_mcp.environment import Environment
from hud_mcp.environment.calls import Measurement
from hud_mcp.errors import (
    EnvironmentFailed,
    GradingFailed,
    HudMcpError,
    InvalidTask,
    LimitReached,
    SessionBusy,
    SessionEnded,
    SessionTaken,
    StoreFailed,
)
from hud_mcp.grade import Cause, Grade, Outcome
from hud_mcp.observation import Look
from hud_mcp.record.trajectory import Receipt, utc_now
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.calls import RESUMING, SessionCalls
from hud_mcp.session.changes import Changes
from hud_mcp.session.core import Core
from hud_mcp.session.events import Claimed, EndWanted, Prompted, Staged
from hud_mcp.session.group_setup import GroupSetup
from hud_mcp.session.life import SessionSpec
from hud_mcp.session.limits import Limits
from hud_mcp.session.phase import Phase, SessionState
from hud_mcp.session.receipts import digest, ended_text
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.session.stepped import Stepped
from hud_mcp.store import Store
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.task import Task
from hud_mcp.template import Prompt
from hud_mcp.world import Shared

__all__ = ["RESUMING", "Caller", "Session", "SessionState", "Stepped"]

_MEASURE_S = 5.0
"""A start is not held up for longer by a screen that is measured."""


class Session(SessionCalls):
    """One held task. Made and started by `Sessions`.

    Args:
        environment: Whose world and template it uses.
        task: What is asked.
        caller: Who started it.
        store: Where it is recorded.
        shared: The process's shared services.
        limits: What bounds it.
        reward_policy: Who sees the reward.
        job_id: The job that it belongs to, or None.
        provisional: Whether it expires early until somebody acts on it.
        stored: The record of a session that another server process began, to go on with.
        session_id: The id that its caller chose for it; one is drawn where it is None.
        local_hosts: Hosts that any row may open, of this machine and of private networks too.
        start_key: By what the starts of its task are counted.
        tries: How many of them there may be; None for any number.
        program: A task that is cancelled with the whole event loop alone; None where none is.
        changes: Is told what is recorded; None for nobody.
        group_setup: The setup that it shares with its group; None where it runs its own.

    Attributes:
        id: Its id, as far as this process has been told it.
        caller: Who started it.
        agent_called: Whether an agent in a process of its own has called a tool here.
        begun_s: When it began, by the clock of `time.monotonic`.
    """

    def __init__(
        self,
        environment: Environment,
        task: Task,
        *,
        caller: Caller,
        store: Store,
        shared: Shared,
        limits: Limits,
        reward_policy: str,
        job_id: str | None = None,
        provisional: bool = False,
        stored: StoredSession | None = None,
        session_id: str | None = None,
        local_hosts: Sequence[str] = (),
        start_key: str = "",
        tries: int | None = None,
        program: "asyncio.Task[None] | None" = None,
        changes: Changes | None = None,
        group_setup: GroupSetup | None = None,
    ) -> None:
        begun = stored.trajectory if stored is not None else None
        self.id = "" if stored is not None else session_id or f"sess-{secrets.token_hex(16)}"
        self.caller = caller
        self.agent_called = False
        replayable = environment.replays(task)
        spec = SessionSpec(
            environment=environment,
            task=task,
            principal=caller.principal,
            token_digest=caller.token_digest,
            is_operated=caller.principal == OPERATOR,
            limits=limits,
            reward_policy=reward_policy,
            job_id=job_id,
            trajectory_id=f"traj-{secrets.token_hex(8)}" if begun is None else begun.id,
            secret_digest=digest(self.id) if stored is None else stored.secret_digest,
            live_token=secrets.token_hex(16) if stored is None else stored.live_token,
            seed=_choose_seed(task, replayable=replayable) if begun is None else begun.seed,
            replayable=replayable,
            started_at=utc_now() if begun is None else begun.started_at,
            start_key=start_key,
            tries=tries,
            local_hosts=tuple(local_hosts),
            group_setup=group_setup,
        )
        core = Core(
            spec,
            store=store,
            shared=shared,
            stored=stored,
            provisional=provisional,
            program=program,
            changes=changes or Changes(),
        )
        super().__init__(spec, core, store=store, contention=shared.contention)
        open_s = (utc_now() - spec.started_at).total_seconds()
        self.begun_s = core.touched_s - max(0.0, open_s)
        self.waited_at_begin_s = core.waited_at_touch_s

    def mark_called(self) -> None:
        """Note that an agent in a process of its own has called a tool."""
        self.agent_called = True

    def know(self, session_id: str) -> None:
        """Take its id from a caller that has it."""
        self.id = session_id

    def log(self, line: str) -> None:
        """Add a line to the session's log; it is recorded with the next step."""
        self._core.journal.log(line)

    async def start(self) -> Prompt:
        """Open the world and run the template to its prompt.

        Returns:
            What is asked.

        Raises:
            EnvironmentFailed: The setup failed; the session has ended and is recorded.
            InvalidContext: The context is not one of the environment's. Nothing was opened.
            LimitReached: The task was started as often as it may be.
            StoreFailed: The record could not be written. Nothing was opened, or it is closed again.

        If this call is cancelled, the half-made session ends as cancelled.
        """
        self._core.stage()
        try:
            prompt = await self._run_to_prompt()
        except asyncio.CancelledError:
            told = "Its start was cancelled."
            self._end_start(SessionEnd(Outcome.CANCELLED, told=told, cause=Cause.OPERATOR))
            raise
        except (StoreFailed, LimitReached, SessionTaken):
            text = "It was not recorded."
            self._end_start(SessionEnd(Outcome.ENVIRONMENT_FAILED, told=text))
            raise
        except Exception as exc:  # its setup failed, and it has its end; or its world is nowhere
            text = str(exc) if isinstance(exc, HudMcpError) else "Its world cannot be found again."
            error = f"{type(exc).__name__}: {exc}"
            self._end_start(SessionEnd(Outcome.ENVIRONMENT_FAILED, error=error, told=text))
            raise
        state = self._core.post(Prompted())
        ends = state.phase is Phase.ENDING or state.is_over
        if ends and not state.has_ended_wait:  # its own deadline may have had it graded by now
            await self.ended.wait()
            raise SessionEnded(self._over_text())
        return prompt

    async def measure_screen(self) -> None:
        """See to it that `screen_size` is known, where its world can find it out soon."""
        if self.screen_size is None and self.environment.world.has_screen and not self.is_over:
            life = self._core.life
            with suppress(HudMcpError):  # it took too long, or the session ended
                await life.commands.call(life.world.measure_screen, _MEASURE_S)

    def explain(self) -> str:
        """The rules of its world, where that tells them before a look; else empty."""
        prompt = self.prompt.text if self.prompt else ""
        return "" if self.is_over else self._core.life.world.explain(prompt)

    def _end_start(self, end: SessionEnd) -> None:
        """End a session that could not be started; one that has an end by now keeps it."""
        self._core.post(EndWanted(end, abort=True))

    async def _run_to_prompt(self) -> Prompt:
        """Run the template to its prompt, with what makes that durable."""
        core = self._core
        # Where nothing is opened or awaited on the way, one commit has the row and its prompt.
        at_once = self.template.prompts_at_once and self.environment.world.opens_nothing
        if not at_once:
            await core.record.begin()
        driven = core.post(Staged(core.life.number)).is_driven
        prompt = await core.life.driver.wait_for_prompt() if driven else None
        if prompt is None:
            await self.ended.wait()
            raise EnvironmentFailed(self._why_not_started())
        core.take_prompt(prompt)
        if at_once:
            await core.record.begin(prompt.text)
        else:
            await core.journal.save_prompt(prompt.text)
        if (handle := await core.life.world.handle()) is not None:
            await core.journal.keep_handle(handle)
        return prompt

    def _why_not_started(self) -> str:
        receipt = self.receipt
        if self.is_operated and receipt is not None and receipt.error is not None:
            return receipt.error  # an agent is told nothing of the author's
        end = self._core.state.end
        return self.told or (end.outcome.value if end is not None else "It has ended.")

    async def resume(self) -> None:
        """Go on with a session that another server process began. It is this process's already.

        The world is opened anew under the same context and seed, the template is run to its
        prompt, then the world is brought to the last recorded step. An answer that was
        submitted is handed to the template again.

        Until this has returned, nothing else reaches it: its state is `resuming`.

        Raises:
            SessionEnded: It cannot come back; it has ended as lost, and is recorded.
            StoreFailed, SessionTaken: Its record cannot be written. It waits there as it was.

        If this call is cancelled, it waits in its record as it was.
        """
        core = self._core
        core.post(Claimed())
        try:
            state = await core.until(lambda state: state.phase is not Phase.RESUMING)
        except asyncio.CancelledError:
            core.post(EndWanted(SessionEnd.left_to_record(), abort=True))
            raise
        if not state.is_back:  # else it may be graded by now
            await self.closed()
            raise core.failure or SessionEnded(ended_text(self.receipt, self.told))

    async def evaluate(self, calls: Sequence[FunctionConfig] | None = None) -> Measurement:
        """Measure, as often as one likes: nothing ends by it, where the task has a prompt.

        A template grades once: there, the answer that was kept is submitted, the session ends,
        and what it was graded with is told again.

        Args:
            calls: What to call in place of the task's own `evaluate`; bound. What they return
                is recorded as an override, and is never the grade.

        Raises:
            GradingFailed: A function cannot run; that is recorded, and the session lives on. Or
                the template failed to grade.
            InvalidTask: The task names nothing to `evaluate`, and nothing was given.
            SessionEnded, SessionBusy, AlreadyAnswered, EnvironmentFailed, StoreFailed: As
                for `step`.
        """
        if calls is None and self.task.prompt is None:
            return await self._graded_by_template()
        if not (self.task.evaluate if calls is None else calls):
            raise InvalidTask(
                "The task has no `evaluate` calls. Give it functions, such as "
                "('response_includes', 'Paris'), or pass them to this call."
            )

        async def run() -> Measurement:
            self._refuse_if_over()
            return await self._core.life.operated.measure(self.task, calls)

        return await self.enqueue(run, self.limits.grade_s)

    async def _graded_by_template(self) -> Measurement:
        """Submit the answer that was kept, once, and return what it was graded with."""
        await self.back()  # until then, what the agent said is not read again
        receipt = self.receipt
        if receipt is None:
            given = self._core.state.answer
            answer = self.final_response or "" if given is None else given
            with suppress(SessionEnded):  # what it ended with is told below
                await self.respond(answer)
            receipt = self.receipt
        if receipt is None or receipt.outcome not in (Outcome.GRADED, Outcome.GRADING_FAILED):
            raise SessionEnded(self._over_text())
        if receipt.reward is None:
            raise GradingFailed(receipt.error or "The template yielded no grade.")
        grade = Grade(
            reward=receipt.reward,
            subscores=receipt.subscores,
            content=receipt.content,
            info=receipt.info,
        )
        return Measurement((receipt.reward,), grade)

    async def set_up(self, calls: Sequence[FunctionConfig] | None, look: Look) -> Stepped:
        """Run the setup again, and look; what was measured before does not count any more.

        Args:
            calls: What to call in place of the task's own `setup`; bound.
            look: What to observe then.

        Raises:
            ActionFailed: A function raised; the session lives on.
            SessionEnded, SessionBusy, AlreadyAnswered, EnvironmentFailed, StoreFailed: As
                for `step`.
        """
        named = self.task.setup if calls is None else calls

        async def run() -> Stepped:
            self._refuse_if_over()
            return await self._core.life.operated.set_up(named, look)

        return await self.enqueue(run, self.limits.setup_s)

    async def conclude(
        self, *, reason: str | None = None, cause: Cause = Cause.OPERATOR
    ) -> Receipt | None:
        """End the session with its last measurement; without one, as cancelled by its operator.

        Args:
            reason: Why there is no measurement, for the record.
            cause: Whose doing that is.

        Returns:
            The receipt; the same one again where it has ended. None where it could not be
            recorded.

        A task that is being graded is waited for: it ends with its grade.
        """
        await self.back()
        self._refuse_if_resuming()
        if self.state == "grading":
            await self.ended.wait()
        if not self.is_over:
            measuring = self._core.life.measuring
            end = measuring.end(reason=reason, cause=cause)
            self._core.post(EndWanted(end, answer=measuring.final_response))
            await self.closed()
        return self.receipt

    async def cancel(self, *, reason: str | None = None, cause: Cause = Cause.AGENT) -> None:
        """End the session without a grade; one that has ended stays as it is.

        Args:
            reason: Why, for the record.
            cause: Whose doing it is.

        Raises:
            SessionBusy: It was answered, and is being graded.
            SessionEnded: It is over here, and goes on elsewhere.
        """
        if not self._core.state.is_coming_back:
            self._refuse_if_resuming()
        if not self.is_over:
            if self._core.state.is_graded:
                raise SessionBusy("The task is being graded; it ends with its grade.")
            told = "It was cancelled by the client."
            await self.finish(SessionEnd(Outcome.CANCELLED, error=reason, told=told, cause=cause))
        if self.state == "parked":
            raise SessionEnded(self._over_text())

    async def finish(self, end: SessionEnd, *, abort: bool = False) -> None:
        """End the session as given, and wait until its world is closed.

        One that is being graded ends with its grade, and is waited for, but for an abort.
        """
        self._core.post(EndWanted(end, abort=abort))
        await self.closed()

    def abandon(self) -> None:
        """End it without its template, if that was cut off and ignores it."""
        self._core.life.driver.abandon()


def _choose_seed(task: Task, *, replayable: bool) -> int | None:
    """The task's; where it has none and a replay must give the same, one drawn now."""
    if task.seed is None and replayable:
        return secrets.randbits(32)
    return task.seed

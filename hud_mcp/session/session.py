"""A session: one held task, from its prompt until it is graded, cancelled, expired or lost.

This is what callers may do with one. What it is and what follows from what they do is decided in
`state`; `core` has that carried out. Every call is recorded durably before it returns.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import anyio

from hud_mcp.action import Action
from hud_mcp.call import FunctionConfig
from hud_mcp.environment import Environment
from hud_mcp.environment.calls import Measurement
from hud_mcp.errors import (
    AlreadyAnswered,
    EnvironmentFailed,
    GradingFailed,
    HudMcpError,
    InvalidTask,
    LimitReached,
    NoScreen,
    OutOfStep,
    SessionBusy,
    SessionEnded,
    SessionResuming,
    SessionTaken,
    StoreFailed,
    WorldDied,
)
from hud_mcp.grade import Cause, Grade, Outcome
from hud_mcp.observation import Look, Screenshot
from hud_mcp.record.trajectory import Receipt, utc_now
from hud_mcp.record.values import UNDONE
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.commands import CallCutOff
from hud_mcp.session.core import Core
from hud_mcp.session.direct import Access, access
from hud_mcp.session.endings import Ending
from hud_mcp.session.events import Asked, Claimed, EndWanted, Recorded, Staged, Touched
from hud_mcp.session.journal import StepKind
from hud_mcp.session.life import SessionSpec
from hud_mcp.session.limits import Limits
from hud_mcp.session.phase import Meets, Phase, SessionState
from hud_mcp.session.receipts import DONE, NEXT, died_text, digest, ended_text
from hud_mcp.session.repeats import AskedStep, out_of_step
from hud_mcp.session.steps import Stepped
from hud_mcp.store import Store
from hud_mcp.store.stored_session import HeldSession
from hud_mcp.task import Task
from hud_mcp.template import Prompt, Template
from hud_mcp.tool import Tool
from hud_mcp.world import Shared, World

__all__ = ["RESUMING", "Caller", "Session", "SessionState", "Stepped"]

T = TypeVar("T")

RESUMING = (
    "The session is being brought back after its server ended, which takes a while. Nothing was "
    "done; call again in some seconds with its id."
)
"""What a caller is told who does not wait for that any longer."""


class Session:
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

    Attributes:
        id: Its id, as far as this process has been told it.
        caller: Who started it.
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
        stored: HeldSession | None = None,
        session_id: str | None = None,
        local_hosts: Sequence[str] = (),
        start_key: str = "",
        tries: int | None = None,
        program: "asyncio.Task[None] | None" = None,
    ) -> None:
        begun = stored.trajectory if stored is not None else None
        self.id = "" if stored is not None else session_id or f"sess-{secrets.token_hex(16)}"
        self.caller = caller
        self._store = store
        replayable = environment.replays(task)
        self._spec = spec = SessionSpec(
            environment=environment,
            task=task,
            principal=caller.principal,
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
        )
        self._core = Core(
            spec,
            store=store,
            shared=shared,
            stored=stored,
            provisional=provisional,
            program=program,
        )
        open_s = (utc_now() - spec.started_at).total_seconds()
        self.begun_s = self._core.touched_s - max(0.0, open_s)
        self._contention = shared.contention

    @property
    def environment(self) -> Environment:
        """Whose world and template it uses."""
        return self._spec.environment

    @property
    def task(self) -> Task:
        """What is asked."""
        return self._spec.task

    @property
    def template(self) -> Template:
        """What asks and grades."""
        return self._core.life.template

    @property
    def limits(self) -> Limits:
        """What bounds it."""
        return self._spec.limits

    @property
    def reward_policy(self) -> str:
        """Who sees the reward."""
        return self._spec.reward_policy

    @property
    def trajectory_id(self) -> str:
        """Its record's id."""
        return self._spec.trajectory_id

    @property
    def name(self) -> str:
        """Its short name: it tells sessions apart, and opens none."""
        return self._spec.name

    @property
    def secret_digest(self) -> str:
        """The SHA-256 of its id."""
        return self._spec.secret_digest

    @property
    def live_token(self) -> str | None:
        """Of its live page."""
        return self._spec.live_token

    @property
    def started_at(self) -> datetime:
        """When it began."""
        return self._spec.started_at

    @property
    def state(self) -> SessionState:
        """What it is doing."""
        return self._core.state.shown

    @property
    def is_open(self) -> bool:
        """Whether it can be acted on, and nothing ends it yet."""
        return self._core.state.phase is Phase.OPEN

    @property
    def provisional(self) -> bool:
        """Whether nobody has acted on it, so that it expires early."""
        return self._core.state.provisional

    @property
    def prompt(self) -> Prompt | None:
        """What it asks; None until it does."""
        return self._core.prompt

    @property
    def receipt(self) -> Receipt | None:
        """How it ended; None until that is recorded."""
        return self._core.state.receipt

    @property
    def told(self) -> str | None:
        """What is told of its end beside the receipt."""
        return self._core.state.told

    @property
    def ended(self) -> anyio.Event:
        """Set once its end may be read."""
        return self._core.ended

    @property
    def ended_at(self) -> datetime | None:
        """When it ended; None until it has."""
        return None if self.receipt is None else self.receipt.ended_at

    @property
    def touched_s(self) -> float:
        """When somebody acted on it last, by the clock of `time.monotonic`."""
        return self._core.touched_s

    def touch(self) -> None:
        """Note that somebody attends to it: it does not expire as idle meanwhile."""
        self._core.touched_s = time.monotonic()

    def know(self, session_id: str) -> None:
        """Take its id from a caller that has it."""
        self.id = session_id

    @property
    def is_over(self) -> bool:
        """Whether nothing can be done with it here any more."""
        return self._core.state.is_over

    @property
    def is_let_go(self) -> bool:
        """Whether it goes on without this object: it waits in its record, or another server has it.

        One that is being let go of is closed first: `closed` returns when it can be had again.
        """
        return self._core.state.is_let_go

    @property
    def is_operated(self) -> bool:
        """Whether an operator started it: an answer is kept then, and `conclude` ends it."""
        return self._spec.is_operated

    @property
    def final_response(self) -> str | None:
        """The answer that an operator will grade; None before there is one."""
        return self._core.life.measuring.final_response

    @property
    def taken(self) -> bool:
        """Whether another server process has taken it over; here, it is over."""
        return self._core.state.taken

    @property
    def latest(self) -> Screenshot | None:
        """The picture of the last observation; None before any, and after the end."""
        return None if self.is_over else self._core.life.world.latest

    @property
    def steps(self) -> int:
        """How many steps there were."""
        return self._core.journal.count

    @property
    def busy(self) -> bool:
        """Whether a call is under way, or the task is being graded."""
        life = self._core.life
        return self._core.state.is_at_work or life.commands.count + life.direct.under_way > 0

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
            prompt = await self._ask()
        except asyncio.CancelledError:
            told = "Its start was cancelled."
            self._end_start(Ending(Outcome.CANCELLED, told=told, cause=Cause.OPERATOR))
            raise
        except (StoreFailed, LimitReached, SessionTaken):
            text = "It was not recorded."
            self._end_start(Ending(Outcome.ENVIRONMENT_FAILED, told=text))
            raise
        except Exception as exc:  # its setup failed, and it has its end; or its world is nowhere
            text = str(exc) if isinstance(exc, HudMcpError) else "Its world cannot be found again."
            error = f"{type(exc).__name__}: {exc}"
            self._end_start(Ending(Outcome.ENVIRONMENT_FAILED, error=error, told=text))
            raise
        state = self._core.post(Asked())
        if state.phase is Phase.ENDING or state.is_over:
            await self.ended.wait()
            raise SessionEnded(self._over_text())
        return prompt

    def _end_start(self, ending: Ending) -> None:
        """End a session that could not be started; one that has an end by now keeps it."""
        self._core.post(EndWanted(ending, abort=True))

    async def _ask(self) -> Prompt:
        """Run the template to its prompt, with what makes that durable."""
        core = self._core
        # Where nothing is opened or awaited on the way, one commit has the row and its prompt.
        opens_nothing = getattr(self.environment.world, "opens_nothing", False)
        at_once = self.template.asks_at_once and opens_nothing
        if not at_once:
            await core.begin()
        driven = core.post(Staged(core.life.number)).is_driven
        prompt = await asyncio.shield(core.life.driver.prompt) if driven else None
        if prompt is None:
            await self.ended.wait()
            raise EnvironmentFailed(self._why_not_started())
        core.prompt = prompt
        if at_once:
            await core.begin(prompt.text)
        else:
            await core.journal.save_prompt(prompt.text)
        await core.keep_handle()
        return prompt

    def _why_not_started(self) -> str:
        receipt = self.receipt
        if self.is_operated and receipt is not None and receipt.error is not None:
            return receipt.error  # an agent is told nothing of the author's
        ending = self._core.state.ending
        return self.told or (ending.outcome.value if ending is not None else "It has ended.")

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
            core.post(EndWanted(Ending.left_to_record(), abort=True))
            raise
        if not state.is_back:  # else it may be graded by now
            await self.closed()
            raise core.failure or SessionEnded(ended_text(self.receipt, self.told))

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
        asked = AskedStep(kind, actions, look, shows)

        async def run() -> Stepped:
            if after_step is not None and after_step != self.steps:
                await self._core.journal.flush()  # a step that is still owed is one
                return await self._recall(asked, after_step)
            self._refuse_if_over()
            return await self._core.life.steps.perform(
                actions, look, kind, deliver_image=deliver_image
            )

        try:
            return await self.enqueue(run, self.limits.step_s)
        except (SessionEnded, AlreadyAnswered):
            if after_step is None or self.is_let_go or after_step == self.steps:
                raise
            with suppress(OutOfStep):  # that it is over says more
                return await self._recall(asked, after_step)
            raise

    async def _recall(self, asked: AskedStep, after_step: int) -> Stepped:
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
        self._core.life.steps.check_answer(answer, max_bytes)
        given = self._core.state.answer
        if given is None:
            await self.enqueue(partial(self._respond, answer), self.limits.step_s, detached=True)
        elif given != answer:
            raise AlreadyAnswered(self._already_answered())
        with anyio.move_on_after(wait_s):
            await self.ended.wait()
        if not self.ended.is_set():
            return None
        await self.flush_end()
        if self.receipt is None or self.receipt.outcome is not Outcome.GRADED:
            raise SessionEnded(self._over_text())
        return self.receipt

    async def _respond(self, answer: str) -> None:
        """Submit an answer, in its turn."""
        given = self._core.state.answer
        if given is None:
            self._refuse_if_over()
            await self._core.life.steps.respond(answer)
        elif given != answer:  # another call's answer was before this one in the queue
            raise AlreadyAnswered(self._already_answered())

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
                "The task names nothing to `evaluate`. Give it functions, such as "
                "('response_includes', 'Paris'), or pass them to this call."
            )

        async def run() -> Measurement:
            self._refuse_if_over()
            return await self._core.life.steps.measure(self.task, calls)

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
            raise GradingFailed(receipt.error or "The template did not grade.")
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
            return await self._core.life.steps.set_up(named, look)

        return await self.enqueue(run, self.limits.setup_s)

    async def conclude(self) -> Receipt | None:
        """End the session with its last measurement; without one, as cancelled by its operator.

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
            self._core.post(EndWanted(measuring.ending(), answer=measuring.final_response))
            await self.closed()
        return self.receipt

    @asynccontextmanager
    async def reach(self, protocol: str, what: Mapping[str, Any]) -> AsyncGenerator[Access]:
        """Use the session's live world directly, while the block runs.

        A world that is being brought back is waited for.

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

    def reachable_world(self) -> World:
        """The live world, to be looked at alone; `reach` is for whoever acts in it.

        Raises:
            SessionBusy, SessionEnded, AlreadyAnswered: As for `reach`; SessionBusy also while it
                is being brought back, for which `back` waits.
        """
        self._refuse_direct()
        return self._core.life.world.live

    @property
    def is_behind(self) -> bool:
        """Whether its record lacks something that was done in its world directly."""
        return self._core.journal.is_behind

    async def catch_up(self) -> None:
        """Take the snapshot that is missing after its world was used directly, if one is."""
        direct = self._core.life.direct
        if direct.is_behind:
            with suppress(HudMcpError):
                await self.enqueue(self._catch_up, 2 * direct.limit_s)

    async def _catch_up(self) -> None:
        self._refuse_direct()
        await self._core.life.direct.catch_up()

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
            await self.finish(Ending(Outcome.CANCELLED, error=reason, told=told, cause=cause))
        if self.state == "parked":
            raise SessionEnded(self._over_text())

    @property
    def can_park(self) -> bool:
        """Whether another server process could go on with it."""
        journal, world = self._core.journal, self._core.life.world
        return self._core.state.may_be_taken(
            is_behind=journal.is_behind,
            can_come_back=world.can_come_back(journal.changed, journal.snapshot_step),
        )

    async def finish(self, ending: Ending, *, abort: bool = False) -> None:
        """End the session with a given ending, and wait until its world is closed.

        One that is being graded ends with its grade, and is waited for, but for an abort.
        """
        self._core.post(EndWanted(ending, abort=abort))
        await self.closed()

    @property
    def is_closed(self) -> bool:
        """Whether its world is closed and its record complete, as far as it could be written."""
        return self._core.state.is_closed

    async def closed(self) -> None:
        """Wait until the world is closed, for good."""
        await self._core.until(lambda state: state.is_closed)

    async def back(self) -> None:
        """Wait until the world has been brought back, where it has died and is being."""
        if self._core.state.is_coming_back:
            await self._core.until(lambda state: not state.is_coming_back)

    @property
    def owes(self) -> bool:
        """Whether it has ended, and the record does not say so yet."""
        return self._core.journal.owes

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
        self, run: Callable[[], Awaitable[T]], limit_s: float, *, detached: bool = False
    ) -> T:
        """Do something with the world after the calls that wait, and return what that returns.

        Args:
            run: What is done.
            limit_s: How long it may take.
            detached: Whether it goes on where the caller is cancelled.

        Raises:
            SessionEnded, SessionResuming, AlreadyAnswered, SessionBusy: It was not done.
            WorldDied: It was undone: the world died of it, and is brought back.
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

    def need_screen(self) -> None:
        """Refuse a picture where there is no screen.

        Raises:
            NoScreen: Saying what to do instead.
        """
        if not self.environment.world.has_screen:
            raise NoScreen(
                f"Environment {self.environment.name!r} has no screen. Read the prompt, use its "
                "tools or `step`, and finish with `response`."
            )

    def _already_answered(self) -> str:
        state = self._core.state
        if not state.is_graded:
            return ended_text(state.receipt, state.told)
        if state.answered_at is None:
            return "The task ended by itself and is being graded; call task_status for the result."
        at = state.answered_at
        return f"An answer was submitted at {at:%H:%M:%S} UTC and is being graded."

    def _over_text(self) -> str:
        state = self._core.state
        if state.phase is Phase.PARKED or state.is_leaving:
            why = (state.phase is Phase.PARKED and state.told) or "This server is stopping."
            return (
                f"{why} The session waits in its record, as it was after its last reply: call "
                "again with its id."
            )
        return ended_text(state.receipt, state.told)


def _choose_seed(task: Task, *, replayable: bool) -> int | None:
    """The task's; where it has none and a replay must give the same, one drawn now."""
    if task.seed is None and replayable:
        return secrets.randbits(32)
    return task.seed

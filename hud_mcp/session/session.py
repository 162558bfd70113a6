"""A session: one held task, from its prompt until it is graded, cancelled, expired or lost.

Requests exchange messages with two tasks that belong to the session: the keeper, which
owns the template's generator, and the worker, which performs one call after the other on
the world. This module is the session's life; what a call does is the performer's, and every
call is recorded durably before it returns.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any, Literal, TypeVar

import anyio

from hud_mcp.action import Action
from hud_mcp.call import FunctionConfig
from hud_mcp.environment import Environment
from hud_mcp.environment.calls import Measurement, task_hosts
from hud_mcp.errors import (
    AlreadyAnswered,
    DamagedRecord,
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
from hud_mcp.record.trajectory import Receipt, Trajectory, utc_now
from hud_mcp.record.values import UNDONE
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.commands import Worker
from hud_mcp.session.deaths import DIED_IN_GRADING, DiedAgain, whose_doing
from hud_mcp.session.direct import Visit, Visits
from hud_mcp.session.driver import Ending, Keeper
from hud_mcp.session.durability import Durability
from hud_mcp.session.journal import Recorder, StepKind
from hud_mcp.session.limits import Limits
from hud_mcp.session.live_world import HeldWorld
from hud_mcp.session.log import take_rest
from hud_mcp.session.measuring import Measuring
from hud_mcp.session.receipts import (
    DONE,
    NEXT,
    died_again,
    died_text,
    digest,
    ended_text,
    make_receipt,
)
from hud_mcp.session.repeats import AskedStep, out_of_step
from hud_mcp.session.replay import WorldLost, submitted_answer
from hud_mcp.session.steps import Performer, Stepped
from hud_mcp.session.strain import Strain
from hud_mcp.store import Store
from hud_mcp.store.characters import storable
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.task import RecordMode, Task
from hud_mcp.template import Prompt, Template
from hud_mcp.template_process import TemplateProcess, runs_apart
from hud_mcp.tool import Tool
from hud_mcp.world import Opening, Placed, Shared, World, current_world

__all__ = [
    "BROUGHT_BACK",
    "GRADED_AGAIN",
    "RESUMING",
    "STOPPED",
    "Caller",
    "Session",
    "SessionState",
    "Stepped",
]

logger = logging.getLogger(__name__)

SessionState = Literal["starting", "resuming", "open", "grading", "parked", "ended"]
T = TypeVar("T")

GRADED_AGAIN = "its answer is graded again, as its server ended before it had a grade"
"""The line of a session's log by which such gradings are counted."""

BROUGHT_BACK = "brought back after"
STOPPED = "its server was stopped, and the session waits in its record"
"""Lines of a session's log: where the last of them is `STOPPED`, its server did not die."""

RESUMING = (
    "The session is being brought back after its server ended, which takes a while. Nothing was "
    "done; call again in some seconds with its id."
)
"""What a caller is told who does not wait for that any longer."""

_LEFT = Ending(Outcome.LOST, told="Its program ended without closing it.")


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
        held: The record of a session that another server process began, to go on with.
        session_id: The id that its caller chose for it; one is drawn where it is None.
        local_hosts: Hosts that any row may open, of this machine and of private networks too.
        start_key: By what the starts of its task are counted.
        tries: How many of them there may be; None for any number.
        is_left: Whether the program that it is part of ends, and does not close it.
        record: How its steps are written; of a session that goes on, as before.
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
        held: StoredSession | None = None,
        session_id: str | None = None,
        local_hosts: Sequence[str] = (),
        start_key: str = "",
        tries: int | None = None,
        is_left: Callable[[], bool] = lambda: False,
        record: RecordMode = "durable",
    ) -> None:
        begun = held.trajectory if held else None
        self.id = "" if held else session_id or f"sess-{secrets.token_hex(16)}"
        self.secret_digest = held.secret_digest if held else digest(self.id)
        self.live_token = held.live_token if held else secrets.token_hex(16)
        self.trajectory_id = begun.id if begun else f"traj-{secrets.token_hex(8)}"
        self.name = self.trajectory_id[-6:]
        self.environment = environment
        self.task = task
        self._measuring = Measuring(keeps_history=task.prompt is not None)
        self.template: Template = environment.template_of(task, lambda: self._measuring.history)
        self.caller = caller
        self.reward_policy = reward_policy
        self.limits = limits
        self.started_at = begun.started_at if begun else utc_now()
        self.ended_at: datetime | None = None
        self.state: SessionState = "resuming" if held else "starting"
        self.prompt: Prompt | None = None
        self.receipt: Receipt | None = None
        self.told: str | None = None
        self.provisional = provisional
        self.touched_s = time.monotonic()
        self.begun_s = self.touched_s - max(0.0, (utc_now() - self.started_at).total_seconds())
        self.ended = anyio.Event()
        self._store = store
        self._rewards_shown = reward_policy == "per_step" or self.is_operated
        self._shared = shared
        self._local_hosts = tuple(local_hosts)
        self._replayable = environment.replays(task)
        self._job_id = job_id
        self._start_key = start_key
        self._tries = tries
        self._held = held
        self._seed = begun.seed if begun else self._choose_seed()
        self._answer: str | None = None
        self._answered_at: datetime | None = None
        self._is_left = is_left
        self._store = store
        self._durability = Durability(begun.steps if begun else ())
        self._strain = Strain(shared.contention, self.log, begun.logs if begun else None)
        self._recorder = Recorder(
            store,
            self.trajectory_id,
            log_lines=limits.log_lines,
            recorded=begun.steps if begun else (),
            lines=held.lines if held else 0,
            durability=self._durability,
            record=begun.record if begun else record,
        )
        self._recorder.attempt = held.attempt if held else None
        self._parks = False
        self._died: str | None = None
        self._died_in_grading = False
        self._revival: asyncio.Task[None] | None = None
        self._lays_down_world = False
        self._ends_meanwhile: Ending | None = None
        self._equip()

    def _equip(self) -> None:
        """Make what one life of its world needs: each is used for one life only."""
        environment, limits = self.environment, self.limits
        world = self._world = HeldWorld(
            environment,
            replayable=self._replayable,
            over=self._over_text,
            log=self.log,
            durability=self._durability,
        )
        self._visits = Visits(
            self._recorder,
            self._world,
            check=self._refuse_visits,
            enqueue=self._enqueue,
            log=self.log,
            limit_s=limits.step_s,
        )
        self._performer = Performer(
            environment,
            self._world,
            limits=limits,
            recorder=self._recorder,
            visits=self._visits,
            rewards_shown=self._rewards_shown,
            hand_over=self._hand_over,
            comes_back=self._can_come_back,
            measuring=self._measuring,
            operated=self.is_operated,
            log=self.log,
        )
        self._worker = Worker(
            queue=limits.queue,
            on_broken=self._on_broken,
            over=self._over_text,
            name=self.name,
            log=self.log,
            contention=self._shared.contention,
        )
        self._keeper = Keeper(
            self.template,
            open_generator=self._open,
            unwind=self._worker.stop,
            settle=self._settle,
            close_world=world.close,
            leave=self._leave,
            cut_off=self._cut_off,
            left=lambda: _LEFT if self._is_left() else None,
            setup_s=limits.setup_s,
            grade_s=limits.grade_s,
            name=self.name,
            log=self.log,
            contention=self._shared.contention,
        )

    @property
    def is_over(self) -> bool:
        """Whether nothing can be done with it here any more."""
        return self.state in ("ended", "parked")

    @property
    def is_let_go(self) -> bool:
        """Whether it goes on without this object: it waits in its record, or another server has it.

        One that is being let go of is closed first: `closed` returns when it can be had again.
        """
        return self.state == "parked" or self.taken or (self._parks and self.state != "ended")

    @property
    def is_operated(self) -> bool:
        """Whether an operator started it: an answer is kept then, and `conclude` ends it."""
        return self.caller.principal == OPERATOR

    @property
    def final_response(self) -> str | None:
        """The answer that an operator will grade; None before there is one."""
        return self._measuring.final_response

    @property
    def taken(self) -> bool:
        """Whether another server process has taken it over; here, it is over."""
        return self._recorder.taken

    @property
    def latest(self) -> Screenshot | None:
        """The picture of the last observation; None before any, and after the end."""
        return self._world.latest

    @property
    def steps(self) -> int:
        """How many steps there were."""
        return self._recorder.count

    @property
    def busy(self) -> bool:
        """Whether a call is under way, or the task is being graded."""
        if self._revival is not None or self.state == "grading":
            return True
        return self._worker.calls > 0 or self._visits.under_way > 0

    def _choose_seed(self) -> int | None:
        """The task's; where it has none and a replay must give the same, one drawn now."""
        if self.task.seed is None and self._replayable:
            return secrets.randbits(32)
        return self.task.seed

    def log(self, line: str) -> None:
        """Add a line to the session's log; it is recorded with the next step."""
        self._recorder.log(line)

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
        self.environment.split_context(self.task.context)
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
        if self.state == "starting":  # a template's own deadline may be over already
            if self._keeper.is_ending:
                await self.ended.wait()
                raise SessionEnded(self._over_text())
            self.state = "open"
            self._worker.start()
        return prompt

    def _end_start(self, ending: Ending) -> None:
        """End a session that could not be started; one that has an end by now keeps it."""
        if not self._keeper.is_ending:
            self._keeper.abort(ending)
        if not self._keeper.started:  # it settles, and opens nothing
            self._keeper.start()

    async def _ask(self) -> Prompt:
        """Run the template to its prompt, with what makes that durable."""
        # Where nothing is opened or awaited on the way, one commit has the row and its prompt.
        opens_nothing = getattr(self.environment.world, "opens_nothing", False)
        at_once = self.template.asks_at_once and opens_nothing
        if not at_once:
            await self._enter()
        self._keeper.start()
        self.prompt = prompt = await self._asked()
        if at_once:
            await self._enter(prompt.text)
        else:
            await self._recorder.ask(prompt.text)
        handle = await self._world.handle()
        if handle is not None:
            await self._recorder.keep_handle(handle)
        return prompt

    async def _asked(self) -> Prompt:
        try:
            return await asyncio.shield(self._keeper.prompt)
        except EnvironmentFailed as exc:
            known = self.receipt.error if self.receipt is not None else None
            if known is None or not self.is_operated:  # an agent is told nothing of the author's
                raise
            raise EnvironmentFailed(known) from exc

    async def _enter(self, prompt: str | None = None) -> None:
        """Record that it has begun, once; with what it asks, where that is known by then."""
        begun = Trajectory(
            id=self.trajectory_id,
            job_id=self._job_id,
            environment=self.environment.name,
            environment_version=self.environment.version,
            task=self.task,
            context=self.environment.context_space.fill(self.task.context),
            seed=self._seed,
            prompt=prompt,
            started_at=self.started_at,
        )
        await self._recorder.begin(
            begun,
            secret_digest=self.secret_digest,
            principal=self.caller.principal,
            reward_policy=self.reward_policy,
            environment_digest=self.environment.digest,
            live_token=self.live_token,
            start_key=self._start_key,
            tries=self._tries,
        )

    async def resume(self) -> None:
        """Go on with a session that another server process began, or whose world died.

        It is this process's already.

        The world is opened anew under the same context and seed, the template is run to its
        prompt, then the world is brought to the last recorded step. An answer that was
        submitted is handed to the template again.

        Until this has returned, nothing else reaches it: its state is `resuming`.

        Raises:
            SessionEnded: It cannot come back; it has ended as lost, and is recorded.
            StoreFailed, SessionTaken: Its record cannot be written. It waits there as it was.

        If this call is cancelled, it waits in its record as it was.
        """
        held = self._held
        if held is None:
            raise ValueError("only a session that has a record is resumed")
        died = self._died
        began_s = time.monotonic()
        self._keeper.start(ready=False)
        answer = submitted_answer(held.trajectory.steps)
        try:
            await self._prepare_again(held)
            took_s = time.monotonic() - began_s
            self.log(f"{BROUGHT_BACK} {len(held.trajectory.steps)} steps in {took_s:.1f} s")
            if answer is not None:
                if died is None:
                    self.log(GRADED_AGAIN)
                # Before: it is how gradings that end it are counted, and whose it is to grade.
                await self._recorder.note()
            self._refuse_if_ending()
        except (StoreFailed, SessionTaken):
            await self.finish(Ending(Outcome.LOST, parked=True), abort=True)
            raise
        except HudMcpError as exc:
            ending = Ending(Outcome.LOST, error=str(exc), told=str(exc))
            if died is not None and isinstance(exc, DiedAgain):
                ending = died_again(self._world.died or str(exc))
            if self._keeper.is_ending:  # it has its end, or somebody has ended it meanwhile
                await self._keeper.closed.wait()
            else:
                await self.finish(ending, abort=True)
            raise SessionEnded(ended_text(self.receipt, self.told)) from exc
        except BaseException:
            self._park()
            raise
        # From here on nothing waits: who finds it next, finds it as its record says.
        self._died = None
        self.touched_s = time.monotonic()
        self.state = "open"
        self._keeper.get_ready()
        if answer is not None:
            self._hand_over(answer)
            self._answered_at = held.trajectory.steps[-1].ended_at

    async def _prepare_again(self, held: StoredSession) -> None:
        """Run the template to its prompt, and bring the world to the last recorded step."""
        prompt = await asyncio.shield(self._keeper.prompt)
        if held.trajectory.prompt is None:  # nobody was told of it yet
            await self._recorder.ask(prompt.text)
        elif storable(prompt.text) != held.trajectory.prompt:
            raise WorldLost("its template asks something else now")
        self.prompt = prompt
        self._refuse_if_ending()
        self._worker.start()
        steps = held.trajectory.steps
        took_s = sum((s.ended_at - s.started_at).total_seconds() for s in steps)
        bound_s = self.limits.setup_s + 2 * max(0.0, took_s)
        await self._worker.call(lambda: self._come_back(held), bound_s)

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
        self._performer.check_actions(actions)
        shows = deliver_image and self.environment.world.has_screen
        asked = AskedStep(kind, actions, look, shows)

        async def run() -> Stepped:
            if after_step is not None and after_step != self.steps:
                await self._recorder.note()  # a step that is still owed is one
                return await self._recall(asked, after_step)
            self._refuse_if_over()
            return await self._performer.perform(actions, look, kind, deliver_image=deliver_image)

        try:
            return await self._enqueue(run, self.limits.step_s)
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
            self._store, self.trajectory_id, after_step, rewards_shown=self._rewards_shown
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
            return await self._performer.run_tool(tool, arguments, look)

        return await self._enqueue(run, self.limits.step_s)

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
        self._performer.check_answer(answer, max_bytes)
        if self._answer is None:
            await self._enqueue(lambda: self._respond(answer), self.limits.step_s, detached=True)
        elif self._answer != answer:
            raise AlreadyAnswered(self._already_answered())
        with anyio.move_on_after(wait_s):
            await self.ended.wait()
        if not self.ended.is_set():
            return None
        await self.settle()
        if self.receipt is None or self.receipt.outcome is not Outcome.GRADED:
            raise SessionEnded(self._over_text())
        return self.receipt

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
            return await self._performer.measure(self.task, calls)

        return await self._enqueue(run, self.limits.grade_s)

    async def _graded_by_template(self) -> Measurement:
        """Submit the answer that was kept, once, and return what it was graded with."""
        await self.back()  # until then, what the agent said is not read again
        receipt = self.receipt
        if receipt is None:
            answer = self._answer if self._answer is not None else self.final_response or ""
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
            return await self._performer.set_up(named, look)

        return await self._enqueue(run, self.limits.setup_s)

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
            self._answer = self._measuring.final_response
            await self.finish(self._measuring.ending())
        return self.receipt

    @asynccontextmanager
    async def reach(self, protocol: str, what: Mapping[str, Any]) -> AsyncGenerator[Visit]:
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
        async with self._visits.enter(protocol, what) as visit:
            yield visit

    def reachable_world(self) -> World:
        """The live world, to be looked at alone; `reach` is for whoever acts in it.

        Raises:
            SessionBusy, SessionEnded, AlreadyAnswered: As for `reach`; SessionBusy also while it
                is being brought back, for which `back` waits.
        """
        self._refuse_visits()
        return self._world.live

    @property
    def is_behind(self) -> bool:
        """Whether its record lacks something that was done in its world directly."""
        return self._recorder.is_behind

    async def catch_up(self) -> None:
        """Take the snapshot that is missing after its world was used directly, if one is."""
        await self._visits.catch_up()

    async def cancel(self, *, reason: str | None = None, cause: Cause = Cause.AGENT) -> None:
        """End the session without a grade; one that has ended stays as it is.

        Args:
            reason: Why, for the record.
            cause: Whose doing it is.

        Raises:
            SessionBusy: It was answered, and is being graded.
            SessionEnded: It is over here, and goes on elsewhere.
        """
        if self._revival is None:
            self._refuse_if_resuming()
        if not self.is_over:
            if self.state == "grading" or self._answer is not None:
                raise SessionBusy("The task is being graded; it ends with its grade.")
            told = "It was cancelled by the client."
            await self.finish(Ending(Outcome.CANCELLED, error=reason, told=told, cause=cause))
        if self.state == "parked":
            raise SessionEnded(self._over_text())

    @property
    def can_park(self) -> bool:
        """Whether another server process could go on with it."""
        return (
            self.prompt is not None
            and not self.provisional
            and not self.is_behind
            and self._world.can_come_back(self._recorder.changed, self._recorder.snapshot_step)
        )

    def _can_come_back(self) -> bool:
        """Whether its world, if it dies now, can be brought back from what is recorded."""
        return self.can_park and self._recorder.is_complete and not self.taken

    async def finish(self, ending: Ending, *, abort: bool = False) -> None:
        """End the session with a given ending, and wait until its world is closed."""
        revival = self._revival
        if self.receipt is None and (revival is not None or not self._keeper.is_ending):
            self.told = ending.told  # for the calls that this cuts off
            self._parks = ending.parked
        is_its_own = revival is asyncio.current_task()  # it cannot wait for itself
        if revival is not None and not is_its_own and self.state != "resuming":
            self._ends_meanwhile = self._ends_meanwhile or ending
            await asyncio.wait({revival})
            return
        if abort or self.state in ("starting", "resuming"):
            self._keeper.abort(ending)
        else:
            self._keeper.end(ending)
        await self._keeper.closed.wait()
        if not is_its_own:  # its world may have died in this moment
            await self.back()

    def _park(self) -> None:
        """Leave it to its record, whatever it does."""
        self._parks = True
        self._keeper.abort(Ending(Outcome.LOST, parked=True))

    @property
    def is_closed(self) -> bool:
        """Whether its world is closed and its record complete, as far as it could be written."""
        if self._revival is not None:
            return False
        return self._keeper.closed.is_set() if self._keeper.started else self.is_over

    async def closed(self) -> None:
        """Wait until the world is closed."""
        await self.back()
        await self._keeper.closed.wait()

    @property
    def owes(self) -> bool:
        """Whether it has ended, and the record does not say so yet."""
        return self._recorder.owes

    async def settle(self) -> None:
        """Write the end that the record does not have yet.

        Raises:
            StoreFailed: It still cannot be written.
            SessionTaken: Another server runs the session; its end is decided there.
        """
        self.receipt = await self._recorder.settle() or self.receipt

    # What follows runs in the worker.

    async def _respond(self, answer: str) -> None:
        if self._answer is not None:  # another call's answer was before this one in the queue
            if self._answer != answer:
                raise AlreadyAnswered(self._already_answered())
            return
        self._refuse_if_over()
        await self._performer.respond(answer)

    def _hand_over(self, answer: str, *, died: bool = False) -> None:
        self._answer, self._answered_at = answer, utc_now()
        self.state = "grading"
        if died and self._can_come_back():
            self._revive(self._world.died or "It could not be looked at.")
        else:
            self._keeper.submit(answer)

    async def _come_back(self, held: StoredSession) -> None:
        await self._world.come_back(held)
        self._measuring.restore(held.trajectory.steps)
        self._recorder.snapshot_step = held.snapshot_step if held.snapshot is not None else None

    async def _on_broken(self, exc: EnvironmentFailed) -> HudMcpError | None:
        """Bring the world back where its record can; return what its caller is told instead."""
        reason, deaths = self._world.died or str(exc), self._recorder.deaths
        if self.state == "resuming":  # who resumes it is told, and ends it
            return None
        if self._keeper.is_ending:  # it may have died of that
            return SessionEnded(self._over_text())
        undone = bool(deaths) and deaths[-1].index == self._recorder.count - 1
        cause = whose_doing(deaths, has_acted=self._recorder.changed > 0) if undone else None
        if cause is Cause.AGENT:
            self._keeper.end(died_again(reason))
        elif undone and cause is None:
            self._revive(reason)
            with anyio.move_on_after(self.limits.reply_s):
                await self.back()
            if not self.is_over:
                was_dead = deaths[-1].info[UNDONE] == "before"
                return WorldDied(
                    died_text(reason, was_dead=was_dead, is_back=self._revival is None)
                )
        else:
            self._keeper.end(Ending(Outcome.ENVIRONMENT_FAILED, error=str(exc), told=str(exc)))
        await self.ended.wait()
        if self.receipt is None or self.receipt.outcome is not Outcome.ENVIRONMENT_FAILED:
            return SessionEnded(self._over_text())
        return EnvironmentFailed(self.told or reason)

    def _revive(self, reason: str) -> None:
        """Bring the world back, once the template was told to let go of it."""
        self._keeper.end(Ending(Outcome.LOST, parked=True))
        self._come_back_soon(reason)

    def _come_back_soon(self, reason: str) -> None:
        """Begin to bring the world back; every call waits for that from now on."""
        self._died = reason
        self.log(f"its world died: {reason}")
        self._lays_down_world = True
        if self.state == "open":
            self.state = "starting"
        self._revival = asyncio.get_running_loop().create_task(
            self._run_revival(self._keeper), name=f"revival {self.name}"
        )

    async def _run_revival(self, keeper: Keeper) -> None:
        """Bring the world back from the record, once the old one is closed."""
        try:
            await keeper.closed.wait()
            self._lays_down_world = False
            if self.is_over:  # it was being graded already, and has its end
                return
            ending = self._ends_meanwhile or keeper.aborted
            if ending is None:
                try:
                    await self._recorder.note()  # what is still to be written of it
                    self._held = await self._store.load_session(self.trajectory_id)
                except HudMcpError as exc:
                    ending = self._unread(exc)
            if ending is not None or self._ends_meanwhile is not None:
                await self._settle(self._ends_meanwhile or ending or _LEFT)
                with suppress(StoreFailed):
                    await self._leave()
                return
            self.state = "resuming"
            self._measuring = Measuring(keeps_history=self.task.prompt is not None)
            self._equip()
            with suppress(
                SessionEnded, StoreFailed, SessionTaken
            ):  # its receipt or record says how
                await self.resume()
        finally:
            self._revival = None

    async def back(self) -> None:
        """Wait until the world has been brought back, where it has died and is being."""
        while (revival := self._revival) is not None:
            await asyncio.wait({revival})

    def _unread(self, exc: HudMcpError) -> Ending:
        """How a session goes on whose world died, and whose record cannot be read."""
        if not isinstance(exc, StoreFailed) or isinstance(exc, DamagedRecord):
            return self._not_back(str(exc))
        logger.warning("%s: its world died, and its record cannot be read: %s", self.name, exc)
        self.state = "resuming"  # it waits there as it is
        told = "The world of this session died, and its record cannot be read just now."
        return Ending(Outcome.LOST, told=told, parked=True)

    def _not_back(self, why: str | None) -> Ending:
        """How a session ends that could not be brought back."""
        if self._died is not None:
            text = f"Its world died ({self._died}), and it could not be brought back: {why}"
            return Ending(Outcome.ENVIRONMENT_FAILED, error=text, told=text)
        text = f"Its server ended, and it could not be brought back: {why}"
        return Ending(Outcome.LOST, error=text, told=text)

    # What follows runs in the keeper.

    async def _open(self) -> AsyncGenerator[Any, Any]:
        environment = self.environment
        apart = runs_apart(environment, self.template)
        world = await self._world.open(
            Opening(
                context=environment.split_context(self.task.context),
                seed=self._seed,
                folder=environment.folder,
                shared=self._shared,
                log=self.log,
                handle=(self._held.snapshot or None) if self._held else None,
                allow=task_hosts(self.task),
                is_trusted=self.task.source is None,
                apart=apart,
                local_hosts=self._local_hosts,
                names_targets=self.task.prompt is not None,
            )
        )
        current_world.set(world)
        context = environment.context_space.fill(self.task.context)
        if apart and isinstance(world, Placed) and world.place is not None:
            process = self._world.template_process = TemplateProcess(
                environment,
                self.template,
                args=self.task.args,
                context=context,
                place=world.place,
                shared=self._shared,
            )
            return process
        return self.template.run(self.task.args, world, context)

    def _cut_off(self) -> None:
        """The template ends the wait for an answer by itself, and may grade now."""
        self.state = "grading"
        self._worker.cut_off()

    async def _settle(self, ending: Ending) -> None:
        """Record how the session ended, then tell everyone who waits."""
        await self._worker.stop()
        self._visits.close()
        revives = self._revival is not None
        if ending.outcome is Outcome.ENVIRONMENT_FAILED and self.state == "grading" and not revives:
            ending = await self._after_death_in_grading(ending)
        if self._lays_down_world and ending.parked:
            self._worker.refuse_waiting(WorldDied(died_text(self._died or "", was_dead=True)))
            return
        if (rest := take_rest(self.name)) is not None:
            self.log(rest)
        if self.state == "resuming" and not ending.parked and ending.cause is None:
            ending = self._not_back(ending.error)
        self.told = ending.told
        try:
            if ending.parked:
                if self.state != "resuming":  # then its record stays as it was, whoever left it
                    self.log(STOPPED)
                self.state = "parked"
            else:
                await self._record_end(ending)
        finally:  # whatever happens: nobody waits for ever
            self.state = "parked" if self.state == "parked" else "ended"
            self._world.latest = None
            self.ended.set()
            self._worker.refuse_waiting()

    async def _after_death_in_grading(self, ending: Ending) -> Ending:
        """How it ends where the world failed its grader: the first time, it is brought back."""
        is_dead = await self._world.is_dead()
        if (stopped := self._keeper.aborted) is not None:
            return stopped
        if not is_dead:
            return ending
        reason = self._world.died or ending.told or "It cannot be used."
        logs = (self._held.trajectory.logs if self._held else None) or ""
        if self._died_in_grading or DIED_IN_GRADING in logs:
            return died_again(reason) if self._recorder.changed else ending
        if self._answer is not None and self._can_come_back():
            self._died_in_grading = True  # also where the store takes no line just now
            self.log(DIED_IN_GRADING)
            self._come_back_soon(reason)
            return Ending(Outcome.LOST, parked=True)
        return ending

    async def _record_end(self, ending: Ending) -> None:
        self.ended_at = utc_now()
        try:
            if self._held is None:
                await self._enter()
        except (StoreFailed, LimitReached) as exc:  # nobody was told of it: nothing is to be ended
            logger.info("%s", exc)  # whoever starts it is told
            self.state = "ended"
            return
        receipt = make_receipt(
            ending,
            trajectory=self.trajectory_id,
            environment=self.environment.name,
            environment_digest=self.environment.digest,
            task=self.task,
            answer=self._answer,
            reward_policy=self.reward_policy,
            started_at=self.started_at,
            ended_at=self.ended_at,
            attempt=self._recorder.attempt,
            notes=(*self._recorder.notes(), *self._strain.notes()),
            strain=self._strain,
        )
        if ending.error:
            logger.warning("%s: %s", ending.outcome, ending.error)
        try:
            receipt = await self._recorder.end(receipt) or receipt
        except (StoreFailed, SessionTaken) as exc:
            logger.error("%s", exc)  # noqa: TRY400  # its text says everything
        if self.taken:  # what another server decides is the truth, not this
            self.state = "parked"
            return
        # Only now may anyone read it: a receipt is stored before it is sent.
        self.receipt = receipt
        self.state = "ended"

    async def _leave(self) -> None:
        await self._recorder.leave()
        if self.state == "parked":
            await self._recorder.release()

    # What follows runs in the caller's task.

    async def _enqueue(
        self, run: Callable[[], Awaitable[T]], limit_s: float, *, detached: bool = False
    ) -> T:
        await self.back()
        self._refuse_if_over()
        self.touched_s = time.monotonic()
        self.provisional = False
        began_s, waited_s = self.touched_s, self._shared.contention.waited_s
        refused = True
        try:
            result = await self._worker.call(lambda: self._owning(run), limit_s, detached=detached)
            refused = isinstance(result, Stepped) and result.error is not None
            return result
        finally:
            self.touched_s = time.monotonic()
            if refused:
                waited_s = self._shared.contention.waited_s - waited_s
                self._strain.note_refusal(waited_s, self.touched_s - began_s)

    async def _owning(self, run: Callable[[], Awaitable[T]]) -> T:
        """Make a call, in the worker; one in which another server takes over is the last here."""
        try:
            return await run()
        finally:
            if self.taken:
                self._park()

    def _refuse_if_ending(self) -> None:
        if self._keeper.is_ending:
            raise SessionEnded(self._over_text())

    def _refuse_if_over(self) -> None:
        if self.is_over:
            raise SessionEnded(self._over_text())
        self._refuse_if_resuming()
        if self.state == "grading":
            raise AlreadyAnswered(self._already_answered())

    def _refuse_if_resuming(self) -> None:
        """Refuse whoever would reach a world that is not yet what the record says.

        `Sessions.find` waits for it, so that callers meet it afterwards.
        """
        if self.state == "resuming":
            raise SessionResuming(RESUMING)

    def _refuse_visits(self) -> None:
        try:
            self._refuse_if_over()
        except SessionEnded as exc:  # whoever is in its world has this session alone
            raise SessionEnded(str(exc).replace(NEXT, DONE)) from None
        if self.state == "starting":
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
        if self.state == "grading" and self._answered_at is None:
            return "The task ended by itself and is being graded; call task_status for the result."
        if self.state == "grading":
            at = self._answered_at
            return f"An answer was submitted at {at:%H:%M:%S} UTC and is being graded."
        return ended_text(self.receipt, self.told)

    def _over_text(self) -> str:
        if self.taken:
            return (
                "This server does not run this session any more: another one took it over, or it "
                "has ended. Call again with its id."
            )
        if self.state == "parked" or (self.receipt is None and self._parks):
            why = (self.state == "parked" and self.told) or "This server is stopping."
            return (
                f"{why} The session waits in its record, as it was after its last reply: call "
                "again with its id."
            )
        return ended_text(self.receipt, self.told)

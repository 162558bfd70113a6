"""The one task that owns a session's generator, from its world's opening to its last statement.

Timeouts and task groups that a template holds across its yields belong to the task that resumes it.
So that is always this one, and no scope of ours lies around the generator. A bound on setup or
grading cancels the task from outside. asyncio's tasks alone can be cancelled once, clean up, and
start in a context of their own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context
from functools import partial
from typing import Any, TypeAlias

from hud_mcp.base import telemetry
from hud_mcp.base.contention import Contention
from hud_mcp.environment.agent_data import begin_grading
from hud_mcp.environment.conversation import EndedBy
from hud_mcp.environment.prompt import Prompt
from hud_mcp.environment.spec import Opening
from hud_mcp.environment.template import Template
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.record.values import TrajectoryStep
from hud_mcp.session.events import EndedItself, EndWanted, Finished, Post
from hud_mcp.session.journal import Journal
from hud_mcp.session.live_world import LiveWorld, Play
from hud_mcp.session.log import clean_context
from hud_mcp.session.session_end import (
    LEFT_BY_PROGRAM,
    PARKED,
    SessionEnd,
    SessionOver,
    broke_in_grading,
    describe_failure,
    failed_setup,
    is_only,
    overran,
    ungraded,
)
from hud_mcp.session.spec import SessionSpec
from hud_mcp.session.talk import GOES_ON, GoesOn, Heard, Talk, open_talk
from hud_mcp.session.turn import PATIENCE_S, done_now
from hud_mcp.values.grade import Outcome, read_grade

logger = logging.getLogger(__name__)

_ABORT_S = 1.0
"""The longest wait for an aborted template: a process that stops waits no longer."""
_CANCEL_TRIES = 5
"""The most cancellations, one a second, of a task that swallows them."""


_Order: TypeAlias = Callable[
    [Play, asyncio.CancelledError | None], Coroutine[Any, Any, SessionEnd | GoesOn | None]
]
"""An order to resume a waiting template, with the end of its wait, if it has ended."""
_Orders: TypeAlias = asyncio.Queue[_Order]


class Driver:
    """The one run of a template, in the task that opens its world; it reports events to `post`."""

    __slots__ = (
        "_aborted", "_closing", "_contention", "_context", "_decided", "_has_finished",
        "_is_closed", "_journal", "_life", "_log", "_orders", "_overran", "_play", "_post",
        "_program", "_runs", "_spec", "_task", "_template", "_timer", "_where", "_world", "prompt",
        "talk",
    )  # fmt: skip

    def __init__(
        self,
        template: Template,
        spec: SessionSpec,
        world: LiveWorld,
        *,
        post: Post,
        life: int,
        journal: Journal,
        contention: Contention,
        program: "asyncio.Task[None] | None" = None,
    ) -> None:
        self._template = template
        self._where = template.where
        self._spec = spec
        self._world = world
        self._post = post
        self._life = life
        self._journal = journal
        self._log = log = journal.log
        self._contention = contention
        self._program = program
        self._orders: asyncio.Queue[_Order] | None = None
        self._overran: str | None = None
        self._aborted: SessionEnd | None = None
        self._decided: SessionEnd | None = None
        self._has_finished = False
        self._runs = False
        self._task: asyncio.Task[None] | None = None
        self._play: Play | None = None
        self._context = clean_context(spec.name, log)
        self._timer: asyncio.TimerHandle | None = None
        self.prompt: asyncio.Future[Prompt | None] = asyncio.get_running_loop().create_future()
        self.talk: Talk | None = None
        self._is_closed = False
        self._closing: asyncio.Event | None = None

    def start(self, opening: Opening, recorded: Sequence[TrajectoryStep] = ()) -> None:
        """Begin in a clean context, so that nothing of the starting request stays in it.

        A template that never waits, on a world that opens nothing, has asked when this returns.
        Each order resumes it in the turn of the caller, without a task.
        """
        # Without a task, the start and the grade take no turn of the event loop.
        if self._template.never_waits and self._world.opens_nothing:
            self._context.run(self._prompt_now, opening)
            return
        self._orders = asyncio.Queue()
        if self._template.user:
            self._context.run(self._open_talk, recorded)
        name, run = f"driver {self._spec.name}", telemetry.following(self._run)
        running = run(opening, self._orders)
        self._task = asyncio.create_task(running, name=name, context=self._context)
        self._task.add_done_callback(self._done)

    def _open_talk(self, recorded: Sequence[TrajectoryStep] = ()) -> Talk:
        given = self._template, self._world, self._journal, recorded
        expire = partial(self._post, EndedItself(self._life))
        self.talk = open_talk(*given, expire, reply_s=self._spec.limits.grade_s)
        return self.talk

    async def wait_for_prompt(self) -> Prompt | None:
        """Return the template's question, once it asks; None if it ended before."""
        # Shielded: a caller that leaves must not cancel the future that others wait for.
        return self.prompt.result() if self.prompt.done() else await asyncio.shield(self.prompt)

    def submit(self, raw: str) -> None:
        """Resume the template with the answer; grading begins."""
        self._order_grade(partial(self._grade_answer, raw))

    def hear(self, text: str, *, ends: bool) -> "asyncio.Future[Heard]":
        """Resume a template that talks; if that fails, the session ends, and the future never."""
        told: asyncio.Future[Heard] = asyncio.get_running_loop().create_future()
        if self._decided is not None and self.talk is not None:  # its record was refused before
            told.set_result(self.talk.heard)
        else:
            self._order(partial(self._hear, text, "agent" if ends else None, told))
        return told

    def proceed(self) -> None:
        """Resume a template whose own deadline ended its wait; it may grade without an answer."""
        self._order_grade(self._grade_unanswered)

    def dismiss(self, end: SessionEnd) -> None:
        """Tell the waiting template that no answer comes."""
        self._order(partial(self._dismiss, end))

    def _order_grade(self, order: _Order) -> None:
        # Within the call that gives the answer.
        self._order(telemetry.following(order, "grade", environment=self._spec.task.env))

    def _order(self, order: _Order) -> None:
        if self._orders is not None:
            self._orders.put_nowait(order)
        elif self._play is not None:
            self._context.run(self._resume_now, self._play, order)

    def _prompt_now(self, opening: Opening) -> None:
        """Run a template that never waits to its prompt."""
        try:
            play = done_now(self._world.play(self._template, self._spec.task, opening))
            prompt = done_now(self._template.first_prompt(play))
        except (Exception, SystemExit, BaseExceptionGroup) as exc:  # noqa: BLE001  # every failure of the author's code is attributed here
            self._finish(failed_setup(exc, self._template))
        except asyncio.CancelledError:
            self._finish(self._interrupted())
        else:
            self._play = play
            self.prompt.set_result(prompt)

    def _resume_now(self, play: Play, order: _Order) -> None:
        """Run a template that never waits to its end."""
        # Its next value is the last, so an order after this one finds nothing to resume.
        self._play = None
        try:
            end = done_now(order(play, None))
        # `done_now` raises this if the template waits after all.
        except RuntimeError as exc:
            end = ungraded(f"{self._where}: {exc}")
        self._finish(None if isinstance(end, GoesOn) else end)

    def abort(self, end: SessionEnd) -> None:
        """End the template now. Its cleanup is cancelled too if it takes too long."""
        if self._aborted is None:
            self._aborted = end
        if self._play is not None:
            self.dismiss(end)
        # A task that is cancelled before it runs would not even say that it has finished.
        task = self._task
        if task is None or not self._runs or task.done():
            return
        # Within the driver's own task, `_converse` sees the abort itself.
        if task is not asyncio.current_task():
            task.cancel()
        asyncio.get_running_loop().call_later(_ABORT_S, self.abandon)

    def abandon(self) -> None:
        """Let the session end without the task, if that still runs and ignores its cancellation."""
        if not self._has_finished:
            logger.error("a template ignores that it was cancelled; it is abandoned")
            self._finish(self._interrupted())

    def fail(self, why: str) -> None:
        """End the session of a template that could not be started or resumed."""
        self._finish(SessionEnd(Outcome.LOST, error=why, told="Its server failed."))
        self.abort(LEFT_BY_PROGRAM)

    def note_closed(self) -> None:
        """Note that the world is closed and the log is written."""
        self._is_closed = True
        # The sessions that ended lately stay in memory. A context, and the handle of a timer that
        # ran in it, would hold their worlds there.
        self._context, self._timer = Context(), None
        if self._closing is not None:
            self._closing.set()

    async def _run(self, opening: Opening, orders: _Orders) -> None:
        self._runs = True
        try:
            if self._aborted is not None:
                raise asyncio.CancelledError  # noqa: TRY301  # as if it had been cut off
            with self._bound(self._spec.limits.setup_s, "setup"):
                play = await self._world.play(self._template, self._spec.task, opening)
                prompt = await self._template.first_prompt(play)
            if prompt.said is not None:
                (self.talk or self._open_talk()).wait(prompt.said)
            if not self.prompt.done():
                self.prompt.set_result(prompt)
            end = await self._converse(play, orders)
        except asyncio.CancelledError:
            end = self._interrupted()
        except (Exception, SystemExit, BaseExceptionGroup) as exc:  # noqa: BLE001  # every failure of the author's code is attributed here
            end = None if self._is_cut_short(exc) else failed_setup(exc, self._template)
        self._finish(end)
        while self._is_left and not self._is_closed:  # the loop waits for this task alone
            self._closing = self._closing or asyncio.Event()
            with suppress(asyncio.CancelledError):
                await self._closing.wait()

    @property
    def _is_left(self) -> bool:
        """Whether the event loop ends, which cancels all of its tasks at once."""
        return self._program is not None and self._program.cancelling() > 0

    async def _converse(self, play: Play, orders: _Orders) -> SessionEnd | None:
        """Wait for orders, and resume the template with each."""
        overdue: asyncio.CancelledError | None = None
        while True:
            try:
                order = await orders.get()
            except asyncio.CancelledError as exc:
                if self._is_left:
                    self._post(EndWanted(LEFT_BY_PROGRAM, abort=True))
                if self._aborted is not None:
                    return await self._dismiss(self._aborted, play, None)
                # A timeout or a task group that the template holds across its yield has fired:
                # the cancellation is the template's, and it may still grade. What came in the
                # same turn goes first: an answer that was accepted is graded.
                if overdue is None and not self._is_left and orders.empty():
                    self._post(EndedItself(self._life))
                overdue = exc
                continue
            end = await order(play, overdue)
            if not isinstance(end, GoesOn):
                return end
            overdue = None

    async def _grade_answer(
        self, raw: str, play: Play, _overdue: asyncio.CancelledError | None
    ) -> SessionEnd | GoesOn | None:
        if self._decided is not None:  # by the message that it came with
            return self._decided
        begin_grading(raw)
        if self.talk is not None:
            return await self._grade(play, partial(self.talk.last_words, play, raw))
        return await self._grade(play, lambda: play.asend(self._template.read_answer(raw)))

    async def _hear(
        self, text: str, by: EndedBy | None, told: "asyncio.Future[Heard]", play: Play, _: object
    ) -> SessionEnd | GoesOn | None:
        """Resume a template that talks; a grade waits until the message is recorded."""
        begin_grading(text)
        talk = self.talk or self._open_talk()
        end = await self._grade(play, partial(talk.resume, play, text, by))
        failed = isinstance(end, SessionEnd) and end.outcome is not Outcome.GRADED
        if end is None or (failed and not await self._world.is_dead()):
            return end
        if failed and not told.done():  # the world comes back, and the message may be sent again
            told.set_exception(EnvironmentFailed("Its world died while the user was asked."))
        elif not told.done():
            told.set_result(talk.heard)
        return GOES_ON

    async def _grade_unanswered(
        self, play: Play, overdue: asyncio.CancelledError | None
    ) -> SessionEnd | GoesOn | None:
        begin_grading("")
        if self.talk is not None:
            return await self._grade(play, partial(self.talk.run_out, play, overdue))
        # Into the template, whose own timeout turns its cancellation into a TimeoutError.
        return await self._grade(play, lambda: play.athrow(overdue or asyncio.CancelledError()))

    async def _grade(  # noqa: PLR0911  # each end of a template has its return
        self, play: Play, resume: Callable[[], Awaitable[object]]
    ) -> SessionEnd | GoesOn | None:
        try:
            with self._bound(self._spec.limits.grade_s, "grading"):
                value = await resume()
                if isinstance(value, GoesOn):
                    return value
                grade = read_grade(value, where=self._where)
        except StopAsyncIteration as exc:
            if self._is_cut_short(exc):
                return None
            return ungraded(
                f"{self._where}: {self._template.noun} ended without a grade; yield one "
                "after the answer."
            )
        except asyncio.CancelledError:
            # No bound of ours cancelled it, so a scope of the template's own did.
            if self._aborted is None and self._overran is None:
                return ungraded(f"{self._where}: a timeout of the template's own ended it.")
            return self._interrupted()
        except (Exception, SystemExit, BaseExceptionGroup) as exc:  # noqa: BLE001  # every failure of the author's code is attributed here
            return None if self._is_cut_short(exc) else self._break_off(exc)
        self._decided = SessionEnd(Outcome.GRADED, grade=grade)
        # It runs to its end, so that its cleanup runs. The grade stands in any case but a third
        # value.
        return await self._run_out(play) or self._decided

    def _is_cut_short(self, exc: BaseException) -> bool:
        """Whether the run was aborted; an exception of the template is then not its failure."""
        if self._aborted is not None:
            self._log(f"while it was cut off: {describe_failure(exc, self._where)}")
        return self._aborted is not None

    def _break_off(self, exc: BaseException) -> SessionEnd:
        """Return the end of a session whose template raised while it graded."""
        end = broke_in_grading(exc, self._where)
        if end.outcome is Outcome.GRADED:
            self._log(f"graded 0, by the agent's own doing: {end.error}")
            self._decided = end
        return end

    async def _run_out(self, play: Play) -> SessionEnd | None:
        """Let the template clean up; a third value makes the grade ambiguous."""
        try:
            with self._bound(PATIENCE_S, "cleaning up"):
                await anext(play)
        except StopAsyncIteration:
            return None
        except asyncio.CancelledError:
            self._log(f"{self._template.noun} took too long to clean up after its grade")
            return None
        except (Exception, SystemExit, BaseExceptionGroup) as exc:  # noqa: BLE001  # the grade stands; the failure is recorded
            self._log(f"after its grade: {describe_failure(exc, self._where)}")
            return None
        return ungraded(
            f"{self._where}: {self._template.noun} yielded a third time; yield the prompt "
            "and one grade."
        )

    async def _dismiss(
        self, end: SessionEnd, play: Play, _overdue: asyncio.CancelledError | None
    ) -> None:
        """Tell a waiting template that the session is over, and let it clean up."""
        try:
            with self._bound(PATIENCE_S, "cleaning up"):
                await play.athrow(SessionOver(PARKED if end.parked else end.outcome))
        except (StopAsyncIteration, SessionOver, asyncio.CancelledError):
            pass
        except (Exception, SystemExit, BaseExceptionGroup) as exc:  # noqa: BLE001  # the end is decided; the failure is recorded
            if not is_only(exc, SessionOver):
                self._log(f"while it was told to end: {describe_failure(exc, self._where)}")

    def _finish(self, end: SessionEnd | None) -> None:
        """Report once that the template runs no more."""
        if self._has_finished:
            return
        self._has_finished = True
        # A starter must not wait for the prompt of a template that has ended without one.
        if not self.prompt.done():
            self.prompt.set_result(None)
        self._post(Finished(self._life, end))

    def _interrupted(self) -> SessionEnd | None:
        if self._decided is not None:  # only its cleanup was interrupted
            return self._decided
        if self._aborted is not None:
            return None
        if self._overran == "setup":
            return overran(self._overran, self._spec.limits.setup_s, self._where)
        if self._overran == "grading":
            return overran(self._overran, self._spec.limits.grade_s, self._where)
        return SessionEnd(Outcome.LOST, error="cancelled from outside", told="It was interrupted.")

    @contextmanager
    def _bound(self, seconds: float, phase: str) -> Generator[None]:
        """Cancel the driver's task from outside when the time is up."""
        if self._task is None:  # nothing of it waits, and nothing could stop it
            yield
            return
        loop = asyncio.get_running_loop()
        # The machine's delays are added: a busy machine must not fail a grading.
        left = self._contention.countdown(seconds)
        # The loop keeps cancelled timers for a while, and this task's context has the world.
        context = clean_context(self._spec.name, self._log)

        def look() -> None:
            if (left_s := left()) > 0:
                self._timer = loop.call_later(left_s, look, context=context)
            else:
                self._overrun(phase, _CANCEL_TRIES)

        self._timer = loop.call_later(seconds, look, context=context)
        try:
            yield
        finally:
            self._timer.cancel()

    def _overrun(self, phase: str, tries: int) -> None:
        self._overran = phase
        task = self._task
        if task is None or task.done():
            return
        # A template can swallow each cancellation. It is left then, so that the session ends.
        if tries == 0:
            self.abandon()
            return
        task.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(1.0, self._overrun, phase, tries - 1)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._task = None
        if not task.cancelled() and (exc := task.exception()) is not None:
            logger.error("the driver of %s broke", self._spec.name, exc_info=exc)
        if not self._has_finished:  # whatever broke it, the session ends
            self._finish(self._interrupted())

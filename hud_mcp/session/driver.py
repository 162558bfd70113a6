"""The one task that owns a session's generator, from its world's opening to its closing.

A template is suspended across requests. Whatever it holds across its yields (timeouts,
task groups) belongs to the task that resumes it, so that is always this one, and no scope
of ours lies around the generator: a bound on its setup or its grading cancels the task
from outside. Everyone else exchanges messages with it.

asyncio is used directly here: only its tasks can be cancelled once and then clean up, and
started in a context of their own.
"""

import asyncio
import contextvars
import logging
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self, cast

from hud_mcp.contention import Contention
from hud_mcp.errors import (
    BrokenByAgent,
    EnvironmentFailed,
    GradingFailed,
    HudMcpError,
    InvalidTemplate,
    broken_world,
)
from hud_mcp.grade import Cause, Grade, Outcome, read_grade
from hud_mcp.session.log import current_log, current_name
from hud_mcp.template import Prompt, Template, read_prompt

__all__ = ["PARKED", "Ending", "Keeper", "RaisedApart", "SessionOver", "describe_failure"]

logger = logging.getLogger(__name__)

_PATIENCE_S = 5.0
"""How long a template or a world may take to clean up."""
_ABORT_S = 1.0
"""How long one that is aborted may take: a process that stops waits no longer."""
_CANCEL_TRIES = 5
"""A task that swallows its cancellation is cancelled again, once a second, this often."""


PARKED = "parked"
"""What `SessionOver` says where the session goes on in another server process."""


class SessionOver(Exception):
    """Thrown into a template that waits for an answer when there will be none.

    Its text is the session's outcome, or `PARKED`.
    """


class RaisedApart(Exception):
    """What a template raised in a process of its own; or the cause of what it raised of ours.

    Attributes:
        kind: The name of the exception's class.
        described: The exception, with its file and line.
    """

    def __init__(self, kind: str, described: str) -> None:
        super().__init__(described)
        self.kind = kind
        self.described = described


@dataclass(frozen=True)
class Ending:
    """How a session ends.

    Attributes:
        outcome: Its class.
        grade: What the template yielded; only for `graded`.
        error: For the record: everything that is known, with file and line.
        told: For the agent: nothing that an author wrote.
        parked: Whether it only ends here, and goes on in another server process.
        cause: Whose doing it is; None for what its outcome is by itself, as `cause_of` has it.
    """

    outcome: Outcome
    grade: Grade | None = None
    error: str | None = None
    told: str | None = None
    parked: bool = False
    cause: Cause | None = None

    @classmethod
    def by_agent(cls, reason: str, *, error: str | None = None, told: str | None = None) -> Self:
        """How it ends where the agent's own doing has made it impossible to look.

        Args:
            reason: A sentence that explains the grade.
            error: For the record, where more is known.
            told: What the agent is told, where it has not answered.
        """
        grade = Grade(reward=0.0, content=reason)
        return cls(Outcome.GRADED, grade=grade, error=error or reason, told=told, cause=Cause.AGENT)


@dataclass(frozen=True)
class _Submit:
    raw: str


class Keeper:
    """Runs one template.

    Args:
        template: What to run.
        open_generator: Opens the world and creates the generator; called in the
            keeper's own task.
        unwind: Called before a waiting template is told that it is over: stops
            whatever else uses the world.
        settle: Called once with the ending, before the world is closed. It must not raise.
        close_world: Called after that.
        leave: Called last.
        cut_off: Called where the template ends the wait for an answer by itself: tells
            whatever else uses the world to let go of it, and does not wait.
        left: How the session ends where its whole event loop is being ended; else None.
        setup_s: The longest that opening and the way to the prompt may take.
        grade_s: The longest that grading may take.
        name: The session's short name.
        log: Takes a line for its log.
        contention: What the machine takes, which is added to both bounds.
    """

    def __init__(
        self,
        template: Template,
        *,
        open_generator: Callable[[], Awaitable[AsyncGenerator[Any, Any]]],
        unwind: Callable[[], Awaitable[None]],
        settle: Callable[[Ending], Awaitable[None]],
        close_world: Callable[[], Awaitable[None]],
        leave: Callable[[], Awaitable[None]],
        cut_off: Callable[[], None],
        left: Callable[[], Ending | None],
        setup_s: float,
        grade_s: float,
        name: str,
        log: Callable[[str], None],
        contention: Contention,
    ) -> None:
        self._template = template
        self._open_generator = open_generator
        self._unwind = unwind
        self._settle = settle
        self._close_world = close_world
        self._leave = leave
        self._cut_off = cut_off
        self._left = left
        self._setup_s = setup_s
        self._grade_s = grade_s
        self._name = name
        self._log = log
        self._contention = contention
        self._inbox: asyncio.Queue[_Submit | Ending] = asyncio.Queue()
        self._overran: str | None = None
        self._stop: Ending | None = None
        self._decided: Ending | None = None
        self._settled = False
        self._task: asyncio.Task[None] | None = None
        self._runs = False
        self._ready = asyncio.Event()
        self.prompt: asyncio.Future[Prompt] = asyncio.get_running_loop().create_future()
        self.closed = asyncio.Event()

    @property
    def started(self) -> bool:
        """Whether it has begun."""
        return self._task is not None

    @property
    def is_ending(self) -> bool:
        """Whether it is decided how the session ends, as far as this template is concerned."""
        return self._stop is not None or self._decided is not None or self._settled

    @property
    def aborted(self) -> Ending | None:
        """How the session was to end at once; None where nobody has asked for that."""
        return self._stop

    def start(self, *, ready: bool = True) -> None:
        """Begin, in a clean context: nothing of the request that starts a session stays in it.

        Args:
            ready: Whether the template may grade once it has asked; where not, whatever ends its
                wait takes effect with `get_ready`.
        """
        if ready:
            self.get_ready()
        context = contextvars.Context()
        context.run(current_name.set, self._name)
        context.run(current_log.set, self._log)
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run(), name=f"keeper {self._name}", context=context)
        self._task.add_done_callback(self._done)

    def get_ready(self) -> None:
        """Let the template grade from now on: its world is what the record says."""
        self._ready.set()

    def submit(self, raw: str) -> None:
        """Hand over the answer; grading begins."""
        self._inbox.put_nowait(_Submit(raw))

    def end(self, ending: Ending) -> None:
        """End the session, if it waits for an answer; while it grades, nothing happens."""
        self._inbox.put_nowait(ending)

    def abort(self, ending: Ending) -> None:
        """End the session now, whatever it does; what it does then is cancelled.

        One that has not begun opens nothing any more.
        """
        if self._stop is None:
            self._stop = ending
        # A task that is cancelled before it runs would not even settle.
        if self._task is not None and self._runs and not self._task.done():
            self._task.cancel()
            asyncio.get_running_loop().call_later(_ABORT_S, self._abandon)

    async def _run(self) -> None:
        generator: AsyncGenerator[Any, Any] | None = None
        self._runs = True
        try:
            if self._stop is not None:
                raise asyncio.CancelledError  # noqa: TRY301  # as if it had been cut off
            with self._bound(self._setup_s, "setup"):
                generator = await self._open_generator()
                prompt = await self._first(generator)
            if not self.prompt.done():
                self.prompt.set_result(prompt)
            ending = await self._converse(generator)
        except asyncio.CancelledError:
            ending = self._interrupted()
        except (Exception, SystemExit, BaseExceptionGroup) as exc:  # noqa: BLE001  # the keeper attributes every failure of the author's code
            ending = self._cut_short(exc) or self._broke_in_setup(exc)
        try:
            await self._finish(ending)
        finally:
            await self._close()

    async def _close(self) -> None:
        await self._bounded(self._close_world(), "closing the world")
        await self._bounded(self._leave(), "writing the end of the log")
        self.closed.set()

    async def _first(self, generator: AsyncGenerator[Any, Any]) -> Prompt:
        try:
            value = await anext(generator)
        except StopAsyncIteration:
            raise InvalidTemplate(
                f"{self._template.where}: {self._template.noun} ended without yielding a prompt."
            ) from None
        return read_prompt(value, where=self._template.where)

    async def _converse(self, generator: AsyncGenerator[Any, Any]) -> Ending:
        try:
            message = await self._inbox.get()
        except asyncio.CancelledError as exc:
            cancelled = exc
            self._stop = self._stop or self._left()
            await self._until_ready()
            if self._stop is not None:
                return await self._dismiss(generator, self._stop)
            # A timeout or a task group that the template holds across its yield has fired:
            # the cancellation is the template's, and it may still grade. What came in the same
            # turn goes first: an answer that was accepted is graded.
            if self._inbox.empty():
                self._cut_off()
                return await self._grade(generator, lambda: generator.athrow(cancelled))
            message = self._inbox.get_nowait()
        if isinstance(message, Ending):
            return await self._dismiss(generator, message)
        raw = message.raw
        return await self._grade(
            generator, lambda: generator.asend(self._template.read_answer(raw))
        )

    async def _until_ready(self) -> None:
        """Wait until the template may grade, or is to end; what cancels it stays in force."""
        while self._stop is None and not self._ready.is_set():
            with suppress(asyncio.CancelledError):
                await self._ready.wait()

    async def _grade(
        self, generator: AsyncGenerator[Any, Any], resume: Callable[[], Awaitable[Any]]
    ) -> Ending:
        try:
            with self._bound(self._grade_s, "grading"):
                value = await resume()
                grade = read_grade(value, where=self._template.where)
        except StopAsyncIteration as exc:
            return self._cut_short(exc) or _ungraded(
                f"{self._template.where}: {self._template.noun} ended without a grade; yield one "
                "after the answer."
            )
        except asyncio.CancelledError:
            if self._stop is None and self._overran is None:
                return _ungraded(
                    f"{self._template.where}: a timeout of the template's own ended it."
                )
            return self._interrupted()
        except (Exception, SystemExit, BaseExceptionGroup) as exc:  # noqa: BLE001  # the keeper attributes every failure of the author's code
            return self._cut_short(exc) or self._broke_in_grading(exc)
        self._decided = Ending(Outcome.GRADED, grade=grade)
        return await self._run_out(generator) or self._decided

    def _cut_short(self, exc: BaseException) -> Ending | None:
        """How it ends where it was aborted: what the template makes of that is no failure of it."""
        if self._stop is not None:
            self._log(f"while it was cut off: {self._describe(exc)}")
        return self._stop

    def _broke_in_grading(self, exc: BaseException) -> Ending:
        """How it ends where the template raised: by whom the grader could not look."""
        error = self._describe(exc)
        broken = broken_world(exc)
        if broken is not None and str(broken) not in error:
            error = f"{error} {broken}"
        if isinstance(broken, BrokenByAgent):
            self._log(f"graded 0, by the agent's own doing: {error}")
            self._decided = Ending.by_agent(str(broken), error=error)
            return self._decided
        if broken is not None:
            return Ending(Outcome.ENVIRONMENT_FAILED, error=error, told=str(broken))
        return _ungraded(error)

    async def _run_out(self, generator: AsyncGenerator[Any, Any]) -> Ending | None:
        """Let the template clean up; a third value makes the grade ambiguous."""
        try:
            with self._bound(_PATIENCE_S, "cleaning up"):
                await anext(generator)
        except StopAsyncIteration:
            return None
        except asyncio.CancelledError:
            self._log(f"{self._template.noun} took too long to clean up after its grade")
            return None
        except (Exception, SystemExit, BaseExceptionGroup) as exc:  # noqa: BLE001  # the grade stands; the failure is recorded
            self._log(f"after its grade: {self._describe(exc)}")
            return None
        return _ungraded(
            f"{self._template.where}: {self._template.noun} yielded a third time; yield the prompt "
            "and one grade."
        )

    async def _dismiss(self, generator: AsyncGenerator[Any, Any], ending: Ending) -> Ending:
        """Tell a waiting template that it is over, and let it clean up.

        An ordinary exception is thrown: closing the generator would raise GeneratorExit,
        which leaves a task group as a BaseExceptionGroup.
        """
        self._decided = ending
        await self._unwind()
        try:
            with self._bound(_PATIENCE_S, "cleaning up"):
                await generator.athrow(SessionOver(PARKED if ending.parked else ending.outcome))
        except (StopAsyncIteration, SessionOver, asyncio.CancelledError):
            pass
        except (Exception, SystemExit, BaseExceptionGroup) as exc:  # noqa: BLE001  # the ending is decided; the failure is recorded
            if not _is_only(exc, SessionOver):
                self._log(f"while it was told to end: {self._describe(exc)}")
        return ending

    async def _finish(self, ending: Ending) -> None:
        if self._settled:
            return
        self._settled = True
        # In a task of its own: whatever cancels this one, the end is recorded and told.
        settling = asyncio.ensure_future(self._settle(ending))
        while not settling.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({settling})
        settling.result()
        if not self.prompt.done():
            self.prompt.set_exception(EnvironmentFailed(ending.told or ending.outcome.value))
            self.prompt.exception()  # marked as seen: a cancelled start has nobody to tell

    def _interrupted(self) -> Ending:
        if self._decided is not None:  # only its cleanup was interrupted
            return self._decided
        if self._stop is not None:
            return self._stop
        if self._overran == "setup":
            text = f"Its setup took longer than {self._setup_s:g} s and was stopped."
            return Ending(Outcome.ENVIRONMENT_FAILED, error=text, told=text)
        if self._overran == "grading":
            text = f"Its grading took longer than {self._grade_s:g} s and was stopped."
            return Ending(
                Outcome.GRADING_FAILED, error=f"{self._template.where}: {text}", told=text
            )
        return Ending(Outcome.LOST, error="cancelled from outside", told="It was interrupted.")

    def _broke_in_setup(self, exc: BaseException) -> Ending:
        error = self._describe(exc)
        if isinstance(exc, HudMcpError) and not isinstance(exc, InvalidTemplate):
            told = str(exc)
        else:
            kind = exc.kind if isinstance(exc, RaisedApart) else type(exc).__name__
            told = f"The setup of {self._template.noun} failed ({kind})."
        return Ending(Outcome.ENVIRONMENT_FAILED, error=error, told=told)

    def _describe(self, exc: BaseException) -> str:
        return describe_failure(exc, self._template.where)

    @contextmanager
    def _bound(self, seconds: float, phase: str) -> Generator[None]:
        """Cancel the keeper's task from outside when the time is up."""
        loop = asyncio.get_running_loop()
        left = self._contention.countdown(seconds)

        def look() -> None:
            left_s = left()
            if left_s > 0:
                self._timer = loop.call_later(left_s, look)
            else:
                self._overrun(phase, _CANCEL_TRIES)

        self._timer = loop.call_later(seconds, look)
        try:
            yield
        finally:
            self._timer.cancel()

    def _overrun(self, phase: str, tries: int) -> None:
        self._overran = phase
        task = self._task
        if task is None or task.done():
            return
        if tries == 0:
            self._abandon()
            return
        task.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(1.0, self._overrun, phase, tries - 1)

    def _abandon(self) -> None:
        """Settle without the task, if it still runs and listens to nobody."""
        if self._settled:
            return
        logger.error("a template ignores that it was cancelled; it is abandoned")
        self._abandoned = asyncio.get_running_loop().create_task(self._finish_alone())

    async def _finish_alone(self) -> None:
        await self._finish(self._interrupted())
        await self._close()

    async def _bounded(self, work: Awaitable[None], what: str) -> None:
        """Wait for cleanup, for a while, whatever cancels this task."""
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait({task}, timeout=_PATIENCE_S)
        except asyncio.CancelledError:
            done, _ = await asyncio.wait({task}, timeout=1.0)
        if not done:
            task.cancel()
            self._log(f"{what} took longer than {_PATIENCE_S:g} s and was given up")
        elif not task.cancelled() and (exc := task.exception()) is not None:
            self._log(f"{what} failed: {type(exc).__name__}: {exc}")

    def _done(self, task: "asyncio.Task[None]") -> None:
        self.closed.set()
        if not task.cancelled() and (exc := task.exception()) is not None:
            logger.error("the keeper of %s broke", self._name, exc_info=exc)


def describe_failure(exc: BaseException, where: str) -> str:
    """An exception with the line of the template's file that it passed through.

    Args:
        exc: What was raised; of a group, such as a task group raises, its first exception.
        where: The template's file and line.
    """
    while isinstance(exc, BaseExceptionGroup):
        exc = cast("BaseExceptionGroup[BaseException]", exc).exceptions[0]
    for each in (exc, exc.__cause__):
        if isinstance(each, RaisedApart):
            return each.described
    if isinstance(exc, InvalidTemplate | GradingFailed):
        return str(exc)
    file = where.rpartition(":")[0]
    frames = [f for f in traceback.extract_tb(exc.__traceback__) if f.filename == file]
    place = f"{file}:{frames[-1].lineno}" if frames else where
    return f"{place}: {type(exc).__name__}: {exc}"


def _ungraded(error: str) -> Ending:
    told = "The template failed to grade this task; the server's log and the record say why."
    return Ending(Outcome.GRADING_FAILED, error=error, told=told)


def _is_only(exc: BaseException, wanted: type[BaseException]) -> bool:
    if isinstance(exc, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", exc)
        return all(_is_only(inner, wanted) for inner in group.exceptions)
    return isinstance(exc, wanted)

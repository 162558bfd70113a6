"""The turns of a session's calls, one at a time in their order, and waits with a bound.

A call runs in its caller's own task, in the context of its session. So a cancelled caller takes its
call with it, and nothing of a request stays in the session.
"""

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any, TypeAlias, TypeVar

import anyio

from hud_mcp.base import telemetry
from hud_mcp.base.contention import Contention
from hud_mcp.errors import ActionFailed, EnvironmentFailed, HudMcpError, LimitReached, SessionBusy
from hud_mcp.session.log import clean_context

logger = logging.getLogger(__name__)
T = TypeVar("T")

Call: TypeAlias = Callable[[], Coroutine[Any, Any, T]]
"""A call on a session's world."""

PATIENCE_S = 5.0
"""The longest cleanup of a template or a world."""
_CANCELLED_S = 1.0
_LET_GO_S = 0.5
_STOP_S = 2.0
"""The longest time for a cut-off call to leave the world."""


class CallCutOff(HudMcpError):
    """A call was cut off, or was not begun, because its session ends; the state has the end."""


class Turn:
    """The turn to use one life of a session's world. Nobody gets it before it is opened."""

    __slots__ = (
        "_contention", "_context", "_detached", "_freed", "_is_cut_off", "_is_open", "_is_taken",
        "_log", "_most", "_name", "_on_broken", "_scope", "_waiting",
    )  # fmt: skip

    def __init__(
        self,
        *,
        most: int,
        contention: Contention,
        name: str,
        log: Callable[[str], None],
        on_broken: Callable[[EnvironmentFailed], None],
    ) -> None:
        self._most = most
        self._contention = contention
        self._name = name
        self._log = log
        self._on_broken = on_broken
        self._context: contextvars.Context | None = None
        self._waiting: list[asyncio.Future[None]] = []  # an empty deque takes 760 bytes
        self._detached: set[asyncio.Task[Any]] | None = None
        self._freed: asyncio.Future[None] | None = None
        self._scope: anyio.CancelScope | None = None
        self._is_open = False
        self._is_taken = False
        self._is_cut_off = False

    @property
    def count(self) -> int:
        """The number of calls that wait or run."""
        return len(self._waiting) + self._is_taken

    def open(self) -> None:
        """Give the turn to the waiting calls, one after the other."""
        self._is_open = True
        if not self._is_taken:
            self._pass_on()

    async def call(
        self,
        run: Call[T],
        limit_s: float,
        *,
        detached: bool = False,
        check: Callable[[], None] | None = None,
    ) -> T:
        """Make one call after the waiting ones, and return its result.

        A detached call goes on if its caller is cancelled. `check` refuses the call once its turn
        has come.

        Raises:
            SessionBusy: Too many calls wait. Nothing was done.
            LimitReached: The call took longer than `limit_s` and was stopped.
            CallCutOff: The session ended before or while the call ran.
            ActionFailed: The world raised an exception that it may not raise.
            HudMcpError: The call's own error. After an EnvironmentFailed, no more calls are made.
        """
        if detached:
            return await asyncio.shield(self.begin(run, limit_s, check))
        return await self._call(self._reserve(), run, limit_s, check)

    def begin(
        self,
        run: Call[T],
        limit_s: float,
        check: Callable[[], None] | None = None,
    ) -> "asyncio.Task[T]":
        """Make a call in a task of its own, in its place from now on; raises as `call` does."""
        making = self._call(self._reserve(), run, limit_s, check)
        task = asyncio.get_running_loop().create_task(making, name=f"call {self._name}")
        self._detached = self._detached or set()  # asyncio keeps only weak references to tasks
        self._detached.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        """Forget a finished detached call, and retrieve its exception."""
        if self._detached is not None:
            self._detached.discard(task)
        if not task.cancelled():
            task.exception()

    def cut_off(self) -> "asyncio.Future[None] | None":
        """Cut the running call off, and give the turn to nobody; its future ends as it leaves."""
        self._is_open = False
        if self._scope is None:
            return None
        self._is_cut_off = True
        self._scope.cancel()
        self._freed = self._freed or asyncio.get_running_loop().create_future()
        return self._freed

    @staticmethod
    async def let_go(freed: "asyncio.Future[None]") -> None:
        """Wait a bounded time for a cut-off call to leave the world."""
        await asyncio.wait({freed}, timeout=_STOP_S)

    def leave_world(self) -> None:
        """Note that the running call has left the world, so that it is not cut off."""
        self._scope = None

    def refuse_waiting(self, why: HudMcpError | None = None) -> None:
        """Refuse every waiting call, with the reason."""
        waiting, self._waiting = self._waiting, []
        for place in waiting:
            if not place.done():
                place.set_exception(why or CallCutOff())

    def _reserve(self) -> "asyncio.Future[None] | None":
        if self._is_open and not self._is_taken and not self._waiting:
            self._is_taken = True
            return None
        if len(self._waiting) >= self._most:
            raise SessionBusy(
                f"{self._most} calls already wait on this session; nothing was done. Wait for "
                "their replies, then call again."
            )
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        return place

    async def _wait(self, place: "asyncio.Future[None]") -> None:
        """Wait for the turn; it is the caller's when this returns."""
        try:
            with telemetry.span("queue"):
                await place
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
            elif not place.cancelled() and place.exception() is None:
                self._pass_on()  # the turn came in the same moment in which its caller left
            raise

    def _pass_on(self) -> None:
        """Give the turn to the next waiting call, if the turn is open."""
        self._is_taken, self._scope = False, None
        while self._is_open and self._waiting and not self._is_taken:
            place = self._waiting.pop(0)
            if not place.done():
                self._is_taken = True
                place.set_result(None)
        if self._freed is not None and not self._freed.done():
            self._freed.set_result(None)

    async def _call(
        self,
        place: "asyncio.Future[None] | None",
        run: Call[T],
        limit_s: float,
        check: Callable[[], None] | None,
    ) -> T:
        """Make a call once its turn has come, within its limit and in the session's context."""
        if place is not None:
            await self._wait(place)
        self._context = self._context or clean_context(self._name, self._log)
        before_s = self._contention.waited_s
        scope = self._scope = anyio.CancelScope()
        late = partial(self._look, scope, self._contention.countdown(limit_s))
        timer = asyncio.get_running_loop().call_later(limit_s, late)
        try:
            if check is not None:
                check()
            with scope:
                return await _in_context(self._context, telemetry.following(run)())
        except EnvironmentFailed as exc:
            self._is_open = False
            self._on_broken(exc)
            raise
        except HudMcpError:
            raise
        except (Exception, SystemExit) as exc:
            logger.exception("a world or a tool raised")
            raise ActionFailed(f"{type(exc).__name__}: {exc}") from exc
        else:  # the scope was cancelled, and the call raised nothing
            if self._is_cut_off:
                raise CallCutOff
            raise _too_long(limit_s, self._contention.waited_s - before_s)
        finally:
            timer.cancel()
            self._pass_on()

    def _look(self, scope: anyio.CancelScope, left: Callable[[], float]) -> None:
        """Stop a call after its limit. The machine's delays prolong it."""
        if scope is not self._scope:  # the call has ended
            return
        left_s = left()
        if left_s <= 0:
            scope.cancel()
        else:
            asyncio.get_running_loop().call_later(left_s, self._look, scope, left)


def _too_long(limit_s: float, waited_s: float) -> LimitReached:
    slow = f", beside {waited_s:.0f} s that the machine was busy," if waited_s >= 1 else ""
    return LimitReached(
        f"This call took longer than {limit_s:g} s{slow} and was stopped. Its effects so far "
        "stay. Look, then continue in smaller steps."
    )


@coroutine
def _in_context(
    context: contextvars.Context, work: Coroutine[Any, Any, T]
) -> Generator[Any, Any, T]:
    """Run a coroutine in the running task, but in another context."""
    go_on: Callable[[], Any] = partial(work.send, None)
    while True:
        try:
            awaited = context.run(go_on)
        except StopIteration as exc:
            return exc.value
        try:
            go_on = partial(work.send, (yield awaited))
        except BaseException as exc:  # noqa: BLE001  # raised in the work, which awaits it
            go_on = partial(work.throw, exc)


# Waits with a bound, for a session's own work beside its calls.


async def in_patience(
    work: Callable[[], Awaitable[None]], what: str, log: Callable[[str], None]
) -> None:
    """Wait a bounded time for cleanup, even if this task is cancelled."""
    task = asyncio.ensure_future(work())
    try:
        done, _ = await asyncio.wait({task}, timeout=PATIENCE_S)
    except asyncio.CancelledError:
        done, _ = await asyncio.wait({task}, timeout=_CANCELLED_S)
    if not done:
        task.cancel()
        log(f"{what} took longer than {PATIENCE_S:g} s and was given up")
    elif not task.cancelled() and (exc := task.exception()) is not None:
        log(f"{what} failed: {type(exc).__name__}: {exc}")


async def within(seconds: float, work: Awaitable[T]) -> T:
    """Wait for work, then leave it with a TimeoutError, even if it ignores its cancellation."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        task.add_done_callback(_see)
        await asyncio.wait({task}, timeout=_LET_GO_S)
        raise TimeoutError(f"it took longer than {seconds:g} s")
    return task.result()


def _see(task: "asyncio.Future[Any]") -> None:
    """Retrieve the exception of abandoned work, which asyncio would log otherwise."""
    if not task.cancelled() and (exc := task.exception()) is not None:
        logger.debug("what was let go of failed: %s", exc)


def done_now(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, in the running task; else close it: RuntimeError."""
    try:
        work.send(None)
    except StopIteration as exc:
        return exc.value
    work.close()
    raise RuntimeError("this operation may not wait")

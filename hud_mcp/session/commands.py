"""What performs a session's calls on its world, one after the other.

A bounded queue gives the order, and a task performs it while there are calls. Each call has a
scope of its own, opened and closed inside, so that a cancelled request ends its call alone.
"""

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from functools import partial
from types import coroutine
from typing import Any, TypeVar

import anyio

from hud_mcp import telemetry
from hud_mcp.contention import Contention
from hud_mcp.errors import ActionFailed, EnvironmentFailed, HudMcpError, LimitReached, SessionBusy
from hud_mcp.session.log import clean_context
from hud_mcp.session.once import Once

__all__ = ["CallCutOff", "Commands"]

logger = logging.getLogger(__name__)
T = TypeVar("T")

_STOP_S = 2.0
"""How long a call that is cut off may take to let go of the world."""


class CallCutOff(HudMcpError):
    """A call was cut off, or was not begun, since its session ends: the state says how."""


@dataclass
class _Command:
    run: Callable[[], Awaitable[Any]]
    limit_s: float
    finished: Once = field(default_factory=Once)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    waits: telemetry.Span | None = None
    result: Any = None
    error: BaseException | None = None


class Commands:
    """Performs calls in the order in which they came, until one finds the world broken.

    Args:
        queue: How many calls may wait.
        contention: What the machine takes, which no call pays for.
        name: The session's short name.
        log: Takes a line for its log.
    """

    def __init__(
        self, *, queue: int, contention: Contention, name: str, log: Callable[[str], None]
    ) -> None:
        self._most = queue
        self._queue: list[_Command] = []  # an empty deque takes 760 bytes
        self._contention = contention
        self._name = name
        self._log = log
        self._context: contextvars.Context | None = None
        self._task: asyncio.Task[None] | None = None
        self._performs = False
        self._is_paused = False
        self._calls = 0

    @property
    def count(self) -> int:
        """How many calls wait or run."""
        return self._calls + self._is_paused

    @property
    def is_idle(self) -> bool:
        """Whether a call would be performed at once, with none before it."""
        waits = self._queue or self._task is not None or self._is_paused
        return self._performs and not waits

    def pause(self) -> None:
        """Perform none for now: the caller does what needs no task, in its own turn."""
        self._is_paused = True

    def release(self) -> None:
        """Go on with those that have come meanwhile."""
        self._is_paused = False
        self._go_on()

    def start(self) -> None:
        """Begin to perform them, in a clean context."""
        self._performs = True
        self._go_on()

    def _go_on(self) -> None:
        """See to it that a task performs what waits."""
        if self._performs and self._queue and self._task is None and not self._is_paused:
            self._task = asyncio.get_running_loop().create_task(
                self._work(), name=f"commands {self._name}", context=self._clean()
            )

    def _clean(self) -> contextvars.Context:
        """The context of all calls."""
        self._context = self._context or clean_context(self._name, self._log)
        return self._context

    async def call(
        self, run: Callable[[], Awaitable[T]], limit_s: float, *, detached: bool = False
    ) -> T:
        """Perform one call after those that wait, and return what it returns.

        Args:
            run: The call.
            limit_s: How long it may take.
            detached: Whether it goes on where the caller is cancelled.

        Raises:
            SessionBusy: Too many wait. Nothing was done.
            LimitReached: It took longer than `limit_s` and was stopped.
            CallCutOff: The session ended before or while it ran.
            HudMcpError: Whatever the call raises; after an EnvironmentFailed, none is performed.

        If the caller is cancelled, so is the call, where it has not finished and is not detached.
        """
        command = self.put(run, limit_s)
        self._calls += 1
        try:
            await command.finished.wait()
        except asyncio.CancelledError:
            if not detached:
                command.scope.cancel()
            raise
        finally:
            self._calls -= 1
        if command.error is not None:
            raise command.error
        return command.result

    async def call_now(self, run: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Perform a call in the task of its caller, while none waits; others wait for it.

        Args:
            run: The call. Nothing stops it but its own end: of the world, it waits for nothing.

        Raises:
            ActionFailed: The world raised what it may not.
            HudMcpError: As for `call`.

        If the caller is cancelled, so is the call, where it waits.
        """
        self.pause()
        try:
            return await _in_context(self._clean(), telemetry.following(run)())
        except EnvironmentFailed:
            self._performs = False
            raise
        except HudMcpError:
            raise
        except (Exception, SystemExit) as exc:
            raise _raised(exc) from exc
        finally:
            self.release()

    def put(self, run: Callable[[], Awaitable[T]], limit_s: float) -> _Command:
        """Have a call performed after those that wait, and wait for nothing.

        Raises:
            SessionBusy: Too many wait.
        """
        if len(self._queue) >= self._most:
            raise SessionBusy(
                f"{self._most} calls already wait on this session; nothing was done. Wait for "
                "their replies, then call again."
            )
        command = _Command(telemetry.following(run), limit_s)
        if telemetry.listeners:
            command.waits = telemetry.Span("queue", {})
            command.waits.start()
        self._queue.append(command)
        self._go_on()
        return command

    def cut_off(self) -> "asyncio.Task[None] | None":
        """Cut the running call off, and perform no other.

        Returns:
            What has yet to let go of the world; None where nothing has.
        """
        self._performs = False
        if self._task is None or self._task.done():
            return None
        self._task.cancel()
        return self._task

    @staticmethod
    async def let_go(task: "asyncio.Task[None]") -> None:
        """Wait for a call that was cut off, for a while, to let go of the world."""
        await asyncio.wait({task}, timeout=_STOP_S)

    def refuse_waiting(self, why: HudMcpError | None = None) -> None:
        """Tell every call that still waits that it is not done, and why."""
        while self._queue:
            command = self._queue.pop(0)
            command.error = why or CallCutOff()
            if command.waits is not None:
                command.waits.end(command.error)
            command.finished.set()

    async def _work(self) -> None:
        while self._queue and self._performs:
            command = self._queue.pop(0)
            if command.waits is not None:
                command.waits.end()
            try:
                if not command.scope.cancel_called:
                    with command.scope:
                        command.result = await self._bounded(command)
            except EnvironmentFailed as exc:
                command.error = exc
                self._performs = False
            except HudMcpError as exc:
                command.error = exc
            except asyncio.CancelledError:
                command.error = CallCutOff()
                raise
            except (Exception, SystemExit) as exc:  # noqa: BLE001  # it is logged there
                command.error = _raised(exc)
            finally:
                command.finished.set()
        self._task = None

    async def _bounded(self, command: _Command) -> Any:
        before_s = self._contention.waited_s
        with self._contention.bound(command.limit_s):
            return await command.run()
        waited_s = self._contention.waited_s - before_s
        slow = f", beside {waited_s:.0f} s that the machine was busy," if waited_s >= 1 else ""
        raise LimitReached(
            f"This call took longer than {command.limit_s:g} s{slow} and was stopped. Its "
            "effects so far stay. Look, then continue in smaller steps."
        )


def _raised(exc: BaseException) -> ActionFailed:
    """What a world or a tool raises is its call's failure."""
    logger.error("a world or a tool raised", exc_info=exc)
    return ActionFailed(f"{type(exc).__name__}: {exc}")


@coroutine
def _in_context(
    context: contextvars.Context, work: Coroutine[Any, Any, T]
) -> Generator[Any, Any, T]:
    """Do work in the running task, and in another context."""
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

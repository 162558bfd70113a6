"""The task that performs a session's calls on its world, one after the other.

A bounded queue gives the order; each call has a scope of its own, opened and closed
inside, so that a cancelled request ends its call and nothing else.
"""

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio

from hud_mcp.contention import Contention
from hud_mcp.errors import (
    ActionFailed,
    EnvironmentFailed,
    HudMcpError,
    LimitReached,
    SessionBusy,
    SessionEnded,
)
from hud_mcp.session.log import current_log, current_name

__all__ = ["Worker"]

logger = logging.getLogger(__name__)
T = TypeVar("T")

_STOP_S = 2.0
"""How long a call that is cut off may take to let go of the world."""


@dataclass
class _Command:
    run: Callable[[], Awaitable[Any]]
    limit_s: float
    finished: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    result: Any = None
    error: BaseException | None = None


class Worker:
    """Performs calls in the order in which they came.

    Args:
        queue: How many calls may wait.
        on_broken: Called when the world is broken; returns what to tell the caller in place of
            that, once the session has ended, or has another worker.
        over: Says that the session is over, and how it ended.
        name: The session's short name.
        log: Takes a line for its log.
        contention: What the machine takes, which no call pays for.
    """

    def __init__(
        self,
        *,
        queue: int,
        contention: Contention,
        on_broken: Callable[[EnvironmentFailed], Awaitable[HudMcpError | None]],
        over: Callable[[], str],
        name: str,
        log: Callable[[str], None],
    ) -> None:
        self._queue: asyncio.Queue[_Command] = asyncio.Queue(maxsize=queue)
        self._on_broken = on_broken
        self._over = over
        self._name = name
        self._log = log
        self._contention = contention
        self._task: asyncio.Task[None] | None = None
        self._broken = False
        self.calls = 0

    def start(self) -> None:
        """Begin, in a clean context: nothing of the request that starts a session stays in it."""
        context = contextvars.Context()
        context.run(current_name.set, self._name)
        context.run(current_log.set, self._log)
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._work(), name=f"worker {self._name}", context=context)

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
            SessionEnded: The session ended before or while it ran.
            HudMcpError: Whatever the call raises.

        If the caller is cancelled, so is the call, where it has not finished and is not detached.
        """
        command = _Command(run, limit_s)
        try:
            self._queue.put_nowait(command)
        except asyncio.QueueFull:
            raise SessionBusy(
                f"{self._queue.maxsize} calls already wait on this session; nothing was done. Wait "
                "for their replies, then call again."
            ) from None
        self.calls += 1
        try:
            await command.finished.wait()
        except asyncio.CancelledError:
            if not detached:
                command.scope.cancel()
            raise
        finally:
            self.calls -= 1
        if command.error is not None:
            raise command.error
        return command.result

    async def stop(self) -> None:
        """Cut the running call off, and perform no other. Stopping twice is no error.

        One that broke the world is not cut off: it waits for the end, and tells its caller then.
        """
        if self._broken:
            return
        task, self._task = self._task, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.wait({task}, timeout=_STOP_S)

    def cut_off(self) -> None:
        """Cut the running call off without waiting for it, and perform no other."""
        if self._task is not None and not self._broken:
            self._task.cancel()

    def refuse_waiting(self, why: HudMcpError | None = None) -> None:
        """Tell every call that still waits that the session is over, or why else it is not done."""
        while not self._queue.empty():
            command = self._queue.get_nowait()
            command.error = why or SessionEnded(self._over())
            command.finished.set()

    async def _work(self) -> None:
        while True:
            command = await self._queue.get()
            try:
                if not command.scope.cancel_called:
                    with command.scope:
                        command.result = await self._bounded(command)
            except EnvironmentFailed as exc:
                command.error = exc
                self._broken = True
                command.error = await self._on_broken(exc) or exc
                return
            except HudMcpError as exc:
                command.error = exc
            except asyncio.CancelledError:
                command.error = SessionEnded(self._over())
                raise
            except (Exception, SystemExit) as exc:
                # The worker attributes what a world or a tool raises.
                logger.exception("a world or a tool raised")
                command.error = ActionFailed(f"{type(exc).__name__}: {exc}")
            finally:
                command.finished.set()

    async def _bounded(self, command: _Command) -> Any:
        before_s = self._contention.waited_s
        with self._contention.bound(command.limit_s):
            return await command.run()
        waited_s = self._contention.waited_s - before_s
        slow = f", beside {waited_s:.0f} s that the machine was busy," if waited_s >= 1 else ""
        raise LimitReached(
            f"This call took longer than {command.limit_s:g} s{slow} and was stopped; what it had "
            "done stands. Look, then go on in smaller steps."
        )

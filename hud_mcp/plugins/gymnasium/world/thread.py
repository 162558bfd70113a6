"""A thread that belongs to one session, and the question whether its steps need it."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["OwnThread", "Pace"]

T = TypeVar("T")


_AT_ONCE_S = 0.002
"""How long one call's steps may be expected to take on the event loop, where others wait."""
_ASSUMED_S = 2e-5
"""A step of classic control, before any was measured."""
_WEIGHT = 1 / 8
"""Of the newest measurement."""
_LONG_S = 0.005
"""A call that takes longer has held others up, or the machine has."""
_MOST_S = 0.05
"""How long a world may hold others up beyond that, in all."""


class OwnThread:
    """Does one piece of work after the other, on a thread of its own.

    It does not keep the process alive: work that never ends cannot be ended.

    Args:
        name: For whoever looks at the process's threads.
    """

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._asked = self._finished = 0
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def is_idle(self) -> bool:
        """Whether all work that was asked for is done, also where nobody waits for it any more."""
        return self._asked == self._finished

    def do(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Do a piece of work after those that wait; the future has what it returns.

        If the future is cancelled, work that has begun goes on, and the rest is not begun.
        """
        return asyncio.wrap_future(self._put(work))

    def leave(self, work: Callable[[], Any]) -> "Future[Any]":
        """Do a last piece of work after those that wait, then end; do not wait for it."""
        last = self._put(work)
        self._queue.put(None)
        return last

    def _put(self, work: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        self._asked += 1
        # In the caller's context: what the environment prints belongs to the session's log.
        context = contextvars.copy_context()
        self._queue.put((partial(context.run, work), future))
        return future

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            work, future = item
            if not future.set_running_or_notify_cancel():
                self._finished += 1
                continue
            try:
                result = work()
            except BaseException as exc:  # noqa: BLE001  # raised where the work was asked for
                self._finished += 1
                future.set_exception(exc)
            else:
                self._finished += 1  # before whoever waits goes on
                future.set_result(result)
            del item, work, future  # what they hold goes now, and not with the next piece


class Pace:
    """Measures steps, and says whether the next ones may be taken where others wait for them.

    Once its steps have held others up for too long, an environment steps on its thread for good:
    what was declared short has turned out to be something else.

    Args:
        thread: The environment's own; a call on it that was cancelled must be done first.
        is_quick: Whether the environment is declared to be short and pure.
    """

    def __init__(self, thread: OwnThread, *, is_quick: bool) -> None:
        self._thread = thread
        self._is_quick = is_quick
        self._each_s = _ASSUMED_S
        self._late_s = 0.0

    def allows(self, count: int) -> bool:
        """Whether so many steps may be taken on the event loop now."""
        is_short = self._is_quick and count * self._each_s <= _AT_ONCE_S
        return is_short and self._thread.is_idle

    def note(self, count: int, took_s: float, *, on_loop: bool) -> None:
        """Take note of steps that were taken.

        Args:
            count: How many; at least one.
            took_s: How long they took together.
            on_loop: Whether others waited meanwhile.
        """
        self._each_s += _WEIGHT * (took_s / count - self._each_s)
        if on_loop and took_s > _LONG_S:
            self._late_s += took_s - _LONG_S
            self._is_quick = self._is_quick and self._late_s <= _MOST_S

"""A thread that belongs to one session: what blocks, blocks nobody else."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["OwnThread"]

T = TypeVar("T")


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

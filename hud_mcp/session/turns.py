"""Callers who wait for one piece of work, and go on in the order in which they came."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

__all__ = ["Turns"]

T = TypeVar("T")


class _Line(Generic[T]):
    """Those who wait for one piece of work."""

    def __init__(self, task: "asyncio.Task[T]") -> None:
        self.task = task
        self.turn = asyncio.Lock()  # fair: who came first is let through first
        self.callers = 0


class Turns(Generic[T]):
    """Work that several callers share: it runs once, and they go on one after the other.

    It goes on where they leave. Until the last of them has gone on, whoever comes later waits
    behind them: what each does at once with the result happens in the order in which they asked.
    """

    def __init__(self) -> None:
        self._lines: dict[Hashable, _Line[T]] = {}

    def waits_for(self, key: Hashable) -> bool:
        """Whether this work is under way, or somebody has yet to go on with its result."""
        return key in self._lines

    async def take(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for the work of a key, which begins with the first who asks for it.

        What it raises is raised to each of them.

        Args:
            key: What the work is for.
            work: Does it.
        """
        line = self._lines.get(key)
        if line is None:
            task = asyncio.get_running_loop().create_task(work())
            line = self._lines[key] = _Line(task)
            task.add_done_callback(lambda done: self._ended(key, done))
        line.callers += 1
        try:
            async with line.turn:
                return await asyncio.shield(line.task)
        finally:
            line.callers -= 1
            if not line.callers and line.task.done():
                del self._lines[key]

    def _ended(self, key: Hashable, done: "asyncio.Task[T]") -> None:
        """Forget work that nobody waits for any more, and look at its failure."""
        line = self._lines.get(key)  # gone where the last of them left in the turn of its end
        if line is not None and line.task is done and not line.callers:
            del self._lines[key]
        if not done.cancelled():
            done.exception()

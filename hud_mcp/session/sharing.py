"""Work that several callers ask for at once: it runs once, and each goes on with its result."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from hud_mcp.errors import HudMcpError

__all__ = ["SharedWork"]

logger = logging.getLogger(__name__)
T = TypeVar("T")


class _Line(Generic[T]):
    """The callers who wait for one piece of work."""

    __slots__ = ("callers", "task", "turn")

    def __init__(self, task: "asyncio.Task[T]") -> None:
        self.task = task
        self.turn = asyncio.Lock()  # fair: who came first is let through first
        self.callers = 0


class SharedWork(Generic[T]):
    """Work by key. It goes on where its callers leave.

    Until the last of them has gone on, whoever comes later waits behind them: what each does at
    once with the result happens in the order in which they asked.
    """

    def __init__(self) -> None:
        self._lines: dict[Hashable, _Line[T]] = {}

    def is_under_way(self, key: Hashable) -> bool:
        """Whether this work goes on, or somebody has yet to go on with its result."""
        return key in self._lines

    async def take(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for the work of a key, which begins with the first who asks for it.

        Args:
            key: The name of the work.
            work: Does it. What it raises, is raised to each of the callers.
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

    def cancel(self) -> None:
        """Cancel all that goes on; its callers are cancelled with it."""
        for line in self._lines.values():
            line.task.cancel()

    def _ended(self, key: Hashable, done: "asyncio.Task[T]") -> None:
        """Forget work that nobody waits for any more, and look at its failure."""
        line = self._lines.get(key)  # gone where the last of them left in the turn of its end
        left = line is not None and line.task is done and not line.callers
        if left:
            del self._lines[key]
        error = None if done.cancelled() else done.exception()
        if left and error is not None:
            level = logging.INFO if isinstance(error, HudMcpError) else logging.ERROR
            logger.log(level, "work that nobody waited for failed: %s", error)

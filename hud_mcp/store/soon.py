"""What may wait a moment is begun together, so that many sessions share one commit."""

import asyncio
from collections.abc import Callable

__all__ = ["Soon"]

_SOON_S = 0.025
"""How long it may wait: half of what is promised, which leaves the other half for the commit."""


class Soon:
    """Calls functions together, 25 ms after the first of them was added; in each event loop."""

    def __init__(self) -> None:
        self._due: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = {}

    def add(self, begin: Callable[[], None]) -> None:
        """Have a function called soon, in this event loop, which must be running."""
        loop = asyncio.get_running_loop()
        due = self._due.get(loop)
        if due is None:
            due = self._due[loop] = []
            loop.call_later(_SOON_S, self._begin_all, loop)
        due.append(begin)

    def _begin_all(self, loop: asyncio.AbstractEventLoop) -> None:
        for begin in self._due.pop(loop):
            begin()

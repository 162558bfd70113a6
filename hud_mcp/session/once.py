"""Something that happens once, and may be waited for. Until somebody waits, it is two fields."""

import asyncio

__all__ = ["Once"]


class Once:
    """An `asyncio.Event` that is never cleared, and keeps no queue: most have nobody who waits."""

    __slots__ = ("_is_set", "_waiting")

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: list[asyncio.Future[None]] | None = None

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._is_set

    def set(self) -> None:
        """Say that it has happened, and wake everybody. Again is not an error."""
        self._is_set = True
        waiting, self._waiting = self._waiting, None
        for future in waiting or ():
            if not future.done():
                future.set_result(None)

    async def wait(self) -> None:
        """Return once it has happened; at once where it has."""
        if self._is_set:
            return
        waiting = self._waiting = [] if self._waiting is None else self._waiting
        future = asyncio.get_running_loop().create_future()
        waiting.append(future)
        try:
            await future
        finally:
            waiting.remove(future)

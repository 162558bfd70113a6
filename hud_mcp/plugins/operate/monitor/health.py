"""Whether a server is alive, and whether it may be given more work."""

import asyncio
import time
from collections.abc import Callable
from typing import Literal

from hud_mcp.errors import HudMcpError
from hud_mcp.session.registry import Sessions

__all__ = ["Health", "State"]

State = Literal["ready", "starting", "draining", "store unavailable"]
"""What a server that answers is."""

_WRITE_S = 2.0
"""A store that takes longer to take a write is not ready."""

_FRESH_S = 1.0
"""How long an answer holds: whoever asks often makes no work."""


class Health:
    """Tells whether a server may be given work.

    Args:
        sessions: Returns the registry; None before there is one.
    """

    def __init__(self, sessions: Callable[[], Sessions | None]) -> None:
        self._sessions = sessions
        self._writing: asyncio.Future[None] | None = None
        self._written: bool = False
        self._looked_s: float | None = None

    async def state(self) -> State:
        """What the server is now."""
        sessions = self._sessions()
        if sessions is None:
            return "starting"
        if not sessions.takes_new:
            return "draining"
        written = await self._writes(sessions)
        if not sessions.takes_new:  # it was told to stop meanwhile
            return "draining"
        return "ready" if written else "store unavailable"

    async def _writes(self, sessions: Sessions) -> bool:
        """Whether the store takes a write; asked once of it for all who want to know."""
        now_s = time.monotonic()
        if self._looked_s is not None and now_s - self._looked_s < _FRESH_S:
            return self._written
        if self._writing is None:
            self._writing = sessions.store.check_writable()
        writing = self._writing
        done, _ = await asyncio.wait({writing}, timeout=_WRITE_S)
        if not done:  # it may go on: the next one who asks waits for the same
            return False
        if self._writing is writing:
            self._writing = None
            self._looked_s = time.monotonic()
            self._written = _succeeded(writing)
        return _succeeded(writing)


def _succeeded(writing: "asyncio.Future[None]") -> bool:
    if writing.cancelled():
        return False
    error = writing.exception()
    if error is not None and not isinstance(error, HudMcpError):
        raise error
    return error is None

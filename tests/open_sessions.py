"""Sessions that a test opens, and that are closed at its end."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from waiting import PATIENCE_S

from hud_mcp.session.registry import Sessions


@asynccontextmanager
async def opened(sessions: Sessions) -> AsyncGenerator[Sessions]:
    """What a server has, until it stops; neither the body nor the end takes for ever."""
    try:
        with anyio.fail_after(PATIENCE_S):
            yield sessions
    finally:
        with anyio.fail_after(PATIENCE_S):
            await sessions.close()

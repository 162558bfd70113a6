"""The schemes `hud:` and `tcp:`: environments of HUD's SDK, bridged from their own server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from hud_mcp.environment.environment import Environment
from hud_mcp.loading.source import Scheme
from hud_mcp.plugins.hud import commands

__all__ = ["SCHEME"]


@asynccontextmanager
async def _open(source: str, *, python: str | None) -> AsyncGenerator[list[Environment]]:
    environment = await commands.bridge(source, python=python)
    try:
        yield [environment]
    finally:
        # The server that was started for it ends, also if this block is cancelled.
        with anyio.CancelScope(shield=True):
            await environment.close()


SCHEME = Scheme(open=_open)

"""Telling clients that the lists of tools, prompts and resources have changed."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hud_mcp.session.caller import Caller

__all__ = ["ListChanges"]

logger = logging.getLogger(__name__)

_MOST = 256
"""Connections that are told; the one that has listed longest ago goes first."""


class ListChanges:
    """Who has listed something, and is told once that changes.

    A client of 2025-11-25 is told by a notification of its connection, one of 2026-07-28 on the
    streams that it listens to.

    Args:
        tell_streams: Brings events to those streams.
    """

    def __init__(self, tell_streams: Callable[[Iterable[ServerEvent]], None]) -> None:
        self._tell_streams = tell_streams
        self._listed: dict[str | None, Any] = {}
        self._sending: set[asyncio.Task[None]] = set()

    def note(self, ctx: ServerRequestContext[str, Any], caller: Caller) -> None:
        """Tell a connection from now on, which has just listed tools."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        self._listed.pop(caller.connection, None)
        self._listed[caller.connection] = ctx.session
        if len(self._listed) > _MOST:
            del self._listed[next(iter(self._listed))]

    def tell(self) -> None:
        """Say that all lists have changed."""
        self._tell_streams((ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()))
        for connection, session in list(self._listed.items()):
            telling = self._send(connection, session)
            task = asyncio.get_running_loop().create_task(telling, name="lists changed")
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, connection: str | None, session: Any) -> None:
        try:
            await session.send_tool_list_changed()
            await session.send_prompt_list_changed()
            await session.send_resource_list_changed()
        except Exception as exc:  # noqa: BLE001  # it is gone, in whatever way
            logger.debug("%s is not told any more: %s", connection, exc)
            self._listed.pop(connection, None)

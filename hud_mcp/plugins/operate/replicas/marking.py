"""Replies that say which of several servers they are from."""

from collections.abc import Mapping
from typing import Any, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from hud_mcp.plugins.operate.replicas.arrival import TAG

__all__ = ["mark_results"]

_CALL = "tools/call"


def mark_results(server: Server[Any], tag: str) -> None:
    """Have the result of each tool call name the replica that performed it.

    Args:
        server: Whose results they are.
        tag: The replica's.
    """
    entry = server.get_request_handler(_CALL)

    async def call(ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> Any:
        replied: Any = await entry.handler(ctx, params) if entry is not None else {}
        result = cast("Mapping[str, Any]", replied)
        meta: Mapping[str, Any] = result.get("_meta") or {}
        return {**result, "_meta": {**meta, TAG: tag}}

    server.add_request_handler(_CALL, types.CallToolRequestParams, call)

"""The operator's operations as tools of an MCP server. No list shows them."""

import logging
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.hud.operations import Operations
from hud_mcp.server.results import error_result, structured_result
from hud_mcp.session.caller import CREDENTIAL

logger = logging.getLogger(__name__)

_CALL = "tools/call"


def serve_operations(server: Server[Any], operations: Operations) -> None:
    """Perform operations for callers with the credential; for others they do not exist."""
    entry = server.get_request_handler(_CALL)

    async def call(ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> Any:
        credential: Any = (params.meta or {}).get(CREDENTIAL)
        if params.name in operations.names and operations.admits(credential):
            return await _perform(operations, params)
        return await entry.handler(ctx, params) if entry is not None else None

    server.add_request_handler(_CALL, types.CallToolRequestParams, call)


async def _perform(operations: Operations, params: types.CallToolRequestParams) -> dict[str, Any]:
    """Perform one operation. An error names its class, which the operator's client raises."""
    name = params.name
    try:
        return structured_result(await operations.perform(name, params.arguments or {}), "Done.")
    except HudMcpError as exc:
        return error_result(str(exc), kind=type(exc).__name__)
    except Exception:  # the boundary of a tool call
        logger.exception("%s failed", name)
        return error_result(f"{name} failed inside the server; its log says why.")

"""The functions by which rows grade the calls of a server, and what its tools return afterwards."""

from typing import Any

from hud_mcp.environment.function import Function
from hud_mcp.plugins.servers.world import ToolServerWorld

__all__ = ["SERVER_FUNCTIONS"]

_NO_NEED = "An agent can call a tool without any need of it."


async def called(
    server: ToolServerWorld, tool: str, arguments: dict[str, Any] | None = None
) -> float:
    """1.0 where a tool was called with these arguments, and any others."""
    return float(server.calls.called(tool, **(arguments or {})))


async def never_called(server: ToolServerWorld, tool: str, *more: str) -> float:
    """1.0 where none of the tools was called."""
    return float(not server.calls.never(tool, *more))


async def called_in_order(server: ToolServerWorld, tool: str, *more: str) -> float:
    """1.0 where the tools were called in this order, with any others between."""
    return float(server.calls.in_order(tool, *more))


async def calls_at_most(server: ToolServerWorld, count: int, tool: str = "") -> float:
    """1.0 where a tool, or all of them together, were called at most so many times."""
    return float(server.calls.at_most(count, tool or None))


async def tool_errors_at_most(server: ToolServerWorld, count: int) -> float:
    """1.0 where at most so many calls were answered with an error."""
    return float(server.calls.errors_at_most(count))


async def server_returns(
    server: ToolServerWorld, tool: str, arguments: dict[str, Any], text: str
) -> float:
    """1.0 where a second server, over a copy of the files, returns this text, and no error."""
    async with server.second() as tools:
        reply = await tools.call(tool, **arguments)
    return float(not reply.is_error and reply.text.strip() == text.strip())


SERVER_FUNCTIONS = (
    Function(called, use="evaluate", weak=_NO_NEED),
    Function(never_called, use="evaluate", weak="An agent that does nothing calls nothing."),
    Function(called_in_order, use="evaluate", weak=_NO_NEED),
    Function(calls_at_most, use="evaluate", weak="An agent that does nothing calls nothing."),
    Function(tool_errors_at_most, use="evaluate", weak="An agent that does nothing has no error."),
    Function(server_returns, use="evaluate"),
)
"""The functions of every environment whose world is a server."""

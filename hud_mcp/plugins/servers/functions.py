"""The functions by which rows grade the calls of a server, and what its tools return afterwards."""

import inspect
from typing import Any, cast, get_type_hints

from hud_mcp.environment.function import Function, Use
from hud_mcp.plugins.servers.world import ToolServerWorld
from hud_mcp.worlds.shell.spec import SHELL_FUNCTIONS

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


def _over_files(known: Function) -> Function:
    """Return a function of the shell's for the files of a server."""
    own = known.function

    async def call(server: ToolServerWorld, *given: Any) -> Any:
        return await own(server.shell, *given)

    made: Any = call
    made.__name__, made.__doc__ = known.name, own.__doc__
    made.__annotations__ = {**get_type_hints(own, include_extras=True), "shell": ToolServerWorld}
    made.__signature__ = inspect.signature(own)
    use = cast("Use", known.use)
    return Function(made, name=known.name, use=use, weak=known.weak, where=known.where)


SERVER_FUNCTIONS = (
    Function(called, use="evaluate", weak=_NO_NEED),
    Function(never_called, use="evaluate", weak="An agent that does nothing calls nothing."),
    Function(called_in_order, use="evaluate", weak=_NO_NEED),
    Function(calls_at_most, use="evaluate", weak="An agent that does nothing calls nothing."),
    Function(tool_errors_at_most, use="evaluate", weak="An agent that does nothing has no error."),
    Function(server_returns, use="evaluate"),
    *map(_over_files, SHELL_FUNCTIONS),
)
"""The functions of every environment whose world is a server."""

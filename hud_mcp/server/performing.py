"""A call of a tool, from what was given to what is replied: alike over a wire and without one."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from hud_mcp import telemetry
from hud_mcp.errors import HudMcpError, LimitReached, sole_cause
from hud_mcp.record.model_turn import MODEL
from hud_mcp.server.call import Call
from hud_mcp.server.reported import perform_reported
from hud_mcp.server.results import error_result
from hud_mcp.session.caller import STOPPING
from hud_mcp.session.receipts import told_to

__all__ = ["AnyTool", "perform_call"]

logger = logging.getLogger(__name__)


class AnyTool(Protocol):
    """A core tool, or one of an environment's own."""

    @property
    def name(self) -> str:
        """What clients call it."""
        ...

    @property
    def run(self) -> Callable[[Call], Awaitable[dict[str, Any]]]:
        """Performs a call whose arguments are read."""
        ...

    def parse(self, given: Mapping[str, Any], *, max_bytes: int) -> dict[str, Any]:
        """Read arguments.

        Raises:
            HudMcpError: Naming what is wrong with them.
        """
        ...


async def perform_call(call: Call, tool: AnyTool, *, begins: bool) -> dict[str, Any]:
    """Read a call's arguments, and perform it; whatever goes wrong is told in the reply.

    Args:
        call: The call, with its arguments as they came.
        tool: What is called.
        begins: Whether it begins a session.
    """
    with telemetry.span("call", tool=tool.name) as span:
        reply = await _perform(call, tool, span, begins=begins)
    if reply.get("isError") and not call.sessions.takes_new:
        # It may have failed for that: another server knows what was done, and does the rest.
        meta: dict[str, Any] = reply.get("_meta") or {}
        return {**reply, "_meta": {**meta, STOPPING: True}}
    return reply


async def _perform(
    call: Call, tool: AnyTool, span: telemetry.Span, *, begins: bool
) -> dict[str, Any]:
    try:
        limit = call.sessions.limits.argument_bytes
        call = replace(call, arguments=tool.parse(call.arguments, max_bytes=limit))
        if MODEL in call.meta:
            return await perform_reported(call, tool.run, begins=begins)
        return await tool.run(call)
    except HudMcpError as exc:
        span.fail(type(exc).__name__)
        wait_s = exc.retry_after_s if isinstance(exc, LimitReached) else None
        # A program goes by the class: it calls again, or raises it.
        kind = type(exc).__name__
        return error_result(told_to(call.caller, str(exc)), kind=kind, retry_after_s=wait_s)
    except BaseExceptionGroup as group:
        # A task group somewhere below wraps what its body raised.
        inner = sole_cause(group)
        span.fail(type(inner or group).__name__)
        if isinstance(inner, HudMcpError):
            return error_result(told_to(call.caller, str(inner)), kind=type(inner).__name__)
        logger.exception("tool %s failed", tool.name)
        return error_result(f"{tool.name} failed inside the server; its log says why.")
    except Exception as exc:  # the boundary of a tool call: a model must be told something
        span.fail(type(exc).__name__)
        logger.exception("tool %s failed", tool.name)
        return error_result(f"{tool.name} failed inside the server; its log says why.")

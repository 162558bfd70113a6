"""A call of a tool, from what was given to what is replied: alike over a wire and without one."""

import logging
from collections.abc import Awaitable
from typing import Any, TypeAlias

from hud_mcp import telemetry
from hud_mcp.errors import HudMcpError, LimitReached, sole_cause
from hud_mcp.record.model_turn import MODEL
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.own_tools import OwnTool
from hud_mcp.server.reported import perform_reported
from hud_mcp.server.results import error_result
from hud_mcp.session.caller import STOPPING
from hud_mcp.session.receipts import told_to

__all__ = ["AnyTool", "perform_call"]

logger = logging.getLogger(__name__)


AnyTool: TypeAlias = CoreTool | OwnTool


def perform_call(call: Call, tool: AnyTool, *, begins: bool) -> Awaitable[dict[str, Any]]:
    """Read a call's arguments, and perform it; whatever goes wrong is told in the reply.

    Args:
        call: The call, with its arguments as they came.
        tool: What is called.
        begins: Whether it begins a session.
    """
    if telemetry.listeners:
        return _perform_heard(call, tool, begins=begins)
    return _perform(call, tool, None, begins=begins)


async def _perform_heard(call: Call, tool: AnyTool, *, begins: bool) -> dict[str, Any]:
    with telemetry.Span("call", {"tool": tool.name}) as span:
        return await _perform(call, tool, span, begins=begins)


async def _perform(
    call: Call, tool: AnyTool, span: telemetry.Span | None, *, begins: bool
) -> dict[str, Any]:
    try:
        call.read(tool.parse)
        if MODEL in call.meta:
            reply = await perform_reported(call, tool.run, begins=begins)
        else:
            reply = await tool.run(call)
    except (Exception, BaseExceptionGroup) as exc:  # a model must be told something
        # A task group somewhere below wraps what its body raised.
        found = (sole_cause(exc) or exc) if isinstance(exc, BaseExceptionGroup) else exc
        if span is not None:
            span.fail(type(found).__name__)
        if not isinstance(found, HudMcpError):
            logger.exception("tool %s failed", tool.name)
        reply = _failure(call, tool, found)
    if reply.get("isError") and not call.sessions.takes_new:
        # It may have failed for that: another server knows what was done, and does the rest.
        meta: dict[str, Any] = reply.get("_meta") or {}
        return {**reply, "_meta": {**meta, STOPPING: True}}
    return reply


def _failure(call: Call, tool: AnyTool, exc: BaseException) -> dict[str, Any]:
    """Tell what went wrong; a program goes by the class: it calls again, or raises it."""
    if not isinstance(exc, HudMcpError):
        return error_result(f"{tool.name} failed inside the server; its log says why.")
    wait_s = exc.retry_after_s if isinstance(exc, LimitReached) else None
    return error_result(
        told_to(call.caller, str(exc)), kind=type(exc).__name__, retry_after_s=wait_s
    )

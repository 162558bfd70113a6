"""The tools of a session as a model is given them, and what they gave back as it is shown."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hud_mcp.agents.agent import Reply
from hud_mcp.plugins.models.job import libraries
from hud_mcp.plugins.models.job.options import ModelLook
from hud_mcp.values.call import ACT, NOTE, SCREENSHOT

if TYPE_CHECKING:
    from mcp_types import Tool
    from pydantic_ai.messages import ToolCallPart, ToolReturnPart
    from pydantic_ai.tools import ToolDefinition

__all__ = ["defined_tools", "tool_result"]

_BOUND = ("session",)
"""Arguments that a model need not pass: its session is the only one that it can mean."""


def defined_tools(listed: "Iterable[Tool]", look: ModelLook) -> "list[ToolDefinition]":
    """What a model may call: the tools of any client, bound to its session.

    Args:
        listed: As the server lists them for an agent.
        look: What the model is shown. One that sees no pictures has no tool that takes one, and
            one that sees nothing else has none that returns the text of a screen.
    """
    listed = list(listed)
    left_out = {NOTE, SCREENSHOT} if look == "text" else {NOTE}
    if look == "image" and any(tool.name == SCREENSHOT for tool in listed):
        left_out.add(ACT)
    return [
        libraries.ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=_without_session(tool.input_schema),
        )
        for tool in listed
        if tool.name not in left_out
    ]


def _without_session(schema: dict[str, Any]) -> dict[str, Any]:
    taken = {k: v for k, v in schema.get("properties", {}).items() if k not in _BOUND}
    bound = {**schema, "properties": taken}
    if "required" in schema:
        bound["required"] = [name for name in schema["required"] if name not in _BOUND]
    return bound


def tool_result(call: "ToolCallPart", reply: Reply, look: ModelLook) -> "ToolReturnPart":
    """What a model is shown of a tool's reply."""
    content: list[Any] = []
    if reply.text:
        content.append(reply.text)
    if reply.image is not None and look != "text":
        mime = "image/png" if reply.image.startswith(b"\x89PNG") else "image/jpeg"
        content.append(libraries.messages.BinaryContent(reply.image, media_type=mime))
    return refused_result(call, reply.text) if reply.is_error else _returned(call, content)


def refused_result(call: "ToolCallPart", text: str) -> "ToolReturnPart":
    """What a model is told of a call that was refused."""
    return libraries.messages.ToolReturnPart(
        call.tool_name, text, call.tool_call_id, outcome="failed"
    )


def _returned(call: "ToolCallPart", content: list[Any]) -> "ToolReturnPart":
    whole = content if len(content) > 1 or not isinstance(content[0:1], str) else content[0]
    return libraries.messages.ToolReturnPart(call.tool_name, whole, call.tool_call_id)

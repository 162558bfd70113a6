"""The tools of a session for a model, and their results in its conversation."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from hud_mcp.agents.agent import Agent, BoundReached, Reply
from hud_mcp.errors import InvalidAction
from hud_mcp.plugins.models.computer_use import Frame, Wanted
from hud_mcp.plugins.models.computer_use.frame import picture, pointer_in
from hud_mcp.plugins.models.job import libraries
from hud_mcp.plugins.models.job.computers import STAND_IN, Computer
from hud_mcp.plugins.models.job.options import ModelLook
from hud_mcp.values.call import ACT, NOTE, SCREENSHOT, STEP
from hud_mcp.values.observation import Observation, Screenshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_types import Tool
    from pydantic_ai.messages import ToolCallPart, ToolReturnPart
    from pydantic_ai.tools import ToolDefinition

__all__ = ["Screen", "defined_tools", "tool_result"]


_BOUND = ("session",)
"""The arguments that a model need not pass. It has only one session."""


def defined_tools(listed: "Iterable[Tool]", look: ModelLook) -> "list[ToolDefinition]":
    """Return the tools that a model may call: those of any client, bound to its session.

    A model without pictures has no tool that takes one; one with pictures alone has no tool that
    returns a screen's text.
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
    """Return a tool's reply as the model sees it."""
    content: list[Any] = []
    if reply.text:
        content.append(reply.text)
    if reply.image is not None and look != "text":
        mime = "image/png" if reply.image.startswith(b"\x89PNG") else "image/jpeg"
        content.append(libraries.messages.BinaryContent(reply.image, media_type=mime))
    return refused_result(call, reply.text) if reply.is_error else _returned(call, content)


def refused_result(call: "ToolCallPart", text: str) -> "ToolReturnPart":
    """Return the text for the model about a refused call."""
    return libraries.messages.ToolReturnPart(
        call.tool_name, text, call.tool_call_id, outcome="failed"
    )


def _returned(call: "ToolCallPart", content: list[Any]) -> "ToolReturnPart":
    whole = content if len(content) > 1 or not isinstance(content[0:1], str) else content[0]
    return libraries.messages.ToolReturnPart(call.tool_name, whole, call.tool_call_id)


_REPLACED = (STEP, ACT, SCREENSHOT)
"""The generic tools whose work the computer tool does."""


class Screen:
    """The screen of one session, on which the agent acts by its provider's tool."""

    def __init__(self, computer: Computer, agent: Agent, width_px: int, height_px: int) -> None:
        self._computer = computer
        self._agent = agent
        self._frame = computer.frame(width_px, height_px)

    @property
    def shown(self) -> Frame:
        """The two sizes of the screen: the model's and the pictures'."""
        return self._frame

    def takes(self, name: str) -> bool:
        """Whether a call of that name is one of the computer's."""
        return name in self._computer.names

    def tools(self, generic: "Sequence[ToolDefinition]") -> "list[ToolDefinition]":
        """Return the tools of the model: the computer, and generic tools for all else."""
        stand_in = libraries.ToolDefinition(
            name=STAND_IN,
            description=orjson.dumps(self._computer.tool(self._frame)).decode(),
            parameters_json_schema={"type": "object", "properties": {}},
        )
        return [stand_in, *(tool for tool in generic if tool.name not in _REPLACED)]

    async def perform(self, call: "ToolCallPart", given: Mapping[str, Any]) -> "ToolReturnPart":
        """Do a call and show the result; raise `BoundReached` if a person would have to agree."""
        try:
            wanted = self._read(call.tool_name, given)
        except InvalidAction as exc:
            look = await self._agent.ask(STEP, {"actions": []})
            return self._result(call, look, Wanted(shows="picture"), str(exc))
        if wanted.asks is not None:
            raise BoundReached(f"as its provider asks for a person's consent: {wanted.asks}")
        actions = [action.model_dump(mode="json", exclude_none=True) for action in wanted.actions]
        reply = await self._agent.ask(STEP, {"actions": actions})
        return self._result(call, reply, wanted, reply.text if reply.is_error else None)

    def _read(self, name: str, given: Mapping[str, Any]) -> Wanted:
        """Read a call, or raise `InvalidAction` if it has no such form."""
        # A model may write anything: a value that its reader does not expect is its doing too.
        try:
            return self._computer.read(name, given, self._frame)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError) as exc:
            raise InvalidAction(f"These are no arguments of {name}: {exc}.") from exc

    def _result(
        self, call: "ToolCallPart", reply: Reply, wanted: Wanted, error: str | None
    ) -> "ToolReturnPart":
        image = None if reply.image is None else Screenshot.from_bytes(reply.image)
        if error is not None and (image is None or self._computer.failures == "text"):
            return refused_result(call, error)
        seen = Observation(text=reply.text or None, image=image)
        content: list[Any] = [] if error is None else [error]
        if wanted.shows == "pointer" and error is None:
            content.append(self._pointer(seen))
        elif (shot := picture(seen, self._frame_of(seen), wanted)) is not None:
            content.append(libraries.messages.BinaryContent(shot.data, media_type=shot.mime_type))
        return libraries.messages.ToolReturnPart(
            call.tool_name, content or "Done.", call.tool_call_id
        )

    def _pointer(self, seen: Observation) -> str:
        at = pointer_in(seen)
        if at is None:
            return "It is not known."
        x, y = self._frame.back(at)
        return f"X={x},Y={y}"

    def _frame_of(self, seen: Observation) -> Frame:
        """Return the size of the picture, which stays for Gemini: its points are parts of it."""
        if not self._computer.resizes and seen.image is not None:
            return Frame.same(seen.image.width_px, seen.image.height_px)
        return self._frame

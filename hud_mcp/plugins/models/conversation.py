"""The tools of a session for a model, and their results in its conversation."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import orjson

from hud_mcp.agents.agent import Agent, BoundReached, Reply
from hud_mcp.errors import InvalidAction
from hud_mcp.plugins import models
from hud_mcp.plugins.models.computer_use.frame import (
    STAND_IN,
    Computer,
    Frame,
    Wanted,
    picture,
    pointer_in,
)
from hud_mcp.plugins.models.options import ModelLook
from hud_mcp.plugins.models.replies import mend_surrogates, mend_text
from hud_mcp.values.call import ACT, NOTE, SCREENSHOT, STEP
from hud_mcp.values.observation import Observation, Screenshot

if TYPE_CHECKING:
    from mcp_types import Tool
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart
    from pydantic_ai.tools import ToolDefinition

_PICTURE_TOKENS = 5_000
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
        models.ToolDefinition(
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
        content.append(models.messages.BinaryContent(reply.image, media_type=mime))
    if reply.is_error:
        return refused_result(call, reply.text)
    return models.messages.ToolReturnPart(call.tool_name, content, call.tool_call_id)


def refused_result(call: "ToolCallPart", text: str) -> "ToolReturnPart":
    """Return the text for the model about a refused call."""
    return models.messages.ToolReturnPart(call.tool_name, text, call.tool_call_id, outcome="failed")


_REPLACED = (STEP, ACT, SCREENSHOT)
"""The generic tools whose work the computer tool does."""


class Screen:
    """The screen of one session, on which the agent acts by its provider's tool."""

    def __init__(self, computer: Computer, agent: Agent, width_px: int, height_px: int) -> None:
        self._computer = computer
        self._agent = agent
        self._frame = computer.frame(width_px, height_px)

    def takes(self, name: str) -> bool:
        """Whether a call of that name is one of the computer's."""
        return name in self._computer.names

    def tools(self, generic: "Sequence[ToolDefinition]") -> "list[ToolDefinition]":
        """Return the tools of the model: the computer, and generic tools for all else."""
        stand_in = models.ToolDefinition(
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
            content.append(models.messages.BinaryContent(shot.data, media_type=shot.mime_type))
        return models.messages.ToolReturnPart(call.tool_name, content or "Done.", call.tool_call_id)

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


_LEFT_OUT = "(An earlier picture, which is left out.)"
_EMPTY = "(An empty reply.)"
"""Several providers refuse a message without text, or with blanks alone."""
_NAME_CHARS = 64
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")
"""The characters that no provider takes in a tool's name. Google's begin with a letter or `_`."""


def read_arguments(call: "ToolCallPart") -> dict[str, Any] | None:
    """Return the arguments of a call; None if they are no object of JSON that can be sent."""
    given = call.args
    try:
        if isinstance(given, str):
            given = orjson.loads(mend_surrogates(given) if given.strip() else "{}")
        orjson.dumps(given)  # which takes less depth than reading
    except (ValueError, TypeError):
        return None
    if given is None:
        return {}
    return cast("dict[str, Any]", given) if isinstance(given, dict) else None


class History:
    """A conversation with a model, in which the newest pictures stay; all if there is no limit."""

    def __init__(self, system: str, *, keep_images: int | None) -> None:
        self._system = system
        self._keep_images = keep_images
        self._messages: list[ModelMessage] = []
        self._ids: set[str] = set()
        self.new_tokens = 0
        """The most tokens of what no reply has followed yet."""

    def say(self, text: str) -> None:
        """Add a message to the model."""
        self._request(models.messages.UserPromptPart(text))

    def reply(self, response: "ModelResponse") -> "list[ToolCallPart]":
        """Add a reply in a form that its provider takes back; return its calls in that form."""
        parts = [part for part in map(self._mended, response.parts) if part is not None]
        kinds = models.messages
        if not any(isinstance(part, (kinds.TextPart, kinds.ToolCallPart)) for part in parts):
            parts.append(kinds.TextPart(_EMPTY))
        mended = replace(response, parts=parts)
        self._messages.append(mended)
        self.new_tokens = 0
        return mended.tool_calls

    def _mended(self, part: Any) -> Any:
        """Return a part that the provider takes back; None for a text of blanks."""
        if isinstance(part, models.messages.TextPart):
            return part if part.content.strip() else None
        return self._mended_call(part) if _is_call(part) else part

    def _mended_call(self, call: "ToolCallPart") -> "ToolCallPart":
        name = _NO_NAME.sub("_", call.tool_name)[:_NAME_CHARS]
        if not name or not (name[0].isalpha() or name[0] == "_"):
            name = f"_{name}"[:_NAME_CHARS]
        given = call.tool_call_id
        call_id = given if given not in self._ids else f"{given}_{len(self._ids)}"
        self._ids.add(call_id)
        return replace(call, tool_name=name, args=read_arguments(call) or {}, tool_call_id=call_id)

    def results(self, parts: "Sequence[ToolReturnPart]") -> None:
        """Add what its calls gave back."""
        self._request(*parts)

    def messages(self) -> "list[ModelMessage]":
        """Return the whole conversation, without the pictures that are too old."""
        if self._keep_images is None:
            return list(self._messages)
        left = self._keep_images
        shown: list[ModelMessage] = []
        for message in reversed(self._messages):
            if isinstance(message, models.messages.ModelRequest):
                parts: list[Any] = []
                for part in reversed(message.parts):
                    kept, left = _with_pictures(part, left)
                    parts.append(kept)
                shown.append(replace(message, parts=parts[::-1]))
            else:
                shown.append(message)
        return shown[::-1]

    def _request(self, *parts: Any) -> None:
        # A page or a program may show half a character, and no request can hold one.
        mended = [replace(part, content=_mended_content(part.content)) for part in parts]
        self.new_tokens += sum(_most_tokens(part.content) for part in mended)
        request = models.messages.ModelRequest(parts=mended, instructions=self._system)
        self._messages.append(request)


def _most_tokens(content: Any) -> int:
    """Return a bound of a content's tokens, each of which has a byte of text or of a picture."""
    if isinstance(content, list):
        return sum(map(_most_tokens, cast("list[Any]", content)))
    return len(content.encode()) if isinstance(content, str) else _PICTURE_TOKENS


def _mended_content(content: Any) -> Any:
    if isinstance(content, list):
        return [_mended_content(each) for each in cast("list[Any]", content)]
    return mend_text(content) if isinstance(content, str) else content


def _is_call(part: Any) -> "TypeGuard[ToolCallPart]":
    return isinstance(part, models.messages.ToolCallPart)


def _with_pictures(part: Any, most: int) -> tuple[Any, int]:
    """Return a part with so many pictures at most, and how many others may have."""
    content = getattr(part, "content", None)
    if not isinstance(content, list):
        return part, most
    picture = models.messages.BinaryContent
    kept: list[Any] = []
    for item in reversed(content):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # texts and pictures
        if isinstance(item, picture):
            kept.append(item if most > 0 else _LEFT_OUT)
            most -= most > 0
        else:
            kept.append(item)
    return replace(part, content=kept[::-1]), most

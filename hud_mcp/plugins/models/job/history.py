"""The conversation of a model with its task, as each request repeats it.

Providers refuse a name, an id or arguments that no client would send. A model may write them, so
its replies are mended before they are sent back: a refusal is never the model's doing.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import orjson

from hud_mcp.plugins.models.job import libraries
from hud_mcp.plugins.models.job.replies import mend_surrogates, mend_text

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart

__all__ = ["History", "read_arguments"]

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

    def say(self, text: str) -> None:
        """Add a message to the model."""
        self._request(libraries.messages.UserPromptPart(text))

    def reply(self, response: "ModelResponse") -> "list[ToolCallPart]":
        """Add a reply in a form that its provider takes back; return its calls in that form."""
        parts = [part for part in map(self._mended, response.parts) if part is not None]
        kinds = libraries.messages
        if not any(isinstance(part, (kinds.TextPart, kinds.ToolCallPart)) for part in parts):
            parts.append(kinds.TextPart(_EMPTY))
        mended = replace(response, parts=parts)
        self._messages.append(mended)
        return mended.tool_calls

    def _mended(self, part: Any) -> Any:
        """Return a part that the provider takes back; None for a text of blanks."""
        if isinstance(part, libraries.messages.TextPart):
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
            if isinstance(message, libraries.messages.ModelRequest):
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
        request = libraries.messages.ModelRequest(parts=mended, instructions=self._system)
        self._messages.append(request)


def _mended_content(content: Any) -> Any:
    if isinstance(content, list):
        return [_mended_content(each) for each in cast("list[Any]", content)]
    return mend_text(content) if isinstance(content, str) else content


def _is_call(part: Any) -> "TypeGuard[ToolCallPart]":
    return isinstance(part, libraries.messages.ToolCallPart)


def _with_pictures(part: Any, most: int) -> tuple[Any, int]:
    """Return a part with so many pictures at most, and how many others may have."""
    content = getattr(part, "content", None)
    if not isinstance(content, list):
        return part, most
    picture = libraries.messages.BinaryContent
    kept: list[Any] = []
    for item in reversed(content):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # texts and pictures
        if isinstance(item, picture):
            kept.append(item if most > 0 else _LEFT_OUT)
            most -= most > 0
        else:
            kept.append(item)
    return replace(part, content=kept[::-1]), most

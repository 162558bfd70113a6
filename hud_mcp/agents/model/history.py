"""What was said so far between a model and its task, as the model is given it each time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hud_mcp.agents.model import libraries

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolReturnPart

__all__ = ["History"]

_LEFT_OUT = "(An earlier picture, which is left out.)"


class History:
    """A conversation with a model.

    Args:
        system: The system prompt.
        keep_images: How many pictures stay in view, the newest; None for all.
    """

    def __init__(self, system: str, *, keep_images: int | None) -> None:
        self._system = system
        self._keep_images = keep_images
        self._messages: list[ModelMessage] = []

    def say(self, text: str) -> None:
        """Add what the model is told."""
        self._request(libraries.messages.UserPromptPart(text))

    def reply(self, response: "ModelResponse") -> None:
        """Add what the model replied."""
        self._messages.append(response)

    def results(self, parts: "Sequence[ToolReturnPart]") -> None:
        """Add what its calls gave back."""
        self._request(*parts)

    def messages(self) -> "list[ModelMessage]":
        """The whole, in which pictures that are too old are left out."""
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
        request = libraries.messages.ModelRequest(parts=list(parts), instructions=self._system)
        self._messages.append(request)


def _with_pictures(part: Any, most: int) -> tuple[Any, int]:
    """A part with so many pictures at most, and how many others may have."""
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

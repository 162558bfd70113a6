"""The reply of another MCP server, block by block: the record, the agent and a replay share it."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from hud_mcp.values.observation import Observation, Screenshot

__all__ = ["InputNeeded", "ToolReply"]


@dataclass(frozen=True, slots=True)
class InputNeeded:
    """The questions of another server's tool, whose call waits for the answers.

    Attributes:
        requests: The requests to the client, by the keys of their answers.
        state: The token that names the waiting call.
    """

    requests: Mapping[str, Mapping[str, Any]]
    state: str


@dataclass(frozen=True, slots=True)
class ToolReply:
    """The answer of a tool of another server, in wire form.

    Attributes:
        content: Its blocks, such as `{"type": "text", "text": …}`.
        structured: Its structured content; None without any.
        is_error: Whether the server says that the call failed.
        meta: The metadata beside it.
        asked: The server's requests to its client during the call.
        began_at: The start of the call, if it waited for answers.
    """

    content: tuple[dict[str, Any], ...] = ()
    structured: Any = None
    is_error: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    asked: tuple[Mapping[str, Any], ...] = ()
    began_at: datetime | None = None

    @property
    def text(self) -> str:
        """All its text, with that of resources; else its structured content as JSON."""
        parts: list[str] = []
        for block in self.content:
            resource: Mapping[str, Any] = block.get("resource") or {}
            if block.get("type") == "text":
                parts.append(block["text"])
            elif "text" in resource:
                parts.append(f"{resource.get('uri', '')}:\n{resource['text']}")
            elif block.get("type") == "resource_link":
                parts.append(f"{block.get('name', '')}: {block.get('uri', '')}")
        if not parts and self.structured is not None:
            parts.append(orjson.dumps(self.structured, default=str).decode())
        return "\n".join(parts)

    @property
    def image(self) -> Screenshot | None:
        """Its first picture that is a PNG or a JPEG."""
        for block in self.content:
            if block.get("type") == "image":
                try:
                    return Screenshot.from_bytes(base64.b64decode(block["data"]))
                except (ValueError, OSError, binascii.Error):
                    continue
        return None

    def observation(self) -> Observation:
        """Return its text and its first picture, as the record keeps them."""
        return Observation(text=self.text, image=self.image)

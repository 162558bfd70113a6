"""What goes wrong on a channel, as its client is told."""

from collections.abc import Mapping
from typing import Any

from hud_mcp.agents.agent import answer_text
from hud_mcp.errors import HudMcpError
from hud_mcp.session.receipts import digest

__all__ = ["ChannelFailed", "ChannelRefused"]


class ChannelFailed(HudMcpError):
    """The channel cannot be reached, or its server does not answer as one does."""


class ChannelRefused(HudMcpError):
    """The server answered with an error.

    Attributes:
        code: JSON-RPC's, or the server's own.
        message: What the server said.
        data: What else it said, for programs.
    """

    def __init__(
        self, method: str, code: int, message: str, data: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{method} was refused ({code}): {message}")
        self.code = code
        self.message = message
        self.data: Mapping[str, Any] = data or {}

    @property
    def is_graded(self) -> bool:
        """Whether it says that the session was graded, and with what."""
        return isinstance(self.data.get("grade"), dict)

    def grade_for(self, answer: Any) -> dict[str, Any] | None:
        """The stored grade, where the session was graded for this answer; else None."""
        was = self.data.get("answer_digest")
        if not self.is_graded or was not in (None, digest(answer_text(answer))):
            return None
        return dict(self.data["grade"])

"""What a HUD session is found by after a restart of ours, as stored bytes."""

import json
from dataclasses import dataclass, field
from typing import Any

from hud_mcp.errors import EnvironmentFailed

__all__ = ["Handle"]

_FORM = 1


@dataclass
class Handle:
    """What a HUD session is found by again, and what it asked.

    Attributes:
        session: The HUD server's id of it.
        prompt: What its task asks, as it was yielded.
        overrides: What its task says of capabilities.
        screen: What the screen needs to know.
    """

    session: str
    prompt: Any
    overrides: dict[str, Any] = field(default_factory=dict[str, Any])
    screen: dict[str, Any] = field(default_factory=dict[str, Any])

    def remember(self, screen: dict[str, Any]) -> None:
        """Take up what the screen needs to know."""
        self.screen = screen

    def written(self) -> bytes:
        """The handle as it is stored."""
        return json.dumps({"form": _FORM, **vars(self)}).encode()

    @classmethod
    def read(cls, data: bytes) -> "Handle":
        """Read what `written` gave.

        Raises:
            EnvironmentFailed: It is damaged.
        """
        try:
            fields: dict[str, Any] = json.loads(data)
            form = fields.pop("form")
            handle = cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            form = handle = None
        if form != _FORM or handle is None:
            raise EnvironmentFailed("The key of the HUD session is damaged.")
        return handle

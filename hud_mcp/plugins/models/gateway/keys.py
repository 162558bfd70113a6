"""The keys of providers, which no agent gets and no record has."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from hud_mcp.base.text import mask
from hud_mcp.errors import HudMcpError

__all__ = ["KEYS", "NEEDS_NONE", "Secret", "find_key"]

KEYS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openai-compatible": ("OPENAI_COMPATIBLE_API_KEY",),
}
"""Environment variables that hold a provider's key; the first that is set counts."""

NEEDS_NONE = "openai-compatible"
"""A server of one's own often takes no key."""


@dataclass(frozen=True)
class Secret:
    """A provider's key; empty if none is needed."""

    value: str = field(repr=False)

    def masked(self, text: str) -> str:
        """Return a text without the key, which a provider may have written into it."""
        return mask(text, self.value, "[the key]")


def find_key(provider: str) -> Secret:
    """Return a provider's key, or raise a `HudMcpError` that names the variable to set."""
    names = KEYS[provider]
    found = next((value for name in names if (value := os.environ.get(name, "").strip())), "")
    if not found and provider != NEEDS_NONE:
        raise HudMcpError(
            f"{provider} needs a key, and {' or '.join(names)} is not set. Set it in the "
            "environment of this command. The record does not keep it."
        )
    return Secret(found)

"""A running service that an agent may use directly: its protocol and where it is.

This module owns the value that the HUD wire calls a binding; it connects to nothing.
"""

from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from hud_mcp.action import Value

__all__ = ["Capability"]


class Capability(Value):
    """Concrete wire data of a service that runs already."""

    name: str = Field(min_length=1)
    protocol: str = Field(min_length=1, description="For instance `ssh/2`, `cdp/1.3`, `rfb/3.8`.")
    url: str
    params: dict[str, Any] = Field(default_factory=dict)

    @field_validator("url")
    @classmethod
    def _has_host(cls, url: str) -> str:
        parts = urlsplit(url)
        if not parts.scheme or not parts.hostname:
            raise ValueError(f"a capability's URL has a scheme and a host; got {url!r}")
        return url

"""Where a channel is, and how that is written."""

from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from hud_mcp.plugins.hud.wire.failures import ChannelFailed

__all__ = ["Place", "read_place"]


@dataclass(frozen=True)
class Place:
    """Where a channel is.

    Attributes:
        host: Its host.
        port: Its port.
        token: What it asks for, or None.
    """

    host: str
    port: int
    token: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"tcp://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def read_place(url: str) -> Place:
    """Read `tcp://[token@]host:port`.

    Raises:
        ChannelFailed: It is something else; the text does not repeat a token.
    """
    shown = url.rpartition("@")[2]
    parts = urlsplit(url)
    port = None
    with suppress(ValueError):
        port = parts.port
    if parts.scheme != "tcp" or not parts.hostname or not port or parts.path not in ("", "/"):
        raise ChannelFailed(f"{shown!r} is not a channel; write tcp://host:port.")
    return Place(parts.hostname, port, unquote(parts.username) if parts.username else None)

"""Tokens of one session, where docs had them; `hud_mcp.session.credential` is their home."""

from hud_mcp.session.credential import (
    read_session_token,
    session_token,
)

__all__ = [
    "read_session_token",
    "session_token",
]

"""Tokens of one session, where docs had them; `hud_mcp.session.caller` is their home."""

from hud_mcp.session.caller import (
    read_session_token,
    session_token,
)

__all__ = [
    "read_session_token",
    "session_token",
]

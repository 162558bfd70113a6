"""The operator's token of a server: where it comes from, and that nobody else finds it there."""

import os

from hud_mcp.base.secrets import hide
from hud_mcp.base.text import read_text_file
from hud_mcp.errors import HudMcpError
from hud_mcp.session.caller import OPERATOR_TOKEN

__all__ = ["hide_operator_token", "read_operator_token"]

_OPERATOR_TOKEN_CHARS = 16
"""Shorter secrets are guessed."""

_hidden: list[str] = []


def hide_operator_token() -> None:
    """Take the token out of this process's environment, which every child inherits."""
    token = os.environ.pop(OPERATOR_TOKEN, None)
    if token:
        _hidden[:] = [token]


def read_operator_token(file: str | None) -> str | None:
    """Return the token that opens the operations of a server; None where nobody may call them.

    Args:
        file: A file that has it; else it is what the environment variable held.

    Raises:
        HudMcpError: The file cannot be read, or the token is too short to be a secret.
    """
    hide_operator_token()
    token = _hidden[0] if _hidden else None
    if file is not None:
        hide(file)
        try:
            token = read_text_file(file).strip()
        except (OSError, UnicodeDecodeError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else "it is not text"
            raise HudMcpError(f"--operator-token-file {file} cannot be read: {why}.") from None
    if token is not None and len(token) < _OPERATOR_TOKEN_CHARS:
        raise HudMcpError(
            f"The operator's token needs at least {_OPERATOR_TOKEN_CHARS} characters; make one with "
            "`openssl rand -hex 32`."
        )
    return token

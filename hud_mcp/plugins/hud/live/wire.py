"""What goes over a wire between a live environment and its server: tokens, and errors by class."""

import os
from typing import Any

from hud_mcp import errors
from hud_mcp.errors import HudMcpError, OperatorRefused
from hud_mcp.session.caller import OPERATOR_TOKEN

__all__ = ["operator_token", "raised", "refused"]


def operator_token(given: str | None) -> str | None:
    """The operator's token: that of the address, else of the environment; None without one."""
    return given or os.environ.get(OPERATOR_TOKEN) or None


def raised(kind: Any, text: str) -> HudMcpError:
    """The error that an operation failed with on its server."""
    found = getattr(errors, kind, None) if isinstance(kind, str) else None
    if isinstance(found, type) and issubclass(found, HudMcpError):
        return found(text)
    return HudMcpError(text)


def refused(place: str, token: str | None) -> OperatorRefused:
    """Say that a server lets nobody operate it who comes from here."""
    if token is None:
        return OperatorRefused(
            f"{place} is operated with a token, and none was given. Start it with "
            f"--operator-token-file FILE, and set {OPERATOR_TOKEN} here to what is in the file."
        )
    return OperatorRefused(
        f"{place} does not take the operator's token that was given. Start it with "
        f"--operator-token-file FILE, and set {OPERATOR_TOKEN} here to what is in the file."
    )

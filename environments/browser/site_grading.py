"""What a task has changed in the sites' state."""

from typing import Any

import hud_mcp

__all__ = ["Before"]


class Before(hud_mcp.Before):
    """The state when a task began. Signing in and out is how one gets there, and no harm."""

    def __init__(self, state: dict[str, Any]) -> None:
        super().__init__(state, allowed=["admin.user"])

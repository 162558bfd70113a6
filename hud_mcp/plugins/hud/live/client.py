"""The connection of a live environment to its session."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

__all__ = ["Client"]


class Client(ABC):
    """The connection to one session: in this process, or on a server."""

    @abstractmethod
    async def call(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Perform one of `hud_mcp.plugins.hud.operations.OPERATIONS`.

        Args:
            operation: Its name.
            params: Its parameters as JSON.

        Returns:
            The operation's result as JSON.

        Raises:
            HudMcpError: The operation raised it; a wire keeps its class.
            EnvironmentFailed: The connection to the session broke.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the connection. The session's record stays. It may be called twice."""

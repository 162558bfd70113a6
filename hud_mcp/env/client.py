"""What a live environment talks to its session through, wherever that is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

__all__ = ["Client"]


class Client(ABC):
    """The way to one session: in this process, or on a server."""

    @abstractmethod
    async def call(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Perform one of `hud_mcp.session.operations.OPERATIONS`.

        Args:
            operation: Its name.
            params: Its parameters, as JSON.

        Returns:
            What it gives, as JSON.

        Raises:
            HudMcpError: What the operation raises, of the same class over a wire.
            EnvironmentFailed: The way to the session broke.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release the way. What the session is, stays in its record. It may be called twice."""

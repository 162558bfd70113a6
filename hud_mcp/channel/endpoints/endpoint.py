"""What a way into the worlds of a channel's sessions is."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from hud_mcp.capability import Capability
from hud_mcp.session.session import Session

__all__ = ["Admission", "Door", "FindSession"]

FindSession = Callable[[], Awaitable[Session]]
"""Returns the session of the task in progress; raises a `HudMcpError` where there is none."""


class Admission(Protocol):
    """One session's way through a door."""

    @property
    def capability(self) -> Capability:
        """What the agent is given."""
        ...

    async def close(self) -> None:
        """Let it in no more, and drop its connections."""
        ...


class Door(Protocol):
    """One kind of way in."""

    @property
    def name(self) -> str:
        """The capability's."""
        ...

    def check(self) -> None:
        """Refuse what cannot be opened here, before anything is.

        Raises:
            HudMcpError: Saying what to do.
        """
        ...

    async def open(self) -> None:
        """Listen."""
        ...

    @property
    def address(self) -> Capability:
        """Where it listens, once it is open."""
        ...

    def admit(self, find_session: FindSession) -> Admission:
        """Make a way in.

        Args:
            find_session: Returns the session that is meant, each time it is used; the agent is
                told the text of what it raises.
        """
        ...

    async def close(self) -> None:
        """Listen no more. Closing twice is no error."""
        ...

"""What a kind of world publishes on the control channel: ways to a session's own world.

An endpoint is one server for all sessions of a channel, on a port that is reached through the
channel's own. What lets a session in is that session's alone: a key, or an address that cannot
be guessed.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from hud_mcp.environment.world.world import World
from hud_mcp.values.capability import Capability

__all__ = [
    "DirectAccess",
    "DirectSession",
    "Endpoint",
    "EndpointAccess",
    "FindSession",
    "Publish",
]


class DirectAccess(Protocol):
    """One use of a session's world that is not a call of the session's, such as an ssh command."""

    @property
    def world(self) -> World:
        """The world.

        Raises:
            SessionEnded, AlreadyAnswered: It may not be used any more.
        """
        ...

    def tell(self, text: str, **info: Any) -> None:
        """Say what came of it, for the record."""
        ...


class DirectSession(Protocol):
    """What an endpoint needs of the session that it leads to."""

    def direct_access(
        self, protocol: str, what: Mapping[str, Any]
    ) -> AbstractAsyncContextManager[DirectAccess]:
        """Use its world while the block runs; that is a step of the record.

        Args:
            protocol: What it is used over, such as `ssh/2`.
            what: What is done, for the record.

        Raises:
            SessionBusy: It is being started.
            SessionEnded, AlreadyAnswered: It is over, or being graded.
            StoreFailed: It cannot be recorded.
        """
        ...

    def direct_world(self) -> World:
        """The world, to be looked at alone; `direct_access` is for whoever acts in it.

        Raises:
            SessionBusy, SessionEnded, AlreadyAnswered: As for `direct_access`.
        """
        ...


FindSession = Callable[[], Awaitable[DirectSession]]
"""Returns the session of the task in progress; raises a `HudMcpError` where there is none."""


class EndpointAccess(Protocol):
    """One session's way in."""

    @property
    def capability(self) -> Capability:
        """What the agent is given."""
        ...

    async def close(self) -> None:
        """Let it in no more, and drop its connections."""
        ...


class Endpoint(Protocol):
    """Where the worlds of a channel's sessions are reached over one protocol."""

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
        """Listen. Called once, when the first peer says hello."""
        ...

    @property
    def address(self) -> Capability:
        """Where it listens, once it is open."""
        ...

    def admit(self, find_session: FindSession) -> EndpointAccess:
        """Make a way in.

        Args:
            find_session: Returns the session that is meant, each time it is used; the agent is
                told the text of what it raises.
        """
        ...

    async def close(self) -> None:
        """Listen no more. It may be called twice."""
        ...


class Publish(Protocol):
    """Makes the endpoint of a kind of world, for one channel."""

    def __call__(self, world: Any, environment: str, /) -> Endpoint | None:
        """Make it.

        Args:
            world: The spec that names this among its `endpoints`.
            environment: The environment's name.

        Returns:
            The endpoint; None where there is none for such a spec, or here.
        """
        ...

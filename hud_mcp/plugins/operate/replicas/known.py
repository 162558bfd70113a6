"""Other replicas, their sessions and their connections, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["KnownConnection", "OtherReplica", "Route"]


@dataclass(frozen=True, slots=True)
class OtherReplica:
    """A replica that calls may be forwarded to, by the name of its process in the store.

    A draining one begins no sessions any more, and ends soon.
    """

    server_id: str
    advertised: str
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """The process that runs a session.

    Attributes:
        key: The hash of the session's id.
        is_over: Whether it has ended.
        owner: The process that runs it, or ended it; None if it waits in its record.
        replica: The owner as a replica; None if it is none, or has left.
    """

    key: str
    is_over: bool
    owner: str | None
    replica: OtherReplica | None


@dataclass(frozen=True, slots=True)
class KnownConnection:
    """A connection of the 2025-11-25 era: its caller's hash, and its `initialize` parameters."""

    caller: str
    introduction: Mapping[str, Any]

"""Who makes a call."""

from dataclasses import dataclass

__all__ = ["OPERATOR", "Caller"]

OPERATOR = "#operator"
"""The principal of whoever runs agents and grades them; no token can name it."""


@dataclass(frozen=True)
class Caller:
    """Who makes a call.

    Attributes:
        principal: Whom authentication named; None without it. A session started under a
            principal answers to no other.
        connection: What identifies the caller's connection, where something does: the
            process on stdio, the session header on 2025-era HTTP. None otherwise.
    """

    principal: str | None = None
    connection: str | None = None

    def is_same(self, other: "Caller") -> bool:
        """Whether both are known to be one: by principal where there is one, else by connection."""
        if self.principal is not None or other.principal is not None:
            return self.principal == other.principal
        return self.connection is not None and self.connection == other.connection

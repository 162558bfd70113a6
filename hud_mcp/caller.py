"""Who makes a call."""

from dataclasses import dataclass

__all__ = ["CREDENTIAL", "OPERATOR", "OPERATOR_TOKEN", "Caller"]

OPERATOR = "#operator"
"""The principal of whoever runs agents and grades them; no token can name it."""

CREDENTIAL = "hud-mcp/operator"
"""Under this name the operator's token comes with a call: in the `_meta` of a tool call, among
the parameters of a channel's request."""

OPERATOR_TOKEN = "HUD_MCP_OPERATOR_TOKEN"  # noqa: S105  # the name of one
"""The environment variable that holds the operator's token."""


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

"""Who makes a call, and the tokens of one session.

A session token opens one session and nothing else; whoever holds a token derives it, for an agent.
It is the digest of the session's id and its HMAC under the token that it was made from. So a
server that knows that token knows every session token of it, whatever process it is and whenever
it was started, and keeps none. A session token makes no other one.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

__all__ = [
    "CALLED",
    "CAUSE",
    "CHOSEN_SESSION",
    "CONNECTION",
    "CREDENTIAL",
    "HTTP",
    "LOCAL",
    "LOOK",
    "NAMED_JOB",
    "ONLY",
    "OPERATOR",
    "OPERATOR_TOKEN",
    "REASON",
    "STOPPING",
    "Caller",
    "digest_token",
    "read_session_token",
    "session_token",
]

LOCAL = "local:"
"""Begins the name of a connection that is the server's only one: on stdio, and in memory."""

HTTP = "http:"
"""Begins the name of a connection of the 2025-11-25 era over HTTP, before its Mcp-Session-Id."""

CONNECTION = "hud_mcp.opened_connection"
"""In the scope of an HTTP request: the Mcp-Session-Id as its client knows it, if this process knows
the connection by another one."""

OPERATOR = "#operator"
"""The principal of whoever runs agents and grades them; no token can name it."""

CREDENTIAL = "hud-mcp/operator"
"""Under this name the operator's token comes with a call: in the `_meta` of a tool call, among
the parameters of a channel's request."""

ONLY = "hud-mcp/only"
"""In the `_meta` of a request: the id of the only session that it may be about. Whoever speaks for
an agent on a connection of its own sends it, and needs no credential to give some of it up."""

LOOK = "hud-mcp/look"
"""In the `_meta` of a step: `text` or `image`, of the two the only one that the reply is to have.
Without a screen it has the text in any case."""

CHOSEN_SESSION = "hud-mcp/session"
"""In the `_meta` of a start_task: the id that a program has chosen for the session."""

NAMED_JOB = "hud-mcp/job"
"""In the `_meta` of a start_task: the name of its caller's own job that the session belongs to."""

CALLED = "hud-mcp/called"
"""In the `_meta` of a task_status, to whoever runs an agent: the agent itself has called a tool."""

REASON = "hud-mcp/reason"
CAUSE = "hud-mcp/cause"
"""In the `_meta` of a cancel_task of whoever runs an agent, or among the parameters of a channel's
`tasks.cancel`: why, and whose doing it is."""

STOPPING = "hud-mcp/stopping"
"""In the `_meta` of an error: the server is being stopped, and another one takes the call."""

OPERATOR_TOKEN = "HUD_MCP_OPERATOR_TOKEN"  # noqa: S105  # the name of one
"""The environment variable that holds the operator's token."""


_PREFIX = "hms"
_FORM = re.compile(rf"{_PREFIX}-([0-9a-f]{{64}})-([0-9a-f]{{64}})")
_PURPOSE = b"hud-mcp session token\0"


def digest_token(token: str) -> str:
    """What is kept of a token, to know its sessions by."""
    return hashlib.sha256(f"hud-mcp caller\0{token}".encode()).hexdigest()


def session_token(token: str, session: str) -> str:
    """Make the token of one session.

    Args:
        token: The bearer token, or the channel's token, of the caller who started the session.
        session: The session's id.
    """
    named = hashlib.sha256(session.encode()).hexdigest()
    return f"{_PREFIX}-{named}-{_mac(token, named)}"


def read_session_token(given: object, tokens: Iterable[str]) -> tuple[str, str] | None:
    """Tell which session a token opens; None where it is not a session token of these.

    Args:
        given: What a caller sent.
        tokens: From which it may have been made.

    Returns:
        The token that it was made from, and the digest of the session's id.
    """
    found = _FORM.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        return None
    named, mac = found.groups()
    for token in tokens:
        if hmac.compare_digest(_mac(token, named), mac):
            return token, named
    return None


def _mac(token: str, named: str) -> str:
    return hmac.new(token.encode(), _PURPOSE + named.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Caller:
    """Who makes a call.

    Attributes:
        principal: Whom authentication named; None without it. A session started under a
            principal answers to no other.
        connection: What identifies the caller's connection, where something does: the
            process on stdio, the session header on 2025-era HTTP. None otherwise.
        session: The digest of the only session that it may work on, as an agent that a run
            starts; None for every session of its principal's, and for new ones.
        token_digest: Of the token that it has sent: two servers on one store may call their
            callers by the same name. None without one.
    """

    principal: str | None = None
    connection: str | None = None
    session: str | None = None
    token_digest: str | None = field(default=None, compare=False, repr=False)

    @property
    def is_known(self) -> bool:
        """Whether it is told from everybody else: by its token, or as who started the server."""
        is_local = self.connection is not None and self.connection.startswith(LOCAL)
        return self.token_digest is not None or is_local

    @property
    def is_agent(self) -> bool:
        """Whether it has one session to work on, and may begin none."""
        return self.session is not None

    @property
    def has_session_token(self) -> bool:
        """Whether it is an agent in a process of its own, and not a program that runs one."""
        return self.is_agent and self.principal is not None and self.token_digest is None

    def only(self, session: str) -> "Caller":
        """The same caller with one session alone; one that has one already keeps it."""
        return self if self.is_agent else replace(self, session=session)

    def sees(self, session: str) -> bool:
        """Whether it may work on a session, by the digest of its id, as far as that says."""
        return self.session is None or self.session == session

    def is_same(self, other: "Caller") -> bool:
        """Whether both are known to be one: by principal where there is one, else by connection."""
        if self.principal is not None or other.principal is not None:
            return self.principal == other.principal
        return self.connection is not None and self.connection == other.connection

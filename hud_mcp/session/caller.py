"""Callers, and the tokens that open one session each.

The holder of a token derives a session's token for an agent. It is the digest of the session's id,
and its HMAC under the parent token. Each server that knows the parent verifies it, and stores none.
A session token makes no other one.
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
"""The start of the name of a server's only connection: on stdio, and in memory."""

HTTP = "http:"
"""The start of the name of a 2025-11-25 connection over HTTP, before its Mcp-Session-Id."""

CONNECTION = "hud_mcp.opened_connection"
"""In the scope of an HTTP request: the client's own Mcp-Session-Id, if it has another one here."""

OPERATOR = "#operator"
"""The principal that runs agents and grades them; no token can name it."""

CREDENTIAL = "hud-mcp/operator"
"""The key of the operator's token: in the `_meta` of a tool call, or a parameter on the channel."""

ONLY = "hud-mcp/only"
"""In the `_meta` of a request: the id of the only session that it may be about.

A program that speaks for an agent gives up its other rights by it, and needs no credential.
"""

LOOK = "hud-mcp/look"
"""In the `_meta` of a step: the reply has `text`, `image` or `both`; text without a screen."""

CHOSEN_SESSION = "hud-mcp/session"
"""In the `_meta` of a start_task: the session id that a program has chosen."""

NAMED_JOB = "hud-mcp/job"
"""In the `_meta` of a start_task: the name of the caller's own job that the session joins."""

CALLED = "hud-mcp/called"
"""In the `_meta` of a task_status to the runner of an agent: the agent has called a tool."""

REASON = "hud-mcp/reason"
CAUSE = "hud-mcp/cause"
"""In an operator's cancel_task or `tasks.cancel`: the reason and the cause of the end."""

STOPPING = "hud-mcp/stopping"
"""In the `_meta` of an error: the server is being stopped, and another one takes the call."""

OPERATOR_TOKEN = "HUD_MCP_OPERATOR_TOKEN"  # noqa: S105  # the name of one
"""The environment variable that holds the operator's token."""


_PREFIX = "hms"
_FORM = re.compile(rf"{_PREFIX}-([0-9a-f]{{64}})-([0-9a-f]{{64}})")
_PURPOSE = b"hud-mcp session token\0"


def digest_token(token: str) -> str:
    """Return the digest of a token. It is stored in the token's place, to know its sessions by."""
    return hashlib.sha256(f"hud-mcp caller\0{token}".encode()).hexdigest()


def session_token(token: str, session: str) -> str:
    """Make the token of one session from the caller's bearer or channel token."""
    named = hashlib.sha256(session.encode()).hexdigest()
    return f"{_PREFIX}-{named}-{_mac(token, named)}"


def read_session_token(given: object, tokens: Iterable[str]) -> tuple[str, str] | None:
    """Return a token's parent and the digest of its session's id; None if no parent made it."""
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
    """The caller of a tool or of a request.

    Attributes:
        principal: The name that authentication gave; None without it. A session started under a
            principal answers to no other.
        connection: The identity of the caller's connection: the process on stdio, the session
            header on 2025-era HTTP; else None.
        session: The digest of the only session that the caller may work on, for an agent of a run.
            None for every session of the principal's, and for new ones.
        token_digest: The digest of the caller's token; None without one. Two servers on one store
            may give their callers the same name.
    """

    principal: str | None = None
    connection: str | None = None
    session: str | None = None
    token_digest: str | None = field(default=None, compare=False, repr=False)

    @property
    def is_known(self) -> bool:
        """Whether the caller is told from all others: by its token, or as the server's owner."""
        is_local = self.connection is not None and self.connection.startswith(LOCAL)
        return self.token_digest is not None or is_local

    @property
    def is_agent(self) -> bool:
        """Whether the caller has one session to work on, and may begin none."""
        return self.session is not None

    @property
    def has_session_token(self) -> bool:
        """Whether the caller is an agent in a process of its own, and no program that runs one."""
        return self.is_agent and self.principal is not None and self.token_digest is None

    def only(self, session: str) -> "Caller":
        """Return the same caller, limited to one session. A caller that has a session keeps it."""
        return self if self.is_agent else replace(self, session=session)

    def sees(self, session: str) -> bool:
        """Whether the caller's own session, if it has one, is this one; by the digest of its id."""
        return self.session is None or self.session == session

    def is_same(self, other: "Caller") -> bool:
        """Whether both are surely one caller: by principal if there is one, else by connection."""
        if self.principal is not None or other.principal is not None:
            return self.principal == other.principal
        return self.connection is not None and self.connection == other.connection

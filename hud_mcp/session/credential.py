"""What opens one session and nothing else: whoever holds a token derives it, for an agent.

A session token is the digest of the session's id and its HMAC under the token that it was made
from. So a server that knows that token knows every session token of it, whatever process it is
and whenever it was started, and keeps none. A session token makes no other one.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable

__all__ = ["read_session_token", "session_token"]

_PREFIX = "hms"
_FORM = re.compile(rf"{_PREFIX}-([0-9a-f]{{64}})-([0-9a-f]{{64}})")
_PURPOSE = b"hud-mcp session token\0"


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

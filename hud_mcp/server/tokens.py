"""Bearer tokens: whom each one names, and which of them open one session alone."""

import secrets
from collections.abc import Mapping

from mcp.server.auth.provider import AccessToken

from hud_mcp.session.caller import OPERATOR, Caller, digest_token, read_session_token

__all__ = ["Tokens", "caller_of_token"]

_SESSION = "hud-mcp/session:"
"""Begins the scope of a token that opens one session, before the digest of its id."""


def caller_of_token(token: AccessToken | None) -> Caller:
    """Whom a token names, and the only session that it opens, where it is of one."""
    if token is None:
        return Caller()
    named = next((s.removeprefix(_SESSION) for s in token.scopes if s.startswith(_SESSION)), None)
    kept = digest_token(token.token) if named is None else None
    return Caller(principal=token.client_id, session=named, token_digest=kept)


class Tokens:
    """Static bearer tokens, compared in constant time, and the session tokens made from them."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whom a token names, or None."""
        found = None
        for secret, principal in self._tokens.items():
            if secrets.compare_digest(secret.encode(), token.encode()):
                found = AccessToken(token=token, client_id=principal, scopes=[], subject=principal)
        return found or self._of_one_session(token)

    def _of_one_session(self, token: str) -> AccessToken | None:
        made_from = [s for s, principal in self._tokens.items() if principal != OPERATOR]
        read = read_session_token(token, made_from)
        if read is None:
            return None
        secret, session = read
        principal = self._tokens[secret]
        # Another subject than its principal's: neither goes on with the other's connection.
        return AccessToken(
            token=token,
            client_id=principal,
            scopes=[_SESSION + session],
            subject=f"{principal}#{session}",
        )

"""The endpoints for tokens and for their revocation."""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import Any

from hud_mcp.plugins.oauth.people import Person
from hud_mcp.plugins.oauth.records import ACCESS_S, Records
from hud_mcp.plugins.oauth.settings import Place
from hud_mcp.plugins.oauth.values import OPERATE, Client, Found, Grant, Kind, Refused

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_KINDS: Mapping[str, Kind] = {"authorization_code": "code", "refresh_token": "refresh"}
_FIELDS: Mapping[Kind, str] = {"code": "code", "refresh": "refresh_token"}


class TokenEndpoint:
    """The endpoints. `holder` returns the person of a grant; None if it is worth nothing now."""

    def __init__(
        self, place: Place, records: Records, holder: Callable[[Grant], Person | None]
    ) -> None:
        self._place, self._records, self._holder = place, records, holder

    async def exchange(self, client: Client, form: Mapping[str, str]) -> dict[str, Any]:
        """Give out tokens for a code, or for a refresh token; raise Refused with the reason.

        Each is good for one use. A second one ends all tokens of the grant.
        """
        grant_type = form.get("grant_type", "")
        kind = _KINDS.get(grant_type)
        if kind is None:
            raise Refused("unsupported_grant_type", f"grant_type is one of {', '.join(_KINDS)}.")
        if grant_type not in client.grants:
            raise Refused("unauthorized_client", f"This client did not register {grant_type}.")
        secret = form.get(_FIELDS[kind], "")
        found = await self._redeemable(client, kind, secret)
        if not self._place.is_resource(form.get("resource", found.grant.resource)):
            raise Refused("invalid_target", f"This grant is for {found.grant.resource}.")
        if kind == "code":
            _check_code(found, form)
        scopes = self._scopes(found.grant, form.get("scope") if kind == "refresh" else None)
        made = await self._records.exchange(secret, found, scopes)
        if made is None:
            raise _used()
        access, refresh = made
        told = {"access_token": access, "token_type": "Bearer", "expires_in": ACCESS_S}
        more = {"refresh_token": refresh} if "refresh_token" in client.grants else {}
        return {**told, **more, "scope": " ".join(scopes)}

    async def _redeemable(self, client: Client, kind: Kind, secret: str) -> Found:
        found = await self._records.find(kind, secret)
        if found is None or found.grant.client != client.id:
            raise Refused("invalid_grant", f"This {_FIELDS[kind]} is unknown, or has expired.")
        if found.is_used:
            # Two have it, and one of them is a thief: neither keeps anything (RFC 9700, 4.14.2).
            await self._records.end(found.grant)
            raise _used()
        grant = found.grant
        is_current = grant.issuer == self._place.issuer and self._place.is_resource(grant.resource)
        if found.has_ended or not is_current:
            raise _ended()
        return found

    def _scopes(self, grant: Grant, asked: str | None) -> tuple[str, ...]:
        person = self._holder(grant)
        if person is None:
            raise _ended()
        may = tuple(s for s in grant.scopes if s != OPERATE or person.is_operator)
        if asked is None:
            return may
        if not set(asked.split()) <= set(may):
            raise Refused("invalid_scope", f"The person granted {' '.join(may)}.")
        return tuple(each for each in may if each in asked.split())

    async def revoke(self, client: Client, form: Mapping[str, str]) -> dict[str, Any]:
        """End the grant of a client's own token; an unknown token has ended anyway (RFC 7009)."""
        token = form.get("token", "")
        for kind in ("refresh", "access"):
            found = await self._records.find(kind, token)
            if found is not None and found.grant.client == client.id:
                await self._records.end(found.grant)
        return {}


def _check_code(found: Found, form: Mapping[str, str]) -> None:
    """Refuse a code of another request than the client's own."""
    wanted = found.facts["redirect_uri"]
    if wanted is not None and form.get("redirect_uri") != wanted:
        raise Refused("invalid_grant", "redirect_uri is not the one of the request.")
    verifier = form.get("code_verifier", "")
    made = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
    is_right = hmac.compare_digest(made, found.facts["challenge"].encode())
    if not _VERIFIER.fullmatch(verifier) or not is_right:
        raise Refused("invalid_grant", "code_verifier does not fit the code_challenge.")


def _ended() -> Refused:
    return Refused("invalid_grant", "This grant has ended. Ask the person again.")


def _used() -> Refused:
    text = "This was used before, so all tokens of the grant have ended. Sign in again."
    return Refused("invalid_grant", text)

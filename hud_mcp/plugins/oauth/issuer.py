"""Another issuer: its keys, and the tokens that it signed for this server (RFC 9068)."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from mcp.server.auth.provider import AccessToken
from starlette.types import ASGIApp

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.oauth import libraries
from hud_mcp.plugins.oauth.documents import Documents
from hud_mcp.plugins.oauth.front import document_routes, in_front
from hud_mcp.plugins.oauth.metadata import resource_metadata, resource_paths
from hud_mcp.plugins.oauth.people import RESERVED
from hud_mcp.plugins.oauth.settings import IssuerSettings, Place, hosts_of
from hud_mcp.plugins.oauth.values import OPERATE, WORK, Refused
from hud_mcp.server.web.auth import HOLDER, Hosts

logger = logging.getLogger(__name__)

_ALGORITHMS = tuple(f"{kind}{n}" for kind in ("RS", "PS", "ES") for n in (256, 384, 512))
"""Signatures by a key pair alone: who can check one must not be able to make one."""
_SKEW_S = 60
_BYTES = 65_536  # the largest metadata, and the largest set of keys
_TOKEN_CHARS = 16_384
_ANEW_S = 60.0  # the time after which an unknown key has the keys fetched again
_PRINCIPAL_CHARS = 256


class OuterIssuer:
    """The identity of a server whose people sign in elsewhere; its clock only goes forward."""

    def __init__(
        self,
        settings: IssuerSettings,
        *,
        documents: Documents | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        parts = urlsplit(settings.issuer)
        self._settings, self._clock = settings, clock
        self._documents = documents or Documents(trusted=f"{parts.scheme}://{parts.netloc}")
        self._issuer, self._keys_at = settings.issuer, ""
        self._fetched_s = 0.0
        self._place = Place("", "")
        self.hosts = hosts_of(settings.public)

    async def prepare(self) -> None:
        """Read the issuer's metadata and keys; raise HudMcpError if one of them cannot be had."""
        problem = "it has no metadata"
        for url in metadata_places(self._settings.issuer):
            try:
                found = await self._documents.fetch(url, _BYTES)
                named, keys = str(found.get("issuer")), found.get("jwks_uri")
                if named.rstrip("/") != self._settings.issuer.rstrip("/"):
                    problem = f"its metadata is of another issuer, {named[:200]}"
                elif not isinstance(keys, str):
                    problem = "its metadata has no jwks_uri"
                else:
                    self._issuer, self._keys_at = named, keys
                    await self._documents.fetch(keys, _BYTES)
                    return
            except Refused as exc:
                problem = str(exc)
        raise HudMcpError(
            f"--oauth {self._settings.issuer}: {problem} Give the address of an issuer that "
            "publishes its keys (RFC 8414 or OpenID Connect Discovery)."
        )

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access of a token of the issuer for this server, or None."""
        if token.count(".") != 2 or len(token) > _TOKEN_CHARS:  # noqa: PLR2004  # a JWT has three parts
            return None
        try:
            claims = await self._claims(token)
        except (libraries.InvalidTokenError, libraries.PyJWKError, Refused) as exc:
            logger.info("a token was refused: %s", exc)
            return None
        principal = claims.get(self._settings.claim)
        if not isinstance(principal, str) or not _is_principal(principal):
            logger.info("a token was refused: its %s is no principal", self._settings.claim)
            return None
        granted = _words(claims.get("scope", claims.get("scp")))
        if WORK not in granted:
            return None
        is_operator = OPERATE in granted and self._names_operator(claims)
        return AccessToken(
            token=token,
            client_id=principal,
            subject=principal,
            scopes=[WORK, OPERATE] if is_operator else [WORK],
            expires_at=int(claims["exp"]) + _SKEW_S,
            resource=self._place.resource,
            claims={HOLDER: f"{self._issuer} {principal}", "iss": self._issuer},
        )

    def around(self, app: ASGIApp, *, address: str, path: str, hosts: Hosts) -> ASGIApp:
        """Return the app that names the issuer to clients without a token."""
        self._place = place = Place(self._settings.public or address, path)
        about = resource_metadata(place, self._issuer)
        routes = document_routes(dict.fromkeys(resource_paths(place), about))
        return in_front(app, routes, place=place, hosts=hosts, verify=self.verify_token)

    async def _claims(self, token: str) -> Mapping[str, Any]:
        header: Mapping[str, Any] = libraries.jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in _ALGORITHMS:
            raise Refused("invalid_token", f"its signature is {algorithm!r}")
        key = await self._key(header.get("kid"))
        found = libraries.jwt.decode(
            token,
            libraries.jwt.PyJWK(dict(key), algorithm),
            algorithms=[algorithm],
            audience=self._settings.audience or self._place.resource,
            issuer=self._issuer,
            leeway=_SKEW_S,
            options={"require": ["exp", "iss", "aud"], "verify_iat": True},
        )
        return cast("Mapping[str, Any]", found)

    async def _key(self, kid: Any) -> Mapping[str, Any]:
        for anew in (False, True):
            if anew:
                if self._clock() < self._fetched_s + _ANEW_S:
                    break
                self._fetched_s = self._clock()
            keys = (await self._documents.fetch(self._keys_at, _BYTES, anew=anew)).get("keys")
            fitting = [key for key in _objects(keys) if key.get("use", "sig") == "sig"]
            found = [key for key in fitting if kid is None or key.get("kid") == kid]
            if len(found) == 1:
                return found[0]
        raise Refused("invalid_token", "the issuer has no such key")

    def _names_operator(self, claims: Mapping[str, Any]) -> bool:
        name, equals, value = self._settings.operators.partition("=")
        return bool(equals) and value in _words(claims.get(name))


def metadata_places(issuer: str) -> list[str]:
    """Return the addresses at which an issuer may publish its metadata."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    return [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        *([f"{origin}{path}/.well-known/openid-configuration"] if path else []),
    ]


def _is_principal(text: str) -> bool:
    """Whether a text can be a principal, and is none of this program's own."""
    own = text.startswith("#") or text in RESERVED
    return 0 < len(text) <= _PRINCIPAL_CHARS and text.isprintable() and not own


def _words(value: Any) -> list[str]:
    given = value.split() if isinstance(value, str) else value
    return [str(each) for each in cast("list[Any]", given)] if isinstance(given, list) else []


def _objects(value: Any) -> list[Mapping[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [each for each in items if isinstance(each, dict)]

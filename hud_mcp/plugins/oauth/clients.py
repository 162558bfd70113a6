"""Clients: those that registered, and those whose id is the address of their document."""

import base64
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import SplitResult, unquote_plus, urlsplit

from hud_mcp.plugins.oauth.documents import DOCUMENT_BYTES, Documents, check_url
from hud_mcp.plugins.oauth.records import Records
from hud_mcp.plugins.oauth.values import Client, Method, Refused, digest

METHODS = ("none", "client_secret_basic", "client_secret_post")
_GRANTS = ("authorization_code", "refresh_token")
_URIS, _URI_CHARS = 12, 512
_NAME_CHARS = 80
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_HOST = re.compile(r"[a-z0-9.-]+")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_DANGEROUS = frozenset(
    {"about", "blob", "data", "file", "filesystem", "ftp", "javascript", "vbscript", "ws", "wss"}
)
"""Schemes that run something, or read something, in the browser itself."""


class Clients:
    """The clients of a server; `is_open` says whether unknown ones may register."""

    def __init__(self, records: Records, documents: Documents, *, is_open: bool) -> None:
        self._records, self._documents = records, documents
        self.is_open = is_open

    async def find(self, client_id: str) -> Client:
        """Return a client; raise Refused if there is none of this id."""
        if client_id.startswith("https:"):
            return await self._of_document(client_id)
        client = await self._records.find_client(client_id) if client_id else None
        if client is None:
            text = "This server knows no such client_id. It may have expired; register again."
            raise Refused("invalid_client", text, status=401)
        return client

    async def _of_document(self, client_id: str) -> Client:
        check_url(client_id)
        found = await self._documents.fetch(client_id, DOCUMENT_BYTES)
        if found.get("client_id") != client_id:
            raise Refused("invalid_client", "The document names another client_id than its own.")
        if {"client_secret", "client_secret_expires_at"} & set(found):
            raise Refused("invalid_client", "A public document cannot hold a secret.")
        given = {"token_endpoint_auth_method": "none", **found}
        return read_metadata(given, client_id, is_document=True)

    async def register(self, given: Any) -> dict[str, Any]:
        """Register a client; return the answer to it, which alone has its secret (RFC 7591).

        Raise Refused if the metadata is wrong, or if there are too many clients.
        """
        if not isinstance(given, dict):
            raise Refused("invalid_client_metadata", "The body is no JSON object.")
        metadata = cast("Mapping[str, Any]", given)
        secret = secrets.token_urlsafe(32)
        client = read_metadata(metadata, f"hud-mcp-{secrets.token_hex(16)}")
        answer: dict[str, Any] = {"client_id": client.id}
        if client.method != "none":
            client = client.model_copy(update={"secret_digest": digest(secret)})
            answer |= {"client_secret": secret, "client_secret_expires_at": 0}
        if not await self._records.add_client(client):
            text = "Too many clients have registered and were never used. Try again later."
            raise Refused("temporarily_unavailable", text, status=429, wait_s=300)
        return {
            **answer,
            "client_name": client.name,
            "redirect_uris": list(client.redirect_uris),
            "grant_types": list(client.grants),
            "response_types": ["code"],
            "token_endpoint_auth_method": client.method,
        }

    async def authenticate(self, form: Mapping[str, str], authorization: str) -> Client:
        """Return the client that a request comes from; raise Refused unless it proves to be it."""
        client_id, secret, method = _credentials(form, authorization)
        client = await self.find(client_id)
        if client.method != method:
            text = f"This client authenticates by {client.method}."
            raise Refused("invalid_client", text, status=401)
        known = client.secret_digest
        if known is not None and not hmac.compare_digest(known, digest(secret)):
            raise Refused("invalid_client", "The client's secret is wrong.", status=401)
        return client


def _credentials(form: Mapping[str, str], authorization: str) -> tuple[str, str, str]:
    """Return the id, the secret and the method of a client."""
    kind, _, value = authorization.partition(" ")
    if kind.lower() == "basic":
        client_id, secret = _basic(value)
        if "client_secret" in form or form.get("client_id", client_id) != client_id:
            raise Refused("invalid_request", "The client authenticates in two ways.")
        return client_id, secret, "client_secret_basic"
    if "client_secret" in form:
        return form.get("client_id", ""), form["client_secret"], "client_secret_post"
    return form.get("client_id", ""), "", "none"


def _basic(value: str) -> tuple[str, str]:
    """Read HTTP's basic scheme, whose two parts are encoded as in a form (RFC 6749, 2.3.1)."""
    try:
        client_id, colon, secret = base64.b64decode(value, validate=True).decode().partition(":")
    except (ValueError, UnicodeDecodeError):
        colon = client_id = secret = ""
    if not colon:
        raise Refused("invalid_client", "The Authorization header is no Basic one.", status=401)
    return unquote_plus(client_id), unquote_plus(secret)


def read_metadata(given: Mapping[str, Any], client_id: str, *, is_document: bool = False) -> Client:
    """Read the metadata of a client (RFC 7591, 2); raise Refused if a value is wrong."""
    method = given.get("token_endpoint_auth_method") or "client_secret_basic"
    if str(method) not in (METHODS[:1] if is_document else METHODS):
        text = f"This server knows no {str(method)[:80]} for such a client."
        raise Refused("invalid_client_metadata", text)
    grants = tuple(each for each in _GRANTS if each in _list(given, "grant_types", _GRANTS))
    if "authorization_code" not in grants or "code" not in _list(given, "response_types", ["code"]):
        raise Refused("invalid_client_metadata", "Only authorization_code and `code` are known.")
    uris = _list(given, "redirect_uris", ())
    if not 0 < len(uris) <= _URIS:
        raise Refused("invalid_redirect_uri", f"redirect_uris has 1 to {_URIS} addresses.")
    return Client(
        id=client_id,
        name=shown_name(given.get("client_name")),
        redirect_uris=tuple(map(_redirect_uri, uris)),
        method=cast("Method", method),
        grants=grants,
    )


def _list(given: Mapping[str, Any], name: str, usual: Sequence[Any]) -> Sequence[Any]:
    found = given.get(name) or usual
    return cast("Sequence[Any]", found) if isinstance(found, list | tuple) else ()


def _redirect_uri(given: Any) -> str:
    parts = split_url(given) if isinstance(given, str) else None
    if (
        parts is None
        or not _SCHEME.fullmatch(parts.scheme)
        or parts.scheme in _DANGEROUS
        or "@" in parts.netloc
        or (parts.scheme == "https" and not _HOST.fullmatch(parts.hostname or ""))
        or (parts.scheme == "http" and parts.hostname not in _LOOPBACK)
    ):
        raise Refused(
            "invalid_redirect_uri",
            "A redirect URI is https, http on loopback, or an app's own scheme; without a fragment "
            f"and without a user: {str(given)[:200]!r} is not.",
        )
    return cast("str", given)


def split_url(given: str) -> SplitResult | None:
    """Return the parts of an address of an ordinary spelling; None for another text."""
    odd = "\\" in given or "#" in given or " " in given
    if odd or not given.isascii() or not given.isprintable() or len(given) > _URI_CHARS:
        return None
    try:
        parts = urlsplit(given)
        _ = parts.port
    except ValueError:
        return None
    return parts


def matches(registered: str, given: str) -> bool:
    """Whether an answer may go to an address: the registered one, on any port of loopback.

    An app on the person's own machine learns its port when it starts (RFC 8252, 7.3).
    """
    if registered == given:
        return True
    one, other = split_url(registered), split_url(given)
    if one is None or other is None or one.scheme != "http" or other.scheme != "http":
        return False
    if one.hostname not in _LOOPBACK or "@" in other.netloc:
        return False
    # The rest of the spelling stays the same, too.
    first, second = ((each.hostname, each.path or "/", each.query) for each in (one, other))
    return first == second


def shown_name(given: Any) -> str:
    """Return a client's word on its name for people: one line, short, of visible characters."""
    text = given if isinstance(given, str) else ""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _NAME_CHARS else f"{line[: _NAME_CHARS - 1]}…"

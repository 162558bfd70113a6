"""A server asked at its public address as a client on the web asks it, with advice on failures."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from html import unescape
from typing import Any, NamedTuple, cast
from urllib.parse import urlencode, urlsplit

import anyio

from hud_mcp.base import libraries
from hud_mcp.base.egress import is_public, look_up
from hud_mcp.plugins.oauth.clients import shown_name, split_url
from hud_mcp.plugins.oauth.documents import Documents
from hud_mcp.plugins.oauth.issuer import metadata_places
from hud_mcp.plugins.oauth.values import WORK, Refused

_BYTES = 65_536
_WITHIN_S = 10.0
_CREATED, _BAD, _UNAUTHORIZED, _MISDIRECTED, _TOO_MANY, _FAILED = 201, 400, 401, 421, 429, 500
_FORWARD = "Let the proxy pass all paths on, with the Host header"
_CODE = {"response_type": "code", "code_challenge_method": "S256"}
_CHALLENGE = "A" * 43
"""A code challenge whose verifier nobody knows."""


class Check(NamedTuple):
    """The outcome of one check; `do` is what to do next where it failed, and else empty."""

    name: str
    said: str
    do: str = ""


class _Failure(Exception):
    """A check that failed. `ends` says that a client goes no further."""

    def __init__(self, said: str, do: str = _FORWARD, *, ends: bool = True) -> None:
        super().__init__(said)
        self.do, self.ends = do, ends


class Probe:
    """The checks of one address of MCP, for a client's redirect address and its document's."""

    def __init__(self, url: str, redirect: str, document: str = "") -> None:
        self._parts = parts = urlsplit(url)
        self._url, self._redirect, self._document = url, redirect, document
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._restart = f"Start the server with --set public_url={url.rpartition('/')[0]}"
        self._trusts = libraries.httpx2.create_ssl_context()
        self._documents = Documents(trusted=self._origin, verify=self._trusts)
        self._metadata_at = self._issuer = ""
        self._server: Mapping[str, Any] = {}

    async def checks(self) -> AsyncIterator[Check]:
        """Yield the checks in the order of a client's requests, as far as one can go."""
        for name, check in (
            ("address", self._check_address),
            ("TLS", self._check_tls),
            ("MCP", self._check_path),
            ("resource", self._check_resource),
            ("authorization server", self._check_server),
            ("client document", self._check_document),
            ("registration", self._check_registration),
        ):
            try:
                if said := await check():
                    yield Check(name, said)
            except _Failure as exc:
                yield Check(name, str(exc), exc.do)
                if exc.ends:
                    return

    async def _check_address(self) -> str:
        host = self._parts.hostname or ""
        try:
            addresses = await look_up(host, self._parts.port or 443)
        except OSError:
            raise _Failure(f"no name server knows {host}", "Add it to the DNS") from None
        if not all(map(is_public, addresses)):
            said = f"other networks cannot reach {host} ({addresses[0]})"
            raise _Failure(said, "Use a public address, or a tunnel", ends=False)
        return f"{host} is public"

    async def _check_tls(self) -> str:
        if self._parts.scheme != "https":
            do = "Give nginx or a tunnel a certificate, and use https"
            raise _Failure("the address is http", do, ends=False)
        await self._ask(
            "GET", f"{self._origin}/", do="Have the proxy run, with a valid certificate"
        )
        return "its certificate is valid"

    async def _check_path(self) -> str:
        asked: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
        status, headers, _ = await self._ask("POST", self._url, json=asked)
        found = re.search(r'resource_metadata="([^"]+)"', headers.get("www-authenticate", ""))
        if status == _UNAUTHORIZED and found is not None:
            self._metadata_at = found[1]
            return "a request without a token is sent to sign in"
        said, do = f"{self._url} answers {status}", _FORWARD
        if where := headers.get("location"):
            said, do = f"{said}, and leads to {shown_name(where)}", "Give that address"
        elif status <= _UNAUTHORIZED:
            said, do = f"{said}, and names no sign-in", "Start the server with --oauth"
        elif status == _MISDIRECTED:
            do = self._restart
        elif status >= _FAILED:
            do = "Start the server, and let the proxy lead to its port"
        raise _Failure(said, do)

    async def _check_resource(self) -> str:
        if not self._metadata_at.startswith(f"{self._origin}/"):
            raise _Failure(f"its metadata is at {shown_name(self._metadata_at)}", self._restart)
        about = await self._fetch(self._metadata_at)
        if about.get("resource") != self._url:
            raise _Failure(f"its metadata is of {shown_name(about.get('resource'))}", self._restart)
        servers: Any = about.get("authorization_servers")
        named = cast("list[Any]", servers) if isinstance(servers, list) else []
        self._issuer = str(named[0]) if named else ""
        if not self._issuer or split_url(self._issuer) is None:
            raise _Failure("it names no authorization server", "Start the server with --oauth")
        return f"people sign in at {shown_name(self._issuer)}"

    async def _check_server(self) -> str:
        self._server = found = await self._fetch(*metadata_places(self._issuer))
        if str(found.get("issuer")).rstrip("/") != self._issuer.rstrip("/"):
            said = f"its metadata is of {shown_name(found.get('issuer'))}"
            raise _Failure(said, "Name the issuer as its metadata does")
        page = str(found.get("authorization_endpoint"))
        if not page.startswith((f"{self._origin}/", "https://")):
            raise _Failure("its page of sign-in has no TLS", "Use https")
        if "S256" not in str(found.get("code_challenge_methods_supported")):
            raise _Failure("it offers no PKCE of the method S256", "Use an issuer that does")
        if not self._by_document and not found.get("registration_endpoint"):
            do = "Let clients register there, or enter a client's id and secret"
            raise _Failure("it lets no new client in", do)
        return "it has PKCE, and a way in for new clients"

    @property
    def _by_document(self) -> bool:
        """Whether a client may name its document instead of registering."""
        methods = str(self._server.get("token_endpoint_auth_methods_supported"))
        return bool(self._server.get("client_id_metadata_document_supported")) and "none" in methods

    async def _check_document(self) -> str:
        if not self._document or not self._by_document:
            return ""
        await self._open_page(self._document, "Let the server reach it over https")
        return f"{self._document} opens the page of sign-in"

    async def _check_registration(self) -> str:
        url = str(self._server.get("registration_endpoint"))
        if not url.startswith(f"{self._origin}/"):
            return ""  # nothing is made at somebody else's server
        made = {"redirect_uris": [self._redirect], "token_endpoint_auth_method": "none"}
        status, _, body = await self._ask("POST", url, json=made)
        client_id = _read(body).get("client_id")
        if status != _CREATED or not isinstance(client_id, str):
            do = "Try again in 15 minutes" if status == _TOO_MANY else _FORWARD
            raise _Failure(f"{shown_name(url)} answers {status}", do)
        await self._open_page(client_id, _FORWARD)
        form = {"grant_type": "authorization_code", "code": "none", "client_id": client_id}
        token = str(self._server.get("token_endpoint"))
        status, _, body = await self._ask("POST", token, data=form)
        if _read(body).get("error") != "invalid_grant":
            raise _Failure(f"{shown_name(token)} answers {status}")
        return f"a new client, which is answered at {self._redirect}, opens the page of sign-in"

    async def _open_page(self, client_id: str, do: str) -> None:
        asked = {"client_id": client_id, "redirect_uri": self._redirect, "resource": self._url}
        more = {"code_challenge": _CHALLENGE, "state": "hud-mcp", "scope": WORK, **_CODE}
        url = f"{self._server.get('authorization_endpoint')}?{urlencode({**asked, **more})}"
        status, headers, body = await self._ask("GET", url)
        if status >= _BAD or headers.get("location", "").startswith(self._redirect):
            told = re.search(r'role="alert">([^<]+)<', body)
            said = "" if told is None else f": {unescape(told[1])[:300].rstrip('.')}"
            raise _Failure(f"the page of sign-in answers {status}{said}", do, ends=False)

    async def _fetch(self, *urls: str) -> Mapping[str, Any]:
        problems: list[str] = []
        for url in urls:
            try:
                return await self._documents.fetch(url, _BYTES)
            except Refused as exc:
                problems.append(str(exc).rstrip("."))
        raise _Failure(problems[0])

    async def _ask(
        self, method: str, url: str, *, do: str = _FORWARD, **more: Any
    ) -> tuple[int, Mapping[str, str], str]:
        """Return the status, the headers and the beginning of the body of an answer."""
        httpx2, body = libraries.httpx2, bytearray()
        try:
            with anyio.fail_after(_WITHIN_S):
                async with (
                    httpx2.AsyncClient(verify=self._trusts) as client,
                    client.stream(method, url, **more) as reply,
                ):
                    async for part in reply.aiter_raw():
                        body += part
                        if len(body) > _BYTES:
                            break
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as exc:
            raise _Failure(f"{shown_name(url)}: {str(exc) or type(exc).__name__}", do) from None
        return reply.status_code, reply.headers, body.decode("utf-8", "replace")


def _read(body: str) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}

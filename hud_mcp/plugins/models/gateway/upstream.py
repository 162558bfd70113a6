"""The connections to providers, with our keys in their places."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio
import httpx2

from hud_mcp.base.text import clip
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.gateway.choice import Route
from hud_mcp.plugins.models.gateway.credential import without_key
from hud_mcp.plugins.models.gateway.http1 import Headers, Request
from hud_mcp.plugins.models.gateway.pool import Lost, Pool, Received
from hud_mcp.plugins.models.replies import Failure
from hud_mcp.plugins.models.wire import redirect_text
from hud_mcp.values.model_turn import TokenUsage

__all__ = [
    "Answer",
    "Failed",
    "Lost",
    "Proxied",
    "Redirected",
    "Upstream",
    "base_of",
    "chunks_of",
]

_TIMEOUT = httpx2.Timeout(600.0, connect=10.0, pool=None)
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
_ASKED = ("content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta",
          "user-agent")  # fmt: skip
"""Headers of requests that pass. All others stay here, with every key."""
_ANSWERED = ("content-type", "request-id", "x-request-id", "retry-after", "retry-after-ms",
             "x-should-retry")  # fmt: skip
_LIMITS_TOLD = ("x-ratelimit-", "anthropic-ratelimit-")
_REDIRECTS = range(300, 400)
REPLY_BYTES = 64 * 1024 * 1024
"""The most bytes of a reply."""
_TOLD_CHARS = 300
_VERSION = re.compile(r"/v1(?:beta)?$")
_LEAST_SECRET = 8
"""A shorter key is no secret, and could stand in any text."""


class Redirected(Exception):
    """A provider has sent us to another address, where its key does not go."""


class _Mask:
    """Takes a key out of bytes that pass; what replaces it is as long."""

    def __init__(self, secret: str) -> None:
        self._key = secret.encode() if len(secret) >= _LEAST_SECRET else b""
        self._shown = b"[the key]".ljust(len(self._key), b"]")[: len(self._key)]
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """Return the bytes that may pass; the begin of a key is held until its end comes."""
        if not self._key:
            return chunk
        data = (self._held + chunk).replace(self._key, self._shown)
        at = data.find(self._key[:1], max(0, len(data) - len(self._key) + 1))
        while at >= 0 and not self._key.startswith(data[at:]):
            at = data.find(self._key[:1], at + 1)
        self._held = data[at:] if at >= 0 else b""
        return data[:at] if at >= 0 else data

    def end(self) -> bytes:
        """Return the bytes that were held."""
        return self._held


class Failed(NamedTuple):
    """The failure of a request: its kind, its sentence, and the seconds that are asked to wait."""

    failure: Failure
    said: str
    asked_s: float | None
    ends: HudMcpError | None = None
    """The error that ends the run, where it is neither the agent's nor the provider's."""


@dataclass(frozen=True)
class Answer:
    """The reply of a provider; its headers in lower case, and those that may go on.

    Attributes:
        chunks: The body as it comes, without our key. It raises `Lost` if it breaks off.
        failed: The failure of a translated request, which its status and body tell in part.
        usage: Returns the tokens of a translated reply so far; some dialects have no place for all.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    passing: Headers
    chunks: AsyncIterator[bytes]
    failed: Failed | None = None
    usage: Callable[[], TokenUsage] | None = None

    @property
    def content_type(self) -> str:
        """The type of the body."""
        return self.headers.get("content-type", "")

    async def whole(self) -> bytes:
        """Return the body; raise `Lost` if it breaks off or has no end."""
        return b"".join([chunk async for chunk in self.chunks])


class Upstream:
    """The providers of a job."""

    def __init__(self) -> None:
        self._pool = Pool()
        self._has_proxy: dict[str, bool] = {}
        self._proxied = httpx2.AsyncClient(timeout=_TIMEOUT, limits=_LIMITS)

    async def aclose(self) -> None:
        """Close all connections."""
        self._pool.close()
        await self._proxied.aclose()

    @asynccontextmanager
    async def asked(
        self, route: Route, dialect: str, request: Request, path: str, body: bytes
    ) -> AsyncGenerator[Answer]:
        """Send a request, and give the reply while the block runs.

        Raises:
            Lost: There was no connection, or it broke before a reply came.
            Redirected: The provider names another address.
        """
        url = _url(route, dialect, path, without_key(request.query))
        if (has_proxy := self._has_proxy.get(route.address)) is None:
            has_proxy = self._has_proxy[route.address] = _has_proxy(url)
        ask = self._by_proxy if has_proxy else self._pool.asked
        async with ask(request.method, url, _headers(route, request), body) as reply:
            headers = reply.headers
            if "location" in headers and reply.status in _REDIRECTS:
                raise Redirected(redirect_text(reply.status, headers["location"]))
            passing = [
                (name, route.secret.masked(value))
                for name, value in headers.items()
                if name in _ANSWERED or name.startswith(_LIMITS_TOLD)
            ]
            yield Answer(reply.status, headers, passing, chunks_of(reply, route.secret.value))

    @asynccontextmanager
    async def _by_proxy(
        self, method: str, url: str, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> AsyncGenerator["Proxied"]:
        try:
            sent = httpx2.Request(
                method, url, headers=[*headers], content=body,
                extensions={"timeout": _TIMEOUT.as_dict()},
            )  # fmt: skip
            # A redirect to another host would get the key.
            reply = await self._proxied.send(sent, stream=True, follow_redirects=False)
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            raise Lost(_told(exc)) from exc
        try:
            yield Proxied(reply)
        finally:
            with anyio.CancelScope(shield=True):
                await reply.aclose()


class Proxied:
    """A reply that came by the client of libraries, as by a proxy."""

    def __init__(self, reply: httpx2.Response) -> None:
        self.status = reply.status_code
        self.headers = {name.lower(): value for name, value in reply.headers.items()}
        self._reply = reply

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Read the body; raise `Lost` if it breaks off."""
        try:
            async for chunk in self._reply.aiter_bytes():
                yield chunk
        except (httpx2.HTTPError, httpx2.StreamError) as exc:
            raise Lost(_told(exc)) from exc


def _has_proxy(url: str) -> bool:
    """Whether the environment names a proxy for an address."""
    found, parts = getproxies(), urlsplit(url)
    named = parts.scheme in found or "all" in found
    return named and not proxy_bypass(parts.hostname or "")


def base_of(route: Route) -> str:
    """Return the address that a provider's library adds its own path to."""
    has_version = route.options.provider in ("openai", "openai-compatible")
    return route.address if has_version else _VERSION.sub("", route.address)


def _url(route: Route, dialect: str, path: str, query: str) -> str:
    address = route.address
    if dialect in ("chat", "responses"):
        path = path.removeprefix("/v1")  # their addresses end with a version, whichever it is
    else:
        address = _VERSION.sub("", address)
    return f"{address}{path}{'?' if query else ''}{query}"


def _headers(route: Route, request: Request) -> list[tuple[bytes, bytes]]:
    passing = (name for name in _ASKED if name in request.headers)
    headers = {name: request.headers[name].encode("latin-1") for name in passing}
    headers["accept-encoding"] = b"identity"  # so that bytes pass as they are, and can be read
    key = route.secret.value.encode()
    match route.options.provider:
        case "anthropic":
            headers.setdefault("anthropic-version", b"2023-06-01")
            headers["x-api-key"] = key
        case "google":
            headers["x-goog-api-key"] = key
        case _ if key:
            headers["authorization"] = b"Bearer " + key
        case _:
            pass
    return [(name.encode(), value) for name, value in headers.items()]


async def chunks_of(reply: "Received | Proxied", key: str) -> AsyncGenerator[bytes]:
    """Give a body as it comes, without a key; raise `Lost` if it breaks off or has no end."""
    mask, size = _Mask(key), 0
    async for chunk in reply.chunks():
        size += len(chunk)
        if size > REPLY_BYTES:
            raise Lost(f"its reply has more than {REPLY_BYTES:,} bytes")
        if data := mask.feed(chunk):
            yield data
    if data := mask.end():
        yield data


def _told(exc: Exception) -> str:
    if isinstance(exc, httpx2.LocalProtocolError):
        return "its request cannot be written"  # the library shows the header, perhaps with the key
    text = f"{type(exc).__name__}: {exc}"
    return clip(" ".join(text.split()).rstrip(": "), _TOLD_CHARS)

"""JSON documents of strangers: fetched over TLS, from public addresses, small, soon and once."""

import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

import anyio

from hud_mcp.base import libraries
from hud_mcp.base.egress import Address, is_public, look_up
from hud_mcp.plugins.oauth.values import Refused

DOCUMENT_BYTES = 5_000  # the largest document of a client
_ACCEPT = {"accept": "application/json", "accept-encoding": "identity"}
_WITHIN_S = 5.0
_KEPT_S, _FAILED_S = 600.0, 30.0  # for which a document and a failure are remembered
_KEPT = 256
_AT_ONCE = 4
"""Requests that are under way together: nobody attacks another site through this server."""


_Found = Mapping[str, Any] | Refused


def check_url(url: str, *, trusted: str = "") -> None:
    """Raise Refused for what is no https URL with a path; a trusted origin may do without TLS."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    segments = parts.path.split("/")
    if (
        (parts.scheme != "https" and f"{parts.scheme}://{parts.netloc}" != trusted)
        or not parts.hostname
        or parts.path in ("", "/")
        or "@" in parts.netloc
        or "#" in url
        or "." in segments
        or ".." in segments
        or not url.isascii()
        or not url.isprintable()
        or " " in url
    ):
        raise Refused("invalid_client", "A document's address is an https URL with a path.")


class Documents:
    """Documents by their addresses, which `admits` admits, each name resolved once by `look_up`.

    A trusted origin, which the operator named, may be on this machine or network.
    """

    def __init__(
        self,
        *,
        trusted: str = "",
        look_up: Callable[[str, int], Awaitable[Sequence[Address]]] = look_up,
        admits: Callable[[Address], bool] = is_public,
        verify: Any = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._trusted, self._look_up, self._admits = trusted, look_up, admits
        self._verify, self._clock = verify, clock
        self._kept: OrderedDict[str, tuple[float, _Found]] = OrderedDict()
        self._limit = anyio.CapacityLimiter(_AT_ONCE)

    async def fetch(
        self, url: str, most_bytes: int = DOCUMENT_BYTES, *, anew: bool = False
    ) -> Mapping[str, Any]:
        """Return a JSON object, or raise Refused with the reason; both last, unless `anew`."""
        check_url(url, trusted=self._trusted)
        until_s, found = self._kept.get(url, (0.0, {}))
        if until_s < self._clock() or anew:
            found = await self._remember(url, most_bytes)
        if isinstance(found, Refused):
            raise Refused(found.error, str(found))
        return found

    async def _remember(self, url: str, most_bytes: int) -> _Found:
        found: _Found
        try:
            with anyio.fail_after(_WITHIN_S):
                async with self._limit:
                    found = await self._get(url, most_bytes)
        except TimeoutError:
            found = _refused(url, f"it did not come within {_WITHIN_S:g} s")
        except (OSError, ValueError, libraries.httpx2.HTTPError) as exc:
            found = _refused(url, f"it cannot be reached ({type(exc).__name__})")
        except Refused as exc:
            found = exc
        lasts_s = _FAILED_S if isinstance(found, Refused) else _KEPT_S
        self._kept[url] = self._clock() + lasts_s, found
        self._kept.move_to_end(url)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found

    async def _get(self, url: str, most_bytes: int) -> Mapping[str, Any]:
        httpx2, parts = libraries.httpx2, urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        addresses = await self._look_up(host, port)
        is_trusted = f"{parts.scheme}://{parts.netloc}" == self._trusted
        if not addresses or not (is_trusted or all(map(self._admits, addresses))):
            raise _refused(url, "its host is no public one")
        address = addresses[0]
        literal = f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004  # IPv6
        target = parts._replace(netloc=f"{literal}:{port}").geturl()
        # The request goes to the checked address. A second look-up could give another one.
        async with (
            httpx2.AsyncClient(verify=self._verify, trust_env=False, timeout=_WITHIN_S) as client,
            client.stream(
                "GET",
                target,
                headers={"host": parts.netloc, **_ACCEPT},
                extensions={"sni_hostname": host},
                follow_redirects=False,
            ) as reply,
        ):
            if reply.status_code != 200:  # noqa: PLR2004  # OK; a redirect leads elsewhere
                raise _refused(url, f"its host answered {reply.status_code}")
            if "content-encoding" in reply.headers:
                raise _refused(url, "it is compressed")
            body = bytearray()
            async for part in reply.aiter_raw():
                body += part
                if len(body) > most_bytes:
                    raise _refused(url, f"it has more than {most_bytes} bytes")
        return _read(url, bytes(body))


def _read(url: str, body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise _refused(url, "it is no JSON") from None
    if not isinstance(found, dict):
        raise _refused(url, "it is no JSON object")
    return cast("Mapping[str, Any]", found)


def _refused(url: str, why: str) -> Refused:
    return Refused("invalid_client", f"The document {url[:200]} was refused: {why}.")

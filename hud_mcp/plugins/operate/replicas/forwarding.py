"""Passing a request on to the replica that runs its session, and its reply back as it comes.

The signature proves that a holder of the secret forwarded the request once, to this very process.
The caller's own credential goes along and is checked again, so a signature lets nobody be somebody
else.
"""

import enum
import hashlib
import hmac
import json
import logging
import secrets
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import orjson

from hud_mcp.base import libraries
from hud_mcp.plugins.operate.replicas.message import Message
from hud_mcp.plugins.operate.replicas.route import HEADER, Arrival, failure
from hud_mcp.plugins.operate.values import OtherReplica

FORWARDED = "hud-mcp-forwarded"
"""The header of a request that another replica forwards."""

_VALID_S = 60.0
"""The most difference of two clocks, and the longest time of a request under way."""

_SIGNED = ("authorization", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name")


class Forged(Exception):
    """A request says that a replica forwarded it, and none has."""


class NotThisProcess(Exception):
    """A replica forwarded a request to another process, which was at this address before."""


class SentBefore(Exception):
    """This very request, with this very signature, has come before."""


class Once:
    """The requests that came while their signatures are valid: none is done twice."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}  # in the order they came

    def add(self, mac: str) -> None:
        """Note a signature.

        Raises:
            SentBefore: It is not the first time.
        """
        now_s = time.monotonic()
        while self._seen:
            oldest = next(iter(self._seen))
            if now_s - self._seen[oldest] <= 2 * _VALID_S:
                break
            del self._seen[oldest]
        if mac in self._seen:
            raise SentBefore
        self._seen[mac] = now_s


@dataclass(frozen=True)
class Secret:
    """The secret that the replicas of one server share."""

    key: bytes

    def sign(
        self, to: str, *, sender: str, method: str, headers: Mapping[str, str], body: bytes
    ) -> str:
        """Return the header's value of a request between processes, by their names in the store.

        The headers have lower-case names.
        """
        at, nonce = f"{time.time():.0f}", secrets.token_hex(8)
        mac = self._mac([to, sender, at, nonce, method], headers, body)
        return f"1 {to} {sender} {at} {nonce} {mac}"

    def check(
        self, value: str, to: str, *, method: str, headers: Mapping[str, str], body: bytes
    ) -> str:
        """Check that a replica forwarded a request to this process; return its signature.

        Raises:
            Forged: None did.
            NotThisProcess: One did, to another process.
        """
        parts = value.split(" ")
        if len(parts) != 6 or parts[0] != "1":  # noqa: PLR2004  # as `sign` writes it
            raise Forged
        _, named, sender, at, nonce, mac = parts
        wanted = self._mac([named, sender, at, nonce, method], headers, body)
        if not hmac.compare_digest(mac.encode(), wanted.encode()):
            raise Forged
        if not at.isascii() or not at.isdigit() or abs(time.time() - int(at)) > _VALID_S:
            raise Forged
        if named != to:
            raise NotThisProcess
        return mac

    def _mac(self, parts: list[str], headers: Mapping[str, str], body: bytes) -> str:
        said = [*parts, *(headers.get(name) for name in _SIGNED), hashlib.sha256(body).hexdigest()]
        text = "hud-mcp forward 1\0" + json.dumps(said)
        return hmac.new(self.key, text.encode(), hashlib.sha256).hexdigest()


logger = logging.getLogger(__name__)

MOVED, GONE, SEEN = "moved", "gone", "seen"
"""The refusals of a replica: others have the session; the request was meant for another process; or
this very request has come before."""
NOT_HERE = 409
"""The status of all refusals."""

_CONNECT_S = 5.0
_SILENCE_S = 120.0
"""A reply that takes long gives a sign of life every 15 s."""
_KEPT_S = 2.0
"""An idle connection is kept so long. The other replica closes it after 5 s."""
_KEPT = 64
"""The most connections that are kept."""
_UNHEARD_MS = 5000
"""After so long, a machine that takes nothing any more is not there."""

_GO_ALONG = (
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "traceparent",
    "tracestate",
)
_COME_BACK = (
    "cache-control",
    "content-type",
    "mcp-session-id",
    "retry-after",
    "www-authenticate",
    "x-accel-buffering",
)
_LEFT = (
    "The server that runs this session ended before it answered. It may have done the call: look "
    "at the session before you go on."
)
_CLOSED = -32000


class Outcome(enum.Enum):
    """The results of a forwarded request."""

    ANSWERED = "its caller has the reply, or has left"
    MOVED = "the replica does not run the session any more; nothing was done"
    UNREACHED = "the replica is not there; nothing was done"
    BROKEN = "the replica left before it answered, and may have done it; nothing was replied"


_REFUSALS = {MOVED: Outcome.MOVED, GONE: Outcome.UNREACHED, SEEN: Outcome.BROKEN}

_SOCKET_OPTIONS = [
    (socket.IPPROTO_TCP, number, _UNHEARD_MS)
    for number in [getattr(socket, "TCP_USER_TIMEOUT", None)]  # Linux alone has it
    if number is not None
]


class Forwarding:
    """Passes requests on, over connections that are kept for a while."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._clients: dict[bool, Any] = {}

    async def close(self) -> None:
        """Close its connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    async def forward(
        self, arrival: Arrival, message: Message | None, to: OtherReplica, *, sender: str
    ) -> Outcome:
        """Forward a request from the process `sender` to a replica, and stream its reply back.

        If the caller leaves, the request to the other replica is closed too.
        """
        outcome = Outcome.ANSWERED
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while (await arrival.receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(watch)
            outcome = await self._forward(arrival, message, to, sender)
            group.cancel_scope.cancel()
        return outcome

    async def _forward(
        self, arrival: Arrival, message: Message | None, to: OtherReplica, sender: str
    ) -> Outcome:
        response = await self._send(self._request(arrival, to, sender), to)
        if isinstance(response, Outcome):
            return response
        try:
            if response.status_code == NOT_HERE and HEADER in response.headers:
                return _REFUSALS.get(response.headers[HEADER], Outcome.MOVED)
            await self._pass_back(arrival, message, response)
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()
        return Outcome.ANSWERED

    async def _send(self, request: Any, to: OtherReplica) -> Any:
        """Return a replica's response, or the reason why there is none.

        A kept connection may close just when it is used. The request then goes once more, on a new
        one: a replica takes none twice.
        """
        errors = libraries.httpx
        is_first = not to.is_draining
        while True:
            try:
                return await self._client(kept=is_first).send(request, stream=True)
            except (errors.ConnectError, errors.ConnectTimeout, errors.PoolTimeout) as exc:
                logger.info("replica %s is not there: %s", to.server_id, exc)
                return Outcome.UNREACHED if is_first or to.is_draining else Outcome.BROKEN
            except errors.TransportError as exc:
                if is_first and not isinstance(exc, errors.TimeoutException):
                    is_first = False
                    continue
                logger.warning("replica %s gave no reply: %s", to.server_id, type(exc).__name__)
                return Outcome.BROKEN

    def _client(self, *, kept: bool) -> Any:
        if kept not in self._clients:
            http = libraries.httpx
            self._clients[kept] = http.AsyncClient(
                timeout=http.Timeout(_SILENCE_S, connect=_CONNECT_S),
                transport=http.AsyncHTTPTransport(
                    limits=http.Limits(
                        max_connections=None,
                        max_keepalive_connections=_KEPT if kept else 0,
                        keepalive_expiry=_KEPT_S,
                    ),
                    socket_options=_SOCKET_OPTIONS,
                    trust_env=False,
                ),
                trust_env=False,
            )
        return self._clients[kept]

    def _request(self, arrival: Arrival, to: OtherReplica, sender: str) -> Any:
        headers = {k: v for k in _GO_ALONG if (v := arrival.headers.get(k)) is not None}
        headers |= {k: v for k, v in arrival.headers.items() if k.startswith("mcp-param-")}
        signed = self._secret.sign(
            to.server_id, sender=sender, method=arrival.method, headers=headers, body=arrival.body
        )
        return self._client(kept=True).build_request(
            arrival.method,
            f"{to.advertised}/mcp",
            headers={**headers, FORWARDED: signed, "accept-encoding": "identity"},
            content=arrival.body,
        )

    async def _pass_back(self, arrival: Arrival, message: Message | None, response: Any) -> None:
        found: Mapping[str, str] = response.headers
        headers = [(k.encode(), v.encode()) for k in _COME_BACK if (v := found.get(k)) is not None]
        start = {"status": response.status_code, "headers": headers}
        await arrival.send({"type": "http.response.start", **start})
        try:
            async for part in response.aiter_raw():
                more = {"body": part, "more_body": True}
                await arrival.send({"type": "http.response.body", **more})
        except libraries.httpx.TransportError as exc:
            logger.warning("a reply broke off: %s", type(exc).__name__)
            last = b""
            if found.get("content-type", "").startswith("text/event-stream") and message:
                row = orjson.dumps(failure(message.id, _CLOSED, _LEFT))
                last = b"\r\nevent: message\r\ndata: " + row + b"\r\n\r\n"
            await arrival.send({"type": "http.response.body", "body": last, "more_body": True})
        await arrival.send({"type": "http.response.body", "body": b""})

    @staticmethod
    async def tell_broken(arrival: Arrival, message: Message) -> None:
        """Answer that a replica left before it answered."""
        await arrival.fail(message.id, _CLOSED, _LEFT)

"""Passing a request on to the replica that runs its session, and its reply back as it comes."""

import enum
import logging
import socket
from collections.abc import Mapping
from typing import Any

import anyio
import orjson

from hud_mcp.base import libraries
from hud_mcp.plugins.operate.replicas.known import OtherReplica
from hud_mcp.plugins.operate.replicas.message import Message
from hud_mcp.plugins.operate.replicas.route import HEADER, Arrival, failure
from hud_mcp.plugins.operate.replicas.signature import FORWARDED, Secret

__all__ = ["GONE", "MOVED", "SEEN", "Forwarding", "Outcome"]

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
            to.server_id,
            sender=sender,
            method=arrival.method,
            headers=headers,
            body=arrival.body,
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

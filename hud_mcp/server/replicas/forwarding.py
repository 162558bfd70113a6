"""Passing a request on to the replica that runs its session, and its reply back as it comes."""

import enum
import logging
from collections.abc import Mapping
from typing import Any

import anyio
import orjson

from hud_mcp.lazy import libraries
from hud_mcp.server.replicas.arrival import HEADER, Arrival, failure
from hud_mcp.server.replicas.message import Message
from hud_mcp.server.replicas.signature import FORWARDED, Secret
from hud_mcp.store.announced import OtherReplica

__all__ = ["GONE", "MOVED", "Forwarding", "Outcome"]

logger = logging.getLogger(__name__)

MOVED, GONE = "moved", "gone"
"""What a replica answers to a request that it cannot take: others have the session; or it is not
the process that the request was sent to."""
NOT_HERE = 409
"""The status of both."""

_CONNECT_S = 5.0
_SILENCE_S = 120.0
"""A reply that takes long gives a sign of life every 15 s."""

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
    """What came of passing a request on."""

    ANSWERED = "its caller has the reply, or has left"
    MOVED = "the replica does not run the session any more; nothing was done"
    UNREACHED = "the replica is not there; nothing was done"
    BROKEN = "the replica left before it answered, and may have done it; nothing was replied"


class Forwarding:
    """Passes requests on.

    Args:
        secret: What the replicas share.
    """

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._http: Any = None

    async def close(self) -> None:
        """Close its connections."""
        if self._http is not None:
            await self._http.aclose()

    async def forward(
        self, arrival: Arrival, message: Message | None, to: OtherReplica, *, sender: str
    ) -> Outcome:
        """Pass a request on to a replica, and its reply back while it comes.

        A caller that leaves takes the request with it, as where it had asked that replica.

        Args:
            arrival: The request.
            message: What it says; None where that does not matter.
            to: Who answers it.
            sender: This process, by its name in the store.
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
        request = self._request(arrival, to, sender)
        errors = libraries.httpx2
        try:
            response = await self._client().send(request, stream=True)
        except (errors.ConnectError, errors.ConnectTimeout, errors.PoolTimeout) as exc:
            logger.info("replica %s is not there: %s", to.server_id, exc)
            return Outcome.UNREACHED
        except errors.TransportError as exc:
            logger.warning("replica %s gave no reply: %s", to.server_id, type(exc).__name__)
            return Outcome.BROKEN
        try:
            if response.status_code == NOT_HERE and HEADER in response.headers:
                gone = response.headers[HEADER] == GONE
                return Outcome.UNREACHED if gone else Outcome.MOVED
            await self._pass_back(arrival, message, response)
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()
        return Outcome.ANSWERED

    def _client(self) -> Any:
        if self._http is None:
            http = libraries.httpx2
            self._http = http.AsyncClient(
                timeout=http.Timeout(_SILENCE_S, connect=_CONNECT_S),
                # None is used twice: a replica that leaves could close it just when it is used.
                limits=http.Limits(max_connections=None, max_keepalive_connections=0),
                trust_env=False,
            )
        return self._http

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
        return self._client().build_request(
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
        except libraries.httpx2.TransportError as exc:
            logger.warning("a reply broke off: %s", type(exc).__name__)
            last = b""
            if found.get("content-type", "").startswith("text/event-stream") and message:
                row = orjson.dumps(failure(message.id, _CLOSED, _LEFT))
                last = b"\r\nevent: message\r\ndata: " + row + b"\r\n\r\n"
            await arrival.send({"type": "http.response.body", "body": last, "more_body": True})
        await arrival.send({"type": "http.response.body", "body": b""})

    @staticmethod
    async def tell_broken(arrival: Arrival, message: Message) -> None:
        """Say that a replica left before it answered."""
        await arrival.fail(message.id, _CLOSED, _LEFT)

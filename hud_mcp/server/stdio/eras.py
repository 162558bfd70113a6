"""The protocol's two eras: how a message reaches the SDK's kernel, and under which connection.

A client's first request chooses the era. When a message is handled, and what becomes of its
result, is decided elsewhere (`dispatcher`).
"""

from collections.abc import Awaitable
from typing import Any, TypeAlias

from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.shared.dispatcher import DispatchContext, Outbound
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.transport_context import TransportContext
from mcp_types import INVALID_REQUEST, PROTOCOL_VERSION_META_KEY, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS

from hud_mcp.server.stdio.frames import JsonObject, Notification, Request

__all__ = ["EnvelopeEra", "Era", "HandshakeEra", "era_of"]

_Context: TypeAlias = DispatchContext[TransportContext]


class HandshakeEra:
    """2025-11-25 and earlier: `initialize` opens one connection for all messages."""

    def __init__(self, server: Server[Any], state: Any, peer: Outbound) -> None:
        self._connection = Connection.for_loop(peer)
        self._runner = ServerRunner(server, self._connection, state)

    def answer(self, in_flight: _Context, request: Request) -> Awaitable[JsonObject]:
        """Handle a request; its result, or what the SDK or a handler raised."""
        if request.method != "initialize" and _has_envelope(request.params):
            text = (
                "this connection serves the handshake protocol era; requests carrying the "
                f"{LATEST_MODERN_VERSION} envelope are not accepted on it"
            )
            raise MCPError(INVALID_REQUEST, text)
        return self._runner.on_request(in_flight, request.method, request.params)

    async def observe(self, in_flight: _Context, notification: Notification) -> None:
        """Handle a notification."""
        await self._runner.on_notify(in_flight, notification.method, notification.params)

    async def close(self) -> None:
        """Run what handlers have left to be done at the end of the connection, within 5 s."""
        await aclose_shielded(self._connection)


class EnvelopeEra:
    """2026-07-28: every request carries its own envelope.

    A client sends the same envelope each time, so what the SDK makes of it is kept for the next
    request. No handler of this server leaves anything with it.
    """

    def __init__(self, server: Server[Any], state: Any, peer: Outbound) -> None:
        del peer  # what goes to it goes by an exchange
        self._server = server
        self._state = state
        self._envelope: tuple[str, Any, Any] | None = None

    def answer(self, in_flight: _Context, request: Request) -> Awaitable[JsonObject]:
        """Handle a request; its result, or what the SDK or a handler raised."""
        method, params = request.method, request.params
        if method == "initialize":
            text = (
                f"connection is serving the {LATEST_MODERN_VERSION} protocol; "
                "the initialize handshake is not accepted"
            )
            raise MCPError(UNSUPPORTED_PROTOCOL_VERSION, text, _versions(params))
        route = classify_inbound_request({"method": method, "params": params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(route.code, route.message, route.data)
        envelope = (route.protocol_version, route.client_info, route.client_capabilities)
        if envelope != self._envelope:
            self._envelope, self._runner = envelope, self._runner_of(*envelope)
        return self._runner.on_request(in_flight, method, params)

    async def observe(self, in_flight: _Context, notification: Notification) -> None:
        """Handle a notification under a connection of no one in particular."""
        runner = self._runner_of(LATEST_MODERN_VERSION, None, None)
        await runner.on_notify(in_flight, notification.method, notification.params)

    async def close(self) -> None:
        """Do nothing: no connection has an end."""

    def _runner_of(self, *envelope: Any) -> ServerRunner[Any]:
        return ServerRunner(self._server, Connection.from_envelope(*envelope), self._state)


Era: TypeAlias = HandshakeEra | EnvelopeEra


def era_of(request: Request) -> type[Era]:
    """Choose the era by a client's first request: modern if it carries an envelope."""
    modern = request.method != "initialize" and _has_envelope(request.params)
    return EnvelopeEra if modern else HandshakeEra


def _has_envelope(params: JsonObject | None) -> bool:
    meta = params.get("_meta") if params else None
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta


def _versions(params: JsonObject | None) -> JsonObject:
    supported: JsonObject = {"supported": list(MODERN_PROTOCOL_VERSIONS)}
    requested = (params or {}).get("protocolVersion")
    return {**supported, "requested": requested} if isinstance(requested, str) else supported

"""The protocol's two eras: how a message reaches the SDK's kernel, and under which connection.

A client's first request chooses the era. When a message is handled, and what becomes of its
result, is decided elsewhere (`stdio`, `exchange`).
"""

from collections.abc import Awaitable
from functools import partial
from typing import Any, TypeAlias

from mcp.server.connection import Connection, NotifyOnlyOutbound
from mcp.server.context import (
    CallNext,
    HandlerResult,
    ServerMiddleware,
    ServerRequestContext,
)
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.shared.dispatcher import DispatchContext, Outbound
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.transport_context import TransportContext
from mcp_types import INVALID_REQUEST, PROTOCOL_VERSION_META_KEY, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

from hud_mcp.server.frames import JsonObject, Notification, Request

__all__ = ["EnvelopeEra", "Era", "HandshakeEra", "era_of"]

_Context: TypeAlias = DispatchContext[TransportContext]


class HandshakeEra:
    """2025-11-25 and earlier: `initialize` opens one connection for all messages."""

    def __init__(self, server: Server[Any], state: Any, peer: Outbound) -> None:
        self.transport = TransportContext(kind="stdio", can_send_request=True)
        self._server = server
        self._state = state
        self._connection = Connection.for_loop(peer)

    async def answer(self, exchange: _Context, request: Request) -> JsonObject:
        """Handle a request; its result.

        Raises:
            MCPError: The request is of the other era, or refused by the SDK or a handler.
            Exception: Whatever else a handler raised.
        """
        if request.method != "initialize" and _has_envelope(request.params):
            text = (
                "this connection serves the handshake protocol era; requests carrying the "
                f"{LATEST_MODERN_VERSION} envelope are not accepted on it"
            )
            raise MCPError(INVALID_REQUEST, text)
        runner = _runner(self._server, self._connection, self._state, request.params)
        return await runner.on_request(exchange, request.method, request.params)

    async def observe(self, exchange: _Context, notification: Notification) -> None:
        """Handle a notification; raises whatever a handler raised."""
        runner = _runner(self._server, self._connection, self._state, notification.params)
        await runner.on_notify(exchange, notification.method, notification.params)

    async def close(self) -> None:
        """Run what handlers have left to be done at the end of the connection, within 5 s."""
        await aclose_shielded(self._connection)


class EnvelopeEra:
    """2026-07-28: every request carries its own envelope and is a connection of its own."""

    def __init__(self, server: Server[Any], state: Any, peer: Outbound) -> None:
        self.transport = TransportContext(kind="stdio", can_send_request=False)
        self._server = server
        self._state = state
        self._outbound = NotifyOnlyOutbound(peer)

    async def answer(self, exchange: _Context, request: Request) -> JsonObject:
        """Handle a request, and close its connection; its result.

        Raises:
            MCPError: The request is of the other era, its envelope is not accepted, or the SDK
                or a handler refuses it.
            Exception: Whatever else a handler raised.
        """
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
        connection = Connection.from_envelope(
            route.protocol_version,
            route.client_info,
            route.client_capabilities,
            outbound=self._outbound,
        )
        try:
            runner = _runner(self._server, connection, self._state, params)
            return await runner.on_request(exchange, method, params)
        finally:
            await _close(connection)

    async def observe(self, exchange: _Context, notification: Notification) -> None:
        """Handle a notification under a connection of no one in particular."""
        connection = Connection.from_envelope(
            LATEST_MODERN_VERSION, None, None, outbound=self._outbound
        )
        try:
            runner = _runner(self._server, connection, self._state, notification.params)
            await runner.on_notify(exchange, notification.method, notification.params)
        finally:
            await _close(connection)

    async def close(self) -> None:
        """Do nothing: each request has closed its own connection."""


Era: TypeAlias = HandshakeEra | EnvelopeEra


def era_of(request: Request) -> type[Era]:
    """Choose the era by a client's first request: modern if it carries an envelope."""
    modern = request.method != "initialize" and _has_envelope(request.params)
    return EnvelopeEra if modern else HandshakeEra


def _has_envelope(params: JsonObject | None) -> bool:
    meta = params.get("_meta") if params else None
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta


async def _close(connection: Connection) -> None:
    # Nearly no request leaves a callback behind, and the shielded close costs as much as a
    # handler; a stack that does not say that it is empty is closed.
    if getattr(connection.exit_stack, "_exit_callbacks", True):
        await aclose_shielded(connection)


def _versions(params: JsonObject | None) -> JsonObject:
    supported: JsonObject = {"supported": list(MODERN_PROTOCOL_VERSIONS)}
    requested = (params or {}).get("protocolVersion")
    return {**supported, "requested": requested} if isinstance(requested, str) else supported


class _UntracedRunner(ServerRunner[Any]):
    """Leaves the OpenTelemetry middleware out, which costs more than the rest of a call."""

    def _compose_server_middleware(self, inner: CallNext) -> CallNext:
        call = inner
        for middleware in reversed(self.server.middleware):
            # By name: the SDK does not export it, and where it is not found it merely stays.
            if type(middleware).__name__ != "OpenTelemetryMiddleware":
                call = partial(_call_next_last, middleware, call)
        return call


def _call_next_last(
    middleware: ServerMiddleware[Any], call_next: CallNext, ctx: ServerRequestContext[Any, Any]
) -> Awaitable[HandlerResult]:
    return middleware(ctx, call_next)


def _runner(
    server: Server[Any], connection: Connection, state: Any, params: JsonObject | None
) -> ServerRunner[Any]:
    """Build the SDK's kernel for one message; untraced if no span could be seen by anyone."""
    meta = params.get("_meta") if params else None
    if isinstance(get_tracer_provider(), ProxyTracerProvider) and not (
        isinstance(meta, dict) and "traceparent" in meta
    ):
        return _UntracedRunner(server, connection, state)
    return ServerRunner(server, connection, state)

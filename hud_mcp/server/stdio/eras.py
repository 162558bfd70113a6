"""The protocol's two eras: the ways of a message to the SDK, and of its answer to the client.

A client's first request chooses the era. `dispatcher` decides on the time of a message, and on the
use of its result.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, TypeAlias

import anyio
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.shared.dispatcher import CallOptions, DispatchContext, Outbound
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PROTOCOL_VERSION_META_KEY,
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS

from hud_mcp.server.stdio.descriptors import Output
from hud_mcp.server.stdio.frames import (
    OURS,
    JsonObject,
    Notification,
    Request,
    Response,
    notification_frame,
)

__all__ = ["EnvelopeEra", "Era", "HandshakeEra", "InFlight", "Peer", "Questions", "era_of"]

_MOST_QUESTIONS = 16
"""The most requests of ours that wait for the client at once."""


class Questions:
    """Our own requests to a client that takes such, a few at once. After `close` there are none."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._open: dict[str, asyncio.Future[JsonObject]] = {}
        self._last = 0
        self._is_closed = False

    async def ask(
        self, method: str, params: Mapping[str, Any] | None, timeout_s: float | None
    ) -> JsonObject:
        """Return a request's result; an MCPError is the client's, or it leaves, or is too slow."""
        if self._is_closed or len(self._open) >= _MOST_QUESTIONS:
            raise MCPError(CONNECTION_CLOSED, "This client is not asked any more.")
        self._last += 1
        name = f"{OURS}{self._last}"
        found = self._open[name] = asyncio.get_running_loop().create_future()
        self._output.write(notification_frame(method, params, id=name))
        try:
            async with asyncio.timeout(timeout_s):
                return await found
        except (TimeoutError, asyncio.CancelledError) as exc:
            self._output.write(notification_frame("notifications/cancelled", {"requestId": name}))
            if isinstance(exc, TimeoutError):
                raise MCPError(REQUEST_TIMEOUT, "The client did not answer in time.") from None
            raise
        finally:
            del self._open[name]

    def take(self, response: Response) -> None:
        """Take a response; one that nobody waits for is dropped."""
        found = self._open.get(str(response.id))
        if found is None or found.done():
            return
        if response.result is not None:
            found.set_result(response.result)
        else:
            text = str((response.error or {}).get("message"))
            found.set_exception(MCPError(INTERNAL_ERROR, text))

    def close(self) -> None:
        """End every open request."""
        self._is_closed = True
        for found in self._open.values():
            if not found.done():
                found.set_exception(MCPError(CONNECTION_CLOSED, "The client has left."))


class Peer:
    """The way to the client outside of its requests: notifications alone."""

    def __init__(self, output: Output) -> None:
        self._output = output

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification, after a wait for room; drop it if the client is gone."""
        del opts  # options of requests
        self._output.write(notification_frame(method, params))
        if self._output.full:
            await self._output.drain()
        else:
            await asyncio.sleep(0)  # a handler that only notifies must not keep the loop

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> JsonObject:
        """Refuse to ask the client: NoBackChannelError."""
        del params, opts
        raise NoBackChannelError(method)


class InFlight(Peer):
    """One message of the client until it is handled; the SDK calls it a dispatch context.

    Args:
        output: The way to the client.
        message: The message.
        size_bytes: Its weight while it waits.
        is_open: Whether an answer or progress may still be sent for it.

    Attributes:
        is_open: Whether anything may be sent on its behalf: an answer, or progress.
        scope: Cancels its handler.
        task: Runs its handler.
    """

    transport = TransportContext(kind="stdio", can_send_request=False)
    message_metadata = None
    questions: Questions | None = None
    """The way for requests to the client; None if it takes none."""

    @property
    def can_send_request(self) -> bool:
        """Whether the client can be asked."""
        return self.questions is not None and self.is_open

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> JsonObject:
        """Ask the client; an MCPError if it does not answer, or cannot be asked."""
        if self.questions is None or not self.is_open:
            return await super().send_raw_request(method, params, opts)
        return await self.questions.ask(method, params, (opts or {}).get("timeout"))

    def __init__(self, output: Output, message: Request | Notification, size_bytes: int) -> None:
        self._output = output
        self.message = message
        self.size_bytes = size_bytes
        self.method = message.method
        self.request_id = message.id if isinstance(message, Request) else None
        self.is_open = True
        self.scope = anyio.CancelScope()
        self._cancelled: anyio.Event | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def cancel_requested(self) -> anyio.Event:
        """The event of the handler's cancellation, made on demand because few ask for it."""
        if self._cancelled is None:
            self._cancelled = anyio.Event()
        return self._cancelled

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification; drop it if the message is answered."""
        if self.is_open:
            await super().notify(method, params, opts)

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress, if the client has asked for it."""
        token = progress_token_from_params(self.message.params)
        if token is not None:
            told = {"progressToken": token, "progress": progress}
            told |= {"total": total} if total is not None else {}
            told |= {"message": message} if message is not None else {}
            await self.notify("notifications/progress", told)

    def cancel(self) -> None:
        """Stop the handler at its next wait."""
        self.cancel_requested.set()
        self.scope.cancel()


_Context: TypeAlias = DispatchContext[TransportContext]


class HandshakeEra:
    """2025-11-25 and earlier: `initialize` opens one connection for all messages."""

    def __init__(self, server: Server[Any], state: Any, peer: Outbound) -> None:
        self._connection = Connection.for_loop(peer)
        self._runner = ServerRunner(server, self._connection, state)

    def answer(self, in_flight: _Context, request: Request) -> Awaitable[JsonObject]:
        """Handle a request; return its result, or raise the error of the SDK or the handler."""
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
        """Run the handlers' cleanup for the end of the connection, within 5 s."""
        await aclose_shielded(self._connection)


class EnvelopeEra:
    """2026-07-28: every request carries its own envelope.

    A client sends the same envelope each time, so the SDK's reading of it is kept for the next
    request. No handler of this server keeps anything in it.
    """

    def __init__(self, server: Server[Any], state: Any, peer: Outbound) -> None:
        del peer  # messages to it go through the requests
        self._server = server
        self._state = state
        self._envelope: tuple[str, Any, Any] | None = None

    def answer(self, in_flight: _Context, request: Request) -> Awaitable[JsonObject]:
        """Handle a request; return its result, or raise the error of the SDK or the handler."""
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
        """Handle a notification on a connection without a client."""
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

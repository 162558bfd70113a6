"""Messages while they are handled, and the way back to the client that sent them.

A request has one answer, or none when the client has cancelled it; this module sees to that,
whatever becomes of the handler. When a message starts is decided by `stdio`, and how the SDK
handles it by `eras`.
"""

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio
from mcp.shared.dispatcher import CallOptions, coerce_request_id
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import (
    handler_exception_to_error_data,
    progress_token_from_params,
)
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT, RequestId

from hud_mcp.server.eras import Era
from hud_mcp.server.frames import (
    JsonObject,
    Notification,
    Request,
    Response,
    error_frame,
    notification_frame,
    request_frame,
    result_frame,
)
from hud_mcp.server.pipes import Output

__all__ = ["LISTEN", "Exchange", "Exchanges", "Peer"]

logger = logging.getLogger(__name__)

LISTEN: Final = "subscriptions/listen"
"""The request that stays open: it takes no slot of those that come and go."""


class Peer:
    """The way to the client: notifications, and requests with their answers (handshake era)."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._asked: dict[RequestId, asyncio.Future[JsonObject]] = {}
        self._last_id = 0
        self._closed = False

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification, after waiting for room; dropped when the client is gone."""
        del opts  # they concern requests
        self._output.write(notification_frame(method, params))
        if self._output.full:
            await self._output.drain()
        else:
            await asyncio.sleep(0)  # a handler that only notifies must not keep the loop

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> JsonObject:
        """Send a request and wait for its result; cancelling the wait cancels the request.

        Raises:
            MCPError: The client's error; REQUEST_TIMEOUT after `opts["timeout"]` seconds;
                CONNECTION_CLOSED when no answer can come any more.
        """
        if self._closed:
            raise MCPError(CONNECTION_CLOSED, "Connection closed")
        self._last_id += 1
        request_id = self._last_id
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = answer
        self._output.write(request_frame(request_id, method, params))
        try:
            with anyio.fail_after((opts or {}).get("timeout")):
                return await answer
        except TimeoutError:
            self._give_up(request_id, "timed out")
            raise MCPError(REQUEST_TIMEOUT, f"Request {method!r} timed out") from None
        except asyncio.CancelledError:
            self._give_up(request_id, "cancelled")
            raise
        finally:
            del self._asked[request_id]

    def resolve(self, response: Response) -> None:
        """Hand a response to whoever waits for it; one that nobody waits for is dropped."""
        if response.id is None:
            return
        answer = self._asked.get(coerce_request_id(response.id))
        if answer is None or answer.done():
            return
        if response.error is None:
            answer.set_result(response.result or {})
            return
        code, message = response.error.get("code"), response.error.get("message")
        code = code if isinstance(code, int) else INTERNAL_ERROR
        answer.set_exception(MCPError(code, str(message), response.error.get("data")))

    def close(self) -> None:
        """Fail every request that waits; further ones fail at once."""
        self._closed = True
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(MCPError(CONNECTION_CLOSED, "Connection closed"))

    def _give_up(self, request_id: RequestId, reason: str) -> None:
        params = {"requestId": request_id, "reason": reason}
        self._output.write(notification_frame("notifications/cancelled", params))


class Exchange:
    """One message of the client's while it is handled: what the SDK calls a dispatch context.

    Attributes:
        settled: Its answer is written, or none may be written any more.
        scope: Cancels its handler.
    """

    __slots__ = (
        "_cancel_requested",
        "_closed",
        "_params",
        "_peer",
        "message_metadata",
        "method",
        "request_id",
        "scope",
        "settled",
        "task",
        "transport",
    )

    def __init__(
        self, peer: Peer, transport: TransportContext, message: Request | Notification
    ) -> None:
        self.transport = transport
        self.method = message.method
        self.request_id = message.id if isinstance(message, Request) else None
        self.message_metadata = None
        self.settled = self.request_id is None
        self.scope = anyio.CancelScope()
        self.task: asyncio.Task[None] | None = None
        self._peer = peer
        self._params = message.params
        self._closed = False
        self._cancel_requested: anyio.Event | None = None

    @property
    def can_send_request(self) -> bool:
        """Whether the client may be asked on its behalf: never in the modern era."""
        return self.transport.can_send_request and not self._closed

    @property
    def cancel_requested(self) -> anyio.Event:
        """Set when its handler is told to stop."""
        if self._cancel_requested is None:
            self._cancel_requested = anyio.Event()
        return self._cancel_requested

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> JsonObject:
        """Ask the client; see `Peer.send_raw_request`.

        Raises:
            NoBackChannelError: The era has no requests to the client, or the exchange is over.
        """
        if not self.can_send_request:
            raise NoBackChannelError(method)
        return await self._peer.send_raw_request(method, params, opts)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification; dropped when the exchange is over."""
        if not self._closed:
            await self._peer.notify(method, params, opts)

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress, if the client has asked for it."""
        token = progress_token_from_params(self._params)
        if token is None:
            return
        params: JsonObject = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self.notify("notifications/progress", params)

    def cancel(self) -> None:
        """Stop the handler at its next wait."""
        self.cancel_requested.set()
        self.scope.cancel()

    def close(self) -> None:
        """Send nothing more on its behalf."""
        self._closed = True


class Exchanges:
    """All messages that are being handled, each in a task of its own.

    Args:
        peer: Who has sent them.
        output: Where their answers go.
        on_release: Called whenever one of them is over, until they are closed.

    Attributes:
        listening: How many of them are `subscriptions/listen` streams.
        initializing: Whether `initialize` is one of them.
    """

    def __init__(self, peer: Peer, output: Output, on_release: Callable[[], None]) -> None:
        self.listening = 0
        self.initializing = False
        self._peer = peer
        self._output = output
        self._on_release = on_release
        self._loop = asyncio.get_running_loop()
        self._running: set[Exchange] = set()
        self._by_id: dict[RequestId, Exchange] = {}
        self._closing = False
        self._released = asyncio.Event()

    @property
    def busy(self) -> int:
        """How many there are beside the streams that listen."""
        return len(self._running) - self.listening

    def __contains__(self, request_id: RequestId) -> bool:
        return request_id in self._by_id

    def find(self, request_id: RequestId) -> Exchange | None:
        """The request with this id, as it was sent; None if it is not being handled."""
        return self._by_id.get(request_id)

    def start(
        self, era: Era, message: Request | Notification, context: contextvars.Context | None
    ) -> None:
        """Handle a message; a request's id must not be in flight already."""
        exchange = Exchange(self._peer, era.transport, message)
        self._running.add(exchange)
        if isinstance(message, Request):
            self._by_id[message.id] = exchange
            self.initializing = message.method == "initialize"
            if message.method == LISTEN:
                self.listening += 1
        exchange.task = self._loop.create_task(
            self._handle(era, exchange, message), context=context
        )

    async def wait_for_one(self) -> None:
        """Wait until one of them is over."""
        self._released.clear()
        await self._released.wait()

    async def close(self, timeout_s: float) -> None:
        """Cancel all of them, and answer what is still unanswered; none may start any more.

        One that does not end in time is abandoned: it is answered, and its task is left.
        """
        self._closing = True
        for exchange in self._running:
            exchange.cancel()
        tasks = {exchange.task for exchange in self._running if exchange.task}
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)
        for exchange in self._running:
            logger.warning("%s did not stop within %s s", exchange.method, timeout_s)
            self._settle(exchange, None)

    async def _handle(self, era: Era, exchange: Exchange, message: Request | Notification) -> None:
        try:
            with exchange.scope:
                self._settle(exchange, await _outcome(era, exchange, message))
                if self._output.full:  # keep the slot: whoever is slow gets less, not more
                    await self._output.drain()
        finally:
            self._settle(exchange, None)
            self._release(exchange)

    def _settle(self, exchange: Exchange, frame: bytes | None) -> None:
        """Write the one answer of a request, unless it has one or may have none."""
        exchange.close()
        if exchange.settled or exchange.request_id is None:
            return
        exchange.settled = True
        if frame is None:
            code, text = (
                (CONNECTION_CLOSED, "Connection closed")
                if self._closing
                else (INTERNAL_ERROR, "Internal server error")
            )
            frame = error_frame(exchange.request_id, code, text)
        self._output.write(frame)

    def _release(self, exchange: Exchange) -> None:
        self._running.discard(exchange)
        if exchange.request_id is not None:
            del self._by_id[exchange.request_id]
            if exchange.method == LISTEN:
                self.listening -= 1
            elif exchange.method == "initialize":
                self.initializing = False
        self._released.set()
        if not self._closing:
            self._on_release()


async def _outcome(era: Era, exchange: Exchange, message: Request | Notification) -> bytes | None:
    """Handle one message and write its answer's frame; a notification has none."""
    try:
        if isinstance(message, Request):
            return result_frame(message.id, await era.answer(exchange, message))
        await era.observe(exchange, message)
    except Exception as error:  # noqa: BLE001 - a handler's failure becomes its answer here
        return _failure(message, error)
    return None


def _failure(message: Request | Notification, error: Exception) -> bytes | None:
    """Say on the wire what went wrong, and nothing that only the log may know."""
    if isinstance(message, Notification):
        logger.error("%s failed", message.method, exc_info=error)
        return None
    known = handler_exception_to_error_data(error)
    if known is not None:
        with contextlib.suppress(ValueError):  # data that JSON cannot carry
            return error_frame(message.id, known.code, known.message, known.data)
    logger.error("%s failed", message.method, exc_info=error)
    return error_frame(message.id, INTERNAL_ERROR, "Internal server error")

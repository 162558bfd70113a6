"""The way back to the client: its `Peer`, and one message of its while it is handled."""

import asyncio
from collections.abc import Mapping
from typing import Any

import anyio
from mcp.shared.dispatcher import CallOptions, coerce_request_id
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT, RequestId

from hud_mcp.server.stdio.descriptors import Output
from hud_mcp.server.stdio.frames import (
    JsonObject,
    Notification,
    Request,
    Response,
    notification_frame,
    request_frame,
)

__all__ = ["InFlight", "Peer"]


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
            raise _closed()
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
                answer.set_exception(_closed())

    def _give_up(self, request_id: RequestId, reason: str) -> None:
        params = {"requestId": request_id, "reason": reason}
        self._output.write(notification_frame("notifications/cancelled", params))


class InFlight:
    """One message of the client's until it is handled: what the SDK calls a dispatch context.

    Args:
        peer: The way to the client.
        message: What the client sent.
        size_bytes: What it weighs while it waits.

    Attributes:
        transport: What the era allows; set when it is started.
        is_open: Whether anything may be sent on its behalf: an answer, progress, a request.
        scope: Cancels its handler.
        cancel_requested: Set when its handler is told to stop.
        task: Runs its handler.
    """

    transport: TransportContext

    def __init__(self, peer: Peer, message: Request | Notification, size_bytes: int) -> None:
        self.message = message
        self.size_bytes = size_bytes
        self.method = message.method
        self.request_id = message.id if isinstance(message, Request) else None
        self.message_metadata = None
        self.is_open = True
        self.scope = anyio.CancelScope()
        self.cancel_requested = anyio.Event()
        self.task: asyncio.Task[None] | None = None
        self._peer = peer

    @property
    def can_send_request(self) -> bool:
        """Whether the client may be asked on its behalf: never in the modern era."""
        return self.transport.can_send_request and self.is_open

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
        if self.is_open:
            await self._peer.notify(method, params, opts)

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


def _closed() -> MCPError:
    return MCPError(CONNECTION_CLOSED, "Connection closed")

"""The way back to the client, and one message of its while it is handled."""

import asyncio
from collections.abc import Mapping
from typing import Any

import anyio
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.transport_context import TransportContext

from hud_mcp.server.stdio.descriptors import Output
from hud_mcp.server.stdio.frames import JsonObject, Notification, Request, notification_frame

__all__ = ["InFlight", "Peer"]


class Peer:
    """The way to the client: notifications alone, for this server asks its client nothing."""

    def __init__(self, output: Output) -> None:
        self._output = output

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
        """Ask the client.

        Raises:
            NoBackChannelError: In any case.
        """
        del params, opts
        raise NoBackChannelError(method)


class InFlight(Peer):
    """One message of the client's until it is handled: what the SDK calls a dispatch context.

    Args:
        output: The way to the client.
        message: What the client sent.
        size_bytes: What it weighs while it waits.

    Attributes:
        is_open: Whether anything may be sent on its behalf: an answer, or progress.
        scope: Cancels its handler.
        task: Runs its handler.
    """

    transport = TransportContext(kind="stdio", can_send_request=False)
    can_send_request = False
    message_metadata = None

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
        """Set when its handler is told to stop; made for who asks, as few do."""
        if self._cancelled is None:
            self._cancelled = anyio.Event()
        return self._cancelled

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification; dropped when the exchange is over."""
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

    def run_in(self, task: "asyncio.Task[None]") -> None:
        """Say which task runs its handler."""
        self.task = task

    def cancel(self) -> None:
        """Stop the handler at its next wait."""
        self.cancel_requested.set()
        self.scope.cancel()

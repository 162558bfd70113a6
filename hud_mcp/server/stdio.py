"""MCP over the process's standard input and output, in both protocol eras, without a thread hop.

`claim_stdio` takes the two descriptors away from everything else in the process; `serve_stdio`
serves a low-level `mcp` server on them until the client leaves or a signal arrives. It runs on
asyncio: reads happen when the descriptor is readable, each request is handled in a task of its
own, and each reply is one write.

What differs from the SDK's own transport, besides the speed: a line that is no message is
answered, frames and requests in flight are bounded, a slow reader slows the server down instead
of filling its memory, a handler's unexpected failure never shows its text, and every ending is
orderly and bounded.

This module decides what starts when, and how it all ends. The bytes are `pipes`' and `frames`',
the answers `exchange`'s, the two eras `eras`'.
"""

import asyncio
import contextvars
import logging
import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import StrEnum
from types import FrameType
from typing import Any, Final

import anyio
from mcp.server.lowlevel import Server
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST

from hud_mcp.server.eras import Era, HandshakeEra, era_of
from hud_mcp.server.exchange import LISTEN, Exchanges, Peer
from hud_mcp.server.frames import (
    Backlog,
    FrameSplitter,
    Notification,
    Refusal,
    Request,
    error_frame,
    read_message,
)
from hud_mcp.server.pipes import Input, Output, StdioStreams, ThreadedOutput, claim_stdio

__all__ = ["StdioLimits", "StdioStreams", "StopReason", "claim_stdio", "serve_stdio"]

logger = logging.getLogger(__name__)

_MAX_BACKLOG_BYTES: Final = 4 * 1024 * 1024
_MAX_LEAD_FRAMES: Final = 8
_CANCEL_S: Final = 0.15
_FLUSH_S: Final = 1.5
_MIN_FLUSH_S: Final = 0.05


class StopReason(StrEnum):
    """Why `serve_stdio` returned."""

    EOF = "eof"
    SIGINT = "sigint"
    SIGTERM = "sigterm"
    STDOUT_CLOSED = "stdout_closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioLimits:
    """What one connection may take up. Every value is positive.

    Attributes:
        max_frame_bytes: The longest message that is read; a longer one is refused.
        max_in_flight: How many messages are handled at once; further ones wait, and once 4 MiB
            of them do, the input waits, too. As many `subscriptions/listen` streams may be open
            beside them.
        max_outgoing_bytes: How much output may wait for a slow reader before new messages wait
            for it, too. Replies of requests already in flight come on top.
        finish_s: How long requests in flight may still finish after the end of the input.
        lifespan_exit_s: How long the server's lifespan may take to exit.
    """

    max_frame_bytes: int = 16 * 1024 * 1024
    max_in_flight: int = 256
    max_outgoing_bytes: int = 8 * 1024 * 1024
    finish_s: float = 0.15
    lifespan_exit_s: float = 1.5

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value <= 0:
                raise ValueError(f"{field.name} must be positive, got {value!r}")


_DEFAULT_LIMITS: Final = StdioLimits()


class _Service:
    """Reads the client's frames, starts their handlers within the limits, and ends them all.

    Cancellations and responses are acted upon as soon as they are read, whatever waits, because
    they are what a full server is waiting for. Everything else starts in the order in which it
    came, and nothing starts beside `initialize`.
    """

    def __init__(
        self, server: Server[Any], source: Input, output: Output, limits: StdioLimits
    ) -> None:
        self.peer = Peer(output)
        self._server = server
        self._input = source
        self._output = output
        self._limits = limits
        self._splitter = FrameSplitter(limits.max_frame_bytes)
        self._backlog = Backlog()
        self._lead: list[tuple[Notification, int]] = []
        self._era_type: type[Era] | None = None
        self._era: Era | None = None
        self._context: contextvars.Context | None = None
        self._state: Any = None
        self._exchanges = Exchanges(self.peer, output, self._advance)
        output.on_room = self._advance

    @property
    def is_open(self) -> bool:
        """Whether the lifespan has started."""
        return self._context is not None

    def open(self, state: Any) -> None:
        """Start what has been waiting for the lifespan, in the lifespan's contextvars."""
        self._state = state
        self._context = contextvars.copy_context()
        self._advance()

    def receive(self, data: bytes) -> None:
        """Take in a chunk of the input."""
        for frame in self._splitter.feed(data):
            self._take(frame)
        self._regulate()

    def end(self) -> None:
        """Take in the end of the input."""
        for frame in self._splitter.finish():
            self._take(frame)

    async def finish(self) -> None:
        """Wait until nothing is left to do but the streams of `subscriptions/listen`."""
        while self._backlog or self._exchanges.busy:
            await self._exchanges.wait_for_one()

    async def close(self, timeout_s: float) -> None:
        """Cancel every handler and answer what is still unanswered.

        A handler that does not end in time is abandoned: it is answered, and its task is left.
        """
        while self._backlog:
            message = self._backlog.take()
            if isinstance(message, Request):
                text = "Connection closed"
                self._output.write(error_frame(message.id, CONNECTION_CLOSED, text))
        await self._exchanges.close(timeout_s)
        if self._era is not None:
            await asyncio.wait({asyncio.create_task(self._era.close())}, timeout=timeout_s)

    # -- in

    def _take(self, frame: bytes | Refusal) -> None:
        message = read_message(frame) if isinstance(frame, bytes) else frame
        if isinstance(message, Refusal):
            self._output.write(error_frame(message.id, message.code, message.message))
        elif isinstance(message, Request):
            self._admit(message, len(frame))
        elif isinstance(message, Notification):
            if message.method == "notifications/cancelled":
                self._cancel(message)
            self._observe(message, len(frame))
        elif message is not None:
            self.peer.resolve(message)

    def _admit(self, request: Request, frame_bytes: int) -> None:
        if request.id in self._exchanges or request.id in self._backlog:
            text = "Invalid request: a request with this id is in flight already"
            self._output.write(error_frame(request.id, INVALID_REQUEST, text))
            return
        if self._era_type is None:
            self._era_type = era_of(request)
            for early in self._lead:
                self._enqueue(*early)
            self._lead.clear()
        self._enqueue(request, frame_bytes)

    def _observe(self, notification: Notification, frame_bytes: int) -> None:
        if self._era_type is not None:
            self._enqueue(notification, frame_bytes)
        elif len(self._lead) < _MAX_LEAD_FRAMES:
            self._lead.append((notification, frame_bytes))

    def _cancel(self, notification: Notification) -> None:
        given = cancelled_request_id_from_params(notification.params)
        if given is None:
            return
        # A peer may echo 7 as "7" and the other way round.
        for request_id in (given, coerce_request_id(given), str(given)):
            exchange = self._exchanges.find(request_id)
            if exchange is not None and exchange.method != "initialize":
                exchange.settled = True
                exchange.cancel()
                return
            if self._backlog.drop(request_id):
                return

    # -- flow

    def _enqueue(self, message: Request | Notification, frame_bytes: int) -> None:
        if self._backlog or not self._may_start():
            self._backlog.put(message, frame_bytes)
        else:
            self._start(message)

    def _may_start(self) -> bool:
        return (
            self._exchanges.busy < self._limits.max_in_flight
            and self._context is not None
            and not self._exchanges.initializing
            and not self._output.full
        )

    def _advance(self) -> None:
        while self._backlog and self._may_start():
            self._start(self._backlog.take())
        self._regulate()

    def _regulate(self) -> None:
        waiting = self._backlog.size_bytes > _MAX_BACKLOG_BYTES
        self._input.pause(paused=waiting or self._output.full)

    def _start(self, message: Request | Notification) -> None:
        if self._era is None:
            era = self._era_type or HandshakeEra
            self._era = era(self._server, self._state, self.peer)
        listening = self._exchanges.listening
        if (
            listening >= self._limits.max_in_flight
            and message.method == LISTEN
            and isinstance(message, Request)
        ):
            text = f"Subscription limit reached: {listening} are open"
            self._output.write(error_frame(message.id, INTERNAL_ERROR, text))
            return
        context = self._context.copy() if self._context is not None else None
        self._exchanges.start(self._era, message, context)


async def serve_stdio(
    server: Server[Any], streams: StdioStreams, limits: StdioLimits = _DEFAULT_LIMITS
) -> StopReason:
    """Serve one client until it leaves or the process is told to stop.

    Enters the server's lifespan, in a task of its own, and reads at once; what arrives before the
    lifespan is ready waits for it. The client's first request chooses the protocol era. While it
    runs, SIGINT and SIGTERM are its own (from the main thread only), and a second one ends the
    process at once with status 128 plus its number.

    At the end of the input, requests in flight have `limits.finish_s` to finish; then, or at once
    for any other reason, their handlers are cancelled and each is answered with "Connection
    closed" (-32000). The lifespan exits, the output is flushed, and with the default limits all
    of it takes less than two seconds: a handler or lifespan that does not stop is left behind,
    with a warning. Cancelling this function ends the same way.

    Args:
        server: The server; nothing of it is changed.
        streams: What `claim_stdio` yielded. The descriptors stay open.
        limits: What the client may take up.

    Returns:
        Why it ended. The process's exit status is the caller's business.

    Raises:
        RuntimeError: The lifespan ended by itself.
        Exception: Whatever the lifespan raised; everything has ended in order all the same.
    """
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[StopReason] = loop.create_future()

    def stop(reason: StopReason) -> None:
        if not stopped.done():
            stopped.set_result(reason)

    output_type = Output if hasattr(os, "writev") else ThreadedOutput
    output = output_type(
        streams.stdout_fd, limits.max_outgoing_bytes, lambda: stop(StopReason.STDOUT_CLOSED)
    )
    source = Input(streams.stdin_fd)
    service = _Service(server, source, output, limits)

    def end() -> None:
        service.end()
        stop(StopReason.EOF)

    with _signals(loop, stop):
        lifespan = _Lifespan(server, service)
        source.start(service.receive, end)
        try:
            await asyncio.wait((stopped, lifespan.task), return_when=asyncio.FIRST_COMPLETED)
        finally:
            source.close()
            reason = stopped.result() if stopped.done() else None
            with anyio.CancelScope(shield=True):
                await _wind_down(service, output, lifespan, limits, reason)
    lifespan.raise_failure()
    if reason is None:
        raise RuntimeError("the server's lifespan ended while it was being served")
    return reason


class _Lifespan:
    """The server's lifespan, in a task of its own.

    A scope of ours around its exit alone would not nest with the scopes that it may hold across
    its yield, so it is bounded from outside.
    """

    def __init__(self, server: Server[Any], service: _Service) -> None:
        self._server = server
        self._service = service
        self._leave = asyncio.Event()
        self.task = asyncio.create_task(self._live(), name="lifespan")

    async def exit(self, timeout_s: float) -> None:
        """Let it exit, or cancel a start that is not through; left behind after the timeout."""
        self._leave.set()
        if not self._service.is_open:
            self.task.cancel()
        await asyncio.wait({self.task}, timeout=timeout_s)
        if not self.task.done():
            logger.warning("the server's lifespan did not exit within %.1f s", timeout_s)
            self.task.cancel()
            await asyncio.wait({self.task}, timeout=_MIN_FLUSH_S)

    def raise_failure(self) -> None:
        """Raise what it raised, if anything."""
        if self.task.done() and not self.task.cancelled():
            self.task.result()

    async def _live(self) -> None:
        async with self._server.lifespan(self._server) as state:
            self._service.open(state)
            await self._leave.wait()


async def _wind_down(
    service: _Service,
    output: Output,
    lifespan: _Lifespan,
    limits: StdioLimits,
    reason: StopReason | None,
) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    service.peer.close()
    if reason is StopReason.EOF:
        with anyio.move_on_after(limits.finish_s):
            await service.finish()
    await service.close(_CANCEL_S)
    await lifespan.exit(limits.lifespan_exit_s)
    await output.flush(max(_MIN_FLUSH_S, begun + _FLUSH_S - loop.time()))
    output.close()


@contextmanager
def _signals(
    loop: asyncio.AbstractEventLoop, stop: Callable[[StopReason], None]
) -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    reasons = {signal.SIGINT: StopReason.SIGINT, signal.SIGTERM: StopReason.SIGTERM}
    received = False

    # Not loop.add_signal_handler: its callbacks wait for a loop that a handler may be blocking.
    def on_signal(number: int, frame: FrameType | None) -> None:
        del frame
        nonlocal received
        if received:
            os._exit(128 + number)
        received = True
        loop.call_soon_threadsafe(stop, reasons[signal.Signals(number)])

    before = {number: signal.signal(number, on_signal) for number in reasons}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

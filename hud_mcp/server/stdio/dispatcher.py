"""The client's messages: the order of their starts, and the one answer of each request."""

import asyncio
import contextlib
import contextvars
import logging
from collections import deque
from dataclasses import dataclass, fields
from typing import Any, Final

from mcp.server.lowlevel import Server
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.jsonrpc_dispatcher import (
    cancelled_request_id_from_params,
    handler_exception_to_error_data,
)
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, RequestId

from hud_mcp.base.lines import LineBuffer, Overlong
from hud_mcp.server.stdio.descriptors import Input, Output
from hud_mcp.server.stdio.eras import Era, HandshakeEra, InFlight, Peer, Questions, era_of
from hud_mcp.server.stdio.frames import (
    NoMessage,
    Notification,
    Request,
    Response,
    error_frame,
    read_message,
    refuse_long,
    result_frame,
)

__all__ = ["Dispatcher", "StdioLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioLimits:
    """The bounds of one connection. Every value is positive.

    Attributes:
        max_frame_bytes: The longest message; a longer one is refused.
        max_in_flight: The most messages handled at once. More messages wait, and once 4 MiB of them
            do, the input waits too. As many `subscriptions/listen` streams may be open beside them.
        max_outgoing_bytes: The output that may wait for a slow reader before new messages wait too.
            Replies of requests in flight come on top.
        finish_s: The time for requests in flight to finish after the end of the input.
        lifespan_exit_s: The longest exit of the server's lifespan.
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


logger = logging.getLogger(__name__)

_LISTEN: Final = "subscriptions/listen"
"""The request that stays open. It takes no slot of the others."""
_MAX_BACKLOG_BYTES: Final = 4 * 1024 * 1024
_ENTRY_BYTES: Final = 256
"""The bytes that a waiting message takes beside its frame."""
_MAX_LEAD_FRAMES: Final = 8
"""The most notifications that wait until the first request chooses the era."""


class Dispatcher:
    """The reader of the client's frames, which starts handlers within the limits, and ends them.

    A cancellation acts at once, before all waiting messages, because a full server may be waiting
    for it. All others start in the order in which they came, and none starts beside `initialize`.

    Attributes:
        is_open: Whether the lifespan has started.
    """

    def __init__(
        self, server: Server[Any], source: Input, output: Output, limits: StdioLimits
    ) -> None:
        self.is_open = False
        self._server = server
        self._input = source
        self._output = output
        self._limits = limits
        self._lines = LineBuffer(limits.max_frame_bytes)
        self._backlog = deque[InFlight]()
        self._backlog_bytes = 0
        self._era_type: type[Era] | None = None
        self._era: Era | None = None
        self._state: Any = None
        self._running: set[InFlight] = set()
        self._by_id: dict[RequestId, InFlight] = {}
        self._listening = 0
        self._initializing = self._closing = False
        self._questions = Questions(output)
        self._released = asyncio.Event()
        output.tell_room(self._advance)

    def open(self, state: Any) -> None:
        """Start the messages that waited for the lifespan, in the lifespan's contextvars."""
        self._state = state
        self._context = contextvars.copy_context()
        self.is_open = True
        self._advance()

    def receive(self, data: bytes) -> None:
        """Read a chunk of the input."""
        self._lines.feed(data)
        while (line := self._lines.take()) is not None:
            self._take(line)
        if self._output.full:
            self._regulate()

    def end(self) -> None:
        """Read the end of the input."""
        self._questions.close()
        if last := self._lines.take_rest():  # the last line may lack its line feed
            self._take(last)
        if self._era_type is None:
            self._backlog.clear()  # notifications, which no request will follow

    async def finish(self) -> None:
        """Wait until only the streams of `subscriptions/listen` are left."""
        while self._backlog or len(self._running) > self._listening:
            self._released.clear()
            await self._released.wait()

    async def close(self, timeout_s: float) -> None:
        """Cancel every handler, and answer every open request; no handler starts any more.

        A handler that does not end in time is abandoned: its request is answered, and its task is
        left.
        """
        self._closing = True
        self._questions.close()
        while self._backlog:
            self._answer(self._backlog.popleft(), None)
        for in_flight in self._running:
            in_flight.cancel()
        tasks = {in_flight.task for in_flight in self._running if in_flight.task}
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)
        for in_flight in self._running:
            logger.warning("%s did not stop within %s s", in_flight.method, timeout_s)
            self._answer(in_flight, None)
        if self._era is not None:
            await asyncio.wait({asyncio.create_task(self._era.close())}, timeout=timeout_s)

    # -- in

    def _take(self, line: bytes | Overlong) -> None:
        is_long = isinstance(line, Overlong)
        most = self._limits.max_frame_bytes
        match refuse_long(line.head, most) if is_long else read_message(line):
            case NoMessage(request_id, code, text):
                self._refuse(request_id, code, text)
            case Request() as request:
                self._admit(request, len(line))
            case Notification() as notification:
                if notification.method == "notifications/cancelled":
                    self._cancel(notification)
                if self._era_type is not None or len(self._backlog) < _MAX_LEAD_FRAMES:
                    self._enqueue(InFlight(self._output, notification, len(line)))
            case Response() as response:
                self._questions.take(response)
            case None:
                pass

    def _refuse(self, request_id: RequestId | None, code: int, text: str) -> None:
        self._output.write(error_frame(request_id, code, text))

    def _admit(self, request: Request, frame_bytes: int) -> None:
        if request.id in self._by_id:
            text = "Invalid request: a request with this id is in flight already"
            self._refuse(request.id, INVALID_REQUEST, text)
            return
        self._era_type = self._era_type or era_of(request)
        in_flight = self._by_id[request.id] = InFlight(self._output, request, frame_bytes)
        self._enqueue(in_flight)

    def _cancel(self, notification: Notification) -> None:
        given = cancelled_request_id_from_params(notification.params)
        if given is None:
            return
        # A peer may echo 7 as "7" and the other way round.
        for request_id in (given, coerce_request_id(given), str(given)):
            in_flight = self._by_id.get(request_id)
            if in_flight is not None and (
                in_flight.task is None or in_flight.method != "initialize"
            ):
                in_flight.is_open = False
                in_flight.cancel()
                if in_flight.task is None:  # it waits, and is skipped later
                    del self._by_id[request_id]
                return

    # -- flow

    def _enqueue(self, in_flight: InFlight) -> None:
        """Start a message, or let it wait behind earlier ones."""
        if not self._backlog and self._may_start():
            self._start(in_flight)
            return
        self._backlog.append(in_flight)
        self._backlog_bytes += in_flight.size_bytes + _ENTRY_BYTES
        self._advance()

    def _may_start(self) -> bool:
        return (
            self.is_open
            and not self._closing
            and self._era_type is not None
            # Streams have a bound of their own.
            and len(self._running) - self._listening < self._limits.max_in_flight
            and not self._initializing
            and not self._output.full
        )

    def _advance(self) -> None:
        while self._backlog and self._may_start():
            in_flight = self._backlog.popleft()
            self._backlog_bytes -= in_flight.size_bytes + _ENTRY_BYTES
            if in_flight.is_open:
                self._start(in_flight)
        self._regulate()

    def _regulate(self) -> None:
        waiting = self._backlog_bytes > _MAX_BACKLOG_BYTES
        self._input.pause(paused=waiting or self._output.full)

    def _start(self, in_flight: InFlight) -> None:
        if self._era is None:
            self._era = (self._era_type or HandshakeEra)(
                self._server, self._state, Peer(self._output)
            )
        if in_flight.request_id is not None:
            if in_flight.method == _LISTEN:
                if self._listening >= self._limits.max_in_flight:
                    text = f"Subscription limit reached: {self._listening} are open"
                    self._refuse(in_flight.request_id, INTERNAL_ERROR, text)
                    del self._by_id[in_flight.request_id]
                    return
                self._listening += 1
            self._initializing = in_flight.method == "initialize"
        if isinstance(self._era, HandshakeEra):
            in_flight.questions = self._questions
        self._running.add(in_flight)
        handling = self._handle(self._era, in_flight)
        in_flight.task = asyncio.create_task(handling, context=self._context.copy())

    # -- out

    async def _handle(self, era: Era, in_flight: InFlight) -> None:
        message = in_flight.message
        try:
            with in_flight.scope:
                try:
                    if isinstance(message, Request):
                        result = await era.answer(in_flight, message)
                        self._answer(in_flight, result_frame(message.id, result))
                    else:
                        await era.observe(in_flight, message)
                except Exception as error:  # noqa: BLE001 - a handler's failure is its answer
                    self._answer(in_flight, _failure(message, error))
                if self._output.full:  # keep the slot: a slow client gets less, not more
                    await self._output.drain()
        finally:
            if in_flight.is_open:
                self._answer(in_flight, None)
            self._release(in_flight)

    def _answer(self, in_flight: InFlight, frame: bytes | None) -> None:
        """Write the one answer of a request, unless it must have none."""
        if not in_flight.is_open:
            return
        in_flight.is_open = False
        if in_flight.request_id is None:
            return
        if frame is not None:
            self._output.write(frame)
        elif self._closing:
            self._refuse(in_flight.request_id, CONNECTION_CLOSED, "Connection closed")
        else:
            self._refuse(in_flight.request_id, INTERNAL_ERROR, "Internal server error")

    def _release(self, in_flight: InFlight) -> None:
        self._running.discard(in_flight)
        if in_flight.request_id is not None:
            del self._by_id[in_flight.request_id]
            if in_flight.method == _LISTEN:
                self._listening -= 1
            elif in_flight.method == "initialize":
                self._initializing = False
        self._released.set()
        if self._backlog:
            self._advance()


def _failure(message: Request | Notification, error: Exception) -> bytes | None:
    """Return the error for the wire, without details for the log alone."""
    known = handler_exception_to_error_data(error) if isinstance(message, Request) else None
    if isinstance(message, Request) and known is not None:
        with contextlib.suppress(ValueError):  # data that JSON cannot hold
            return error_frame(message.id, known.code, known.message, known.data)
    logger.error("%s failed", message.method, exc_info=error)
    return None

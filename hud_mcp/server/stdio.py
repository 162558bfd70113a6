"""MCP over the process's standard input and output, in both protocol eras, without a thread hop.

`claim_stdio` takes the two descriptors away from everything else in the process; `serve_stdio`
serves a low-level `mcp` server on them until the client leaves or a signal arrives. It runs on
asyncio: reads happen when the descriptor is readable, each request is handled in a task of its
own, and each reply is one write.

What differs from the SDK's own transport, besides the speed: a line that is no message is
answered, frames and requests in flight are bounded, a slow reader slows the server down instead
of filling its memory, a handler's unexpected failure never shows its text, and every ending is
orderly and bounded.
"""

import asyncio
import contextlib
import contextvars
import ctypes
import errno
import logging
import os
import queue
import signal
import stat
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import partial
from itertools import islice
from types import FrameType
from typing import Any, Final

import anyio
from mcp.server.connection import Connection, NotifyOnlyOutbound
from mcp.server.context import (
    CallNext,
    HandlerResult,
    ServerMiddleware,
    ServerRequestContext,
)
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.shared.dispatcher import CallOptions, coerce_request_id
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import (
    cancelled_request_id_from_params,
    handler_exception_to_error_data,
    progress_token_from_params,
)
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PROTOCOL_VERSION_META_KEY,
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
    RequestId,
)
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

from hud_mcp.server.frames import (
    Backlog,
    FrameSplitter,
    JsonObject,
    Notification,
    Refusal,
    Request,
    Response,
    error_frame,
    notification_frame,
    read_message,
    request_frame,
    result_frame,
)

if sys.platform == "win32":
    from mcp.os.win32.utilities import rebind_std_handle_to_fd
else:
    import fcntl

__all__ = ["StdioLimits", "StdioStreams", "StopReason", "claim_stdio", "serve_stdio"]

logger = logging.getLogger(__name__)

_READ_BYTES: Final = 65_536
_MAX_BUFFERS: Final = 64
_READER_GONE: Final = (errno.EPIPE, errno.ECONNRESET, errno.EIO)
_MAX_BACKLOG_BYTES: Final = 4 * 1024 * 1024
_MAX_LEAD_FRAMES: Final = 8
_CANCEL_S: Final = 0.15
_FLUSH_S: Final = 1.5
_MIN_FLUSH_S: Final = 0.05
_LISTEN: Final = "subscriptions/listen"


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


@dataclass(frozen=True, slots=True)
class StdioStreams:
    """The protocol's two descriptors, which nothing else in the process knows."""

    stdin_fd: int
    stdout_fd: int


# --------------------------------------------------------------------------------- the claim

_claim: Final = threading.Lock()


@contextmanager
def claim_stdio() -> Generator[StdioStreams]:
    """Take standard input and output for the protocol alone.

    Until the context exits, descriptor 0 reads the null device, and descriptor 1 and `sys.stdout`
    write to standard error, so that no print, library or child process reads from the protocol
    or writes to it. Enter it before any code that might keep a reference to `sys.stdout` or start
    a process.

    Yields:
        The protocol's descriptors; child processes do not inherit them.

    Raises:
        RuntimeError: Standard input and output are claimed already.
        OSError: One of them is closed. Nothing has changed.
    """
    if not _claim.acquire(blocking=False):
        raise RuntimeError("standard input and output are claimed already in this process")
    try:
        streams = StdioStreams(_private_copy(0), _private_copy(1))
        try:
            with _diverted(streams):
                yield streams
        finally:
            if sys.platform != "win32":  # there, a close waits for a thread that reads or writes
                os.close(streams.stdout_fd)
                os.close(streams.stdin_fd)
    finally:
        _claim.release()


def _private_copy(fd: int) -> int:
    if sys.platform == "win32":
        copy = os.dup(fd)
        os.set_inheritable(copy, False)
        return copy
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


@contextmanager
def _diverted(streams: StdioStreams) -> Generator[None]:
    stdout = sys.stdout
    _flush_stdout()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        _point(null, at=0)
        try:
            _point(2, at=1)
        except OSError:  # standard error is closed
            _point(null, at=1)
    finally:
        os.close(null)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        # Whatever was printed must be out before descriptor 1 is the protocol again.
        _flush_stdout()
        sys.stdout = stdout
        _flush_stdout()
        _point(streams.stdin_fd, at=0)
        _point(streams.stdout_fd, at=1)


def _point(source: int, *, at: int) -> None:
    os.dup2(source, at)
    if sys.platform == "win32":
        # A child process takes its handles from Win32, not from the C runtime.
        rebind_std_handle_to_fd(at)


def _flush_stdout() -> None:
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None and not stream.closed:
            with contextlib.suppress(OSError):  # its reader is gone
                stream.flush()
    if sys.platform != "win32":
        ctypes.CDLL(None).fflush(None)  # what C libraries have printed


# ------------------------------------------------------------------------------- descriptors


class _Input:
    """Reads a descriptor as it becomes readable; can be paused.

    What cannot be watched (a regular file, the null device, anything on Windows) is read by one
    thread for the whole stream, which is always at most one chunk ahead.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._paused = False
        self._closed = False
        self._watched = True
        self._wanted = threading.Event()

    def start(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Begin to deliver chunks, and then the end, once; both on the event loop."""
        self._on_data = on_data
        self._on_end = on_end
        try:
            self._loop.add_reader(self._fd, self._read)
        except (OSError, NotImplementedError):
            self._watched = False
            self._wanted.set()
            name = f"read-{self._fd}"
            threading.Thread(target=self._read_in_thread, name=name, daemon=True).start()

    def pause(self, *, paused: bool) -> None:
        """Stop or resume reading; at most one chunk that is already read still arrives."""
        if paused is self._paused or self._closed:
            return
        self._paused = paused
        if not self._watched:
            if not paused:
                self._wanted.set()
        elif paused:
            self._loop.remove_reader(self._fd)
        else:
            self._loop.add_reader(self._fd, self._read)

    def close(self) -> None:
        """Deliver nothing more. The descriptor stays open; a thread may still read from it once."""
        if self._closed:
            return
        if self._watched and not self._paused:
            self._loop.remove_reader(self._fd)
        self._closed = True
        self._wanted.set()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:  # a terminal or a peer that is gone
            logger.debug("standard input ended: %s", error)
            data = b""
        self._deliver(data)

    def _deliver(self, data: bytes) -> None:
        if self._closed:
            return
        if data:
            self._on_data(data)
            if not self._paused:
                self._wanted.set()
        else:
            self.close()
            self._on_end()

    def _read_in_thread(self) -> None:
        data = b"-"
        while data:
            self._wanted.wait()
            self._wanted.clear()
            if self._closed:
                return
            try:
                data = os.read(self._fd, _READ_BYTES)
            except OSError:
                data = b""
            try:
                self._loop.call_soon_threadsafe(self._deliver, data)
            except RuntimeError:  # the event loop is closed
                return


class _Output:
    """Writes frames to a descriptor, in order, and never blocks the event loop.

    Attributes:
        full: More than the limit waits for the reader; False again once half of it is gone.
        broken: The reader is gone; whatever is written is dropped.
        on_room: Called when `full` becomes False.
    """

    def __init__(self, fd: int, limit_bytes: int, on_broken: Callable[[], None]) -> None:
        self.full = False
        self.broken = False
        self.on_room: Callable[[], None] = _do_nothing
        self._on_broken = on_broken
        self._limit = limit_bytes
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._open(fd)

    def write(self, frame: bytes) -> None:
        """Send a frame, or keep it until the reader takes it."""
        if self.broken:
            return
        sent = 0 if self._waiting else self._send((frame,))
        if sent < len(frame) and not self.broken:
            if not self._waiting:
                self._loop.add_writer(self._fd, self._send_waiting)
            self._waiting.append(memoryview(frame)[sent:])
            self._more_waits(len(frame) - sent)

    async def drain(self) -> None:
        """Wait until there is room again."""
        while self.full and not self.broken:
            await self._room.wait()

    async def flush(self, timeout_s: float) -> bool:
        """Wait until all is sent; False if the reader has not taken it in time or is gone."""
        with anyio.move_on_after(timeout_s):
            await self._empty.wait()
        return self._waiting_bytes == 0 and not self.broken

    def close(self) -> None:
        """Drop what still waits, and leave the descriptor as it was."""
        self._stop_watching()
        if self._reopened:
            os.close(self._fd)
        else:
            os.set_blocking(self._fd, self._was_blocking)

    def _open(self, fd: int) -> None:
        # O_NONBLOCK belongs to the open file, which other processes share (a shell's terminal);
        # opening a pipe or a terminal once more gives an open file of our own.
        self._reopened = False
        self._fd = fd
        kind = os.fstat(fd).st_mode
        if sys.platform == "linux" and (stat.S_ISFIFO(kind) or stat.S_ISCHR(kind)):
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            with contextlib.suppress(OSError):  # no /proc, or another user's pipe
                self._fd = os.open(f"/proc/self/fd/{fd}", flags)
                self._reopened = True
        if not self._reopened:
            self._was_blocking = os.get_blocking(fd)
            os.set_blocking(fd, False)

    def _send(self, buffers: Sequence[bytes | memoryview]) -> int:
        try:
            return os.writev(self._fd, buffers)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._break(error)
            return 0

    def _send_waiting(self) -> None:
        sent = left = self._send(list(islice(self._waiting, _MAX_BUFFERS)))
        while left and self._waiting:
            first = self._waiting.popleft()
            if len(first) > left:
                self._waiting.appendleft(first[left:])
            left = max(0, left - len(first))
        if not self._waiting:
            self._stop_watching()
        if sent:
            self._less_waits(sent)

    def _stop_watching(self) -> None:
        if self._waiting or self._waiting_bytes:
            self._loop.remove_writer(self._fd)
        self._waiting.clear()

    def _more_waits(self, count: int) -> None:
        self._waiting_bytes += count
        self._empty.clear()
        if self._waiting_bytes > self._limit:
            self.full = True
            self._room.clear()

    def _less_waits(self, count: int) -> None:
        self._waiting_bytes -= count
        if self._waiting_bytes == 0:
            self._empty.set()
        if self.full and self._waiting_bytes <= self._limit // 2:
            self.full = False
            self._room.set()
            self.on_room()

    def _break(self, error: OSError) -> None:
        if self.broken:
            return
        if error.errno not in _READER_GONE:
            logger.error("cannot write to standard output: %s", error)
        self._stop_watching()
        self.broken = True
        self._waiting_bytes = 0
        self._empty.set()
        self._room.set()
        self._on_broken()


class _ThreadedOutput(_Output):
    """The same where a descriptor cannot be watched (Windows): one thread writes all frames."""

    def write(self, frame: bytes) -> None:
        if not self.broken:
            self._more_waits(len(frame))
            self._frames.put(frame)

    def close(self) -> None:
        self._frames.put(None)

    def _open(self, fd: int) -> None:
        self._fd = fd
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._write_in_thread, name=f"write-{fd}", daemon=True).start()

    def _stop_watching(self) -> None:
        pass

    def _write_in_thread(self) -> None:
        while (frame := self._frames.get()) is not None:
            rest = memoryview(frame)
            try:
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
                self._loop.call_soon_threadsafe(self._less_waits, len(frame))
            except OSError as error:
                with contextlib.suppress(RuntimeError):  # the event loop is closed
                    self._loop.call_soon_threadsafe(self._break, error)
                return
            except RuntimeError:  # the event loop is closed
                return


def _do_nothing() -> None:
    pass


# --------------------------------------------------------------------------- the peer's side


class _Peer:
    """The way to the client: notifications, and requests with their answers (handshake era)."""

    def __init__(self, output: _Output) -> None:
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


class _Exchange:
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
        self, peer: _Peer, transport: TransportContext, message: Request | Notification
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
        return self.transport.can_send_request and not self._closed

    @property
    def cancel_requested(self) -> anyio.Event:
        if self._cancel_requested is None:
            self._cancel_requested = anyio.Event()
        return self._cancel_requested

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> JsonObject:
        if not self.can_send_request:
            raise NoBackChannelError(method)
        return await self._peer.send_raw_request(method, params, opts)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        if not self._closed:
            await self._peer.notify(method, params, opts)

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
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


# --------------------------------------------------------------------------------- the eras


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


def _has_envelope(params: JsonObject | None) -> bool:
    meta = params.get("_meta") if params else None
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta


class _HandshakeEra:
    """2025-11-25 and earlier: `initialize` opens one connection for all messages."""

    def __init__(self, server: Server[Any], state: Any, peer: _Peer) -> None:
        self.transport = TransportContext(kind="stdio", can_send_request=True)
        self._server = server
        self._state = state
        self._connection = Connection.for_loop(peer)

    async def answer(self, exchange: _Exchange, request: Request) -> JsonObject:
        if request.method != "initialize" and _has_envelope(request.params):
            text = (
                "this connection serves the handshake protocol era; requests carrying the "
                f"{LATEST_MODERN_VERSION} envelope are not accepted on it"
            )
            raise MCPError(INVALID_REQUEST, text)
        runner = _runner(self._server, self._connection, self._state, request.params)
        return await runner.on_request(exchange, request.method, request.params)

    async def observe(self, exchange: _Exchange, notification: Notification) -> None:
        runner = _runner(self._server, self._connection, self._state, notification.params)
        await runner.on_notify(exchange, notification.method, notification.params)

    async def close(self) -> None:
        await aclose_shielded(self._connection)


class _EnvelopeEra:
    """2026-07-28: every request carries its own envelope and is a connection of its own."""

    def __init__(self, server: Server[Any], state: Any, peer: _Peer) -> None:
        self.transport = TransportContext(kind="stdio", can_send_request=False)
        self._server = server
        self._state = state
        self._outbound = NotifyOnlyOutbound(peer)

    async def answer(self, exchange: _Exchange, request: Request) -> JsonObject:
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

    async def observe(self, exchange: _Exchange, notification: Notification) -> None:
        connection = Connection.from_envelope(
            LATEST_MODERN_VERSION, None, None, outbound=self._outbound
        )
        try:
            runner = _runner(self._server, connection, self._state, notification.params)
            await runner.on_notify(exchange, notification.method, notification.params)
        finally:
            await _close(connection)

    async def close(self) -> None:
        pass


async def _close(connection: Connection) -> None:
    # Nearly no request leaves a callback behind, and the shielded close costs as much as a
    # handler; a stack that does not say that it is empty is closed.
    if getattr(connection.exit_stack, "_exit_callbacks", True):
        await aclose_shielded(connection)


def _versions(params: JsonObject | None) -> JsonObject:
    supported: JsonObject = {"supported": list(MODERN_PROTOCOL_VERSIONS)}
    requested = (params or {}).get("protocolVersion")
    return {**supported, "requested": requested} if isinstance(requested, str) else supported


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


# ------------------------------------------------------------------------------ the service


class _Service:
    """Reads the client's frames, starts their handlers within the limits, and ends them all.

    Cancellations and responses are acted upon as soon as they are read, whatever waits, because
    they are what a full server is waiting for. Everything else starts in the order in which it
    came, and nothing starts beside `initialize`.
    """

    def __init__(
        self, server: Server[Any], source: _Input, output: _Output, limits: StdioLimits
    ) -> None:
        self.peer = _Peer(output)
        self._server = server
        self._input = source
        self._output = output
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._splitter = FrameSplitter(limits.max_frame_bytes)
        self._backlog = Backlog()
        self._lead: list[tuple[Notification, int]] = []
        self._era_type: type[_HandshakeEra | _EnvelopeEra] | None = None
        self._era: _HandshakeEra | _EnvelopeEra | None = None
        self._context: contextvars.Context | None = None
        self._state: Any = None
        self._running: set[_Exchange] = set()
        self._by_id: dict[RequestId, _Exchange] = {}
        self._listening = 0
        self._initializing = False
        self._closing = False
        self._released = asyncio.Event()
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
        while self._backlog or len(self._running) > self._listening:
            self._released.clear()
            await self._released.wait()

    async def close(self, timeout_s: float) -> None:
        """Cancel every handler and answer what is still unanswered.

        A handler that does not end in time is abandoned: it is answered, and its task is left.
        """
        self._closing = True
        while self._backlog:
            message = self._backlog.take()
            if isinstance(message, Request):
                text = "Connection closed"
                self._output.write(error_frame(message.id, CONNECTION_CLOSED, text))
        for exchange in self._running:
            exchange.cancel()
        await _wait({exchange.task for exchange in self._running if exchange.task}, timeout_s)
        for exchange in self._running:
            logger.warning("%s did not stop within %s s", exchange.method, timeout_s)
            self._settle(exchange, None)
        if self._era is not None:
            await _wait({asyncio.create_task(self._era.close())}, timeout_s)

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
        if request.id in self._by_id or request.id in self._backlog:
            text = "Invalid request: a request with this id is in flight already"
            self._output.write(error_frame(request.id, INVALID_REQUEST, text))
            return
        if self._era_type is None:
            modern = request.method != "initialize" and _has_envelope(request.params)
            self._era_type = _EnvelopeEra if modern else _HandshakeEra
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
            exchange = self._by_id.get(request_id)
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
            len(self._running) - self._listening < self._limits.max_in_flight
            and self._context is not None
            and not self._initializing
            and not self._output.full
        )

    def _advance(self) -> None:
        while self._backlog and self._may_start():
            self._start(self._backlog.take())
        self._regulate()

    def _regulate(self) -> None:
        waiting = self._backlog.size_bytes > _MAX_BACKLOG_BYTES
        self._input.pause(paused=waiting or self._output.full)

    # -- handlers

    def _start(self, message: Request | Notification) -> None:
        if self._era is None:
            era = self._era_type or _HandshakeEra
            self._era = era(self._server, self._state, self.peer)
        if message.method == _LISTEN and isinstance(message, Request):
            if self._listening >= self._limits.max_in_flight:
                text = f"Subscription limit reached: {self._listening} are open"
                self._output.write(error_frame(message.id, INTERNAL_ERROR, text))
                return
            self._listening += 1
        exchange = _Exchange(self.peer, self._era.transport, message)
        self._running.add(exchange)
        if isinstance(message, Request):
            self._by_id[message.id] = exchange
            self._initializing = message.method == "initialize"
        context = self._context.copy() if self._context is not None else None
        exchange.task = self._loop.create_task(
            self._handle(self._era, exchange, message), context=context
        )

    async def _handle(
        self,
        era: _HandshakeEra | _EnvelopeEra,
        exchange: _Exchange,
        message: Request | Notification,
    ) -> None:
        try:
            with exchange.scope:
                self._settle(exchange, await _outcome(era, exchange, message))
                if self._output.full:  # keep the slot: whoever is slow gets less, not more
                    await self._output.drain()
        finally:
            self._settle(exchange, None)
            self._release(exchange)

    def _settle(self, exchange: _Exchange, frame: bytes | None) -> None:
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

    def _release(self, exchange: _Exchange) -> None:
        self._running.discard(exchange)
        if exchange.request_id is not None:
            del self._by_id[exchange.request_id]
            if exchange.method == _LISTEN:
                self._listening -= 1
            elif exchange.method == "initialize":
                self._initializing = False
        self._released.set()
        if not self._closing:
            self._advance()


async def _outcome(
    era: _HandshakeEra | _EnvelopeEra, exchange: _Exchange, message: Request | Notification
) -> bytes | None:
    """Handle one message and write its answer's frame; a notification has none."""
    try:
        if isinstance(message, Request):
            return result_frame(message.id, await era.answer(exchange, message))
        await era.observe(exchange, message)
    except Exception as error:  # noqa: BLE001 - a handler's failure becomes its answer here
        return _failure(message, error)
    return None


async def _wait(tasks: set[asyncio.Task[None]], timeout_s: float) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=timeout_s)


# ------------------------------------------------------------------------------- the server


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
        Exception: Whatever the lifespan raised; everything has ended in order all the same.
    """
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[StopReason] = loop.create_future()

    def stop(reason: StopReason) -> None:
        if not stopped.done():
            stopped.set_result(reason)

    output_type = _Output if hasattr(os, "writev") else _ThreadedOutput
    output = output_type(
        streams.stdout_fd, limits.max_outgoing_bytes, lambda: stop(StopReason.STDOUT_CLOSED)
    )
    source = _Input(streams.stdin_fd)
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
    return stopped.result()


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
        await _wait({self.task}, timeout_s)
        if not self.task.done():
            logger.warning("the server's lifespan did not exit within %.1f s", timeout_s)
            self.task.cancel()
            await _wait({self.task}, _MIN_FLUSH_S)

    def raise_failure(self) -> None:
        """Raise what it raised, if anything."""
        if self.task.cancelled() and not self._leave.is_set():
            raise RuntimeError("the server's lifespan cancelled itself")
        if self.task.done() and not self.task.cancelled():
            self.task.result()

    async def _live(self) -> None:
        async with self._server.lifespan(self._server) as state:
            self._service.open(state)
            await self._leave.wait()


async def _wind_down(
    service: _Service,
    output: _Output,
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

"""A server of HTTP/1.1 on loopback, within bounds of sizes, times and connections.

It has no web framework: that would cost each request eight times its CPU, and hold chunks back.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import h11
import orjson

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"

_HEAD_BYTES, _HEADERS = 65_536, 100
_WRITTEN_BYTES = 262_144
"""The most unsent bytes of one connection; above it, a reply waits for its reader."""
_END_S = 90.0
_OVERLOOKED = "h2c"
"""An upgrade that Java's own client offers in each plain request; a server may overlook it."""


@dataclass(frozen=True)
class Bounds:
    """The bounds of a listener.

    Attributes:
        head_s: For the head of a request, and for the first one of a connection.
        body_s: For its body.
        idle_s: Between two requests of a connection.
        linger_s: For a body that nobody reads: a client that is still writing reads no refusal.
        body_bytes: The most bytes of a body.
        strangers: The most connections that have shown no key; the oldest makes room.
        reply_bytes: The most bytes of a provider's reply.
        reply_s: The most seconds of one.
    """

    head_s: float = 10.0
    body_s: float = 60.0
    idle_s: float = 600.0
    linger_s: float = 5.0
    body_bytes: int = 32 * 1024 * 1024
    strangers: int = 256
    reply_bytes: int = 64 * 1024 * 1024
    reply_s: float = 3_600.0


class BadRequest(Exception):
    """A request that breaks the protocol or a bound, with its status and a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _HungUp(Exception):
    """The client has closed its connection."""


@dataclass(frozen=True)
class Request:
    """The head of a request; headers have lower-case names, and commas between equal ones."""

    method: str
    path: str
    query: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


Headers = Sequence[tuple[str, str]]
Application = Callable[[Request, "Connection"], Awaitable[None]]


class Connection(asyncio.Protocol):
    """One connection: its requests, one after the other, and their replies.

    Attributes:
        has_begun: Whether some of the present reply has gone.
        on_close: A function that is called when it is closed, by either side.
    """

    _transport: asyncio.Transport

    def __init__(self, bounds: Bounds, begin: Callable[["Connection"], None]) -> None:
        self.has_begun = False
        self.on_close: list[Callable[[], None]] = []
        self._bounds = bounds
        self._begin = begin
        self._loop = asyncio.get_running_loop()
        self._wire = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
        self._came, self._drained = asyncio.Event(), asyncio.Event()
        self._drained.set()
        self._is_gone = False
        self._served = 0
        self._method = ""
        self._unread = 0
        self._ahead = b""
        self._idle: anyio.CancelScope | None = None
        self._answering: anyio.CancelScope | None = None

    # what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport
            transport.set_write_buffer_limits(_WRITTEN_BYTES)
            self._begin(self)

    def data_received(self, data: bytes) -> None:
        """Take bytes; the socket waits while nobody reads them."""
        if self._idle is not None:
            self._idle.deadline = min(self._idle.deadline, self._loop.time() + self._bounds.head_s)
            self._idle = None
        self._unread += len(data)
        if self._unread > _HEAD_BYTES:
            self._transport.pause_reading()
        self._wire.receive_data(data)
        self._came.set()

    def eof_received(self) -> None:
        """End; a client that writes no more is taken for one that reads no more."""
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # as the transport calls
        """End, and cancel what is under way."""
        if self._is_gone:
            return
        self._is_gone = True
        self._came.set()
        self._drained.set()
        if self._answering is not None:
            self._answering.cancel()
        for call in self.on_close:
            call()

    def pause_writing(self) -> None:
        """Let the reply wait for its reader."""
        self._drained.clear()

    def resume_writing(self) -> None:
        """Let the reply go on."""
        self._drained.set()

    # what the listener and the application call

    def close(self) -> None:
        """Close at once; a reply that is under way breaks off, as its reader sees."""
        self._flush()
        self._transport.abort()
        self.connection_lost(None)

    async def serve(self, app: Application) -> None:
        """Serve one request after the other, until either side closes."""
        try:
            while await self._serve_one(app):
                self._served += 1
        except _HungUp:
            pass
        except Exception:  # the boundary of one connection: the others go on
            logger.exception("A request to a model's gateway failed in this program")
        finally:
            self._flush()
            if self._wire.our_state is h11.SEND_BODY:
                self._transport.abort()  # a reply without its end is seen to break off
            self._transport.close()
            self.connection_lost(None)

    async def body(self) -> bytes:
        """Return the body of the present request; raise `BadRequest` above its bounds."""
        most = self._bounds.body_bytes
        too_large = f"The body of a request has at most {most:,} bytes."
        parts: list[bytes] = []
        size = 0
        with anyio.move_on_after(self._bounds.body_s):
            if self._wire.they_are_waiting_for_100_continue:
                going_on = h11.InformationalResponse(status_code=100, headers=[])
                self._transport.write(self._wire.send(going_on) or b"")
            while isinstance(event := await self._event(), h11.Data):
                size += len(event.data)
                if size > most:
                    raise BadRequest(413, too_large)
                parts.append(bytes(event.data))
            return b"".join(parts)
        raise BadRequest(408, f"The body of a request takes {self._bounds.body_s:g} s at most.")

    async def reply(self, status: int, headers: Headers, body: bytes = b"") -> None:
        """Send a whole reply."""
        self.begin(status, [*headers, ("content-length", str(len(body)))])
        if self._method != "HEAD":
            await self.send(body)
        self.finish()

    def begin(self, status: int, headers: Headers) -> None:
        """Begin a reply; its head goes with what is sent before this task waits."""
        head = h11.Response(status_code=status, headers=list(headers))
        self._write(self._wire.send(head) or b"")
        self.has_begun = True

    async def send(self, data: bytes) -> None:
        """Send bytes of a reply, or wait while its reader has too many unread."""
        self._write(self._wire.send(h11.Data(data=data)) or b"")
        if not self._drained.is_set():
            await self._drained.wait()

    def finish(self) -> None:
        """End a reply."""
        self._write(self._wire.send(h11.EndOfMessage()) or b"")

    def _write(self, data: bytes) -> None:
        """Write bytes before this task waits; those of chunks that came together, at once.

        Each write wakes the reader, which costs more than all else that is done for a chunk.
        """
        if not self._ahead:
            self._loop.call_soon(self._flush)
        self._ahead += data
        if len(self._ahead) >= _WRITTEN_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._ahead and not self._is_gone:
            self._transport.write(self._ahead)
        self._ahead = b""

    # one request

    async def _serve_one(self, app: Application) -> bool:
        """Serve the next request; return whether there may be another one."""
        self.has_begun, self._method = False, ""
        try:
            request = await self._head()
            if request is None:
                return False
            self._method = request.method
            with anyio.CancelScope() as self._answering:
                await app(request, self)
            self._answering = None
        except BadRequest as exc:
            logger.info("A request was refused with status %d", exc.status)
            if not self.has_begun and self._wire.our_state is not h11.ERROR:
                await self._refuse(exc)
        is_whole = self.has_begun and not self._is_gone and await self._rest()
        if not is_whole or self._wire.our_state is not h11.DONE:
            return False
        self._wire.start_next_cycle()
        return True

    async def _head(self) -> Request | None:
        """Return the head of the next request; None if none comes."""
        has_some = bool(self._wire.trailing_data[0])
        within_s = self._bounds.idle_s if self._served and not has_some else self._bounds.head_s
        with anyio.move_on_after(within_s) as scope:
            self._idle = scope
            event = await self._event()
            self._idle = None
            return _read(event) if isinstance(event, h11.Request) else None
        self._idle = None
        if not self._wire.trailing_data[0]:
            return None
        raise BadRequest(408, f"The head of a request takes {self._bounds.head_s:g} s at most.")

    async def _event(self) -> object:
        while True:
            try:
                event = self._wire.next_event()
            except h11.RemoteProtocolError as exc:
                raise BadRequest(exc.error_status_hint, f"This is no HTTP/1.1: {exc}.") from None
            if event is not h11.NEED_DATA:
                return event
            if self._is_gone:
                raise _HungUp
            self._came.clear()
            self._unread = 0
            self._transport.resume_reading()
            await self._came.wait()

    async def _refuse(self, exc: BadRequest) -> None:
        body = orjson.dumps({"error": {"type": "invalid_request_error", "message": str(exc)}})
        headers = [("content-type", "application/json"), ("connection", "close")]
        if exc.status == 426:  # noqa: PLR2004  # a status of HTTP
            headers.append(("upgrade", "HTTP/1.1"))
        await self.reply(exc.status, headers, body)

    async def _rest(self) -> bool:
        """Read what is left of a body to nowhere; return whether another request may follow."""
        left = self._bounds.body_bytes
        with anyio.move_on_after(self._bounds.linger_s):
            while self._wire.their_state is h11.SEND_BODY and left > 0:
                event = await self._event()
                left -= len(event.data) if isinstance(event, h11.Data) else 0
        return self._wire.their_state is h11.DONE


def _read(event: h11.Request) -> Request:
    if len(event.headers) > _HEADERS:
        raise BadRequest(431, f"The head of a request has at most {_HEADERS} headers.")
    headers: dict[str, str] = {}
    for raw_name, raw in event.headers:
        name, value = raw_name.decode("ascii"), raw.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    if headers.get("upgrade", _OVERLOOKED).lower() != _OVERLOOKED:
        raise BadRequest(426, "There are no WebSockets here, and no other upgrade: use HTTP/1.1.")
    path, _, query = event.target.decode("ascii").partition("?")
    if not path.startswith("/") or "/." in path:
        raise BadRequest(400, "A request names a plain path alone.")
    return Request(event.method.decode("ascii"), path, query, headers)


class Listener:
    """The connections of one listening socket, on loopback alone.

    Attributes:
        port: The port of the socket.
    """

    def __init__(self, app: Application, bounds: Bounds) -> None:
        self.port = 0
        self._app = app
        self._bounds = bounds
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._strangers: dict[Connection, None] = {}  # in the order in which they came
        self._open: set[Connection] = set()

    def begin(self, connection: Connection) -> None:
        """Serve a new connection; the stranger that has waited longest makes room for it."""
        if len(self._strangers) >= self._bounds.strangers:
            next(iter(self._strangers)).close()
        self._open.add(connection)
        self._strangers[connection] = None
        connection.on_close.append(lambda: self._forget(connection))
        # anyio's groups start no task where no task runs, and this is a transport's call.
        task = self._loop.create_task(connection.serve(self._app))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def admit(self, connection: Connection) -> None:
        """Note that a connection has shown a key."""
        self._strangers.pop(connection, None)

    def _forget(self, connection: Connection) -> None:
        self.admit(connection)
        self._open.discard(connection)

    async def aclose(self) -> None:
        """Close all connections, and wait for the ends of their requests."""
        for connection in [*self._open]:
            connection.close()
        with anyio.move_on_after(_END_S, shield=True):
            while self._tasks:
                await asyncio.wait(self._tasks)
        for task in self._tasks:
            task.cancel()


@asynccontextmanager
async def listening(app: Application, bounds: Bounds) -> AsyncGenerator[Listener]:
    """Listen on a free port of loopback until the end of the block."""
    listener = Listener(app, bounds)
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(bounds, listener.begin), HOST, 0, backlog=1024
    )
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        server.close()
        await listener.aclose()

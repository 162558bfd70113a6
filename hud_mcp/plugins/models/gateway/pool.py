"""Connections to providers by HTTP/1.1, which are kept for the next request.

A general client costs a streamed reply three times as much of the processor: it makes an event of
each chunk in several layers. Here, all that has come together is one.
"""

import asyncio
import ssl
import time
import zlib
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from urllib.parse import urlsplit

import anyio
import h11
import httpx2

__all__ = ["Lost", "Pool", "Received"]

_CONNECT_S, _WRITE_S, _SILENT_S = 10.0, 60.0, 600.0
_IDLE_S = 5.0
"""The time that an unused connection is kept: providers close theirs after little more."""
_READ_BYTES, _HEAD_BYTES = 65_536, 131_072
_ZLIB = ("gzip", "x-gzip", "deflate")


class Lost(Exception):
    """A connection to a provider broke, or never came about."""


@contextmanager
def _as_lost() -> Generator[None]:
    try:
        yield
    except h11.LocalProtocolError:  # its text has the header, perhaps with the key
        raise Lost("its request cannot be written") from None
    except h11.RemoteProtocolError as exc:
        raise Lost(f"it broke off: {exc}") from None
    except TimeoutError:
        raise Lost("it was silent for too long") from None
    except OSError as exc:
        raise Lost(f"{type(exc).__name__}: {exc.strerror or exc}") from None


class Received:
    """The reply on a connection; its headers in lower case, and its body as it comes."""

    def __init__(self, connection: "_Connection", response: h11.Response) -> None:
        self.status = response.status_code
        self.headers: dict[str, str] = {}
        for raw, value in response.headers:
            name = raw.decode("ascii")
            before = f"{self.headers[name]}," if name in self.headers else ""
            self.headers[name] = before + value.decode("latin-1")
        self._connection = connection

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Read the body; raise `Lost` if it breaks off, or cannot be read."""
        encoding = self.headers.get("content-encoding", "identity").lower()
        if encoding not in ("identity", "", *_ZLIB):
            raise Lost(f"its reply is written in {encoding}, though nobody asked for that")
        unpack = zlib.decompressobj(47) if encoding in _ZLIB else None
        async for chunk in self._connection.chunks():
            try:
                data = chunk if unpack is None else unpack.decompress(chunk)
            except zlib.error as exc:
                raise Lost(f"its reply cannot be unpacked: {exc}") from None
            if data:
                yield data


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
        self.idle_since_s = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether another request can be made on it."""
        is_open = not (self._reader.at_eof() or self._writer.is_closing())
        return is_open and time.monotonic() - self.idle_since_s < _IDLE_S

    async def ask(self, request: h11.Request, body: bytes) -> h11.Response:
        """Send a request, and return the head of its reply."""
        head = self._wire.send(request) or b""
        self._writer.write(head + body)
        self._wire.send(h11.Data(data=body))
        self._wire.send(h11.EndOfMessage())
        with suppress(ConnectionError):  # a refusal may have come before all was written
            with anyio.fail_after(_WRITE_S):
                await self._writer.drain()
        while not isinstance(event := self._wire.next_event(), h11.Response):
            if event is h11.NEED_DATA:
                await self._read()
        return event

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Read a body; bytes that have come together are one chunk."""
        is_over = False
        while not is_over:
            parts: list[bytes] = []
            failed: Lost | None = None
            try:
                with _as_lost():
                    is_over = self._take(parts)
                    if not is_over and not parts:
                        await self._read()
            except Lost as exc:
                failed = exc
            if parts:  # also those before a break
                yield b"".join(parts)
            if failed is not None:
                raise failed

    def _take(self, parts: list[bytes]) -> bool:
        """Add the data that has come; return whether that is all."""
        while (event := self._wire.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Data):
                parts.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return True
        return False

    async def _read(self) -> None:
        with anyio.fail_after(_SILENT_S):
            data = await self._reader.read(_READ_BYTES)
        if not data and self._wire.their_state is h11.SEND_RESPONSE:
            raise Lost("it closed the connection without a reply")
        self._wire.receive_data(data)

    def is_over(self) -> bool:
        """Begin the next cycle if a whole request was answered; return whether that is so."""
        done = self._wire.our_state is h11.DONE and self._wire.their_state is h11.DONE
        if done:
            self._wire.start_next_cycle()
            self.idle_since_s = time.monotonic()
        return done

    def close(self) -> None:
        """Close at once."""
        self._writer.transport.abort()


class Pool:
    """The connections of a job, by their origins."""

    def __init__(self) -> None:
        self._idle: dict[tuple[str, str, int], list[_Connection]] = {}
        self._trust: ssl.SSLContext | None = None

    def close(self) -> None:
        """Close all connections that are not in use."""
        for connection in [each for idle in self._idle.values() for each in idle]:
            connection.close()
        self._idle.clear()

    @asynccontextmanager
    async def asked(
        self, method: str, url: str, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> AsyncGenerator[Received]:
        """Send a request, and give the reply while the block runs.

        Raises:
            Lost: There was no connection, or it broke.
        """
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        origin = (parts.scheme, parts.hostname or "", port)
        host, length = parts.netloc.encode("idna"), str(len(body)).encode()
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection: _Connection | None = None
        try:
            with _as_lost():
                request = h11.Request(
                    method=method,
                    target=target,
                    headers=[(b"host", host), *headers, (b"content-length", length)],
                )
                connection = self._kept(origin) or await self._connected(origin)
                response = await connection.ask(request, body)
            yield Received(connection, response)
            if connection.is_over():
                self._idle.setdefault(origin, []).append(connection)
                connection = None
        finally:
            if connection is not None:
                connection.close()

    def _kept(self, origin: tuple[str, str, int]) -> _Connection | None:
        idle = self._idle.get(origin, [])
        while idle:
            connection = idle.pop()  # the last one that was used
            if connection.is_usable:
                return connection
            connection.close()
        return None

    async def _connected(self, origin: tuple[str, str, int]) -> _Connection:
        scheme, host, port = origin
        if scheme == "https" and self._trust is None:
            self._trust = httpx2.create_ssl_context()
        with anyio.fail_after(_CONNECT_S):
            reader, writer = await asyncio.open_connection(
                host,
                port,
                ssl=self._trust if scheme == "https" else None,
                happy_eyeballs_delay=0.25,
            )
        return _Connection(reader, writer)

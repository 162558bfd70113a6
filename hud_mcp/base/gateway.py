"""The gateway: an HTTP proxy of this process, which connects to the hosts of a list.

It looks a name up once, and connects to the address that the list has admitted. So a name that
leads elsewhere later gains nothing.
"""

import asyncio
import contextlib
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from hud_mcp.base.egress import Address, AllowList, look_up

HEAD_BYTES = 1 << 16
"""The longest head of a request."""

_HEAD_S = 10.0
_CONNECT_S = 15.0
_ADDRESS_S = 5.0
_IDLE_S = 300.0
_CHUNK = 1 << 16


@dataclass
class _Request:
    """A program's request to the proxy: a host, and the first bytes for it."""

    host: str
    port: int
    first: bytes


class _NotGranted(Exception):
    """A request is refused; the text has the reason."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


class Gateway:
    """An HTTP proxy that connects to the hosts of a list, and to nothing else.

    `on_refused` gets each refused `host:port`, and whether the list has it and only its address is
    refused.
    """

    def __init__(
        self,
        allow: AllowList,
        *,
        most: int,
        on_refused: Callable[[str, bool], None] = lambda _host, _listed: None,
    ) -> None:
        self._allow = allow
        self._most = most
        self._on_refused = on_refused
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, listener: socket.socket) -> None:
        """Serve a listening socket, and own it from now on."""
        self._server = await asyncio.start_server(self.accept, sock=listener, limit=HEAD_BYTES)

    async def close(self) -> None:
        """Drop every connection. It may be called twice."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=2)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve an open connection."""
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            try:
                request = await _read_request(reader)
                far_reader, far_writer = await self._connect(request)
            except _NotGranted as exc:
                body = f"{exc}\n".encode()
                head = f"HTTP/1.1 {exc.status}\r\ncontent-type: text/plain; charset=utf-8\r\n"
                head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
                return
            with contextlib.closing(far_writer):
                if request.first:
                    far_writer.write(request.first)
                else:
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await splice(reader, writer, far_reader, far_writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return  # one side hung up, or was silent for too long
        finally:
            writer.close()

    async def _connect(
        self, request: _Request
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to an address that the list admits, after one look-up, or raise `_NotGranted`."""
        if len(self._tasks) > self._most:
            raise _NotGranted(
                "429 Too Many Requests", f"More than {self._most} connections at once."
            )
        host, port = request.host, request.port
        if not self._allow.lists(host, port):
            raise self._refuse(host, port, is_listed=False)
        try:
            async with asyncio.timeout(_CONNECT_S):
                addresses = await look_up(host, port)
                admitted = [a for a in addresses if self._allow.allows(host, port, a)]
                if addresses and not admitted:
                    raise self._refuse(host, port, is_listed=True)
                return await _connect_first(admitted, port)
        except (OSError, TimeoutError) as exc:
            reason = f": {exc}" if str(exc) else " in time."
            raise _NotGranted("502 Bad Gateway", f"{host}:{port} does not answer{reason}") from exc

    def _refuse(self, host: str, port: int, *, is_listed: bool) -> _NotGranted:
        self._on_refused(f"{host}:{port}", is_listed)
        why = " It leads to an address that the list does not open." if is_listed else ""
        return _NotGranted(
            "403 Forbidden",
            f"{host}:{port} may not be reached from here. The allow-list is {self._allow}.{why}",
        )


async def _connect_first(
    addresses: Sequence[Address], port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address that answers; raise OSError if none does."""
    failure: Exception | None = None
    for address in addresses:
        try:
            async with asyncio.timeout(_ADDRESS_S if len(addresses) > 1 else None):
                return await asyncio.open_connection(str(address), port)
        except (OSError, TimeoutError) as exc:
            failure = exc
    raise OSError("nothing listens there") from failure


async def _read_request(reader: asyncio.StreamReader) -> _Request:
    """Read the head of a request; raise `_NotGranted` if it is none for a proxy."""
    try:
        async with asyncio.timeout(_HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.LimitOverrunError, asyncio.IncompleteReadError, TimeoutError):
        raise _NotGranted("400 Bad Request", "This is an HTTP proxy.") from None
    lines = head.decode("latin-1").split("\r\n")
    method, _, rest = lines[0].partition(" ")
    target = rest.partition(" ")[0]
    try:
        is_tunnel = method == "CONNECT"
        if is_tunnel and "/" not in target:
            return _Request(*_split_target(f"//{target}", 443), b"")
        if not is_tunnel and target.lower().startswith("http://"):
            host, port = _split_target(target, 80)
            return _Request(host, port, _rewritten(method, target, lines[1:]))
    except ValueError:
        pass
    raise _NotGranted("400 Bad Request", "This is an HTTP proxy: send CONNECT or a whole URL.")


def _split_target(target: str, default_port: int) -> tuple[str, int]:
    """Return the host and the port of a request; raise ValueError if it names none."""
    parts = urlsplit(target)
    if not parts.hostname:
        raise ValueError("no host")
    return parts.hostname, parts.port or default_port


def _rewritten(method: str, target: str, headers: Sequence[str]) -> bytes:
    """Return the head for the far side.

    Its Host is the connected host, whatever the client wrote: a shared server would answer for
    another host (RFC 9112, 3.2.2).
    """
    where = target.partition("://")[2]
    host = re.split(r"[/?#]", where, maxsplit=1)[0]
    path = f"/{where.removeprefix(host).removeprefix('/')}"
    kept = [line for line in headers if line and not _is_replaced(line)]
    lines = [
        f"{method} {path} HTTP/1.1",
        f"host: {host.rpartition('@')[2]}",
        *kept,
        "connection: close",
        "",
        "",
    ]
    return "\r\n".join(lines).encode("latin-1")


def _is_replaced(line: str) -> bool:
    """Whether a header is between the client and its proxy, or set by the proxy."""
    name = line.partition(":")[0].strip().lower()
    return name in ("connection", "keep-alive", "host") or name.startswith("proxy-")


async def splice(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    """Carry bytes both ways until both sides are done."""

    async def carry(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        while True:
            async with asyncio.timeout(_IDLE_S):
                data = await source.read(_CHUNK)
            if not data:
                break
            to.write(data)
            async with asyncio.timeout(_IDLE_S):
                await to.drain()
        if to.can_write_eof():
            to.write_eof()

    both = [
        asyncio.ensure_future(carry(reader, far_writer)),
        asyncio.ensure_future(carry(far_reader, writer)),
    ]
    try:
        await asyncio.gather(*both)
    finally:
        for task in both:
            task.cancel()

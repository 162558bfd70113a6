"""The one way out of a sandbox: a proxy that knows which hosts may be reached.

Inside there is a loopback and nothing else. Where hosts are allowed, a socket that listens on
that loopback is served from here, as an HTTP proxy: names are looked up on this side, so
that no name server hears of others, and the address that was checked is the one connected to.
"""

import asyncio
import contextlib
import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from hud_mcp.errors import InvalidEnvironment

__all__ = ["PROXY_PORT", "Address", "Gateway", "HostList", "split_host"]

PROXY_PORT = 3128
"""Where the proxy is, on the sandbox's own loopback."""

_PATTERN = re.compile(r"(\*|(\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(:\d{1,5})?")
_HEAD_S = 10.0
_CONNECT_S = 15.0
_IDLE_S = 300.0
_CHUNK = 1 << 16
_HEAD_BYTES = 1 << 16

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class HostList:
    """Which hosts may be reached, and by which addresses.

    Args:
        patterns: `example.com` is that host on any port, `*.example.com` every host below it,
            `example.com:443` one port, and `*` the public web. Addresses of this machine and of
            its link are reached only where they are written out; those of private networks
            also where their host is named in full.

    Raises:
        InvalidEnvironment: Naming a pattern that is none of these.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        if isinstance(patterns, str):
            raise InvalidEnvironment(f"allow: expected a list of hosts; write [{patterns!r}].")
        self.patterns = tuple(_checked(pattern) for pattern in patterns)

    def __str__(self) -> str:
        return ", ".join(self.patterns) or "empty"

    def matching(self, host: str, port: int) -> str | None:
        """The host part of the most exact pattern that allows a host, or None."""
        name = host.lower().rstrip(".").strip("[]")
        found = [
            wanted
            for wanted, only in map(split_host, self.patterns)
            if only in (None, port) and _names(wanted, name)
        ]
        return min(found, key=lambda wanted: wanted.startswith("*"), default=None)

    def allows(self, host: str, port: int, address: Address) -> bool:
        """Whether a host may be reached at an address that its name leads to."""
        wanted = self.matching(host, port)
        if wanted is None:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if wanted == "localhost" or _address(wanted) is not None:
            return True
        if wanted.startswith("*"):
            return address.is_global
        return not (
            address.is_loopback
            or address.is_link_local
            or address.is_unspecified
            or address.is_multicast
        )


@dataclass
class _Request:
    """What a program inside asks of the proxy: a host, and what to send it first."""

    host: str
    port: int
    first: bytes


class _Refused(Exception):
    """A request is not granted; the text says why."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


class Gateway:
    """A proxy on a socket of the inside.

    Args:
        hosts: What may be reached.
        most: How many connections there may be at once.
        on_refused: Told of each `host:port` that may not be reached, and whether it is on the
            list and only its address is not allowed.
    """

    def __init__(
        self,
        hosts: HostList,
        *,
        most: int,
        on_refused: Callable[[str, bool], None] = lambda _host, _listed: None,
    ) -> None:
        self._hosts = hosts
        self._most = most
        self._on_refused = on_refused
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, listener: socket.socket) -> None:
        """Serve a listening socket, which belongs to this from now on."""
        self._server = await asyncio.start_server(self.accept, sock=listener, limit=_HEAD_BYTES)

    async def close(self) -> None:
        """Drop every connection. Closing twice is no error."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=2)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection that is open already."""
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            try:
                request = await _read_request(reader)
                far_reader, far_writer = await self._connect(request)
            except _Refused as exc:
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
                await _splice(reader, writer, far_reader, far_writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return  # either side hung up, or was silent for too long
        finally:
            writer.close()

    async def _connect(
        self, request: _Request
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if len(self._tasks) > self._most:
            raise _Refused("429 Too Many Requests", f"More than {self._most} connections at once.")
        host, port = request.host, request.port
        refused = _Refused(
            "403 Forbidden",
            f"{host}:{port} may not be reached from here. The allow-list is {self._hosts}.",
        )
        if self._hosts.matching(host, port) is None:
            self._on_refused(f"{host}:{port}", False)
            raise refused
        answers = True
        try:
            async with asyncio.timeout(_CONNECT_S):
                for address in await _addresses(host, port):
                    if not self._hosts.allows(host, port, address):
                        answers = False
                        continue
                    with contextlib.suppress(ConnectionError):
                        return await asyncio.open_connection(str(address), port)
                    refused = _Refused("502 Bad Gateway", f"{host}:{port} does not answer.")
        except (OSError, TimeoutError) as exc:
            raise _Refused("502 Bad Gateway", f"{host}:{port} does not answer: {exc}") from exc
        if not answers and refused.status.startswith("403"):
            self._on_refused(f"{host}:{port}", True)
        raise refused


async def _read_request(reader: asyncio.StreamReader) -> _Request:
    try:
        async with asyncio.timeout(_HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.LimitOverrunError, asyncio.IncompleteReadError, TimeoutError):
        raise _Refused("400 Bad Request", "This is an HTTP proxy.") from None
    lines = head.decode("latin-1").split("\r\n")
    method, _, rest = lines[0].partition(" ")
    target = rest.partition(" ")[0]
    try:
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or (method == "CONNECT") == target.lower().startswith("http://"):
        raise _Refused("400 Bad Request", "This is an HTTP proxy: send CONNECT or a whole URL.")
    if method == "CONNECT":
        return _Request(host, port or 443, b"")
    path = target.partition("://")[2].partition("/")[2]
    kept = [line for line in lines[1:] if line and not _is_hop_header(line)]
    first = "\r\n".join([f"{method} /{path} HTTP/1.1", *kept, "connection: close", "", ""])
    return _Request(host, port or 80, first.encode("latin-1"))


def _is_hop_header(line: str) -> bool:
    name = line.partition(":")[0].strip().lower()
    return name in ("connection", "keep-alive") or name.startswith("proxy-")


async def _addresses(host: str, port: int) -> list[Address]:
    found = _address(host)
    if found is not None:
        return [found]
    rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [_address(str(row[4][0]).partition("%")[0]) for row in rows]
    return [address for address in addresses if address is not None]


async def _splice(
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


def _checked(pattern: str) -> str:
    lower = pattern.strip().lower()
    if not _PATTERN.fullmatch(lower):
        raise InvalidEnvironment(
            f"allow: {pattern!r} is not a host. Write 'example.com', '*.example.com', "
            "'example.com:443' or '*', without a scheme and without a path."
        )
    return lower


def split_host(pattern: str) -> tuple[str, int | None]:
    """The host and the port of a pattern, without brackets."""
    host, colon, port = pattern.rpartition(":")
    if colon and port.isdigit() and (host.endswith("]") or ":" not in host):
        return host.strip("[]"), int(port)
    return pattern.strip("[]"), None


def _names(wanted: str, name: str) -> bool:
    if wanted == "*":
        return True
    return name.endswith(wanted[1:]) if wanted.startswith("*.") else name == wanted


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None

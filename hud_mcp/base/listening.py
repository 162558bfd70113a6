"""Listening on an address of this machine: its reading, its port, and its name."""

import ipaddress
import re
import socket
from collections.abc import Sequence
from typing import Final, Protocol

from hud_mcp.errors import HudMcpError

LOOPBACK: Final = "127.0.0.1"
"""The address that only this machine reaches."""

_HOST = re.compile(r"[A-Za-z0-9_.-]*|\[?[0-9a-fA-F:.]+(%[A-Za-z0-9_.-]+)?\]?")
"""A name or an address, with or without brackets, or nothing."""

_LAST_PORT = 65_535
_BACKLOG = 128
_UNREAD_S = 30
"""The longest time that sent bytes may stay unread before the system closes the connection."""
_WILDCARDS = {"0.0.0.0": LOOPBACK, "::": "::1"}  # noqa: S104  # read, not listened on


class _Server(Protocol):
    """A server of asyncio, or of a library on it."""

    @property
    def sockets(self) -> Sequence[socket.socket]: ...


def read_address(given: str, *, option: str) -> tuple[str, int]:
    """Read `HOST:PORT`, or `PORT` alone, which means loopback; else raise HudMcpError."""
    host, _, port = given.rpartition(":")
    if not _HOST.fullmatch(host) or not port.isdecimal():
        wrong = f"{host!r} is not a host" if port.isdecimal() else f"{port!r} is not a port"
        raise HudMcpError(f"{option} {given}: {wrong}. Write HOST:PORT, as in {LOOPBACK}:8000.")
    if int(port) > _LAST_PORT:
        raise HudMcpError(f"{option} {given}: there is no port {port}. The last is {_LAST_PORT}.")
    return host.strip("[]") or LOOPBACK, int(port)


def take_port(host: str, port: int) -> socket.socket:
    """Take a port; 0 is any free one. Nobody can connect before a server listens on it.

    Raises:
        HudMcpError: The port is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol's number asyncio does not turn Nagle's algorithm off on accepted
    # connections. Each reply then waits 40 ms for an acknowledgement that the client delays.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
    except OSError as exc:
        taken.close()
        raise HudMcpError(
            f"Cannot listen on {host}:{port}: {exc.strerror}. Choose another port; 0 takes any "
            "free one."
        ) from None
    taken.setblocking(False)
    return taken


def listen(host: str, port: int) -> socket.socket:
    """Listen on a port, as `take_port` takes it; a client waits until the server accepts."""
    listener = take_port(host, port)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; accepted connections inherit it
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_S * 1000)
    listener.listen(_BACKLOG)
    return listener


def port_of(listening: socket.socket | _Server) -> int:
    """Return the port of a listening socket or server."""
    first = listening if isinstance(listening, socket.socket) else listening.sockets[0]
    port: int = first.getsockname()[1]
    return port


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def shown_host(host: str) -> str:
    """Return an address in the form of a URL."""
    return f"[{host}]" if ":" in host else host


def base_url(host: str, port: int) -> str:
    """Return the address of a listener for a browser on this machine."""
    return f"http://{shown_host(_WILDCARDS.get(host, host))}:{port}"

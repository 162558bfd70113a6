"""The hosts that may be reached, and their addresses: the one meaning of `allow=`."""

import asyncio
import enum
import ipaddress
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from hud_mcp.errors import EnvironmentFailed, HudMcpError, InvalidEnvironment

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LOOPBACK = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))
"""The addresses of `localhost`."""

_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}\.?")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_DISCARD_PORT = 9


def canonical(host: str) -> str:
    """Return a host in the one spelling in which hosts are compared."""
    name = host.lower().rstrip(".").strip("[]")
    address = read_address(name)
    return name if address is None else str(address)


def read_address(text: str) -> Address | None:
    """Return the address of a text, in any spelling that programs accept; None for a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        pass
    if not _NUMERIC.fullmatch(text):
        return None
    try:  # 127.1, 0177.0.0.1, 0x7f000001 and 2130706433 are all the loopback
        return ipaddress.IPv4Address(socket.inet_aton(text.rstrip(".")))
    except OSError:
        return None


def is_localhost(name: str) -> bool:
    """Whether a name is the loopback's without a look-up (RFC 6761, 6.3)."""
    return name == "localhost" or (name.endswith(".localhost") and not name.startswith("*"))


def is_spelled_local(host: str) -> bool:
    """Whether a host's spelling alone shows this machine, or no public network."""
    if host.endswith(".localhost") or is_localhost(host):
        return True
    address = read_address(host)
    return address is not None and not is_public(address)


def is_public(address: Address) -> bool:
    """Whether an address is of the public internet, and none of this machine's own."""
    return all(
        each.is_global and not each.is_multicast and not _is_site_local(each)
        for each in meanings(address)
    ) and not any(_is_own(each) for each in meanings(address))


def _is_site_local(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.is_site_local


def meanings(address: Address) -> list[Address]:
    """Return the addresses that an address leads to: itself, and each one that is wrapped in it."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    inner = [address.sixtofour, *(address.teredo or ())]
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [address, *(each for each in inner if each is not None)]


def _is_own(address: Address) -> bool:
    """Whether an address is one of this machine's interfaces.

    Nothing is sent. A datagram socket only shows its source address, which equals the target if the
    datagram would not leave the machine.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004  # IPv4
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), _DISCARD_PORT))
            return read_address(str(probe.getsockname()[0])) == address
    except OSError:
        return False  # no route leads there


async def look_up(host: str, port: int) -> list[Address]:
    """Return the addresses of a host; raise OSError if no name server knows it."""
    name = canonical(host)
    spelled = read_address(name)
    if spelled is not None:
        return [spelled]
    if is_localhost(name):
        return list(LOOPBACK)
    try:
        rows = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except UnicodeError as exc:  # such as a label of more than 63 characters
        raise OSError("it is not a host name") from exc
    addresses = [read_address(str(row[4][0]).partition("%")[0]) for row in rows]
    return [address for address in addresses if address is not None]


def read_hosts(given: Sequence[str]) -> tuple[str, ...]:
    """Read hosts that rows may open; raise HudMcpError for a text that is none, or many."""
    for host in given:
        if not is_host(host):
            raise HudMcpError(
                f"--allow {host}: name one host, as in --allow localhost:8080 or --allow 10.0.0.5, "
                "without a scheme, a path or *."
            )
    return tuple(host.lower() for host in given)


_HOST = r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?"
_PATTERN = re.compile(rf"(\*|(\*\.)?{_HOST}|\[[0-9a-f:.]+\])(:\d{{1,5}})?")
_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


class _Reach(enum.Enum):
    """The addresses at which a listed host may be reached."""

    PUBLIC = "public"
    DECLARED = "declared"
    ANY = "any"


@dataclass(frozen=True)
class _Grant:
    """One host of a list, or one pattern: `example.com`, `*.example.com`, `*`, or an address."""

    host: str
    port: int | None
    reach: _Reach

    def names(self, host: str, port: int | None) -> bool:
        """Whether the grant names a host on a port, at any address."""
        if self.port not in (None, port):
            return False
        if self.host == "*":
            return True
        return host.endswith(self.host[1:]) if self.host.startswith("*.") else host == self.host

    def admits(self, address: Address) -> bool:
        """Whether the grant's hosts may be reached at an address."""
        is_pattern = self.host.startswith("*")
        if self.reach is _Reach.PUBLIC or is_pattern:
            return is_public(address)
        if self.reach is _Reach.ANY or is_localhost(self.host):
            return True
        if read_address(self.host) is not None:
            return True
        return not any(
            each.is_loopback or each.is_link_local or each.is_unspecified or each.is_multicast
            for each in meanings(address)
        )


class AllowList:
    """The hosts that may be reached, and their addresses; InvalidEnvironment for a bad pattern."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        if isinstance(patterns, str):
            raise InvalidEnvironment(f"allow: expected a list of hosts; write [{patterns!r}].")
        self.patterns = tuple(_checked(pattern) for pattern in patterns)
        self._grants = tuple(_Grant(*_split(p), _Reach.DECLARED) for p in self.patterns)

    def __str__(self) -> str:
        return ", ".join(self.patterns) or "empty"

    def with_row(
        self, row: Sequence[str], *, is_trusted: bool, local: Sequence[str] = ()
    ) -> "AllowList":
        """Return the list with the hosts that a task's own row opens, at public addresses.

        A host that a trusted row names in full may lead anywhere, to this machine and to private
        networks too. So may the hosts of `local`, with a port or without, if any row names them. By
        themselves they open nothing.

        Raises:
            EnvironmentFailed: A pattern is invalid, or names a local address that it may not.
        """
        try:
            opened = AllowList([*self.patterns, *row])
        except InvalidEnvironment as exc:
            text = str(exc).removeprefix("allow: ")
            raise EnvironmentFailed(f"The task's row cannot open hosts: {text}") from None
        grants: list[_Grant] = []
        for pattern in row:
            grant = _Grant(*_split(_checked(pattern)), _Reach.ANY if is_trusted else _Reach.PUBLIC)
            excepted = tuple(_exceptions(grant, local))
            may_be_local = is_trusted or any(each.port == grant.port for each in excepted)
            if is_spelled_local(grant.host) and not may_be_local:
                raise EnvironmentFailed(
                    f"The task's row opens {pattern}, an address of this machine or of a private "
                    "network, and the row is not the user's own. Start with --allow "
                    f"{pattern} if it may."
                )
            grants += (grant, *excepted)
        opened._grants = (*self._grants, *grants)
        return opened

    def lists(self, host: str, port: int) -> bool:
        """Whether a host is on the list, at any address."""
        name = canonical(host)
        return any(grant.names(name, port) for grant in self._grants)

    def allows(self, host: str, port: int, address: Address) -> bool:
        """Whether a host may be reached at an address of its name."""
        name = canonical(host)
        return any(grant.names(name, port) and grant.admits(address) for grant in self._grants)

    def allows_url(self, url: str) -> bool:
        """Whether an http, https, ws or wss URL is on the list, by its spelling alone.

        No name is looked up. The answer serves for a clear early refusal; the gateway decides.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            return False
        if parts.scheme not in _PORTS or not host or port is None:
            return False
        name = canonical(host)
        spelled = LOOPBACK[0] if is_localhost(name) else read_address(name)
        return self.lists(name, port) if spelled is None else self.allows(name, port, spelled)


def is_host(text: str) -> bool:
    """Whether a text names one host, with or without a port: no pattern, and no URL."""
    return not text.startswith("*") and _PATTERN.fullmatch(text.lower()) is not None


def _checked(pattern: str) -> str:
    lower = pattern.strip().lower()
    if not _PATTERN.fullmatch(lower):
        raise InvalidEnvironment(
            f"allow: {pattern!r} is not a host. Write 'example.com', '*.example.com', "
            "'example.com:443' or '*', without a scheme and without a path."
        )
    return lower


def _split(pattern: str) -> tuple[str, int | None]:
    """Return the host and the port of a pattern, in the spelling in which hosts are compared."""
    host, colon, port = pattern.rpartition(":")
    if colon and port.isdigit() and (host.endswith("]") or ":" not in host):
        return canonical(host), int(port)
    return canonical(pattern), None


def _exceptions(grant: _Grant, local: Sequence[str]) -> Iterator[_Grant]:
    """Yield an operator's grants to a row's hosts beside public addresses."""
    for host, port in (_split(each.lower()) for each in local):
        if host == grant.host and (port == grant.port or None in (port, grant.port)):
            yield _Grant(host, grant.port if port is None else port, _Reach.ANY)

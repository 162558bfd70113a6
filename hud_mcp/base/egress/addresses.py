"""Hosts as they are written, and the addresses that they lead to.

This module knows no list: it reads spellings, looks names up, and tells which addresses are of
the public internet.
"""

import asyncio
import ipaddress
import re
import socket

__all__ = [
    "Address",
    "canonical",
    "is_localhost",
    "is_public",
    "is_spelled_local",
    "look_up",
    "meanings",
    "read_address",
]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LOOPBACK = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))
"""Where `localhost` leads."""

_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}\.?")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_DISCARD_PORT = 9


def canonical(host: str) -> str:
    """A host in the one spelling in which it is compared."""
    name = host.lower().rstrip(".").strip("[]")
    address = read_address(name)
    return name if address is None else str(address)


def read_address(text: str) -> Address | None:
    """The address that a text is, in any spelling that a program connects to; None for a name."""
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
    """Whether a name is the loopback's without being looked up (RFC 6761, 6.3)."""
    return name == "localhost" or (name.endswith(".localhost") and not name.startswith("*"))


def is_spelled_local(host: str) -> bool:
    """Whether a host is by its spelling alone one of this machine, or of no public network."""
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
    """What an address leads to: itself, and each address that is wrapped in it."""
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

    Nothing is sent: a datagram's socket only learns from where it would be sent, which is the
    same address where it would not leave the machine.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004  # IPv4
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), _DISCARD_PORT))
            return read_address(str(probe.getsockname()[0])) == address
    except OSError:
        return False  # no way leads there


async def look_up(host: str, port: int) -> list[Address]:
    """The addresses that a host leads to.

    Raises:
        OSError: No name server knows it.
    """
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

"""Which hosts a task's own row opens, and by which addresses they may be reached.

The browser of such a session asks its gate for everything, and the gate connects to the address
that was checked: a name that leads elsewhere by the time that it is connected to gains nothing.
"""

import ipaddress
from collections.abc import Iterable, Sequence

from hud_mcp.errors import EnvironmentFailed, InvalidEnvironment
from hud_mcp.sandbox.network import Address, HostList, split_host

__all__ = ["OpenedHosts"]

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class OpenedHosts(HostList):
    """The hosts of one session's row, beside those of its environment.

    Args:
        row: Patterns that the row opens.
        own: Patterns that the environment's author allows.
        is_trusted: Whether the row may name addresses of this machine and of private networks.
        local: Hosts that any row may name, wherever they lead; with a port or without.

    Raises:
        EnvironmentFailed: A pattern is none, or names a local address that it may not.
    """

    def __init__(
        self,
        row: Sequence[str],
        own: Iterable[str] = (),
        *,
        is_trusted: bool,
        local: Sequence[str] = (),
    ) -> None:
        try:
            super().__init__([*own, *row])
            self._own = HostList(own)
        except InvalidEnvironment as exc:
            text = str(exc).removeprefix("allow: ")
            raise EnvironmentFailed(f"The task's row cannot open hosts: {text}") from None
        self._is_trusted = is_trusted
        self._local = tuple(local)
        for pattern in row:
            host, port = split_host(pattern.strip().lower())
            if is_local(host) and not self._may_be_local(host, port):
                raise EnvironmentFailed(
                    f"The task's row opens {pattern}, an address of this machine or of a private "
                    "network, and the row is not the user's own. Start with --allow "
                    f"{pattern} if it may."
                )

    def allows(self, host: str, port: int, address: Address) -> bool:
        """Whether a host may be reached at an address that its name leads to."""
        wanted = self.matching(host, port)
        if wanted is None:
            return False
        if _is_public(address) or self._own.allows(host, port, address):
            return True
        return not wanted.startswith("*") and self._may_be_local(wanted, port)

    def _may_be_local(self, host: str, port: int | None) -> bool:
        if self._is_trusted:
            return True
        named = map(split_host, self._local)
        return any(host == name and only in (None, port) for name, only in named)


def is_local(host: str) -> bool:
    """Whether a host is by its name alone one of this machine, or of no public network."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not _is_public(ipaddress.ip_address(host))
    except ValueError:
        return False


def _is_public(address: Address) -> bool:
    """Whether an address is of the public internet, and so is every one that is wrapped in it."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64:
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address.ipv4_mapped is not None:
            return _is_public(address.ipv4_mapped)
        if not all(_is_public(each) for each in inner if each is not None):
            return False
    return address.is_global and not address.is_multicast

"""Which hosts the pages of a browser may reach.

This module owns the patterns of an allow-list and their translation into the rules
that Chromium enforces: what is not on the list goes to the session's gate, which
refuses it. See `gate.py`.
"""

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from hud_mcp.errors import InvalidEnvironment

__all__ = ["AllowList"]

_PATTERN = re.compile(
    r"^(\*|(\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(:\d{1,5})?$"
)
_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


class AllowList:
    """Host patterns, checked and normalised.

    Args:
        patterns: `example.com` is that host on any port, `*.example.com` every host
            below it, `example.com:443` one port, and `*` the public web: every host but
            this machine's loopback and link-local addresses, which must be named.

    Raises:
        InvalidEnvironment: Naming a pattern that is none of these.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        if isinstance(patterns, str):
            raise InvalidEnvironment(f"allow: expected a list of hosts; write [{patterns!r}].")
        self.patterns = tuple(_checked(p) for p in patterns)

    def __str__(self) -> str:
        return ", ".join(self.patterns) or "empty"

    def allows(self, url: str) -> bool:
        """Whether a page may reach an http, https, ws or wss URL.

        Unlike Chromium, this does not resolve names; it is for a clear refusal up front.
        """
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").lower().rstrip(".")
            port = parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            return False
        if parts.scheme not in _PORTS or not host:
            return False
        return any(_matches(pattern, host, port) for pattern in self.patterns)

    @property
    def bypass(self) -> str:
        """Chromium's proxy bypass list: what is on it is reached directly.

        Later rules win over earlier ones, so `<-loopback>` takes the machine itself
        away from `*`, and a loopback host that was named comes after it.
        Source: net/docs/proxy.md, "Proxy bypass rules".
        """
        local = [p for p in self.patterns if _is_local(_split(p)[0])]
        others = [p for p in self.patterns if p not in local]
        return ",".join([*others, "<-loopback>", *local])

    @property
    def resolver_rules(self) -> str | None:
        """Chromium's `--host-resolver-rules`, or None where any name may be looked up.

        The gate sees no name lookups; without these rules `<link rel=dns-prefetch>`
        would tell a name server which host a page had in mind.
        """
        hosts = [_split(p)[0] for p in self.patterns]
        if "*" in hosts:
            return None
        return ", ".join(["MAP * ~NOTFOUND", "EXCLUDE 127.0.0.1", *(f"EXCLUDE {h}" for h in hosts)])


def _checked(pattern: str) -> str:
    lower = pattern.strip().lower()
    if not _PATTERN.match(lower):
        raise InvalidEnvironment(
            f"allow: {pattern!r} is not a host. Write 'example.com', '*.example.com', "
            "'example.com:443' or '*', without a scheme and without a path."
        )
    return lower


def _split(pattern: str) -> tuple[str, int | None]:
    host, colon, port = pattern.rpartition(":")
    return (host, int(port)) if colon and port.isdigit() else (pattern, None)


def _matches(pattern: str, host: str, port: int | None) -> bool:
    wanted, wanted_port = _split(pattern)
    if wanted_port is not None and wanted_port != port:
        return False
    if wanted == "*":
        return not _is_local(host)
    if wanted.startswith("*."):
        return host.endswith(wanted[1:])
    return host == wanted.strip("[]")


def _is_local(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_loopback or address.is_link_local or address.is_unspecified

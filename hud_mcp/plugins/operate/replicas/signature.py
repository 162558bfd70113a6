"""The signature of a forwarded request, by which a replica knows another one.

It proves that a holder of the secret forwarded the request once, to this very process. The caller's
own credential goes along and is checked again, so a signature lets nobody be somebody else.
"""

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["FORWARDED", "Forged", "NotThisProcess", "Once", "Secret", "SentBefore"]

FORWARDED = "hud-mcp-forwarded"
"""The header of a request that another replica forwards."""

_VALID_S = 60.0
"""The most difference of two clocks, and the longest time of a request under way."""

_SIGNED = ("authorization", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name")


class Forged(Exception):
    """A request says that a replica forwarded it, and none has."""


class NotThisProcess(Exception):
    """A replica forwarded a request to another process, which was at this address before."""


class SentBefore(Exception):
    """This very request, with this very signature, has come before."""


class Once:
    """The requests that came while their signatures are valid: none is done twice."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}  # in the order they came

    def add(self, mac: str) -> None:
        """Note a signature.

        Raises:
            SentBefore: It is not the first time.
        """
        now_s = time.monotonic()
        while self._seen:
            oldest = next(iter(self._seen))
            if now_s - self._seen[oldest] <= 2 * _VALID_S:
                break
            del self._seen[oldest]
        if mac in self._seen:
            raise SentBefore
        self._seen[mac] = now_s


@dataclass(frozen=True)
class Secret:
    """The secret that the replicas of one server share."""

    key: bytes

    def sign(
        self, to: str, *, sender: str, method: str, headers: Mapping[str, str], body: bytes
    ) -> str:
        """Return the header's value of a request between processes, by their names in the store.

        The headers have lower-case names.
        """
        at, nonce = f"{time.time():.0f}", secrets.token_hex(8)
        mac = self._mac([to, sender, at, nonce, method], headers, body)
        return f"1 {to} {sender} {at} {nonce} {mac}"

    def check(
        self, value: str, to: str, *, method: str, headers: Mapping[str, str], body: bytes
    ) -> str:
        """Check that a replica forwarded a request to this process; return its signature.

        Raises:
            Forged: None did.
            NotThisProcess: One did, to another process.
        """
        parts = value.split(" ")
        if len(parts) != 6 or parts[0] != "1":  # noqa: PLR2004  # as `sign` writes it
            raise Forged
        _, named, sender, at, nonce, mac = parts
        wanted = self._mac([named, sender, at, nonce, method], headers, body)
        if not hmac.compare_digest(mac.encode(), wanted.encode()):
            raise Forged
        if not at.isascii() or not at.isdigit() or abs(time.time() - int(at)) > _VALID_S:
            raise Forged
        if named != to:
            raise NotThisProcess
        return mac

    def _mac(self, parts: list[str], headers: Mapping[str, str], body: bytes) -> str:
        said = [*parts, *(headers.get(name) for name in _SIGNED), hashlib.sha256(body).hexdigest()]
        text = "hud-mcp forward 1\0" + json.dumps(said)
        return hmac.new(self.key, text.encode(), hashlib.sha256).hexdigest()

"""Quotas: each principal's share of a store, over all of its servers."""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from hud_mcp.cli.tokens import QUOTA_NAMES
from hud_mcp.errors import HudMcpError, LimitReached, did_you_mean
from hud_mcp.plugins.operate import surfaces
from hud_mcp.session.caller import OPERATOR

if TYPE_CHECKING:
    from sqlalchemy import Connection

_MINUTE = timedelta(minutes=1)

_QUICK_S = 0.02
"""A sum that takes no longer is made anew for each start."""

_PATIENCE = 50
"""The sum of a slower one takes this part of the time at most."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The bounds of one principal; None for any amount.

    They hold for sessions that go on, starts in any minute, and stored bytes before one more start.
    """

    sessions: int | None = None
    starts_per_minute: int | None = None
    stored_bytes: int | None = None


NO_QUOTA = Quota()


@dataclass(frozen=True)
class Quotas:
    """The quotas of all principals of a server.

    Attributes:
        usual: The quota of unnamed principals. All callers without authentication are one.
        named: The quotas of some principals, in place of the usual one.
        exempt: Principals without bounds: the operator.
        living_s: A session that began longer ago has expired, whatever its record says.
    """

    usual: Quota = NO_QUOTA
    named: Mapping[str, Quota] = field(default_factory=dict[str, Quota])
    exempt: frozenset[str] = frozenset()
    living_s: float = 14_400.0
    _stored: dict[str | None, "Stored"] = field(default_factory=dict["str | None", "Stored"])

    def of(self, principal: str | None) -> Quota:
        """Return the quota of a principal."""
        if principal is None:
            return self.usual
        return NO_QUOTA if principal in self.exempt else self.named.get(principal, self.usual)

    def applies_to(self, principal: str | None) -> bool:
        """Whether anything is bounded for a principal."""
        return self.of(principal) != NO_QUOTA

    @staticmethod
    def lock_key(principal: str | None) -> str:
        """Return the name of the lock under which a principal's sessions are counted."""
        return f"quota {'' if principal is None else f'of {principal}'}"

    def check(self, connection: "Connection", principal: str | None, now: datetime) -> None:
        """Refuse a start that is more than a principal may have. Nothing is counted by that.

        In the connection's transaction nobody else starts a session of this principal.

        Raises:
            LimitReached: The text names the quota, its use, and the time to wait.
        """
        quota = self.of(principal)
        began_s = time.monotonic()
        known = self._stored.get(principal)
        if known is not None and began_s > known.until_s:
            known = None
        adds_up = quota.stored_bytes is not None and known is None
        living, earlier, stored = surfaces.count_used(
            connection,
            principal,
            since=now - timedelta(seconds=self.living_s),
            nth=max(1, quota.starts_per_minute or 1),
            adds_up=adds_up,
        )
        took_s = time.monotonic() - began_s
        if adds_up and took_s > _QUICK_S:
            self._stored[principal] = Stored(stored, began_s + (1 + _PATIENCE) * took_s)
        _compare(quota, living, earlier, stored if known is None else known.count, now)


@dataclass(frozen=True, slots=True)
class Stored:
    """A sum of stored bytes, which holds until a time."""

    count: int
    until_s: float


def _compare(
    quota: Quota, living: int, earlier: datetime | None, stored: int, now: datetime
) -> None:
    """Raise LimitReached for a start that is above a quota.

    `earlier` is the start of the session that came one minute's worth of starts ago; None if there
    were fewer.
    """
    if quota.stored_bytes is not None and stored >= quota.stored_bytes:
        raise LimitReached(
            f"Your records have {stored} bytes (the quota is {quota.stored_bytes}). Nothing was "
            "started; ask the operator of this server to prune some.",
            quota="stored_bytes",
        )
    if quota.sessions is not None and living >= quota.sessions:
        raise LimitReached(
            f"{living} of your sessions go on (the quota is {quota.sessions}, on all servers). "
            "Nothing was started; finish one with response, or end one with cancel_task.",
            quota="sessions",
        )
    if quota.starts_per_minute is None or earlier is None:
        return
    left = (earlier + _MINUTE - now).total_seconds()
    if left <= 0:
        return
    wait_s = min(60, max(1, -int(-left // 1)))
    raise LimitReached(
        f"You started {quota.starts_per_minute} sessions within a minute, which is the quota. "
        f"Nothing was started; call again in {wait_s} s.",
        quota="starts_per_minute",
        retry_after_s=wait_s,
    )


_UNITS: Final = {
    "": 1,
    **{name: 1000**power for power, name in enumerate(("b", "kb", "mb", "gb", "tb"))},
    **{name: 1024**power for power, name in enumerate(("kib", "mib", "gib", "tib"), start=1)},
}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)


def read_quotas(
    given: Iterable[str], named: Mapping[str, str], *, living_s: float
) -> Quotas | None:
    """Read the quotas of a server; None if it has none.

    Args:
        given: `NAME=VALUE` of everybody.
        named: The same of some principals, with spaces between several.
        living_s: The longest time of a session.

    Raises:
        HudMcpError: A name is unknown, or a value is no amount.
    """
    usual = Quota(**_read(given, where="--quota"))
    own = {
        principal: replace(usual, **_read(words.split(), where="--token-file"))
        for principal, words in named.items()
    }
    if usual == NO_QUOTA and not own:
        return None
    return Quotas(usual, own, exempt=frozenset({OPERATOR}), living_s=living_s)


def _read(given: Iterable[str], *, where: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or name not in QUOTA_NAMES:
            hint = did_you_mean(name, QUOTA_NAMES)
            raise HudMcpError(
                f"{where} {item}: write NAME=VALUE.{hint} The quotas are: {', '.join(QUOTA_NAMES)}."
            )
        found[name] = _amount(value, item=f"{where} {item}", is_size=name == "stored_bytes")
    return found


def _amount(value: str, *, item: str, is_size: bool) -> int:
    """Return an amount above 0; raise HudMcpError if it is none."""
    read = _SIZE.fullmatch(value.strip())
    unit = read[2].lower() if read else ""
    whole = is_size or (unit == "" and value.strip().isdigit())
    amount = int(float(read[1]) * _UNITS[unit]) if read and whole and unit in _UNITS else 0
    if amount < 1:
        example = "5GB or 500MiB" if is_size else "20"
        raise HudMcpError(f"{item}: {value!r} is no amount; write one such as {example}.")
    return amount

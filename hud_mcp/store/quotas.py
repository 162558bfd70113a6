"""How much of a store each principal may use at once, whichever servers it asks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

__all__ = ["NO_QUOTA", "Quota", "Quotas"]

_QUICK_S = 0.02
"""A sum that takes no longer is made anew for each start."""

_PATIENCE = 50
"""To make a slower one may take this part of the time at most."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What one principal may use; None for any amount.

    Attributes:
        sessions: How many sessions may go on at once.
        starts_per_minute: How many sessions may be started in any minute.
        stored_bytes: How many bytes its records may have before it starts one more session.
    """

    sessions: int | None = None
    starts_per_minute: int | None = None
    stored_bytes: int | None = None

    @property
    def is_none(self) -> bool:
        """Whether nothing is bounded."""
        return self == NO_QUOTA

    def with_changes(self, changes: Mapping[str, int]) -> "Quota":
        """The same with other amounts, by name."""
        return replace(self, **changes)


NO_QUOTA = Quota()


@dataclass(frozen=True)
class Quotas:
    """What each principal of a server may use.

    Attributes:
        usual: Of those that are not named. All callers without authentication are one.
        named: Of some principals, in place of it.
        exempt: Whose sessions are not bounded: the operator's.
        living_s: A session that began longer ago has expired, whatever its record says.
    """

    usual: Quota = NO_QUOTA
    named: Mapping[str, Quota] = field(default_factory=dict[str, Quota])
    exempt: frozenset[str] = frozenset()
    living_s: float = 14_400.0
    _stored: dict[str | None, "Stored"] = field(default_factory=dict["str | None", "Stored"])

    def of(self, principal: str | None) -> Quota:
        """What a principal may use."""
        if principal is None:
            return self.usual
        return NO_QUOTA if principal in self.exempt else self.named.get(principal, self.usual)

    def known_bytes(self, principal: str | None, now_s: float) -> int | None:
        """How many bytes a principal has stored, where that took long, a moment ago.

        Args:
            principal: Whose they are.
            now_s: By the clock of `time.monotonic`.
        """
        known = self._stored.get(principal)
        return None if known is None or now_s > known.until_s else known.count

    def learn_bytes(
        self, principal: str | None, count: int, *, now_s: float, took_s: float
    ) -> None:
        """Take note of how many bytes a principal has stored, if it took long to add them up."""
        if took_s > _QUICK_S:
            self._stored[principal] = Stored(count, now_s + _PATIENCE * took_s)


@dataclass(frozen=True, slots=True)
class Stored:
    """What was added up.

    Attributes:
        count: How many bytes.
        until_s: Until when that is taken for true.
    """

    count: int
    until_s: float

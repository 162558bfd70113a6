"""How many requests and tokens a minute may take, of all runs of a job together."""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

__all__ = ["Rates", "Ticket"]

_MINUTE_S = 60.0


@dataclass
class Ticket:
    """One request that was let through.

    Attributes:
        at_s: When, by the clock.
        tokens: How many it takes: a guess, until its reply says so.
    """

    at_s: float
    tokens: int

    def take(self, tokens: int) -> None:
        """Say how many it took."""
        self.tokens = tokens


class Rates:
    """Lets requests through, first come, first served; each minute, as many as it may.

    Args:
        rpm: Requests a minute; None for any number.
        tpm: Tokens a minute; None for any number.
        now: The clock, in seconds.
        pause: Waits for so many seconds.
    """

    def __init__(
        self,
        rpm: int | None = None,
        tpm: int | None = None,
        *,
        now: Callable[[], float] = anyio.current_time,
        pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._rpm = rpm
        self._tpm = tpm
        self._now = now
        self._pause = pause
        self._recent: deque[Ticket] = deque()
        self._turn = anyio.Lock()

    async def admit(self, tokens: int, check: Callable[[], None] = lambda: None) -> Ticket:
        """Wait until a request may be made.

        One of more tokens than a minute has is let through alone.

        Args:
            tokens: How many it is expected to take.
            check: Called once it may be made; what it raises is raised, and it is not counted.

        Returns:
            Its ticket, whose `tokens` is to be set to what it took.

        If this call is cancelled, no request is counted.
        """
        async with self._turn:
            while (wait_s := self._wait_s(tokens)) > 0:
                await self._pause(wait_s)
            check()
            ticket = Ticket(self._now(), tokens)
            self._recent.append(ticket)
            return ticket

    def _wait_s(self, tokens: int) -> float:
        """How long to wait before looking again; 0 where the request may be made now."""
        now = self._now()
        while self._recent and now - self._recent[0].at_s >= _MINUTE_S:
            self._recent.popleft()
        if not self._recent:
            return 0.0
        full = self._rpm is not None and len(self._recent) >= self._rpm
        if self._tpm is not None:
            full |= sum(ticket.tokens for ticket in self._recent) + tokens > self._tpm
        return max(0.001, self._recent[0].at_s + _MINUTE_S - now) if full else 0.0

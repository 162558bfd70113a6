"""The tries of a request to a provider, and the waits between them."""

import random
from collections import Counter

from hud_mcp.agents.agent import BoundReached, JobHalted, OperatorFailed
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.replies import Failure

__all__ = ["LEAST_TOKENS", "FirstRefusals", "OutputCap", "Tries"]

_TRIES = 8
"""The greatest number of tries of one request, over all ways to fail."""
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_LONGEST_ASKED_S = 300.0
"""A provider that asks to be left alone for longer than this has refused."""
LEAST_TOKENS = 1_024
"""A reply that may not have so many tokens is not asked for."""
_CAP_TOKENS, _LOWER = 32_000, 4
_REFUSALS = 3
"""The number of refusals in a row, before any reply, that every run would meet."""


class Tries:
    """The tries of one request so far."""

    def __init__(self) -> None:
        self._failed: Counter[Failure] = Counter()

    @property
    def count(self) -> int:
        """The number of tries that failed."""
        return self._failed.total()

    def wait_after(self, failure: Failure, asked_s: float | None) -> float | None:
        """Count a failure; return the seconds before another try, or None after the last one."""
        self._failed[failure] += 1
        if self._failed[failure] >= failure.tries or self.count >= _TRIES:
            return None
        if asked_s is not None:
            return asked_s if asked_s <= _LONGEST_ASKED_S else None
        wait_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** (self.count - 1))
        return wait_s * random.uniform(0.5, 1.0)  # noqa: S311  # so that runs do not come back at once

    def told(self, said: str) -> str:
        """Return what a provider said, and how often it was asked."""
        return f"{said} It was tried {self.count} times." if self.count > 1 else said


class OutputCap:
    """The cap of a job's replies, where a limit of cost needs one and nobody has given it.

    Attributes:
        most: The tokens that are tried first.
    """

    def __init__(self) -> None:
        self.most = _CAP_TOKENS

    def lower(self, cap: int, failure: Failure) -> int | None:
        """Return a cap that a model may allow where a larger one was refused, or None."""
        is_refused = failure in (Failure.FULL, Failure.REFUSED)
        return cap // _LOWER if is_refused and cap // _LOWER >= LEAST_TOKENS else None

    def worked(self, lowered: int | None) -> None:
        """Begin with a lowered cap from now on."""
        self.most = min(self.most, lowered or self.most)


class FirstRefusals:
    """The refusals of a job's requests until the first reply: every run may meet them."""

    def __init__(self) -> None:
        self._count = 0

    def heard(self) -> None:
        """Note a reply: what is refused now is refused for its own sake."""
        self._count = -1

    def end(self, failure: Failure, said: str) -> HudMcpError:
        """Return the error of a run whose request has failed for good, as a sentence says."""
        if failure is Failure.FULL:
            return BoundReached(f"as its context was full: {said.rstrip('.')}")
        if failure is Failure.MALFORMED:
            return BoundReached(f"as its server cannot read what it writes: {said.rstrip('.')}")
        if failure is Failure.EVERY_RUN:
            return JobHalted(f"{said} Correct that, then resume the job.")
        if failure is Failure.PASSING:
            return OperatorFailed(said)
        if self._count >= 0:
            self._count += 1
        if self._count >= _REFUSALS:
            return JobHalted(
                f"{said} So ended each of the first {self._count} requests. Correct that, then "
                "resume the job."
            )
        return OperatorFailed(said)

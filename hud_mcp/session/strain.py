"""What the machine's own load did to one session: how long it waited, what was refused for it."""

from collections.abc import Callable

from hud_mcp.contention import Contention

__all__ = ["Strain"]

_LEAST_S = 0.5
_LEAST_SHARE = 0.2
"""A call that is refused is laid to the load where it took so much of it, and so many seconds."""


class Strain:
    """What a session has suffered from the machine's load.

    Args:
        contention: What the machine takes.
        log: Takes a line for the session's log.
        mark: Takes how many calls were refused so far, for the session's record.
        earlier: How many were refused before, where another server began it.

    Attributes:
        refused: How many of its calls the overloaded machine refused.
    """

    def __init__(
        self,
        contention: Contention,
        log: Callable[[str], None],
        mark: Callable[[int], None],
        earlier: int,
    ) -> None:
        self.refused = earlier
        self._contention = contention
        self._log = log
        self._mark = mark
        self._began_s = contention.waited_s

    @property
    def waited_s(self) -> float:
        """Seconds that this server waited since the session began here, to a tenth."""
        return round(self._contention.waited_s - self._began_s, 1)

    def note_refusal(self, waited_s: float, took_s: float) -> None:
        """Take note of a call that was refused.

        Args:
            waited_s: How much of it the machine took.
            took_s: How long it took.
        """
        if waited_s >= max(_LEAST_S, _LEAST_SHARE * took_s):
            self.refused += 1
            self._mark(self.refused)
            load = f"which took {waited_s:.1f} of {took_s:.1f} s"
            self._log(f"refused while the machine was overloaded, {load}")

    def notes(self) -> tuple[str, ...]:
        """What a receipt says of it; nothing where nothing was refused."""
        if not self.refused:
            return ()
        calls = "1 call was" if self.refused == 1 else f"{self.refused} calls were"
        return (f"{calls} refused while the machine was overloaded.",)

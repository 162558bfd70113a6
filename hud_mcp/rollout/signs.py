"""Whether an agent's command works at all: one that dies before its first call says nothing.

A command that cannot even reach its task is its operator's to mend. It would fail every task of
a job alike, and each of those zeros would count.
"""

__all__ = ["FirstSigns"]

_ENOUGH = 3
"""Runs in a row from the first one on, that are no accident."""


class FirstSigns:
    """What is known of an agent's command from the first runs of a job.

    Attributes:
        alive: Whether a run of it has called a tool, or ended in order.
    """

    def __init__(self) -> None:
        self.alive = False
        self._deaths: list[str] = []
        self._halted: str | None = None

    def halt(self, reason: str) -> None:
        """Begin no other run, as it would end in the same way.

        Args:
            reason: Why, in a sentence or two.
        """
        self._halted = self._halted or f"The job was stopped. {reason}"

    def note(self, death: str | None, *, called: bool) -> bool:
        """Take note of a run that has come to its end.

        Args:
            death: How the command died; None where it did not.
            called: Whether it had called a tool: what has seen its task has ended its own run.

        Returns:
            Whether the end says nothing of the agent: it died, and no run of it has ever lived.
        """
        if death is None or called:
            self.alive = True
        if self.alive or death is None:
            return False
        self._deaths.append(death)
        return True

    @property
    def verdict(self) -> str | None:
        """Why no other run is begun; None as long as there is hope."""
        if self._halted is not None:
            return self._halted
        if self.alive or len(self._deaths) < _ENOUGH:
            return None
        return (
            f"The job was stopped: the agent's command died in each of its first "
            f"{len(self._deaths)} runs, before it called a tool. {self._deaths[-1]} Mend the "
            "command, then resume the job."
        )

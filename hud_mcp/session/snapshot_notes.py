"""Notes on the steps without a snapshot, whose loss a restart of the server would be.

They are recorded with the steps, so that they survive a restart, and stand in the receipt.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from hud_mcp.record.values import SNAPSHOT, TrajectoryStep

_MOST_NOTES = 10
_MOST_NAMED = 20
_MOST_CHARS = 300


class SnapshotNotes:
    """The notes on a session's snapshots."""

    __slots__ = ("_failed", "_left_out", "_more", "_of_step")

    def __init__(self, recorded: Iterable[TrajectoryStep] = ()) -> None:
        self._failed: dict[int, str] = {}
        self._left_out: list[str] = []
        self._more = 0
        self._of_step: dict[int, dict[str, Any]] = {}
        self.restore(recorded)

    def fail(self, after: int, why: str) -> None:
        """Note that no snapshot could be taken after a step."""
        self._failed[after] = why[:_MOST_CHARS]
        self._of_step[after] = {"failed": why[:_MOST_CHARS]}

    def leave_out(self, after: int, names: Sequence[str]) -> None:
        """Note the parts that a snapshot lacks, such as a socket, each with its reason."""
        self._failed.pop(after, None)
        kept = [name[:_MOST_CHARS] for name in names[:_MOST_NAMED]]
        self._of_step[after] = {"left_out": kept} if kept else {}
        self._take(kept)

    def of_step(self, index: int) -> Mapping[str, Any]:
        """Return the notes for a step's record, and forget them: it is recorded once."""
        return self._of_step.pop(index, {})

    def restore(self, steps: Iterable[TrajectoryStep]) -> None:
        """Read the notes of some recorded steps back."""
        for step in steps:
            said = step.info.get(SNAPSHOT)
            if not isinstance(said, dict):
                continue
            said = cast("dict[str, Any]", said)
            if isinstance(why := said.get("failed"), str):
                self._failed[step.index] = why
            if isinstance(names := said.get("left_out"), list):
                self._take([str(name) for name in cast("list[Any]", names)])

    def notes(self) -> tuple[str, ...]:
        """The receipt's notes, in a few lines."""
        found = [
            f"No snapshot could be taken after step {index}: {why} A restart of the server would "
            "have lost the session then."
            for index, why in sorted(self._failed.items())
        ]
        most = _MOST_NOTES - 2
        if len(found) > most:
            rest = len(found) - most
            found = [*found[:most], f"The same holds after {rest} more steps."]
        if self._left_out:
            more = f" and {self._more} more" if self._more else ""
            found.append(f"Snapshots were taken without {', '.join(self._left_out)}{more}.")
        return tuple(found)

    def _take(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self._left_out:
                continue
            if len(self._left_out) < _MOST_NOTES:
                self._left_out.append(name)
            else:
                self._more += 1


def snapshot_notes(steps: Iterable[TrajectoryStep]) -> tuple[str, ...]:
    """Return the receipt's notes on the snapshots of some recorded steps."""
    notes = SnapshotNotes()
    notes.restore(steps)
    return notes.notes()

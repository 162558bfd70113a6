"""What a session has not written yet: its steps, the lines of its log, its end.

A step is owed from the moment that it is numbered, so this also says how far the record goes.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from hud_mcp.record.trajectory import Receipt, TrajectoryStep, utc_now
from hud_mcp.session.deaths import trail
from hud_mcp.session.draft import Draft
from hud_mcp.session.durability import Durability
from hud_mcp.store import NewStep

__all__ = ["Owed"]


class Owed:
    """What is to be written of one session, in order. Nothing here waits.

    Args:
        recorded: The steps that the record has already.
        log_lines: How many lines of log are kept.
        lines: How many lines of log the record has already.
        durability: What is known of the session's snapshots, to be recorded with its steps.

    Attributes:
        steps: What is owed of them; they are taken from the front.
        count: How many steps there are, written or not.
        changed: How many there are up to the last one that may have changed the world.
        lines: What is owed of the log, each with its time.
        first_line: The number of the first of these lines.
        facts: What is owed of what decides how it goes on, by name.
        receipt: The end, where it is known and not written.
        deaths: The calls since the last step that stands, each of which met a dead world.
        snapshot_step: After which step the last snapshot was taken; None without one.
        is_behind: Whether something may have been done in the world that no step and no
            snapshot has.
    """

    def __init__(
        self,
        recorded: Sequence[TrajectoryStep] = (),
        *,
        log_lines: int,
        lines: int = 0,
        durability: Durability | None = None,
    ) -> None:
        self._room = max(0, log_lines - lines)
        self._durability = durability or Durability()
        self.steps: list[NewStep] = []
        self.lines: list[tuple[datetime, str]] = []
        self.first_line = lines
        self.facts: dict[str, bool | int] = {}
        self._has_ended = False
        self.receipt: Receipt | None = None
        self.count = len(recorded)
        self.changed = max((step.index + 1 for step in recorded if step.changes_world), default=0)
        self.deaths: list[TrajectoryStep] = trail(recorded)
        self.snapshot_step: int | None = None
        self.is_behind = False
        self._before = (self.changed, self.deaths, self.snapshot_step, self.is_behind)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to be written: no step, no line, no fact and no end."""
        return not (self.steps or self.has_words or self.receipt)

    @property
    def has_words(self) -> bool:
        """Whether lines of the log or facts are owed, which are written after the steps."""
        return bool(self.lines or self.facts)

    def notes(self) -> tuple[str, ...]:
        """What a receipt says of the session's snapshots."""
        return self._durability.notes()

    def add(self, draft: Draft) -> None:
        """Number a step, and owe it."""
        shot = draft.observation.image if draft.observation else None
        step = draft.step(self.count, self._durability.of_step(self.count))
        self.steps.append(NewStep(step, shot, draft.answers, draft.snapshot))
        self._before = (self.changed, self.deaths, self.snapshot_step, self.is_behind)
        self.deaths = [*self.deaths, step] if step.undone else []
        if step.changes_world:
            self.changed = step.index + 1
        if draft.snapshot is not None:
            self.snapshot_step = self.count
            self.is_behind = False
        self.count += 1

    def withdraw(self) -> None:
        """Take the last step back, if it is still owed: what it says was not done."""
        if self.steps:
            self.steps.pop()
            self.count -= 1
            self.changed, self.deaths, self.snapshot_step, self.is_behind = self._before

    def drop(self, count: int) -> None:
        """Forget the first steps: they are written."""
        del self.steps[:count]

    def log(self, line: str) -> None:
        """Owe a line of the log, while there is room."""
        if self._room > 0:
            self._room -= 1
            more = " … the log is full; later lines are dropped" if self._room == 0 else ""
            self.lines.append((utc_now(), line + more))

    def mark(self, facts: Mapping[str, bool | int]) -> None:
        """Owe facts, unless it has ended: nothing follows from them then."""
        if not self._has_ended:
            self.facts.update(facts)

    def drop_facts(self, written: Mapping[str, bool | int]) -> None:
        """Forget facts that are written, and have not changed meanwhile."""
        kept = {name: value for name, value in self.facts.items() if written.get(name) != value}
        self.facts = kept

    def drop_lines(self, count: int) -> None:
        """Forget the first lines: they are written."""
        del self.lines[:count]
        self.first_line += count

    def end(self, receipt: Receipt) -> None:
        """Owe the end."""
        self.receipt = receipt
        self._has_ended = True

    def drop_end(self) -> None:
        """Forget the end: it is written."""
        self.receipt = None

    def mark_snapshot(self, step: int | None) -> None:
        """Take up after which step a snapshot was taken that has all that was done."""
        self.snapshot_step = step

    def mark_behind(self, *, is_behind: bool) -> None:
        """Take up whether something is being done which no step and no snapshot has."""
        self.is_behind = is_behind

    def clear(self) -> None:
        """Owe nothing any more, and take no more lines: the record is another server's."""
        self.steps.clear()
        self.lines.clear()
        self.facts.clear()
        self._room = 0
        self.receipt = None

"""The changes of a session by its calls, made together with those of other sessions.

Each checks that its server still owns the session. It holds the session's row until the commit, so
that no other server takes it over. Changes of one kind are the rows of one statement. If that does
not change all rows, each change is made alone, and raises its own error.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from hud_mcp.base.lines import dump, storable, to_json
from hud_mcp.errors import IdTaken
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt, TrajectoryStep
from hud_mcp.store import sql
from hud_mcp.store.lease import Lease
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Screenshot

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hud_mcp.store.sql.statements import Driver, Statement, Statements, Values

    Made = list[tuple[Statement, Values]]


T = TypeVar("T")


class StartRule(Protocol):
    """A rule on the start of one more session, checked in the transaction that starts it."""

    def applies_to(self, principal: str | None) -> bool:
        """Whether the rule bounds a principal."""
        ...

    def lock_key(self, principal: str | None) -> str:
        """The key to lock while a start of a principal is checked."""
        ...

    def check(self, connection: "Connection", principal: str | None, now: datetime) -> None:
        """Refuse a start by LimitReached; nothing was written."""
        ...


class _NotAll(Exception):
    """Not all of several changes could be made."""


def _only(changes: Sequence[T]) -> T:
    """Return the one change that could not be made; `_NotAll` if each has to be made alone."""
    if len(changes) > 1:
        raise _NotAll
    return changes[0]


def make_changes(
    driver: "Driver", lease: Lease, changes: "Sequence[Change | Callable[[Connection], Any]]"
) -> list[Any]:
    """Make changes in one transaction, in order, and return the result of each.

    Raises:
        SessionTaken: Another server owns the session, or it has ended.
        StoreFailed: There is no such session.
    """
    results: list[Any] = [None] * len(changes)
    waiting: dict[type, list[int]] = {}

    def make_waiting() -> None:
        for kind in (NewSession, Progress, NewEnd):  # a session begins, goes on and ends
            if numbers := waiting.pop(kind, None):
                of_kind: list[Any] = [changes[number] for number in numbers]
                made = kind.make_all(driver, lease, of_kind)
                for number, result in zip(numbers, made, strict=True):
                    results[number] = result

    for i, change in enumerate(changes):
        if callable(change):
            make_waiting()
            results[i] = change(driver.connection)
        else:
            waiting.setdefault(type(change), []).append(i)
    make_waiting()
    return results


@dataclass(frozen=True, slots=True)
class NewSession:
    """The beginning of a session, as columns. Its result is the number of the start, from 1."""

    row: dict[str, Any]
    tries: int | None
    rule: StartRule | None = None

    @classmethod
    def of(
        cls,
        begun: Trajectory,
        tries: int | None,
        rule: StartRule | None = None,
        **given: str | bool | None,
    ) -> "NewSession":
        """Make the beginning of a session; `given` are the columns that no trajectory has."""
        row: dict[str, Any] = {
            "id": begun.id,
            "job_id": begun.job_id,
            "environment": begun.environment,
            "environment_version": begun.environment_version,
            "task": to_json(begun.task.model_dump(mode="json")),
            "context": to_json(begun.context),
            "seed": begun.seed,
            "prompt": None if begun.prompt is None else storable(begun.prompt),
            "record": "durable",
            "started_at": begun.started_at,
            **given,
        }
        applies = rule is not None and rule.applies_to(row["principal"])
        return cls(row, tries, rule if applies else None)

    @classmethod
    def make_all(cls, driver: "Driver", lease: Lease, changes: "Sequence[NewSession]") -> list[int]:
        """Make several beginnings; if one is refused, make none."""
        statements = driver.statements
        if statements.lock_start is not None:
            keys = {key for change in changes for key in change.locked}
            # Sorted, so that two servers lock in the same order and do not wait for each other.
            ordered = [{"start_key": key} for key in sorted(keys)]
            driver.run(statements.lock_start, ordered)
        lease.register(driver.connection)
        rows = [{**change.row, "owner": lease.server_id} for change in changes]
        insert = statements.insert_session
        try:
            if all(change.tries is None and change.rule is None for change in changes):
                return driver.fetch_each(insert, rows)
            found: list[int] = []
            for change, row in zip(changes, rows, strict=True):
                change.check(driver.connection)
                found += driver.fetch_each(insert, [row])
        except sql.IntegrityError as exc:
            if "secret" not in str(exc.orig):
                raise
            raise IdTaken("Another session has this id; nothing was recorded.") from exc
        else:
            return found

    def check(self, connection: "Connection") -> None:
        """Refuse the start if none is left, or if a quota is used up."""
        if self.tries is not None:
            sql.jobs.check_tries(connection, self.row["start_key"], self.tries)
        if self.rule is not None:
            self.rule.check(connection, self.row["principal"], self.row["started_at"])

    @property
    def size(self) -> int:
        """The written characters, without those that every session has."""
        return len(self.row["task"]) + len(self.row["prompt"] or "")

    def inline(self, statements: "Statements", server: str) -> "Made | None":
        """Return the statements for an event loop; None if the start needs a check before."""
        if self.tries is not None or self.rule is not None:
            return None
        return [(statements.insert_session, {**self.row, "owner": server})]

    @property
    def locked(self) -> set[str]:
        """The keys that no other change may count meanwhile."""
        mine: set[str] = {self.row["start_key"]}
        return mine if self.rule is None else mine | {self.rule.lock_key(self.row["principal"])}


@dataclass(frozen=True, slots=True)
class NewStep:
    """A step to write, with its picture, and the world's `snapshot` that replaces the last.

    With `is_same`, the stored snapshot is the world's after this step too.
    """

    step: TrajectoryStep
    screenshot: Screenshot | None = None
    answers: bool = False
    snapshot: bytes | None = None
    is_same: bool = False


_SAID_BYTES = 1024 * 1024
"""The most bytes before a session's row counts them. A killed server's last bytes count nowhere."""


@dataclass(slots=True)
class _Size:
    """The stored bytes of one session. A step that is written twice counts once."""

    steps: int = 0
    steps_bytes: int = 0
    state_bytes: int = 0
    said_bytes: int = 0


class Growth:
    """The stored bytes of this process's sessions; a picture counts for each step that has it.

    A count with each step would write the session's row anew each time. So the row counts with
    every mebibyte, at the session's end, and at its release.
    """

    def __init__(self) -> None:
        self._sizes: dict[str, _Size] = {}

    def take_over(self, session_id: str, stored_bytes: int) -> None:
        """Go on from the count in a session's row."""
        self._sizes[session_id] = _Size(steps_bytes=stored_bytes, said_bytes=stored_bytes)

    def count(self, session_id: str, new: NewStep, row_bytes: int) -> None:
        """Count a step with its picture, unless it is counted, and the state after it."""
        size = self._sizes.get(session_id) or self._sizes.setdefault(session_id, _Size())
        if new.step.index >= size.steps:
            size.steps = new.step.index + 1
            size.steps_bytes += row_bytes
            if new.screenshot is not None:
                size.steps_bytes += len(new.screenshot.data)
        if new.snapshot is not None:
            size.state_bytes = len(new.snapshot)

    def count_state(self, session_id: str, size_bytes: int) -> None:
        """Count the state of a world, in place of the one before."""
        self._sizes.setdefault(session_id, _Size()).state_bytes = size_bytes

    def is_due(self, session_id: str) -> bool:
        """Whether the next write has to carry the count."""
        size = self._sizes.get(session_id) or _Size()
        return size.steps_bytes + size.state_bytes - size.said_bytes >= _SAID_BYTES

    def said(self, session_id: str) -> int | None:
        """The count for a write that is made now; None if it need not carry one."""
        if not self.is_due(session_id):
            return None
        self._sizes[session_id].said_bytes = total = self.total(session_id)
        return total

    def total(self, session_id: str, *, with_state: bool = True) -> int:
        """The stored bytes of a session."""
        size = self._sizes.get(session_id, _Size())
        return size.steps_bytes + (size.state_bytes if with_state else 0)

    def forget(self, session_id: str) -> None:
        """Forget a session that has ended or was released."""
        self._sizes.pop(session_id, None)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a session: rows of steps, a snapshot after a step, and columns of its row.

    A `state` without data is the stored snapshot, after a later step.
    """

    session_id: str
    steps: "Sequence[Values]" = ()
    state: tuple[int, bytes | None] | None = None
    prompt: str | None = None
    answered_at: datetime | None = None
    stored_bytes: int | None = None
    size: int = 0

    @classmethod
    def of(cls, session_id: str, steps: Sequence[NewStep], growth: "Growth") -> "Progress":
        """Make the progress of steps, of which only the last answers; `growth` counts each once."""
        rows: list[Values] = []
        size = 0
        state: tuple[int, bytes | None] | None = None
        for new in steps:
            step = new.step
            finite = step.reward is None or math.isfinite(step.reward)
            text = dump(step, exclude_defaults=True, finite=finite)
            took_s = max(0.0, (step.ended_at - step.started_at).total_seconds())
            row = {"session_id": session_id, "step": step.index, "row": text, "took_s": took_s}
            rows.append(row)
            size += len(text)
            if new.snapshot is not None:
                state = (step.index, new.snapshot)
            elif new.is_same:
                state = (step.index, state[1] if state else None)
            growth.count(session_id, new, len(text))
        answered_at = steps[-1].step.ended_at if steps[-1].answers else None
        return cls(session_id, rows, state, answered_at=answered_at, size=size)

    def inline(self, statements: "Statements", server: str) -> "Made | None":
        """Return the statements for an event loop; None for a new snapshot."""
        moved = self.moved(server)
        if self.state is not None and not moved:
            return None
        made: Made = []
        for row in self.steps:
            made.append((statements.insert_step, {**row, "server": server}))
        made += [(statements.change, row) for row in self.changed(server)]
        return made + [(statements.move_snapshot, row) for row in moved]

    @classmethod
    def make_all(cls, driver: "Driver", lease: Lease, changes: "Sequence[Progress]") -> list[None]:
        """Make several progresses."""
        statements, server = driver.statements, lease.server_id
        steps = [{**row, "server": server} for each in changes for row in each.steps]
        added = driver.run(statements.insert_step, steps)
        if added != len(steps):
            alone = _only(changes)
            mine = {"session_id": alone.session_id, "server": server}
            if driver.fetch(statements.is_mine, mine) is None:
                raise sql.sessions.not_mine(driver.connection, alone.session_id)
            if not added:  # the steps are recorded already, with everything that belongs to them
                return [None]
        rest = (
            (statements.change, [row for each in changes for row in each.changed(server)]),
            (statements.put_snapshot, [row for each in changes for row in each.snapshot(server)]),
            (statements.move_snapshot, [row for each in changes for row in each.moved(server)]),
        )
        for statement, rows in rest:
            if driver.run(statement, rows) != len(rows):
                raise sql.sessions.not_mine(driver.connection, _only(changes).session_id)
        return [None] * len(changes)

    def changed(self, server: str) -> list[dict[str, Any]]:
        """The values that change the session's row, if anything changes."""
        if self.prompt is self.answered_at is self.stored_bytes is None:
            return []
        return [
            {
                "session_id": self.session_id,
                "server": server,
                "prompt": self.prompt,
                "answered_at": self.answered_at,
                "stored_bytes": self.stored_bytes,
            }
        ]

    def snapshot(self, server: str) -> list[dict[str, Any]]:
        """The values that replace the snapshot, if there is another."""
        step, data = self.state or (0, None)
        if data is None:
            return []
        return [{"session_id": self.session_id, "server": server, "step": step, "data": data}]

    def moved(self, server: str) -> list[dict[str, Any]]:
        """The values that move the stored snapshot to a later step, if it is the same."""
        if self.state is None or self.state[1] is not None:
            return []
        return [{"session_id": self.session_id, "server": server, "step": self.state[0]}]


@dataclass(frozen=True, slots=True)
class NewEnd:
    """The end of a session. Its result is the receipt that stands: a recorded end stays."""

    session_id: str
    receipt: Receipt
    stored_bytes: int

    size: ClassVar[int] = 0

    def inline(self, statements: "Statements", server: str) -> None:
        """Return None, because an end waits for the disk."""

    @classmethod
    def make_all(cls, driver: "Driver", lease: Lease, changes: "Sequence[NewEnd]") -> list[Receipt]:
        """Make several ends."""
        rows = [each.values(lease.server_id) for each in changes]
        if driver.run(driver.statements.end, rows) != len(rows):
            return [_only(changes).standing(driver.connection)]
        ungraded = [
            {"session_id": each.session_id}
            for each in changes
            if each.receipt.outcome is not Outcome.GRADED
        ]
        driver.run(driver.statements.delete_snapshot, ungraded)
        return [each.receipt for each in changes]

    def values(self, server: str) -> dict[str, Any]:
        """The values of the statement."""
        return {
            "session_id": self.session_id,
            "server": server,
            "receipt": dump(self.receipt),
            "ended_at": self.receipt.ended_at,
            "stored_bytes": self.stored_bytes,
        }

    def standing(self, connection: "Connection") -> Receipt:
        """Return the recorded receipt.

        Raises:
            SessionTaken: The session has not ended; another server owns it.
            StoreFailed: There is no such session, or its receipt is damaged.
        """
        row = sql.reading.session_row(connection, self.session_id)
        if row is None or row.ended_at is None:
            raise sql.sessions.not_mine(connection, self.session_id)
        return sql.reading.read_receipt(row) or self.receipt


Change = NewSession | Progress | NewEnd

"""What every call changes of a session, made together with what other sessions' calls change.

Each checks that its server still owns the session, and holds the session's row meanwhile, so
that no other server takes it over between the check and the commit. Changes of one kind go to the
driver as many rows of one statement; where that does not change all of them, each is made alone,
and says why it cannot be.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from hud_mcp.errors import IdTaken
from hud_mcp.grade import Outcome
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt, TrajectoryStep
from hud_mcp.store import sql
from hud_mcp.store.characters import storable
from hud_mcp.store.json_text import dump, to_json
from hud_mcp.store.lease import Lease
from hud_mcp.store.new_step import NewStep

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hud_mcp.store.sql.statements import Driver

__all__ = [
    "Change",
    "NewEnd",
    "NewPrompt",
    "NewSession",
    "NewSteps",
    "StartRule",
    "StepRow",
    "commit_batch",
]


class StartRule(Protocol):
    """A rule of who may start one more session, asked in the transaction that starts it."""

    def applies_to(self, principal: str | None) -> bool:
        """Whether the rule bounds a principal."""
        ...

    def lock_key(self, principal: str | None) -> str:
        """What is locked while a start of a principal is checked."""
        ...

    def check(self, connection: "Connection", principal: str | None, now: datetime) -> None:
        """Refuse a start.

        Raises:
            LimitReached: The principal may not start one more. Nothing was written.
        """
        ...


class _NotAll(Exception):
    """Of many rows, not all were changed."""


class Change(Protocol):
    """A change that is made of many sessions at once.

    Attributes:
        order: When it is made among those of other kinds: a session begins, then steps, then ends.
    """

    order: ClassVar[int]

    def make(self, driver: "Driver", lease: Lease) -> Any:
        """Make it alone, and return what its caller is given.

        Raises:
            SessionTaken: Another server owns the session, or it has ended.
            StoreFailed: There is no such session.
        """
        ...

    @classmethod
    def make_all(cls, driver: "Driver", lease: Lease, changes: Sequence[Any]) -> list[Any]:
        """Make many, and return what each one's caller is given."""
        ...


def commit_batch(
    driver: "Driver", lease: Lease, changes: "Sequence[Change | Callable[[Connection], Any]]"
) -> list[Any]:
    """Make changes in one transaction; return what each one's caller is given.

    What is not one of many keeps its place among those before it and after it.
    """
    results: list[Any] = [None] * len(changes)
    waiting: list[tuple[int, Change]] = []

    def make_waiting() -> None:
        waiting.sort(key=lambda each: each[1].order)
        for _, same in groupby(waiting, key=lambda each: each[1].order):
            numbers, of_kind = zip(*same, strict=True)
            made = of_kind[0].make_all(driver, lease, of_kind)
            for number, result in zip(numbers, made, strict=True):
                results[number] = result
        waiting.clear()

    for i, change in enumerate(changes):
        if callable(change):
            make_waiting()
            results[i] = change(driver.connection)
        else:
            waiting.append((i, change))
    make_waiting()
    return results


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session begins. Its caller is given the number of its start, from 1.

    Attributes:
        row: Its columns, without its owner.
        tries: How many starts there may be; None for any number.
        rule: What the principal's starts keep to; None if there is no such rule.
    """

    order: ClassVar[int] = 0
    row: dict[str, Any]
    tries: int | None
    rule: StartRule | None = None

    @classmethod
    def of(
        cls,
        begun: Trajectory,
        tries: int | None,
        rule: StartRule | None = None,
        **given: str | None,
    ) -> "NewSession":
        """The beginning of a session, of which nothing else has come yet.

        Args:
            begun: What is known of it.
            tries: How many starts there may be.
            rule: What starts keep to, if it applies to the principal.
            given: The columns that are no part of a trajectory.
        """
        row = {
            "id": begun.id,
            "job_id": begun.job_id,
            "environment": begun.environment,
            "environment_version": begun.environment_version,
            "task": to_json(begun.task.model_dump(mode="json")),
            "context": to_json(begun.context),
            "seed": begun.seed,
            "prompt": None if begun.prompt is None else storable(begun.prompt),
            "started_at": begun.started_at,
            **dict.fromkeys(("unflushed", "answered_at", "released_at", "receipt", "ended_at")),
            **given,
        }
        applies = rule is not None and rule.applies_to(given.get("principal"))
        return cls(row, tries, rule if applies else None)

    def make(self, driver: "Driver", lease: Lease) -> int:
        """Make it alone.

        Raises:
            IdTaken: Another session has its id.
            LimitReached: There are as many starts as there may be, or a quota is used up.
        """
        return self.make_all(driver, lease, [self])[0]

    @classmethod
    def make_all(cls, driver: "Driver", lease: Lease, changes: "Sequence[NewSession]") -> list[int]:
        """Make many."""
        statements = driver.statements
        if statements.lock_starts is not None:
            keys = {key for change in changes for key in change.locked}
            ordered = [{"start_key": key} for key in sorted(keys)]  # two servers' alike
            driver.run_many(statements.lock_starts, ordered)
        lease.register(driver.connection)
        found: list[int] = []
        try:
            if all(change.tries is None and change.rule is None for change in changes):
                rows = [change.owned_by(lease) for change in changes]
                return driver.fetch_many(statements.insert_session, rows)
            for change in changes:
                if change.tries is not None:
                    key = change.row["start_key"]
                    sql.plans.check_tries(driver.connection, key, change.tries)
                if change.rule is not None:
                    whose, began = change.row["principal"], change.row["started_at"]
                    change.rule.check(driver.connection, whose, began)
                rows = [change.owned_by(lease)]
                found += driver.fetch_many(statements.insert_session, rows)
        except sql.IntegrityError as exc:
            if "secret" not in str(exc.orig):
                raise
            raise IdTaken("Another session has this id; nothing was recorded.") from exc
        return found

    @property
    def locked(self) -> set[str]:
        """What nobody else may count meanwhile."""
        mine: set[str] = {self.row["start_key"]}
        return mine if self.rule is None else mine | {self.rule.lock_key(self.row["principal"])}

    def owned_by(self, lease: Lease) -> dict[str, Any]:
        """What its statement is given."""
        return {**self.row, "owner": lease.server_id, "of_start_key": self.row["start_key"]}


@dataclass(frozen=True, slots=True)
class NewPrompt:
    """What a session asks becomes known."""

    order: ClassVar[int] = 1
    session_id: str
    prompt: str

    def make(self, driver: "Driver", lease: Lease) -> None:
        """Make it alone."""
        if driver.run(driver.statements.set_prompt, self.values(lease)) != 1:
            raise sql.writing.not_mine(driver.connection, self.session_id)

    @classmethod
    def make_all(cls, driver: "Driver", lease: Lease, changes: "Sequence[NewPrompt]") -> list[None]:
        """Make many."""
        _all(driver, driver.statements.set_prompt, [each.values(lease) for each in changes])
        return [None] * len(changes)

    def values(self, lease: Lease) -> dict[str, Any]:
        """What its statement is given."""
        return {
            "session_id": self.session_id,
            "server": lease.server_id,
            "new_prompt": self.prompt,
        }


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step as its row has it.

    Attributes:
        index: Its number.
        text: The step, as JSON.
        took_s: How long it took.
        snapshot: The world's state after it, or None.
    """

    index: int
    text: str
    took_s: float
    snapshot: bytes | None = None

    @classmethod
    def of(cls, step: TrajectoryStep, snapshot: bytes | None = None) -> "StepRow":
        """The row of a step."""
        finite = step.reward is None or math.isfinite(step.reward)
        text = dump(step, exclude_defaults=True, finite=finite)
        took_s = max(0.0, (step.ended_at - step.started_at).total_seconds())
        return cls(step.index, text, took_s, snapshot)

    def values(self, session_id: str, server: str) -> dict[str, Any]:
        """What the statement that adds it is given."""
        return {
            "session_id": session_id,
            "server": server,
            "step": self.index,
            "row": self.text,
            "took_s": self.took_s,
        }


@dataclass(frozen=True, slots=True)
class NewSteps:
    """Steps of one session, in order. One that is there already under its number stays as it is.

    Attributes:
        session_id: The session.
        rows: The steps.
        answered_at: When the last one answered; None where it does not.
        grown_bytes: How much the session has stored that its row does not say yet; 0 to say it
            later.
    """

    order: ClassVar[int] = 2
    session_id: str
    rows: Sequence[StepRow]
    answered_at: datetime | None = None
    grown_bytes: int = 0

    @classmethod
    def of(cls, session_id: str, steps: Sequence[NewStep]) -> "NewSteps":
        """The change that adds some steps; only the last may answer."""
        last = steps[-1]
        return cls(
            session_id,
            [StepRow.of(new.step, new.snapshot) for new in steps],
            answered_at=last.step.ended_at if last.answers else None,
        )

    def make(self, driver: "Driver", lease: Lease) -> None:
        """Make it alone."""
        statements = driver.statements
        added = [driver.run(statements.insert_step, row) == 1 for row in self.steps(lease)]
        if not all(added):
            mine = {"session_id": self.session_id, "server": lease.server_id}
            if driver.fetch(statements.is_mine, mine) is None:
                raise sql.writing.not_mine(driver.connection, self.session_id)
        if added[-1]:
            self._make_rest(driver, lease, [self])

    @classmethod
    def make_all(cls, driver: "Driver", lease: Lease, changes: "Sequence[NewSteps]") -> list[None]:
        """Make many."""
        steps = [row for change in changes for row in change.steps(lease)]
        _all(driver, driver.statements.insert_step, steps)
        cls._make_rest(driver, lease, changes)
        return [None] * len(changes)

    @classmethod
    def _make_rest(cls, driver: "Driver", lease: Lease, changes: "Sequence[NewSteps]") -> None:
        """Write what belongs to the steps that were added."""
        statements = driver.statements
        answers = [each.answer(lease) for each in changes if each.answered_at is not None]
        _all(driver, statements.set_answered, answers)
        grown = [each.growth(lease) for each in changes if each.grown_bytes]
        driver.run_many(statements.add_bytes, grown)
        snapshots = [found for each in changes for found in each.state()]
        driver.run_many(statements.put_snapshot, snapshots)

    def steps(self, lease: Lease) -> list[dict[str, Any]]:
        """What the statement that adds a step is given, for each."""
        return [row.values(self.session_id, lease.server_id) for row in self.rows]

    def answer(self, lease: Lease) -> dict[str, Any]:
        """What the statement is given that says when the session was answered."""
        return {
            "session_id": self.session_id,
            "server": lease.server_id,
            "new_answered_at": self.answered_at,
            "new_unflushed": False,  # its steps are written with it
        }

    def growth(self, lease: Lease) -> dict[str, Any]:
        """What the statement is given that says how much more the session has stored."""
        mine = {"session_id": self.session_id, "server": lease.server_id}
        return {**mine, "new_stored_bytes": self.grown_bytes}

    def state(self) -> list[dict[str, Any]]:
        """The last state of the world that is kept of them, if any is."""
        kept = [row for row in self.rows if row.snapshot is not None][-1:]
        return [
            {"session_id": self.session_id, "step": row.index, "data": row.snapshot} for row in kept
        ]


@dataclass(frozen=True, slots=True)
class NewEnd:
    """A session ends. Its caller is given the receipt that stands: an end that is there stays."""

    order: ClassVar[int] = 3
    session_id: str
    receipt: Receipt
    text: str
    grown_bytes: int = 0

    @classmethod
    def of(cls, session_id: str, receipt: Receipt, *, grown_bytes: int = 0) -> "NewEnd":
        """The end that a receipt says, and how much was stored that its row does not say yet."""
        return cls(session_id, receipt, dump(receipt), grown_bytes)

    def make(self, driver: "Driver", lease: Lease) -> Receipt:
        """Make it alone.

        Raises:
            StoreFailed: Also where the receipt that is there is damaged.
        """
        if driver.run(driver.statements.set_ended, self.values(lease)) != 1:
            row = sql.reading.session_row(driver.connection, self.session_id)
            if row is not None and row.ended_at is not None:
                return sql.reading.read_receipt(row) or self.receipt
            raise sql.writing.not_mine(driver.connection, self.session_id)
        self._delete_snapshots(driver, [self])
        return self.receipt

    @classmethod
    def make_all(cls, driver: "Driver", lease: Lease, changes: "Sequence[NewEnd]") -> list[Receipt]:
        """Make many."""
        _all(driver, driver.statements.set_ended, [each.values(lease) for each in changes])
        cls._delete_snapshots(driver, changes)
        return [each.receipt for each in changes]

    @staticmethod
    def _delete_snapshots(driver: "Driver", changes: "Sequence[NewEnd]") -> None:
        """Remove what nothing needs any more; what was answered can be graded again."""
        ungraded = [each for each in changes if each.receipt.outcome is not Outcome.GRADED]
        of = [{"session_id": each.session_id} for each in ungraded]
        driver.run_many(driver.statements.delete_snapshot, of)

    def values(self, lease: Lease) -> dict[str, Any]:
        """What its statement is given."""
        return {
            "session_id": self.session_id,
            "server": lease.server_id,
            "new_receipt": self.text,
            "new_ended_at": self.receipt.ended_at,
            "new_stored_bytes": self.grown_bytes,
        }


def _all(driver: "Driver", statement: Any, rows: Sequence[dict[str, Any]]) -> None:
    """Change a row for each of some values.

    Raises:
        _NotAll: Not every one was there to be changed.
    """
    if rows and driver.run_many(statement, rows) != len(rows):
        raise _NotAll

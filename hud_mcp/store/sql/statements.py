"""The statements that every call makes, as a database's driver takes them.

Each is compiled once from the schema's tables and goes to the driver as a constant text, which
that prepares. SQLAlchemy adds as much again to a statement as SQLite takes to run it. Importing
this loads SQLAlchemy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

from sqlalchemy import (
    Connection,
    Dialect,
    bindparam,
    exists,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.dml import Insert, Update
from sqlalchemy.sql.elements import ClauseElement, ColumnElement
from sqlalchemy.types import TypeEngine

from hud_mcp.store.sql.columns import Json
from hud_mcp.store.sql.schema import sessions, snapshots, steps
from hud_mcp.store.stored_session import SessionFacts

__all__ = ["Driver", "Statement", "Statements"]

Values = Mapping[str, Any]
Kind = TypeEngine[Any]
Given = Mapping[str, ColumnElement[Any]]
Make = Callable[[Given], ClauseElement]


class Statement:
    """One statement as a driver takes it.

    Args:
        clause: What it says of the schema's tables.
        dialect: Of the database.
        columns: Those that an insert fills from its values, by name.

    Attributes:
        text: What the driver is given; always the same, so that it is prepared.
    """

    def __init__(
        self, clause: ClauseElement, dialect: Dialect, columns: Sequence[str] | None = None
    ) -> None:
        options: dict[str, Any] = {} if columns is None else {"column_keys": list(columns)}
        compiled: Any = clause.compile(dialect=dialect, **options)
        self.text: str = compiled.string
        self._places: list[str] | None = compiled.positiontup
        self._fixed: dict[str, Any] = {}
        self._binders: list[tuple[str, Callable[[Any], Any] | None]] = []
        for name, bind in compiled.binds.items():
            if bind.required:
                self._binders.append((name, _binder(bind.type, dialect)))
            else:
                self._fixed[name] = bind.value

    def bind(self, values: Values) -> Any:
        """Values as the driver takes them; those of columns of JSON are JSON already.

        Raises:
            KeyError: One is missing.
        """
        bound = dict(self._fixed)
        for name, convert in self._binders:
            value = values[name]
            bound[name] = value if convert is None or value is None else convert(value)
        return bound if self._places is None else tuple([bound[name] for name in self._places])


def _binder(kind: Any, dialect: Dialect) -> Callable[[Any], Any] | None:
    """How a value of a column's type is given to the driver; None for as it is."""
    if isinstance(kind, Json):
        return None
    return kind.dialect_impl(dialect).bind_processor(dialect)


class Statements:
    """Those of one database's dialect.

    Attributes:
        lock_starts: Lets nobody else number a start of this key; None where nobody can.
        insert_session: Adds a session with the number of its start, which it returns.
        insert_step: Adds a step to a session that goes on and is this server's.
        is_mine: Whether a session goes on and is this server's.
        set_prompt, set_answered, set_ended, add_bytes: Change such a session.
        put_snapshot: Adds or replaces a session's snapshot.
        delete_snapshot: Removes it, where the session was not answered.
    """

    def __init__(self, dialect: Dialect) -> None:
        is_postgresql = dialect.name == "postgresql"

        def statement(make: Make, *names: str) -> Statement:
            kinds = {name: _KINDS[name] for name in ("session_id", "server", *names)}
            given = {name: bindparam(name, type_=kind) for name, kind in kinds.items()}
            return Statement(make(given), dialect)

        begun = [column.name for column in sessions.c if column.name not in _LATER]
        self.lock_starts = Statement(_lock_starts(), dialect) if is_postgresql else None
        self.insert_session = Statement(_insert_session(), dialect, begun)
        self.insert_step = statement(_insert_step, "step", "row", "took_s")
        self.is_mine = statement(lambda given: select(sessions.c.id).where(*_mine(given)))
        self.set_prompt = statement(_change("prompt"), "new_prompt")
        answered = _change("answered_at", "unflushed")
        self.set_answered = statement(answered, "new_answered_at", "new_unflushed")
        ended = _change("receipt", "ended_at", adds=("stored_bytes",))
        self.set_ended = statement(ended, "new_receipt", "new_ended_at", "new_stored_bytes")
        self.add_bytes = statement(_change(adds=("stored_bytes",)), "new_stored_bytes")
        make = postgresql.insert if is_postgresql else sqlite.insert
        columns = [column.name for column in snapshots.c]
        self.put_snapshot = Statement(_put_snapshot(make(snapshots)), dialect, columns)
        self.delete_snapshot = Statement(_delete_snapshot(), dialect)


_KINDS: dict[str, Kind] = {
    "session_id": sessions.c.id.type,
    "server": sessions.c.owner.type,
    "step": steps.c.step.type,
    "row": steps.c.row.type,
    "took_s": steps.c.took_s.type,
    **{f"new_{column.name}": column.type for column in sessions.c},
}
"""What a statement's values are, by their names."""


_LATER = frozenset(
    {"attempt", "stored_bytes", "pruned", "pruned_steps", "erased"}
    | {field.name for field in fields(SessionFacts)}
)
"""What of a session's row is not told as it begins."""


def _mine(given: Given) -> tuple[ColumnElement[bool], ...]:
    """That a session goes on and is this server's."""
    return (
        sessions.c.id == given["session_id"],
        sessions.c.owner == given["server"],
        sessions.c.ended_at.is_(None),
    )


def _lock_starts() -> ClauseElement:
    key = bindparam("start_key", type_=sessions.c.start_key.type)
    return select(func.pg_advisory_xact_lock(func.hashtextextended(key, 0)))


def _insert_session() -> Insert:
    """What adds a session's row with the number of its start, one more than the newest has."""
    before = sessions.alias("before")
    number = select(func.coalesce(func.max(before.c.attempt), 0) + 1).where(
        before.c.start_key == bindparam("of_start_key", type_=sessions.c.start_key.type)
    )
    insert = sessions.insert().values(attempt=number.scalar_subquery())
    return insert.returning(sessions.c.attempt)


def _insert_step(given: Given) -> Insert:
    """What adds a step that is not there to a session; it holds the session's row meanwhile."""
    session, index = given["session_id"], given["step"]
    there = exists().where(steps.c.session_id == session, steps.c.step == index)
    values = select(session, index, given["row"], given["took_s"]).select_from(sessions)
    return steps.insert().from_select(
        ["session_id", "step", "row", "took_s"],
        values.where(*_mine(given), ~there).with_for_update(key_share=True),
    )


def _change(*columns: str, adds: Sequence[str] = ()) -> Make:
    """What changes columns of a session, and adds to others."""

    def make(given: Given) -> Update:
        values = {name: given[f"new_{name}"] for name in columns}
        for name in adds:
            values[name] = (
                func.coalesce(sessions.c[name], literal_column("0")) + given[f"new_{name}"]
            )
        return sessions.update().where(*_mine(given)).values(values)

    return make


def _put_snapshot(insert: Any) -> ClauseElement:
    new = {"step": insert.excluded.step, "data": insert.excluded.data}
    return insert.on_conflict_do_update(index_elements=[snapshots.c.session_id], set_=new)


def _delete_snapshot() -> ClauseElement:
    """What removes a session's snapshot; what was answered can be graded again."""
    session = bindparam("session_id", type_=sessions.c.id.type)
    unanswered = exists().where(sessions.c.id == session, sessions.c.answered_at.is_(None))
    return snapshots.delete().where(snapshots.c.session_id == session, unanswered)


class Driver:
    """A connection's driver, in the transaction that SQLAlchemy has begun on it.

    Args:
        connection: Whose it is. What the driver raises is raised as SQLAlchemy would.
        statements: Of its dialect.
    """

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self.connection = connection
        self.statements = statements
        self._dialect = connection.dialect
        self._cursor: Any = connection.connection.cursor()
        self._pipes = self._dialect.driver == "psycopg"

    def begin_write(self) -> None:
        """Take SQLite's lock now, and not between two statements; others begin by themselves."""
        if self._dialect.name != "sqlite":
            return
        begin = "BEGIN IMMEDIATE"
        try:
            self._cursor.execute(begin)
        except Exception as exc:
            raise self._named(exc, begin) from exc

    def run(self, statement: Statement, values: Values) -> int:
        """Execute a statement; return how many rows it changed or found."""
        bound = statement.bind(values)
        try:
            if self._pipes:
                self._cursor.execute(statement.text, bound, prepare=True)
            else:
                self._cursor.execute(statement.text, bound)
        except Exception as exc:
            raise self._named(exc, statement.text) from exc
        return self._cursor.rowcount

    def fetch(self, statement: Statement, values: Values) -> tuple[Any, ...] | None:
        """Execute a statement; return the first row of what it gives, or None."""
        self.run(statement, values)
        return self._cursor.fetchone()

    def run_many(self, statement: Statement, rows: Sequence[Values]) -> int:
        """Execute a statement for each of some rows; return how many rows that changed in all."""
        if not rows:
            return 0
        try:
            self._cursor.executemany(statement.text, [statement.bind(each) for each in rows])
        except Exception as exc:
            raise self._named(exc, statement.text) from exc
        return self._cursor.rowcount

    def fetch_many(self, statement: Statement, rows: Sequence[Values]) -> list[Any]:
        """Execute a statement that gives one value for each of some rows; return the values."""
        if not self._pipes:
            return [(self.fetch(statement, values) or (None,))[0] for values in rows]
        bound = [statement.bind(values) for values in rows]
        found: list[Any] = []
        try:
            self._cursor.executemany(statement.text, bound, returning=True)
            while len(found) < len(rows):
                found.append(self._cursor.fetchone()[0])
                self._cursor.nextset()
        except Exception as exc:
            raise self._named(exc, statement.text) from exc
        return found

    def close(self) -> None:
        """Give the cursor back."""
        self._cursor.close()

    def _named(self, error: Exception, text: str) -> BaseException:
        """An error of the driver as SQLAlchemy names it; a connection that is gone is let go of."""
        driver: Any = self._dialect.loaded_dbapi
        if not isinstance(error, driver.Error):
            return error
        is_gone = self._dialect.is_disconnect(
            cast("Any", error), self._cursor.connection, self._cursor
        )
        if is_gone:
            self.connection.invalidate(error)
        return DBAPIError.instance(
            text,
            None,
            error,
            driver.Error,
            hide_parameters=True,
            connection_invalidated=is_gone,
            dialect=self._dialect,
        )

"""The statements of every call, and the two ways to a database's driver.

Each goes to the driver as a constant text, which the driver prepares. SQLAlchemy would double the
time that SQLite takes for a statement. Importing this loads SQLAlchemy.
"""

import os
import re
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, cast

from sqlalchemy import Connection, Dialect, Engine, bindparam, text
from sqlalchemy.exc import DBAPIError

from hud_mcp.base.lines import printable
from hud_mcp.store.sql.schema import Id, Json, sessions, snapshots, steps

Values = Mapping[str, Any]

_BEGUN = (
    "id", "secret_digest", "job_id", "principal", "token_digest", "environment",
    "environment_version", "environment_digest", "task", "context", "seed", "prompt",
    "reward_policy", "start_key", "record", "unflushed", "live_token", "owner", "started_at",
)  # fmt: skip
"""The columns of a session's row that are known at its beginning."""

_KINDS: dict[str, Any] = {
    **{column.name: column.type for column in sessions.c},
    "session_id": sessions.c.id.type,
    "server": sessions.c.owner.type,
    "step": steps.c.step.type,
    "row": steps.c.row.type,
    "took_s": steps.c.took_s.type,
    "data": snapshots.c.data.type,
}
"""The values of a statement, by name."""

_LOCK_START = "SELECT pg_advisory_xact_lock(hashtextextended(:start_key, 0))"
_INSERT_SESSION = """
INSERT INTO sessions ({names}, attempt)
VALUES ({values},
        (SELECT coalesce(max(attempt), 0) + 1 FROM sessions WHERE start_key = :start_key))
RETURNING attempt"""
_IS_MINE = """
SELECT id FROM sessions WHERE id = :session_id AND owner = :server AND ended_at IS NULL"""
_INSERT_STEP = """
INSERT INTO steps (session_id, step, row, took_s)
SELECT :session_id, :step, :row, :took_s FROM sessions
WHERE id = :session_id AND owner = :server AND ended_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM steps WHERE session_id = :session_id AND step = :step){hold}"""
_CHANGE = """
UPDATE sessions SET
  prompt = coalesce(:prompt, prompt),
  answered_at = coalesce(:answered_at, answered_at),
  unflushed = CASE WHEN :answered_at IS NULL THEN unflushed ELSE false END,
  stored_bytes = coalesce(:stored_bytes, stored_bytes)
WHERE id = :session_id AND owner = :server AND ended_at IS NULL"""
_PUT_SNAPSHOT = """
INSERT INTO snapshots (session_id, step, data)
SELECT :session_id, :step, :data FROM sessions
WHERE id = :session_id AND owner = :server AND ended_at IS NULL{hold}
ON CONFLICT (session_id) DO UPDATE SET step = excluded.step, data = excluded.data"""
_MOVE_SNAPSHOT = """
UPDATE snapshots SET step = :step
WHERE session_id = :session_id AND EXISTS
  (SELECT 1 FROM sessions WHERE id = :session_id AND owner = :server AND ended_at IS NULL)"""
_END = """
UPDATE sessions SET receipt = :receipt, ended_at = :ended_at, stored_bytes = :stored_bytes
WHERE id = :session_id AND owner = :server AND ended_at IS NULL"""
_DELETE_SNAPSHOT = """
DELETE FROM snapshots WHERE session_id = :session_id
  AND EXISTS (SELECT 1 FROM sessions WHERE id = :session_id AND answered_at IS NULL)"""


_SLOW_S = 0.05
"""A commit that takes longer has blocked the event loop: the disk or machine is overloaded."""

_SLOW_WRITES = 100
"""The writes after a slow one that the writing thread makes."""


class Statement:
    """One statement for a driver, as a constant text, so that it is prepared."""

    def __init__(self, said: str, dialect: Dialect) -> None:
        names = list(dict.fromkeys(re.findall(r":(\w+)", said)))
        typed = [bindparam(name, type_=_KINDS[name]) for name in names]
        compiled: Any = text(said.strip()).bindparams(*typed).compile(dialect=dialect)
        # SQLite's driver takes values by the names that are written here.
        self.text: str = compiled.string if compiled.positiontup is None else said.strip()
        self._binders = [(name, _binder(_KINDS[name], dialect)) for name in names]

    def bind(self, values: Values) -> dict[str, Any]:
        """Convert values for the driver. Values of JSON columns are JSON already."""
        bound: dict[str, Any] = {}
        for name, convert in self._binders:
            value = values[name]
            bound[name] = value if convert is None or value is None else convert(value)
        return bound


def _binder(kind: Any, dialect: Dialect) -> Callable[[Any], Any] | None:
    """Return the converter of a column type's values; None if they need none."""
    if isinstance(kind, Json):
        return None
    if isinstance(kind, Id):
        return printable
    return kind.dialect_impl(dialect).bind_processor(dialect)


class Statements:
    """The statements of one database's dialect.

    Each that changes a session requires that the session goes on and is this server's. Others hold
    its row meanwhile, so that no server takes it over before the commit.
    """

    def __init__(self, dialect: Dialect) -> None:
        is_postgresql = dialect.name == "postgresql"
        hold = " FOR NO KEY UPDATE" if is_postgresql else ""
        values = ", ".join(f":{name}" for name in _BEGUN)
        begin = _INSERT_SESSION.format(names=", ".join(_BEGUN), values=values)
        self.lock_start = Statement(_LOCK_START, dialect) if is_postgresql else None
        self.insert_session = Statement(begin, dialect)
        self.is_mine = Statement(_IS_MINE, dialect)
        self.insert_step = Statement(_INSERT_STEP.format(hold=hold), dialect)
        self.change = Statement(_CHANGE, dialect)
        self.put_snapshot = Statement(_PUT_SNAPSHOT.format(hold=hold), dialect)
        self.move_snapshot = Statement(_MOVE_SNAPSHOT, dialect)
        self.end = Statement(_END, dialect)
        self.delete_snapshot = Statement(_DELETE_SNAPSHOT, dialect)


@cache
def statements_of(dialect: Dialect) -> Statements:
    """Return the statements of a dialect, which take longer to make than many commits."""
    return Statements(dialect)


class Driver:
    """A connection's driver, in the transaction that SQLAlchemy has begun on it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.statements = statements_of(connection.dialect)
        self._dialect = connection.dialect
        self._cursor: Any = connection.connection.cursor()
        self._pipes = self._dialect.driver == "psycopg"

    def begin_write(self) -> None:
        """Take SQLite's lock now, not between two statements; other drivers begin themselves."""
        if self._dialect.name == "sqlite":
            self._call(self._cursor.execute, "BEGIN IMMEDIATE")

    def fetch(self, statement: Statement, values: Values) -> tuple[Any, ...] | None:
        """Execute a statement; return the first row of its result, or None."""
        more = {"prepare": True} if self._pipes else {}
        self._call(self._cursor.execute, statement.text, statement.bind(values), **more)
        return self._cursor.fetchone()

    def run(self, statement: Statement, rows: Sequence[Values]) -> int:
        """Execute a statement for each row; return the number of changed rows in all."""
        if not rows:
            return 0
        bound = [statement.bind(each) for each in rows]
        self._call(self._cursor.executemany, statement.text, bound)
        return self._cursor.rowcount

    def fetch_each(self, statement: Statement, rows: Sequence[Values]) -> list[Any]:
        """Execute a statement with one value for each row; return the values."""
        if not self._pipes:
            return [(self.fetch(statement, values) or (None,))[0] for values in rows]
        bound = [statement.bind(values) for values in rows]
        return self._call(self._fetch_piped, statement.text, bound)

    def _fetch_piped(self, said: str, bound: Sequence[Any]) -> list[Any]:
        self._cursor.executemany(said, bound, returning=True)
        found = [self._cursor.fetchone()[0]]
        while len(found) < len(bound) and self._cursor.nextset():
            found.append(self._cursor.fetchone()[0])
        return found

    def close(self) -> None:
        """Give the cursor back."""
        self._cursor.close()

    def _call(self, execute: Callable[..., Any], said: str, *given: Any, **more: Any) -> Any:
        try:
            return execute(said, *given, **more)
        except Exception as exc:
            raise self._named(exc, said) from exc

    def _named(self, error: Exception, said: str) -> BaseException:
        """Return a driver's error as SQLAlchemy's; a dead connection is dropped."""
        driver: Any = self._dialect.loaded_dbapi
        if not isinstance(error, driver.Error):
            return error
        is_gone = self._dialect.is_disconnect(
            cast("Any", error), self._cursor.connection, self._cursor
        )
        if is_gone:
            self.connection.invalidate(error)
        return DBAPIError.instance(
            said,
            None,
            error,
            driver.Error,
            hide_parameters=True,
            connection_invalidated=is_gone,
            dialect=self._dialect,
        )


class Lane:
    """The event loop's own connection, which commits small writes at once.

    It waits for nothing: not for the disk, and not for another writer's lock. A committed write is
    with the operating system, and survives the death of the process. Any thread may make the lane;
    one uses it.
    """

    def __init__(self, engine: Engine) -> None:
        self._connection = engine.raw_connection()
        self._path, self._opened = self._connection.info["file"]
        is_scratch = self._connection.info["synchronous"] == "OFF"
        raw: Any = self._connection.driver_connection
        self._connection.detach()  # it never goes back to the readers' pool
        raw.isolation_level = None  # each statement commits itself
        for pragma in ("busy_timeout=0", "wal_autocheckpoint=0"):
            raw.execute(f"PRAGMA {pragma}")
        if not is_scratch:
            raw.execute("PRAGMA synchronous=NORMAL")
        self._raw = raw
        self._cursor = raw.cursor()
        self.statements = statements_of(engine.dialect)
        self._left_out = 0

    def commit(self, made: Sequence[tuple[Statement, Values]]) -> list[Any] | None:
        """Commit the changes of some statements, each of one row; return the rows of the last.

        None if nothing was committed. The file is locked, full or missing, a session is another
        server's, or a row exists. The writing thread then finds out why.
        """
        if self._left_out:
            self._left_out -= 1
            return None
        began_s = time.perf_counter()
        try:
            is_in_place = os.path.samestat(self._path.stat(), self._opened)
            found = self._commit(made) if is_in_place else None
        except (sqlite3.Error, OSError, ValueError):  # the thread tells what cannot be written
            found = None
        finally:
            if self._raw.in_transaction:
                self._raw.rollback()
        if time.perf_counter() - began_s > _SLOW_S:
            self._left_out = _SLOW_WRITES
        return found

    def _commit(self, made: Sequence[tuple[Statement, Values]]) -> list[Any] | None:
        cursor = self._cursor
        if len(made) > 1:  # a single statement commits itself
            cursor.execute("BEGIN IMMEDIATE")
        found: list[Any] = []
        for statement, values in made:
            cursor.execute(statement.text, statement.bind(values))
            found = cursor.fetchall()
            if not found and cursor.rowcount != 1:
                return None
        if len(made) > 1:
            cursor.execute("COMMIT")
        return found

    def close(self) -> None:
        """Give its connection back."""
        self._cursor.close()
        self._connection.close()

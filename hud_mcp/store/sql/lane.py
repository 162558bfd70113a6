"""The event loop's own connection: the way of a small write into a file of SQLite's.

What was committed here survives the death of the process: it is with the operating system. It
waits for nothing: not for the disk, and not for another writer's lock. No page of the write-ahead
log is moved here either; the writing thread does that.
"""

import sqlite3
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Engine

from hud_mcp.store.sql.engine import is_in_place
from hud_mcp.store.sql.statements import Statement, Values, statements_of

__all__ = ["Lane"]

_SLOW_S = 0.05
"""A commit that took longer has held the event loop up: the disk or the machine is overloaded."""

_SLOW_WRITES = 100
"""So many writes after a slow one are left to the writing thread."""


class Lane:
    """Commits the small writes of one event loop, each at once and by itself.

    Args:
        engine: Of a file of SQLite's. Any thread may make the lane; one uses it.

    Attributes:
        statements: Those of its dialect.
    """

    def __init__(self, engine: Engine) -> None:
        self._connection = engine.raw_connection()
        self._path, self._opened = self._connection.info["file"]
        is_scratch = self._connection.info["synchronous"] == "OFF"
        raw: Any = self._connection.driver_connection
        self._connection.detach()  # it never goes back to those that read
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
        """Commit what some statements change, each of one row.

        Returns:
            The rows that the last one gave, if any. None where nothing was committed, and the
            writing thread finds out why: the file is locked, full or gone, a session is another
            server's, or a row is there.
        """
        if self._left_out:
            self._left_out -= 1
            return None
        began_s = time.perf_counter()
        try:
            found = self._commit(made) if is_in_place(self._path, self._opened) else None
        except (sqlite3.Error, OSError, ValueError):  # the thread says what cannot be written
            found = None
        finally:
            if self._raw.in_transaction:
                self._raw.rollback()
        if time.perf_counter() - began_s > _SLOW_S:
            self._left_out = _SLOW_WRITES
        return found

    def _commit(self, made: Sequence[tuple[Statement, Values]]) -> list[Any] | None:
        cursor = self._cursor
        if len(made) > 1:  # else it commits itself
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

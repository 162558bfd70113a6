"""One statement on the event loop's own connection: the way of a step into a file of SQLite's.

A step that was inserted here survives the death of the process: its commit is with the operating
system. It waits for nothing: not for the disk, and not for another writer's lock. No page of the
write-ahead log is moved here either; the writing thread does that.
"""

import sqlite3
import time
from typing import Any

from sqlalchemy import Engine

from hud_mcp.store.sql.engine import is_in_place
from hud_mcp.store.sql.statements import Values, statements_of

__all__ = ["Lane"]

_SLOW_S = 0.05
"""A commit that took longer has held the event loop up: the disk or the machine is overloaded."""

_SLOW_STEPS = 100
"""So many steps after a slow one are left to the writing thread."""


class Lane:
    """Commits the steps of one event loop, each at once and by itself.

    Args:
        engine: Of a file of SQLite's. Any thread may make the lane; one uses it.
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
        self._cursor = raw.cursor()
        self._insert_step = statements_of(engine.dialect).insert_step
        self._left_out = 0

    def insert(self, values: Values) -> bool:
        """Commit a step that is not there, of a session that goes on and is this server's.

        Returns:
            Whether it was committed. Else nothing was, and the writing thread finds out why: the
            file is locked, full or gone, or the session is another server's.
        """
        if self._left_out:
            self._left_out -= 1
            return False
        began_s = time.perf_counter()
        try:
            if not is_in_place(self._path, self._opened):
                return False
            self._cursor.execute(self._insert_step.text, self._insert_step.bind(values))
        except (sqlite3.Error, OSError):
            return False
        if time.perf_counter() - began_s > _SLOW_S:
            self._left_out = _SLOW_STEPS
        return self._cursor.rowcount == 1

    def close(self) -> None:
        """Give its connection back."""
        self._cursor.close()
        self._connection.close()

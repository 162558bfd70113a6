"""The holdings of a store, and the space that they take, each by an open connection."""

from collections.abc import Callable, Generator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Text,
    cast,
    create_engine,
    func,
    make_url,
    select,
    type_coerce,
)

from hud_mcp.store.sql.schema import (
    VERSION,
    jobs,
    logs,
    metadata,
    servers,
    sessions,
    sound_json,
    steps,
    turns,
)

__all__ = [
    "alive_servers",
    "count",
    "free_pages",
    "free_pages_slowly",
    "names_elsewhere",
    "picture_names",
    "size_of",
]


_PAGES = 500
"""The pages of one transaction, so that a server that waits does not wait long."""


_READERS_MS = 200
"""The time that emptying the log may wait for readers."""


def count(connection: Connection) -> dict[str, Any]:
    """Return the counts of rows, and the first and last beginning, by the names of `Holdings`."""
    outcome = sound_json(connection, sessions.c.receipt)["outcome"].as_string()
    ended = func.coalesce(outcome, "unfinished").label("ended")
    by_end = select(ended, func.count()).group_by(ended).order_by(ended)
    oldest, newest = connection.execute(
        select(func.min(sessions.c.started_at), func.max(sessions.c.started_at))
    ).one()
    pruned = select(func.count()).where(sessions.c.pruned.is_not(None))
    return {
        "version": VERSION,
        "jobs": _rows(connection, jobs),
        "sessions": {row[0]: row[1] for row in connection.execute(by_end)},
        "steps": _rows(connection, steps),
        "turns": _rows(connection, turns),
        "lines": _rows(connection, logs),
        "pruned": connection.execute(pruned).scalar_one(),
        "oldest": oldest if isinstance(oldest, datetime) else None,
        "newest": newest if isinstance(newest, datetime) else None,
    }


def alive_servers(
    connection: Connection, own_id: str, is_alive: Callable[[Connection, str], bool]
) -> dict[str, int]:
    """Return the other living servers, each with its number of unfinished sessions."""
    found: dict[str, int] = {}
    for server in connection.execute(select(servers.c.id)).scalars().all():
        if server != own_id and is_alive(connection, server):
            held = select(func.count()).where(
                sessions.c.owner == server, sessions.c.ended_at.is_(None)
            )
            found[server] = connection.execute(held).scalar_one()
    return found


def size_of(connection: Connection, path: Path | None) -> tuple[int, int | None]:
    """Return the bytes that the database takes, and the free ones of them; None if unknown."""
    if path is None:
        total = 0
        for table in metadata.tables:
            size = func.pg_total_relation_size(func.to_regclass(table))
            total += connection.execute(select(func.coalesce(size, 0))).scalar_one()
        return total, None
    files = (path, path.with_name(f"{path.name}-wal"))
    total = sum(each.stat().st_size for each in files if each.exists())
    free = _pragma(connection, "freelist_count") * _pragma(connection, "page_size")
    return total, free


def free_pages(connection: Connection) -> None:
    """Give back free space: of SQLite while no other process uses it, of PostgreSQL always."""
    connection.rollback()
    own = connection.execution_options(isolation_level="AUTOCOMMIT")
    if connection.dialect.name != "sqlite":
        for table in metadata.tables:
            own.exec_driver_sql(f'VACUUM (ANALYZE) "{table}"')
        return
    own.exec_driver_sql("PRAGMA auto_vacuum=INCREMENTAL")  # the next time it needs not be alone
    own.exec_driver_sql("VACUUM")
    own.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()


def free_pages_slowly(connection: Connection) -> bool:
    """Give back free space of SQLite beside a server; return whether this file allows that."""
    if _pragma(connection, "auto_vacuum") != 2:  # noqa: PLR2004  # INCREMENTAL, which `free_pages` sets
        return False
    connection.rollback()
    own = connection.execution_options(isolation_level="AUTOCOMMIT")
    before = _pragma(connection, "freelist_count")
    while before:
        moved = own.exec_driver_sql(f"PRAGMA incremental_vacuum({_PAGES})")
        if moved.returns_rows:
            moved.all()
        left = _pragma(connection, "freelist_count")
        if left >= before:
            break
        before = left
    # It holds up writers while it waits for readers; what it cannot do now, a later commit does.
    own.exec_driver_sql(f"PRAGMA busy_timeout={_READERS_MS}")
    own.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
    own.exec_driver_sql(f"PRAGMA busy_timeout={connection.info['timeout_ms']}")
    return True


def _rows(connection: Connection, table: Any) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _pragma(connection: Connection, name: str) -> int:
    return connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()


_AT_ONCE = 5000
"""Rows that are held; the database sorts the others, on its disk if they are many."""


def picture_names(connection: Connection) -> Generator[tuple[str, str], None, None]:
    """Yield each picture's name, once and in order, with a session that refers to it.

    It takes as much memory for a million steps as for a thousand.
    """
    shot, sha256, extension = _told(connection)
    # A step is taken apart once, as that is most of the time; its picture is, where it is new.
    told = (
        select(shot.label("shot"), func.min(steps.c.session_id).label("session_id"))
        .where(cast(steps.c.row, Text).contains('"screenshot"'))
        .group_by(shot)
        .subquery()
    )
    is_text = connection.dialect.name == "sqlite"  # as all JSON is there
    parts = type_coerce(told.c.shot, JSON) if is_text else cast(told.c.shot, JSON)
    name = parts[sha256].as_string() + "." + parts[extension].as_string()
    named = select(name.label("name"), told.c.session_id).subquery()
    # In the order of Python's texts, whatever the database's language.
    binary = "BINARY" if connection.dialect.name == "sqlite" else "C"
    query = select(named).order_by(named.c.name.collate(binary), named.c.session_id)
    # PostgreSQL would ask each step whether it has a name, by taking it apart again: this asks.
    last: str | None = None
    with connection.execute(query, execution_options={"yield_per": _AT_ONCE}) as rows:
        for found, session_id in rows:
            if found is not None and found != last:
                yield found, session_id
                last = found


def _told(connection: Connection) -> tuple[ColumnElement[str], int | str, int | str]:
    """Return the text of a step's picture, and the places of its name's two parts."""
    row = sound_json(connection, steps.c.row)
    if connection.dialect.name != "sqlite":
        return cast(row["screenshot"], Text), "sha256", "extension"
    paths = ("$.screenshot.sha256", "$.screenshot.extension")
    return func.json_extract(row, *paths, type_=Text), 0, 1


def names_elsewhere(url: str) -> Generator[str, None, None]:
    """Yield the names of another store's pictures, without a migration; none if it has none.

    Raises:
        SQLAlchemyError: It cannot be read.
    """
    engine = create_engine(make_url(url), hide_parameters=True)
    try:
        with engine.connect() as connection:
            if not engine.dialect.has_table(connection, steps.name):
                return
            with closing(picture_names(connection)) as found:
                for name, _ in found:
                    yield name
    finally:
        engine.dispose()

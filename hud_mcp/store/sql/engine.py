"""The opening of a database: SQLite's settings, the version of the tables, and migrations."""

import errno
import logging
import os
import sqlite3
import time
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Engine, Inspector, create_engine, event, inspect, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError

from hud_mcp.base.lines import read_json, to_json
from hud_mcp.errors import StoreFailed
from hud_mcp.record.place import kind_problem
from hud_mcp.store.files import is_open_to_others, make_private_file, make_private_folder
from hud_mcp.store.sql import migrations, schema
from hud_mcp.store.sql.schema import VERSION

logger = logging.getLogger(__name__)

_BUSY_S = 15
"""The longest wait of a commit for another process's lock on a SQLite file."""

_CHECKPOINT_PAGES = 4000
"""The pages in SQLite's WAL, 16 MB, after which a commit of the writing thread moves them on.

The first commit after that waits for the disk, in any thread; so it has to be rare.
"""

_LONG_PAGES = 3 * _CHECKPOINT_PAGES
"""The pages of a WAL that is begun anew, for which all other writers wait a moment."""

_RESTART_S = 0.2
"""The longest wait for readers of a WAL that is to begin anew; then it grows on."""

_CONNECT_S = 10
"""The longest wait for a database that does not answer."""

_OPENING_LOCK = 4_873_120
"""The advisory lock of PostgreSQL under which the tables are made or changed."""


def open_engine(
    url: str, path: Path | None, *, is_scratch: bool = False, is_copy: bool = False
) -> Engine:
    """Open a database, and make or migrate its tables; `is_copy` admits an unfinished copy.

    Raises:
        StoreFailed: The URL is invalid, or a newer version wrote the store, which stays unchanged.
    """
    if path is not None:
        make_private_folder(path.parent)
        # SQLite gives its -wal and -shm files the mode of the database file.
        if not make_private_file(path) and is_open_to_others(path):
            logger.warning("others on this machine may read %s; chmod 600 keeps it yours", path)
    elif url.startswith(("sqlite:", "sqlite+pysqlite:")):
        raise StoreFailed(
            "The store cannot be opened: a database in memory is lost at the end. Give a file's "
            "path."
        )
    try:
        options = {} if path else {"pool_pre_ping": True}
        engine = create_engine(
            url,
            hide_parameters=True,
            json_serializer=to_json,
            json_deserializer=read_json,
            connect_args=_connect_args(url),
            **options,
        )
    except (ArgumentError, NoSuchModuleError, ImportError) as exc:
        missing = " (install hud-mcp[postgresql])" if isinstance(exc, ImportError) else ""
        problem = kind_problem(url) or (
            f"{why(exc)}. Give a file's path, or a URL such as "
            f"postgresql://user@host/database{missing}"
        )
        raise StoreFailed(f"The store cannot be opened: {problem}.") from exc
    if path is not None:
        _configure_sqlite(engine, path, synchronous="OFF" if is_scratch else "FULL")
    try:
        _prepare_tables(engine, is_copy=is_copy)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _configure_sqlite(engine: Engine, path: Path, *, synchronous: str) -> None:
    """Have each new connection in WAL mode, with these settings and the identity of its file."""
    # Overwritten and moved content is zeroed, from the first row on: `redact` cannot find the
    # copies that SQLite leaves in pages when it divides them.
    pragmas = (
        f"synchronous={synchronous}",
        f"wal_autocheckpoint={_CHECKPOINT_PAGES}",
        "foreign_keys=ON",
        "secure_delete=ON",
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, record: Any) -> None:
        _use_wal(connection)
        record.info["synchronous"] = synchronous
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
        record.info["file"] = (path, path.stat())
        (record.info["timeout_ms"],) = connection.execute("PRAGMA busy_timeout").fetchone()


class _FileGone(OSError):
    """The file of a connection is not the one at its path."""


def check_file(connection: Connection) -> None:
    """Raise OSError if the SQLite file was deleted, moved or replaced.

    SQLite would write on without an error, into a file that nobody can open.
    """
    if connection.dialect.name != "sqlite":
        return
    path, opened = connection.info["file"]
    try:
        is_in_place = os.path.samestat(path.stat(), opened)
    except FileNotFoundError:
        is_in_place = False
    if not is_in_place:
        raise _FileGone(errno.ENOENT, "its file was deleted, moved or replaced")


def synchronise(connection: Connection, *, fully: bool) -> None:
    """Let SQLite's commits wait for the disk, or not, on a connection outside of a transaction."""
    wanted = "FULL" if fully else "NORMAL"
    if connection.info.get("synchronous", "OFF") not in {"OFF", wanted}:
        _pragma(connection, f"synchronous={wanted}")
        connection.info["synchronous"] = wanted


def move_log(connection: Connection) -> None:
    """Move SQLite's WAL into the file, so that the WAL begins anew; outside of a transaction.

    Writes meanwhile keep it from that, and are not counted. A long WAL lets writers wait.
    """
    _, pages, _ = _pragma(connection, "wal_checkpoint(PASSIVE)")
    if pages > _LONG_PAGES:
        _pragma(connection, f"busy_timeout={round(1000 * _RESTART_S)}")
        try:
            _pragma(connection, "wal_checkpoint(RESTART)")
        finally:
            _pragma(connection, f"busy_timeout={connection.info['timeout_ms']}")


def _pragma(connection: Connection, pragma: str) -> Any:
    """Execute a pragma beside any transaction; return its row, if any."""
    cursor = connection.connection.cursor()
    try:
        return cursor.execute(f"PRAGMA {pragma}").fetchone()
    finally:
        cursor.close()


def why(error: Exception) -> str:
    """The text of an error without the path, which is for the log."""
    if _is_unreachable(error):
        return "the database cannot be reached"
    original = getattr(error, "orig", None) or error
    if isinstance(original, OSError) and original.strerror:
        return original.strerror  # without the path
    return str(original).strip().splitlines()[0] if str(original).strip() else repr(original)


def remedy(error: Exception) -> str:
    """The remedy to try before the call is made again."""
    if _is_locked(error):
        return "let the process that holds its lock finish, or end it"
    if _is_unreachable(error):
        return "start the database, or correct the store's URL"
    if isinstance(error, _FileGone):
        return "put it back, or start the server again"
    if isinstance(getattr(error, "orig", None) or error, UnicodeError):
        return "leave out the halves of characters, which no encoding has"
    return "free space or make it writable"


def concerns_all(error: Exception) -> bool:
    """Whether every other write would fail for the same reason, perhaps after the same wait."""
    return _is_locked(error) or _is_unreachable(error)


def passes(error: Exception) -> bool:
    """Whether the same transaction may succeed at once, after a deadlock or a restart."""
    original = getattr(error, "orig", None)
    if getattr(original, "sqlstate", None) in {"40001", "40P01"}:
        return True
    return bool(getattr(error, "connection_invalidated", False))


def _is_locked(error: Exception) -> bool:
    original = getattr(error, "orig", None)
    if not isinstance(original, sqlite3.OperationalError):
        return False
    primary = (getattr(original, "sqlite_errorcode", None) or 0) & 0xFF
    return primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _is_unreachable(error: Exception) -> bool:
    """Whether no connection to a database server could be made."""
    if not isinstance(error, OperationalError) or error.statement is not None:
        return False
    return hasattr(error.orig, "sqlstate")


def _connect_args(url: str) -> dict[str, Any]:
    """The options of a driver beyond the URL, which wins."""
    parsed = make_url(url)
    arguments: dict[str, dict[str, Any]] = {
        "sqlite": {"timeout": _BUSY_S},
        # A database without a locale has the encoding SQL_ASCII, and would return bytes for texts.
        "postgresql": {"connect_timeout": _CONNECT_S, "client_encoding": "utf8"},
    }
    own = arguments.get(parsed.get_backend_name(), {})
    return {name: value for name, value in own.items() if name not in parsed.query}


def _use_wal(connection: Any) -> None:
    """Switch to WAL. SQLite itself does not wait while another process does the same."""
    give_up_s = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_s:
                raise
            time.sleep(0.02)
        else:
            return


def _prepare_tables(engine: Engine, *, is_copy: bool) -> None:
    with engine.connect() as connection:
        version = _version(connection)
        if version == VERSION:  # nearly always; no lock is taken for it
            _check_columns(connection)
            return
        if version == schema.COPYING and is_copy:
            return
    sqlite = engine.dialect.name == "sqlite"
    remakes = sqlite and version is not None
    with engine.connect() as connection:
        if remakes:  # a table that is made anew must not delete the rows that refer to it
            connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        if sqlite:
            # If two processes open a file at once, one waits here and finds the tables made.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        elif engine.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_OPENING_LOCK})")
        _make_or_migrate(connection)
        connection.commit()
        if remakes:
            connection.exec_driver_sql("PRAGMA foreign_keys=ON")


def _make_or_migrate(connection: Connection) -> None:
    version = _version(connection)
    if version is None:
        schema.metadata.create_all(connection)
        connection.execute(schema.versions.insert().values(version=schema.VERSION))
    elif version == schema.COPYING:
        raise StoreFailed(
            "The store is a copy that was not finished. Call `hud-mcp store copy` again with the "
            "same two stores, or remove it."
        )
    elif version < schema.VERSION:
        _migrate(connection, version)
        connection.execute(schema.versions.update().values(version=schema.VERSION))
    elif version > schema.VERSION:
        raise StoreFailed(
            f"The store has version {version}, this program reads up to {schema.VERSION}; "
            "update hud-mcp, or name another store with --store."
        )


def _version(connection: Connection) -> int | None:
    """Return the version of the tables; None without tables.

    Raises:
        StoreFailed: The database has another program's tables of these names, or is a store that
            has lost its version.
    """
    inspector = inspect(connection)
    taken = set(schema.metadata.tables) & set(inspector.get_table_names())
    if not taken:
        return None
    rows: list[Any] = []
    if "versions" in taken:
        rows = list(connection.exec_driver_sql("SELECT * FROM versions").fetchmany(2))
    if len(rows) != 1 or len(rows[0]) != 1 or not isinstance(rows[0][0], int):
        if _is_ours(inspector, taken):
            raise _damaged("no version")
        raise StoreFailed(
            f"The store cannot be opened: the database has tables of another program "
            f"({', '.join(sorted(taken))}). Give hud-mcp a database of its own."
        )
    return cast("int", rows[0][0])


def _check_columns(connection: Connection) -> None:
    """Raise StoreFailed if a table or column of this version is missing."""
    found = inspect(connection).get_multi_columns(filter_names=list(schema.metadata.tables))
    there = {name: {column["name"] for column in of} for (_, name), of in found.items()}
    missing: list[str] = []
    for name, table in schema.metadata.tables.items():
        if name not in there:
            missing.append(f"table {name}")
        else:
            missing += [f"column {c}" for c in table.columns if c.name not in there[name]]
    if missing:
        raise _damaged(f"no {' and no '.join(missing[:3])}")


def _is_ours(inspector: Inspector, taken: AbstractSet[str]) -> bool:
    """Whether sessions, steps and jobs have the columns that every version has had."""
    if not {"sessions", "steps", "jobs"} <= taken:
        return False
    columns = {column["name"] for column in inspector.get_columns("sessions")}
    return {"secret_digest", "receipt", "principal"} <= columns


def _damaged(lacks: str) -> StoreFailed:
    return StoreFailed(
        f"The store is damaged: it has {lacks}. Restore it from a copy, or name another store "
        "with --store. It was left as it is."
    )


def _migrate(connection: Connection, version: int) -> None:
    """Run the revisions after a version; after a StoreFailed, the transaction is rolled back."""
    try:
        migrations.upgrade(connection, version)
    except SQLAlchemyError as exc:
        raise StoreFailed(
            f"The store of version {version} could not be upgraded: {why(exc)}. It is "
            "unchanged; repair it, or name another store with --store."
        ) from exc

"""Opening a database: how SQLite is set up, what version the tables have, and migrating them."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hud_mcp.errors import StoreFailed

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["open_engine", "why"]

_BUSY_S = 15
"""How long a commit waits for another process's lock on a SQLite file."""

_OPENING_LOCK = 4_873_120
"""The advisory lock of PostgreSQL under which the tables are made or changed."""


def open_engine(url: str, path: Path | None) -> "Engine":
    """Open a database, and make or migrate its tables.

    Args:
        url: Its SQLAlchemy URL.
        path: The file, where it is SQLite's.

    Raises:
        StoreFailed: The URL is none, or the store was written by a newer version; that one
            stays as it is.
    """
    from sqlalchemy import create_engine, event  # noqa: PLC0415  # SQLAlchemy loads here
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError  # noqa: PLC0415  # the same

    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        options = {"connect_args": {"timeout": _BUSY_S}} if path else {"pool_pre_ping": True}
        engine = create_engine(url, hide_parameters=True, **options)
    except (ArgumentError, NoSuchModuleError, ImportError) as exc:
        raise StoreFailed(
            f"The store cannot be opened: {why(exc)}. Give a file's path, or a URL such as "
            "postgresql+psycopg://user@host/database (install hud-mcp[postgresql])."
        ) from exc
    if path is not None:

        @event.listens_for(engine, "connect")
        def _configure(connection: Any, _record: Any) -> None:
            _use_wal(connection)
            for pragma in ("synchronous=FULL", "foreign_keys=ON"):
                connection.execute(f"PRAGMA {pragma}")

    try:
        _prepare_tables(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def why(error: Exception) -> str:
    """What went wrong, without the file's path."""
    original = getattr(error, "orig", None) or error
    if isinstance(original, OSError) and original.strerror:
        return original.strerror  # without the path, which is for the log
    return str(original).strip().splitlines()[0] if str(original).strip() else repr(original)


def _use_wal(connection: Any) -> None:
    """Switch to WAL; SQLite itself does not wait while another process does the same."""
    import sqlite3  # noqa: PLC0415  # not where the record is in PostgreSQL

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


def _prepare_tables(engine: "Engine") -> None:
    from hud_mcp.store.schema import VERSION  # noqa: PLC0415  # SQLAlchemy loads here

    with engine.connect() as connection:
        version = _version(connection)
        if version == VERSION:
            return  # as nearly always; nothing is locked for it
    sqlite = engine.dialect.name == "sqlite"
    remakes = sqlite and version is not None
    with engine.connect() as connection:
        if remakes:  # a table that is made anew must not take the rows that refer to it with it
            connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        if sqlite:
            # Of two processes that open a file at once, one waits here and finds it made.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        elif engine.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_OPENING_LOCK})")
        _make_or_migrate(connection)
        connection.commit()
        if remakes:
            connection.exec_driver_sql("PRAGMA foreign_keys=ON")


def _make_or_migrate(connection: "Connection") -> None:
    from hud_mcp.store import schema  # noqa: PLC0415  # SQLAlchemy loads here

    version = _version(connection)
    if version is None:
        schema.metadata.create_all(connection)
        connection.execute(schema.versions.insert().values(version=schema.VERSION))
    elif version < schema.VERSION:
        _migrate(connection, version)
        connection.execute(schema.versions.update().values(version=schema.VERSION))
    elif version > schema.VERSION:
        raise StoreFailed(
            f"The store has version {version}, this program reads up to {schema.VERSION}; "
            "update hud-mcp, or name another store with --store."
        )


def _version(connection: "Connection") -> int | None:
    """The version of the tables; None where there are none."""
    from sqlalchemy import inspect, select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import versions  # noqa: PLC0415  # the same

    if not inspect(connection).has_table("versions"):
        return None
    return connection.execute(select(versions.c.version)).scalar_one_or_none()


def _migrate(connection: "Connection", version: int) -> None:
    """Run the revisions after a version."""
    from alembic import command  # noqa: PLC0415  # only where there is something to migrate
    from alembic.config import Config  # noqa: PLC0415  # the same

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.stamp(config, f"{version:04d}")
    command.upgrade(config, "head")

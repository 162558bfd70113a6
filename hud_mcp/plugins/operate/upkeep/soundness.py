"""Whether a store is sound: its database, and the pictures that its steps refer to."""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel
from sqlalchemy import Connection, Engine, Table, create_engine, func, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from hud_mcp.base.lines import printable, read_json
from hud_mcp.environment.task import Task
from hud_mcp.errors import DamagedRecord
from hud_mcp.plugins.operate.upkeep import pictures
from hud_mcp.plugins.operate.values import Finding, OnProgress
from hud_mcp.record.job import Job
from hud_mcp.record.place import read_place
from hud_mcp.record.values import Receipt, TrajectoryStep
from hud_mcp.store.sql.engine import why
from hud_mcp.store.sql.schema import (
    VERSION,
    Damaged,
    damage,
    job_tasks,
    jobs,
    metadata,
    read_value,
    sessions,
    steps,
    turns,
)
from hud_mcp.values.model_turn import RecordedTurn

Read = Callable[[], None]
"""Called for each row that was looked at."""

_AT_ONCE = 1000
_RESTORE = "restore the store from a copy"
_MEND = f"mend that row by hand, or {_RESTORE}"


def _open_to_look(url: str, path: Path | None) -> Engine:
    """Open a database read-only: nothing is created, migrated or written."""
    if path is None:
        return create_engine(
            url,
            hide_parameters=True,
            json_deserializer=read_json,
            execution_options={"postgresql_readonly": True},
        )
    place = f"file:{quote(str(path))}?mode=ro"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(place, uri=True, check_same_thread=False)

    return create_engine(
        "sqlite://", creator=connect, hide_parameters=True, json_deserializer=read_json
    )


def _count_rows(connection: Connection) -> int:
    """Return the number of rows that are examined; 0 if it cannot be read."""
    try:
        return sum(
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (jobs, job_tasks, sessions, steps, turns)
        )
    except SQLAlchemyError:
        connection.rollback()
        return 0


def _look_at(connection: Connection, on_row: Read) -> Iterator[Finding]:
    """Yield each damage. An error that ends one check does not end the others."""
    checks: list[tuple[str, Callable[[], Iterable[Finding]]]] = [
        ("the file", lambda: _file(connection)),
        ("the tables", lambda: _tables(connection)),
        *((t.name, partial(_parents, connection, t)) for t in metadata.sorted_tables),
        *((t.name, partial(_gaps, connection, t)) for t in (steps, turns)),
        *((t.name, partial(_rows, connection, t, r, on_row)) for t, r in _READERS.items()),
    ]
    for name, check in checks:
        try:
            yield from check()
        except SQLAlchemyError as exc:
            connection.rollback()
            yield Finding("unreadable", f"{name}: {why(exc)}", _RESTORE)


def _file(connection: Connection) -> Iterator[Finding]:
    """Check the pages of SQLite. PostgreSQL checks its own."""
    if connection.dialect.name != "sqlite":
        return
    for (said,) in connection.exec_driver_sql("PRAGMA integrity_check(50)"):
        if said != "ok":
            what = " ".join(str(said).split())
            remedy = f"{_RESTORE}, or read what is left by sqlite3's .recover"
            yield Finding("damaged file", what, remedy)


def _tables(connection: Connection) -> Iterator[Finding]:
    there = inspect(connection)
    names = set(there.get_table_names())
    for table in metadata.sorted_tables:
        if table.name not in names:
            yield Finding("missing table", table.name, _RESTORE)
            continue
        columns = {column["name"] for column in there.get_columns(table.name)}
        for column in table.columns:
            if column.name not in columns:
                yield Finding("missing column", f"{table.name}.{column.name}", _RESTORE)
    if "versions" in names:
        found = [row[0] for row in connection.exec_driver_sql("SELECT version FROM versions")]
        if found != [VERSION]:
            said = ", ".join(map(str, found)) or "none"
            remedy = "open it once by `hud-mcp jobs`, which brings it up to date; or update hud-mcp"
            yield Finding("version", f"{said}, and this program has {VERSION}", remedy)


def _parents(connection: Connection, table: Table) -> Iterator[Finding]:
    for key in sorted(table.foreign_keys, key=lambda each: each.parent.name):
        child, parent = key.parent, key.column
        query = select(child, func.count()).where(child.is_not(None))
        query = query.where(child.not_in(select(parent))).group_by(child)
        for name, number in connection.execute(query):
            what = f"{number} rows of {table.name} belong to {child.name} {name!r}, which is gone"
            remedy = f"delete them from {table.name}, or {_RESTORE}"
            yield Finding("without parent", what, remedy)


def _gaps(connection: Connection, table: Table) -> Iterator[Finding]:
    number = table.columns[1]
    first, last, count = func.min(number), func.max(number), func.count()
    query = select(table.c.session_id, first, last, count).group_by(table.c.session_id)
    query = query.having((last + 1 != count) | (first != 0))
    for name, low, high, there in connection.execute(query):
        what = f"{name} has {there} {table.name}, numbered {low} to {high}"
        yield Finding("missing rows", what, f"{_RESTORE}, or redo the run")


def _rows(
    connection: Connection, table: Table, read: Callable[[Any], None], on_row: Read
) -> Iterator[Finding]:
    with connection.execute(select(table), execution_options={"yield_per": _AT_ONCE}) as rows:
        for row in rows:
            try:
                read(row)
            except DamagedRecord as exc:
                what = str(exc).removeprefix("The record is damaged: ").partition(". Mend")[0]
                yield Finding("damaged row", what, _MEND)
            on_row()


def _read_session(row: Any) -> None:
    name = f"session {row.id}"
    read_value(Task, row.task, f"the task of {row.id}")
    for column in ("context", "started_at", "ended_at", "receipt", "pruned"):
        value = getattr(row, column)
        if isinstance(value, Damaged):
            raise damage(name, f"{column}: {value.why}")
    if row.receipt is not None:
        read_value(Receipt, row.receipt, f"the receipt of {row.id}")
    elif row.ended_at is not None and not row.erased:
        raise damage(name, "it has ended, and has no receipt")


def _read_step(row: Any) -> None:
    name = f"step {row.step} of {row.session_id}"
    step = read_value(TrajectoryStep, row.row, name)
    if step.index != row.step:
        raise damage(name, f"it says that it is step {step.index}")


def _reader(kind: type[BaseModel], name: Callable[[Any], str]) -> Callable[[Any], None]:
    def read(row: Any) -> None:
        read_value(kind, row.row, name(row))

    return read


_READERS: dict[Table, Callable[[Any], None]] = {
    jobs: _reader(Job, lambda row: f"job {row.id}"),
    job_tasks: _reader(Task, lambda row: f"task {row.position} of {row.job_id}"),
    sessions: _read_session,
    steps: _read_step,
    turns: _reader(RecordedTurn, lambda row: f"turn {row.turn} of {row.session_id}"),
}


_OF_A_KIND = 100
"""The most findings that are listed one by one."""


def verify(
    url: str, folder: Path, on_progress: OnProgress | None, bring: Callable[[Path], None] | None
) -> list[Finding]:
    """Look at everything; change nothing.

    `on_progress` gets the number of examined rows and pictures, and of all. `bring` fetches a
    picture that lies in an object store.
    """
    path = read_place(url)[1]
    engine = _open_to_look(url, path)
    done = total = 0

    def step() -> None:
        nonlocal done
        done += 1
        if on_progress is not None and done % 200 == 0:
            on_progress(done, max(done, total))

    try:
        with engine.connect() as connection:
            total = _count_rows(connection)
            total += sum(1 for _ in pictures.list_pictures(folder))
            found = _limited(_look_at(connection, step))
            return [*found, *_limited(_pictures(connection, url, folder, step, bring))]
    except (SQLAlchemyError, OSError) as exc:
        remedy = "restore the store from a copy, or start its database"
        return [Finding("unreadable", f"the database: {why(exc)}", remedy)]
    finally:
        engine.dispose()


def _limited(found: Iterator[Finding]) -> list[Finding]:
    """Return the first findings of each kind, and the number of the others."""
    kept: list[Finding] = []
    counts: Counter[str] = Counter()
    last: dict[str, Finding] = {}
    for each in found:
        counts[each.kind] += 1
        last[each.kind] = each
        if counts[each.kind] <= _OF_A_KIND:
            kept.append(each)
    for kind, count in counts.items():
        if count > _OF_A_KIND:
            kept.append(Finding(kind, f"and {count - _OF_A_KIND} more", last[kind].remedy))
    return kept


def _pictures(
    connection: Connection,
    url: str,
    folder: Path,
    step: Callable[[], None],
    bring: Callable[[Path], None] | None,
) -> Iterator[Finding]:
    wanted = _referred(connection)
    if bring is not None:
        _bring_all(connection, folder, bring)
    restore = "restore the folder of pictures from a copy; else pages show the step without it"
    unused = size = 0
    with closing(wanted):
        name, session_id = next(wanted, (None, ""))
        for file in pictures.list_pictures(folder):
            while name is not None and name < file.name:
                yield Finding("missing picture", f"{printable(name)}, of {session_id}", restore)
                name, session_id = next(wanted, (None, ""))
            if name == file.name:
                if _digest(file.path) != file.name[:64]:
                    what = f"{name}, of {session_id}: its content is not what its name says"
                    yield Finding("damaged picture", what, restore)
                name, session_id = next(wanted, (None, ""))
            elif file.age_s >= pictures.YOUNG_S:
                unused, size = unused + 1, size + file.size
            step()
        while name is not None:
            yield Finding("missing picture", f"{printable(name)}, of {session_id}", restore)
            name, session_id = next(wanted, (None, ""))
    if unused and not pictures.other_stores(folder, url):
        what = f"{unused} pictures of {size} bytes, which no step refers to"
        remedy = "`hud-mcp store vacuum` removes them"
        yield Finding("unused pictures", what, remedy, harmless=True)


def _bring_all(connection: Connection, folder: Path, bring: Callable[[Path], None]) -> None:
    with closing(_referred(connection)) as found:
        for name, _ in found:
            if name is not None and pictures.is_picture(name):
                bring(folder / name[:2] / name)


def _referred(connection: Connection) -> Generator[tuple[str | None, str], None, None]:
    """Yield the pictures that steps refer to; none if the steps cannot be read."""
    try:
        with closing(pictures.picture_names(connection)) as found:
            yield from found
    except SQLAlchemyError:
        return


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""

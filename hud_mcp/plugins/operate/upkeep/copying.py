"""A store brought to another place with its pictures, and compared there to the last row."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    cast,
    func,
    literal,
    select,
    text,
    tuple_,
)
from sqlalchemy.types import UserDefinedType

from hud_mcp.errors import DamagedRecord, StoreFailed
from hud_mcp.plugins.operate.upkeep import pictures
from hud_mcp.plugins.operate.values import Copied, OnProgress
from hud_mcp.record.place import read_place, shown_url
from hud_mcp.store import Store
from hud_mcp.store.files import mark_for, save_file
from hud_mcp.store.sql.engine import open_engine
from hud_mcp.store.sql.schema import COPYING, VERSION, Damaged, Json, damage, metadata, versions

_OF_SERVERS = {"versions", "servers", "connections", "connection_sessions"}
TABLES = [table for table in metadata.sorted_tables if table.name not in _OF_SERVERS]
"""The copied tables, parents first. The tables of living servers are left out."""

_ROWS, _LARGE_ROWS = 1000, 20
"""Rows in one transaction; the second for tables with states of worlds."""

Key = tuple[Any, ...]


class _RawJson(UserDefinedType[str]):
    """JSON as its text, in a column of JSON."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "JSON"


_progress = Table(
    "copying",
    MetaData(),
    Column("name", String(64), primary_key=True),
    Column("source", Text, nullable=False),
    Column("done", Integer, nullable=False),  # rows
    Column("last", Text),  # the key of the last one, as JSON
)
_raw = MetaData()
_RAW = {
    table.name: Table(
        table.name,
        _raw,
        *(
            Column(c.name, _RawJson() if isinstance(c.type, Json) else c.type, quote=True)
            for c in table.columns
        ),
    )
    for table in TABLES
}


def _begin(target: Engine, source: str) -> bool:
    """Prepare a database for a copy; return whether one that was not finished goes on.

    Raise StoreFailed if it holds something else, which stays as it is.
    """
    with target.begin() as connection:
        version = connection.execute(select(versions.c.version)).scalar_one()
        if version == COPYING:
            found = set(connection.execute(select(_progress.c.source)).scalars())
            if found != {source}:
                raise StoreFailed(
                    f"The target is an unfinished copy of {', '.join(sorted(found))}, and not of "
                    f"{source}. Remove it, or name another target."
                )
            return True
        full = [t.name for t in TABLES if connection.execute(select(t).limit(1)).first()]
        if full:
            raise StoreFailed(
                f"The target is not empty: it has {', '.join(full)}. It stays as it is; name a "
                "store that does not exist yet, or an empty database."
            )
        _progress.create(connection)
        rows = [{"name": table.name, "source": source, "done": 0} for table in TABLES]
        connection.execute(_progress.insert(), rows)
        connection.execute(versions.update().values(version=COPYING))
    return False


def _count_all(connection: Connection) -> int:
    return sum(
        connection.execute(select(func.count()).select_from(table)).scalar_one() for table in TABLES
    )


def _copy_table(
    source: Connection, target: Engine, table: Table, on_rows: Callable[[int], None]
) -> None:
    """Copy the missing rows of a table.

    Raise DamagedRecord for an unreadable row, and StoreFailed if another process copies there too.
    """
    here = _progress.c.name == table.name
    with target.connect() as connection:
        done, told = connection.execute(
            select(_progress.c.done, _progress.c.last).where(here)
        ).one()
    on_rows(done)
    last: Key | None = None if told is None else tuple(json.loads(told))
    for rows in _batches(source, table, last):
        key = [rows[-1][column.name] for column in table.primary_key]
        with target.begin() as connection:
            mine = _progress.update().where(here, _progress.c.done == done)
            done += len(rows)
            if connection.execute(mine.values(done=done, last=json.dumps(key))).rowcount != 1:
                raise StoreFailed("Another process copies to the target too. Let it finish.")
            connection.execute(_RAW[table.name].insert(), rows)
        on_rows(len(rows))


def _sum_of(connection: Connection, table: Table) -> tuple[int, str]:
    """Return a table's number of rows, and a digest that does not depend on their order."""
    count = total = 0
    for rows in _batches(connection, table, None):
        for row in rows:
            told = [_told(row[column.name]) for column in table.columns]
            each = hashlib.sha256(json.dumps(told).encode("utf-8", "surrogatepass")).digest()
            total = (total + int.from_bytes(each, "big")) % 2**256
        count += len(rows)
    return count, f"{total:064x}"


def _finish(target: Engine) -> None:
    with target.begin() as connection:
        if connection.dialect.name == "postgresql":
            for table in TABLES:
                _set_sequence(connection, table)
        connection.execute(versions.update().values(version=VERSION))
        _progress.drop(connection)


def _batches(
    connection: Connection, table: Table, last: Key | None
) -> Iterator[Sequence[dict[str, Any]]]:
    key = list(table.primary_key)
    columns = [
        cast(c, Text).label(c.name) if isinstance(c.type, Json) else c for c in table.columns
    ]
    is_large = any(isinstance(c.type, LargeBinary) for c in table.columns)
    query = select(*columns).order_by(*key).limit(_LARGE_ROWS if is_large else _ROWS)
    while True:
        after = query
        if last is not None:
            given = [literal(value, c.type) for value, c in zip(last, key, strict=True)]
            after = query.where(tuple_(*key) > tuple_(*given))
        rows = [dict(row) for row in connection.execute(after).mappings()]
        if not rows:
            return
        for row in rows:
            _check(table, row)
        last = tuple(rows[-1][c.name] for c in key)
        yield rows


def _check(table: Table, row: dict[str, Any]) -> None:
    """Raise DamagedRecord, which names the row, if it cannot be written elsewhere."""
    for name, value in row.items():
        if isinstance(value, Damaged):
            shown = ", ".join(str(row[c.name]) for c in table.primary_key)
            raise _unreadable(table, shown, f"{name}: {value.why}")


def _unreadable(table: Table, key: str, what: str) -> DamagedRecord:
    return damage(f"row {key} of {table.name}", what)


def _told(value: Any) -> Any:
    """Return a value as the digest has it, the same from every database."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    return value


def _set_sequence(connection: Connection, table: Table) -> None:
    column = table.autoincrement_column
    if column is None or column.autoincrement is not True:
        return
    named = {"table": table.name, "column": column.name}
    sequence = connection.execute(
        text("SELECT pg_get_serial_sequence(:table, :column)"), named
    ).scalar()
    highest = connection.execute(select(func.max(column))).scalar()
    if sequence is not None and highest is not None:
        connection.execute(text("SELECT setval(:name, :to)"), {"name": sequence, "to": highest})


def copy(
    connection: Connection, source: Store, target: Store, on_progress: OnProgress | None
) -> Copied:
    """Copy all rows and pictures from the source's connection, then read both sides and compare.

    `on_progress` gets the number of copied or compared rows, and of all.

    Raises:
        StoreFailed: The target is not empty, or is not the same in the end.
    """
    url, path = read_place(target.url)
    engine = open_engine(url, path, is_copy=True)
    try:
        resumed = _begin(engine, shown_url(source.url))
        total = 3 * _count_all(connection)
        done = 0

        def on_rows(number: int) -> None:
            nonlocal done
            done += number
            if on_progress is not None:
                on_progress(done, max(done, total))

        for table in TABLES:
            _copy_table(connection, engine, table, on_rows)
        count, missing = _copy_pictures(connection, source, target)
        rows = _compare(connection, engine, on_rows)
        _finish(engine)
    finally:
        engine.dispose()
    return Copied(rows, count, missing, resumed)


def _compare(
    connection: Connection, engine: Engine, on_rows: Callable[[int], None]
) -> dict[str, int]:
    """Return the number of rows of each table; raise StoreFailed if the sides differ."""
    rows: dict[str, int] = {}
    different: list[str] = []
    with engine.connect() as copied:
        for table in TABLES:
            there = _sum_of(copied, table)
            here = _sum_of(connection, table)
            on_rows(there[0] + here[0])
            rows[table.name] = here[0]
            if here != there:
                different.append(f"{table.name} ({here[0]} rows here, {there[0]} there)")
    if different:
        raise StoreFailed(
            f"The copy is not the same as the store: {', '.join(different)}. Did something write "
            "to the store meanwhile? Remove the copy, stop what uses the store, and copy again."
        )
    return rows


def _copy_pictures(connection: Connection, source: Store, target: Store) -> tuple[int, int]:
    count = missing = 0
    if (mark := mark_for(target.screenshots, target.url)) is not None:
        save_file(*mark)
    with closing(pictures.picture_names(connection)) as found:
        for name, _ in found:
            data = _read(source, name) if pictures.is_picture(name) else None
            if data is None:
                missing += 1
                continue
            count += 1
            path = target.screenshots / name[:2] / name
            save_file(path, data)
            if target.objects is not None:
                target.objects.put(path, data)
    return count, missing


def _read(source: Store, name: str) -> bytes | None:
    path = source.screenshots / name[:2] / name
    if source.objects is not None:
        source.objects.get(path)
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return data if hashlib.sha256(data).hexdigest() == path.name[:64] else None

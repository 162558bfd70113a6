"""All rows of a store brought to another database, a batch to a transaction.

JSON is carried as text. The progress of each table is written with each batch: a copy that was
killed goes on from there.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
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
from hud_mcp.store.sql.schema import COPYING, VERSION, Damaged, Json, damage, metadata, versions

__all__ = ["TABLES", "begin", "copy_table", "count_all", "finish", "sum_of"]

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
        """Return the column's type."""
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


def begin(target: Engine, source: str) -> bool:
    """Prepare a database for a copy; return whether one that was not finished goes on.

    Raises:
        StoreFailed: It holds something else. It stays as it is.
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


def count_all(connection: Connection) -> int:
    """Return the number of rows to copy."""
    return sum(
        connection.execute(select(func.count()).select_from(table)).scalar_one() for table in TABLES
    )


def copy_table(
    source: Connection, target: Engine, table: Table, on_rows: Callable[[int], None]
) -> None:
    """Copy the missing rows of a table.

    Raises:
        DamagedRecord: A row cannot be read.
        StoreFailed: Another process copies there too.
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


def sum_of(connection: Connection, table: Table) -> tuple[int, str]:
    """Return a table's number of rows, and a digest that does not depend on their order."""
    count = total = 0
    for rows in _batches(connection, table, None):
        for row in rows:
            told = [_told(row[column.name]) for column in table.columns]
            each = hashlib.sha256(json.dumps(told).encode("utf-8", "surrogatepass")).digest()
            total = (total + int.from_bytes(each, "big")) % 2**256
        count += len(rows)
    return count, f"{total:064x}"


def finish(target: Engine) -> None:
    """Make the copy a store that everybody may open."""
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

"""A store brought to another place with its pictures, and compared there to the last row."""

import hashlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hud_mcp.errors import StoreFailed
from hud_mcp.plugins.operate import sql
from hud_mcp.plugins.operate.upkeep import pictures
from hud_mcp.plugins.operate.upkeep.values import Copied
from hud_mcp.record.place import read_place, shown_url
from hud_mcp.store import Store
from hud_mcp.store import sql as store_sql
from hud_mcp.store.files import ObjectStore, mark_for, save_file

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["copy"]

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Side:
    """One of the two stores: its URL, its folder of pictures, and its object store, if any."""

    url: str
    folder: Path
    objects: ObjectStore | None

    @classmethod
    def of(cls, store: Store) -> "Side":
        """Return the parts of a store that a copy uses."""
        return cls(store.url, store.screenshots, store.objects)


def copy(
    connection: "Connection",
    source: Side,
    target: Side,
    on_progress: OnProgress | None,
) -> Copied:
    """Copy all rows and pictures from the source's connection, then read both sides and compare.

    `on_progress` gets the number of copied or compared rows, and of all.

    Raises:
        StoreFailed: The target is not empty, or is not the same in the end.
    """
    url, path = read_place(target.url)
    engine = store_sql.engine.open_engine(url, path, is_copy=True)
    try:
        resumed = sql.copying.begin(engine, shown_url(source.url))
        total = 3 * sql.copying.count_all(connection)
        done = 0

        def on_rows(number: int) -> None:
            nonlocal done
            done += number
            if on_progress is not None:
                on_progress(done, max(done, total))

        for table in sql.copying.TABLES:
            sql.copying.copy_table(connection, engine, table, on_rows)
        count, missing = _copy_pictures(connection, source, target)
        rows = _compare(connection, engine, on_rows)
        sql.copying.finish(engine)
    finally:
        engine.dispose()
    return Copied(rows, count, missing, resumed)


def _compare(
    connection: "Connection", engine: "Engine", on_rows: Callable[[int], None]
) -> dict[str, int]:
    """Return the number of rows of each table; raise StoreFailed if the sides differ."""
    rows: dict[str, int] = {}
    different: list[str] = []
    with engine.connect() as copied:
        for table in sql.copying.TABLES:
            there = sql.copying.sum_of(copied, table)
            here = sql.copying.sum_of(connection, table)
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


def _copy_pictures(connection: "Connection", source: Side, target: Side) -> tuple[int, int]:
    count = missing = 0
    if (mark := mark_for(target.folder, target.url)) is not None:
        save_file(*mark)
    with closing(sql.holdings.picture_names(connection)) as found:
        for name, _ in found:
            data = _read(source, name) if pictures.is_picture(name) else None
            if data is None:
                missing += 1
                continue
            count += 1
            path = target.folder / name[:2] / name
            save_file(path, data)
            if target.objects is not None:
                target.objects.put(path, data)
    return count, missing


def _read(source: Side, name: str) -> bytes | None:
    path = source.folder / name[:2] / name
    if source.objects is not None:
        source.objects.get(path)
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return data if hashlib.sha256(data).hexdigest() == path.name[:64] else None

"""Which pictures the steps refer to, in the order of their names. Over an open connection."""

from collections.abc import Generator
from contextlib import closing

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

from hud_mcp.store.sql.columns import sound_json
from hud_mcp.store.sql.schema import steps

__all__ = ["names_elsewhere", "picture_names"]

_AT_ONCE = 5000
"""Rows that are held; the database sorts the others, on its disk where they are many."""


def picture_names(connection: Connection) -> Generator[tuple[str, str], None, None]:
    """Each picture's name, once and in order, with a session that refers to it.

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
    """What a step says of its picture, as a text, and where its name's two parts are in that."""
    row = sound_json(connection, steps.c.row)
    if connection.dialect.name != "sqlite":
        return cast(row["screenshot"], Text), "sha256", "extension"
    paths = ("$.screenshot.sha256", "$.screenshot.extension")
    return func.json_extract(row, *paths, type_=Text), 0, 1


def names_elsewhere(url: str) -> Generator[str, None, None]:
    """The names of the pictures of another store, which is not migrated; none where it has none.

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

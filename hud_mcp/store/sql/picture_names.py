"""Which pictures the steps refer to, in the order of their names. Over an open connection."""

from collections.abc import Generator
from contextlib import closing

from sqlalchemy import Connection, Text, cast, create_engine, func, make_url, select

from hud_mcp.store.sql.damage import sound_json
from hud_mcp.store.sql.schema import steps

__all__ = ["names_elsewhere", "picture_names"]

_AT_ONCE = 5000
"""Rows that are held; the database sorts the others, on its disk where they are many."""


def picture_names(connection: Connection) -> Generator[tuple[str, str], None, None]:
    """Each picture's name, once and in order, with a session that refers to it.

    It takes as much memory for a million steps as for a thousand.
    """
    shot = sound_json(connection, steps.c.row)["screenshot"]
    name = shot["sha256"].as_string() + "." + shot["extension"].as_string()
    named = (
        select(name.label("name"), steps.c.session_id)
        .where(cast(steps.c.row, Text).contains('"screenshot"'))
        .subquery()
    )
    # In the order of Python's texts, whatever the database's language.
    binary = "BINARY" if connection.dialect.name == "sqlite" else "C"
    query = (
        select(named.c.name, func.min(named.c.session_id))
        .where(named.c.name.is_not(None))
        .group_by(named.c.name)
        .order_by(named.c.name.collate(binary))
    )
    with connection.execute(query, execution_options={"yield_per": _AT_ONCE}) as rows:
        for row in rows:
            yield row[0], row[1]


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
